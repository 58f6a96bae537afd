from datetime import UTC, datetime, timedelta

import numpy as np
import plotly.graph_objects as go
import pytest

from horde_policy.views.figures.style import TIME_TITLE, base_figure, utc_axis
from horde_policy.views.figures.zones import shown_span, with_zone

SUMMER, WINTER = datetime(2025, 7, 1, tzinfo=UTC), datetime(2026, 11, 30, tzinfo=UTC)
CHANGE = datetime(2025, 10, 26, 1, tzinfo=UTC)
"""When the clocks of Europe go back."""


@pytest.mark.parametrize(
    ("zone", "behind_min", "span", "said"),
    [
        ("Europe/Berlin", -60, (SUMMER, SUMMER), "UTC+2:00"),
        ("Europe/Berlin", -120, (WINTER, WINTER), "UTC+1:00"),
        ("Europe/Berlin", -60, (CHANGE - timedelta(hours=1), CHANGE + timedelta(hours=1)), "UTC+2:00 or UTC+1:00"),
        ("Europe/Berlin", -60, (CHANGE - timedelta(hours=2), CHANGE - timedelta(seconds=1)), "UTC+2:00"),
        ("Europe/Berlin", -60, (WINTER - timedelta(days=365), WINTER), "UTC+1:00 or UTC+2:00"),
        ("Europe/London", 0, (SUMMER, SUMMER), "UTC+1:00"),
        ("Europe/London", -60, (WINTER, WINTER), None),
        ("Europe/London", 0, (SUMMER, WINTER), "UTC+1:00 or UTC+0:00"),
        ("America/St_Johns", 150, (SUMMER, SUMMER), "UTC−2:30"),
        ("UTC", 0, (SUMMER, WINTER), None),
        ("Europe/Berlin", -60, None, "UTC+1:00"),
        ("Europe/Berlin", None, None, None),
    ],
)  # fmt: skip
def test_an_axis_says_the_zone_of_the_instants_shown(
    zone: str, behind_min: int | None, span: tuple[datetime, datetime] | None, said: str | None
) -> None:
    expected = TIME_TITLE if said is None else f"time (UTC; yours: {said})"
    assert with_zone(TIME_TITLE, zone, behind_min, span) == expected


@pytest.mark.parametrize(
    "zone", [None, "", "No/Such", "Europe", "../../etc/passwd", "/etc/passwd", "a\0b", "\udcff", "x" * 5000, "<b>Berlin</b>"]
)
def test_a_zone_that_is_not_known_leaves_the_offset(zone: str | None) -> None:
    assert with_zone(TIME_TITLE, zone, -60, (SUMMER, SUMMER)) == "time (UTC; yours: UTC+1:00)"


def test_an_instant_at_the_end_of_all_dates_leaves_the_offset() -> None:
    first = datetime.min.replace(tzinfo=UTC)
    assert with_zone(TIME_TITLE, "America/New_York", 300, (first, first)) == "time (UTC; yours: UTC−5:00)"


@pytest.mark.parametrize(
    "x",
    [
        ["2025-07-01T00:00:00", None, "2025-07-03T00:00:00.000000"],
        [SUMMER.replace(tzinfo=None) + timedelta(days=2), None, SUMMER.replace(tzinfo=None)],
        [SUMMER, SUMMER + timedelta(days=2)],
        np.array(["2025-07-01", "2025-07-03"], dtype="datetime64[us]"),
        np.array(["2025-07-01", "2025-07-03"], dtype="datetime64[ns]"),
    ],
    ids=["texts", "wall times", "instants", "numpy us", "numpy ns"],
)
def test_a_figure_tells_what_it_shows_however_its_times_were_given(x: object) -> None:
    figure = base_figure()
    figure.add_scatter(x=[], y=[])
    figure.add_scatter(x=x, y=[1, 2, 3])
    utc_axis(figure)
    assert shown_span(figure) == (SUMMER, SUMMER + timedelta(days=2))


def test_a_figure_without_marks_shows_no_time() -> None:
    assert shown_span(go.Figure(go.Scatter(x=[None], y=[None]))) is None
