"""Garbage never raises outside the tree of errors; neither the order of files nor repetition changes what is counted."""

import gzip
from collections.abc import Callable
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from horde_policy.errors import HordePolicyError
from horde_policy.imports import Imported, read_exports
from tests.unit.imports.test_packing import REQUESTS
from tests.unit.imports.writing import (
    OTLP_LINES,
    PLAIN,
    QUEUE,
    classic,
    decision,
    exponential,
    exposition,
    histogram,
    matrix,
    metric,
    number,
    otlp,
)

SOAK = settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))
QUICK = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))

WAITS = exposition([*classic(QUEUE, {60.0: 1, float("inf"): 2}, 9.0, 0), *classic(QUEUE, {60.0: 3, float("inf"): 2}, 9.5, 60)])
CSV = b'"Time","horde_text_free_allowance_decisions{horde_outcome=""free""}"\r\n1790000000000,1\r\n1790000060000,"1,443"\r\n\r\n'
SEEDS = [
    PLAIN,
    WAITS,
    OTLP_LINES,
    b"".join(REQUESTS),
    len(REQUESTS[0]).to_bytes(4, "big") + REQUESTS[0],
    CSV,
    matrix({metric("free"): [(0, 1), (60, 4)]}),
    otlp(histogram([1, 2], [60], 9.0, 0, 60), name="horde.text.queue_wait_seconds", kind="histogram"),
    otlp(exponential(1, 11, [3, 1], 0, 60), name="horde.text.queue_wait_seconds", kind="exponentialHistogram"),
    gzip.compress(PLAIN),
    zstandard.compress(PLAIN),
]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A good export with bytes replaced, cut out, repeated or put in."""
    content = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, max(0, len(content) - 1)))
        kind = draw(st.integers(0, 4))
        if kind == 0:
            content[at : at + 1] = bytes([draw(st.integers(0, 255))])
        elif kind == 1:
            del content[at : at + draw(st.integers(1, 30))]
        elif kind == 2:
            content[at:at] = content[at : at + draw(st.integers(1, 60))]
        elif kind == 3:
            content[at:at] = draw(
                st.sampled_from(
                    [b'"', b"\n", b"{", b"}", b"\0", b"-", b"1e999", b"9" * 25, b"NaN", b"\xff", b"\\", b",", b"null", b"[]"]
                )
            )
        else:
            content[at:] = b""
    return bytes(content)


def read_or_refuse(content: bytes) -> Imported | None:
    try:
        return read_exports(content, max_unpacked_bytes=10_000_000)
    except HordePolicyError:
        return None


def check_damaged(content: bytes) -> None:
    imported = read_or_refuse(content)
    if imported is not None:
        for frame in (imported.decisions, imported.waits):
            assert (frame["count_low"] <= frame["count_high"]).all()
            assert (frame["count_low"] >= 0).all()


@QUICK
@given(st.binary(max_size=400))
def test_garbage_is_refused_or_holds_no_count(content: bytes) -> None:
    imported = read_or_refuse(content)
    assert imported is None or (imported.decisions.is_empty() and imported.waits.is_empty())


@QUICK
@given(damaged())
def test_damaged_exports_are_read_or_refused(content: bytes) -> None:
    check_damaged(content)


@pytest.mark.soak
@SOAK
@given(damaged())
def test_damaged_exports_are_read_or_refused_in_full(content: bytes) -> None:
    check_damaged(content)


@st.composite
def files(draw: st.DrawFn) -> list[bytes]:
    """Files over one short history of two processes with restarts: overlapping parts of it, in several forms."""
    rows: list[tuple[str, float, float]] = []
    answers: dict[str, list[tuple[float, float]]] = {}
    points: list[bytes] = []
    for instance in ("a", "b"):
        values = {"free": draw(st.integers(0, 20)), "refused": draw(st.integers(0, 5))}
        start = -100.0
        for at in range(0, 600, 60):
            if draw(st.integers(0, 5)) == 0:
                values, start = dict.fromkeys(values, 0), at - 30.0
            for outcome in values:
                values[outcome] += draw(st.integers(0, 3))
                rows.append((decision(outcome, instance), at, values[outcome]))
                answers.setdefault(metric(outcome, instance), []).append((at, values[outcome]))
            if instance == "b":
                points.append(otlp(number(values["free"], start, at, outcome="funded"), resource={"service.instance.id": "c"}))
    lines = exposition(rows).splitlines(keepends=True)
    kinds: list[Callable[[int, int], bytes]] = [
        lambda low, high: b"".join(lines[2 * low : 2 * high]) or lines[0],
        lambda low, high: matrix({key: of[low:high] for key, of in answers.items()}),
        lambda low, high: b"".join(points[low:high]) or points[0],
    ]
    made = []
    for _ in range(draw(st.integers(1, 4))):
        low = draw(st.integers(0, 9))
        made.append(draw(st.sampled_from(kinds))(low, draw(st.integers(low + 1, 10))))
    return made


def counts(imported: Imported) -> list[Any]:
    return [imported.decisions.rows(), imported.waits.rows(), imported.wait_sums.rows(), imported.before.decisions.rows()]


def check_order(given_files: list[bytes], order: list[int], repeated: int) -> None:
    expected = counts(read_exports(given_files))
    assert counts(read_exports([given_files[place] for place in order])) == expected
    again = [*given_files, *([given_files[repeated % len(given_files)]] * 2)]
    assert counts(read_exports(again)) == expected


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_order_and_repetition_change_nothing(data: st.DataObject) -> None:
    given_files = data.draw(files())
    check_order(given_files, data.draw(st.permutations(range(len(given_files)))), data.draw(st.integers(0, 3)))


@pytest.mark.soak
@settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_order_and_repetition_change_nothing_in_full(data: st.DataObject) -> None:
    given_files = data.draw(files())
    check_order(given_files, data.draw(st.permutations(range(len(given_files)))), data.draw(st.integers(0, 3)))
