"""The ledger of hard budgets: admit a request by holding its money, settle it by its real cost (B1–B6, B9).

The check and the hold are one transaction, whatever the number of copies of the program, threads or machines on the store.
An end of a hold moves its money once, by (request id, attempt). After a crash of any process the holds of that process are
in the ledger, with their owner's name; not renewed they expire, their money stays counted, and a late cost replaces it.
"""

import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Self

from horde_policy.budget.audit import Audit, BudgetStatus, LedgerLook, audit_of, budget_status, holds_in, look_at, measured_excess
from horde_policy.budget.books import Books, Conflict, NewHold
from horde_policy.budget.bound import InputAssumption, WorstCase, worst_case
from horde_policy.budget.holding import Hold, Limit, Settlement, checked_name
from horde_policy.budget.money import decimal_of
from horde_policy.budget.price_table import PriceTable
from horde_policy.budget.prices import Price
from horde_policy.budget.refusal import Refusal
from horde_policy.budget.reservation import Reservation
from horde_policy.budget.settlement import Ending, EndingRules, Outcome, outcome_of
from horde_policy.budget.store import Session, Store
from horde_policy.budget.upkeep import Upkeep
from horde_policy.budget.usage import TokenUsage
from horde_policy.clock import Clock, SystemClock
from horde_policy.errors import ConfigError, ConflictError, InputError, MissingPriceError, StoreError

__all__ = ["Ledger"]

WHAT = "ledger"
EXPIRY_S = 3600.0
MAX_ATTEMPT = 10**6
MOST_TURNS = 1000
MAX_EXPIRY_S = 366 * 86_400


class Ledger:
    """Hard budgets on one store: SQLite by path or URL, or PostgreSQL by URL.

    Parameters
    ----------
    url
        ``ledger.db``, ``sqlite:///ledger.db`` or ``postgresql://user:password@host/database``.
    prices
        The current price table: settlements are charged at its row for the model that answered. Without it at the row
        that the hold is at.
    owner
        The name of this copy of the program; without it host, process id and four random bytes.
    expiry_s
        An open hold that its owner has not renewed for so long is an orphan. Must be longer than the longest request, or
        be renewed (:meth:`renew`).
    power_safe
        SQLite only: survive a power cut as well as a crash, at the price of a wait for the disk at each commit.
    patience_s
        How long a call may wait for the store before StoreError.
    rules
        What refusals and server errors without usage do to a hold.
    create
        Make the ledger if it is not there.
    clock
        Null for the store's own clock: one for all copies.

    Raises
    ------
    StoreError
        The store cannot be reached, or is no ledger of this version.

    Examples
    --------
    >>> import tempfile
    >>> from horde_policy.budget.body import read_request
    >>> from horde_policy.budget.prices import Rates
    >>> from horde_policy.budget.reservation import reserve_cost
    >>> rates = Rates(input=3 * 10**12, output=15 * 10**12, cache_read=0, cache_write_5m=0, cache_write_1h=0)
    >>> ask = read_request(b'{"model": "m", "messages": [], "max_tokens": 1000}')
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(Path(folder.name) / "ledger.db")
    >>> ledger.set_budget("team", Limit("month", "0.02"))
    >>> hold = ledger.admit("team", reserve_cost(ask, Price(provider="p", model="m", rates=rates)), request_id="a")
    >>> bool(hold), hold.hold_pico
    (True, 15039000000)
    >>> refusal = ledger.admit("team", reserve_cost(ask, Price(provider="p", model="m", rates=rates)), request_id="b")
    >>> refusal.obstacle, refusal.largest_limit_tokens
    ('held', 328)
    >>> ledger.settle(hold, TokenUsage(fresh=13, output=200)).cost_pico
    3039000000
    >>> ledger.close(); folder.cleanup()
    """

    def __init__(
        self,
        url: str | Path,
        *,
        prices: PriceTable | None = None,
        owner: str | None = None,
        expiry_s: float = EXPIRY_S,
        power_safe: bool = False,
        patience_s: float = 10.0,
        rules: EndingRules | None = None,
        create: bool = True,
        clock: Clock | None = None,
    ) -> None:
        self.owner = checked_name(owner or f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}", "owner")
        self.prices = prices
        self.rules = rules or EndingRules()
        self._expiry_us = _span_us(expiry_s)
        self.store = Store(url, power_safe=power_safe, patience_s=patience_s, create=create, clock=clock)
        self._books = Books(is_sqlite=self.store.is_sqlite)
        self._upkeep = Upkeep(self._books, is_sqlite=self.store.is_sqlite)
        self._clock = clock or SystemClock()

    @property
    def name(self) -> str:
        """Return the store's URL without its password."""
        return self.store.name

    def close(self) -> None:
        """Close every connection; open holds stay open."""
        self.store.close()

    def __enter__(self) -> Self:
        """Return the ledger itself; leaving the block closes it."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def set_budget(self, name: str, *limits: Limit) -> None:
        """Make a budget, or replace its limits; what is spent and held in a running window stays.

        A limit of a kind and zone that the budget did not have starts from what the ledger knows of that window.

        Raises
        ------
        InputError
            No limit, or two of one kind and zone.
        """
        checked = checked_name(name, "budget")
        if not limits or len({(limit.kind, limit.zone) for limit in limits}) != len(limits):
            raise InputError("budget", checked, len(limits), "limits: must be at least one, and one of a kind and zone")
        self.store.write(lambda session: self._upkeep.set_limits(session, checked, limits))

    def admit(
        self,
        budget: str | Sequence[str],
        reservation: Reservation,
        *,
        request_id: str,
        attempt: int = 1,
        model: str | None = None,
    ) -> Hold | Refusal:
        """Hold a request's money in every window of one or several budgets, or in none (B4).

        A second call for the same request and attempt with the same money gives the same hold: nothing is held twice.

        Parameters
        ----------
        budget
            The budget, or several that must all admit it.
        reservation
            From :func:`~horde_policy.budget.reservation.reserve_cost`.
        request_id, attempt
            The business key. A retry that may be billed apart is another attempt, with a hold of its own.
        model
            What the hold is listed under; the price row's model without.

        Raises
        ------
        InputError
            An unknown budget, or an id that cannot be kept.
        ConflictError
            The attempt is in the ledger with other money, or has ended.
        StoreError
            The budget store is not available: that is no refusal by budget.
        """
        names = (budget,) if isinstance(budget, str) else tuple(budget)
        names = tuple(sorted({checked_name(name, "budget") for name in names}))
        if not names:
            raise InputError("budget", "", budget, "must be at least one name")
        _check_key(request_id, attempt)
        new = NewHold(
            budgets=names,
            reservation=reservation,
            request_id=request_id,
            attempt=attempt,
            owner=self.owner,
            model=checked_name(model if model is not None else reservation.price.model, "model"),
            expiry_us=self._expiry_us,
        )
        answer = self._until_answered(lambda session: self._books.admit(session, new))
        if isinstance(answer, Conflict):
            raise _conflict(answer, request_id, attempt)
        return answer

    def settle(
        self,
        hold: Hold | tuple[str, int],
        usage: TokenUsage | None,
        *,
        ended: Ending = "answered",
        served: str | None = None,
        provider: str | None = None,
    ) -> Settlement:
        """Replace a hold by the real cost, or by what is kept without usage (B5, B6); once, whoever calls how often.

        Parameters
        ----------
        hold
            The hold, or its request id and attempt.
        usage
            What the provider reported; null for none.
        ended
            How the request ended.
        served, provider
            The model that answered, where it was another than the hold's, and its provider.

        Raises
        ------
        InputError
            The attempt is not in the ledger: money is not made out of nothing.
        ConflictError
            It ended before with other figures. The first is kept, the refused figures are logged in the ledger.
        """
        known = hold if isinstance(hold, Hold) else self.find(*hold)
        price, priced = self._billing_price(known, served, provider)

        def outcome(reservation: Reservation) -> Outcome:
            return outcome_of(reservation, usage, ended=ended, price=price, priced=priced, rules=self.rules)

        answer = self.store.write(lambda session: self._books.settle(session, known, outcome, price if priced else None))
        if isinstance(answer, Conflict):
            raise _conflict(answer, known.request_id, known.attempt)
        return answer

    def release(self, hold: Hold | tuple[str, int]) -> Settlement:
        """Give back the money of a request that was never sent; the same as settling it as such."""
        return self.settle(hold, None, ended="never_sent")

    def release_by_hand(self, request_id: str, attempt: int = 1) -> Settlement:
        """Give back the money of an expired hold after someone looked at it; a cost that still comes is added.

        Raises
        ------
        ConflictError
            The hold is in no state from which a person may release it.
        """
        self.find(request_id, attempt)
        answer = self.store.write(lambda session: self._books.release_by_hand(session, request_id, attempt))
        if isinstance(answer, Conflict):
            raise _conflict(answer, request_id, attempt)
        return answer

    def raise_hold(self, hold: Hold, reservation: Reservation) -> Hold | Refusal:
        """Hold more for an open request: before a fallback to a dearer target, or for more output of a stream (B13).

        Raises
        ------
        ConflictError
            The hold is not open, or the new money is less than what is held.
        """
        answer = self._until_answered(lambda session: self._books.raise_hold(session, hold, reservation))
        if isinstance(answer, Conflict):
            raise _conflict(answer, hold.request_id, hold.attempt)
        return answer

    def renew(self) -> None:
        """Say that this copy is alive: its open holds expire ``expiry_s`` from now."""
        self.store.write(
            lambda session: session.rows(self._books.do.renew, p_owner=self.owner, p_expires=session.now_us() + self._expiry_us)
        )

    @contextmanager
    def renewing(self, every_s: float | None = None) -> Iterator[None]:
        """Renew in the background while the block runs: every third of the expiry, or every so many seconds.

        A store that cannot be reached is tried again at the next turn; the expiry leaves time for two of them.
        """
        pause_s = self._expiry_us / 3e6 if every_s is None else every_s
        if not 0 < pause_s < float("inf"):
            raise ConfigError("every_s", every_s, "must be a finite number above 0")
        stop = threading.Event()

        def run() -> None:
            while not stop.wait(pause_s):
                with suppress(StoreError):
                    self.renew()

        thread = threading.Thread(target=run, name="ledger-renewal", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def reap(self) -> list[Hold]:
        """Expire the open holds that nobody renewed, and return them: each named, its money counted as spent.

        Call it at start-up and now and then. A hold that ends meanwhile is left alone.
        """
        expired: list[Hold] = []
        while True:
            overdue = self.store.write(lambda session: session.rows(self._books.do.overdue, p_now=session.now_us()))
            expired += [hold for request_id, attempt in overdue if (hold := self._expire(request_id, attempt)) is not None]
            if not overdue:
                return expired

    def rebuild(self) -> int:
        """Write the counters of every window anew from its rows; return how many were wrong."""
        return self.store.write(self._upkeep.rebuild)

    def find(self, request_id: str, attempt: int = 1) -> Hold:
        """Return the hold of a request's attempt as it stands, with its budgets and windows.

        Raises
        ------
        InputError
            It is not in the ledger.
        """
        _check_key(request_id, attempt)
        found = self.store.read(lambda connection: holds_in(connection, key=(request_id, attempt)))
        if not found:
            raise InputError(WHAT, f"request {request_id}", attempt, "is an attempt that is not in the ledger")
        return found[0]

    def open_holds(self, budget: str | None = None) -> list[Hold]:
        """Return every hold whose real cost is not written yet, the oldest first: the open ones and the expired ones.

        Raises
        ------
        InputError
            A budget that is not in the ledger; so too :meth:`worst_case` and :meth:`measured_excess`.
        """
        if budget is not None:
            checked_name(budget, "budget")
        return self.store.read(lambda connection: holds_in(connection, budget=budget, unwritten=True))

    def worst_case(self, budget: str | None = None, *, inputs: InputAssumption | None = None) -> WorstCase:
        """Return the worst overspend of what is open now (B7, B8): of one budget, or of all together."""
        return worst_case([hold.reservation for hold in self.open_holds(budget)], inputs=inputs)

    def measured_excess(self, share: str | Decimal = "0.95", *, budget: str | None = None) -> int | None:
        """Return the quantile of what real inputs cost beyond their estimate, in pico-dollars; null without settled rows."""
        if budget is not None:
            checked_name(budget, "budget")
        return self.store.read(lambda connection: measured_excess(connection, decimal_of(share, "quantile"), budget))

    def status(self, *, inputs: InputAssumption | None = None) -> list[BudgetStatus]:
        """Return every budget's running windows, with spent, held, left, open, worst case and labels."""
        return self.store.read(lambda connection: budget_status(connection, self.store.now(connection), inputs))

    def look(self, *, inputs: InputAssumption | None = None) -> LedgerLook:
        """Return the status and the requests whose cost is not written, read at one moment."""
        return self.store.read(lambda connection: look_at(connection, self.store.now(connection), inputs))

    def audit(self) -> Audit:
        """Return whether every counter equals its rows and entries, and the money by label."""
        return self.store.read(audit_of)

    def _until_answered(self, work: Callable[[Session], Hold | Refusal | Conflict | None]) -> Hold | Refusal | Conflict:
        """Ask until the store answers: each time it does not, another copy has made room between check and look."""
        for _ in range(MOST_TURNS):
            answer = self.store.write(work)
            if answer is not None:
                return answer
        raise StoreError(self.name, "budget store unavailable: other copies change the budget all the time")

    def _expire(self, request_id: str, attempt: int) -> Hold | None:
        return self.store.write(lambda session: self._books.expire(session, request_id, attempt))

    def _billing_price(self, hold: Hold, served: str | None, provider: str | None) -> tuple[Price | None, bool]:
        """Return the row that the provider bills now, and whether there is one; null without a table: the hold's own."""
        target = hold.reservation.price
        if self.prices is None:
            own = [price for price in hold.reservation.prices if price.model == (served or target.model)]
            return (own[0], True) if own else (None, False)
        try:
            named = provider if provider is not None or served is not None else target.provider
            return self.prices.price(served or target.model, provider=named, at=self._clock.now()), True
        except MissingPriceError:
            return None, False


def _conflict(answer: Conflict, request_id: str, attempt: int) -> ConflictError:
    return ConflictError(WHAT, f"request {request_id}, attempt", attempt, f"{answer.rule}; the first is kept")


def _check_key(request_id: object, attempt: object) -> None:
    checked_name(request_id, "request id")
    if isinstance(attempt, bool) or not isinstance(attempt, int) or not 1 <= attempt <= MAX_ATTEMPT:
        raise InputError("attempt", "", attempt, f"must be a whole number from 1 to {MAX_ATTEMPT}")


def _span_us(expiry_s: float) -> int:
    if isinstance(expiry_s, bool) or not isinstance(expiry_s, int | float) or not 0 < expiry_s <= MAX_EXPIRY_S:
        raise ConfigError("expiry_s", expiry_s, f"must be above 0 and at most {MAX_EXPIRY_S} seconds")
    return max(1, int(expiry_s * 1_000_000))
