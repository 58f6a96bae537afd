"""Two runs of one traffic, request by request: who gains, who loses, and where the difference is largest.

A request is judged with all its repeats: what it got in the end, when counted from its first sending, and at what price.
"""

from typing import Any

import polars as pl

from horde_policy.errors import FrameError
from horde_policy.policy.exact import quotient
from horde_policy.units import MICROSECONDS_PER_S

__all__ = ["CHANGE", "GAINS", "LOSSES", "changes", "comparison"]

GAINS = ("now served", "more tokens", "now free", "sooner")
LOSSES = ("no longer served", "fewer tokens", "now funded", "later")
CHANGE = pl.Enum([*GAINS, "same", *reversed(LOSSES)])
"""How a request fares against the baseline, the first that holds, best first."""

NOTABLE_S = 1.0
"""An answer that comes less than this much earlier or later counts as the same."""


def _fates(sent: pl.DataFrame) -> pl.DataFrame:
    """Return what each first request came to, its repeats included: one row a traffic row, in order."""
    served = pl.col("status") == "completed"
    facts = sent.select(
        "first_row", "created", "finished", "attempt", "delivered_tokens", "queue_wait_s", served=served,
        paid=served & (pl.col("outcome") == "funded"),
    )  # fmt: skip
    if sent["retry_of"].count():
        facts = facts.group_by("first_row").agg(
            pl.col("created").min(),
            pl.col("finished").filter("served").max(),
            pl.col("attempt").max(),
            pl.col("delivered_tokens").max(),
            pl.col("queue_wait_s").last(),
            pl.col("served").any(),
            pl.col("paid").any(),
        )
    after_us = (pl.col("finished") - pl.col("created")).dt.total_microseconds()
    return facts.sort("first_row").select(
        "first_row", "served", "paid", "delivered_tokens", "queue_wait_s", "attempt",
        answer_s=pl.when("served").then(quotient(after_us, MICROSECONDS_PER_S)),
    )  # fmt: skip


def changes(baseline: pl.DataFrame, other: pl.DataFrame, *, notable_s: float = NOTABLE_S) -> pl.DataFrame:
    """Return how each request of the traffic fares in the other run against the baseline.

    Parameters
    ----------
    baseline, other
        Of :func:`~horde_policy.replay.sent.sent_requests`, of the same traffic.
    notable_s
        Smaller differences of the time to the answer do not count.

    Returns
    -------
    polars.DataFrame
        One row a traffic row, in order: ``request_id``, ``requester``, ``requested_size``, ``change`` (:data:`CHANGE`),
        ``tokens_more`` (delivered), ``answer_s_more`` (time from first sending to the answer; null unless served in both),
        ``baseline_outcome`` and ``outcome`` of the first attempt.

    Raises
    ------
    FrameError
        The runs are not of the same traffic.
    """
    looked_at = ("request_id", "requester", "requested_size", "outcome")
    first = [frame.select(*looked_at, "attempt").filter(pl.col("attempt") == 1) for frame in (baseline, other)]
    if not first[0]["request_id"].equals(first[1]["request_id"]):
        raise FrameError("run", "column request_id", None, "must hold the same requests as the baseline's, in the same order")
    before, after = _fates(baseline), _fates(other)
    both = pl.concat([before, after.select(pl.all().name.suffix("_now"))], how="horizontal")
    tokens_more = pl.col("delivered_tokens_now") - pl.col("delivered_tokens")
    answer_more = pl.col("answer_s_now") - pl.col("answer_s")
    change = (
        pl.when(pl.col("served_now") & ~pl.col("served")).then(pl.lit("now served"))
        .when(pl.col("served") & ~pl.col("served_now")).then(pl.lit("no longer served"))
        .when(tokens_more > 0).then(pl.lit("more tokens"))
        .when(tokens_more < 0).then(pl.lit("fewer tokens"))
        .when(pl.col("paid") & ~pl.col("paid_now")).then(pl.lit("now free"))
        .when(pl.col("paid_now") & ~pl.col("paid")).then(pl.lit("now funded"))
        .when(answer_more <= -notable_s).then(pl.lit("sooner"))
        .when(answer_more >= notable_s).then(pl.lit("later"))
        .otherwise(pl.lit("same"))
    )  # fmt: skip
    judged = both.select(change=change.cast(CHANGE), tokens_more=tokens_more, answer_s_more=answer_more)
    named = first[0].select("request_id", "requester", "requested_size", baseline_outcome="outcome")
    return pl.concat([named, first[1].select("outcome"), judged], how="horizontal").select(
        "request_id", "requester", "requested_size", "change", "tokens_more", "answer_s_more", "baseline_outcome", "outcome"
    )


def comparison(baseline: pl.DataFrame, other: pl.DataFrame, *, notable_s: float = NOTABLE_S, largest: int = 20) -> dict[str, Any]:
    """Return two runs' differences as plain data: counts by change, by requester and size, and the largest ones.

    Returns
    -------
    dict
        ``requests`` (of the traffic), ``gain``, ``lose`` and ``same`` (add up to it), ``changes`` (each with its count),
        ``by`` (requester × requested size × change), ``refused_anew`` (admitted by the baseline and refused in the other run)
        and ``refused_anew_served`` (those of them that the baseline served, and the other did not), ``longest_later``,
        ``longest_sooner``, ``most_tokens_more`` and ``most_tokens_fewer`` (up to ``largest`` requests each).
    """
    table = changes(baseline, other, notable_s=notable_s)
    found = dict(table["change"].value_counts().iter_rows())
    counts = {word: int(found.get(word, 0)) for word in CHANGE.categories}
    keys = ["requester", "requested_size", "change"]
    later = table.filter(pl.col("answer_s_more") >= notable_s)
    sooner = table.filter(pl.col("answer_s_more") <= -notable_s)
    refused = table.filter((pl.col("outcome") == "refused") & (pl.col("baseline_outcome") != "refused"))
    return {
        "requests": table.height,
        "gain": sum(counts[word] for word in GAINS),
        "lose": sum(counts[word] for word in LOSSES),
        "same": counts["same"],
        "changes": counts,
        "by": table.group_by(keys).agg(requests=pl.len()).sort(keys).to_dicts(),
        "refused_anew": refused.height,
        "refused_anew_served": refused.filter(pl.col("change") == "no longer served").height,
        "longest_later": later.top_k(largest, by=["answer_s_more", "request_id"]).to_dicts(),
        "longest_sooner": sooner.bottom_k(largest, by=["answer_s_more", "request_id"]).to_dicts(),
        "most_tokens_more": table.filter(pl.col("tokens_more") > 0).top_k(largest, by=["tokens_more", "request_id"]).to_dicts(),
        "most_tokens_fewer": table.filter(pl.col("tokens_more") < 0)
        .bottom_k(largest, by=["tokens_more", "request_id"])
        .to_dicts(),
    }
