"""The deterministic draw: the check values of traces.md §4, and the compiled kernel against the plain function."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horde_policy.replay import draws
from horde_policy.replay.draws import u, u_of_keys, u_of_rows

CHECK_VALUES = [
    ("azure2023_conv|0", 0.817230, 0.254497, 0.502821),
    ("azure2023_conv|1", 0.035406, 0.317931, 0.752237),
    ("ragpulse_week1|1757476916095-afhwfadnh5ew", 0.243863, 0.835327, 0.333234),
    ("burstgpt1|0", 0.599875, 0.359119, 0.263470),
]


@pytest.mark.parametrize(("key", "requester", "max_tokens", "client"), CHECK_VALUES)
def test_check_values(key: str, requester: float, max_tokens: float, client: float) -> None:
    found = [round(u(salt, key), 6) for salt in ("requester", "max_tokens", "client")]
    assert found == [requester, max_tokens, client]


@given(st.text(max_size=20), st.text(max_size=60))
def test_draws_lie_in_the_unit_interval(salt: str, key: str) -> None:
    draw = u(salt, key)
    assert 0 <= draw < 1
    assert u_of_keys(salt, [key]).tolist() == [draw]


# the longest prefix leaves one digit in a block, the next falls back to the plain way
@pytest.mark.parametrize("trace", ["t", "azure2023_conv", "x" * 30, "x" * 44, "x" * 45, "x" * 90, "Möbius"])
def test_the_kernel_gives_what_the_plain_function_gives(trace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws, "COMPILED_FROM_ROWS", 1)
    rows = np.array([0, 9, 10, 99, 100, 12_345, 99_999_999, 2**53, 2**62], dtype=np.int64)
    plain = [u("requester", f"{trace}|{row}") for row in rows.tolist()]
    assert u_of_rows("requester", trace, rows).tolist() == plain
    for row, draw in zip(rows, plain, strict=True):
        assert u_of_rows("requester", trace, np.array([row])).tolist() == [draw]


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=40), st.sampled_from(["thin", "pay", "model"]))
@settings(max_examples=50, deadline=None)
def test_any_rows_in_any_order(rows: list[int], salt: str) -> None:
    before = draws.COMPILED_FROM_ROWS
    draws.COMPILED_FROM_ROWS = 1
    try:
        assert u_of_rows(salt, "t", np.array(rows)).tolist() == [u(salt, f"t|{row}") for row in rows]
    finally:
        draws.COMPILED_FROM_ROWS = before


def test_negative_rows_and_none_are_hashed_as_they_read() -> None:
    assert u_of_rows("thin", "t", np.array([-1])).tolist() == [u("thin", "t|-1")]
    assert u_of_rows("thin", "t", np.empty(0, dtype=np.int64)).tolist() == []
