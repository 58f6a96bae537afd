"""Must-show 1, reading: what the real SDK's exporters wrote of a week is what the script counted, through each reader."""

import json
import struct
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from math import inf
from typing import Any

import polars as pl
import pytest
import zstandard

from horde_policy.imports import Imported, read_exports
from tests.unit.imports.production_week import DAY, MIDNIGHT, Tally, Week, produced

SOAK_SEEDS = range(100, 112)
DIMENSIONS = ("requester", "outcome", "requested_size", "allowance_size", "chat")
DATA = ("cumulative", "delta", "protobuf", "collector_zstd", "both")


@lru_cache(maxsize=1)
def week() -> Week:
    return produced(seed=7, step_s=3600)


def sources(of: Week, kind: str) -> list[bytes]:
    """The week as one of the files that real writers leave."""
    if kind == "protobuf":
        return [b"".join(struct.pack(">I", len(one)) + one for one in of.protobuf())]
    if kind == "collector_zstd":
        frames = [zstandard.compress(line) for line in of.cumulative.splitlines() if line]
        return [b"".join(struct.pack(">I", len(frame)) + frame for frame in frames)]
    if kind == "both":
        return [of.scrapes, of.cumulative]
    return [of.cumulative if kind == "cumulative" else of.delta if kind == "delta" else of.scrapes]


def bounds(frame: pl.DataFrame, by: list[str]) -> dict[tuple[object, ...], tuple[float, float]]:
    totals = frame.group_by(by).agg(pl.col("count_low", "count_high").sum())
    return {
        tuple(key): (low, high)
        for key, low, high in zip(totals.select(by).rows(), *totals.select("count_low", "count_high"), strict=True)
    }


def tallied(
    imported: Imported,
) -> tuple[dict[tuple[object, ...], tuple[float, float]], dict[tuple[object, ...], tuple[float, float]]]:
    return bounds(imported.decisions, list(DIMENSIONS)), bounds(imported.waits, ["kind", "requester", "upper_s"])


def exact(counted: Counter[tuple[object, ...]]) -> dict[tuple[object, ...], tuple[float, float]]:
    return {key: (count, count) for key, count in counted.items() if count}


def check_exact(of: Week, kind: str) -> None:
    imported = read_exports(sources(of, kind))
    decisions, waits = tallied(imported)
    assert decisions == exact(Counter(of.tally.decisions))
    assert waits == exact(Counter(of.tally.waits))
    for wait_kind in ("estimated", "queue"):
        sums = imported.wait_sums.filter(pl.col("kind") == wait_kind)
        assert sums["sum_high_s"].sum() == pytest.approx(of.tally.seconds[wait_kind], rel=1e-9)
        assert sums["sum_low_s"].sum() == pytest.approx(of.tally.seconds[wait_kind], rel=1e-9)
    assert imported.before.empty
    assert {problem.code for problem in imported.problems} <= {"uncovered"}


def check_days(of: Week, kind: str) -> None:
    imported = read_exports(sources(of, kind))
    ends = imported.decisions.with_columns(((pl.col("interval_end").dt.epoch("s") - 1 - MIDNIGHT) // DAY).alias("day"))
    daily = dict(ends.group_by("day").agg(pl.col("count_high").sum()).iter_rows())
    assert daily == {number: sum(day.decisions.values()) for number, day in enumerate(of.days) if day.decisions}


def check_within(imported: Imported, of: Week) -> None:
    """What Prometheus saw is inside the bounds, apart from what it saw at first looks, for every label set and bucket."""
    waits = ["kind", "requester", "upper_s"]
    kinds: list[tuple[pl.DataFrame, pl.DataFrame, list[str], Mapping[Any, int], Mapping[Any, int]]] = [
        (imported.decisions, imported.before.decisions, list(DIMENSIONS), of.tally.decisions, of.unscraped.decisions),
        (imported.waits, imported.before.waits, waits, of.tally.waits, of.unscraped.waits),
    ]
    for frame, before, by, everything, unseen in kinds:
        inside, earlier = bounds(frame, by), bounds(before, by)
        for key in (*everything, *inside):
            scraped = everything.get(key, 0) - unseen.get(key, 0)
            low, high = inside.get(key, (0, 0))
            baseline = earlier.get(key, (0, 0))[1]
            assert low + baseline <= scraped <= high + baseline, (key, low, high, baseline, scraped)


@pytest.mark.parametrize("kind", DATA)
def test_with_start_times_every_reader_agrees_exactly(kind: str) -> None:
    check_exact(week(), kind)


@pytest.mark.parametrize("kind", ["cumulative", "delta"])
def test_each_day_is_right(kind: str) -> None:
    check_days(week(), kind)


def test_scrapes_agree_within_the_stated_bounds() -> None:
    check_within(read_exports(week().scrapes), week())


def test_the_bounds_of_the_scrapes_are_narrow() -> None:
    decisions = read_exports(week().scrapes).decisions
    undecided = decisions.filter(pl.col("count_low") != pl.col("count_high"))
    # the one process that appears in mid-week, at its first look, and nothing else
    assert undecided["instance"].unique().to_list() == ['job="ai-horde",instance="b"']
    assert undecided["interval_end"].n_unique() == 1


def test_the_week_has_what_it_must() -> None:
    of = week()
    assert of.restarts >= 3
    assert {outcome for _, outcome, *_ in of.tally.decisions} == {"free", "funded", "refused", "downgraded"}
    early = Tally()
    for day in of.days[:5]:
        early.add(day)
    assert not any(requester == "shared_key" for requester, *_ in early.decisions)
    assert any(requester == "shared_key" for requester, *_ in of.tally.decisions)
    assert of.tally.waits["queue", "anonymous", 60.0]
    assert of.tally.waits["estimated", None, inf] == 0


def test_restarts_are_found_in_scrapes() -> None:
    report = read_exports(week().scrapes).report
    assert [len(one.restarts) for one in report.instances] == [week().restarts, 0]


def test_a_window_of_one_day() -> None:
    begin = datetime.fromtimestamp(MIDNIGHT, UTC) + timedelta(days=3)
    imported = read_exports(week().cumulative, window=(begin, begin + timedelta(days=1)))
    total = sum(week().days[3].decisions.values())
    low, high = (float(imported.decisions[name].sum()) for name in ("count_low", "count_high"))
    # a restart's last flush and a new life's first export may cross midnight
    assert low <= total <= high
    assert high - low <= 12


def test_daily_files_in_any_order_are_the_week() -> None:
    lines = week().cumulative.splitlines(keepends=True)
    by_day: dict[int, list[bytes]] = {}
    for line in lines:
        point = json.loads(line)["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]
        stamp = next(point[kind] for kind in ("sum", "histogram") if kind in point)["dataPoints"][0]["timeUnixNano"]
        by_day.setdefault((int(stamp) // 10**9 - MIDNIGHT) // DAY, []).append(line)
    files = [b"".join(of_day) for _, of_day in sorted(by_day.items(), key=lambda item: -item[0])]
    imported = read_exports([*files, files[2]])
    assert tallied(imported)[0] == exact(Counter(week().tally.decisions))


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK_SEEDS)
def test_many_weeks_in_finer_steps(seed: int) -> None:
    of = produced(seed=seed, step_s=(600, 900, 1800, 3600)[seed % 4])
    for kind in DATA:
        check_exact(of, kind)
    check_days(of, "cumulative")
    check_within(read_exports(of.scrapes), of)
