"""What is drawn of a range in fewer steps than it has polls: the worst stays, the end is true, what is not known is no figure."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from horde_policy.settings import AllowanceSettings
from horde_policy.views.figures.history import fig_states, fig_trend, states_alt
from horde_policy.views.history import spark_points
from horde_policy.views.past import spark, states_over, steps_sentence

START = datetime(2026, 11, 29, tzinfo=UTC)
SETTINGS = AllowanceSettings()


def polls(number: int) -> list[datetime]:
    return [START + timedelta(minutes=minute) for minute in range(number)]


def line(*states: str) -> pl.DataFrame:
    return pl.DataFrame({"at": polls(len(states)), "state": states})


@pytest.mark.parametrize("most", [2, 3, 7, 99])
def test_the_last_step_is_the_last_poll_and_no_bad_poll_is_lost(most: int) -> None:
    for worst in (0, 40, 98):
        states = ["floor" if minute == worst else "full" for minute in range(100)]
        shown = states_over({"a": line(*states), "b": line(*["full"] * 100)}, most)
        assert shown.height == most
        assert shown.row(-1, named=True)["at"] == polls(100)[-1]
        assert shown["floor"][-1] == 0, "the end is what the headline says"
        assert shown["floor"].sum() == 1, "and the fall before it is there"
        assert states_alt(shown).endswith("at most 1 at the floor or without a worker, 0 at its end.")


def test_where_a_step_stands_for_several_polls_that_is_said() -> None:
    trends = {"a": line(*["full"] * 100)}
    assert "worst" in steps_sentence(trends, states_over(trends, 99))
    assert steps_sentence(trends, states_over(trends, 100)) == ""
    assert steps_sentence({}, states_over({})) == ""


@pytest.mark.parametrize("tokens", [[512, 512, 512, None], [None] * 4, [None, 512, 512, 512], [4096, None, 512, None]])
@pytest.mark.parametrize("parts", [1, 2, 4])
def test_what_is_not_known_draws_no_line_though_polls_beside_it_are_known(tokens: list[int | None], parts: int) -> None:
    frame = pl.DataFrame({"at": polls(4), "allowance_tokens": tokens}, schema_overrides={"allowance_tokens": pl.Int64})
    points = spark_points(frame, SETTINGS.ceiling_tokens, parts)
    each = 4 // parts
    for part, point in enumerate(points):
        within = tokens[part * each : (part + 1) * each]
        known = [value for value in within if value is not None]
        assert point == (round(min(known) / 4096, 3) if len(known) == len(within) else None)
    cell = spark(frame, SETTINGS)
    if tokens == [None] * 4:
        assert cell is None
    else:
        assert isinstance(cell, dict)
        assert ("not known at its end" in cell["text"]) is (tokens[-1] is None)


def test_an_axis_of_time_ends_where_the_range_ends() -> None:
    ends = START - timedelta(hours=1), START + timedelta(hours=23)
    frame = pl.DataFrame({"at": [START, START + timedelta(hours=6)], "allowance_tokens": [4096, 512]})
    states = frame.select("at", floor=pl.Series([0, 1]), full=pl.Series([2, 1]))
    for figure in (fig_trend(frame, SETTINGS, "light", span=ends), fig_states(states, "light", span=ends)):
        assert figure.layout.xaxis.range == tuple(at.replace(tzinfo=None) for at in ends)


def test_the_last_poll_has_a_width_that_is_seen() -> None:
    ends = START, START + timedelta(hours=2)
    states = pl.DataFrame({"at": polls(121)[::5], "floor": [0] * 24 + [3], "full": [3] * 24 + [0]})
    figure = fig_states(states, "light", span=ends, held_until=ends[1])
    assert figure.layout.xaxis.range[1] == (ends[1] + timedelta(minutes=1)).replace(tzinfo=None)
    floor = next(trace for trace in figure.data if trace.name == "floor")
    assert list(zip(floor.x, floor.y, strict=True))[-2:] == [("2026-11-29T02:00:00", 3), ("2026-11-29T02:01:00", 3)]
    held = fig_states(states.head(24), "light", span=ends, held_until=ends[1])
    assert held.layout.xaxis.range[1] == ends[1].replace(tzinfo=None), "a step that is wide enough ends with the range"
    line = fig_trend(states.select("at", allowance_tokens="floor"), SETTINGS, "light", span=ends, held_until=ends[1])
    assert list(zip(line.data[-1].x, line.data[-1].y, strict=True))[-1] == ("2026-11-29T02:01:00", 3)


def test_a_range_without_a_poll_within_it_shows_what_held() -> None:
    ends = START + timedelta(minutes=1), START + timedelta(minutes=2)
    frame = pl.DataFrame({"at": [START], "allowance_tokens": [4096]})
    states = frame.select("at", full=pl.Series([2]))
    for figure in (
        fig_trend(frame, SETTINGS, "light", span=ends, held_until=ends[1]),
        fig_states(states, "light", span=ends, held_until=ends[1]),
    ):
        assert figure.data[-1].x[-1] == "2026-11-29T00:02:00"
        assert len(set(figure.data[-1].y)) == 1
