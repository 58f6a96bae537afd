"""What a run comes to: who got what, who waited how long, what was given away, and where it agrees with what was recorded.

Figures are of all requests that were sent, repeated ones too; counts of one kind add up to their number.
"""

from typing import Any

import polars as pl

from horde_policy.errors import FrameError
from horde_policy.frames.runs import OUTCOME, REASON, STATUS
from horde_policy.settings import AllowanceSettings, ReplaySettings
from horde_policy.units import JOB_TIME_LIMIT_S

__all__ = [
    "RECORDED_OUTCOME",
    "agreement",
    "allowance_by_model",
    "allowance_over_time",
    "outcome_mix",
    "summary",
    "unfinished",
    "wait_quantiles",
]

RECORDED_OUTCOME = "recorded_outcome"
"""A traffic column of this name says what really became of a request; the replay itself does not look at it."""

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)

ANY_MODEL = "any model"


def outcome_mix(sent: pl.DataFrame) -> pl.DataFrame:
    """Return how many requests of each requester and requested size had each outcome: one row each that occurs."""
    keys = ["requester", "requested_size", "outcome"]
    return sent.group_by(keys).agg(requests=pl.len(), tokens_asked=pl.col("max_length").sum()).sort(keys)


def _wait_columns(wait: pl.Expr, settings: AllowanceSettings) -> dict[str, pl.Expr]:
    figures = {f"p{q * 100:g}_s": wait.quantile(q, interpolation="nearest") for q in QUANTILES}
    return figures | {
        "mean_s": wait.mean(),
        "longest_s": wait.max(),
        "share_at_most_full": (wait <= settings.wait_full_s).mean(),
        "share_at_most_floor": (wait <= settings.wait_floor_s).mean(),
    }


def wait_quantiles(sent: pl.DataFrame, settings: AllowanceSettings, *, of: str = "queue_wait_s") -> pl.DataFrame:
    """Return the waits by requester and outcome, and of all: quantiles, mean, longest, and the shares up to both marks.

    Parameters
    ----------
    sent
        Of :func:`~horde_policy.replay.sent.sent_requests`.
    settings
        Their two marks (60 and 300 s).
    of
        ``queue_wait_s`` of what started, or ``estimated_wait_s`` of what had an estimate.

    Returns
    -------
    polars.DataFrame
        ``requester`` and ``outcome`` (both null: all), ``requests`` (that have such a wait), ``p10_s`` … ``p99_s``,
        ``mean_s``, ``longest_s``, ``share_at_most_full``, ``share_at_most_floor``.
    """
    waits = sent.select("requester", "outcome", wait=of).drop_nulls("wait")
    columns = _wait_columns(pl.col("wait"), settings)
    everyone = waits.select(requests=pl.len(), **columns).filter(pl.col("requests") > 0)
    groups = waits.group_by("requester", "outcome").agg(requests=pl.len(), **columns).sort("requester", "outcome")
    return pl.concat([groups, everyone], how="diagonal")


def unfinished(sent: pl.DataFrame, limit_s: float = JOB_TIME_LIMIT_S) -> pl.DataFrame:
    """Return by outcome what was admitted and did not, or could not, finish.

    ``expired`` and ``timed_out`` are ends of the replay. The others judge by a time limit of a job, whatever the replay's
    own (A32: 150 s): ``over_limit`` are jobs that ran longer than it or timed out; ``full_size_over_limit`` are started
    requests whose whole admitted size takes longer than it on the worker that took them.
    """
    ran_over = (pl.col("busy_s") > limit_s) | (pl.col("status") == "timed_out")
    full_over = pl.col("admitted_max_length") / pl.col("speed") > limit_s
    return (
        sent.select("outcome", "started", "status", "busy_s", "admitted_max_length", "speed")
        .filter(pl.col("outcome") != "refused")
        .group_by("outcome")
        .agg(
            admitted=pl.len(),
            started=pl.col("started").count(),
            expired=(pl.col("status") == "expired").sum(),
            timed_out=(pl.col("status") == "timed_out").sum(),
            over_limit=ran_over.sum(),
            full_size_over_limit=full_over.sum(),
        )
        .sort("outcome")
    )


def _by_model(sent: pl.DataFrame, *, together: str | None = None) -> pl.DataFrame:
    """Return allowances with one row a request and model that it names; one that names none counts as any model.

    With a word for all models ``together``, one row a request under that word.
    """
    if together is not None:
        columns = ("created", "allowance", "estimated_wait_s")
        return sent.select(*columns, model=pl.lit(together)).drop_nulls("allowance")
    named = sent.select("created", "models", "allowance", "estimated_wait_s").drop_nulls("allowance")
    return named.explode("models", empty_as_null=True).with_columns(model=pl.col("models").fill_null(ANY_MODEL)).drop("models")


def _allowance_columns(settings: AllowanceSettings) -> dict[str, pl.Expr]:
    allowance = pl.col("allowance")
    return {
        "requests": pl.len(),
        "mean_tokens": allowance.mean(),
        "smallest_tokens": allowance.min(),
        "largest_tokens": allowance.max(),
        "share_at_floor": (allowance <= settings.floor_tokens).mean(),
        "share_at_ceiling": (allowance >= settings.ceiling_tokens).mean(),
        "mean_estimated_wait_s": pl.col("estimated_wait_s").mean(),
    }


def allowance_by_model(sent: pl.DataFrame, settings: AllowanceSettings) -> pl.DataFrame:
    """Return the allowances that requests for each model met, most requests first; none where the rule has no allowance."""
    return (
        _by_model(sent)
        .group_by("model")
        .agg(**_allowance_columns(settings))
        .sort(["requests", "model"], descending=[True, False])
    )


def allowance_over_time(
    sent: pl.DataFrame, settings: AllowanceSettings, *, every: str = "1h", together: str | None = None
) -> pl.DataFrame:
    """Return the allowances that requests for each model met, by time of creation (``every`` as Polars writes spans).

    With ``together`` those that all requests met, each counted once, under that word as the model.
    """
    return (
        _by_model(sent, together=together)
        .group_by(pl.col("created").dt.truncate(every).alias("from"), "model")
        .agg(**_allowance_columns(settings))
        .sort("from", "model")
    )


def agreement(sent: pl.DataFrame, traffic: pl.DataFrame) -> dict[str, Any] | None:
    """Return how far the replayed outcomes of first attempts are the recorded ones; null if the traffic records none.

    Raises
    ------
    FrameError
        The column :data:`RECORDED_OUTCOME` holds another word than the outcomes.
    """
    if RECORDED_OUTCOME not in traffic.columns:
        return None
    recorded = traffic[RECORDED_OUTCOME].cast(pl.String)
    odd = recorded.filter(recorded.is_not_null() & ~recorded.is_in(OUTCOME.categories.to_list()))
    if odd.len():
        raise FrameError("traffic", f"column {RECORDED_OUTCOME}", odd[0], "must be one of " + ", ".join(OUTCOME.categories))
    pairs = pl.DataFrame({"recorded": recorded, "replayed": sent["outcome"].head(traffic.height).cast(pl.String)}).drop_nulls()
    counts = pairs.group_by("recorded", "replayed").len("requests").sort("recorded", "replayed")
    return {
        "recorded": pairs.height,
        "equal": pairs.filter(pl.col("recorded") == pl.col("replayed")).height,
        "pairs": counts.to_dicts(),
    }


def _counts(sent: pl.DataFrame, column: str, kind: pl.Enum) -> dict[str, int]:
    found = dict(sent[column].drop_nulls().value_counts().iter_rows())
    return {word: int(found.get(word, 0)) for word in kind.categories}


def _tokens(sent: pl.DataFrame) -> dict[str, int]:
    unpaid = pl.col("outcome").is_in(["free", "downgraded"])
    totals = sent.select(
        asked=pl.col("max_length").sum(),
        admitted=pl.col("admitted_max_length").sum(),
        admitted_free=pl.col("admitted_max_length").filter(unpaid).sum(),
        delivered=pl.col("delivered_tokens").sum(),
        delivered_free=pl.col("delivered_tokens").filter(unpaid).sum(),
        delivered_funded=pl.col("delivered_tokens").filter(pl.col("outcome") == "funded").sum(),
    )
    return {name: int(value) for name, value in totals.row(0, named=True).items()}


def summary(sent: pl.DataFrame, traffic: pl.DataFrame, settings: AllowanceSettings) -> dict[str, Any]:
    """Return the run's figures as plain data that JSON takes.

    Parameters
    ----------
    sent
        Of :func:`~horde_policy.replay.sent.sent_requests`.
    traffic
        The traffic as it was given; its column :data:`RECORDED_OUTCOME`, if there, is compared with.
    settings
        The settings of the run.

    Returns
    -------
    dict
        ``settings`` (digest, what differs from the defaults), ``requests`` (rows), ``repeated`` (of them), ``first`` and
        ``last`` (creation, ISO); ``outcomes``, ``statuses`` (each adds up to ``requests``) and ``reasons`` (to the
        refused); ``mix``, ``queue_waits``, ``estimated_waits``, ``unfinished`` and ``allowances`` as the functions of this
        module give them; ``shares`` of expired and timed-out among the admitted; ``tokens`` (free: without a hold, that is
        free or downgraded); ``agreement`` or null.
    """
    replayed = ReplaySettings.lifted(settings)
    statuses = _counts(sent, "status", STATUS)
    admitted = sent.height - statuses["refused"]
    first, last = (sent["created"].min(), sent["created"].max()) if sent.height else (None, None)
    return {
        "settings": {"digest": replayed.digest(), "differences": replayed.differences()},
        "requests": sent.height,
        "repeated": sent["retry_of"].count(),
        "first": None if first is None else first.isoformat(),  # type: ignore[union-attr]
        "last": None if last is None else last.isoformat(),  # type: ignore[union-attr]
        "outcomes": _counts(sent, "outcome", OUTCOME),
        "statuses": statuses,
        "reasons": _counts(sent, "reason", REASON),
        "mix": outcome_mix(sent).to_dicts(),
        "queue_waits": wait_quantiles(sent, settings).to_dicts(),
        "estimated_waits": wait_quantiles(sent, settings, of="estimated_wait_s").to_dicts(),
        "unfinished": unfinished(sent).to_dicts(),
        "shares": {name: statuses[name] / admitted if admitted else None for name in ("expired", "timed_out")},
        "tokens": _tokens(sent),
        "allowances": allowance_by_model(sent, settings).to_dicts(),
        "agreement": agreement(sent, traffic),
    }
