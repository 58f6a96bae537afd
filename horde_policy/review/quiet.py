"""Steps of time in which nothing was counted: a zero where the exports cover them, else nobody knows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import polars as pl

from horde_policy.review.decompose import decompose
from horde_policy.review.exported import Exported
from horde_policy.review.ranges import TimeRange, span_of, step_for, typical_interval

__all__ = ["Quiet", "quiet_hours", "quiet_steps"]

MOST_STEPS = 10_000
"""A range of more steps than this is not looked through."""


@dataclass(frozen=True, slots=True)
class Quiet:
    """The steps without a count.

    Attributes
    ----------
    step
        The width of a step.
    steps
        How many the range has.
    zero
        Beginnings of those that the exports cover: nothing happened in them.
    uncovered
        Beginnings of those that they do not, or not surely: what was counted then is lost, or nobody knows.
    """

    step: timedelta
    steps: int
    zero: tuple[datetime, ...] = ()
    uncovered: tuple[datetime, ...] = ()

    @property
    def longest(self) -> TimeRange:
        """Return the longest stretch of steps with a zero, the first of equal ones; without ends where there is none."""
        best = run = TimeRange()
        for at in self.zero:
            run = TimeRange(run.start if run.end == at else at, at + self.step)
            best = max(best, run, key=_length)
        return best


def _length(span: TimeRange) -> timedelta:
    return span.end - span.start if span.start is not None and span.end is not None else timedelta(0)


def quiet_steps(exported: Exported, times: Sequence[datetime], step: timedelta) -> Quiet:
    """Return the steps of the covered range that are not among those in which something was counted.

    Parameters
    ----------
    exported
        The data, with the gaps that the readers found.
    times
        The beginnings of the steps with a count, as :func:`~horde_policy.review.ranges.in_steps` names them.
    step
        Their width.

    Notes
    -----
    A process that is looked at before and after a step told what it counted in between, however long that is: only where an
    export of differences is missing is a count lost. The reader lists the longest of such gaps; if it found more, none is sure.
    """
    covered = exported.covered
    if covered.start is None or covered.end is None or step <= timedelta(0):
        return Quiet(step, 0)
    first, last = _number(covered.start, step), _number(covered.end - timedelta(microseconds=1), step)
    if last - first >= MOST_STEPS:
        return Quiet(step, 0)
    begun = datetime(1970, 1, 1, tzinfo=UTC)
    known = {_number(at, step) for at in times}
    quiet = [begun + number * step for number in range(first, last + 1) if number not in known]
    lost, sure = _lost(exported)
    uncovered = {at for at in quiet if not sure or any(start < at + step and end > at for start, end in lost)}
    zero = tuple(at for at in quiet if at not in uncovered)
    return Quiet(step, last - first + 1, zero, tuple(sorted(uncovered)))


def _number(at: datetime, step: timedelta) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // step


def _lost(exported: Exported) -> tuple[list[tuple[datetime, datetime]], bool]:
    """Return the times in which counts were lost, and whether these are all."""
    instances = () if exported.report is None else exported.report.instances
    lost = [(gap.start, gap.end) for instance in instances for gap in instance.gaps if gap.lost]
    told_s = sum((end - start).total_seconds() for start, end in lost)
    return lost, exported.uncovered_s - told_s < 1.0


def quiet_hours(exported: Exported) -> Quiet | None:
    """Return the steps of the decisions over time without any; null where the data tell nothing over time.

    The steps are those that decisions are drawn in: hours in a week, wider where the exports are.
    """
    timed = exported.decisions.filter(pl.col("interval_start").is_not_null() & pl.col("interval_end").is_not_null())
    if timed.is_empty() or exported.one_scrape:
        return None
    step = step_for(span_of(exported.decisions), interval=typical_interval(exported.decisions))
    times = decompose(exported.decisions, ["time"], step=step)["time"].drop_nulls().to_list()
    return quiet_steps(exported, times, step)
