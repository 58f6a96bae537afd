"""The Model page's parts: which models are asked for, the two figures, the refused client's sentence, the workers."""

from collections.abc import Sequence

import streamlit as st

from horde_policy.board.detail import ModelDetail
from horde_policy.ui import address, components
from horde_policy.ui.charts import show_figure, theme_mode
from horde_policy.ui.page import Opened
from horde_policy.ui.tables import show_grid
from horde_policy.views import model
from horde_policy.views.figures.model import curve_alt, fig_curve
from horde_policy.views.figures.sizes import fig_sizes, sizes_alt
from horde_policy.views.state import MOST_NAMES, ViewState
from horde_policy.views.text import count, visible

__all__ = ["choose_models", "show_figures", "show_refusal", "show_unknowns", "show_workers"]


def choose_models(state: ViewState, names: Sequence[str]) -> None:
    """Show the models that the request names, any model for none; one that is gone stays in the list (T7)."""
    key = "model.models"
    present = set(names)
    address.seed(key, list(state.models))
    st.multiselect(
        "Models the request names",
        [*names, *(name for name in state.models if name not in present)],
        format_func=lambda name: visible(name) + ("" if name in present else " (gone)"),
        key=key,
        max_selections=MOST_NAMES,
        placeholder="any model",
        on_change=lambda: address.write_state(models=tuple(st.session_state[key])),
        help="A request may name several models, or none: then any model will do.",
    )


def show_tiles(detail: ModelDetail) -> None:
    """Show the row of figures."""
    components.pulse(key="model.pulse", data={"tiles": model.detail_tiles(detail)})


def show_figures(opened: Opened, detail: ModelDetail) -> None:
    """Show the curve with the live point, and the allowance over the size asked for."""
    settings, measure, waits, mode = opened.board.settings, detail.measure, detail.measure.waits, theme_mode()
    low_s, named_s, high_s = (None, None, None) if waits is None else (waits.low_s, waits.named_s, waits.worst_s)
    left, right = st.columns(2, gap="medium")
    with left:
        st.header("Allowance over the estimated wait", anchor=False)
        figure = fig_curve(settings, state=measure.state, low_s=low_s, named_s=named_s, high_s=high_s, mode=mode)
        show_figure(figure, alt=curve_alt(settings, named_s, high_s), key="model.curve")
    with right:
        st.header("Allowance over the size asked for", anchor=False)
        largest = measure.largest_free_request_tokens
        steps = fig_sizes(detail.steps, settings, asked_tokens=measure.max_length, largest_free_tokens=largest, mode=mode)
        show_figure(steps, alt=sizes_alt(largest), key="model.sizes")


def show_refusal(opened: Opened, detail: ModelDetail) -> None:
    """Show the sentence that a client without kudos reads, and for which size."""
    refused = model.refused_request(detail, opened.board.fleet, opened.state.max_context_tokens)
    if refused is None:
        st.header("What a refused client reads", anchor=False)
        st.caption("No size is refused now, or the queue is not reported and no refusal can be foretold.")
        return
    st.header(f"What a client without kudos reads when it asks for {count(refused.max_length)} tokens", anchor=False)
    st.code(refused.decision.message, language=None, wrap_lines=True)


def show_workers(detail: ModelDetail) -> None:
    """Show the workers that serve the models, which count and which do not, and why; then the scenarios of the wait."""
    measure = detail.measure
    st.header(f"Workers: {count(measure.eligible_workers)} of {count(len(detail.workers))} count", anchor=False)
    show_grid(
        model.WORKER_COLUMNS,
        model.worker_rows(detail),
        key="model.workers",
        alt="Workers that serve these models, whether each counts at the size asked, and why not",
        empty="No worker of the list serves this.",
    )
    rows = model.scenario_rows(detail)
    if rows:
        st.header("The estimated wait is one of three readings of public figures", anchor=False)
        show_grid(
            model.SCENARIO_COLUMNS, rows, key="model.scenarios", alt="The three scenarios of the wait, each with its reason"
        )


def show_unknowns(detail: ModelDetail) -> None:
    """Show what a reader should know of these figures, and which conditions nobody reports."""
    if detail.measure.notes:
        st.header("To know about these figures", anchor=False)
        for note in detail.measure.notes:
            st.text(visible(note.text))
    with st.expander("What decides over a worker and is not in public data", icon=":material/visibility_off:"):
        for text in model.hidden_conditions():
            st.markdown(f"- {text}")
