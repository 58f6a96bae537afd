"""The review's pages in Chromium: every form of export uploaded, what cannot be read, and a click that filters everything."""

import contextlib
import gzip
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import zstandard
from playwright.sync_api import FilePayload, Locator, expect

from horde_policy.imports import read_exports, write_parquet
from horde_policy.review.decompose import decompose, filtered
from horde_policy.review.loading import DEMO_WEEK, load_exports
from tests.browser.conftest import App, Viewer, until_true
from tests.unit.imports.test_hostile import CSV
from tests.unit.imports.test_packing import REQUESTS
from tests.unit.imports.writing import OTLP_LINES, PLAIN, decision, exposition, matrix, metric

pytestmark = pytest.mark.browser

View = Callable[..., Viewer]
PLOTS = ".horde-figure .main-svg"
HOSTILE = "=HYPERLINK('http://192.0.2.1')<img src=x onerror=alert(1)>![x](http://192.0.2.1/p.png).prom"
MEGABYTE = 1_000_000


def shown(tab: Viewer) -> Viewer:
    tab.page.wait_for_selector(PLOTS)
    return tab.settled()


def payload(name: str, content: bytes) -> FilePayload:
    return {"name": name, "mimeType": "application/octet-stream", "buffer": content}


def upload(tab: Viewer, *files: FilePayload | Path) -> None:
    """Choose files in the upload's form and press its button; what comes of it is for the caller to wait for."""
    page = tab.settled().page  # while a run replaces the form by a new one, both stand there
    read = page.get_by_test_id("stFormSubmitButton").get_by_text("Read")
    if not read.is_visible():
        page.get_by_role("button", name="Upload").first.click()
        read.wait_for()
    uploader = page.get_by_test_id("stFileUploader").first
    for old in range(uploader.get_by_test_id("stFileChipDeleteBtn").count(), 0, -1):
        uploader.get_by_test_id("stFileChipDeleteBtn").nth(old - 1).get_by_role("button").click()
    uploader.get_by_test_id("stFileChip").first.wait_for(state="detached")
    with contextlib.ExitStack() as sent:
        for _ in files:
            sent.enter_context(page.expect_response(lambda response: "upload_file" in response.url, timeout=120_000))
        uploader.locator('input[type="file"]').set_input_files(files)  # type: ignore[arg-type]
    uploader.get_by_test_id("stFileChip").nth(len(files) - 1).wait_for()
    read.click()


def click_mark(tab: Viewer, mark: Locator) -> None:
    """Click the middle of a mark of a figure, as a hand does: the figure's own layer takes the click."""
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    assert box is not None
    tab.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def plain(text: str) -> str:
    """Return a text of the page without what keeps Markdown from what stands in it, and lines from ending within a figure."""
    return text.replace("\N{WORD JOINER}", "").replace("\N{NO-BREAK SPACE}", " ")


def query(tab: Viewer) -> dict[str, list[str]]:
    return parse_qs(urlsplit(tab.page.url).query)


def parquet(folder: Path) -> bytes:
    path = folder / "own.parquet"
    write_parquet(read_exports(PLAIN).samples, path)
    return path.read_bytes()


FORMS: dict[str, tuple[Callable[[Path], bytes], str]] = {
    "text": (lambda _: PLAIN, "Prometheus text"),
    "text.gz": (lambda _: gzip.compress(PLAIN), "Prometheus text, gzip"),
    "api": (lambda _: matrix({metric("free"): [(0, 1), (60, 4)]}), "Prometheus API answer"),
    "otlp": (lambda _: OTLP_LINES, "OTLP JSON"),
    "otlp.zst": (lambda _: zstandard.compress(OTLP_LINES), "OTLP JSON, zstd"),
    "proto": (lambda _: b"".join(len(one).to_bytes(4, "big") + one for one in REQUESTS), "OTLP protobuf"),
    "csv": (lambda _: CSV, "Grafana CSV"),
    "parquet": (parquet, "our Parquet"),
}


@pytest.mark.parametrize("forms", [["text.gz", "proto", "parquet"], pytest.param(list(FORMS), marks=pytest.mark.soak)])
def test_each_form_is_told_by_its_content(demo: App, view: View, tmp_path: Path, forms: list[str]) -> None:
    tab = shown(view(demo).open("decisions"))
    seen = {""}
    for form in forms:
        made, words = FORMS[form]
        upload(tab, payload(f"export-{form}.bin", made(tmp_path)))
        tab.page.locator(".grid").get_by_text(f"export-{form}.bin").first.wait_for()
        tab.page.locator(".grid").get_by_text(words, exact=True).first.wait_for()
        shown(tab)
        (key,) = query(tab)["data"]
        assert key not in seen
        seen.add(key)
    # a link to an upload holds for whoever has it
    other = shown(view(demo).open("decisions", data=key))
    assert other.page.locator("h1").inner_text() == tab.page.locator("h1").inner_text()


def test_several_files_are_one_export_and_what_they_share_counts_once(demo: App, view: View) -> None:
    first = exposition([(decision("free"), 60.0 * at, 10 + at) for at in range(10)])
    second = exposition([(decision("free"), 60.0 * at, 10 + at) for at in range(5, 20)])
    tab = shown(view(demo).open("decisions"))
    upload(tab, payload("monday.prom", first), payload("tuesday.prom", second))
    tab.page.get_by_role("heading", name="All 19 decisions that are looked at were free").wait_for()
    tab.page.locator(".grid").get_by_text("monday.prom").wait_for()
    tab.page.locator(".grid").get_by_text("tuesday.prom").wait_for()
    assert len(query(tab)["data"]) == 1, "the two files are one export"


def test_what_cannot_be_read_is_said_and_nothing_is_lost(demo: App, view: View) -> None:
    tab = shown(view(demo).open("decisions", requester="registered"))
    title = tab.page.locator("h1").inner_text()
    bomb = gzip.compress(PLAIN + b"a" * (80 * MEGABYTE))
    assert len(bomb) < MEGABYTE
    wrong = [
        ("picture.png", b"\x89PNG\r\n\x1a\n" + bytes(200), "is none of"),
        ("bomb.gz", bomb, "a line may have"),
        ("empty.txt", b"", "is empty"),
        ("cut.gz", gzip.compress(PLAIN)[:12], "the gzip packing ends early"),
        (HOSTILE, b"\x00\x01\x02 no export", "is none of"),
        ("others.prom", b'up{job="a"} 1 1790000000000\n', "must hold at least one of"),
    ]
    for name, content, words in wrong:
        upload(tab, payload(name, content))
        alert = tab.page.get_by_test_id("stAlert").filter(has_text=words)
        alert.first.wait_for()
        assert name in plain(alert.first.inner_text())
        tab.settled()
        assert tab.page.locator("h1").inner_text() == title
        assert query(tab) == {"requester": ["registered"]}
    # beside a good one the bad one is left out and named
    upload(tab, payload("good.prom", PLAIN), payload(HOSTILE, wrong[4][1]))
    left = tab.page.get_by_test_id("stAlert").filter(has_text="could not be read; the figures are those of the others")
    left.first.wait_for()
    assert HOSTILE in plain(left.first.inner_text())
    assert "data" in query(tab)
    assert tab.page.locator("img[src*='192.0.2.1'], a[href*='192.0.2.1']").count() == 0
    # and the next good one is read
    upload(tab, payload("good.prom", PLAIN))
    tab.page.locator(".grid").get_by_text("good.prom").first.wait_for()
    assert tab.page.get_by_text("The upload cannot be read").count() == 0


def test_a_file_that_ends_early_counts_what_was_readable_and_says_so(demo: App, view: View) -> None:
    lines = exposition([(decision("free"), 60.0 * at, 10 + at) for at in range(20_000)])
    tab = shown(view(demo).open("week"))
    packed = gzip.compress(lines)
    upload(tab, payload("truncated.prom.gz", packed[: len(packed) // 2]))
    tab.page.get_by_text("ends early; what was read before that is used").first.wait_for()
    tab.settled()
    assert tab.page.get_by_test_id("stException").count() == 0


def test_hostile_names_in_a_file_are_text_on_every_page(demo: App, view: View) -> None:
    name = "[x](http://192.0.2.1/)<img src=x onerror=alert(1)>:red[a]"
    rows = [(decision("free", instance=name, horde_requester="=1+1"), 60.0 * at, float(at)) for at in range(5)]
    rows += [(f"up{{job='{name}'}}".replace("'", '"'), 60.0, 1.0)]
    tab = shown(view(demo).open("decisions"))
    upload(tab, payload(HOSTILE, exposition(rows)))
    tab.page.locator(".grid").get_by_text("=HYPERLINK").first.wait_for()
    (key,) = query(tab)["data"]
    for page in ("week", "decisions", "waits"):
        tab.open(page, data=key)
        tab.page.get_by_text("What was not understood: 1 ").click()
        tab.page.locator(".grid").get_by_text("another metric").wait_for()
        assert tab.page.locator("img[src='x'], img[src*='192.0.2.1'], a[href*='192.0.2.1']").count() == 0


@pytest.mark.parametrize("megabytes", [30, pytest.param(150, marks=pytest.mark.soak)])
def test_a_large_file_is_read_in_one_upload(demo: App, view: View, tmp_path: Path, megabytes: int) -> None:
    series = [decision(outcome, instance=f"i{n}") for outcome in ("free", "funded", "refused") for n in range(50)]
    path = tmp_path / "large.prom"
    looks = 0
    with path.open("wb") as out:
        while out.tell() < megabytes * MEGABYTE:
            out.write(exposition([(one, 60.0 * looks, float(looks)) for one in series]))
            looks += 1
    tab = shown(view(demo).open("decisions"))
    upload(tab, path)
    expected = f"Of {(looks - 1) * len(series):,} decisions 33.3 % were free and 33.3 % refused"
    tab.page.get_by_role("heading", name=expected).wait_for(timeout=120_000)
    assert len(query(tab)["data"]) == 1


# --- a click filters everything -------------------------------------------------------------------------------------------


def test_a_click_on_a_mark_filters_everything_and_the_address_holds_it(demo: App, view: View) -> None:
    tab = shown(view(demo).open("decisions"))
    assert tab.page.locator("h1").inner_text().startswith("Of 38,000 decisions")
    bars = tab.page.locator(PLOTS).first.locator("xpath=..").locator(".barlayer .point path")
    click_mark(tab, bars.nth(6))  # three free, two funded, then the refused: the second requester
    until_true(tab.page, "location.search.includes('outcome=refused')")
    assert query(tab) == {"requester": ["registered"], "outcome": ["refused"]}
    tab.page.get_by_role("heading", name="decisions that are looked at were refused").wait_for()
    shown(tab)
    # the waits of the same requester alone, by the navigation
    tab.page.get_by_role("link", name="Waits").click()
    tab.page.get_by_text("Not told apart by what is counted here: outcome").wait_for()
    shown(tab)
    assert query(tab) == {"requester": ["registered"], "outcome": ["refused"]}
    tab.page.go_back()
    tab.page.mouse.move(640, 5)  # off the link, whose tooltip lies over the page
    tab.page.get_by_role("heading", name="decisions that are looked at were refused").wait_for()
    tab.page.get_by_role("button", name="requester: registered").click()
    until_true(tab.page, "!location.search.includes('requester')")
    assert query(tab) == {"outcome": ["refused"]}


def test_a_click_on_a_cell_and_on_a_step_of_time_narrow_both_figures(demo: App, view: View) -> None:
    tab = shown(view(demo).open("decisions"))
    cells = tab.page.locator(".scatterlayer .point")
    cells.nth(24).wait_for(state="attached")
    click_mark(tab, cells.nth(3))
    until_true(tab.page, "location.search.includes('allowance_size')")
    assert query(tab) == {"requested_size": ["<=512"], "allowance_size": ["2049-4096"]}
    tab.page.get_by_role("button", name="allowance: 2,049 to 4,096").wait_for()
    shown(tab)
    steps = tab.page.locator(".barlayer").last.locator(".point path")
    click_mark(tab, steps.nth(5))
    until_true(tab.page, "location.search.includes('since')")
    found = query(tab)
    kept = {"requested_size": ("<=512",), "allowance_size": ("2049-4096",)}
    times = decompose(filtered(load_exports([DEMO_WEEK]).decisions, kept), ["time"])["time"]
    assert found["since"] == [f"{times[5]:%Y-%m-%dT%H:%M:%SZ}"]
    assert found["until"] == [f"{times[5] + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"]
    tab.page.get_by_role("button", name="this range only").wait_for()


def test_a_box_over_time_is_drawn_with_its_tool_and_one_step_back_undoes_a_step_of_one_outcome(demo: App, view: View) -> None:
    tab = shown(view(demo).open("decisions"))
    figure = tab.page.locator(".js-plotly-plot:has(.barlayer .point)").last
    figure.scroll_into_view_if_needed()
    figure.hover()
    figure.locator('[data-title="Box Select"]').click()
    box = figure.locator(".nsewdrag").first.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    tab.page.mouse.move(box["x"] + 0.3 * box["width"], middle - 20)
    tab.page.mouse.down()
    tab.page.mouse.move(box["x"] + 0.6 * box["width"], middle + 20, steps=8)
    tab.page.mouse.up()
    until_true(tab.page, "location.search.includes('since')")
    assert set(query(tab)) == {"since", "until"}

    tab = shown(view(demo).open("decisions"))
    steps = tab.page.locator(".barlayer").last.locator(".point path")
    steps.nth(5).wait_for(state="attached")
    click_mark(tab, steps.nth(5))
    until_true(tab.page, "location.search.includes('since') && location.search.includes('outcome=')")
    tab.page.go_back()
    until_true(tab.page, "!location.search.includes('since') && !location.search.includes('outcome=')")


def test_all_findings_stand_on_the_first_screen_and_unfold_to_what_they_rest_on(demo: App, view: View) -> None:
    tab = shown(view(demo, viewport={"width": 1280, "height": 720}).open("week"))
    rows = tab.page.locator(".st-key-week-findings summary")
    rows.first.wait_for()
    assert rows.count() == 11
    until_true(
        tab.page,
        "[...document.querySelectorAll('.st-key-week-findings summary')]"
        ".filter(row => row.getBoundingClientRect().bottom <= innerHeight).length === 11",
    )
    boxes = tab.page.locator(".st-key-week-findings").get_by_test_id("stExpander")
    assert len({round(box.bounding_box()["width"]) for box in boxes.all()}) == 1, "also the one that leads to no page"  # type: ignore[index]
    rows.first.click()
    tab.page.get_by_text("95 % interval 1.5 to 17.0 %").wait_for()
    # Streamlit's own margin below a heading is a rem less than nothing: the text of one must end above what follows.
    ends = tab.page.locator('[data-testid="stMainBlockContainer"] :is(h1, h2)').evaluate_all(
        """heads => heads.map(head => {
            const range = document.createRange()
            range.selectNodeContents(head)
            const slot = head.closest('[data-testid="stElementContainer"]')
            const next = slot.nextElementSibling ?? slot.parentElement.nextElementSibling
            return next && [head.textContent, next.getBoundingClientRect().top - range.getBoundingClientRect().bottom]
        }).filter(Boolean)"""
    )
    assert len(ends) >= 3
    beside = "Findings"  # has the report's button beside it, and not below
    assert [text for text, room in ends if room < 0 and not text.startswith(beside)] == []


def test_findings_lead_to_the_page_state_behind_them_and_the_report_is_one_file(demo: App, view: View, tmp_path: Path) -> None:
    tab = shown(view(demo).open("week"))
    told = plain(tab.page.locator("h1").inner_text())
    assert told.startswith("Of 38,000 decisions 89.6 % were free and 6.4 % refused; 1 of 11 findings needs attention")
    with tab.page.expect_download() as download:
        tab.page.get_by_role("button", name="Report (HTML)").click()
    assert download.value.suggested_filename.startswith("week_synthetic_20250910_20250917_")
    download.value.save_as(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "These data are made up" in text
    tab.page.get_by_role("link", name="See the decisions").first.click()
    tab.page.wait_for_url("**/decisions?*")  # the week's own headline tells the same shares
    tab.page.get_by_role("heading", name="89.6 % were free and 6.4 % refused").wait_for()
    assert query(tab) == {"columns": ["requested_size"]}
    shown(tab)
    tab.page.get_by_text("requested size: 1,025 to 2,048").wait_for()


OVERLAPS = """() => [...document.querySelectorAll('.js-plotly-plot')].flatMap(chart => {
    const plot = chart.querySelector('.nsewdrag').getBoundingClientRect();
    const texts = [...chart.querySelectorAll('.legend .traces, .annotation-text')].map(one => one.getBoundingClientRect());
    const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
        && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
    return texts.flatMap((one, place) => [plot, ...texts.slice(place + 1)].filter(other => meet(one, other))).map(r => r.top);
})"""


@pytest.mark.parametrize("page", ["waits", "decisions"])
@pytest.mark.parametrize("width", [390, 1280])
def test_no_legend_or_mark_lies_on_the_data_or_on_another(demo: App, view: View, page: str, width: int) -> None:
    tab = shown(view(demo, viewport={"width": width, "height": 844}).open(page))
    tab.page.locator(".js-plotly-plot .legend .traces").first.wait_for()
    assert tab.page.locator(".js-plotly-plot .legend .traces").count() >= 4
    until_true(tab.page, f"({OVERLAPS})().length === 0")


SQUARES = """() => {
    const boxes = of => [...document.querySelectorAll(`${place} .scatterlayer ${of}`)].map(one => one.getBoundingClientRect());
    const meet = (a, b) => Math.min(a.right, b.right) > Math.max(a.left, b.left)
        && Math.min(a.bottom, b.bottom) > Math.max(a.top, b.top);
    const place = document.querySelector('.st-key-week-gains') ? '.st-key-week-gains' : '[class*=st-key-decisions-grid]';
    const squares = boxes('.point'), words = boxes('.textpoint text');
    const within = words.filter(word => squares.some(square => word.left >= square.left && word.right <= square.right));
    return [squares.length, words.length - within.length,
        squares.filter((one, place) => squares.slice(place + 1).some(other => meet(one, other))).length];
}"""


@pytest.mark.parametrize("page", ["week", "decisions"])
def test_on_a_phone_no_square_touches_another_and_each_holds_its_words(demo: App, view: View, page: str) -> None:
    tab = shown(view(demo, viewport={"width": 390, "height": 844}).open(page))
    tab.page.locator(".scatterlayer .point").nth(24).wait_for(state="attached")
    until_true(tab.page, f"({SQUARES})()[2] === 0")
    assert tab.page.evaluate(SQUARES) == [25, 0, 0]


def test_a_number_beyond_what_a_field_takes_is_told_in_words_beside_it(demo: App, view: View) -> None:
    tab = shown(view(demo).open("decisions"))
    field = tab.page.locator(".st-key-decisions-what-if-ceiling")
    field.locator("input").fill("20000")
    field.locator("input").press("Enter")
    told = field.get_by_role("alert")
    expect(told).to_contain_text("between 1 and 16384")
    beside, below = told.bounding_box(), tab.page.get_by_text("Nothing is tried: change one of the two.").bounding_box()
    assert beside is not None
    assert below is not None
    assert beside["height"] > 20
    assert beside["y"] + beside["height"] < below["y"], "it stands on nothing else"
