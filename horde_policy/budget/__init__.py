"""Hard budgets in money: capped output reservations, the ledger that holds them, and the bound on what they overspend."""

from horde_policy.budget.body import Ask, api_of_route, read_request
from horde_policy.budget.bound import Certain, Declared, Known, Measured, RealInput, WorstCase, worst_case
from horde_policy.budget.holding import Hold, Limit, Settlement
from horde_policy.budget.ledger import Ledger
from horde_policy.budget.price_table import PriceTable, load_prices
from horde_policy.budget.refusal import Refusal
from horde_policy.budget.reservation import DEFAULT_OUTPUT_TOKENS, Reservation, reserve_cost
from horde_policy.budget.stream import StreamReader, read_stream
from horde_policy.budget.usage import TokenUsage, read_usage

__all__ = [
    "DEFAULT_OUTPUT_TOKENS",
    "Ask",
    "Certain",
    "Declared",
    "Hold",
    "Known",
    "Ledger",
    "Limit",
    "Measured",
    "PriceTable",
    "RealInput",
    "Refusal",
    "Reservation",
    "Settlement",
    "StreamReader",
    "TokenUsage",
    "WorstCase",
    "api_of_route",
    "load_prices",
    "read_request",
    "read_stream",
    "read_usage",
    "reserve_cost",
    "worst_case",
]
