"""The production path (horde.md §7.1): deltas, summed up by a collector that forgets silent series and itself restarts.

Synthetic: series of one process count at random; what the collector would hand to Mimir is worked out here by its own rule.
"""

import json
import math
import random
from dataclasses import dataclass, field

import pytest

from horde_policy.imports import Imported, read_exports
from tests.unit.imports.writing import DECISIONS, codes, exposition, labels, matrix

BUSY = (3.0, 1.0, 0.5, 0.1, 0.05, 0.02, 0.01, 0.005)
QUIET = (0.3, 0.1, 0.05, 0.02, 0.01, 0.005)
MAX_STALE_S, LOOKBACK_S = 300, 300


@dataclass
class Collected:
    """What was counted in truth, and the samples that reach the store: series number to (seconds, value)."""

    truth: int = 0
    samples: dict[int, list[tuple[float, float]]] = field(default_factory=dict)

    def raw(self) -> bytes:
        rows = [(DECISIONS + labels(instance="a", n=str(n)), at, value) for n, of in self.samples.items() for at, value in of]
        return exposition(sorted(rows, key=lambda row: row[1]))

    def grid(self, step_s: int, hours: int) -> bytes:
        """A range query's answer: at each step the latest sample that is younger than the look-back."""
        answer = {}
        for number, of in self.samples.items():
            points = []
            for at in range(0, hours * 3600, step_s):
                held = [sample for sample in of if at - LOOKBACK_S < sample[0] <= at]
                points += [(float(at), held[-1][1])] if held else []
            answer[json.dumps({"__name__": DECISIONS, "instance": "a", "n": str(number)})] = points
        return matrix({key: points for key, points in answer.items() if points})


def collected(seed: int, rates: tuple[float, ...], hours: int, restarts: int = 1) -> Collected:
    rng = random.Random(seed)
    ends = set(rng.sample(range(60, hours * 60 - 60), restarts))
    state: dict[int, tuple[float, float]] = {}
    made = Collected()
    for minute in range(hours * 60):
        at = minute * 60.0
        if minute in ends:
            state.clear()
        for number, rate in enumerate(rates):
            count, chance = 0, rng.random()
            while chance > math.exp(-rate):
                count, chance = count + 1, chance * rng.random()
            if not count:
                continue
            made.truth += count
            value, last = state.get(number, (0.0, at))
            value = count if at - last > MAX_STALE_S else value + count
            state[number] = (value, at)
            made.samples.setdefault(number, []).append((at, value))
    return made


def total(imported: Imported) -> tuple[float, float]:
    before = float(imported.before.decisions["count_high"].sum())
    low, high = (float(imported.decisions[name].sum()) for name in ("count_low", "count_high"))
    return low + before, high + before


@pytest.mark.parametrize("rates", [BUSY, QUIET], ids=["busy", "quiet"])
@pytest.mark.parametrize("seed", range(3))
def test_in_fine_steps_nearly_everything_is_counted_and_nothing_twice(seed: int, rates: tuple[float, ...]) -> None:
    hours = 12
    made = collected(seed, rates, hours)
    for content in (made.raw(), made.grid(60, hours), made.grid(30, hours)):
        imported = read_exports(content)
        low, high = total(imported)
        # only the collector's own restart can hide something: a series that is soon back at its old value
        assert low <= made.truth
        assert made.truth - len(rates) <= high <= made.truth
        assert "forgotten" in codes(imported)
        assert not {"interleaved", "too_coarse"} & codes(imported)


@pytest.mark.parametrize("step_s", [300, 900, 3600])
@pytest.mark.parametrize("seed", range(2))
def test_in_coarse_steps_the_counts_lack_and_that_is_said(seed: int, step_s: int) -> None:
    hours = 24
    made = collected(seed, BUSY, hours)
    imported = read_exports(made.grid(step_s, hours))
    low, high = total(imported)
    assert 0.6 * made.truth < low <= high <= made.truth
    assert "too_coarse" in codes(imported)
