"""A text request as the rules see it: what it asks for, who asks, and what it allows (horde.md §2)."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from horde_policy.errors import InputError
from horde_policy.units import DEFAULT_MAX_CONTEXT_TOKENS, DEFAULT_MAX_LENGTH_TOKENS, MAX_LENGTH_LIMIT_TOKENS

__all__ = ["ANONYMOUS_PRIORITY", "LISTED_WORKERS_LIMIT", "MAX_N", "Request", "Requester"]

Requester = Literal["anonymous", "registered", "shared_key"]

ANONYMOUS_PRIORITY = -50.0
"""Where the anonymous account's requests start in the queue; others start at 0 unless told (``replay.md``)."""

LISTED_WORKERS_LIMIT = 5
"""The server reads so many ids of a request's worker list and drops the rest (horde.md §2)."""

MAX_N = 20
"""The server's limit of answers to one request (horde.md §2)."""


def _check_whole(field: str, value: object, most: int | None, rule: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1 or (most is not None and value > most):
        raise InputError("request", f"field {field}", value, rule)


def _check_names(field: str, value: object) -> None:
    if not isinstance(value, tuple) or not all(isinstance(name, str) for name in value):
        raise InputError("request", f"field {field}", value, "must be a tuple of texts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A text request; what the server itself would refuse as invalid raises :class:`InputError`.

    Attributes
    ----------
    models
        Names it may be served by; empty means any model.
    max_length, max_context_length
        Output and context tokens asked for; the output at most 16384 (A23). A context below ``max_length`` is taken as
        given, as in a replay; the API refuses it with ``TokenOverflow``.
    requester
        The anonymous account, a registered account, or a shared key.
    can_pay
        Whether the kudos for the hold are there; taken as given for every requester.
    chat
        Whether it comes by the chat route (A17, A18).
    allow_downgrade, slow_workers
        Whether it may be lowered to the allowance (A16); whether slow workers may serve it (A20).
    dry_run
        Whether only a quote is asked for (A21).
    trusted_workers, validated_backends
        Whether only trusted owners' workers, or only validated backends, may serve it.
    workers, worker_blacklist
        Ids of the only workers that may serve it or, with ``worker_blacklist``, of those that may not; the first five count.
    n
        Answers asked for, 1 to 20.
    priority
        Kudos at creation, which order the queue; null: −50 for the anonymous account, else 0.

    Examples
    --------
    >>> Request(models=("L3-8B",)).max_length
    80
    >>> Request(models=(), max_length=20_000)
    Traceback (most recent call last):
    horde_policy.errors.InputError: request, field max_length: 20000 must be a whole number from 1 to 16384 (A23)
    """

    models: tuple[str, ...]
    max_length: int = DEFAULT_MAX_LENGTH_TOKENS
    max_context_length: int = DEFAULT_MAX_CONTEXT_TOKENS
    requester: Requester = "anonymous"
    can_pay: bool = False
    chat: bool = False
    allow_downgrade: bool = False
    slow_workers: bool = True
    dry_run: bool = False
    trusted_workers: bool = False
    validated_backends: bool = False
    workers: tuple[str, ...] = ()
    worker_blacklist: bool = False
    n: int = 1
    priority: float | None = None

    def __post_init__(self) -> None:
        _check_names("models", self.models)
        _check_names("workers", self.workers)
        span = f"must be a whole number from 1 to {MAX_LENGTH_LIMIT_TOKENS} (A23)"
        _check_whole("max_length", self.max_length, MAX_LENGTH_LIMIT_TOKENS, span)
        _check_whole("max_context_length", self.max_context_length, None, "must be a whole number of at least 1")
        _check_whole("n", self.n, MAX_N, f"must be a whole number from 1 to {MAX_N}")
        if self.requester not in get_args(Requester):
            raise InputError("request", "field requester", self.requester, "must be one of " + ", ".join(get_args(Requester)))
        for field in (
            "can_pay",
            "chat",
            "allow_downgrade",
            "slow_workers",
            "dry_run",
            "trusted_workers",
            "validated_backends",
            "worker_blacklist",
        ):
            if not isinstance(getattr(self, field), bool):
                raise InputError("request", f"field {field}", getattr(self, field), "must be true or false")
        if self.priority is not None and not (isinstance(self.priority, int | float) and math.isfinite(self.priority)):
            raise InputError("request", "field priority", self.priority, "must be a finite number, or null")

    @property
    def listed_workers(self) -> tuple[str, ...]:
        """The ids of its worker list that count: the first five (horde.md §2)."""
        return self.workers[:LISTED_WORKERS_LIMIT]

    @property
    def starting_priority(self) -> float:
        """The priority it starts with in the queue: its own, else −50 for the anonymous account and 0 for others."""
        if self.priority is not None:
            return float(self.priority)
        return ANONYMOUS_PRIORITY if self.requester == "anonymous" else 0.0
