"""Findings as sentences that somebody reads who is no specialist: what was found, how sure it is, and what it rests on.

Everything returned is plain text, in which a name from the network may stand: whoever shows it escapes it for its surface.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from horde_policy.errors import Problem
from horde_policy.review.finding import Finding, Section
from horde_policy.review.quiet import Quiet
from horde_policy.review.sampling import Bounds, Share
from horde_policy.review.verdict import Verdict
from horde_policy.units import one_or_range
from horde_policy.views.cut_short import cut_short_details, cut_short_text
from horde_policy.views.review_words import (
    DIMENSION_WORDS,
    bounds_text,
    interval_text,
    quantile_text,
    quiet_text,
    share_range_text,
    share_text,
    size_text,
    word_text,
)
from horde_policy.views.text import NOT_REPORTED, age, count, ratio, seconds, signed_points, tokens, visible

__all__ = [
    "LINK_WORDS",
    "NO_DATA_TEXTS",
    "POPULATIONS_DIFFER",
    "SECTION_TITLES",
    "SEVERITY_WORDS",
    "TEXTS",
    "FindingText",
    "finding_text",
    "funded_details",
    "funded_sentence",
    "no_data_text",
    "no_funded_text",
    "point_refuted_text",
    "point_warning",
    "ratio_text",
]

SEVERITY_WORDS: Final = {"wrong": "contradiction", "bad": "attention", "open": "open", "note": "note", "fine": "as it should be"}
"""How grave a finding is, in words."""

SECTION_TITLES: Final = {
    "refused": "Who is refused, and at what size?",
    "responds": "Does the allowance respond to the wait?",
    "estimates": "Are the estimates honest?",
    "funded": "What did funded requests wait?",
    "changes": "Which size would gain from which change?",
    "data": "What qualifies all this?",
}
"""Section → the question that it answers."""

NO_DATA_TEXTS: Final = {
    "no_decisions": "The exports hold no decisions of the free output allowance (horde.text.free_allowance.decisions).",
    "no_decisions_no_estimates": "The exports hold neither decisions nor estimated waits.",
    "no_allowance_sizes": "The decisions do not say their allowance, and the exports hold no estimated waits.",
    "no_estimates": "The exports hold no estimated waits (horde.text.free_allowance.estimated_wait_seconds).",
    "no_queue_waits": "The exports hold no queue waits (horde.text.queue_wait_seconds).",
    "no_waits": "The exports hold no waits.",
}
"""Reason → sentence, for a section without data."""

_NO_FUNDED_DATA: Final = {
    "no_decisions": "The exports hold no admitted decision of a registered requester, so nobody knows who held kudos.",
    "no_waits": "The exports hold no queue wait of a registered requester.",
}

POPULATIONS_DIFFER: Final = (
    "The two are not the same requests: every creation with an eligible worker against every assignment. Refused, expired and "
    "cancelled requests have no measured wait; several answers and retries have several."
)
"""The warning that belongs beside every estimate that is held against a measurement."""

RESTS_ON: Final = {"estimates": "estimates", "funded_wait": "registered assignments"}
"""Code of a finding → what its n counts; all others count requests."""

LINK_WORDS: Final = {"week": "this report", "decisions": "see the decisions", "waits": "see the waits"}


@dataclass(frozen=True, slots=True)
class FindingText:
    """A finding as text: the sentence, what explains it, the figure with n and interval, how grave it is, its link's words."""

    sentence: str
    details: tuple[str, ...]
    figure: str
    n: str
    interval: str
    severity: str
    link: str

    @property
    def beside(self) -> str:
        """Return what stands beside the sentence: the figure with the interval that is its own, and what it rests on."""
        shown = "" if self.figure in self.sentence else self.figure
        figure = f"{self.figure} ({self.interval})" if self.figure and self.interval else shown
        return " · ".join(part for part in (figure, self.n) if part)


def no_data_text(section: Section) -> str | None:
    """Return why a section has no data; null if it has.

    >>> no_data_text(Section("funded", (), "no_waits"))
    'The exports hold no queue wait of a registered requester.'
    """
    if section.no_data is None:
        return None
    own = _NO_FUNDED_DATA if section.code == "funded" else {}
    return own.get(section.no_data) or NO_DATA_TEXTS[section.no_data]


def no_funded_text(verdict: Verdict) -> str | None:
    """Return why there is nothing to say about funded waits; null if there is."""
    return None if verdict.hidden is None else _NO_FUNDED_DATA.get(verdict.hidden)


def finding_text(finding: Finding) -> FindingText:
    """Return the sentence of a finding, and everything that stands beside it."""
    sentence, details = TEXTS[finding.code](finding)
    figure, interval = _figure(finding)
    return FindingText(
        sentence=sentence,
        details=details,
        figure=figure,
        n="" if finding.n is None else f"n = {bounds_text(finding.n)} {RESTS_ON.get(finding.code, 'requests')}",
        interval=interval,
        severity=SEVERITY_WORDS[finding.severity],
        link=LINK_WORDS[finding.target.page],
    )


def _figure(finding: Finding) -> tuple[str, str]:
    """Return the figure and its interval: of a share with sampling, of a bound or a count what is decided of it."""
    figures = finding.figures
    if finding.share is not None:
        return share_text(finding.share), interval_text(finding.share).replace("95 %:", "95 % interval", 1)
    if finding.code == "funded_wait":
        over, sampling = figures["verdict"].share_over, figures["verdict"].share_over_sampling
        if over is None or sampling is None:
            return NOT_REPORTED, ""
        return share_range_text(over.low, over.high), f"95 % interval {share_range_text(sampling.low, sampling.high)}"
    if finding.code == "would_gain":
        gained = figures["gained"]
        decided = "exact where slow workers are allowed: the buckets decide it"
        return bounds_text(gained), decided if gained.exact else "bounds: the buckets do not decide it"
    if finding.code == "allowance_agrees":
        return f"{count(figures['gap'])} off", f"{ratio(figures['gap_share'])} of all"
    return "", ""


_Text = tuple[str, tuple[str, ...]]


def _share(finding: Finding) -> Share:
    if finding.share is None:
        raise ValueError(f"the finding {finding.code} has no share")
    return finding.share


def _refused(finding: Finding) -> _Text:
    share, figures = _share(finding), finding.figures
    if share.part.high <= 0:
        return f"Nobody was refused, in {bounds_text(share.total)} text requests.", ()
    who = word_text("requester", figures["worst_requester"])
    size = size_text(figures["worst_requested_size"])
    own = share_range_text(figures["worst_share_low"], figures["worst_share_high"])
    worst = Bounds(figures["worst_count_low"], figures["worst_count_high"])
    details = [
        f"The largest group, {bounds_text(worst)}, were {who} requests for {size} tokens, of which {own} were refused.",
        f"Of the refusals {share_text(figures['at_floor'])} met an allowance at its floor: the wait was long, or no worker was "
        "eligible.",
    ]
    if figures["over_the_ceiling"] is not None and figures["over_the_ceiling"].part.high > 0:
        over = share_text(figures["over_the_ceiling"])
        details.append(f"Larger than the ceiling, so never free at any wait: {over} of the refusals.")
    return f"{share_text(share)} of all text requests were refused: {bounds_text(share.part)}.", tuple(details)


def _downgraded(finding: Finding) -> _Text:
    share = _share(finding)
    return f"{share_text(share)} were downgraded, to the allowance in place of a refusal: {bounds_text(share.part)}.", ()


def _allowance_moves(finding: Finding) -> _Text:
    share, figures = _share(finding), finding.figures
    size, ends, mean = figures["size"], figures["ends"], figures["mean"]
    names = {ends["floor"]: "the floor", ends["ceiling"]: "the ceiling"}
    given = f"{size_text(size)} tokens, the range of {names[size]}" if size in names else f"{size_text(size)} tokens"
    details = []
    if size != ends["ceiling"]:
        details.append(f"For {share_text(figures['at_ceiling'])} it was in the range of the ceiling.")
    if size != ends["floor"]:
        details.append(f"For {share_text(figures['at_floor'])} it was in that of the floor, or no worker was eligible.")
    if mean is not None:
        details.append(f"The mean allowance of those with an eligible worker was {_tokens(mean)} tokens.")
    if ends["ceiling"] == ends["floor"]:
        sentence = (
            f"Whether the allowance moves cannot be seen: ceiling and floor lie in one size bucket, {size_text(size)} tokens."
        )
        return sentence, tuple(details[-1:] if mean is not None else ())
    if share.low >= 1:
        at_end = {
            ends["ceiling"]: "The allowance was at its ceiling for every request: the week never asked anything of the rule.",
            ends["floor"]: "The allowance was at its floor for every request.",
        }
        return at_end.get(size, f"The allowance was in one size bucket for every request: {size_text(size)} tokens."), tuple(
            details
        )
    how = "hardly moves" if figures["hardly"] else "moves"
    return f"The allowance {how}: for {share_text(share)} of the requests it was {given}.", tuple(details)


def _tokens(bounds: Bounds) -> str:
    return one_or_range(tokens(bounds.low), tokens(bounds.high))


def _allowance_agrees(finding: Finding) -> _Text:
    gap, share = finding.figures["gap"], finding.figures["gap_share"]
    if finding.severity == "fine":
        sentence = "Allowances and estimated waits agree: every size bucket was given as often as the waits ask for."
        return sentence, ((f"Off by {count(gap)} requests, which looks at different moments explain.",) if gap > 0 else ())
    return (
        f"Allowances and estimated waits contradict each other for at least {count(gap)} requests ({ratio(share)}).",
        ("Either the settings in force were others than those entered here, or the server does not follow the rule.",),
    )


def _without_worker(finding: Finding) -> _Text:
    share = _share(finding)
    detail = "They get the floor whatever the queue; only a worker that takes them would help."
    return f"{share_text(share)} of the requests had no eligible worker: {bounds_text(share.part)}.", (detail,)


def _estimates(finding: Finding) -> _Text:
    figures, stated = finding.figures, _share(finding)
    mark, measured = seconds(figures["mark_s"]), figures["measured"]
    waits = {
        f"{kind}_{share}": quantile_text(figures[f"{kind}_{share}"]) for kind in ("queue", "estimated") for share in (0.5, 0.9)
    }
    details = (
        f"Measured: {share_text(measured)} of {bounds_text(measured.total)} assignments ({interval_text(measured)}).",
        _apart(figures["difference"], figures["sampling"]),
        f"The middle wait was {waits['queue_0.5']}, estimated {waits['estimated_0.5']}; nine in ten waited no more than "
        f"{waits['queue_0.9']}, estimated {waits['estimated_0.9']}.",
        POPULATIONS_DIFFER,
    )
    said = f"{share_text(stated)} of the estimates were at most {mark}, and {share_text(measured)} of the measured waits"
    verdicts = {
        "honest": f"Up to {mark} the estimates held: {said}.",
        "optimistic": f"The estimates promised too much at {mark}: {said}.",
        "pessimistic": f"The estimates were too pessimistic at {mark}: {said}.",
        "undecided": f"Whether the estimates held up to {mark} cannot be told: {said}.",
    }
    why = (_undecided(figures["around"], mark),) if figures["off"] == "undecided" else ()
    return verdicts[figures["off"]], (*why, *details)


def _undecided(around: Mapping[str, Bounds], mark: str) -> str:
    """Return why the counts do not decide whether estimates held at a mark."""
    names = {"estimated": "estimates", "measured": "measured waits"}
    told = [f"{bounds_text(waits)} {names[kind]}" for kind, waits in around.items() if waits.high > 0]
    if not told:
        return "The counts themselves are not known well enough."
    return f"{' and '.join(told)} lie in buckets that begin below {mark} and end above it: {mark} bounds none of these buckets."


def _apart(counts: Bounds, sampling: Bounds) -> str:
    known = signed_points(counts.low, None if counts.exact else counts.high)
    sampled = f"{signed_points(sampling.low)} to {signed_points(sampling.high)}"
    repeats = "" if sampling.low > 0 or sampling.high < 0 else ", so another week may show it otherwise"
    return f"Measured less estimated: {known} percentage points (95 %: {sampled}){repeats}."


def _funded(finding: Finding) -> _Text:
    verdict: Verdict = finding.figures["verdict"]
    return funded_sentence(verdict), funded_details(verdict)


def funded_sentence(verdict: Verdict) -> str:
    """Return the answer to the question about funded waits, and whether a per-request record is needed (A28)."""
    asked = f"that more than {ratio(verdict.above)} of the funded requests waited over {seconds(verdict.over_s)}"
    if verdict.answer == "yes":
        return f"It is certain {asked}. No per-request record is needed to know it."
    if verdict.answer == "no":
        return f"It is certain that not {asked.removeprefix('that ')}. No per-request record is needed to know it."
    if verdict.answer == "more_requests":
        times = verdict.times_the_requests
        more = "more requests" if times is None else f"about {times:.1f} times as many requests"
        return f"It is not yet decided {asked.replace('that', 'whether', 1)}; {more} would decide it."
    if verdict.answer == "record_needed":
        whether = asked.replace("that", "whether", 1)
        return f"These counts cannot tell {whether}. No number of requests changes that: it takes a per-request record."
    return "The funded wait is not visible: no registered request was funded, so the measured waits say nothing of funded ones."


def funded_details(verdict: Verdict) -> tuple[str, ...]:
    """Return what the answer rests on, and what is taken for granted in it."""
    p, over, sampling = verdict.funded.p, verdict.share_over, verdict.share_over_sampling
    if p is None or over is None or sampling is None:
        return ()
    mark = seconds(verdict.over_s)
    details = [
        f"Of the funded waits {share_range_text(over.low, over.high)} were over {mark}, as far as these counts can tell; with "
        f"sampling, {share_range_text(sampling.low, sampling.high)} (95 %).",
        f"{share_range_text(p.low, p.high)} of the registered assignments held no kudos. Of their admitted "
        f"decisions {share_text(p.by_decisions)} held none. {ratio_text(p.ratio)}",
    ]
    if verdict.registered is not None:
        details.append(f"All registered waits over {mark}: {share_text(verdict.registered)}, free ones among them.")
    limit = verdict.decided_up_to_ratio
    if limit is not None and verdict.answer in ("yes", "no"):
        details.append(
            "The answer stands at any such factor."
            if limit == float("inf")
            else f"The answer stands up to a factor of {limit:.2g}."
        )
    elif limit is not None:
        details.append(f"It would be decided if the factor were at most {limit:.3g}.")
    if verdict.point is not None and verdict.point_off_by is not None:
        point = share_range_text(verdict.point.low, verdict.point.high)
        off = f"{verdict.point_off_by * 100:.0f} percentage points"
        details.append(f"If free registered requests waited like anonymous ones it would be {point}; that may be off by {off}.")
    elif verdict.point_refuted_by is not None:
        details.append(point_refuted_text(verdict.point_refuted_by))
    return tuple(details)


def point_refuted_text(anonymous: Bounds) -> str:
    """Return why there is no single figure beside the bounds: what it would take for granted cannot be (exports.md 10).

    >>> point_refuted_text(Bounds(4.0, 4.0))
    'As far as 4 anonymous waits tell, free registered requests did not wait like anonymous ones: no share of funded waits would \
fit. So no single figure stands beside the bounds.'
    """
    return (
        f"As far as {bounds_text(anonymous)} anonymous waits tell, free registered requests did not wait like anonymous ones: no "
        "share of funded waits would fit. So no single figure stands beside the bounds."
    )


def point_warning(verdict: Verdict) -> str:
    """Return what stands beside a drawn point estimate: what it takes for granted, and how far off that may be."""
    if verdict.point_refuted_by is not None:
        return f"Over {seconds(verdict.over_s)} nothing can be drawn. {point_refuted_text(verdict.point_refuted_by)}"
    if verdict.point_off_by is None:
        return "No anonymous wait was counted, so there is nothing to draw."
    off = f"{verdict.point_off_by * 100:.0f} percentage points"
    return f"The dotted line takes for granted what nobody knows, and may be off by {off}. It has gaps where no share would fit."


def ratio_text(ratio_of_assignments: float) -> str:
    """Return what is taken for how unlike assignments and decisions are.

    >>> ratio_text(2.0), ratio_text(float("inf"))
    ('These two shares are assumed to differ, as odds, by a factor of 2 at most.', 'How far these two shares differ is left \
open.')
    """
    if ratio_of_assignments == float("inf"):
        return "How far these two shares differ is left open."
    return f"These two shares are assumed to differ, as odds, by a factor of {ratio_of_assignments:g} at most."


def _would_gain(finding: Finding) -> _Text:
    figures = finding.figures
    setting = {"floor_tokens": "floor", "ceiling_tokens": "ceiling"}[figures["setting"]]
    size, value = size_text(figures["size"]), tokens(figures["value"])
    gained, held = figures["gained"], figures["held"]
    how_many = f"all {bounds_text(held)}" if gained == held else f"{bounds_text(gained)} of the {bounds_text(held)}"
    in_all = "" if figures["in_all"] == gained else f", and {bounds_text(figures['in_all'])} of all sizes"
    sentence = f"A {setting} of {value} tokens would free {how_many} requests for {size} tokens that were not free{in_all}."
    details = (
        "With the waits as they were: what is freed queues too, which only a replay shows.",
        "If slow workers are allowed, as by default: a request without them holds its kudos whatever the allowance, and "
        "the counts do not tell which those are.",
    )
    return sentence, details


def _nobody_gains(finding: Finding) -> _Text:
    return "No other ceiling or floor would free a request: all were free.", ()


def _cells(finding: Finding) -> _Text:
    share = _share(finding)
    details = tuple(f"{bounds_text(Bounds(low, high))}: {text}." for _, text, low, high in finding.figures["rules"] if high > 0)
    if finding.code == "cells_special":
        own = finding.figures["anonymous_funded"]
        if own is not None and own.part.high > 0:
            details += (f"Of the {bounds_text(own.total)} anonymous decisions, {share_text(own)} held kudos.",)
        sentence = f"{bounds_text(share.part)} decisions ({share_text(share)}) are of a kind that only a special case makes."
    else:
        sentence = f"{bounds_text(share.part)} decisions ({share_text(share)}) are of a kind that the rule does not allow."
    return sentence, details


def _not_exported(finding: Finding) -> _Text:
    share, word = _share(finding), DIMENSION_WORDS[finding.figures["dimension"]]
    return f"{share_text(share)} of the decisions do not say their {word}, or say it in an unknown word.", ()


def _uncertain(finding: Finding) -> _Text:
    detail = "A series that was first seen inside the range may have counted before it; both readings are kept."
    return f"The counts are known only as {bounds_text(finding.n)}: all shares are intervals for it.", (detail,)


def _counted_before(finding: Finding) -> _Text:
    return f"{bounds_text(finding.n)} decisions were counted before the first look and are in no figure.", ()


def _one_scrape(finding: Finding) -> _Text:
    detail = "Nothing can be said over time, and the figures hold for whatever the processes have lived."
    return "Every process was looked at once: the counts are totals since its start.", (detail,)


def _short(finding: Finding) -> _Text:
    return f"What is looked at covers {age(finding.figures['length_s'])}, which is less than a week.", ()


def _uncovered(finding: Finding) -> _Text:
    share = finding.figures["share"]
    processes = finding.figures["processes"]
    whose = "" if processes == 1 else f", added up over {count(processes)} processes"
    part = "" if share is None else f", {ratio(min(1.0, share))} of the range for {'one process' if processes == 1 else 'each'}"
    return f"No export covers {age(finding.figures['uncovered_s'])}{whose}{part}: what was counted then is lost.", ()


def _cut_short(finding: Finding) -> _Text:
    problems: tuple[Problem, ...] = finding.figures["problems"]
    return f"{cut_short_text(problems)}.", cut_short_details(problems)


def _several(finding: Finding) -> _Text:
    problems: tuple[Problem, ...] = finding.figures["problems"]
    text = "Several processes write the same series and nothing tells them apart: no count of theirs is more than an interval."
    return text, cut_short_details(problems)


def _problem(finding: Finding) -> _Text:
    problem: Problem = finding.figures["problem"]
    subject = "" if problem.text.startswith(problem.subject) else f"{problem.subject}: "
    return visible(f"{subject}{problem.text}."), ()


def _more_problems(finding: Finding) -> _Text:
    return f"{count(finding.figures['count'])} more problems of the data are not listed here.", ()


def _clean(finding: Finding) -> _Text:
    sentence = "Nothing is wrong in the data: every cell can be, every count is known, and no time is missing."
    quiet: Quiet | None = finding.figures["quiet"]
    return sentence, () if quiet is None or not quiet.zero else (f"{quiet_text(quiet)} The exports cover them: nobody asked.",)


TEXTS: dict[str, Callable[[Finding], _Text]] = {
    "refused": _refused,
    "downgraded": _downgraded,
    "allowance_moves": _allowance_moves,
    "allowance_agrees": _allowance_agrees,
    "without_worker": _without_worker,
    "estimates": _estimates,
    "funded_wait": _funded,
    "would_gain": _would_gain,
    "nobody_gains": _nobody_gains,
    "cells_impossible": _cells,
    "cells_special": _cells,
    "not_exported": _not_exported,
    "uncertain_counts": _uncertain,
    "counted_before": _counted_before,
    "one_scrape": _one_scrape,
    "short": _short,
    "uncovered": _uncovered,
    "cut_short": _cut_short,
    "several_processes": _several,
    "problem": _problem,
    "more_problems": _more_problems,
    "data_clean": _clean,
}
"""Code of a finding → its text."""
"""Code of a finding → its sentence; a test holds it against the codes that there are."""
