"""Requests and a limit for a budget replay: from a trace and what is assumed where it says nothing, or from a file that says all.

A public trace knows arrivals and tokens. What clients asked for, how long an answer took, how far the input estimate was off and
which model it was priced as are assumed by named rules, and stand on every result (decision 0181).
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import polars as pl

from horde_policy.budget.amounts import Amounts
from horde_policy.budget.body import MAX_TOKENS
from horde_policy.budget.money import MAX_LIMIT_PICO, PICO_PER_USD, decimal_of, to_pico
from horde_policy.budget.price_table import PriceTable
from horde_policy.budget.requests import checked_requests, requests_from_traffic
from horde_policy.budget.windows import window_at
from horde_policy.errors import InputError, MissingPriceError
from horde_policy.imports.trace_frame import Trace
from horde_policy.replay.fill_rule import LADDER
from horde_policy.views.budget_state import ASKS, BudgetState
from horde_policy.views.text import count

__all__ = [
    "FIRST_TOKEN_S",
    "MOST_REQUESTS",
    "PricedRequests",
    "asks_words",
    "from_file",
    "from_trace",
    "limit_of",
    "priced_model",
]

MOST_REQUESTS: Final = 200_000
"""More requests than this are for the command; the page says so."""

FIRST_TOKEN_S: Final = 0.5
AGENT_SIZES: Final = (32_000,) * 5 + (8_192,) * 3 + (4_096,) * 2
"""Of each ten requests in order: half ask what coding agents ask, the rest what other clients ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedRequests:
    """Requests ready for a budget replay.

    Attributes
    ----------
    frame
        Frame :data:`~horde_policy.frames.usage.BUDGET_REQUESTS`.
    title
        Where they are from.
    assumed
        What of them was assigned by a rule, each in words; empty where the file says everything.
    dated
        Whether their instants are real dates.
    """

    frame: pl.DataFrame
    title: str
    assumed: tuple[str, ...]
    dated: bool


def priced_model(state: BudgetState, table: PriceTable) -> str:
    """Return the model that requests are priced as: the one chosen if the table has it, else its first row's.

    Raises
    ------
    MissingPriceError
        A model was chosen that has no price: it is not taken for another.
    """
    if not state.model:
        return table.prices[0].model
    if state.model not in table.models:
        raise MissingPriceError(f"price table {table.name}", "model", state.model, "has no price; a missing price is not zero")
    return state.model


def _asked(asks: str) -> pl.Expr:
    """Return the output limit of each request by a rule: never below what it used, null for none."""
    used = pl.col("output_tokens")
    if asks == "none":
        return pl.lit(None, dtype=pl.Int64)
    if asks == "ladder":
        rung: pl.Expr = used
        for size in reversed(LADDER):
            rung = pl.when(used <= size).then(size).otherwise(rung)
        return rung.cast(pl.Int64)
    if asks == "agents":
        place = pl.int_range(pl.len()) % len(AGENT_SIZES)
        wanted: pl.Expr = pl.lit(None, dtype=pl.Int64)
        for number, tokens in enumerate(AGENT_SIZES):
            wanted = pl.when(place == number).then(tokens).otherwise(wanted)
        return pl.max_horizontal(wanted.cast(pl.Int64), used)
    return pl.max_horizontal(pl.lit(int(asks), dtype=pl.Int64), used)


def asks_words(asks: str) -> str:
    """Return a rule in words.

    >>> asks_words("8192"), asks_words("none")
    ('8,192 tokens', 'no limit at all')
    """
    return ASKS[asks] if asks in ASKS else f"{count(int(asks))} tokens"


def from_trace(
    trace: Trace, title: str, model: str, table: PriceTable, state: BudgetState, *, most: int | None = MOST_REQUESTS
) -> PricedRequests:
    """Return a trace's requests with limits, durations and the input estimate assigned by the state's rules.

    Requests without a real date are moved to where the newest price of the model begins.

    Raises
    ------
    InputError
        No request with both token counts, or more than ``most`` (null: any number).
    """
    known = trace.frame.filter(pl.col("input_tokens").is_not_null() & pl.col("output_tokens").is_not_null())
    if not known.height:
        raise InputError("requests", "", title, "have no row with input and output tokens: they cannot be priced")
    _check_size(known, most)
    newest = table.price(model)
    first = known["created"].min()
    moved = False
    if not trace.dated and isinstance(first, datetime) and first < newest.valid_from:
        moved, known = True, known.with_columns(pl.col("created") + (newest.valid_from - first))
    body = (pl.col("input_tokens").cast(pl.Float64) * 4 / state.input_ratio).ceil().clip(0, 4 * MAX_TOKENS).cast(pl.Int64)
    asked, wanted = _asked(state.asks), f"asked for {asks_words(state.asks)}"
    if "max_length" in known.columns and known["max_length"].null_count() == 0:
        asked, wanted = pl.col("max_length"), ""
    made = requests_from_traffic(
        known.select("created", "input_tokens", "output_tokens", asked.alias("max_length")),
        model=model,
        tokens_per_s=state.pace_tok_per_s,
        first_token_s=FIRST_TOKEN_S,
    )
    exact = state.input_ratio == 1
    if not exact:
        made = checked_requests(made.with_columns(body.alias("body_bytes")))
    assumed = (
        *filter(None, [wanted]),
        f"answered in {FIRST_TOKEN_S:g} s and {state.pace_tok_per_s:g} tok/s",
        "input estimate exact" if exact else f"{state.input_ratio:g} real input tokens to one estimated",
        f"all priced as {model}" + (", at its newest price" if moved else ""),
    )
    return PricedRequests(frame=made, title=title, assumed=assumed, dated=trace.dated)


def from_file(frame: pl.DataFrame, title: str, *, most: int | None = MOST_REQUESTS) -> PricedRequests:
    """Return recorded requests that say everything themselves.

    Raises
    ------
    InputError
        No request, or more than ``most`` (null: any number).
    """
    if not frame.height:
        raise InputError("requests", "", title, "have no row: there is nothing to replay")
    _check_size(frame, most)
    return PricedRequests(frame=frame, title=title, assumed=(), dated=True)


def _check_size(frame: pl.DataFrame, most: int | None) -> None:
    if most is not None and frame.height > most:
        hint = "use the command budget replay, which has no limit"
        raise InputError("requests", "", frame.height, f"are more than the page's {most:,}", hint=hint)


def limit_of(requests: pl.DataFrame, table: PriceTable, state: BudgetState) -> str:
    """Return the limit of each window in dollars: the one chosen, else half of what everything costs, at two digits.

    Everything that has a price counts, over the number of windows that the requests reach.
    """
    if state.limit:
        return state.limit
    amounts = Amounts.of(requests, table, largest_reserve=state.reserve_tokens)
    whole = sum(amounts.cost[amounts.priced != 0].tolist())
    half_pico = whole // (2 * _windows(requests, state))
    digits = max(0, len(str(half_pico)) - 2)
    rounded = min(half_pico // 10**digits * 10**digits, MAX_LIMIT_PICO)
    text = f"{decimal_of(rounded, 'limit') / PICO_PER_USD:f}"
    to_pico(text, "limit", most=MAX_LIMIT_PICO)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _windows(requests: pl.DataFrame, state: BudgetState) -> int:
    if state.window == "total":
        return 1
    starts: set[datetime] = set()
    end: datetime | None = None
    for at in requests["created"].to_list():
        if end is None or at >= end:
            window = window_at(state.window, state.zone, at)  # type: ignore[arg-type]
            starts.add(window.start)
            end = window.end
    return max(1, len(starts))
