"""What a reader should know about the figures of one request at one size, as sentences with their rule.

The sentences hold model names as the network gives them: escape them wherever they are shown.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from horde_policy.board.pool import Fleet, Pool
from horde_policy.board.wait_range import WaitRange
from horde_policy.policy.wait import finishes_in_time
from horde_policy.policy.worker import Worker, is_measured
from horde_policy.units import JOB_TIME_LIMIT_S

__all__ = ["Note", "notes_for"]

NAMES_SHOWN = 3
"""So many names stand in a sentence; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Note:
    """One thing to know about a figure: a word for machines and a sentence, which may hold hostile names."""

    code: str
    text: str


def notes_for(
    fleet: Fleet,
    pool: Pool,
    eligible: tuple[Worker, ...],
    *,
    max_length: int,
    waits: WaitRange | None,
    largest_free_tokens: int | None,
) -> tuple[Note, ...]:
    """Return the notes on one request at one size: what is missing, assumed, shared or cannot finish in time."""
    notes = [
        *_on_the_size(pool, max_length),
        *_on_nobody(fleet, pool, eligible, max_length),
        *_on_the_queue(fleet, pool.models),
        *_on_the_workers(fleet, pool, eligible),
        *_on_time(fleet, pool, eligible, max_length, largest_free_tokens),
    ]
    if eligible:
        notes += [*_on_sharing(fleet, pool.models, eligible), *_on_the_range(waits)]
    return tuple(notes)


def _names(names: Sequence[str]) -> str:
    """Return the names as a phrase: the first three and how many more."""
    shown = ", ".join(names[:NAMES_SHOWN])
    return shown if len(names) <= NAMES_SHOWN else f"{shown} and {len(names) - NAMES_SHOWN} more"


def _of(count: int, total: int, singular: str, verb: tuple[str, str]) -> str:
    """Return "1 of 3 eligible workers serves", "2 of 3 … serve", "Its only … serves"."""
    if total == 1:
        return f"The only {singular} {verb[0]}"
    return f"{count:,} of {total:,} {singular}s {verb[0] if count == 1 else verb[1]}"


def _on_the_size(pool: Pool, max_length: int) -> Iterator[Note]:
    if max_length > pool.context_tokens:
        text = f"The context asked is {max_length:,} tokens too, since the API refuses a context below the size."
        yield Note("context_raised", text)


def _on_nobody(fleet: Fleet, pool: Pool, eligible: tuple[Worker, ...], max_length: int) -> Iterator[Note]:
    if eligible:
        return
    floor = fleet.settings.floor_tokens
    if not pool.workers:
        yield Note("no_worker", f"{_why_no_worker(fleet, pool.models)}: the allowance is the floor, {floor:,} tokens.")
        return
    context = max(pool.context_tokens, max_length)
    levels = pool.levels
    if levels:
        most = f"the largest taken is {levels[-1]:,}"
    else:
        contexts = [worker.max_context_length for worker in pool.workers if worker.max_context_length is not None]
        most = f"the largest context declared is {max(contexts):,}" if contexts else "none declares its sizes"
    count = len(pool.workers)
    who = "Its only open worker does not take" if count == 1 else f"None of its {count:,} open workers takes"
    text = f"{who} {max_length:,} tokens at a context of {context:,}; {most}: the allowance is the floor, {floor:,} tokens."
    short_of_context = any(worker.max_length is not None and worker.max_length >= max_length for worker in pool.workers)
    yield Note("context_too_large" if short_of_context else "too_large", text)


def _why_no_worker(fleet: Fleet, models: tuple[str, ...]) -> str:
    if models:
        listed = {worker.worker_id: worker for model in models for worker in fleet.serving.get(model, ())}
    else:
        listed = {worker.worker_id: worker for worker in fleet.workers}
    if not listed:
        return "No worker of the list serves it" if models else "The list has no worker"
    states = (
        ("in maintenance", sum(worker.maintenance is True for worker in listed.values())),
        ("offline", sum(worker.online is False for worker in listed.values())),
        ("with a flagged owner", sum(worker.flagged is True for worker in listed.values())),
    )
    why = ", ".join(f"{count:,} {state}" for state, count in states if count)
    who = "Its only worker takes no" if len(listed) == 1 else f"None of its {len(listed):,} workers takes"
    return f"{who} work of strangers ({why or 'models not known'})"


def _on_the_queue(fleet: Fleet, models: tuple[str, ...]) -> Iterator[Note]:
    if fleet.listed is None:
        yield Note("queue_not_reported", "The source has no list of models, so no queue is known.")
        return
    listed = fleet.listed
    missing = [model for model in models if model not in listed and model in fleet.open_by_model]
    if missing or (models and all(model not in listed for model in models)):
        names = _names(missing or models)
        yield Note("queue_not_reported", f"The list does not name {names}, so the queue is not known; it is not zero.")
    unreadable = [model for model in models or listed if model in listed and listed[model].queued_tokens is None]
    if unreadable:
        yield Note("queue_not_reported", f"The list gives no queue for {_names(unreadable)}; it is not zero.")
    unserved = [model for model in models if model not in listed and model not in fleet.open_by_model]
    if len(models) > 1 and unserved and len(unserved) < len(models):
        text = f"Nobody serves {_names(unserved)} now and the list does not name it: it adds nothing to the queue."
        yield Note("not_served", text)


def _on_the_workers(fleet: Fleet, pool: Pool, eligible: tuple[Worker, ...]) -> Iterator[Note]:
    silent = sum(worker.max_length is None or worker.max_context_length is None for worker in pool.workers)
    if silent:
        yield Note("sizes_not_reported", f"{silent:,} of its workers do not report a size and are not counted.")
    unsure = sum(worker.online is None or worker.maintenance is None or worker.flagged is None for worker in eligible)
    if unsure:
        text = f"{unsure:,} of the workers counted do not report whether they are online, in maintenance or flagged."
        yield Note("state_not_reported", text)
    assumed = sum(not is_measured(worker) for worker in eligible)
    if assumed:
        who = _of(assumed, len(eligible), "eligible worker", ("is unmeasured and counts", "are unmeasured and count"))
        each = " each" if assumed > 1 else ""
        yield Note("unmeasured", f"{who} {fleet.settings.assumed_speed_tok_per_s:g} tok/s{each}.")


def _on_time(
    fleet: Fleet, pool: Pool, eligible: tuple[Worker, ...], max_length: int, largest_free_tokens: int | None
) -> Iterator[Note]:
    slow = sum(not finishes_in_time(max_length, (worker,), fleet.settings) for worker in eligible)
    if slow:
        who = _of(slow, len(eligible), "eligible worker", ("could", "could"))
        yield Note("cannot_finish", f"{who} not finish {max_length:,} tokens within the {JOB_TIME_LIMIT_S:g} s of a job.")
    if largest_free_tokens is not None and not finishes_in_time(
        largest_free_tokens, pool.eligible(largest_free_tokens), fleet.settings
    ):
        text = (
            f"No worker that takes the largest free request, {largest_free_tokens:,} tokens, could finish it within the "
            f"{JOB_TIME_LIMIT_S:g} s of a job."
        )
        yield Note("largest_free_cannot_finish", text)


def _on_sharing(fleet: Fleet, models: tuple[str, ...], eligible: tuple[Worker, ...]) -> Iterator[Note]:
    if not models:
        return
    sharing, also = fleet.also_served(eligible, models)
    if also:
        who = _of(sharing, len(eligible), "eligible worker", ("also serves", "also serve"))
        text = f"{who} {_names(also)}: what waits there can lengthen this wait, and counts at worst only."
        yield Note("shared_workers", text)
    if fleet.listed is not None:
        unlisted = [model for model in also if model not in fleet.listed]
        if unlisted:
            text = f"The list does not name {_names(unlisted)}: its queue counts only as part of the horde-wide total."
            yield Note("shared_queue_not_reported", text)


def _on_the_range(waits: WaitRange | None) -> Iterator[Note]:
    if waits is None:
        return
    if waits.high_s is None:
        yield Note("no_horde_wide_total", "The horde-wide total is not reported, so the wait at worst is not known.")
    elif waits.high_s < waits.named_s:
        text = "The named queue counts models that no worker of this size serves, and is above the high scenario."
        yield Note("named_above_high", text)
