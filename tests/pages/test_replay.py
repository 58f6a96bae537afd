"""The Replay page in its states: the demo, its controls, bad and good uploads, garbage in the address, cancelling."""

import gzip
import io
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
import streamlit as st

from horde_policy.clock import FixedClock
from horde_policy.errors import InputError, ReplayCancelled
from horde_policy.history.store import HistoryStore
from horde_policy.replay.fill import Traffic
from horde_policy.replay.fleets import Fleet
from horde_policy.settings import AllowanceSettings
from horde_policy.sources.demo import DemoSource
from horde_policy.ui import replay_desk, replay_page
from horde_policy.ui.replay_desk import Desk
from horde_policy.ui.replay_inputs import BUNDLED, Drawn, Library, drawn_of
from horde_policy.views.replay_runs import baseline_of, runs_of
from horde_policy.views.uploads import NOT_KEPT
from tests.make_hostile import MODEL_NAMES
from tests.pages.conftest import ROOT, App

NewApp = Callable[[], App]
AT = datetime(2026, 11, 29, 18, tzinfo=UTC)
WEEK = Path(__file__).parents[2] / "data" / "week"
SMALL = {"hours": "24-27", "copies": "5"}


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Timers do not run in a test, so its page waits until the replay is there."""
    monkeypatch.setattr(replay_page, "WAIT_S", 120.0)
    yield
    replay_desk.desk().queue.shutdown(wait=True, cancel_futures=True)


def errors(shown: App) -> list[str]:
    return [str(error.value).replace("\\", "").replace("\N{WORD JOINER}", "") for error in shown.test.error]


def notices(shown: App) -> list[str]:
    return [text.replace("\\", "").replace("\N{WORD JOINER}", "") for text in shown.warnings]


def left_out(shown: App) -> list[str]:
    return [text for text in notices(shown) if text.startswith("The link's ")]


def run_rows(shown: App) -> dict[str, dict[str, object]]:
    return {row["cells"]["run"]["text"]: row["cells"] for row in shown.part("replay.runs")["rows"]}


def words(shown: App) -> str:
    return " ".join(str(m.value) for m in shown.test.markdown).replace("\\", "").replace("\N{WORD JOINER}", "")


# --- the demo and its controls ------------------------------------------------------------------------------------------


def test_the_demo_is_never_empty_and_says_what_it_is_and_what_is_made_up(app: NewApp) -> None:
    shown = app().open("replay")
    shown.assert_well()
    assert shown.title.startswith("B (ceiling 2,048, floor 256) differs most: ")
    assert "fare worse than under the baseline" in shown.title
    assert list(run_rows(shown)) == [
        "baseline: 4,096 to 512 tokens at 60 to 300 s",
        "B: ceiling 2,048, floor 256",
        "C: the previous rule",
    ]
    assert "60 copies superposed (synthetic load)" in words(shown)
    assert "Demo horde, synthetic" in words(shown)
    assert "max_length=ladder,models=weighted" in words(shown), "the fill rule stands on every result"
    assert shown.warnings == []
    charts = shown.figures
    assert len(charts) == 4
    assert all(chart.spec["data"] for chart in charts)


def test_the_rows_add_up_and_the_runs_are_named_by_their_digests(app: NewApp) -> None:
    shown = app().open("replay", **SMALL, run=["rule=everyone_free"])
    rows = {row["id"]: row["cells"] for row in shown.part("replay.runs")["rows"]}
    runs, _ = runs_of(["rule=everyone_free"], AllowanceSettings())
    assert list(rows) == [run.digest for run in runs]
    for cells in rows.values():
        shares = [float(cells[name].removesuffix(" %")) for name in ("free", "funded", "downgraded", "refused")]
        assert sum(shares) == pytest.approx(100, abs=0.2)
    assert rows[runs[1].digest]["free"] == "100 %"
    assert rows[runs[1].digest]["refused"] == "0 %"


def test_a_slider_writes_the_address_and_the_result_follows(app: NewApp) -> None:
    shown = app().open("replay", **SMALL, run=["ceiling_tokens=2048"])
    shown.test.slider(key="replay.B.ceiling_tokens.8192").set_value(3000).run()
    shown.assert_well()
    assert shown.address.get("run", []) == ["ceiling_tokens=3000"]
    assert "B: ceiling 3,000" in run_rows(shown)
    shown.test.slider(key="replay.B.marks.600").set_value((30.0, 90.0)).run()
    assert shown.address.get("run", []) == ["ceiling_tokens=3000,wait_full_s=30,wait_floor_s=90"]


def test_a_combination_without_sense_is_refused_at_the_control_and_the_settings_stay(app: NewApp) -> None:
    shown = app().open("replay", **SMALL, run=["ceiling_tokens=1024"])
    shown.test.slider(key="replay.B.floor_tokens.8192").set_value(2000).run()
    shown.assert_well()
    assert notices(shown) == ["The settings of B stay: the floor, 2000, must not be above the ceiling, which is 1024."]
    assert shown.address.get("run", []) == ["ceiling_tokens=1024"]
    assert shown.test.slider(key="replay.B.floor_tokens.8192").value == 512
    shown.test.slider(key="replay.B.ceiling_tokens.8192").set_value(4096).run()
    assert "is already there as baseline" in notices(shown)[0]


def test_settings_are_added_up_to_four_and_removed_down_to_the_baseline_alone(app: NewApp) -> None:
    shown = app().open("replay", **SMALL)
    for expected in (4, 5):
        shown.test.button(key="replay.add").click().run()
        assert len(run_rows(shown)) == expected
    assert shown.test.button(key="replay.add").disabled
    for left in (4, 3, 2, 1):
        shown.test.button(key="replay.remove").click().run()
        shown.assert_well()
        assert len(run_rows(shown)) == left
    assert shown.address.get("run", []) == ["none"]
    assert shown.title.startswith("Of ")
    assert not shown.has_part("replay.differences")
    shown.test.run()
    assert len(run_rows(shown)) == 1, "a link to the baseline alone stays one"


def test_another_traffic_starts_with_all_of_it_once(app: NewApp) -> None:
    shown = app().open("replay", **SMALL)
    shown.test.selectbox(key="replay.traffic").set_value("burstgpt1").run()
    shown.assert_well()
    assert "burstgpt1: 400 requests, without a real date" in words(shown)
    assert not {"copies", "hours"} & set(shown.test.query_params), "another traffic is all of it once where nothing is said"


@pytest.mark.parametrize("traffic", BUNDLED)
def test_every_bundled_trace_replays(app: NewApp, traffic: str) -> None:
    shown = app().open("replay", traffic=traffic, hours="all", copies="1", keep="50", run="rule=jobs")
    shown.assert_well()
    assert errors(shown) == []
    assert "thinned to 50.0 %" in words(shown)


@pytest.mark.parametrize("fleet", ["recorded-snapshot", "recorded-production-2023-07", Drawn(workers=5, models=3).text])
def test_a_fleet_is_a_recorded_one_or_a_drawn_one(app: NewApp, fleet: str) -> None:
    shown = app().open("replay", **SMALL, fleet=fleet)
    shown.assert_well()
    assert errors(shown) == []
    assert ("parameters, synthetic: 5 workers, 3 models" in words(shown)) == fleet.startswith("drawn")


def recorded_days(path: Path) -> None:
    """Record four hours of the demo horde, of which all but one worker are gone after two."""
    store = HistoryStore(path)
    whole = DemoSource(FixedClock(AT)).load()
    for hours in range(4):
        seen = whole if hours < 2 else replace(whole, workers=whole.workers.head(1))
        store.write(replace(seen, fetched_at=AT + timedelta(hours=hours)))
    store.close()


def test_a_fleet_is_that_of_recorded_days_moved_to_the_traffic(
    app: NewApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded_days(tmp_path / "history.sqlite")
    monkeypatch.setenv("HORDE_POLICY_HISTORY", str(tmp_path / "history.sqlite"))
    shown = app().open("replay", **SMALL, fleet="history/7")
    shown.assert_well()
    assert errors(shown) == []
    assert "recorded from 2026-11-29T18:00 to 2026-11-29T21:00 UTC and moved to the time of the traffic" in words(shown)
    assert "as recorded, the last 7 days" in shown.test.selectbox(key="replay.fleet").options
    now = app().open("replay", **SMALL, fleet="source")
    nobody = {name: next(iter(run_rows(page).values()))["nobody"] for name, page in {"then": shown, "now": now}.items()}
    assert nobody["then"] != nobody["now"], "the workers of the recorded days came and went"


def test_an_empty_fleet_is_no_fault(app: NewApp) -> None:
    shown = app().open("replay", **SMALL, fleet="recorded-fresh-server")
    shown.assert_well()
    assert "0 workers, 0 models" in words(shown)
    assert {cells["nobody"] for cells in run_rows(shown).values()} == {"100 %"}


def test_hostile_names_of_models_are_only_ever_text(app: NewApp, hostile: str) -> None:
    shown = app().open("replay", **SMALL, fleet=hostile, source=hostile)
    shown.assert_well()
    markdown = [
        str(getattr(e, "value", ""))
        for kind in ("title", "header", "markdown", "caption", "warning")
        for e in shown.test.get(kind)
    ]
    figures = [figure.text for figure in shown.figures]
    for name in MODEL_NAMES:
        assert not any(name in text for text in markdown)
    for name in shown.test.selectbox(key="replay.model").options[:8]:
        shown.test.selectbox(key="replay.model").set_value(name)
    assert not any("<img" in spec or "<script" in spec for spec in figures)


def test_a_comparison_is_kept_and_opened_again(app: NewApp) -> None:
    shown = app().open("replay", **SMALL, run=["rule=old"])
    shown.test.button(key="replay.keep-this").click().run()
    shown.test.button(key="replay.remove").click().run()
    assert len(run_rows(shown)) == 1
    shown.test.button(key="replay.kept-0").click().run()
    shown.assert_well()
    assert list(run_rows(shown))[1] == "B: the previous rule"


# --- the address --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        {"run": "floor_tokens=9999"},
        {"run": "ceiling_tokens=1e309"},
        {"run": "nonsense"},
        {"run": "__class__=1,rule=old"},
        {"run": "x" * 501},
        {"fill": "max_length=larger"},
        {"traffic": "../../etc/passwd"},
        {"traffic": "nonsense"},
        {"fleet": "nobody"},
        {"hours": "48-24"},
        {"hours": "9" * 400},
        {"copies": "0"},
        {"keep": "101"},
        {"see_by": "colour"},
        {"map": "GPT-4"},
        {"traffic": "../../etc/passwd?"},
        {"traffic": "upload-00000000000000000000000000000000"},
    ],
)
def test_what_an_address_says_wrongly_is_left_out_and_said(app: NewApp, query: dict[str, str | list[str]]) -> None:
    shown = app().open("replay", **{"copies": "2", "hours": "24-26"} | query)
    shown.assert_well()
    assert len(notices(shown)) == 1
    assert "left out" in notices(shown)[0] or NOT_KEPT in notices(shown)[0]
    assert run_rows(shown), "the page shows a replay all the same"


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"fleet": "history/1", "source": "recorded-snapshot"}, "needs a history of the source"),
        ({"fleet": "history/2"}, "must be one of history/1"),
        ({"fleet": "drawn/1/2"}, "must be drawn/workers/models"),
        ({"fleet": "drawn/999999999/10/10/50/1"}, "must be 0 to 100000"),
        ({"hours": "5000-6000"}, "holds no request"),
        ({"hours": "all", "copies": "1000"}, "are more than the page's 2,000,000"),
        ({"fill": "models=mapped"}, "needs a map"),
        ({"fill": "models=mapped", "map": "GPT-4=a"}, "the trace names none"),
    ],
)
def test_what_cannot_be_replayed_is_said_in_a_sentence(app: NewApp, query: dict[str, str], sentence: str) -> None:
    shown = app().open("replay", **{**SMALL, **query})
    shown.assert_well()
    assert [sentence in text for text in errors(shown)] == [True]
    assert shown.title == "Replay"


@pytest.mark.parametrize(
    "run", ["return_after_s=1e300", "assumed_speed_tok_per_s=0.001", "wait_floor_s=90000", "request_ttl_s=0.5", "job_timeout_s=0"]
)
def test_settings_beyond_the_controls_still_open(app: NewApp, run: str) -> None:
    shown = app().open("replay", **SMALL, run=run)
    shown.assert_well()
    assert len(run_rows(shown)) == 2


# --- whose sliders are open -----------------------------------------------------------------------------------------------


def test_which_sliders_are_open_stands_in_the_address(app: NewApp) -> None:
    shown = app().open("replay", **SMALL, run=["ceiling_tokens=2048", "wait_floor_s=150"])
    chooser = shown.test.segmented_control(key="replay.edited")
    assert (chooser.value, shown.address.get("open_run")) == ("B", None)
    chooser.set_value("C").run()
    shown.assert_well()
    assert shown.address.get("open_run") == ["C"]
    other = app().open("replay", **SMALL, run=["ceiling_tokens=2048", "wait_floor_s=150"], open_run="C")
    assert other.test.segmented_control(key="replay.edited").value == "C"
    assert other.test.slider(key="replay.C.marks.600").value == (60.0, 150.0)
    other.test.button(key="replay.add").click().run()
    assert other.address.get("open_run") == ["D"]
    assert other.test.segmented_control(key="replay.edited").value == "D"
    other.test.button(key="replay.remove").click().run()
    other.assert_well()
    assert other.address.get("open_run") is None, "the first is open again, which is not written"
    assert other.test.segmented_control(key="replay.edited").value == "B"
    assert other.address.get("run", []) == ["ceiling_tokens=2048", "wait_floor_s=150"]


@pytest.mark.parametrize(("letter", "note"), [("D", "open_run='D' is left out"), ("Z", "open_run='Z' is left out")])
def test_a_link_that_opens_settings_which_are_not_there_opens_the_first_and_says_so(app: NewApp, letter: str, note: str) -> None:
    shown = app().open("replay", **SMALL, run=["ceiling_tokens=2048"], open_run=letter)
    shown.assert_well()
    assert any(note in text for text in notices(shown))
    assert shown.test.segmented_control(key="replay.edited").value == "B"


# --- how the figures are looked at ---------------------------------------------------------------------------------------


def test_how_the_figures_are_looked_at_stands_in_the_address(app: NewApp) -> None:
    shown = app().open("replay", **SMALL)
    model = shown.test.selectbox(key="replay.model").options[1]
    shown.test.segmented_control(key="replay.by").set_value("requested_size").run()
    shown.test.selectbox(key="replay.requester").set_value("registered").run()
    shown.test.selectbox(key="replay.outcome").set_value("funded").run()
    shown.test.selectbox(key="replay.model").set_value(shown.test.selectbox(key="replay.model").options[1]).run()
    letter = next(one for one in ("B", "C") if one != shown.test.segmented_control(key="replay.differences-of").value)
    shown.test.segmented_control(key="replay.differences-of").set_value(letter).run()
    shown.assert_well()
    query = {name: shown.address.get(name, [])[0] for name in ("see_by", "see_requester", "see_outcome", "see_model", "see_run")}
    assert query | {"see_model": ""} == {
        "see_by": "requested_size", "see_requester": "registered", "see_outcome": "funded", "see_model": "", "see_run": letter,
    }  # fmt: skip
    assert query["see_model"]
    assert query["see_model"] in model
    other = app().open("replay", **SMALL, **query)
    other.assert_well()
    for key in ("replay.requester", "replay.outcome", "replay.model"):
        assert other.test.selectbox(key=key).value == shown.test.selectbox(key=key).value
    assert other.test.segmented_control(key="replay.by").value == "requested_size"
    assert other.test.segmented_control(key="replay.differences-of").value == letter


def test_a_model_that_nobody_asks_for_is_said_and_all_are_shown(app: NewApp) -> None:
    shown = app().open("replay", **SMALL, see_model="<b>nobody</b>")
    shown.assert_well()
    assert shown.test.selectbox(key="replay.model").value == "all models"
    assert left_out(shown) == [
        "The link's see_model='<b>nobody</b>' is left out: it must be a model that a request of this replay asks for."
    ]


@pytest.mark.parametrize("name", ["see_run", "open_run"])
def test_settings_of_a_link_that_are_not_compared_are_said(app: NewApp, name: str) -> None:
    shown = app().open("replay", **SMALL, run="rule=old", **{name: "E"})
    shown.assert_well()
    assert left_out(shown) == [f"The link's {name}='E' is left out: it must be the letter of settings that are compared: B."]
    shown = app().open("replay", **SMALL, run="rule=old", **{name: "B"})
    assert left_out(shown) == []


# --- models by a map, and ServeGen ------------------------------------------------------------------------------------------


def test_a_traces_own_models_are_mapped_to_the_fleets_and_the_link_holds_the_map(app: NewApp) -> None:
    shown = app().open("replay", traffic="burstgpt1")
    shown.test.selectbox(key="replay.fill.models").set_value("mapped")
    first, second = str(shown.test.text_area(key="replay.fill.map").value).splitlines()
    assert first.startswith("ChatGPT=")
    assert second.startswith("GPT-4="), "the trace's models, most requests first"
    served = [line.partition("=")[2] for line in (first, second)]
    shown.test.text_area(key="replay.fill.map").set_value(f"ChatGPT = {served[0]} | {served[1]}\nGPT-4 = {served[1]}")
    shown.test.button(key="FormSubmitter:replay.fill.form-Apply").click().run()
    shown.assert_well()
    assert errors(shown) == []
    assert shown.address.get("map", []) == [f"ChatGPT={served[0]}|{served[1]}", f"GPT-4={served[1]}"]
    assert f"ChatGPT as {served[0]} or {served[1]}; GPT-4 as {served[1]}" in words(shown)
    other = app().open("replay", traffic="burstgpt1", fill=shown.address.get("fill", [])[0], map=shown.address.get("map", []))
    assert run_rows(other) == run_rows(shown)


def test_a_map_that_is_none_leaves_the_rule_as_it_was(app: NewApp) -> None:
    shown = app().open("replay", traffic="burstgpt1")
    shown.test.selectbox(key="replay.fill.models").set_value("mapped")
    shown.test.text_area(key="replay.fill.map").set_value("GPT-4")
    shown.test.button(key="FormSubmitter:replay.fill.form-Apply").click().run()
    shown.assert_well()
    assert any("The fill rule stays: map of models" in notice for notice in notices(shown))
    assert "map" not in shown.test.query_params


def test_servegens_rates_and_sizes_are_drawn_and_said_to_be_synthetic(app: NewApp) -> None:
    traces = Path(__file__).parents[2] / "data" / "traces"
    rates, sizes = (traces / f"servegen_deepseek-r1_{name}" for name in ("chunk-35-trace.csv", "chunk-52-dataset.json"))
    shown = app().open("replay", **SMALL)
    shown.test.text_input(key="replay.drawn-hours").set_value("0-0.05").run()
    shown.test.file_uploader(key="replay.upload").upload(rates.name, rates.read_bytes(), "text/csv").run()
    shown.assert_well()
    assert ["sizes" in text and "is missing" in text for text in errors(shown)] == [True], (
        "one file alone is refused in a sentence"
    )
    shown.test.file_uploader(key="replay.sizes").upload(sizes.name, sizes.read_bytes(), "application/json").run()
    shown.assert_well()
    assert errors(shown) == []
    assert "servegen_deepseek-r1_seed1" in words(shown)
    assert "drawn, synthetic" in words(shown)


# --- uploads ------------------------------------------------------------------------------------------------------------


def csv(*rows: str, head: str = "created,models,requester,max_length") -> bytes:
    return "\n".join([head, *rows, ""]).encode()


GOOD_ROWS = [f"{(AT + timedelta(seconds=7 * n)).isoformat()},,anonymous,{80 + n}" for n in range(50)]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (csv("2026-11-29T18:00:00Z,1", head="when,size"), "are no columns of a supported format"),
        (csv("2026-11-29T18:00:00Z,m,anonymous,80", head="time,models,requester,max_length"), "our own schema has at least"),
        (csv("2026-11-29T18:00:00Z,m,anonymous,80", head="time,models,requester,max_length"), "0 decisions are counted in it"),
        (csv("2026-11-29T18:00:00Z;80", head="created;max_length"), "separated by ';', and must be by commas"),
        (csv("2026-11-29T18:00:00Z,,anonymous,many"), "column max_length: 'many'"),
        (csv("2026-11-29T18:00:00,,anonymous,80"), "time zone"),
        (csv("2026-11-29T18:00:00Z,,anonymous,-80"), "column max_length: -80"),
        (csv("2026-11-29T18:00:00Z,,anonymous,99999"), "must be at most 16384"),
        (csv("2026-11-29T18:00:00Z,,somebody,80"), "column requester: 'somebody'"),
        (csv("2026-11-29T18:00:00Z,", head="created,models"), "must have max_length, or output_tokens"),
        (csv(), "there is nothing to replay"),
        (b"", "trace"),
        (b"PAR1garbage", "trace"),
        (b"\x00\xff\x13binary", "trace"),
    ],
)
def test_a_bad_upload_is_refused_in_a_sentence_and_the_page_stays(app: NewApp, content: bytes, sentence: str) -> None:
    shown = app().open("replay", **SMALL)
    shown.test.file_uploader(key="replay.upload").upload("log.csv", content, "text/csv").run()
    shown.assert_well()
    assert len(errors(shown)) == 1
    assert sentence in errors(shown)[0]
    assert len(run_rows(shown)) == 3, "what was shown before stays"


def uploaded(new_app: NewApp, name: str, content: bytes) -> App:
    shown = new_app().open("replay", **SMALL)
    shown.test.file_uploader(key="replay.upload").upload(name, content, "text/csv").run()
    shown.assert_well()
    assert errors(shown) == []
    return shown


def test_an_upload_is_replayed_whole_and_its_link_works_while_it_is_kept(app: NewApp) -> None:
    shown = uploaded(app, "<b>my log</b>.csv", csv(*GOOD_ROWS))
    assert ": 50 requests" in words(shown)
    key = shown.address.get("traffic", [])[0]
    assert key.startswith("upload-")
    other = app().open("replay", traffic=key, hours="all", copies="1")
    assert ": 50 requests" in words(other)
    assert "<b>" not in words(other)


@pytest.mark.parametrize(("unserved", "warned"), [(1, False), (51, True)])
def test_models_that_no_worker_serves_are_told_and_warned_of_where_they_are_most(
    app: NewApp, unserved: int, warned: bool
) -> None:
    lost = [f"{AT.isoformat()},nobody has it,anonymous,{80 + n}" for n in range(unserved)]
    shown = uploaded(app, "log.csv", csv(*lost, *GOOD_ROWS))
    sentence = f"No worker of this fleet serves the models of {unserved} of {50 + unserved} requests"
    captions = [str(caption.value).replace("\\", "") for caption in shown.test.caption]
    assert any(sentence in text for text in captions) != warned
    assert any(sentence in notice for notice in notices(shown)) == warned


def test_unsorted_and_doubled_files_work_and_say_so(app: NewApp) -> None:
    unsorted = uploaded(app, "log.csv", csv(*reversed(GOOD_ROWS)))
    assert any("out of time order" in str(text.value) for text in unsorted.test.text)
    assert ["out of time order" in notice for notice in notices(unsorted)] == [True]
    doubled = uploaded(app, "log.csv", csv(*GOOD_ROWS, *GOOD_ROWS))
    assert any("its load counts twice" in notice for notice in notices(doubled))
    assert any("the file was doubled" in str(text.value) for text in doubled.test.text)


def test_json_lines_parquet_and_a_public_format_are_told_by_their_content(app: NewApp) -> None:
    rows = pl.DataFrame(
        {"created": [AT] * 3, "models": [["a"]] * 3, "requester": ["anonymous"] * 3, "max_length": [80, 512, 4096]}
    )
    packed = io.BytesIO()
    rows.write_parquet(packed)
    lines = b"".join(b'{"created": "2026-11-29T18:00:00Z", "models": [], "max_length": 80}\n' for _ in range(4))
    published = (Path(__file__).parents[2] / "data" / "traces" / "azure2023_conv.head300.csv").read_bytes()
    for content, requests in ((packed.getvalue(), 3), (lines, 4), (published, 300)):
        assert f": {requests} requests" in words(uploaded(app, "log", content))


def test_exported_counts_are_rebuilt_into_requests_and_another_seed_draws_others(app: NewApp) -> None:
    export = (WEEK / "process_a.otlp.jsonl.gz").read_bytes()
    shown = uploaded(app, "<i>export</i>", export)
    assert "drawn, synthetic, a reconstruction" in words(shown)
    assert any("rebuilt from counts with seed 1" in str(text.value) for text in shown.test.text)
    first = shown.address.get("traffic", [])
    shown.test.number_input(key="replay.rebuilt-with").set_value(2).run()
    shown.assert_well()
    assert shown.address.get("traffic", []) != first
    assert any("rebuilt from counts with seed 2" in str(text.value) for text in shown.test.text)


def test_a_broken_export_is_refused_with_what_is_wrong_with_it(app: NewApp) -> None:
    export = gzip.compress(b'{"resourceMetrics": 5}\n' * 9)
    shown = app().open("replay", **SMALL)
    shown.test.file_uploader(key="replay.upload").upload("week.gz", export, "application/gzip").run()
    shown.assert_well()
    assert len(errors(shown)) == 1
    assert "nor can it be read as exported counts" in errors(shown)[0]
    assert len(run_rows(shown)) == 3, "what was shown before stays"


def test_recorded_outcomes_are_compared_with(app: NewApp) -> None:
    rows = [f"{row},{'free' if n % 2 else 'refused'}" for n, row in enumerate(GOOD_ROWS)]
    shown = uploaded(app, "log.csv", csv(*rows, head="created,models,requester,max_length,recorded_outcome"))
    pairs = [row["cells"] for row in shown.part("replay.agreement")["rows"] if row["cells"]["run"] == "baseline"]
    assert sum(int(cells["requests"]) for cells in pairs) == 50
    assert {(cells["recorded"], cells["replayed"]) for cells in pairs} == {("free", "free"), ("refused", "free")}


def test_more_requests_than_a_page_replays_begin_with_the_hours_that_fit(app: NewApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("horde_policy.ui.replay_inputs.MOST_REQUESTS", 30)
    rows = [f"{(AT + timedelta(minutes=7 * n)).isoformat()},,anonymous,{80 + n}" for n in range(50)]
    shown = app().open("replay", traffic="mooncake_conversation", hours="0-0.002", run="none")
    shown.test.file_uploader(key="replay.upload").upload("log.csv", csv(*rows), "text/csv").run()
    shown.assert_well()
    assert errors(shown) == []
    assert shown.address.get("hours", []) == ["0-3"]
    assert any("holds 50 requests" in notice for notice in notices(shown))


def test_the_oldest_uploads_are_dropped() -> None:
    library = Library()
    keys = [library.add("log.csv", csv(*GOOD_ROWS[: n + 1]))[0] for n in range(8)]
    assert len(library.uploads) == 6
    with pytest.raises(InputError, match=NOT_KEPT):
        library.trace(keys[0])
    assert library.trace(keys[-1]).frame.height == 8


def test_a_drawn_fleet_is_written_and_read_the_same() -> None:
    wanted = Drawn(workers=7, models=2, speed_median_tok_per_s=1.5, speed_p95_tok_per_s=2.25, seed=9)
    assert drawn_of(wanted.text) == wanted
    assert drawn_of("source") is None
    with pytest.raises(InputError, match="fleet"):
        drawn_of("drawn/a/b/c/d/e")


# --- the desk -----------------------------------------------------------------------------------------------------------


def small_world() -> tuple[Traffic, Fleet]:
    traffic = pl.DataFrame({"created": [AT] * 3, "models": [["m"]] * 3, "requester": ["anonymous"] * 3, "max_length": [80] * 3})
    fleet = pl.DataFrame(
        {
            "worker_id": ["w"],
            "online_from": [AT],
            "models": [["m"]],
            "max_length": [512],
            "max_context_length": [4096],
            "speed": [5.0],
        }
    )
    return Traffic(frame=traffic, stamp={}), Fleet(frame=fleet, stamp={})


def test_inputs_and_runs_are_made_once_for_all_viewers() -> None:
    desk, made = Desk(), []

    def make() -> tuple[Traffic, Fleet]:
        made.append(1)
        return small_world()

    runs, _ = runs_of(["rule=old"], AllowanceSettings())
    jobs = [desk.ask(viewer, "key", make, runs) for viewer in ("a", "b")]
    assert desk.ask("a", "key", make, runs) is jobs[0]
    for job in jobs:
        assert job.done.wait(120)
    results = [job.result for job in jobs]
    assert results[0] is not None
    assert results[1] is not None
    later = desk.ask("c", "key", make, runs[:1])
    assert later.done.wait(60)
    assert later.result is not None
    assert later.result.runs[0][1] is results[1].runs[0][1] or later.result.runs[0][1] is results[0].runs[0][1]
    assert 1 <= len(made) <= 2, "two that start together may both make them"
    assert results[0].runs[0][1].sent["status"].to_list() == ["completed"] * 3


def test_a_viewer_who_asks_for_something_else_cancels_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    desk, started, stopped = Desk(), threading.Event(), threading.Event()

    def endless(world: object, settings: object, *, progress: object, cancel: Callable[[], bool]) -> pl.DataFrame:
        started.set()
        while not cancel():
            stopped.wait(0.01)
        stopped.set()
        raise ReplayCancelled("stopped")

    desk.warm.set()
    monkeypatch.setattr(replay_desk, "run_engine", endless)
    first = desk.ask("a", "key", small_world, (baseline_of(AllowanceSettings()),))
    assert started.wait(60)
    desk.ask("a", "other", small_world, (baseline_of(AllowanceSettings()),))
    assert first.done.wait(60)
    assert stopped.is_set()
    assert first.result is None
    assert first.error is None
    desk.forget("a")


def test_a_replay_that_was_cancelled_leaves_nothing_and_can_be_asked_for_again(
    app: NewApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(world: object, settings: object, *, progress: Callable[[float], None], cancel: Callable[[], bool]) -> pl.DataFrame:
        progress(0.5)
        for job in replay_desk.desk().jobs.values():  # as the button does while the page waits
            job.cancelled.set()
        while not cancel():
            pass
        raise ReplayCancelled("stopped")

    monkeypatch.setattr(replay_page, "WAIT_S", 0.2)
    monkeypatch.setattr(replay_desk, "run_engine", slow)
    shown = app().open("replay", **SMALL)
    shown.assert_well()
    assert shown.title == "Replay"
    assert [info.value for info in shown.test.info] == ["The replay was cancelled; nothing of it is kept."]
    monkeypatch.undo()
    monkeypatch.setattr(replay_page, "WAIT_S", 120.0)
    shown.test.button(key="replay.again").click().run()
    assert run_rows(shown)


def test_a_fault_of_the_program_is_said_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()

    def broken() -> tuple[Traffic, Fleet]:
        raise RuntimeError("a fault")

    job = desk.ask("a", "key", broken, (baseline_of(AllowanceSettings()),))
    assert job.done.wait(60)
    desk.queue.shutdown(wait=True)
    assert job.error is not None
    assert "a fault of the program" in job.error
    assert "a replay failed" in caplog.text


@pytest.mark.parametrize(
    ("query", "label", "source"),
    [
        ({}, "demo, synthetic data", "Demo horde"),
        ({"source": "recorded-snapshot"}, "recorded, synthetic data", "Busy test server"),
        ({"fleet": "recorded-production-2023-07"}, "recorded", "Public AI Horde, text workers of July 2023"),
    ],
)
def test_the_page_says_where_its_figures_are_from_and_has_no_timer(
    app: NewApp, query: dict[str, str], label: str, source: str
) -> None:
    shown = app().open("replay", **SMALL, **query)
    shown.assert_well()
    status = shown.part("shared.status")
    assert (status["label"], status["source"], status["ticking"], status["note"]) == (label, source, False, None)


def test_a_long_name_of_a_fleet_has_its_room_and_beyond_that_its_whole_in_the_help(
    app: NewApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "recorded"
    shutil.copytree(ROOT / "data" / "recorded" / "calm_snapshot", folder)
    about = json.loads((folder / "about.json").read_text("utf-8"))
    title = "A calm evening of the horde, *recorded* by two operators who each took their own half of it"
    (folder / "about.json").write_text(json.dumps(about | {"title": title}), "utf-8")
    monkeypatch.setenv("HORDE_POLICY_RECORDED", str(folder))
    shown = app().open("replay", **SMALL)
    chooser = shown.test.selectbox(key="replay.fleet")
    key = next(name for name in chooser.options if "A calm evening" in name)
    assert "…" in key
    assert key.endswith("half of it")
    named = app().open("replay", **SMALL, fleet="recorded-recorded").test.selectbox(key="replay.fleet")
    assert "\\*recorded\\* by two operators who each took" in named.proto.help


def test_while_a_replay_is_made_the_page_has_its_name_for_a_title(app: NewApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_page, "WAIT_S", 0.0)
    monkeypatch.setattr(replay_page, "LOOK_EVERY_S", 0.01)
    titles: list[str] = []

    def noted(sentence: str) -> None:
        titles.append(sentence)
        st.title(sentence)

    monkeypatch.setattr(replay_page, "show_headline", noted)
    shown = app().open("replay", **SMALL)
    assert titles[0] == "Replay"
    assert [str(title.value) for title in shown.test.title] == titles[1:], "and one answer in its place"
