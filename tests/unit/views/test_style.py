import ast
import itertools
import math
import re
import tomllib
from pathlib import Path

import pytest

from horde_policy.frames.decisions import REQUESTERS
from horde_policy.settings import AllowanceSettings
from horde_policy.ui.styles import CHOOSERS_PX, ROOM
from horde_policy.views.figures.budget import EARLY
from horde_policy.views.figures.replay import CHANGE_COLOURS
from horde_policy.views.figures.review_decisions import colour_of
from horde_policy.views.figures.style import (
    FAINT,
    OUTCOME_PATTERNS,
    OUTCOMES,
    SERIES,
    STATE_COLOURS,
    SURFACES,
    TEXT,
    Mode,
    base_figure,
    draw_marks,
    legend_below,
    percent,
    share_axis,
    utc_axis,
)
from horde_policy.views.words import STATES

ROOT = Path(__file__).parents[3]
MODES: tuple[Mode, ...] = ("light", "dark")
THEME_NAMES = {
    "full": "greenColor",
    "falling": "yellowColor",
    "floor": "redColor",
    "no_worker": "violetColor",
    "too_large": "blueColor",
    "unknown": "grayColor",
}


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def lightness(colour: str) -> float:
    return 116 * math.cbrt(luminance(colour)) - 16


@pytest.mark.parametrize("mode", MODES)
def test_text_meets_aa_on_both_surfaces(mode: Mode) -> None:
    for surface in SURFACES[mode]:
        assert contrast(TEXT[mode], surface) >= 4.5
        assert contrast(FAINT[mode], surface) >= 4.5


@pytest.mark.parametrize("mode", MODES)
def test_marks_in_colour_meet_aa_for_graphics_on_both_surfaces(mode: Mode) -> None:
    for colour in (*STATE_COLOURS[mode].values(), *OUTCOMES[mode].values()):
        for surface in SURFACES[mode]:
            assert contrast(colour, surface) >= 3.0, (colour, surface)


@pytest.mark.parametrize("mode", MODES)
def test_the_states_of_the_allowance_and_the_outcomes_read_in_grey(mode: Mode) -> None:
    ordered = [lightness(STATE_COLOURS[mode][s]) for s in ("full", "falling", "floor", "no_worker")]
    assert ordered == sorted(ordered, reverse=mode == "light"), "the worse, the further from the page"
    assert all(abs(a - b) >= 7 for a, b in itertools.combinations(ordered, 2))
    outcomes = [lightness(c) for c in OUTCOMES[mode].values()]
    assert all(abs(a - b) >= 6 for a, b in itertools.combinations(outcomes, 2))


def test_no_two_outcomes_share_a_pattern_and_every_state_has_words_and_a_colour() -> None:
    assert len(set(OUTCOME_PATTERNS.values())) == len(OUTCOMES["light"]) == len(OUTCOME_PATTERNS)
    for mode in MODES:
        assert list(STATE_COLOURS[mode]) == list(STATES)


@pytest.mark.parametrize("mode", MODES)
def test_the_theme_file_has_the_same_colours(mode: Mode) -> None:
    theme = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"][mode]
    assert {state: theme[name] for state, name in THEME_NAMES.items()} == STATE_COLOURS[mode]
    assert (theme["backgroundColor"], theme["secondaryBackgroundColor"]) == SURFACES[mode]
    assert theme["textColor"] == TEXT[mode]
    assert contrast(theme["primaryColor"], "#ffffff") >= 4.5
    assert contrast(theme["linkColor"], SURFACES[mode][0]) >= 4.5
    assert len(theme["chartSequentialColors"]) == len(theme["chartDivergingColors"]) == 10


def test_the_theme_asks_no_other_host_for_fonts() -> None:
    text = (ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8")
    assert "http" not in text


def test_the_marks_follow_the_settings() -> None:
    figure = base_figure()
    draw_marks(figure, AllowanceSettings(wait_full_s=30, wait_floor_s=90.5), "dark")
    assert [shape.x0 for shape in figure.layout.shapes] == [30, 90.5]
    assert [note.text for note in figure.layout.annotations] == ["full wait 30 s", "floor wait 90 s"]


def test_numbers_on_axes_are_written_as_in_every_text() -> None:
    """No figure has a number format of Plotly's own: a unit stands in its axis' title, amounts are written by us."""
    figures = ROOT / "horde_policy" / "views" / "figures"
    for path in figures.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not re.search(r":[^}]*%\}", node.value), f"{path.name}: Plotly writes 20%, every text 20 %"
                assert node.value not in {"tickformat", "tickprefix", "ticksuffix"}, path.name
            if isinstance(node, ast.keyword):
                assert node.arg not in {"tickformat", "tickprefix", "ticksuffix"}, path.name
    figure = base_figure()
    utc_axis(figure)
    formats = [stop.value for stop in figure.layout.xaxis.tickformatstops]
    assert all(form.index("%-d") < form.index("%b") for form in formats if "%-d" in form), "the day before the month"
    assert figure.layout.xaxis.hoverformat.startswith("%-d %b %Y")
    axis = figure.layout.yaxis
    share_axis(axis, "share")
    assert (axis.title.text, percent([0.2])) == ("share (%)", [20.0])


def test_every_figures_legend_is_the_one_below_the_plot() -> None:
    """No figure places a legend of its own: only ``style`` names where one stands."""
    figures = ROOT / "horde_policy" / "views" / "figures"
    placed = {
        path.name
        for path in figures.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if (isinstance(node, ast.keyword) and node.arg == "legend")
        or (isinstance(node, ast.Attribute) and node.attr == "legend" and isinstance(node.ctx, ast.Store))
    }
    assert placed == {"style.py"}
    figure = base_figure(height_px=200)
    legend_below(figure)
    assert (figure.layout.legend.yref, figure.layout.legend.y, figure.layout.legend.yanchor) == ("container", 0, "bottom")
    assert figure.layout.height > 200


@pytest.mark.parametrize("mode", MODES)
def test_only_an_outcome_has_an_outcomes_colour(mode: Mode) -> None:
    changes = {word: colour for word, colour in CHANGE_COLOURS[mode].items() if word not in ("now free", "now funded")}
    others = {*SERIES[mode], *changes.values(), EARLY[mode], *(colour_of("requester", who, mode)[0] for who in REQUESTERS)}
    assert not others & {*OUTCOMES[mode].values()}
    assert CHANGE_COLOURS[mode]["now funded"] == OUTCOMES[mode]["funded"]
    assert CHANGE_COLOURS[mode]["now free"] == OUTCOMES[mode]["free"]
    assert len(set(CHANGE_COLOURS[mode].values())) == len(CHANGE_COLOURS[mode])
    for colour in others:
        assert all(contrast(colour, surface) >= 3 for surface in SURFACES[mode]), colour


def test_choosers_grow_with_the_type_of_a_page_shown_to_a_room() -> None:
    fixed = {}
    for part in ("replay_controls", "budget_controls"):
        source = (ROOT / "horde_policy" / "ui" / f"{part}.py").read_text(encoding="utf-8")
        for body in source.split("\ndef "):
            keys, widths = re.findall(r'key = "([a-z.]+)"', body), re.findall(r"width=(?:chooser_px\(.*, )?(\d+)\)?,", body)
            fixed.update({key: int(width) for key, width in zip(keys[:1], widths[:1], strict=False)})
    assert len(fixed) == 10
    assert {key: width for key, width in CHOOSERS_PX.items() if key in fixed} == fixed
    for key, width in CHOOSERS_PX.items():
        assert f".st-key-{key.replace('.', '-')} {{ min-width: {width / 14:.2f}rem; }}" in ROOM
