"""The sources page: every source and how it stands, problems, the history; a failing source does not hide it."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import streamlit as st

from horde_policy.clock import FixedClock
from horde_policy.history.kept import keep_samples
from horde_policy.history.store import HistoryStore
from horde_policy.history.tables import EVENTS
from horde_policy.imports import ExportFile, read_samples
from horde_policy.ui import live, replay_desk, review_library, sources_page, uploads
from horde_policy.ui import sweep_desk as sweeps
from horde_policy.ui.budget_desk import budget_desk
from horde_policy.ui.sweep_desk import DEMO_FILE, sweep_desk
from horde_policy.views.uploads import prices_understood, sweep_understood, trace_understood
from tests.make_hostile import MODEL_NAMES, WORKER_NAMES
from tests.pages.conftest import ROOT, App, MadeHistory
from tests.replaying_server import ReplayingServer
from tests.unit.imports.writing import PLAIN

NewApp = Callable[[], App]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FixedClock:
    fixed = FixedClock(datetime(2026, 11, 29, 12, 4, tzinfo=UTC))
    monkeypatch.setattr(live, "SystemClock", lambda: fixed)
    return fixed


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ReplayingServer]:
    with ReplayingServer(ROOT / "data" / "recorded" / "snapshot") as replaying:
        monkeypatch.setenv("HORDE_URL", replaying.url)
        yield replaying


def sources_of(shown: App) -> dict[str, dict[str, object]]:
    return {row["id"].removeprefix("source "): row["cells"] for row in shown.part("sources.list")["rows"]}


def test_only_what_was_chosen_was_asked(app: NewApp) -> None:
    shown = app().open("sources")
    shown.assert_well()
    cells = sources_of(shown)
    assert cells["demo"]["state"] == "up to date"
    assert {cells[key]["state"] for key in cells if key != "demo"} == {"not asked"}
    assert set(cells["aihorde"]) == {"source", "kind", "state"}, "who was not asked has left nothing unsaid"
    assert list(live.pollers().started()) == ["demo"]
    assert shown.title.endswith("sources of a horde can be chosen, 1 in use")


def test_a_live_source_has_its_age_its_next_time_and_what_is_left_of_its_limit(
    app: NewApp, server: ReplayingServer, clock: FixedClock
) -> None:
    app().open("overview", source="horde")
    clock.advance(7)
    cells = sources_of(app().open("sources"))["horde"]
    assert cells["state"] == "up to date"
    assert cells["age"] == "29 Nov 2026 12:04:00 UTC"
    due = live.pollers().started()["horde"].peek().next_due
    assert due is not None
    assert cells["due"] == f"{due:%H:%M:%S} UTC", "an instant: what is left until it would stand still"
    limits = live.pollers().started()["horde"].source.client.rate_limits()  # type: ignore[attr-defined]
    left = [limit.remaining for limit in limits.values() if limit.remaining is not None]
    assert str(cells["limit"]).split(" ")[0] == (f"{min(left):,}" if left else "—")


@pytest.mark.parametrize(("refresh", "every"), [("off", None), ("30", sources_page.TABLE_EVERY_S)])
def test_the_table_keeps_up_with_the_status_line_unless_refresh_is_off(
    app: NewApp, monkeypatch: pytest.MonkeyPatch, refresh: str, every: int | None
) -> None:
    timers: dict[str, object] = {}
    plain = st.fragment

    def noted(part: Callable[..., None], **options: Any) -> Callable[..., None]:
        timers[part.__name__] = options.get("run_every")
        made: Callable[..., None] = plain(part, **options)
        return made

    monkeypatch.setattr(st, "fragment", noted)
    app().open("sources", refresh=refresh).assert_well()
    assert timers["_draw_sources"] == every


def test_a_failing_source_is_named_with_its_trouble_and_the_page_stands(
    app: NewApp, server: ReplayingServer, clock: FixedClock
) -> None:
    server.fail("status", status=503)
    shown = app().open("sources", source="horde")
    shown.assert_well()
    cells = sources_of(shown)["horde"]
    assert cells["state"] == "failing"
    assert "503" in cells["trouble"]["text"]  # type: ignore[index]
    assert shown.title.endswith("1 does not give new figures")
    assert shown.has_part("sources.problems")


def test_problems_of_the_data_are_listed_and_hostile_text_stays_text(
    app: NewApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(ROOT / "tests" / "data" / "hostile", folder)
    file = folder / "models_text.json"
    answer = json.loads(file.read_text(encoding="utf-8"))
    rows = answer["response"]["body"]
    for row in rows:
        row["queued"] = "![lots](http://192.0.2.1/x.png)"
    file.write_text(json.dumps(answer), encoding="utf-8")
    monkeypatch.setenv("HORDE_POLICY_RECORDED", str(folder))
    shown = app().open("sources", source="recorded-broken")
    shown.assert_well()
    listed = shown.part("sources.problems")["rows"]
    snapshot = live.pollers().started()["recorded-broken"].peek().snapshot
    assert snapshot is not None
    assert len(listed) == len(snapshot.problems) > 0
    markdown = [str(getattr(e, "value", "")) for kind in ("title", "header", "markdown", "caption") for e in shown.test.get(kind)]
    assert not any(name in text for name in (*MODEL_NAMES, *WORKER_NAMES, "![lots]") for text in markdown)


def test_what_is_wrong_with_the_configuration_is_listed(app: NewApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORDE_URL", "ftp://nowhere")
    shown = app().open("sources")
    shown.assert_well()
    assert shown.part("sources.problems")["rows"][0]["cells"]["source"] == {"text": "configuration"}


def test_the_history_is_told_with_its_recorder_or_what_it_would_need(
    app: NewApp, made_history: MadeHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = app().open("sources")
    shown.assert_well()
    cells = shown.rows("sources.recorded")[made_history.source]["cells"]
    assert cells["polls"] == str(len(made_history.polls))
    assert cells["gaps"]["text"] == "1"
    assert cells["state"]["text"] == "Not recorded here: its polls were imported"
    assert not any("metrics of" in str(caption.value) for caption in shown.test.caption)
    assert not cells["state"].get("sub")
    store = HistoryStore(made_history.store, durable=False)
    with store.writing() as connection:
        told = {"kind": "webhook_failed", "text": "hooks.example <b>\u202e answers 503; it is tried again"}
        connection.execute(EVENTS.insert().values(source=store.source_id(connection, made_history.source), at_us=0, **told))
    text = 'horde_text_free_allowance_decisions{horde_outcome="free"} 5 1790000000000\n'
    keep_samples(store, read_samples(text.encode())[0], name="*mimir*")
    store.close()
    kept = app().open("sources")
    kept.assert_well()
    below = kept.rows("sources.recorded")[made_history.source]["cells"]["state"]["sub"]
    assert below.startswith("The webhook failed at 1970-01-01 00:00:00 UTC: hooks.example <b>")
    assert below.endswith(" answers 503; it is tried again")
    assert "\u202e" not in below
    (said,) = [str(caption.value) for caption in kept.test.caption if "metrics of" in str(caption.value)]
    assert said.startswith("It keeps 1 day of metrics of \\*mimir\\*\\, 21 Sep 2026 ")
    monkeypatch.delenv("HORDE_POLICY_HISTORY")
    without = app().open("sources")
    without.assert_well()
    assert not without.has_part("sources.recorded")
    assert any("record" in str(info.value) for info in without.test.info)
    assert others_of(without)["history"]["trouble"] == {"text": "HORDE_POLICY_HISTORY would name your own."}, "said once in full"
    assert any("seven synthetic days" in str(caption.value) for caption in without.test.caption)


def others_of(shown: App) -> dict[str, dict[str, object]]:
    return {
        str(row["cells"]["kind"]): row["cells"] | {"out": row.get("out", False)} for row in shown.part("sources.others")["rows"]
    }


def test_every_kind_of_source_is_there_without_anything_configured(app: NewApp) -> None:
    shown = app().open("sources")
    shown.assert_well()
    found = others_of(shown)
    assert list(found) == ["exports, synthetic", "Prometheus", "history", "ledger, synthetic", "sweeps"]
    assert found["Prometheus"]["state"] == {"text": "not configured"}
    assert "HORDE_POLICY_PROMETHEUS_URL" in str(found["Prometheus"]["trouble"])
    assert not any(cells["out"] for cells in found.values()), "what nobody has configured is nobody's trouble"


def test_sweeps_are_those_of_this_installation_and_not_of_another_of_the_same_user(
    app: NewApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mine = sweeps.sweeps_folder()
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(sweeps, "BUNDLED_FOLDER", tmp_path / "another" / "data")
        theirs = sweeps.sweeps_folder()
    assert mine.parent == theirs.parent == tmp_path
    assert mine != theirs
    theirs.mkdir()
    (theirs / "run-1.parquet").write_bytes(b"")
    assert others_of(app().open("sources"))["sweeps"]["state"] == {"text": "nothing is kept yet"}


def test_what_is_configured_and_is_not_well_is_said_without_its_place_or_its_password(
    app: NewApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("HORDE_POLICY_EXPORTS", str(tmp_path / "empty"))
    monkeypatch.setenv("HORDE_POLICY_PROMETHEUS_URL", "ftp://nowhere")
    monkeypatch.setenv("HORDE_POLICY_HISTORY", str(tmp_path / "history.sqlite"))
    monkeypatch.setenv("HORDE_POLICY_LEDGER", str(tmp_path / "gone.sqlite"))
    monkeypatch.setenv("HORDE_POLICY_SWEEPS", str(tmp_path / "sweeps"))
    shown = app().open("sources")
    shown.assert_well()
    found = others_of(shown)
    assert {kind for kind, cells in found.items() if cells["out"]} == {"exports", "Prometheus", "history", "ledger"}
    assert all(cells["trouble"]["text"] for cells in found.values() if cells["out"])  # type: ignore[index]
    assert str(tmp_path) not in json.dumps([found[kind] for kind in ("exports", "ledger", "sweeps")])
    monkeypatch.setenv("HORDE_POLICY_LEDGER", "postgresql://me:hunter2@host/ledger")
    found = others_of(app().open("sources"))
    assert found["ledger"]["state"] == {"text": "configured; Budget asks it"}
    assert "hunter2" not in json.dumps(found)


def test_a_folder_that_cannot_be_used_is_named_by_its_last_part_and_on_sources_alone(
    app: NewApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / "gone", tmp_path / "away"]
    monkeypatch.setenv("HORDE_POLICY_RECORDED", os.pathsep.join(map(str, folders)))
    for page in ("overview", "sources"):
        shown = app().open(page)
        shown.assert_well()
        (banner,) = [text.replace("\\", "").replace("\u2060", "") for text in shown.warnings]
        assert "A folder of HORDE_POLICY_RECORDED cannot be used; the page Sources says which one" in banner
        assert "gone" not in banner
    listed = json.dumps(shown.part("sources.problems"))
    assert "'gone' holds no recorded folder" in listed
    assert str(tmp_path) not in listed


# --- uploads --------------------------------------------------------------------------------------------------------------------

REQUESTS = b"created,model,max_tokens,output_tokens,duration_s,input_tokens\n2026-11-29T12:00:00Z,large,80,40,1.5,100\n"
LOG = b"created,max_length\n2026-11-29T12:00:00Z,80\n"
PRICES = (ROOT / "data" / "prices" / "example-hosted.toml").read_bytes()


def kept_uploads() -> dict[uploads.Upload, Callable[[], bool]]:
    """Upload one file of every kind that a page takes, and return each with whether it is still kept."""
    budget, sweeps, replay = budget_desk(), sweep_desk(), replay_desk.desk().library
    exports, _ = review_library.library().add([ExportFile("a.prom", PLAIN)])
    requests, prices = budget.add_requests("r.csv", REQUESTS), budget.add_prices(PRICES)
    sweep, (log, trace) = sweeps.add("s.parquet", DEMO_FILE.read_bytes()), replay.add("log.csv", LOG)
    found = sweeps.sweep(sweep)
    assert found is not None
    return {
        uploads.Upload(exports, "exports", "a.prom", "", ""): lambda: review_library.library().keeps(exports),
        uploads.Upload(log, "traffic", "log.csv", *trace_understood(trace)): lambda: log in replay.kept(),
        uploads.Upload(requests, "requests", "r.csv", *budget.understood(requests)): lambda: requests in budget.files,
        uploads.Upload(prices, "prices", "p.toml", *prices_understood(budget.table(prices))): lambda: prices in budget.tables,
        uploads.Upload(sweep, "sweep", "s.parquet", *sweep_understood(found)): lambda: sweeps.sweep(sweep) is not None,
    }


def test_an_upload_of_every_kind_is_listed_with_what_it_was_understood_as_and_is_forgotten(app: NewApp) -> None:
    held = kept_uploads()
    keys = {upload.kind: upload.key for upload in held}
    assert set(keys) == set(uploads.KINDS), "every kind of upload"
    shown = app()
    shown.test.session_state["uploads.held"] = uploads.Held(list(held))
    named = {"data": keys["exports"], "traffic": keys["traffic"], "sweep": keys["sweep"], "budget_requests": keys["requests"]}
    shown.open("sources", **named, budget_prices=keys["prices"])
    shown.assert_well()
    told = {name: row["cells"]["understood"]["text"] for name, row in shown.rows("sources.uploads").items()}
    assert told["r.csv"] == "requests with their sizes: 1 request"
    assert told["p.toml"].startswith("price table example-hosted: ")
    assert told["s.parquet"].startswith("sweep: 72 points, ")
    assert told["log.csv"].endswith("1 requests of 1 rows")
    for upload, is_kept in held.items():
        assert is_kept()
        shown.test.button(key=f"sources.forget-{upload.kind}-{upload.key}").click().run()
        assert not is_kept(), upload.kind
    shown.assert_well()
    assert not shown.rows("sources.uploads")
    assert shown.address == {}, "no parameter names what is gone"


def test_a_file_for_two_pages_is_two_uploads(app: NewApp) -> None:
    budget, replay = budget_desk(), replay_desk.desk().library
    key = replay.add("log.csv", LOG)[0]
    assert budget.add_requests("log.csv", LOG) == key
    shown = app()
    shown.test.session_state["uploads.held"] = uploads.Held(
        [uploads.Upload(key, kind, "log.csv", "", "") for kind in ("traffic", "requests")]
    )
    shown.open("sources", traffic=key, budget_requests=key).assert_well()
    shown.test.button(key=f"sources.forget-requests-{key}").click().run()
    assert shown.address == {"traffic": [key]}
    assert key in replay.kept()
    assert key not in budget.library.kept()


def test_what_one_viewer_forgets_stays_for_another_who_has_uploaded_it_too(app: NewApp) -> None:
    replay = replay_desk.desk().library
    key = replay.add("log.csv", LOG)[0]
    first, second = app(), app()
    for shown in (first, second):
        shown.test.session_state["uploads.held"] = uploads.Held([uploads.Upload(key, "traffic", "log.csv", "", "")])
        shown.open("sources").assert_well()
    first.test.button(key=f"sources.forget-traffic-{key}").click().run()
    assert not first.rows("sources.uploads")
    assert key in replay.kept(), "the other still has it"
    assert list(second.open("sources").rows("sources.uploads")) == ["log.csv"]
    second.test.button(key=f"sources.forget-traffic-{key}").click().run()
    assert key not in replay.kept()


def test_a_session_that_has_ended_keeps_nothing_from_being_forgotten(app: NewApp) -> None:
    replay = replay_desk.desk().library
    key = replay.add("log.csv", LOG)[0]
    upload = uploads.Upload(key, "traffic", "log.csv", "", "")
    gone = uploads.Held([upload])
    uploads.sessions().held.add(gone)
    shown = app()
    shown.test.session_state["uploads.held"] = uploads.Held([upload])
    shown.open("sources").assert_well()
    del gone
    shown.test.button(key=f"sources.forget-traffic-{key}").click().run()
    assert key not in replay.kept()
