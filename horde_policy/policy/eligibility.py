"""Which workers could take a request, and why the others could not (horde.md §5.1; A7, A9).

A condition that the input does not carry is reported as unknown, never assumed: some are hidden from public data for every
worker (:data:`HIDDEN_CONDITIONS`), others this worker did not report. A worker that did not report what the request *requires*
(its models, its sizes, trust or a validated backend when asked for) is not counted; one that did not report a *disqualification*
(offline, maintenance, flagged owner) is counted, with the gap reported.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from horde_policy.policy.model_size import slow_limit
from horde_policy.policy.request import Request, Requester
from horde_policy.policy.worker import (
    Worker,
    available,
    counted_speed_tok_per_s,
    is_measured,
    workers_by_model,
    workers_from_frame,
)
from horde_policy.settings import AllowanceSettings

__all__ = [
    "HIDDEN_CONDITIONS",
    "VALIDATED_BACKENDS",
    "Eligibility",
    "Reason",
    "Request",
    "Requester",
    "Unknown",
    "Worker",
    "available",
    "backend_name",
    "could_take",
    "eligible_workers",
    "judge",
    "meets_all_but_sizes",
    "serves_models",
    "workers_by_model",
    "workers_from_frame",
]

VALIDATED_BACKENDS = frozenset(
    {
        "AI Horde Worker",
        "AI Horde Worker~aphrodite~oai",
        "AI Horde Worker~aphrodite~kai",
        "KoboldCppEmbedWorker",
        "TabbyAPI",
    }
)
"""Bridge names whose backend the server counts as validated (horde.md §5.1, row 9)."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a worker cannot take a request: a stable code (the server's own skip reason where it has one) and a sentence."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """A condition that the input does not carry; ``hidden`` if public data hide it for every worker."""

    code: str
    text: str
    hidden: bool = False


HIDDEN_CONDITIONS: tuple[Unknown, ...] = (
    Unknown("paused", "Whether the worker is paused; a paused worker serves only its owner.", hidden=True),
    Unknown("unsafe_ip", "Whether the requester's address counts as safe, or the worker takes unsafe ones.", hidden=True),
    Unknown("own_worker", "Whether the requester owns the worker, which would then serve it in maintenance too.", hidden=True),
    Unknown("bridge_version", "Whether the worker's software is recent enough for the request.", hidden=True),
    Unknown("matching_softprompt", "Whether the worker has the soft prompt, if the request names one.", hidden=True),
    Unknown("blacklist_words", "Whether the worker refuses words of the prompt.", hidden=True),
    Unknown("owner_account", "Whether the worker's owner is anonymous or deleted.", hidden=True),
)
"""Conditions of horde.md §5.1 that public data hide for every worker: rows 5 (own worker), 11, 12 and 14."""


@dataclass(frozen=True, slots=True)
class Eligibility:
    """Whether one worker could take one request: every reason why not, and what could not be judged of this worker.

    ``unknowns`` holds what this worker did not report; what nobody reports is in :data:`HIDDEN_CONDITIONS`.
    """

    worker: Worker
    reasons: tuple[Reason, ...]
    unknowns: tuple[Unknown, ...]
    notes: tuple[str, ...] = ()

    @property
    def eligible(self) -> bool:
        """Whether the worker is counted as able to take the request."""
        return not self.reasons


def backend_name(bridge_agent: str) -> str:
    """Return the name of ``name:version:url``.

    >>> backend_name("KoboldCppEmbedWorker:2:https://example.org")
    'KoboldCppEmbedWorker'
    """
    return bridge_agent.partition(":")[0]


def serves_models(worker: Worker, models: tuple[str, ...]) -> bool:
    """Tell whether the worker serves one of the models by exact name; an empty tuple means any (horde.md §5.1, row 4).

    A worker whose model list could not be read serves none that could be counted.

    >>> one = Worker(worker_id="w", models=("a",), max_length=80, max_context_length=1024)
    >>> serves_models(one, ("b", "a")), serves_models(one, ()), serves_models(one, ("A",))
    (True, True, False)
    """
    if worker.models is None:
        return False
    return not models or any(model in worker.models for model in models)


def meets_all_but_sizes(
    worker: Worker, request: Request, settings: AllowanceSettings, sizes_billions: Mapping[str, float] | None = None
) -> bool:
    """Tell whether the worker could take the request but for its two sizes (horde.md §5.1, rows 4 to 10 and 14)."""
    if not serves_models(worker, request.models) or not available(worker):
        return False
    if not request.slow_workers:
        limit = slow_limit(request.models, sizes_billions)
        if counted_speed_tok_per_s(worker, settings) < limit.tok_per_s:
            return False
    if request.trusted_workers and worker.trusted is not True:
        return False
    if request.validated_backends and (
        worker.bridge_agent is None or backend_name(worker.bridge_agent) not in VALIDATED_BACKENDS
    ):
        return False
    return not request.workers or (worker.worker_id in request.listed_workers) != request.worker_blacklist


def could_take(
    worker: Worker, request: Request, settings: AllowanceSettings, sizes_billions: Mapping[str, float] | None = None
) -> bool:
    """Tell whether the worker is counted as able to take the request; what :func:`judge` finds, without the reasons.

    >>> one = Worker(worker_id="w", models=("L3-8B",), max_length=512, max_context_length=4096)
    >>> could_take(one, Request(models=("L3-8B",), max_length=512), AllowanceSettings())
    True
    """
    if worker.max_length is None or worker.max_length < request.max_length:
        return False
    if worker.max_context_length is None or worker.max_context_length < request.max_context_length:
        return False
    return meets_all_but_sizes(worker, request, settings, sizes_billions)


def eligible_workers(
    workers: Iterable[Worker],
    request: Request,
    settings: AllowanceSettings,
    sizes_billions: Mapping[str, float] | None = None,
) -> tuple[Worker, ...]:
    """Return the workers that could take the request, in the given order (A7, A9)."""
    return tuple(worker for worker in workers if could_take(worker, request, settings, sizes_billions))


def judge(
    worker: Worker, request: Request, settings: AllowanceSettings, sizes_billions: Mapping[str, float] | None = None
) -> Eligibility:
    """Return whether the worker could take the request, every reason why not, and what is unknown of it.

    Parameters
    ----------
    worker, request
        The two.
    settings
        The assumed speed of an unmeasured worker decides whether it is slow (A8).
    sizes_billions
        Known model sizes for the slow-worker limit; else parsed from the model's name.

    Examples
    --------
    >>> one = Worker(worker_id="w", models=("L3-8B",), max_length=512, max_context_length=4096)
    >>> judge(one, Request(models=("L3-8B",), max_length=1024), AllowanceSettings()).reasons[0].text
    'It takes at most 512 output tokens, and 1024 are asked for.'
    """
    reasons: list[Reason] = []
    unknowns: list[Unknown] = []
    notes: list[str] = []
    _judge_state(worker, reasons, unknowns)
    _judge_models(worker, request, reasons, unknowns)
    _judge_sizes(worker, request, reasons, unknowns)
    if not request.slow_workers:
        _judge_speed(worker, request, settings, sizes_billions, reasons, notes)
    _judge_owner_and_software(worker, request, reasons, unknowns)
    _judge_worker_list(worker, request, reasons)
    return Eligibility(worker, tuple(reasons), tuple(unknowns), tuple(notes))


def _judge_state(worker: Worker, reasons: list[Reason], unknowns: list[Unknown]) -> None:
    states = (
        ("offline", worker.online is False, worker.online, "It has not checked in for five minutes."),
        ("maintenance", worker.maintenance is True, worker.maintenance, "It is in maintenance and serves only its owner."),
        ("flagged", worker.flagged is True, worker.flagged, "Its owner is flagged and gets no jobs."),
    )
    questions = {
        "offline": "It does not report whether it is online.",
        "maintenance": "It does not report whether it is in maintenance.",
        "flagged": "It does not report whether its owner is flagged.",
    }
    for code, holds, reported, text in states:
        if holds:
            reasons.append(Reason(code, text))
        elif reported is None:
            unknowns.append(Unknown(code, questions[code]))


def _judge_models(worker: Worker, request: Request, reasons: list[Reason], unknowns: list[Unknown]) -> None:
    if worker.models is None:
        unknowns.append(Unknown("models", "Its list of models is not reported or unreadable."))
        reasons.append(Reason("models_unknown", "Its models are not known, so it cannot be counted."))
    elif not serves_models(worker, request.models):
        reasons.append(Reason("models", "It serves none of the models asked for."))


def _judge_sizes(worker: Worker, request: Request, reasons: list[Reason], unknowns: list[Unknown]) -> None:
    sizes = (
        ("max_length", worker.max_length, request.max_length, "output tokens"),
        ("max_context_length", worker.max_context_length, request.max_context_length, "tokens of context"),
    )
    for code, declared, asked, what in sizes:
        if declared is None:
            unknowns.append(Unknown(code, f"It does not report how many {what} it takes."))
            reasons.append(Reason(f"{code}_unknown", f"How many {what} it takes is not known, so it cannot be counted."))
        elif declared < asked:
            reasons.append(Reason(code, f"It takes at most {declared} {what}, and {asked} are asked for."))


def _judge_speed(
    worker: Worker,
    request: Request,
    settings: AllowanceSettings,
    sizes_billions: Mapping[str, float] | None,
    reasons: list[Reason],
    notes: list[str],
) -> None:
    limit = slow_limit(request.models, sizes_billions)
    where = {
        "given": f"for a model of {limit.size_billions:g} billion parameters" if limit.size_billions is not None else "",
        "name": f"for a model of {limit.size_billions:g} billion parameters by its name"
        if limit.size_billions is not None
        else "",
        "unknown": "for a model of unknown size",
        "no model": "for a request that names no model",
    }[limit.source]
    speed = counted_speed_tok_per_s(worker, settings)
    assumed = "" if is_measured(worker) else " (assumed, it is not measured)"
    if speed < limit.tok_per_s:
        text = f"It is slow: {speed:g} tokens per second{assumed}, below the {limit.tok_per_s:g} {where}."
        reasons.append(Reason("performance", text))
    else:
        notes.append(f"It is not slow: {speed:g} tokens per second{assumed}, at least the {limit.tok_per_s:g} {where}.")


def _judge_owner_and_software(worker: Worker, request: Request, reasons: list[Reason], unknowns: list[Unknown]) -> None:
    if request.trusted_workers and worker.trusted is None:
        unknowns.append(Unknown("untrusted", "It does not report whether its owner is trusted."))
        reasons.append(Reason("untrusted_unknown", "Whether its owner is trusted is not known, so it cannot be counted."))
    elif request.trusted_workers and not worker.trusted:
        reasons.append(Reason("untrusted", "Its owner is not trusted, and only trusted workers are asked for."))
    if request.validated_backends and worker.bridge_agent is None:
        unknowns.append(Unknown("backend", "It does not report its software."))
        reasons.append(Reason("backend_unknown", "Whether its backend is validated is not known, so it cannot be counted."))
    elif request.validated_backends and backend_name(worker.bridge_agent or "") not in VALIDATED_BACKENDS:
        reasons.append(Reason("backend", "Its backend is not validated, and only validated ones are asked for."))


def _judge_worker_list(worker: Worker, request: Request, reasons: list[Reason]) -> None:
    listed = worker.worker_id in request.listed_workers
    if request.workers and request.worker_blacklist and listed:
        reasons.append(Reason("blacklist", "The request excludes it by its id."))
    elif request.workers and not request.worker_blacklist and not listed:
        reasons.append(Reason("worker_id", "The request names the workers it wants, and this is none of them."))
