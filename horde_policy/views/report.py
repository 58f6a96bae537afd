"""A reviewed week as one HTML file: opens from disk without any network, figures interactive, made to be printed.

Everything stands in the file, the chart library too; a content policy in it forbids every request. Text from the network is
escaped where it is set.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

import plotly.graph_objects as go

from horde_policy.review.annotations import Annotation
from horde_policy.review.cells import size_grid
from horde_policy.review.decompose import decompose
from horde_policy.review.finding import Finding, Section
from horde_policy.review.findings import Week
from horde_policy.review.quiet import quiet_hours
from horde_policy.review.waits import distribution, of_kind
from horde_policy.views.figures.library import library_script
from horde_policy.views.figures.review_decisions import fig_bars, fig_over_time, fig_size_grid, grid_alt, split_alt
from horde_policy.views.figures.review_waits import distributions_alt, fig_distributions, fig_funded, funded_alt
from horde_policy.views.figures.review_whatif import fig_gains, gains_alt
from horde_policy.views.figures.style import FAINT, SURFACES, TEXT
from horde_policy.views.finding_text import POPULATIONS_DIFFER, SECTION_TITLES, finding_text, no_data_text, ratio_text
from horde_policy.views.report_page import DOCUMENT, DRAW, STYLE
from horde_policy.views.review_state import target_address
from horde_policy.views.review_words import bounds_text, span_text, word_text
from horde_policy.views.text import count, escape_html, instant, seconds, shortened, shortened_name, tokens

__all__ = ["report_html"]

SYNTHETIC_NOTE = "These data are made up: they show what the report looks like, and say nothing of any real server."


def report_html(week: Week, *, made_at: datetime, app_address: str = "", notes: Sequence[Annotation] = ()) -> str:
    """Return the report as one HTML document.

    Parameters
    ----------
    week
        What was reviewed.
    made_at
        When the report is made, which it says.
    app_address
        Where the app runs, for the links of the findings; empty: they lead to the figures below them.
    notes
        What happened when; drawn over time and listed.
    """
    exported = week.exported
    title = f"Free output allowance: {exported.title or 'exported metrics'}"
    body = [
        _header(week, title, made_at),
        _findings(week.findings, app_address, week),
        *(_section(section, week, notes) for section in week.sections),
        _made_of(week, notes),
        _methods(week),
    ]
    return DOCUMENT.format(
        title=escape_html(title),
        style=STYLE,
        library=library_script(),
        body="\n".join(body),
        draw=DRAW,
    )


# --- parts ------------------------------------------------------------------------------------------------------------------


def _header(week: Week, title: str, made_at: datetime) -> str:
    exported, changed = week.exported, week.settings.differences()
    settings = ", ".join(f"{name} {value}" for name, value in changed.items()) or "the defaults"
    full = f"ceiling {tokens(week.settings.ceiling_tokens)} tokens up to {seconds(week.settings.wait_full_s)}"
    floor = f"floor {tokens(week.settings.floor_tokens)} from {seconds(week.settings.wait_floor_s)}"
    facts = [
        f"{escape_html(bounds_text(exported.counted))} decisions, {escape_html(span_text(exported.covered))}",
        f"allowance settings: {escape_html(settings)} ({escape_html(full)}, {escape_html(floor)})",
        f"made {escape_html(instant(made_at))}",
    ]
    note = f'<p class="synthetic" role="note">{escape_html(SYNTHETIC_NOTE)}</p>' if exported.synthetic else ""
    return (
        f"<header><h1>{escape_html(shortened(title, 200))}</h1>{note}"
        f'<ul class="facts">{"".join(f"<li>{fact}</li>" for fact in facts)}</ul></header>'
    )


def _findings(findings: Sequence[Finding], app_address: str, week: Week) -> str:
    items = "".join(_finding(finding, app_address, week) for finding in findings)
    return f'<section id="findings"><h2>Findings, by consequence</h2><ol class="findings">{items}</ol></section>'


def _finding(finding: Finding, app_address: str, week: Week) -> str:
    text = finding_text(finding)
    address = (
        target_address(finding.target, base=app_address, span=week.exported.span)
        if app_address
        else f"#section-{finding.section}"
    )
    details = "".join(f"<li>{escape_html(detail)}</li>" for detail in text.details)
    return (
        f'<li class="{finding.severity}"><span class="severity">{escape_html(text.severity)}</span> '
        f"<strong>{escape_html(text.sentence)}</strong>"
        + (f' <span class="figure">{escape_html(text.beside)}</span>' if text.beside else "")
        + (f"<ul>{details}</ul>" if details else "")
        + f' <a href="{escape_html(address)}">{escape_html(text.link if app_address else "see the figures")}</a></li>'
    )


def _section(section: Section, week: Week, notes: Sequence[Annotation]) -> str:
    parts = [f'<section id="section-{section.code}"><h2>{escape_html(SECTION_TITLES[section.code])}</h2>']
    missing = no_data_text(section)
    if missing is not None:
        parts.append(f'<p class="nothing">{escape_html(missing)}</p>')
    sentences = [finding_text(finding).sentence for finding in section.findings]
    parts.append("".join(f"<p>{escape_html(sentence)}</p>" for sentence in sentences))
    parts.extend(
        _figure(figure, alt, f"{section.code}-{number}")
        for number, (figure, alt) in enumerate(_figures(section.code, week, tuple(notes)))
    )
    parts.append("</section>")
    return "\n".join(parts)


def _figures(code: str, week: Week, notes: tuple[Annotation, ...]) -> Iterable[tuple[go.Figure, str]]:
    decisions, waits = week.exported.decisions, week.exported.waits
    decided = week.exported.counted.high > 0
    if code == "refused" and decided:
        cells = decompose(decisions, ["requester", "outcome"])
        yield fig_bars(cells, "requester", "outcome", "light"), split_alt(cells, ["requester", "outcome"])
        cells = decompose(decisions, ["requested_size", "outcome"])
        yield fig_bars(cells, "requested_size", "outcome", "light"), split_alt(cells, ["requested_size", "outcome"])
        over_time = decompose(decisions, ["time", "outcome"], span=week.exported.span)
        if over_time["time"].null_count() < over_time.height:
            yield (
                fig_over_time(over_time, "outcome", "light", notes=notes, quiet=quiet_hours(week.exported)),
                "Decisions over time, by outcome.",
            )
    elif code == "responds" and decided:
        grid = size_grid(decisions, week.settings)
        yield fig_size_grid(grid, "light"), grid_alt(grid)
        over_time = decompose(decisions, ["time", "allowance_size"], span=week.exported.span)
        if over_time["time"].null_count() < over_time.height:
            figure = fig_over_time(over_time, "allowance_size", "light", notes=notes, shares=True)
            yield figure, "Size bucket of the allowance over time, as shares of all decisions."
    elif code == "estimates":
        kinds = {name: distribution(of_kind(waits, kind)) for name, kind in (("estimated", "estimated"), ("measured", "queue"))}
        if any(rows.height for rows in kinds.values()):
            yield fig_distributions(kinds, week.settings, "light"), distributions_alt(kinds, week.settings)
        by_requester = {
            word_text("requester", requester): distribution(of_kind(waits, "queue", requester))
            for requester in ("anonymous", "registered", "shared_key")
        }
        if any(rows.height for rows in by_requester.values()):
            yield fig_distributions(by_requester, week.settings, "light"), distributions_alt(by_requester, week.settings)
    elif code == "funded" and week.verdict.funded.rows.height:
        yield fig_funded(week.verdict.funded, week.settings, "light"), funded_alt(week.verdict.funded, week.settings)
    elif code == "changes" and week.what_ifs:
        yield fig_gains(week.what_ifs, "light"), gains_alt(week.what_ifs)


def _figure(figure: go.Figure, alt: str, name: str) -> str:
    figure.update_layout(
        paper_bgcolor=SURFACES["light"][0],
        plot_bgcolor=SURFACES["light"][0],
        font={"family": "system-ui, sans-serif", "size": 13, "color": TEXT["light"]},
        template="none",
    )
    figure.update_xaxes(automargin=True, linecolor=FAINT["light"], ticks="outside", tickcolor=FAINT["light"])
    figure.update_yaxes(automargin=True, gridcolor="#e3e7ec")
    # inside a script element only "</" and "<!--" end or change it; as escapes they are the same JSON
    content = figure.to_json().replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return (
        f'<figure><div class="chart" id="chart-{name}" role="img" aria-label="{escape_html(alt)}"></div>'
        f'<script type="application/json" data-for="chart-{name}">{content}</script>'
        f"<figcaption>{escape_html(alt)}</figcaption></figure>"
    )


def _made_of(week: Week, notes: Sequence[Annotation]) -> str:
    exported = week.exported
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td>{escape_html(cell)}</td>"
            for cell in (
                shortened_name(file.name, 120),
                file.form,
                count(file.samples),
                count(file.skipped),
                "—" if file.first is None else instant(file.first),
                "—" if file.last is None else instant(file.last),
            )
        )
        + "</tr>"
        for file in exported.files
    )
    heads = "".join(
        f'<th scope="col">{head}</th>'
        for head in ("file", "form", "samples", "not understood", "first look (UTC)", "last look (UTC)")
    )
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>" if exported.files else ""
    named = [shortened(name, 160) for name in exported.instances]
    instances = "".join(f"<li>{escape_html(name)}</li>" for name in named[:50])
    more = f"<li>{len(named) - 50} more</li>" if len(named) > 50 else ""
    processes = (
        f"<p>Counted by {len(named)} processes:</p><ul>{instances}{more}</ul>" if named else "<p>No process counted anything.</p>"
    )
    happened = "".join(f"<li>{escape_html(instant(note.at))}: {escape_html(note.text)}</li>" for note in notes)
    told = f"<p>Marked over time, as noted by hand:</p><ul>{happened}</ul>" if notes else ""
    return f'<section id="made-of"><h2>What this report is made of</h2>{table}{processes}{told}</section>'


def _methods(week: Week) -> str:
    lines = [
        "Counts are those of the exported counters inside the range. Where a series may have counted before it was first seen, "
        "both readings are kept, and every figure made of them is an interval.",
        "A share is the range's own, and exact where its counts are; the 95 % interval beside it tells how far off another range "
        "of the same kind could be.",
        "95 % intervals are Clopper and Pearson's, on as many requests as the data are worth: requests come in bursts that share "
        "their wait, so the number is divided by the design effect of blocks of time (Korn and Graubard).",
        "Waits are known by bucket: a share is exact at a bucket's bound, a quantile lies between two of them.",
        POPULATIONS_DIFFER,
        "Funded waits are bounded as parts of a mixture, max(0, (F − p)/(1 − p)) to min(1, F/(1 − p)), with F the registered "
        "waits and p the share of assignments that held nothing. Its odds may differ from those of the decisions, "
        f"{ratio_text(week.question.ratio)}.",
        "Changes of ceiling and floor are tried on the counts, with the waits, sizes and means of the clients as they were.",
    ]
    items = "".join(f"<li>{escape_html(line)}</li>" for line in lines)
    return f'<section id="methods"><h2>How to read it</h2><ul>{items}</ul></section>'
