"""What-ifs on counts against populations of requests whose every wait, size and wish is known."""

import itertools
import random
from dataclasses import dataclass
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.frames.decisions import OUTCOMES, REQUESTERS, SIZES, size_of
from horde_policy.policy.allowance import free_output_allowance
from horde_policy.policy.decision import rule_outcome
from horde_policy.policy.request import Request
from horde_policy.review.sampling import Bounds
from horde_policy.review.whatif import possible_outcomes, size_range, what_if
from horde_policy.settings import AllowanceSettings
from tests.unit.review.made import decision, decisions

DEFAULT = AllowanceSettings()
CHANGES = [
    {"ceiling_tokens": 2048},
    {"ceiling_tokens": 8192},
    {"floor_tokens": 256},
    {"floor_tokens": 1024},
    {"ceiling_tokens": 1000, "floor_tokens": 100},
    {"ceiling_tokens": 16384, "floor_tokens": 16384},
    {},
]
IN_FORCE = [
    {},
    {"ceiling_tokens": 6000, "floor_tokens": 300},
    {"ceiling_tokens": 1500, "floor_tokens": 1400},
    {"ceiling_tokens": 700, "floor_tokens": 700},
]

EDGES = {1, 512, 513, 1024, 1025, 2048, 2049, 4096, 4097, 16384}


def wait_of(allowance: int, settings: AllowanceSettings, place: Fraction) -> float:
    """Return a wait whose allowance is the one given, ``place`` of the way to the next higher one."""
    real = min(Fraction(settings.ceiling_tokens), allowance + place)
    fall = settings.ceiling_tokens - settings.floor_tokens
    down = (settings.ceiling_tokens - real) / fall if fall else place
    return float(Fraction(settings.wait_full_s) + down * Fraction(settings.wait_floor_s - settings.wait_full_s))


@dataclass(frozen=True)
class Client:
    """One request: who asks for how much at which wait, and what it can and wants."""

    requester: str
    size: int
    wait_s: float | None
    chat: bool
    can_pay: bool
    allow_downgrade: bool
    slow_workers: bool = True

    def outcome(self, settings: AllowanceSettings) -> str:
        request = Request(
            models=(),
            max_length=self.size,
            requester=self.requester,  # type: ignore[arg-type]
            chat=self.chat,
            can_pay=self.can_pay,
            allow_downgrade=self.allow_downgrade,
            slow_workers=self.slow_workers,
        )
        allowance = free_output_allowance(self.wait_s, settings)
        return rule_outcome(request, allowance, any_eligible=self.wait_s is not None)[0]

    def cell(self, settings: AllowanceSettings) -> tuple[str, str, str, str, bool]:
        allowance = free_output_allowance(self.wait_s, settings)
        return self.requester, self.outcome(settings), size_of(self.size), size_of(allowance), self.chat


def clients(settings: AllowanceSettings, changed: AllowanceSettings, allowances: list[int]) -> list[Client]:
    """Return requests of every kind at these allowances, at all sizes where something may tip."""
    found = []
    for allowance in allowances:
        # just above the whole number and just below the next: the last bit of a double is not what this is about
        waits: list[float | None] = [
            wait_of(allowance, settings, place) for place in (Fraction(1, 10**9), Fraction(999_999, 10**6))
        ]
        if allowance == settings.floor_tokens:
            waits += [settings.wait_floor_s, None]
        for wait in waits:
            tips = {free_output_allowance(wait, one) for one in (settings, changed)}
            sizes = {size for size in EDGES | tips | {tip + 1 for tip in tips} if size <= 16384}
            flags = (False, True)
            for requester, size, chat, pay, down in itertools.product(REQUESTERS, sorted(sizes), flags, flags, flags):
                if not (pay and requester == "anonymous"):
                    found.append(Client(requester, size, wait, chat, pay, down))
    return found


def telling_allowances(settings: AllowanceSettings) -> list[int]:
    """Return the allowances at the ends of every bucket, and next to them."""
    ends = EDGES | {settings.floor_tokens, settings.ceiling_tokens}
    ends |= {end + step for end in ends for step in (-1, 1)}
    return sorted(end for end in ends if settings.floor_tokens <= end <= settings.ceiling_tokens)


def settings_pair(now: dict[str, int], change: dict[str, int]) -> tuple[AllowanceSettings, AllowanceSettings]:
    settings = AllowanceSettings(**now)  # type: ignore[arg-type]
    ceiling = change.get("ceiling_tokens", settings.ceiling_tokens)
    floor = change.get("floor_tokens", settings.floor_tokens)
    return settings, AllowanceSettings(ceiling_tokens=max(ceiling, floor), floor_tokens=min(ceiling, floor))


def check_cells(settings: AllowanceSettings, changed: AllowanceSettings) -> None:
    found: dict[tuple[str, str, str, str, bool], set[str]] = {}
    for client in clients(settings, changed, telling_allowances(settings)):
        found.setdefault(client.cell(settings), set()).add(client.outcome(changed))
    assert len(found) > 20
    for cell in itertools.product(REQUESTERS, OUTCOMES, SIZES, SIZES, (False, True)):
        claimed = possible_outcomes(*cell, settings, changed)
        if cell in found:
            assert claimed == found[cell], cell
        elif cell[:2] != ("anonymous", "funded"):  # only requests that disallow slow workers make it, or nothing does
            assert claimed <= {cell[1]}, cell


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_each_cell_has_exactly_the_outcomes_that_some_request_in_it_has(change: dict[str, int]) -> None:
    check_cells(*settings_pair({}, change))


@pytest.mark.parametrize("now", IN_FORCE[1:], ids=str)
def test_so_it_is_under_other_settings_in_force(now: dict[str, int]) -> None:
    check_cells(*settings_pair(now, {"ceiling_tokens": 2000}))


@pytest.mark.soak
@pytest.mark.parametrize("now", IN_FORCE, ids=str)
@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_so_it_is_under_every_pair_of_settings(now: dict[str, int], change: dict[str, int]) -> None:
    check_cells(*settings_pair(now, change))


def random_client(rng: random.Random, settings: AllowanceSettings) -> Client:
    requester = rng.choice(REQUESTERS)
    wait = rng.choice([None, 0.0, settings.wait_full_s, settings.wait_floor_s, rng.uniform(0, 1.3 * settings.wait_floor_s)])
    chat, downgrade = rng.random() < 0.4, rng.random() < 0.3
    size = rng.choice([rng.randint(1, 16384), rng.randint(1, 1200), rng.choice(sorted(EDGES))])
    return Client(requester, size, wait, chat, requester != "anonymous" and rng.random() < 0.5, downgrade, rng.random() < 0.95)


def counted(population: list[Client], settings: AllowanceSettings) -> pl.DataFrame:
    cells: dict[tuple[str, str, str, str, bool], int] = {}
    for client in population:
        cells[client.cell(settings)] = cells.get(client.cell(settings), 0) + 1
    names = ("requester", "outcome", "requested_size", "allowance_size", "chat")
    return decisions(*(decision(count, None, **dict(zip(names, cell, strict=True))) for cell, count in cells.items()))


def check_populations(runs: int, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(runs):
        settings, changed = settings_pair(rng.choice(IN_FORCE), rng.choice(CHANGES))
        population = [random_client(rng, settings) for _ in range(rng.randint(1, 60))]
        answer = what_if(counted(population, settings), settings, changed)
        assert answer.contradictory == Bounds(0, 0)
        # slow workers are taken as allowed where the cell does not say otherwise
        truth = [client for client in population if client.slow_workers]
        others = len(population) - len(truth)
        for outcome in OUTCOMES:
            became = sum(client.outcome(changed) == outcome for client in truth)
            assert answer.after[outcome].low - others <= became <= answer.after[outcome].high
            assert answer.before[outcome].low == sum(client.outcome(settings) == outcome for client in population)
        if not others:
            for outcome in OUTCOMES:
                assert answer.after[outcome].low <= sum(client.outcome(changed) == outcome for client in population)


def test_what_really_becomes_of_a_population_lies_between_the_bounds() -> None:
    check_populations(150, seed=5)


@pytest.mark.soak
def test_so_it_does_for_thousands_of_populations() -> None:
    check_populations(5_000, seed=6)


def test_the_bounds_are_attained_by_populations_with_the_same_counts() -> None:
    settings, changed = settings_pair({}, {"ceiling_tokens": 2048})
    by_cell: dict[tuple[str, str, str, str, bool], list[Client]] = {}
    for client in clients(settings, changed, telling_allowances(settings)):
        by_cell.setdefault(client.cell(settings), []).append(client)
    rng = random.Random(3)
    counts = {cell: rng.randint(0, 5) for cell in by_cell}
    names = ("requester", "outcome", "requested_size", "allowance_size", "chat")
    frame = decisions(*(decision(n, None, **dict(zip(names, cell, strict=True))) for cell, n in counts.items()))
    answer = what_if(frame, settings, changed)
    assert answer.after["free"].low < answer.after["free"].high
    for outcome in OUTCOMES:
        most = sum(n for cell, n in counts.items() if any(c.outcome(changed) == outcome for c in by_cell[cell]))
        least = sum(n for cell, n in counts.items() if all(c.outcome(changed) == outcome for c in by_cell[cell]))
        assert answer.after[outcome] == Bounds(least, most)


@pytest.mark.parametrize(
    ("words", "change", "free", "undecided"),
    [
        # a higher floor frees what was refused at the floor: exact at an edge of the buckets, open between them
        ({"outcome": "refused", "requested_size": "513-1024", "allowance_size": "<=512"}, {"floor_tokens": 1024}, (9, 9), 0),
        ({"outcome": "refused", "requested_size": "513-1024", "allowance_size": "<=512"}, {"floor_tokens": 1000}, (0, 9), 1),
        ({"outcome": "refused", "requested_size": "1025-2048", "allowance_size": "<=512"}, {"floor_tokens": 1024}, (0, 0), 0),
        # no ceiling frees anything at the floor
        ({"outcome": "refused", "requested_size": ">4096", "allowance_size": "<=512"}, {"ceiling_tokens": 16384}, (0, 0), 0),
        ({"outcome": "refused", "requested_size": ">4096", "allowance_size": "2049-4096"}, {"ceiling_tokens": 16384}, (0, 9), 1),
        # a lower ceiling takes away what is larger than it, and perhaps some of what is smaller
        ({"requested_size": "2049-4096", "allowance_size": "2049-4096"}, {"ceiling_tokens": 2048}, (0, 0), 1),
        ({"requested_size": "1025-2048", "allowance_size": "2049-4096"}, {"ceiling_tokens": 2048}, (0, 9), 1),
        ({"requested_size": "<=512", "allowance_size": "2049-4096"}, {"ceiling_tokens": 2048}, (9, 9), 0),
        # held although under the allowance: slow workers are disallowed, nothing changes
        ({"outcome": "funded", "requested_size": "<=512", "allowance_size": "<=512"}, {"floor_tokens": 1024}, (0, 0), 0),
    ],
)
def test_by_hand(words: dict[str, str], change: dict[str, int], free: tuple[int, int], undecided: float) -> None:
    answer = what_if(decisions(decision(9, None, **words)), DEFAULT, DEFAULT.changed(**change))
    assert answer.after["free"] == Bounds(*free)
    assert answer.undecided_share == undecided


def test_what_the_settings_cannot_produce_is_open_and_said() -> None:
    frame = decisions(decision(4, requested_size=">4096", allowance_size="<=512"), decision(6))
    answer = what_if(frame, DEFAULT, DEFAULT)
    assert answer.contradictory == Bounds(4, 4)
    assert answer.after["free"] == Bounds(6, 10)
    assert answer.undecided_share == 0.4


def test_uncertain_counts_and_unknown_words_stay_bounds() -> None:
    frame = decisions(decision(4, 6, requested_size=None, outcome="refused", allowance_size="<=512"), decision(1, outcome=None))
    answer = what_if(frame, DEFAULT, DEFAULT.changed(floor_tokens=1024))
    assert answer.counted == Bounds(4, 6)
    assert answer.after["free"] == Bounds(0, 6)
    assert answer.after["refused"] == Bounds(0, 6)
    row = answer.rows.row(0, named=True)
    assert (row["requested_size"], row["free_high"], row["undecided_high"]) == (None, 6, 6)


def test_nothing_counted_leaves_nothing_undecided() -> None:
    assert what_if(decisions(), DEFAULT, DEFAULT).undecided_share is None


def test_holds_under_the_allowance_are_counted() -> None:
    frame = decisions(decision(3, outcome="funded"), decision(2, outcome="refused"), decision(5))
    assert what_if(frame, DEFAULT, DEFAULT).holds_seen == Bounds(5, 5)


@given(st.sampled_from(SIZES))
def test_the_range_of_a_size_is_what_falls_into_it(size: str) -> None:
    least, most = size_range(size)
    assert size_of(least) == size_of(most) == size
    assert least == 1 or size_of(least - 1) != size
