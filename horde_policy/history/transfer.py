"""Taking an export into a store: what the store lacks is added, what it has stays, and nothing is there twice.

A poll of the export is taken where the store recorded nothing: before its first poll, after its last, or inside a gap. So an
export that is taken in twice adds nothing the second time, and exports of overlapping days join into one history. Files are
checked whole before anything is written, and written in one transaction.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import sqlalchemy as sa

from horde_policy.history.export import KEYS, export_history
from horde_policy.history.exported import read_export
from horde_policy.history.fleets import fleet_from_history
from horde_policy.history.folding import make_keyframe
from horde_policy.history.labels import Numbers
from horde_policy.history.recorder import GAP_FACTOR
from horde_policy.history.states import COUNTS, packed_speeds
from horde_policy.history.store import HistoryStore
from horde_policy.history.tables import EVENTS, GAPS, MODEL_QUEUES, MODEL_STATES, PART_STATES, POLLS, WORKER_COUNTS, WORKER_STATES

__all__ = ["Imported", "export_history", "fleet_from_history", "import_history"]

JOINED = "nothing was recorded between what was imported and what was there"


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import added to a source: so many of the export's polls, the others being there already, and events."""

    source: str
    polls: int
    of_polls: int
    events: int


def import_history(store: HistoryStore | str, folder: Path) -> tuple[Imported, ...]:
    """Take an export into a store; return what was added, a source each.

    The export is read and checked before anything is written.

    Parameters
    ----------
    store
        May be written by a recorder meanwhile, which waits. By its name: opened once the export is checked, and made if it is
        not there, so that a broken export leaves no store behind.
    folder
        Of :func:`horde_policy.history.export.export_history`.

    Raises
    ------
    InputError
        The export breaks a rule; the store is as it was.
    StoreError
        Nothing was taken in.
    """
    sources, frames = read_export(folder)
    if isinstance(store, str):
        opened = HistoryStore(store)
        try:
            return _taken(opened, sources, frames)
        finally:
            opened.close()
    return _taken(store, sources, frames)


def _taken(store: HistoryStore, sources: Mapping[str, bool], frames: Mapping[str, pl.DataFrame]) -> tuple[Imported, ...]:
    told = []
    with store.numbering() as connection:
        for source, synthetic in sorted(sources.items()):
            number = store.source_id(connection, source, synthetic=synthetic)
            mine = {name: frame.filter(pl.col("source") == source) for name, frame in frames.items()}
            told.append(_Import(connection, store.numbers, number, source, mine).run())
    return tuple(told)


def _instants(series: pl.Series) -> np.ndarray[Any, np.dtype[np.int64]]:
    return series.to_physical().to_numpy()


@dataclass(frozen=True, slots=True)
class _Import:
    """The import of one source."""

    connection: sa.Connection
    numbers: Numbers
    source: int
    name: str
    frames: Mapping[str, pl.DataFrame]

    def run(self) -> Imported:
        polls = self.frames["polls"]
        there = np.array(self._column(POLLS.c.at_us, POLLS.c.source), np.int64)
        at = _instants(polls["at"])
        wanted = polls.filter(pl.Series(self._lacking(at, there), dtype=pl.Boolean))
        if wanted.height:
            self._add(wanted)
            self._part_runs(_instants(wanted["at"]), there)
            self._mend_gaps(_instants(wanted["at"]), there)
        return Imported(self.name, wanted.height, polls.height, self._add_events())

    def _column(self, column: sa.Column[Any], of: sa.Column[Any]) -> list[Any]:
        return list(self.connection.scalars(sa.select(column).where(of == self.source).order_by(column)))

    def _gaps(self) -> list[tuple[int, int, str]]:
        g = GAPS.c
        rows = self.connection.execute(sa.select(g.from_us, g.to_us, g.reason).where(g.source == self.source))
        return [(int(row[0]), int(row[1]), str(row[2])) for row in rows]

    def _lacking(self, at: Any, there: Any) -> Any:
        """Return which instants the store recorded nothing around: before its first, after its last, or inside a gap."""
        if not there.size:
            return np.ones(at.size, np.bool_)
        outside = (at < there[0]) | (at > there[-1])
        for start, end, _ in self._gaps():
            outside |= (at > start) & (at < end)
        return outside & ~np.isin(at, there)

    def _add(self, wanted: pl.DataFrame) -> None:
        """Write the wanted polls in stretches, each beginning with a keyframe, under numbers that follow on no other."""
        newest = self.connection.scalar(sa.select(sa.func.max(POLLS.c.poll)).where(POLLS.c.source == self.source))
        base = int(newest or 0) + (2 if newest else 1)
        stretch = (wanted["poll"].diff().fill_null(1) != 1).cum_sum()
        renumbered = wanted.with_columns(number=pl.int_range(pl.len(), dtype=pl.Int64) + stretch + base, stretch=stretch)
        first = renumbered.group_by("stretch", maintain_order=True).first().filter(~pl.col("keyframe"))["poll"].to_list()
        rows = renumbered.with_columns(keyframe=pl.col("keyframe") | pl.col("poll").is_in(first), at=pl.col("at").to_physical())
        values = {"source": pl.lit(self.source), "poll": pl.col("number"), "at_us": pl.col("at")}
        self._insert(POLLS, rows.select(**values, keyframe="keyframe", models_known="models_known", lag_us="lag_us"))
        numbers = renumbered.select("poll", "number")
        for name in KEYS:
            frame = self.frames[name]
            kept = pl.concat([frame.filter(~pl.col("poll").is_in(first)), *(self._folded(name, poll) for poll in first)])
            self._add_states(name, kept.join(numbers, on="poll", how="inner"))

    def _part_runs(self, added: Any, there: Any) -> None:
        """Let each poll of the store that now follows an imported one stand on its own: runs are whole in the order of time."""
        together = np.union1d(there, added)
        is_new = np.isin(together, added)
        for at_us in together[1:][is_new[:-1] & ~is_new[1:]].tolist():
            mine = sa.select(POLLS.c.poll).where(POLLS.c.source == self.source, POLLS.c.at_us == at_us)
            make_keyframe(self.connection, self.source, int(self.connection.execute(mine).scalar_one()))

    def _folded(self, name: str, poll: int) -> pl.DataFrame:
        """Return everything as of a poll that is no keyframe in the export, as rows of that poll."""
        keyframe = self.frames["polls"].filter((pl.col("poll") <= poll) & pl.col("keyframe"))["poll"].max()
        rows = self.frames[name].filter((pl.col("poll") >= keyframe) & (pl.col("poll") <= poll))
        if name == "workers":
            rows = rows.with_columns(pl.col(*COUNTS).forward_fill().over("worker_id"))
        last = rows.group_by(KEYS[name], maintain_order=True).last().select(rows.columns)
        gone = {"workers": pl.col("profile").is_null(), "models": ~pl.col("listed")}.get(name, pl.lit(value=False))
        return last.filter(~gone).with_columns(pl.lit(poll, pl.Int64).alias("poll"))

    def _add_states(self, name: str, rows: pl.DataFrame) -> None:
        values: dict[str, Any] = {"source": pl.lit(self.source), "poll": pl.col("number")}
        if name == "parts":
            self._insert(PART_STATES, rows.select(**values, part="part", body="body"))
        elif name == "workers":
            values["worker"] = self._numbered(rows["worker_id"], partial(self.numbers.label, self.connection, "worker"))
            values["profile"] = self._numbered(rows["profile"], partial(self.numbers.profile, self.connection))
            states = rows.select(**values, speed=_packed(rows["speed_tok_per_s"]), **{name: name for name in COUNTS})
            self._insert(WORKER_STATES, states.drop(COUNTS))
            counted = states.filter(~pl.all_horizontal(pl.col(*COUNTS).is_null()))
            self._insert(WORKER_COUNTS, counted.select("source", "poll", "worker", *COUNTS))
        else:
            values["model"] = self._numbered(rows["model"], partial(self.numbers.label, self.connection, "model"))
            if name == "models":
                values |= {"listed": "listed", "threads": "threads", "job_speed": _packed(rows["job_speed_tok_per_s"])}
                self._insert(MODEL_STATES, rows.select(**values))
            else:
                self._insert(MODEL_QUEUES, rows.select(**values, queued_tokens="queued_tokens", jobs="jobs", eta_s="eta_s"))

    def _numbered(self, texts: pl.Series, number: Callable[[str], int]) -> pl.Series:
        numbers = {text: number(text) for text in texts.drop_nulls().unique(maintain_order=True).to_list()}
        return pl.Series([None if text is None else numbers[text] for text in texts.to_list()], dtype=pl.Int64)

    def _insert(self, table: sa.Table, rows: pl.DataFrame) -> None:
        """Write rows by the driver itself, each column under its name: an export has hundreds of thousands."""
        if rows.height:
            marks = ", ".join(["?" if self.connection.dialect.paramstyle == "qmark" else "%s"] * rows.width)
            statement = f"INSERT INTO {table.name} ({', '.join(rows.columns)}) VALUES ({marks})"
            self.connection.exec_driver_sql(statement, rows.rows())

    def _mend_gaps(self, added: Any, there: Any) -> None:
        """Replace the gaps that were filled by what is left of them, and mark what is missing at the joints."""
        exported = {(int(a), int(b)): reason for a, b, reason in self._exported_gaps()}
        usual_us = self._usual_us(exported)
        stored = self._gaps()
        together = np.union1d(there, added)
        is_new = np.isin(together, added)
        reasons = {}
        for place in np.flatnonzero(is_new[1:] | is_new[:-1]).tolist():
            start, end = int(together[place]), int(together[place + 1])
            around = [reason for a, b, reason in stored if a <= start and end <= b]
            if (start, end) in exported:
                reasons[start] = (end, exported[start, end])
            elif not (is_new[place] and is_new[place + 1]) and end - start > GAP_FACTOR * usual_us:
                reasons[start] = (end, around[0] if around else JOINED)
        filled = [start for start, end, _ in stored if ((added > start) & (added < end)).any()]
        for start in filled:
            self.connection.execute(sa.delete(GAPS).where(GAPS.c.source == self.source, GAPS.c.from_us == start))
        left = [{"from_us": start, "to_us": end, "reason": reason} for start, (end, reason) in reasons.items()]
        if left:
            self.connection.execute(GAPS.insert(), [{"source": self.source, **gap} for gap in left])

    def _usual_us(self, gaps: Mapping[tuple[int, int], str]) -> float:
        """Return how far two polls of the export are apart where nothing is missing between them; 0 where that is nowhere."""
        at = _instants(self.frames["polls"]["at"])
        apart = [b - a for a, b in pairwise(at.tolist()) if (a, b) not in gaps]
        return float(np.median(apart)) if apart else 0.0

    def _exported_gaps(self) -> list[tuple[int, int, str]]:
        gaps = self.frames["gaps"].with_columns(pl.col("from", "to").to_physical())
        return list(gaps.select("from", "to", "reason").iter_rows())

    def _add_events(self) -> int:
        e = EVENTS.c
        rows = self.connection.execute(sa.select(e.at_us, e.kind, e.text).where(e.source == self.source))
        there = {(int(row[0]), str(row[1]), str(row[2])) for row in rows}
        events = self.frames["events"].with_columns(pl.col("at").to_physical()).select("at", "kind", "text")
        new = [row for row in dict.fromkeys(events.iter_rows()) if row not in there]
        if new:
            made = [{"source": self.source, "at_us": at, "kind": kind, "text": text} for at, kind, text in new]
            self.connection.execute(EVENTS.insert(), made)
        return len(new)


def _packed(speeds: pl.Series) -> pl.Series:
    return pl.Series(packed_speeds(speeds.fill_null(np.nan).to_numpy())).fill_nan(None)
