"""What qualifies all findings: counts that cannot be, counts that are not known, time that is not covered."""

from datetime import timedelta

import polars as pl

from horde_policy.errors import Problem
from horde_policy.review.cells import rule_counts
from horde_policy.review.decompose import WORDS, rate
from horde_policy.review.exported import Exported
from horde_policy.review.finding import Finding, Severity, Target
from horde_policy.review.quiet import quiet_hours
from horde_policy.review.sampling import LEVEL, Bounds, Share, share_of
from horde_policy.settings import AllowanceSettings

__all__ = ["cut_short", "data_findings"]

IMPOSSIBLE_IS_WRONG = 0.01
"""From this share of all decisions on, cells that cannot be mean that something is wrong: the settings are others, or a bug."""

SPECIAL_IS_MUCH = 0.01
"""From this share on, of all decisions or of the requester's own, what only a special case makes is no side note any more."""

MOST_PROBLEMS = 20

WHOLE_WEEK = timedelta(days=6, hours=12)
"""What is shorter is told as shorter than a week."""


def cut_short(exported: Exported) -> tuple[Problem, ...]:
    """Return the problems that say that an export ends early or is damaged, so that only what came before could be read."""
    return tuple(problem for problem in exported.problems if problem.code in _CUT)


_CUT = frozenset({"damaged", "truncated"})
_SEVERAL = frozenset({"interleaved"})


def data_findings(exported: Exported, settings: AllowanceSettings, level: float = LEVEL) -> list[Finding]:
    """Return what is wrong in the data, or one finding that nothing is."""
    found = [
        *_impossible(exported, settings, level),
        *_unlabelled(exported, level),
        *_uncertain(exported),
        *_time(exported),
        *_cut_short(exported),
        *_several(exported),
        *_problems(exported),
    ]
    if not any(finding.severity not in ("note", "fine") for finding in found) and exported.counted.high > 0:
        found.append(_plain("data_clean", "fine", 0.0, exported.counted, quiet=quiet_hours(exported)))
    return found


def _plain(code: str, severity: Severity, weight: float, n: Bounds | None, **figures: object) -> Finding:
    return Finding(code=code, section="data", severity=severity, weight=weight, share=None, n=n, figures=figures)


def _impossible(exported: Exported, settings: AllowanceSettings, level: float) -> list[Finding]:
    counts = rule_counts(exported.decisions, settings)
    found = []
    for grave in ("impossible", "special"):
        rows = counts.filter((pl.col("level") == grave) & (pl.col("count_high") > 0))
        if not rows.height:
            continue
        part = Bounds(float(rows["count_low"].sum()), float(rows["count_high"].sum()))
        whole = exported.counted
        share = share_of(part, Bounds(max(0.0, whole.low - part.low), max(0.0, whole.high - part.high)), level=level)
        if share is None:
            continue
        figures: dict[str, object] = {"rules": rows.select("code", "text", "count_low", "count_high").rows()}
        severity: Severity = "wrong" if share.high >= IMPOSSIBLE_IS_WRONG else "open"
        if grave == "special":
            own = _anonymous_funded(exported, level)
            figures["anonymous_funded"] = own
            severity = "open" if max(share.high, 0.0 if own is None else own.high) >= SPECIAL_IS_MUCH else "note"
        found.append(
            Finding(
                code=f"cells_{grave}",
                section="data",
                severity=severity,
                weight=share.middle,
                share=share,
                n=whole,
                figures=figures,
                target=Target("decisions", {"rows": ("requested_size",), "columns": ("allowance_size",)}),
            )
        )
    return found


def _anonymous_funded(exported: Exported, level: float) -> Share | None:
    """Return the share of the anonymous decisions that held kudos, which the account has next to none of (A1, A14)."""
    own = exported.decisions.filter(pl.col("requester") == "anonymous")
    return rate(own, pl.col("outcome") == "funded", level=level)


def _unlabelled(exported: Exported, level: float) -> list[Finding]:
    found = []
    for dimension in WORDS:
        share = rate(exported.decisions, pl.col(dimension).is_null(), level=level)
        if share is not None and share.part.high > 0:
            found.append(
                Finding(
                    code="not_exported",
                    section="data",
                    severity="open",
                    weight=share.middle,
                    share=share,
                    n=share.total,
                    figures={"dimension": dimension},
                    target=Target("decisions", {"rows": (dimension,)}),
                )
            )
    return found


def _uncertain(exported: Exported) -> list[Finding]:
    counted, found = exported.counted, []
    if counted.high > counted.low:
        open_share = (counted.high - counted.low) / counted.high
        found.append(_plain("uncertain_counts", "open", open_share, counted, share=open_share))
    if exported.before.high > 0:
        found.append(_plain("counted_before", "note", 0.0, exported.before))
    return found


def _time(exported: Exported) -> list[Finding]:
    covered, found = exported.covered, []
    if exported.one_scrape:
        return [_plain("one_scrape", "open", 0.0, exported.counted)]
    length = covered.end - covered.start if covered.start is not None and covered.end is not None else None
    if length is not None and length < WHOLE_WEEK:
        found.append(_plain("short", "open", 0.0, exported.counted, length_s=length.total_seconds()))
    if exported.uncovered_s > 0:
        share = exported.uncovered_s / (length.total_seconds() * exported.uncovered_processes) if length else None
        figures = {"uncovered_s": exported.uncovered_s, "processes": exported.uncovered_processes, "share": share}
        found.append(_plain("uncovered", "open", min(1.0, share or 0.0), None, **figures))
    return found


def _cut_short(exported: Exported) -> list[Finding]:
    cut = cut_short(exported)
    return [_plain("cut_short", "bad", 1.0, None, problems=cut)] if cut else []


def _several(exported: Exported) -> list[Finding]:
    several = tuple(problem for problem in exported.problems if problem.code in _SEVERAL)
    return [_plain("several_processes", "bad", 1.0, None, problems=several)] if several else []


def _problems(exported: Exported) -> list[Finding]:
    own = {"one_scrape", "uncovered", *_CUT, *_SEVERAL}  # told above, with their figures
    told = [problem for problem in exported.problems if problem.code not in own]
    problems = sorted(told, key=lambda one: one.level != "problem")
    found = [
        _plain(
            "problem",
            "open" if problem.level == "problem" else "note",
            0.0,
            None,
            problem=problem,
        )
        for problem in problems[:MOST_PROBLEMS]
    ]
    more = problems[MOST_PROBLEMS:]
    if more:
        grave: Severity = "open" if more[0].level == "problem" else "note"
        found.append(_plain("more_problems", grave, 0.0, None, count=len(more)))
    return found
