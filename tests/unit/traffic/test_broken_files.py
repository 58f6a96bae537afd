"""Bundled files broken at random: every one is read with its rows accounted for, or refused by an error of ours."""

import random
from pathlib import Path

import pytest

from horde_policy.errors import HordePolicyError
from horde_policy.imports.replay_inputs import load_traffic
from horde_policy.imports.trace_frame import TraceOptions
from horde_policy.imports.traces import load_trace
from horde_policy.replay.fill import filled
from horde_policy.replay.fill_rule import FillRule
from tests.unit.traffic.paths import TRACES

OWN = b"request_id,created,models,requester,max_length,output_tokens,can_pay,priority\n" + b"".join(
    b"%d,2026-11-29T18:00:%02dZ,a|b,anonymous,%d,20,true,1.5\n" % (n, n, 80 + n) for n in range(40)
)
LOG = b"".join(
    b"INFO       | 2026-11-29 18:00:%02d | horde.x:activate:1 - New text2text prompt with ID a-%d by Bo#%d: "
    b"max_length:%d * n:1 == 80.0 Total Tokens\n" % (n, n, n % 3, 80 + n)
    for n in range(40)
)
SOURCES = {
    "azure.csv": (TRACES / "azure2023_conv.head300.csv").read_bytes()[:2000],
    "burst.csv": (TRACES / "burstgpt1.first400.csv").read_bytes()[:2000],
    "mooncake.jsonl": (TRACES / "mooncake_conversation.head200.jsonl").read_bytes()[:4000],
    "ragpulse.jsonl": (TRACES / "ragpulse_week1.head200.jsonl").read_bytes()[:4000],
    "burst.parquet": (TRACES / "burstgpt1.first400.parquet").read_bytes(),
    "own.csv": OWN,
    "horde.log": LOG,
}
PIECES = (
    b"",
    b"\x00",
    b",",
    b'"',
    b"\n",
    b"\r\n",
    b"-",
    b"9" * 30,
    b"\xff\xfe",
    b"NaN",
    b"{",
    b"}",
    b"1e400",
    b"null",
    b"\xe2\x80\xae",
)


def broken(content: bytes, draw: random.Random) -> bytes:
    for _ in range(draw.randint(1, 6)):
        at = draw.randrange(len(content))
        cut = draw.choice((0, 1, 1, 2, 20))
        content = content[:at] + draw.choice(PIECES) + content[at + cut :]
        if not content:
            return b""
    return content[: draw.randrange(1, len(content))] if draw.random() < 0.2 else content


def try_to_use(path: Path) -> bool:
    """Read the file as a replay's input and as a trace; say whether it could be used as a trace."""
    messages = []
    trace = None
    try:
        load_traffic(path)
    except HordePolicyError as error:
        messages.append(str(error))
    try:
        trace = load_trace(path, TraceOptions(segment=1))
        traffic = filled(trace, FillRule())
    except HordePolicyError as error:
        messages.append(str(error))
    else:
        assert trace.rows_read == trace.frame.height + sum(trace.refused.values())
        assert traffic.frame.height == trace.frame.height
    assert all(len(message) < 4000 for message in messages)
    return trace is not None


@pytest.mark.parametrize("name", SOURCES)
def test_a_few_dozen_breaks(name: str, tmp_path: Path) -> None:
    used = _break(name, tmp_path, seeds=range(60))
    assert used or name.endswith("parquet")


@pytest.mark.soak
@pytest.mark.parametrize("name", SOURCES)
def test_thousands_of_breaks(name: str, tmp_path: Path) -> None:
    used = _break(name, tmp_path, seeds=range(100, 3100))
    assert used or name.endswith("parquet")


def _break(name: str, folder: Path, seeds: range) -> int:
    used = 0
    for seed in seeds:
        path = folder / name
        path.write_bytes(broken(SOURCES[name], random.Random(seed)))
        used += try_to_use(path)
    return used
