"""What a source says of one model when asked for it alone, in words (horde.md §1.2)."""

from horde_policy.frames.model_look import ModelLook
from horde_policy.views.text import clock_time, count, seconds, visible

__all__ = ["ALONE_COUNTS", "alone_sentence"]

ALONE_COUNTS = (
    "Counted otherwise than in the list: a request as often as the answers it asks for, those being made included. The wait is "
    "the server's own, this queue over the model's threads and mean speed; the allowance is measured from the list."
)
"""What the figures mean; it stands beside them."""


def alone_sentence(look: ModelLook) -> str:
    """Return the figures as a sentence, or why there are none.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> at = datetime(2026, 11, 29, 19, 39, 1, tzinfo=UTC)
    >>> alone_sentence(ModelLook(model="m", at=at, known=True, queued_tokens=1912.0, jobs=6.0, eta_s=22.0))
    'Asked again for this model alone: queued 1,912 tokens, jobs 6, wait 22 s (19:39 UTC).'
    >>> alone_sentence(ModelLook(model="m", at=None, known=None, queued_tokens=None, jobs=None, eta_s=None))
    'Asked again for this model alone: the answer is on its way.'
    """
    asked = "Asked again for this model alone: "
    trouble = "" if look.error is None else visible(look.error)
    if look.at is None:
        return asked + (f"no answer ({trouble})." if trouble else "the answer is on its way.")
    when = f" ({clock_time(look.at)}{f'; since then no answer: {trouble}' if trouble else ''})."
    if not look.known:
        return f"{asked}the server says nothing, since it answers for the models of its reference list only{when}"
    wait = "not told: no capacity, or not reported" if look.eta_s is None else seconds(look.eta_s)
    return f"{asked}queued {_figure(look.queued_tokens)} tokens, jobs {_figure(look.jobs)}, wait {wait}{when}"


def _figure(number: float | None) -> str:
    return "not reported" if number is None else count(number)
