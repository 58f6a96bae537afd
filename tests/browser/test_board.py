"""The board in Chromium: demo, hostile names, links, light and dark, the address."""

import csv
import io
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import expect

from horde_policy.views import text
from tests.browser.conftest import App, Viewer
from tests.make_hostile import MODEL_NAMES, WORKER_NAMES

pytestmark = pytest.mark.browser

View = Callable[..., Viewer]
APP_TEXT = '[data-testid="stMain"]'


def test_the_demo_shows_its_board_and_asks_nobody(demo: App, view: View) -> None:
    tab = view(demo).open("").board()
    assert tab.names[0] == "any model"
    assert len(tab.names) == 23
    assert tab.part("kind") == "demo, synthetic data"
    assert tab.page.locator("h1").inner_text().startswith("At 80 tokens, 11 of 22 models give the full allowance")
    assert tab.page.title() == "Overview · horde policy"
    assert tab.page.locator('[data-testid="stSidebar"] nav a[aria-current="page"]').inner_text().endswith("Overview")
    tab.assert_well()


def test_between_a_card_and_the_whole_table_columns_fold_below_their_row(demo: App, view: View) -> None:
    tab = view(demo, viewport={"width": 700, "height": 900}).open("overview").board()
    grid = tab.page.locator(".grid.folds", has=tab.page.locator("tr.pinned"))
    row = tab.board_table.locator("tbody tr", has_text="Cairn").first
    for width, apart in ((700, True), (1060, False)):
        tab.page.set_viewport_size({"width": width, "height": 900})
        expect(tab.board_table.get_by_role("columnheader", name="Speed")).to_be_visible(visible=not apart)
        expect(tab.board_table.get_by_role("columnheader", name="Demand")).to_be_hidden()
        assert grid.evaluate("node => node.scrollWidth - node.clientWidth") == 0, "nothing is scrolled to sideways"
    row.get_by_role("button").click()
    rest = tab.board_table.locator("tr.rest")
    expect(rest.get_by_text("Demand, a day")).to_be_visible()
    expect(rest.get_by_text("Speed, tok/s")).to_be_hidden()
    row.get_by_role("button").click()
    expect(rest).to_have_count(0)
    tab.page.set_viewport_size({"width": 1280, "height": 900})
    expect(tab.board_table.get_by_role("columnheader", name="Demand")).to_be_visible()


def test_a_row_opens_its_model_and_back_finds_the_board_as_it_was(demo: App, view: View) -> None:
    tab = view(demo).open("overview", size="512", find="cairn").board()
    row = tab.board_table.locator("tbody tr", has_text="Cairn")
    assert row.locator("a").get_attribute("href") == "/model?size=512&m=aphrodite%2Fnorthway%2FCairn-123B"
    row.locator("td").nth(3).click()
    tab.page.wait_for_selector(".main-svg")
    assert tab.page.url == f"{demo.url}/model?size=512&m=aphrodite%2Fnorthway%2FCairn-123B"
    tab.settled()
    assert "512 tokens" in tab.page.locator("h1").inner_text()
    tab.page.go_back()
    tab.board()
    assert tab.page.url == f"{demo.url}/overview?size=512&find=cairn"
    assert tab.names == ["any model", "aphrodite/northway/Cairn-123B"]
    assert tab.page.get_by_label("Find a model").input_value() == "cairn"
    tab.page.go_forward()
    tab.page.wait_for_selector(".main-svg")
    assert "Cairn" in tab.page.locator('[data-testid="stMultiSelect"]').first.inner_text()


def test_the_keyboard_reaches_a_row_and_a_heading(demo: App, view: View) -> None:
    tab = view(demo).open("overview").board()
    heading = tab.page.get_by_role("link", name="Wait named, at worst")
    heading.focus()
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector('th[aria-sort="descending"]')
    tab.settled()
    assert tab.page.url == f"{demo.url}/overview?sort=wait&descending=1"
    link = tab.board_table.get_by_role("link", name="koboldcpp/Fernery-24B-v1.1")
    link.focus()
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url("**/model?**")


def test_the_table_is_one_to_a_screen_reader(demo: App, view: View) -> None:
    tab = view(demo).open("overview").board()
    table = tab.page.get_by_role("table", name="Models of Demo horde with their free output allowance at 80 tokens")
    assert table.get_by_role("columnheader").count() == 11
    assert table.get_by_role("rowheader").count() == 23
    assert table.get_by_role("img", name="80 tokens: ").count() == 23
    assert table.get_by_role("img", name="tokens over the range").count() >= 21


@pytest.mark.parametrize("page", ["overview", "model"])
def test_hostile_names_stay_text_and_fetch_nothing(demo: App, view: View, page: str) -> None:
    query = {"m": list(MODEL_NAMES[:6])} if page == "model" else {}
    tab = view(demo).open(page, source="recorded-hostile", **query)
    tab.page.wait_for_selector("tbody tr td.name")
    tab.settled()
    shown = tab.names
    if page == "overview":
        assert {text.visible(name) for name in MODEL_NAMES} <= set(shown)
    else:
        workers = tab.page.locator(".grid tbody td.name .clip")
        workers.nth(5).wait_for()  # the table of what is tried comes first, with one row
        assert len({text.visible(name) for name in WORKER_NAMES} & set(workers.all_text_contents())) >= 5
    for pattern in ("img[src*=elsewhere]", "a[href^=javascript]", "script:text('alert(1)')"):
        assert tab.page.locator(pattern).count() == 0
    links = tab.page.locator("a").evaluate_all("links => links.map(link => link.href)")
    assert all(link.startswith(demo.url) for link in links)
    assert tab.page.evaluate("() => document.querySelectorAll('td b, td img, td script, td a a').length") == 0
    for row in tab.page.locator(".grid").all():
        assert row.evaluate("node => node.querySelectorAll('img, script, iframe, object, i[onerror]').length") == 0
    tab.page.wait_for_timeout(300)
    tab.assert_well()


def test_hostile_names_in_the_choosers_stay_text(demo: App, view: View) -> None:
    tab = view(demo).open("model", source="recorded-hostile")
    tab.page.wait_for_selector(".main-svg")
    tab.page.locator('[data-testid="stSelectbox"] input').first.click()
    tab.page.wait_for_selector('[role="option"]')
    assert tab.page.locator('[role="option"] img').count() == 0
    tab.page.keyboard.press("Escape")
    tab.page.locator('[data-testid="stMultiSelect"] input').first.click()
    tab.page.wait_for_selector('[role="option"]')
    options = tab.page.locator('[role="option"]').all_inner_texts()
    assert text.visible(MODEL_NAMES[0]) in options
    assert tab.page.locator('[role="option"] img, [role="option"] b').count() == 0


def test_a_hostile_row_opens_its_own_model(demo: App, view: View) -> None:
    tab = view(demo).open("overview", source="recorded-hostile").board()
    name = MODEL_NAMES[-1]
    tab.board_table.locator("tbody tr", has_text=name).locator("a").click()
    tab.page.wait_for_url("**/model?**")
    tab.page.wait_for_selector(".main-svg")
    assert text.visible(name) in tab.page.locator('[data-testid="stMultiSelect"]').first.inner_text()


@pytest.mark.parametrize(("scheme", "size"), [("light", (1280, 720)), ("dark", (390, 844))])
def test_it_is_usable_in_both_themes_and_on_a_phone(demo: App, view: View, scheme: str, size: tuple[int, int]) -> None:
    tab = view(demo, color_scheme=scheme, viewport={"width": size[0], "height": size[1]}).open("overview").board()
    background = tab.page.evaluate("() => getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor")
    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(15, 21, 29)"}[scheme]
    main = tab.page.locator(APP_TEXT)
    assert main.evaluate("node => node.scrollWidth - node.clientWidth") == 0, "nothing is cut off at the side"
    box = tab.page.locator("tbody tr.pinned").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= size[0]
    padding = tab.page.evaluate(
        "() => parseFloat(getComputedStyle(document.querySelector('[data-testid=stMainBlockContainer]')).paddingLeft)"
    )
    assert padding <= 32, "the style sheet for the margins still finds its element"
    chips = tab.page.get_by_role("toolbar", name="States shown").get_by_role("button")
    assert chips.count() == 6
    ends = [box["x"] + box["width"] for box in (chip.bounding_box() for chip in chips.all()) if box]
    assert max(ends) <= size[0], "no state is cut off"
    if size == (1280, 720):
        rows = [box for box in (row.bounding_box() for row in tab.board_table.locator("tbody tr").all()[:8]) if box]
        assert sum(box["y"] + box["height"] <= size[1] for box in rows) >= 6, "any model and five more on the first screen"


def test_the_csv_is_what_is_shown(demo: App, view: View, tmp_path: Path) -> None:
    tab = view(demo).open("overview", source="recorded-hostile", sort="queued", descending="1").board()
    with tab.page.expect_download() as started:
        tab.page.get_by_role("button", name="CSV").click()
    assert started.value.suggested_filename.startswith("overview_")
    target = tmp_path / "board.csv"
    started.value.save_as(target)
    rows = list(csv.DictReader(io.StringIO(target.read_text("utf-8-sig"))))
    assert [row["model"].removeprefix("'") for row in rows] == tab.names
    assert not any(row["model"].startswith(("=", "+", "-", "@")) for row in rows)
    assert len({row["settings digest"] for row in rows}) == 1
    assert all(row["source"].endswith("(synthetic)") for row in rows)


def test_an_address_that_makes_no_sense_opens_the_page_and_says_what_was_left_out(demo: App, view: View) -> None:
    tab = view(demo).open("overview", ceiling="1e309", size="![x](http://elsewhere.invalid/p.png)").board()
    [box] = tab.page.get_by_role("alert").all()
    assert box.locator("li").count() == 2, "one box, a point each"
    assert "1e309" in box.inner_text()
    assert tab.page.locator('[role="alert"] img').count() == 0


def test_an_address_without_a_page_leads_to_the_overview_with_a_sentence(demo: App, view: View) -> None:
    tab = view(demo).open("sources").settled()
    tab.page.goto(f"{demo.url}/start/?size=1024")
    tab.page.wait_for_url(f"{demo.url}/?size=1024")
    tab.board()
    expect(tab.page.get_by_text("There is no page start; this is the page Overview.")).to_be_visible()
    tab.page.goto(f"{demo.url}/nonsense?size=512")
    tab.page.wait_for_url(f"{demo.url}/?size=512")
    tab.board()
    expect(tab.page.get_by_text("There is no page nonsense; this is the page Overview.")).to_be_visible()
    assert tab.page.get_by_role("dialog").count() == 0
    assert tab.board_table.locator("tbody a").nth(1).get_attribute("href") == "/model?size=512&m=aphrodite%2Ffoundry%2FAnvil-70B"
    for address in ("/?size=1024", "/sources"):
        tab.page.go_back()
        tab.page.wait_for_url(f"{demo.url}{address}")
    tab.page.locator("h1").first.wait_for()
    tab.page.go_forward()
    tab.page.wait_for_url(f"{demo.url}/?size=1024")
    tab.board()
    assert tab.page.get_by_role("dialog").count() == 0


def test_a_size_can_be_typed_and_a_senseless_one_is_refused(demo: App, view: View) -> None:
    tab = view(demo).open("overview").board()
    box = tab.page.get_by_role("combobox", name="Size asked for")
    for typed in ("700", "abc"):
        box.click()
        box.fill(typed)
        tab.page.wait_for_selector('[role="option"]')
        tab.page.keyboard.press("Enter")
        if typed == "abc":
            tab.page.get_by_role("alert").first.wait_for()
        expect(tab.page).to_have_url(f"{demo.url}/overview?size=700")
        tab.settled()
    assert "must be a whole number from 16 to 16384" in tab.page.get_by_role("alert").inner_text()


def test_the_age_ticks_in_the_browser_with_the_words_of_the_server(demo: App, view: View) -> None:
    tab = view(demo).open("overview", refresh="300").board()
    tab.page.wait_for_timeout(500)
    before = len(tab.received)
    first = tab.part("age")
    tab.page.wait_for_timeout(2200)
    assert tab.part("age") != first
    assert len(tab.received) == before, "the server is not asked for it"
    tile = tab.page.locator(".tile.age .value")
    both = [(tab.part("age"), tile.inner_text()) for _ in range(3)]
    assert any(status == f"{shown} old" for status, shown in both), "a second may end between the two"
    source = (Path(__file__).parents[2] / "horde_policy/ui/components/age.js").read_text(encoding="utf-8")
    ages = [0, 0.4, 59.99, 60, 3599, 3600, 7261, 86_399, 86_400, 200_000, 1e7]
    words = tab.page.evaluate(f"ages => {{ {source}; return ages.map(formatAge) }}", ages)
    assert words == [text.age(seconds) for seconds in ages]


def test_with_refresh_off_there_is_no_timer_and_the_time_stands(demo: App, view: View) -> None:
    tab = view(demo).open("overview", refresh="off").board()
    tab.page.wait_for_timeout(500)
    before = len(tab.received)
    tab.page.wait_for_timeout(2500)
    assert len(tab.received) == before
    assert tab.part("age") == ""
    assert tab.part("at").endswith("UTC")
    assert tab.part("note") == "refresh off"


def test_the_link_is_copied(demo: App, view: View) -> None:
    tab = view(demo, permissions=["clipboard-read", "clipboard-write"]).open("overview", size="512").board()
    tab.page.get_by_role("button", name="Copy link").click()
    tab.page.wait_for_selector("text=Link copied")
    assert tab.page.evaluate("() => navigator.clipboard.readText()") == f"{demo.url}/overview?size=512"


def test_a_long_name_on_the_wall_is_cut_within_and_whole_on_hover(demo: App, view: View) -> None:
    tab = view(demo, viewport={"width": 1280, "height": 720}).open("overview", wall="1")
    row = tab.page.locator(".wall .name", has_text="Fernery-24B-v1.1").first
    row.wait_for()
    cut = "node => node.scrollWidth > node.clientWidth + 1"
    paths = tab.page.locator(".wall .path")
    assert paths.count() >= 18
    assert paths.evaluate_all(f"nodes => nodes.filter({cut}).map(node => node.textContent)") == [], (
        "no room is left unused beside one"
    )
    assert row.get_attribute("title") == "koboldcpp/Fernery-24B-v1.1"
    row.evaluate("node => { node.style.width = '10.5em' }")
    assert row.locator(".path").evaluate(cut), "the path gives way"
    assert not row.locator(".end").evaluate(cut), "the model's own name stands whole"
    row.evaluate("node => { node.style.width = '6.5em' }")
    assert row.locator(".start").evaluate(cut), "where that is too long itself, its middle gives way"
    assert not row.locator(".tail").evaluate(cut)


def test_a_name_in_any_script_that_runs_to_the_right_keeps_its_end(demo: App, view: View) -> None:
    tab = view(demo).open("overview").board()
    source = (Path(__file__).parents[2] / "horde_policy/ui/components/element.js").read_text(encoding="utf-8")
    shown = """names => { %s; return names.map(name => ["ownOf", "wrappedOf"].map(make => {
        const node = { ownOf, wrappedOf }[make](name)
        return [node.textContent, ...[...node.children].map(part => part.textContent)]
    })) }"""
    family = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
    names = ["Fernery-24B", "Möwe-" * 14 + "v2-Q4_K", "深度求索" * 20 + "第二版", f"{'x' * 70}e\u0301{family}-v1", "מודל" * 20]
    parts = tab.page.evaluate(shown % source, names)
    for name, (own, wrapped) in zip(names, parts, strict=True):
        assert (own[0], wrapped[0]) == (name, name), "nothing is lost: a search of the page and a copy find it"
    tails = [[made[-1] if len(made) > 1 else None for made in both] for both in parts]
    assert [own for own, _ in tails] == [None, "2-Q4_K", names[2][-6:], f"xe\u0301{family}-v1", None]
    assert [wrapped is None for _, wrapped in tails] == [False] * 5
    assert all(name.endswith(wrapped) for name, (_, wrapped) in zip(names, tails, strict=True) if wrapped)


def test_the_wall_on_a_narrow_screen_keeps_names_headings_and_waits_apart_and_whole(demo: App, view: View) -> None:
    tab = view(demo, viewport={"width": 390, "height": 844}).open("overview", wall="1", state="floor")
    tab.page.locator(".wall th.model").wait_for()
    tab.settled()
    status = tab.page.locator(".st-key-shared-status .status > :not(.grow, button)")
    leave = tab.page.get_by_role("button", name="Leave the wall screen")
    for width in (320, 390, 480, 600, 1000):
        tab.page.set_viewport_size({"width": width, "height": 844})
        tab.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        boxes = [box for box in (head.bounding_box() for head in tab.page.locator(".wall th").all()) if box]
        assert len(boxes) == 4
        type_px = tab.page.locator(".wall").evaluate("node => parseFloat(getComputedStyle(node).fontSize)")
        assert boxes[0]["width"] >= 8 * type_px, f"{width}: a name has room"
        for before, after in pairwise(boxes):
            assert before["x"] + before["width"] <= after["x"] + 0.5
        assert boxes[-1]["x"] + boxes[-1]["width"] <= width, "no column is outside the screen"
        assert tab.page.locator(APP_TEXT).evaluate("main => main.scrollWidth <= main.clientWidth")
        tab.page.locator(".wall td.wait").first.evaluate("node => { node.textContent = '23\\u00a0h\\u00a059\\u00a0min' }")
        cut = "nodes => nodes.filter(node => node.scrollWidth > node.clientWidth).length"
        assert tab.page.locator(".wall :is(td.wait, th.model, th.free, th.wait)").evaluate_all(cut) == 0
        way_out = leave.bounding_box()
        assert way_out
        for said in (box for box in (part.bounding_box() for part in status.all()) if box):
            beside = said["x"] + said["width"] <= way_out["x"] or way_out["x"] + way_out["width"] <= said["x"]
            assert beside or way_out["y"] + way_out["height"] <= said["y"] or said["y"] + said["height"] <= way_out["y"]


def test_the_wall_screen_is_the_board_alone_in_large_type_from_its_top(demo: App, view: View) -> None:
    tab = view(demo, viewport={"width": 1920, "height": 400}).open("overview").board()
    letters = "() => parseFloat(getComputedStyle(document.querySelector('h1')).fontSize)"
    around = [
        tab.page.get_by_test_id("stSidebar"),
        tab.page.get_by_test_id("stHeader"),
        tab.page.get_by_placeholder("Find a model"),
    ]
    around.append(tab.page.locator(".st-key-shared-controls"))
    for part in around:
        expect(part).to_be_visible()
    before = tab.page.evaluate(letters)
    tab.page.get_by_role("button", name="Wall screen").click()
    tab.page.wait_for_url("**wall=1**")
    leave = tab.page.get_by_role("button", name="Leave the wall screen")
    leave.wait_for()
    tab.settled()
    for part in around:
        expect(part).not_to_be_visible()
    assert tab.page.evaluate(letters) >= 1.25 * before, "to be read from across a room"
    expect(tab.page.locator("h1")).to_be_in_viewport()
    expect(tab.page.get_by_role("button", name="Copy link")).not_to_be_visible()
    for height, fits in ((400, False), (1080, True)):
        tab.page.set_viewport_size({"width": 1920, "height": height})
        rows = tab.page.locator(".wall tbody tr")
        more = tab.page.locator(".wall .more")
        expect(more).to_have_count(0 if fits else 1)
        left = 0 if fits else int(more.inner_text().split()[1])
        assert rows.count() + left == 23, "what does not fit is counted"
        boxes = [box for box in (row.bounding_box() for row in rows.all()) if box]
        assert max(box["y"] + box["height"] for box in boxes) <= height
        assert min(box["height"] for box in boxes) >= 36, "to be read from some metres"
    assert [rows.nth(at).locator("td.state").inner_text() for at in (1, 2)] == ["no worker", "floor"]
    assert tab.page.locator(APP_TEXT).evaluate("main => main.scrollTop") == 0
    leave.click()
    tab.page.wait_for_url(lambda url: "wall" not in url)
    tab.settled()
    for part in around:
        expect(part).to_be_visible()
    assert tab.page.evaluate(letters) == before
