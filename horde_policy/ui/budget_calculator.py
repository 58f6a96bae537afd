"""The Budget page's calculator: one request's hold line by line, how far it can go over, and how it is explained.

The body stays in the session: it may hold what somebody wrote, so it never stands in an address.
"""

import streamlit as st

from horde_policy.budget.body import read_request
from horde_policy.budget.money import money_text
from horde_policy.budget.price_table import PriceTable
from horde_policy.budget.reservation import Reservation, reserve_cost
from horde_policy.clock import SystemClock
from horde_policy.errors import InputError, MissingPriceError
from horde_policy.sources.demo import BUNDLED_FOLDER
from horde_policy.ui.address import seed
from horde_policy.ui.budget_controls import write_budget
from horde_policy.ui.fields import number_field
from horde_policy.ui.headings import show_heading
from horde_policy.ui.notices import say_here
from horde_policy.ui.tables import show_grid
from horde_policy.views import budget_words as words
from horde_policy.views.budget_inputs import priced_model
from horde_policy.views.budget_state import MOST_ALIKE, BudgetState
from horde_policy.views.text import code_span, count, escape_markdown, own_words

__all__ = ["EXAMPLE_FILE", "show_calculator"]

EXAMPLE_FILE = BUNDLED_FOLDER / "prices" / "example-request.json"
"""Both limit fields at once, and two answers: what the rules about them do shows in the lines."""
MOST_CHARACTERS = 1_000_000
CALCULATOR = "budget.calculator"
"""The part that says itself what it did not take."""


def show_calculator(state: BudgetState, table: PriceTable | None) -> None:
    """Show the hold of a request body, line by line, at the page's prices and reservation."""
    show_heading("One request, line by line")
    left, right = st.columns([2, 5], gap="medium")
    with left:
        st.session_state.setdefault("budget.body", EXAMPLE_FILE.read_text(encoding="utf-8").strip())
        body = st.text_area(
            "Request body (JSON)",
            key="budget.body",
            height=250,
            max_chars=MOST_CHARACTERS,
            help="As it is forwarded to the provider: OpenAI chat, completions or responses, Anthropic messages, Gemini. It "
            "stays in this session and is not part of the link.",
        )
        seed("budget.alike", state.alike)
        number_field(
            "Open at once, all like it",
            1,
            MOST_ALIKE,
            step=1,
            key="budget.alike",
            on_change=lambda: write_budget(alike=int(st.session_state["budget.alike"])),
            told_at=CALCULATOR,
            width=200,
        )
        say_here(CALCULATOR)
    with right:
        _show_answer(body, state, table)


def _show_answer(body: str, state: BudgetState, table: PriceTable | None) -> None:
    """Show what a body holds, in four places that are always filled, so that nothing of the body before it stays beside it."""
    if table is None:
        st.info("There is no price table to price it by.", icon=":material/info:")
        _leave_empty(3)
        return
    try:
        held, refusal, notes = _held(body, state, table)
    except InputError as error:
        st.error(escape_markdown(str(error)), title="This request would be refused unread", icon=":material/error:")
        _leave_empty(3)
        return
    if refusal:
        st.warning(escape_markdown(refusal), title="A hard budget refuses this request", icon=":material/money_off:")
    else:
        _leave_empty(1)
    st.markdown(
        f"{'It would hold' if refusal else 'Held'}: **{own_words(money_text(held.hold_pico))}**, "
        f"price {code_span(held.price.price_id)}, reservation.output_tokens {count(state.reserve_tokens)}"
    )
    show_grid(words.LINE_COLUMNS, words.line_rows(held), key="budget.lines", alt="The hold of this request, line by line")
    own = (words.with_links(own_words(sentence)) for sentence in words.worst_sentences(held, state.alike))
    st.markdown("\n".join(f"- {sentence}" for sentence in (*map(escape_markdown, notes), *own)))


def _leave_empty(places: int) -> None:
    for _ in range(places):
        st.empty()


def _held(body: str, state: BudgetState, table: PriceTable) -> tuple[Reservation, str, list[str]]:
    """Return the hold of a body, why a budget refuses it all the same (else empty), and how it was read.

    Raises
    ------
    InputError
        The body is no request, or no price fits.
    """
    ask = read_request(body.encode("utf-8"), model=None)
    refusal = ""
    at = SystemClock().now()
    try:
        price = table.price(ask.model or priced_model(state, table), at=at)
    except MissingPriceError:
        model = priced_model(state, table)
        price = table.price(model, at=at)
        refusal = f"The table has no price for {ask.model}, and a missing price is not zero. Below it is priced as {model}."
    held = reserve_cost(ask, price, output_tokens=state.reserve_tokens)
    notes = [f"Read as {ask.api}; {ask.body_bytes:,} bytes; {_limit_words(held)}."]
    by_shape = words.shape_sentence(ask.api)
    if by_shape is not None:
        notes.append(by_shape)
    if held.unseen:
        notes.append("Not in the input estimate, since the body only refers to it: " + ", ".join(held.unseen) + ".")
    return held, refusal, notes


def _limit_words(held: Reservation) -> str:
    if held.limit_tokens is None:
        ceiling = held.ceiling_tokens
        return "no output limit" + ("" if ceiling is None else f", the table declares a ceiling of {count(ceiling)} tokens")
    outputs = f" for each of {count(held.choices)} outputs" if held.choices > 1 else ""
    return f"at most {count(held.limit_tokens)} tokens of output{outputs}"
