"""Which points nobody beats: no other is at least as good in every objective and better in one."""

import numpy as np

from horde_policy.sweep.metrics import Array

__all__ = ["front"]

ROWS_AT_A_TIME = 512


def front(scores: Array, eligible: Array) -> Array:
    """Return where a point is on the Pareto front.

    Parameters
    ----------
    scores
        Points × objectives; more is better. NaN is not known: such a point is not on the front and beats nobody.
    eligible
        Points that count; the others are not on the front and beat nobody.

    Examples
    --------
    >>> front(np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 0.5], [1.0, 1.0]]), np.ones(4, bool))
    array([ True,  True, False,  True])
    """
    known = eligible & ~np.isnan(scores).any(axis=1)
    rivals = np.unique(scores[known], axis=0)
    on_front = known.copy()
    places = np.flatnonzero(known)
    for first in range(0, len(places), ROWS_AT_A_TIME):
        some = places[first : first + ROWS_AT_A_TIME]
        own = scores[some][:, None, :]
        no_worse = np.all(rivals >= own, axis=2)
        better = np.any(rivals > own, axis=2)
        beaten = np.any(no_worse & better, axis=1)
        on_front[some[beaten]] = False
    return on_front
