"""The Model page's two figures: the curve with the live point on it, and the allowance over the size asked for."""

from collections.abc import Sequence

import plotly.graph_objects as go
import streamlit as st

from horde_policy.board.detail import ModelDetail, SizeStep
from horde_policy.settings import AllowanceSettings
from horde_policy.ui.charts import show_figure, theme_mode
from horde_policy.ui.headings import show_heading
from horde_policy.ui.page import Opened
from horde_policy.ui.what_if import Outcome
from horde_policy.views.figures.model import CurvePoint, add_other_rules, add_trail, add_tried, curve_alt, fig_curve, name_marks
from horde_policy.views.figures.sizes import add_rules_over_sizes, asked_mark, fig_sizes, sizes_alt, sizes_end_tokens
from horde_policy.views.figures.style import Mode
from horde_policy.views.other_rules import OtherRules, rules_explained, rules_sentence

__all__ = ["show_figures"]

Waits = tuple[float | None, float | None, float | None]
"""The low, the named and the high scenario of the estimated wait, in seconds; null is not known."""
Tried = tuple[AllowanceSettings, CurvePoint]
"""The settings that are tried, and where the request would stand under them."""


def show_figures(
    opened: Opened, detail: ModelDetail, rules: OtherRules, found: Outcome | None, trail_waits_s: Sequence[float | None]
) -> None:
    """Show the curve with the live point, its trail and what is tried, and the allowance over the size; both with all rules."""
    settings, measure = opened.state.settings, detail.measure
    left, right = st.columns(2, gap="medium")
    with left:
        show_heading("Allowance over the estimated wait")
        waits = (
            (None, None, None) if measure.waits is None else (measure.waits.low_s, measure.waits.named_s, measure.waits.worst_s)
        )
        tried = _tried(found)
        tried_settings, then_s = (None, None) if tried is None else (tried[0], tried[1].wait_s)
        show_figure(
            _curve,
            of=(settings, measure.state, waits, rules, tuple(trail_waits_s), tried),
            alt=curve_alt(settings, waits[1], waits[2], tried=tried_settings, then_s=then_s),
            key="model.curve",
        )
    with right:
        show_heading("Allowance over the size asked for")
        end_tokens = sizes_end_tokens(detail.steps, settings, measure.max_length)
        show_figure(
            _sizes,
            of=(settings, detail.steps, end_tokens, measure.largest_free_request_tokens, rules),
            across=asked_mark(measure.max_length, theme_mode()),
            alt=sizes_alt(measure.largest_free_request_tokens),
            key="model.sizes",
        )
    st.caption(f"{rules_sentence(rules, measure.allowance_tokens)} {rules_explained(settings)}")


def _tried(found: Outcome | None) -> Tried | None:
    if found is None:
        return None
    waits = found.then.waits
    return found.settings, CurvePoint(None if waits is None else waits.named_s, found.then.state)


def _curve(
    settings: AllowanceSettings,
    state: str,
    waits: Waits,
    rules: OtherRules,
    trail_waits_s: Sequence[float | None],
    tried: Tried | None,
    mode: Mode,
) -> go.Figure:
    low_s, named_s, high_s = waits
    figure = fig_curve(settings, state=state, low_s=low_s, named_s=named_s, high_s=high_s, mode=mode)
    add_other_rules(figure, rules.old_tokens, rules.jobs_tokens, mode)
    if trail_waits_s:
        add_trail(figure, settings, trail_waits_s, mode)
    if tried is not None:
        add_tried(figure, *tried, mode, now=(named_s, high_s))
    name_marks(figure)
    return figure


def _sizes(
    settings: AllowanceSettings,
    steps: Sequence[SizeStep],
    end_tokens: float,
    largest_free_tokens: int | None,
    rules: OtherRules,
    mode: Mode,
) -> go.Figure:
    figure = fig_sizes(steps, settings, end_tokens=end_tokens, largest_free_tokens=largest_free_tokens, mode=mode)
    add_rules_over_sizes(figure, steps, rules.jobs_by_step, rules.old_tokens, mode)
    return figure
