"""What another ceiling or floor would have done to the requests that were counted: exact where buckets decide, else bounds.

A request's wait fixes how far down the slope it is, s from 0 at the full wait to 1 at the floor wait (and without an eligible
worker): its allowance is ``ceiling − (ceiling − floor) · s``, rounded down (A2–A5), under any ceiling and floor. So the bucket of
its allowance bounds s, and s bounds the allowance under the changed settings. For every cell of the decisions table each whole
allowance of its bucket is tried with every size that the outcome leaves possible; what comes out for all of them is certain,
what comes out for some is undecided.

Taken as they were: the waits (a change admits other requests, which queue), what clients ask, who can pay, who disallows slow
workers. A request that disallows slow workers holds its kudos whatever the allowance (A20) and shows only where it does so under
the allowance: there nothing changes, and elsewhere slow workers are taken as allowed. How many show stands beside the answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import polars as pl

from horde_policy.frames.decisions import OUTCOMES, SIZE_EDGES_TOKENS, SIZES
from horde_policy.frames.schemas import Column, Schema
from horde_policy.review.cells import judged
from horde_policy.review.decompose import total
from horde_policy.review.sampling import Bounds
from horde_policy.settings import AllowanceSettings
from horde_policy.units import MAX_LENGTH_LIMIT_TOKENS

__all__ = ["WHAT_IF", "WhatIf", "possible_outcomes", "size_range", "what_if"]

WHAT_IF = Schema(
    "what_if",
    {
        "requester": Column(pl.String, null="not exported"),
        "chat": Column(pl.Boolean, null="not exported"),
        "requested_size": Column(pl.String, null="not exported"),
        "outcome": Column(pl.String, text="of the requests under the settings in force"),
        "count_low": Column(pl.Float64, "requests"),
        "count_high": Column(pl.Float64, "requests"),
        **{f"{outcome}_low": Column(pl.Float64, "requests", text="under the changed settings") for outcome in OUTCOMES},
        **{f"{outcome}_high": Column(pl.Float64, "requests", text="under the changed settings") for outcome in OUTCOMES},
        "not_free_low": Column(pl.Float64, "requests", text="that cannot be free under the changed settings"),
        "not_free_high": Column(pl.Float64, "requests", text="that may be otherwise than free under the changed settings"),
        "undecided_high": Column(pl.Float64, "requests", text="at most so many have no outcome that the buckets decide"),
    },
    sort=("requester", "chat", "requested_size", "outcome"),
)
"""One row a requester, chat, requested size and outcome as counted, with what would have become of them."""


Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The answer to a what-if.

    Attributes
    ----------
    settings, changed
        The settings in force and the changed ones.
    rows
        Schema :data:`WHAT_IF`.
    before, after
        Outcome → how many requests, as counted and under the changed settings. Each outcome's bounds are attained, though not
        all outcomes' at once.
    counted
        All requests that the answer is about.
    undecided
        How many have no outcome that the buckets decide.
    contradictory
        How many lie in cells that the settings in force cannot produce; their outcome is open.
    holds_seen
        How many held or were refused under the allowance, which only ``slow_workers=false`` makes (A20); they stay as they are.
    """

    settings: AllowanceSettings
    changed: AllowanceSettings
    rows: pl.DataFrame
    before: Mapping[str, Bounds]
    after: Mapping[str, Bounds]
    counted: Bounds
    undecided: Bounds
    contradictory: Bounds
    holds_seen: Bounds

    @property
    def undecided_share(self) -> float | None:
        """Return the largest share of all requests whose outcome the buckets do not decide; null where nothing was counted."""
        if not self.counted.high:
            return None
        decided_low = max(0.0, self.counted.low - self.undecided.low)
        return self.undecided.high / (self.undecided.high + decided_low)


def size_range(size: str | None) -> tuple[int, int]:
    """Return the least and the largest number of tokens of a size bucket; of an unknown size, of all of them (A23).

    >>> size_range("513-1024"), size_range(">4096"), size_range(None)
    ((513, 1024), (4097, 16384), (1, 16384))
    """
    if size is None:
        return 1, MAX_LENGTH_LIMIT_TOKENS
    edges = (0, *SIZE_EDGES_TOKENS, MAX_LENGTH_LIMIT_TOKENS)
    place = SIZES.index(size)
    return edges[place] + 1, edges[place + 1]


@lru_cache(maxsize=16)
def _scaled(settings: AllowanceSettings, changed: AllowanceSettings) -> tuple[Ints, Ints, Ints]:
    """Return every allowance that the settings give, and the least and the largest that the changed ones give at its waits."""
    ceiling, floor = settings.ceiling_tokens, settings.floor_tokens
    allowances = np.arange(floor, ceiling + 1, dtype=np.int64)
    fall, new_fall = ceiling - floor, changed.ceiling_tokens - changed.floor_tokens
    if fall == 0:  # every wait gives the same: it may be any
        least, most = (np.full(1, tokens, dtype=np.int64) for tokens in (changed.floor_tokens, changed.ceiling_tokens))
        return allowances, least, most
    # an allowance A stands for real values from A up to, but without, A + 1, and none above the ceiling
    least = changed.floor_tokens + (new_fall * (allowances - floor)) // fall
    top = np.minimum(allowances + 1, ceiling) - floor
    most = changed.floor_tokens + np.where(allowances < ceiling, -((-new_fall * top) // fall) - 1, new_fall)
    return allowances, least, np.maximum(most, least)


def possible_outcomes(
    requester: str | None,
    outcome: str,
    requested_size: str | None,
    allowance_size: str | None,
    chat: bool | None,  # noqa: FBT001
    settings: AllowanceSettings,
    changed: AllowanceSettings,
) -> frozenset[str]:
    """Return the outcomes that a request of one cell may have under the changed settings; empty for a cell that cannot be.

    Parameters
    ----------
    requester, outcome, requested_size, allowance_size, chat
        The cell, null for what is not exported.
    settings, changed
        The settings in force and the changed ones; only their ceiling and floor matter.

    Examples
    --------
    >>> now, lower = AllowanceSettings(), AllowanceSettings(ceiling_tokens=2048)
    >>> sorted(possible_outcomes("anonymous", "free", "2049-4096", "2049-4096", False, now, lower))
    ['downgraded', 'refused']
    >>> sorted(possible_outcomes("anonymous", "free", "<=512", "2049-4096", False, now, lower))
    ['free']
    """
    asked_low, asked_high = size_range(requested_size)
    allowed_low, allowed_high = size_range(allowance_size)
    allowances, least, most = _scaled(settings, changed)
    inside = (allowances >= allowed_low) & (allowances <= allowed_high)
    allowances, least, most = allowances[inside], least[inside], most[inside]
    if not allowances.size or (chat and outcome == "downgraded"):  # A17
        return frozenset()
    free = outcome == "free"
    # sizes that the outcome leaves possible at each allowance: what is free lies at or under it, all else above it
    low = np.full_like(allowances, asked_low) if free else np.maximum(asked_low, allowances + 1)
    high = np.minimum(asked_high, allowances) if free else np.full_like(allowances, asked_high)
    some = low <= high
    if not some.any():
        # held, refused or lowered under the allowance: slow workers are disallowed, and nothing changes (A20)
        return frozenset() if free else frozenset({outcome})
    outcomes = set()
    if (low[some] <= most[some]).any():
        outcomes.add("free")
    if (high[some] > least[some]).any():
        outcomes |= _over_the_allowance(requester, outcome, chat)
    return frozenset(outcomes)


def _over_the_allowance(requester: str | None, outcome: str, chat: bool | None) -> set[str]:  # noqa: FBT001
    """Return what may become of a request over the allowance, by what became of it before."""
    if outcome != "free":
        return {outcome}  # its client's means and wishes are known: they led here before
    # whether it could pay or allows a downgrade does not show while it is free; the anonymous account cannot pay (A1)
    pays = set() if requester == "anonymous" else {"funded"}
    lowers = set() if chat else {"downgraded"}
    return {"refused", *pays, *lowers}


def what_if(decisions: pl.DataFrame, settings: AllowanceSettings, changed: AllowanceSettings) -> WhatIf:
    """Return what would have become of the counted requests under another ceiling or floor.

    Parameters
    ----------
    decisions
        Schema :data:`~horde_policy.frames.decisions.DECISIONS`. Rows without an outcome are left out.
    settings, changed
        The settings in force and the changed ones; only their ceiling and floor matter.

    Examples
    --------
    >>> rows = pl.DataFrame({"requester": ["anonymous"], "outcome": ["refused"], "requested_size": ["513-1024"],
    ...     "allowance_size": ["<=512"], "chat": [False], "count_low": [30.0], "count_high": [30.0]})
    >>> answer = what_if(rows, AllowanceSettings(), AllowanceSettings(floor_tokens=1024))
    >>> answer.after["free"], answer.after["refused"], answer.undecided_share
    (Bounds(low=30.0, high=30.0), Bounds(low=0.0, high=0.0), 0.0)
    >>> answer = what_if(rows, AllowanceSettings(), AllowanceSettings(floor_tokens=768))
    >>> answer.after["free"], answer.undecided_share
    (Bounds(low=0.0, high=30.0), 1.0)
    """
    cell = ["requester", "outcome", "requested_size", "allowance_size", "chat"]
    cells = decisions.filter(pl.col("outcome").is_not_null()).group_by(cell).agg(pl.col("count_low", "count_high").sum())
    outcomes = [possible_outcomes(*_cell(row), settings, changed) for row in cells.select(cell).iter_rows()]
    contradictory = pl.Series("contradictory", [not possible for possible in outcomes], dtype=pl.Boolean)
    open_ = [possible or frozenset(OUTCOMES) for possible in outcomes]
    cells = cells.with_columns(
        contradictory,
        pl.Series("decided", [len(possible) == 1 for possible in open_], dtype=pl.Boolean),
        *(pl.Series(f"may_{name}", [name in possible for possible in open_], dtype=pl.Boolean) for name in OUTCOMES),
    )
    holds = judged(cells, settings).filter(pl.col("code").is_in(["held_under_allowance", "downgraded_under_allowance"]))
    after = {name: _after(cells, name) for name in OUTCOMES}
    return WhatIf(
        settings=settings,
        changed=changed,
        rows=_rows(cells),
        before={name: total(cells.filter(pl.col("outcome") == name)) for name in OUTCOMES},
        after=after,
        counted=total(cells),
        undecided=total(cells.filter(~pl.col("decided"))),
        contradictory=total(cells.filter("contradictory")),
        holds_seen=total(holds),
    )


def _cell(row: tuple[object, ...]) -> tuple[str | None, str, str | None, str | None, bool | None]:
    requester, outcome, requested, allowed, chat = row
    return (  # the frame's schema gives these types
        requester if isinstance(requester, str) else None,
        str(outcome),
        requested if isinstance(requested, str) else None,
        allowed if isinstance(allowed, str) else None,
        chat if isinstance(chat, bool) else None,
    )


def _after(cells: pl.DataFrame, name: str) -> Bounds:
    certain = cells.filter(pl.col("decided") & pl.col(f"may_{name}"))
    return Bounds(total(certain).low, total(cells.filter(f"may_{name}")).high)


def _rows(cells: pl.DataFrame) -> pl.DataFrame:
    low = [pl.col("count_low").filter(pl.col("decided") & pl.col(f"may_{name}")).sum().alias(f"{name}_low") for name in OUTCOMES]
    high = [pl.col("count_high").filter(pl.col(f"may_{name}")).sum().alias(f"{name}_high") for name in OUTCOMES]
    undecided = pl.col("count_high").filter(~pl.col("decided")).sum().alias("undecided_high")
    not_free = [
        pl.col("count_low").filter(~pl.col("may_free")).sum().alias("not_free_low"),
        pl.col("count_high").filter(~(pl.col("decided") & pl.col("may_free"))).sum().alias("not_free_high"),
    ]
    keys = ["requester", "chat", "requested_size", "outcome"]
    grouped = cells.group_by(keys).agg(pl.col("count_low", "count_high").sum(), *low, *high, *not_free, undecided)
    return WHAT_IF.checked(grouped.sort(keys, nulls_last=True))
