from datetime import UTC, datetime
from pathlib import Path

import pytest

from horde_policy.errors import InputError
from horde_policy.review.annotations import Annotation, load_annotations


def test_notes_stand_in_order_of_time_in_utc(tmp_path: Path) -> None:
    path = tmp_path / "notes.toml"
    path.write_text(
        '[[note]]\nat = 2026-11-25T12:00:00+01:00\ntext = "later"\n[[note]]\nat = 2026-11-24T00:00:00Z\ntext = "first"\n'
    )
    assert load_annotations(path) == (
        Annotation(datetime(2026, 11, 24, tzinfo=UTC), "first"),
        Annotation(datetime(2026, 11, 25, 11, tzinfo=UTC), "later"),
    )
    path.write_text("")
    assert load_annotations(path) == ()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[[note", "is not TOML"),
        ("title = 1", "must hold .*note.* entries"),
        ("note = 3", "must hold .*note.* entries"),
        ("[[note]]\ntext = 'x'", "note 1: .* must have at and text"),
        ("[[note]]\nat = 2026-11-25\ntext = 'x'", "note 1, at"),
        ("[[note]]\nat = 2026-11-25T00:00:00\ntext = 'x'", "must be an instant with its zone"),
        ("[[note]]\nat = 2026-11-25T00:00:00Z\ntext = ''", "note 1, text"),
        (f"[[note]]\nat = 2026-11-25T00:00:00Z\ntext = '{'x' * 201}'", "1 to 200 characters"),
    ],
)
def test_what_is_no_note_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "notes.toml"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        load_annotations(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_annotations(tmp_path / "none.toml")
