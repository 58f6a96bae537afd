"""The curve from an estimated wait to the free output allowance, its Polars expression and its inverse (A2–A5).

``ceiling`` at a wait of at most ``wait_full_s``, ``floor`` at a wait of at least ``wait_floor_s`` and without an estimate,
between them ``floor_int(ceiling − (ceiling − floor) · (wait − full) / (floor_wait − full))`` in IEEE double, the product
before the quotient, so that the scalar function, the expression and the replay engine agree to the last token.
"""

import math
import struct

import polars as pl

from horde_policy.errors import InputError
from horde_policy.policy.exact import quotient
from horde_policy.settings import AllowanceSettings

__all__ = ["allowance_expression", "free_output_allowance", "largest_wait_s"]


def free_output_allowance(wait_s: float | None, settings: AllowanceSettings) -> int:
    """Return the allowance in whole output tokens at an estimated wait (A2–A5).

    Parameters
    ----------
    wait_s
        The estimated wait in seconds, at least 0; null: no eligible worker, which gets the floor (A5).
    settings
        The four figures.

    Raises
    ------
    InputError
        The wait is negative or not a number.

    Examples
    --------
    >>> [free_output_allowance(w, AllowanceSettings()) for w in (0.0, 60.0, 75.0, 180.0, 300.0, None)]
    [4096, 4096, 3872, 2304, 512, 512]
    """
    if wait_s is None:
        return settings.floor_tokens
    if math.isnan(wait_s) or wait_s < 0:
        raise InputError("estimated wait", "", wait_s, "must be a number of at least 0 seconds")
    if wait_s <= settings.wait_full_s:
        return settings.ceiling_tokens
    if wait_s >= settings.wait_floor_s:
        return settings.floor_tokens
    fall = settings.ceiling_tokens - settings.floor_tokens
    tokens = settings.ceiling_tokens - fall * (wait_s - settings.wait_full_s) / (settings.wait_floor_s - settings.wait_full_s)
    # Within a rounding error of the floor mark the quotient can exceed the fall: the allowance is never under the floor.
    return max(settings.floor_tokens, math.floor(tokens))


def allowance_expression(wait_s: pl.Expr, settings: AllowanceSettings) -> pl.Expr:
    """Return the curve as an expression: Float64 seconds in, Int64 tokens out, a null wait gives the floor (A5).

    A wait that the scalar function refuses, negative or not a number, gives null: an expression cannot refuse one row.

    >>> waits = pl.DataFrame({"wait_s": [0.0, 75.0, None]})
    >>> waits.select(allowance_expression(pl.col("wait_s"), AllowanceSettings())).to_series().to_list()
    [4096, 3872, 512]
    """
    ceiling = float(settings.ceiling_tokens)
    floor = float(settings.floor_tokens)
    wait = wait_s.cast(pl.Float64)
    span_s = float(settings.wait_floor_s) - float(settings.wait_full_s)
    slope = (ceiling - quotient((ceiling - floor) * (wait - settings.wait_full_s), span_s)).floor()
    return (
        pl.when(wait.is_nan() | (wait < 0.0))
        .then(None)
        .when(wait.is_null() | (wait >= settings.wait_floor_s))
        .then(floor)
        .when(wait <= settings.wait_full_s)
        .then(ceiling)
        .otherwise(pl.max_horizontal(slope, pl.lit(floor)))
        .cast(pl.Int64)
    )


def _bits(value: float) -> int:
    """Return the bit pattern of a non-negative double, which grows with the value."""
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def _double(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])


def largest_wait_s(allowance_tokens: int, settings: AllowanceSettings) -> float | None:
    """Return the largest wait, as a float, whose allowance is still at least ``allowance_tokens`` (inverse of A2–A4).

    Infinite for anything up to the floor; null above the ceiling, which no wait gives. The next larger float has a
    smaller allowance: found by halving the interval of doubles, since the curve never rises.

    >>> largest_wait_s(2304, AllowanceSettings())
    180.0
    >>> largest_wait_s(512, AllowanceSettings()), largest_wait_s(4097, AllowanceSettings())
    (inf, None)
    """
    if allowance_tokens <= settings.floor_tokens:
        return math.inf
    if allowance_tokens > settings.ceiling_tokens:
        return None
    still, below = _bits(float(settings.wait_full_s)), _bits(float(settings.wait_floor_s))
    while below - still > 1:
        middle = (still + below) // 2
        if free_output_allowance(_double(middle), settings) >= allowance_tokens:
            still = middle
        else:
            below = middle
    return _double(still)
