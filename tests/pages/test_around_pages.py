"""What stands around the pages: the copy of the link, the controls a page has, words in place of rule numbers."""

import re
from collections.abc import Callable

import pytest

from horde_policy.ui.shell import MARGINS
from horde_policy.ui.styles import WALL
from horde_policy.views.text import unbroken
from tests.pages.conftest import FILES, App

NewApp = Callable[[], App]
WITHOUT_CONTROLS = ("guide", "budget")
OF_ONE_HORDE = ("overview", "model", "workers", "sources", "replay")


def plain(markdown: str) -> str:
    return markdown.replace("\\", "").replace("\N{WORD JOINER}", "")


def components(shown: App) -> list[str]:
    return [element.proto.component_name for element in shown.test.get("bidi_component")]


@pytest.mark.parametrize("page", sorted(FILES))
def test_what_holds_of_every_page_as_it_opens(app: NewApp, page: str) -> None:
    shown = app().open(page)
    shown.assert_well()
    check_it_says_what_its_figures_are_of_and_has_the_controls_that_change_them(shown, page)
    check_the_style_is_the_first_thing_that_a_browser_has_to_draw(shown)
    check_no_line_of_a_title_or_a_finding_ends_within_a_figure(shown)
    check_numbers_on_axes_are_written_as_everywhere(shown)
    assert shown.headings, "its parts have headings"
    assert all(words.strip() for words in shown.headings)


def check_it_says_what_its_figures_are_of_and_has_the_controls_that_change_them(shown: App, page: str) -> None:
    assert components(shown).count("horde_policy.status") == 1, "its line has the copy of the link, too"
    line = shown.part("shared.status")
    assert line["source"]
    assert "synthetic data" in line["label"], "everything of the demo is made up"
    keys = {element.key for kind in ("selectbox", "number_input") for element in shown.test.get(kind)}
    assert ("shared.source" in keys) == (page in OF_ONE_HORDE)
    assert ("shared.ceiling_tokens" in keys) == (page not in WITHOUT_CONTROLS)


def check_the_style_is_the_first_thing_that_a_browser_has_to_draw(shown: App) -> None:
    # what stands later waits for what draws the rest: seconds on a slow machine, in which a board stood in another style
    first, second, *_ = shown.test.sidebar.children.values()
    assert (first.type, second.type) == ("html", "bidi_component")
    body = str(first.proto.body)
    assert MARGINS in body
    left = re.sub(r"<style>.*?</style>", "", body, flags=re.DOTALL).strip()
    assert left == "<i data-style></i>", "a style alone is drawn last of all"


def check_no_line_of_a_title_or_a_finding_ends_within_a_figure(shown: App) -> None:
    told = [str(title.value) for title in shown.test.title] + [box.label for box in shown.test.expander if "-badge[" in box.label]
    assert told
    assert [text for text in told if unbroken(text) != text] == []


def check_numbers_on_axes_are_written_as_everywhere(shown: App) -> None:
    for figure in shown.figures:
        layout = figure.spec["layout"]
        assert "template" not in layout
        assert '"bdata"' not in figure.text, "an array that is packed is read by nobody else"
        axes = {name: axis for name, axis in layout.items() if re.fullmatch(r"[xy]axis\d*", name)}
        assert [name for name, axis in axes.items() if not axis.get("separatethousands")] == []


def test_a_wall_has_its_style_without_a_side_bar(app: NewApp) -> None:
    test = app().open("overview", wall="1").test
    assert not test.sidebar.children
    assert [WALL in str(element.proto.body) for element in test.get("html")].count(True) == 1


@pytest.mark.parametrize("page", ["overview", "model", "week", "decisions", "waits", "sweep"])
def test_no_page_names_a_rule_by_its_number(app: NewApp, page: str) -> None:
    # Budget explains the codes that it names: tests/pages/test_budget.py holds each against its explanation
    shown = app().open(page)
    texts = [
        str(e.value) for kind in ("caption", "markdown", "title", "header", "info", "warning") for e in getattr(shown.test, kind)
    ]
    texts += [str(getattr(e.proto, "help", "")) for kind in ("caption", "markdown") for e in getattr(shown.test, kind)]
    assert len(texts) > 2
    assert [t for t in texts if re.search(r"\b[AB][0-9]{1,2}\b", t)] == []


def test_many_parts_of_a_link_that_are_left_out_are_one_folded_list(app: NewApp) -> None:
    wrong = {f"x{number}": "[a](http://192.0.2.1/)" for number in range(8)} | {"size": "<b>huge</b>"}
    shown = app().open(**wrong)
    shown.assert_well()
    assert shown.warnings == []
    (folded,) = [box for box in shown.test.expander if "parts of the link" in box.label]
    assert folded.label == "9 parts of the link were left out"
    assert not folded.proto.expanded
    listed = [plain(str(text.value)) for text in folded.markdown]
    assert len(listed) == 9
    assert any(text.startswith("The link's size='<b>huge</b>' is left out") for text in listed)
    few = app().open(x1="1", x2="2")
    assert len(few.warnings) == 2


@pytest.mark.parametrize("page", ["overview", "model", "workers"])
@pytest.mark.parametrize(
    ("start", "end"), [("0001-01-01T00:00Z", "0001-01-01T00:01Z"), ("9999-12-31T23:58Z", "9999-12-31T23:59Z")]
)
def test_no_instant_of_a_link_stops_a_page(app: NewApp, page: str, start: str, end: str) -> None:
    shown = app().open(page, m="koboldcpp/Nocturne-70B", **{"from": start, "to": end})
    shown.assert_well()
    assert shown.title
    told = [text for text in shown.warnings if "of the years 1970 to 2199" in text]
    assert len(told) == 2, "each end is left out, and said so"


def ways_on(shown: App) -> dict[str, str]:
    """Return label → address of the links within the page."""
    links = shown.test.main.get("page_link")
    return {link.proto.label: f"{link.proto.page}?{link.proto.query_string}" for link in links}


@pytest.mark.parametrize("page", ["overview", "model", "workers"])
def test_a_source_that_is_not_configured_leaves_a_title_and_ways_on(app: NewApp, page: str) -> None:
    shown = app().open(page, source="nope", size="512")
    shown.assert_well()
    assert [warning.proto.title for warning in shown.test.warning] == ["There is no such source here"]
    links = ways_on(shown)
    assert set(links) == {"Back to the demo", "Read the week", "Take the workshop"}
    assert all("size=512" in where and "nope" not in where for where in links.values())


def leave_the_wall(shown: App) -> None:
    shown.assert_well()
    assert [button.label for button in shown.test.main.button] == ["Leave the wall screen"]
    shown.test.button(key="overview.wall").click().run()
    shown.assert_well()
    assert "wall" not in shown.address
    assert shown.test.selectbox(key="shared.source").value, "the controls are back"


def test_a_wall_screen_of_a_source_that_is_not_configured_has_its_way_out(app: NewApp) -> None:
    shown = app().open(wall="1", source="nope")
    assert shown.warnings == ["The source `nope` is not configured on this server. Leave the wall screen to choose another."]
    leave_the_wall(shown)


def test_a_wall_screen_of_a_source_that_never_answered_has_its_way_out(app: NewApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORDE_URL", "http://127.0.0.1:1/api")  # where nobody listens
    shown = app().open(wall="1", refresh="off")
    assert len(shown.test.error) == 1
    leave_the_wall(shown)


@pytest.mark.parametrize("page", ["model", "week", "sources", "guide"])
def test_only_the_overview_is_stripped_for_a_wall(app: NewApp, page: str) -> None:
    shown = app().open(page, wall="1")
    shown.assert_well()
    assert shown.navigation.keys() == FILES.keys()
    assert "The link's wall is left out: only the Overview has a wall's screen." in [plain(told) for told in shown.warnings]


def test_a_wall_screen_says_what_is_left_out_of_its_link(app: NewApp) -> None:
    few = app().open(wall="1", size="abc", colour="red")
    few.assert_well()
    assert len(few.warnings) == 2
    many = app().open(wall="1", size="abc", colour="red", strange="1")
    assert [box.label for box in many.test.expander] == ["3 parts of the link were left out"]


@pytest.mark.parametrize("name", ["", " "])
def test_a_part_of_a_link_without_a_name_is_left_out_in_words(app: NewApp, name: str) -> None:
    shown = app().open(size="512", **{name: ""})
    shown.assert_well()
    (told,) = shown.warnings
    assert plain(told) == "A part of the link that has no name is left out."
