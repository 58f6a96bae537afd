"""A finding: one thing that a week shows, as data; views make sentences of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from horde_policy.review.sampling import Bounds, Share

__all__ = ["QUALIFIES_ALL", "SECTIONS", "SEVERITIES", "Finding", "Section", "Severity", "Target", "ordered"]

Severity = Literal["wrong", "bad", "open", "note", "fine"]

SEVERITIES: tuple[Severity, ...] = ("wrong", "bad", "open", "note", "fine")
"""From grave to light: the rule or the data contradict themselves; requesters are worse off; not decided; to be known, no more;
as it should be."""

SECTIONS: tuple[str, ...] = ("refused", "responds", "estimates", "funded", "changes", "data")
"""The questions of a week: who is refused and at what size, does the allowance respond, are estimates honest, what did funded
requests wait, which size would gain from which change, what is wrong in the data."""


QUALIFIES_ALL: frozenset[str] = frozenset({"cut_short", "several_processes"})
"""What stands before all others: every figure rests on less than there was, or on series of several processes."""


@dataclass(frozen=True, slots=True)
class Target:
    """The page and its state behind a finding: ``week``, ``decisions`` or ``waits``, and words by parameter of its address."""

    page: str
    state: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding.

    Attributes
    ----------
    code
        One word for machines and for the sentence.
    section
        One of :data:`SECTIONS`.
    severity, weight
        The consequence: how grave, and the share of all requests concerned. Findings stand in this order.
    share
        The main figure with its n and interval; null where it is no share.
    n
        How many requests or waits the finding rests on.
    figures
        Further figures by name.
    target
        What is behind it.
    """

    code: str
    section: str
    severity: Severity
    weight: float
    share: Share | None
    n: Bounds | None
    figures: Mapping[str, Any] = field(default_factory=dict)
    target: Target = field(default_factory=lambda: Target("week"))


@dataclass(frozen=True, slots=True)
class Section:
    """One question with its findings, the gravest first; ``no_data`` says why there are none."""

    code: str
    findings: tuple[Finding, ...]
    no_data: str | None = None


def ordered(findings: list[Finding]) -> tuple[Finding, ...]:
    """Return findings by consequence: what qualifies all others, then the gravest, and of those what concerns the most requests.

    >>> few, many, wrong = (Finding(code=c, section="data", severity=s, weight=w, share=None, n=None)
    ...     for c, s, w in (("few", "bad", 0.1), ("many", "bad", 0.4), ("wrong", "wrong", 0.0)))
    >>> [finding.code for finding in ordered([few, many, wrong])]
    ['wrong', 'many', 'few']
    """
    return tuple(
        sorted(findings, key=lambda one: (one.code not in QUALIFIES_ALL, SEVERITIES.index(one.severity), -one.weight, one.code))
    )
