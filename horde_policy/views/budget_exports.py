"""A budget replay and a ledger as files: exact dollars as decimal text, each row with where it is from."""

import hashlib
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

import polars as pl

from horde_policy.budget.money import to_usd
from horde_policy.budget.simulate import BudgetReplay
from horde_policy.frames.schemas import Schema
from horde_policy.frames.usage import BUDGET_MOMENTS, BUDGET_SUMMARY
from horde_policy.views.budget_inputs import PricedRequests
from horde_policy.views.budget_state import BudgetState
from horde_policy.views.exports import headings, to_csv, to_parquet

__all__ = ["BudgetStamp", "LedgerStamp", "in_dollars", "moments_csv", "run_parquet", "settings_csv"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetStamp:
    """Where a budget replay comes from: the requests, what of them is assumed, the prices, the budget."""

    requests: PricedRequests
    prices: str
    replay: BudgetReplay
    state: BudgetState

    @property
    def digest(self) -> str:
        """Eight characters that name the settings, the limit included."""
        text = json.dumps([asdict(self.state), self.replay.limit_pico], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()

    @property
    def name(self) -> str:
        """A name for files: the requests and the digest."""
        return f"budget_{self.state.requests.replace('.', '-')}_{self.digest}"

    def columns(self) -> dict[str, str | int]:
        """Return the stamp's columns, by heading."""
        assumed = "; ".join(self.requests.assumed)
        return {
            "requests": self.requests.title,
            "assumed": f"{assumed} (synthetic)" if assumed else "nothing",
            "prices": self.prices,
            "limit ($)": f"{to_usd(self.replay.limit_pico):f}",
            "window": self.replay.window,
            "zone": self.replay.zone,
            "settings digest": self.digest,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerStamp:
    """Where rows of a ledger come from: its name without secrets, when it was read, the assumption about open inputs."""

    ledger: str
    synthetic: bool
    at: datetime
    inputs: str

    def columns(self) -> dict[str, str | int]:
        """Return the stamp's columns, by heading."""
        return {
            "ledger": self.ledger + (" (synthetic)" if self.synthetic else ""),
            "read at (UTC)": f"{self.at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "open inputs": self.inputs,
        }


def in_dollars(frame: pl.DataFrame, schema: Schema) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return a frame with every amount as exact dollars in decimal text, and its headings with units.

    >>> frame = pl.DataFrame({"hold_pico": [91_440_000_000, None]}, schema={"hold_pico": pl.Int64})
    >>> from horde_policy.frames.schemas import Column
    >>> shown, names = in_dollars(frame, Schema("x", {"hold_pico": Column(pl.Int64, "pico-dollar")}))
    >>> shown["hold_pico"].to_list(), names
    (['0.09144', None], {'hold_pico': 'hold ($)'})
    """
    names = headings(schema)
    columns = []
    for name in schema.columns:
        values = frame[name]
        if name.endswith("_pico"):
            names[name] = f"{name.removesuffix('_pico')} ($)"
            dollars = [None if value is None else f"{to_usd(value):f}" for value in values.to_list()]
            values = pl.Series(name, dollars, dtype=pl.String)
        columns.append(values)
    return pl.DataFrame(columns), names


def settings_csv(stamp: BudgetStamp) -> bytes:
    """Return the settings side by side as CSV."""
    frame, names = in_dollars(stamp.replay.summary, BUDGET_SUMMARY)
    return to_csv(frame, names, stamp)


def moments_csv(moments: pl.DataFrame, stamp: BudgetStamp) -> bytes:
    """Return open holds, money and the bound over time as CSV."""
    frame, names = in_dollars(moments, BUDGET_MOMENTS)
    return to_csv(frame, names, stamp)


def run_parquet(run: pl.DataFrame, stamp: BudgetStamp) -> bytes:
    """Return every request under every setting as Parquet, money in whole pico-dollars, the stamp in the metadata."""
    return to_parquet(run, stamp)
