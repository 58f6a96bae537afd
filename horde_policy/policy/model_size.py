"""The size of a model in billions of parameters, and the speed below which a worker is slow for it (horde.md §5.1, row 7)."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = ["SLOWEST_LIMIT_TOK_PER_S", "SLOW_LIMITS_TOK_PER_S", "SlowLimit", "parsed_size_billions", "slow_limit"]

SLOWEST_LIMIT_TOK_PER_S = 3.0
"""The limit of the largest models, and where no model size is known."""

SLOW_LIMITS_TOK_PER_S = (SLOWEST_LIMIT_TOK_PER_S, 4.0, 5.0)
"""Every limit there is: for models from 20, from 13, and of fewer billion parameters."""

_SIZE = re.compile(r"(?<![A-Za-z0-9.])(?:(\d{1,3})x)?(\d{1,4}(?:\.\d{1,3})?)([BbMm])(?![A-Za-z0-9])")

SizeSource = Literal["given", "name", "unknown", "no model"]


def parsed_size_billions(model: str) -> float | None:
    """Return the size that a model's name states, in billions of parameters; null where it states none.

    The first mark counts: ``30B-A3B`` is 30. A mixture counts with all its experts, as ``8x7B`` is written.

    >>> [parsed_size_billions(m) for m in ("koboldcpp/L3-8B-Stheno-v3.2", "mixtral-8x7B", "Qwen2.5-1.5B", "135M", "Stheno")]
    [8.0, 56.0, 1.5, 0.135, None]
    """
    mark = _SIZE.search(model)
    if mark is None:
        return None
    experts, number, unit = mark.groups()
    size = float(number) * (int(experts) if experts else 1)
    return size if unit in "Bb" else size / 1000


@dataclass(frozen=True, slots=True)
class SlowLimit:
    """The speed below which a worker is slow for a request, and where the model's size came from.

    ``source`` is ``given`` (the mapping of sizes), ``name`` (parsed from the model's name), ``unknown`` (neither), or
    ``no model`` (the request names none); the last two mean the limit of 3 tokens per second.
    """

    tok_per_s: float
    source: SizeSource
    size_billions: float | None = None


def slow_limit(models: tuple[str, ...], sizes_billions: Mapping[str, float] | None = None) -> SlowLimit:
    """Return the slow-worker limit of a request for these models: the first model's size decides (horde.md §5.1, row 7).

    From 20 billion parameters 3 tokens per second, from 13 billion 4, below 5.

    Parameters
    ----------
    models
        The request's models in its order; empty means any.
    sizes_billions
        Known sizes by model name, as the server's model reference has them; what it lacks is parsed from the name.

    Examples
    --------
    >>> slow_limit(("L3-8B",)).tok_per_s, slow_limit(("big",), {"big": 70.0}).tok_per_s, slow_limit(()).tok_per_s
    (5.0, 3.0, 3.0)
    """
    if not models:
        return SlowLimit(SLOWEST_LIMIT_TOK_PER_S, "no model")
    given = None if sizes_billions is None else sizes_billions.get(models[0])
    size = given if given is not None and math.isfinite(given) else parsed_size_billions(models[0])
    if size is None:
        return SlowLimit(SLOWEST_LIMIT_TOK_PER_S, "unknown")
    return SlowLimit(
        SLOW_LIMITS_TOK_PER_S[0 if size >= 20 else 1 if size >= 13 else 2], "given" if size is given else "name", size
    )
