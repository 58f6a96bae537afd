"""The guide: its list of steps, one step at a time in large type, the links into the real pages, and the glossary."""

from datetime import UTC, datetime
from pathlib import Path

import streamlit as st

from horde_policy.board.rows import make_board
from horde_policy.budget import load_prices
from horde_policy.review.findings import review_week
from horde_policy.review.loading import DEMO_WEEK, load_exports
from horde_policy.settings import AllowanceSettings
from horde_policy.sources.demo import BUNDLED_FOLDER, DEMO_FOLDER
from horde_policy.sources.recorded import load_recorded
from horde_policy.ui import address, components
from horde_policy.ui.budget_calculator import EXAMPLE_FILE
from horde_policy.ui.charts import show_figure, theme_mode
from horde_policy.ui.headings import show_heading
from horde_policy.ui.shell import END, link_to
from horde_policy.ui.tables import show_grid
from horde_policy.views.figures.guide import fig_named_points, named_points_alt
from horde_policy.views.grid import Column, Row, name_cell
from horde_policy.views.guide import ONWARD, STEPS, link_query
from horde_policy.views.guide_steps import NEEDS_WEEK, Content, Material, step_content
from horde_policy.views.parameters import WORKSHOP_FINISH
from horde_policy.views.state import ViewState
from horde_policy.views.text import document_markdown, escape_markdown, unbroken
from horde_policy.views.words import glossary_entries

__all__ = ["choose_step", "content_of", "is_over", "show_contents", "show_finish", "show_glossary", "show_step"]

NOTES_PAGE = BUNDLED_FOLDER.parent / "docs" / "workshop.md"
TUTORIAL = BUNDLED_FOLDER.parent / "docs" / "tutorial" / "first-change.md"
PRICES = BUNDLED_FOLDER / "prices" / "example-hosted.toml"
PRICED = ("large", datetime(2026, 1, 1, tzinfo=UTC))
BUNDLED = {
    "kind": "demo",
    "label": "demo, synthetic data",
    "source": "Bundled demo",
    "note": "the same every time",
    "at": "",
    "at_ms": None,
    "failing": False,
    "ticking": False,
}
"""The status line of a page whose figures are those of the bundled demo, whatever source is chosen."""

MADE_UP = (
    "Everything in the workshop is computed from the bundled demo, which is made up, so every figure is the same every time."
)


@st.cache_resource(show_spinner=False)
def _material(*, with_week: bool) -> Material:
    settings = AllowanceSettings()
    model, at = PRICED
    week = review_week(load_exports([DEMO_WEEK]), settings) if with_week else None
    board, price = make_board(load_recorded(DEMO_FOLDER, kind="demo"), settings), load_prices(PRICES).price(model, at=at)
    return Material(board, price, EXAMPLE_FILE.read_bytes().strip(), week)


@st.cache_resource(show_spinner=False)
def content_of(step: int) -> Content:
    """Return what a step says; computed once for all viewers."""
    return step_content(step, _material(with_week=step in NEEDS_WEEK))


def choose_step() -> ViewState:
    """Return the state, with the step that the address names and whether its figures are shown."""
    return address.read_state()[0]


def is_over(state: ViewState) -> bool:
    """Return whether every step has been held: what follows is the finish."""
    return state.step == WORKSHOP_FINISH


def _show_status() -> None:
    """Say what the figures are, with the copy of the link."""
    components.status(key="shared.status", data=BUNDLED)


def _open(step: int, *, answers: bool = False) -> None:
    address.write_state(step=step, answers=answers)


def show_contents(state: ViewState) -> None:
    """Show what the workshop is and its steps, each a link."""
    _show_status()
    st.title("A workshop in eight steps", anchor=False)
    st.markdown(
        "How much may somebody without kudos generate, and why that much? Each step asks the room a question, shows the figures "
        "when the room has answered, and opens the real pages with everything set. About forty minutes; no network is needed."
    )
    st.caption(MADE_UP)
    st.button("Begin", key="guide.begin", type="primary", on_click=_open, args=(1,), icon=":material/play_arrow:")
    base = address.deployment_settings()
    with st.container(key="guide.steps"):
        for number, step in enumerate(STEPS, start=1):
            link_to("guide", f"{number}. {escape_markdown(step.title)}", state.shared_query(base, step=number))
    _show_document("Notes for who holds it", NOTES_PAGE, key="guide.notes", icon="speaker_notes")


def _show_document(label: str, file: Path, *, key: str, icon: str, note: str = "") -> None:
    """Show a page of the docs, folded, and offer it as a file: neither needs a network."""
    text = file.read_text(encoding="utf-8")
    with st.expander(label, icon=f":material/{icon}:"):
        if note:
            st.caption(note)
        st.download_button(
            f"{file.name} (Markdown)",
            text,
            file.name,
            "text/markdown",
            key=key,
            on_click="ignore",
            type="tertiary",
            icon=":material/download:",
        )
        st.markdown(document_markdown(text))


def show_step(state: ViewState) -> None:
    """Show one step: the question, then, once they are asked for, the figures, the pages that it drives and the curve."""
    step, number = STEPS[state.step - 1], state.step
    with st.container(horizontal=True, vertical_alignment="center", key="guide.head"):
        st.title(step.title, anchor=False, width="stretch")
        st.caption(f"Step {number} of {len(STEPS)}", width="content")
        _show_way(number)
    st.markdown(f"*{escape_markdown(step.question)}*")
    if state.answers:
        _show_answers(number)
    else:
        st.button(
            "Show the figures",
            key="guide.answers",
            type="primary",
            on_click=_open,
            args=(number,),
            kwargs={"answers": True},
            icon=":material/visibility:",
            help="First the room's answer; then the figures, what they say, and the pages that show them.",
        )
    st.caption(MADE_UP)
    _show_status()


def _show_answers(number: int) -> None:
    """Show what a step says: its figures, the links into the pages, the sentences, and beside them the curve if it has one."""
    content = content_of(number)
    components.pulse(key="guide.tiles", data={"tiles": list(content.tiles)})
    with st.container(horizontal=True, vertical_alignment="center", key="guide.links"):
        st.markdown("**See it on the real pages:**", width="content")
        for link in STEPS[number - 1].links:
            query = link_query(link, number, address.deployment_settings(), address.first_source())
            link_to(link.page, escape_markdown(link.label), query, icon=":material/arrow_forward:")
    sentences, figure = st.columns([3, 2], gap="medium") if content.points else (st.container(), None)
    with sentences:
        st.markdown("\n".join(f"- {escape_markdown(unbroken(sentence))}" for sentence in content.sentences))
    if figure is not None:
        settings = AllowanceSettings()
        with figure:
            drawn = fig_named_points(content.points, settings, theme_mode())
            show_figure(drawn, alt=named_points_alt(content.points, settings), key="guide.figure")


def _show_way(number: int) -> None:
    """Show the buttons to the step before, the next one, and out of the workshop."""
    st.button("Back", key="guide.back", on_click=_open, args=(number - 1,), icon=":material/arrow_back:")
    if number <= len(STEPS):
        word = "Next" if number < len(STEPS) else "Finish"
        st.button(word, key="guide.next", on_click=_open, args=(number + 1,), icon=":material/arrow_forward:")
    st.button(
        END,
        key="guide.reset",
        type="tertiary",
        on_click=address.write_plain,
        icon=":material/close:",
        help="Back to the list of steps; the pages forget the workshop and what was chosen in it.",
    )


def show_finish() -> None:
    """Show what is taken home from each step, and where to go on."""
    with st.container(horizontal=True, vertical_alignment="center", key="guide.head"):
        st.title("What was learned", anchor=False, width="stretch")
        _show_way(WORKSHOP_FINISH)
    lessons, onward = st.columns([3, 2], gap="medium")
    with lessons:
        st.markdown("\n".join(f"{number}. {escape_markdown(step.lesson)}" for number, step in enumerate(STEPS, start=1)))
    with onward, st.container(key="guide.onward"):
        show_heading("Where to go on")
        for page, label, takes in ONWARD:
            link_to(page, label, {}, icon=":material/arrow_forward:")
            st.caption(takes)
        st.caption("Each of these ends the workshop.")
    _show_document(
        "To learn it by doing: a first change of settings",
        TUTORIAL,
        key="guide.tutorial",
        icon="terminal",
        note="A replay of real arrivals by today's settings and by others, on the command line. The same page is "
        f"`docs/tutorial/{TUTORIAL.name}` beside the program.",
    )
    _show_status()


def show_glossary() -> None:
    """Show every word of the product with its one definition."""
    show_heading("Words")
    columns = [Column(key="word", label="Word", kind="name"), Column(key="text", label="What it means", wrap=True, wide=True)]
    rows = [Row(id=key, cells={"word": name_cell(term.word), "text": {"text": term.text}}) for key, term in glossary_entries()]
    show_grid(columns, rows, key="guide.glossary", alt="The words of this product and what they mean")
