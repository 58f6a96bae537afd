"""The model page in full: what is tried, its outcome and its refusals; other rules, sentences to copy."""

from collections.abc import Callable

import pytest

from horde_policy.board.measure import measure
from horde_policy.board.moves import Move, moved
from horde_policy.board.pool import Fleet
from horde_policy.settings import AllowanceSettings
from horde_policy.sources.demo import DEMO_FOLDER
from horde_policy.sources.recorded import load_recorded
from horde_policy.ui.what_if import FOLD
from tests.pages.conftest import ROOT, App

NewApp = Callable[[], App]
SETTINGS = AllowanceSettings()
FERNERY = "koboldcpp/Fernery-24B-v1.1"
FLEET = Fleet.of(load_recorded(DEMO_FOLDER), SETTINGS)


def text_of(shown: App) -> str:
    kinds = ("text", "caption", "code", "markdown")
    return plain("\n".join(str(getattr(element, "value", "")) for kind in kinds for element in shown.test.get(kind)))


def plain(text: str) -> str:
    return text.replace("\\", "").replace("\u2060", "")


def compared(shown: App, figure: str) -> list[str]:
    """Return a figure now, and then if something is tried."""
    cells = [row["cells"][figure] for row in shown.rows("model.compared").values()]
    return [cell if isinstance(cell, str) else cell.get("text", cell.get("state")) for cell in cells]


def trying(shown: App) -> App:
    """Open the fold of what can be tried."""
    shown.test.session_state[FOLD] = True
    shown.test.run()
    return shown


def test_what_can_be_tried_is_folded_and_costs_nothing_until_it_is_opened(app: NewApp) -> None:
    shown = app().open("model", m=FERNERY)
    shown.assert_well()
    assert "model.queue_by" not in shown.test.session_state
    assert "Back at 4,096 tokens" in text_of(shown), "the way back stands without it"
    linked = app().open("model", m=FERNERY, queue_by="100")
    assert linked.test.select_slider(key="model.queue_by").value == 100, "a link that tries something opens it"
    linked.test.session_state[FOLD] = False
    linked.test.run()
    linked.assert_well()
    assert "With 100 tokens more queued" in text_of(linked), "closed again, what is tried is still said"
    assert linked.address["queue_by"] == ["100"]


def test_nothing_is_tried_at_first(app: NewApp) -> None:
    shown = trying(app().open("model", m=FERNERY))
    shown.assert_well()
    assert list(shown.rows("model.compared")) == ["Now"]
    assert shown.test.button(key="model.nothing_tried").disabled
    assert "Nothing is tried" in text_of(shown)


def test_a_longer_queue_moves_the_figures_as_the_board_says_and_stands_in_the_address(app: NewApp) -> None:
    shown = trying(app().open("model", m=FERNERY))
    shown.test.select_slider(key="model.queue_by").set_value(10_000).run()
    shown.assert_well()
    then = moved(FLEET, (FERNERY,), 80, Move(queue_change_tokens=10_000))
    now = measure(FLEET, (FERNERY,), 80)
    assert now.allowance_tokens != then.allowance_tokens
    assert compared(shown, "allowance") == [f"{now.allowance_tokens:,}", f"{then.allowance_tokens:,}"]
    assert shown.test.query_params["queue_by"] in ("10000", ["10000"])
    assert "With 10,000 tokens more queued, the allowance falls" in text_of(shown)
    shown.test.button(key="model.nothing_tried").click().run()
    assert "queue_by" not in shown.test.query_params
    assert shown.test.select_slider(key="model.queue_by").value == 0


def test_every_worker_lost_leaves_no_eligible_worker(app: NewApp) -> None:
    eligible = [w.worker_id for w in FLEET.pool((FERNERY,), 2048).eligible(80)]
    shown = app().open("model", m=FERNERY, lost=[*eligible, "gone-worker"])
    shown.assert_well()
    assert compared(shown, "state")[1] == "no_worker"
    assert compared(shown, "workers")[1] == "0"
    assert [note.value.replace("\\", "").replace("\N{WORD JOINER}", "") for note in shown.test.warning] == [
        "The link's lost='gone-worker' is left out: no worker of the list has that id; it may have left."
    ]
    assert shown.test.multiselect(key="model.lost").value == [*eligible, "gone-worker"]


def test_a_link_that_names_nobody_tries_nothing_and_the_page_says_so(app: NewApp) -> None:
    stranger = next(w.worker_id for w in FLEET.workers if FERNERY not in (w.models or ()))
    shown = trying(app().open("model", m=[FERNERY, "no such model"], lost=["nobody", stranger]))
    shown.assert_well()
    notes = [note.value.replace("\\", "").replace("\N{WORD JOINER}", "") for note in shown.test.warning]
    assert [note.split(" ", 2)[2].split(";")[0] for note in notes] == [
        "m='no such model' stays, but no worker of the list serves it, nor is it listed",
        "lost='nobody' is left out: no worker of the list has that id",
        f"lost='{stranger}' is left out: that worker serves none of these models.",
    ]
    assert "Nothing is tried" in text_of(shown)
    assert list(shown.rows("model.compared")) == ["Now"]
    assert "With what is tried" not in text_of(shown)
    shown.test.button(key="model.nothing_tried").click().run()
    assert "lost" not in shown.test.query_params


def test_a_worker_added_and_settings_tried_from_a_link(app: NewApp) -> None:
    shown = app().open("model", m=FERNERY, add="333", add_size="1000", try_ceiling="8192", try_full_wait="30")
    shown.assert_well()
    assert shown.warnings == []
    assert shown.test.select_slider(key="model.add").value == 333, "a value that is no step of the slider stays"
    assert shown.test.selectbox(key="model.add_size").value == 1000
    assert shown.test.number_input(key="model.try_ceiling").value == 8192
    assert "With one more worker of 333 tok/s that takes up to 1,000 tokens, with ceiling 8,192, with full wait 30 s" in text_of(
        shown
    )


def test_senseless_settings_are_refused_at_the_control_and_in_a_link(app: NewApp) -> None:
    shown = trying(app().open("model", m=FERNERY))
    shown.test.number_input(key="model.try_floor").set_value(5000).run()
    shown.assert_well()
    assert "must not be above" in plain(shown.warnings[0])
    assert shown.test.number_input(key="model.try_floor").value == 512
    assert "try_floor" not in shown.test.query_params
    linked = trying(app().open("model", m=FERNERY, try_floor="5000"))
    linked.assert_well()
    assert "left out" in linked.warnings[0]
    assert list(linked.rows("model.compared")) == ["Now"]


def test_what_is_tried_stays_on_its_page(app: NewApp) -> None:
    shown = app().open("model", m=FERNERY, queue_by="100", try_floor="256", lost="x", add="5")
    links = list(shown.navigation.values())
    assert links
    assert not any(name in link for link in links for name in ("queue_by", "try_floor", "lost", "add"))


def test_what_is_tried_stands_under_the_title_and_a_refusal_of_another_size_says_whose_allowance_it_tells(app: NewApp) -> None:
    shown = app().open("model", m=FERNERY, queue_by="1000")
    tried = next(str(part.value) for part in shown.test.text if "Tried" in str(part.value))
    assert "the allowance falls from 2,042 to 1,415 tokens" in plain(tried)
    assert "at 513 tokens 512 are free, at 80 tokens 2,042" in text_of(shown)


@pytest.mark.parametrize("folder", ["snapshot", "calm-snapshot", "fresh-server", "later-nearly-everyone-gone"])
def test_any_model_of_every_recording_can_be_tried_with(app: NewApp, folder: str) -> None:
    shown = app().open("model", source=f"recorded-{folder}", queue_by="-1000000", add="20", try_floor_wait="900", size="1024")
    shown.assert_well()
    assert shown.warnings == []
    before, after = compared(shown, "workers")
    assert before != after


def test_findings_and_rows_are_sentences_with_a_button_that_copies_them(app: NewApp) -> None:
    shown = app().open("model", m=FERNERY)
    assert not [code for code in shown.test.code if str(code.value).startswith("Tokens free by ")], "drawn only when it is opened"
    shown.test.session_state["model.sentences"] = True
    shown.test.run()
    codes = [str(code.value) for code in shown.test.code]
    assert any(code.startswith(f"{FERNERY}: A request for 80 tokens is free") for code in codes)
    assert any(code.startswith("Tokens free by this rule: ") for code in codes)
    assert any(code.startswith("No online worker can take this request for 513 output tokens") for code in codes), "the refusal"
    chosen = shown.test.selectbox(key="model.sentence_of")
    last = chosen.options[-1]
    chosen.set_value(FLEET.serving[FERNERY][0].worker_id).run()
    shown.assert_well()
    assert last
    name = FLEET.serving[FERNERY][0].name
    assert name is not None
    assert str(shown.test.code[-1].value).startswith(name)


def test_hostile_names_in_a_move_stay_text(app: NewApp, hostile: str) -> None:
    fleet = Fleet.of(load_recorded(ROOT / "tests" / "data" / "hostile"), SETTINGS)
    lost = [worker.worker_id for worker in fleet.pool((), 2048).eligible(80)[:10]]
    shown = app().open("model", source=hostile, lost=lost)
    shown.assert_well()
    before, after = compared(shown, "workers")
    assert before != after
    names = [fleet.by_id[worker_id].name or "" for worker_id in lost]
    markdown = [
        str(getattr(e, "value", ""))
        for kind in ("title", "header", "markdown", "caption", "warning")
        for e in shown.test.get(kind)
    ]
    assert not any(name and name in text for name in names for text in markdown)


def test_a_field_that_is_cleared_stays_as_it_was_and_the_page_says_so(app: NewApp) -> None:
    shown = trying(app().open("model", m=FERNERY, try_floor="256"))
    shown.test.number_input(key="model.try_floor").set_value(None).run()
    shown.assert_well()
    assert "Floor (tokens) stays as it is" in plain(shown.warnings[0])
    assert shown.test.number_input(key="model.try_floor").value == 256
    assert shown.address["try_floor"] == ["256"]


def test_a_small_wait_is_written_as_the_address_takes_it(app: NewApp) -> None:
    shown = trying(app().open("model", m=FERNERY))
    shown.test.number_input(key="model.try_full_wait").set_value(0.00005).run()
    shown.assert_well()
    assert shown.address["try_full_wait"] == ["0.00005"]
    assert shown.warnings == []
    assert shown.test.number_input(key="model.try_full_wait").value == 0.00005
