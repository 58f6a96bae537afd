"""What a hard budget would have done with recorded requests, for each size of the reservation and each alternative.

The requests keep their arrival, real usage and duration whatever is decided; refused ones do not come back. Between a
request's arrival and the end of its duration its money is held, then its real cost is written (B1–B5). ``reserve=R`` is
B3 with that R, ``full`` B11, ``input`` B12, ``stop`` B13. The bound is B7's after the fact: real input, stated. That of
``stop`` is what its open streams can cost in one microsecond, the step in which they are stopped, and beyond their inputs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl

from horde_policy.budget.amounts import Amounts
from horde_policy.budget.body import MAX_TOKENS
from horde_policy.budget.kernel import CUT, replay_holds, replay_stops
from horde_policy.budget.money import MAX_LIMIT_PICO, MAX_PICO, to_pico
from horde_policy.budget.price_table import PriceTable
from horde_policy.budget.prices import EPOCH
from horde_policy.budget.requests import request_problems
from horde_policy.budget.reservation import DEFAULT_OUTPUT_TOKENS, HoldRule
from horde_policy.budget.windows import WindowKind, microseconds, window_at
from horde_policy.errors import ConfigError, InputError, Problem
from horde_policy.frames.schemas import UTC_INSTANT
from horde_policy.frames.usage import BUDGET_MOMENTS, BUDGET_REQUESTS, BUDGET_RUN, BUDGET_SUMMARY

__all__ = ["ALTERNATIVES", "DEFAULT_RESERVES", "OUTCOMES", "BudgetReplay", "budget_moments", "replay_budget"]

Array = np.ndarray[Any, np.dtype[Any]]

DEFAULT_RESERVES = (0, 256, 1024, 2048, 4096, 8192, 16_384, 32_768)
ALTERNATIVES = ("full", "input", "stop")
"""B11, B12 and B13."""

OUTCOMES = ("settled", "cut", "refused_early", "refused_at_limit", "refused_unpriced")


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetReplay:
    """The result of a replay.

    Attributes
    ----------
    run
        Frame :data:`~horde_policy.frames.usage.BUDGET_RUN`: one row a request and setting.
    summary
        Frame :data:`~horde_policy.frames.usage.BUDGET_SUMMARY`: one row a setting, in the order they were asked for.
    limit_pico, window, zone
        The budget.
    problems
        What in the requests weakens the result.
    """

    run: pl.DataFrame
    summary: pl.DataFrame
    limit_pico: int
    window: WindowKind
    zone: str
    problems: tuple[Problem, ...]


def replay_budget(
    requests: pl.DataFrame,
    prices: PriceTable,
    limit_usd: object,
    *,
    reserves: Sequence[int] = DEFAULT_RESERVES,
    alternatives: Sequence[str] = ALTERNATIVES,
    window: WindowKind = "total",
    zone: str = "UTC",
) -> BudgetReplay:
    """Replay requests against a hard budget, once for each reservation and alternative.

    Parameters
    ----------
    requests
        Frame :data:`~horde_policy.frames.usage.BUDGET_REQUESTS`, sorted by arrival (:func:`checked_requests` makes it).
    prices
        The price table; each request at the row in force at its arrival, one without a row is refused as unpriced.
    limit_usd
        The limit of each window: a decimal string, whole number or Decimal.
    reserves
        Values of ``reservation.output_tokens``.
    alternatives
        Of ``full``, ``input`` and ``stop``.
    window, zone
        The budget's windows.

    Raises
    ------
    ConfigError
        A reservation, an alternative, a window or a zone that is none; nothing to replay at all.
    InputError
        The requests are not sorted, or their money together is more than 63 bits of pico-dollars hold.
    """
    frame = BUDGET_REQUESTS.checked(requests)
    limit_pico = to_pico(limit_usd, "limit", most=MAX_LIMIT_PICO)
    settings = _settings(reserves, alternatives)
    amounts = Amounts.of(frame, prices, largest_reserve=max(reserve for _, reserve, _ in settings))
    timeline = _Timeline.of(frame, window, zone)
    runs, rows = [], []
    for name, reserve, rule in settings:
        replayed = _replay(name, reserve, rule, frame, amounts, timeline, limit_pico)
        runs.append(_run_frame(name, frame, timeline, replayed))
        rows.append(_summary_row(name, reserve if name.startswith("reserve=") else None, replayed, limit_pico))
    return BudgetReplay(
        run=BUDGET_RUN.checked(pl.concat(runs)),
        summary=BUDGET_SUMMARY.checked(pl.DataFrame(rows, schema=BUDGET_SUMMARY.polars_schema())),
        limit_pico=limit_pico,
        window=window,
        zone=zone,
        problems=tuple(request_problems(frame)),
    )


def budget_moments(run: pl.DataFrame, *, points: int = 500) -> pl.DataFrame:
    """Return a run as moments for drawing: of so many stretches the largest worst case and the largest bound.

    The worst case is what is spent, held and the bound together. Returns a
    :data:`~horde_policy.frames.usage.BUDGET_MOMENTS` frame of at most ``2 * points`` rows a setting.
    """
    if isinstance(points, bool) or not isinstance(points, int) or points < 1:
        raise ConfigError("points", points, "must be a whole number of at least 1")
    if run.is_empty():
        return BUDGET_MOMENTS.empty()
    us = pl.col("created").dt.timestamp("us")
    span = us.max() - us.min() + 1
    names = [name for name in BUDGET_MOMENTS.columns if name not in ("setting", "at")]
    whole = pl.col("spent_pico") + pl.col("held_pico") + pl.col("bound_pico")
    rows = run.lazy().with_columns(((us - us.min()) * points // span).alias("stretch"))
    kept = (
        pl.concat(
            rows.group_by("setting", "stretch").agg(pl.all().get(largest))
            for largest in (whole.arg_max(), pl.col("bound_pico").arg_max())
        )
        .unique(["setting", "row"])
        .sort("setting", "row")
        .select("setting", pl.col("created").alias("at"), *names)
        .collect()
    )
    return BUDGET_MOMENTS.checked(kept)


@dataclass(frozen=True, slots=True)
class _Timeline:
    """When each request arrives and ends, and in which window it is."""

    arrive: Array
    end: Array
    by_end: Array
    window: Array
    starts: tuple[datetime, ...]

    @classmethod
    def of(cls, frame: pl.DataFrame, kind: WindowKind, zone: str) -> "_Timeline":
        arrive = frame["created"].dt.timestamp("us").to_numpy()
        if arrive.size and (np.diff(arrive) < 0).any():
            raise InputError("requests", "column created", "the rows", "must be sorted by arrival")
        # A cost is written after the arrival, be it by a microsecond: a request never ends before it is decided.
        lasts = np.maximum((frame["duration_s"].to_numpy() * 1e6).round().astype(np.int64), 1)
        end = arrive + lasts
        starts: list[datetime] = []
        edges: list[int] = []
        instants = frame["created"]
        row = 0
        while row < arrive.size or not starts:
            at = instants[row] if arrive.size else EPOCH
            found = window_at(kind, zone, at)
            starts.append(found.start)
            edges.append(microseconds(found.start))
            if found.end is None or not arrive.size:
                break
            row = int(np.searchsorted(arrive, microseconds(found.end), side="left"))
        window = np.searchsorted(np.array(edges, dtype=np.int64), arrive, side="right") - 1
        return cls(arrive, end, np.argsort(end, kind="stable"), window.astype(np.int64), tuple(starts))


@dataclass(frozen=True, slots=True)
class _Replayed:
    outcome: Array
    state: Array
    final: Array
    hold: Array
    paid: Array
    unbounded: Array


def _replay(
    name: str, reserve: int, rule: HoldRule, frame: pl.DataFrame, amounts: Amounts, timeline: _Timeline, limit_pico: int
) -> _Replayed:
    held = amounts.held(reserve, rule)
    most = np.maximum(held.hold, amounts.cost)
    stops = _cost_of_a_step(amounts, timeline, frame["output_tokens"].to_numpy()) if name == "stop" else np.zeros_like(most)
    together = _exact_sum(most) + _exact_sum(held.stated) + _exact_sum(stops)
    if together + limit_pico > MAX_PICO:
        raise InputError("requests", "money", together, "pico-dollars together are more than 63 bits hold")
    common = (timeline.arrive, timeline.end, timeline.by_end, timeline.window, len(timeline.starts), limit_pico)
    kinds = (amounts.priced, amounts.free, amounts.unbounded)
    if name == "stop":
        none = np.zeros_like(amounts.unbounded)  # the count bounds a request without a limit as well
        kinds = (amounts.priced, amounts.free, none)
        tokens = frame["output_tokens"].to_numpy()
        outcome, state, final, paid = replay_stops(
            *common, *kinds, amounts.input_hold, amounts.input_cost, amounts.cost, tokens, amounts.input_stated + stops
        )
        return _Replayed(outcome, state, final, amounts.input_hold, paid, none)
    outcome, state, final = replay_holds(*common, *kinds, held.hold, amounts.cost, held.stated, held.tight)
    return _Replayed(outcome, state, final, held.hold, amounts.cost, amounts.unbounded)


def _cost_of_a_step(amounts: Amounts, timeline: _Timeline, tokens: Array) -> Array:
    """Return what each stream can cost within one microsecond, in which it is not stopped: a token, or what comes at once."""
    each, output = np.maximum(tokens, 1), amounts.cost - amounts.input_cost
    at_once = -(-tokens // (timeline.end - timeline.arrive))
    step: Array = output // each * at_once - (-(output % each * at_once) // each)
    return step


def _exact_sum(values: Array) -> int:
    """Return the sum of numbers of at least 0 whose sum may need more than 63 bits."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFF_FFFF).sum())


def _run_frame(name: str, frame: pl.DataFrame, timeline: _Timeline, replayed: _Replayed) -> pl.DataFrame:
    starts = pl.Series("window_start", list(timeline.starts), dtype=UTC_INSTANT)
    admitted = replayed.outcome <= CUT
    columns = ("spent_pico", "held_pico", "open", "unbounded_open", "bound_pico", "tight_pico")
    return pl.DataFrame(
        {
            "setting": pl.repeat(name, frame.height, eager=True, dtype=pl.String),
            "row": pl.int_range(frame.height, dtype=pl.Int64, eager=True),
            "created": frame["created"],
            "window_start": starts.gather(timeline.window) if frame.height else starts.head(0),
            "outcome": pl.Series(list(OUTCOMES)).gather(replayed.outcome.astype(np.int64)),
            "hold_pico": replayed.hold,
            "cost_pico": pl.Series(replayed.paid).set(pl.Series(~admitted), None),
            **{column: replayed.state[:, index] for index, column in enumerate(columns)},
        }
    )


def _summary_row(name: str, reserve: int | None, replayed: _Replayed, limit_pico: int) -> dict[str, object]:
    outcome, state, final = replayed.outcome, replayed.state, replayed.final
    counts = {word: int((outcome == index).sum()) for index, word in enumerate(OUTCOMES)}
    refused = np.flatnonzero((outcome > CUT) & (outcome < len(OUTCOMES) - 1))
    over = np.maximum(final[:, 0] - limit_pico, 0)
    worst = int(over.argmax())
    money = int(final[:, 0].sum())
    admitted = state[outcome <= CUT]
    # Streams may use all that is left of the limit before they are stopped; other requests what they hold.
    beyond = admitted[:, 4] if name == "stop" else admitted[:, [0, 1, 4]].sum(axis=1) - limit_pico
    limits = limit_pico * final.shape[0]
    return {
        "setting": name,
        "reserve_tokens": reserve,
        "is_default": reserve == DEFAULT_OUTPUT_TOKENS,
        "requests": int(outcome.size),
        "admitted": counts["settled"] + counts["cut"],
        **{word: counts[word] for word in OUTCOMES[1:]},
        "first_refusal_spent_ratio": float(state[refused[0], 0] / limit_pico) if refused.size and limit_pico else None,
        "settled_pico": money,
        "utilisation_ratio": money / limits if limits else 0.0,
        "overspend_pico": int(over[worst]),
        "bound_at_overspend_pico": int(final[worst, 1]),
        "worst_over_pico": int(beyond.max(initial=0)),
        "largest_bound_pico": int(admitted[:, 4].max(initial=0)),
        "unbounded": int(replayed.unbounded[outcome <= CUT].sum()),
        "peak_open": int(final[:, 2].max()),
    }


def _settings(reserves: Sequence[int], alternatives: Sequence[str]) -> list[tuple[str, int, HoldRule]]:
    """Return the settings in order: each reservation, then each alternative."""
    found: list[tuple[str, int, HoldRule]] = []
    for reserve in dict.fromkeys(reserves):
        if isinstance(reserve, bool) or not isinstance(reserve, int) or not 0 <= reserve <= MAX_TOKENS:
            raise ConfigError("reservation.output_tokens", reserve, f"must be a whole number from 0 to {MAX_TOKENS}")
        found.append((f"reserve={reserve}", reserve, "capped"))
    for alternative in dict.fromkeys(alternatives):
        if alternative not in ALTERNATIVES:
            raise ConfigError("alternative", alternative, "must be one of " + ", ".join(ALTERNATIVES))
        rule: HoldRule = "full" if alternative == "full" else "input"
        found.append((alternative, DEFAULT_OUTPUT_TOKENS, rule))
    if not found:
        raise ConfigError("reservation.output_tokens", list(reserves), "must be at least one, or an alternative")
    return found
