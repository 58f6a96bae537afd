"""Money without binary floats: whole pico-dollars inside, Decimal dollars at every border.

One pico-dollar is 10⁻¹² dollar. Prices are whole atto-dollars (10⁻¹⁸ dollar) a token, which is what up to twelve decimals
per million tokens come to. A hold is rounded up to a whole pico-dollar, a cost is rounded once, at the end of the request
(decision 0040). Source: budgets.md §4.
"""

import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

from horde_policy.errors import InputError

__all__ = [
    "ATTO_PER_PICO",
    "MAX_LIMIT_PICO",
    "MAX_PICO",
    "PICO_PER_USD",
    "decimal_of",
    "money_column",
    "money_text",
    "pico_half_even",
    "pico_up",
    "to_pico",
    "to_usd",
]

PICO_PER_USD = 10**12
ATTO_PER_PICO = 10**6
MAX_PICO = 2**63 - 1
"""The largest amount a ledger can hold: about 9.22 million dollars."""
MAX_LIMIT_PICO = 4_000_000 * PICO_PER_USD
"""The largest limit of a budget. The rest of the 63 bits is room for what may come over it."""

EXACT = Context(prec=80)
"""Enough digits that no sum or product of this package is ever rounded by the Decimal context."""

_PLAIN = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_MANY_DIGITS = 60


def decimal_of(value: object, what: str, where: str = "") -> Decimal:
    """Return a typed number as an exact Decimal: a whole number, a Decimal or a decimal string, never a float.

    Raises
    ------
    InputError
        A binary float, a boolean, not a number, infinite, or of more than 60 digits.

    Examples
    --------
    >>> decimal_of("0.30", "price")
    Decimal('0.30')
    >>> decimal_of(0.3, "price")
    Traceback (most recent call last):
    horde_policy.errors.InputError: price: 0.3 must be a decimal string or a whole number, since a binary float is not exact
    """
    if isinstance(value, float):
        raise InputError(what, where, value, "must be a decimal string or a whole number, since a binary float is not exact")
    if isinstance(value, str):
        text = value.strip()
        if len(text) > _MANY_DIGITS or not _PLAIN.fullmatch(text):
            raise InputError(what, where, value, "must be a decimal number")
        return Decimal(text)
    if isinstance(value, Decimal):
        if not value.is_finite() or len(value.as_tuple().digits) > _MANY_DIGITS:
            raise InputError(what, where, value, "must be a finite decimal number")
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    raise InputError(what, where, value, "must be a decimal number")


def to_pico(amount_usd: object, what: str, where: str = "", *, most: int = MAX_PICO) -> int:
    """Return an amount of dollars, at least 0, as whole pico-dollars.

    Raises
    ------
    InputError
        Negative, more than twelve decimals, above ``most``, or no exact number.

    Examples
    --------
    >>> to_pico("0.09144", "limit")
    91440000000
    """
    amount = decimal_of(amount_usd, what, where)
    if amount < 0:
        raise InputError(what, where, str(amount_usd), "must be at least 0 dollars")
    try:
        scaled = EXACT.scaleb(amount, 12)
        pico = int(scaled)
    except (InvalidOperation, OverflowError) as error:
        raise InputError(what, where, str(amount_usd), "must be an amount of dollars") from error
    if scaled != pico:
        raise InputError(what, where, str(amount_usd), "must have at most 12 decimals")
    if pico > most:
        raise InputError(what, where, str(amount_usd), f"must be at most {money_text(most)}")
    return pico


def to_usd(pico: int) -> Decimal:
    """Return pico-dollars as exact dollars, without trailing zeros.

    >>> to_usd(8_371_200_000_000), to_usd(0)
    (Decimal('8.3712'), Decimal('0'))
    """
    amount = EXACT.scaleb(Decimal(pico), -12)
    whole = amount.to_integral_value()
    return whole if amount == whole else EXACT.normalize(amount)


def pico_up(atto: int) -> int:
    """Return atto-dollars as pico-dollars rounded up: how a hold is rounded.

    >>> pico_up(1), pico_up(1_000_000)
    (1, 1)
    """
    return -(-atto // ATTO_PER_PICO)


def pico_half_even(atto: int) -> int:
    """Return atto-dollars as pico-dollars rounded half to even: how a cost is rounded, once a request.

    >>> [pico_half_even(n) for n in (500_000, 1_500_000, 1_500_001)]
    [0, 2, 2]
    """
    whole, rest = divmod(atto, ATTO_PER_PICO)
    half = ATTO_PER_PICO // 2
    return whole + (rest > half or (rest == half and whole % 2 == 1))


def money_text(pico: int, *, decimals: int = 0) -> str:
    """Return an amount as people read it, on pages, in sentences and on the command line: the one way to write money.

    Rounded half up to four decimals, more where four would show nothing. What must add up to the eye is :func:`money_column`;
    files and JSON for machines hold the exact decimal (:func:`to_usd`), and a price reads as its table states it.

    Amounts from 1,000 dollars have two decimals; a positive amount that four decimals would show as zero keeps two
    significant digits, so that a budget of less than a cent never reads "$0.00 of $0.00". ``decimals`` asks for at least so many.

    >>> [money_text(p) for p in (8_371_200_000_000, 50_000, 0, -91_440_000_000, 1_234_500_000_000_000)]
    ['$8.3712', '$0.00000005', '$0.0000', '−$0.0914', '$1,234.50']
    """
    amount = EXACT.scaleb(Decimal(abs(pico)), -12)
    step = Decimal(1).scaleb(-max(decimals, 2 if amount >= 1000 else 4))
    rounded = amount.quantize(step, rounding=ROUND_HALF_UP, context=EXACT)
    if pico and not rounded:
        digits = -amount.adjusted() + 1
        rounded = amount.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP, context=EXACT)
        rounded = EXACT.normalize(rounded)
    return f"{'−' if pico < 0 else ''}${rounded:,f}"


def money_column(amounts: Sequence[int]) -> list[str]:
    """Return amounts that are added up or compared, all to the decimals of the finest: the sum is seen to be the sum.

    >>> money_column([78_000_000, 61_440_000_000, 61_518_000_000])
    ['$0.000078', '$0.061440', '$0.061518']
    >>> money_column([500_000_000_000])
    ['$0.5000']
    """
    exact = (to_usd(abs(pico)).as_tuple().exponent for pico in amounts)
    decimals = max((-place for place in exact if isinstance(place, int)), default=0)
    return [money_text(pico, decimals=max(decimals, 4)) for pico in amounts]
