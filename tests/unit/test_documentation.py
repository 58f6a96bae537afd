"""The documentation is run, and is whole: every block, link, setting, parameter, metric, command and word of it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from horde_policy.cli.main import main
from horde_policy.settings import ENVIRONMENT_NAMES, AllowanceSettings, ReplaySettings
from horde_policy.units import MAX_LENGTH_LIMIT_TOKENS
from horde_policy.views.budget_state import BUDGET_NAMES
from horde_policy.views.parameters import PARAMETERS, SETTING_PARAMETERS, TRIED_PARAMETERS
from horde_policy.views.replay_state import REPLAY_NAMES
from horde_policy.views.review_state import PARAMETERS as REVIEW_PARAMETERS
from horde_policy.views.sweep_state import SWEEP_NAMES
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


def test_every_setting_is_documented_with_its_default() -> None:
    page = text_of("settings")
    rows = {
        cells[0].strip("` "): cells
        for line in page.splitlines()
        if line.startswith("| `")
        for cells in [line.strip("| ").split(" | ")]
    }
    settings = ReplaySettings()
    for setting, environment in ENVIRONMENT_NAMES.items():
        assert setting in rows, f"the setting {setting} is not documented"
        assert rows[setting][1].strip("`") == environment
        default = getattr(settings, setting)
        written = f"{default:g}" if isinstance(default, float) else str(default).lower()
        assert rows[setting][2] == written
    missing = sorted({name for name in names_in_the_code() if f"`{name}`" not in page})
    assert missing == [], f"not documented: {missing}"
    assert str(MAX_LENGTH_LIMIT_TOKENS) in rows["ceiling_tokens"][3]


def test_no_documented_setting_is_gone() -> None:
    known = set(names_in_the_code()) | set(ENVIRONMENT_NAMES.values())
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
