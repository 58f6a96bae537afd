"""Quotes of dry runs, kept so that none reaches a requester whose request would be refused (A21, A22)."""

import math
from collections import OrderedDict
from datetime import datetime, timedelta
from typing import TypeAlias

from horde_policy.clock import Clock
from horde_policy.errors import InputError
from horde_policy.policy.decision import Decision

__all__ = ["DEFAULT_KEPT_S", "QuoteCache"]

DEFAULT_KEPT_S = 172_800.0
"""The server keeps a quote for two days (horde.md §2)."""

_Key: TypeAlias = tuple[object, ...]


class QuoteCache:
    """Keeps what dry runs were quoted; it can only be asked with the decision on the very request that asks (A22).

    The decision comes first, so a refused dry run finds nothing, whoever paid for the quote before. A quote is kept for the
    size that is admitted: a downgraded request finds that of its lowered size, not that of the size asked. Only dry runs find and
    leave anything, and of those not chat's. All that a request says of who may serve it belongs to the quote's key.

    Parameters
    ----------
    clock
        Tells the age of a quote.
    most
        Quotes kept; beyond that the one unused for longest goes.
    kept_s
        A quote is not given out at this age or above.

    Examples
    --------
    >>> from datetime import UTC
    >>> from horde_policy.clock import FixedClock
    >>> from horde_policy.policy.decision import Pool, Request, decide
    >>> from horde_policy.settings import AllowanceSettings
    >>> cache = QuoteCache(FixedClock(datetime(2026, 11, 29, tzinfo=UTC)))
    >>> rich = Request(models=("m",), max_length=4096, requester="registered", can_pay=True, dry_run=True)
    >>> poor = Request(models=("m",), max_length=4096, dry_run=True)
    >>> funded, refused = (decide(r, Pool(workers=(), queued_tokens=0), AllowanceSettings()) for r in (rich, poor))
    >>> cache.put("prompt and samplers", funded, 24.0)
    >>> cache.get("prompt and samplers", funded), cache.get("prompt and samplers", refused)
    (24.0, None)
    """

    def __init__(self, clock: Clock, *, most: int = 10_000, kept_s: float = DEFAULT_KEPT_S) -> None:
        if most < 1:
            raise InputError("quote cache", "most", most, "must be at least 1")
        if not (math.isfinite(kept_s) and kept_s > 0):
            raise InputError("quote cache", "kept_s", kept_s, "must be a finite number of seconds above 0")
        self._clock = clock
        self._most = most
        self._kept = timedelta(seconds=kept_s)
        self._quotes: OrderedDict[_Key, tuple[float, datetime]] = OrderedDict()

    def __len__(self) -> int:
        """Return how many quotes are kept, those too old included until they are met."""
        return len(self._quotes)

    def get(self, payload: str, decision: Decision) -> float | None:
        """Return the kudos quoted before for this payload at the admitted size; null if there is none to give.

        ``payload`` names everything of the price that the request does not carry (prompt, samplers), as a digest would.
        """
        key = _key(payload, decision)
        kept = None if key is None else self._quotes.get(key)
        if key is None or kept is None:
            return None
        kudos, quoted_at = kept
        if self._clock.now() - quoted_at >= self._kept:
            del self._quotes[key]
            return None
        self._quotes.move_to_end(key)
        return kudos

    def put(self, payload: str, decision: Decision, kudos: float) -> None:
        """Keep a quote for the payload at the admitted size; nothing is kept of a chat dry run or of what is no dry run.

        Raises
        ------
        InputError
            The request was refused: a quote never describes such a request (A21). Or the kudos are no finite number of
            at least 0.
        """
        if decision.outcome == "refused":
            raise InputError("quote", "outcome", decision.outcome, "must not be refused (A21)")
        is_number = isinstance(kudos, int | float) and not isinstance(kudos, bool)
        if not (is_number and math.isfinite(kudos) and kudos >= 0):
            raise InputError("quote", "kudos", kudos, "must be a finite number of at least 0")
        key = _key(payload, decision)
        if key is None:
            return
        self._quotes[key] = (kudos, self._clock.now())
        self._quotes.move_to_end(key)
        while len(self._quotes) > self._most:
            self._quotes.popitem(last=False)


def _key(payload: str, decision: Decision) -> _Key | None:
    request = decision.request
    if request.chat or not request.dry_run or decision.admitted_max_length is None:
        return None
    served_by = (request.listed_workers, request.worker_blacklist, request.trusted_workers, request.validated_backends)
    size = decision.admitted_max_length
    return payload, request.models, size, request.max_context_length, decision.slow_workers, request.n, served_by
