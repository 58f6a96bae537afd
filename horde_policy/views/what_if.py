"""What moves an allowance, in words and rows: the move that the address holds, before and after it, and the way back."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from horde_policy.board.measure import Measure
from horde_policy.board.moves import AddedWorker, Move, WayBack
from horde_policy.board.pool import Fleet
from horde_policy.errors import shown
from horde_policy.policy.eligibility import serves_models
from horde_policy.policy.wait import wait_time_s
from horde_policy.policy.worker import Worker
from horde_policy.settings import AllowanceSettings
from horde_policy.views import grid
from horde_policy.views.parameters import TRIED_PARAMETERS
from horde_policy.views.state import ViewState
from horde_policy.views.text import NOT_REPORTED, count, largest_free, seconds, speed, visible
from horde_policy.views.words import gloss

__all__ = [
    "ADDED_SPEEDS_TOK_PER_S",
    "COMPARED_COLUMNS",
    "QUEUE_STEPS_TOKENS",
    "Tried",
    "compared_rows",
    "left_out_notes",
    "move_of",
    "move_sentence",
    "moved_sentence",
    "queue_step_text",
    "status_wait_time_s",
    "tries",
    "way_back_sentence",
]

_STEPS = (100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000)
QUEUE_STEPS_TOKENS: Final = (*(-step for step in reversed(_STEPS)), 0, *_STEPS)
ADDED_SPEEDS_TOK_PER_S: Final = (0, 2, 5, 10, 15, 20, 30, 40, 60, 80, 120, 160, 240, 320)


@dataclass(frozen=True, slots=True)
class Tried:
    """A move, and the workers to be lost that the list does not have or that serve none of these models, by id."""

    move: Move
    gone: tuple[str, ...]
    elsewhere: tuple[str, ...]

    @property
    def changes(self) -> bool:
        """Whether the move changes anything at all."""
        return self.move != Move()


def tries(state: ViewState) -> bool:
    """Tell whether the address holds a move."""
    return bool(state.queue_change_tokens or state.lost or state.added_tok_per_s or state.tried is not None)


def move_of(state: ViewState, fleet: Fleet) -> Tried:
    """Return the move that the address holds, without the workers that cannot be lost here: gone, or of other models."""
    added: tuple[AddedWorker, ...] = ()
    if state.added_tok_per_s:
        context = max(state.max_context_tokens, state.added_max_length)
        one = AddedWorker(speed_tok_per_s=state.added_tok_per_s, max_length=state.added_max_length, max_context_length=context)
        added = (one,)
    gone = tuple(worker_id for worker_id in state.lost if worker_id not in fleet.by_id)
    known = tuple(worker_id for worker_id in state.lost if worker_id in fleet.by_id)
    lost = frozenset(worker_id for worker_id in known if serves_models(fleet.by_id[worker_id], state.models))
    elsewhere = tuple(worker_id for worker_id in known if worker_id not in lost)
    move = Move(queue_change_tokens=state.queue_change_tokens, lost=lost, added=added, settings=state.tried)
    return Tried(move, gone, elsewhere)


def left_out_notes(state: ViewState, fleet: Fleet) -> tuple[str, ...]:
    """Return what the address names that this list of workers and models does not have; hostile text stands in it.

    >>> left_out_notes(ViewState(lost=("nobody",)), Fleet((), {}, 0.0, AllowanceSettings()))
    ("The link's lost='nobody' is left out: no worker of the list has that id; it may have left.",)
    """
    tried, names = move_of(state, fleet), set(fleet.names)
    unknown = tuple(name for name in state.models if name not in names and fleet.listed is not None)
    return (
        *_left_out("m", unknown, "stays, but no worker of the list serves it, nor is it listed; it may have left"),
        *_left_out("lost", tried.gone, "is left out: no worker of the list has that id; it may have left"),
        *_left_out("lost", tried.elsewhere, "is left out: that worker serves none of these models"),
    )


def _left_out(parameter: str, values: tuple[str, ...], rule: str) -> tuple[str, ...]:
    """Return a sentence for the first of these values, with the number of the others; none for none."""
    if not values:
        return ()
    others = f" So with {count(len(values) - 1)} more." if len(values) > 1 else ""
    return (f"The link's {parameter}={shown(values[0])} {rule}.{others}",)


def queue_step_text(tokens: int) -> str:
    """Return a change of the queue as it stands on its slider.

    >>> queue_step_text(0), queue_step_text(2500), queue_step_text(-100)
    ('as it is', '+2,500 tokens', '−100 tokens')
    """
    return "as it is" if tokens == 0 else f"{'+' if tokens > 0 else '−'}{count(abs(tokens))} tokens"


def _names(workers: Mapping[str, Worker], ids: frozenset[str]) -> str:
    return ", ".join(visible(workers[worker_id].name or worker_id) for worker_id in sorted(ids))


def move_sentence(move: Move, fleet: Fleet) -> str:
    """Return what is changed, as the beginning of a sentence; names in it are made visible and stay hostile text.

    >>> move_sentence(Move(queue_change_tokens=2500), Fleet((), None, None, AllowanceSettings()))
    'With 2,500 tokens more queued'
    >>> tried = Move(settings=AllowanceSettings(floor_tokens=1024, wait_floor_s=240))
    >>> move_sentence(tried, Fleet((), None, None, AllowanceSettings()))
    'With floor 1,024, with floor wait 240 s'
    """
    parts = []
    if move.queue_change_tokens:
        more = "more" if move.queue_change_tokens > 0 else "fewer"
        parts.append(f"with {count(abs(move.queue_change_tokens))} tokens {more} queued")
    if move.lost:
        parts.append(f"without {_names(fleet.by_id, move.lost)}")
    for one in move.added:
        parts.append(
            f"with one more worker of {speed(one.speed_tok_per_s)} tok/s that takes up to {count(one.max_length)} tokens"
        )
    if move.settings is not None:
        parts += [
            f"with {name.removeprefix('try_').replace('_', ' ')} "
            f"{(seconds if setting.endswith('_s') else count)(getattr(move.settings, setting))}"
            for name, setting in TRIED_PARAMETERS.items()
            if getattr(move.settings, setting) != getattr(fleet.settings, setting)
        ]
    text = ", ".join(parts) or "with nothing changed"
    return text[0].upper() + text[1:]


def moved_sentence(now: Measure, then: Measure) -> str:
    """Return what a move does to the allowance and the largest free request.

    >>> from horde_policy.board.measure import measure
    >>> nobody = measure(Fleet((), {}, 0.0, AllowanceSettings()), (), 80)
    >>> moved_sentence(nobody, nobody)
    'the allowance stays at 512 tokens, and no request is free'
    """

    def told(what: str, before: int | None, after: int | None, unit: str = "") -> str:
        if before is None or after is None:
            return f"{what} goes from {count(before)} to {count(after)}{unit}"
        if before == after:
            return f"{what} stays at {count(after)}{unit}"
        return f"{what} {'falls' if after < before else 'rises'} from {count(before)} to {count(after)}{unit}"

    largest = (now.largest_free_request_tokens, then.largest_free_request_tokens)
    free = "no request is free" if largest == (None, None) else told("the largest free request", *largest)
    return f"{told('the allowance', now.allowance_tokens, then.allowance_tokens, ' tokens')}, and {free}"


def status_wait_time_s(measured: Measure) -> float | None:
    """Return ``wait_time`` as the status route would give it for the size asked (A7); null without an estimate.

    >>> from horde_policy.board.measure import measure
    >>> status_wait_time_s(measure(Fleet((), {}, 0.0, AllowanceSettings()), (), 80)) is None
    True
    """
    named_s = None if measured.waits is None else measured.waits.named_s
    return wait_time_s(named_s, measured.max_length, measured.speed_tok_per_s)


# --- before and after ---------------------------------------------------------------------------------------------------

COMPARED_COLUMNS: Final = [
    grid.Column(key="when", label="", kind="name"),
    grid.Column(key="state", label="State", kind="state"),
    grid.Column(key="allowance", label="Free allowance", kind="allowance", unit="tokens", help=gloss("allowance"), wide=True),
    grid.Column(key="largest", label="Largest free", unit="tokens", right=True, help=gloss("largest_free_request")),
    grid.Column(key="wait", label="Wait", unit="named, at worst", right=True, help=gloss("estimated_wait", "named", "at_worst")),
    grid.Column(
        key="wait_time",
        label="wait_time",
        unit="status route",
        right=True,
        help="As the status route would give it: the estimated wait, plus the request's own output by the combined speed.",
    ),
    grid.Column(key="queued", label="Queued", unit="tokens", right=True, help=gloss("queued_tokens")),
    grid.Column(key="speed", label="Speed", unit="tok/s", right=True, help=gloss("combined_speed")),
    grid.Column(key="workers", label="Workers", unit="eligible", right=True, help=gloss("eligible_worker")),
]


def compared_rows(now: Measure, then: Measure | None, settings: AllowanceSettings, tried: AllowanceSettings) -> list[grid.Row]:
    """Return the figures now, and after a move where one is tried, each on the scale of its settings."""
    rows = [grid.Row(id="now", cells=_compared(now, settings) | {"when": {"text": "Now"}})]
    if then is not None:
        rows.append(grid.Row(id="then", cells=_compared(then, tried) | {"when": {"text": "Then"}}, pinned=True))
    return rows


def _compared(measured: Measure, settings: AllowanceSettings) -> dict[str, grid.Cell]:
    waits = measured.waits
    unknown = measured.queued_tokens is None and measured.open_workers
    assumed = f"{count(measured.unmeasured_workers)} assumed" if measured.unmeasured_workers else ""
    return {
        "state": grid.state_cell(measured.state),
        "allowance": grid.allowance_cell(
            measured.state,
            allowance=measured.allowance_tokens,
            at_high=measured.allowance_at_high_tokens,
            ceiling=settings.ceiling_tokens,
        ),
        "largest": largest_free(measured.largest_free_request_tokens, known=not unknown),
        "wait": NOT_REPORTED if waits is None else {"text": seconds(waits.named_s), "sub": f"at worst {seconds(waits.worst_s)}"},
        "wait_time": seconds(status_wait_time_s(measured)),
        "queued": count(measured.queued_tokens),
        "speed": {"text": speed(measured.speed_tok_per_s), "sub": assumed},
        "workers": count(measured.eligible_workers),
    }


# --- the way back ---------------------------------------------------------------------------------------------------------


def way_back_sentence(back: WayBack, measured: Measure, settings: AllowanceSettings, *, tried: bool = False) -> str:
    """Return what it takes to be at the ceiling (again), each way by itself; ``tried`` says that it speaks of what is tried.

    >>> from horde_policy.board.measure import measure
    >>> from horde_policy.board.moves import way_back
    >>> nobody = measure(Fleet((), {}, 0.0, AllowanceSettings()), (), 80)
    >>> way_back_sentence(way_back(nobody, AllowanceSettings()), nobody, AllowanceSettings())
    'Back at 4,096 tokens with 0.1 tok/s added by workers that take 80 tokens.'
    """
    text = _way_back(back, measured, settings)
    return f"With what is tried: {text[0].lower()}{text[1:]}" if tried else text


def _way_back(back: WayBack, measured: Measure, settings: AllowanceSettings) -> str:
    target = count(back.target_tokens)
    if back.reached:
        return f"The allowance is at the ceiling of {target} tokens: {_room(measured, settings)}."
    if measured.queued_tokens is None:
        return "What it takes to be at the ceiling is not known, since the queue is not reported."
    ways = []
    if back.clear_tokens is not None:
        ways.append(f"{count(back.clear_tokens)} of the {count(measured.queued_tokens)} queued tokens gone")
    if back.add_speed_tok_per_s is not None:
        ways.append(f"{back.add_speed_tok_per_s:,.1f} tok/s added by workers that take {count(measured.max_length)} tokens")
    if not ways:
        return f"No speed brings the allowance to {target} tokens: the full wait is 0 s, and something is queued."
    return f"Back at {target} tokens with {' or '.join(ways)}."


def _room(measured: Measure, settings: AllowanceSettings) -> str:
    """Return how far it is from falling."""
    if measured.queued_tokens is None or not measured.speed_tok_per_s:
        return "ceiling and floor are the same"
    spare = max(0.0, settings.wait_full_s * measured.speed_tok_per_s - measured.queued_tokens)
    return f"some {count(spare)} more queued tokens leave it there"
