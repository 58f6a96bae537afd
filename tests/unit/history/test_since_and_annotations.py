from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from horde_policy.board.changes import changes
from horde_policy.board.rows import make_board
from horde_policy.errors import InputError, StoreError
from horde_policy.history.annotations import Annotation, parse_annotations, read_annotations
from horde_policy.history.reading import snapshot_at
from horde_policy.history.since import changes_over
from horde_policy.history.store import HistoryStore
from horde_policy.settings import AllowanceSettings
from tests.unit.board.made import listed, snapshot, worker
from tests.unit.history.churn import START, changing

TOML = """
[[annotation]]
at = 2026-11-29T12:00:00+01:00
kind = "deploy"
text = "5.1.6"

[[annotation]]
at = 2026-11-28
to = "2026-11-28 02:00"
kind = "outage"
text = "the database moved"
"""


def test_what_changed_over_a_range_is_what_its_ends_say(tmp_path: Path) -> None:
    store = HistoryStore(tmp_path / "history.sqlite", durable=False)
    for made in changing(40, seed=8):
        store.write(made)
    start, end = START + timedelta(seconds=95), START + timedelta(seconds=30 * 31)
    found = changes_over(store, start, end, AllowanceSettings(), max_length=512)
    boards = [make_board(snapshot_at(store, at), AllowanceSettings(), max_length=512, strip_sizes=()) for at in (start, end)]
    assert found == changes(*boards)
    assert found.models
    assert found.from_at == START + timedelta(seconds=90)
    early = changes_over(store, START - timedelta(days=1), end, AllowanceSettings())
    assert early.from_at == START, "where nothing was stored by the start, the first poll after it"
    with pytest.raises(InputError, match="before the first poll"):
        changes_over(store, START - timedelta(days=2), START - timedelta(days=1), AllowanceSettings())
    with pytest.raises(InputError, match="must not lie before its start"):
        changes_over(store, end, start, AllowanceSettings())
    store.close()


def test_who_left_and_which_queue_grew_is_told_first(tmp_path: Path) -> None:
    store = HistoryStore(tmp_path / "history.sqlite", durable=False)
    with pytest.raises(StoreError, match="holds no poll"):
        changes_over(store, START, START, AllowanceSettings())
    store.write(snapshot([worker("a", "m"), worker("b", "n")], [listed("m"), listed("n")], at=START))
    later = START + timedelta(minutes=5)
    store.write(snapshot([worker("b", "n")], [listed("n", 1500.0, 3.0)], at=later))
    found = changes_over(store, START, later, AllowanceSettings())
    assert [(change.model, change.turned_bad) for change in found.models] == [("m", True), ("n", False)]
    assert [(change.kind, change.worker_id) for change in found.workers] == [("left", "a")]
    store.close()


def test_annotations_of_both_forms(tmp_path: Path) -> None:
    outage = Annotation(
        at=datetime(2026, 11, 28, tzinfo=UTC), to=datetime(2026, 11, 28, 2, tzinfo=UTC), kind="outage", text="the database moved"
    )
    deploy = Annotation(at=datetime(2026, 11, 29, 11, tzinfo=UTC), to=None, kind="deploy", text="5.1.6")
    assert parse_annotations(TOML, "a.toml") == (outage, deploy)
    lines = [
        "at,to,kind,text",
        "2026-11-29T12:00:00+01:00,,Deploy,5.1.6",
        "2026-11-28,2026-11-28T02:00Z,outage,the database moved",
    ]
    path = tmp_path / "a.csv"
    path.write_text("\ufeff" + "\r\n".join(lines), encoding="utf-8")
    assert read_annotations(path) == (outage, deploy)
    assert parse_annotations("", "empty.toml") == parse_annotations("", "empty.csv") == ()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "", "must end in .toml or .csv"),
        ("a.toml", "at = ", "is not TOML"),
        ("a.toml", "[deploy]\nat = 2026-11-29", r"must hold tables \[\[annotation\]\] only"),
        ("a.toml", "annotation = [1]", r"must hold tables \[\[annotation\]\] only"),
        ("a.csv", "at,kind,text\n2026-11-29,deploy", "line 2.*must have the header's 3 fields"),
        ("a.csv", "at,kind,text\n2026-11-29,deploy,x,y", "line 2.*must have the header's 3 fields"),
        ("a.csv", 'at,kind,text\n2026-11-29,deploy,"x', "is not CSV"),
        ("a.csv", "x" * 3_000_000, r"^annotations, a.csv, line 1: is not CSV: a field has more than 131,072 characters"),
        ("a.csv", 'at,kind,text\n2026-11-29,note,"' + "x\n" * 90_000, r"line \d+: is not CSV: a field has more than 131,072"),
        ("a.csv", "at,what\n2026-11-29,x", "'what' is no field"),
        ("a.csv", "at,kind,text\nyesterday,deploy,x", "line 2, field at: 'yesterday' must be an instant"),
        ("a.csv", "at,kind,text\n,deploy,x", "field at: None must be an instant"),
        ("a.csv", "at,kind,text\n2026-11-29,party,x", "field kind: 'party' must be one of"),
        ("a.csv", "at,kind,text\n2026-11-29,deploy,", "field text: None must be a text"),
        ("a.csv", "at,kind,text\n2026-11-29,deploy," + "x" * 201, "must be a text of at most 200"),
        ("a.csv", "at,to,kind,text\n2026-11-29,2026-11-28,deploy,x", "field to.*must not lie before at"),
        ("a.csv", "at,kind,text\n0001-01-01T00:00+14:00,deploy,x", "beyond the calendar"),
        ("a.toml", "[[annotation]]\nat = 12:00:00\ntext = 'x'", "must be an instant"),
        ("a.toml", "[[annotation]]\nat = 2026-11-29\ntext = 'x'\nkind = 5", "field kind: 5 must be one of"),
    ],
)
def test_an_annotation_that_breaks_a_rule_is_named(name: str, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_annotations(content, name)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_annotations(tmp_path / "none.csv")
    broken = tmp_path / "a.csv"
    broken.write_bytes(b"at,kind,text\n2026-11-29,deploy,\xff")
    with pytest.raises(InputError, match="must be UTF-8"):
        read_annotations(broken)
    with broken.open("wb") as file:
        file.truncate(5_000_000)
    with pytest.raises(InputError, match="bytes must be at most"):
        read_annotations(broken)
