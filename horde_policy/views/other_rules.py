"""What the rules weighed before would give now, for the same axes: the previous rule (A29) and jobs per thread (A30)."""

from dataclasses import dataclass

from horde_policy.board.detail import SizeStep
from horde_policy.board.pool import Fleet
from horde_policy.frames.snapshot import Performance
from horde_policy.policy.alternatives import (
    OLD_RULE_CEILING_TOKENS,
    OLD_RULE_FLOOR_TOKENS,
    jobs_rule_allowance,
    old_rule_allowance,
)
from horde_policy.policy.worker import counted_threads
from horde_policy.settings import AllowanceSettings

__all__ = ["OtherRules", "other_rules", "rules_explained", "rules_sentence"]


@dataclass(frozen=True, slots=True)
class OtherRules:
    """The allowance of the other rules; null is not known.

    Attributes
    ----------
    old_tokens
        The previous rule's, one figure for the whole horde.
    jobs_tokens
        The jobs rule's at the size asked.
    jobs_by_step
        The jobs rule's on each span of sizes.
    """

    old_tokens: int | None
    jobs_tokens: int | None
    jobs_by_step: tuple[int | None, ...]


def other_rules(
    fleet: Fleet,
    performance: Performance | None,
    models: tuple[str, ...],
    max_length: int,
    context_tokens: int,
    steps: tuple[SizeStep, ...],
) -> OtherRules:
    """Return what the other rules give a request of these models now.

    The list's ``jobs`` stand for the competing jobs, and count what is in flight too, so the jobs rule is shown at its
    strictest. Null where the list, a count of jobs, or the horde-wide counts are not reported.

    Examples
    --------
    >>> from horde_policy.settings import AllowanceSettings
    >>> nobody = Fleet((), {}, None, AllowanceSettings())
    >>> other_rules(nobody, Performance(text_thread_count=100, queued_text_requests=700.0), (), 80, 2048, ())
    OtherRules(old_tokens=382, jobs_tokens=512, jobs_by_step=())
    """
    pool = fleet.pool(models, context_tokens)
    jobs = _jobs(fleet, models)

    def by_jobs(size: int) -> int | None:
        eligible = pool.eligible(size)
        if not eligible:
            return fleet.settings.floor_tokens
        threads = sum(counted_threads(worker) for worker in eligible)
        return None if jobs is None else jobs_rule_allowance(jobs, threads, fleet.settings)

    return OtherRules(_old(performance), by_jobs(max_length), tuple(by_jobs(step.to_tokens) for step in steps))


def _old(performance: Performance | None) -> int | None:
    if performance is None or performance.text_thread_count is None or performance.queued_text_requests is None:
        return None
    return old_rule_allowance(performance.text_thread_count, performance.queued_text_requests)


def _jobs(fleet: Fleet, models: tuple[str, ...]) -> int | None:
    if fleet.listed is None:
        return None
    jobs = [fleet.listed[model].jobs for model in models or fleet.listed if model in fleet.listed]
    known = [number for number in jobs if number is not None]
    return round(sum(known)) if jobs and len(known) == len(jobs) else None


def rules_sentence(rules: OtherRules, allowance_tokens: int | None) -> str:
    """Return the three rules side by side, in one sentence.

    >>> rules_sentence(OtherRules(512, None, ()), 4096)
    'Tokens free by this rule: 4,096; by the previous rule: 512; by the jobs rule: not known.'
    """

    def told(tokens: int | None) -> str:
        return "not known" if tokens is None else f"{tokens:,}"

    return (
        f"Tokens free by this rule: {told(allowance_tokens)}; by the previous rule: {told(rules.old_tokens)}; "
        f"by the jobs rule: {told(rules.jobs_tokens)}."
    )


def rules_explained(settings: AllowanceSettings) -> str:
    """Return what the two other rules are, for a reader who has met neither (A29, A30).

    >>> rules_explained(AllowanceSettings()).rpartition("; ")[2]
    'the jobs rule goes from 4,096 at no competing job down to 512 at 4 jobs for each eligible thread.'
    """
    return (
        "For comparison, two rules that were weighed, and neither looks at the wait: the previous rule is one figure for the "
        f"whole horde, {OLD_RULE_FLOOR_TOKENS} to {OLD_RULE_CEILING_TOKENS} tokens by its text threads and queued requests; "
        f"the jobs rule goes from {settings.ceiling_tokens:,} at no competing job down to {settings.floor_tokens:,} at "
        f"{settings.jobs_rule_floor_per_thread:g} jobs for each eligible thread."
    )
