"""Combined speed and estimated wait (A7, A8), scalar against expression."""

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.errors import InputError
from horde_policy.policy.eligibility import Worker
from horde_policy.policy.wait import (
    combined_speed_expression,
    combined_speed_tok_per_s,
    estimated_wait_expression,
    estimated_wait_s,
    finishes_in_time,
    wait_at_speed_s,
    wait_time_s,
)
from horde_policy.policy.worker import counted_speed_expression, counted_speed_tok_per_s, is_measured
from horde_policy.settings import AllowanceSettings
from tests.unit.policy import strategies as some

SETTINGS = AllowanceSettings()
PLAIN = Worker(worker_id="w", models=("m",), max_length=512, max_context_length=4096, speed_tok_per_s=7.4, measured=True)


@pytest.mark.parametrize(
    ("speed", "measured", "counted"),
    [
        (7.4, True, 7.4),
        (1.0, True, 1.0),
        (1.0, False, 10.0),
        (7.4, False, 10.0),
        (7.4, None, 10.0),
        (None, True, 10.0),
        (0.0, True, 10.0),
        (None, None, 10.0),
    ],
)
def test_what_a_worker_counts(speed: float | None, measured: bool | None, counted: float) -> None:
    worker = replace(PLAIN, speed_tok_per_s=speed, measured=measured)
    assert counted_speed_tok_per_s(worker, SETTINGS) == counted
    assert is_measured(worker) is (counted == speed)


def test_a_worker_counts_once_whatever_its_threads_unless_asked() -> None:
    fleet = [replace(PLAIN, threads=threads) for threads in (None, 0, 1, 4)]
    assert combined_speed_tok_per_s(fleet, SETTINGS) == 7.4 + 7.4 + 7.4 + 7.4
    assert combined_speed_tok_per_s(fleet, SETTINGS.changed(count_threads=True)) == 7.4 + 7.4 + 7.4 + 7.4 * 4


def test_no_eligible_worker_means_speed_zero_and_no_estimate() -> None:
    assert combined_speed_tok_per_s([], SETTINGS) == 0.0
    assert estimated_wait_s(0, [], SETTINGS) is None
    assert wait_time_s(None, 80, 0.0) is None


def test_an_unknown_queue_gives_no_estimate() -> None:
    assert estimated_wait_s(None, [PLAIN], SETTINGS) is None


def test_an_empty_queue_is_no_wait() -> None:
    assert estimated_wait_s(0, [PLAIN], SETTINGS) == 0.0


@pytest.mark.parametrize(("queued", "speed"), [(-1, 1.0), (float("nan"), 1.0), (float("inf"), 1.0), (1, -1.0), (1, float("nan"))])
def test_a_senseless_queue_or_speed_is_refused(queued: float, speed: float) -> None:
    with pytest.raises(InputError):
        wait_at_speed_s(queued, speed)


def test_wait_time_adds_the_own_output() -> None:
    assert wait_time_s(60.0, 74, 7.4) == 60.0 + 74 / 7.4


def test_4096_tokens_need_27_3_tokens_per_second() -> None:
    assert finishes_in_time(4096, [replace(PLAIN, speed_tok_per_s=27.4)], SETTINGS)
    assert not finishes_in_time(4096, [replace(PLAIN, speed_tok_per_s=27.3)], SETTINGS)
    assert not finishes_in_time(4096, [], SETTINGS)


@given(fleet=some.fleets(20), settings=some.settings(), queued=st.one_of(st.none(), st.floats(0, 1e7)))
def test_scalar_and_expression_agree(fleet: tuple[Worker, ...], settings: AllowanceSettings, queued: float | None) -> None:
    schema = {"measured": pl.Boolean, "speed_tok_per_s": pl.Float64, "threads": pl.Int64}
    frame = pl.DataFrame([{name: getattr(worker, name) for name in schema} for worker in fleet], schema=schema)
    counted = frame.select(counted_speed_expression(settings).alias("counted"))["counted"].to_list()
    assert counted == [counted_speed_tok_per_s(worker, settings) for worker in fleet]
    speed = combined_speed_tok_per_s(fleet, settings)
    assert frame.select(combined_speed_expression(settings).alias("speed")).item() == speed
    grouped = frame.with_columns(g=pl.lit(1)).group_by("g").agg(combined_speed_expression(settings).alias("speed"))
    assert grouped["speed"].to_list() == ([speed] if fleet else [])
    wait = estimated_wait_s(queued, fleet, settings)
    for height in (1, 3):
        waits = pl.DataFrame({"q": [queued] * height, "s": [speed] * height}, schema={"q": pl.Float64, "s": pl.Float64})
        for by in (pl.col("s"), pl.lit(speed)):
            found = waits.select(estimated_wait_expression(pl.col("q"), by).alias("wait"))["wait"].to_list()
            assert found == [wait] * height
