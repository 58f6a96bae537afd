"""Figures of what-ifs on counts: what becomes of each outcome, and which size gains from which change."""

from collections.abc import Mapping

import plotly.graph_objects as go
import polars as pl

from horde_policy.frames.decisions import OUTCOMES as OUTCOME_WORDS
from horde_policy.frames.decisions import SIZES
from horde_policy.review.sampling import Bounds
from horde_policy.review.whatif import WhatIf
from horde_policy.views.figures.contrast import tint
from horde_policy.views.figures.review_decisions import fill_pattern
from horde_policy.views.figures.style import FAINT, OUTCOMES, STATE_COLOURS, TEXT, Mode, base_figure, legend_below, name_squares
from horde_policy.views.review_words import bounds_text, size_text
from horde_policy.views.text import count, ratio

__all__ = ["fig_gains", "fig_what_if", "gains_alt", "what_if_alt"]


def what_if_alt(answer: WhatIf) -> str:
    """Return what the figure shows, in one sentence."""
    free = f"free {bounds_text(answer.before['free'])} now, {bounds_text(answer.after['free'])} then"
    undecided = answer.undecided_share
    rest = "nothing was counted" if undecided is None else f"{ratio(undecided)} are not decided by the buckets"
    return f"What would have become of the same requests: {free}; {rest}."


def fig_what_if(answer: WhatIf, mode: Mode) -> go.Figure:
    """Return each outcome as counted and as bounds under the changed settings.

    A bar is what is certain, its lighter end what may be; the diamond is what was counted.
    """
    figure = base_figure(height_px=240)
    figure.update_layout(barmode="stack", bargap=0.35)
    legend_below(figure)
    names = list(OUTCOME_WORDS)
    certain = [answer.after[name].low for name in names]
    possible = [answer.after[name].high - answer.after[name].low for name in names]
    colours = [OUTCOMES[mode][name] for name in names]
    hover = [f"{name}: {bounds_text(answer.after[name])} then, {bounds_text(answer.before[name])} now" for name in names]
    figure.add_bar(
        y=names,
        x=certain,
        orientation="h",
        name="certain",
        marker={"color": colours},
        customdata=hover,
        hovertemplate="%{customdata}<extra></extra>",
    )
    figure.add_bar(
        y=names,
        x=possible,
        orientation="h",
        name="possible",
        marker={"color": colours, "opacity": 0.5, "pattern": fill_pattern("/", mode)},
        customdata=hover,
        hovertemplate="%{customdata}<extra></extra>",
    )
    figure.add_scatter(
        y=names,
        x=[answer.before[name].middle for name in names],
        mode="markers",
        name="as counted",
        marker={"symbol": "diamond", "size": 12, "color": TEXT[mode], "line": {"width": 1, "color": FAINT[mode]}},
        customdata=hover,
        hovertemplate="%{customdata}<extra></extra>",
    )
    figure.update_yaxes(type="category", categoryorder="array", categoryarray=list(reversed(names)))
    figure.update_xaxes(title={"text": "requests"}, rangemode="tozero")
    return figure


def gains(answers: Mapping[str, WhatIf]) -> dict[tuple[str, str], tuple[Bounds, Bounds]]:
    """Return, for each change and requested size, how many requests become free and how many cease to be."""
    found = {}
    for name, answer in answers.items():
        for size in SIZES:
            rows = answer.rows.filter(pl.col("requested_size") == size)
            held, free = rows.filter(pl.col("outcome") != "free"), rows.filter(pl.col("outcome") == "free")
            more = Bounds(float(held["free_low"].sum()), float(held["free_high"].sum()))
            # cell by cell: a count that is not known well is as unknown after as before, and nothing is lost by that
            found[name, size] = more, Bounds(float(free["not_free_low"].sum()), float(free["not_free_high"].sum()))
    return found


def gains_alt(answers: Mapping[str, WhatIf]) -> str:
    """Return what the figure shows, in one sentence.

    >>> gains_alt({})
    'Which size gains from which change: nothing was counted.'
    """
    if not answers:
        return "Which size gains from which change: nothing was counted."
    found = gains(answers)
    (name, size), (more, _) = max(found.items(), key=lambda item: item[1][0].low)
    return (
        f"Which size gains from which change: the most by {change_text(name)}, {bounds_text(more)} requests of {size_text(size)}."
    )


def change_text(name: str) -> str:
    """Return a change as it is read.

    >>> change_text("floor_tokens=1024")
    'floor 1,024'
    """
    setting, _, value = name.partition("=")
    return f"{setting.removesuffix('_tokens')} {count(float(value))}"


def _gain_text(gained: Bounds, sign: str) -> str:
    """Return what stands in a square, its range in two lines, which have the room there.

    >>> _gain_text(Bounds(0, 0), "+"), _gain_text(Bounds(547, 710), "+"), _gain_text(Bounds(0, 5435), "−")
    ('0', '+547<br>to 710', '0 to<br>−5,435')
    """
    if gained.high <= 0:
        return "0"
    high = count(gained.high)
    if gained.exact:
        return f"{sign}{high}"
    return f"0 to<br>{sign}{high}" if gained.low <= 0 else f"{sign}{count(gained.low)}<br>to {high}"


def fig_gains(answers: Mapping[str, WhatIf], mode: Mode) -> go.Figure:
    """Return a square for each change and requested size: how many requests would become free, or cease to be."""
    figure = base_figure(height_px=110 + 46 * max(1, len(answers)))
    figure.layout.margin.l = 102
    found = gains(answers)
    most = max((max(more.high, lost.high) for more, lost in found.values()), default=0.0)
    x, y, colours, texts, hovers = [], [], [], [], []
    for (name, size), (more, lost) in found.items():
        x.append(size_text(size))
        y.append(change_text(name))
        loses = lost.high > more.high
        base = STATE_COLOURS[mode]["floor"] if loses else OUTCOMES[mode]["free"]
        shown = lost if loses else more
        colours.append(tint(base, 0.0 if most <= 0 or shown.high <= 0 else 0.15 + 0.85 * (shown.high / most) ** 0.5, mode))
        texts.append(_gain_text(shown, "−" if loses else "+"))
        hovers.append(
            f"{change_text(name)}, asked {size_text(size)}: {bounds_text(more)} more free, {bounds_text(lost)} no longer free"
        )
    figure.add_scatter(
        x=x,
        y=y,
        mode="markers+text",
        name="change",
        marker={"symbol": "square", "size": 42, "color": colours, "line": {"width": 1, "color": FAINT[mode]}},
        text=texts,
        textfont={"size": 11, "color": TEXT[mode]},
        customdata=hovers,
        hovertemplate="%{customdata}<extra></extra>",
    )
    name_squares(figure.layout.xaxis, "requested size (tokens)", [size_text(size) for size in SIZES])
    name_squares(figure.layout.yaxis, "change", [change_text(name) for name in reversed(list(answers))])
    return figure
