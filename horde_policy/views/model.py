"""The Model page's words and rows: what a request of some models meets, each worker's part, and what nobody reports."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from horde_policy.board.detail import ModelDetail, WorkerPart
from horde_policy.board.measure import Measure
from horde_policy.board.moves import Loss, losses
from horde_policy.board.pool import Fleet
from horde_policy.policy.decision import Decision, Pool, decide
from horde_policy.policy.eligibility import HIDDEN_CONDITIONS, Request
from horde_policy.settings import AllowanceSettings
from horde_policy.units import JOB_TIME_LIMIT_S, MAX_LENGTH_LIMIT_TOKENS
from horde_policy.views import grid
from horde_policy.views.text import (
    NONE_FREE,
    NOT_REPORTED,
    count,
    instant,
    largest_free,
    names_text,
    program_text,
    ratio,
    seconds,
    shortened,
    speed,
    visible,
)
from horde_policy.views.tiles import tile
from horde_policy.views.words import STATES, gloss

__all__ = [
    "SCENARIO_COLUMNS",
    "WORKER_COLUMNS",
    "Refused",
    "answer",
    "detail_tiles",
    "finding_sentence",
    "gap_sentence",
    "hidden_conditions",
    "losses_by_worker",
    "no_refusal_sentence",
    "refused_request",
    "scenario_rows",
    "worker_rows",
    "worker_sentence",
]


def answer(detail: ModelDetail, settings: AllowanceSettings) -> str:
    """Return in one sentence what a request of this size gets now, and by which wait."""
    measure = detail.measure
    size = f"A request for {count(measure.max_length)} tokens"
    floor = f"the allowance is the floor, {count(settings.floor_tokens)} tokens"
    if measure.state == "no_worker":
        return f"No worker can take a request now: {floor}"
    if measure.state == "too_large":
        return f"No worker takes {measure.asked}: {floor}"
    if measure.allowance_tokens is None or measure.waits is None:
        return "The allowance is not known, since the queue is not reported"
    free = measure.max_length <= measure.allowance_tokens
    return (
        f"{size} {'is free' if free else 'needs kudos'}: {count(measure.allowance_tokens)} tokens are free "
        f"at an estimated wait of {seconds(measure.waits.named_s)}"
    )


def finding_sentence(detail: ModelDetail, settings: AllowanceSettings, source: str, at: datetime) -> str:
    """Return the page's answer as a sentence to be copied: of which models, from which source, and when."""
    names = ", ".join(visible(name) for name in detail.measure.models) or "any model"
    return f"{names}: {answer(detail, settings)} ({visible(source)}, {instant(at)})."


def detail_tiles(detail: ModelDetail) -> list[dict[str, object]]:
    """Return the row of figures."""
    measure, waits = detail.measure, detail.measure.waits
    worst = None if waits is None else waits.worst_s
    ends = [n for n in (measure.allowance_tokens, measure.allowance_at_high_tokens) if n is not None]
    at_worst = count(min(ends)) if measure.allowance_at_high_tokens is not None else "not known"
    why_not = "queue not reported" if measure.eligible_workers else "no eligible worker"
    assumed = f"{count(measure.unmeasured_workers)} at assumed speed" if measure.unmeasured_workers else ""
    known = measure.queued_tokens is not None or not measure.open_workers
    largest = largest_free(measure.largest_free_request_tokens, known=known)
    return [
        tile("State", STATES[measure.state].label, sub=f"at {measure.asked}", help=STATES[measure.state].text),
        tile(
            "Free allowance",
            count(measure.allowance_tokens),
            unit="tokens",
            sub=f"at worst {at_worst}" if measure.allowance_tokens is not None else why_not,
            help=gloss("allowance"),
        ),
        tile(
            "Estimated wait",
            seconds(None if waits is None else waits.named_s),
            sub=why_not if waits is None else f"at worst {'not known' if worst is None else seconds(worst)}",
            help=gloss("estimated_wait", "named", "at_worst"),
        ),
        tile("Queued", count(measure.queued_tokens), unit="tokens", help=gloss("queued_tokens")),
        tile("Combined speed", speed(measure.speed_tok_per_s), unit="tok/s", sub=assumed, help=gloss("combined_speed")),
        tile(
            "Eligible workers",
            count(measure.eligible_workers),
            sub=f"of {count(len(detail.workers))} that serve it" if measure.models else f"of {count(len(detail.workers))}",
            help=gloss("eligible_worker"),
        ),
        tile(
            "Largest free request",
            largest,
            unit="" if largest == NONE_FREE else "tokens",
            sub="queue not reported" if largest == NOT_REPORTED else "",
            help=gloss("largest_free_request"),
        ),
    ]


# --- the sentence a refused client reads ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that is refused now, and the decision on it."""

    max_length: int
    decision: Decision


def refused_request(detail: ModelDetail, fleet: Fleet, context_tokens: int) -> Refused | None:
    """Return the request without kudos that stands for a refusal: of the size asked if that is refused, else the next larger.

    Every size above the largest free request is refused, so the next larger is one token more than that. Null where the
    queue is not known, or no size is refused.
    """
    measure = detail.measure
    if measure.queued_tokens is None and measure.eligible_workers:
        return None
    largest = measure.largest_free_request_tokens
    sizes = [measure.max_length, *([largest + 1] if largest is not None and largest < MAX_LENGTH_LIMIT_TOKENS else [])]
    sizes += [fleet.settings.floor_tokens + 1, MAX_LENGTH_LIMIT_TOKENS]
    for size in sizes:
        if not 1 <= size <= MAX_LENGTH_LIMIT_TOKENS:
            continue
        request = Request(models=measure.models, max_length=size, max_context_length=max(context_tokens, size))
        pool = Pool(workers=fleet.workers, queued_tokens=measure.queued_tokens or 0.0)
        decision = decide(request, pool, fleet.settings)
        if decision.outcome == "refused":
            return Refused(size, decision)
    return None


def other_size_sentence(refused: Refused, measure: Measure) -> str | None:
    """Return why the refusal tells of another allowance than the page's head: it is that of a larger size; null if it is not."""
    there, here = refused.decision.allowance_tokens, measure.allowance_tokens
    if refused.max_length == measure.max_length or there == here or here is None:
        return None
    return (
        f"The allowance is that of the size: at {count(refused.max_length)} tokens {count(there)} are free, "
        f"at {count(measure.max_length)} tokens {count(here)}, as other workers could take the request."
    )


def gap_sentence(refused: Refused) -> str | None:
    """Return by how much the request asks for more than any online worker of its models declares; null if it does not (A19)."""
    gap = refused.decision.gap
    if gap is None:
        return None
    parts = []
    if gap.length_tokens is not None:
        parts.append(f"{_some(gap.length_tokens)} of output (the most declared is {count(gap.declared.max_length)})")
    if gap.context_tokens is not None:
        most = count(gap.declared.max_context_length)
        parts.append(f"{_some(gap.context_tokens)} of context (the most declared is {most})")
    return f"Declaration gap: {' and '.join(parts)} more than any online worker of these models declares."


def no_refusal_sentence(detail: ModelDetail) -> str:
    """Return why no refusal is shown: it cannot be foretold without a queue, or every size is free."""
    measure = detail.measure
    if measure.queued_tokens is None and measure.eligible_workers:
        return "The queue is not reported, so no refusal can be foretold."
    return "No size is refused now."


def _some(tokens: int) -> str:
    return "1 token" if tokens == 1 else f"{count(tokens)} tokens"


SCENARIO_WORDS: Final = {"low": "low", "named": "named", "high": "at worst (high)"}
"""Scenario of the wait, as files and links name it → how pages call it."""

MOST_LOSSES = 60
"""Above so many eligible workers one loss tells little, and all of them would take long to work out."""


def losses_by_worker(detail: ModelDetail, fleet: Fleet, context_tokens: int) -> dict[str, Loss]:
    """Return what the request would meet without each of its eligible workers, by id; nothing for a pool of very many."""
    if detail.measure.eligible_workers > MOST_LOSSES:
        return {}
    pool = fleet.pool(detail.measure.models, context_tokens)
    return {loss.worker.worker_id: loss for loss in losses(fleet, pool, detail.measure.max_length)}


# --- workers, scenarios, conditions ----------------------------------------------------------------------------------------

WORKER_COLUMNS: Final = [
    grid.Column(key="worker", label="Worker", kind="name", brief=""),
    grid.Column(key="counts", label="Counts", help="Whether it is counted at the size asked.", brief="counts"),
    grid.Column(key="speed", label="Speed", unit="tok/s", right=True, help=gloss("assumed_speed"), brief="tok/s"),
    grid.Column(key="share", label="Share", unit="of the speed", right=True),
    grid.Column(key="size", label="Takes up to", unit="tokens", right=True, help="Its largest size at the context asked for."),
    grid.Column(key="context", label="Context", unit="tokens", right=True),
    grid.Column(key="without", label="Without it", unit="tokens free", right=True, help="The allowance if this worker left."),
    grid.Column(key="finish", label="Takes", unit="this size in", right=True, help="One job of the size asked, at its speed."),
    grid.Column(key="also", label="Serves", unit="other models", right=True),
    grid.Column(key="why", label="Why not, and what is not reported of it", wrap=True, wide=True),
]

SCENARIO_COLUMNS: Final = [
    grid.Column(key="scenario", label="Scenario", kind="name"),
    grid.Column(key="queue", label="Queue", unit="tokens", right=True),
    grid.Column(key="wait", label="Wait", right=True),
    grid.Column(key="allowance", label="Allowance", unit="tokens", right=True),
    grid.Column(key="why", label="Read so because", wrap=True, wide=True),
]


def worker_rows(detail: ModelDetail, without: Mapping[str, Loss]) -> list[grid.Row]:
    """Return a row a worker that serves the models, those that count first; ``without`` has the loss of each by id."""
    return [
        grid.Row(
            id=f"worker {part.worker.worker_id}",
            cells=_worker_cells(part, without.get(part.worker.worker_id)),
            out=not part.eligible,
        )
        for part in detail.workers
    ]


def _without_cell(loss: Loss | None) -> grid.Cell:
    if loss is None:
        return ""
    nobody = loss.without.eligible_workers == 0
    return {"text": count(loss.allowance_tokens), "sub": "carries it alone" if nobody else ""}


def worker_sentence(part: WorkerPart, size_tokens: int, loss: Loss | None) -> str:
    """Return one worker's part as a sentence to be copied; the name in it is made visible."""
    name = visible(part.worker.name or "(no name)")
    own_speed = f"{speed(part.speed_tok_per_s)} tok/s{' (assumed)' if part.assumed else ''}"
    if not part.eligible:
        why = " ".join(reason.text for reason in part.reasons)
        return f"{name}, {own_speed}, does not count at {count(size_tokens)} tokens: {visible(why)}"
    finish = f"makes {count(size_tokens)} tokens in {seconds(part.finish_s)}"
    finish += "" if part.finishes else f", which is over the {JOB_TIME_LIMIT_S:g} s of a job"
    rest = "" if loss is None else f"; without it {count(loss.allowance_tokens)} tokens are free"
    return (
        f"{name}, {own_speed}, is {ratio(part.speed_share)} of the combined speed, takes up to "
        f"{count(part.largest_size_tokens)} tokens and {finish}{rest}."
    )


def _worker_cells(part: WorkerPart, loss: Loss | None) -> dict[str, grid.Cell]:
    worker = part.worker
    agent = visible(worker.bridge_agent or "")
    why = " ".join([*(reason.text for reason in part.reasons), *(unknown.text for unknown in part.unknowns)])
    return {
        "worker": grid.name_cell(worker.name or "(no name)", sub=program_text(agent), whole=shortened(agent, 300)),
        "counts": "yes" if part.eligible else "no",
        "speed": {"text": speed(part.speed_tok_per_s), "sub": "assumed" if part.assumed else ""},
        "share": ratio(part.speed_share),
        "size": count(part.largest_size_tokens),
        "context": count(worker.max_context_length),
        "without": _without_cell(loss),
        "finish": {"text": seconds(part.finish_s), "sub": "" if part.finishes else "over the limit of a job"},
        "also": {"text": count(len(part.other_models)), "title": names_text(part.other_models, 1_000)},
        "why": {"text": visible(why)},
    }


def scenario_rows(detail: ModelDetail) -> list[grid.Row]:
    """Return the three scenarios of the wait, each with its reasoning; nothing without a wait."""
    measure, waits = detail.measure, detail.measure.waits
    if waits is None:
        return []
    allowances = (measure.allowance_at_low_tokens, measure.allowance_tokens, measure.allowance_at_high_tokens)
    scenarios = (waits.scenario("low"), waits.scenario("named"), waits.scenario("high"))
    return [
        grid.Row(
            id=scenario.name,
            cells={
                "scenario": {"text": SCENARIO_WORDS[scenario.name]},
                "queue": count(scenario.queued_tokens),
                "wait": seconds(scenario.wait_s),
                "allowance": count(allowance),
                "why": {"text": scenario.reasoning},
            },
        )
        for scenario, allowance in zip(scenarios, allowances, strict=True)
    ]


def hidden_conditions() -> list[str]:
    """Return what decides over a worker and is not in public data, as sentences."""
    return [condition.text for condition in HIDDEN_CONDITIONS]
