"""What changed over a range of the history, ranked: the board at its start against the board at its end (issue 3)."""

from datetime import datetime

from horde_policy.board.changes import Changes, changes
from horde_policy.board.rows import make_board
from horde_policy.errors import InputError
from horde_policy.frames.snapshot import Snapshot
from horde_policy.history.reading import polls_between, snapshot_at
from horde_policy.history.store import HistoryStore
from horde_policy.settings import AllowanceSettings
from horde_policy.units import DEFAULT_MAX_CONTEXT_TOKENS, DEFAULT_MAX_LENGTH_TOKENS

__all__ = ["changes_over", "ends_of"]


def ends_of(store: HistoryStore, start: datetime, end: datetime, source: str | None = None) -> tuple[Snapshot, Snapshot]:
    """Return the snapshots that hold at both ends of a range; where nothing was stored by its start, the first one after it.

    Raises
    ------
    InputError
        The range ends before it starts, or before the first poll.
    StoreError
        The store cannot be read, or holds no poll.
    """
    if end < start:
        raise InputError("range of the history", "end", end.isoformat(), f"must not lie before its start, {start.isoformat()}")
    with store.reading():
        polls = polls_between(store, start, end, source)["at"].to_list()
        first = polls[0] if polls else start  # without a poll the reading below says what is wrong
        return snapshot_at(store, first, source), snapshot_at(store, end, source)


def changes_over(
    store: HistoryStore,
    start: datetime,
    end: datetime,
    settings: AllowanceSettings,
    *,
    max_length: int = DEFAULT_MAX_LENGTH_TOKENS,
    context_tokens: int = DEFAULT_MAX_CONTEXT_TOKENS,
    source: str | None = None,
) -> Changes:
    """Return what changed from the start of a range to its end, the gravest first (:func:`horde_policy.board.changes.changes`).

    Raises
    ------
    InputError, StoreError
        As for :func:`ends_of`, or the size or context is out of its range.
    """
    before, after = (
        make_board(look, settings, max_length=max_length, context_tokens=context_tokens, strip_sizes=())
        for look in ends_of(store, start, end, source)
    )
    return changes(before, after)
