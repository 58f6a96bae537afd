"""The Budget page's parts: the replay that the address names, its figures, the settings side by side, the files."""

from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from horde_policy.budget.price_table import PriceTable
from horde_policy.errors import HordePolicyError
from horde_policy.sources.demo import BUNDLED_FOLDER
from horde_policy.ui import components
from horde_policy.ui.address import read_state
from horde_policy.ui.budget_desk import Replayed, budget_desk, prepared, replayed, run_of
from horde_policy.ui.charts import show_figure, theme_mode
from horde_policy.ui.headings import show_heading
from horde_policy.ui.headline import show_headline
from horde_policy.ui.tables import show_grid
from horde_policy.views import budget_words as words
from horde_policy.views.budget_exports import BudgetStamp, moments_csv, run_parquet, settings_csv
from horde_policy.views.budget_state import BudgetState
from horde_policy.views.figures import budget as figures
from horde_policy.views.status import made_of
from horde_policy.views.text import document_markdown, escape_markdown, own_words

__all__ = [
    "Opened",
    "open_budget",
    "replay",
    "show_details",
    "show_figures",
    "show_files",
    "show_inputs",
    "show_rules",
    "show_source",
    "show_title",
    "title_of",
]


SEEN = "budget.seen"
LIMITS_PAGE = BUNDLED_FOLDER.parent / "docs" / "limits.md"


@dataclass(frozen=True, slots=True)
class Opened:
    """What the page works with before anything is replayed: the choices, the price table, the limit, or what is wrong."""

    state: BudgetState
    table: PriceTable | None
    limit: str
    error: HordePolicyError | None

    @property
    def automatic(self) -> str:
        """The limit that stands where none is chosen; empty where one is, or where there is nothing to replay."""
        return "" if self.state.limit else self.limit


def open_budget() -> Opened:
    """Read the address, and the requests and prices that it names."""
    state = read_state()[0].budget
    table = None
    try:
        table = budget_desk().table(state.prices)
        return Opened(state, table, prepared(state).limit, None)
    except HordePolicyError as error:
        return Opened(state, table, "", error)


def show_title(sentence: str) -> None:
    """Show the page's title, and what the page is for."""
    show_headline(sentence)
    st.caption(words.INTRODUCTION)


def replay(opened: Opened, answer: DeltaGenerator) -> Replayed | None:
    """Return what comes of the replay, and say what weakens it; null where nothing can be replayed, which is said.

    ``answer`` is the place of the page's title, which has its name while a viewer's first replay is made: that may take long, and
    a page is never without one. Later ones are quick, and the answer before them stays until then.
    """
    title = None
    if SEEN not in st.session_state:
        st.session_state[SEEN] = True
        title = answer.empty()
        with title.container():
            show_title("Budget")
    try:
        result = replayed(opened.state) if opened.error is None else None
        trouble = opened.error
    except HordePolicyError as error:
        result, trouble = None, error
    if title is not None:
        title.empty()
    if result is None:
        st.error(
            escape_markdown("" if trouble is None else str(trouble)), title="Nothing could be replayed", icon=":material/error:"
        )
        return None
    unpriced = words.unpriced_note(result.replay)
    if unpriced:
        st.warning(own_words(unpriced), icon=":material/money_off:")
    for problem in result.replay.problems:
        show = st.warning if problem.level != "note" else st.info
        show(words.with_links(escape_markdown(problem.text)), icon=":material/info:")
    return result


def title_of(opened: Opened, result: Replayed | None) -> str:
    """Return the page's answer in one sentence; its name where there is none."""
    if result is None:
        return "Budget"
    return own_words(words.headline(words.summary_row(result.replay, opened.state.reserve_tokens)))


def show_source(opened: Opened, result: Replayed | None) -> None:
    """Say what the requests are and whether anything of them is assumed, or why there are none, with the copy of the link."""
    requests = None if result is None else result.requests
    nothing = "nothing replayed" if opened.error is None else words.nothing_words(opened.error)
    data = made_of(
        nothing if requests is None else requests.title,
        label="requests",
        synthetic=requests is not None and bool(requests.assumed),
        note=None if result is None else f"prices: {result.table.name}",
    )
    components.status(key="shared.status", data=data)


def show_inputs(opened: Opened, result: Replayed) -> None:
    """Show what stands on every result: the requests, what of them is assumed, the prices, the limit."""
    limit = words.limit_words(result.replay, chosen=bool(opened.state.limit))
    rows = words.inputs_words(result.requests, result.table.name, result.table.source)
    lines = [f"**{name}** {escape_markdown(text)}" for name, text in rows]
    st.markdown("  \n".join([*lines, f"**Limit** {own_words(limit)}"]))


def show_figures(opened: Opened, result: Replayed) -> None:
    """Show the trade-off, what became of the requests, and money, open holds and the bound over time."""
    replay, moments, mode = result.replay, result.moments, theme_mode()
    tokens, dated = opened.state.reserve_tokens, result.requests.dated
    rows, chosen, shown = replay.summary.to_dicts(), f"reserve={tokens}", words.shown_settings(tokens)
    left, right = st.columns(2, gap="medium")
    with left:
        show_heading("What the reservation trades")
        show_figure(
            figures.fig_trade_off(replay.summary, tokens, mode),
            alt=figures.trade_off_alt(rows, replay.limit_pico),
            key="budget.trade-off",
        )
        show_heading("What became of the requests")
        show_figure(figures.fig_outcomes(replay.summary, mode), alt=figures.outcomes_alt(rows), key="budget.outcomes")
    with right:
        show_heading(f"Money over time, {tokens:,} tokens reserved")
        show_figure(
            figures.fig_money(moments, chosen, replay.limit_pico, dated=dated, mode=mode),
            alt=figures.money_alt(moments, chosen, replay.limit_pico),
            key="budget.money",
        )
        for title, column, fig in (
            ("Worst case beyond what is held (W)", "bound_pico", figures.fig_bound),
            ("Open holds over time", "open", figures.fig_open),
        ):
            show_heading(title)
            show_figure(
                fig(moments, shown, dated=dated, mode=mode),
                alt=figures.over_time_alt(moments, shown, column),
                key=f"budget.{column}",
            )


def show_details(result: Replayed) -> None:
    """Show the settings side by side, and what the alternatives are."""
    show_heading("The reservations and the alternatives side by side")
    show_grid(
        words.SETTING_COLUMNS,
        words.setting_rows(result.replay.summary),
        key="budget.settings",
        alt="Each size of the reservation and each alternative: refused requests, use of the budget, overspend and worst case",
    )
    st.caption(
        "The worst case here is after the fact, with the real input. Without an output limit a request has no bound, unless its "
        "model's price declares a ceiling (max_output_tokens)."
    )


def show_rules() -> None:
    """Show the rules that the page names by their codes, and all that a hard budget promises."""
    st.header("The rules behind it", anchor=words.RULES_ANCHOR)
    st.markdown(words.rules_markdown())
    with st.expander("What a hard budget promises, and how far it can be overspent", icon=":material/description:"):
        st.markdown(document_markdown(LIMITS_PAGE.read_text(encoding="utf-8")))


def show_files(opened: Opened, result: Replayed) -> None:
    """Offer the replay as files, made when asked for."""
    source = f"{result.table.name}: {result.table.source}"
    state = opened.state
    stamp = BudgetStamp(requests=result.requests, prices=source, replay=result.replay, state=state)
    offers = (
        ("Settings (CSV)", "settings", "csv", "text/csv", "Every figure of every setting, in exact dollars.",
         lambda: settings_csv(stamp)),
        ("Moments (CSV)", "moments", "csv", "text/csv", "Money, open holds and the bound over time, as drawn.",
         lambda: moments_csv(result.moments, stamp)),
        ("Requests (Parquet)", "requests", "parquet", "application/vnd.apache.parquet",
         "Every request under every setting, with its outcome and the state of its window; money in whole pico-dollars.",
         lambda: run_parquet(run_of(state).run, stamp)),
    )  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="center"):
        for label, what, ending, mime, text, made in offers:
            st.download_button(
                label,
                made,
                f"{stamp.name}_{what}.{ending}",
                mime,
                key=f"budget.{what}-file",
                on_click="ignore",
                type="tertiary",
                icon=":material/download:",
                help=text,
            )
