"""Text on a mark of any colour can be read: the rule computed for every colour that a figure has, and the sweep's whole scale."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.views.figures.contrast import AA_TEXT, between, contrast, patterned, text_on, tint
from horde_policy.views.figures.style import ACCENT, OUTCOME_PATTERNS, OUTCOMES, STATE_COLOURS, TEXT, Mode
from horde_policy.views.figures.sweep import SCALE, colour_at

MODES: tuple[Mode, ...] = ("light", "dark")
COLOURS = st.integers(0, 0xFFFFFF).map(lambda number: f"#{number:06x}")


@given(COLOURS)
def test_of_black_and_white_one_reads_on_any_fill_and_on_its_pattern(fill: str) -> None:
    text = text_on(fill)
    assert contrast(text, fill) >= AA_TEXT
    for shape in OUTCOME_PATTERNS.values():
        assert contrast(text, patterned(fill, shape)["fgcolor"]) >= contrast(text, fill)


@pytest.mark.parametrize("mode", MODES)
def test_a_tint_leaves_the_pages_text_readable(mode: Mode) -> None:
    for colour in (ACCENT[mode], *STATE_COLOURS[mode].values(), *OUTCOMES[mode].values()):
        shades = [tint(colour, share / 20, mode) for share in range(21)]
        assert all(contrast(shade, TEXT[mode]) >= AA_TEXT for shade in shades)
        assert len(set(shades)) > 10, "more is still seen as more"


@pytest.mark.parametrize("mode", MODES)
def test_a_figure_on_the_sweeps_scale_can_be_read_anywhere(mode: Mode) -> None:
    found = [colour_at(share / 200, mode) for share in range(201)]
    assert (found[0], found[-1]) == (SCALE[mode][0], SCALE[mode][-1])
    assert all(contrast(text_on(colour), colour) >= AA_TEXT for colour in found)


def test_a_colour_between_two_is_where_it_should_be() -> None:
    assert [between("#000000", "#ff8800", share) for share in (0.0, 0.5, 1.0)] == ["#000000", "#804400", "#ff8800"]
