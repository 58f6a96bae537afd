"""The Replay page's parts: what is asked of the desk, how far it is, the results, the files."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from horde_policy.clock import SystemClock
from horde_policy.errors import HordePolicyError, Problem
from horde_policy.replay.fill import Traffic
from horde_policy.replay.fill_rule import FillRule
from horde_policy.replay.fleets import Fleet
from horde_policy.replay.unserved import unserved_notes
from horde_policy.ui import address, live
from horde_policy.ui.charts import show_figure, theme_mode
from horde_policy.ui.headings import show_heading
from horde_policy.ui.headline import show_headline
from horde_policy.ui.notices import say_in_one_box
from horde_policy.ui.replay_desk import Desk, Job, Replayed, desk
from horde_policy.ui.replay_fleets import ChosenFleet, chosen_fleet, history_choices
from horde_policy.ui.replay_inputs import known_inputs, models_named, traffic_of
from horde_policy.ui.tables import show_grid
from horde_policy.views import replay_words as words
from horde_policy.views.address_values import left_out
from horde_policy.views.figures import replay as figures
from horde_policy.views.replay_exports import ReplayStamp, figures_csv, requests_parquet
from horde_policy.views.replay_results import ALL_MODELS, OUTCOMES, REQUESTERS, Scored, models_asked_for
from horde_policy.views.replay_runs import Run, opened_run, runs_of
from horde_policy.views.replay_state import MIX_WORDS
from horde_policy.views.report_replay import replay_report
from horde_policy.views.state import ViewState
from horde_policy.views.text import code_span, count, escape_markdown, visible

__all__ = [
    "Opened",
    "open_replay",
    "replayed",
    "show_details",
    "show_figures",
    "show_files",
    "show_inputs",
    "show_left_out",
    "show_notes",
    "show_runs",
    "show_source",
    "show_title",
]

WAIT_S = 1.5
"""A page waits so long for its replay before it shows how far it is."""
LOOK_EVERY_S = 0.5
VIEWER = "replay.viewer"
KEPT = "replay.kept"
MOST_KEPT = 20


@dataclass(frozen=True, slots=True)
class Opened:
    """What the page works with before anything is replayed."""

    state: ViewState
    desk: Desk
    runs: tuple[Run, ...]
    notes: tuple[str, ...]
    sources: Mapping[str, str]
    length: timedelta | None
    fleet: ChosenFleet
    published: tuple[str, ...] = ()
    """The models that the traffic's trace names (hostile text)."""

    @property
    def most_asked(self) -> tuple[str, ...]:
        """The models of the demand, the most asked for first (hostile text)."""
        counts = self.desk.library.demand(self.fleet.snapshot).counts
        return tuple(sorted(counts, key=lambda name: (-counts[name], name)))


def open_replay() -> Opened:
    """Read the address, and the traffic that it names as far as to know its length."""
    asked, _ = address.read_state()
    bench = desk()
    state, unknown = known_inputs(asked, live.source_labels(), bench.library.kept())
    runs, notes = runs_of(state.runs, state.settings)
    odd: tuple[Problem, ...] = ()
    published: tuple[str, ...] = ()
    try:
        trace = bench.library.trace(state.traffic)
        frame, odd, published = trace.frame, trace.problems, models_named(trace)
        length = frame["created"].max() - frame["created"].min()  # type: ignore[operator]
    except HordePolicyError:
        length = None
    assert length is None or isinstance(length, timedelta)
    fleet = chosen_fleet(state)
    told = tuple(f"{p.subject}: {p.text}" for p in odd if p.level == "problem" or p.code == "out_of_order")
    sources = history_choices(fleet.snapshot) | live.source_labels()
    return Opened(state, bench, runs, (*unknown, *notes, *told), sources, length, fleet, published)


def show_source(opened: Opened) -> None:
    """Show where the fleet and the demand are from, and whether that is made up."""
    if opened.fleet.seen is not None:
        live.show_source(opened.fleet.seen)


def show_notes(opened: Opened) -> None:
    """Say what of the address is left out, and why, and what of the traffic changes its load or its order."""
    say_in_one_box(opened.notes)


def show_left_out(opened: Opened, result: Replayed | None) -> None:
    """Say what of the link names nothing that the replay has."""
    asked = opened.state.replay
    letters = [run.letter for run in opened.runs[1:]]
    notes = []
    for name, letter in (("see_run", asked.letter), ("open_run", asked.edited)):
        if letter and letter not in letters:
            rule = "must be the letter of settings that are compared" + (f": {', '.join(letters)}" if letters else "; none are")
            notes.append(left_out(name, [letter], rule))
    if result is not None and asked.model and asked.model not in models_asked_for(result.scores[0][1]):
        notes.append(left_out("see_model", [asked.model], "must be a model that a request of this replay asks for"))
    say_in_one_box(notes)


def replayed(opened: Opened, answer: DeltaGenerator) -> Replayed | None:
    """Return what comes of the replay that the address names; null while it is made, or when it cannot be.

    ``answer`` is the place of the page's title, which has its name while the replay is made: a page is never without one.
    """
    state = opened.state
    viewer: str = st.session_state.setdefault(VIEWER, uuid.uuid4().hex)
    fleet = opened.fleet
    key = "|".join(
        [
            state.traffic,
            str(state.hours),
            str(state.copies),
            str(state.keep_percent),
            state.fill,
            str(state.replay.model_map),
            fleet.key,
        ]
    )

    def make() -> tuple[Traffic, Fleet]:
        library = opened.desk.library
        weights = library.demand(fleet.snapshot)
        trace = library.trace(state.traffic)
        traffic = traffic_of(
            trace,
            FillRule.parsed(state.fill),
            weights,
            hours=state.hours,
            copies=state.copies,
            keep_percent=state.keep_percent,
            model_map=dict(state.replay.model_map),
        )
        return traffic, fleet.make(weights, trace)

    job = opened.desk.ask(viewer, key, make, opened.runs)
    if not job.done.wait(WAIT_S):
        _show_progress(job, answer)
    if job.cancelled.is_set():
        _show_cancelled(opened.desk, viewer)
        return None
    if job.error is not None:
        st.error(escape_markdown(job.error), title="Nothing could be replayed", icon=":material/error:")
        opened.desk.forget(viewer)
        return None
    return job.result


def show_title(sentence: str) -> None:
    """Show the page's title, and what the page is for."""
    show_headline(sentence)
    st.caption(words.INTRODUCTION)


def _show_progress(job: Job, answer: DeltaGenerator) -> None:
    """Show how far the job is until it is done.

    The page's own run waits here, and whatever the viewer does ends it: a fragment on a timer would race the run that
    follows it, and leave the browser without a page.
    """
    title, shown = answer.empty(), st.empty()
    with title.container():
        show_title("Replay")
    with shown.container():
        bar = st.progress(0.0)
        st.button("Cancel", key="replay.cancel", icon=":material/cancel:", on_click=job.cancelled.set)
        st.skeleton(height=320)
    while not job.done.is_set():
        bar.progress(job.share, text=f"{job.stage[:1].upper()}{job.stage[1:]} …")
        job.done.wait(LOOK_EVERY_S)
    shown.empty()
    title.empty()


def _show_cancelled(bench: Desk, viewer: str) -> None:
    st.info("The replay was cancelled; nothing of it is kept.", icon=":material/cancel:")
    st.button("Replay again", key="replay.again", icon=":material/replay:", on_click=bench.forget, args=(viewer,))


# --- results ------------------------------------------------------------------------------------------------------------


def show_inputs(result: Replayed) -> None:
    """Show what stands on every result: traffic, fleet and fill rule, and what of them is made up."""
    traffic, fleet = result.inputs.traffic.stamp, result.inputs.fleet.stamp
    st.markdown(
        "  \n".join(
            f"**{name}** {code_span(text) if name == 'Fill rule' else escape_markdown(text)}"
            for name, text in words.inputs_words(traffic, fleet)
        )
    )
    inputs = result.inputs
    for note in unserved_notes(inputs.traffic.frame.height, inputs.unserved):
        text = escape_markdown(f"{note.text[:1].upper()}{note.text[1:]}.")
        if note.level == "problem":
            st.warning(text, icon=":material/link_off:")
        else:
            st.caption(f"{text} {words.unserved_words(inputs.traffic.frame.height, inputs.unserved)}")


def show_runs(result: Replayed) -> None:
    """Show the runs side by side."""
    show_grid(
        words.RUN_COLUMNS,
        words.run_rows(result.scores, result.changes),
        key="replay.runs",
        alt="The baseline and the settings compared: outcomes, waits, what did not finish, who fares better or worse",
    )
    st.caption(words.OVERLAPPING)


def show_figures(opened: Opened, result: Replayed) -> None:
    """Show the four figures and their choosers, which write the address."""
    asked = opened.state.replay
    scores, mode = result.scores, theme_mode()
    left, right = st.columns(2, gap="medium")
    with left:
        _changes(result)
        show_heading("Who gets what")
        by = _chosen("Outcomes by", MIX_WORDS, "replay.by", "by", asked.by)
        show_figure(figures.fig_mix(scores, by, mode), alt=figures.mix_alt(scores), key="replay.mix")
    with right:
        show_heading("How long admitted requests wait")
        with st.container(horizontal=True):
            requester = _optional("Requester", REQUESTERS, "all requesters", "requester", asked.requester)
            outcome = _optional("Outcome", OUTCOMES[:3], "all admitted", "outcome", asked.outcome)
        show_figure(
            figures.fig_waits(
                scores, requester=requester, outcome=outcome, mode=mode, opened=opened_run(opened.runs, asked.edited)
            ),
            alt=figures.waits_alt(scores, requester),
            key="replay.waits",
        )
        st.caption(words.OF_ADMITTED)
        show_heading("The allowance over time")
        model = _model(scores, asked.model)
        dated = bool(result.inputs.traffic.stamp["dated"])
        show_figure(
            figures.fig_allowance(scores, model, dated=dated, mode=mode),
            alt=figures.allowance_alt(scores, visible(model)),
            key="replay.allowance",
        )


def _changes(result: Replayed) -> None:
    show_heading("Who gains and who loses against the baseline")
    if not result.changes:
        st.caption("Nothing is compared. Add settings above.")
        return
    show_figure(figures.fig_changes(result.changes, theme_mode()), alt=figures.changes_alt(result.changes), key="replay.changes")
    for letter, change in result.changes.items():
        note = words.refused_anew_words(letter, change)
        if note is not None:
            st.caption(note)


def _look(field: str, key: str) -> None:
    """Write what a chooser says to the address."""
    state, _ = address.read_state()
    address.write_state(replay=state.replay.changed(**{field: st.session_state[key] or ""}))


def _chosen(label: str, options: Mapping[str, str], key: str, field: str, value: str) -> str:
    chosen = value if value in options else next(iter(options))
    address.seed(key, chosen)
    st.segmented_control(
        label,
        list(options),
        format_func=options.__getitem__,
        key=key,
        required=True,
        label_visibility="collapsed",
        on_change=_look,
        args=(field, key),
    )
    return chosen


def _optional(label: str, options: Sequence[str], everything: str, field: str, value: str) -> str | None:
    key = f"replay.{field}"
    address.seed(key, value)
    st.selectbox(
        label,
        ["", *options],
        format_func=lambda word: word.replace("_", " ") or everything,
        key=key,
        label_visibility="collapsed",
        width=170,
        on_change=_look,
        args=(field, key),
    )
    return value or None


def _model(scores: Sequence[tuple[Run, Scored]], value: str) -> str:
    key = "replay.model"
    names = models_asked_for(scores[0][1])
    chosen = value if value in names else names[0]
    address.seed(key, chosen)
    st.selectbox(
        "Model",
        names,
        format_func=visible,
        key=key,
        label_visibility="collapsed",
        width=320,
        on_change=lambda: address.write_state(
            replay=address.read_state()[0].replay.changed(model=_unless_first(st.session_state[key], names))
        ),
    )
    return chosen


def _unless_first(name: str, names: Sequence[str]) -> str:
    """Return a chosen name; the first stands for all and is not written."""
    return "" if name == names[0] else name


def show_details(opened: Opened, result: Replayed) -> None:
    """Show the largest differences, and folded away the waits, what did not finish, agreement and the file's problems."""
    if result.changes:
        show_heading("The largest differences from the baseline")
        first = words.leading(result.changes)  # the one that the headline is about
        ordered = sorted(result.runs[1:], key=lambda item: item[0].letter != first)
        titles = {run.letter: run.title for run, _ in ordered}
        letter = _chosen("Run", titles, "replay.differences-of", "letter", opened.state.replay.letter)
        show_grid(
            words.DIFFERENCE_COLUMNS,
            words.difference_rows(result.changes[letter]),
            key="replay.differences",
            alt=f"Requests that fare most differently in run {letter} than under the baseline",
            empty="Every request fares as under the baseline.",
        )
    agreement = words.agreement_rows(result.scores)
    if agreement:
        show_heading("Recorded and replayed outcomes")
        show_grid(words.AGREEMENT_COLUMNS, agreement, key="replay.agreement", alt="Recorded against replayed outcomes, by run")
    with st.expander("Queue waits of the requests that started, by requester and outcome", icon=":material/hourglass_empty:"):
        show_grid(
            words.WAIT_COLUMNS,
            words.wait_rows(result.scores),
            key="replay.waits-table",
            alt="Queue waits of started requests by run",
        )
    with st.expander("Admitted and not finished", icon=":material/timer_off:"):
        st.caption("Expired: no worker took it within its time. Over 150 s: what the server's limit of a job would have ended.")
        show_grid(
            words.UNFINISHED_COLUMNS, words.unfinished_rows(result.scores), key="replay.unfinished", alt="Unfinished by run"
        )
    problems = result.inputs.traffic.stamp["problems"]
    if problems:
        with st.expander(
            f"{count(len(problems))} note{'s' if len(problems) != 1 else ''} on the traffic's file", icon=":material/data_alert:"
        ):
            for problem in problems:
                st.text(visible(problem))


# --- files and kept comparisons ------------------------------------------------------------------------------------------


def show_files(opened: Opened, result: Replayed) -> None:
    """Offer the replay as a report and as files, made when asked for; and keep the comparison for this session."""
    stamp = ReplayStamp(
        traffic=result.inputs.traffic.stamp, fleet=result.inputs.fleet.stamp, runs=tuple(run for run, _ in result.runs)
    )
    scores, changes = result.scores, result.changes
    model = opened.state.replay.model
    model = model if model in models_asked_for(scores[0][1]) else ALL_MODELS
    with st.container(horizontal=True, vertical_alignment="center"):
        offers = (
            (
                "Report", "report", "html", "text/html", "One HTML file with everything, which opens without a network.",
                lambda: replay_report(scores, changes, stamp, made_at=_now(), model=model),
            ),
            (
                "Figures (CSV)", "figures", "csv", "text/csv", "Every figure of every run, with its unit.",
                lambda: figures_csv(scores, changes, stamp),
            ),
            (
                "Requests (Parquet)", "requests", "parquet", "application/vnd.apache.parquet",
                "Every request of every run, with what became of it.",
                lambda: requests_parquet({run.letter: ran.sent for run, ran in result.runs}, stamp),
            ),
        )  # fmt: skip
        for label, what, ending, mime, text, made in offers:
            st.download_button(
                label,
                made,
                f"{stamp.name}_{what}.{ending}",
                mime,
                key=f"replay.{what}",
                on_click="ignore",
                type="tertiary",
                icon=":material/download:",
                help=text,
            )
        st.button(
            "Keep in this session",
            key="replay.keep-this",
            icon=":material/bookmark_add:",
            type="tertiary",
            on_click=_keep,
            args=(opened, words.headline(scores, changes), [run.digest for run, _ in result.runs]),
        )
    _show_kept()


def _now() -> datetime:
    return SystemClock().now().astimezone(UTC)


def _keep(opened: Opened, title: str, digests: list[str]) -> None:
    kept: list[tuple[dict[str, list[str]], str, str]] = st.session_state.setdefault(KEPT, [])
    entry = (opened.state.query(address.deployment_settings()), title, " · ".join(digests))
    if entry not in kept:
        kept.append(entry)
        del kept[:-MOST_KEPT]


def _show_kept() -> None:
    kept: list[tuple[dict[str, list[str]], str, str]] = st.session_state.get(KEPT, [])
    if not kept:
        return
    show_heading("Kept in this session")
    for number, (query, title, digests) in enumerate(kept):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button("Open", key=f"replay.kept-{number}", on_click=st.query_params.from_dict, args=(query,), type="tertiary")
            st.markdown(f"{escape_markdown(title)} {code_span(digests)}")
