"""The Sweep page in its states: the bundled sweep, a new one, what is refused where it is typed, runs, odd files."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from horde_policy.errors import ReplayCancelled
from horde_policy.replay.engine import final_state
from horde_policy.settings import ReplaySettings
from horde_policy.sweep import run as sweep_run
from horde_policy.sweep.files import sweep_content
from horde_policy.sweep.run import Sweep, SweepProgress, run_sweep
from horde_policy.sweep.shelf import Shelf
from horde_policy.ui import sweep_desk, sweep_page
from horde_policy.ui.sweep_desk import SweepJob
from horde_policy.views.uploads import NOT_KEPT, WHOLE
from tests.pages.conftest import App
from tests.unit.sweep.made import made_frame

NewApp = Callable[[], App]
SMALL = 'ceiling_tokens = [512, 4096]\nfloor_tokens = [128, 512]\nfill = ["max_length=ladder"]\n'
HOSTILE = "![x](http://192.0.2.1/p.png) <script>=1+1"


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """What is kept, is kept for this test alone."""
    monkeypatch.setenv("HORDE_POLICY_SWEEPS", str(tmp_path / "sweeps"))
    yield
    sweep_desk.sweep_desk().queue.shutdown(wait=True, cancel_futures=True)


def plain(text: object) -> str:
    return str(text).replace("\\", "").replace("\N{WORD JOINER}", "")


def words(shown: App) -> str:
    return " ".join(plain(m.value) for m in shown.test.markdown)


def errors(shown: App) -> list[str]:
    return [plain(error.value) for error in shown.test.error]


def notices(shown: App) -> list[str]:
    return [plain(text) for text in shown.warnings]


def made_sweep(
    shares: Callable[[int, int], float], *, points: int = 3, days: int = 7, last_hours: float = 24.0, **stamp: Any
) -> bytes:
    """Return a made-up sweep's file: ``shares`` gives a point's refused share of a thousand unfunded requests on a day."""
    settings = [ReplaySettings(ceiling_tokens=4096 - 512 * place) for place in range(points)]
    frame = made_frame(
        settings,
        lambda place, _scenario, day: {
            "requests": 1000, "unfunded": 1000, "unfunded_refused": 1000 * shares(place, day),
            "refused": 1000 * shares(place, day),
        },
        days=days,
        last_hours=last_hours,
        waits=lambda *_: {"registered": {10: 100}},
    )  # fmt: skip
    stamped = {"kind": "sweep", "trace": "made up", "synthetic": True, "names_everything": True, "missing": 0} | stamp
    return sweep_content(Sweep(frame=frame, stamp=stamped, missing=0))


def uploaded(shown: App, content: bytes, name: str = "made.parquet") -> App:
    key = sweep_desk.sweep_desk().add(name, content)
    return shown.open("sweep", sweep=key)


# --- the bundled sweep ---------------------------------------------------------------------------------------------------


def test_the_demo_shows_results_at_once_and_says_what_is_made_up(app: NewApp) -> None:
    shown = app().open("sweep")
    shown.assert_well()
    assert shown.title == "Keep the settings in force"
    assert errors(shown) == []
    assert "Made up the fleet, copies that make the load" in words(shown).replace("**", "")
    assert "The settings that look best are within the noise: their lead may be luck." in notices(shown)
    charts = shown.figures
    assert len(charts) == 6
    assert all(chart.spec["data"] for chart in charts)
    assert [row["id"] for row in shown.part("sweep.compared")["rows"]] == ["refused_share_unfunded", "p90_wait_registered_s"]
    assert len(shown.part("sweep.sensitivity")["rows"]) == 4
    points = shown.part("sweep.points")["rows"]
    assert len(points) == 72
    assert [row["cells"]["settings"] for row in points if row.get("pinned")] == ["◆★▣ 4,096 · 512 · 60 s · 300 s"]
    other = next(row for row in points if not row.get("pinned"))
    assert parse_qs(other["query"])["point"] == [other["id"]], "a row opens its settings"


def test_the_question_is_in_the_address_and_changes_the_answer(app: NewApp) -> None:
    shown = app().open("sweep", must=["p90 wait of registered ≤ 60 s"])
    shown.assert_well()
    assert shown.title.startswith("Change proposal: ")
    rows = {row["id"]: row["cells"] for row in shown.part("sweep.compared")["rows"]}
    assert rows["p90_wait_registered_s"]["verdict"] == "better, beyond noise"
    assert "The settings in force do not meet the constraints." in words(shown)
    assert not any("held out it is better on" in text for text in notices(shown)), "worse on all days is what was chosen"
    (check,) = [row["cells"] for row in shown.part("sweep.checks")["rows"]]
    assert (check["constraint"], check["limit"], check["held"]) == ("P90 wait of registered ≤ 60 s", "60.0 s", "met")
    shown = app().open("sweep", must=["p90 wait of registered ≤ 1 s"])
    assert shown.title == "No settings that were tried meet the constraints"


def test_a_constraint_typed_as_a_sentence_is_read_or_refused_where_it_is_typed(app: NewApp) -> None:
    shown = app().open("sweep")
    shown.test.multiselect(key="sweep.must").set_value(["p90 wait of registered at most 2 min"]).run()
    shown.assert_well()
    assert shown.address.get("must", []) == ["p90 wait of registered ≤ 120 s"]
    shown.test.multiselect(key="sweep.must").set_value(["p90 wait of everybody ≤ 120 s"]).run()
    shown.assert_well()
    assert notices(shown)[0].startswith(
        "The constraints stay: p90 wait of everybody ≤ 120 s: 'p90 wait of everybody' is no metric"
    )
    assert shown.address.get("must", []) == ["p90 wait of registered ≤ 120 s"]
    assert shown.test.multiselect(key="sweep.must").value == ["p90 wait of registered ≤ 120 s"]


def test_days_held_out_leave_a_day_to_choose_on(app: NewApp) -> None:
    shown = app().open("sweep")
    assert shown.test.multiselect(key="sweep.held").value == [6, 7]
    shown.test.multiselect(key="sweep.held").set_value([1]).run()
    assert shown.address.get("held", []) == ["1"]
    shown.test.multiselect(key="sweep.held").set_value([1, 2, 3, 4, 5, 6, 7]).run()
    assert "The days held out stay: a sweep needs a day to choose on." in notices(shown)
    assert shown.address.get("held", []) == ["1"]


def test_the_settings_looked_at_are_in_the_address_and_in_the_proposal(app: NewApp) -> None:
    shown = app().open("sweep")
    options = shown.test.selectbox(key="sweep.point").options
    assert "in force (proposed)" in options
    judged = sweep_desk.sweep_desk().judged
    (judgement,) = judged.values()
    worst = judgement.points.sort("refused_share_unfunded")["point"][-1]
    shown.test.selectbox(key="sweep.point").set_value(worst).run()
    shown.assert_well()
    assert shown.address.get("point", []) == [worst]
    rows = {row["id"]: row["cells"] for row in shown.part("sweep.compared")["rows"]}
    assert rows["refused_share_unfunded"]["verdict"] == "worse, beyond noise"
    assert rows["refused_share_unfunded"]["held_better"] == "0 of 2"


def test_axes_figures_and_held_settings_are_in_the_address(app: NewApp) -> None:
    shown = app().open(
        "sweep", x="floor_tokens", y="ceiling_tokens", show="expired_share", others="worst", fix=["wait_full_s=30.0"]
    )
    shown.assert_well()
    assert shown.test.selectbox(key="sweep.x").value == "floor_tokens"
    shown.test.selectbox(key="sweep.y").set_value("wait_floor_s").run()
    shown.assert_well()
    assert shown.address.get("y", []) == ["wait_floor_s"]
    shown.test.selectbox(key="sweep.fix.ceiling_tokens").set_value("4096").run()
    shown.assert_well()
    assert set(shown.address.get("fix", [])) == {"wait_full_s=30.0", "ceiling_tokens=4096"}
    shown.test.selectbox(key="sweep.x").set_value("wait_floor_s").run()
    assert (shown.address["x"], shown.address["y"]) == (["wait_floor_s"], ["floor_tokens"]), "both change places"
    shown.test.selectbox(key="sweep.y").set_value("ceiling_tokens").run()
    shown.assert_well()
    assert (shown.address["y"], shown.address["fix"]) == (["ceiling_tokens"], ["wait_full_s=30.0"]), "an axis is not held"
    assert [text for text in notices(shown) if "left out" in text] == [], "what a chooser does leaves nothing behind"


# --- a new sweep ---------------------------------------------------------------------------------------------------------


def test_what_makes_no_sense_is_refused_under_its_field_and_cannot_be_started(app: NewApp) -> None:
    shown = app().open("sweep", grid=SMALL)
    shown.test.text_input(key="sweep.field.floor_tokens").set_value("512, 0").run()
    shown.assert_well()
    assert errors(shown) == ["setting floor_tokens: 0 must be a whole number of at least 1"]
    assert shown.test.button(key="sweep.start").disabled
    assert shown.address.get("grid", []) == [SMALL], "the address stays"
    shown.test.text_input(key="sweep.field.floor_tokens").set_value("512, 8192").run()
    assert errors(shown) == []
    assert not shown.test.button(key="sweep.start").disabled
    told = " ".join(plain(c.value) for c in shown.test.caption)
    assert "Left out: floor_tokens must not be above ceiling_tokens (2)." in told, "a pair that makes no sense is counted"
    shown.test.text_input(key="sweep.field.ceiling_tokens").set_value("1,024").run()
    assert "without thousands separators" in errors(shown)[0]
    shown.test.text_input(key="sweep.field.ceiling_tokens").set_value("256").run()
    shown.test.text_input(key="sweep.field.floor_tokens").set_value("512").run()
    told = "1 combination, which cannot be tried: floor_tokens 512 must not be above ceiling_tokens, which is 256"
    assert errors(shown) == [f"setting grid: {told}"], "a grid of nothing but nonsense"
    assert shown.test.button(key="sweep.start").disabled, "the button stays"


@pytest.mark.parametrize(
    ("typed", "left"),
    [
        ([("wait_full_s", "700"), ("floor_tokens", "many"), ("wait_full_s", "10, 30")], ["floor_tokens: 'many' must be"]),
        ([("floor_tokens", "9999"), ("floor_tokens", "abc")], ["floor_tokens: 'abc' must be"]),
        ([("floor_tokens", "abc"), ("wait_full_s", "700"), ("floor_tokens", "128")], ["wait_full_s 700.0 must be below"]),
        ([("load", "0"), ("seed", "x"), ("load", "1")], ["seed: 'x' must be"]),
        ([("wait_full_s", "700"), ("floor_tokens", "64,128,256,512"), ("wait_full_s", "10,30,60")], []),
    ],
)
def test_no_error_is_about_a_value_that_is_gone(app: NewApp, typed: list[tuple[str, str]], left: list[str]) -> None:
    shown = app().open("sweep", grid=SMALL)
    for field, text in typed:
        shown.test.text_input(key=f"sweep.field.{field}").set_value(text).run()
    shown.assert_well()
    assert len(errors(shown)) == len(left), errors(shown)
    assert all(part in error for part, error in zip(left, errors(shown), strict=True)), errors(shown)
    assert shown.test.button(key="sweep.start").disabled == bool(left)


def test_a_drawn_search_asks_for_its_points(app: NewApp) -> None:
    shown = app().open("sweep", grid=SMALL)
    shown.test.selectbox(key="sweep.field.search").set_value("sobol").run()
    shown.assert_well()
    assert errors(shown) == []
    assert shown.test.text_input(key="sweep.field.points").value == "64"
    shown.test.text_input(key="sweep.field.wait_full_s").set_value("10 to 100 log").run()
    shown.test.text_input(key="sweep.field.points").set_value("8").run()
    shown.assert_well()
    assert "9 settings, those in force among them" in words(shown)
    shown.test.selectbox(key="sweep.field.search").set_value("grid").run()
    assert "must have a step or a count in a grid search" in errors(shown)[0]


def test_a_sweep_is_started_judged_and_found_again_by_its_link(app: NewApp) -> None:
    shown = app().open("sweep", grid=SMALL, times="2")
    shown.test.button(key="sweep.start").click().run()
    shown.assert_well()
    (key,) = shown.address.get("sweep", [])
    assert key.startswith("run-")
    assert errors(shown) == []
    assert "RAGPulse" in shown.test.selectbox(key="sweep.which").options[-1]
    assert shown.part("sweep.compared")["rows"]
    again = app().open("sweep", sweep=key)
    again.assert_well()
    assert again.title == shown.title
    sweep_desk.sweep_desk.clear()
    after_a_restart = app().open("sweep", sweep=key)
    assert after_a_restart.title == shown.title


def test_a_load_that_is_too_much_for_a_page_is_sent_to_the_command(app: NewApp) -> None:
    shown = app().open("sweep", times="200", grid="ceiling_tokens = {from = 512, to = 4096, step = 4}\n")
    shown.assert_well()
    assert "requests to replay are more than the page's 400,000,000" in errors(shown)[0]
    assert "use the sweep command" in errors(shown)[0]
    many = "{from = 1, to = 500, step = 1}"
    shown = app().open("sweep", grid=f"ceiling_tokens = {many}\nfloor_tokens = {many}\n")
    shown.assert_well()
    assert "250000 combinations are more than the page's 10,000" in errors(shown)[0]


def test_a_fill_rule_that_is_none_stands_under_its_field(app: NewApp) -> None:
    shown = app().open("sweep", grid=SMALL)
    shown.test.text_area(key="sweep.field.fill").set_value("max_length=huge").run()
    shown.assert_well()
    assert "max_length" in errors(shown)[0]
    assert shown.test.button(key="sweep.start").disabled


@pytest.mark.parametrize(("share", "loud"), [(0.25, False), (0.75, True)])
def test_models_that_no_worker_serves_are_told(app: NewApp, share: float, loud: bool) -> None:
    shown = uploaded(app(), made_sweep(lambda *_: 0.5, share_of_unserved_models={"": share}))
    shown.assert_well()
    said = f"No worker of this fleet serves the models of {share:.1%} of the requests".replace("%", " %")
    captions = [plain(caption.value) for caption in shown.test.caption]
    assert any(text.startswith(said) for text in (notices(shown) if loud else captions))
    assert said in words(shown), "and among the caveats"


# --- while it runs, and when it does not ---------------------------------------------------------------------------------


def test_a_sweep_that_runs_shows_how_far_it_is_and_the_time_left_and_can_be_cancelled(
    app: NewApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_page, "WAIT_S", 0.0)
    desk = sweep_desk.sweep_desk()
    job = SweepJob("run-0", stage="replaying", progress=SweepProgress(3, 10, 0.3, 1.0, 2.33))
    desk.jobs["run-0"] = job
    with monkeypatch.context() as ended:
        ended.setattr(sweep_page, "follow", lambda _opened: None)  # a run of the page that ends before the sweep does
        shown = app().open("sweep", sweep="run-0")
        shown.assert_well()
        (bar,) = shown.test.get("progress")
        assert (bar.proto.value, bar.proto.text) == (30, "3 of 10 replays, 2 s left")
        shown.test.button(key="sweep.cancel").click().run()
        assert job.cancelled.is_set()
        assert shown.test.button(key="sweep.cancel").disabled
    threading.Timer(0.3, job.done.set).start()
    shown = app().open("sweep", sweep="run-0")
    assert [plain(i.value) for i in shown.test.info] == ["The sweep was cancelled before any replay was done."]


def test_while_the_loops_are_compiled_it_says_so_and_counts_no_replay(app: NewApp, monkeypatch: pytest.MonkeyPatch) -> None:
    compiling, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        compiling.set()
        assert go_on.wait(30)

    monkeypatch.setattr(sweep_page, "WAIT_S", 0.0)
    monkeypatch.setattr(sweep_desk, "warm_up_sweep", slow)
    monkeypatch.setattr(sweep_page, "follow", lambda _opened: None)
    shown = app().open("sweep", grid=SMALL)
    shown.test.button(key="sweep.start").click().run()
    assert compiling.wait(30)
    shown.test.run()
    (bar,) = shown.test.get("progress")
    go_on.set()
    assert bar.proto.text.startswith("Compiling the engine and its loops, once after an installation")


def test_a_cancel_keeps_what_is_done_and_going_on_ends_equal_to_the_bit(app: NewApp, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = app().open("sweep", grid=SMALL, times="2")
    whole.test.button(key="sweep.start").click().run()
    (key,) = whole.address.get("sweep", [])
    desk = sweep_desk.sweep_desk()
    expected = desk.sweep(key)
    assert expected is not None
    for path in (desk.shelf.folder / "parts").glob("*.npz"):
        path.unlink()
    turns = itertools.count()

    def only_the_first(*world_and_settings: Any, progress: Callable[[float], None], cancel: Callable[[], bool]) -> Any:
        """Replay once; every other replay ends by the cancel, which the page's own way sends as soon as one is done."""
        if next(turns) == 0:
            return final_state(*world_and_settings, progress=progress, cancel=cancel)
        while not cancel():
            time.sleep(0.005)
        raise ReplayCancelled("the test's cancel came")

    def stopping(*args: Any, **options: Any) -> Sweep:
        told = options["progress"]

        def stop_after_one(progress: SweepProgress) -> None:
            told(progress)
            job = desk.job(key)
            if progress.done == 1 and job is not None:
                job.cancelled.set()

        return run_sweep(*args, **(options | {"progress": stop_after_one}))

    with monkeypatch.context() as slowed:
        slowed.setattr(sweep_desk, "run_sweep", stopping)
        slowed.setattr(sweep_run, "final_state", only_the_first)
        shown = app().open("sweep", grid=SMALL, times="2")
        shown.test.button(key="sweep.start").click().run()
    shown.assert_well()
    (told,) = [plain(i.value) for i in shown.test.info]
    assert told.startswith("Stopped: ")
    partly = desk.sweep(key)
    assert partly is not None
    assert partly.missing == expected.stamp["points"] * expected.stamp["scenarios"] - 1 > 0
    shown.test.button(key="sweep.go-on").click().run()
    shown.assert_well()
    done = desk.sweep(key)
    assert done is not None
    assert done.missing == 0
    assert done.frame.equals(expected.frame)


def test_a_link_to_a_sweep_that_is_not_kept_says_so(app: NewApp) -> None:
    shown = app().open("sweep", sweep="run-0123456789abcdef")
    shown.assert_well()
    assert "is not kept by this server" in notices(shown)[0]
    assert shown.title == "Sweep"
    shown.open("sweep", sweep="upload-0123456789abcdef")
    assert f"sweep='upload-0123456789abcdef' {NOT_KEPT}" in notices(shown)[0]


def test_a_folder_that_others_can_write_is_refused(app: NewApp, tmp_path: Path) -> None:
    folder = tmp_path / "sweeps"
    folder.mkdir()
    folder.chmod(0o777)
    shown = app().open("sweep", grid=SMALL)
    shown.test.button(key="sweep.start").click().run()
    shown.assert_well()
    assert "must be a folder of this user that nobody else can write" in errors(shown)[0]


@pytest.mark.parametrize(
    ("query", "note"),
    [
        ({"want": "the moon"}, "'the moon' is no metric"),
        ({"must": "p90 wait of registered 120 s"}, "must hold a comparison"),
        ({"held": "1,2,3,4,5,6,7"}, "leave no day to choose on"),
        ({"under": "7"}, "scenario 7 is not among the 1 of this sweep"),
        ({"point": "0" * 16}, "The settings looked at are not among those of this sweep"),
        ({"others": "median"}, "must be one of best, mean, worst"),
        ({"times": "0"}, "must be a whole number from 1 to 200"),
        ({"grid": "ceiling = 1"}, "The link's grid is left out"),
        ({"x": "'; drop"}, "must be the name of a setting"),
        ({"fix": "floor_tokens"}, "must be settings as name=value"),
    ],
)
def test_nothing_in_an_address_stops_the_page(app: NewApp, query: dict[str, str], note: str) -> None:
    shown = app().open("sweep", **query)
    shown.assert_well()
    assert any(note in text for text in notices(shown)), notices(shown)


def test_axes_that_the_sweep_lacks_fall_back(app: NewApp) -> None:
    shown = app().open("sweep", x="return_times", y="nothing", show="nothing", sweep="demo", fix=["floor_tokens=9"], trace="gone")
    shown.assert_well()
    assert shown.test.selectbox(key="sweep.x").value == "ceiling_tokens"
    varied = "Ceiling, Floor, Full wait, Floor wait"
    told = [text for text in notices(shown) if text.startswith("The link's ")]
    assert told[:2] == [
        f"The link's x='return_times' is left out: it must be a setting that this sweep varies: {varied}.",
        f"The link's y='nothing' is left out: it must be a setting that this sweep varies: {varied}.",
    ]
    assert told[2] == "The link's show='nothing' is left out: it must be one of the 22 figures that can be chosen at Figure."
    assert told[3:] == [
        "The link's fix='floor_tokens=9' is left out: it must hold a setting of neither axis at a value that this sweep tried."
    ]
    assert any("traffic: 'gone' must be one of" in text for text in errors(shown)), "a new sweep of it cannot be started"


@pytest.mark.parametrize(
    ("page", "query", "points"),
    [
        ("sweep", {"x": "nothing", "want": "least zzz", "must": "zzz", "held": "900", "under": "7", "point": "0" * 16}, 6),
        ("replay", {"run": ["floor_tokens=9999", "x=1"], "traffic": "gone", "fleet": "nobody"}, 4),
    ],
)
def test_what_a_link_names_in_vain_is_told_in_one_box(app: NewApp, page: str, query: dict[str, Any], points: int) -> None:
    shown = app().open(page, **query)
    shown.assert_well()
    boxes = [plain(str(box.value)) for box in shown.test.warning]
    told = [box for box in boxes if box.startswith("- ")]
    assert len(told) == 1, boxes
    assert told[0].count("\n- ") + 1 == points, told
    assert not any("left out" in box.casefold() for box in boxes if box not in told)


# --- made-up sweeps: a known best, no difference, few days ---------------------------------------------------------------


def test_a_known_best_is_proposed_with_how_sure_that_is(app: NewApp) -> None:
    shown = uploaded(app(), made_sweep(lambda place, day: 0.3 - 0.1 * (place == 2) + 0.01 * day))
    shown.assert_well()
    assert shown.title == "Change proposal: ceiling 3,072"
    assert "It is the best in 100 % of the resamples of the days; no other setting comes near." in words(shown)
    assert "It is better on 5 of the 5 days it was chosen on, and on 2 of 2 held out." in words(shown)


def test_where_nothing_differs_it_says_so(app: NewApp) -> None:
    shown = uploaded(app(), made_sweep(lambda _place, day: 0.3 + 0.01 * day))
    shown.assert_well()
    assert shown.title == "Keep the settings in force"
    assert any("there is nothing to choose between" in text for text in notices(shown))
    assert "No setting that was tried changes the refused share of unfunded at all." in words(shown)


def test_differences_within_the_noise_are_called_so(app: NewApp) -> None:
    wobble = {0: 0.0, 1: 0.02, 2: -0.02}
    shown = uploaded(app(), made_sweep(lambda place, day: 0.3 + wobble[place] * (1 if day % 2 else -1)))
    shown.assert_well()
    assert shown.title == "Keep the settings in force"
    assert any(text.startswith("Within the noise: no settings that meet the constraints differ") for text in notices(shown))


def test_too_few_days_are_said(app: NewApp) -> None:
    shown = uploaded(app(), made_sweep(lambda place, _day: 0.3 - 0.1 * (place == 2), days=2))
    shown.assert_well()
    assert any("at least 4 days (or seeds) are needed" in text for text in notices(shown))


def test_a_last_day_that_is_not_whole_is_named_and_cannot_be_held_out(app: NewApp) -> None:
    shown = uploaded(app(), made_sweep(lambda place, day: 0.5 - 0.1 * place + 0.01 * day, days=8, last_hours=0.5))
    shown.assert_well()
    assert any(text.startswith("Day 8 is no whole day: its requests span 30 min of 24 h.") for text in notices(shown))
    assert "chosen on days 1 to 5, held out: days 6 to 7; day 8 (30 min) does not count; 1 seed" in words(shown)
    held = shown.test.multiselect(key="sweep.held")
    assert (held.value, held.options) == ([6, 7], [str(day) for day in range(1, 8)])
    shown = shown.open("sweep", sweep=shown.address["sweep"][0], held="7,8")
    shown.assert_well()
    assert "Left out: day 8 cannot be held out, since this sweep has no such whole day." in notices(shown)


def test_traffic_shorter_than_a_day_is_said_to_be(app: NewApp) -> None:
    shown = uploaded(app(), made_sweep(lambda place, _: 0.5 - 0.1 * place, days=1, last_hours=6.0))
    shown.assert_well()
    assert any(text.startswith("The traffic is shorter than a day, 6 h 0 min: tokens a day are") for text in notices(shown))


def test_one_setting_alone_is_shown_without_figures_of_nothing(app: NewApp) -> None:
    shown = uploaded(app(), made_sweep(lambda _place, _day: 0.3, points=1))
    shown.assert_well()
    assert "No setting was varied: there is one point only." in [plain(c.value) for c in shown.test.caption]


def test_names_in_a_file_are_only_text(app: NewApp) -> None:
    content = made_sweep(lambda _p, _d: 0.3, trace=HOSTILE, fleet={"from": HOSTILE}, page={"traffic": HOSTILE, "fleet": HOSTILE})
    shown = uploaded(app(), content, name=HOSTILE)
    shown.assert_well()
    raw = " ".join(str(m.value) for m in shown.test.markdown)
    assert "![x](http" not in raw
    assert "x" in raw


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not parquet"])
def test_an_upload_that_is_no_sweep_is_refused_and_nothing_is_lost(app: NewApp, content: bytes) -> None:
    shown = app().open("sweep")
    test: AppTest = shown.test
    test.file_uploader(key="sweep.upload").set_value(("bad.parquet", content, "application/octet-stream")).run()
    shown.assert_well()
    assert errors(shown) == ["sweep file: 'bad.parquet' must be a Parquet file that the sweep command wrote"]
    assert shown.title == "Keep the settings in force"


def test_a_good_upload_is_opened_and_its_link_works_as_long_as_it_is_kept(app: NewApp) -> None:
    content = made_sweep(lambda place, day: 0.3 - 0.1 * (place == 2) + 0.01 * day)
    shown = app().open("sweep")
    shown.test.file_uploader(key="sweep.upload").set_value(("mine.parquet", content, "application/octet-stream")).run()
    shown.assert_well()
    assert shown.title == "Change proposal: ceiling 3,072"
    (key,) = shown.address.get("sweep", [])
    assert key.startswith("upload-")
    (held,) = shown.test.session_state["uploads.held"].uploads
    assert (held.kind, held.key, held.name, held.left) == ("sweep", key, "mine.parquet", WHOLE)
    assert "The sweep was not made on this page" in " ".join(plain(c.value) for c in shown.test.caption)


def test_a_shelf_keeps_no_key_that_is_a_path(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="a key is letters, digits and hyphens"):
        Shelf(tmp_path).load("../x")
