"""A figure that was drawn before is shown again, and is what would be drawn anew: whatever it hangs on tells it apart."""

from collections.abc import Callable
from datetime import UTC, datetime

import plotly.graph_objects as go
import polars as pl
import pytest

from horde_policy.clock import FixedClock
from horde_policy.ui import charts, live
from horde_policy.ui.charts import Itself
from tests.pages.conftest import App

NewApp = Callable[[], App]
FERNERY = "koboldcpp/Fernery-24B-v1.1"
STATES: list[dict[str, str]] = [
    {"m": FERNERY},
    {"m": FERNERY, "size": "9000"},
    {"m": FERNERY, "floor": "300"},
    {"m": FERNERY, "range": "6h", "queue_by": "1000"},
    {"m": "koboldcpp/Nocturne-70B"},
]
"""Each with other figures; what they hang on cannot be left out, as a figure is drawn of nothing else."""


def figures(shown: App) -> list[str]:
    shown.assert_well()
    return [figure.text for figure in shown.figures]


@pytest.fixture
def stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo moves with the clock, and so do its figures."""
    fixed = FixedClock(datetime(2026, 11, 29, 12, tzinfo=UTC))
    monkeypatch.setattr(live, "SystemClock", lambda: fixed)


def test_what_is_kept_is_what_would_be_drawn_anew(app: NewApp, stands_still: None) -> None:
    anew = []
    for state in STATES:
        charts.KEPT.clear()
        anew.append(figures(app().open("model", **state)))
    assert len({tuple(each) for each in anew}) == len(STATES), "each state has figures of its own"
    charts.KEPT.clear()
    for _ in range(2):
        for state, expected in zip(STATES, anew, strict=True):
            assert figures(app().open("model", **state)) == expected


def test_a_function_that_looks_at_more_than_it_is_given_is_no_figure_to_keep() -> None:
    more = go.Figure()
    with pytest.raises(ValueError, match="what is named alone"):
        charts.show_figure(lambda mode: more, alt="A figure.", key="test.figure")


def test_a_frame_is_the_same_as_itself_alone() -> None:
    frame, alike = pl.DataFrame({"at": [1]}), pl.DataFrame({"at": [1]})
    assert Itself(frame) == Itself(frame)
    assert hash(Itself(frame)) == hash(Itself(frame))
    assert Itself(frame) != Itself(alike)
    assert Itself(frame) != frame
