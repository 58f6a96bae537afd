"""The figures of a budget replay: what the reservation trades, what became of the requests, money and open holds over time.

Money is whole pico-dollars everywhere else; here alone it becomes a number of pixels, and every hover says the amount in words.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import plotly.graph_objects as go
import polars as pl

from horde_policy.budget.money import PICO_PER_USD, money_text
from horde_policy.views.budget_words import setting_name
from horde_policy.views.figures.contrast import patterned, text_on
from horde_policy.views.figures.replay import RUN_COLOURS
from horde_policy.views.figures.style import (
    ACCENT,
    FAINT,
    OUTCOME_PATTERNS,
    OUTCOMES,
    SERIES,
    TEXT,
    Mode,
    base_figure,
    legend_below,
    percent,
    share_axis,
    utc_axis,
)
from horde_policy.views.text import count, escape_plotly, ratio

__all__ = [
    "SETTING_COLOURS",
    "fig_bound",
    "fig_money",
    "fig_open",
    "fig_outcomes",
    "fig_trade_off",
    "money_alt",
    "outcomes_alt",
    "over_time_alt",
    "trade_off_alt",
]

SETTING_COLOURS: Final[dict[Mode, tuple[str, ...]]] = {"light": RUN_COLOURS["light"][1:], "dark": RUN_COLOURS["dark"][1:]}
"""The chosen reservation's colour and those of B11, B12, B13: as the runs of a replay."""

DASHES: Final = ("solid", "dash", "dot", "longdash")
PARTS: Final = (
    ("settled", "served", "free"),
    ("cut", "cut at the limit", "downgraded"),
    ("refused_early", "refused early", "early"),
    ("refused_at_limit", "refused at the limit", "refused"),
)
"""Column of the summary, its words, and the outcome whose colour and pattern it has; what is early has its own."""
MONEY_TICKS: Final = {"exponentformat": "none"}
"""Plain decimals: Plotly writes a millionth of a dollar as 1µ."""
EARLY: Final[dict[Mode, str]] = {"light": SERIES["light"][1], "dark": SERIES["dark"][1]}
PART_PATTERNS: Final = OUTCOME_PATTERNS | {"early": ".", "": "+"}
LEAST_LABELLED = 0.12
"""The smallest share that is written into its bar."""
LOW_LIMIT = 0.12
"""The name of a limit below this share of what is drawn stands above its line: below it are the labels of the time."""
GAP = 0.8
"""Between the reservations and the alternatives on the axis, in places."""

Rows = Sequence[Mapping[str, Any]]


def _money(pico: int) -> str:
    """Return an amount as Plotly shows it, and not as the start of a formula."""
    return escape_plotly(money_text(pico))


def _monies(amounts: pl.Series) -> np.ndarray:
    """Return amounts as Plotly shows them; as an array, which it takes as it is and does not look through place by place."""
    return np.array([_money(pico) for pico in amounts], dtype=object)


def _usd(pico: int) -> float:
    """Return an amount as a place on an axis: for pixels only."""
    return pico / PICO_PER_USD


def _places_usd(amounts: pl.Series) -> np.ndarray:
    """Return amounts as places on an axis: for pixels only."""
    return amounts.cast(pl.Float64).to_numpy() / PICO_PER_USD


def _faded(colour: str) -> str:
    """Return a colour as the fill below its line."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.25)"


def _places(rows: Rows) -> list[float]:
    """Return each setting's place: the reservations in steps of one, the alternatives apart."""
    return [index + (GAP if row["reserve_tokens"] is None else 0.0) for index, row in enumerate(rows)]


def trade_off_alt(rows: Rows, limit_pico: int) -> str:
    """Return what the trade-off figure shows, in one sentence."""
    each = ", ".join(
        f"{setting_name(row)}: {_share(row, 'refused_early')} refused early, at worst {_bound_words(row)} over" for row in rows
    )
    return f"What a reservation trades under a limit of {money_text(limit_pico)}; {each}."


def _share(row: Mapping[str, Any], column: str) -> str:
    return ratio(row[column] / row["requests"] if row["requests"] else None)


def _bound_words(row: Mapping[str, Any]) -> str:
    return "without bound" if row["unbounded"] else money_text(row["worst_over_pico"])


def fig_trade_off(summary: pl.DataFrame, reserve_tokens: int, mode: Mode) -> go.Figure:
    """Return the trade-off over ``reservation.output_tokens``, the alternatives beside it, the default marked.

    Parameters
    ----------
    summary
        Frame :data:`~horde_policy.frames.usage.BUDGET_SUMMARY`.
    reserve_tokens
        The size that is looked at, which gets a ring.
    mode
        The viewer's theme.

    Notes
    -----
    Above: the share of the requests refused early. Below: money over the limit, the worst case and what was really overspent;
    a setting with unbounded requests has no point for its worst case.
    """
    rows = sorted(summary.to_dicts(), key=lambda row: (row["reserve_tokens"] is None, row["reserve_tokens"] or 0))
    places = _places(rows)
    figure = base_figure(height_px=500)
    colours = SETTING_COLOURS[mode]
    early = percent(row["refused_early"] / row["requests"] if row["requests"] else None for row in rows)
    first = ["" if row["first_refusal_spent_ratio"] is None else ratio(row["first_refusal_spent_ratio"]) for row in rows]
    _curve(
        figure, rows, places, early, "refused early", EARLY[mode], "solid", "circle", "y",
        [f"{_share(row, 'refused_early')} of the requests refused early" + (f", the first at {at} of the limit" if at else "")
         for row, at in zip(rows, first, strict=True)],
    )  # fmt: skip
    bound = [None if row["unbounded"] else _usd(row["worst_over_pico"]) for row in rows]
    _curve(
        figure, rows, places, bound, "worst case over the limit", colours[1], "dash", "diamond", "y2",
        [escape_plotly(f"worst case over the limit {_bound_words(row)}") for row in rows],
    )  # fmt: skip
    over = [_usd(row["overspend_pico"]) for row in rows]
    _curve(
        figure, rows, places, over, "really overspent", SERIES[mode][0], "solid", "square", "y2",
        [f"really overspent {_money(row['overspend_pico'])}" for row in rows],
    )  # fmt: skip
    _mark(figure, rows, places, reserve_tokens, mode)
    legend_below(figure, rows=2)
    figure.layout.margin.b += 34  # the settings' names are slanted
    figure.update_layout(
        yaxis={"domain": [0.57, 1], "title": {"text": "refused early (%)"}, "rangemode": "tozero"},
        yaxis2={
            "domain": [0, 0.45], "title": {"text": "over the limit ($)"}, "rangemode": "tozero",
            "anchor": "x", "zeroline": False, "automargin": True, "separatethousands": True, **MONEY_TICKS,
        },
    )  # fmt: skip
    figure.update_xaxes(
        anchor="y2",
        tickvals=places,
        ticktext=[setting_name(row) for row in rows],
        title={"text": "reserved output (tokens), and alternatives"},
        tickangle=-40,
        range=[-0.4, places[-1] + 0.4 if places else 1],
    )
    return figure


def _curve(
    figure: go.Figure, rows: Rows, places: list[float], values: Sequence[float | None], name: str, colour: str, dash: str,
    symbol: str, axis: str, words: list[str],
) -> None:  # fmt: skip
    """Draw one figure of each setting: a line over the reservations, a point for each alternative."""
    curve = [index for index, row in enumerate(rows) if row["reserve_tokens"] is not None]
    apart = [index for index, row in enumerate(rows) if row["reserve_tokens"] is None]
    for indexes, kind, shown in ((curve, "lines+markers", True), (apart, "markers", False)):
        figure.add_scatter(
            x=[places[index] for index in indexes],
            y=[values[index] for index in indexes],
            mode=kind,
            name=name,
            legendgroup=name,
            showlegend=shown,
            yaxis=axis,
            line={"color": colour, "width": 2.5, "dash": dash},
            marker={"color": colour, "size": 9, "symbol": symbol},
            cliponaxis=False,
            customdata=[[setting_name(rows[index]), words[index]] for index in indexes],
            hovertemplate="%{customdata[0]}: %{customdata[1]}<extra></extra>",
        )


def _mark(figure: go.Figure, rows: Rows, places: list[float], reserve_tokens: int, mode: Mode) -> None:
    """Mark the default and the size that is looked at."""
    marks: dict[float, list[str]] = {}
    for row, place in zip(rows, places, strict=True):
        if row["is_default"]:
            marks.setdefault(place, []).append("default")
        if row["reserve_tokens"] == reserve_tokens and not row["is_default"]:
            marks.setdefault(place, []).append("chosen")
    for place, words in marks.items():
        for axis in ("y domain", "y2 domain"):
            figure.add_shape(
                type="line", x0=place, x1=place, y0=0, y1=1, xref="x", yref=axis,
                line={"width": 1.5, "dash": "dot", "color": ACCENT[mode] if "chosen" in words else FAINT[mode]},
            )  # fmt: skip
        figure.add_annotation(
            x=place, y=1, xref="x", yref="y domain", text=" ".join(words), showarrow=False, xanchor="left", yanchor="top",
            xshift=4, font={"size": 11, "color": FAINT[mode]},
        )  # fmt: skip


def outcomes_alt(rows: Rows) -> str:
    """Return what the outcome figure shows, in one sentence."""
    each = ", ".join(f"{setting_name(row)}: {_share(row, 'admitted')} admitted" for row in rows)
    return f"What became of the requests, and how much of the budget was used, for each setting; {each}."


def fig_outcomes(summary: pl.DataFrame, mode: Mode) -> go.Figure:
    """Return each setting's requests by outcome as one bar, with the share of the budget that was used at its end."""
    rows = summary.to_dicts()
    figure = base_figure(height_px=110 + 36 * len(rows))
    places, names = _places(rows), [setting_name(row) for row in rows]
    parts = [*PARTS, *([("refused_unpriced", "no price", "")] if any(row["refused_unpriced"] for row in rows) else [])]
    fills = OUTCOMES[mode] | {"early": EARLY[mode], "": FAINT[mode]}
    for column, words, outcome in parts:
        values = [row["admitted"] - row["cut"] if column == "settled" else row[column] for row in rows]
        if not any(values):
            continue
        fill = fills[outcome]
        shares = [value / row["requests"] if row["requests"] else 0.0 for value, row in zip(values, rows, strict=True)]
        figure.add_bar(
            y=places,
            x=percent(shares),
            orientation="h",
            name=words,
            marker={"color": fill, "pattern": patterned(fill, PART_PATTERNS[outcome])},
            customdata=[
                [setting_name(row), ratio(share), count(value)] for row, share, value in zip(rows, shares, values, strict=True)
            ],
            text=[ratio(share) if share >= LEAST_LABELLED and outcome != "early" else "" for share in shares],
            textposition="inside",
            textfont={"color": text_on(fill)},
            insidetextanchor="middle",
            textangle=0,
            hovertemplate="%{customdata[0]}<br>" + words + ": %{customdata[1]}, %{customdata[2]} requests<extra></extra>",
        )
    for place, row in zip(places, rows, strict=True):
        figure.add_annotation(
            x=101, y=place, xref="x", yref="y", text=ratio(row["utilisation_ratio"]), showarrow=False, xanchor="left",
            font={"size": 12, "color": TEXT[mode]},
        )  # fmt: skip
    figure.add_annotation(
        x=101,
        y=-0.75,
        text="used",
        showarrow=False,
        xanchor="left",
        font={"size": 12, "color": FAINT[mode]},
    )
    legend_below(figure, rows=2)
    figure.update_layout(barmode="stack", bargap=0.22, margin={"l": 104})
    share_axis(figure.layout.xaxis, "share of the requests", [0, 124])
    figure.layout.xaxis.tickvals = [0, 25, 50, 75, 100]
    figure.update_yaxes(
        range=[(places[-1] if places else 0) + 0.6, -1.1], tickvals=places, ticktext=names, showgrid=False,
        title={"text": "reserved output (tokens)"},
    )  # fmt: skip
    return figure


def _time(points: pl.DataFrame, first: Any, *, dated: bool) -> np.ndarray:
    at = points["at"]
    return (at.dt.replace_time_zone(None) if dated else (at - first).dt.total_microseconds() / 60e6).to_numpy()


def _time_axis(figure: go.Figure, *, dated: bool) -> None:
    if dated:
        utc_axis(figure)
    else:
        figure.update_xaxes(title={"text": "minutes since the first request"})


def money_alt(moments: pl.DataFrame, setting: str, limit_pico: int) -> str:
    """Return what the figure of money over time shows, in one sentence."""
    points = moments.filter(pl.col("setting") == setting)
    most = points["held_pico"].max() if points.height else None
    held = f"at most {money_text(most)} held at once" if isinstance(most, int) else "nothing was held"
    return f"Money spent and held over time against the limit of {money_text(limit_pico)}, and the bound at each moment; {held}."


def fig_money(moments: pl.DataFrame, setting: str, limit_pico: int, *, dated: bool, mode: Mode) -> go.Figure:
    """Return what was spent and held over time under one setting, with the limit and how far over it the worst case reaches.

    Parameters
    ----------
    moments
        Frame :data:`~horde_policy.frames.usage.BUDGET_MOMENTS`.
    setting
        The setting that is drawn.
    limit_pico
        The limit of each window.
    dated
        Whether times are real dates, else minutes since the first request.
    mode
        The viewer's theme.
    """
    figure = base_figure(height_px=320)
    points = moments.filter(pl.col("setting") == setting).sort("at")
    at = _time(points, moments["at"].min(), dated=dated)
    spent, held, bound = (points[name] for name in ("spent_pico", "held_pico", "bound_pico"))
    colours = SETTING_COLOURS[mode]
    below, open_to, worst = np.cumsum([_places_usd(amounts) for amounts in (spent, held, bound)], axis=0)
    layers = (
        ("spent", below, "solid", colours[0], "tozeroy", "", spent),
        ("spent and held", open_to, "solid", colours[2], "tonexty", " held", held),
        ("and the worst case of what is open", worst, "dot", colours[1], "none", " at worst beyond what is held", bound),
    )
    for name, values, dash, colour, fill, words, shown in layers:
        figure.add_scatter(
            x=at,
            y=values,
            mode="lines",
            name=name,
            line={"color": colour, "width": 2 if fill != "none" else 1.5, "dash": dash},
            fill=fill,
            fillcolor=_faded(colour),
            customdata=_monies(shown),
            hovertemplate=f"{name}: %{{customdata}}{words}<br>%{{x}}<extra></extra>",
        )
    low = _usd(limit_pico) <= LOW_LIMIT * max([0.0, *worst])
    figure.add_hline(
        y=_usd(limit_pico),
        line={"width": 1.5, "color": TEXT[mode]},
        annotation_text=f"limit {_money(limit_pico)}",
        annotation_position="top left" if low else "bottom left",
        annotation_font={"size": 11, "color": TEXT[mode]},
    )
    legend_below(figure, rows=3)
    figure.update_yaxes(title={"text": "money ($)"}, rangemode="tozero", **MONEY_TICKS)
    _time_axis(figure, dated=dated)
    return figure


def over_time_alt(moments: pl.DataFrame, settings: Mapping[str, str], column: str) -> str:
    """Return what a figure of open holds or of the bound over time shows, in one sentence."""
    each = []
    for setting, name in settings.items():
        most = moments.filter(pl.col("setting") == setting)[column].max()
        if isinstance(most, int):
            each.append(f"{name} at most {count(most) if column == 'open' else money_text(most)}")
    what = "Open holds over time" if column == "open" else "The worst case of what is open, beyond what is held, at each moment"
    return f"{what}: {', '.join(each) or 'no request'}."


def fig_bound(moments: pl.DataFrame, settings: Mapping[str, str], *, dated: bool, mode: Mode) -> go.Figure:
    """Return the bound over time: one line for each setting.

    Parameters
    ----------
    moments
        Frame :data:`~horde_policy.frames.usage.BUDGET_MOMENTS`.
    settings
        Setting → its name, at most four.
    dated, mode
        As in :func:`fig_money`.
    """
    figure = base_figure(height_px=280)
    for place, (setting, name) in enumerate(settings.items()):
        points = moments.filter(pl.col("setting") == setting).sort("at")
        figure.add_scatter(
            x=_time(points, moments["at"].min(), dated=dated),
            y=_places_usd(points["bound_pico"]),
            mode="lines",
            name=name,
            line={"color": SETTING_COLOURS[mode][place], "width": 1.8, "dash": DASHES[place]},
            customdata=_monies(points["bound_pico"]),
            hovertemplate=f"{name}: %{{customdata}}<br>%{{x}}<extra></extra>",
        )
    legend_below(figure, rows=2)
    figure.update_yaxes(title={"text": "beyond what is held ($)"}, rangemode="tozero", **MONEY_TICKS)
    _time_axis(figure, dated=dated)
    return figure


OPEN_ROW_PX: Final = 64
"""The height of one setting's open holds, with its name above."""


def fig_open(moments: pl.DataFrame, settings: Mapping[str, str], *, dated: bool, mode: Mode) -> go.Figure:
    """Return the open holds over time: a row for each setting under its name, all to one scale.

    The settings admit nearly the same requests for most of the time, so their lines in one plot would cover one another.

    Parameters
    ----------
    moments, settings, dated, mode
        As in :func:`fig_bound`.
    """
    figure = base_figure(height_px=94 + OPEN_ROW_PX * max(1, len(settings)))
    shown = moments.filter(pl.col("setting").is_in(list(settings)))
    most = max([1, *shown["open"].to_list()])
    own = figure.layout.yaxis.to_plotly_json()
    for place, (setting, name) in enumerate(settings.items()):
        points = shown.filter(pl.col("setting") == setting).sort("at")
        last = "" if place == len(settings) - 1 else str(len(settings) - place)
        colour = SETTING_COLOURS[mode][place]
        figure.add_scatter(
            x=_time(points, moments["at"].min(), dated=dated),
            y=points["open"].to_numpy(),
            mode="lines",
            name=name,
            yaxis=f"y{last}",
            line={"color": colour, "width": 1.5},
            fill="tozeroy",
            fillcolor=_faded(colour),
            hovertemplate=f"{name}: %{{y:,}}<br>%{{x}}<extra></extra>",
        )
        top = 1 - place / len(settings)
        domain = [top - 0.72 / len(settings), top]
        # a hold is whole: without a step of its own, an axis up to 1 has a tick at a half
        ticks = {"dtick": 1} if most <= 2 else {"nticks": 3}
        figure.layout[f"yaxis{last}"] = own | {"domain": domain, "range": [0, 1.05 * most], "anchor": "x", **ticks}
        figure.add_annotation(
            text=name, x=0, y=1, xref="x domain", yref=f"y{last} domain", showarrow=False, xanchor="left", yanchor="bottom",
            font={"size": 12, "color": TEXT[mode]},
        )  # fmt: skip
    figure.add_annotation(
        text="open requests", x=0, y=0.5, xref="paper", yref="paper", xshift=-44, showarrow=False, textangle=-90,
        font={"size": 12, "color": FAINT[mode]},
    )  # fmt: skip
    _time_axis(figure, dated=dated)
    return figure
