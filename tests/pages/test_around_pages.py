"""What stands around the pages: the copy of the link, the controls a page has, words in place of rule numbers."""

import re
from collections.abc import Callable

import pytest

from tests.pages.conftest import FILES, App

NewApp = Callable[[], App]
WITHOUT_STATUS = ("week", "decisions", "waits", "sweep", "budget")


def components(shown: App) -> list[str]:
    return [element.proto.component_name for element in shown.test.get("bidi_component")]


@pytest.mark.parametrize("page", sorted(FILES))
def test_every_page_offers_the_copy_of_its_link_once(app: NewApp, page: str) -> None:
    found = components(app().open(page))
    own = found.count("horde_policy.status") + found.count("horde_policy.copylink")
    assert own == 1, found
    assert ("horde_policy.copylink" in found) == (page in WITHOUT_STATUS)


@pytest.mark.parametrize("page", ["overview", "model", "week", "decisions", "waits"])
def test_no_page_names_a_rule_by_its_number(app: NewApp, page: str) -> None:
    # Budget explains the codes that it names: tests/pages/test_budget.py holds each against its explanation
    shown = app().open(page)
    texts = [
        str(e.value) for kind in ("caption", "markdown", "title", "header", "info", "warning") for e in getattr(shown.test, kind)
    ]
    texts += [str(getattr(e.proto, "help", "")) for kind in ("caption", "markdown") for e in getattr(shown.test, kind)]
    assert len(texts) > 2
    assert [t for t in texts if re.search(r"\b[AB][0-9]{1,2}\b", t)] == []
