"""The Budget page's state, words, figures and files, without a page."""

import csv
import io
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.budget import Ask, Hold, Ledger, Limit, load_prices, reserve_cost
from horde_policy.budget.audit import Audit, LedgerLook
from horde_policy.budget.bound import Certain
from horde_policy.budget.demo import make_demo_ledger
from horde_policy.budget.money import money_text
from horde_policy.budget.requests import checked_requests
from horde_policy.budget.simulate import BudgetReplay, budget_moments, replay_budget
from horde_policy.clock import FixedClock
from horde_policy.errors import InputError
from horde_policy.frames.usage import LEDGER_HOLDS
from horde_policy.imports.trace_frame import TraceOptions
from horde_policy.imports.traces import load_trace
from horde_policy.settings import AllowanceSettings
from horde_policy.views import budget_words as words
from horde_policy.views.budget_exports import BudgetStamp, LedgerStamp, in_dollars, moments_csv, run_parquet, settings_csv
from horde_policy.views.budget_inputs import AGENT_SIZES, from_file, from_trace, limit_of, priced_model
from horde_policy.views.budget_ledger import audit_sentence, hold_rows, look_sentence, window_rows
from horde_policy.views.budget_state import (
    ASKS,
    INPUTS,
    WINDOWS,
    BudgetState,
    asks_from_text,
    limit_from_text,
    parse_budget_state,
    reserve_from_text,
)
from horde_policy.views.figures import budget as figures
from horde_policy.views.parameters import size_from_text
from horde_policy.views.state import parse_view_state
from horde_policy.views.text import document_markdown, ratio

ROOT = Path(__file__).parents[3]
PRICES = load_prices(ROOT / "data" / "prices" / "example-hosted.toml")
TRACE = load_trace(ROOT / "data" / "traces" / "azure2023_conv.head300.csv", TraceOptions())
STATE = BudgetState()
GIVEN = from_trace(TRACE, "the trace", "large", PRICES, STATE)
LIMIT = "0.9"

states = st.builds(
    BudgetState,
    requests=st.from_regex(r"[A-Za-z0-9_.-]{1,40}", fullmatch=True),
    asks=st.one_of(st.sampled_from(list(ASKS)), st.integers(1, 1_000_000).map(str)),
    pace_tok_per_s=st.integers(1, 10**6).map(lambda n: n / 10),
    input_ratio=st.integers(1, 10_000).map(lambda n: n / 100),
    prices=st.from_regex(r"[A-Za-z0-9_.-]{1,40}", fullmatch=True),
    model=st.text(st.characters(categories=["L", "N", "P", "S"]), max_size=40),
    limit=st.one_of(st.just(""), st.decimals(0, 4_000_000, places=6).map(lambda d: f"{d:f}")),
    window=st.sampled_from(list(WINDOWS)),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "Etc/GMT+5"]),
    reserve_tokens=st.integers(0, 1_000_000),
    alike=st.integers(1, 1_000),
    inputs=st.sampled_from(INPUTS),
)


@pytest.fixture(scope="module")
def replay() -> BudgetReplay:
    return replay_budget(GIVEN.frame, PRICES, LIMIT)


# --- the state ------------------------------------------------------------------------------------------------------------


@given(states)
def test_what_is_written_reads_back_the_same(state: BudgetState) -> None:
    assert parse_budget_state(state.query()) == (state, ())
    whole, notes = parse_view_state(state.query(), AllowanceSettings())
    assert (whole.budget, notes) == (state, ())
    assert whole.query(AllowanceSettings()) == state.query()
    assert whole.shared_query(AllowanceSettings()) == {}, "links to other pages leave the budget out"


@given(
    st.dictionaries(
        st.sampled_from([*STATE.changed(limit="1").query(), "budget_asks", "budget_zone"]), st.lists(st.text(), min_size=1)
    )
)
def test_nothing_in_an_address_stops_the_page(query: dict[str, list[str]]) -> None:
    state, _ = parse_budget_state(query)
    assert parse_budget_state(state.query()) == (state, ())


@pytest.mark.parametrize(
    "text", ["-1", "NaN", "inf", "1e999", "5000000", "0.0000000000001", "many", "１", "12,5", "1,2,3", "1,0000"]
)
def test_a_limit_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="limit"):
        limit_from_text(text)


@pytest.mark.parametrize("read", [limit_from_text, asks_from_text, reserve_from_text, size_from_text])
def test_a_refused_comma_is_told_what_it_is_read_as(read: Callable[[str], object]) -> None:
    with pytest.raises(InputError) as comma:
        read("12,5")
    assert comma.value.told.endswith("(commas group thousands, as in 1,500; the decimal mark is a point)")
    with pytest.raises(InputError) as other:
        read("many")
    assert "commas" not in other.value.told


# --- the requests ---------------------------------------------------------------------------------------------------------


def test_what_a_trace_does_not_say_is_assigned_by_the_named_rules() -> None:
    frame = GIVEN.frame
    assert frame["max_tokens"].head(10).to_list() == list(AGENT_SIZES)
    assert (frame["max_tokens"] >= frame["output_tokens"]).all()
    assert frame["body_bytes"].null_count() == frame.height
    durations = frame["duration_s"] - frame["output_tokens"] / 30
    assert durations.round(9).unique().to_list() == [0.5]
    ladder = from_trace(TRACE, "t", "large", PRICES, STATE.changed(asks="ladder")).frame
    assert ladder["max_tokens"].is_in([80, 150, 256, 512, 1024, 2048, 4096, 8192, 16384]).all()
    assert from_trace(TRACE, "t", "large", PRICES, STATE.changed(asks="none")).frame["max_tokens"].null_count() == frame.height
    bodies = from_trace(TRACE, "t", "large", PRICES, STATE.changed(input_ratio=2.0)).frame
    assert bodies["body_bytes"].to_list() == [2 * tokens for tokens in bodies["input_tokens"]]


def test_a_limit_in_the_trace_itself_is_kept() -> None:
    own = TRACE.frame.with_columns(max_length=pl.col("output_tokens") + 7)
    given_own = from_trace(
        type(TRACE)(**{name: getattr(TRACE, name) for name in TRACE.__slots__} | {"frame": own}), "t", "large", PRICES, STATE
    )
    assert given_own.frame["max_tokens"].to_list() == (own["output_tokens"] + 7).to_list()
    assert not any(text.startswith("asked for") for text in given_own.assumed)


def test_requests_that_cannot_be_priced_or_are_too_many_are_refused() -> None:
    with pytest.raises(InputError, match="more than the page's 100"):
        from_file(GIVEN.frame, "t", most=100)
    with pytest.raises(InputError, match="nothing to replay"):
        from_file(GIVEN.frame.clear(), "t")
    with pytest.raises(InputError, match="a missing price is not zero"):
        priced_model(STATE.changed(model="nobody's"), PRICES)


@pytest.mark.parametrize(("window", "windows"), [("total", 1), ("day", 2), ("month", 2), ("week", 1)])
def test_the_automatic_limit_is_half_of_what_everything_costs_over_the_windows(window: str, windows: int) -> None:
    made = {"model": "large", "input_tokens": 1_000_000, "max_tokens": 100, "output_tokens": 0, "duration_s": 1.0}
    rows = [{"created": f"2026-{day}T12:00:00Z", **made} for day in ("03-31", "04-01")]
    requests = checked_requests(pl.DataFrame(rows))
    assert limit_of(requests, PRICES, STATE.changed(window=window)) == {1: "3", 2: "1.5"}[windows]
    assert limit_of(requests, PRICES, STATE.changed(limit="0.10")) == "0.10"
    free = requests.with_columns(model=pl.lit("free"))
    assert limit_of(free, PRICES, STATE) == "0"


# --- figures and words ----------------------------------------------------------------------------------------------------


def test_the_trade_off_has_a_point_for_every_setting(replay: BudgetReplay) -> None:
    figure = figures.fig_trade_off(replay.summary, 4096, "light")
    early = {x: y for trace in figure.data if trace.name == "refused early" for x, y in zip(trace.x, trace.y, strict=True)}
    assert len(early) == replay.summary.height
    for place, row in zip(sorted(early), replay.summary.iter_rows(named=True), strict=True):
        assert early[place] == pytest.approx(row["refused_early"] / 3), "in percent"
    notes = [note.text for note in figure.layout.annotations]
    assert notes == ["default"]
    assert [shape.x0 for shape in figure.layout.shapes] == [4, 4]
    bound = next(trace for trace in figure.data if trace.name == "worst case over the limit")
    assert list(bound.y) == sorted(bound.y, reverse=True), "a larger reservation never has the larger worst case here"
    rows = sorted(replay.summary.to_dicts(), key=lambda row: (row["reserve_tokens"] is None, row["reserve_tokens"] or 0))
    drawn = {x: y for t in figure.data if t.name == bound.name for x, y in zip(t.x, t.y, strict=True)}
    assert [drawn[place] for place in sorted(drawn)] == [row["worst_over_pico"] / 1e12 for row in rows]
    alt = figures.trade_off_alt(replay.summary.to_dicts(), replay.limit_pico)
    assert alt.startswith("What a reservation trades under a limit of $0.9000; 0: ")
    assert "stop streams: " in alt


def test_outcomes_add_up_to_all_requests(replay: BudgetReplay) -> None:
    figure = figures.fig_outcomes(replay.summary, "dark")
    shares = [sum(values) for values in zip(*(trace.x for trace in figure.data), strict=True)]
    assert shares == pytest.approx([100.0] * replay.summary.height)
    assert {note.text for note in figure.layout.annotations} >= {"used"}


@pytest.mark.parametrize("dated", [True, False])
def test_money_over_time_reaches_the_limit_and_never_hides_what_is_over_it(replay: BudgetReplay, dated: bool) -> None:
    moments = budget_moments(replay.run)
    figure = figures.fig_money(moments, "reserve=4096", replay.limit_pico, dated=dated, mode="light")
    spent, held, worst = (list(trace.y) for trace in figure.data)
    assert all(s <= h <= w for s, h, w in zip(spent, held, worst, strict=True))
    assert max(held) <= 0.9 + 1e-9
    assert figure.layout.shapes[0].y0 == pytest.approx(0.9)
    for column, fig in (("open", figures.fig_open), ("bound_pico", figures.fig_bound)):
        over_time = fig(moments, words.shown_settings(4096), dated=dated, mode="dark")
        assert [trace.name for trace in over_time.data] == ["4,096 reserved", "hold all", "input only", "stop streams"]
        assert figures.over_time_alt(moments, words.shown_settings(4096), column)
    assert figure.layout.annotations[0].yanchor == "top", "below its line"
    assert {axis.exponentformat for axis in (figure.layout.yaxis, over_time.layout.yaxis)} == {"none"}, "no 1µ for a millionth"
    nothing = figures.fig_money(moments, "reserve=4096", 0, dated=dated, mode="light")
    assert nothing.layout.annotations[0].yanchor == "bottom", "a limit of zero has the times below it"
    assert "held at once" in figures.money_alt(moments, "reserve=4096", replay.limit_pico)
    assert "nothing was held" in figures.money_alt(moments.clear(), "reserve=4096", replay.limit_pico)


def test_open_holds_of_settings_that_admit_the_same_do_not_cover_one_another(replay: BudgetReplay) -> None:
    moments = budget_moments(replay.run)
    figure = figures.fig_open(moments, words.shown_settings(4096), dated=True, mode="light")
    axes = [figure.layout["yaxis" + trace.yaxis[1:]] for trace in figure.data]
    ends = sorted(axis.domain for axis in axes)
    assert len(ends) == 4
    assert all(below[1] < above[0] for below, above in pairwise(ends)), "each has a row of its own"
    assert len({axis.range for axis in axes}) == 1, "rows are compared by their height"
    assert axes[0].range[1] >= max(moments["open"])
    assert figures.fig_open(moments.clear(), words.shown_settings(4096), dated=True, mode="light").data


def test_the_headline_says_what_was_really_overspent_and_what_has_no_bound(replay: BudgetReplay) -> None:
    row = words.summary_row(replay, 4096)
    early, at_limit = (ratio(row[name] / row["requests"]) for name in ("refused_early", "refused_at_limit"))
    assert words.headline(row).startswith(
        f"Reserving 4,096 tokens refuses {early} of the requests early and {at_limit} at the limit"
    )
    assert words.headline(row).endswith(f"the worst case was {money_text(row['worst_over_pico'])} over the limit")
    over = words.headline({**row, "overspend_pico": 5 * 10**11, "unbounded": 3})
    assert (
        "$0.5000 was spent beyond the limit, the worst case was unbounded (3 without an output limit or a declared ceiling)"
        in over
    )
    assert words.unpriced_note(replay) == ""
    none = replay_budget(GIVEN.frame.with_columns(model=pl.lit("nobody's")), PRICES, LIMIT)
    assert words.unpriced_note(none).startswith("300 requests have no price")
    assert "and 100 % without a price" in words.headline(words.summary_row(none, 4096))


def test_the_headline_of_a_limit_of_nothing_says_that_all_is_refused() -> None:
    row = words.summary_row(replay_budget(GIVEN.frame, PRICES, "0"), 4096)
    assert words.headline(row) == (
        "Reserving 4,096 tokens refuses 0 % of the requests early and 100 % at the limit; nothing was spent beyond the limit, "
        "the worst case was $0.0000 over the limit"
    )


def test_the_worst_case_of_the_headline_is_the_peak_of_the_chart_beside_it(replay: BudgetReplay) -> None:
    row = words.summary_row(replay, 4096)
    figure = figures.fig_money(budget_moments(replay.run), "reserve=4096", replay.limit_pico, dated=True, mode="light")
    assert row["worst_over_pico"] > 0
    assert max(figure.data[2].y) - 0.9 == pytest.approx(row["worst_over_pico"] / 1e12, abs=1e-9)


def test_a_card_on_a_phone_shows_what_decides_and_the_rest_on_demand() -> None:
    assert [column.key for column in words.SETTING_COLUMNS if column.brief is not None] == [
        "setting",
        "early",
        "at_limit",
        "worst",
    ]
    labels = [column.label for column in words.SETTING_COLUMNS]
    assert len(set(labels)) == len(labels)


def test_every_rule_that_the_page_names_is_said_on_it() -> None:
    for code in words.RULES:
        assert f"**{code}** " in words.rules_markdown()
        assert words.with_links(f"({code})") == f"([{code}](#{words.RULES_ANCHOR}))"
    text = document_markdown((ROOT / "docs" / "limits.md").read_text(encoding="utf-8"))
    assert "### The bound" in text
    assert not [line for line in text.splitlines() if line.startswith(("# ", "## "))]
    assert "$" not in text.replace("\\$", ""), "no dollar begins a formula"


def test_what_many_alike_can_go_over_is_the_rounded_sum_and_not_the_sum_of_roundings() -> None:
    # budgets.md case 1: 20 × 27,904 × 15 = 8,371,200 µ$, here with the declared input 20 × 7,000 × 3 = 420,000 µ$ more
    held = reserve_cost(Ask(api="chat", model="large", body_bytes=40_000, limit_tokens=32_000), PRICES.price("large"))
    sentences = words.worst_sentences(held, 20)
    assert sentences[1] == "20 open like it can go $8.7912 over, if inputs are at most 1.7 × the estimate (declared input)."
    assert sentences[2] == "Without counting open requests: at most 4.58 × the limit over, for their output."


# --- files ----------------------------------------------------------------------------------------------------------------


def test_files_have_exact_dollars_and_say_where_they_are_from(replay: BudgetReplay) -> None:
    stamp = BudgetStamp(requests=GIVEN, prices="example", replay=replay, state=STATE)
    rows = list(csv.DictReader(io.StringIO(settings_csv(stamp).decode("utf-8-sig"))))
    for row, known in zip(rows, replay.summary.iter_rows(named=True), strict=True):
        assert row["settled ($)"].replace(".", "").lstrip("0") == str(known["settled_pico"]).rstrip("0")
        assert row["limit ($)"] == "0.9"
        assert row["assumed"].endswith("(synthetic)")
    moments = budget_moments(replay.run)
    assert len(moments_csv(moments, stamp).decode("utf-8-sig").splitlines()) == moments.height + 1
    data = io.BytesIO(run_parquet(replay.run, stamp))
    assert pl.read_parquet_metadata(data)["settings digest"] == stamp.digest
    other = BudgetStamp(requests=GIVEN, prices="example", replay=replay, state=STATE.changed(asks="none"))
    assert other.digest != stamp.digest
    assert stamp.name == f"budget_azure2023_conv_{stamp.digest}"


def test_a_ledgers_file_names_it_and_hides_no_formula() -> None:
    at = datetime(2026, 11, 30, tzinfo=UTC)
    stamp = LedgerStamp(ledger="l", synthetic=True, at=at, inputs="certain")
    assert stamp.columns() == {"ledger": "l (synthetic)", "read at (UTC)": "2026-11-30T00:00:00Z", "open inputs": "certain"}
    frame, names = in_dollars(LEDGER_HOLDS.empty(), LEDGER_HOLDS)
    assert names["hold_pico"] == "hold ($)"
    assert names["age_s"] == "age_s (s)"
    assert frame.height == 0


def test_a_window_says_how_many_are_unwritten_and_how_far_over_the_limit_they_reach(tmp_path: Path) -> None:
    clock = FixedClock(datetime(2026, 11, 30, tzinfo=UTC))
    ask = Ask(api="chat", model="large", body_bytes=40_000, limit_tokens=32_000)
    held = reserve_cost(ask, PRICES.price("large"))
    with Ledger(tmp_path / "ledger.db", clock=clock) as book:
        book.set_budget("roomy", Limit("total", "100"))
        book.set_budget("tight", Limit("total", "0.3"))
        for name in ("roomy", "tight"):
            assert isinstance(book.admit(name, held, request_id=f"{name} 1"), Hold)
        clock.advance(7 * 86_400)
        assert len(book.reap()) == 2
        for name in ("roomy", "tight"):
            assert isinstance(book.admit(name, held, request_id=f"{name} 2"), Hold)
        look = book.look()
    roomy, tight = (row.cells for row in window_rows(look))
    for cells in (roomy, tight):
        assert cells["open"] == {"text": "1", "sub": "and 1 expired: 2 unwritten"}
    worst = look.budgets[0].windows[0].worst
    assert worst.open == 2
    assert roomy["worst"] == {"text": worst.text() + ", the 1 expired included", "sub": "not over the limit"}
    over = 2 * held.hold_pico + worst.stated_pico - 3 * 10**11
    assert tight["worst"] == {
        "text": worst.text() + ", the 1 expired included",
        "sub": f"at worst {money_text(over)} over the limit",
    }


def test_what_expired_does_not_make_the_open_ones_old(tmp_path: Path) -> None:
    at = datetime(2026, 11, 30, 12, tzinfo=UTC)
    make_demo_ledger(tmp_path / "ledger.db", PRICES, at, seed=1)
    with Ledger(tmp_path / "ledger.db", create=False) as ledger:
        look = ledger.look(inputs=Certain())
    told = look_sentence(replace(look, at=at))
    assert re.fullmatch(
        r"8 open, the oldest for \d min; \$0\.\d{4} held; 2 of them unbounded; 1 expired whose cost may still come, "
        r"opened \d\d min ago",
        told,
    ), told


def test_the_page_names_every_rule_without_a_gap() -> None:
    assert list(words.RULES) == [f"B{number}" for number in range(1, 14)]


def test_a_ledger_in_words() -> None:
    at = datetime(2026, 11, 30, tzinfo=UTC)
    assert look_sentence(LedgerLook(at=at + timedelta(1), budgets=(), holds=())) == "No request is open"
    assert audit_sentence(Audit(windows=(), oldest=None, open=0, expired=0, disputes=2)).endswith(
        "; 2 settlements were refused, since other figures were there first"
    )


def test_an_open_request_without_a_limit_says_what_bounds_it_all_the_same(tmp_path: Path) -> None:
    now = datetime(2026, 11, 30, 12, tzinfo=UTC)
    path = tmp_path / "ledger.db"
    make_demo_ledger(path, PRICES, now)
    ledger = Ledger(path, create=False, clock=FixedClock(now))
    look = ledger.look()
    ledger.close()
    seen = set()
    for hold, row in zip(look.holds, hold_rows(look, Certain()), strict=True):
        r, limit, worst = hold.reservation, row.cells["limit"], row.cells["worst"]
        assert (worst == "unbounded") is (r.ceiling_tokens is None)
        if r.limit_tokens is not None:
            assert isinstance(limit, str)
            continue
        assert isinstance(limit, dict)
        assert limit["text"] == "none"
        assert limit["sub"] == ("no ceiling declared" if r.ceiling_tokens is None else f"ceiling {r.ceiling_tokens:,}")
        seen.add(r.ceiling_tokens is None)
    assert seen, "the demo's ledger has a request without a limit"
    for text in (words.RULES["B8"], (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")):
        assert "max_output_tokens" in text
