"""What the server measures of the rule, on the OpenTelemetry API (A25–A27).

The SDK is whoever runs the server's business: without one every instrument is the API's own no-op.
"""

import math
from typing import get_args

from opentelemetry.metrics import MeterProvider, get_meter

from horde_policy import __version__
from horde_policy.errors import InputError
from horde_policy.policy.decision import Decision
from horde_policy.policy.request import Requester

__all__ = [
    "ALLOWANCE_SIZE_KEY",
    "CHAT_KEY",
    "DECISIONS",
    "ESTIMATED_WAIT",
    "LARGEST_SIZE_BUCKET",
    "OUTCOME_KEY",
    "QUEUE_WAIT",
    "REQUESTED_SIZE_KEY",
    "REQUESTER_KEY",
    "SIZE_BUCKETS",
    "WAIT_BOUNDARIES_S",
    "AllowanceTelemetry",
    "size_bucket",
]

DECISIONS = "horde.text.free_allowance.decisions"
ESTIMATED_WAIT = "horde.text.free_allowance.estimated_wait_seconds"
QUEUE_WAIT = "horde.text.queue_wait_seconds"

REQUESTER_KEY = "horde.requester"
OUTCOME_KEY = "horde.outcome"
REQUESTED_SIZE_KEY = "horde.requested_size"
ALLOWANCE_SIZE_KEY = "horde.allowance_size"
CHAT_KEY = "horde.chat"

SIZE_BUCKETS: tuple[tuple[int, str], ...] = ((512, "<=512"), (1024, "513-1024"), (2048, "1025-2048"), (4096, "2049-4096"))
"""Largest size of a bucket and its name (A25); anything larger is :data:`LARGEST_SIZE_BUCKET`."""

LARGEST_SIZE_BUCKET = ">4096"

WAIT_BOUNDARIES_S: tuple[float, ...] = (
    *(0.0, 1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0),
    *(90.0, 120.0, 180.0, 240.0, 300.0, 450.0, 600.0, 900.0, 1200.0, 1800.0, 3600.0),
)
"""Upper bounds, inclusive, of the two waits' buckets: the request-lifecycle set of horde.md §7.2 (A26)."""


def size_bucket(tokens: int) -> str:
    """Return the name of a size's bucket (A25).

    >>> [size_bucket(n) for n in (0, 512, 513, 1024, 2048, 4096, 4097)]
    ['<=512', '<=512', '513-1024', '513-1024', '1025-2048', '2049-4096', '>4096']
    """
    for largest, name in SIZE_BUCKETS:
        if tokens <= largest:
            return name
    return LARGEST_SIZE_BUCKET


class AllowanceTelemetry:
    """The three instruments of A25–A27: record a decision when a request is created, an assignment when it is handed out.

    Parameters
    ----------
    meter_provider
        Where the instruments live; null: the provider of the running program, which may be set later.

    Examples
    --------
    >>> AllowanceTelemetry().record_assignment("anonymous", 12.5)
    """

    def __init__(self, meter_provider: MeterProvider | None = None) -> None:
        meter = get_meter("horde_policy", __version__, meter_provider)
        self._decisions = meter.create_counter(
            DECISIONS, unit="1", description="Text and chat requests created, by what the free output allowance gave them"
        )
        self._estimated_wait = meter.create_histogram(
            ESTIMATED_WAIT,
            unit="s",
            description="Estimated wait that sized the free output allowance",
            explicit_bucket_boundaries_advisory=WAIT_BOUNDARIES_S,
        )
        self._queue_wait = meter.create_histogram(
            QUEUE_WAIT,
            unit="s",
            description="Time from a text request's creation to a worker taking it",
            explicit_bucket_boundaries_advisory=WAIT_BOUNDARIES_S,
        )

    def record_decision(self, decision: Decision) -> None:
        """Count a decision and the wait that sized its allowance (A25, A26).

        A dry run is not counted. Without an eligible worker there is no wait to record. The requested size is the one that was
        measured: for chat, after the lowering of A18, so that nothing free is larger than its allowance.
        """
        request = decision.request
        if request.dry_run:
            return
        self._decisions.add(
            1,
            {
                REQUESTER_KEY: request.requester,
                OUTCOME_KEY: decision.outcome,
                REQUESTED_SIZE_KEY: size_bucket(decision.measured_max_length),
                ALLOWANCE_SIZE_KEY: size_bucket(decision.allowance_tokens),
                CHAT_KEY: request.chat,
            },
        )
        if decision.estimated_wait_s is not None:
            self._estimated_wait.record(decision.estimated_wait_s)

    def record_assignment(self, requester: Requester, queue_wait_s: float) -> None:
        """Record the time from a request's creation to a worker taking one of its jobs (A27).

        Raises
        ------
        InputError
            There is no such requester, or the wait is no number, negative or not finite.
        """
        if requester not in get_args(Requester):
            raise InputError("assignment", "requester", requester, "must be one of " + ", ".join(get_args(Requester)))
        is_number = isinstance(queue_wait_s, int | float) and not isinstance(queue_wait_s, bool)
        if not (is_number and math.isfinite(queue_wait_s) and queue_wait_s >= 0):
            raise InputError("queue wait", "", queue_wait_s, "must be a finite number of at least 0 seconds")
        self._queue_wait.record(queue_wait_s, {REQUESTER_KEY: requester})
