"""Objectives and constraints as people write them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.errors import InputError
from horde_policy.sweep.metrics import METRICS, Metric
from horde_policy.sweep.sentences import bound_text, parse_constraint, parse_objective


@pytest.mark.parametrize(
    ("sentence", "key", "sense", "bound"),
    [
        ("p90 wait of registered ≤ 120 s", "p90_wait_registered_s", "≤", 120.0),
        ("p90 wait of registered <= 120", "p90_wait_registered_s", "≤", 120.0),
        ("P90  wait of Registered   at most 2 min.", "p90_wait_registered_s", "≤", 120.0),
        ("p99 wait of anonymous < 0.5 h", "p99_wait_anonymous_s", "<", 1800.0),
        ("p50 wait of shared keys not above 10 seconds", "p50_wait_shared_key_s", "≤", 10.0),
        ("p90 wait of everyone =< 60s", "p90_wait_everyone_s", "≤", 60.0),
        ("refused share of unfunded ≤ 5 %", "refused_share_unfunded", "≤", 0.05),
        ("the refused share <= 5%", "refused_share", "≤", 0.05),
        ("refused share no more than 0.05", "refused_share", "≤", 0.05),
        ("expired share below 0.3 percent", "expired_share", "<", 0.003),
        ("timed-out share ≤ 0 %", "timed_out_share", "≤", 0.0),
        ("completed share at least 99.5 %", "completed_share", "≥", 0.995),
        ("tokens given free >= 1,000,000", "free_tokens_per_day", "≥", 1e6),
        ("tokens given free ≥ 1.5 M a day", "free_tokens_per_day", "≥", 1.5e6),
        ("tokens given free more than 250 k tokens per day", "free_tokens_per_day", ">", 250_000.0),
        ("gap between models ≤ 10 %", "model_gap", "≤", 0.1),
        ("free_tokens_per_day => 5", "free_tokens_per_day", "≥", 5.0),
    ],
)
def test_a_constraint_is_read(sentence: str, key: str, sense: str, bound: float) -> None:
    found = parse_constraint(sentence)
    assert (found.metric.key, found.sense, found.bound, found.of_baseline) == (key, sense, bound, False)
    assert parse_constraint(str(found)) == found, "what is shown can be typed again"


@pytest.mark.parametrize(
    ("bound", "factor"),
    [("baseline", 1.0), ("the baseline", 1.0), ("110 % of baseline", 1.1), ("1.1 × baseline", 1.1), ("0.5 x the baseline", 0.5)],
)
def test_a_bound_may_be_the_baselines_own_figure(bound: str, factor: float) -> None:
    found = parse_constraint(f"p90 wait of registered ≤ {bound}")
    assert found.of_baseline
    assert found.bound == pytest.approx(factor)
    assert parse_constraint(str(found)) == found
    assert (
        found.met(np.array([10.0, 11.5, np.nan]), np.array([10.0])).tolist() == [True, 10 * factor >= 11.5, False][:3]
        or factor < 1
    )


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("", "must hold a comparison"),
        ("p90 wait of registered 120 s", "must hold a comparison: ≤, ≥, <, >"),
        ("p95 wait of registered ≤ 120 s", "'p95 wait of registered' is no metric.*the metrics are: refused share of unfunded"),
        ("≤ 120 s", "'' is no metric"),
        ("p90 wait of registered ≤", "'' must be a number with its unit .s, seconds, min"),
        ("p90 wait of registered ≤ soon", "'soon' must be a number with its unit"),
        ("p90 wait of registered ≤ 120 tokens", "'120 tokens' must be a number with its unit"),
        ("p90 wait of registered ≤ -5 s", "'-5 s' must be a number"),
        ("p90 wait of registered ≤ 1e3 s", "'1e3 s' must be a number"),
        ("p90 wait of registered ≤ 1,00 s", "'1,00 s' must be a number"),
        ("refused share ≤ 5", "must be a share of 0 % to 100 %: 5 % or 0.05"),
        ("refused share ≤ 120 %", "must be a share of 0 % to 100 %"),
        ("refused share ≤ 5 % ≤ 6 %", "must be a number"),
        ("tokens given free ≥ 5 s", "must be a number with its unit .tokens, k"),
    ],
)
def test_a_sentence_that_cannot_be_read_says_what_can_stand_there(sentence: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_constraint(sentence)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_what_nothing_can_meet_is_refused(metric: Metric) -> None:
    none = bound_text(0.0, metric)
    never = [f"< {none}", "< 0 % of baseline", "under 0 × baseline"] + (["> 100 %", "above 1"] if metric.unit == "share" else [])
    for words in never:
        with pytest.raises(InputError, match=r"can be met by nothing: no (figure is below 0|share is above 100 %)"):
            parse_constraint(f"{metric.phrase} {words}")
    some = [f"≤ {none}", f"≥ {none}", f"> {none}", "> 100 % of baseline", "≤ 0 % of baseline"]
    some += ["≥ 100 %", "< 100 %"] if metric.unit == "share" else []
    top = np.array([1.0 if metric.unit == "share" else 1e5])
    for words in some:
        found = parse_constraint(f"{metric.phrase} {words}")
        assert any(found.met(value, 0.5 * top)[0] for value in (0 * top, 0.7 * top, top)), words


@pytest.mark.parametrize(
    ("sentence", "key", "better"),
    [
        ("refused share of unfunded", "refused_share_unfunded", "less"),
        ("tokens given free", "free_tokens_per_day", "more"),
        ("fewest tokens given free", "free_tokens_per_day", "less"),
        ("most tokens given free.", "free_tokens_per_day", "more"),
        ("shortest p90 wait of anonymous", "p90_wait_anonymous_s", "less"),
        ("max: completed share", "completed_share", "more"),
        ("minimise the gap between models", "model_gap", "less"),
    ],
)
def test_an_objective_is_read(sentence: str, key: str, better: str) -> None:
    found = parse_objective(sentence)
    assert (found.metric.key, found.better) == (key, better)
    assert parse_objective(str(found)) == found


def test_an_objective_that_is_no_metric() -> None:
    with pytest.raises(InputError, match="objective, happiness: 'happiness' is no metric"):
        parse_objective("happiness")


@given(st.sampled_from(sorted(METRICS)), st.floats(0, 1, allow_subnormal=False).map(lambda x: float(f"{x:.10g}")))
def test_any_bound_can_be_typed_again(key: str, bound: float) -> None:
    metric = METRICS[key]
    value = bound if metric.unit == "share" else float(f"{bound * 1e4:.6g}")
    if 0 < value < 1e-4 or "e" in repr(value):
        return
    again = parse_constraint(f"{metric.phrase} ≤ {bound_text(value, metric)}")
    assert again.bound == pytest.approx(value, rel=1e-9)


def test_every_metric_has_a_phrase_of_its_own_and_a_sentence() -> None:
    phrases = [metric.phrase for metric in METRICS.values()]
    assert len(set(phrases)) == len(phrases)
    for metric in METRICS.values():
        assert parse_objective(metric.phrase).metric is metric
        assert parse_objective(metric.key).metric is metric
        assert metric.text.endswith(".")
