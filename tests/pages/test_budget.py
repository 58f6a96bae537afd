"""The Budget page: the replay and its figures, the calculator, the ledger, the address, what is wrong with any of them."""

import json
import re
import sqlite3
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
import streamlit as st

from horde_policy.budget import Ask, Hold, Ledger, Limit, TokenUsage, load_prices, reserve_cost
from horde_policy.budget.money import money_text, to_usd
from horde_policy.budget.simulate import replay_budget
from horde_policy.ui import budget_page
from horde_policy.ui.budget_desk import budget_desk
from horde_policy.views.budget_inputs import from_trace
from horde_policy.views.budget_state import BudgetState
from horde_policy.views.budget_words import RULES_ANCHOR
from horde_policy.views.text import escape_markdown
from horde_policy.views.uploads import NOT_KEPT
from tests.pages.conftest import ROOT, App

NewApp = Callable[[], App]

PRICES = load_prices(ROOT / "data" / "prices" / "example-hosted.toml")
SMALL = {"budget_requests": "vidur_splitwise_conv"}
HOSTILE = "![x](http://192.0.2.1/p.png) <b>:red[q]"


def texts(shown: App, *kinds: str) -> list[str]:
    return [str(getattr(element, "value", "")) for kind in kinds for element in shown.test.get(kind)]


def plain(text: str) -> str:
    return text.replace("\\", "").replace("\N{WORD JOINER}", "")


def said(shown: App) -> str:
    kinds = ("title", "header", "markdown", "caption", "info", "warning", "error", "success")
    return plain("\n".join(texts(shown, *kinds)))


def small_requests(state: BudgetState | None = None) -> pl.DataFrame:
    chosen = state or BudgetState(requests="vidur_splitwise_conv")
    return from_trace(budget_desk().library.trace("vidur_splitwise_conv"), "t", "large", PRICES, chosen).frame


def test_the_demo_answers_at_once_and_says_what_is_made_up(app: NewApp) -> None:
    shown = app().open("budget")
    shown.assert_well()
    assert shown.warnings == []
    assert plain(shown.title).startswith(
        "Reserving 4,096 tokens refuses 7.4 % of the requests early and 45.9 % at the limit; nothing"
    )
    assert plain(shown.title).endswith("the worst case was $12.2789 over the limit")
    assert len(shown.figures) == 5
    words = said(shown)
    assert "Azure 2023 conversations: 19,366 requests" in words
    assert "Assumed (synthetic)" in words
    assert "example figures, no provider's prices" in words
    assert "A made-up ledger (synthetic)" in words
    assert "2 of them unbounded; 1 expired whose cost may still come, opened" in words


def test_the_settings_side_by_side_are_the_librarys_figures(app: NewApp) -> None:
    shown = app().open("budget", **SMALL, budget_limit="0.9")
    shown.assert_well()
    found = replay_budget(small_requests(), PRICES, "0.9")
    rows = {row["id"]: row for row in shown.part("budget.settings")["rows"]}
    assert list(rows) == found.summary["setting"].to_list()
    assert [setting for setting, row in rows.items() if row.get("pinned")] == ["reserve=4096"]
    assert found.summary["refused_early"].sum() > 0
    for row in found.summary.iter_rows(named=True):
        cells = rows[row["setting"]]["cells"]
        assert cells["early"] == f"{row['refused_early']:,}"
        assert cells["at_limit"] == f"{row['refused_at_limit']:,}"
        assert cells["over"] == money_text(row["overspend_pico"])
        assert cells["worst"] == money_text(row["worst_over_pico"])
        assert cells["bound"] == money_text(row["largest_bound_pico"])
        assert row["overspend_pico"] <= row["worst_over_pico"], "the help of its column says so"
        assert cells["open"] == str(row["peak_open"])


def test_figures_mark_the_default_and_stand_for_every_setting(app: NewApp) -> None:
    shown = app().open("budget", **SMALL, budget_reserve="1500")
    figures = [figure.spec for figure in shown.figures]
    notes = [note["text"] for note in figures[0]["layout"]["annotations"]]
    assert notes == ["chosen", "default"]
    ticks = figures[0]["layout"]["xaxis"]["ticktext"]
    assert ticks == ["0", "256", "1,024", "1,500", "2,048", "4,096", "8,192", "16,384", "32,768", "hold all", "input only",
                     "stop streams"]  # fmt: skip
    assert "1,500 reserved" in [trace["name"] for trace in figures[-1]["data"]]
    assert all(figure.given["alt"] for figure in shown.figures)


def test_two_price_tables_give_two_answers(app: NewApp) -> None:
    hosted, own = app().open("budget", **SMALL), app().open("budget", **SMALL, budget_prices="example-per-token")
    hosted.assert_well()
    own.assert_well()
    assert "example-hosted" in said(hosted)
    assert "example-per-token" in said(own)
    limits = [
        plain(element.placeholder) for shown in (hosted, own) for element in shown.test.text_input if "Limit" in element.label
    ]
    assert limits[0] != limits[1]


def test_requests_without_a_limit_have_no_bound_and_no_large_number(app: NewApp) -> None:
    shown = app().open("budget", **SMALL, budget_asks="none")
    shown.assert_well()
    assert "the worst case was unbounded (" in plain(shown.title)
    rows = {row["id"]: row["cells"] for row in shown.part("budget.settings")["rows"]}
    assert rows["reserve=4096"]["bound"]["text"] == "unbounded"
    assert rows["reserve=4096"]["worst"]["text"] == "unbounded"
    assert isinstance(rows["stop"]["worst"], str), "a count bounds what has no limit as well"
    trade_off = shown.figures[0].spec
    worst = next(trace for trace in trade_off["data"] if trace["name"] == "worst case over the limit")
    assert all(value is None for value in worst["y"])
    assert "no output limit" in said(shown)


@pytest.mark.parametrize(
    ("query", "note"),
    [
        ({"budget_limit": "-1"}, "budget_limit='-1' is left out"),
        ({"budget_limit": "1e400"}, "budget_limit='1e400' is left out"),
        ({"budget_reserve": "9999999"}, "budget_reserve='9999999' is left out"),
        ({"budget_window": "year"}, "budget_window='year' is left out"),
        ({"budget_zone": "Europe/Atlantis"}, "budget_zone='Europe/Atlantis' is left out"),
        ({"budget_asks": "<b>"}, "budget_asks='<b>' is left out"),
        ({"budget_pace": "nan"}, "budget_pace='nan' is left out"),
    ],
)
def test_a_senseless_link_falls_back_with_a_note(app: NewApp, query: dict[str, str], note: str) -> None:
    shown = app().open("budget", **SMALL, **query)
    shown.assert_well()
    assert any(note in plain(warning) for warning in shown.warnings)
    assert len(shown.figures) == 5


@pytest.mark.parametrize(
    ("query", "problem", "cause"),
    [
        ({"budget_requests": "upload-0123"}, f"traffic: 'upload-0123' {NOT_KEPT}", "the requests cannot be used"),
        ({"budget_prices": "upload-0123"}, f"prices: 'upload-0123' {NOT_KEPT}", "the prices cannot be used"),
        ({"budget_requests": "nothing"}, "must be one of", "the requests cannot be used"),
        ({"budget_prices": "nothing"}, "must be one of example-hosted, example-per-token", "the prices cannot be used"),
        ({"budget_model": HOSTILE}, "has no price; a missing price is not zero", "the model has no price"),
    ],
)
def test_what_cannot_be_replayed_is_said_and_the_rest_stays(app: NewApp, query: dict[str, str], problem: str, cause: str) -> None:
    shown = app().open("budget", **(SMALL | query))
    shown.assert_well()
    assert shown.title == "Budget"
    errors = texts(shown, "error")
    assert any(problem in plain(error) for error in errors)
    assert shown.part("shared.status")["source"] == f"nothing replayed: {cause}"
    assert all(HOSTILE not in error for error in errors)
    assert len(shown.figures) == 0
    assert shown.has_part("budget.windows"), "the ledger does not hang on the replay"


def test_a_control_writes_the_address_and_a_typed_nonsense_is_refused(app: NewApp) -> None:
    shown = app().open("budget", **SMALL)
    box = next(s for s in shown.test.selectbox if s.label == "Window")
    box.select("day").run()
    assert shown.address["budget_window"] == ["day"]
    limit = next(t for t in shown.test.text_input if "Limit" in t.label)
    limit.input("1,000.50").run()
    assert shown.address["budget_limit"] == ["1000.50"]
    limit = next(t for t in shown.test.text_input if "Limit" in t.label)
    limit.input("much").run()
    shown.assert_well()
    assert shown.address["budget_limit"] == ["1000.50"]
    assert any(plain(warning) == "The limit stays: 'much' must be a decimal number." for warning in shown.warnings)


def test_recorded_requests_and_prices_of_ones_own(app: NewApp) -> None:
    requests = small_requests().head(40).with_columns(model=pl.lit("mine"), max_tokens=pl.lit(2_000, pl.Int64))
    csv = requests.with_columns(pl.col("created").dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")).write_csv().encode()
    prices = (
        '[table]\nname = "own"\nunit = "usd_per_million_tokens"\nsource = "a contract"\n'
        '[[price]]\nprovider = "p"\nmodel = "mine"\ninput = "1"\noutput = "2"\n'
    )
    desk = budget_desk()
    key, table = desk.add_requests("r.csv", csv), desk.add_prices(prices.encode())
    shown = app().open("budget", budget_requests=key, budget_prices=table)
    shown.assert_well()
    assert "40 requests" in said(shown)
    assert "nothing: the file says it all" in said(shown)
    spent = sum(i * 10**6 + o * 2 * 10**6 for i, o in requests.select("input_tokens", "output_tokens").iter_rows())
    limit = next(t for t in shown.test.text_input if "Limit" in t.label).placeholder
    half = Decimal(limit.split()[0])
    assert half <= to_usd(spent) / 2 < half * Decimal("1.11")


# --- the calculator -------------------------------------------------------------------------------------------------------


def calculated(shown: App, body: str) -> App:
    shown.test.text_area[0].input(body).run()
    shown.assert_well()
    return shown


def test_the_calculator_explains_a_hold_to_the_last_digit(app: NewApp) -> None:
    body = json.dumps({"model": "large", "max_tokens": 1, "max_completion_tokens": 32_000, "messages": [], "pad": ""})
    body = body.replace('"pad": ""', '"pad": "' + "x" * (40_000 - len(body)) + '"')
    assert len(body) == 40_000
    shown = calculated(app().open("budget", **SMALL), body)
    rows = [row["cells"] for row in shown.part("budget.lines")["rows"]]
    assert [(row["line"], row["tokens"], row["amount"]) for row in rows] == [
        ("input", "10,000", "$0.03000"),
        ("output", "4,096", "$0.06144"),
        ("hold", "—", "$0.09144"),
    ]
    assert "the largest of max_tokens 1, max_completion_tokens 32,000" in rows[1]["note"]["text"]
    words = said(shown)
    assert "Held: **$0.0914**" in words
    # 20 × (27,904 · $15 + 190,000 · $3 a million): worked cases 1 and 16
    assert "20 open like it can go $19.7712 over" in words
    assert "at most 4.58 × the limit over" in words


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("not json", "request body"),
        ('{"model": "large", "messages": [], "max_tokens": -5}', "-5"),
        ("", "request body"),
    ],
)
def test_a_body_that_is_none_is_an_error_and_no_hold(app: NewApp, body: str, word: str) -> None:
    shown = calculated(app().open("budget", **SMALL), body)
    assert any(word in plain(error) for error in texts(shown, "error"))
    assert not shown.has_part("budget.lines")


@pytest.mark.parametrize(("field", "api"), [("input", "responses"), ("prompt", "completions"), ("messages", None)])
def test_what_only_the_shape_tells_is_said(app: NewApp, field: str, api: str | None) -> None:
    shown = calculated(app().open("budget", **SMALL), json.dumps({"model": "large", field: []}))
    assert ("Held as " in said(shown)) == (api is not None)
    assert api is None or f"Held as {api} by its shape alone" in said(shown)


def test_a_request_without_a_limit_is_unbounded_in_words(app: NewApp) -> None:
    shown = calculated(app().open("budget", **SMALL), json.dumps({"model": HOSTILE, "messages": []}))
    assert "20 open like it: unbounded, since there is no output limit" in said(shown)
    answer = [plain(text) for text in texts(shown, "warning", "markdown")]
    assert "a missing price is not zero. Below it is priced as large" in answer[0], "the refusal comes first"
    assert any(text.startswith("It would hold: ") for text in answer)
    assert not any(text.startswith("Held: ") for text in answer)
    assert all(HOSTILE not in text for text in texts(shown, "markdown", "warning"))


def test_every_code_of_a_rule_leads_to_what_it_says(app: NewApp) -> None:
    shown = app().open("budget", **SMALL, budget_asks="none")
    written = texts(shown, "markdown", "caption", "info", "warning")
    own = [text for text in written if "**B7** " not in text and "### The bound" not in text]
    assert len(own) == len(written) - 2, "the rules and the document are there"
    named = [text for text in own if re.search(r"\bB\d+\b", text)]
    assert named
    for text in named:
        assert not re.search(r"(?<!\[)\bB\d+\b", text), text
    assert any(getattr(header, "anchor", "") == RULES_ANCHOR for header in shown.test.header)


# --- the ledger -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "ledger.db"
    with Ledger(path, owner="gateway =1+1") as book:
        book.set_budget(HOSTILE, Limit("total", "1.00", open_cap=5), Limit("day", "0.50", "Europe/Berlin"))
        holds = []
        for number, limit in enumerate((32_000, None, 500)):
            ask = Ask(api="chat", model="large", body_bytes=40_000, limit_tokens=limit)
            holds.append(book.admit(HOSTILE, reserve_cost(ask, PRICES.price("large")), request_id=f"{HOSTILE} {number}"))
        assert isinstance(holds[-1], Hold)
        book.settle(holds[-1], TokenUsage(fresh=10_000, output=200))
    monkeypatch.setenv("HORDE_POLICY_LEDGER", str(path))
    return path


def test_a_configured_ledger_is_shown_as_it_stands(app: NewApp, ledger: Path) -> None:
    shown = app().open("budget", **SMALL)
    shown.assert_well()
    assert "made-up" not in said(shown)
    assert str(ledger) in said(shown)
    assert re.search(r"2 open, the oldest for \d+ \w+; \$0\.1829 held; 1 of them unbounded\b", said(shown))
    windows = [row["cells"] for row in shown.part("budget.windows")["rows"]]
    assert [w["limit"] for w in windows] == ["$1.0000", "$0.5000"]
    assert {w["spent"] for w in windows} == {"$0.0330"}
    assert windows[0]["open"] == "2 of 5"
    assert windows[0]["worst"]["text"].startswith(
        "unbounded: 1 of 2 open requests has no output limit or declared ceiling; the others at most $0.9886"
    )
    assert "sub" not in windows[0]["worst"], "no figure stands beside what has no bound"
    assert windows[0]["labels"]["text"] == "settled $0.0330 (1)"
    holds = [row["cells"] for row in shown.part("budget.holds")["rows"]]
    assert [(h["owner"], h["limit"], h["worst"]) for h in holds] == [
        ("gateway =1+1", "32,000", "$0.9886"),
        ("gateway =1+1", {"text": "none", "sub": "no ceiling declared"}, "unbounded"),
    ]
    assert all(HOSTILE not in text for text in texts(shown, "markdown", "caption"))
    declared = app().open("budget", **SMALL, budget_open="declared")
    assert "the others at most $0.4396 (declared input)" in declared.part("budget.windows")["rows"][0]["cells"]["worst"]["text"]
    measured = app().open("budget", **SMALL, budget_open="measured")
    assert "(measured input)" in measured.part("budget.windows")["rows"][0]["cells"]["worst"]["text"]


def test_the_counters_are_checked_when_asked(app: NewApp, ledger: Path) -> None:
    shown = app().open("budget", **SMALL)
    button = next(b for b in shown.test.button if b.label == "Check the counters")
    button.click().run()
    assert [plain(t) for t in texts(shown, "success")] == ["The counters of 2 windows equal their rows"]
    with sqlite3.connect(ledger) as connection:
        connection.execute("UPDATE windows SET spent_pico = spent_pico + 1")
    button = next(b for b in shown.test.button if b.label == "Check the counters")
    button.click().run()
    assert any("differ from their rows" in plain(t) for t in texts(shown, "error"))
    assert all(escape_markdown(HOSTILE) in t for t in texts(shown, "error"))


def test_an_empty_ledger_and_a_missing_one_say_so(app: NewApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Ledger(tmp_path / "empty.db").close()
    monkeypatch.setenv("HORDE_POLICY_LEDGER", str(tmp_path / "empty.db"))
    shown = app().open("budget", **SMALL)
    shown.assert_well()
    assert "The ledger has no budget yet" in said(shown)
    assert "No request is open" in said(shown)
    measured = app().open("budget", **SMALL, budget_open="measured")
    assert "Nothing is settled yet" in said(measured)
    monkeypatch.setenv("HORDE_POLICY_LEDGER", str(tmp_path / "missing.db"))
    shown = app().open("budget", **SMALL)
    shown.assert_well()
    assert any("there is no ledger" in plain(error) for error in texts(shown, "error"))
    assert len(shown.figures) == 5, "the replay does not hang on the ledger"


def test_the_secrets_of_a_ledgers_url_are_never_shown(app: NewApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("horde_policy.ui.budget_ledger.PATIENCE_S", 0.1)
    monkeypatch.setenv("HORDE_POLICY_LEDGER", "postgresql://reader:s3cr3t@127.0.0.1:1/ledger?sslpassword=s3cr3t")
    shown = app().open("budget", **SMALL)
    shown.assert_well()
    errors = texts(shown, "error")
    assert any("127.0.0.1" in plain(error) for error in errors)
    everything = " ".join(texts(shown, "error", "caption", "markdown"))
    assert "s3cr3t" not in everything


def test_until_its_first_replay_is_made_the_page_has_its_name_for_a_title(app: NewApp, monkeypatch: pytest.MonkeyPatch) -> None:
    titles: list[str] = []

    def noted(sentence: str) -> None:
        titles.append(sentence)
        st.title(sentence)

    monkeypatch.setattr(budget_page, "show_headline", noted)
    shown = app().open("budget", **SMALL)
    assert [title[:9] for title in titles] == ["Budget", "Reserving"]
    assert len(shown.test.title) == 1
    shown.test.run()
    assert len(titles) == 3, "later the answer before stays"
