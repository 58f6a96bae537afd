"""Made-up weeks, request by request, counted as the telemetry would: what their making implies is known."""

import math
import random
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from typing import Any

from horde_policy.frames.decisions import size_of
from horde_policy.policy.allowance import free_output_allowance
from horde_policy.policy.decision import rule_outcome
from horde_policy.policy.request import Request, Requester
from horde_policy.review.exported import Exported
from horde_policy.settings import AllowanceSettings
from tests.unit.review.made import LIFECYCLE_S, MONDAY, decision, decisions, histogram, hour, wait_sum, wait_sums, waits

SIZES_ASKED = (80, 256, 512, 800, 1024, 1500, 2048, 4096, 6000)
HOURS = 168
ASKERS: tuple[Requester, ...] = ("anonymous", "registered", "registered", "shared_key")


def made_week(
    seed: int = 1,
    *,
    per_hour: int = 12,
    settings: AllowanceSettings | None = None,
    estimate_over_measured: float = 1.0,
    hours: int = HOURS,
    no_worker: float = 0.02,
) -> Exported:
    """Return a week in which the wait swings between 0 and 400 s, each request waits what was estimated times a factor."""
    rule, rng = settings or AllowanceSettings(), random.Random(seed)
    rows: list[dict[str, Any]] = []
    buckets: list[dict[str, Any]] = []
    sums: list[dict[str, Any]] = []
    for number in range(hours):
        base = 200 + 200 * (1 if number % 24 < 12 else -1) * rng.random()
        cells: Counter[tuple[str, str, str, str, bool]] = Counter()
        estimated: list[float] = []
        queue: dict[str, list[float]] = defaultdict(list)
        for _ in range(per_hour):
            requester = rng.choice(ASKERS)
            chat = rng.random() < 0.3
            wait = None if rng.random() < no_worker else max(0.0, rng.gauss(base, 30))
            request = Request(
                models=(),
                max_length=rng.choice(SIZES_ASKED),
                requester=requester,
                chat=chat,
                can_pay=requester != "anonymous" and rng.random() < 0.6,
                allow_downgrade=rng.random() < 0.2,
            )
            allowance = free_output_allowance(wait, rule)
            outcome, _ = rule_outcome(request, allowance, any_eligible=wait is not None)
            cells[requester, outcome, size_of(request.max_length), size_of(allowance), chat] += 1
            if wait is not None:
                estimated.append(wait)
                if outcome != "refused":
                    queue[requester].append(wait / estimate_over_measured)
        names = ("requester", "outcome", "requested_size", "allowance_size", "chat")
        rows += [decision(n, None, **dict(zip(names, cell, strict=True)), **hour(number)) for cell, n in cells.items()]
        if estimated:
            buckets += histogram(estimated, LIFECYCLE_S, kind="estimated", requester=None, **hour(number))
            sums.append(wait_sum(len(estimated), sum(estimated), kind="estimated", requester=None, **hour(number)))
        for asker, values in queue.items():
            buckets += histogram(values, LIFECYCLE_S, requester=asker, **hour(number))
    return Exported(
        decisions=decisions(*rows), waits=waits(*buckets), wait_sums=wait_sums(*sums), title="a made-up week", synthetic=True
    )


def exposition_of(exported: Exported) -> bytes:
    """Return a made-up week as one Prometheus scrape an hour: cumulative counters that start at 0 with the week."""
    hours = [MONDAY + timedelta(hours=number) for number in range(HOURS + 1)]
    series: dict[str, dict[datetime, float]] = defaultdict(lambda: defaultdict(float))
    for row in exported.decisions.iter_rows(named=True):
        words = {f"horde_{name}": row[name] for name in ("requester", "outcome", "requested_size", "allowance_size")}
        labels = {**words, "horde_chat": str(row["chat"]).lower()}
        series["horde_text_free_allowance_decisions" + _labels(labels)][row["interval_end"]] += row["count_low"]
    for row in exported.waits.iter_rows(named=True):
        for edge in (*LIFECYCLE_S, math.inf):
            if edge >= row["upper_s"]:
                labels = {"le": "+Inf" if math.isinf(edge) else f"{edge:g}"}
                series[_wait_name(row, "bucket") + _labels(labels | _asker(row))][row["interval_end"]] += row["count_low"]
        series[_wait_name(row, "count") + _labels(_asker(row))][row["interval_end"]] += row["count_low"]
    for row in exported.wait_sums.iter_rows(named=True):
        series[_wait_name(row, "sum") + _labels(_asker(row))][row["interval_end"]] += row["sum_low_s"]
    lines = []
    for name, grown in series.items():
        total = 0.0
        for at in hours:
            total += grown.get(at, 0.0)
            lines.append(f"{name} {total!r} {round(at.timestamp() * 1000)}")
    return "\n".join([*lines, ""]).encode()


def _wait_name(row: dict[str, Any], part: str) -> str:
    names = {"estimated": "horde_text_free_allowance_estimated_wait_seconds", "queue": "horde_text_queue_wait_seconds"}
    return f"{names[row['kind']]}_{part}"


def _asker(row: dict[str, Any]) -> dict[str, str]:
    return {} if row["requester"] is None else {"horde_requester": row["requester"]}


def _labels(words: dict[str, str]) -> str:
    return "{" + ",".join(f'{name}="{word}"' for name, word in ({"instance": "one"} | words).items()) + "}"
