"""Every word that a page uses as a label is in the one glossary; what is plain English is listed here."""

import json
from collections.abc import Callable

import pytest

from horde_policy.views.figures.style import OUTCOMES
from horde_policy.views.words import GLOSSARY, STATES
from tests.pages.conftest import FILES, App

NewApp = Callable[[], App]

KNOWN = {word.casefold() for term in GLOSSARY.values() for word in (term.word, *term.also)}
PLAIN = frozenset(
    {
        "",
        "age of the data",
        "counts",
        "data of",
        "item",
        "kind",
        "level",
        "next due",
        "now",
        "read so because",
        "what it means",
        "what was found",
        "why not, and what is not reported of it",
        "word",
    }
)
"""Labels that say no more than their words do."""

ADDRESSES: dict[str, dict[str, str]] = {"model": {"m": "koboldcpp/Fernery-24B-v1.1"}}


def labels_of(shown: App) -> set[str]:
    found: set[str] = set()
    for element in shown.test.get("bidi_component"):
        data = json.loads(element.proto.json)
        found |= {column["label"] for column in data.get("columns", ())}
        if "guide.tiles" not in element.proto.id:  # the workshop names models and questions
            found |= {tile["label"] for tile in data.get("tiles", ())}
    return found


@pytest.mark.parametrize("page", FILES)
def test_every_label_of_a_page_is_a_word_of_the_glossary(app: NewApp, page: str) -> None:
    labels = labels_of(app().open(page, **ADDRESSES.get(page, {})))
    missing = sorted(label for label in labels if label.casefold() not in KNOWN | PLAIN)
    assert missing == [], f"{page} uses words that the glossary does not have"


def test_every_outcome_is_in_the_glossary_and_no_word_twice() -> None:
    assert set(OUTCOMES["light"]) <= KNOWN
    words = [word.casefold() for term in GLOSSARY.values() for word in (term.word, *term.also)]
    assert len(words) == len(set(words))
    assert not PLAIN & KNOWN
    assert all(state.text for state in STATES.values())
