"""A change proposal as a document: Markdown for a decision record, and one HTML file that opens anywhere.

The document is a list of blocks, made once and written two ways. Text from outside (names of traces and sources) is only ever
inline code, which neither way can read as markup.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from horde_policy.sweep.evidence import measured_by_block
from horde_policy.sweep.inputs import made_up
from horde_policy.sweep.judge import Comparison
from horde_policy.sweep.metrics import METRICS
from horde_policy.sweep.proposal import Proposal
from horde_policy.units import one_or_range
from horde_policy.views.proposal_words import caveat_sentence, headline, refuting_sentences, summary_sentences, synthetic_words
from horde_policy.views.replay_words import fleet_words
from horde_policy.views.report_page import STYLE
from horde_policy.views.sweep_words import (
    SETTING_WORDS,
    VERDICTS,
    constraint_words,
    days_words,
    difference_words,
    effect_words,
    figure_words,
    metric_words,
    objective_words,
    with_bounds,
)
from horde_policy.views.text import NOT_REPORTED, code_span, count_of, escape_html, instant, ratio, seconds, visible

__all__ = ["proposal_html", "proposal_markdown", "proposal_name"]

POLICY = "default-src 'none'; style-src 'unsafe-inline'"

TABLES = """
.scroll { overflow-x: auto; }
.scroll td, .scroll th { overflow-wrap: break-word; word-break: normal; min-width: 4.2rem; }
pre { overflow-x: auto; }
@media print { .scroll { overflow-x: visible; } .scroll td, .scroll th { min-width: 0; font-size: .7rem; } }
"""
"""A table that is wider than a phone scrolls by itself, and its words are not cut."""


@dataclass(frozen=True, slots=True)
class Code:
    """Text that is shown as it is, whatever stands in it."""

    text: str


Inline = str | Code
Line = tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of level 1 or 2."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph; ``strong`` sets it off."""

    line: Line
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list."""

    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its headings, and rows of as many cells."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """Lines to be copied as they are."""

    lines: tuple[str, ...]


Block = Heading | Paragraph | Bullets | Table | Listing


def proposal_name(proposal: Proposal, ending: str) -> str:
    """Return the document's file name: what it is, and the settings' digest."""
    return f"proposal_{proposal.settings.digest()}.{ending}"


def proposal_markdown(proposal: Proposal, *, made_at: datetime) -> str:
    """Return the proposal as Markdown."""
    return "\n\n".join(_markdown(block) for block in _blocks(proposal, made_at)) + "\n"


def proposal_html(proposal: Proposal, *, made_at: datetime) -> str:
    """Return the proposal as one HTML file, which asks nothing of any network and runs no script."""
    body = "\n".join(_html(block) for block in _blocks(proposal, made_at))
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape_html(headline(proposal))}</title><style>{STYLE}{TABLES}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


# --- what stands in it --------------------------------------------------------------------------------------------------


def _blocks(proposal: Proposal, made_at: datetime) -> list[Block]:
    blocks: list[Block] = [
        Heading(1, headline(proposal)),
        Paragraph((f"Made {instant(made_at)} from a sweep of {count_of(proposal.tried, 'setting')}.",)),
    ]
    which = made_up(proposal.stamp)
    if which is not None:
        blocks.append(Paragraph((f"{synthetic_words(which)}: the figures show the method, not the horde.",), strong=True))
    blocks += [Paragraph((sentence,)) for sentence in summary_sentences(proposal)]
    blocks += [Heading(2, "The settings"), Listing(tuple(line.line for line in proposal.environment)), _settings_table(proposal)]
    blocks += [Heading(2, "What was wanted"), _wanted(proposal)]
    blocks += [Heading(2, "Evidence"), _comparison_table(proposal), _evidence_words(proposal)]
    if proposal.checks:
        blocks += [Heading(2, "Constraints"), _checks_table(proposal)]
    blocks += [Heading(2, "Day by day"), _day_table(proposal)]
    if proposal.sensitivities:
        blocks += [Heading(2, "What each setting does"), _sensitivity_table(proposal)]
    blocks += [Heading(2, "What it rests on"), Bullets(tuple(_rests_on(proposal)))]
    blocks += [Heading(2, "Caveats"), Bullets(tuple(_caveat_line(c.code, c.facts) for c in proposal.caveats))]
    blocks += [Heading(2, "What would refute it"), _expected_table(proposal)]
    blocks.append(Bullets(tuple((sentence,) for sentence in refuting_sentences(proposal))))
    return blocks


def _caveat_line(code: str, facts: object) -> Line:
    sentence, names = caveat_sentence(code, facts)
    parts: list[Inline] = [sentence]
    for place, name in enumerate(names):
        parts += [", " if place else " ", Code(name)]
    return tuple(parts)


def _settings_table(proposal: Proposal) -> Table:
    rows = []
    for line in proposal.environment:
        label, unit = SETTING_WORDS[line.setting]
        heading = f"{label} ({unit})" if unit else label
        rows.append((heading, line.now, line.value, "changed" if line.changed else "as it is"))
    return Table(("Setting", "Now", "Proposed", ""), tuple(rows))


def _wanted(proposal: Proposal) -> Bullets:
    question = proposal.judgement.question
    lines: list[Line] = [(f"{objective_words(question.objectives[0])}: decides.",)]
    lines += [(f"{objective_words(objective)}: weighed on the front.",) for objective in question.objectives[1:]]
    lines += [(f"{constraint_words(constraint)}: must hold.",) for constraint in question.constraints]
    return Bullets(tuple(lines))


def _comparison_table(proposal: Proposal) -> Table:
    chosen, held = len(proposal.days), len(proposal.holdout_days)
    on_chosen = ("Metric", "Now", "Proposed", "Difference", "Verdict", f"Better on (of {chosen})")
    on_held = ("Now, held out", "Proposed, held out", f"Better on (of {held})")
    return Table((*on_chosen, *on_held), tuple(_comparison_row(c) for c in proposal.comparisons))


def _comparison_row(comparison: Comparison) -> tuple[str, ...]:
    metric = METRICS[comparison.metric]
    apart = difference_words(
        metric,
        comparison.difference,
        comparison.difference_half_width,
        comparison.baseline_low,
        comparison.baseline_high,
    )
    return (
        metric_words(metric),
        with_bounds(metric, comparison.baseline, comparison.baseline_low, comparison.baseline_high),
        with_bounds(metric, comparison.point, comparison.point_low, comparison.point_high),
        apart,
        VERDICTS[comparison.verdict],
        str(comparison.better_days),
        figure_words(metric, comparison.holdout_baseline),
        figure_words(metric, comparison.holdout_point),
        str(comparison.holdout_better_days),
    )


def _evidence_words(proposal: Proposal) -> Paragraph:
    return Paragraph(
        (
            f"Chosen on {days_words(proposal.days)}, looked at again on {days_words(proposal.holdout_days)}. Intervals hold with "
            "95 % and come from resampled days and seeds; that of the deciding difference holds for all settings tried together.",
        )
    )


def _checks_table(proposal: Proposal) -> Table:
    rows = []
    for check in proposal.checks:
        metric = check.constraint.metric
        held = "—" if check.met_on_holdout is None else "met" if check.met_on_holdout else "not met"
        limit = figure_words(metric, check.limit)
        rows.append((constraint_words(check.constraint), figure_words(metric, check.value), limit, ratio(check.met_share), held))
    return Table(("Constraint", "Proposed", "Bound", "Met in (of the resamples)", "On the days held out"), tuple(rows))


def _day_table(proposal: Proposal) -> Table:
    judgement = proposal.judgement
    metrics = [objective.metric for objective in judgement.question.objectives]
    names = list(dict.fromkeys((str(judgement.baseline), proposal.point)))
    headings = ["Day", "Begins (UTC)" if proposal.stamp.get("dated", True) else "Begins after", ""]
    columns = []
    for metric in metrics:
        by_day = measured_by_block(judgement.rows, names, metric, "day")
        for name in names:
            word = "proposed" if name == proposal.point and len(names) > 1 else "now"
            headings.append(f"{metric_words(metric)}, {word}")
            columns.append(dict(by_day.filter(pl.col("point") == name).select("day", "value").iter_rows()))
    starts = dict(judgement.rows.select("day", "day_from").unique().iter_rows())
    first = min(starts.values())
    rows = []
    for day in sorted(starts):
        begins = starts[day]
        when = f"{begins:%Y-%m-%d %H:%M}" if proposal.stamp.get("dated", True) else f"{(begins - first).days * 24} h"
        use = "held out" if day in proposal.holdout_days else "chosen on"
        figures = [figure_words(metrics[place // len(names)], values.get(day)) for place, values in enumerate(columns)]
        rows.append((str(day), when, use, *figures))
    rows += [_short_day(day, hours, len(headings)) for day, hours in judgement.short_days.items()]
    return Table(tuple(headings), tuple(rows))


def _short_day(day: int, hours: float, cells: int) -> tuple[str, ...]:
    return (str(day), NOT_REPORTED, f"not counted: {seconds(hours * 3600)} of 24 h", *[NOT_REPORTED] * (cells - 3))


def _sensitivity_table(proposal: Proposal) -> Table:
    metric = proposal.judgement.question.objectives[0].metric
    rows = []
    for each in proposal.sensitivities:
        verdict = "within the noise" if each.within_noise else "beyond noise"
        share = "—" if each.share is None else ratio(each.share)
        rows.append((SETTING_WORDS[each.setting][0], effect_words(metric, each.effect, each.half_width), share, verdict))
    headings = ("Setting", f"{metric_words(metric)}: from its lowest to its highest mean", "Share of all variation", "")
    return Table(headings, tuple(rows))


def _rests_on(proposal: Proposal) -> list[Line]:
    stamp = proposal.stamp
    lines: list[Line] = [
        ("Traffic ", Code(visible(str(stamp.get("trace", "not named")))), f", {count_of(proposal.mix.requests, 'request')} "
         "counted for each setting, seeds and loads together."),
        (f"Requesters: {_shares(proposal.mix.by_requester)}.",),
        (f"Sizes asked for: {_shares(proposal.mix.by_size)}.",),
    ]  # fmt: skip
    if stamp.get("fleet"):
        lines.append(("Fleet ", Code(_fleet(stamp["fleet"])), "."))
    loads = ", ".join(f"{load:g}" for load in proposal.loads)
    utilisation = proposal.judgement.rows["utilisation"].drop_nulls()
    busy = "" if utilisation.is_empty() else f"; {_range(utilisation)} of what the fleet could make"
    base = float(stamp.get("base_load", 1.0))
    times = "" if base == 1 else f" (1 is the trace laid over itself {base:g} times)"
    lines.append((f"Load {loads}{times}{busy}; {proposal.seeds} seed{'s' if proposal.seeds > 1 else ''}.",))
    lines.append((f"Day 1 is the first 24 hours; all {len(proposal.judgement.day_hours)} days are replayed as one, "
                  "so that the queue carries over, and a request counts on the day of its first sending.",))  # fmt: skip
    lines.append(("Inputs ", Code(str(stamp.get("inputs"))), ", engine ", Code(str(stamp.get("engine"))), ", settings ",
                  Code(proposal.settings.digest()), " against ", Code(proposal.baseline.digest()), "."))  # fmt: skip
    return lines


def _shares(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {ratio(share)}" for name, share in shares.items())


def _fleet(stamp: dict[str, object]) -> str:
    needed = {"from", "synthetic", "workers", "models", "combined_speed_tok_per_s"}
    return fleet_words(stamp) if needed <= set(stamp) else visible(str(stamp))


def _range(utilisation: pl.Series) -> str:
    values = sorted(utilisation.to_list())
    return one_or_range(ratio(values[0]), ratio(values[-1]))


def _expected_table(proposal: Proposal) -> Table:
    rows = []
    for each in proposal.expected:
        rows.append(
            (
                metric_words(each.metric),
                _between(each.metric, each.baseline_low, each.baseline_high),
                _between(each.metric, each.low, each.high),
            )
        )
    return Table(("On one day of production", "Before the change", "After it"), tuple(rows))


def _between(metric: str, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "too few days to say"
    if low == high:  # no spread, so no range: one refusal on a day of production would be outside of it
        return f"{figure_words(metric, low)} on every replayed day, so no range to hold a day against"
    return one_or_range(figure_words(metric, low), figure_words(metric, high))


# --- writing it ---------------------------------------------------------------------------------------------------------


def _markdown(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {block.text}"
    if isinstance(block, Paragraph):
        text = _markdown_line(block.line)
        return f"**{text}**" if block.strong else text
    if isinstance(block, Bullets):
        return "\n".join(f"- {_markdown_line(line)}" for line in block.lines)
    if isinstance(block, Listing):
        return "```sh\n" + "\n".join(block.lines) + "\n```"
    rule = "|" + "|".join(" --- " for _ in block.headings) + "|"
    return "\n".join([_markdown_row(block.headings), rule, *(_markdown_row(row) for row in block.rows)])


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_plain(cell) for cell in cells) + " |"


def _plain(text: str) -> str:
    """Escape the few marks of Markdown and HTML that our own words hold (sizes as ``<=512``, table bars)."""
    for mark in ("\\", "|", "<", ">", "*", "_"):
        text = text.replace(mark, "\\" + mark)
    return text


def _markdown_line(line: Line) -> str:
    return "".join(code_span(part.text) if isinstance(part, Code) else _plain(part) for part in line)


def _html(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level}>{escape_html(block.text)}</h{block.level}>"
    if isinstance(block, Paragraph):
        return f"<p{' class=synthetic' if block.strong else ''}>{_html_line(block.line)}</p>"
    if isinstance(block, Bullets):
        return "<ul>" + "".join(f"<li>{_html_line(line)}</li>" for line in block.lines) + "</ul>"
    if isinstance(block, Listing):
        return "<pre><code>" + "\n".join(escape_html(line) for line in block.lines) + "</code></pre>"
    head = "".join(f"<th>{escape_html(text)}</th>" for text in block.headings)
    body = "".join("<tr>" + "".join(f"<td>{escape_html(cell)}</td>" for cell in row) + "</tr>" for row in block.rows)
    return f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _html_line(line: Line) -> str:
    return "".join(f"<code>{escape_html(part.text)}</code>" if isinstance(part, Code) else escape_html(part) for part in line)
