"""Which share of a sweep's requests no worker of its fleet serves: they can only wait and expire, or be refused."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

import polars as pl

from horde_policy.replay.fill import ModelWeights
from horde_policy.replay.fill_rule import FillRule
from horde_policy.replay.unserved import unserved
from horde_policy.sweep.inputs import SweepInputs

__all__ = ["AS_NAMED", "UNSERVED", "unserved_of_stamp", "unserved_range", "unserved_shares"]

UNSERVED: Final = "share_of_unserved_models"
"""Key of a sweep's stamp: fill rule → share of the requests, rules without any left out."""

AS_NAMED: Final = ""
"""Stands for no fill rule of the grid: models as the traffic names them."""


def unserved_shares(inputs: SweepInputs, fills: Iterable[str | None]) -> dict[str, float]:
    """Return by fill rule which share of the requests names models of which no worker of the fleet serves any.

    What the traffic names itself is counted; of models that a rule draws by weight it is what is expected of the draws. A
    request that takes any model is served by anybody. Rules under which there is none are left out, and so is an empty fleet,
    which serves nobody and is told elsewhere.

    Parameters
    ----------
    inputs
        What is swept.
    fills
        The rules; null for none (:data:`AS_NAMED`).
    """
    if inputs.fleet.is_empty():
        return {}
    frame = inputs.trace.frame
    named = frame.select("models").drop_nulls() if "models" in frame.columns else pl.DataFrame({"models": []})
    told = unserved(named, inputs.fleet) if named.height else 0
    open_rows = frame.height - named.height
    found = {}
    for fill in dict.fromkeys(fills):
        weighted = fill is not None and FillRule.parsed(fill).models == "weighted"
        drawn = _of_weights(inputs.weights, inputs.fleet) if weighted and open_rows else 0.0
        found[fill or AS_NAMED] = (told + drawn * open_rows) / frame.height
    return {fill: share for fill, share in found.items() if share > 0}


def _of_weights(weights: ModelWeights | None, fleet: pl.DataFrame) -> float:
    """Return the share of the demand that is for models which no worker serves."""
    counts = {} if weights is None else {name: n for name, n in weights.counts.items() if n > 0}
    served = set(fleet["models"].explode(empty_as_null=False).to_list())
    total = math.fsum(counts.values())
    return math.fsum(n for name, n in counts.items() if name not in served) / total if total else 0.0


def unserved_of_stamp(stamp: Mapping[str, Any]) -> dict[str, float]:
    """Return what a sweep's stamp says of it; what a file says otherwise is left out.

    >>> unserved_of_stamp({"share_of_unserved_models": {"": 0.25, "models=weighted": "much"}})
    {'': 0.25}
    """
    said = stamp.get(UNSERVED)
    if not isinstance(said, Mapping):
        return {}
    return {str(fill): float(share) for fill, share in said.items() if isinstance(share, int | float) and 0 < share <= 1}


def unserved_range(stamp: Mapping[str, Any], fills: Iterable[str | None]) -> tuple[float, float] | None:
    """Return the least and the largest of these rules' shares; null where there are no such requests.

    >>> unserved_range({"share_of_unserved_models": {"models=weighted": 0.25}}, [None, "models=weighted"])
    (0.0, 0.25)
    >>> unserved_range({}, [None]) is None
    True
    """
    known = unserved_of_stamp(stamp)
    shares = [known.get(fill or AS_NAMED, 0.0) for fill in fills]
    return (min(shares), max(shares)) if any(shares) else None
