"""The Budget page in Chromium: the demo at once, a link that holds the choices, files, a live ledger, both themes, a phone."""

import csv
import io
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from playwright.sync_api import Page, expect

from horde_policy.budget import Ask, Hold, Ledger, Limit, TokenUsage, load_prices, reserve_cost
from horde_policy.views.text import unbroken
from tests.browser.conftest import ROOT, App, Viewer, until_true

pytestmark = pytest.mark.browser

View = Callable[..., Viewer]
CHARTS = ".horde-figure .main-svg"
SMALL = {"budget_requests": "vidur_splitwise_conv"}


def shown(tab: Viewer) -> Viewer:
    tab.page.wait_for_selector(CHARTS, timeout=180_000)
    return tab.settled()


def saved(page: Page, label: str, folder: Path) -> Path:
    with page.expect_download() as download:
        page.get_by_role("button", name=label).click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def test_the_demo_shows_the_trade_off_and_files_say_where_they_are_from(demo: App, view: View, tmp_path: Path) -> None:
    tab = shown(view(demo).open("budget"))
    told = unbroken("Reserving 4,096 tokens refuses 7.4 % of the requests early and 45.9 % at the limit")
    assert tab.page.locator("h1").inner_text().startswith(told)
    tab.page.locator(".horde-figure").nth(4).wait_for()
    assert tab.page.locator(".horde-figure").count() == 5
    until_true(tab.page, "document.querySelectorAll('.js-plotly-plot .main-svg').length >= 10")
    tab.page.locator(".js-plotly-plot .annotation-text", has_text="default").first.wait_for()
    tab.page.get_by_text("A made-up ledger (synthetic)").wait_for()
    settings = saved(tab.page, "Settings (CSV)", tmp_path)
    rows = list(csv.DictReader(io.StringIO(settings.read_text("utf-8-sig"))))
    assert [row["setting"] for row in rows if row["is_default"] == "yes"] == ["reserve=4096"]
    assert {row["limit ($)"] for row in rows} == {"64"}
    assert all("(synthetic)" in row["assumed"] and row["settings digest"] for row in rows)
    assert all("E" not in row["settled ($)"] for row in rows), "dollars are plain decimals"
    run = pl.read_parquet(saved(tab.page, "Requests (Parquet)", tmp_path))
    refused = run.filter((pl.col("setting") == "reserve=4096") & (pl.col("outcome") == "refused_early")).height
    assert str(refused) == next(row["refused_early (requests)"] for row in rows if row["setting"] == "reserve=4096")


def test_a_choice_is_in_the_link_and_back_undoes_it(demo: App, view: View) -> None:
    tab = shown(view(demo).open("budget", **SMALL))
    limit = tab.page.get_by_role("textbox", name="Limit ($)")
    limit.fill("0.50")
    limit.press("Enter")
    tab.page.wait_for_url("**budget_limit=0.50*")
    tab.page.get_by_text("$0.5000 in all").wait_for()
    other = view(demo)
    other.page.goto(tab.page.url)
    other.page.get_by_text("$0.5000 in all").wait_for()
    assert "budget_limit=0.50" in other.page.url
    expect(other.page.get_by_role("textbox", name="Limit ($)")).to_have_value("0.50")
    tab.page.go_back()
    tab.page.get_by_text("half of what everything costs").wait_for()
    tab.settled()
    assert "budget_limit" not in tab.page.url
    expect(limit).to_have_value("")
    assert tab.page.get_by_text("$0.5000 in all").count() == 0


def test_the_calculator_answers_what_is_typed(demo: App, view: View) -> None:
    tab = shown(view(demo).open("budget", **SMALL))
    body = tab.page.get_by_role("textbox", name="Request body (JSON)")
    body.fill('{"model": "large", "max_tokens": 1000, "messages": []}')
    body.press("Control+Enter")
    lines = tab.page.locator(".grid tr", has_text="1,000 reserved; limit 1,000")
    lines.first.wait_for()
    tab.page.locator(".grid tr", has_text="0.015").first.wait_for()
    tab.page.get_by_text("20 open like it can go").first.wait_for()
    body.fill("[")
    body.press("Control+Enter")
    tab.page.get_by_text("This request would be refused unread").wait_for()
    assert tab.page.get_by_text("20 open like it can go").count() == 0, "nothing of the body before stands under the error"


def test_a_ledger_is_live(new_app: Callable[..., App], view: View, tmp_path: Path) -> None:
    prices = load_prices(ROOT / "data" / "prices" / "example-hosted.toml")
    path = tmp_path / "ledger.db"
    with Ledger(path, owner="gateway-1") as book:
        book.set_budget("team", Limit("total", "1.00"))
        tab = view(new_app(HORDE_POLICY_LEDGER=str(path))).open("budget", **SMALL, refresh="10")
        tab.page.get_by_text("No request is open").wait_for()
        asks = [Ask(api="chat", model="large", body_bytes=40_000, limit_tokens=limit) for limit in (32_000, None)]
        holds = [book.admit("team", reserve_cost(ask, prices.price("large")), request_id=f"r{n}") for n, ask in enumerate(asks)]
        tab.page.get_by_text("$0.1829 held; 1 of them unbounded").wait_for()
        held = tab.page.locator(".grid tr", has_text="gateway-1")
        held.nth(1).wait_for()
        assert held.count() == 2
        tab.page.locator(
            ".grid tr", has_text="unbounded: 1 of 2 open requests has no output limit or declared ceiling"
        ).first.wait_for()
        for hold in holds:
            assert isinstance(hold, Hold)
            book.settle(hold, TokenUsage(fresh=10_000, output=500))
        tab.page.get_by_text("No request is open").wait_for()
        tab.page.locator(".grid tr", has_text="settled $0.0750 (2)").first.wait_for()
    assert tab.page.get_by_text("made-up").count() == 0


@pytest.mark.parametrize(("scheme", "size"), [("dark", (1280, 720)), ("light", (390, 844))])
def test_it_is_usable_in_both_themes_and_on_a_phone(demo: App, view: View, scheme: str, size: tuple[int, int]) -> None:
    tab = shown(view(demo, color_scheme=scheme, viewport={"width": size[0], "height": size[1]}).open("budget", **SMALL))
    wider = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert tab.page.evaluate(wider) <= 0, "the page is no wider than the screen"
    tab.page.locator(".horde-figure").nth(4).wait_for()
    assert tab.page.locator(".horde-figure").count() == 5
    assert tab.page.locator("h1").is_visible()
    card = tab.page.locator(".grid tr", has=tab.page.locator("td", has_text="hold all")).first
    card.wait_for()
    seen = [cell for cell in card.locator("td, th").all() if cell.is_visible()]
    assert len(seen) == (4 if size[0] < 400 else 12), "a card shows what decides, the rest on demand"


def test_the_copy_of_the_link_stands_in_the_row_of_the_source_beside_an_open_side_bar(demo: App, view: View) -> None:
    tab = shown(view(demo, viewport={"width": 820, "height": 720}).open("budget", **SMALL))
    name, copy = (tab.page.locator(f".status [data-part={part}]").bounding_box() for part in ("name", "copy"))
    assert name is not None
    assert copy is not None
    assert abs(name["y"] + name["height"] / 2 - copy["y"] - copy["height"] / 2) < 3
