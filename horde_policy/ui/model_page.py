"""The Model page's parts: which models are asked for, the refused client's sentence, the workers."""

from collections.abc import Sequence

import streamlit as st

from horde_policy.board.detail import ModelDetail
from horde_policy.board.moves import way_back
from horde_policy.ui import address, components
from horde_policy.ui.headings import show_heading
from horde_policy.ui.headline import show_headline
from horde_policy.ui.page import Opened, folded
from horde_policy.ui.tables import show_grid
from horde_policy.ui.what_if import Outcome
from horde_policy.views import model
from horde_policy.views.other_rules import OtherRules, rules_sentence
from horde_policy.views.parameters import MOST_NAMES
from horde_policy.views.state import ViewState
from horde_policy.views.text import as_listed, count, visible
from horde_policy.views.what_if import way_back_sentence

__all__ = [
    "choose_models",
    "show_refusal",
    "show_sentences",
    "show_tiles",
    "show_title",
    "show_unknowns",
    "show_workers",
]


def choose_models(state: ViewState, names: Sequence[str]) -> None:
    """Show the models that the request names, any model for none; one that is gone stays in the list (T7)."""
    key = "model.models"
    present = set(names)
    address.seed(key, list(state.models))
    st.multiselect(
        "Models the request names",
        [*sorted(names, key=as_listed), *(name for name in state.models if name not in present)],
        format_func=lambda name: visible(name) + ("" if name in present else " (gone)"),
        key=key,
        max_selections=MOST_NAMES,
        placeholder="any model",
        on_change=lambda: address.write_state(models=tuple(st.session_state[key])),
        help="A request may name several models, or none: then any model will do.",
    )


def show_title(opened: Opened, detail: ModelDetail, found: Outcome | None) -> None:
    """Show the page's answer, and under it what comes of what is tried, so that nobody takes the one for the other."""
    show_headline(model.answer(detail, opened.state.settings))
    if found is not None:
        st.text(f"Tried, below: {found.sentence}")


def show_tiles(detail: ModelDetail) -> None:
    """Show the row of figures."""
    components.pulse(key="model.pulse", data={"tiles": model.detail_tiles(detail)})


def show_refusal(opened: Opened, detail: ModelDetail) -> None:
    """Show the sentence that a client without kudos reads, for which size, and the declaration gap where there is one."""
    refused = model.refused_request(detail, opened.fleet, opened.state.max_context_tokens)
    if refused is None:
        show_heading("What a refused client reads")
        st.caption(model.no_refusal_sentence(detail))
        return
    show_heading(f"What a client without kudos reads when it asks for {count(refused.max_length)} tokens")
    with st.container(border=True):  # what copies it stands in the fold below: Streamlit's block of code costs 0.3 s at first
        st.text(refused.decision.message)
    notes = [model.other_size_sentence(refused, detail.measure), model.gap_sentence(refused)]
    said = " ".join(note for note in notes if note is not None)
    if said:
        st.caption(said)


def show_workers(opened: Opened, detail: ModelDetail) -> None:
    """Show the workers that serve the models, which count, and what each one's loss would do; then the scenarios of the wait."""
    measure = detail.measure
    without = model.losses_by_worker(detail, opened.fleet, opened.state.max_context_tokens)
    show_heading(f"Workers: {count(measure.eligible_workers)} of {count(len(detail.workers))} count")
    show_grid(
        model.WORKER_COLUMNS,
        model.worker_rows(detail, without),
        key="model.workers",
        alt="Workers that serve these models, whether each counts at the size asked, and why not",
        empty="No worker of the list serves this.",
    )
    rows = model.scenario_rows(detail)
    if rows:
        show_heading("The estimated wait is one of three readings of public figures")
        show_grid(
            model.SCENARIO_COLUMNS, rows, key="model.scenarios", alt="The three scenarios of the wait, each with its reason"
        )


def show_sentences(opened: Opened, detail: ModelDetail, rules: OtherRules, found: Outcome | None) -> None:
    """Show the findings and one worker's row as sentences, each with a button that copies it."""
    folded(
        "Copy as a sentence", lambda: _draw_sentences(opened, detail, rules, found), key="model.sentences", icon="content_copy"
    )


def _draw_sentences(opened: Opened, detail: ModelDetail, rules: OtherRules, found: Outcome | None) -> None:
    settings, fleet = opened.state.settings, opened.fleet
    refused = model.refused_request(detail, fleet, opened.state.max_context_tokens)
    findings = [
        model.finding_sentence(detail, settings, opened.snapshot.source, opened.snapshot.fetched_at),
        rules_sentence(rules, detail.measure.allowance_tokens),
        way_back_sentence(way_back(detail.measure, settings), detail.measure, settings),
        *([] if found is None else [found.sentence]),
        *([] if refused is None else [refused.decision.message]),
    ]
    for finding in findings:
        st.code(finding, language=None, wrap_lines=True)
    parts = {part.worker.worker_id: part for part in detail.workers}
    if parts:
        chosen = st.selectbox(
            "A worker's row",
            list(parts),
            format_func=lambda worker_id: visible(parts[worker_id].worker.name or worker_id) if worker_id in parts else "",
            key="model.sentence_of",
        )
        part = parts.get(chosen, detail.workers[0])
        without = model.losses_by_worker(detail, fleet, opened.state.max_context_tokens)
        loss = without.get(part.worker.worker_id)
        st.code(model.worker_sentence(part, detail.measure.max_length, loss), language=None, wrap_lines=True)


def show_unknowns(detail: ModelDetail) -> None:
    """Show what a reader should know of these figures, and which conditions nobody reports."""
    if detail.measure.notes:
        show_heading("To know about these figures")
        for note in detail.measure.notes:
            st.text(visible(note.text))
    with st.expander("What decides over a worker and is not in public data", icon=":material/visibility_off:"):
        st.markdown("\n".join(f"- {text}" for text in model.hidden_conditions()))
