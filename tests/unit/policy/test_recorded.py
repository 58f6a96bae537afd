"""Recorded workers of a real server with what was really waiting there: decision and estimator against plain sums."""

import json
from pathlib import Path
from typing import Any

import pytest

from horde_policy.policy.decision import Pool, Request, Waiting, decide
from horde_policy.policy.eligibility import Worker, workers_by_model, workers_from_frame
from horde_policy.policy.estimator import Estimator
from horde_policy.policy.largest_free import largest_free_request
from horde_policy.policy.queue_order import queue_key
from horde_policy.settings import AllowanceSettings
from horde_policy.sources.recorded import load_recorded

RECORDED = Path(__file__).parents[3] / "data" / "recorded"
SETTINGS = AllowanceSettings()
SIZES = (80, 300, 512, 1024, 4096)


def read(folder: str, name: str) -> Any:
    content = json.loads((RECORDED / folder / name).read_text(encoding="utf-8"))
    return content.get("response", {}).get("body", content) if isinstance(content, dict) else content


def loaded(folder: str) -> tuple[tuple[Worker, ...], tuple[Waiting, ...]]:
    workers = workers_from_frame(load_recorded(RECORDED / folder).workers)
    waiting = tuple(
        Waiting(
            Request(
                models=tuple(row["models"] or ()),
                max_length=row["max_length"],
                max_context_length=row["max_context_length"],
                slow_workers=row["slow_workers"],
            ),
            queue_key(0.0, i, i),
            row["waiting"],
        )
        for i, row in enumerate(read(folder, "what_was_queued.json")["requests"])
        if row["waiting"]
    )
    return workers, waiting


def summed(folder: str, model: str, size: int) -> tuple[int, float, float | None]:
    """Return tokens ahead, combined speed and wait from the raw files, without any code of the package."""
    pool = []
    for raw in read(folder, "workers_text.json"):
        context = max(2048, size)
        serves = model in raw["models"] and raw["max_length"] >= size and raw["max_context_length"] >= context
        if raw["online"] and not raw["maintenance_mode"] and not raw["flagged"] and serves:
            pool.append(raw)
    tokens = 0
    for row in read(folder, "what_was_queued.json")["requests"]:
        for raw in pool:
            named = not row["models"] or set(row["models"]) & set(raw["models"])
            if named and raw["max_length"] >= row["max_length"] and raw["max_context_length"] >= row["max_context_length"]:
                tokens += row["max_length"] * row["waiting"]
                break
    speed = sum(float(raw["performance"].split()[0]) if raw["requests_fulfilled"] else 10.0 for raw in pool)
    return tokens, speed, tokens / speed if pool else None


@pytest.mark.parametrize("folder", ["snapshot", "calm_snapshot"])
def test_decision_and_estimator_agree_with_plain_sums_over_the_recorded_files(folder: str) -> None:
    workers, waiting = loaded(folder)
    assert any(found.tokens for found in waiting)
    estimator = Estimator(SETTINGS)
    for worker in workers:
        estimator.add_worker(worker)
    for found in waiting:
        estimator.add(found.key.row, found.request, found.key, found.remaining_n)
    key = queue_key(-50.0, 1_000_000, 1000)
    compared = 0
    for model in sorted({model for worker in workers for model in worker.models or ()}):
        for size in SIZES:
            request = Request(models=(model,), max_length=size, max_context_length=max(2048, size))
            tokens, speed, wait_s = summed(folder, model, size)
            decision = decide(request, Pool(workers=workers, waiting=waiting), SETTINGS, key=key)
            assert decision.queued_tokens == tokens
            assert decision.speed_tok_per_s == pytest.approx(speed, rel=1e-14)
            assert decision.estimated_wait_s == (None if wait_s is None else pytest.approx(wait_s, rel=1e-14))
            estimate = estimator.estimate(request, key)
            assert (estimate.estimated_wait_s, estimate.allowance_tokens) == (
                decision.estimated_wait_s,
                decision.allowance_tokens,
            )
            assert estimate[2:] == (decision.queued_tokens, decision.speed_tok_per_s, decision.eligible_workers)
            compared += decision.eligible_workers > 0
    assert compared > 10


def test_the_fleet_of_2023_takes_no_free_request_above_what_it_declares() -> None:
    workers = workers_from_frame(load_recorded(RECORDED / "production_2023-07").workers)
    found = {model: largest_free_request(pool, 0, SETTINGS) for model, pool in workers_by_model(workers).items()}
    raw = [w for w in read("production_2023-07", "workers_text.json") if not w["maintenance_mode"] and not w["flagged"]]
    declared: dict[str, int] = {}
    for worker in raw:
        for model in worker["models"]:
            if worker["max_context_length"] >= 2048:
                declared[model] = max(declared.get(model, 0), min(worker["max_length"], worker["max_context_length"]))
    assert declared
    assert {model: size for model, size in found.items() if size is not None} == declared
