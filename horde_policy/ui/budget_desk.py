"""What the Budget page works on, shared by all viewers: requests, price tables, uploads, and replays that were made.

Files are read once and named by their content, as on the Replay page; nothing is written to a place that stays.
"""

import tempfile
import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeVar

import polars as pl
import streamlit as st

from horde_policy.budget.price_table import PriceTable, load_prices, parse_prices
from horde_policy.budget.requests import has_own_layout, load_requests
from horde_policy.budget.simulate import DEFAULT_RESERVES, BudgetReplay, budget_moments, replay_budget
from horde_policy.errors import InputError
from horde_policy.imports.trace_frame import Trace
from horde_policy.sources.demo import BUNDLED_FOLDER
from horde_policy.ui.replay_inputs import BUNDLED, UPLOAD_PREFIX, Library, upload_key
from horde_policy.views.budget_inputs import PricedRequests, from_file, from_trace, limit_of, priced_model
from horde_policy.views.budget_state import BudgetState
from horde_policy.views.uploads import not_kept, requests_understood, trace_understood

__all__ = ["PRICE_TABLES", "BudgetDesk", "Prepared", "Replayed", "budget_desk", "prepared", "replayed", "run_of"]

T = TypeVar("T")

PRICES_FOLDER = BUNDLED_FOLDER / "prices"
PRICE_TABLES: Final = {"example-hosted": "Example, hosted models", "example-per-token": "Example, own models"}
KEPT_UPLOADS = 6
KEPT_INPUTS = 6
KEPT_REPLAYS = 24
SPINNER = "Replaying the requests for each reservation … the first time on a machine takes half a minute"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Requests, the table that prices them, and the limit of each window in dollars."""

    requests: PricedRequests
    table: PriceTable
    limit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """A replay with what it was made of; the run itself, with a row for each request and setting, is not kept."""

    requests: PricedRequests
    table: PriceTable
    replay: BudgetReplay
    moments: pl.DataFrame


@dataclass(slots=True)
class BudgetDesk:
    """Requests and price tables by key, the bundled and the uploaded; the oldest uploads are dropped. Guarded by its lock."""

    library: Library = field(default_factory=Library)
    files: OrderedDict[str, pl.DataFrame] = field(default_factory=OrderedDict)
    tables: OrderedDict[str, PriceTable] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add_requests(self, name: str, content: bytes) -> str:
        """Keep uploaded requests, and return their key: our own layout, or any trace that the Replay page reads.

        Raises
        ------
        InputError
            The file is neither, or breaks a rule of its layout: nothing is kept.
        """
        ending = Path(name).suffix.lower()
        if ending not in (".csv", ".parquet"):
            return self.library.add(name, content)[0]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"upload{ending}"
            path.write_bytes(content)
            if not has_own_layout(path):
                return self.library.add(name, content)[0]
            frame = load_requests(path)
        key = upload_key(content)
        _keep(self.files, key, frame, self.lock)
        return key

    def add_prices(self, content: bytes) -> str:
        """Keep an uploaded price table, and return its key.

        Raises
        ------
        InputError
            It is no price table: nothing is kept.
        """
        try:
            table = parse_prices(content.decode("utf-8"))
        except UnicodeDecodeError:
            raise InputError("price table", "", "the file", "must be TOML in UTF-8") from None
        key = upload_key(content)
        _keep(self.tables, key, table, self.lock)
        return key

    def table(self, key: str) -> PriceTable:
        """Return the price table of a key.

        Raises
        ------
        InputError
            No such table is bundled, or the upload is no longer kept.
        """
        with self.lock:
            if key not in self.tables and key in PRICE_TABLES:
                self.tables[key] = load_prices(PRICES_FOLDER / f"{key}.toml")
            if key in self.tables:
                return self.tables[key]
        if key.startswith(UPLOAD_PREFIX):
            raise not_kept("prices", key)
        raise InputError("prices", "", key, f"must be one of {', '.join(PRICE_TABLES)}")

    def understood(self, key: str) -> tuple[str, str]:
        """Return what uploaded requests were understood as, and what of them was left out."""
        with self.lock:
            frame = self.files.get(key)
        return trace_understood(self.library.trace(key)) if frame is None else requests_understood(frame.height)

    def forget_requests(self, key: str) -> None:
        """Drop uploaded requests; what is not kept is none."""
        with self.lock:
            self.files.pop(key, None)
        self.library.forget(key)

    def forget_prices(self, key: str) -> None:
        """Drop an uploaded price table; one that is not kept is none."""
        with self.lock:
            if key not in PRICE_TABLES:
                self.tables.pop(key, None)

    def requests(self, state: BudgetState, table: PriceTable) -> PricedRequests:
        """Return the requests that a state names, with its assumptions where they say nothing themselves."""
        uploaded = f"an uploaded file ({state.requests[-8:]})"
        with self.lock:
            frame = self.files.get(state.requests)
        if frame is not None:
            return from_file(frame, uploaded)
        trace: Trace = self.library.trace(state.requests)
        bundled = BUNDLED.get(state.requests)
        named = uploaded if bundled is None else bundled.title
        return from_trace(trace, named, priced_model(state, table), table, state)


def _keep(kept: OrderedDict[str, T], key: str, value: T, lock: threading.Lock) -> None:
    """Keep an upload, and drop the oldest ones."""
    with lock:
        kept[key] = value
        kept.move_to_end(key)
        uploads = [name for name in kept if name not in PRICE_TABLES]
        for name in uploads[:-KEPT_UPLOADS]:
            del kept[name]


@st.cache_resource(show_spinner=False)
def budget_desk() -> BudgetDesk:
    """Return what all viewers share."""
    return BudgetDesk()


def _of_replay(state: BudgetState) -> BudgetState:
    """Return a state with only what a replay depends on: what else is chosen does not make another."""
    plain = BudgetState()
    reserve = plain.reserve_tokens if state.reserve_tokens in DEFAULT_RESERVES else state.reserve_tokens
    return state.changed(alike=plain.alike, inputs=plain.inputs, reserve_tokens=reserve)


@st.cache_resource(max_entries=KEPT_INPUTS, show_spinner=False)
def _prepared(state: BudgetState) -> Prepared:
    bench = budget_desk()
    table = bench.table(state.prices)
    requests = bench.requests(state, table)
    return Prepared(requests=requests, table=table, limit=limit_of(requests.frame, table, state))


def prepared(state: BudgetState) -> Prepared:
    """Return what a state names, before anything is replayed.

    Raises
    ------
    InputError
        The requests, the prices or the limit cannot be used.
    """
    return _prepared(_of_replay(state))


def run_of(state: BudgetState) -> BudgetReplay:
    """Return a replay with its whole run: a row for each request and setting."""
    given = prepared(state)
    reserves = sorted({*DEFAULT_RESERVES, state.reserve_tokens})
    return replay_budget(
        given.requests.frame,
        given.table,
        given.limit,
        reserves=reserves,
        window=state.window,  # type: ignore[arg-type]
        zone=state.zone,
    )


@st.cache_resource(max_entries=KEPT_REPLAYS, show_spinner=SPINNER)
def _replayed(state: BudgetState) -> Replayed:
    given, made = prepared(state), run_of(state)
    moments = budget_moments(made.run)
    return Replayed(requests=given.requests, table=given.table, replay=replace(made, run=made.run.clear()), moments=moments)


def replayed(state: BudgetState) -> Replayed:
    """Return what comes of the replay that a state names, made once for all viewers.

    Raises
    ------
    InputError
        The requests, the prices or the limit cannot be used, or their money together is too much.
    ConfigError
        The window or the zone is none.
    """
    return _replayed(_of_replay(state))
