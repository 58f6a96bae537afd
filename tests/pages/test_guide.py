"""The guide as a viewer meets it: a list of steps, a step with its figures, a bar on the real pages, nothing asked of anybody."""

from collections.abc import Callable

import pytest

from horde_policy.ui import live
from horde_policy.views.guide import ONWARD, STEPS
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
    listed = list(shown.rows("guide.glossary"))
    assert set(listed) == {term.word for term in GLOSSARY.values()}
    assert listed == sorted(listed, key=str.casefold), "a list of words is in the order of the alphabet, whatever their case"


@pytest.mark.parametrize("step", range(1, len(STEPS) + 1))
def test_a_step_shows_its_figures_and_the_way_on(app: NewApp, step: int) -> None:
    shown = app().open("guide", step=str(step), answers="1")
    shown.assert_well()
    assert shown.title == STEPS[step - 1].title
    assert len(shown.tiles("guide.tiles")) >= 3
    keys = {button.key for button in shown.test.button}
    assert {"guide.back", "guide.reset"} <= keys
    assert shown.test.button(key="guide.next").label == ("Next" if step < len(STEPS) else "Finish")
    assert len(shown.figures) == (1 if step <= 4 else 0)
    assert [label for label in links(shown) if label in {link.label for link in STEPS[step - 1].links}]


@pytest.mark.parametrize("step", [1, 5])
def test_a_step_shows_its_question_alone_until_the_figures_are_asked_for(app: NewApp, step: int) -> None:
    shown = app().open("guide", step=str(step))
    shown.assert_well()
    told = [str(text.value) for text in shown.test.markdown]
    assert any(escape_markdown(STEPS[step - 1].question) in text for text in told)
    assert not any(text.startswith("- ") for text in told)
    assert not shown.has_part("guide.tiles")
    assert not shown.figures
    assert not {link.label for link in STEPS[step - 1].links} & set(links(shown))
    shown.test.button(key="guide.answers").click().run()
    assert len(shown.tiles("guide.tiles")) >= 3
    assert shown.address == {"step": [str(step)], "answers": ["1"]}
    shown.test.button(key="guide.next").click().run()
    assert shown.address == {"step": [str(step + 1)]}
    assert not shown.has_part("guide.tiles"), "the next step begins with its question"


def test_the_buttons_walk_through_the_steps_and_end_the_workshop(app: NewApp) -> None:
    shown = app().open("guide", step="1")
    for step in STEPS[1:]:
        shown.test.button(key="guide.next").click().run()
        assert shown.title == step.title
    shown.test.button(key="guide.back").click().run()
    assert shown.title == STEPS[-2].title
    shown.test.query_params["size"] = "1024"
    shown.test.button(key="guide.reset").click().run()
    assert shown.title == "A workshop in eight steps"
    assert shown.address == {}, "what was chosen in the workshop is forgotten with it"


def test_the_last_step_has_a_finish_with_what_was_learned_and_where_to_go_on(app: NewApp) -> None:
    shown = app().open("guide", step=str(len(STEPS)))
    shown.test.button(key="guide.next").click().run()
    shown.assert_well()
    assert shown.title == "What was learned"
    told = " ".join(str(text.value) for text in shown.test.markdown)
    assert all(escape_markdown(step.lesson) in told for step in STEPS)
    assert [label for label in links(shown) if label in {label for _, label, _ in ONWARD}] == [label for _, label, _ in ONWARD]
    assert "guide.next" not in {button.key for button in shown.test.button}
    shown.test.button(key="guide.back").click().run()
    assert shown.title == STEPS[-1].title


def test_the_notes_are_on_the_page_and_can_be_taken(app: NewApp) -> None:
    shown = app().open("guide")
    notes = next(block for block in shown.test.expander if block.label == "Notes for who holds it")
    text = " ".join(str(m.value) for m in notes.markdown)
    assert all(f"### {number}. {step.title}" in text for number, step in enumerate(STEPS, start=1))
    assert "](" not in text, "no picture and no file that the app does not serve"
    assert "workshop.md (Markdown)" in [element.proto.label for element in notes.get("download_button")]


@pytest.mark.parametrize(
    ("page", "step", "subject", "after"),
    [
        ("waits", "6", "What did funded requests wait, and is a per-request record needed?", "Estimated against measured"),
        ("budget", "8", "One request, line by line", "The rules behind it"),
    ],
)
def test_a_page_that_a_step_opens_begins_with_what_the_step_is_about(
    app: NewApp, page: str, step: str, subject: str, after: str
) -> None:
    def headers(**query: str) -> list[str]:
        shown = app().open(page, **query)
        shown.assert_well()
        return shown.headings

    in_the_workshop, alone = headers(step=step), headers()
    assert in_the_workshop[0] == subject
    assert alone.index(subject) > alone.index(after), "by itself the page keeps its order"
    assert sorted(in_the_workshop) == sorted(alone)


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
    assert list(live.pollers().started()) == [], "the guide asks no source"


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
    ends = [e.proto.query_string for e in shown.test.get("page_link") if e.proto.label == "End the workshop"]
    assert ends == [""], "the guide is opened without a step"
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
