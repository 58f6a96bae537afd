"""The titles of the review's pages: each says what the data show, in one sentence of our own words and numbers."""

import polars as pl

from horde_policy.review.decompose import rate
from horde_policy.review.exported import Exported
from horde_policy.review.findings import Week
from horde_policy.review.waits import of_kind, share_at_most
from horde_policy.settings import AllowanceSettings
from horde_policy.views.finding_text import finding_text
from horde_policy.views.review_words import bounds_text, share_text, span_text, word_text
from horde_policy.views.text import count, count_of, seconds

__all__ = ["decisions_headline", "nothing_in_range", "waits_headline", "week_headline"]


def decisions_headline(exported: Exported) -> str:
    """Return what became of the decisions that are looked at.

    >>> from horde_policy.imports.read import read_exports
    >>> from horde_policy.review.exported import exported_from
    >>> text = b'horde_text_free_allowance_decisions{horde_outcome="free"} 5 1790000000000'
    >>> decisions_headline(exported_from(read_exports(text)))
    'All 5 decisions that are looked at were free'
    """
    if exported.counted.high <= 0:
        return "No decision is looked at"
    outcomes = exported.decisions.filter(pl.col("count_high") > 0)["outcome"].unique().to_list()
    if len(outcomes) == 1 and outcomes[0] is not None:
        return f"All {bounds_text(exported.counted)} decisions that are looked at were {word_text('outcome', outcomes[0])}"
    free, refused = (rate(exported.decisions, pl.col("outcome") == outcome) for outcome in ("free", "refused"))
    return f"Of {bounds_text(exported.counted)} decisions {share_text(free)} were free and {share_text(refused)} refused"


def waits_headline(exported: Exported, settings: AllowanceSettings, requester: str | None = None) -> str:
    """Return how long requests waited against what was estimated, at the full wait."""
    mark = settings.wait_full_s
    stated, measured = (
        share_at_most(of_kind(exported.waits, kind, who), mark) for kind, who in (("estimated", None), ("queue", requester))
    )
    if measured is None and stated is None:
        return "No wait is looked at"
    parts = [
        f"{share_text(found)} of the {what}"
        for found, what in ((stated, "estimated"), (measured, "measured waits"))
        if found is not None
    ]
    return f"Up to {seconds(mark)}: {' and '.join(parts)}" + ("" if measured is not None else " waits; none was measured")


def nothing_in_range(whole: Exported, part: Exported) -> str | None:
    """Return why a range has no week to read: no decision is sure to lie in it; null where one is, or where none was exported.

    >>> from datetime import UTC, datetime
    >>> from horde_policy.imports.read import read_exports
    >>> from horde_policy.review.exported import exported_from
    >>> from horde_policy.review.ranges import TimeRange
    >>> text = b'horde_text_free_allowance_decisions{horde_outcome="free"} 5 1790000000000'
    >>> whole = exported_from(read_exports(text))
    >>> nothing_in_range(whole, whole.within(TimeRange(datetime(2030, 1, 1, tzinfo=UTC))))
    'The exports hold no decision of this range: they are up to 21 Sep 2026 14:13:20 UTC.'
    """
    if part.span.whole or part.counted.low > 0 or whole.counted.high <= 0:
        return None
    data = span_text(whole.covered)
    if part.counted.high <= 0:
        return f"The exports hold no decision of this range: they are {data}."
    return (
        f"Of {bounds_text(part.counted)} decisions nobody knows whether they lie in this range: the exports count from one to "
        f"the next, and it begins or ends within. A longer range says more; the exports are {data}."
    )


def week_headline(week: Week) -> str:
    """Return what the week shows as a whole: what became of the requests, and how many findings ask for somebody.

    A contradiction stands alone: nothing else holds beside it. May hold hostile text.
    """
    if not week.findings:
        return "Nothing was found"
    if week.findings[0].severity == "wrong":
        return finding_text(week.findings[0]).sentence.rstrip(".")
    counted = week.exported.counted.high > 0
    told = decisions_headline(week.exported) if counted else waits_headline(week.exported, week.settings)
    grave, undecided = (sum(finding.severity == severity for finding in week.findings) for severity in ("bad", "open"))
    needs = f"{count(grave)} of {count_of(len(week.findings), 'finding')} need{'s' if grave == 1 else ''} attention"
    return f"{told}; {needs}, {count(undecided)} {'is' if undecided == 1 else 'are'} open"
