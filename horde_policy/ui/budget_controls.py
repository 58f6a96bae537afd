"""The Budget page's choices: requests, what is assumed of them, prices, the budget, the reservation; each writes the address."""

from collections.abc import Callable
from typing import Literal

import streamlit as st

from horde_policy.budget.price_table import PriceTable
from horde_policy.budget.simulate import DEFAULT_RESERVES
from horde_policy.errors import InputError
from horde_policy.ui import uploads
from horde_policy.ui.address import read_state, say, say_stays, seed, settle, write_state
from horde_policy.ui.budget_desk import PRICE_TABLES, BudgetDesk
from horde_policy.ui.fields import left_empty, number_field
from horde_policy.ui.notices import say_here
from horde_policy.ui.replay_inputs import BUNDLED
from horde_policy.views.budget_inputs import asks_words
from horde_policy.views.budget_state import (
    ASKS,
    MOST_RESERVE_TOKENS,
    WINDOWS,
    BudgetState,
    asks_from_text,
    limit_from_text,
    reserve_from_text,
    zone_from_text,
)
from horde_policy.views.text import count, escape_markdown, visible
from horde_policy.views.uploads import prices_understood

__all__ = ["show_choices", "write_budget"]

MOST_UPLOAD_MB = 50
FAILED = "budget.upload-failed"
CHOICES, ASSUMPTIONS = "budget.choices", "budget.assumptions"
"""The parts that say themselves what they did not take."""


def write_budget(**changes: object) -> None:
    """Write some choices of this page to the address."""
    state, _ = read_state()
    write_state(budget=state.budget.changed(**changes))


def _names(kind: Literal["requests", "prices"]) -> dict[str, str]:
    """Return key → name of what this session has uploaded of a kind."""
    return {upload.key: visible(upload.name) for upload in uploads.listed(kind)}


def show_choices(state: BudgetState, desk: BudgetDesk, table: PriceTable | None, automatic: str) -> None:
    """Show what is replayed, at which prices, under which budget.

    Parameters
    ----------
    state
        What the address says.
    desk
        Keeps uploads.
    table
        The price table; null where the address names none.
    automatic
        The limit that stands where none is chosen; empty where there is nothing to replay.
    """
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _requests(state)
        _asks(state)
        _prices(state)
        if table is not None and len(table.models) > 1:
            _model(state, table)
        _limit(state, automatic)
        _window(state)
        _reserve(state)
        _assumptions(state)
        _upload(desk)
    say_here(CHOICES)
    failed = st.session_state.get(FAILED)
    if failed:
        st.error(escape_markdown(failed), title="The file cannot be used", icon=":material/upload_file:")


def _requests(state: BudgetState) -> None:
    key = "budget.requests"
    titles = {name: bundled.title for name, bundled in BUNDLED.items()}
    titles |= _names("requests")
    titles.setdefault(state.requests, state.requests)
    seed(key, state.requests)
    st.selectbox(
        "Requests",
        list(titles),
        format_func=lambda name: titles.get(name, name),
        key=key,
        on_change=lambda: write_budget(requests=st.session_state[key]),
        help="Recorded requests that are sent to the budget once more. "
        + " ".join(f"{b.title}: {b.text}." for b in BUNDLED.values()),
        width=200,
    )


def _typed(key: str, field: str, read: Callable[[str], object], what: str) -> Callable[[], None]:
    """Return what takes a typed choice, or says why it stays as it was."""

    def chosen() -> None:
        try:
            value = read(str(st.session_state[key]))
        except InputError as error:
            say_stays(f"{what} stays", error, again=key, at=CHOICES)
            return
        settle(key, str(value))
        write_budget(**{field: value})

    return chosen


def _asks(state: BudgetState) -> None:
    key = "budget.asks"
    seed(key, state.asks)
    st.selectbox(
        "What clients ask for",
        [*dict.fromkeys([*ASKS, "4096", "8192", "32000", "128000", state.asks])],
        format_func=lambda text: asks_words(text) if text in ASKS or text.isdigit() else text,
        key=key,
        on_change=_typed(key, "asks", asks_from_text, "What clients ask for"),
        accept_new_options=True,
        help="The output limit (max_tokens) of requests that do not say: no public trace does. As agents: of each ten requests "
        "five ask for 32,000, three for 8,192 and two for 4,096. Or type one number of tokens for all.",
        width=215,
    )


def _prices(state: BudgetState) -> None:
    key = "budget.prices"
    titles = dict(PRICE_TABLES) | _names("prices")
    titles.setdefault(state.prices, state.prices)
    seed(key, state.prices)
    st.selectbox(
        "Prices",
        list(titles),
        format_func=lambda name: titles.get(name, name),
        key=key,
        on_change=lambda: write_budget(prices=st.session_state[key], model=""),
        help="The price table. The bundled ones are examples and no provider's prices; upload your own as TOML.",
        width=190,
    )


def _model(state: BudgetState, table: PriceTable) -> None:
    key = "budget.model"
    first = table.prices[0].model
    models = [*dict.fromkeys([first, *table.models, *([state.model] if state.model else [])])]
    seed(key, state.model or first)
    st.selectbox(
        "Priced as",
        models,
        format_func=visible,
        key=key,
        on_change=lambda: write_budget(model="" if st.session_state[key] == first else st.session_state[key]),
        help="The model whose price requests get that name none with a price.",
        width=120,
    )


def _limit(state: BudgetState, automatic: str) -> None:
    key = "budget.limit"
    seed(key, state.limit)
    st.text_input(
        "Limit ($)",
        key=key,
        placeholder=f"{automatic} (half)" if automatic else "",
        on_change=_typed(key, "limit", limit_from_text, "The limit"),
        help="The hard limit of each window in dollars, as an exact decimal. Empty: half of what everything costs.",
        width=120,
    )


def _window(state: BudgetState) -> None:
    key = "budget.window"
    seed(key, state.window)
    st.selectbox(
        "Window",
        list(WINDOWS),
        format_func=WINDOWS.__getitem__,
        key=key,
        on_change=lambda: write_budget(window=st.session_state[key]),
        help="What the limit is for: all of it, or each calendar month, week or day in the time zone under Assumptions.",
        width=105,
    )


def _reserve(state: BudgetState) -> None:
    key = "budget.reserve"
    seed(key, str(state.reserve_tokens))
    st.selectbox(
        "Reserved output",
        [str(tokens) for tokens in sorted({*DEFAULT_RESERVES, state.reserve_tokens})],
        format_func=lambda text: f"{count(int(text))} tokens" if text.isdigit() else text,
        key=key,
        on_change=_typed(key, "reserve_tokens", reserve_from_text, "The reservation"),
        accept_new_options=True,
        help=f"reservation.output_tokens of the figures over time and the calculator; 0 to {count(MOST_RESERVE_TOKENS)}.",
        width=140,
    )


def _assumptions(state: BudgetState) -> None:
    with (
        st.popover("Assumptions", icon=":material/tune:", key="budget.tune"),
        st.form(ASSUMPTIONS, border=False),
    ):
        st.caption("Public traces do not say how long an answer took, nor how far an input estimate was off.")
        seed("budget.pace", state.pace_tok_per_s, in_popover=True)
        number_field("Output comes at (tok/s)", 0.1, 100_000.0, step=1.0, key="budget.pace", format="%g")
        seed("budget.input", state.input_ratio, in_popover=True)
        number_field(
            "Real input tokens to one estimated",
            0.01,
            100.0,
            step=0.1,
            key="budget.input",
            format="%g",
            help="The estimate is body bytes ÷ 4. Reported: English prose 0.81, code 0.98, logs full of digits 1.63.",
        )
        seed("budget.zone", state.zone, in_popover=True)
        st.text_input("Time zone of the windows", key="budget.zone")
        say_here(ASSUMPTIONS)
        st.form_submit_button("Apply", type="primary", on_click=_apply_assumptions)


def _apply_assumptions() -> None:
    given = st.session_state
    if left_empty(("budget.pace", "budget.input"), told_at=ASSUMPTIONS):
        return
    try:
        zone = zone_from_text(str(given["budget.zone"]))
    except InputError as error:
        say(f"The assumptions stay: {error}.", again="budget.zone", at=ASSUMPTIONS)
        return
    pace, ratio = float(given["budget.pace"]), float(given["budget.input"])
    write_budget(pace_tok_per_s=round(pace, 6), input_ratio=round(ratio, 6), zone=zone)


def _upload(desk: BudgetDesk) -> None:
    def taken(widget: str) -> None:
        file = st.session_state[widget]
        st.session_state[FAILED] = None
        if file is None:
            return
        try:
            if widget == "budget.upload-prices":
                key = desk.add_prices(file.getvalue())
                uploads.remember(uploads.Upload(key, "prices", file.name, *prices_understood(desk.table(key))))
                write_budget(prices=key, model="")
            else:
                key = desk.add_requests(file.name, file.getvalue())
                uploads.remember(uploads.Upload(key, "requests", file.name, *desk.understood(key)))
                write_budget(requests=key, limit="")
        except InputError as error:
            st.session_state[FAILED] = str(error)

    with st.popover("Upload", icon=":material/upload:", key="budget.uploading"):
        st.file_uploader(
            "Requests",
            key="budget.upload-requests",
            on_change=taken,
            args=("budget.upload-requests",),
            max_upload_size=MOST_UPLOAD_MB,
            help="CSV or Parquet with created, model, max_tokens, output_tokens, duration_s and input_tokens or body_bytes; or "
            "any trace that the Replay page reads. Kept in the server's memory alone.",
        )
        st.file_uploader(
            "Price table",
            key="budget.upload-prices",
            on_change=taken,
            args=("budget.upload-prices",),
            max_upload_size=1,
            help="TOML as in data/prices: the unit, and a row for each model with its dollars.",
        )
