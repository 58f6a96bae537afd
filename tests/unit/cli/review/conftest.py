"""A made-up week as a file, for the tests of the review's commands."""

from pathlib import Path

import pytest

from tests.unit.review.weeks import exposition_of, made_week


@pytest.fixture(scope="module")
def week_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("week") / "week.prom"
    path.write_bytes(exposition_of(made_week()))
    return path


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HORDE_TEXT_FREE_OUTPUT_FLOOR", "HORDE_TEXT_FREE_OUTPUT_CEILING"):
        monkeypatch.delenv(name, raising=False)
