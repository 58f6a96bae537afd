"""A probe: what a horde says to a dry run of a model and size, ours beside it, and why the two may differ (A21, A24).

At most one probe a model and minute, counted over all processes that share a folder; nothing is ever queued
(:class:`horde_policy.sources.dry_run.OnlyDryRuns`).
"""

import fcntl
import hashlib
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from horde_policy.board.measure import Measure, check_context, check_size, measure
from horde_policy.board.pool import Fleet
from horde_policy.clock import Clock
from horde_policy.errors import InputError
from horde_policy.frames.snapshot import Snapshot
from horde_policy.policy.alternatives import old_rule_allowance
from horde_policy.policy.decision import Pool, decide
from horde_policy.policy.request import Request
from horde_policy.settings import AllowanceSettings
from horde_policy.sources.dry_run import DryRunAnswer, DryRunClient
from horde_policy.units import DEFAULT_MAX_CONTEXT_TOKENS, one_or_range

__all__ = ["ONE_PROBE_EVERY_S", "Ours", "ProbePace", "ProbeResult", "Prober", "probe_folder", "why_different"]

ONE_PROBE_EVERY_S = 60.0
CACHES_S = 120.0
"""Figures of the public API may be so old in all (horde_observed.md, "How old the answers are")."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """What our reading of the public figures says to the same request.

    ``outcome`` is ``free``, ``refused``, ``no_eligible_worker``, or ``unknown`` where the queue is not reported; ``message`` the
    sentence that its client would read, null where unknown.
    """

    outcome: str
    allowance_tokens: int | None
    message: str | None
    measure: Measure
    age_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """A probe's answer, ours beside it, whether both say the same (null: not known), and why they may differ."""

    model: str
    max_length: int
    max_context_length: int
    answer: DryRunAnswer
    ours: Ours | None
    agrees: bool | None
    reasons: tuple[str, ...]


def probe_folder(environment: Mapping[str, str]) -> Path:
    """Return where the processes of a user keep when they last probed what.

    >>> str(probe_folder({"XDG_CACHE_HOME": "/cache"}))
    '/cache/horde_policy/probes'
    """
    cache = environment.get("XDG_CACHE_HOME") or str(Path(environment.get("HOME", "~")).expanduser() / ".cache")
    return Path(cache) / "horde_policy" / "probes"


class ProbePace:
    """Lets a host be probed about a model once a minute, over all threads and, with a folder, all processes that share it.

    Where the folder cannot be used this process keeps its own pace.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._last: dict[str, float] = {}

    def wait_s(self, host: str, model: str, now: datetime) -> float:
        """Return how long until the model may be probed; 0: now."""
        with self._lock:
            return _left_s(self._last_of(_digest(host, model)), now.timestamp())

    def take(self, host: str, model: str, now: datetime) -> float:
        """Take the probe of this minute: 0 if it is ours, else how long until the next."""
        with self._lock, self._alone():
            return self._take(_digest(host, model), now.timestamp())

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other processes out, where the folder can be used."""
        try:
            lock = self._opened_lock()
        except OSError:
            lock = None
        try:
            yield
        finally:
            if lock is not None:
                os.close(lock)

    def _opened_lock(self) -> int | None:
        if self._folder is None:
            return None
        self._folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        return lock

    def _take(self, name: str, now_s: float) -> float:
        left_s = _left_s(self._last_of(name), now_s)
        if left_s == 0:
            self._last[name] = now_s
            if self._folder is not None:
                with suppress(OSError):
                    (self._folder / name).write_text(f"{now_s:.3f}", encoding="ascii")
        return left_s

    def _last_of(self, name: str) -> float | None:
        known = self._last.get(name)
        if self._folder is None:
            return known
        try:
            written = float((self._folder / name).read_text(encoding="ascii"))
        except (OSError, ValueError):
            return known
        return written if known is None else max(known, written)


def _digest(host: str, model: str) -> str:
    return hashlib.sha256(f"{host}\n{model}".encode(errors="replace")).hexdigest()[:32]


def _left_s(last_s: float | None, now_s: float) -> float:
    """Return what is left of the minute; a probe in the future was made by a clock that has since been set back."""
    if last_s is None or not 0 <= now_s - last_s < ONE_PROBE_EVERY_S:
        return 0.0
    return ONE_PROBE_EVERY_S - (now_s - last_s)


class Prober:
    """Probes one horde.

    Parameters
    ----------
    client
        Sends the dry runs.
    pace
        Shared by all probers of a process.
    clock
        Tells the present.
    """

    def __init__(self, client: DryRunClient, pace: ProbePace, *, clock: Clock) -> None:
        self._client = client
        self._pace = pace
        self._clock = clock

    def wait_s(self, model: str) -> float:
        """Return how long until the model may be probed again; 0: now."""
        return self._pace.wait_s(self._client.name, model, self._clock.now())

    def probe(
        self,
        model: str,
        max_length: int,
        snapshot: Snapshot | None,
        settings: AllowanceSettings,
        *,
        context_tokens: int = DEFAULT_MAX_CONTEXT_TOKENS,
    ) -> ProbeResult:
        """Ask the horde what it says to a dry run, and compare it with ours.

        Parameters
        ----------
        model, max_length, context_tokens
            What is asked for; the context is never below the size, which the API refuses.
        snapshot, settings
            What ours rests on; null: there is no snapshot, then there is none of ours.

        Raises
        ------
        InputError
            The size or context is out of its range, or the model was probed less than a minute ago.
        SourceUnavailable
            There is no answer.
        """
        check_size(max_length)
        context = max(check_context(context_tokens), max_length)
        if not model:
            raise InputError("model", "", model, "must be named for a probe")
        left_s = self._pace.take(self._client.name, model, self._clock.now())
        if left_s > 0:
            raise InputError("probe", "", model, f"was probed less than a minute ago; again in {left_s:.0f} s")
        answer = self._client.ask(model, max_length, context)
        ours = None if snapshot is None else _ours(snapshot, settings, model, max_length, context_tokens, answer.at)
        return ProbeResult(
            model=model,
            max_length=max_length,
            max_context_length=context,
            answer=answer,
            ours=ours,
            agrees=_agrees(answer, ours),
            reasons=why_different(answer, ours, snapshot),
        )


def _ours(
    snapshot: Snapshot, settings: AllowanceSettings, model: str, max_length: int, context_tokens: int, now: datetime
) -> Ours:
    fleet = Fleet.of(snapshot, settings)
    found = measure(fleet, (model,), max_length, context_tokens)
    age_s = (now - snapshot.figures_at).total_seconds()
    if found.queued_tokens is None and found.eligible_workers:
        return Ours(outcome="unknown", allowance_tokens=None, message=None, measure=found, age_s=age_s)
    request = Request(
        models=(model,), max_length=max_length, max_context_length=found.max_context_length, requester="anonymous", dry_run=True
    )
    decision = decide(request, Pool(workers=fleet.workers, queued_tokens=found.queued_tokens or 0.0), settings)
    outcome = "no_eligible_worker" if decision.reason == "NoEligibleWorker" else decision.outcome
    return Ours(
        outcome=outcome,
        allowance_tokens=decision.allowance_tokens,
        message=decision.message,
        measure=found,
        age_s=age_s,
    )


def _agrees(answer: DryRunAnswer, ours: Ours | None) -> bool | None:
    """Tell whether both say the same; null where one says nothing about the allowance."""
    if ours is None or ours.outcome == "unknown" or answer.outcome not in ("free", "refused", "no_eligible_worker"):
        return None
    if answer.outcome != ours.outcome:
        return False  # kudos help against KudosUpfront and not against NoEligibleWorker (A19): no figure makes the two alike
    return answer.stated_tokens is None or answer.stated_tokens == ours.allowance_tokens


_ANSWERS = {
    "invalid": "The server takes no such request, whatever its allowance: see its sentence.",
    "maintenance": "The horde is in maintenance and decides nothing.",
    "bad_key": "The server does not take the anonymous key, so it says nothing of the allowance.",
    "throttled": "The server was asked too often from this address and said nothing of the allowance;",
    "too_many_prompts": "The anonymous account has too many requests waiting on this model; that is no allowance.",
    "server_error": "The server failed. A dry run of a model outside the server's reference list is known to end so.",
    "queued": "The server says that it queued this dry run, which it should not: tell its operators.",
    "not_understood": "A dry run is answered with a price in kudos, or with why not: this is neither, and says nothing.",
}


def why_different(answer: DryRunAnswer, ours: Ours | None, snapshot: Snapshot | None) -> tuple[str, ...]:
    """Return why the server's answer and ours may differ, as sentences, the most telling first.

    Nothing where both agree and nothing needs to be known of the answer.
    """
    reasons: list[str] = []
    if answer.outcome in _ANSWERS:
        reasons.append(_ANSWERS[answer.outcome])
    if answer.outcome == "throttled":
        asks = (
            "does not say for how long to wait" if answer.retry_after_s is None else f"asks to wait {answer.retry_after_s:.0f} s"
        )
        reasons[-1] += f" it {asks}."
    if answer.rule == "old":
        reasons += _old_rule_reasons(answer, snapshot)
    if ours is None:
        return (*reasons, "There is no snapshot to read ours from.")
    if ours.outcome == "unknown":
        return (*reasons, "The model's queue is not reported, so ours is not known.")
    if _agrees(answer, ours) is False:
        reasons += _reading_reasons(answer, ours)
    return tuple(reasons)


def _old_rule_reasons(answer: DryRunAnswer, snapshot: Snapshot | None) -> list[str]:
    told = [
        "The sentence is the previous rule's: it counts requests and threads of the whole horde, from 256 to 512 tokens, "
        "and knows nothing of this model's queue."
    ]
    performance = None if snapshot is None else snapshot.performance
    if performance is not None and None not in (performance.text_thread_count, performance.queued_text_requests):
        figure = old_rule_allowance(performance.text_thread_count or 0, performance.queued_text_requests or 0.0)
        beside = "" if answer.stated_tokens is None else f", beside the {answer.stated_tokens} that it states"
        told.append(f"By that rule the public figures give {figure} tokens{beside}.")
    return told


def _kudos_reasons(answer: DryRunAnswer, ours: Ours) -> list[str]:
    """Return why one says that kudos would help and the other that they would not (A19)."""
    if (answer.outcome, ours.outcome) == ("refused", "no_eligible_worker"):
        told = "The server says that kudos would help, ours that they would not, since no online worker serves this request."
        if answer.rule == "old":
            return [f"{told} The previous rule refuses for kudos before it looks for a worker."]
        return [f"{told} A server with an earlier rule refuses for kudos before it looks for a worker."]
    if (answer.outcome, ours.outcome) == ("no_eligible_worker", "refused"):
        return ["The server says that kudos do not help, since no online worker serves this request; ours that they would."]
    return []


def _reading_reasons(answer: DryRunAnswer, ours: Ours) -> list[str]:
    found = ours.measure
    told = _kudos_reasons(answer, ours)
    low, high = found.allowance_at_high_tokens, found.allowance_at_low_tokens
    if answer.stated_tokens is not None and low is not None and high is not None and answer.rule != "old":
        within = "within" if low <= answer.stated_tokens <= high else "outside"
        told.append(
            f"Over the range that the public queue is, our allowance is {one_or_range(str(low), str(high))} tokens. "
            f"What is stated lies {within} it."
        )
    if answer.outcome == "free" and ours.outcome != "free" and answer.rule is None:
        told.append(
            "The server sees the queue ahead of this very request by its priority; the list says only what is queued in all."
        )
    if found.unmeasured_workers:
        told.append(f"{found.unmeasured_workers} of its eligible workers have done no job yet and count at an assumed speed.")
    if ours.outcome == "no_eligible_worker" or answer.outcome == "no_eligible_worker":
        told.append("Which workers are online is known to the server by the second, and to the public list by the half minute.")
    told.append(f"Our figures are {max(0.0, ours.age_s):.0f} s old, and the server's own caches add up to {CACHES_S:.0f} s.")
    return told
