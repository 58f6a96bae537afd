"""The bundled demo week: what the files say is what its making counted, and its findings are the ones that the making implies."""

import gzip
import json
from typing import Any

import polars as pl
import pytest

from horde_policy.frames.decisions import OUTCOMES
from horde_policy.review.exported import Exported
from horde_policy.review.finding import Finding
from horde_policy.review.findings import Week, review_week
from horde_policy.review.loading import DEMO_WEEK, load_exports
from horde_policy.review.sampling import Bounds
from horde_policy.settings import AllowanceSettings
from tests import make_demo_week


@pytest.fixture(scope="module")
def exported() -> Exported:
    return load_exports([DEMO_WEEK])


@pytest.fixture(scope="module")
def week(exported: Exported) -> Week:
    return review_week(exported, AllowanceSettings())


@pytest.fixture(scope="module")
def tally() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(make_demo_week.TALLY.read_text(encoding="utf-8"))
    return found


def one(week: Week, code: str) -> Finding:
    (found,) = [finding for finding in week.findings if finding.code == code]
    return found


def test_it_is_small_and_says_that_it_is_made_up(exported: Exported) -> None:
    assert sum(path.stat().st_size for path in DEMO_WEEK.iterdir()) < 3_000_000
    assert exported.synthetic
    assert exported.title == make_demo_week.TITLE
    assert all("made up" in instance for instance in exported.instances)
    assert exported.problems == ()


def test_the_files_say_what_the_making_counted(exported: Exported, tally: dict[str, Any]) -> None:
    words = ["requester", "outcome", "requested_size", "allowance_size", "chat"]
    counted = exported.decisions.group_by(words).agg(pl.col("count_low", "count_high").sum())
    assert {row[:5]: (row[5], row[6]) for row in counted.iter_rows()} == {
        tuple(entry[:5]): (entry[5], entry[5]) for entry in tally["decisions"]
    }
    waits = exported.waits.group_by("kind", "requester", "upper_s").agg(pl.col("count_low", "count_high").sum())
    assert {row[:3]: (row[3], row[4]) for row in waits.iter_rows()} == {
        (kind, requester, float("inf") if bound is None else bound): (count, count)
        for kind, requester, bound, count in tally["waits"]
    }
    for kind, seconds in tally["sum_s"].items():
        own = exported.wait_sums.filter(pl.col("kind") == kind)
        assert own["sum_low_s"].sum() == pytest.approx(seconds)
        assert own["sum_high_s"].sum() == pytest.approx(seconds)


def test_every_outcome_occurs(exported: Exported) -> None:
    shares = dict(exported.decisions.group_by("outcome").agg(pl.col("count_low").sum()).iter_rows())
    assert set(shares) == set(OUTCOMES)
    assert min(shares.values()) >= 0.01 * exported.counted.low


def test_the_week_is_that_of_the_trace(exported: Exported) -> None:
    covered = exported.covered
    assert covered.start is not None
    assert covered.end is not None
    assert covered.start.isoformat().startswith("2025-09-10T04:01")
    assert covered.end.isoformat().startswith("2025-09-17T0")
    assert exported.counted == Bounds(38_000, 38_000)


def test_nothing_at_or_under_the_floor_is_refused_and_something_over_it_is(week: Week) -> None:
    refused = one(week, "refused")
    assert refused.severity == "bad"
    own = week.exported.decisions.filter(pl.col("outcome") == "refused")
    assert "<=512" not in own["requested_size"].to_list()
    assert refused.figures["worst_requester"] == "anonymous"  # half of the askers are, and none of them can pay
    assert refused.figures["worst_requested_size"] == "1025-2048"


def test_the_rule_is_followed_to_the_letter(week: Week) -> None:
    assert one(week, "allowance_agrees").figures["gap"] == 0
    assert one(week, "allowance_agrees").severity == "fine"
    assert one(week, "allowance_moves").severity == "fine"
    assert one(week, "data_clean").severity == "fine"
    # one of the five workers takes every size at any time
    assert not [finding for finding in week.findings if finding.code in ("without_worker", "cells_impossible", "cells_special")]


def test_estimates_are_too_dark_because_clients_ask_for_more_than_they_use(week: Week) -> None:
    found = {finding.figures["mark_s"]: finding for finding in week.findings if finding.code == "estimates"}
    assert {mark: finding.figures["off"] for mark, finding in found.items()} == {60.0: "pessimistic", 300.0: "pessimistic"}
    assert found[60.0].figures["difference"].low > 0.1


def test_the_true_funded_wait_lies_within_the_bounds(week: Week, tally: dict[str, Any]) -> None:
    rows = {row["edge_s"]: row for row in week.verdict.funded.rows.iter_rows(named=True)}
    told = 0
    for bound, within, everyone in tally["funded"]:
        if bound in rows:
            assert rows[bound]["funded_low"] <= within / everyone <= rows[bound]["funded_high"]
            told += 1
    assert told >= 15
    assert week.verdict.answer == "record_needed"


def test_a_floor_at_a_bucket_edge_frees_exactly_what_lies_under_it(week: Week) -> None:
    gains = {finding.figures["size"]: finding.figures for finding in week.findings if finding.code == "would_gain"}
    assert set(gains) == {"513-1024", "1025-2048", "2049-4096"}
    frame = week.exported.decisions.filter((pl.col("outcome") != "free") & (pl.col("requested_size") == "513-1024"))
    assert gains["513-1024"]["setting"] == "floor_tokens"
    assert gains["513-1024"]["value"] == 1024
    assert gains["513-1024"]["gained"] == Bounds(frame["count_low"].sum(), frame["count_low"].sum())  # type: ignore[arg-type]


@pytest.mark.soak
def test_making_it_again_makes_the_same(tally: dict[str, Any]) -> None:
    rows = make_demo_week.replayed()
    assert json.loads(json.dumps(make_demo_week.tally(rows))) == tally
    for name, content in zip(make_demo_week.EXPORTS, make_demo_week.exported(rows), strict=True):
        assert gzip.decompress((DEMO_WEEK / name).read_bytes()) == content
