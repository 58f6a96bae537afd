"""What a page reads of a ledger: who holds what, how long, and each window with its bound (frames of usage.py)."""

from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from horde_policy.budget import Declared, Hold, Ledger, Limit, TokenUsage
from horde_policy.budget.audit import holds_frame, windows_frame
from horde_policy.clock import FixedClock
from horde_policy.frames.usage import LEDGER_HOLDS, LEDGER_WINDOWS
from tests.unit.budget.shapes import MICRO, USD, held, price

START = datetime(2026, 1, 10, 12, tzinfo=UTC)


def test_the_live_frames(tmp_path: Path) -> None:
    clock = FixedClock(START)
    with Ledger(tmp_path / "ledger.db", clock=clock, owner="copy-1", expiry_s=600) as ledger:
        ledger.set_budget("team", Limit("day", "1", open_cap=50), Limit("total", "9"))
        ledger.set_budget("idle", Limit("week", "2", "Europe/Berlin"))
        for request_id, reservation in (("a", held()), ("b", held(m=None)), ("c", held(at=price(window=None)))):
            assert ledger.admit("team", reservation, request_id=request_id)
            clock.advance(10)
        done = ledger.admit("team", held(), request_id="d")
        kept = ledger.admit("team", held(), request_id="e")
        assert isinstance(done, Hold)
        assert isinstance(kept, Hold)
        ledger.settle(done, TokenUsage(fresh=1_000, output=0))
        ledger.settle(kept, None)
        frame = holds_frame(ledger.open_holds(), clock.now())
        assert LEDGER_HOLDS.checked(frame).equals(frame)
        assert frame["request_id"].to_list() == ["a", "b", "c"]
        assert frame["age_s"].to_list() == [30.0, 20.0, 10.0]
        assert frame["budgets"].to_list() == [["team", "team"]] * 3
        assert frame["bound_pico"].to_list() == [(418_560 + 570_000) * MICRO, None, None]
        assert frame["owner"].unique().to_list() == ["copy-1"]
        declared = holds_frame(ledger.open_holds(), clock.now(), Declared("1"))
        assert declared["bound_pico"].to_list() == [418_560 * MICRO, None, 418_560 * MICRO]
        windows = windows_frame(ledger.status(inputs=Declared("1")))
        assert LEDGER_WINDOWS.checked(windows).equals(windows)
        assert windows.select("budget", "kind").rows() == [("idle", "week"), ("team", "day"), ("team", "total")]
        team = windows.filter(pl.col("kind") == "day").row(0, named=True)
        assert team["spent_pico"] == (3_000 + 91_440) * MICRO
        assert team["held_pico"] == 3 * 91_440 * MICRO
        assert team["left_pico"] == USD - team["spent_pico"] - team["held_pico"]
        assert (team["open"], team["open_cap"], team["unbounded"], team["bound_kind"]) == (3, 50, 1, "declared")
        assert team["bound_pico"] == 2 * 418_560 * MICRO
        assert (team["settled_pico"], team["estimated_pico"], team["expired_pico"]) == (3_000 * MICRO, 91_440 * MICRO, 0)
        idle = windows.filter(pl.col("budget") == "idle").row(0, named=True)
        assert (idle["spent_pico"], idle["open"], idle["bound_pico"]) == (0, 0, 0)
        assert idle["start"] == datetime(2026, 1, 4, 23, tzinfo=UTC)
        assert windows.filter(pl.col("kind") == "total")["end"].to_list() == [None]


def test_frames_of_an_empty_ledger(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        assert holds_frame(ledger.open_holds(), START).height == 0
        assert windows_frame(ledger.status()).height == 0
        audit = ledger.audit()
        assert (audit.agrees, audit.open, audit.oldest) == (True, 0, None)


def test_an_expired_hold_counts_in_the_worst_case_until_its_cost_is_written(tmp_path: Path) -> None:
    clock = FixedClock(START)
    with Ledger(tmp_path / "ledger.db", clock=clock, expiry_s=60) as ledger:
        ledger.set_budget("team", Limit("day", "1"))
        assert ledger.admit("team", held(), request_id="a")
        before = ledger.worst_case("team", inputs=Declared("1")).stated_pico
        clock.advance(60)
        ledger.reap()
        status = ledger.status(inputs=Declared("1"))[0].windows[0]
        assert status.worst.stated_pico == before == 418_560 * MICRO
        assert status.labels["expired"].pico == 91_440 * MICRO
        ledger.settle(("a", 1), TokenUsage(fresh=1, output=1))
        assert ledger.worst_case("team").open == 0
        assert ledger.status()[0].windows[0].labels["late"].requests == 1
