"""The queue: its order, what waits in it, and the output tokens ahead of a new request (A7; ``replay.md``, "Queue order")."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from horde_policy.errors import InputError
from horde_policy.policy.eligibility import could_take
from horde_policy.policy.request import Request
from horde_policy.policy.worker import Worker
from horde_policy.settings import AllowanceSettings
from horde_policy.units import MICROSECONDS_PER_S

__all__ = ["QueueKey", "Waiting", "competing_jobs", "queue_key", "tokens_ahead"]


class QueueKey(NamedTuple):
    """A request's place in the queue, fixed at creation: the smaller key stands ahead.

    ``negated_rank`` is ageing minus priority, then the earlier creation in µs since the epoch, then the row or number given.
    """

    negated_rank: float
    created_us: int
    row: int


def queue_key(
    priority: float, created_us: int, row: int, *, ageing_kudos: float = 50.0, ageing_every_s: float = 10.0
) -> QueueKey:
    """Return the key ``priority − ageing_kudos · floor(created / ageing_every)``, negated, with creation and row to break ties.

    The server adds 50 to all that wait every 10 s; the order between two of them never changes, so a key need not either.

    Parameters
    ----------
    priority
        Kudos at creation (:attr:`Request.starting_priority`).
    created_us
        Creation in microseconds since the epoch.
    row
        Any number that grows with arrival; it orders requests of the same instant.
    ageing_kudos, ageing_every_s
        The gain of all that wait, and each how many seconds; rounded to whole microseconds, as in a replay.

    Examples
    --------
    >>> early, rich = queue_key(0, 0, 0), queue_key(100, 15_000_000, 1)
    >>> rich < early
    True
    >>> queue_key(100, 30_000_000, 1) < early
    False
    """
    steps = created_us // round(ageing_every_s * MICROSECONDS_PER_S)
    return QueueKey(-(priority - ageing_kudos * steps), created_us, row)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A request that waits: itself with its current ``max_length``, its key, and how many of its answers are not handed out."""

    request: Request
    key: QueueKey
    remaining_n: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.remaining_n, bool) or not isinstance(self.remaining_n, int) or self.remaining_n < 0:
            raise InputError("waiting request", "field remaining_n", self.remaining_n, "must be a whole number of at least 0")

    @property
    def tokens(self) -> int:
        """Output tokens it queues: requested ``max_length`` × answers not yet handed out (A7)."""
        return self.request.max_length * self.remaining_n


def _competing(
    waiting: Iterable[Waiting],
    eligible: Sequence[Worker],
    key: QueueKey | None,
    settings: AllowanceSettings,
    sizes_billions: Mapping[str, float] | None,
) -> Iterable[Waiting]:
    if key is None and settings.ahead == "queue_order":
        raise InputError("request", "its queue key", None, "must be given where what is ahead goes by queue order")
    for other in waiting:
        stands_ahead = settings.ahead == "all" or (key is not None and other.key < key)
        if stands_ahead and any(could_take(worker, other.request, settings, sizes_billions) for worker in eligible):
            yield other


def tokens_ahead(
    waiting: Iterable[Waiting],
    eligible: Sequence[Worker],
    key: QueueKey | None,
    settings: AllowanceSettings,
    sizes_billions: Mapping[str, float] | None = None,
) -> int:
    """Return the output tokens that stand ahead of the key and that at least one of the eligible workers could take (A7).

    With the setting ``ahead = all`` everything that waits counts, whatever its key. This walks the queue;
    :class:`horde_policy.policy.estimator.Estimator` gives the same number without.

    Examples
    --------
    >>> one = Worker(worker_id="w", models=("m",), max_length=512, max_context_length=4096)
    >>> queue = [Waiting(Request(models=(m,), max_length=100, n=2), queue_key(0, i, i), 2) for i, m in enumerate(["m", "x", "m"])]
    >>> tokens_ahead(queue, [one], queue_key(0, 2, 2), AllowanceSettings())
    200
    """
    return sum(other.tokens for other in _competing(waiting, eligible, key, settings, sizes_billions))


def competing_jobs(
    waiting: Iterable[Waiting],
    eligible: Sequence[Worker],
    key: QueueKey | None,
    settings: AllowanceSettings,
    sizes_billions: Mapping[str, float] | None = None,
) -> int:
    """Return the answers that :func:`tokens_ahead` counts the tokens of: the jobs of the jobs rule (A30)."""
    return sum(other.remaining_n for other in _competing(waiting, eligible, key, settings, sizes_billions))
