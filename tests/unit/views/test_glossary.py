"""Every word that heads a column or a figure is in the one glossary, or is plain English and listed here."""

import ast
from collections.abc import Iterator

import pytest

from horde_policy.policy.decision import rule_outcome
from horde_policy.policy.request import Request
from horde_policy.views.figures.style import OUTCOMES
from horde_policy.views.replay_words import RUN_COLUMNS
from horde_policy.views.words import GLOSSARY, STATES, gloss
from tests.documentation import ROOT

WORDS = [word.casefold() for term in GLOSSARY.values() for word in (term.word, *term.also, *(label for label, _ in term.beside))]
KNOWN = set(WORDS)
WORKSHOP = "guide_steps.py"
"""Its figures are headed by models and questions; its sentences say what they are."""

PLAIN = frozenset(
    """
    90 %|95 % within|99 %|age of the data|amount|answer|best in|better|better on|budget|budgets|by the queue|by the workers|
    counted|counts|cut|data of|difference|figure|file|first look|first refusal at|for|from|gone since|how|how it fares|
    how many|in force|item|kind|last look|left|left out|level|looked at|mean|median|median wait|meets all|met in|most open|
    moves it by|must hold|n|next due|no worker|not understood|noted|now|on the days held out|open|output limit|part|
    price|read so because|replayed|request|requests|run|samples|setting|share of all variation|since|size asked|then|
    there|to|tokens|understood as|upload|waits|what|what happened|what it means|what was found|where|why|
    why it was left out|why not, and what is not reported of it|within the floor wait|within the full wait|word|worse
    """.replace("\n", "")
    .replace("    ", "")
    .split("|")
) | {""}
"""Labels that say no more than their words do."""


def headings() -> Iterator[tuple[str, str]]:
    """Module and text of every heading of a column and of a tile, as constants of the code that makes them."""
    for folder in ("views", "ui"):
        for path in sorted((ROOT / "horde_policy" / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and path.name != WORKSHOP:
                    label = heading_of(node)
                    if isinstance(label, ast.Constant) and isinstance(label.value, str):
                        yield path.name, label.value


def heading_of(call: ast.Call) -> ast.expr | None:
    name = ast.unparse(call.func).rpartition(".")[2]
    if name == "Column":
        return next((keyword.value for keyword in call.keywords if keyword.arg == "label"), None)
    place = {"tile": 0, "column": 1, "_column": 1}.get(name)
    return call.args[place] if place is not None and len(call.args) > place else None


def test_every_heading_is_a_word_of_the_glossary_or_plain() -> None:
    found = list(headings())
    assert len(found) > 100
    missing = sorted({f"{text!r} in {module}" for module, text in found if text.casefold() not in KNOWN | PLAIN})
    assert missing == [], "neither in the glossary (horde_policy/views/words.py) nor plain English"


def test_no_plain_word_is_kept_that_heads_nothing() -> None:
    used = {text.casefold() for _, text in headings()}
    assert sorted(PLAIN - used - {""}) == []


def headings_by_table() -> Iterator[tuple[str, set[str]]]:
    """Module and headings of every table whose columns stand in one list or tuple."""
    for path in sorted((ROOT / "horde_policy" / "views").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.List | ast.Tuple):
                labels = [heading_of(part) for part in node.elts if isinstance(part, ast.Call)]
                texts = {str(label.value).casefold() for label in labels if isinstance(label, ast.Constant)}
                if texts:
                    yield path.name, texts


def test_no_table_has_two_columns_that_the_glossary_calls_one_thing() -> None:
    tables = list(headings_by_table())
    assert len(tables) > 20
    for module, texts in tables:
        for term in GLOSSARY.values():
            same = {word.casefold() for word in (term.word, *term.also)} & texts
            assert len(same) <= 1, f"{module}: {sorted(same)} head different figures"


@pytest.mark.parametrize(
    "label", ["Started", "Could not finish in full", "At worst beyond", "At worst beyond the holds", "Tokens more", "Used"]
)
def test_a_figure_that_goes_with_a_word_is_not_called_the_same(label: str) -> None:
    assert not [term.word for term in GLOSSARY.values() if label in term.also]
    assert [what for term in GLOSSARY.values() for name, what in term.beside if name == label and len(what) > 10]


def test_every_outcome_is_in_the_glossary_and_no_word_twice() -> None:
    assert set(OUTCOMES["light"]) <= KNOWN
    assert len(WORDS) == len(KNOWN), sorted({word for word in WORDS if WORDS.count(word) > 1})
    assert not PLAIN & KNOWN
    assert all(state.text for state in STATES.values())


@pytest.mark.parametrize("key", GLOSSARY)
def test_a_definition_is_one_short_sentence_or_two(key: str) -> None:
    text = GLOSSARY[key].text
    assert text.endswith(".")
    assert 20 <= len(text) <= 220


@pytest.mark.parametrize("outcome", ["funded", "downgraded", "refused"])
def test_replay_calls_an_outcome_what_the_glossary_does(outcome: str) -> None:
    assert [column.help for column in RUN_COLUMNS if column.key == outcome] == [gloss(outcome)]


def test_no_worker_is_the_floor_and_no_refusal_of_its_own() -> None:
    for max_length, outcome in ((512, "free"), (513, "refused")):
        assert rule_outcome(Request(models=(), max_length=max_length), 512, any_eligible=False)[0] == outcome
    assert rule_outcome(Request(models=(), max_length=513, can_pay=True), 512, any_eligible=False)[0] == "funded"
    assert "the floor where no worker is eligible" in GLOSSARY["refused"].text
