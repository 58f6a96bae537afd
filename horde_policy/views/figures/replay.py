"""The four figures of a replay: who got what, who waited how long, the allowance over time, who gains and who loses."""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Final

import plotly.graph_objects as go
import polars as pl

from horde_policy.replay.comparison import GAINS, LOSSES
from horde_policy.views.figures.contrast import patterned, text_on
from horde_policy.views.figures.style import (
    FAINT,
    MARK_ROW_PX,
    OUTCOME_PATTERNS,
    OUTCOMES,
    TEXT,
    Mode,
    base_figure,
    draw_mark_above,
    legend_below,
    percent,
    share_axis,
    utc_axis,
)
from horde_policy.views.replay_results import (
    ALL_MODELS,
    BIN_S,
    LAST_BIN,
    REQUESTERS,
    SIZES,
    Compared,
    Scored,
    mix_shares,
    share_waiting_at_most,
)
from horde_policy.views.replay_runs import Run
from horde_policy.views.review_words import word_text
from horde_policy.views.text import count, escape_plotly, ratio, seconds

__all__ = [
    "RUN_COLOURS",
    "allowance_alt",
    "changes_alt",
    "fig_allowance",
    "fig_changes",
    "fig_mix",
    "fig_waits",
    "marks_of",
    "mix_alt",
    "waits_alt",
]

RUN_COLOURS: Final[dict[Mode, tuple[str, ...]]] = {
    "light": ("#3b4654", "#2457c5", "#c1661c", "#148a76", "#8a3d86"),
    "dark": ("#cbd5e1", "#6f9ff2", "#e59a5c", "#3fb6a0", "#c98ac6"),
}
"""The baseline's colour and those of the runs B to E, out of the theme's categories."""

RUN_DASHES: Final = ("dot", "solid", "dash", "dashdot", "longdash")

CHANGE_COLOURS: Final[dict[Mode, dict[str, str]]] = {
    "light": {
        "now served": "#0c6b5a", "more tokens": "#3b4654", "now free": OUTCOMES["light"]["free"], "sooner": "#5f7391",
        "later": "#8f7450", "now funded": OUTCOMES["light"]["funded"], "fewer tokens": "#c1661c", "no longer served": "#8a3d86",
    },
    "dark": {
        "now served": "#3fb6a0", "more tokens": "#cbd5e1", "now free": OUTCOMES["dark"]["free"], "sooner": "#7b90ad",
        "later": "#cdb892", "now funded": OUTCOMES["dark"]["funded"], "fewer tokens": "#e59a5c", "no longer served": "#c98ac6",
    },
}  # fmt: skip
"""How a request fares → colour: an outcome's own for what became free or funded, and no outcome's for the rest."""

CHANGE_PATTERNS: Final = {"now served": "", "more tokens": "/", "now free": ".", "sooner": "-"} | {
    "no longer served": "", "fewer tokens": "/", "now funded": ".", "later": "-"
}  # fmt: skip

Runs = Sequence[tuple[Run, Scored]]


def _groups(runs: Runs, by: str) -> list[str]:
    """Return the words of a kind that occur in any run, in their order, and all of them together first."""
    words = REQUESTERS if by == "requester" else SIZES
    found = {row[by] for _, scored in runs for row in scored.summary["mix"]}
    return [word for word in words if word in found]


def mix_alt(runs: Runs) -> str:
    """Return what the outcome figure shows, in one sentence."""
    refused = ", ".join(f"{run.letter} {ratio(_share(scored, 'refused'))}" for run, scored in runs)
    return f"Share of requests by outcome, requester or size, and run; refused in all: {refused}."


def _share(scored: Scored, outcome: str) -> float | None:
    requests = scored.summary["requests"]
    return scored.summary["outcomes"][outcome] / requests if requests else None


def fig_mix(runs: Runs, by: str, mode: Mode) -> go.Figure:
    """Return the outcomes as shares of each requester's, or each size's, requests: one bar a run, group by group.

    Parameters
    ----------
    runs
        Runs and their figures, the baseline first.
    by
        ``requester`` or ``requested_size``.
    mode
        The viewer's theme.
    """
    groups = _groups(runs, by)
    figure = base_figure(height_px=90 + 28 * max(1, len(groups) * len(runs)))
    labels: list[list[str]] = [[], []]
    cells = []
    for group in groups:
        for run, scored in runs:
            shares = mix_shares(scored, by, group)
            labels[0].append(word_text(by, group))
            labels[1].append(run.letter)
            cells.append(shares)
    for outcome in OUTCOME_PATTERNS:
        fill = OUTCOMES[mode][outcome]
        figure.add_bar(
            y=labels,
            x=percent(shares[outcome][1] for shares in cells),
            orientation="h",
            name=outcome,
            marker={"color": fill, "pattern": patterned(fill, OUTCOME_PATTERNS[outcome])},
            customdata=[[ratio(shares[outcome][1]), count(shares[outcome][0])] for shares in cells],
            text=[ratio(shares[outcome][1]) if shares[outcome][1] >= 0.06 else "" for shares in cells],
            textposition="inside",
            textfont={"color": text_on(fill)},
            insidetextanchor="middle",
            textangle=0,
            hovertemplate="%{y}<br>" + outcome + ": %{customdata[0]}, %{customdata[1]} requests<extra></extra>",
        )
    legend_below(figure, rows=2)
    figure.update_layout(barmode="stack", bargap=0.18, margin={"l": 120, "r": 20, "b": figure.layout.margin.b + 4})
    share_axis(figure.layout.xaxis, "share of the requests", [0, 100])
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return figure


def waits_alt(runs: Runs, requester: str | None) -> str:
    """Return what the wait figure shows, in one sentence."""
    who = "admitted requests" if requester is None else f"admitted requests of {requester.replace('_', ' ')} requesters"
    ends = []
    for run, scored in runs:
        curve = dict(share_waiting_at_most(scored, requester=requester))
        ends.append(f"{run.letter} {ratio(curve.get(60))} and {ratio(curve.get(300))}")
    return f"Share of {who} that were started within a queue wait; within 60 s and 300 s: {', '.join(ends)}."


def marks_of(runs: Sequence[Run], opened: str = "") -> list[tuple[str, float, int]]:
    """Return the marks that are drawn: label, seconds, and the place of the run that they are of.

    They are the baseline's, and those of the run called ``opened`` that differ from them. A label says whose mark it is unless
    all runs that have such a mark have the same: one under another rule than the allowance has none.
    """
    found = []
    drawn = [0, *(place for place, run in enumerate(runs) if place and run.letter == opened)]
    for word, name in (("full wait", "wait_full_s"), ("floor wait", "wait_floor_s")):
        marks = [getattr(run.settings, name) if run.settings.rule == "allowance" else None for run in runs]
        shared = len({at_s for at_s in marks if at_s is not None}) == 1
        for place in drawn:
            at_s = marks[place]
            if at_s is not None and (place == 0 or at_s != marks[0]):
                found.append((f"{'' if shared else f'{runs[place].letter}: '}{word} {seconds(at_s)}", float(at_s), place))
    return found


def fig_waits(runs: Runs, *, requester: str | None, outcome: str | None, mode: Mode, opened: str = "") -> go.Figure:
    """Return the share of admitted requests started within a wait: one line a run, and marks of the baseline and of one more.

    Parameters
    ----------
    runs
        Runs and their figures, the baseline first.
    requester, outcome
        Whose waits; null for all.
    mode
        The viewer's theme.
    opened
        The letter of the run whose marks are drawn beside the baseline's, where they differ; the labels say whose they are.

    Notes
    -----
    A run without such requests has no line. What never started keeps a line below 1.
    """
    figure = base_figure(height_px=340)
    for place, (run, scored) in enumerate(runs):
        curve = share_waiting_at_most(scored, requester=requester, outcome=outcome)
        if not curve:
            continue
        figure.add_scatter(
            x=[wait for wait, _ in curve],
            y=percent(share for _, share in curve),
            customdata=[[ratio(share), seconds(wait)] for wait, share in curve],
            mode="lines",
            name=run.letter,
            line={"color": RUN_COLOURS[mode][place], "width": 2.5, "dash": RUN_DASHES[place]},
            hovertemplate=f"{run.letter}: %{{customdata[0]}} within %{{customdata[1]}}<extra></extra>",
        )
    marks = marks_of([run for run, _ in runs], opened) if runs else []
    # over the plot, each in a row of its own: the curves reach its top, and on a phone two labels in one row overlap
    for row, (text, at_s, place) in enumerate(sorted(marks, key=itemgetter(1), reverse=True)):
        draw_mark_above(figure, text, at_s, mode, row=row, colour=RUN_COLOURS[mode][place] if place else "")
    for label in figure.layout.annotations:
        if label.x > BIN_S * LAST_BIN / 2:
            label.xanchor = "right"  # near the edge it would be cut off
    figure.update_layout(margin={"t": 24 + MARK_ROW_PX * max(1, len(marks) - 1), "r": 26})
    legend_below(figure)
    figure.layout.margin.b += 4  # the last label reaches over the plot's end
    figure.update_xaxes(title={"text": "queue wait (s)"}, range=[0, BIN_S * LAST_BIN], dtick=BIN_S * LAST_BIN / 4)
    share_axis(figure.layout.yaxis, "share of the admitted started within it", [0, 103])
    return figure


def fig_allowance(runs: Runs, model: str, *, dated: bool, mode: Mode) -> go.Figure:
    """Return the mean allowance that requests for a model met over time, one line a run; a time without requests is a gap.

    Parameters
    ----------
    runs
        Runs and their figures; one whose rule has no allowance has no line.
    model
        A model of the traffic, or all.
    dated
        Whether times are real dates, else hours since the first request.
    mode
        The viewer's theme.
    """
    figure = base_figure(height_px=340)
    starts = [scored.over_time["from"].min() for _, scored in runs if scored.over_time.height]
    first = min((start for start in starts if start is not None), default=None)
    for place, (run, scored) in enumerate(runs):
        points = scored.over_time.filter(pl.col("model") == model)
        if not points.height:
            continue
        since_h = (points["from"] - first).dt.total_seconds() / 3600 if first is not None else None
        figure.add_scatter(
            x=points["from"].dt.replace_time_zone(None).to_list() if dated or since_h is None else since_h.to_list(),
            y=points["mean_tokens"].to_list(),
            mode="lines+markers",
            marker={"size": 4},
            name=run.letter,
            line={"color": RUN_COLOURS[mode][place], "width": 2, "dash": RUN_DASHES[place]},
            customdata=points.select("requests", "smallest_tokens", "mean_estimated_wait_s").rows(),
            hovertemplate=(
                f"{run.letter}: %{{y:,.0f}} tokens in the mean<br>smallest %{{customdata[1]:,}}, %{{customdata[0]:,}} requests"
                "<br>estimated wait %{customdata[2]:,.0f} s in the mean<extra></extra>"
            ),
        )
    legend_below(figure)
    if dated:
        utc_axis(figure)
    else:
        figure.update_xaxes(title={"text": "hours since the first request"})
    top = max((run.settings.ceiling_tokens for run, _ in runs), default=1)
    drawn = max((scored.over_time["mean_tokens"].max() or 0 for _, scored in runs), default=0)
    figure.update_yaxes(title={"text": "mean allowance (tokens)"}, range=[0, 1.08 * max(top, float(drawn))])  # type: ignore[arg-type]
    what = "" if model == ALL_MODELS else escape_plotly(model)
    if what:
        figure.add_annotation(
            text=what, x=1, y=1.02, xref="paper", yref="paper", showarrow=False, xanchor="right", yanchor="bottom",
            font={"size": 12, "color": FAINT[mode]},
        )  # fmt: skip
    return figure


def fig_changes(changes: Mapping[str, Compared], mode: Mode) -> go.Figure:
    """Return the shares of requests that fare worse (left) and better (right) than under the baseline, one bar a run.

    Parameters
    ----------
    changes
        Letter of a run → its differences from the baseline.
    mode
        The viewer's theme.
    """
    figure = base_figure(height_px=170 + 46 * max(1, len(changes)))
    letters = list(changes)
    widest = 0.0
    for words, sign in ((reversed(LOSSES), -1), (reversed(GAINS), 1)):
        for word in words:
            shares = [c.figures["changes"][word] / max(1, c.figures["requests"]) for c in changes.values()]
            if not any(shares):
                continue
            figure.add_bar(
                y=letters,
                x=percent(sign * share for share in shares),
                orientation="h",
                name=word,
                marker={
                    "color": CHANGE_COLOURS[mode][word],
                    "pattern": {"shape": CHANGE_PATTERNS[word], "fillmode": "overlay", "size": 6, "solidity": 0.2},
                },
                customdata=[
                    [ratio(share), count(c.figures["changes"][word])] for c, share in zip(changes.values(), shares, strict=True)
                ],
                hovertemplate="%{y}, " + word + ": %{customdata[0]}, %{customdata[1]} requests<extra></extra>",
            )
    for letter, change in changes.items():
        lose, gain = change.lose_share or 0.0, change.gain_share or 0.0
        widest = max(widest, lose, gain)
        for x, text, anchor in ((-lose, f"{ratio(lose)} worse ", "right"), (gain, f" {ratio(gain)} better", "left")):
            figure.add_annotation(
                x=100 * x, y=letter, text=text, showarrow=False, xanchor=anchor, font={"color": TEXT[mode], "size": 12}
            )
    figure.add_vline(x=0, line={"width": 1, "color": FAINT[mode]})
    legend_below(figure, rows=2)
    figure.update_layout(barmode="relative", margin={"l": 24})
    reach = max(0.001, widest) * 170
    share_axis(figure.layout.xaxis, "worse ← share of the requests → better", [-reach, reach])
    figure.layout.xaxis.nticks = 7
    figure.update_yaxes(autorange="reversed", type="category", showgrid=False)
    return figure


def changes_alt(changes: Mapping[str, Compared]) -> str:
    """Return what the figure of gains and losses shows, in one sentence."""
    each = ", ".join(f"{letter} {ratio(c.gain_share)} better and {ratio(c.lose_share)} worse" for letter, c in changes.items())
    return f"Requests that fare better or worse than under the baseline: {each or 'nothing is compared'}."


def allowance_alt(runs: Runs, model: str) -> str:
    """Return what the figure of the allowance shows, in one sentence."""
    letters = [run.letter for run, scored in runs if scored.over_time.filter(pl.col("model") == model).height]
    least = [scored.over_time.filter(pl.col("model") == model)["mean_tokens"].min() for _, scored in runs]
    known = [float(value) for value in least if isinstance(value, int | float)]
    lowest = f"; the lowest mean is {count(min(known))} tokens" if known else ""
    return f"Mean free output allowance over time for {model}, runs {', '.join(letters) or 'without one'}{lowest}."
