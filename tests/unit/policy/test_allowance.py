"""The curve (A2–A5): its table, its shape, its expression and its inverse."""

import math
from fractions import Fraction
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.errors import InputError
from horde_policy.policy.allowance import allowance_expression, free_output_allowance, largest_wait_s
from horde_policy.settings import LARGEST_SETTING, AllowanceSettings
from tests.unit.policy import strategies as some

DEFAULT = AllowanceSettings()
TABLE: list[tuple[float | None, int]] = [
    (0.0, 4096),
    (59.999, 4096),
    (60.0, 4096),
    (60.001, 4095),
    (75.0, 3872),
    (90.0, 3648),
    (105.0, 3424),
    (120.0, 3200),
    (135.0, 2976),
    (150.0, 2752),
    (165.0, 2528),
    (180.0, 2304),
    (195.0, 2080),
    (210.0, 1856),
    (225.0, 1632),
    (240.0, 1408),
    (255.0, 1184),
    (270.0, 960),
    (285.0, 736),
    (299.999, 512),
    (300.0, 512),
    (1e9, 512),
    (None, 512),
]
CHANGED = AllowanceSettings(ceiling_tokens=1000, floor_tokens=100, wait_full_s=0.0, wait_floor_s=90.0)
TABLE_CHANGED: list[tuple[float | None, int]] = [
    (0.0, 1000),
    (0.001, 999),
    (0.1, 999),
    (9.0, 910),
    (45.0, 550),
    (45.05, 549),
    (89.9, 101),
    (89.999, 100),
    (90.0, 100),
    (1e9, 100),
    (None, 100),
]
FLAT = AllowanceSettings(ceiling_tokens=700, floor_tokens=700)
STEEP = AllowanceSettings(wait_full_s=60.0, wait_floor_s=math.nextafter(60.0, 61.0))


def by_expression(waits: list[float | None], settings: AllowanceSettings) -> list[int | None]:
    frame = pl.DataFrame({"wait_s": waits}, schema={"wait_s": pl.Float64})
    return frame.select(allowance_expression(pl.col("wait_s"), settings).alias("allowance"))["allowance"].to_list()


@pytest.mark.parametrize(
    ("settings", "table"),
    [
        (DEFAULT, TABLE),
        (CHANGED, TABLE_CHANGED),
        (FLAT, [(0.0, 700), (100.0, 700), (1e9, 700), (None, 700)]),
        (STEEP, [(60.0, 4096), (math.nextafter(60.0, 61.0), 512)]),
    ],
)
def test_the_table(settings: AllowanceSettings, table: list[tuple[float | None, int]]) -> None:
    assert [free_output_allowance(wait_s, settings) for wait_s, _ in table] == [tokens for _, tokens in table]
    assert by_expression([wait_s for wait_s, _ in table], settings) == [tokens for _, tokens in table]


def test_the_table_of_every_fifteen_seconds_is_exact_arithmetic() -> None:
    for wait_s in range(60, 301, 15):
        exact = 4096 - Fraction(4096 - 512) * (wait_s - 60) / (300 - 60)
        assert free_output_allowance(float(wait_s), DEFAULT) == math.floor(exact)


@pytest.mark.parametrize("wait_s", [-0.001, -math.inf, math.nan])
def test_a_senseless_wait_is_refused(wait_s: float) -> None:
    with pytest.raises(InputError, match="estimated wait"):
        free_output_allowance(wait_s, DEFAULT)


def test_the_expression_gives_no_allowance_where_the_scalar_refuses() -> None:
    assert by_expression([-0.001, -math.inf, math.nan, 60.0, None], DEFAULT) == [None, None, None, 4096, 512]
    assert by_expression([math.nan], DEFAULT) == [None]
    assert by_expression([-0.0], DEFAULT) == [free_output_allowance(-0.0, DEFAULT)] == [4096]


EXTREMES = [
    AllowanceSettings(wait_full_s=0, wait_floor_s=5e-324),
    AllowanceSettings(wait_full_s=0, wait_floor_s=1e-300, ceiling_tokens=16384, floor_tokens=1),
    AllowanceSettings(wait_full_s=0, wait_floor_s=LARGEST_SETTING, ceiling_tokens=16384, floor_tokens=1),
    AllowanceSettings(wait_full_s=math.nextafter(LARGEST_SETTING, 0), wait_floor_s=LARGEST_SETTING),
]


@pytest.mark.parametrize("settings", EXTREMES)
@given(wait_s=st.floats(min_value=0, allow_nan=False), share=st.floats(0, 1))
def test_the_furthest_settings_that_are_taken_give_figures_and_both_forms_agree(
    settings: AllowanceSettings, wait_s: float, share: float
) -> None:
    waits: list[float | None] = [
        wait_s,
        share * settings.wait_floor_s,
        5e307,
        *around(settings.wait_full_s),
        *around(settings.wait_floor_s),
    ]
    assert by_expression(waits, settings) == [free_output_allowance(wait, settings) for wait in waits]
    tokens = settings.floor_tokens + round(share * (settings.ceiling_tokens - settings.floor_tokens))
    inverse_s = largest_wait_s(tokens, settings)
    assert inverse_s is not None
    assert free_output_allowance(inverse_s, settings) >= tokens


def test_an_endless_wait_gets_the_floor() -> None:
    assert free_output_allowance(math.inf, DEFAULT) == 512
    assert by_expression([math.inf, 1.0], DEFAULT) == [512, 4096]
    assert by_expression([math.inf], DEFAULT) == [512]


@pytest.mark.parametrize(("full", "end", "floor"), [(67.6, 358.5, 256), (80.1, 467.5, 1), (40.8, 178.5, 256)])
def test_a_rounding_error_at_the_second_mark_never_takes_it_under_the_floor(full: float, end: float, floor: int) -> None:
    settings = AllowanceSettings(wait_full_s=full, wait_floor_s=end, floor_tokens=floor)
    wait_s = math.nextafter(end, 0.0)
    fall = settings.ceiling_tokens - floor
    assert settings.ceiling_tokens - fall * (wait_s - full) / (end - full) < floor
    assert free_output_allowance(wait_s, settings) == floor
    assert by_expression([wait_s, wait_s], settings) == [floor, floor]


def around(mark: float) -> list[float]:
    """Return the mark and a few doubles on either side, none negative."""
    near = [mark]
    low = high = mark
    for _ in range(3):
        low, high = max(0.0, math.nextafter(low, -math.inf)), math.nextafter(high, math.inf)
        near += [low, high]
    return near


@given(settings=some.settings(), wait_s=st.floats(0, 2000), share=st.floats(0, 1))
def test_it_never_rises_stays_in_bounds_is_exact_at_both_marks_and_equals_its_expression(
    settings: AllowanceSettings, wait_s: float, share: float
) -> None:
    inside = settings.wait_full_s + share * (settings.wait_floor_s - settings.wait_full_s)
    waits = sorted({wait_s, inside, *around(settings.wait_full_s), *around(settings.wait_floor_s), *around(inside)})
    allowances = [free_output_allowance(wait, settings) for wait in waits]
    assert all(earlier >= later for earlier, later in pairwise(allowances))
    assert all(settings.floor_tokens <= tokens <= settings.ceiling_tokens for tokens in allowances)
    assert by_expression([*waits, None], settings) == [*allowances, settings.floor_tokens]
    assert by_expression([inside], settings) == [free_output_allowance(inside, settings)]
    assert free_output_allowance(settings.wait_full_s, settings) == settings.ceiling_tokens
    assert free_output_allowance(settings.wait_floor_s, settings) == settings.floor_tokens


@given(settings=some.settings(), share=st.floats(0, 1))
def test_between_the_marks_it_is_the_line_rounded_down(settings: AllowanceSettings, share: float) -> None:
    wait_s = settings.wait_full_s + share * (settings.wait_floor_s - settings.wait_full_s)
    span = Fraction(settings.wait_floor_s) - Fraction(settings.wait_full_s)
    passed = min(max((Fraction(wait_s) - Fraction(settings.wait_full_s)) / span, Fraction(0)), Fraction(1))
    exact = settings.ceiling_tokens - (settings.ceiling_tokens - settings.floor_tokens) * passed
    # IEEE double: a hair beside a whole number the double may fall on its other side; a hair is far below one token
    tokens = free_output_allowance(wait_s, settings)
    assert math.floor(exact - Fraction(1, 10**6)) <= tokens <= math.floor(exact + Fraction(1, 10**6))


@given(settings=some.settings(), share=st.floats(0, 1))
def test_the_inverse_is_the_largest_such_wait_to_the_last_bit(settings: AllowanceSettings, share: float) -> None:
    tokens = settings.floor_tokens + round(share * (settings.ceiling_tokens - settings.floor_tokens))
    wait_s = largest_wait_s(tokens, settings)
    assert wait_s is not None
    assert free_output_allowance(wait_s, settings) >= tokens
    if tokens <= settings.floor_tokens:
        assert wait_s == math.inf
    else:
        assert settings.wait_full_s <= wait_s < settings.wait_floor_s
        assert free_output_allowance(math.nextafter(wait_s, math.inf), settings) < tokens


@pytest.mark.parametrize(
    ("tokens", "wait_s"), [(4097, None), (4096, 60.0), (2304, 180.0), (513, 299.93303571428567), (512, math.inf), (1, math.inf)]
)
def test_the_inverse_at_known_sizes(tokens: int, wait_s: float | None) -> None:
    found = largest_wait_s(tokens, DEFAULT)
    assert found == wait_s if wait_s is None or math.isinf(wait_s) else found == pytest.approx(wait_s, abs=1e-9)


def test_the_inverse_at_sizes_that_horde_users_ask() -> None:
    assert largest_wait_s(2048, DEFAULT) == pytest.approx(197.14, abs=0.01)
    assert largest_wait_s(1024, DEFAULT) == pytest.approx(265.71, abs=0.01)


def test_whole_seconds_in_the_settings_change_nothing() -> None:
    whole = AllowanceSettings(wait_full_s=60, wait_floor_s=300)
    waits: list[float | None] = [0.0, 60.0, 61.7, 299.9, 300.0, None]
    assert by_expression(waits, whole) == by_expression(waits, DEFAULT)
    assert [free_output_allowance(w, whole) for w in waits] == [free_output_allowance(w, DEFAULT) for w in waits]
