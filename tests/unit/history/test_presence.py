"""Presence and fleets over a range are what the snapshots of its polls say, one by one."""

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any

import polars as pl
import pytest

from horde_policy.errors import InputError
from horde_policy.frames.fleet import FLEET
from horde_policy.frames.snapshot import Snapshot
from horde_policy.history.fleet_span import load_span
from horde_policy.history.fleets import fleet_from_history
from horde_policy.history.presence import worker_periods, worker_speeds, workers_over
from horde_policy.history.reading import snapshot_at
from horde_policy.history.store import HistoryStore
from horde_policy.settings import AllowanceSettings
from tests.unit.board.made import listed, snapshot, worker
from tests.unit.history.churn import START, changing

POLLS = 150


def at(poll: int) -> datetime:
    return START + timedelta(seconds=30 * poll)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> HistoryStore:
    opened = HistoryStore(tmp_path_factory.mktemp("presence") / "history.sqlite", durable=False)
    for made in changing(POLLS, seed=5):
        opened.write(made)
    return opened


def standing(row: dict[str, Any]) -> str:
    for name, says in (("offline", row["online"] is False), ("maintenance", row["maintenance"]), ("flagged", row["flagged"])):
        if says:
            return name
    return "open"


def form(row: dict[str, Any]) -> tuple[Any, ...]:
    """What a replay tells apart, 0 standing for not reported as it does for none."""
    models, sizes = tuple(row["models"]), (row["max_length"] or 0, row["max_context_length"] or 0)
    return standing(row), models, *sizes, max(1, row["threads"] or 1)


def by_hand(looks: list[Snapshot]) -> dict[str, list[dict[str, Any]]]:
    """Each worker's periods, found by going through the snapshots one by one."""
    periods: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for poll, look in enumerate(looks):
        for row in look.workers.iter_rows(named=True):
            speed = row["speed_tok_per_s"] if row["measured"] and row["speed_tok_per_s"] else None
            mine = periods[row["worker_id"]]
            if not mine or mine[-1]["form"] != form(row) or mine[-1]["last"] != poll - 1:
                mine.append({"form": form(row), "first": poll, "speeds": [], "measured": speed is not None})
            mine[-1]["last"] = poll
            mine[-1]["speeds"] += [speed] if speed is not None else []
    return periods


def test_periods_are_what_the_snapshots_say(store: HistoryStore) -> None:
    looks = [snapshot_at(store, at(poll)) for poll in range(20, POLLS)]
    found = worker_periods(load_span(store, at(20), at(POLLS)))
    wanted = [(worker_id, period) for worker_id, periods in sorted(by_hand(looks).items()) for period in periods]
    assert found.height == len(wanted) > 200
    for row, (worker_id, period) in zip(found.iter_rows(named=True), wanted, strict=True):
        ended = period["last"] + 1
        assert (row["worker_id"], row["standing"]) == (worker_id, period["form"][0])
        assert (row["from"], row["to"]) == (at(20 + period["first"]), at(20 + ended) if ended < len(looks) else None)
        assert form({**row, **dict.fromkeys(("online", "maintenance", "flagged"))})[1:] == period["form"][1:]
        mean = sum(period["speeds"]) / len(period["speeds"]) if period["speeds"] else None
        assert row["speed_tok_per_s"] == (None if mean is None else pytest.approx(mean))
        assert row["polls"] == ended - period["first"]


def test_the_fleet_is_the_periods_that_served_strangers(store: HistoryStore) -> None:
    looks = [snapshot_at(store, at(poll)) for poll in range(POLLS)]
    fleet = fleet_from_history(store, at(0), at(POLLS))
    wanted = {
        (worker_id, at(p["first"])): p
        for worker_id, periods in by_hand(looks).items()
        for p in periods
        if p["form"][0] == "open" and p["form"][1] and p["form"][2] and p["form"][3]
    }
    assert fleet.frame.height == len(wanted) > 50
    assert fleet.frame.schema == FLEET.empty().schema
    for row in fleet.frame.iter_rows(named=True):
        period = wanted[row["worker_id"], row["online_from"]]
        ended = period["last"] + 1
        assert row["online_to"] == (at(ended) if ended < POLLS else None)
        assert (tuple(row["models"]), row["max_length"], row["max_context_length"], row["threads"]) == period["form"][1:]
        speeds = period["speeds"] or [10.0]
        assert row["speed"] == pytest.approx(sum(speeds) / len(speeds))
        assert row["measured"] == period["measured"]
        assert row["slow"] == (row["speed"] < 5)
    assert fleet.stamp["polls"] == POLLS
    assert fleet.stamp["workers_read"] == len(by_hand(looks))


def test_who_is_gone_since_when(tmp_path: Any) -> None:
    store = HistoryStore(tmp_path / "history.sqlite", durable=False)
    fleets = [["stays", "leaves", "returns"], ["stays", "leaves"], ["stays"], ["returns", "stays"]]
    for poll, ids in enumerate(fleets):
        workers = [worker(each, speed_tok_per_s=10.0 + poll) for each in ids]
        store.write(snapshot(workers, [listed("m")], at=at(poll)))
    span = load_span(store, at(0), at(9))
    rows = {row["worker_id"]: row for row in workers_over(span).iter_rows(named=True)}
    assert {name: row["gone_since"] for name, row in rows.items()} == {"stays": None, "leaves": at(2), "returns": None}
    assert {name: row["periods"] for name, row in rows.items()} == {"stays": 1, "leaves": 1, "returns": 2}
    assert rows["leaves"]["last_seen"] == at(1)
    assert rows["returns"]["present_ratio"] == 0.5
    assert (rows["stays"]["slowest_tok_per_s"], rows["stays"]["fastest_tok_per_s"]) == (10.0, 13.0)
    assert rows["stays"]["speed_tok_per_s"] == 11.5
    speeds = worker_speeds(span, "returns")
    assert speeds["speed_tok_per_s"].to_list() == [10.0, None, None, 13.0]
    assert speeds["standing"].to_list() == ["open", "gone", "gone", "open"]
    assert worker_speeds(span, "nobody")["standing"].to_list() == ["gone"] * 4
    store.close()


def test_an_unmeasured_worker_runs_at_the_assumed_speed(tmp_path: Any) -> None:
    store = HistoryStore(tmp_path / "history.sqlite", durable=False)
    store.write(snapshot([worker("new", measured=False, speed_tok_per_s=1.0)], [listed("m")], at=at(0)))
    store.write(snapshot([worker("new", measured=True, speed_tok_per_s=8.0)], [listed("m")], at=at(1)))
    fleet = fleet_from_history(store, at(0), at(0), settings=AllowanceSettings(assumed_speed_tok_per_s=7.0))
    assert fleet.frame.select("speed", "measured", "online_to").rows() == [(7.0, False, None)]
    both = fleet_from_history(store, at(0), at(1)).frame
    assert both.select("speed", "measured").rows() == [(8.0, False)], "measured: before the period began"
    with pytest.raises(InputError, match="holds no poll"):
        fleet_from_history(store, at(-9), at(-1))
    store.close()


def test_nobody_at_all_is_an_empty_frame(tmp_path: Any) -> None:
    store = HistoryStore(tmp_path / "history.sqlite", durable=False)
    store.write(snapshot([], [], at=at(0)))
    span = load_span(store, at(0), at(1))
    assert worker_periods(span).height == workers_over(span).height == fleet_from_history(store, at(0), at(1)).frame.height == 0
    assert isinstance(worker_speeds(span, "w"), pl.DataFrame)
    store.close()
