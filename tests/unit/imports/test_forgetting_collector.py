"""The production path (horde.md §7.1): deltas, summed up by a collector that forgets silent series and itself restarts.

Synthetic: series of one process count at random; what the collector would hand to Mimir is worked out here by its own rule.
"""

import json
import math
import random
from dataclasses import dataclass, field

import pytest

from horde_policy.imports import Imported, read_exports
from tests.unit.imports.writing import DECISIONS, T0, codes, exposition, labels, matrix

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


def restarted(seed: int, hours: int) -> tuple[dict[int, list[tuple[int, int]]], int]:
    """A plain process of sixty series that restarts once: each is written every minute from its first count on; and the truth."""
    rng = random.Random(seed)
    chances = [0.12 * rng.random() ** 3 for _ in range(60)]
    restart = rng.randrange(hours * 20, hours * 40)
    held: dict[int, int] = {}
    written: dict[int, list[tuple[int, int]]] = {}
    truth = 0
    for minute in range(hours * 60):
        if minute == restart:
            held = {}
        for number, chance in enumerate(chances):
            if rng.random() < chance:
                held[number] = held.get(number, 0) + 1
                truth += 1
        for number, value in held.items():
            written.setdefault(number, []).append((60 * minute, value))
    return written, truth


def long_form(written: dict[int, list[tuple[int, int]]], step_s: int) -> bytes:
    lines = ['"Time","__name__","instance","n","Value"']
    rows = sorted((at, number, value) for number, of in written.items() for at, value in of if at % step_s == 0)
    lines += [f"{T0 + at}000,{DECISIONS},a,{number},{value}" for at, number, value in rows]
    return "\r\n".join([*lines, ""]).encode()


@pytest.mark.parametrize(("form", "step_s", "hours"), [("long", 60, 24), ("long", 300, 24), ("long", 900, 24), ("grid", 60, 12)])
@pytest.mark.parametrize("seed", range(3))
def test_a_restart_of_a_process_whose_series_are_born_one_by_one_is_one_restart(
    seed: int, form: str, step_s: int, hours: int
) -> None:
    written, truth = restarted(seed, hours)
    made = Collected(truth, {number: [(float(at), float(value)) for at, value in of] for number, of in written.items()})
    imported = read_exports(long_form(written, step_s) if form == "long" else made.grid(step_s, hours))
    (process,) = imported.report.instances
    assert len(process.restarts) == 1
    assert process.own_restarts == 0
    assert not {"forgotten", "too_coarse"} & codes(imported)
    low, high = total(imported)
    assert 0.97 * truth <= low == high <= truth  # what was counted since the last look before the restart is not in the data
