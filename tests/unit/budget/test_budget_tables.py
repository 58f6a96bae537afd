"""What ``budget replay`` and ``budget status`` print in their tables: the figures of the library, none of them bare."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from horde_policy.budget import Hold, Ledger, Limit
from horde_policy.budget.money import money_text
from horde_policy.budget.price_table import load_prices
from horde_policy.budget.simulate import replay_budget
from horde_policy.cli.main import main
from horde_policy.clock import FixedClock
from tests.unit.budget.recorded import azure_requests
from tests.unit.budget.shapes import held

PRICES = Path(__file__).parents[3] / "data" / "prices" / "example-hosted.toml"


def lines(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[list[str]]:
    assert main([str(argument) for argument in ("budget", *arguments)]) == 0
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_the_worst_case_over_the_limit_stands_beside_what_was_overspent_and_the_largest_w(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    requests = tmp_path / "requests.parquet"
    azure_requests().write_parquet(requests)
    shown = lines(
        capsys, "replay", "--requests", requests, "--prices", PRICES, "--limit", "0.5", "--out", tmp_path / "run.parquet"
    )
    summary = replay_budget(azure_requests(), load_prices(PRICES), "0.5").summary
    different = 0
    for row in summary.iter_rows(named=True):
        printed = next(words for words in shown if words[:1] == [row["setting"]])
        amounts = [word for word in printed if word.startswith("$")]
        assert amounts == [money_text(row[name]) for name in ("overspend_pico", "worst_over_pico", "largest_bound_pico")]
        assert row["overspend_pico"] <= row["worst_over_pico"] <= row["largest_bound_pico"]
        different += row["worst_over_pico"] != row["largest_bound_pico"]
    assert different, "the two are not one figure under two names"


def test_the_open_requests_of_a_window_are_told_with_the_expired_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clock = FixedClock(datetime.now(UTC) - timedelta(days=7))
    with Ledger(tmp_path / "ledger.db", clock=clock) as book:
        book.set_budget("team", Limit("total", "100"))
        assert isinstance(book.admit("team", held(), request_id="1"), Hold)
        clock.advance(7 * 86_400)
        assert len(book.reap()) == 1
        assert isinstance(book.admit("team", held(), request_id="2"), Hold)
    row = next(words for words in lines(capsys, "status", "--ledger", tmp_path / "ledger.db") if words[:1] == ["team"])
    assert " ".join(row).count("1 and 1 expired") == 1
