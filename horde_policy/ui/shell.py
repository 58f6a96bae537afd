"""What stands around every page: the navigation, the shared controls, the status of the source, notices.

The navigation is made of links that carry the shared part of the state, so that each is a real link: it opens in a new tab as
in this one, and back and forward find what was shown. All of it is one part of the page (decision 0200).
"""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from horde_policy.errors import ConfigError
from horde_policy.sources.catalogue import DEMO_KEY, RECORDED_SETTING, URL_KEY
from horde_policy.ui import address, components, controls, live, reading
from horde_policy.ui.garbage import KEPT, keep_modules
from horde_policy.ui.headings import HEADINGS
from horde_policy.ui.lost import lead_on, unknown_name
from horde_policy.ui.notices import say_in_one_box
from horde_policy.ui.sign_in import require_sign_in
from horde_policy.ui.styles import style_of
from horde_policy.ui.way_out import leave_or_enter
from horde_policy.views.grid import query_text
from horde_policy.views.guide import STEPS, link_query, subject_of
from horde_policy.views.state import ViewState
from horde_policy.views.text import escape_markdown

__all__ = ["END", "PageEntry", "frame", "here", "link_to", "navigation", "shows_first"]

FOLDER = Path(__file__).parent
SIDEBAR_PX = 220
MARGINS = """<style>
[data-testid="stMainBlockContainer"] { padding-left: clamp(0.9rem, 2.2vw, 2rem); padding-right: clamp(0.9rem, 2.2vw, 2rem); }
[data-testid="stSidebarUserContent"] { padding-left: 0.9rem; padding-right: 0.9rem; }
[data-testid="stPageLink-NavLink"]:focus-visible { outline: 2px solid currentColor !important; outline-offset: -2px; }
[data-testid="stCaptionContainer"] { color: inherit !important; opacity: 0.78; }
:is(.st-key-shared-workshop, .st-key-overview-offers) [data-testid="stPageLink-NavLink"] { background: transparent; }
:is(.st-key-shared-workshop, .st-key-overview-offers) [data-testid="stPageLink-NavLink"]:hover {
  background: color-mix(in srgb, currentColor 10%, transparent); }
[data-testid="stNumberInputClearButton"] { display: none; }
[class*="job_timeout_s"] [data-testid="stNumberInputClearButton"] { display: inline-flex; }
[data-testid="stButtonGroup"] [aria-checked="true"], [data-testid="stButtonGroup"] [aria-checked="true"] *,
[data-testid="stButtonGroup"] [aria-pressed="true"] *, [data-testid="stSliderThumbValue"] { color: inherit !important; }
</style>"""
"""What no setting changes: Streamlit's wide layout keeps 5 rem at each side, which a board has no room for, and its captions are
fainter than AA asks (4.5 to 1), which ``tests/browser/test_all_pages.py`` measures; a link of the navigation that has the focus
looks like the one of the page; a number's field has no button to clear it, as an empty one is no answer
(``horde_policy.ui.fields``), but where none is one."""

STANDS_IN_THE_SIDE_BAR = """<style>[data-testid="stElementContainer"]:has(> .stHtml > [data-style]) { display: none; }</style>
<i data-style></i>"""
"""A style without an element goes where Streamlit draws last; the element takes no room."""

GUIDE = "guide"
END = "End the workshop"

MOST_NOTES = 2
"""So many parts of a link that were left out are told one by one above the page; more are folded into one list."""

_UNUSABLE = {RECORDED_SETTING: f"A folder of {RECORDED_SETTING} cannot be used; the page Sources says which one, and why."}
"""Setting → what every page says of what is wrong with it, where the rest concerns those who look after the server."""


@dataclass(frozen=True, slots=True)
class PageEntry:
    """One page of the navigation: its file, its name in the address, its title, icon, and the question it answers.

    A page without ``controls`` chooses no source, size or settings: what it shows does not depend on them.
    One that is not ``live`` shows no horde's source, so it has the settings alone.
    """

    file: Path
    url_path: str
    title: str
    icon: str
    question: str
    controls: bool = True
    live: bool = True

    @property
    def link(self) -> dict[str, str]:
        """What the link to it shows, as ``components/nav.js`` takes it; an icon there is a name without its marks."""
        icon = self.icon.removeprefix(":material/").removesuffix(":")
        return {"page": self.url_path, "label": self.title, "icon": icon, "help": self.question}


def navigation(sections: Mapping[str, Sequence[PageEntry]]) -> "Navigation":
    """Register the pages and draw their links; return the page that was asked for.

    The first page of the first section stands at the address without a name, too: the app's first page. An address that names
    no page leads there (:mod:`horde_policy.ui.lost`).
    """
    entries = [entry for section in sections.values() for entry in section]
    first = entries[0]
    pages = {entry.url_path: _page(entry) for entry in entries}
    start = st.Page(first.file, title=first.title, url_path="", default=True)
    unknown = unknown_name(st.context.url, pages)
    lost = [st.Page(first.file, title=first.title, url_path=unknown, visibility="hidden")] if unknown else []
    current = st.navigation([start, *pages.values(), *lost], position="hidden")
    if current in lost:
        lead_on(unknown, first.title)
    here = first.url_path if current.url_path == "" else current.url_path
    return Navigation(sections, pages | ({first.url_path: start} if current.url_path == "" else {}), current, here)


def _page(entry: PageEntry) -> "st.Page":
    return st.Page(entry.file, title=entry.title, url_path=entry.url_path, help=entry.question)


@dataclass(frozen=True, slots=True)
class Navigation:
    """The pages registered, the one that runs, and its name in the address."""

    sections: Mapping[str, Sequence[PageEntry]]
    pages: Mapping[str, "st.Page"]
    current: "st.Page"
    here: str

    @property
    def entry(self) -> PageEntry:
        """The entry of the page that was asked for."""
        return next(entry for entries in self.sections.values() for entry in entries if entry.url_path == self.here)

    def run(self) -> None:
        """Run the page that was asked for; what is still read is followed when all of it is drawn."""
        try:
            self.current.run()
            reading.follow()
        finally:
            keep_modules(KEPT)

    def draw(self, state: ViewState) -> None:
        """Draw the links, section by section; each carries what all pages share, and what is reviewed."""
        query = query_text(state.shared_query(address.deployment_settings()) | address.read_review().query())
        sections = [
            {"name": section, "links": [entry.link | {"query": query} for entry in entries]}
            for section, entries in self.sections.items()
        ]
        with st.sidebar:
            components.nav(key="shared.nav", data={"here": self.here, "sections": sections, "library": components.LIBRARY})


_current: ContextVar[Navigation] = ContextVar("navigation")
"""The navigation of the run that is going on; each run of a script has a thread, and so a context, of its own."""


def here() -> str:
    """Return the name in the address of the page that runs."""
    return _current.get().here


def link_to(page: str, label: str, query: Mapping[str, Sequence[str]], *, icon: str | None = None) -> None:
    """Draw a link to a page of this app by its name in the address; call while a page runs.

    Raises
    ------
    KeyError
        No page of the navigation has this name.
    """
    st.page_link(_current.get().pages[page], label=label, icon=icon, query_params={k: list(v) for k, v in query.items()})


def shows_first(part: str) -> bool:
    """Return whether the page that runs begins with one of its parts: a step of the workshop is about it."""
    return subject_of(address.read_state()[0].step, here()) == part


def show_workshop_bar(page: Navigation, state: ViewState) -> None:
    """Say on a real page which step of the workshop it belongs to, with the reset of the page, the way back and the end."""
    if not 0 < state.step <= len(STEPS) or page.here == GUIDE:
        return
    step, base = STEPS[state.step - 1], address.deployment_settings()
    with st.container(horizontal=True, vertical_alignment="center", key="shared.workshop", border=True):
        st.markdown(f"**Workshop, step {state.step} of {len(STEPS)}:** {escape_markdown(step.title)}", width="content")
        resets = [link for link in step.links if link.page == page.here]
        if resets:
            st.caption("Set the page to:", width="content")
        for link in resets:
            query = link_query(link, state.step, base, state.first_source)
            link_to(link.page, escape_markdown(link.label), query, icon=":material/restart_alt:")
        link_to(GUIDE, "Back to the guide", state.shared_query(base, answers=True), icon=":material/school:")
        link_to(GUIDE, END, {}, icon=":material/close:")


def frame(sections: Mapping[str, Sequence[PageEntry]]) -> Navigation:
    """Draw everything around the page, and return the navigation, whose page is still to be run."""
    page = navigation(sections)
    # A page's own icon would make the browser fetch its picture from another host, so the app has a picture of its own.
    st.set_page_config(
        page_title=f"{page.current.title} · horde policy",
        page_icon=str(FOLDER / "icon.png"),
        layout="wide",
        initial_sidebar_state=SIDEBAR_PX,
    )
    st.logo(str(FOLDER / "wordmark.svg"), icon_image=str(FOLDER / "mark.svg"), size="large")
    require_sign_in()
    address.begin_run(page.here, first_source=URL_KEY if URL_KEY in live.source_labels() else DEMO_KEY)
    try:
        state, notes = address.read_state()
    except ConfigError as error:
        st.error(escape_markdown(str(error)), title="The settings of this deployment make no sense", icon=":material/build:")
        st.stop()
    _current.set(page)
    _set_style(page, state)
    if state.wall:
        leave_or_enter(on_wall=True)
        _tell(notes, address.take_notices())
        return page
    page.draw(state)
    show_workshop_bar(page, state)
    if page.entry.controls:
        _show_controls(state, page.entry)
    problems = dict.fromkeys(_UNUSABLE.get(problem.subject, problem.text) for problem in live.source_problems())
    _tell(notes, (*address.take_notices(), *problems))
    return page


def _set_style(page: Navigation, state: ViewState) -> None:
    """Set how the page is set, before anything that it is about is there.

    The browser fetches what draws an element when it first meets one, from the side bar on: what stands there first is drawn
    with the first of them. A wall has no side bar, and a style alone stands nowhere on the page.
    """
    style = MARGINS + HEADINGS + style_of(page.here, state)
    if state.wall:
        st.html(style)
    else:
        st.sidebar.html(style + STANDS_IN_THE_SIDE_BAR)


def _tell(notes: Sequence[str], told: Sequence[str]) -> None:
    """Say what was left out of the link, and what else there is to say.

    What a link or the configuration says may hold anything: it is shown as text and never as Markdown. It stands in a place that
    is always there: what follows keeps its own, or a long run would show it twice until it ends.
    """
    with st.empty().container():
        if len(notes) > MOST_NOTES:
            _fold(notes)
        else:
            say_in_one_box(notes)
        for text in told:
            say_in_one_box([text])


def _fold(notes: Sequence[str]) -> None:
    """List what was left out of a link in one folded place, so that it does not push the page off the screen."""
    with st.expander(f"{len(notes)} parts of the link were left out", icon=":material/info:"):
        for text in notes:
            st.markdown(escape_markdown(text))


def _show_controls(state: ViewState, entry: PageEntry) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="shared.controls"):
        if entry.live:
            controls.source_chooser(live.source_labels(), state)
            controls.refresh_chooser(state)
            controls.size_chooser(state)
        controls.request_and_settings(state)
