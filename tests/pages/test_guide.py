"""The guide as a viewer meets it: a list of steps, a step with its figures, a bar on the real pages, nothing asked of anybody."""

from collections.abc import Callable

import pytest

from horde_policy.ui import live
from horde_policy.views.guide import STEPS
from horde_policy.views.text import escape_markdown
from horde_policy.views.words import GLOSSARY
from tests.pages.conftest import FILES, App

NewApp = Callable[[], App]


def links(shown: App) -> list[str]:
    return [element.proto.label for element in shown.test.get("page_link")]


def test_the_guide_lists_its_steps_and_all_words(app: NewApp) -> None:
    shown = app().open("guide")
    shown.assert_well()
    assert shown.title == "A workshop in eight steps"
    assert len([label for label in links(shown) if label[0].isdigit()]) == len(STEPS)
    assert set(shown.rows("guide.glossary")) == {term.word for term in GLOSSARY.values()}


@pytest.mark.parametrize("step", range(1, len(STEPS) + 1))
def test_a_step_shows_its_figures_and_the_way_on(app: NewApp, step: int) -> None:
    shown = app().open("guide", step=str(step), answers="1")
    shown.assert_well()
    assert shown.title == STEPS[step - 1].title
    assert len(shown.tiles("guide.tiles")) >= 3
    keys = {button.key for button in shown.test.button}
    assert {"guide.back", "guide.reset"} <= keys
    assert ("guide.next" in keys) == (step < len(STEPS))
    assert len(shown.test.get("plotly_chart")) == (1 if step <= 4 else 0)
    assert [label for label in links(shown) if label in {link.label for link in STEPS[step - 1].links}]


@pytest.mark.parametrize("step", [1, 5])
def test_a_step_shows_its_question_alone_until_the_figures_are_asked_for(app: NewApp, step: int) -> None:
    shown = app().open("guide", step=str(step))
    shown.assert_well()
    told = [str(text.value) for text in shown.test.markdown]
    assert any(escape_markdown(STEPS[step - 1].question) in text for text in told)
    assert not any(text.startswith("- ") for text in told)
    assert not shown.has_part("guide.tiles")
    assert not shown.test.get("plotly_chart")
    assert not {link.label for link in STEPS[step - 1].links} & set(links(shown))
    shown.test.button(key="guide.answers").click().run()
    assert len(shown.tiles("guide.tiles")) >= 3
    assert dict(shown.test.query_params) == {"step": [str(step)], "answers": ["1"]}
    shown.test.button(key="guide.next").click().run()
    assert dict(shown.test.query_params) == {"step": [str(step + 1)]}
    assert not shown.has_part("guide.tiles"), "the next step begins with its question"


def test_the_buttons_walk_through_the_steps_and_end_the_workshop(app: NewApp) -> None:
    shown = app().open("guide", step="1")
    for step in STEPS[1:]:
        shown.test.button(key="guide.next").click().run()
        assert shown.title == step.title
    shown.test.button(key="guide.back").click().run()
    assert shown.title == STEPS[-2].title
    shown.test.button(key="guide.reset").click().run()
    assert shown.title == "A workshop in eight steps"
    assert dict(shown.test.query_params) == {}


def test_the_figures_are_the_demos_whatever_the_deployment_says(app: NewApp, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = app().open("guide", step="2", answers="1")
    before = shown.tiles("guide.tiles")
    monkeypatch.setenv("HORDE_TEXT_FREE_OUTPUT_FLOOR", "100")
    for name, value in {"source": "recorded-snapshot", "size": "2048", "ceiling": "1000"}.items():
        shown.test.query_params[name] = value
    shown.test.run()
    shown.assert_well()
    assert shown.tiles("guide.tiles") == before
    assert not shown.test.selectbox, "the guide has no source or size to choose"
    assert list(live.pollers().started()) == ["demo"], "the guide asks no source"


def test_a_real_page_says_which_step_it_belongs_to_and_how_to_go_back(app: NewApp) -> None:
    step = STEPS[2]
    shown = app().open("model", step="3", m=["koboldcpp/Fernery-24B-v1.1"])
    shown.assert_well()
    assert any("Workshop, step 3 of 8" in str(m.value) for m in shown.test.markdown)
    assert [label for label in links(shown) if label in ("Back to the guide", *(x.label for x in step.links))] == [
        step.links[1].label,
        step.links[2].label,
        "Back to the guide",
    ]
    shown = app().open("model")
    assert "Back to the guide" not in links(shown)


def test_every_page_that_a_step_opens_takes_its_link(app: NewApp) -> None:
    from horde_policy.settings import AllowanceSettings
    from horde_policy.views.guide import link_query

    opened = 0
    for number, step in enumerate(STEPS, start=1):
        for link in step.links:
            if link.page in FILES and link.page != "replay":  # a replay's run has tests of its own
                shown = app().open(link.page, **link_query(link, number, AllowanceSettings()))
                shown.assert_well()
                assert shown.warnings == [], f"{step.title}: {link.label}"
                opened += 1
    assert opened >= 9
