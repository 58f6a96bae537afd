"""The Model page's words and rows: what a request of some models meets, each worker's part, and what nobody reports."""

from dataclasses import dataclass
from typing import Final

from horde_policy.board.detail import ModelDetail, WorkerPart
from horde_policy.board.pool import Fleet
from horde_policy.policy.decision import Decision, Pool, decide
from horde_policy.policy.eligibility import HIDDEN_CONDITIONS, Request
from horde_policy.settings import AllowanceSettings
from horde_policy.units import MAX_LENGTH_LIMIT_TOKENS
from horde_policy.views import grid
from horde_policy.views.text import NOT_REPORTED, count, ratio, seconds, shortened, speed, visible
from horde_policy.views.tiles import tile
from horde_policy.views.words import STATES, gloss

__all__ = [
    "SCENARIO_COLUMNS",
    "WORKER_COLUMNS",
    "Refused",
    "answer",
    "detail_tiles",
    "hidden_conditions",
    "refused_request",
    "scenario_rows",
    "worker_rows",
]


def answer(detail: ModelDetail, settings: AllowanceSettings) -> str:
    """Return in one sentence what a request of this size gets now, and by which wait."""
    measure = detail.measure
    size = f"A request for {count(measure.max_length)} tokens"
    floor = f"the allowance is the floor, {count(settings.floor_tokens)} tokens"
    if measure.state == "no_worker":
        return f"No worker can take a request now: {floor}"
    if measure.state == "too_large":
        return f"No worker takes {count(measure.max_length)} tokens: {floor}"
    if measure.allowance_tokens is None or measure.waits is None:
        return "The allowance is not known, since the queue is not reported"
    free = measure.max_length <= measure.allowance_tokens
    return (
        f"{size} {'is free' if free else 'needs kudos'}: {count(measure.allowance_tokens)} tokens are free "
        f"at an estimated wait of {seconds(measure.waits.named_s)}"
    )


def detail_tiles(detail: ModelDetail) -> list[dict[str, object]]:
    """Return the row of figures."""
    measure, waits = detail.measure, detail.measure.waits
    worst = None if waits is None else waits.worst_s
    ends = [n for n in (measure.allowance_tokens, measure.allowance_at_high_tokens) if n is not None]
    at_worst = count(min(ends)) if measure.allowance_at_high_tokens is not None else NOT_REPORTED
    assumed = f"{count(measure.unmeasured_workers)} at assumed speed" if measure.unmeasured_workers else ""
    largest = measure.largest_free_request_tokens
    return [
        tile("State", STATES[measure.state].label, sub=f"at {count(measure.max_length)} tokens", help=STATES[measure.state].text),
        tile(
            "Free allowance", count(measure.allowance_tokens), unit="tokens", sub=f"at worst {at_worst}", help=gloss("allowance")
        ),
        tile(
            "Estimated wait",
            seconds(None if waits is None else waits.named_s),
            sub=f"at worst {seconds(worst)}",
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
            "none" if largest is None and measure.queued_tokens is not None else count(largest),
            unit="tokens" if largest is not None else "",
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


# --- workers, scenarios, conditions ----------------------------------------------------------------------------------------

WORKER_COLUMNS: Final = [
    grid.Column(key="worker", label="Worker", kind="name"),
    grid.Column(key="counts", label="Counts", help="Whether it is counted at the size asked."),
    grid.Column(key="speed", label="Speed", unit="tok/s", right=True, help=gloss("assumed_speed")),
    grid.Column(key="share", label="Share", unit="of the speed", right=True),
    grid.Column(key="size", label="Takes up to", unit="tokens", right=True, help="Its largest size at the context asked for."),
    grid.Column(key="context", label="Context", unit="tokens", right=True),
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


def worker_rows(detail: ModelDetail) -> list[grid.Row]:
    """Return a row a worker that serves the models, those that count first."""
    return [
        grid.Row(id=f"worker {part.worker.worker_id}", cells=_worker_cells(part), out=not part.eligible)
        for part in detail.workers
    ]


def _worker_cells(part: WorkerPart) -> dict[str, grid.Cell]:
    worker = part.worker
    why = " ".join([*(reason.text for reason in part.reasons), *(unknown.text for unknown in part.unknowns)])
    others = ", ".join(part.other_models)
    return {
        "worker": grid.name_cell(worker.name or "(no name)", sub=shortened(visible(worker.bridge_agent or ""), 60)),
        "counts": "yes" if part.eligible else "no",
        "speed": {"text": speed(part.speed_tok_per_s), "sub": "assumed" if part.assumed else ""},
        "share": ratio(part.speed_share),
        "size": count(part.largest_size_tokens),
        "context": count(worker.max_context_length),
        "finish": {"text": seconds(part.finish_s), "sub": "" if part.finishes else "over the limit of a job"},
        "also": {"text": count(len(part.other_models)), "title": visible(shortened(others, 1_000))},
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
                "scenario": {"text": scenario.name},
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
