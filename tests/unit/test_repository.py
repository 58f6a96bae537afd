"""What must hold for the repository itself: the lock, the words, the records of decisions."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from horde_policy.settings import ENVIRONMENT_NAMES

ROOT = Path(__file__).parents[2]
TEXT_ENDINGS = {".py", ".md", ".toml", ".txt", ".lock", ".yml", ".yaml", ".json", ".cfg", ".sh", ""}


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def requirement_names(path: Path) -> list[str]:
    lines = [line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
    return [re.split(r"[\[<>=!~ ]", line)[0] for line in lines if line and not line.startswith("-")]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_lock_holds_versions_and_nothing_else() -> None:
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    astray = [line for line in lines if not re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.+!-]+", line)]
    assert lines
    assert not astray, f"index, link or unpinned lines in the lock: {astray}"


@pytest.mark.parametrize("path", sorted(ROOT.glob("requirements*.txt")), ids=lambda path: path.name)
def test_every_requirement_is_pinned_in_the_lock(path: Path) -> None:
    pinned = {normal(line.split("==")[0]) for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()}
    missing = [name for name in requirement_names(path) if normal(name) not in pinned]
    assert not missing, f"{path.name} names {missing}, which the lock does not pin: run `make lock`"


def test_no_requirement_file_names_a_registry() -> None:
    for path in ROOT.glob("requirements*"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"--(extra-)?index-url|--find-links|://|^-[if] ", text, re.MULTILINE), path.name


def test_nothing_tracked_holds_a_path_of_a_machine() -> None:
    homes = "|".join(("work", "farm", "root"))
    pattern = re.compile(rf"(?<![\w./-])/({homes})/")
    found = []
    for path in tracked():
        if path.suffix in TEXT_ENDINGS and path.stat().st_size < 1_000_000:
            text = path.read_text(encoding="utf-8", errors="replace")
            found += [f"{path.relative_to(ROOT)}:{n}" for n, line in enumerate(text.splitlines(), 1) if pattern.search(line)]
    assert not found


def test_decisions_have_a_number_of_their_own_and_a_title() -> None:
    records = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    numbers = [path.name[:4] for path in records]
    assert records
    assert len(numbers) == len(set(numbers)), "two decisions share a number"
    for path in records:
        assert path.read_text(encoding="utf-8").lstrip().startswith("# "), f"{path.name} has no title"
        assert re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", path.name), path.name


def test_no_module_has_a_name_that_says_nothing() -> None:
    empty = {"utils", "util", "helpers", "helper", "manager", "common", "misc"}
    found = [str(p.relative_to(ROOT)) for p in tracked() if p.suffix == ".py" and p.stem in empty]
    assert not found


def test_every_setting_is_documented_in_the_reference_to_which_the_readme_leads() -> None:
    assert "(docs/reference/settings.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
    reference = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    missing = [name for pair in ENVIRONMENT_NAMES.items() for name in pair if f"`{name}`" not in reference]
    assert not missing


def readme_commands() -> list[str]:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return [line for line in readme.splitlines() if line.startswith(".venv/bin/python -m horde_policy ")]


def test_the_commands_of_the_readme_run_in_their_order(tmp_path: Path) -> None:
    commands = readme_commands()
    assert len(commands) >= 5
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HORDE")}
    for line in commands:
        words = [sys.executable, *shlex.split(line)[1:]]
        words = [str(ROOT / word) if word.startswith("data/") else word for word in words]
        run = subprocess.run(
            words, cwd=tmp_path, capture_output=True, text=True, check=False, env={**environment, "PYTHONPATH": str(ROOT)}
        )
        assert run.returncode == 0, f"{line}\n{run.stderr}"
        assert run.stdout
