"""How a page of the review begins and ends: the data, the range, the words looked at, and what was not understood of them."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import streamlit as st

from horde_policy.clock import SystemClock
from horde_policy.errors import HordePolicyError
from horde_policy.review import annotations
from horde_policy.review.data_problems import cut_short
from horde_policy.review.decompose import WORDS, filtered
from horde_policy.review.exported import Exported
from horde_policy.settings import AllowanceSettings
from horde_policy.ui import address, components, history, reading, review_choices, review_library, review_live, uploads
from horde_policy.ui.headings import show_heading
from horde_policy.ui.tables import show_grid
from horde_policy.views import review_tables as tables
from horde_policy.views.cut_short import cut_short_details, cut_short_text
from horde_policy.views.report import SYNTHETIC_NOTE
from horde_policy.views.review_state import ReviewState
from horde_policy.views.review_words import DIMENSION_WORDS, bounds_text, not_narrowed_text, span_text, word_text
from horde_policy.views.state import ViewState
from horde_policy.views.status import made_of, settings_text
from horde_policy.views.text import count, escape_markdown, instant
from horde_policy.views.uploads import not_kept, not_kept_note

__all__ = ["Opened", "now", "offer", "open_review", "show_data", "show_looked_at", "show_not_narrowed", "show_nothing"]


MOST_LEFT_OUT = 5
"""So many files that could not be read are named above the figures."""


@dataclass(frozen=True, slots=True)
class Opened:
    """What a page of the review works with: both states, the data of the range, those compared with, and what happened when."""

    view: ViewState
    state: ReviewState
    whole: Exported
    exported: Exported
    other: Exported | None
    notes: tuple[annotations.Annotation, ...]

    @property
    def settings(self) -> AllowanceSettings:
        """The settings that were in force, as the address says."""
        return self.view.settings

    @property
    def key(self) -> str:
        """Names everything that the figures are made of, for the keys of what is drawn."""
        made_of = repr((self.state, self.settings.digest(), self.exported.counted))
        return hashlib.blake2b(made_of.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    def looked_at(self, exported: Exported) -> Exported:
        """Return the data with the decisions that are looked at alone."""
        return replace(exported, decisions=filtered(exported.decisions, self.state.keep))


def open_review() -> Opened:
    """Read the address, draw the choosers, and return what the page works with; without data the page ends here, and says why."""
    view, _ = address.read_state()
    state = address.read_review()
    known = review_library.entries()
    if review_library.gone(state.data):
        state = _demo_instead(state, known)
    for name in review_library.missing_folders():
        st.warning(escape_markdown(f"{review_library.EXPORTS_SETTING}: {name} holds no export; it is left out"))
    problem = review_live.server_problem()
    if problem is not None:
        st.warning(escape_markdown(problem), icon=":material/build:")
    titles = {entry.key: entry.title for entry in known.values()}
    titles |= {upload.key: upload.name for upload in uploads.listed("exports")}
    whole, failure = _data(state.data, known, state)
    review_choices.show_choices(state, titles, None if whole is None else whole.covered)
    review_choices.show_upload_read()
    review_choices.show_failed_upload()
    if whole is None:
        st.title("There are no data to review", anchor=False)
        st.error(escape_markdown(failure), title="The data cannot be read", icon=":material/error:")
        st.caption("Choose other data above, or upload exported metrics. The demo week needs neither network nor file.")
        reading.follow()
        st.stop()
    other = _other(state, whole, known)
    notes, wrong = history.annotations()
    if wrong:
        st.warning(escape_markdown(wrong), icon=":material/info:")
    drawn = tuple(annotations.Annotation(note.at, note.text) for note in notes)
    opened = Opened(view, state, whole, whole.within(state.span), other, drawn)
    _show_source(opened)
    for data in (whole, *(() if other is None else (other,))):
        _show_left_out(data)
        _show_cut_short(data)
    return opened


def _show_cut_short(exported: Exported) -> None:
    """Name the files that end early: the figures are those of what came before."""
    problems = cut_short(exported)
    if problems:
        st.warning(
            "  \n".join(escape_markdown(line) for line in cut_short_details(problems)),
            title=escape_markdown(cut_short_text(problems)),
            icon=":material/content_cut:",
        )


def _demo_instead(asked: ReviewState, known: Mapping[str, review_library.Entry]) -> ReviewState:
    """Say that the address names an upload that is not kept, and return the state with the demo week in its place.

    A range of the upload means nothing to the demo, but one that was chosen since stays.
    """
    state = asked.changed(data="")
    demo, _ = _data("", known, state)
    if demo is not None and not demo.within(state.span).counted.high:
        state = state.changed(start=None, end=None)
    st.warning(
        escape_markdown(not_kept_note("data", asked.data, "The demo week is shown.")),
        icon=":material/info:",
    )
    st.button(
        "Leave it out of the address",
        key="review.leave-out",
        icon=":material/link_off:",
        type="tertiary",
        on_click=address.write_review,
        args=(state,),
    )
    return state


def _show_left_out(exported: Exported) -> None:
    """Name the files that could not be read: the figures are those of the others."""
    left = [problem for problem in exported.problems if problem.code == "unreadable_file"]
    if left:
        files = "1 file" if len(left) == 1 else f"{count(len(left))} files"
        told = [f"{problem.subject}: {problem.text.removeprefix('left out: ')}" for problem in left[:MOST_LEFT_OUT]]
        more = (
            [] if len(left) <= MOST_LEFT_OUT else [f"and {count(len(left) - MOST_LEFT_OUT)} more, listed at the foot of the page"]
        )
        st.warning(
            "  \n".join(escape_markdown(text) for text in (*told, *more)),
            title=f"{files} could not be read; the figures are those of the others",
            icon=":material/rule_folder:",
        )


def _data(key: str, known: Mapping[str, review_library.Entry], state: ReviewState) -> tuple[Exported | None, str]:
    try:
        return review_library.exported_of(key, known, state), ""
    except HordePolicyError as error:
        return None, str(error)
    except MemoryError:
        return None, "These data need more memory than the server has; read them by the command, over a shorter range."


def _other(state: ReviewState, whole: Exported, known: Mapping[str, review_library.Entry]) -> Exported | None:
    if not state.compares:
        return None
    if not state.against or state.against == state.data:
        return whole.within(state.against_span)
    asked = state.changed(start=state.against_start, end=state.against_end)
    if review_library.gone(state.against):
        other, failure = None, str(not_kept("against", state.against))
    else:
        other, failure = _data(state.against, known, asked)
    if other is None:
        st.error(escape_markdown(failure), title="What was to be compared with cannot be read", icon=":material/error:")
        return None
    return other.within(state.against_span)


def _show_source(opened: Opened) -> None:
    """Say what the figures are made of, and that they are made up where they are."""
    exported = opened.exported
    # of a range without any count, what can be said is up to when the data are
    covered = (exported if exported.counted.high or exported.waits.height else opened.whole).covered
    asked = review_live.asked_at(opened.state.span) if opened.state.data == review_library.LIVE else None
    line = [
        f"{bounds_text(exported.counted)} decisions",
        escape_markdown(span_text(covered)),
        *([] if asked is None else [f"asked {instant(asked)}"]),
    ]
    components.status(
        key="shared.status",
        data=made_of(
            exported.title,
            label="exports" if asked is None else "live exports",
            synthetic=exported.synthetic,
            at=asked or covered.end,
            note=settings_text(opened.settings, address.deployment_settings()),
        ),
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        # the status line above says that they are synthetic; what that means stands in the question mark
        st.caption(" · ".join(line), help=SYNTHETIC_NOTE if exported.synthetic else None)
        if asked is not None:
            again = st.button("Ask again", key="review.ask-again", icon=":material/refresh:", type="tertiary")
            if again:
                review_live.ask_again(opened.state.span)
                address.run_again()


def show_looked_at(opened: Opened, *, only: tuple[str, ...] = tuple(WORDS)) -> None:
    """Show which words are looked at, with a way back; ``only`` names the dimensions that the page's figures have."""
    state = opened.state
    kept = {name: words for name, words in state.keep.items() if words}
    if not kept and state.span.whole:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="review.looked-at"):
        for name, words in kept.items():
            text = f"{DIMENSION_WORDS[name]}: {' or '.join(word_text(name, word) for word in words)}"
            st.button(
                text,
                key=f"review.drop-{name}",
                icon=":material/close:",
                help="Look at all again." if name in only else "This page's counts do not tell it apart; look at all again.",
                on_click=address.write_review,
                args=(state.changed(**{name: ()}),),
            )
        if not state.span.whole:
            st.button(
                "this range only",
                key="review.drop-range",
                icon=":material/close:",
                help="Look at all the time again.",
                on_click=address.write_review,
                args=(state.changed(start=None, end=None),),
            )
        beyond = [DIMENSION_WORDS[name] for name in kept if name not in only]
        if beyond:
            st.caption(f"Not told apart by what is counted here: {', '.join(beyond)}.")


def show_not_narrowed(opened: Opened) -> None:
    """Say on a page that is of everything that the words looked at narrow nothing of it, and where they do."""
    kept = opened.state.keep
    if kept:
        with st.container(horizontal=True, vertical_alignment="center", key="review.not-narrowed"):
            text = escape_markdown(not_narrowed_text(kept, opened.exported.counted))
            st.caption(f":material/filter_alt_off: {text}", width="content")
            st.button(
                "Look at everything",
                key="review.everything",
                type="tertiary",
                on_click=address.write_review,
                args=(opened.state.everything(),),
            )


def show_nothing(opened: Opened, before: float, what: str) -> None:
    """Say why there is nothing to show: not exported, none in the range, or hidden by the filters, with a way back.

    Parameters
    ----------
    opened
        The page.
    before
        How many there are in the range without the filters.
    what
        What there is none of, as ``decisions``.
    """
    if before > 0:
        st.info(f"The words looked at hide all {count(before)} {what} of this range.", icon=":material/filter_alt_off:")
        st.button("Look at everything", key="review.everything", on_click=address.write_review, args=(opened.state.everything(),))
    elif not opened.state.span.whole and not opened.whole.within(opened.state.span).counted.high:
        st.info(
            f"There are 0 {what} in this range; the data are {span_text(opened.whole.covered)}.", icon=":material/event_busy:"
        )
    else:
        st.info(
            f"The exports hold no {what}: the series is not among them, or nothing was counted.",
            icon=":material/do_not_disturb_on:",
        )


def show_data(opened: Opened) -> None:
    """Show what the figures are made of: files, what was not understood, what is wrong in the data."""
    exported = opened.whole
    show_heading("What this is made of")
    show_grid(tables.FILE_COLUMNS, tables.file_rows(exported), key="review.files", alt="Files that were read, and what they are")
    left = tables.left_rows(exported)
    with st.expander(f"What was not understood: {tables.left_text(exported)}", icon=":material/rule_folder:"):
        show_grid(
            tables.LEFT_COLUMNS,
            left,
            key="review.left",
            alt="Samples, lines, words and labels that were not understood, with how many there are of each",
            empty="Everything in the files was understood.",
        )
    title = f"Problems and notes in the data: {count(len(exported.problems))}"
    with st.expander(title, icon=":material/data_alert:"):
        show_grid(
            tables.PROBLEM_COLUMNS,
            tables.problem_rows(exported.problems),
            key="review.problems",
            alt="Problems and notes in the data",
            empty="Nothing is wrong in the data.",
        )


def offer(label: str, made: Callable[[], bytes | str], name: str, mime: str, *, key: str, text: str) -> None:
    """Offer a file that is made when it is asked for."""
    st.download_button(
        label, made, name, mime, key=key, on_click="ignore", type="tertiary", icon=":material/download:", help=text
    )


def now() -> datetime:
    """Return the present."""
    return SystemClock().now().astimezone(UTC)
