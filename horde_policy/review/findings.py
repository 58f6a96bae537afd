"""What a production week shows: findings in order of consequence, each with figure, n, interval and the page behind it."""

from dataclasses import dataclass

import polars as pl

from horde_policy.frames.decisions import SIZES, size_of
from horde_policy.review.agreement import agreement, without_worker
from horde_policy.review.bounds import RATIO
from horde_policy.review.data_problems import data_findings
from horde_policy.review.decompose import decompose, rate
from horde_policy.review.exported import Exported
from horde_policy.review.finding import SECTIONS, Finding, Section, Severity, Target, ordered
from horde_policy.review.mean_allowance import MeanAllowance, mean_allowance
from horde_policy.review.sampling import LEVEL, Bounds, Share, share_of
from horde_policy.review.verdict import ABOVE, OVER_S, Verdict, funded_verdict
from horde_policy.review.waits import around_mark, distribution, measured_less_estimated, of_kind, quantile, share_at_most
from horde_policy.review.whatif import WhatIf, size_range, what_if
from horde_policy.settings import AllowanceSettings
from horde_policy.units import MAX_LENGTH_LIMIT_TOKENS

__all__ = ["Question", "Week", "implied_mean_allowance", "review_week"]

AGREES_WITHIN = 0.005
"""Allowances and waits agree if at most this share of all requests is off: two counters are not looked at in one moment."""

HARDLY_MOVES = 0.9
"""From this share in one size bucket on, the allowance is said to hardly move."""

HONEST_WITHIN = 0.05
"""Estimates count as honest at a mark if the two shares are apart by no more than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked about funded waits; see :func:`~horde_policy.review.verdict.funded_verdict`."""

    over_s: float = OVER_S
    above: float = ABOVE
    ratio: float = RATIO


@dataclass(frozen=True, slots=True)
class Week:
    """A reviewed range.

    Attributes
    ----------
    exported, settings, question
        What was reviewed, under which settings, with which question.
    sections
        One for each of :data:`~horde_policy.review.finding.SECTIONS`.
    findings
        All findings in order of consequence.
    verdict
        Whether a per-request record is needed.
    mean_allowance
        The mean allowance that the estimated waits imply; null without them.
    what_ifs
        The changes that were tried, by a name for each.
    """

    exported: Exported
    settings: AllowanceSettings
    question: Question
    sections: tuple[Section, ...]
    findings: tuple[Finding, ...]
    verdict: Verdict
    mean_allowance: MeanAllowance | None
    what_ifs: dict[str, WhatIf]


def review_week(
    exported: Exported, settings: AllowanceSettings, *, question: Question | None = None, level: float = LEVEL
) -> Week:
    """Return everything that a week of exported counts shows.

    Parameters
    ----------
    exported
        The counts, already of the range asked about.
    settings
        The settings that were in force.
    question
        What is asked about funded waits.
    level
        The confidence of every interval.
    """
    question = question or Question()
    verdict = funded_verdict(
        exported.decisions,
        exported.waits,
        over_s=question.over_s,
        above=question.above,
        ratio=question.ratio,
        level=level,
    )
    mean = implied_mean_allowance(exported, settings)
    changes = {} if exported.counted.high <= 0 else _what_ifs(exported.decisions, settings)
    found = {
        "refused": _refused(exported, settings, level),
        "responds": _responds(exported, settings, mean, level),
        "estimates": _estimates(exported, settings, level),
        "funded": _funded(verdict),
        "changes": _changes(exported, changes),
        "data": data_findings(exported, settings, level),
    }
    no_data = _no_data(exported, verdict)
    if not found["responds"] and exported.counted.high > 0:
        no_data.setdefault("responds", "no_allowance_sizes")
    sections = tuple(Section(code, ordered(found[code]), no_data.get(code)) for code in SECTIONS)
    everything = ordered([finding for section in sections for finding in section.findings])
    return Week(exported, settings, question, sections, everything, verdict, mean, changes)


def _no_data(exported: Exported, verdict: Verdict) -> dict[str, str]:
    """Return, for each question that has no data, one word for the reason."""
    missing: dict[str, str] = {}
    decided = exported.counted.high > 0
    estimated, queued = (of_kind(exported.waits, kind).height > 0 for kind in ("estimated", "queue"))
    if not decided:
        missing |= {"refused": "no_decisions", "changes": "no_decisions"}
    if not decided and not estimated:
        missing["responds"] = "no_decisions_no_estimates"
    if not estimated or not queued:
        missing["estimates"] = "no_waits" if not estimated and not queued else "no_estimates" if queued else "no_queue_waits"
    if verdict.hidden in ("no_decisions", "no_waits"):
        missing["funded"] = verdict.hidden
    return missing


# --- who is refused, and at what size -----------------------------------------------------------------------------------


def _refused(exported: Exported, settings: AllowanceSettings, level: float) -> list[Finding]:
    decisions = exported.decisions
    refused = rate(decisions, pl.col("outcome") == "refused", level=level)
    if refused is None:
        return []
    figures: dict[str, object] = {}
    if refused.part.high > 0:
        cells = decompose(decisions, ["requester", "requested_size", "outcome"], level=level)
        worst = cells.filter(pl.col("outcome") == "refused").sort("count_high", descending=True).row(0, named=True)
        figures = {f"worst_{name}": value for name, value in worst.items() if name != "outcome"}
        own = decisions.filter(pl.col("outcome") == "refused")
        beyond = [size for size in SIZES if size_range(size)[0] > settings.ceiling_tokens]
        figures["at_floor"] = rate(own, pl.col("allowance_size") == size_of(settings.floor_tokens), level=level)
        figures["over_the_ceiling"] = rate(own, pl.col("requested_size").is_in(beyond), level=level)
    target = Target("decisions", {"rows": ("requester",), "columns": ("requested_size",), "colour": ("outcome",)})
    severity: Severity = "bad" if refused.part.high > 0 else "fine"
    found = [_shared("refused", "refused", severity, refused, figures, target)]
    downgraded = rate(decisions, pl.col("outcome") == "downgraded", level=level)
    if downgraded is not None and downgraded.part.high > 0:
        lowered = Target("decisions", {"rows": ("requested_size",), "columns": ("allowance_size",), "outcome": ("downgraded",)})
        found.append(_shared("downgraded", "refused", "fine", downgraded, {}, lowered))
    return found


def _shared(code: str, section: str, severity: Severity, share: Share, figures: dict[str, object], target: Target) -> Finding:
    return Finding(
        code=code,
        section=section,
        severity=severity,
        weight=share.middle,
        share=share,
        n=share.total,
        figures=figures,
        target=target,
    )


# --- does the allowance respond -----------------------------------------------------------------------------------------


def implied_mean_allowance(exported: Exported, settings: AllowanceSettings) -> MeanAllowance | None:
    """Return the mean allowance that the estimated waits and their sum imply; null without estimated waits."""
    sums = of_kind(exported.wait_sums, "estimated")
    known = sums.height > 0 and not sums["sum_low_s"].null_count() and not sums["sum_high_s"].null_count()
    seconds = Bounds(float(sums["sum_low_s"].sum()), float(sums["sum_high_s"].sum())) if known else None
    return mean_allowance(of_kind(exported.waits, "estimated"), settings, seconds)


def _moves(exported: Exported, settings: AllowanceSettings, mean: MeanAllowance | None, level: float) -> list[Finding]:
    """Return whether the allowances lie in several size buckets, told by the one that most of them lie in."""
    known = exported.decisions.filter(pl.col("allowance_size").is_not_null())
    shares = {size: rate(known, pl.col("allowance_size") == size, level=level) for size in SIZES}
    told = {size: share for size, share in shares.items() if share is not None}
    if not told:
        return []
    most = max(told, key=lambda size: told[size].middle)
    ends = {"ceiling": size_of(settings.ceiling_tokens), "floor": size_of(settings.floor_tokens)}
    one_bucket = ends["ceiling"] == ends["floor"]
    figures: dict[str, object] = {
        "size": most,
        "ends": ends,
        "at_ceiling": told[ends["ceiling"]],
        "at_floor": told[ends["floor"]],
        "hardly": told[most].low >= HARDLY_MOVES,
        "mean": None if mean is None else mean.tokens,
    }
    severity: Severity = "open" if one_bucket or told[most].low >= HARDLY_MOVES else "fine"
    target = Target("decisions", {"rows": ("time",), "colour": ("allowance_size",)})
    return [_shared("allowance_moves", "responds", severity, told[most], figures, target)]


def _responds(exported: Exported, settings: AllowanceSettings, mean: MeanAllowance | None, level: float) -> list[Finding]:
    decisions, found = exported.decisions, _moves(exported, settings, mean, level)
    table = agreement(decisions, exported.waits, settings)
    if table.height:
        over = pl.col("counted_low") > pl.col("implied_high")
        # an allowance in a wrong bucket is one too many there and one too few elsewhere
        gap = max(float(table.filter(over)["gap"].sum()), float(table.filter(~over)["gap"].sum()))
        share = gap / exported.counted.high if exported.counted.high else 0.0
        found.append(
            Finding(
                code="allowance_agrees",
                section="responds",
                severity="wrong" if share > AGREES_WITHIN else "fine",
                weight=share,
                share=None,
                n=exported.counted,
                figures={"gap": gap, "gap_share": share, "table": table},
                target=Target("waits", {}),
            )
        )
        nobody = without_worker(decisions, exported.waits)
        rest = Bounds(max(0.0, exported.counted.low - nobody.low), max(0.0, exported.counted.high - nobody.high))
        alone = share_of(nobody, rest, level=level)
        if alone is not None and nobody.low > 0:
            target = Target("decisions", {"rows": ("time",), "allowance_size": (size_of(settings.floor_tokens),)})
            found.append(_shared("without_worker", "responds", "bad", alone, {}, target))
    return found


# --- are estimates honest -----------------------------------------------------------------------------------------------


def _estimates(exported: Exported, settings: AllowanceSettings, level: float) -> list[Finding]:
    estimated, queued = (of_kind(exported.waits, kind) for kind in ("estimated", "queue"))
    found = []
    for mark in (settings.wait_full_s, settings.wait_floor_s):
        stated, measured = (share_at_most(waits, mark, level=level) for waits in (estimated, queued))
        apart = measured_less_estimated(estimated, queued, mark, level=level)
        if stated is None or measured is None or apart is None:
            return []
        counts, sampling = apart
        off = _off(counts)
        quantiles = {
            f"{kind}_{share:g}": quantile(distribution(waits, level=level), share)
            for kind, waits in (("estimated", estimated), ("queue", queued))
            for share in (0.5, 0.9)
        }
        figures = {"mark_s": mark, "measured": measured, "difference": counts, "sampling": sampling, "off": off}
        around = {"estimated": around_mark(estimated, mark), "measured": around_mark(queued, mark)}
        found.append(
            Finding(
                code="estimates",
                section="estimates",
                severity=_OFF_SEVERITIES[off],
                weight=min(1.0, _off_weight(off, counts)),
                share=stated,
                n=stated.total,
                figures=figures | quantiles | {"around": around},
                target=Target("waits", {}),
            )
        )
    return found


_OFF_SEVERITIES: dict[str, Severity] = {"honest": "fine", "optimistic": "bad", "pessimistic": "open", "undecided": "open"}


def _off(counts: Bounds) -> str:
    """Return what a difference, measured less estimated, says of the estimates; only what the whole interval says counts."""
    if counts.high < -HONEST_WITHIN:
        return "optimistic"  # fewer waits were really so short than were estimated so short
    if counts.low > HONEST_WITHIN:
        return "pessimistic"
    return "honest" if counts.low >= -HONEST_WITHIN and counts.high <= HONEST_WITHIN else "undecided"


def _off_weight(off: str, counts: Bounds) -> float:
    if off == "honest":
        return 0.0
    return counts.high - counts.low if off == "undecided" else max(abs(counts.low), abs(counts.high))


# --- what did funded requests wait --------------------------------------------------------------------------------------


def _funded(verdict: Verdict) -> list[Finding]:
    if verdict.hidden in ("no_decisions", "no_waits"):
        return []
    severities: dict[str, Severity] = {"yes": "bad", "no": "fine"}
    p = verdict.funded.p
    admitted = None if p is None else p.by_decisions.total
    funded_share = 0.0 if p is None or admitted is None or not admitted.high else p.funded.high / admitted.high
    return [
        Finding(
            code="funded_wait",
            section="funded",
            severity=severities.get(verdict.answer, "open"),
            weight=funded_share,
            share=None,
            n=verdict.funded.assignments,
            figures={"verdict": verdict},
            target=Target("waits", {"over": (f"{verdict.over_s:g}",), "above": (f"{verdict.above:g}",)}),
        )
    ]


# --- which size would gain from which change ----------------------------------------------------------------------------


def _what_ifs(decisions: pl.DataFrame, settings: AllowanceSettings) -> dict[str, WhatIf]:
    """Return the changes that are tried: the floor at each edge of the buckets above it, the ceiling doubled and halved."""
    floors = [edge for edge in (512, 1024, 2048, 4096) if settings.floor_tokens < edge <= settings.ceiling_tokens]
    ceilings = [settings.ceiling_tokens * 2, settings.ceiling_tokens // 2]
    ceilings = [one for one in ceilings if settings.floor_tokens <= one <= MAX_LENGTH_LIMIT_TOKENS]
    changed = {f"floor_tokens={one}": settings.changed(floor_tokens=one) for one in floors}
    changed |= {f"ceiling_tokens={one}": settings.changed(ceiling_tokens=one) for one in ceilings}
    return {name: what_if(decisions, settings, other) for name, other in changed.items()}


def _changes(exported: Exported, changes: dict[str, WhatIf]) -> list[Finding]:
    """Return, for each requested size of which anything is not free, the smallest change that frees half of it for certain.

    Where none does, the one that may free the most.
    """
    if not changes:
        return []
    counted, found = exported.counted, []
    for size in (*SIZES, None):
        gains = {name: _gain(answer, size) for name, answer in changes.items()}
        best = min(gains, key=lambda name: _preference(name, *gains[name]))
        gained, held = gains[best]
        if gained.high <= 0:
            continue
        setting, _, value = best.partition("=")
        in_all = sum((_gain(changes[best], any_size)[0] for any_size in (*SIZES, None)), Bounds(0.0, 0.0))
        figures = {"setting": setting, "value": int(value), "size": size, "gained": gained, "held": held, "in_all": in_all}
        found.append(
            Finding(
                code="would_gain",
                section="changes",
                severity="open",
                weight=gained.low / counted.high,
                share=None,
                n=held,
                figures=figures | {"answer": changes[best]},
                target=Target("decisions", {f"what_if_{setting.removesuffix('_tokens')}": (value,), "colour": ("outcome",)}),
            )
        )
    return found or [Finding(code="nobody_gains", section="changes", severity="fine", weight=0.0, share=None, n=counted)]


def _gain(answer: WhatIf, size: str | None) -> tuple[Bounds, Bounds]:
    """Return how many requests of a size that are not free now would be, and how many there are."""
    held = answer.rows.filter((pl.col("outcome") != "free") & pl.col("requested_size").eq_missing(pl.lit(size)))
    low, high, count_low, count_high = (float(held[name].sum()) for name in ("free_low", "free_high", "count_low", "count_high"))
    return Bounds(low, high), Bounds(count_low, count_high)


def _preference(name: str, gained: Bounds, held: Bounds) -> tuple[float, ...]:
    enough = held.high > 0 and gained.low >= held.high / 2
    size = float(name.partition("=")[2])
    return (0.0, size, 0.0) if enough else (1.0, -gained.high, size)
