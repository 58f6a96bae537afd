"""What the history adds: range, lines, alerts, changes and annotations on the Overview; trend and trail on the Model page."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from horde_policy.board.alerts import Alert, AlertState
from horde_policy.board.rows import make_board
from horde_policy.history.reading import snapshot_at
from horde_policy.history.store import AlertRecord, HistoryStore
from horde_policy.settings import AllowanceSettings
from horde_policy.views.overview import WORST_FIRST
from tests.pages.conftest import App, MadeHistory

NewApp = Callable[[], App]
SOURCE = "recorded-snapshot"


def infos(shown: App) -> str:
    return " ".join(str(info.value) for info in shown.test.info).replace("\\", "").replace("\u2060", "")


def lines_of(shown: App) -> dict[str, dict[str, list[object]]]:
    """Return the traces of the page's figures by name."""
    found = {}
    for figure in shown.figures:
        for trace in figure.spec["data"]:
            found[trace.get("name", "")] = trace
    return found


@pytest.mark.parametrize("page", ["overview", "model"])
def test_without_a_history_a_page_says_what_it_would_need(app: NewApp, page: str) -> None:
    shown = app().open(page, source=SOURCE)
    shown.assert_well()
    assert "HORDE_POLICY_HISTORY" in infos(shown)
    if page == "overview":
        assert "trend" not in {column["key"] for column in shown.part("overview.board")["columns"]}


def test_the_board_has_a_line_for_each_model_and_says_what_changed_and_by_what(app: NewApp, made_history: MadeHistory) -> None:
    shown = app().open(source=SOURCE, range="24h")
    shown.assert_well()
    assert infos(shown) == ""
    rows = shown.rows()
    points = rows[made_history.model]["cells"]["trend"]["points"]
    assert len(points) == 45
    assert None in points, "the gap"
    assert min(point for point in points if point is not None) < 1.0
    assert "points" in rows["any model"]["cells"]["trend"]
    changes = shown.rows("overview.changes")
    change = changes[made_history.model]["cells"]
    assert change["allowance"]["sub"].startswith("−")
    assert "extra [b](http://192.0.2.1/) left (−40.0 tok/s)" in change["why"]["text"]
    assert any(words.startswith("What changed since 28 Nov 2026") for words in shown.headings)


def test_a_range_is_chosen_by_name_or_by_two_instants_and_stands_in_the_address(app: NewApp, made_history: MadeHistory) -> None:
    shown = app().open(source=SOURCE)
    shown.test.segmented_control(key="shared.range").set_value("1h").run()
    shown.assert_well()
    assert shown.test.query_params["range"] in ("1h", ["1h"])
    linked = app().open(**{"source": SOURCE, "from": "2026-11-29T08:00Z", "to": "2026-11-29T12:00Z"})
    linked.assert_well()
    said = "29 Nov 2026 08:00:00 UTC to 29 Nov 2026 12:00:00 UTC, synthetic"
    assert said in [str(c.value) for c in linked.test.caption]
    assert linked.test.segmented_control(key="shared.range").value is None
    backwards = app().open(**{"source": SOURCE, "from": "2026-11-29T12:00Z", "to": "2026-11-29T08:00Z"})
    backwards.assert_well()
    assert "range is left out" in backwards.warnings[0]


def test_what_fires_is_listed_with_since_when(app: NewApp, made_history: MadeHistory) -> None:
    last = made_history.polls[-1]
    store = HistoryStore(made_history.store, durable=False)
    state = AlertState(
        alerts={
            (alert.rule, alert.model): alert
            for alert in (
                Alert(rule="at_floor", model=made_history.model, since=last - timedelta(hours=2), fired_at=last),
                Alert(rule="no_worker", model="pending", since=last),
            )
        },
        looked_at=last,
    )
    now = replace(snapshot_at(store, last), fetched_at=last + timedelta(minutes=1), part_times={})
    store.write(now, alerts=AlertRecord(state=json.dumps(state.stored())))
    store.close()
    shown = app().open(source=SOURCE)
    shown.assert_well()
    rows = shown.rows("overview.firing")
    assert list(rows) == [made_history.model]
    assert rows[made_history.model]["cells"]["since"]["sub"] == "for 2 h 1 min"


def test_nothing_that_fires_takes_no_room(app: NewApp, made_history: MadeHistory) -> None:
    assert not app().open(source=SOURCE).has_part("overview.firing")


def test_the_model_page_has_the_trend_the_day_before_the_gap_and_the_trail(app: NewApp, made_history: MadeHistory) -> None:
    shown = app().open("model", source=SOURCE, m=made_history.model, range="1h")
    shown.assert_well()
    lines = lines_of(shown)
    assert {"this range", "the day before", "over the range"} <= set(lines)
    assert "the week before" not in lines, "the history does not go back that far"
    assert any(str(caption.value).startswith("The week before is not drawn: ") for caption in shown.test.caption)
    wide = app().open("model", source=SOURCE, m=made_history.model, range="7d")
    wide.assert_well()
    assert None in lines_of(wide)["this range"]["y"], "a gap is never drawn over"


def test_the_trend_ends_with_what_the_board_says_of_the_poll_that_it_ends_with(app: NewApp, made_history: MadeHistory) -> None:
    query = {"source": SOURCE, "m": made_history.model, "from": "2026-11-29T08:00Z", "to": "2026-11-29T12:00Z"}
    shown = app().open("model", **query)
    shown.assert_well()
    store = HistoryStore(made_history.store, read_only=True)
    then = make_board(
        snapshot_at(store, datetime(2026, 11, 29, 12, tzinfo=UTC), made_history.source),
        AllowanceSettings(),
        max_length=80,
        context_tokens=2048,
    )
    store.close()
    allowance = then.by_model[made_history.model].measure.allowance_tokens
    assert lines_of(shown)["this range"]["y"][-1] == allowance
    assert allowance is not None
    assert 512 < allowance < 4096


def test_annotations_stand_on_the_page_and_a_broken_file_is_said(
    app: NewApp, made_history: MadeHistory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "notes.csv"
    file.write_text("at,kind,text\n2026-11-29T12:00,deploy,<b>5.1.6</b> ![x](http://192.0.2.1/)\n2020-01-01T00:00,note,old\n")
    monkeypatch.setenv("HORDE_POLICY_ANNOTATIONS", str(file))
    shown = app().open(source=SOURCE)
    shown.assert_well()
    assert list(shown.rows("overview.noted")) == ["<b>5.1.6</b> ![x](http://192.0.2.1/)"]
    model = app().open("model", source=SOURCE, m=made_history.model)
    model.assert_well()
    figures = " ".join(figure.text for figure in model.figures)
    assert "<b>5.1.6" not in figures
    assert "5.1.6" in figures
    file.write_text("at,kind,text\nnever,deploy,x\n")
    broken = app().open(source=SOURCE)
    broken.assert_well()
    assert any("annotations cannot be shown" in warning for warning in broken.warnings)


def test_a_wall_screen_has_every_model_the_worst_first(app: NewApp, made_history: MadeHistory) -> None:
    shown = app().open(source=SOURCE, wall="1")
    shown.assert_well()
    rows = shown.part("overview.wall-board")["rows"]
    assert rows[0]["name"] == "any model"
    order = [WORST_FIRST.index(row["state"]) for row in rows[1:]]
    assert order == sorted(order)
    assert {row["name"] for row in rows[1:]} == set(app().open(source=SOURCE).rows()) - {"any model"}
    assert not shown.has_part("overview.changes")


def test_a_wall_screen_says_what_fires(app: NewApp) -> None:
    shown = app().open(wall="1")
    shown.assert_well()
    assert any("**6 alerts fire**" in str(text.value) for text in shown.test.markdown)
    assert not shown.test.get("expander")


@pytest.mark.parametrize("page", ["overview", "model", "workers"])
@pytest.mark.parametrize("where", ["gap", "end", "poll"])
def test_figures_as_of_an_instant_that_was_not_recorded_say_so(
    page: str, where: str, app: NewApp, made_history: MadeHistory
) -> None:
    polls = made_history.polls
    at = {"gap": polls[19] + timedelta(hours=1), "end": polls[-1] + timedelta(hours=3), "poll": polls[10]}[where]
    at = at.replace(second=0, microsecond=0) + timedelta(minutes=1)
    text = {name: f"{instant:%Y-%m-%dT%H:%MZ}" for name, instant in (("from", at - timedelta(hours=6)), ("to", at))}
    shown = app().open(page, source=SOURCE, m=made_history.model, **text)
    shown.assert_well()
    assert shown.has_part("model.then") == (page == "model")
    said = [text.replace("\\", "").replace("\u2060", "") for text in shown.warnings]
    told = [text for text in said if text.startswith("Not recorded")]
    assert len(told) == (where != "poll")
    if where == "gap":
        assert "the server was away" in told[0]
        assert f"{polls[19]:%Y-%m-%d %H:%M:%S} UTC" in told[0]
    if where == "end":
        assert f"the last poll is of {polls[-1]:%Y-%m-%d %H:%M:%S} UTC" in told[0]


def test_a_fall_that_is_over_is_told_beside_what_changed_between_the_ends(app: NewApp) -> None:
    shown = app().open(range="7d")
    shown.assert_well()
    (told,) = [str(caption.value) for caption in shown.test.caption if str(caption.value).startswith("In between, ")]
    assert "stood lower than at either end: **" in told


@pytest.mark.parametrize("page", ["overview", "model", "workers"])
@pytest.mark.parametrize("year", [1970, 2030, 2199])
def test_a_range_of_which_the_history_has_nothing_can_be_left(
    app: NewApp, made_history: MadeHistory, page: str, year: int
) -> None:
    shown = app().open(page, **{"source": SOURCE, "from": f"{year}-03-01T00:00Z", "to": f"{year}-03-02T00:00Z"})
    shown.assert_well()
    assert "The history has no poll from 1 Mar" in infos(shown)
    assert f"1 Mar {year} 00:00:00 UTC to 2 Mar {year} 00:00:00 UTC, synthetic" in [str(c.value) for c in shown.test.caption]
    shown.test.segmented_control(key="shared.range").set_value("24h").run()
    shown.assert_well()
    assert "The history has no poll" not in infos(shown)
    assert "from" not in shown.address


@pytest.mark.parametrize("page", ["overview", "model", "workers"])
def test_where_no_range_would_help_none_is_offered(app: NewApp, page: str) -> None:
    shown = app().open(page, source=SOURCE)
    assert "HORDE_POLICY_HISTORY" in infos(shown)
    assert not [control for control in shown.test.segmented_control if control.key == "shared.range"]
