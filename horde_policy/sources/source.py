"""What every source is: a name, a kind, and a snapshot when asked. Live, recorded and demo are one code path from here on."""

from typing import Protocol

from horde_policy.frames.snapshot import Snapshot, SourceKind

__all__ = ["Source"]


class Source(Protocol):
    """Gives snapshots.

    Attributes
    ----------
    name
        As shown to people, never with a secret.
    kind
        ``live``, ``recorded``, ``demo`` or ``history``.
    refresh_s
        Asking again sooner than this brings nothing new.
    """

    @property
    def name(self) -> str:
        """The name as shown to people."""
        ...

    @property
    def kind(self) -> SourceKind:
        """What kind of source it is."""
        ...

    @property
    def refresh_s(self) -> float:
        """The seconds within which nothing new can come."""
        ...

    def load(self) -> Snapshot:
        """Return the present snapshot.

        Raises
        ------
        SourceError
            The source gives no usable answer.
        InputError
            A folder cannot be used.
        """
        ...
