"""A budget replay in words and rows: its headline, its inputs, the settings side by side, one request line by line."""

import re
from collections.abc import Mapping
from decimal import ROUND_UP, Decimal
from typing import Any, Final

import polars as pl

from horde_policy.budget.bound import Certain, Declared, gap_ratio, worst_case
from horde_policy.budget.money import money_column, money_text
from horde_policy.budget.reservation import Reservation
from horde_policy.budget.simulate import BudgetReplay
from horde_policy.errors import HordePolicyError, InputError, MissingPriceError
from horde_policy.views.budget_inputs import PricedRequests
from horde_policy.views.grid import Column, Row
from horde_policy.views.text import NOT_REPORTED, count, count_of, own_words, ratio, visible

__all__ = [
    "ALTERNATIVE_WORDS",
    "INTRODUCTION",
    "LINE_COLUMNS",
    "RULES",
    "RULES_ANCHOR",
    "SETTING_COLUMNS",
    "headline",
    "inputs_words",
    "limit_words",
    "line_rows",
    "nothing_words",
    "refused_words",
    "rules_markdown",
    "setting_name",
    "setting_rows",
    "shape_sentence",
    "shown_settings",
    "summary_row",
    "unpriced_note",
    "with_links",
    "worst_sentences",
]

INTRODUCTION: Final = (
    "A request under a hard budget holds its input estimate and at most reservation.output_tokens of output until its real cost "
    "is known. Holding more refuses earlier; holding less lets the requests that are open go further over the limit. The same "
    "requests are replayed for each size of the reservation and for the three alternatives; the address holds every choice."
)

ALTERNATIVE_WORDS: Final[dict[str, str]] = {"full": "hold all", "input": "input only", "stop": "stop streams"}
"""Alternative → its short name; :data:`RULES` says what each does."""

RULES: Final[dict[str, str]] = {
    "B1": "A request holds its estimated cost before it is sent: its input and its output, at the prices of its target.",
    "B2": "The input of a request is estimated as its body's bytes ÷ 4, in tokens.",
    "B3": "The output held is the smaller of what the request asks for and reservation.output_tokens.",
    "B4": "A request is admitted only if what is spent, what is held and its own hold together stay within the limit.",
    "B5": "When the response is there, its real cost takes the place of the hold.",
    "B6": "Where a response tells no usage, the larger of the hold and the cost of the input estimate is kept.",
    "B7": "Spent money never passes the limit by more than W: what the requests that are open can cost beyond what they hold, in "
    "output above the reservation and in input above its estimate. Their worst case over the limit is spent + held + W − limit.",
    "B8": "A request without an output limit has no bound, unless its model's price declares a ceiling (max_output_tokens). "
    "Without one it is shown as unbounded, never as a large number.",
    "B9": "The bound holds for several copies of a program that share one ledger.",
    "B10": "A reservation as large as what clients ask for leaves almost nothing over the limit.",
    "B11": "hold all: hold the whole output limit. Only the input error is left over the limit; refuses earliest.",
    "B12": "input only: hold the input alone. Each open request can go one full output over the limit.",
    "B13": "stop streams: count output while it streams, and stop every stream when the limit is reached. What can go over is "
    "what the open streams cost in one microsecond, the step of the count (a token of each, or an answer that comes at once), "
    "and their input above its estimate.",
}
"""The rules that the page names, by their codes."""

RULES_ANCHOR: Final = "budget-rules"

WINDOW_WORDS: Final = {"total": "in all", "month": "a month", "week": "a week", "day": "a day"}


def setting_name(row: Mapping[str, Any]) -> str:
    """Return how a setting is called, as its place on an axis.

    >>> setting_name({"setting": "stop", "reserve_tokens": None})
    'stop streams'
    """
    return ALTERNATIVE_WORDS[row["setting"]] if row["reserve_tokens"] is None else count(row["reserve_tokens"])


def summary_row(replay: BudgetReplay, reserve_tokens: int) -> dict[str, Any]:
    """Return the summary of one size of the reservation."""
    return replay.summary.row(by_predicate=pl.col("setting") == f"reserve={reserve_tokens}", named=True)


def headline(row: Mapping[str, Any]) -> str:
    """Return the answer in one sentence, for the size of the reservation that is looked at."""
    worst = f"{money_text(row['worst_over_pico'])} over the limit"
    if row["unbounded"]:
        worst = f"unbounded ({count(row['unbounded'])} without an output limit or a declared ceiling)"
    over = row["overspend_pico"]
    really = f"{money_text(over)} was spent beyond the limit" if over else "nothing was spent beyond the limit"
    tokens = count(row["reserve_tokens"])
    return f"Reserving {tokens} tokens refuses {refused_words(row)}; {really}, the worst case was {worst}"


def refused_words(row: Mapping[str, Any]) -> str:
    """Return the shares of the requests that a setting refuses, each kind by itself.

    >>> refused_words({"requests": 8, "refused_early": 1, "refused_at_limit": 4, "refused_unpriced": 0})
    '12.5 % of the requests early and 50.0 % at the limit'
    """
    whole = row["requests"]
    shares = [ratio(row[name] / whole if whole else None) for name in ("refused_early", "refused_at_limit", "refused_unpriced")]
    words = f"{shares[0]} of the requests early and {shares[1]} at the limit"
    return f"{words}, and {shares[2]} without a price" if row["refused_unpriced"] else words


def unpriced_note(replay: BudgetReplay) -> str:
    """Return how many requests have no price, in one sentence; empty where all have one."""
    unpriced = replay.summary["refused_unpriced"].max()
    if not isinstance(unpriced, int) or not unpriced:
        return ""
    who = "1 request has" if unpriced == 1 else f"{count(unpriced)} requests have"
    return f"{who} no price at the time of arrival, and a missing price is not zero: a hard budget refuses them."


_NOT_REPLAYED: Final = {
    "requests": "the requests cannot be used",
    "traffic": "the requests cannot be used",
    "prices": "the prices cannot be used",
    "limit": "the limit cannot be used",
}
"""What an error is about → why nothing is replayed."""


def nothing_words(error: HordePolicyError) -> str:
    """Return in a few words why nothing is replayed; the error itself says it in full.

    >>> nothing_words(InputError("prices", "", "x", "must be one of a, b"))
    'nothing replayed: the prices cannot be used'
    >>> nothing_words(MissingPriceError("price table a", "model", "x", "has no price"))
    'nothing replayed: the model has no price'
    >>> nothing_words(HordePolicyError("the disk is full"))
    'nothing replayed'
    """
    if isinstance(error, MissingPriceError):
        cause: str | None = "the model has no price"
    else:
        cause = _NOT_REPLAYED.get(error.what) if isinstance(error, InputError) else None
    return "nothing replayed" if cause is None else f"nothing replayed: {cause}"


def limit_words(replay: BudgetReplay, *, chosen: bool) -> str:
    """Return the budget in words."""
    zone = "" if replay.window == "total" else f" ({replay.zone})"
    automatic = "" if chosen else ", half of what everything costs"
    return f"{money_text(replay.limit_pico)} {WINDOW_WORDS[replay.window]}{zone}{automatic}"


def inputs_words(requests: PricedRequests, table: str, source: str) -> list[tuple[str, str]]:
    """Return what stands on every result, as name and words."""
    assumed = ", ".join(requests.assumed) if requests.assumed else "nothing: the file says it all"
    return [
        ("Requests", f"{visible(requests.title)}: {count_of(requests.frame.height, 'request')}"),
        ("Assumed (synthetic)" if requests.assumed else "Assumed", assumed),
        ("Prices", f"{table}: {source}"),
    ]


# --- the settings side by side ------------------------------------------------------------------------------------------

SETTING_COLUMNS: Final = (
    Column(
        key="setting", label="Reserved output", kind="name", help="reservation.output_tokens, or an alternative to it.", brief=""
    ),
    Column(key="admitted", label="Admitted", right=True),
    Column(
        key="early",
        label="Refused early",
        right=True,
        help="The money was only held: it would have fitted what was spent by then.",
        brief="early",
    ),
    Column(
        key="at_limit",
        label="At the limit",
        right=True,
        help="Refused: the money was spent, or the hold is above the limit.",
        brief="at the limit",
    ),
    Column(key="unpriced", label="Unpriced", right=True, help="The model has no price. A missing price is not zero."),
    Column(key="cut", label="Cut", right=True, help="Streams that were stopped at the limit."),
    Column(
        key="first", label="First refusal at", right=True, help="What was spent, of the limit, when a request was first refused."
    ),
    Column(key="used", label="Used", right=True, help="Spent in the end, of the limits of all windows with requests."),
    Column(
        key="over",
        label="Overspent",
        right=True,
        help="The largest amount really spent beyond the limit of a window. Never more than the worst case.",
    ),
    Column(
        key="worst",
        label="Worst case over the limit",
        right=True,
        help="The furthest over the limit that spent, held and what open requests can cost beyond it came at any moment.",
        brief="worst",
    ),
    Column(
        key="bound",
        label="Largest W",
        right=True,
        help="The most that open requests could cost beyond what they held at any moment, however much of the limit was left.",
    ),
    Column(key="open", label="Most open", right=True, help="Most requests open at once."),
)


def setting_rows(summary: pl.DataFrame) -> list[Row]:
    """Return the settings side by side, in their order."""
    rows = []
    for row in summary.iter_rows(named=True):
        name = setting_name(row)
        cells: dict[str, Any] = {
            "setting": {"text": name, "sub": "default" if row["is_default"] else ""},
            "admitted": count(row["admitted"]),
            "early": count(row["refused_early"]),
            "at_limit": count(row["refused_at_limit"]),
            "unpriced": count(row["refused_unpriced"]),
            "cut": count(row["cut"]),
            "first": ratio(row["first_refusal_spent_ratio"]),
            "used": ratio(row["utilisation_ratio"]),
            "over": money_text(row["overspend_pico"]),
            "worst": _bound(row, "worst_over_pico"),
            "bound": _bound(row, "largest_bound_pico"),
            "open": count(row["peak_open"]),
        }
        rows.append(Row(id=row["setting"], cells=cells, pinned=bool(row["is_default"])))
    return rows


def _bound(row: Mapping[str, Any], column: str) -> str | dict[str, str]:
    text = money_text(row[column])
    if not row["unbounded"]:
        return text
    return {"text": "unbounded", "sub": f"{count(row['unbounded'])} without a limit or a ceiling; others {text}"}


# --- one request line by line -------------------------------------------------------------------------------------------

LINE_COLUMNS: Final = (
    Column(key="line", label="Part", kind="name"),
    Column(key="tokens", label="Tokens", right=True),
    Column(key="price", label="Price", unit="$ per million", right=True),
    Column(key="amount", label="Amount", right=True),
    Column(key="note", label="How", wrap=True, wide=True),
)


def line_rows(held: Reservation) -> list[Row]:
    """Return a hold line by line, exact to the last digit; the last line is their sum."""
    lines = held.explanation()
    amounts = money_column([line.amount_pico for line in lines])
    rows = []
    for number, (line, amount) in enumerate(zip(lines, amounts, strict=True)):
        last = number == len(lines) - 1
        cells: dict[str, Any] = {
            "line": line.label,
            "tokens": NOT_REPORTED if line.tokens is None else count(line.tokens),
            "price": NOT_REPORTED if line.usd_per_million is None else f"{line.usd_per_million:f}",
            "amount": amount,
            "note": {"text": line.note or ("held until the real cost is known" if last else "")},
        }
        rows.append(Row(id=str(number), cells=cells, pinned=last))
    return rows


def shape_sentence(api: str) -> str | None:
    """Return what a body that names no route leaves open; null where its shape tells the API.

    >>> shape_sentence("chat") is None, shape_sentence("completions")[:42]
    (True, 'Held as completions by its shape alone: sh')
    """
    if api not in ("completions", "responses"):
        return None
    return (
        f"Held as {api} by its shape alone: short bodies of embeddings, images and speech look the same and are not covered; "
        "budget explain --route tells them apart."
    )


def worst_sentences(held: Reservation, alike: int) -> list[str]:
    """Return how far so many open requests like this one can go over, in sentences."""
    many = f"{count(alike)} open like it" if alike > 1 else "It alone"
    found = []
    for assumption, words in (
        (Certain(), "if every input fills the context window"),
        (Declared(), "if inputs are at most 1.7 × the estimate"),
    ):
        worst = worst_case([held] * alike, inputs=assumption)
        stated = worst.stated_pico
        if worst.unbounded:
            return [f"{many}: unbounded, since there is no output limit and the price table declares no ceiling."]
        if worst.input_unbounded:
            found.append(f"{many} can go {money_text(stated)} over, not counting input: the table states no context window.")
        else:
            found.append(f"{many} can go {money_text(stated)} over, {words} ({worst.kind} input).")
    gap = gap_ratio(held)
    if gap is not None:
        times = gap.quantize(Decimal("0.01"), ROUND_UP)
        found.append(f"Without counting open requests: at most {times} × the limit over, for their output.")
    return found


def shown_settings(reserve_tokens: int) -> dict[str, str]:
    """Return the settings that are drawn over time, with their names: the chosen reservation, and the alternatives.

    >>> list(shown_settings(4096).items())[:2]
    [('reserve=4096', '4,096 reserved'), ('full', 'hold all')]
    """
    return {f"reserve={reserve_tokens}": f"{count(reserve_tokens)} reserved"} | ALTERNATIVE_WORDS


def with_links(markdown: str) -> str:
    """Return Markdown with each code of :data:`RULES` as a link to what the page says of it.

    >>> with_links("bounded (B7, declared input), not B70")
    'bounded ([B7](#budget-rules), declared input), not B70'
    """
    return re.sub(rf"\b({'|'.join(RULES)})\b", rf"[\1](#{RULES_ANCHOR})", markdown)


def rules_markdown() -> str:
    """Return the rules that the page names as a list."""
    return "\n".join(f"- **{code}** {own_words(text)}" for code, text in RULES.items())
