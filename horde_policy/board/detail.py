"""One model in detail: each worker's part, and the pool at every size (design §1, Operate / Model; A9)."""

from dataclasses import dataclass
from itertools import pairwise

from horde_policy.board.measure import Measure, check_context, check_size, measure_pool
from horde_policy.board.pool import Fleet, Pool, largest_size_tokens
from horde_policy.board.states import AllowanceRange, State, allowance_range, state_of
from horde_policy.board.wait_range import WaitRange
from horde_policy.policy.eligibility import Reason, Request, Unknown, judge
from horde_policy.policy.wait import combined_speed_tok_per_s
from horde_policy.policy.worker import Worker, counted_speed_tok_per_s, is_measured
from horde_policy.units import DEFAULT_MAX_CONTEXT_TOKENS, JOB_TIME_LIMIT_S, MAX_LENGTH_LIMIT_TOKENS

__all__ = ["ModelDetail", "SizeStep", "WorkerPart", "model_detail", "size_steps"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPart:
    """One worker of the list that serves the model, and its part in the pool at the size asked.

    Attributes
    ----------
    worker
        As it declares itself; its names are hostile text.
    eligible
        Whether it is counted at the size asked.
    reasons
        Every reason why it is not; empty when it is.
    unknowns
        What it does not report.
    speed_tok_per_s
        What it counts; assumed where ``assumed`` (A8).
    speed_share
        Its share of the combined speed of the eligible workers, by the speed counted; null when it is not eligible.
    largest_size_tokens
        The size above which it drops out, at this context; null if it takes none.
    finish_s
        What the size asked would take it at that speed, one job.
    finishes
        Whether that is within the 150 s of a job (A32).
    other_models
        The other models it serves, sorted (A10).
    """

    worker: Worker
    eligible: bool
    reasons: tuple[Reason, ...]
    unknowns: tuple[Unknown, ...]
    speed_tok_per_s: float
    assumed: bool
    speed_share: float | None
    largest_size_tokens: int | None
    finish_s: float
    finishes: bool
    other_models: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeStep:
    """A span of sizes with one pool, and so one wait and one allowance (A9); both ends belong to it.

    ``largest_free_tokens`` is the largest size of the span that is free at that size; null if none is, or it is not known.
    """

    from_tokens: int
    to_tokens: int
    state: State
    eligible_workers: int
    speed_tok_per_s: float
    waits: WaitRange | None
    allowance: AllowanceRange
    largest_free_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDetail:
    """A request's figures, the parts of the workers (eligible first, then by speed) and the steps over all sizes."""

    measure: Measure
    workers: tuple[WorkerPart, ...]
    steps: tuple[SizeStep, ...]


def model_detail(
    fleet: Fleet, models: tuple[str, ...], max_length: int, context_tokens: int = DEFAULT_MAX_CONTEXT_TOKENS
) -> ModelDetail:
    """Return a request of these models (none: any) in detail.

    Raises
    ------
    InputError
        The size or the context is out of its range.
    """
    check_size(max_length)
    pool = fleet.pool(models, check_context(context_tokens))
    measure = measure_pool(fleet, pool, max_length)
    if models:
        serving = {worker.worker_id: worker for model in models for worker in fleet.serving.get(model, ())}
        listed = tuple(worker for worker in fleet.workers if worker.worker_id in serving)
    else:
        listed = fleet.workers
    parts = (_part(fleet, worker, measure, context_tokens) for worker in listed)
    return ModelDetail(
        measure=measure,
        workers=tuple(sorted(parts, key=lambda part: (not part.eligible, -part.speed_tok_per_s, part.worker.worker_id))),
        steps=size_steps(fleet, pool),
    )


def _part(fleet: Fleet, worker: Worker, measure: Measure, context_tokens: int) -> WorkerPart:
    request = Request(models=measure.models, max_length=measure.max_length, max_context_length=measure.max_context_length)
    judged = judge(worker, request, fleet.settings)
    speed = counted_speed_tok_per_s(worker, fleet.settings)
    finish_s = measure.max_length / speed
    counted = combined_speed_tok_per_s((worker,), fleet.settings)
    return WorkerPart(
        worker=worker,
        eligible=judged.eligible,
        reasons=judged.reasons,
        unknowns=judged.unknowns,
        speed_tok_per_s=speed,
        assumed=not is_measured(worker),
        speed_share=counted / measure.speed_tok_per_s if judged.eligible else None,
        largest_size_tokens=largest_size_tokens(worker, context_tokens),
        finish_s=finish_s,
        finishes=finish_s <= JOB_TIME_LIMIT_S,
        other_models=tuple(sorted({*(worker.models or ())} - {*measure.models})) if measure.models else (),
    )


def size_steps(fleet: Fleet, pool: Pool) -> tuple[SizeStep, ...]:
    """Return the spans of sizes from 1 to 16384 on which the pool stays the same, rising.

    The last span is the one that no worker takes, if there is one. The largest free request is the largest
    ``largest_free_tokens`` of the spans.
    """
    ends = sorted({*pool.levels, MAX_LENGTH_LIMIT_TOKENS})
    return tuple(_step(fleet, pool, below + 1, end) for below, end in pairwise([0, *ends]))


def _step(fleet: Fleet, pool: Pool, start: int, end: int) -> SizeStep:
    eligible = pool.eligible(end)
    waits = fleet.waits(pool.models, eligible)
    allowance = allowance_range(waits, eligible_workers=len(eligible), settings=fleet.settings)
    free = min(end, allowance.named) if eligible and allowance.named is not None else None
    return SizeStep(
        from_tokens=start,
        to_tokens=end,
        state=state_of(
            open_workers=len(pool.workers),
            eligible_workers=len(eligible),
            allowance_tokens=allowance.named,
            settings=fleet.settings,
        ),
        eligible_workers=len(eligible),
        speed_tok_per_s=combined_speed_tok_per_s(eligible, fleet.settings),
        waits=waits,
        allowance=allowance,
        largest_free_tokens=free if free is not None and free >= start else None,
    )
