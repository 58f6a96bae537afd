"""The documentation is run, and is whole: every block, link, setting, parameter, metric, command and word of it."""

import ast
import re
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from horde_policy.cli.main import main
from horde_policy.settings import ENVIRONMENT_NAMES, AllowanceSettings, ReplaySettings
from horde_policy.units import MAX_LENGTH_LIMIT_TOKENS
from horde_policy.views.budget_state import BUDGET_NAMES
from horde_policy.views.parameters import AS_IN_COMMANDS, PARAMETERS, SETTING_PARAMETERS, TRIED_PARAMETERS
from horde_policy.views.replay_state import REPLAY_NAMES
from horde_policy.views.review_state import PARAMETERS as REVIEW_PARAMETERS
from horde_policy.views.review_state import parse_review_state
from horde_policy.views.state import parse_view_state
from horde_policy.views.sweep_state import SWEEP_NAMES
from horde_policy.views.words import GLOSSARY
from tests.documentation import ROOT, blocks_of, run_page
from tests.unit.test_one_direction import LEAVES, MAY_IMPORT, MAY_IMPORT_ALSO
from tools.reference import commands_page, glossary_page

DOCS = ROOT / "docs"
PAGES = sorted(p for p in [*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"] if "decisions" not in p.parts)
RUN = [page for page in PAGES if any(block.mark != "not run" for block in blocks_of(page))]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def text_of(name: str) -> str:
    return (DOCS / "reference" / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", RUN, ids=named)
def test_every_command_and_example_does_what_its_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "150")
    for name in ENVIRONMENT_NAMES.values():
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "data").symlink_to(ROOT / "data")

    def run(words: list[str]) -> tuple[int, str]:
        code = main(words)
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    assert run_page(page, run) >= 1
    assert not_ignored(path.name for path in tmp_path.iterdir() if path.name != "data") == [], "git would show them to the reader"


def not_ignored(names: Iterable[str]) -> list[str]:
    """Return the files that git would list as untracked, if they lay in the repository's own folder."""
    wanted = sorted(names)
    command = ["git", "check-ignore", "--no-index", "--stdin"]
    ignored = subprocess.run(command, cwd=ROOT, input="\n".join(wanted), capture_output=True, text=True, check=False).stdout
    return [name for name in wanted if name not in ignored.splitlines()]


def test_what_the_commands_that_are_not_run_write_is_ignored_too() -> None:
    written = {
        name for page in PAGES for name in re.findall(r"(?:--out|--store|--proposal) ([^\s/`]+\.[a-z]+)", page.read_text("utf-8"))
    }
    assert {"history.sqlite", "run.parquet", "proposal.md"} <= written
    assert not_ignored(written - {"DIR.parquet"}) == []
    assert not_ignored(["README.md", "app.py", "history.sqlite"]) == ["README.md", "app.py"]


def test_a_store_of_a_history_has_one_ending() -> None:
    texts = [page.read_text("utf-8") for page in [*PAGES, *(DOCS / "deploy").glob("*.service")]]
    names = {name for text in texts for name in re.findall(r"(?:history|week)\.(?:db|sqlite3?)\b", text)}
    assert names == {"history.sqlite", "week.sqlite"}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_block_that_is_not_run_says_why(page: Path) -> None:
    for block in blocks_of(page):
        assert block.mark or block.language in ("console", "python"), f"{named(page)}:{block.line} is neither run nor marked"
        assert block.mark != "not run" or len(block.told) > 10


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_between_pages_leads_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{named(page)} links to {target}"


def test_every_page_is_on_the_contents() -> None:
    contents = (DOCS / "README.md").read_text(encoding="utf-8")
    missing = [
        str(page.relative_to(DOCS))
        for page in DOCS.rglob("*.md")
        if page.parent.name != "decisions" and page != DOCS / "README.md"
    ]
    assert [name for name in missing if f"({name})" not in contents] == []


# --- reference ---------------------------------------------------------------------------------------------------------------


def names_in_the_code() -> Iterator[str]:
    """Names of the environment that the program itself reads, as text constants of its modules."""
    for path in (ROOT / "horde_policy").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and re.fullmatch(r"HORDE_[A-Z]+[A-Z_]*[A-Z]", text):
                yield text


@cache
def names_in_all_code() -> frozenset[str]:
    return frozenset(names_in_the_code())


def setting_rows(page: str) -> dict[str, list[str]]:
    """Return the cells of each row of the tables of settings, by the name in their first one."""
    lines = [line.removeprefix("|").removesuffix("|").split(" | ") for line in page.splitlines() if line.startswith("| `")]
    return {cells[0].strip("` "): [cell.strip() for cell in cells] for cells in lines}


def undocumented_settings(page: str) -> list[str]:
    """Return the settings, their names in the environment, and the names that the code reads, that a page does not tell."""
    rows = setting_rows(page)
    read = {name for name in names_in_all_code() if f"`{name}`" not in page}
    told = {environment: rows.get(setting, ["", ""])[1].strip("`") for setting, environment in ENVIRONMENT_NAMES.items()}
    unlisted = {setting for setting in ENVIRONMENT_NAMES if setting not in rows}
    return sorted(read | unlisted | {environment for environment, name in told.items() if name != environment})


def undocumented_words(page: str) -> list[str]:
    """Return the words of the glossary that a page does not define as the app does."""
    return sorted(term.word for term in GLOSSARY.values() if f"- **{term.word}**: {term.text}" not in page)


def test_every_setting_and_every_word_is_documented() -> None:
    assert undocumented_settings(text_of("settings")) == []
    assert undocumented_words(text_of("glossary")) == []


def test_what_is_not_documented_is_named() -> None:
    page, words = text_of("settings"), text_of("glossary")
    for name in (*ENVIRONMENT_NAMES, "HORDE_POLICY_LEDGER", "HORDE_URL"):
        assert name in undocumented_settings(page.replace(f"`{name}`", "`gone`")), f"nobody would miss {name}"
    for term in GLOSSARY.values():
        without = "\n".join(line for line in words.splitlines() if not line.startswith(f"- **{term.word}**:"))
        assert undocumented_words(without) == [term.word]
        assert term.word in undocumented_words(words.replace(term.text, "something else"))


@pytest.mark.parametrize(("spelled", "name"), AS_IN_COMMANDS.items())
def test_a_link_takes_the_spelling_of_commands_and_the_reference_says_both(spelled: str, name: str) -> None:
    value = "2048" if "ceiling" in spelled else "256" if "floor_tokens" in spelled else "70"

    def read(query: dict[str, list[str]]) -> tuple[object, tuple[str, ...]]:
        return parse_review_state(query) if name.startswith("what_if") else parse_view_state(query, AllowanceSettings())

    assert read({spelled: [value]}) == read({name: [value]}) != read({})
    assert read({spelled: [value]})[1] == (), "no note: both spellings are right"
    told = setting_rows(text_of("settings"))[spelled][4:] if spelled in ENVIRONMENT_NAMES else [f"`{name}`"]
    assert told == [f"`{name}`"]
    assert f"`{name}`" in text_of("addresses")


def test_every_setting_is_documented_with_its_default() -> None:
    page = text_of("settings")
    rows = setting_rows(page)
    settings = ReplaySettings()
    for setting in ENVIRONMENT_NAMES:
        default = getattr(settings, setting)
        written = f"{default:g}" if isinstance(default, float) else str(default).lower()
        assert rows[setting][2] == written
    assert str(MAX_LENGTH_LIMIT_TOKENS) in rows["ceiling_tokens"][3]


def test_no_documented_setting_is_gone() -> None:
    known = names_in_all_code() | set(ENVIRONMENT_NAMES.values())
    written = set(re.findall(r"`(HORDE_[A-Z_]+)`", text_of("settings")))
    built = {name for name in written if name.startswith("HORDE_POLICY_PROMETHEUS_")}
    assert written - known - built == set()


ADDRESS_NAMES = [
    *(p.name for p in (*PARAMETERS, *REVIEW_PARAMETERS)),
    *(*SETTING_PARAMETERS, *TRIED_PARAMETERS, *SWEEP_NAMES, *BUDGET_NAMES, *REPLAY_NAMES),
]


def test_no_documented_parameter_is_gone_and_none_is_told_twice() -> None:
    rows = [line.split("|")[1] for line in text_of("addresses").splitlines() if line.startswith("| `")]
    names = [name for cell in rows for name in re.findall(r"`([^`]+)`", cell)]
    assert sorted(set(names) - set(ADDRESS_NAMES)) == []
    assert sorted({name for name in names if names.count(name) > 1}) == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_heading_of_a_page_stands_once(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#{1,6} .+$", text, re.MULTILINE)
    assert sorted({heading for heading in headings if headings.count(heading) > 1}) == []


def test_every_parameter_of_an_address_is_documented() -> None:
    page = text_of("addresses")
    missing = [name for name in ADDRESS_NAMES if f"`{name}`" not in page]
    assert missing == []
    shared = page.partition("## On some pages")[0]
    for parameter in PARAMETERS:
        assert (f"`{parameter.name}`" in shared.partition("## On every page")[2]) == parameter.shared


@pytest.mark.parametrize(("name", "made"), [("glossary", glossary_page), ("commands", commands_page)])
def test_the_reference_repeats_the_code(name: str, made: object) -> None:
    assert callable(made)
    assert text_of(name) == made(), "run `python tools/reference.py`"


def test_the_users_page_states_the_rule_as_it_is() -> None:
    from horde_policy.policy.allowance import free_output_allowance

    page, settings = text_of("free-output-allowance"), AllowanceSettings()
    rows = dict(re.findall(r"^\| (?:up to )?(\d+) s(?: and longer)? \| ([\d,]+) \|$", page, re.MULTILINE))
    assert len(rows) == 5
    for wait, tokens in rows.items():
        assert tokens == f"{free_output_allowance(float(wait), settings):,}"
    assert f"| no worker could take the request | {free_output_allowance(None, settings)} |" in page
    assert f"{MAX_LENGTH_LIMIT_TOKENS:,} tokens is not a valid request" in page
    assert f"{settings.ceiling_tokens / 150:.1f} tokens a second" in page
    assert f"counts at {settings.assumed_speed_tok_per_s:g} tokens a second" in page


def test_the_table_of_the_architecture_is_the_graph_that_is_walked() -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if re.match(r"\| `[a-z]+` ", line)]
    table: dict[str, set[str]] = {}
    for cells in rows:
        told = cells[2].strip("| ") if len(cells) > 2 else ""
        parts = {part.strip() for part in told.split(",") if part.strip()}
        table[cells[0].strip("`")] = parts - {"the leaves"} | (LEAVES if "the leaves" in parts else set())
    assert table == {part: allowed for part, allowed in MAY_IMPORT.items() if part != "__main__"}
    assert [name.rpartition("horde_policy.")[2].replace(".", "/") + ".py" for name in MAY_IMPORT_ALSO] == ["board/probe.py"]
    assert "`board/probe.py` imports `sources`" in page


def test_the_runner_finds_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.documentation.ROOT", tmp_path)
    cases = {
        "```python\n>>> 1 + 1\n3\n```\n": "Expected",
        "```console\n$ rm -r somewhere\n```\n": "only commands of this product",
        "```console\n$ python -m horde_policy snapshot\nanother\n```\n": "the page says",
        "```toml\na = 1\n```\n": "neither run nor marked",
    }
    for text, message in cases.items():
        wrong = tmp_path / "wrong.md"
        wrong.write_text(text, encoding="utf-8")
        with pytest.raises((AssertionError, pytest.fail.Exception), match=message):
            run_page(wrong, lambda _words: (0, "printed\n"))
