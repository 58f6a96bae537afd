"""Metrics exports kept in the history: merged, never counted twice, in any order, pruned; in an older program's store too."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
import sqlalchemy as sa

from horde_policy.errors import InputError, StoreError
from horde_policy.history.kept import collected_to, keep_samples, kept_exports, kept_samples, prune_kept
from horde_policy.history.store import HistoryStore
from horde_policy.history.tables import KEPT_DAYS, KEPT_EXPORTS
from horde_policy.history.upkeep import store_info
from horde_policy.imports import Imported, Samples, count_samples, read_exports, read_samples

NAME = "horde_text_free_allowance_decisions"
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
EVERY_S = 900
LOOKS = 7 * 86_400 // EVERY_S


def line(outcome: str, value: float, at: datetime) -> str:
    return f'{NAME}{{horde_outcome="{outcome}",instance="a"}} {value:g} {round(at.timestamp() * 1000)}\n'


def looks(first: int, last: int) -> bytes:
    """Scrapes of a counter that grows by 3 and one that grows by 1, but restarts in the middle of the week."""
    text = ""
    for look in range(first, last + 1):
        at = NOON + timedelta(seconds=EVERY_S * look)
        since = look if look < LOOKS // 2 else look - LOOKS // 2
        text += line("free", 3 * since, at) + line("refused", since // 2, at)
    return text.encode()


DAYS = [looks(day * 96, min(LOOKS, day * 96 + 99)) for day in range(7)]
"""Daily exports from noon to noon, each reaching some looks into the next."""


def samples_of(*texts: bytes) -> Samples:
    return read_samples(list(texts))[0]


@pytest.fixture
def store(tmp_path: Path) -> HistoryStore:
    return HistoryStore(tmp_path / "history.sqlite", durable=False)


def counted(store: HistoryStore) -> Imported:
    return count_samples(kept_samples(store)[0])


def same(one: Imported, other: Imported) -> bool:
    frames = ("decisions", "waits", "wait_sums")
    return all(
        getattr(a, name).equals(getattr(b, name)) for a, b in ((one, other), (one.before, other.before)) for name in frames
    )


def test_a_week_kept_day_by_day_is_the_week_read_at_once(store: HistoryStore) -> None:
    for day in DAYS:
        keep_samples(store, samples_of(day))
    whole = read_exports(DAYS)
    assert same(counted(store), whole)
    by_outcome = dict(whole.decisions.group_by("outcome").agg(pl.col("count_high").sum()).iter_rows())
    half = LOOKS // 2
    assert by_outcome["free"] == 3 * (half - 1) + 3 * (LOOKS - half), "and that is what was counted, by hand"
    export = kept_exports(store)[0]
    assert (export.name, export.days, export.synthetic) == ("exports", 8, False)
    assert (export.first, export.last) == (NOON, NOON + timedelta(days=7))


@pytest.mark.parametrize("order", [[6, 5, 4, 3, 2, 1, 0], [3, 3, 0, 6, 1, 0, 5, 2, 4, 4]])
def test_neither_order_nor_repetition_changes_what_is_kept(store: HistoryStore, order: list[int]) -> None:
    for day in order:
        keep_samples(store, samples_of(DAYS[day]))
    assert same(counted(store), read_exports(DAYS))


def test_what_is_there_already_changes_nothing(store: HistoryStore) -> None:
    first = keep_samples(store, samples_of(*DAYS))
    assert (first.days, first.of_days) == (8, 8)
    before = bodies(store)
    assert keep_samples(store, samples_of(*DAYS)).days == 0
    assert keep_samples(store, samples_of(DAYS[3])).days == 0
    assert bodies(store) == before


def bodies(store: HistoryStore) -> list[tuple[int, bytes]]:
    with store.reading() as connection:
        rows = connection.execute(sa.select(KEPT_DAYS.c.day, KEPT_DAYS.c.body).order_by(KEPT_DAYS.c.day))
        return [(int(row[0]), bytes(row[1])) for row in rows]


def test_exports_under_several_names_stay_apart(store: HistoryStore) -> None:
    keep_samples(store, samples_of(DAYS[0]), name="north", title="North", synthetic=True)
    keep_samples(store, samples_of(DAYS[1]), name="south", collected_to=NOON)
    keep_samples(store, samples_of(DAYS[2]), name="north", title="another", collected_to=None)
    north, south = kept_exports(store)
    assert (north.title, north.synthetic, north.collected_to) == ("North", True, None)
    assert south.collected_to == collected_to(store, "south") == NOON
    keep_samples(store, samples_of(DAYS[1]), name="south", collected_to=NOON - timedelta(days=1))
    assert collected_to(store, "south") == NOON, "what was collected stays collected"
    with pytest.raises(InputError, match="must name one of those that are kept: north, south"):
        kept_samples(store)
    with pytest.raises(InputError, match="'west' must name one of those"):
        kept_samples(store, "west")
    assert same(count_samples(kept_samples(store, "south")[0]), read_exports(DAYS[1]))


def test_samples_without_a_time_are_refused_and_nothing_is_kept(store: HistoryStore) -> None:
    with pytest.raises(InputError, match="samples without timestamps' cannot be kept"):
        keep_samples(store, samples_of(f'{NAME}{{horde_outcome="free"}} 5\n'.encode()))
    assert kept_exports(store) == ()
    with pytest.raises(StoreError, match="keeps no metrics exports"):
        kept_samples(store)


def test_old_days_are_pruned_and_the_younger_stay(store: HistoryStore) -> None:
    keep_samples(store, samples_of(*DAYS))
    assert prune_kept(store, NOON) == 0
    assert prune_kept(store, datetime(2026, 11, 25, 12, tzinfo=UTC)) == 3
    assert kept_exports(store)[0].first == datetime(2026, 11, 25, tzinfo=UTC)
    last = datetime(2026, 11, 29, 12, tzinfo=UTC)
    assert counted(store).report.files == ()
    assert kept_samples(store)[0].runs["t_to"].max() == round(last.timestamp() * 1e6)


def test_a_store_made_before_exports_were_kept_is_read_and_taken_further(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    old = HistoryStore(path, durable=False)
    with old.writing() as connection:
        for table in (KEPT_DAYS, KEPT_EXPORTS):
            table.drop(connection)
    old.close()
    reading = HistoryStore(path, read_only=True)
    assert kept_exports(reading) == ()
    assert collected_to(reading, "x") is None
    assert store_info(reading, check=True).damages == ()
    reading.close()
    again = HistoryStore(path, durable=False)
    assert keep_samples(again, samples_of(DAYS[0])).days == 2
    again.close()


def test_a_body_that_is_damaged_is_named(store: HistoryStore) -> None:
    keep_samples(store, samples_of(DAYS[0]))
    with store.writing() as connection:
        connection.execute(KEPT_DAYS.update().values(body=b"PAR1 no more"))
    with pytest.raises(StoreError, match=r"the samples of 2026-11-22 cannot be read"):
        kept_samples(store)
