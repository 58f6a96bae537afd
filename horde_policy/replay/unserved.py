"""Requests of which no worker of a fleet serves a model: they can only expire, whatever the settings are."""

import polars as pl

from horde_policy.errors import Problem

__all__ = ["unserved", "unserved_notes"]


def unserved(traffic: pl.DataFrame, fleet: pl.DataFrame) -> int:
    """Return how many requests name models of which no worker of the fleet serves any; one that takes any model is not counted.

    Parameters
    ----------
    traffic, fleet
        ``models``, lists of names; in the traffic the empty list is any model.

    Examples
    --------
    >>> traffic = pl.DataFrame({"models": [["a"], ["b", "c"], ["d"], []]})
    >>> unserved(traffic, pl.DataFrame({"models": [["a", "x"], ["c"]]}))
    1
    """
    served = fleet["models"].explode(empty_as_null=False).drop_nulls().unique()
    asked = traffic.select(pl.col("models")).with_row_index().filter(pl.col("models").list.len() > 0)
    named = asked.explode("models").filter(pl.col("models").is_in(served.implode()))
    return asked.height - named["index"].n_unique()


def unserved_notes(requests: int, unserved_requests: int) -> tuple[Problem, ...]:
    """Return a word on the requests that no worker serves a model of; nothing where there are none.

    It is a problem where they are more than half, else a note: some of any demand is for models that are offline.

    Examples
    --------
    >>> [(note.level, note.text) for note in unserved_notes(4, 1)]
    [('note', 'no worker of this fleet serves the models of 1 of 4 requests; fill models another way or map them')]
    >>> unserved_notes(4, 0)
    ()
    """
    if not unserved_requests:
        return ()
    which = f"{unserved_requests:,} of {requests:,} requests"
    text = f"no worker of this fleet serves the models of {which}; fill models another way or map them"
    return (Problem("unserved_models", "models", text, "problem" if 2 * unserved_requests > requests else "note"),)
