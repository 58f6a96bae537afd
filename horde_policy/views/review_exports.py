"""The stamp of a reviewed table: what data, which range, under which settings, which of it was looked at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from horde_policy.review.decompose import COUNTED
from horde_policy.review.exported import Exported
from horde_policy.settings import AllowanceSettings
from horde_policy.views.review_words import DIMENSION_WORDS, word_text

__all__ = ["ReviewStamp", "decision_headings", "file_name", "stamp_of"]

_COUNTED_HEADINGS: Final = {
    "count_low": "at least (requests)",
    "count_high": "at most (requests)",
    "n_low": "of at least (requests)",
    "n_high": "of at most (requests)",
    "share_low": "share at least",
    "share_high": "share at most",
    "sampling_low": "95 % interval from",
    "sampling_high": "95 % interval to",
    "design_effect": "design effect",
}

_JUDGED_HEADINGS: Final = {
    "impossible_high": "cannot be, at most (requests)",
    "special_high": "only a special case, at most (requests)",
    "rules": "why",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewStamp:
    """Where a reviewed table comes from; the title and the words are hostile text, which the export escapes."""

    title: str
    synthetic: bool
    start: datetime | None
    end: datetime | None
    settings_digest: str
    looked_at: Mapping[str, Sequence[object]] = field(default_factory=dict)

    def columns(self) -> dict[str, str | int]:
        """Return the stamp's columns, by heading.

        >>> kept = {"chat": (True,)}
        >>> ReviewStamp(title="a", synthetic=True, start=None, end=None, settings_digest="0a", looked_at=kept).columns()
        {'data': 'a (synthetic)', 'from (UTC)': '', 'to (UTC)': '', 'settings digest': '0a', 'looked at': 'kind: chat'}
        """
        words = [
            f"{DIMENSION_WORDS[name]}: {' or '.join(word_text(name, word) for word in kept)}"
            for name, kept in self.looked_at.items()
        ]
        return {
            "data": self.title + (" (synthetic)" if self.synthetic else ""),
            "from (UTC)": _instant(self.start),
            "to (UTC)": _instant(self.end),
            "settings digest": self.settings_digest,
            "looked at": "; ".join(words) or "everything",
        }


def _instant(at: datetime | None) -> str:
    return "" if at is None else f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def stamp_of(
    exported: Exported, settings: AllowanceSettings, looked_at: Mapping[str, Sequence[object]] | None = None
) -> ReviewStamp:
    """Return the stamp of tables made from exported counts."""
    covered = exported.covered
    return ReviewStamp(
        title=exported.title,
        synthetic=exported.synthetic,
        start=covered.start,
        end=covered.end,
        settings_digest=settings.digest(),
        looked_at=looked_at or {},
    )


def decision_headings(by: Sequence[str]) -> dict[str, str]:
    """Return column → heading for decomposed decisions with the rules that say something of them.

    >>> list(decision_headings(["outcome"]).values())[:3]
    ['outcome', 'at least (requests)', 'at most (requests)']
    """
    return {name: DIMENSION_WORDS[name] for name in by} | {name: _COUNTED_HEADINGS[name] for name in COUNTED} | _JUDGED_HEADINGS


def file_name(what: str, stamp: ReviewStamp, ending: str) -> str:
    """Return a file name of plain letters: what, whether made up, of when, settings.

    >>> stamp = ReviewStamp(title="a/b", synthetic=True, start=None, end=datetime(2026, 11, 29, tzinfo=UTC), settings_digest="0a")
    >>> file_name("week", stamp, "html")
    'week_synthetic_20261129_0a.html'
    """
    made_up = ["synthetic"] if stamp.synthetic else []
    days = list(dict.fromkeys(f"{at.astimezone(UTC):%Y%m%d}" for at in (stamp.start, stamp.end) if at is not None))
    return "_".join([what, *made_up, *days, stamp.settings_digest]) + f".{ending}"
