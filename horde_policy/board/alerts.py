"""The alert conditions as a state machine over successive boards, pure: a state and a board give the next state.

A condition holds, does not hold, or is not known; what is not known neither starts nor ends an alert that fires, and one that is
pending begins anew after it. Durations are measured in the data's own time, that of the workers and the models, never across a
gap in it, so a source that stands still cannot make an alert fire, and a recorder that was away cannot either. A model that is
no longer listed or served by anybody has no row: it is remembered for a day, since losing its last worker is what ``no_worker``
is about.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Literal

from horde_policy.board.measure import Measure, measure
from horde_policy.board.rows import Board
from horde_policy.errors import InputError

__all__ = [
    "DEFAULT_RULES",
    "RULE_NAMES",
    "Alert",
    "AlertChange",
    "AlertRules",
    "AlertState",
    "RuleName",
    "evaluate",
    "evaluate_age",
]

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
        When the condition was first seen to hold: the instant of the look that first told it, under which a history keeps
        it; of ``stale``, when the data came of age.
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
    """One alert that fired, was resolved, or whose model was forgotten; told once. Rule, model and since name it for good.

    Attributes
    ----------
    kind, alert
        What became of which alert.
    at
        When.
    instead
        Of what was resolved: ``no_worker``, where it ended because the model has no eligible worker any more; null otherwise.
    """

    kind: Literal["fired", "resolved", "forgotten"]
    alert: Alert
    at: datetime
    instead: RuleName | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertState:
    """What is known after a look: alerts pending and firing, when each model was last seen, and the looks' own time.

    ``looked_at`` is the instant of the last look that was judged in full; from ``fresh_until`` on the data of the last one are
    stale. Start with ``AlertState()``, or with what :meth:`stored` kept, so that nothing is told twice after a restart.
    """

    alerts: Mapping[tuple[RuleName, str | None], Alert] = field(default_factory=dict)
    seen: Mapping[str, datetime] = field(default_factory=dict)
    looked_at: datetime | None = None
    fresh_until: datetime | None = None

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
            "fresh_until": None if self.fresh_until is None else self.fresh_until.isoformat(),
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
            until = stored.get("fresh_until")  # earlier versions did not store it
            fresh_until = None if until is None else datetime.fromisoformat(until)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError("alert state", "", stored, f"cannot be read back: {error}") from error
        return cls(alerts={alert.key: alert for alert in alerts}, seen=seen, looked_at=looked_at, fresh_until=fresh_until)


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
    at, figures_at = board.snapshot.complete_at, board.snapshot.figures_at
    state, changes = evaluate_age(
        replace(state, fresh_until=figures_at + timedelta(seconds=board.snapshot.age_limit_s)), now, rules
    )
    if _is_stale(state, now) or (state.looked_at is not None and at == state.looked_at):
        return state, changes
    alerts = dict(state.alerts)
    if state.looked_at is not None and not 0 <= (at - state.looked_at).total_seconds() <= rules.longest_gap_s:
        _restart(alerts, at)
    seen = _seen(state.seen, board, rules)
    for model, measured in _measures(board, seen):
        told: tuple[AlertChange, ...] = ()
        for rule, holds in _conditions(measured, rules):
            told += _judge(alerts, (rule, model), holds=holds, since=at, at=at, held_to=figures_at, rules=rules)
        changes += tuple(_with_reason(change, measured) for change in told)
    forgotten = [alert for alert in alerts.values() if alert.model is not None and alert.model not in seen]
    for alert in forgotten:
        del alerts[alert.key]
    changes += tuple(AlertChange(kind="forgotten", alert=alert, at=at) for alert in forgotten if alert.fired_at is not None)
    return replace(state, alerts=alerts, seen=seen, looked_at=at), changes


def evaluate_age(
    state: AlertState, now: datetime, rules: AlertRules = DEFAULT_RULES
) -> tuple[AlertState, tuple[AlertChange, ...]]:
    """Return what the age of the last look's data tells, where there is no new look: only ``stale`` is judged."""
    if state.fresh_until is None:
        return state, ()
    alerts = dict(state.alerts)
    stale, since = _is_stale(state, now), state.fresh_until
    changes = _judge(alerts, ("stale", None), holds=stale, since=since, at=now, held_to=now, rules=rules)
    return replace(state, alerts=alerts), changes


def _is_stale(state: AlertState, now: datetime) -> bool:
    return state.fresh_until is not None and now > state.fresh_until


def _with_reason(change: AlertChange, measured: Measure) -> AlertChange:
    """Say of what was resolved that nobody is left to serve the model, where that ended it."""
    taken_over = change.kind == "resolved" and change.alert.rule != "no_worker" and measured.state == "no_worker"
    return replace(change, instead="no_worker") if taken_over else change


def _restart(alerts: dict[tuple[RuleName, str | None], Alert], at: datetime) -> None:
    """Begin every pending duration anew after a gap, or after the clock was set back; what fires goes on firing."""
    for key, alert in alerts.items():
        if alert.model is not None and alert.fired_at is None:
            alerts[key] = replace(alert, since=at)


def _seen(before: Mapping[str, datetime], board: Board, rules: AlertRules) -> dict[str, datetime]:
    """Return model → when it last had a row, without those that are forgotten by now."""
    at = board.snapshot.complete_at
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
    held_to: datetime,
    rules: AlertRules,
) -> tuple[AlertChange, ...]:
    """Bring one alert up to date in ``alerts``; return what is to be told of it.

    ``since`` is when the condition began to hold if it is new, ``at`` the instant of what is told, ``held_to`` the one up to
    which the condition is known to have held.
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
    held_s = max(0.0, (held_to - alert.since).total_seconds())
    if alert.fired_at is not None or held_s < rules.for_s[alert.rule]:
        return ()
    alerts[key] = replace(alert, fired_at=at)
    return (AlertChange(kind="fired", alert=alerts[key], at=at),)
