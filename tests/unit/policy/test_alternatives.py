"""The previous rule (A29; horde.md §3) and jobs per eligible thread (A30), scalar against expression."""

from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.errors import InputError
from horde_policy.policy.allowance import free_output_allowance
from horde_policy.policy.alternatives import (
    jobs_rule_allowance,
    jobs_rule_expression,
    old_rule,
    old_rule_allowance,
    old_rule_downgraded_length,
    old_rule_expression,
)
from horde_policy.policy.eligibility import Request
from horde_policy.settings import AllowanceSettings
from tests.unit.policy import strategies as some

SETTINGS = AllowanceSettings()


@pytest.mark.parametrize(("threads", "full_up_to", "floor_from"), [(20, 111, 395), (50, 278, 562), (100, 556, 840)])
def test_where_the_old_rule_starts_to_fall_and_ends(threads: int, full_up_to: int, floor_from: int) -> None:
    assert old_rule_allowance(threads, full_up_to) == 512
    assert old_rule_allowance(threads, full_up_to + 1) < 512
    assert old_rule_allowance(threads, floor_from) == 256
    assert old_rule_allowance(threads, floor_from - 1) > 256


@pytest.mark.parametrize(
    ("threads", "queued", "raw"),
    [
        (38, 215, 508),  # these three were read in a real server's refusals
        (38, 416, 328),
        (38, 637, 129),
        (100, 0, 1012),
        (0, 5, 508),  # 4.5 rounds to the even 4
        (0, 15, 498),  # 13.5 rounds to the even 14
        (0, 25, 490),  # 22.5 rounds to the even 22
        (0, 0, 512),
        (0, 10_000, -8488),
    ],
)
def test_the_unclamped_figure(threads: int, queued: int, raw: int) -> None:
    assert old_rule_allowance(threads, queued, slow_workers=False) == raw
    assert old_rule_allowance(threads, queued) == min(512, max(256, raw))


@pytest.mark.parametrize(
    ("request_", "on_worker_list", "verdict"),
    [
        (Request(models=(), max_length=80, slow_workers=False), False, (True, 612, False)),
        (Request(models=(), max_length=4096, slow_workers=False, workers=("w",)), True, (True, 612, False)),
        (Request(models=(), max_length=513), False, (True, 512, False)),
        (Request(models=(), max_length=513, workers=("w",)), True, (True, 512, False)),
        (Request(models=(), max_length=512, workers=("w",)), True, (True, 512, True)),
        (Request(models=(), max_length=512), True, (False, 512, False)),
        (Request(models=(), max_length=512, workers=("w",)), False, (False, 512, False)),
    ],
)
def test_the_five_steps_in_order(request_: Request, verdict: tuple[bool, int, bool], *, on_worker_list: bool) -> None:
    found = old_rule(request_, 20, 0, worker_list_needs_kudos=on_worker_list)
    assert (found.needs_kudos, found.tokens, found.downgrade_blocked) == verdict


@pytest.mark.parametrize(("asked", "tokens", "lowered"), [(4096, 512, 512), (80, 1012, 80), (80, 0, 1), (80, -7988, 1)])
def test_a_downgrade_leaves_at_least_one_token(asked: int, tokens: int, lowered: int) -> None:
    assert old_rule_downgraded_length(asked, tokens) == lowered


@pytest.mark.parametrize(("threads", "queued"), [(-1, 0), (0, -1), (0, float("nan")), (0, float("inf"))])
def test_senseless_counts_are_refused(threads: int, queued: float) -> None:
    with pytest.raises(InputError, match="old rule"):
        old_rule_allowance(threads, queued)


@given(threads=st.integers(0, 5000), queued=st.integers(0, 100_000), slow=st.booleans())
def test_the_old_rule_s_scalar_and_expression_agree_with_exact_arithmetic(*, threads: int, queued: int, slow: bool) -> None:
    frame = pl.DataFrame({"t": [threads] * 2, "q": [queued] * 2, "s": [slow] * 2})
    scalar = old_rule_allowance(threads, queued, slow_workers=slow)
    found = frame.select(old_rule_expression(pl.col("t"), pl.col("q"), pl.col("s")).alias("x"))["x"].to_list()
    assert found == [scalar] * 2
    plain = frame.select(old_rule_expression(pl.col("t"), pl.col("q")).alias("x"))["x"].to_list()
    assert plain == [old_rule_allowance(threads, queued)] * 2
    exact = 512 + 5 * threads - round(0.9 * queued)
    assert scalar == (min(512, max(256, exact)) if slow else exact)
    assert abs(512 + 5 * threads - Fraction(9, 10) * queued - exact) <= Fraction(1, 2)


def test_an_unknown_count_makes_the_old_rule_unknown() -> None:
    frame = pl.DataFrame({"t": [None, 1], "q": [1.0, None]}, schema={"t": pl.Int64, "q": pl.Float64})
    assert frame.select(old_rule_expression(pl.col("t"), pl.col("q")).alias("x"))["x"].to_list() == [None, None]


@given(threads=st.integers(0, 5000), queued=st.integers(0, 10**6), wait_s=st.one_of(st.none(), st.floats(0, 1e9)))
def test_the_old_rule_is_never_larger_than_the_new_one_where_slow_workers_are_allowed(
    threads: int, queued: int, wait_s: float | None
) -> None:
    assert old_rule_allowance(threads, queued) <= free_output_allowance(wait_s, SETTINGS)


@given(
    request=some.requests(),
    threads=st.integers(0, 200),
    queued=st.integers(0, 2000),
    wait_s=st.one_of(st.none(), st.floats(0, 1000)),
)
def test_whatever_the_old_rule_gave_free_is_free_now(request: Request, threads: int, queued: int, wait_s: float | None) -> None:
    if not old_rule(request, threads, queued).needs_kudos:
        assert request.slow_workers
        assert request.max_length <= free_output_allowance(wait_s, SETTINGS)


@pytest.mark.parametrize(
    ("jobs", "threads", "allowance"),
    [(0, 1, 4096), (1, 1, 3200), (2, 1, 2304), (3, 1, 1408), (4, 1, 512), (5, 1, 512), (1, 3, 3797), (0, 0, 512), (9, 0, 512)],
)
def test_jobs_per_eligible_thread(jobs: int, threads: int, allowance: int) -> None:
    assert jobs_rule_allowance(jobs, threads, SETTINGS) == allowance


@pytest.mark.parametrize(("jobs", "threads"), [(-1, 1), (1, -1)])
def test_senseless_jobs_are_refused(jobs: int, threads: int) -> None:
    with pytest.raises(InputError, match="jobs rule"):
        jobs_rule_allowance(jobs, threads, SETTINGS)


@given(
    jobs=st.integers(0, 10_000),
    threads=st.integers(0, 500),
    settings=some.settings(),
    per_thread=st.one_of(st.floats(0.01, 1000), st.integers(1, 20)),
)
def test_the_jobs_rule_is_bounded_falls_and_has_an_equal_expression(
    jobs: int, threads: int, settings: AllowanceSettings, per_thread: float
) -> None:
    changed = settings.changed(jobs_rule_floor_per_thread=per_thread)
    scalar = jobs_rule_allowance(jobs, threads, changed)
    frame = pl.DataFrame({"j": [jobs, 1, 7], "t": [threads, 3, 9]})
    assert frame.select(jobs_rule_expression(pl.col("j"), pl.col("t"), changed).alias("x"))["x"].to_list() == [
        jobs_rule_allowance(j, t, changed) for j, t in frame.iter_rows()
    ]
    assert changed.floor_tokens <= scalar <= changed.ceiling_tokens
    assert jobs_rule_allowance(jobs + 1, threads, changed) <= scalar
    if threads:
        assert jobs_rule_allowance(0, threads, changed) == changed.ceiling_tokens


def test_unknown_jobs_are_unknown_and_without_a_thread_the_floor() -> None:
    frame = pl.DataFrame({"j": [None, None], "t": [1, 0]}, schema={"j": pl.Int64, "t": pl.Int64})
    assert frame.select(jobs_rule_expression(pl.col("j"), pl.col("t"), SETTINGS).alias("x"))["x"].to_list() == [None, 512]
