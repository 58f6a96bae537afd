"""What is computed from a snapshot, once for all viewers: keyed by the snapshot's id and what the reader chose, never by frames.

A cache that hashed a polars frame would return another frame's result (T3): the snapshot is looked up by its id inside, and
what is kept is shared by all sessions and read only.
"""

import streamlit as st

from horde_policy.board.pool import Fleet
from horde_policy.board.rows import Board, make_board
from horde_policy.frames.snapshot import Snapshot
from horde_policy.settings import AllowanceSettings

__all__ = ["board_of", "fleet_of"]

KEPT_BOARDS = 64
"""Boards that are kept: viewers look at one snapshot at a few sizes; older ones are dropped."""


KEPT_FLEETS = 16
"""Fleets that are kept: they hang on the snapshot and the settings, and on no size."""


@st.cache_resource(max_entries=KEPT_FLEETS, show_spinner=False)
def _fleet(snapshot_id: str, settings: AllowanceSettings, _snapshot: Snapshot) -> Fleet:
    return Fleet.of(_snapshot, settings)


def fleet_of(snapshot: Snapshot, snapshot_id: str, settings: AllowanceSettings) -> Fleet:
    """Return the workers of a snapshot, named by its id, and what they serve, under these settings."""
    return _fleet(snapshot_id, settings, snapshot)


@st.cache_resource(max_entries=KEPT_BOARDS, show_spinner=False)
def _board(snapshot_id: str, settings: AllowanceSettings, max_length: int, context: int, _snapshot: Snapshot) -> Board:
    return make_board(_snapshot, settings, max_length=max_length, context_tokens=context)


def board_of(
    snapshot: Snapshot, snapshot_id: str, settings: AllowanceSettings, *, max_length_tokens: int, max_context_tokens: int
) -> Board:
    """Return the board of a snapshot at a size, a context and settings.

    Parameters
    ----------
    snapshot, snapshot_id
        The snapshot, and the id that names it alone: it is the snapshot's part of the key.
    settings, max_length_tokens, max_context_tokens
        The rest of the key.
    """
    return _board(snapshot_id, settings, max_length_tokens, max_context_tokens, snapshot)
