"""A replay as one HTML file that opens anywhere: its figures with the drawing program inside, nothing fetched from a network.

The file forbids itself any request, so that neither a name in the data nor the drawing program can make one.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

import plotly.graph_objects as go

from horde_policy.views.figures.library import library_script
from horde_policy.views.figures.replay import (
    allowance_alt,
    changes_alt,
    fig_allowance,
    fig_changes,
    fig_mix,
    fig_waits,
    mix_alt,
    waits_alt,
)
from horde_policy.views.figures.style import PLOTLY_CONFIG
from horde_policy.views.grid import Column, Row
from horde_policy.views.replay_exports import ReplayStamp
from horde_policy.views.replay_results import ALL_MODELS, Compared, Scored
from horde_policy.views.replay_runs import Run
from horde_policy.views.replay_words import (
    AGREEMENT_COLUMNS,
    DIFFERENCE_COLUMNS,
    INTRODUCTION,
    OVERLAPPING,
    RUN_COLUMNS,
    UNFINISHED_COLUMNS,
    WAIT_COLUMNS,
    agreement_rows,
    difference_rows,
    headline,
    inputs_words,
    run_rows,
    setting_rows,
    unfinished_rows,
    wait_rows,
)
from horde_policy.views.text import escape_html, instant, unbroken

__all__ = ["replay_report"]

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:"

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #17202b; background: #fff;
  margin: 2rem auto; max-width: 1120px; padding: 0 1rem; }
h1 { font-size: 1.45rem; line-height: 1.25; } h2 { font-size: 1.1rem; margin: 2rem 0 .4rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; } dt { color: #4d5967; }
dd { margin: 0; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-size: .87rem; } .scroll { overflow-x: auto; }
th, td { text-align: left; padding: .3rem .55rem; border-bottom: 1px solid #d5dce5; vertical-align: top; }
th { color: #4d5967; font-weight: 600; } .right { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.sub { display: block; color: #4d5967; font-size: .8rem; } tr.pinned { background: #f3f5f8; }
.note { color: #4d5967; font-size: .87rem; }
"""

Runs = Sequence[tuple[Run, Scored]]


def replay_report(
    runs: Runs, changes: Mapping[str, Compared], stamp: ReplayStamp, *, made_at: datetime, model: str = ALL_MODELS
) -> bytes:
    """Return the report.

    Parameters
    ----------
    runs
        Runs and their figures, the baseline first.
    changes
        Letter → differences from the baseline.
    stamp
        Where the replay comes from.
    made_at
        When the report is made.
    model
        The model whose allowance over time is drawn.
    """
    figures = [
        ("Who gets what, by requester", fig_mix(runs, "requester", "light"), mix_alt(runs)),
        ("Who gets what, by size asked for", fig_mix(runs, "requested_size", "light"), mix_alt(runs)),
        ("How long admitted requests wait", fig_waits(runs, requester=None, outcome=None, mode="light"), waits_alt(runs, None)),
        (
            "The allowance over time",
            fig_allowance(runs, model, dated=bool(stamp.traffic["dated"]), mode="light"),
            allowance_alt(runs, model),
        ),
    ]
    if changes:
        figures.insert(0, ("Who gains and who loses against the baseline", fig_changes(changes, "light"), changes_alt(changes)))
    title = headline(runs, changes)
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape_html(title)}</title><style>{STYLE}</style></head><body>",
        f"<h1>{escape_html(unbroken(title))}</h1>",
        f'<p class="note">{escape_html(INTRODUCTION.split(". The baseline")[0])}. Made {escape_html(instant(made_at))}.</p>',
        f"<script>{library_script()}</script>",
        _list(inputs_words(stamp.traffic, stamp.fleet)),
        "<h2>The runs</h2>",
        _table(RUN_COLUMNS, run_rows(runs, changes)),
        f'<p class="note">{escape_html(OVERLAPPING)}</p>',
    ]
    for heading, figure, alt in figures:
        parts.append(f"<h2>{escape_html(heading)}</h2>")
        parts.append(_figure(figure, alt))
    for letter, change in changes.items():
        parts.append(f"<h2>The largest differences of {escape_html(letter)} from the baseline</h2>")
        parts.append(_table(DIFFERENCE_COLUMNS, difference_rows(change, each=10)))
    parts += ["<h2>Queue waits of the requests that started</h2>", _table(WAIT_COLUMNS, wait_rows(runs))]
    parts += ["<h2>Admitted and not finished</h2>", _table(UNFINISHED_COLUMNS, unfinished_rows(runs))]
    if agreement_rows(runs):
        parts += ["<h2>Recorded and replayed outcomes</h2>", _table(AGREEMENT_COLUMNS, agreement_rows(runs))]
    for run, _ in runs:
        parts += [f"<h2>Settings of {escape_html(run.letter)} ({run.digest})</h2>", _list(setting_rows(run))]
    problems = [str(problem) for problem in stamp.traffic.get("problems", ())]
    if problems:
        parts.append("<h2>What was found in the traffic's file</h2><ul>")
        parts += [f"<li>{escape_html(problem)}</li>" for problem in problems]
        parts.append("</ul>")
    parts.append("</body></html>")
    return "\n".join(parts).encode("utf-8", "replace")


def _list(pairs: Sequence[tuple[str, str]]) -> str:
    return "<dl>" + "".join(f"<dt>{escape_html(name)}</dt><dd>{escape_html(text)}</dd>" for name, text in pairs) + "</dl>"


def _figure(figure: go.Figure, alt: str) -> str:
    figure.update_layout(template="plotly_white", font={"family": "system-ui, sans-serif", "color": "#17202b"})
    drawn = figure.to_html(full_html=False, include_plotlyjs=False, config={**PLOTLY_CONFIG, "responsive": True})
    return f'<div role="img" aria-label="{escape_html(alt)}">{drawn}</div><p class="note">{escape_html(alt)}</p>'


def _table(columns: Sequence[Column], rows: Sequence[Row]) -> str:
    head = "".join(
        f'<th class="{"right" if c.right else ""}">{escape_html(c.label)}'
        + (f'<span class="sub">{escape_html(c.unit)}</span>' if c.unit else "")
        + "</th>"
        for c in columns
    )
    body = "".join(
        f'<tr class="{"pinned" if row.pinned else ""}">'
        + "".join(_cell(column, row.cells.get(column.key)) for column in columns)
        + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(column: Column, value: object) -> str:
    if isinstance(value, Mapping):
        sub = f'<span class="sub">{escape_html(str(value["sub"]))}</span>' if value.get("sub") else ""
        text = escape_html(str(value["text"])) + sub
    else:
        text = escape_html("" if value is None else str(value))
    return f'<td class="{"right" if column.right else ""}">{text}</td>'
