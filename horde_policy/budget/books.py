"""The moves of money inside one write transaction: hold, end, expire, raise; each changes rows, counters and entries together."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from horde_policy.budget.holding import Hold, Settlement, hold_of_row
from horde_policy.budget.money import MAX_PICO, money_column
from horde_policy.budget.prices import Price
from horde_policy.budget.refusal import Refusal, WindowState, refusal_of
from horde_policy.budget.reservation import Reservation
from horde_policy.budget.settlement import HoldState, Outcome, label_of
from horde_policy.budget.statements import Statements
from horde_policy.budget.store import Session
from horde_policy.budget.usage import TokenUsage
from horde_policy.budget.windows import Window, WindowKind, instant_of, microseconds, window_at
from horde_policy.errors import InputError, StoreError

__all__ = ["Books", "Conflict", "NewHold", "OpenWindow"]

NO_CAP = MAX_PICO
NO_ROOM = -1

Labels = Sequence[tuple[str, int, int]]
"""What a move of money changes by label: requests and pico-dollars, taken off or added."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Why a move was refused although the store works: the ledger has other figures."""

    rule: str


@dataclass(frozen=True, slots=True)
class OpenWindow:
    """A window that an admission must pass, with its limit."""

    window_id: int
    budget: str
    window: Window
    limit_pico: int
    open_cap: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewHold:
    """What an admission asks for."""

    budgets: tuple[str, ...]
    reservation: Reservation
    request_id: str
    attempt: int
    owner: str
    model: str
    expiry_us: int


class Books:
    """Moves money; remembers what cannot change: the ids of windows and the rows of prices."""

    def __init__(self, *, is_sqlite: bool) -> None:
        self.do = Statements(is_sqlite=is_sqlite)
        self._is_sqlite = is_sqlite
        self._window_ids: dict[tuple[int, int], int] = {}
        self._current: dict[tuple[str, str], Window] = {}
        self._prices: dict[str, Price] = {}

    # -- windows -----------------------------------------------------------------------------------------------------

    def open_windows(self, session: Session, budget: str, now_us: int) -> list[OpenWindow]:
        """Return the windows of a budget that are open now, made where they are not there yet; locks its limits."""
        rows = session.rows(self.do.limits, p_budget=budget)
        if not rows:
            raise InputError("budget", "", budget, "is not in the ledger", hint="set_budget makes it")
        found = []
        for limit_id, kind, zone, limit_pico, open_cap, latest_start_us in rows:
            window = self._window(kind, zone, now_us, latest_start_us)
            window_id = self.window_id(session, limit_id, window, latest_start_us)
            found.append(OpenWindow(window_id, budget, window, limit_pico, open_cap))
        return found

    def _window(self, kind: WindowKind, zone: str, now_us: int, latest_start_us: int | None) -> Window:
        """Return the window of an instant, never one before the latest that was used: a clock may step back."""
        at = instant_of(max(now_us, latest_start_us or 0))
        window = self._current.get((kind, zone))
        if window is None or not window.holds(at):
            window = self._current[(kind, zone)] = window_at(kind, zone, at)
        return window

    def window_id(self, session: Session, limit_id: int, window: Window, latest_start_us: int | None) -> int:
        """Return the id of a limit's window, made with zeros only where no row of it is there."""
        start_us = microseconds(window.start)
        known = self._window_ids.get((limit_id, start_us))
        if known is not None and latest_start_us == start_us:
            return known
        end_us = None if window.end is None else microseconds(window.end)
        session.rows(self.do.new_window, p_limit_id=limit_id, p_start=start_us, p_end=end_us)
        if latest_start_us is None or latest_start_us < start_us:
            session.rows(self.do.latest_start, p_limit_id=limit_id, p_start=start_us)
        window_id = int(session.rows(self.do.window, p_limit_id=limit_id, p_start=start_us)[0][0])
        session.after_commit(lambda: self._window_ids.__setitem__((limit_id, start_us), window_id))
        return window_id

    # -- admission ---------------------------------------------------------------------------------------------------

    def admit(self, session: Session, new: NewHold) -> Hold | Refusal | Conflict | None:
        """Hold the money of a request in every window, or leave no trace; null: room was made meanwhile, ask again."""
        now_us = session.now_us()
        windows = [window for budget in new.budgets for window in self.open_windows(session, budget, now_us)]
        windows.sort(key=lambda window: window.window_id)
        for price in new.reservation.prices:
            self.store_price(session, price)
        expires_us = now_us + new.expiry_us
        ids = session.rows(self.do.new_hold, **_new_hold_values(new, now_us, expires_us))
        if not ids:
            session.undo()
            return self._admitted_before(session, new)
        hold_id = ids[0][0]
        hold_pico = new.reservation.hold_pico
        for passed, window in enumerate(windows):
            if not self.reserve(session, window, hold_id, "admit", new.reservation, hold_pico, now_us):
                session.undo()
                return self.refuse(session, windows, passed, new.reservation, hold_pico, now_us)
        return Hold(
            hold_id=hold_id,
            request_id=new.request_id,
            attempt=new.attempt,
            owner=new.owner,
            model=new.model,
            reservation=new.reservation,
            created=instant_of(now_us),
            expires=instant_of(expires_us),
            budgets=tuple(window.budget for window in windows),
            windows=tuple(window.window for window in windows),
        )

    def reserve(
        self, session: Session, window: OpenWindow, hold_id: int, what: str, reservation: Reservation, more_pico: int, now_us: int
    ) -> bool:
        """Move a window's held money up if it fits under the limit (B4); return whether it did."""
        free = reservation.is_free
        room = NO_CAP if free else NO_ROOM if window.limit_pico == 0 else window.limit_pico - more_pico
        opens = what == "admit"
        cap = NO_CAP if window.open_cap is None or not opens else window.open_cap
        moved = session.rows(
            self.do.reserve, p_window_id=window.window_id, p_room=room, p_cap=cap, p_held=more_pico, p_opened=int(opens)
        )
        if moved:
            self._entry(session, window.window_id, moved[0][0], hold_id, what, more_pico, 0, now_us)
        return bool(moved)

    def refuse(
        self, session: Session, windows: Sequence[OpenWindow], passed: int, reservation: Reservation, more_pico: int, now_us: int
    ) -> Refusal | None:
        """Return the refusal by the windows as they stand; the first ``passed`` have the new money in them, to be undone.

        Null where they would admit it by now: PostgreSQL lets another copy settle between the check and this look.
        """
        states = []
        for index, window in enumerate(windows):
            spent, held, open_count = session.rows(self.do.window_state, p_window_id=window.window_id)[0]
            mine = index < passed
            states.append(
                WindowState(
                    budget=window.budget,
                    window=window.window,
                    limit_pico=window.limit_pico,
                    spent_pico=spent,
                    held_pico=held - more_pico if mine else held,
                    open_count=open_count - 1 if mine else open_count,
                    open_cap=window.open_cap,
                )
            )
        return refusal_of(reservation, states, instant_of(now_us), more_pico=more_pico)

    def _admitted_before(self, session: Session, new: NewHold) -> Hold | Conflict:
        """Return the hold of an attempt that is there already, if it is the same and open; in the windows that admitted it."""
        found = self.hold(session, new.request_id, new.attempt)
        if found is None:  # it went between two statements: only a hand in the database can do that
            raise StoreError("ledger", f"request {new.request_id}: its row cannot be read")
        if found.state != "open":
            return Conflict(f"has ended as {found.state}: a retry is another attempt")
        if found.hold_pico != new.reservation.hold_pico:
            return Conflict("is open with other money: a retry is another attempt")
        held = self._held_windows(session, found.hold_id)
        if {window.budget for window in held} != set(new.budgets):
            return Conflict("is open in other budgets: a retry is another attempt")
        return replace(found, budgets=tuple(window.budget for window in held), windows=tuple(window.window for window in held))

    # -- the end of a hold -------------------------------------------------------------------------------------------

    def settle(
        self, session: Session, known: Hold, outcome: Callable[[Reservation], Outcome], billed: Price | None
    ) -> Settlement | Conflict:
        """End a hold, or find that it has ended; the money moves once."""
        now_us, first = session.now_us(), outcome(known.reservation)
        if billed is not None:
            self.store_price(session, billed)
        values = _ended_values(first, first.state, now_us)
        key = {"p_request_id": known.request_id, "p_attempt": known.attempt}
        ids = session.rows(self.do.end_open, **key, p_hold=known.hold_pico, **values)
        if ids:
            self._end(session, ids[0][0], first, known.hold_pico, now_us)
            return _settlement(known, first.state, first)
        found = self.hold(session, known.request_id, known.attempt)
        if found is None:
            raise InputError("ledger", f"request {known.request_id}", known.attempt, "is an attempt that is not in the ledger")
        again = outcome(found.reservation)  # the hold may have been raised since the caller saw it
        if found.state == "open":
            session.rows(self.do.end, p_hold_id=found.hold_id, **_ended_values(again, again.state, now_us))
            self._end(session, found.hold_id, again, found.hold_pico, now_us)
            return _settlement(found, again.state, again)
        return self._settle_ended(session, found, again, now_us)

    def _end(self, session: Session, hold_id: int, outcome: Outcome, hold_pico: int, now_us: int) -> None:
        what = {"settled": "settle", "kept": "keep", "released": "release"}[outcome.state]
        label = label_of(outcome.state, outcome.flags)
        self.move(session, hold_id, what, -hold_pico, outcome.cost_pico, -1, now_us, ((label, 1, outcome.cost_pico),))

    def _settle_ended(self, session: Session, found: Hold, outcome: Outcome, now_us: int) -> Settlement | Conflict:
        """Settle a hold that is not open: late usage replaces what was counted, the same figures change nothing."""
        counted = found.cost_pico or 0
        by_hand = found.state == "released" and "by_hand" in found.flags
        if outcome.state == "settled" and (found.state == "expired" or by_hand):
            late = replace(outcome, flags=tuple(dict.fromkeys((*found.flags, *outcome.flags))))
            session.rows(self.do.end, p_hold_id=found.hold_id, **_ended_values(late, "late", now_us))
            labels = ((found.state, -1, -counted), ("late", 1, late.cost_pico))
            self.move(session, found.hold_id, "late", 0, late.cost_pico - counted, 0, now_us, labels)
            return _settlement(found, "late", late)
        if found.state == "expired" and outcome.state == "released":
            session.rows(self.do.end, p_hold_id=found.hold_id, **_ended_values(outcome, "released", now_us))
            self.move(session, found.hold_id, "release", 0, -counted, 0, now_us, _given_back(counted))
            return _settlement(found, "released", outcome)
        if _same_end(found, outcome):
            return replace(_settlement(found, found.state, outcome), cost_pico=counted, again=True)
        refused = {"state": outcome.state, "cost_pico": outcome.cost_pico, "flags": list(outcome.flags)}
        session.rows(self.do.dispute, p_hold_id=found.hold_id, p_now=now_us, p_refused=json.dumps(refused))
        there, told = money_column([counted, outcome.cost_pico])
        return Conflict(f"has ended as {found.state} with {there}, not as {outcome.state} with {told}")

    def release_by_hand(self, session: Session, request_id: str, attempt: int) -> Settlement | Conflict:
        """Give back the money of an expired hold."""
        found = self.hold(session, request_id, attempt)
        if found is None or found.state != "expired":
            return Conflict("cannot be released by hand: only an expired hold can")
        now_us = session.now_us()
        outcome = Outcome(state="released", cost_pico=0, flags=tuple(dict.fromkeys((*found.flags, "by_hand"))))
        session.rows(self.do.end, p_hold_id=found.hold_id, **_ended_values(outcome, "released", now_us))
        counted = found.cost_pico or 0
        self.move(session, found.hold_id, "release", 0, -counted, 0, now_us, _given_back(counted))
        return _settlement(found, "released", outcome)

    def expire(self, session: Session, request_id: str, attempt: int) -> Hold | None:
        """Count the money of an orphan as spent; null if it has ended or was renewed meanwhile."""
        found, now_us = self.hold(session, request_id, attempt), session.now_us()
        if found is None or found.state != "open" or microseconds(found.expires) > now_us:
            return None
        kept = Outcome(state="kept", cost_pico=found.hold_pico, flags=found.flags)
        session.rows(self.do.end, p_hold_id=found.hold_id, **_ended_values(kept, "expired", now_us))
        labels = (("expired", 1, found.hold_pico),)
        self.move(session, found.hold_id, "expire", -found.hold_pico, found.hold_pico, -1, now_us, labels)
        return replace(found, state="expired", cost_pico=found.hold_pico, ended=instant_of(now_us))

    def raise_hold(self, session: Session, known: Hold, reservation: Reservation) -> Hold | Refusal | Conflict | None:
        """Hold more for an open request, in every window it is in, or leave no trace; null as for :meth:`admit`."""
        windows = self._held_windows(session, known.hold_id)
        found, now_us = self.hold(session, known.request_id, known.attempt), session.now_us()
        if found is None or found.state != "open":
            return Conflict("cannot hold more: it is not open")
        more_pico = reservation.hold_pico - found.hold_pico
        if more_pico < 0:
            return Conflict(f"holds {money_column([found.hold_pico])[0]} already: a hold never shrinks")
        for price in reservation.prices:
            self.store_price(session, price)
        session.rows(
            self.do.grow,
            p_hold_id=found.hold_id,
            p_price_ids=_price_ids(reservation),
            p_reserved_tokens=reservation.reserved_tokens,
            p_hold=reservation.hold_pico,
            p_input=reservation.input_pico,
        )
        for passed, window in enumerate(windows):
            if not self.reserve(session, window, found.hold_id, "raise", reservation, more_pico, now_us):
                session.undo()
                return self.refuse(session, windows, passed, reservation, more_pico, now_us)
        return replace(known, reservation=reservation, expires=found.expires)

    # -- rows --------------------------------------------------------------------------------------------------------

    def move(
        self,
        session: Session,
        hold_id: int,
        what: str,
        held_pico: int,
        spent_pico: int,
        opened: int,
        now_us: int,
        labels: Labels,
    ) -> None:
        """Move money in every window that a hold is in, and write it down."""
        counters = _counters(held_pico, spent_pico, opened, labels)
        if self._is_sqlite:
            moved = session.rows(self.do.move_all, p_hold_id=hold_id, **counters)
        else:
            in_order = self.windows_of(session, hold_id)
            moved = [session.rows(self.do.move, p_window_id=window_id, **counters)[0] for window_id in in_order]
        self._write_down(session, moved, hold_id, what, held_pico, spent_pico, now_us, labels)

    def move_in(
        self,
        session: Session,
        window_id: int,
        hold_id: int,
        what: str,
        held: int,
        spent: int,
        opened: int,
        now_us: int,
        labels: Labels,
    ) -> None:
        """Move money in one window, count it by label, and write it down."""
        moved = session.rows(self.do.move, p_window_id=window_id, **_counters(held, spent, opened, labels))
        self._write_down(session, moved, hold_id, what, held, spent, now_us, labels)

    def _write_down(
        self,
        session: Session,
        moved: Sequence[tuple[int, int]],
        hold_id: int,
        what: str,
        held: int,
        spent: int,
        now_us: int,
        labels: Labels,
    ) -> None:
        """Count a move by label and enter it, in every window whose counters it moved: (id, number of the move) each."""
        for window_id, number in moved:
            for label, requests, pico in labels:
                if label != "settled":
                    session.rows(self.do.count_label, p_window_id=window_id, p_label=label, p_requests=requests, p_pico=pico)
            self._entry(session, window_id, number, hold_id, what, held, spent, now_us)

    def windows_of(self, session: Session, hold_id: int) -> list[int]:
        """Return the windows that a hold is in, in the order in which all transactions lock them."""
        return [row[0] for row in session.rows(self.do.hold_windows, p_hold_id=hold_id)]

    def hold(self, session: Session, request_id: str, attempt: int) -> Hold | None:
        """Return a hold by its key, locked until the transaction ends; null if it is not there."""
        rows = session.rows(self.do.hold, p_request_id=request_id, p_attempt=attempt)
        if not rows:
            return None
        return hold_of_row(rows[0], _Prices(lambda price_id: self._price(session, price_id)))

    def store_price(self, session: Session, price: Price) -> None:
        """Keep a price row beside the holds that name it."""
        if price.price_id not in self._prices:
            session.rows(self.do.new_price, p_price_id=price.price_id, p_price=price.to_text())
            session.after_commit(lambda: self._prices.__setitem__(price.price_id, price))

    def _price(self, session: Session, price_id: str) -> Price:
        known = self._prices.get(price_id)
        if known is None:
            text = session.rows(self.do.price, p_price_id=price_id)[0][0]
            known = self._prices[price_id] = Price.from_text(text)
        return known

    def _held_windows(self, session: Session, hold_id: int) -> list[OpenWindow]:
        rows = session.rows(self.do.window_limits, p_hold_id=hold_id)
        found = []
        for window_id, budget, kind, zone, limit_pico, open_cap, active, start_us, end_us in rows:
            window = Window(kind, zone, instant_of(start_us), None if end_us is None else instant_of(end_us))
            # A limit that was taken off the budget still counts what it knows, and stops nothing.
            found.append(OpenWindow(window_id, budget, window, limit_pico if active else NO_CAP, open_cap))
        return found

    def _entry(
        self, session: Session, window_id: int, move: int, hold_id: int, what: str, held: int, spent: int, now_us: int
    ) -> None:
        session.rows(
            self.do.new_entry,
            p_window_id=window_id,
            p_move=move,
            p_hold_id=hold_id,
            p_what=what,
            p_held=held,
            p_spent=spent,
            p_now=now_us,
        )


class _Prices(dict[str, Price]):
    """Price rows by id, read when they are asked for."""

    def __init__(self, read: Callable[[str], Price]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, price_id: str) -> Price:
        return self._read(price_id)


def _price_ids(reservation: Reservation) -> str:
    return "\n".join(price.price_id for price in reservation.prices)


def _new_hold_values(new: NewHold, now_us: int, expires_us: int) -> dict[str, Any]:
    reservation = new.reservation
    return {
        "p_request_id": new.request_id,
        "p_attempt": new.attempt,
        "p_owner": new.owner,
        "p_model": new.model,
        "p_state": "open",
        "p_price_ids": _price_ids(reservation),
        "p_body_bytes": reservation.body_bytes,
        "p_input_estimate_tokens": reservation.input_estimate_tokens,
        "p_limit_tokens": reservation.limit_tokens,
        "p_reserved_tokens": reservation.reserved_tokens,
        "p_choices": reservation.choices,
        "p_cache": reservation.cache,
        "p_hold_pico": reservation.hold_pico,
        "p_input_pico": reservation.input_pico,
        "p_created_us": now_us,
        "p_expires_us": expires_us,
        "p_flags": "",
    }


def _ended_values(outcome: Outcome, state: HoldState, now_us: int) -> dict[str, Any]:
    usage = outcome.usage
    return {
        "p_state": state,
        "p_cost": outcome.cost_pico,
        "p_now": now_us,
        "p_price_id": outcome.price_id,
        "p_flags": ",".join(outcome.flags),
        "p_fresh": usage and usage.fresh,
        "p_read": usage and usage.cache_read,
        "p_write_5m": usage and usage.write_5m,
        "p_write_1h": usage and usage.write_1h,
        "p_output": usage and usage.output,
        "p_reasoning": usage and usage.reasoning,
    }


def _counters(held_pico: int, spent_pico: int, opened: int, labels: Labels) -> dict[str, int]:
    settled = sum(requests for label, requests, _ in labels if label == "settled")
    return {"p_held": held_pico, "p_spent": spent_pico, "p_opened": opened, "p_settled": settled}


def _given_back(counted_pico: int) -> Labels:
    return (("expired", -1, -counted_pico), ("released", 1, 0))


def _settlement(hold: Hold, state: HoldState, outcome: Outcome) -> Settlement:
    return Settlement(
        request_id=hold.request_id,
        attempt=hold.attempt,
        state=state,
        hold_pico=hold.hold_pico,
        cost_pico=outcome.cost_pico,
        flags=outcome.flags,
    )


def _same_end(found: Hold, outcome: Outcome) -> bool:
    """Return whether a hold that has ended says the same as a new settlement of it."""
    if found.state == "expired":  # its owner is back and knows no more than that
        return outcome.state == "kept" and outcome.usage is None
    states = {"settled": ("settled", "late"), "kept": ("kept",), "released": ("released",)}[outcome.state]
    return found.state in states and found.cost_pico == outcome.cost_pico and _classes(found.usage) == _classes(outcome.usage)


def _classes(usage: TokenUsage | None) -> tuple[int, ...] | None:
    if usage is None:
        return None
    return usage.fresh, usage.cache_read, usage.write_5m, usage.write_1h, usage.output, usage.reasoning
