"""The Sweep page's parts: the sweep and its progress, the answer, the figures, the point looked at, the files."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from horde_policy.clock import SystemClock
from horde_policy.errors import HordePolicyError
from horde_policy.sweep.files import sweep_content
from horde_policy.sweep.judge import Judgement, Question
from horde_policy.sweep.proposal import Proposal
from horde_policy.sweep.run import Sweep
from horde_policy.ui import address, components, live
from horde_policy.ui.notices import say_in_one_box
from horde_policy.ui.sweep_controls import go_on, show_sweeps
from horde_policy.ui.sweep_desk import UPLOAD, SweepDesk, SweepJob, sweep_desk
from horde_policy.ui.sweep_question import question_of, show_question
from horde_policy.views import sweep_tables
from horde_policy.views.proposal import proposal_html, proposal_markdown, proposal_name
from horde_policy.views.proposal_words import caveat_sentence, refuting_sentences, summary_sentences
from horde_policy.views.state import ViewState
from horde_policy.views.status import made_of, settings_text
from horde_policy.views.sweep_exports import points_csv
from horde_policy.views.sweep_link import replay_query, why_not
from horde_policy.views.sweep_results import named_points
from horde_policy.views.sweep_squares import Squares, squares_of
from horde_policy.views.text import code_span, count, escape_markdown, seconds
from horde_policy.views.uploads import not_kept_note

__all__ = ["Opened", "Result", "follow", "open_sweep", "result_of", "show_answer", "show_controls", "show_files", "show_source"]

NO_SUCH_POINT = "The settings looked at are not among those of this sweep; the proposed ones stand in their place."

WAIT_S = 0.7
"""A page waits so long for a sweep that runs before it shows how far it is."""
LOOK_EVERY_S = 0.5


@dataclass(slots=True)
class Opened:
    """What the page works with before a sweep is read; ``bar`` is the place of a shown sweep's progress, null if none runs."""

    state: ViewState
    desk: SweepDesk
    bar: DeltaGenerator | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Everything that the page shows of a sweep.

    ``point`` is the one looked at: the one that the address names, else the proposed, else the best, else the baseline.
    ``squares`` is null where no setting was varied. ``proposal`` is for the proposed point, ``picked`` for the one looked at;
    null where there is none.
    """

    state: ViewState
    key: str
    sweep: Sweep
    question: Question
    judgement: Judgement
    squares: Squares | None
    names: dict[str, str]
    point: str
    proposal: Proposal | None
    picked: Proposal | None


def open_sweep() -> Opened:
    """Read the address."""
    state, _ = address.read_state()
    return Opened(state, sweep_desk())


def show_source(opened: Opened, result: Result | None) -> None:
    """Say which traffic was swept and whether it is made up, with the copy of the link."""
    stamp = {} if result is None else result.sweep.stamp
    traffic = str(stamp.get("traffic", {}).get("source", "") or stamp.get("trace", ""))
    data = made_of(
        "no sweep is looked at" if result is None else traffic or result.key,
        label="sweep",
        synthetic=result is not None and bool(result.sweep.stamp.get("synthetic")),
        note=settings_text(opened.state.settings, address.deployment_settings()),
    )
    components.status(key="shared.status", data=data)


def show_controls(opened: Opened) -> None:
    """Show which sweep is looked at and the form for a new one."""
    show_sweeps(opened.state, opened.desk, live.source_labels())


def result_of(opened: Opened) -> Result | None:
    """Return what the page shows; null while the sweep runs, or when there is nothing to show, which is then said."""
    key, desk = opened.state.sweep.sweep, opened.desk
    job = desk.job(key)
    if job is not None and not job.done.wait(WAIT_S):
        opened.bar = _show_progress(job)
        return None
    if job is not None and job.error is not None:
        st.error(escape_markdown(job.error), title="The sweep could not be made", icon=":material/error:")
    try:
        sweep = desk.sweep(key)
    except HordePolicyError as error:
        st.error(escape_markdown(str(error)), title="The sweep cannot be read", icon=":material/error:")
        return None
    if sweep is None:
        if job is None or job.error is None:
            _show_missing(desk, key, cancelled=job is not None)
        return None
    if sweep.missing:
        _show_stopped(desk, key, sweep)
    if sweep.frame.is_empty():
        st.info("No replay is done yet, so there is nothing to judge.", icon=":material/hourglass_empty:")
        return None
    return _judged(opened.state, desk, key, sweep)


def _judged(state: ViewState, desk: SweepDesk, key: str, sweep: Sweep) -> Result | None:
    question, notes = question_of(state.sweep, sweep)
    left_out = st.container()
    show_question(state.sweep, sweep, question)
    scope = (question.holdout_days, question.loads, question.fills, question.across)
    name = "|".join([*map(str, question.objectives), "must", *map(str, question.constraints), repr(scope)])
    try:
        judgement = desk.judgement(key, sweep, question, name)
    except HordePolicyError as error:
        with left_out:
            say_in_one_box(notes)
        st.error(escape_markdown(str(error)), title="The sweep cannot answer this", icon=":material/error:")
        return None
    squares = squares_of(state.sweep, judgement)
    names = named_points(judgement)
    asked = state.sweep.point
    with left_out:
        say_in_one_box((*notes, *(squares.notes if squares else ()), *([NO_SUCH_POINT] if asked and asked not in names else ())))
    fallback = judgement.recommended or judgement.best or judgement.baseline or next(iter(names))
    point = asked if asked in names else fallback
    return Result(
        state=state,
        key=key,
        sweep=sweep,
        question=question,
        judgement=judgement,
        squares=squares,
        names=names,
        point=point,
        proposal=desk.proposal(judgement, sweep, None),
        picked=desk.proposal(judgement, sweep, point),
    )


# --- a sweep that runs, or does not --------------------------------------------------------------------------------------


def _progress_words(job: SweepJob) -> str:
    told = job.progress
    if told is None or not told.total:
        return f"{job.stage[:1].upper()}{job.stage[1:]} …"
    left = "" if told.left_s is None else f", {seconds(told.left_s)} left"
    return f"{count(told.done)} of {count(told.total)} replays{left}"


def _show_progress(job: SweepJob) -> DeltaGenerator:
    """Show how far a sweep is; return the place of its bar, which :func:`follow` moves."""
    place = st.empty()
    _draw_bar(place, job)
    st.button("Cancel", key="sweep.cancel", icon=":material/cancel:", on_click=job.cancelled.set, disabled=job.cancelled.is_set())
    st.caption("It runs in the background: leave the page and come back by its address. What is done is kept.")
    st.skeleton(height=320)
    return place


def _draw_bar(place: DeltaGenerator, job: SweepJob) -> None:
    told = job.progress
    words = "Stopping: what is done is kept …" if job.cancelled.is_set() else _progress_words(job)
    place.progress(0.0 if told is None else min(1.0, max(0.0, told.share)), text=words)


def follow(opened: Opened) -> None:
    """Move the bar of a sweep that runs until it is done, then run the page again; call when all else of the page is drawn.

    Whatever the viewer does ends this run. A fragment on a timer would race the run that follows it, and leave the browser
    without a page.
    """
    job = opened.desk.job(opened.state.sweep.sweep)
    if opened.bar is None or job is None:
        return
    while not job.done.wait(LOOK_EVERY_S):
        _draw_bar(opened.bar, job)
    address.run_again()


def _show_stopped(desk: SweepDesk, key: str, sweep: Sweep) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.info(
            f"Stopped: {count(sweep.missing)} replays are not done. What is done is kept and judged below.",
            icon=":material/pause_circle:",
        )
        st.button("Go on", key="sweep.go-on", icon=":material/play_arrow:", on_click=go_on, args=(desk, key))


def _show_missing(desk: SweepDesk, key: str, *, cancelled: bool) -> None:
    if cancelled:
        st.info("The sweep was cancelled before any replay was done.", icon=":material/cancel:")
        st.button("Start again", key="sweep.go-on", icon=":material/play_arrow:", on_click=go_on, args=(desk, key))
        return
    if key.startswith(UPLOAD):
        text = not_kept_note("sweep", key, "Choose the bundled one, or begin a new one.")
        st.warning(escape_markdown(text), icon=":material/search_off:")
        return
    st.warning(
        f"The sweep {code_span(key)} is not kept by this server. Start it under New sweep (its grid stands there if the link has "
        "it), or upload its file; what was done of it before is not done again.",
        icon=":material/search_off:",
    )


# --- the answer ----------------------------------------------------------------------------------------------------------


def show_answer(result: Result) -> None:
    """Show the answer in sentences, what it rests on, and what warns of it."""
    for text in sweep_tables.warnings_of(result.judgement, result.proposal):
        st.warning(escape_markdown(text), icon=":material/info:")
    if result.proposal is not None:
        st.markdown(" ".join(escape_markdown(sentence) for sentence in summary_sentences(result.proposal)))
    words = sweep_tables.rests_on(result.sweep, result.judgement)
    st.markdown(
        "  \n".join(f"**{name}** {code_span(text) if name == 'Fill rule' else escape_markdown(text)}" for name, text in words)
    )
    note = sweep_tables.unserved_note(result.sweep, result.judgement)
    if note is not None and note[1]:
        st.warning(escape_markdown(note[0]), icon=":material/link_off:")
    elif note is not None:
        st.caption(escape_markdown(note[0]))


# --- files ---------------------------------------------------------------------------------------------------------------


def show_files(result: Result) -> None:
    """Offer the change proposal as Markdown and HTML, the way to the Replay page, and the sweep as files."""
    picked = result.picked
    with st.container(horizontal=True, vertical_alignment="center"):
        if picked is not None:
            for label, ending, mime, made in (
                ("Proposal (Markdown)", "md", "text/markdown", proposal_markdown),
                ("Proposal (HTML)", "html", "text/html", proposal_html),
            ):
                st.download_button(
                    label,
                    partial(_document, made, picked),
                    proposal_name(picked, ending),
                    mime,
                    key=f"sweep.proposal-{ending}",
                    on_click="ignore",
                    icon=":material/description:",
                    type="primary" if ending == "md" else "secondary",
                    help="The settings looked at as environment lines, evidence, intervals, caveats, and what would refute it.",
                )
        _show_replay_link(result)
        st.download_button(
            "All points (CSV)", lambda: points_csv(result.judgement, result.sweep.stamp), f"sweep_{result.key}_points.csv",
            "text/csv", key="sweep.points-csv", on_click="ignore", type="tertiary", icon=":material/download:",
            help="Every point with its settings, figures, intervals and verdict.",
        )  # fmt: skip
        st.download_button(
            "The sweep (Parquet)", lambda: sweep_content(result.sweep), f"sweep_{result.key}.parquet",
            "application/vnd.apache.parquet", key="sweep.parquet", on_click="ignore", type="tertiary", icon=":material/download:",
            help="One row per settings, load, seed, fill rule and day: everything tried. It can be uploaded here again.",
        )  # fmt: skip


def _document(made: Callable[..., str], picked: Proposal) -> str:
    return made(picked, made_at=SystemClock().now().astimezone(UTC))


def _show_replay_link(result: Result) -> None:
    reason = why_not(result.sweep.stamp)
    if reason or result.picked is None:
        st.caption(reason or "There is no baseline to replay these settings against.")
        return
    rows = result.judgement.rows
    query = replay_query(
        result.sweep.stamp,
        result.picked.settings,
        result.picked.baseline,
        load=float(rows["load"][0]),
        fill=rows["fill"][0],
        base=address.deployment_settings(),
    )
    st.page_link(
        "pages/lab/replay.py", label="Open in Replay", icon=":material/replay:", query_params=query,
        help="These settings beside those in force, on the same traffic and fleet (the first load and rule).",
    )  # fmt: skip


def show_caveats(result: Result) -> None:
    """Show the caveats and what would refute the proposal, folded away."""
    if result.picked is None:
        return
    with st.expander("Caveats, and what would refute it", icon=":material/gavel:"):
        for caveat in result.picked.caveats:
            sentence, names = caveat_sentence(caveat.code, caveat.facts)
            st.markdown(f"- {escape_markdown(sentence)} {' '.join(code_span(name) for name in names)}")
        st.markdown("**What would refute it**")
        for sentence in refuting_sentences(result.picked):
            st.markdown(f"- {escape_markdown(sentence)}")
