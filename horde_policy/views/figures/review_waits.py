"""Figures of waits: both distributions on one axis with the marks, and the funded wait between its bounds."""

import math
from collections.abc import Mapping
from typing import Final

import plotly.graph_objects as go
import polars as pl

from horde_policy.review.bounds import FundedWaits
from horde_policy.settings import AllowanceSettings
from horde_policy.views.figures.style import FAINT, OUTCOMES, SERIES, TEXT, Mode, base_figure, draw_marks, legend_below
from horde_policy.views.review_words import share_range_text
from horde_policy.views.text import escape_plotly, ratio, seconds

__all__ = ["distributions_alt", "fig_distributions", "fig_funded", "funded_alt"]

TICKS_S = (0.0, 5.0, 20.0, 120.0, 600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0)
LEAST_AXIS_S = 600.0
MOST_AXIS_S = 3600.0

DASHES: Final = ("solid", "dash", "dot", "dashdot")


def axis_end_s(settings: AllowanceSettings, *distributions: pl.DataFrame) -> float:
    """Return where the axis of waits ends: past the floor wait, and where nearly all waits are.

    >>> axis_end_s(AllowanceSettings())
    600.0
    """
    end = max(LEAST_AXIS_S, 1.25 * settings.wait_floor_s)
    for rows in distributions:
        short = rows.filter(pl.col("share_low") < 0.98)
        if short.height:
            end = max(end, float(short["edge_s"].to_list()[-1]))
    return min(end, max(MOST_AXIS_S, 1.25 * settings.wait_floor_s))


def place_of(wait_s: float) -> float:
    """Return where a wait stands on the axis: its root.

    >>> place_of(900.0)
    30.0
    """
    return math.sqrt(wait_s)


def faded(colour: str, strength: float) -> str:
    """Return a colour that lets through what is below it.

    >>> faded("#ff8000", 0.5)
    'rgba(255,128,0,0.5)'
    """
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},{strength:g})"


def distributions_alt(distributions: Mapping[str, pl.DataFrame], settings: AllowanceSettings) -> str:
    """Return what the figure shows, in one sentence.

    >>> rows = pl.DataFrame({"edge_s": [60.0, 300.0], "share_low": [0.5, 0.9], "share_high": [0.5, 0.9]})
    >>> distributions_alt({"estimated": rows}, AllowanceSettings())
    'Share of waits up to each length: estimated 50.0 % within 60 s, 90.0 % within 300 s.'
    """
    parts = []
    for name, rows in distributions.items():
        told = []
        for mark in (settings.wait_full_s, settings.wait_floor_s):
            at = rows.filter(pl.col("edge_s") == mark)
            if at.height:
                told.append(f"{share_range_text(*at.select('share_low', 'share_high').row(0))} within {seconds(mark)}")
        parts.append(f"{name} {', '.join(told)}" if told else f"{name} without counts")
    return "Share of waits up to each length: " + ("; ".join(parts) or "nothing was counted") + "."


def fig_distributions(distributions: Mapping[str, pl.DataFrame], settings: AllowanceSettings, mode: Mode) -> go.Figure:
    """Return distributions of waits on one axis with the 60 s and 300 s marks (or those of the settings).

    Parameters
    ----------
    distributions
        Name (hostile text) → schema :data:`~horde_policy.review.waits.DISTRIBUTION`; up to four.
    settings
        Give the marks.
    mode
        The viewer's theme.

    Notes
    -----
    The points are what the buckets tell; between two of them a share is only known to lie between theirs, which the stair of the
    line shows at its lowest. Whiskers are the 95 % interval. What is longer than the axis is in the legend. The axis grows with
    the root of the wait, so that both marks and the long waits are seen.
    """
    figure = base_figure(height_px=420)
    end = axis_end_s(settings, *distributions.values())
    legend_below(figure)
    for place, (name, rows) in enumerate(distributions.items()):
        if not rows.height:
            continue
        shown = rows.filter(pl.col("edge_s") <= end)
        colour = SERIES[mode][place % len(SERIES[mode])]
        rest = 1 - float(shown["share_low"].to_list()[-1]) if shown.height else 1.0
        longer = f", {ratio(rest)} longer than {end:,.0f} s" if rest > 0.0005 else ""
        middle = [(low + high) * 50 for low, high in shown.select("share_low", "share_high").iter_rows()]
        figure.add_scatter(
            x=[place_of(edge) for edge in shown["edge_s"].to_list()],
            y=middle,
            mode="lines+markers",
            name=escape_plotly(name) + longer,
            line={"color": colour, "width": 2, "dash": DASHES[place % len(DASHES)], "shape": "hv"},
            marker={"size": 7, "color": colour},
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [high * 100 - at for high, at in zip(shown["sampling_high"].to_list(), middle, strict=True)],
                "arrayminus": [at - low * 100 for low, at in zip(shown["sampling_low"].to_list(), middle, strict=True)],
                "thickness": 1,
                "width": 3,
                "color": faded(colour, 0.45),
            },
            customdata=[
                (seconds(row["edge_s"]), share_range_text(row["share_low"], row["share_high"]))
                for row in shown.iter_rows(named=True)
            ],
            hovertemplate="up to %{customdata[0]}: %{customdata[1]}",
        )
    _axes(figure, settings, mode, end)
    return figure


def _axes(figure: go.Figure, settings: AllowanceSettings, mode: Mode, end: float) -> None:
    draw_marks(figure, settings, mode, scale=place_of, above=True)
    figure.update_layout(margin={"t": 36})
    ticks = sorted({tick for tick in TICKS_S if tick <= end} | {settings.wait_full_s, settings.wait_floor_s})
    figure.update_xaxes(
        title={"text": "wait (s)"},
        range=[-0.2, place_of(end) * 1.02],
        tickvals=[place_of(tick) for tick in ticks],
        ticktext=[f"{tick:,g}" for tick in ticks],
    )
    figure.update_yaxes(title={"text": "share of waits up to so long (%)"}, range=[0, 103])


def funded_alt(funded: FundedWaits, settings: AllowanceSettings) -> str:
    """Return what the figure of the funded wait shows, in one sentence.

    >>> from horde_policy.review.bounds import FUNDED_WAITS
    >>> from horde_policy.review.sampling import Bounds
    >>> funded_alt(FundedWaits(None, Bounds(0, 0), FUNDED_WAITS.empty(), "no_waits"), AllowanceSettings())
    'The funded wait is not visible in these counts.'
    """
    if not funded.rows.height:
        return "The funded wait is not visible in these counts."
    at = funded.rows.filter(pl.col("edge_s") == settings.wait_floor_s)
    if not at.height:
        return "The funded wait between its bounds, beside all registered waits."
    low, high = at.select("funded_low", "funded_high").row(0)
    within = share_range_text(low, high)
    return f"The funded wait between its bounds: {within} of funded requests waited at most {seconds(settings.wait_floor_s)}."


def fig_funded(funded: FundedWaits, settings: AllowanceSettings, mode: Mode, *, point: bool = False) -> go.Figure:
    """Return the band in which the funded wait's distribution lies, beside that of all registered requests (A28).

    Parameters
    ----------
    funded
        From :func:`~horde_policy.review.bounds.funded_waits`; without rows the figure is empty.
    point
        Whether the point estimate is drawn too, which only belongs beside its warning.
    """
    figure = base_figure(height_px=420)
    legend_below(figure)
    shares = funded.rows.select("edge_s", pl.col("registered_low").alias("share_low"))
    end = axis_end_s(settings, shares)
    rows = funded.rows.filter(pl.col("edge_s") <= end)
    edges = rows["edge_s"].to_list()
    places = [place_of(edge) for edge in edges]
    band = OUTCOMES[mode]["funded"]
    for low, high, name, opacity in (
        ("sampling_low", "sampling_high", "funded, with sampling", 0.16),
        ("funded_low", "funded_high", "funded", 0.34),
    ):
        line = {"width": 1, "color": band, "shape": "hv"}
        bottom, top = ([100 * value for value in rows[column].to_list()] for column in (low, high))
        figure.add_scatter(
            x=places, y=bottom, mode="lines", line=line, showlegend=False, hoverinfo="skip", name=f"{name}, at least"
        )
        figure.add_scatter(
            x=places,
            y=top,
            mode="lines",
            line=line,
            fill="tonexty",
            fillcolor=faded(band, opacity),
            name=name,
            customdata=[
                (seconds(edge), share_range_text(least / 100, most / 100))
                for edge, least, most in zip(edges, bottom, top, strict=True)
            ],
            hovertemplate=f"{name}, up to %{{customdata[0]}}: %{{customdata[1]}}<extra></extra>",
        )
    registered = [(low + high) * 50 for low, high in rows.select("registered_low", "registered_high").iter_rows()]
    figure.add_scatter(
        x=places,
        y=registered,
        customdata=[seconds(edge) for edge in edges],
        mode="lines+markers",
        name="all registered",
        line={"color": TEXT[mode], "width": 2, "shape": "hv"},
        marker={"size": 6, "color": TEXT[mode]},
        hovertemplate="all registered, up to %{customdata}: %{y:.1f} %<extra></extra>",
    )
    if point:
        _draw_point(figure, rows, mode)
    _axes(figure, settings, mode, end)
    return figure


def _draw_point(figure: go.Figure, rows: pl.DataFrame, mode: Mode) -> None:
    # where no share fits there is a gap in the line, which a line from neighbour to neighbour would deny
    figure.add_scatter(
        x=[place_of(edge) for edge in rows["edge_s"].to_list()],
        customdata=[seconds(edge) for edge in rows["edge_s"].to_list()],
        y=[None if low is None else (low + high) * 50 for low, high in rows.select("point_low", "point_high").iter_rows()],
        connectgaps=False,
        mode="lines",
        name="if free ones waited like anonymous ones (may be far off)",
        line={"color": FAINT[mode], "width": 2, "dash": "dot", "shape": "hv"},
        hovertemplate="up to %{customdata}: %{y:.1f} %<extra></extra>",
    )
