"""The review's pages in every state of their data: words, numbers, hostile names as text, nothing that stops them."""

import gzip
import json
import shutil
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from horde_policy.errors import InputError
from horde_policy.history.kept import keep_samples
from horde_policy.history.store import HistoryStore
from horde_policy.imports import ExportFile
from horde_policy.imports.mapping import mapping_of
from horde_policy.imports.read import read_exports
from horde_policy.review.exported import Exported
from horde_policy.review.loading import DEMO_WEEK, load_exports
from horde_policy.review.whatif import what_if
from horde_policy.settings import AllowanceSettings
from horde_policy.ui import reading, review_library, review_live, uploads
from horde_policy.views.figures.style import OUTCOME_PATTERNS, OUTCOMES
from horde_policy.views.parameters import PARAMETERS as OTHER_PARAMETERS
from horde_policy.views.parameters import SETTING_PARAMETERS, TRIED_PARAMETERS
from horde_policy.views.review_state import PARAMETERS
from horde_policy.views.review_words import bounds_text
from horde_policy.views.uploads import NOT_KEPT
from tests.pages.conftest import FILES, REVIEW_PAGES, App
from tests.unit.imports.writing import PLAIN, QUEUE, T0, classic, decision, exposition, matrix, metric

NewApp = Callable[[], App]
OUTCOME_MARKS = {(OUTCOMES["light"][name], pattern) for name, pattern in OUTCOME_PATTERNS.items()}
HOSTILE = "=1+1[x](http://192.0.2.1/)<img src=x>:red[a]"


def words(shown: App) -> str:
    """Everything that the page says in Markdown or text."""
    kinds = ("title", "header", "markdown", "caption", "warning", "info", "error", "success")
    texts = [str(getattr(element, "value", "")) for kind in kinds for element in shown.test.get(kind)]
    return "\n".join(texts).replace("\N{WORD JOINER}", "").replace("\\", "")


@lru_cache(maxsize=1)
def demo_week() -> Exported:
    return load_exports([DEMO_WEEK])


@pytest.fixture(autouse=True)
def _demo_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo week is read once for all of these tests; other files are read by each."""
    monkeypatch.setattr(
        review_library, "load_exports", lambda paths: demo_week() if paths == [DEMO_WEEK] else load_exports(paths)
    )


def add(*files: tuple[str, bytes]) -> str:
    key, _ = review_library.library().add([ExportFile(name, content) for name, content in files])
    return key


@pytest.mark.parametrize("page", REVIEW_PAGES)
def test_the_demo_week_opens_at_once_and_is_labelled_synthetic(app: NewApp, page: str) -> None:
    shown = app().open(page)
    shown.assert_well()
    assert shown.warnings == []
    assert shown.part("shared.status")["label"] == "exports, synthetic data"
    assert ":orange-badge[:material/science:" not in words(shown), "told once, in the status line"
    assert "38,000 decisions" in words(shown)
    assert list(shown.rows("review.files")) == ["process_a.otlp.jsonl.gz", "process_b.otlp.jsonl.gz"]


def test_no_parameter_is_one_of_another_page() -> None:
    others = {parameter.name for parameter in OTHER_PARAMETERS} | set(SETTING_PARAMETERS) | set(TRIED_PARAMETERS)
    assert not others & {parameter.name for parameter in PARAMETERS}


@pytest.mark.parametrize(
    ("page", "name", "value"),
    [
        ("week", "data", "../../etc"),
        ("decisions", "data", "upload-0"),
        ("waits", "against", "nowhere"),
        ("week", "since", "yesterday"),
        ("decisions", "until", "9999-99-99"),
        ("waits", "rows", "time; drop"),
        ("week", "columns", "time"),
        ("decisions", "outcome", "<b>"),
        ("waits", "what_if_floor", "1e309"),
        ("week", "over", "nan"),
        ("decisions", "above", "7"),
        ("waits", "ratio", "-1"),
        ("week", "size", "x"),
        ("decisions", "![x](http://192.0.2.1/p.png)", "1"),
    ],
)
def test_nothing_in_an_address_stops_a_page(app: NewApp, page: str, name: str, value: str) -> None:
    shown = app().open(page, **{name: value})
    shown.assert_well()
    assert shown.title
    assert shown.warnings or shown.test.error or value == "nowhere"


@pytest.mark.parametrize("page", REVIEW_PAGES)
def test_a_range_without_data_says_zero_and_what_there_is(app: NewApp, page: str) -> None:
    shown = app().open(page, since="2024-01-01", until="2024-01-02")
    shown.assert_well()
    assert "0 decisions" in words(shown)
    if page == "decisions":
        assert "There are 0 decisions in this range; the data are 10 Sep 2025 04:01:22 UTC" in words(shown)


@pytest.mark.parametrize(
    ("since", "until", "said"),
    [
        ("2030-01-01", "2030-01-02", "no decision of this range: they are 10 Sep 2025 04:01:22 UTC to 17 Sep 2025"),
        ("2025-09-11T05:00:30Z", "2025-09-11T05:00:31Z", "decisions nobody knows whether they lie in this range"),
    ],
)
def test_a_week_of_which_nothing_is_known_finds_nothing_and_leads_back(app: NewApp, since: str, until: str, said: str) -> None:
    shown = app().open("week", since=since, until=until)
    shown.assert_well()
    assert said in words(shown)
    assert shown.title == "Nothing is known of this range"
    assert "as it should be" not in words(shown)
    shown.test.button(key="week.all-of-it").click().run()
    shown.assert_well()
    assert "Of 38,000 decisions" in words(shown)


def test_filters_that_hide_all_say_so_and_lead_back(app: NewApp) -> None:
    shown = app().open("decisions", requester="none")
    shown.assert_well()
    assert "The words looked at hide all 38,000 decisions of this range." in words(shown)
    shown.test.button(key="review.everything").click().run()
    shown.assert_well()
    assert shown.title.startswith("Of 38,000 decisions")


@pytest.mark.parametrize("page", REVIEW_PAGES)
def test_exports_without_a_series_are_said_to_have_none(app: NewApp, page: str) -> None:
    only_waits = exposition(
        [*classic(QUEUE, {60.0: 1, float("inf"): 2}, 9.0, 0), *classic(QUEUE, {60.0: 3, float("inf"): 2}, 9.5, 60)]
    )
    shown = app().open(page, data=add(("waits.prom", only_waits)))
    shown.assert_well()
    if page == "decisions":
        assert "The exports hold no decisions" in words(shown)
    if page == "week":
        assert "The exports hold no decisions of the free output allowance" in words(shown)
    only_decisions = app().open(page, data=add(("decisions.prom", PLAIN)))
    only_decisions.assert_well()
    if page == "waits":
        assert "The exports hold no waits" in words(only_decisions)


@pytest.mark.parametrize("page", REVIEW_PAGES)
def test_one_scrape_and_uncertain_counts_open_everywhere(app: NewApp, page: str) -> None:
    once = exposition([(decision("free"), 0, 12), (decision("refused"), 0, 3)])
    late = exposition([(decision("free"), 0, 12), (decision("free"), 60, 14), (decision("refused"), 60, 3)])
    for content in (once, late):
        for query in ({}, {"rows": "time"}, {"columns": "outcome", "colour": "none"}):
            shown = app().open(page, data=add(("once.prom", content)), **query)
            shown.assert_well()


@pytest.mark.parametrize("page", REVIEW_PAGES)
def test_hostile_names_are_only_ever_text(app: NewApp, page: str) -> None:
    rows = [(decision("free", instance=HOSTILE, horde_requester=HOSTILE), 60.0 * at, float(at)) for at in range(5)]
    key = add((HOSTILE, exposition(rows)), (HOSTILE + "2", exposition([(f'up{{job="{HOSTILE}"}}', 60.0, 1.0)])))
    shown = app().open(page, data=key)
    shown.assert_well()
    kinds = ("title", "header", "markdown", "caption", "warning", "info", "error")
    for text in (str(getattr(element, "value", "")) for kind in kinds for element in shown.test.get(kind)):
        assert HOSTILE not in text
    for figure in shown.figures:
        assert HOSTILE not in figure.text
    assert HOSTILE in shown.rows("review.files"), "the page's own table sets every text as text"


# --- what was not understood ------------------------------------------------------------------------------------------------


def test_what_was_not_understood_is_listed_with_counts(app: NewApp) -> None:
    rows = [(decision("gratis"), 60.0 * at, float(at)) for at in range(5)]
    rows += [(decision("free", flavour="x"), 60.0 * at, float(at)) for at in range(5)]
    rows += [('up{job="a"}', 60.0 * at, 1.0) for at in range(7)]
    shown = app().open("week", data=add(("mixed.prom", exposition(rows) + b"no sample at all\n")))
    shown.assert_well()
    left = shown.rows("review.left")
    assert (left["up"]["cells"]["count"], left["up"]["cells"]["reason"]) == ("7", "another metric")
    assert left["gratis"]["cells"]["reason"] == "is no word of the rule for outcome"
    assert left["gratis"]["cells"]["count"] == "5"
    assert left["flavour"]["cells"]["reason"].startswith("a label beyond those known")
    assert left["(line)"]["cells"]["count"] == "1"


# --- decisions ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "columns", "colour"),
    [
        ("requester", "none", "outcome"),
        ("outcome", "chat", "none"),
        ("requested_size", "requester", "allowance_size"),
        ("allowance_size", "requested_size", "outcome"),
        ("chat", "outcome", "requested_size"),
        ("time", "none", "none"),
        ("time", "none", "allowance_size"),
        ("time", "requester", "chat"),
        ("outcome", "outcome", "outcome"),
    ],
)
def test_any_dimension_can_be_rows_columns_and_colour(app: NewApp, rows: str, columns: str, colour: str) -> None:
    shown = app().open("decisions", rows=rows, columns=columns, colour=colour, since="2025-09-10", until="2025-09-11")
    shown.assert_well()
    assert shown.warnings == []
    table = shown.part("decisions.table")
    assert {column["key"] for column in table["columns"]} >= {rows, "count", "share", "interval", "n"}


def test_the_table_adds_up_to_the_decisions_of_the_range(app: NewApp) -> None:
    shown = app().open("decisions", rows="requested_size", columns="chat", colour="outcome")
    rows = shown.part("decisions.table")["rows"]
    assert sum(int(row["cells"]["count"].replace(",", "")) for row in rows) == 38_000
    assert all(" to " in row["cells"]["interval"] for row in rows)


def test_a_what_if_shows_the_figures_of_the_library(app: NewApp) -> None:
    shown = app().open("decisions", what_if_floor="768", requester="anonymous")
    shown.assert_well()
    week = demo_week()
    own = week.decisions.filter(week.decisions["requester"] == "anonymous")
    answer = what_if(own, AllowanceSettings(), AllowanceSettings(floor_tokens=768))
    table = shown.rows("decisions.what-if-table")
    assert table["free"]["cells"]["after"] == bounds_text(answer.after["free"])
    assert " to " in table["free"]["cells"]["after"]
    assert table["not decided by the buckets"]["cells"]["after"] == bounds_text(answer.undecided)
    backwards = app().open("decisions", what_if_floor="5000")
    backwards.assert_well()
    assert "Nothing is tried" in words(backwards)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (100, "Nothing is tried of this: the floor, 512, must not be above the ceiling, which is 100."),
        (None, "Ceiling (tokens) stays as it is: nothing was typed."),
    ],
)
def test_what_is_not_tried_is_said_beside_its_field(typed: int | None, told: str, app: NewApp) -> None:
    shown = app().open("decisions")
    shown.test.number_input(key="decisions.what-if-ceiling").set_value(typed).run()
    shown.assert_well()
    assert [text.replace("\\", "").replace("\N{WORD JOINER}", "") for text in shown.warnings] == [told]
    order = [str(element.proto.body) if element.type == "html" else element.type for element in shown.test.main]
    assert order.index("warning") > order.index("<h2>What if the ceiling or the floor were another?</h2>")
    assert shown.test.number_input(key="decisions.what-if-ceiling").value == 4096
    assert not [caption for caption in shown.test.caption if "Nothing is tried" in str(caption.value)], "not once more"
    shown.test.run()
    assert shown.warnings == [], "it is said once"


def test_what_a_part_has_no_more_place_to_say_is_said_at_the_top(app: NewApp) -> None:
    shown = app().open("decisions")
    shown.test.number_input(key="decisions.what-if-ceiling").set_value(100)
    shown.test.switch_page(FILES["waits"]).run()
    assert not shown.warnings
    shown.test.run()
    assert [text[:16] for text in shown.warnings] == ["Nothing is tried"]


def test_impossible_cells_are_marked_and_explained(app: NewApp) -> None:
    over = {"horde_requested_size": ">4096", "horde_allowance_size": "<=512"}
    rows = [(decision("free", **over), 60.0 * at, float(at)) for at in range(5)]
    shown = app().open("decisions", data=add(("wrong.prom", exposition(rows))))
    shown.assert_well()
    rules = shown.rows("decisions.rules")
    assert rules["cannot be"]["cells"]["count"] == "4"
    assert "a request over the allowance is not free" in rules["cannot be"]["cells"]["text"]["text"]


def test_two_ranges_and_two_exports_are_compared(app: NewApp) -> None:
    ranges = app().open(
        "decisions", since="2025-09-10", until="2025-09-11", against_since="2025-09-15", against_until="2025-09-16"
    )
    ranges.assert_well()
    rows = ranges.part("decisions.comparison-table")["rows"]
    refused = next(row["cells"] for row in rows if row["cells"]["outcome"] == "refused")
    assert refused["difference"].startswith("−")
    exports = app().open("decisions", against=add(("other.prom", PLAIN)), rows="outcome", colour="none")
    exports.assert_well()
    assert "other.prom: 3 decisions" in words(exports)
    waits = app().open("waits", against_since="2025-09-15", against_until="2025-09-16")
    waits.assert_well()
    assert len(waits.part("waits.compared-table")["rows"]) == 4


def test_annotations_are_lines_over_time(app: NewApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = tmp_path / "notes.csv"
    notes.write_text("at,kind,text\n2025-09-12T12:00,settings,<b>ceiling</b> raised\n")
    monkeypatch.setenv("HORDE_POLICY_ANNOTATIONS", str(notes))
    shown = app().open("decisions", rows="time")
    shown.assert_well()
    (figure, *_) = [figure.spec for figure in shown.figures]
    assert [note["text"] for note in figure["layout"]["annotations"]] == ["&lt;b&gt;ceiling&lt;/b&gt; raised"]


# --- waits and week -----------------------------------------------------------------------------------------------------------


def test_the_verdict_is_asked_by_the_address(app: NewApp) -> None:
    shown = app().open("waits", over="900", above="0.5", ratio="any")
    shown.assert_well()
    assert "more than 50.0 % of the funded requests waited over 15 min" in words(shown)
    assert "The two are not the same requests" in words(shown)
    quantiles = shown.rows("waits.table")
    assert set(quantiles) == {"estimated", "measured", "anonymous", "registered", "shared key"}
    only = app().open("waits", requester="registered")
    assert set(only.rows("waits.table")) == {"estimated", "measured", "registered"}


def test_every_finding_has_its_figures_and_a_link_that_keeps_data_and_range(app: NewApp) -> None:
    shown = app().open("week", since="2025-09-10", until="2025-09-13")
    shown.assert_well()
    links = [element.proto for element in shown.test.get("page_link")]
    behind = [link for link in links if link.label.startswith("See the")]
    assert behind
    folded = [fold for fold in shown.test.expander if "badge" in fold.label]
    assert len(folded) > len(behind), "what concerns the week itself has no page behind it"
    assert all(fold.caption or fold.markdown for fold in folded), "each unfolds to what it rests on"
    for link in behind:
        query = parse_qs(link.query_string.lstrip("?"))
        assert query["since"] == ["2025-09-10T00:00:00Z"]
        assert query["until"] == ["2025-09-13T00:00:00Z"]


def test_week_says_that_its_findings_are_of_everything_where_less_is_looked_at(app: NewApp) -> None:
    plain = app().open("week")
    shown = app().open("week", requester="anonymous", outcome="refused", requested_size="<=512")
    shown.assert_well()
    told = "The findings are of all 38,000 decisions of the range. Decisions looks at less: requester anonymous; "
    assert told in words(shown).replace("\\", "")
    assert "The findings are of all" not in words(plain)
    assert shown.title == plain.title
    links = [[element.proto.query_string for element in page.test.get("page_link")] for page in (shown, plain)]
    findings = [[query for query in queries if "rows=" in query or "columns=" in query] for queries in links]
    assert findings[0] == findings[1] != [], "a finding's link shows what the finding counts"
    shown.test.button(key="review.everything").click().run()
    shown.assert_well()
    assert shown.address == {}
    assert "The findings are of all" not in words(shown)


# --- uploads ------------------------------------------------------------------------------------------------------------------


def submit(shown: App) -> App:
    shown.test.button(key="FormSubmitter:review.upload-form-0-Read").click().run()
    return shown


def test_an_upload_is_read_remembered_listed_and_forgotten(app: NewApp) -> None:
    shown = app().open("decisions")
    shown.test.file_uploader(key="review.upload-0").set_value([(HOSTILE, gzip.compress(PLAIN), "application/gzip")])
    submit(shown)
    shown.assert_well()
    assert shown.title == "All 3 decisions that are looked at were free"
    key = shown.address["data"][0]
    sources = shown
    sources.test.switch_page("pages/operate/sources.py").run()
    sources.assert_well()
    row = sources.rows("sources.uploads")[HOSTILE]
    assert row["cells"]["understood"]["text"] == "Prometheus text: 2 samples, 3 decisions, 0 waits"
    assert row["cells"]["left"]["text"] == "everything was understood"
    sources.test.button(key=f"sources.forget-exports-{key}").click().run()
    sources.assert_well()
    assert not sources.rows("sources.uploads")
    assert "data" not in sources.address


@pytest.mark.parametrize("page", REVIEW_PAGES)
def test_an_address_of_an_upload_that_is_not_kept_shows_the_demo_and_says_so(app: NewApp, page: str) -> None:
    gone = app().open(page, data="upload-0", since="2020-01-01T00:00:00Z", until="2020-01-02T00:00:00Z")
    gone.assert_well()
    assert NOT_KEPT in words(gone)
    assert "38,000 decisions" in words(gone)
    gone.test.button(key="review.leave-out").click().run()
    gone.assert_well()
    assert gone.address == {}
    assert gone.warnings == []


def test_forgetting_takes_an_upload_out_of_every_parameter_that_names_it(app: NewApp) -> None:
    key = add(("a.prom", PLAIN))
    day = {"since": "2026-11-23T00:00:00Z", "against_until": "2026-11-24T00:00:00Z"}
    shown = app()
    shown.test.session_state["uploads.held"] = uploads.Held([uploads.Upload(key, "exports", "a.prom", "", "")])
    shown.open("sources", data=key, against=key, chat="true", **day)
    shown.test.button(key=f"sources.forget-exports-{key}").click().run()
    shown.assert_well()
    assert shown.address == {"chat": ["true"]}


def test_what_is_compared_against_and_is_gone_is_said_in_the_same_words(app: NewApp) -> None:
    gone = app().open("decisions", against="upload-0")
    gone.assert_well()
    assert f"against: 'upload-0' {NOT_KEPT}" in words(gone)


def test_one_bad_file_among_many_is_named_and_the_others_are_shown(app: NewApp) -> None:
    shown = app().open("decisions")
    files = [("good.prom", PLAIN, "text/plain"), (HOSTILE, b"\x89PNG\r\n\x1a\n", "image/png")]
    shown.test.file_uploader(key="review.upload-0").set_value(files)
    submit(shown)
    shown.assert_well()
    assert shown.title == "All 3 decisions that are looked at were free"
    said = words(shown)
    assert "1 file could not be read; the figures are those of the others" in [str(w.proto.title) for w in shown.test.warning]
    assert "is none of" in said
    assert "<b>" not in said


@pytest.mark.parametrize("page", REVIEW_PAGES)
def test_a_file_that_ends_early_is_named_above_the_figures(app: NewApp, page: str) -> None:
    shown = app().open(page, data=add(("<b>.gz", gzip.compress(PLAIN, 0)[:-40])))
    shown.assert_well()
    titles = [str(warning.proto.title) for warning in shown.test.warning]
    assert any("ends early" in title and "what came before is shown" in title and "<b>" not in title for title in titles), titles
    assert "the gzip packing ends early" in words(shown)
    assert not any("<b>" in str(warning.value) for warning in shown.test.warning)  # escaped


def test_a_reading_is_cancelled_and_the_page_stays_as_it_was(app: NewApp, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = Event(), Event()

    def slowly(*_: object, progress: Callable[[float], None], **__: object) -> None:
        begun.set()
        assert go_on.wait(30)
        progress(0.5)

    monkeypatch.setattr(review_library.Library, "add", slowly)
    monkeypatch.setattr(reading, "follow", lambda: None)  # the page's run would wait for it
    shown = app().open("decisions")
    before = shown.title
    shown.test.file_uploader(key="review.upload-0").set_value([("a.prom", PLAIN, "text/plain")])
    submit(shown)
    shown.assert_well()
    assert begun.wait(30)
    assert shown.title == before, "the page is in use meanwhile"
    shown.test.button(key="reading.exports.cancel").click().run()
    go_on.set()
    shown.assert_well()
    assert "The reading was cancelled: nothing of the upload is kept." in words(shown)
    assert shown.title == before
    assert not review_library.library().uploads


def test_a_session_keeps_its_newest_uploads(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[uploads.Upload] = []
    monkeypatch.setattr(uploads, "_held", lambda: held)
    keys = [add((f"{number}.prom", PLAIN)) for number in range(uploads.MOST_KEPT + 2)]
    for key in keys:
        uploads.remember(uploads.Upload(key, "exports", key, "", ""))
    assert [one.key for one in uploads.listed("exports")] == keys[2:]
    assert list(review_library.library().uploads) == keys[2:]


def test_a_bomb_is_stopped_at_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(review_library, "MOST_UNPACKED_BYTES", 1_000_000)
    bomb = gzip.compress(PLAIN + b"# HELP nothing\n" * 200_000)
    with pytest.raises(InputError, match=r"bomb.gz: 1000000 bytes are the most that a file may unpack to"):
        add(("bomb.gz", bomb))
    assert not review_library.library().uploads


def test_equal_uploads_have_one_key_and_a_mapping_makes_another() -> None:
    first, second = ("a.prom", PLAIN), ("b.prom", exposition([(decision("refused"), 0, 1), (decision("refused"), 60, 4)]))
    assert add(first, second) == add(second, first) != add(first)
    mapped = review_library.library().add([ExportFile(*first)], mapping_of({"lookback_s": 60}))[0]
    assert mapped != add(first)


# --- folders and a live server ------------------------------------------------------------------------------------------------


def test_configured_folders_can_be_chosen_and_what_is_missing_is_said(
    app: NewApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "exports" / HOSTILE.replace("/", "")
    folder.mkdir(parents=True)
    (folder / "monday.prom").write_bytes(PLAIN)
    monkeypatch.setenv("HORDE_POLICY_EXPORTS", f"{tmp_path / 'exports'}:{tmp_path / 'nowhere'}")
    (key,) = [entry.key for entry in review_library.entries().values() if entry.kind == "folder"]
    shown = app().open("decisions", data=key)
    shown.assert_well()
    assert shown.title.startswith("All 3 decisions")
    assert len(shown.warnings) == 1
    assert "nowhere holds no export; it is left out" in words(shown)
    # a file put into it is seen
    (folder / "tuesday.prom").write_bytes(exposition([(decision("free"), 60, 4), (decision("free"), 120, 9)]))
    shown.test.run()
    assert shown.title.startswith("All 8 decisions")
    shutil.rmtree(folder)
    shown.test.run()
    shown.assert_well()
    assert "are not configured on this server" in words(shown)


def test_what_the_history_keeps_can_be_chosen_and_grows(app: NewApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORDE_POLICY_HISTORY", str(tmp_path / "history.sqlite"))
    with closing(HistoryStore(tmp_path / "history.sqlite")) as store:
        keep_samples(store, read_exports([PLAIN]).samples, name=HOSTILE)
        (entry,) = [one for one in review_library.entries().values() if one.kind == "kept"]
        shown = app().open("decisions", data=entry.key)
        shown.assert_well()
        assert shown.title.startswith("All 3 decisions")
        keep_samples(
            store, read_exports([exposition([(decision("free"), 60, 4), (decision("free"), 120, 9)])]).samples, name=HOSTILE
        )
        keep_samples(store, read_exports([PLAIN]).samples, name=HOSTILE)
        shown.test.run()
        assert shown.title.startswith("All 8 decisions"), "merged, and what is kept twice counts once"
    assert "are not configured on this server" in words(app().open("week", data="kept-nothing"))


class FakePrometheus:
    """Answers range queries with a saved answer, or fails; notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, list[str]], dict[str, str]]] = []
        self.status = 200
        self.content = matrix({metric("free"): [(at, 10 + at / 60) for at in range(0, 3600, 300)]})
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                outer.asked.append((parts.path, parse_qs(parts.query), dict(self.headers)))
                self.send_response(outer.status)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(outer.content if outer.status == 200 else b"{}")

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def prometheus(monkeypatch: pytest.MonkeyPatch) -> FakePrometheus:
    made = FakePrometheus()
    monkeypatch.setenv("HORDE_POLICY_PROMETHEUS_URL", made.url)
    monkeypatch.setenv("HORDE_POLICY_PROMETHEUS_TENANT", "ai-horde-telemetry")
    return made


def test_a_configured_prometheus_is_asked_once_when_it_is_chosen(app: NewApp, prometheus: FakePrometheus) -> None:
    assert "prometheus" in review_library.entries()
    app().open("decisions").assert_well()
    assert prometheus.asked == []
    since, until = (datetime.fromtimestamp(T0 + at, UTC).isoformat() for at in (0, 3600))
    for page in REVIEW_PAGES:
        shown = app().open(page, data="prometheus", since=since, until=until)
        shown.assert_well()
        assert "55 decisions" in words(shown)
    ((path, query, headers),) = prometheus.asked
    assert path == "/api/v1/query_range"
    assert "horde_text_" in query["query"][0]
    assert headers["X-Scope-OrgID"] == "ai-horde-telemetry"
    shown.test.button(key="review.ask-again").click().run()
    assert len(prometheus.asked) == 2


def test_a_server_that_fails_is_said_to_and_is_no_error_page(
    app: NewApp, prometheus: FakePrometheus, monkeypatch: pytest.MonkeyPatch
) -> None:
    prometheus.status = 400
    shown = app().open("week", data="prometheus", since="2026-09-21", until="2026-09-22")
    shown.assert_well()
    assert shown.title == "There are no data to review"
    assert "answers 400" in words(shown)
    long = app().open("week", data="prometheus", since="2020-01-01", until="2026-09-22")
    long.assert_well()
    assert "at most 31 days" in words(long)
    monkeypatch.setenv("HORDE_POLICY_PROMETHEUS_URL", "ftp://x")
    assert review_live.server_name() is None
    assert "HORDE_POLICY_PROMETHEUS_URL" in words(app().open("week"))


@pytest.mark.parametrize(
    "query",
    [
        {"outcome": "refused", "columns": "requested_size"},
        {"outcome": "refused"},
        {"outcome": "refused", "rows": "time"},
        {"outcome": "refused", "rows": "outcome"},
        {"columns": "outcome", "rows": "requested_size"},
    ],
)
def test_an_outcome_has_its_colour_and_pattern_also_alone_and_the_axis_says_what_the_control_does(
    app: NewApp, query: dict[str, str]
) -> None:
    shown = app().open("decisions", **query)
    shown.assert_well()
    splits = [figure.spec for figure in shown.figures if "decisions.split-" in figure.id]
    assert splits
    for spec in splits:
        for bar in (trace for trace in spec["data"] if trace["type"] == "bar"):
            marker = bar["marker"]
            fills = marker["color"] if isinstance(marker["color"], list) else [marker["color"]]
            shapes = marker["pattern"]["shape"]
            assert set(zip(fills, shapes if isinstance(shapes, list) else [shapes], strict=True)) <= OUTCOME_MARKS
        axis = spec["layout"]["yaxis" if query.get("rows") == "time" else "xaxis"]
        assert "share" not in axis["title"]["text"]
        assert "decisions" in axis["title"]["text"]
    shares = [toggle for toggle in shown.test.toggle if toggle.label == "Shares"]
    assert [(toggle.value, toggle.disabled) for toggle in shares] == [(False, True)]


def test_shares_stay_as_they_were_chosen_while_they_cannot_be_drawn(app: NewApp) -> None:
    shown = app().open("decisions")
    shown.test.toggle(key="decisions.shares").set_value(False).run()
    shown.test.selectbox(key="decisions.colour").set_value("").run()
    shown.test.selectbox(key="decisions.colour").set_value("outcome").run()
    shown.assert_well()
    assert shown.test.toggle(key="decisions.shares").value is False


@pytest.mark.parametrize("page", REVIEW_PAGES)
def test_an_uploaded_bundled_file_is_labelled_synthetic(app: NewApp, page: str) -> None:
    content = (DEMO_WEEK / "process_a.otlp.jsonl.gz").read_bytes()
    shown = app().open(page, data=add(("mine.gz", content)))
    shown.assert_well()
    assert shown.part("shared.status")["label"] == "exports, synthetic data"


def test_what_is_made_up_is_told_by_content_or_by_what_is_uploaded_with_it() -> None:
    content = (DEMO_WEEK / "process_a.otlp.jsonl.gz").read_bytes()
    library = review_library.library()
    about = json.dumps({"title": "Made by hand", "synthetic": True}).encode()
    assert library.upload(add(("mine.jsonl", gzip.decompress(content)))).synthetic
    told = library.upload(add(("a.prom", PLAIN), ("about.json", about)))
    assert (told.synthetic, told.title, len(told.files)) == (True, "Made by hand", 1)
    assert not library.upload(add(("a.prom", PLAIN))).synthetic
    with pytest.raises(InputError, match="upload them with it"):
        add(("about.json", about))
    with pytest.raises(InputError, match="cannot be read as JSON"):
        add(("a.prom", PLAIN), ("about.json", b"{"))
