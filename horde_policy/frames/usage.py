"""The frames of budgets: priced requests going in, what a budget did with each, and a ledger's holds and windows (B1–B13).

Money is whole pico-dollars (10⁻¹² dollar) in Int64: no binary float, and up to 9.2 million dollars.
"""

import polars as pl

from horde_policy.frames.schemas import UTC_INSTANT, Column, Schema

__all__ = ["BUDGET_MOMENTS", "BUDGET_REQUESTS", "BUDGET_RUN", "BUDGET_SUMMARY", "LEDGER_HOLDS", "LEDGER_WINDOWS"]

PICO = "pico-dollar"

BUDGET_REQUESTS = Schema(
    "budget_requests",
    {
        "created": Column(UTC_INSTANT),
        "model": Column(pl.String, text="as in the price table; hostile text"),
        "body_bytes": Column(pl.Int64, "bytes", null="not recorded: the input estimate is then the real input"),
        "input_tokens": Column(pl.Int64, "tokens", null="not recorded: the real input is then the estimate", text="all classes"),
        "max_tokens": Column(pl.Int64, "tokens", null="the request had no output limit (B8)"),
        "output_tokens": Column(pl.Int64, "tokens", text="over all n outputs, reasoning once"),
        "duration_s": Column(pl.Float64, "s", text="from admission until the real cost is written"),
        "n": Column(pl.Int64, "outputs"),
        "cache_read_tokens": Column(pl.Int64, "tokens", text="inside input_tokens"),
        "cache_write_5m_tokens": Column(pl.Int64, "tokens", text="inside input_tokens"),
        "cache_write_1h_tokens": Column(pl.Int64, "tokens", text="inside input_tokens"),
    },
    sort=("created",),
)
"""One row a request, by time of arrival; one of ``body_bytes`` and ``input_tokens`` is there."""

BUDGET_RUN = Schema(
    "budget_run",
    {
        "setting": Column(pl.String, text="reserve=…, full (B11), input (B12) or stop (B13)"),
        "row": Column(pl.Int64, text="position of the request in the sorted input"),
        "created": Column(UTC_INSTANT),
        "window_start": Column(UTC_INSTANT, text="the budget's window that the request belongs to"),
        "outcome": Column(pl.String, text="settled, cut, refused_early, refused_at_limit or refused_unpriced"),
        "hold_pico": Column(pl.Int64, PICO, text="what it held, or would have held"),
        "cost_pico": Column(pl.Int64, PICO, null="refused", text="its real cost; for cut what it had cost when it was stopped"),
        "spent_pico": Column(pl.Int64, PICO, text="settled in its window at its arrival, after what ended by then"),
        "held_pico": Column(pl.Int64, PICO, text="held by open requests of its window, this one included if admitted"),
        "open": Column(pl.Int64, "requests", text="open in its window, this one included if admitted"),
        "unbounded_open": Column(pl.Int64, "requests", text="of them without an output limit or a declared ceiling (B8)"),
        "bound_pico": Column(pl.Int64, PICO, text="stated worst case of the others that are open, after the fact (B7)"),
        "tight_pico": Column(pl.Int64, PICO, text="tight worst case of the others that are open, after the fact"),
    },
    sort=("setting", "row"),
)
"""One row a request and setting: the decision, and the state of its window just after it."""

BUDGET_SUMMARY = Schema(
    "budget_summary",
    {
        "setting": Column(pl.String),
        "reserve_tokens": Column(pl.Int64, "tokens", null="an alternative without reservation.output_tokens"),
        "is_default": Column(pl.Boolean, text="reservation.output_tokens = 4096 (B3)"),
        "requests": Column(pl.Int64, "requests"),
        "admitted": Column(pl.Int64, "requests"),
        "refused_early": Column(pl.Int64, "requests", text="the money was only held: it fits what was settled by then"),
        "refused_at_limit": Column(pl.Int64, "requests", text="the money was spent, or the hold is above the limit"),
        "refused_unpriced": Column(pl.Int64, "requests", text="no price: not taken as free"),
        "cut": Column(pl.Int64, "requests", text="streams stopped at the limit (B13)"),
        "first_refusal_spent_ratio": Column(pl.Float64, "of the limit", null="none refused", text="settled at the first refusal"),
        "settled_pico": Column(pl.Int64, PICO, text="over all windows"),
        "utilisation_ratio": Column(pl.Float64, "of the limit", text="settled over the limits of the windows with requests"),
        "overspend_pico": Column(pl.Int64, PICO, text="largest over the windows: settled in the end beyond the limit, or 0"),
        "bound_at_overspend_pico": Column(
            pl.Int64, PICO, text="stated worst case of that window at the last admission that was checked"
        ),
        "worst_over_pico": Column(
            pl.Int64,
            PICO,
            text="largest at any admission: settled + held + stated worst case - limit, or 0; stop: what is left is held",
        ),
        "largest_bound_pico": Column(pl.Int64, PICO, text="largest stated worst case at any admission, however little was spent"),
        "unbounded": Column(pl.Int64, "requests", text="admitted without a bound on their output; none for stop (B13)"),
        "peak_open": Column(pl.Int64, "requests", text="most open at once in a window"),
    },
    sort=("setting",),
)
"""One row a setting: the trade-off between refusing early and spending too much."""

BUDGET_MOMENTS = Schema(
    "budget_moments",
    {
        "setting": Column(pl.String),
        "at": Column(UTC_INSTANT),
        "spent_pico": Column(pl.Int64, PICO),
        "held_pico": Column(pl.Int64, PICO),
        "open": Column(pl.Int64, "requests"),
        "unbounded_open": Column(pl.Int64, "requests"),
        "bound_pico": Column(pl.Int64, PICO),
    },
    sort=("setting", "at"),
)
"""Open holds and the bound over time, at so many moments: of each stretch the largest worst case and the largest bound."""

LEDGER_HOLDS = Schema(
    "ledger_holds",
    {
        "request_id": Column(pl.String, text="untrusted text"),
        "attempt": Column(pl.Int64),
        "budgets": Column(pl.List(pl.String), text="untrusted text"),
        "owner": Column(pl.String, text="the copy of the program that renews it"),
        "model": Column(pl.String, text="untrusted text"),
        "state": Column(pl.String, text="open, or expired: its real cost is not written yet"),
        "created": Column(UTC_INSTANT),
        "expires": Column(UTC_INSTANT),
        "age_s": Column(pl.Float64, "s"),
        "hold_pico": Column(pl.Int64, PICO),
        "max_tokens": Column(pl.Int64, "tokens", null="no output limit"),
        "reserved_tokens": Column(pl.Int64, "tokens", text="of each output"),
        "n": Column(pl.Int64, "outputs"),
        "bound_pico": Column(pl.Int64, PICO, null="unbounded", text="stated worst case of this request alone"),
    },
    sort=("created", "request_id", "attempt"),
)
"""Who holds what, how long, and how far it can go over."""

LEDGER_WINDOWS = Schema(
    "ledger_windows",
    {
        "budget": Column(pl.String, text="untrusted text"),
        "kind": Column(pl.String, text="day, week, month or total"),
        "zone": Column(pl.String),
        "start": Column(UTC_INSTANT),
        "end": Column(UTC_INSTANT, null="no end"),
        "limit_pico": Column(pl.Int64, PICO),
        "spent_pico": Column(pl.Int64, PICO),
        "held_pico": Column(pl.Int64, PICO),
        "left_pico": Column(pl.Int64, PICO, text="limit − spent − held; negative after an overspend or a lowered limit"),
        "open": Column(pl.Int64, "requests"),
        "open_cap": Column(pl.Int64, "requests", null="no cap"),
        "unbounded": Column(
            pl.Int64, "requests", text="of the open and expired ones, without an output limit or a declared ceiling"
        ),
        "bound_kind": Column(pl.String, text="certain, declared or measured input"),
        "bound_pico": Column(pl.Int64, PICO, text="stated worst case of those that have a bound"),
        "settled_pico": Column(pl.Int64, PICO),
        "estimated_pico": Column(pl.Int64, PICO, text="kept without usage"),
        "expired_pico": Column(pl.Int64, PICO, text="of orphans"),
        "late_pico": Column(pl.Int64, PICO, text="usage that came after expiry"),
        "unpriced_pico": Column(pl.Int64, PICO, text="kept, since the model that answered has no price"),
    },
    sort=("budget", "kind", "zone"),
)
"""One row a running window of a budget."""
