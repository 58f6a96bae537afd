"""Names and profiles as numbers: each stored once, told apart by its SHA-256, looked up and kept by the writer."""

import hashlib
from collections.abc import Mapping

import sqlalchemy as sa

from horde_policy.history.tables import LABELS, META, PROFILES

__all__ = ["Numbers", "digest_of", "new_generation", "texts_of"]

MOST_REMEMBERED = 20_000
GENERATION = "numbers"


def digest_of(text: str) -> str:
    """Return what tells a text apart in the store's indexes.

    >>> digest_of("a")[:8]
    'ca978112'
    """
    return hashlib.sha256(text.encode()).hexdigest()


def new_generation(connection: sa.Connection) -> None:
    """Make every writer forget the numbers it remembers, because some are no longer in the database."""
    found = connection.scalar(sa.select(META.c.value).where(META.c.name == GENERATION))
    if found is None:
        connection.execute(META.insert().values(name=GENERATION, value="1"))
    else:
        connection.execute(META.update().where(META.c.name == GENERATION).values(value=str(int(found) + 1)))


class Numbers:
    """Gives model names, worker ids and profiles their numbers, making new ones; remembers what it gave."""

    def __init__(self) -> None:
        self._labels: dict[tuple[str, str], int] = {}
        self._profiles: dict[str, int] = {}
        self._generation: str | None = None

    def check(self, connection: sa.Connection) -> None:
        """Forget what is remembered if another program has thrown numbers away since; called in each transaction that writes."""
        generation = connection.scalar(sa.select(META.c.value).where(META.c.name == GENERATION))
        if generation != self._generation or len(self._labels) + len(self._profiles) > MOST_REMEMBERED:
            self.forget()
            self._generation = generation

    def forget(self) -> None:
        """Forget all numbers: those given in a transaction that was rolled back are not in the database."""
        self._labels.clear()
        self._profiles.clear()

    def label(self, connection: sa.Connection, kind: str, text: str) -> int:
        """Return the number of a model's name or a worker's id."""
        known = self._labels.get((kind, text))
        if known is not None:
            return known
        digest = digest_of(text)
        found = connection.scalar(sa.select(LABELS.c.label).where(LABELS.c.kind == kind, LABELS.c.digest == digest))
        if found is None:
            made = LABELS.insert().values(kind=kind, digest=digest, text=text).returning(LABELS.c.label)
            found = connection.execute(made).scalar_one()
        self._labels[kind, text] = int(found)
        return int(found)

    def profile(self, connection: sa.Connection, body: str) -> int:
        """Return the number of a worker's profile."""
        known = self._profiles.get(body)
        if known is not None:
            return known
        digest = digest_of(body)
        found = connection.scalar(sa.select(PROFILES.c.profile).where(PROFILES.c.digest == digest))
        if found is None:
            made = PROFILES.insert().values(digest=digest, body=body).returning(PROFILES.c.profile)
            found = connection.execute(made).scalar_one()
        self._profiles[body] = int(found)
        return int(found)


def texts_of(connection: sa.Connection, kind: str) -> Mapping[int, str]:
    """Return number → text of all labels of a kind."""
    return {
        row.label: row.text for row in connection.execute(sa.select(LABELS.c.label, LABELS.c.text).where(LABELS.c.kind == kind))
    }
