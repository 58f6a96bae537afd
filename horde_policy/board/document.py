"""The board as a document for machines: what ``snapshot --json`` and ``allowance --json`` print (A5, A8, A9)."""

from collections.abc import Sequence
from datetime import UTC, datetime

from horde_policy.board.measure import Measure
from horde_policy.board.rows import Board
from horde_policy.errors import Problem
from horde_policy.frames.snapshot import Snapshot

__all__ = ["allowance_document", "instant", "measure_fields", "snapshot_document"]


def instant(at: datetime) -> str:
    """Return an instant as ISO 8601 in UTC, as fine as it is known.

    >>> instant(datetime(2026, 11, 29, 19, 39, 1, 510000, tzinfo=UTC)), instant(datetime(2023, 7, 9, tzinfo=UTC))
    ('2026-11-29T19:39:01.510Z', '2023-07-09T00:00:00Z')
    """
    utc = at.astimezone(UTC)
    places = "seconds" if utc.microsecond == 0 else "milliseconds" if utc.microsecond % 1000 == 0 else "microseconds"
    return utc.isoformat(timespec=places).replace("+00:00", "Z")


def measure_fields(measure: Measure) -> dict[str, object]:
    """Return the fields of one entry, floats unrounded; ``model`` is null when the request does not name exactly one."""
    waits = measure.waits
    return {
        "model": measure.model,
        "state": measure.state,
        "max_length": measure.max_length,
        "eligible_workers": measure.eligible_workers,
        "speed_tok_per_s": measure.speed_tok_per_s,
        "queued_tokens": measure.queued_tokens,
        "estimated_wait_s": None if waits is None else {"low": waits.low_s, "named": waits.named_s, "high": waits.high_s},
        "allowance_tokens": measure.allowance_tokens,
        "allowance_range_tokens": [measure.allowance_at_high_tokens, measure.allowance_at_low_tokens],
        "largest_free_request_tokens": measure.largest_free_request_tokens,
        "notes": [note.text for note in measure.notes],
    }


def _head(snapshot: Snapshot, more: Sequence[Problem]) -> dict[str, object]:
    problems = [*snapshot.problems, *more]
    if snapshot.synthetic:
        problems.append(Problem("synthetic", snapshot.source, "the data of this source are made up", "note"))
    return {
        "fetched_at": instant(snapshot.fetched_at),
        "source": snapshot.source,
        "problems": [{"code": p.code, "subject": p.subject, "text": p.text, "level": p.level} for p in problems],
    }


def snapshot_document(board: Board) -> dict[str, object]:
    """Return one look: an entry for every model that is listed or served by any worker of the list, sorted by model."""
    return {**_head(board.snapshot, ()), "models": [measure_fields(row.measure) for row in board.rows]}


def allowance_document(
    snapshot: Snapshot, models: Sequence[str], measures: Sequence[Measure], problems: Sequence[Problem] = ()
) -> dict[str, object]:
    """Return one request that names all of the models, at several sizes, an entry a size in the order asked."""
    return {
        **_head(snapshot, problems),
        "models": list(models),
        "sizes": [measure_fields(measure) for measure in measures],
    }
