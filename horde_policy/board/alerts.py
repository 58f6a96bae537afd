"""The alert conditions as a state machine over successive boards, pure: a state and a board give the next state.

A condition holds, does not hold, or is not known; what is not known neither starts nor ends an alert that fires, and one that is
pending begins anew after it. Durations are measured in the data's own time, never across a gap in it, so a source that stands
still cannot make an alert fire, and a recorder that was away cannot either. A model that is no longer listed or served by
anybody has no row: it is remembered for a day, since losing its last worker is what ``no_worker`` is about.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Literal

from horde_policy.board.measure import Measure, measure
from horde_policy.board.rows import Board
from horde_policy.errors import InputError

__all__ = ["DEFAULT_RULES", "RULE_NAMES", "Alert", "AlertChange", "AlertRules", "AlertState", "RuleName", "evaluate"]

RuleName = Literal["at_floor", "no_worker", "small_free_request", "stale"]

RULE_NAMES: tuple[RuleName, ...] = ("at_floor", "no_worker", "small_free_request", "stale")
"""In the order in which alerts are listed: first by this, then by since-when, then by model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRules:
    """When alerts fire.

    Attributes
    ----------
    for_s
        How long a condition must hold, in the data's time; 0: at once.
    small_free_tokens
        ``small_free_request`` holds where the largest free request is known and below this.
    longest_gap_s
        Two looks further apart than this say nothing of the time between them.
    remember_s
        How long a model without a row is remembered.

    Raises
    ------
    InputError
        A number is negative or not finite, or a rule is unknown.

    Examples
    --------
    >>> DEFAULT_RULES.for_s["at_floor"]
    600.0
    """

    for_s: Mapping[RuleName, float] = field(
        default_factory=lambda: MappingProxyType({"at_floor": 600.0, "no_worker": 0.0, "small_free_request": 0.0, "stale": 0.0})
    )
    small_free_tokens: int = 512
    longest_gap_s: float = 300.0
    remember_s: float = 86_400.0

    def __post_init__(self) -> None:
        numbers = {
            **{f"for_s of {name}": value for name, value in self.for_s.items()},
            "small_free_tokens": self.small_free_tokens,
            "longest_gap_s": self.longest_gap_s,
            "remember_s": self.remember_s,
        }
        for name, value in numbers.items():
            if not 0 <= value < float("inf"):
                raise InputError("alert rules", f"field {name}", value, "must be a finite number of at least 0")
        for name in RULE_NAMES:
            if name not in self.for_s:
                raise InputError("alert rules", "field for_s", sorted(self.for_s), f"must hold {name}")


DEFAULT_RULES = AlertRules()


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A condition that holds.

    Attributes
    ----------
    rule, model
        What, and of which model (hostile text); null for the source as a whole.
    since
        When the condition was first seen to hold, in the data's time.
    fired_at
        When it had held long enough; null while pending.
    """

    rule: RuleName
    model: str | None
    since: datetime
    fired_at: datetime | None = None

    @property
    def key(self) -> tuple[RuleName, str | None]:
        """What it is about."""
        return self.rule, self.model


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertChange:
    """One alert that fired, was resolved, or whose model was forgotten; told once. Rule, model and since name it for good."""

    kind: Literal["fired", "resolved", "forgotten"]
    alert: Alert
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertState:
    """What is known after a look: alerts pending and firing, when each model was last seen, and the looks' own time.

    Start with ``AlertState()``, or with what :meth:`stored` kept, so that nothing is told twice after a restart.
    """

    alerts: Mapping[tuple[RuleName, str | None], Alert] = field(default_factory=dict)
    seen: Mapping[str, datetime] = field(default_factory=dict)
    looked_at: datetime | None = None

    @property
    def firing(self) -> tuple[Alert, ...]:
        """The alerts that fire, by rule, then the longest first, then by model."""
        fired = [alert for alert in self.alerts.values() if alert.fired_at is not None]
        return tuple(sorted(fired, key=lambda alert: (RULE_NAMES.index(alert.rule), alert.since, alert.model or "")))

    def stored(self) -> dict[str, Any]:
        """Return the state in plain JSON values.

        >>> AlertState.restored(AlertState().stored()) == AlertState()
        True
        """
        return {
            "alerts": [
                {
                    "rule": alert.rule,
                    "model": alert.model,
                    "since": alert.since.isoformat(),
                    "fired_at": None if alert.fired_at is None else alert.fired_at.isoformat(),
                }
                for alert in self.alerts.values()
            ],
            "seen": {model: at.isoformat() for model, at in self.seen.items()},
            "looked_at": None if self.looked_at is None else self.looked_at.isoformat(),
        }

    @classmethod
    def restored(cls, stored: Mapping[str, Any]) -> "AlertState":
        """Return the state that :meth:`stored` gave.

        Raises
        ------
        InputError
            The values are not of that form.
        """
        try:
            alerts = [
                Alert(
                    rule=RULE_NAMES[RULE_NAMES.index(one["rule"])],
                    model=one["model"],
                    since=datetime.fromisoformat(one["since"]),
                    fired_at=None if one["fired_at"] is None else datetime.fromisoformat(one["fired_at"]),
                )
                for one in stored["alerts"]
            ]
            seen = {str(model): datetime.fromisoformat(at) for model, at in stored["seen"].items()}
            looked_at = None if stored["looked_at"] is None else datetime.fromisoformat(stored["looked_at"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError("alert state", "", stored, f"cannot be read back: {error}") from error
        return cls(alerts={alert.key: alert for alert in alerts}, seen=seen, looked_at=looked_at)


def evaluate(
    state: AlertState, board: Board, now: datetime, rules: AlertRules = DEFAULT_RULES
) -> tuple[AlertState, tuple[AlertChange, ...]]:
    """Return the state after a look, and what fired or was resolved by it.

    Parameters
    ----------
    state
        After the look before, or ``AlertState()``.
    board
        The look. When it is no newer than the last one, or older than its age limit, only ``stale`` is judged by it.
    now
        The present, which the age of the data is measured by.
    rules
        Durations and marks.
    """
    at = board.snapshot.fetched_at
    fresh_until = at + timedelta(seconds=board.snapshot.age_limit_s)
    stale = now > fresh_until
    alerts = dict(state.alerts)
    changes = _judge(alerts, ("stale", None), holds=stale, since=fresh_until, at=now, rules=rules)
    if stale or (state.looked_at is not None and at == state.looked_at):
        return replace(state, alerts=alerts), changes
    if state.looked_at is not None and not 0 <= (at - state.looked_at).total_seconds() <= rules.longest_gap_s:
        _restart(alerts, at)
    seen = _seen(state.seen, board, rules)
    for model, measured in _measures(board, seen):
        for rule, holds in _conditions(measured, rules):
            changes += _judge(alerts, (rule, model), holds=holds, since=at, at=at, rules=rules)
    forgotten = [alert for alert in alerts.values() if alert.model is not None and alert.model not in seen]
    for alert in forgotten:
        del alerts[alert.key]
    changes += tuple(AlertChange(kind="forgotten", alert=alert, at=at) for alert in forgotten if alert.fired_at is not None)
    return AlertState(alerts=alerts, seen=seen, looked_at=at), changes


def _restart(alerts: dict[tuple[RuleName, str | None], Alert], at: datetime) -> None:
    """Begin every pending duration anew after a gap, or after the clock was set back; what fires goes on firing."""
    for key, alert in alerts.items():
        if alert.model is not None and alert.fired_at is None:
            alerts[key] = replace(alert, since=at)


def _seen(before: Mapping[str, datetime], board: Board, rules: AlertRules) -> dict[str, datetime]:
    """Return model → when it last had a row, without those that are forgotten by now."""
    at = board.snapshot.fetched_at
    kept = {model: when for model, when in before.items() if at - when <= timedelta(seconds=rules.remember_s)}
    return {**kept, **dict.fromkeys(board.by_model, at)}


def _measures(board: Board, seen: Iterable[str]) -> Iterable[tuple[str, Measure]]:
    """Return each remembered model's figures; one without a row is measured as what it is, a model nobody serves."""
    for model in sorted(seen):
        row = board.by_model.get(model)
        found = row.measure if row is not None else measure(board.fleet, (model,), board.max_length, board.context_tokens)
        yield model, found


def _conditions(measured: Measure, rules: AlertRules) -> tuple[tuple[RuleName, bool | None], ...]:
    """Return whether each rule's condition holds for a model; null when that is not known."""
    unknown = measured.state == "unknown"
    free = measured.largest_free_request_tokens
    free_unknown = free is None and measured.queued_tokens is None and measured.open_workers > 0
    return (
        ("at_floor", None if unknown else measured.state == "floor"),
        ("no_worker", measured.state == "no_worker"),
        ("small_free_request", None if free_unknown else free is not None and free < rules.small_free_tokens),
    )


def _judge(
    alerts: dict[tuple[RuleName, str | None], Alert],
    key: tuple[RuleName, str | None],
    *,
    holds: bool | None,
    since: datetime,
    at: datetime,
    rules: AlertRules,
) -> tuple[AlertChange, ...]:
    """Bring one alert up to date in ``alerts``; return what is to be told of it.

    ``since`` is when the condition began to hold if it is new, ``at`` the instant up to which its duration counts.
    """
    alert = alerts.get(key)
    if holds is None:
        if alert is not None and alert.fired_at is None:
            del alerts[key]
        return ()
    if not holds:
        if alert is None:
            return ()
        del alerts[key]
        return () if alert.fired_at is None else (AlertChange(kind="resolved", alert=alert, at=at),)
    if alert is None:
        alert = Alert(rule=key[0], model=key[1], since=since)
        alerts[key] = alert
    if alert.fired_at is not None or (at - alert.since).total_seconds() < rules.for_s[alert.rule]:
        return ()
    alerts[key] = replace(alert, fired_at=at)
    return (AlertChange(kind="fired", alert=alerts[key], at=at),)
