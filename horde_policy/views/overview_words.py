"""The Overview's sentences: the answer on top, what stands behind it, the banner, and what the page is for a newcomer."""

from typing import Final

from horde_policy.board.rows import Board, Pulse, Row
from horde_policy.settings import AllowanceSettings
from horde_policy.views.text import count, range_text, seconds

__all__ = ["MADE_UP", "banner_text", "explanations", "headline", "rule_sentence"]


def rule_sentence(settings: AllowanceSettings) -> str:
    """Return in one sentence what the board shows, for someone who has never seen it.

    >>> rule_sentence(AllowanceSettings()).partition("without kudos, ")[2]
    '4,096 up to an estimated wait of 60 s, falling to 512 at 300 s.'
    """
    return (
        "What the AI Horde gives free: the output tokens that each model serves now to a requester without kudos, "
        f"{count(settings.ceiling_tokens)} up to an estimated wait of {seconds(settings.wait_full_s)}, "
        f"falling to {count(settings.floor_tokens)} at {seconds(settings.wait_floor_s)}."
    )


MADE_UP: Final = "These data are made up; the public AI Horde is asked nothing before you choose it."
"""What the demo says of its figures, beside the way to the real ones."""


def headline(board: Board) -> str:
    """Return the answer to "is text generation all right?" as one sentence, with every other state and its number.

    The allowance is measured at the size asked for, which the sentence says: a full allowance is no promise that a worker takes
    so large a request (:func:`explanations`). What is not known is counted as that, and never as none.
    """
    pulse = board.pulse
    models, full, unknown = pulse.models, pulse.states["full"], pulse.states["unknown"]
    if models == 0:
        return "No model is listed and no worker serves one"
    if unknown == models:
        return f"The allowance of {'the only model' if models == 1 else f'all {count(models)} models'} is not known"
    takes = "takes no such request" if pulse.states["too_large"] == 1 else "take no such request"
    tail = [
        (pulse.states["falling"], "falling"),
        (pulse.states["floor"], "at the floor"),
        (pulse.states["no_worker"], "without a worker"),
        (pulse.states["too_large"], takes),
    ]
    asked = f"At {count(board.max_length)} tokens, "
    if unknown and not full:
        sentence = f"the allowance of {count(unknown)} of {count(models)} models is not known"
    else:
        sentence = _of_the_models(full, models) + " the full allowance"
        tail.append((unknown, "not known"))
    parts = [f"{count(number)} {text}" for number, text in tail if number]
    return asked + (f"{sentence}; {', '.join(parts)}" if parts else sentence)


def _of_the_models(full: int, models: int) -> str:
    if models == 1:
        return f"the only model {'gives' if full else 'does not give'}"
    if full in (0, models):
        return f"{'every one' if full else 'none'} of {count(models)} models gives"
    return f"{count(full)} of {count(models)} models {'gives' if full == 1 else 'give'}"


def explanations(board: Board) -> list[str]:
    """Return what a reader must know to read the headline right: what "full" is worth, and why what is not known is not known."""
    return [text for text in (_worth_of_full(board), _why_unknown(board)) if text]


def _worth_of_full(board: Board) -> str:
    """Return how large a request the models at the full allowance take free, where that is less than the allowance."""
    ceiling = board.settings.ceiling_tokens
    largest = [free for row in _rows(board, "full") if (free := row.measure.largest_free_request_tokens) is not None]
    if not largest or min(largest) >= ceiling:
        return ""
    who = "this model" if len(largest) == 1 else f"these {count(len(largest))} models"
    most = range_text(min(largest), max(largest))
    return (
        f"The full allowance is {count(ceiling)} tokens, which promises no worker for so large a request: "
        f"the largest free on {who} is {most}."
    )


def _why_unknown(board: Board) -> str:
    """Return why the allowance of some models is not known; nothing where every one is."""
    rows = _rows(board, "unknown")
    if not rows:
        return ""
    rest = "wait and allowance are not known, which is not zero."
    if board.fleet.listed is None:
        return f"The source has no list of models: no queue is reported, so {rest}"
    who = "1 model that is served: its" if len(rows) == 1 else f"{count(len(rows))} models that are served: their"
    return f"The server's list gives no queue of {who} {rest}"


def _rows(board: Board, state: str) -> list[Row]:
    return [row for row in board.rows if row.measure.state == state]


def banner_text(pulse: Pulse) -> str | None:
    """Return what the server's modes mean for everybody, if one of them is on.

    Returns null when none is on or the modes are not reported.
    """
    if pulse.maintenance_mode:
        return "The horde is in maintenance: it takes no new requests. Figures are of what is still running."
    if pulse.invite_only_mode:
        return "The horde is in invite-only mode: new workers need an invitation, so the fleet may be smaller than usual."
    return None
