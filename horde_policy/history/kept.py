"""Metrics exports kept in the history: merged as they come, never counted twice, read back as if all had been read together.

Raw series live three days at the servers' operators. Kept are the samples themselves, one body a UTC day, and not what they
count: only samples can be merged with those of a later export, or of an overlapping one (exports.md 8).
"""

import io
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import polars as pl
import sqlalchemy as sa
from polars.exceptions import PolarsError

from horde_policy.errors import InputError, StoreError
from horde_policy.history.store import HistoryStore, from_microseconds, to_microseconds
from horde_policy.history.tables import KEPT_DAYS, KEPT_EXPORTS
from horde_policy.imports.parquet import STAMP, samples_frame, samples_of_frame
from horde_policy.imports.samples import UNTIMED, Samples, merged

__all__ = ["DEFAULT_NAME", "Kept", "KeptExport", "collected_to", "keep_samples", "kept_exports", "kept_samples", "prune_kept"]

DEFAULT_NAME = "exports"
"""What exports are collected under where no other name is given."""

DAY_US = 86_400_000_000
STAMPED = {STAMP: "samples/1"}


@dataclass(frozen=True, slots=True)
class Kept:
    """What keeping added: how many days changed, of how many that the samples touch."""

    days: int
    of_days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptExport:
    """What is kept under one name.

    Attributes
    ----------
    name
        What it is collected under; from a server, that server's host. Hostile text.
    title, synthetic
        What the exports call themselves, and whether any of them says that it is made up.
    days, runs, bytes_
        UTC days with samples, stretches of equal values, size.
    first, last
        The first and the last sample; null where there is none.
    collected_to
        Up to when a server was asked; null where only files were taken in.
    """

    name: str
    title: str
    synthetic: bool
    days: int
    runs: int
    bytes_: int
    first: datetime | None
    last: datetime | None
    collected_to: datetime | None


def keep_samples(
    store: HistoryStore,
    samples: Samples,
    *,
    name: str = DEFAULT_NAME,
    title: str = "",
    synthetic: bool = False,
    collected_to: datetime | None = None,
) -> Kept:
    """Merge samples into what is kept under a name, in one transaction; what is there already changes nothing.

    Parameters
    ----------
    store
        May be written by others meanwhile, who wait.
    samples
        Of :func:`horde_policy.imports.read_samples`.
    name, title, synthetic
        As :class:`KeptExport` has them; once synthetic, it stays so.
    collected_to
        Up to when a server was asked for them; an earlier instant than the stored one changes nothing.

    Raises
    ------
    InputError
        Samples have no time: nothing of them can be merged.
    StoreError
        Nothing was kept.
    """
    check_timed(samples)
    by_day = samples.runs.with_columns(day=pl.col("t_from") // DAY_US).partition_by("day", as_dict=True, include_key=False)
    changed = 0
    with store.writing() as connection:
        export = _export_id(connection, name, title, synthetic=synthetic, collected_to=collected_to)
        for (day,), runs in sorted(by_day.items(), key=lambda item: int(item[0][0])):
            changed += _keep_day(connection, store, export, int(day), Samples(samples.keys, runs))
    return Kept(changed, len(by_day))


def check_timed(samples: Samples) -> None:
    """Refuse samples that cannot be kept.

    Raises
    ------
    InputError
        Samples have no time: nothing of them can be merged.
    """
    if (samples.runs["t_from"] == UNTIMED).any():
        raise InputError("export", "", "samples without timestamps", "cannot be kept: say scraped_at in a mapping")


def _export_id(connection: sa.Connection, name: str, title: str, *, synthetic: bool, collected_to: datetime | None) -> int:
    e = KEPT_EXPORTS.c
    to_us = None if collected_to is None else to_microseconds(collected_to)
    found = connection.execute(sa.select(KEPT_EXPORTS).where(e.name == name).with_for_update()).one_or_none()
    if found is None:
        values = {"name": name, "title": title, "synthetic": synthetic, "collected_us": to_us}
        return int(connection.execute(KEPT_EXPORTS.insert().values(**values).returning(e.export)).scalar_one())
    later = [us for us in (found.collected_us, to_us) if us is not None]
    changed = {
        "title": found.title or title,
        "synthetic": bool(found.synthetic) or synthetic,
        "collected_us": max(later) if later else None,
    }
    connection.execute(KEPT_EXPORTS.update().where(e.export == found.export).values(**changed))
    return int(found.export)


def _keep_day(connection: sa.Connection, store: HistoryStore, export: int, day: int, samples: Samples) -> bool:
    """Merge samples into a day; tell whether that changed it."""
    d = KEPT_DAYS.c
    mine = (d.export == export, d.day == day)
    there = connection.scalar(sa.select(d.body).where(*mine))
    # Merged with what is there, or with nothing: either way a form that merging again does not change.
    before = None if there is None else _read(there, store, day)
    whole = merged([samples, samples] if before is None else [before, samples])
    if before is not None and samples_frame(before).equals(samples_frame(whole)):
        return False
    values = {
        "runs": whole.runs.height,
        "first_us": whole.runs["t_from"].min(),
        "last_us": whole.runs["t_to"].max(),
        "body": _written(whole),
    }
    if there is None:
        connection.execute(KEPT_DAYS.insert().values(export=export, day=day, **values))
    else:
        connection.execute(KEPT_DAYS.update().where(*mine).values(**values))
    return True


def _written(samples: Samples) -> bytes:
    out = io.BytesIO()
    samples_frame(samples).write_parquet(out, compression="zstd", metadata=STAMPED)
    return out.getvalue()


def _read(body: bytes, store: HistoryStore, day: int) -> Samples:
    name = f"the samples of {from_microseconds(day * DAY_US):%Y-%m-%d}"
    try:
        return samples_of_frame(pl.read_parquet(io.BytesIO(body)), name)
    except (PolarsError, InputError) as error:
        raise StoreError(store.name, f"{name} cannot be read: {str(error).splitlines()[0]}") from error


def _holds_any(connection: sa.Connection) -> bool:
    return sa.inspect(connection).has_table(KEPT_DAYS.name)


def kept_exports(store: HistoryStore) -> tuple[KeptExport, ...]:
    """Return what a store keeps of exports, by name.

    Raises
    ------
    StoreError
        The store cannot be read.
    """
    e, d = KEPT_EXPORTS.c, KEPT_DAYS.c
    sums = (sa.func.count(d.day), sa.func.sum(d.runs), sa.func.sum(sa.func.length(d.body)))
    query = (
        sa.select(e.name, e.title, e.synthetic, e.collected_us, *sums, sa.func.min(d.first_us), sa.func.max(d.last_us))
        .select_from(KEPT_EXPORTS.outerjoin(KEPT_DAYS, d.export == e.export))
        .group_by(e.export, e.name, e.title, e.synthetic, e.collected_us)
        .order_by(e.name)
    )
    with store.reading() as connection:
        rows = connection.execute(query).all() if _holds_any(connection) else []
    return tuple(
        KeptExport(
            name=row[0],
            title=row[1],
            synthetic=bool(row[2]),
            days=int(row[4]),
            runs=int(row[5] or 0),
            bytes_=int(row[6] or 0),
            first=_instant(row[7]),
            last=_instant(row[8]),
            collected_to=_instant(row[3]),
        )
        for row in rows
    )


def _instant(at_us: Any) -> datetime | None:
    return None if at_us is None else from_microseconds(int(at_us))


def collected_to(store: HistoryStore, name: str) -> datetime | None:
    """Return up to when a server was asked for what is kept under a name; null if never."""
    return next((one.collected_to for one in kept_exports(store) if one.name == name), None)


def kept_samples(store: HistoryStore, name: str | None = None) -> tuple[Samples, KeptExport]:
    """Return all samples that are kept under a name, merged, and what is known of them.

    Parameters
    ----------
    store
        The history.
    name
        Null: the only one there is.

    Raises
    ------
    InputError
        Nothing is kept under the name; or none is given, and there are several.
    StoreError
        The store cannot be read, or keeps no exports.
    """
    with store.reading() as connection:
        there = kept_exports(store)
        chosen = [one for one in there if name in (None, one.name)]
        if not there:
            raise StoreError(store.name, "keeps no metrics exports: collect some with history collect or record --prometheus")
        if len(chosen) != 1:
            names = ", ".join(one.name for one in there)
            raise InputError("history", "exports", name, f"must name one of those that are kept: {names}")
        d, e = KEPT_DAYS.c, KEPT_EXPORTS.c
        query = sa.select(d.day, d.body).select_from(KEPT_DAYS.join(KEPT_EXPORTS, d.export == e.export))
        rows = connection.execute(query.where(e.name == chosen[0].name).order_by(d.day)).all()
        days = [_read(body, store, int(day)) for day, body in rows]
    if not days:
        raise StoreError(store.name, f"has not been told any of the three series by {chosen[0].name} yet")
    return merged(days), chosen[0]


def prune_kept(store: HistoryStore, before: datetime) -> int:
    """Throw away the days of kept exports that end before an instant; return how many.

    Raises
    ------
    StoreError
        Nothing was pruned.
    """
    last_day = to_microseconds(before - timedelta(days=1)) // DAY_US
    d = KEPT_DAYS.c
    with store.writing() as connection:
        return connection.execute(sa.delete(KEPT_DAYS).where(d.day <= last_day, d.last_us < to_microseconds(before))).rowcount
