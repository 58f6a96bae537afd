"""The budget replay against a plain oracle, against the ledger itself, and on recorded traffic with two price tables."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horde_policy.budget import Hold, Known, Ledger, Limit, RealInput, TokenUsage, load_prices, worst_case
from horde_policy.budget.body import Ask
from horde_policy.budget.money import pico_half_even, to_pico, to_usd
from horde_policy.budget.price_table import PriceTable
from horde_policy.budget.prices import Price, Tier
from horde_policy.budget.requests import checked_requests
from horde_policy.budget.reservation import HoldRule, Reservation, reserve_cost
from horde_policy.budget.simulate import BudgetReplay, budget_moments, replay_budget
from horde_policy.budget.windows import WindowKind, window_at
from horde_policy.clock import FixedClock
from horde_policy.errors import ConfigError, InputError, MissingPriceError
from horde_policy.frames.usage import BUDGET_REQUESTS
from tests.unit.budget.recorded import azure_requests
from tests.unit.budget.shapes import MICRO, USD, price, rates
from tests.unit.budget.test_requests import valid

PRICES = Path(__file__).parents[3] / "data" / "prices"
START = datetime(2026, 1, 1, tzinfo=UTC)

DEARER = rates(input="6", output="22.5", read="0.6", write_5m="7.5", write_1h="12")
TABLE = PriceTable(
    "synthetic",
    "made up for this test",
    (
        price(model="plain"),
        price(model="tiered", tiers=(Tier(above_input_tokens=3_000, rates=DEARER, whole=True),), ceiling=9_000),
        price(model="excess", tiers=(Tier(above_input_tokens=3_000, rates=rates(input="6"), whole=False),), fee="0.001"),
        price(model="odd", row=rates(input="0.0000015", output="0.0000025", read="0.0000005", reasoning="0.0000035")),
        price(model="free", row=rates("0", "0", "0", "0", "0")),
        Price(provider="p", model="changing", rates=rates(input="1", output="2"), valid_from=START),
        Price(provider="p", model="changing", rates=rates(input="5", output="9"), valid_from=START + timedelta(seconds=60)),
        Price(provider="p", model="later", rates=rates(), valid_from=START + timedelta(seconds=90)),
    ),
)
MODELS = ["plain", "plain", "tiered", "excess", "odd", "free", "changing", "later", "none"]


def made_requests(seed: int, count: int) -> pl.DataFrame:
    """Synthetic requests of every kind."""
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        inputs = rng.randint(0, 6_000)
        m = rng.choice([None, rng.randint(1, 500), rng.randint(1, 9_000), 4_096])
        n = rng.choice([1, 1, 3])
        parts = sorted(rng.randint(0, inputs) for _ in range(3))
        rows.append(
            {
                "created": START + timedelta(microseconds=rng.choice([rng.randint(0, 180_000_000), 30_000_000])),
                "model": rng.choice(MODELS),
                "body_bytes": rng.choice([None, rng.randint(0, 24_000)]),
                "input_tokens": inputs,
                "max_tokens": m,
                "output_tokens": rng.randint(0, n * (m or 9_000)),
                "duration_s": rng.choice([0.0, rng.uniform(0, 60)]),
                "n": n,
                "cache_read_tokens": parts[0],
                "cache_write_5m_tokens": parts[1] - parts[0],
                "cache_write_1h_tokens": parts[2] - parts[1],
            }
        )
    return checked_requests(pl.DataFrame(rows, schema=BUDGET_REQUESTS.polars_schema()))


EMPTY = pl.DataFrame(
    schema={
        "created": pl.Datetime("us", "UTC"),
        "model": pl.String,
        "input_tokens": pl.Int64,
        "max_tokens": pl.Int64,
        "output_tokens": pl.Int64,
        "duration_s": pl.Float64,
    }
)


@dataclass
class Scalar:
    """One request by the scalar rules."""

    arrive: datetime
    end: datetime
    reservation: Reservation | None
    usage: TokenUsage
    real: RealInput

    def cost(self) -> int:
        assert self.reservation is not None
        return pico_half_even(self.usage.cost_atto(self.reservation.price))

    def stated(self) -> int:
        assert self.reservation is not None
        return worst_case([self.reservation], inputs=Known((self.real,))).stated_pico

    def tight(self) -> int:
        assert self.reservation is not None
        return worst_case([self.reservation], inputs=Known((self.real,))).tight_pico


def scalar_requests(frame: pl.DataFrame, output_tokens: int, rule: HoldRule) -> list[Scalar]:
    found = []
    for row in frame.iter_rows(named=True):
        try:
            target: Price | None = TABLE.price(row["model"], at=row["created"])
        except MissingPriceError:
            target = None
        inputs = row["input_tokens"]
        body = 4 * inputs if row["body_bytes"] is None else row["body_bytes"]
        ask = Ask(api="chat", model="m", body_bytes=body, limit_tokens=row["max_tokens"], choices=row["n"])
        short, long, read = row["cache_write_5m_tokens"], row["cache_write_1h_tokens"], row["cache_read_tokens"]
        lasts = max(1, round(row["duration_s"] * 1e6))
        found.append(
            Scalar(
                row["created"],
                row["created"] + timedelta(microseconds=lasts),
                None if target is None else reserve_cost(ask, target, output_tokens=output_tokens, rule=rule),
                TokenUsage(
                    fresh=inputs - short - long - read,
                    cache_read=read,
                    write_5m=short,
                    write_1h=long,
                    output=row["output_tokens"],
                ),
                RealInput(inputs, short, long),
            )
        )
    return found


def oracle(found: Sequence[Scalar], limit: int, kind: WindowKind, zone: str) -> list[dict[str, Any]]:
    """The rule of B4 in plain Python, by sums over lists."""
    admitted: list[tuple[Scalar, datetime]] = []
    rows = []
    for one in found:
        start = window_at(kind, zone, one.arrive).start
        mine = [other for other, where in admitted if where == start]
        spent = sum(other.cost() for other in mine if other.end <= one.arrive)
        open_now = [other for other in mine if other.end > one.arrive]
        held = sum(other.reservation.hold_pico for other in open_now if other.reservation)
        if one.reservation is None:
            outcome = "refused_unpriced"
        elif not one.reservation.is_free and (limit == 0 or spent + held + one.reservation.hold_pico > limit):
            at_limit = limit == 0 or spent + one.reservation.hold_pico > limit
            outcome = "refused_at_limit" if at_limit else "refused_early"
        else:
            outcome = "settled"
            admitted.append((one, start))
            open_now.append(one)
            held += one.reservation.hold_pico
        rows.append(
            {
                "outcome": outcome,
                "hold_pico": one.reservation.hold_pico if one.reservation else 0,
                "cost_pico": one.cost() if outcome == "settled" else None,
                "spent_pico": spent,
                "held_pico": held,
                "open": len(open_now),
                "unbounded_open": sum(x.reservation is not None and x.reservation.ceiling_tokens is None for x in open_now),
                "bound_pico": sum(x.stated() for x in open_now),
                "tight_pico": sum(x.tight() for x in open_now),
                "window_start": start,
            }
        )
    return rows


@pytest.mark.parametrize(
    ("seed", "limit", "kind", "zone"),
    [
        (1, "0.5", "total", "UTC"),
        (2, "0.2", "total", "UTC"),
        (3, "0", "total", "UTC"),
        (4, "100", "total", "UTC"),
        (5, "0.3", "day", "UTC"),
    ],
)
def test_the_replay_is_the_plain_rule(seed: int, limit: str, kind: WindowKind, zone: str) -> None:
    frame = made_requests(seed, 120)
    reserves = (0, 100, 4_096, 20_000)
    found = replay_budget(frame, TABLE, limit, reserves=reserves, alternatives=("full", "input"), window=kind, zone=zone)
    rules: list[tuple[str, int, HoldRule]] = [(f"reserve={r}", r, "capped") for r in reserves]
    for name, reserve, rule in [*rules, ("full", 4_096, "full"), ("input", 4_096, "input")]:
        run = found.run.filter(pl.col("setting") == name)
        expected = oracle(scalar_requests(frame, reserve, rule), to_pico(limit, "limit"), kind, zone)
        for column in expected[0]:
            assert run[column].to_list() == [row[column] for row in expected], (name, column)


def test_windows_each_have_a_limit_of_their_own() -> None:
    late = made_requests(9, 60).with_columns(pl.col("created") + pl.duration(hours=22, minutes=58))
    frame = checked_requests(late)
    found = replay_budget(frame, TABLE, "0.1", reserves=(4_096,), alternatives=(), window="day", zone="Europe/Berlin")
    expected = oracle(scalar_requests(frame, 4_096, "capped"), USD // 10, "day", "Europe/Berlin")
    assert found.run["outcome"].to_list() == [row["outcome"] for row in expected]
    assert found.run["window_start"].n_unique() == 2
    assert found.run["spent_pico"].to_list() == [row["spent_pico"] for row in expected]


def test_the_ledger_decides_as_the_replay_does(tmp_path: Path) -> None:
    frame = made_requests(11, 150)
    found = replay_budget(frame, TABLE, "0.4", reserves=(512,), alternatives=())
    clock = FixedClock(START)
    with Ledger(tmp_path / "ledger.db", clock=clock) as ledger:
        ledger.set_budget("team", Limit("total", "0.4"))
        waiting: list[tuple[datetime, int, Hold, TokenUsage]] = []
        decided = []
        for row, one in enumerate(scalar_requests(frame, 512, "capped")):
            for end, _, hold, usage in sorted((w for w in waiting if w[0] <= one.arrive), key=lambda w: w[:2]):
                clock.advance((end - clock.now()).total_seconds())
                ledger.settle(hold, usage)
            waiting = [w for w in waiting if w[0] > one.arrive]
            clock.advance((one.arrive - clock.now()).total_seconds())
            if one.reservation is None:
                decided.append("refused_unpriced")
                continue
            answer = ledger.admit("team", one.reservation, request_id=str(row))
            if isinstance(answer, Hold):
                waiting.append((one.end, row, answer, one.usage))
                decided.append("settled")
            else:
                decided.append("refused_early" if answer.obstacle == "held" else "refused_at_limit")
        for _, _, hold, usage in waiting:
            ledger.settle(hold, usage)
        [window] = ledger.audit().windows
    assert decided == found.run["outcome"].to_list()
    assert window.spent_pico == found.summary["settled_pico"][0]


def check_bounds(found: BudgetReplay) -> None:
    for row in found.summary.iter_rows(named=True):
        refused = row["refused_early"] + row["refused_at_limit"] + row["refused_unpriced"]
        assert row["requests"] == row["admitted"] + refused
        if row["unbounded"] == 0:
            assert row["overspend_pico"] <= row["bound_at_overspend_pico"] <= row["largest_bound_pico"], row
            assert row["overspend_pico"] <= row["worst_over_pico"] <= row["largest_bound_pico"], row


@given(st.integers(0, 2**32), st.sampled_from(["0.05", "0.3", "2"]))
@settings(max_examples=30)
def test_no_setting_spends_more_than_the_limit_and_its_bound(seed: int, limit: str) -> None:
    frame = made_requests(seed, 60)
    found = replay_budget(frame, TABLE, limit, reserves=(0, 1_000, 4_096), alternatives=("full", "input"))
    check_bounds(found)
    # B13 too, whether answers take their time or come within their microsecond (decision 0049)
    for more_s in (0.0, 1.0):
        streams = frame.with_columns(pl.col("duration_s") + more_s)
        check_bounds(replay_budget(streams, TABLE, limit, reserves=(), alternatives=("stop",)))
    ignored = ["setting", "reserve_tokens"]
    alike = found.summary.filter(pl.col("setting").is_in(["input", "reserve=0"])).drop(ignored)
    assert alike.height == 2
    assert alike.n_unique() == 1


@pytest.mark.parametrize("limit", ["0.05", "0.4", "50"])
def test_the_worst_case_over_the_limit_is_that_of_the_moments_that_have_little_left(limit: str) -> None:
    found = replay_budget(made_requests(41, 200), TABLE, limit, reserves=(0, 4_096), alternatives=("full", "input"))
    for row in found.summary.iter_rows(named=True):
        run = found.run.filter((pl.col("setting") == row["setting"]) & pl.col("outcome").eq("settled"))
        moments = zip(run["spent_pico"], run["held_pico"], run["bound_pico"], strict=True)
        over = [s + h + w - found.limit_pico for s, h, w in moments]
        assert row["worst_over_pico"] == max(0, *over)
        if limit == "50":
            assert row["worst_over_pico"] == 0, "nothing comes near the limit"
        moments_kept = budget_moments(found.run, points=9).filter(pl.col("setting") == row["setting"])
        whole = moments_kept["spent_pico"] + moments_kept["held_pico"] + moments_kept["bound_pico"]
        assert whole.max() == max(over) + found.limit_pico, "what is drawn peaks where the figure does"
    assert any(found.summary["largest_bound_pico"].to_list())


def test_what_streams_cost_in_their_last_microsecond_is_their_bound() -> None:
    row = {"created": "2026-01-01T00:00:00Z", "model": "plain", "input_tokens": 0, "max_tokens": 9_000}
    slow = checked_requests(pl.DataFrame([row | {"output_tokens": 9_000, "duration_s": 9.0}] * 3))
    [stop] = replay_budget(slow, TABLE, "0.1", reserves=(), alternatives=("stop",)).summary.to_dicts()
    assert stop["cut"] == 3
    assert stop["bound_at_overspend_pico"] == stop["worst_over_pico"] == 3 * 15 * MICRO, "a token of each at $15 a million"
    assert 0 < stop["overspend_pico"] <= 3 * 15 * MICRO
    at_once = checked_requests(pl.DataFrame([row | {"output_tokens": 9_000, "duration_s": 0.0}]))
    [stop] = replay_budget(at_once, TABLE, "0.1", reserves=(), alternatives=("stop",)).summary.to_dicts()
    assert stop["cut"] == 0
    assert stop["overspend_pico"] == 9_000 * 15 * MICRO - USD // 10
    assert stop["bound_at_overspend_pico"] == 9_000 * 15 * MICRO, "the whole answer comes within its microsecond"


def stop_oracle(found: Sequence[Scalar], limit: int, tokens: Sequence[int]) -> tuple[list[str], list[int | None]]:
    """B13 in plain Python: step through every microsecond at which something can change, by a scan."""

    def running(k: int, at: datetime) -> int:
        one = found[k]
        if at >= one.end:
            return one.cost()
        share = (
            tokens[k] * ((at - one.arrive) // timedelta(microseconds=1)) // ((one.end - one.arrive) // timedelta(microseconds=1))
        )
        assert one.reservation is not None
        usage = one.usage
        inputs = pico_half_even(
            one.reservation.price.cost_atto(
                fresh=usage.fresh, cache_read=usage.cache_read, write_5m=usage.write_5m, write_1h=usage.write_1h
            )
        )
        output = one.cost() - inputs
        return inputs if share == 0 else inputs + output // tokens[k] * share + output % tokens[k] * share // tokens[k]

    outcome: list[str] = []
    paid: list[int | None] = []
    spent = 0
    open_now: list[int] = []

    def go_to(at: datetime) -> None:
        nonlocal spent
        while True:
            ends = sorted((found[k].end, k) for k in open_now if found[k].end <= at)
            until = ends[0][0] if ends else at
            if open_now and spent + sum(running(k, until) for k in open_now) >= limit:
                low, high = max(found[k].arrive for k in open_now), until
                while high - low > timedelta(microseconds=1):
                    middle = low + (high - low) // 2
                    if spent + sum(running(k, middle) for k in open_now) >= limit:
                        high = middle
                    else:
                        low = middle
                for k in open_now:
                    paid[k] = running(k, high)
                    spent += running(k, high)
                    free = found[k].reservation is not None and found[k].reservation.is_free  # type: ignore[union-attr]
                    outcome[k] = "settled" if high >= found[k].end or free else "cut"
                open_now.clear()
                return
            if not ends:
                return
            for k in [k for end, k in ends if end == until][:1]:
                spent += found[k].cost()
                paid[k] = found[k].cost()
                open_now.remove(k)

    for k, one in enumerate(found):
        go_to(one.arrive)
        total = spent + sum(running(j, one.arrive) for j in open_now)
        if one.reservation is None:
            outcome.append("refused_unpriced")
            paid.append(None)
        elif not one.reservation.is_free and (limit == 0 or total >= limit or total + one.reservation.hold_pico > limit):
            outcome.append("refused_at_limit")
            paid.append(None)
        else:
            outcome.append("settled")
            paid.append(None)
            open_now.append(k)
    go_to(datetime(2027, 1, 1, tzinfo=UTC))
    return outcome, paid


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("limit", ["0.06", "0.3"])
def test_stopping_is_the_plain_rule(seed: int, limit: str) -> None:
    frame = made_requests(100 + seed, 60)
    run = replay_budget(frame, TABLE, limit, reserves=(), alternatives=("stop",)).run
    outcome, paid = stop_oracle(scalar_requests(frame, 4_096, "input"), to_pico(limit, "limit"), frame["output_tokens"].to_list())
    assert run["outcome"].to_list() == outcome
    assert run["cost_pico"].to_list() == paid


def test_streams_are_cut_when_the_count_reaches_the_limit() -> None:
    cut = 0
    for seed in range(20):
        run = replay_budget(made_requests(100 + seed, 60), TABLE, "0.3", reserves=(), alternatives=("stop",)).run
        for row in run.filter(pl.col("outcome") == "cut").iter_rows(named=True):
            cut += 1
            assert row["cost_pico"] >= 0
    assert cut > 20


def test_an_empty_input_gives_an_empty_run() -> None:
    found = replay_budget(checked_requests(EMPTY), TABLE, "1")
    assert found.run.height == 0
    assert found.summary.height == 11
    assert found.summary["overspend_pico"].to_list() == [0] * 11
    assert budget_moments(found.run).height == 0


def test_moments_keep_the_largest_bound() -> None:
    found = replay_budget(made_requests(21, 300), TABLE, "5", reserves=(0, 4_096), alternatives=("stop",))
    moments = budget_moments(found.run, points=20)
    for setting in ("reserve=0", "reserve=4096", "stop"):
        mine, run = moments.filter(pl.col("setting") == setting), found.run.filter(pl.col("setting") == setting)
        assert mine.height <= 40
        assert mine["bound_pico"].max() == run["bound_pico"].max()
        assert mine["at"].is_sorted()
    with pytest.raises(ConfigError, match="points"):
        budget_moments(found.run, points=0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"reserves": (-1,)}, "output_tokens"),
        ({"reserves": (True,)}, "output_tokens"),
        ({"alternatives": ("half",)}, "alternative"),
        ({"reserves": (), "alternatives": ()}, "at least one"),
        ({"window": "year"}, "window"),
        ({"zone": "Mars"}, "zone"),
    ],
)
def test_senseless_settings_are_refused(call: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replay_budget(made_requests(1, 5), TABLE, "1", **call)
    with pytest.raises(InputError, match="limit"):
        replay_budget(made_requests(1, 5), TABLE, 1.5)


def test_more_money_than_63_bits_is_refused() -> None:
    dear = PriceTable("t", "s", (price(model="m", row=rates(output="9000")),))
    rows = [["2026-01-01T00:00:00Z", "m", 1, 10**9, 10**9, 1.0]] * 3
    frame = checked_requests(
        pl.DataFrame(rows, schema=["created", "model", "input_tokens", "max_tokens", "output_tokens", "duration_s"], orient="row")
    )
    with pytest.raises(InputError, match="63 bits"):
        replay_budget(frame, dear, "1")


def test_problems_of_the_requests_are_said() -> None:
    found = replay_budget(checked_requests(pl.DataFrame(valid() | {"output_tokens": [1, 8]})), TABLE, "1")
    assert [problem.code for problem in found.problems] == ["above_own_limit", "unbounded"]


def settled(found: BudgetReplay, setting: str, column: str) -> int:
    return int(found.summary.filter(pl.col("setting") == setting)[column][0])


def test_a_recorded_trace_at_two_price_tables() -> None:
    requests = azure_requests()
    assert requests.height == 300
    hosted, own = load_prices(PRICES / "example-hosted.toml"), load_prices(PRICES / "example-per-token.toml")
    inputs, outputs = int(requests["input_tokens"].sum()), int(requests["output_tokens"].sum())
    whole = replay_budget(requests, hosted, "1000")
    assert settled(whole, "reserve=4096", "settled_pico") == (3 * inputs + 15 * outputs) * MICRO
    assert settled(whole, "reserve=4096", "refused_early") == 0
    cheap = replay_budget(requests, own, "1000")
    assert settled(cheap, "stop", "settled_pico") * 5 < settled(whole, "stop", "settled_pico")
    for table, all_of_it in ((hosted, whole), (own, cheap)):
        limit = to_usd(settled(all_of_it, "full", "settled_pico") // 2)
        found = replay_budget(requests, table, limit)
        for setting in found.summary.iter_rows(named=True):
            assert setting["overspend_pico"] <= setting["bound_at_overspend_pico"]
            assert setting["overspend_pico"] <= setting["worst_over_pico"] <= setting["largest_bound_pico"]
            assert setting["refused_unpriced"] == 0
            assert 0.5 < setting["utilisation_ratio"] < 1.5
        assert settled(found, "full", "overspend_pico") == 0
        assert settled(found, "stop", "overspend_pico") < 100 * MICRO
        assert settled(found, "input", "overspend_pico") >= settled(found, "reserve=256", "overspend_pico")
        assert settled(found, "stop", "cut") > 0
