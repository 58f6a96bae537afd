"""What a source says of one model when it is asked for that model alone (horde.md §1.2)."""

from dataclasses import dataclass
from datetime import datetime

__all__ = ["ModelLook"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLook:
    """What a source says of one model when it is asked for that model alone.

    Attributes
    ----------
    model, at
        The name, and when the answer was fetched or recorded (UTC); null where there is none yet.
    known
        Whether the server knows the model: of custom models it says nothing here, even live ones. Null without an answer.
    queued_tokens, jobs, eta_s
        Tokens × generations waiting and in flight; generations waiting and in flight; the server's own estimate of the
        seconds until the queue is done. Null: not reported, or (``eta_s``) the server's marker for no capacity.
    error
        Why there is no newer answer; null while all is well.
    """

    model: str
    at: datetime | None
    known: bool | None
    queued_tokens: float | None
    jobs: float | None
    eta_s: float | None
    error: str | None = None
