"""The bundled demo: reproducible, labelled, never stale, and showing every state that a model can be in."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from horde_policy.clock import FixedClock
from horde_policy.frames.snapshot import Snapshot
from horde_policy.policy.allowance import free_output_allowance
from horde_policy.settings import AllowanceSettings
from horde_policy.sources.demo import DEMO_FOLDER, DemoSource, moved_to
from horde_policy.sources.recorded import load_recorded
from horde_policy.sources.source import Source
from tests.make_demo import make

NOW = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
SETTINGS = AllowanceSettings()


def state(snapshot: Snapshot, model: str, size: int) -> str:
    """A model's state by the words of design §1, worked out here without the product's rule."""
    assert snapshot.models is not None
    queued: dict[str, float] = dict(snapshot.models.select("model", "queued_tokens").rows())
    workers: list[dict[str, Any]] = snapshot.workers.rows(named=True)
    able = [w for w in workers if model in w["models"] and w["online"] and not w["maintenance"] and not w["flagged"]]
    eligible = [w for w in able if w["max_length"] >= size and w["max_context_length"] >= max(2048, size)]
    if not eligible:
        return "too_large" if able else "no_worker"
    if model not in queued:
        return "unknown"
    speed = sum(w["speed_tok_per_s"] if w["measured"] else 10.0 for w in eligible)
    allowance = free_output_allowance(queued[model] / speed, SETTINGS)
    return {4096: "full", 512: "floor"}.get(allowance, "falling")


def test_the_bundled_demo_is_what_its_script_makes(tmp_path: Path) -> None:
    make(tmp_path)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_bytes() for path in DEMO_FOLDER.iterdir()}


@pytest.mark.parametrize("size", [80, 512])
def test_the_demo_shows_every_state(size: int) -> None:
    snapshot = load_recorded(DEMO_FOLDER)
    assert snapshot.models is not None
    names = {*snapshot.models["model"], *snapshot.workers["models"].explode().drop_nulls()}
    assert {state(snapshot, name, size) for name in names} == {"no_worker", "too_large", "unknown", "full", "falling", "floor"}


def test_the_demo_is_labelled_and_clean() -> None:
    snapshot = DemoSource(FixedClock(NOW)).load()
    assert snapshot.synthetic
    assert snapshot.source_kind == "demo"
    assert snapshot.source == "Demo horde"
    assert snapshot.problems == ()
    assert snapshot.workers.height == 34
    assert (snapshot.workers["measured"].not_().sum(), snapshot.workers["maintenance"].sum()) == (4, 3)


def test_the_demo_never_turns_stale() -> None:
    clock = FixedClock(NOW)
    source: Source = DemoSource(clock)
    assert source.load().fetched_at == NOW
    clock.advance(86_400)
    later = source.load()
    assert later.fetched_at == NOW + timedelta(days=1)
    assert set(later.part_times.values()) == {later.fetched_at}


def test_moving_a_snapshot_keeps_the_distances_of_its_parts() -> None:
    recorded = load_recorded(DEMO_FOLDER.parent / "recorded" / "snapshot")
    moved = moved_to(recorded, NOW)
    assert moved.fetched_at == NOW
    for name, time in recorded.part_times.items():
        assert moved.part_times[name] - moved.fetched_at == time - recorded.fetched_at
    assert moved.workers is recorded.workers


def test_the_servers_own_counts_hold_in_the_demo() -> None:
    """horde_observed.md: eta = int(queued / (count x performance)), 10000 (here null) without capacity; no unserved model."""
    snapshot = load_recorded(DEMO_FOLDER)
    assert snapshot.models is not None
    for row in snapshot.models.rows(named=True):
        capacity = row["threads"] * row["job_speed_tok_per_s"]
        assert row["threads"] > 0
        assert row["eta_s"] == (0 if not row["queued_tokens"] else int(row["queued_tokens"] / capacity) if capacity else None)
    assert snapshot.performance is not None
    assert snapshot.performance.queued_tokens is not None
    assert snapshot.performance.queued_tokens > 0
