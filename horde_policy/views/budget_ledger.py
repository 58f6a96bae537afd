"""A ledger as people read it: what is spent and held in each window, who holds what and how long, how far it can go over."""

from collections.abc import Sequence
from typing import Any, Final

from horde_policy.budget.audit import LABELS, Audit, LedgerLook, WindowStatus
from horde_policy.budget.bound import InputAssumption, worst_case
from horde_policy.budget.holding import Hold
from horde_policy.budget.money import money_text
from horde_policy.budget.reservation import Reservation
from horde_policy.views.grid import Column, Row, name_cell
from horde_policy.views.text import age, count, instant, visible

__all__ = [
    "HOLD_COLUMNS",
    "MOST_HOLDS_SHOWN",
    "WINDOW_COLUMNS",
    "audit_sentence",
    "hold_rows",
    "look_sentence",
    "window_rows",
]

MOST_HOLDS_SHOWN: Final = 200

WINDOW_COLUMNS: Final = (
    Column(key="budget", label="Budget", kind="name"),
    Column(key="limit", label="Limit", right=True),
    Column(key="spent", label="Spent", right=True, help="Recorded by now: real costs, and what was kept without usage."),
    Column(key="held", label="Held", right=True, help="By requests that are open: money comes back when their cost is less."),
    Column(key="left", label="Left", right=True, help="Limit less spent less held: what a new hold must fit into."),
    Column(key="open", label="Open", right=True),
    Column(
        key="worst",
        label="At worst beyond the holds",
        wrap=True,
        wide=True,
        help="What the requests whose cost is not written can cost beyond their holds, and how far over the limit that would be.",
    ),
    Column(
        key="labels",
        label="Spent by label",
        wrap=True,
        wide=True,
        help="Real usage; kept without usage; of orphans; late; no price.",
    ),
)

HOLD_COLUMNS: Final = (
    Column(key="request", label="Request", kind="name"),
    Column(key="budgets", label="Budgets"),
    Column(key="owner", label="Held by", help="The copy of the program that renews the hold."),
    Column(key="model", label="Model"),
    Column(key="age", label="Since", right=True),
    Column(key="held", label="Held", right=True),
    Column(
        key="limit",
        label="Output limit",
        right=True,
        help="Where a request states none, the ceiling that its model's price declares (max_output_tokens) bounds it; without "
        "one it is unbounded.",
    ),
    Column(key="worst", label="At worst beyond", right=True, help="What this request alone can cost beyond its hold."),
)

KINDS: Final = {"total": "in all", "month": "this month", "week": "this week", "day": "today"}


def look_sentence(look: LedgerLook) -> str:
    """Return the ledger in one sentence: open with their oldest, unbounded, and apart from them what expired.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> look_sentence(LedgerLook(at=datetime(2026, 11, 30, tzinfo=UTC), budgets=(), holds=()))
    'No request is open'
    """
    if not look.holds:
        return "No request is open"
    still = [hold for hold in look.holds if hold.state == "open"]
    expired = [hold for hold in look.holds if hold.state == "expired"]
    unbounded = sum(hold.reservation.ceiling_tokens is None for hold in still)
    oldest = f", the oldest for {_since(look, still[0])}" if still else ""
    parts = [f"{count(len(still))} open{oldest}; {money_text(sum(hold.hold_pico for hold in still))} held"]
    if unbounded:
        parts.append(f"{count(unbounded)} of them unbounded")
    if expired:
        which = "" if len(expired) == 1 else "the oldest "
        parts.append(f"{count(len(expired))} expired whose cost may still come, {which}opened {_since(look, expired[0])} ago")
    return "; ".join(parts)


def _since(look: LedgerLook, hold: Hold) -> str:
    return age((look.at - hold.created).total_seconds())


def window_rows(look: LedgerLook) -> list[Row]:
    """Return every running window of every budget, by name."""
    rows = []
    for budget in look.budgets:
        for status in budget.windows:
            s = status.state
            until = "" if s.window.end is None else f", until {instant(s.window.end)}"
            cells: dict[str, Any] = {
                "budget": name_cell(budget.name, sub=f"{KINDS[s.window.kind]}{until}"),
                "limit": money_text(s.limit_pico),
                "spent": money_text(s.spent_pico),
                "held": money_text(s.held_pico),
                "left": money_text(s.left_pico),
                "open": _open(status),
                "worst": _worst(status),
                "labels": {"text": _labels(status)},
            }
            rows.append(Row(id=f"{budget.name}\n{s.window.kind}\n{s.window.zone}", cells=cells))
    return rows


def _open(status: WindowStatus) -> str | dict[str, str]:
    """Return how many are open, of how many that may be; expired ones beside them, since they are in the worst case too."""
    text = count(status.state.open_count) + ("" if status.state.open_cap is None else f" of {count(status.state.open_cap)}")
    expired = status.worst.open - status.state.open_count
    if expired <= 0:
        return text
    return {"text": text, "sub": f"and {count(expired)} expired: {count(status.worst.open)} unwritten"}


def _worst(status: WindowStatus) -> dict[str, str]:
    """Return the worst case of what is unwritten, and how far over the limit it reaches where it has a bound."""
    worst = status.worst
    if not worst.open:
        return {"text": "nothing open"}
    expired = worst.open - status.state.open_count
    text = worst.text()
    if expired > 0:
        text += f", the {count(expired)} expired included"
    if not worst.bounded:
        return {"text": text}
    over = max(0, worst.stated_pico - status.state.left_pico)
    return {"text": text, "sub": f"at worst {money_text(over)} over the limit" if over else "not over the limit"}


def _labels(status: WindowStatus) -> str:
    parts = [f"{label} {money_text(x.pico)} ({count(x.requests)})" for label in LABELS if (x := status.labels[label]).requests]
    return ", ".join(parts) or "nothing recorded"


def hold_rows(look: LedgerLook, inputs: InputAssumption) -> list[Row]:
    """Return the requests whose cost is not written yet, the oldest first, at most :data:`MOST_HOLDS_SHOWN`."""
    return [_hold_row(look, hold, inputs) for hold in look.holds[:MOST_HOLDS_SHOWN]]


def _hold_row(look: LedgerLook, hold: Hold, inputs: InputAssumption) -> Row:
    r = hold.reservation
    worst = worst_case([r], inputs=inputs)
    beyond = "unbounded" if worst.unbounded else money_text(worst.stated_pico) + (" + input" if worst.input_unbounded else "")
    attempt = f", attempt {hold.attempt}" if hold.attempt > 1 else ""
    cells: dict[str, Any] = {
        "request": name_cell(
            hold.request_id, sub="expired, its money counts as spent" if hold.state == "expired" else attempt[2:]
        ),
        "budgets": visible(", ".join(dict.fromkeys(hold.budgets))),
        "owner": visible(hold.owner),
        "model": visible(hold.model),
        "age": age((look.at - hold.created).total_seconds()),
        "held": money_text(hold.hold_pico),
        "limit": _limit(r),
        "worst": beyond,
    }
    return Row(id=f"{hold.request_id}\n{hold.attempt}", cells=cells, out=hold.state == "expired")


def _limit(r: Reservation) -> str | dict[str, str]:
    """Return what the request states, and where it states nothing what bounds it all the same: its model's declared ceiling."""
    times = "" if r.choices == 1 else f"{count(r.choices)} × "
    if r.limit_tokens is not None:
        return f"{times}{count(r.limit_tokens)}"
    bounded = "no ceiling declared" if r.ceiling_tokens is None else f"ceiling {times}{count(r.ceiling_tokens)}"
    return {"text": "none", "sub": bounded}


def audit_sentence(audit: Audit) -> str:
    """Return whether a ledger's counters equal its rows, in one sentence."""
    if audit.agrees:
        windows = f"{count(len(audit.windows))} window{'s' if len(audit.windows) != 1 else ''}"
        text = f"The counters of {windows} equal their rows"
    else:
        wrong = sorted({window.budget for window in audit.windows if not window.agrees})
        text = f"The counters differ from their rows in {_listed(wrong)}: rebuild the ledger"
    if audit.disputes:
        text += f"; {count(audit.disputes)} settlements were refused, since other figures were there first"
    return text


def _listed(names: Sequence[str]) -> str:
    return ", ".join(visible(name) for name in names)
