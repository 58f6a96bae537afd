"""Makes the bundled demo history: ``python -m tests.make_demo_history [FOLDER]`` writes ``data/history`` again, byte for byte.

Seven days of the demo horde, up to the demo's own snapshot (``data/demo``), which is its last poll. All of it is made up: the
script below says which workers came, went, were in maintenance or flagged, and how busy each model was. The requests are drawn
with a seed and replayed through the rule on that fleet; what waits for a model at a poll is what waited for it in the replay.
Over the last minutes each model is asked for as much as leads to about the queue that the demo's snapshot shows.
"""

import json
import math
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from horde_policy.frames.models import MODELS
from horde_policy.frames.snapshot import Performance, Snapshot
from horde_policy.frames.workers import WORKERS as WORKERS_FRAME
from horde_policy.history.alerting import AlertKeeper
from horde_policy.history.demo import ALERTS_FILE, DEMO_HISTORY_FOLDER
from horde_policy.history.export import export_history
from horde_policy.history.store import HistoryStore
from horde_policy.replay import replay
from horde_policy.settings import AllowanceSettings, ReplaySettings
from horde_policy.sources.demo import DEMO_FOLDER
from horde_policy.sources.recorded import load_recorded
from tests.make_demo import BACKLOG, NOT_YET_LISTED, SIZES, WORKERS, Worker

SEED = 20261129
DAYS = 7
EVERY = timedelta(minutes=3)
RUSH = timedelta(minutes=40)
"""How long before the end demand begins to lead to the queues of the demo's snapshot."""
RUSH_MOST = 12.0
RUSH_STEPS = 8
GAP_H = (61.4, 60.6)
"""Hours before the end between which the recorder was away."""

Hours = tuple[tuple[float, float], ...]
"""Spans as hours before the end: from, to."""


def nightly(first: float, hours: float) -> Hours:
    """Return the same span of each of the seven days, the first one beginning so many hours before the end."""
    return tuple((first - 24 * day, max(0.0, first - 24 * day - hours)) for day in range(DAYS) if first - 24 * day > hours)


# Who was away when, in hours before the end; who is not named here was there all the time.
AWAY: Mapping[str, Hours] = {
    "harbour-02": ((31.0, 26.5),),
    "tin-whistle": ((120.0, 101.0), (50.2, 49.8)),
    "glasshouse-annex": ((168.0, 140.0), (75.0, 52.0), (9.0, 1.2)),
    "kitchen-3060": nightly(165.0, 9.0),
    "snailmail": nightly(160.0, 6.5),
    "snailmail-2": ((100.0, 90.0),),
    "old-lantern": ((168.0, 96.0), (20.5, 15.0)),
    "night-ferry": nightly(154.0, 12.0),
    "night-ferry-b": nightly(152.5, 12.0),
    "wheelwright-2": ((44.0, 40.0),),
    "attic-4090": ((133.0, 125.0), (85.0, 77.0), (37.0, 29.0)),
    "driftwood": ((168.0, 30.0),),
    "foundry-b": ((70.0, 46.0),),
    "shelf-tabby": ((12.3, 10.1),),
    "quartz": ((60.0, 59.5), (58.0, 57.6), (56.0, 55.5)),
    "just-arrived": ((168.0, 0.13),),
    "just-arrived-2": ((168.0, 0.06),),
    "new-in-town": ((168.0, 0.04),),
    "ghost": ((168.0, 71.0),),
}
MAINTENANCE: Mapping[str, Hours] = {
    "in-the-shop": ((20.0, 0.0),),
    "spring-cleaning": ((110.0, 104.0), (5.2, 0.0)),
    "repainting": ((2.6, 0.0),),
    "harbour-01": ((90.0, 89.0),),
}
FLAGGED: Mapping[str, Hours] = {"out-of-favour": ((66.0, 0.0),)}
# Those that the demo's snapshot no longer shows, each until so many hours before the end.
GONE = (
    (Worker("lamplighter", ("koboldcpp/Fernery-24B-v1.1",), 17.8, 1024, 8192, owner="Lamp#9"), ((168.0, 7.4),)),
    (Worker("cellar-door", ("koboldcpp/Mirador-22B",), 11.3, 512, 8192), ((150.0, 118.0), (98.0, 14.5))),
    (Worker("brine", ("koboldcpp/Saltmarsh-12B",), 21.6, 512, 4096), ((168.0, 3.1),)),
    (Worker("weekender", ("koboldcpp/Nocturne-70B",), 5.2, 1024, 8192, trusted=False), ((52.0, 33.0),)),
    (Worker("passing-through", ("koboldcpp/Hollyhock-7B",), 19.0, 512, 4096, trusted=False), ((27.0, 25.8),)),
    (Worker("grand-opening", ("koboldcpp/Gable-27B-it",), 18.5, 1024, 8192), ((168.0, 47.0),)),
)
# How much of what its workers can do at the end is asked of a model, on average over a day.
LOAD: Mapping[str, float] = {
    "koboldcpp/Saltmarsh-12B": 1.05,
    "koboldcpp/Fernery-24B-v1.1": 1.0,
    "koboldcpp/Mirador-22B": 1.3,
    "koboldcpp/Nocturne-70B": 0.95,
    "koboldcpp/Pebble-3B": 0.85,
    "koboldcpp/Ironwood-32B": 0.75,
    "koboldcpp/Tidepool-8B-v2": 0.8,
    "aphrodite/foundry/Anvil-70B": 0.75,
    "koboldcpp/Cartographer-13B": 0.7,
    "Lantern-6B-classic": 0.8,
    "koboldcpp/Hollyhock-7B": 0.55,
    "koboldcpp/Gable-27B-it": 0.8,
}
USUAL_LOAD = 0.35
BURSTS = 5
"""Rushes of a model over the week, each of an hour or so."""


@dataclass(frozen=True)
class Member:
    """A worker of the week: its id, what it is, and from when to when it was what."""

    worker_id: str
    worker: Worker
    online: Hours
    maintenance: Hours
    flagged: Hours

    def is_there(self, hour: float) -> bool:
        return _within(self.online, hour)

    @property
    def serving(self) -> Hours:
        """When it served strangers."""
        kept = self.online if self.worker.models else ()
        for closed in (*self.maintenance, *self.flagged):
            kept = tuple(part for span in kept for part in _without(span, closed))
        return kept


def _within(spans: Hours, hour: float) -> bool:
    return any(start >= hour > end or (hour <= 0 and end <= 0) for start, end in spans)


def _without(span: tuple[float, float], cut: tuple[float, float]) -> Iterator[tuple[float, float]]:
    """Yield what is left of a span; hours count down to the end."""
    if span[0] > cut[0]:
        yield span[0], max(cut[0], span[1])
    if cut[1] > span[1]:
        yield min(cut[1], span[0]), span[1]


def fleet_of_the_week(now: Snapshot) -> tuple[Member, ...]:
    """Return who was there, those of the demo's snapshot under their ids."""
    ids = dict(now.workers.select("name", "worker_id").iter_rows())
    members = []
    for worker in WORKERS:
        online: Hours = ((24.0 * DAYS, 0.0),)
        for away in AWAY.get(worker.name, ()):
            online = tuple(part for span in online for part in _without(span, away))
        spans = (online, MAINTENANCE.get(worker.name, ()), FLAGGED.get(worker.name, ()))
        members.append(Member(ids[worker.name], worker, *spans))
    for number, (worker, online) in enumerate(GONE):
        members.append(Member(f"00000000-0000-4000-8000-{number:012x}", worker, online, (), ()))
    return tuple(sorted(members, key=lambda member: member.worker_id))


def replay_fleet(members: tuple[Member, ...], end: datetime) -> pl.DataFrame:
    """Return the week's fleet as a replay reads it; the speed of an unmeasured worker is what it says."""
    rows = [
        (
            member.worker_id,
            end - timedelta(hours=start),
            None if stop <= 0 else end - timedelta(hours=stop),
            list(member.worker.models),
            member.worker.max_length,
            member.worker.max_context_length,
            member.worker.speed,
            member.worker.threads,
            member.worker.done != 0,
        )
        for member in members
        for start, stop in member.serving
    ]
    names = [
        "worker_id",
        "online_from",
        "online_to",
        "models",
        "max_length",
        "max_context_length",
        "speed",
        "threads",
        "measured",
    ]
    instants = {name: pl.Datetime("us", "UTC") for name in ("online_from", "online_to")}
    return pl.DataFrame(rows, schema=names, schema_overrides=instants, orient="row")


@dataclass(frozen=True)
class Demand:
    """What could be asked of one model: requests in order, each kept where its mark lies under the share that is asked."""

    model: str
    hours: npt.NDArray[np.float64]
    rows: pl.DataFrame
    marks: npt.NDArray[np.float64]

    def kept(self, rush: float) -> pl.DataFrame:
        """Return what is asked, at so many times the usual over the last minutes."""
        share = np.where(self.hours < RUSH.total_seconds() / 3600, rush / RUSH_MOST, 1 / RUSH_MOST)
        return self.rows.filter(pl.Series(self.marks < share))


def demand_of(model: str, members: tuple[Member, ...], end: datetime, draw: np.random.Generator) -> Demand:
    """Draw one model's requests: a day's rise and fall, and some rushes, at :data:`RUSH_MOST` times the usual rate."""
    serving = [m.worker for m in members if model in m.worker.models and m.serving]
    there = [m.worker for m in members if model in m.worker.models and m.serving and m.serving[-1][1] <= 0] or serving
    capacity = sum(w.speed * w.threads / len(w.models) for w in there)
    sizes = np.array([size for size in SIZES if size <= max(w.max_length for w in serving)])
    mean_tokens = float(sizes.mean()) * 0.7
    usual_per_h = LOAD.get(model, USUAL_LOAD) * capacity / mean_tokens * 3600
    hours = np.arange(0.0, 24.0 * DAYS, 1 / 60)
    shape = 1 + 0.45 * np.cos((hours - draw.uniform(2.0, 9.0)) / 24 * 2 * math.pi)
    for start in draw.uniform(3.0, 24.0 * DAYS, BURSTS):
        shape += draw.uniform(0.4, 1.3) * np.exp(-(((hours - start) / draw.uniform(0.25, 0.8)) ** 2))
    rate = np.where(hours < RUSH.total_seconds() / 3600, RUSH_MOST, 1.0) * usual_per_h * shape / 60
    minutes = np.repeat(hours, draw.poisson(rate))
    at = np.sort(minutes + draw.uniform(0, 1 / 60, minutes.size))[::-1]
    marks = np.where(at < RUSH.total_seconds() / 3600, draw.uniform(0, 1, at.size), 0.0)
    asked = draw.choice(sizes, at.size)
    registered = draw.uniform(0, 1, at.size) < 0.45
    created = [end - timedelta(microseconds=round(hour * 3.6e9)) for hour in at]
    rows = pl.DataFrame(
        {
            "created": pl.Series(created, dtype=pl.Datetime("us", "UTC")),
            "models": pl.Series([[model]] * at.size, dtype=pl.List(pl.String)),
            "requester": np.where(registered, "registered", "anonymous"),
            "max_length": asked,
            "can_pay": registered & (draw.uniform(0, 1, at.size) < 0.5),
            "output_tokens": np.maximum(8, asked * draw.uniform(0.4, 1.0, at.size)).astype(np.int64),
        }
    )
    return Demand(model, at, rows, marks)


def replayed(demands: list[Demand], fleet: pl.DataFrame, end: datetime) -> pl.DataFrame:
    """Return the week's requests with what became of them; demand over the last minutes leads to the demo's queues."""
    low, high = dict.fromkeys(BACKLOG, 0.0), dict.fromkeys(BACKLOG, RUSH_MOST)
    run = pl.DataFrame()
    for _ in range(RUSH_STEPS):
        rush = {model: (low[model] + high[model]) / 2 for model in BACKLOG}
        traffic = pl.concat([demand.kept(rush.get(demand.model, 1.0)) for demand in demands]).sort("created", "models")
        asked = traffic.select("created", pl.col("models").list.first().alias("model"))
        run = pl.concat([asked, replay(traffic, fleet, ReplaySettings())], how="horizontal")
        waits = _waiting(run).filter(pl.col("until") > end).group_by("model").agg(pl.col("admitted_max_length").sum())
        queued = dict(waits.iter_rows())
        for model, wanted in BACKLOG.items():
            (high if queued.get(model, 0) > wanted else low)[model] = rush[model]
    return run


def _waiting(run: pl.DataFrame) -> pl.DataFrame:
    """Return the requests that joined a queue, with until when they waited."""
    ttl = timedelta(seconds=ReplaySettings().request_ttl_s)
    expired = pl.col("status") == "expired"
    until = pl.when(expired).then(pl.col("created") + ttl).otherwise(pl.col("started"))
    return run.filter(pl.col("outcome") != "refused").with_columns(until=until)


@dataclass(frozen=True)
class Counted:
    """One model's queue at each poll: tokens that wait, requests that wait, and generations in flight."""

    tokens: npt.NDArray[np.float64]
    waiting: npt.NDArray[np.int64]
    in_flight: npt.NDArray[np.int64]


def _sum_until(at: pl.Series, values: pl.Series, polls: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    order = np.argsort(at.to_physical().to_numpy(), kind="stable")
    total = np.concatenate([[0], np.cumsum(values.to_numpy()[order])])
    found: npt.NDArray[np.int64] = total[np.searchsorted(at.to_physical().to_numpy()[order], polls, side="right")]
    return found


def counted(run: pl.DataFrame, polls: list[datetime]) -> dict[str, Counted]:
    """Return each model's queue as the server counts it (horde_observed.md)."""
    instants = pl.Series(polls, dtype=pl.Datetime("us", "UTC")).to_physical().to_numpy()
    found = {}
    for (model,), rows in _waiting(run).group_by("model", maintain_order=True):
        ones, sizes = pl.Series(np.ones(rows.height, np.int64)), rows["admitted_max_length"]
        started = rows.filter(pl.col("started").is_not_null() & pl.col("finished").is_not_null())
        running = pl.Series(np.ones(started.height, np.int64))
        found[str(model)] = Counted(
            (_sum_until(rows["created"], sizes, instants) - _sum_until(rows["until"], sizes, instants)).astype(np.float64),
            _sum_until(rows["created"], ones, instants) - _sum_until(rows["until"], ones, instants),
            _sum_until(started["started"], running, instants) - _sum_until(started["finished"], running, instants),
        )
    return found


@dataclass(frozen=True)
class Week:
    """What the polls of the week are made of."""

    now: Snapshot
    members: tuple[Member, ...]
    queues: Mapping[str, Counted]
    done: pl.DataFrame
    speeds: Mapping[str, npt.NDArray[np.float64]]

    def snapshot(self, place: int, at: datetime) -> Snapshot:
        """Return what a horde would have said at a poll."""
        hour = (self.now.fetched_at - at) / timedelta(hours=1)
        there = [member for member in self.members if member.is_there(hour)]
        workers = self._workers(there, hour, place)
        open_ = [m.worker for m in there if not _within(m.maintenance, hour)]
        return replace(
            self.now,
            fetched_at=at,
            workers=workers,
            models=self._models(open_, place),
            performance=self._performance([m.worker for m in there], place, at),
            totals=None,
            part_times={},
        )

    def _workers(self, there: list[Member], hour: float, place: int) -> pl.DataFrame:
        known = {row["worker_id"]: row for row in self.now.workers.iter_rows(named=True)}
        finished = self.now.fetched_at - timedelta(hours=hour)
        later = dict(self.done.filter(pl.col("finished") > finished).group_by("worker_id").len().iter_rows())
        rows = []
        for member in there:
            worker = member.worker
            row: dict[str, Any] = known.get(member.worker_id) or _row_of(member)
            row["flagged"] = _within(member.flagged, hour)
            row["maintenance"] = _within(member.maintenance, hour)
            row["speed_tok_per_s"] = round(worker.speed * float(self.speeds[member.worker_id][place]), 1)
            if worker.done != 0:
                row["requests_fulfilled"] = max(20, row["requests_fulfilled"] - later.get(member.worker_id, 0))
            row["uptime_s"] = max(0, row["uptime_s"] - int(hour * 6) * 600)
            rows.append(tuple(row[name] for name in WORKERS_FRAME.columns))
        return WORKERS_FRAME.checked(pl.DataFrame(rows, schema=WORKERS_FRAME.polars_schema(), orient="row").sort("worker_id"))

    def _models(self, open_: list[Worker], place: int) -> pl.DataFrame:
        rows = []
        for model in sorted({name for worker in open_ for name in worker.models} - NOT_YET_LISTED):
            serving = [worker for worker in open_ if model in worker.models]
            threads = sum(worker.threads for worker in serving)
            measured = [worker.speed for worker in serving if worker.done != 0]
            speed = round(sum(measured) / len(measured), 1) if measured else 0.0
            queue = self.queues.get(model)
            tokens = 0.0 if queue is None else float(queue.tokens[place])
            jobs = 0.0 if queue is None else float(queue.waiting[place] + queue.in_flight[place])
            eta = 0.0 if not tokens else float(int(tokens / (threads * speed))) if threads * speed else None
            rows.append((model, threads, speed, tokens, jobs, eta))
        return MODELS.checked(pl.DataFrame(rows, schema=MODELS.polars_schema(), orient="row").sort("model"))

    def _performance(self, there: list[Worker], place: int, at: datetime) -> Performance:
        minute = self.done.filter(pl.col("finished").is_between(at - timedelta(minutes=1), at, closed="right"))
        return Performance(
            queued_text_requests=float(sum(queue.waiting[place] + queue.in_flight[place] for queue in self.queues.values())),
            queued_tokens=float(sum(queue.tokens[place] for queue in self.queues.values())),
            past_minute_tokens=float(minute["admitted_max_length"].sum()),
            text_worker_count=len(there),
            text_thread_count=sum(worker.threads for worker in there),
        )


def _row_of(member: Member) -> dict[str, Any]:
    """Return the row of a worker that the demo's snapshot does not have."""
    worker = member.worker
    declared = {
        name: getattr(worker, name) for name in ("name", "max_length", "max_context_length", "threads", "trusted", "owner")
    }
    return declared | {
        "worker_id": member.worker_id,
        "models": list(worker.models),
        "measured": True,
        "online": True,
        "bridge_agent": worker.bridge,
        "requests_fulfilled": 4000,
        "uncompleted_jobs": 31,
        "uptime_s": 2_000_000,
    }


def speeds_of(members: tuple[Member, ...], polls: int, draw: np.random.Generator) -> dict[str, npt.NDArray[np.float64]]:
    """Draw how each worker's speed went, as a share of the one that it ends with: a new mean every few jobs."""
    speeds = {}
    for member in members:
        share = np.ones(polls)
        if member.worker.done != 0:
            steps = polls // 25 + 1
            drawn = np.exp(0.05 * draw.standard_normal(steps))
            drawn[-1] = 1.0
            share = np.repeat(drawn, 25)[-polls:]
        speeds[member.worker_id] = share
    return speeds


def make_week(now: Snapshot) -> tuple[Week, list[datetime]]:
    """Return what the polls are made of, and when they were: none within the gap."""
    draw = np.random.default_rng(SEED)
    end = now.fetched_at
    members = fleet_of_the_week(now)
    models = sorted({model for member in members if member.serving for model in member.worker.models})
    demands = [demand_of(model, members, end, draw) for model in models]
    run = replayed(demands, replay_fleet(members, end), end)
    number = timedelta(days=DAYS) // EVERY
    polls = [end - EVERY * (number - place) for place in range(number + 1)]
    done = run.filter(pl.col("finished").is_not_null()).select("worker_id", "finished", "admitted_max_length")
    week = Week(now, members, counted(run, polls), done, speeds_of(members, len(polls), draw))
    return week, polls


def make(folder: Path) -> None:
    """Write the demo history to the folder, which must not be there yet."""
    now = load_recorded(DEMO_FOLDER, kind="demo")
    week, polls = make_week(now)
    keeper = AlertKeeper(AllowanceSettings())
    with tempfile.TemporaryDirectory() as beside:
        store = HistoryStore(Path(beside) / "history.sqlite", durable=False)
        last, alerts = polls[0], ""
        for place, at in enumerate(polls):
            if GAP_H[0] > (now.fetched_at - at) / timedelta(hours=1) > GAP_H[1]:
                continue
            snapshot = now if at == now.fetched_at else week.snapshot(place, at)
            judged = keeper.judge(snapshot, at)
            assert judged is not None
            reason = "the recorder was not running" if at - last > EVERY else None
            # The history moves with the clock, and an instant inside a text would not.
            events = [(when, kind, text.rpartition(", since ")[0]) for when, kind, text in judged.events]
            store.write(snapshot, gap_reason=reason, events=events, alerts=judged.record)
            keeper.accept(judged)
            last, alerts = at, judged.record.state
        export_history(store, folder, now=now.fetched_at)
        (folder / ALERTS_FILE).write_text(json.dumps(json.loads(alerts), indent=1) + "\n", encoding="utf-8")
        store.close()


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else DEMO_HISTORY_FOLDER)
