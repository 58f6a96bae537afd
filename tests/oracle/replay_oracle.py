"""Replay, written a second time from ``replay.md`` alone: plain Python, whole microseconds, Python floats, no cleverness.

It shares no code with the package. Rows come in and go out as dictionaries; settings are read by attribute.
"""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

Row = dict[str, Any]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def microseconds(instant: datetime) -> int:
    return (instant - EPOCH) // timedelta(microseconds=1)


def instant(us: int | None) -> datetime | None:
    return None if us is None else EPOCH + timedelta(microseconds=us)


def setting_us(seconds: float) -> int:
    return round(seconds * 1_000_000)


class Request:
    """One request, as sent."""

    def __init__(self, row: int, given: Row) -> None:
        def value(name: str, absent: Any) -> Any:
            found = given.get(name)
            return absent if found is None else found

        self.row = row
        self.request_id: str = value("request_id", str(row))
        self.created = microseconds(given["created"])
        self.models: list[str] = given["models"]
        self.asked: int = given["max_length"]
        self.output_tokens: int = value("output_tokens", given["max_length"])
        self.context: int = value("max_context_length", 2048)
        self.can_pay: bool = value("can_pay", False)
        self.chat: bool = value("chat", False)
        self.asked_slow: bool = value("slow_workers", True)
        self.allow_downgrade: bool = value("allow_downgrade", False)
        self.priority: float = value("priority", -50.0 if given["requester"] == "anonymous" else 0.0)
        self.attempt = 1
        self.first: Request = self
        self.reset()

    def reset(self) -> None:
        """Forget what became of it."""
        self.max_length = self.asked
        self.slow_workers = self.asked_slow
        self.key = 0.0
        self.outcome: str | None = None
        self.reason: str | None = None
        self.allowance: int | None = None
        self.wait_s: float | None = None
        self.worker: Worker | None = None
        self.started: int | None = None
        self.finished: int | None = None
        self.status: str | None = None

    def order(self) -> tuple[float, int, int]:
        return (-self.key, self.created, self.row)


class Worker:
    """One row of the fleet."""

    def __init__(self, row: int, given: Row) -> None:
        def value(name: str, absent: Any) -> Any:
            found = given.get(name)
            return absent if found is None else found

        self.row = row
        self.worker_id: str = given["worker_id"]
        self.online_from = microseconds(given["online_from"])
        self.online_to = None if given.get("online_to") is None else microseconds(given["online_to"])
        self.models: list[str] = given["models"]
        self.max_length: int = given["max_length"]
        self.context: int = given["max_context_length"]
        self.speed: float = given["speed"]
        self.threads: int = value("threads", 1)
        self.measured: bool = value("measured", True)
        self.slow: bool = value("slow", self.speed < 5)
        self.online = False
        self.idle_since: list[int] = []


class Job:
    """A request on a thread of a worker."""

    def __init__(self, request: Request, worker: Worker, end: int, completes: bool) -> None:
        self.request = request
        self.worker = worker
        self.end = end
        self.completes = completes


class Oracle:
    """The replay, event by event."""

    def __init__(self, traffic: list[Row], fleet: list[Row], settings: Any) -> None:
        self.settings = settings
        self.requests = [Request(row, given) for row, given in enumerate(traffic)]
        self.workers = [Worker(row, given) for row, given in enumerate(fleet)]
        self.to_arrive = list(self.requests)
        self.queue: list[Request] = []
        self.jobs: list[Job] = []
        self.completed_ids: set[str] = set()
        changes: list[tuple[int, int, int]] = []
        for worker in self.workers:
            changes.append((worker.online_from, 1, worker.row))
            if worker.online_to is not None:
                changes.append((worker.online_to, 0, worker.row))
        self.changes = sorted(changes)
        self.ttl = setting_us(settings.request_ttl_s)
        self.now = 0

    # ---- events

    def run(self) -> list[Row]:
        while self.next_event():
            pass
        return [self.output(request) for request in self.requests]

    def next_event(self) -> bool:
        """Do the first of all due events; say whether there was one."""
        times = [request.created + self.ttl for request in self.queue]
        times += [job.end for job in self.jobs]
        times += [time for time, _, _ in self.changes[:1]]
        times += [request.created for request in self.to_arrive]
        if not times:
            return False
        self.now = min(times)
        expired = [request for request in self.queue if request.created + self.ttl <= self.now]
        if expired:
            for request in expired:
                self.queue.remove(request)
                request.status = "expired"
            return True
        ended = [job for job in self.jobs if job.end <= self.now]
        if ended:
            self.end_job(min(ended, key=lambda job: job.request.row))
            return True
        if self.changes and self.changes[0][0] <= self.now:
            _, online, row = self.changes.pop(0)
            if online:
                self.come_online(self.workers[row])
            else:
                self.go_offline(self.workers[row])
            return True
        arriving = min(self.to_arrive, key=lambda request: (request.created, request.row))
        self.to_arrive.remove(arriving)
        self.arrive(arriving)
        return True

    def end_job(self, job: Job) -> None:
        self.jobs.remove(job)
        job.request.finished = job.end
        if job.completes:
            job.request.status = "completed"
            self.completed_ids.add(job.worker.worker_id)
        else:
            job.request.status = "timed_out"
        job.worker.idle_since.append(self.now)
        self.take(job.worker)

    def come_online(self, worker: Worker) -> None:
        worker.online = True
        worker.idle_since = [self.now] * worker.threads
        while self.take(worker):
            pass

    def go_offline(self, worker: Worker) -> None:
        worker.online = False
        worker.idle_since = []
        lost = [job for job in self.jobs if job.worker is worker]
        self.jobs = [job for job in self.jobs if job.worker is not worker]
        for request in sorted((job.request for job in lost), key=Request.order):
            if request.created + self.ttl <= self.now:
                request.status = "expired"
            else:
                self.queue.append(request)
                self.offer(request)

    # ---- work

    def could_take(self, worker: Worker, request: Request) -> bool:
        return (
            worker.online
            and (not request.models or any(model in worker.models for model in request.models))
            and worker.max_length >= request.max_length
            and worker.context >= request.context
            and (request.slow_workers or not worker.slow)
        )

    def take(self, worker: Worker) -> bool:
        if not worker.idle_since:
            return False
        fitting = [request for request in self.queue if self.could_take(worker, request)]
        if not fitting:
            return False
        self.start(min(fitting, key=Request.order), worker)
        return True

    def offer(self, request: Request) -> None:
        idle = [worker for worker in self.workers if worker.idle_since and self.could_take(worker, request)]
        if idle:
            self.start(request, min(idle, key=lambda worker: (min(worker.idle_since), worker.row)))

    def start(self, request: Request, worker: Worker) -> None:
        self.queue.remove(request)
        worker.idle_since.remove(min(worker.idle_since))
        request.worker = worker
        request.started = self.now
        takes = math.ceil(min(request.output_tokens, request.max_length) * 1e6 / worker.speed)
        limit = None if self.settings.job_timeout_s is None else setting_us(self.settings.job_timeout_s)
        if limit is not None and takes > limit:
            self.jobs.append(Job(request, worker, self.now + limit, completes=False))
        else:
            self.jobs.append(Job(request, worker, self.now + takes, completes=True))

    # ---- arrival

    def arrive(self, request: Request) -> None:
        settings = self.settings
        aged = request.created // max(setting_us(settings.ageing_every_s), 1)
        request.key = request.priority - settings.ageing_kudos * float(aged)
        if request.chat:
            declared = [
                worker.max_length
                for worker in self.workers
                if worker.online and (not request.models or any(model in worker.models for model in request.models))
            ]
            if declared and max(declared) < request.max_length:
                request.max_length = max(declared)
        eligible = [worker for worker in self.workers if self.could_take(worker, request)]
        ahead = [
            waiting
            for waiting in self.queue
            if (settings.ahead == "all" or waiting.order() < request.order())
            and any(self.could_take(worker, waiting) for worker in eligible)
        ]
        if eligible:
            tokens = 0
            for waiting in ahead:
                tokens += waiting.max_length
            speed = 0.0
            for worker in eligible:
                speed += self.counted_speed(worker)
            request.wait_s = tokens / speed
        request.allowance = self.allowance(request, eligible, ahead)
        self.decide(request, has_eligible=bool(eligible))
        if request.outcome == "refused":
            request.status = "refused"
            self.client(request)
        else:
            self.queue.append(request)
            self.offer(request)

    def counted_speed(self, worker: Worker) -> float:
        measured = worker.measured or worker.worker_id in self.completed_ids
        speed = worker.speed if measured else self.settings.assumed_speed_tok_per_s
        return float(speed * worker.threads) if self.settings.count_threads else float(speed)

    def curve(self, value: float | None, full: float, least: float) -> int:
        ceiling, floor = self.settings.ceiling_tokens, self.settings.floor_tokens
        if value is None or value >= least:
            return int(floor)
        if value <= full:
            return int(ceiling)
        fallen = math.floor(ceiling - (ceiling - floor) * (value - full) / (least - full))
        return int(max(floor, fallen))

    def allowance(self, request: Request, eligible: list[Worker], ahead: list[Request]) -> int | None:
        settings = self.settings
        if settings.rule == "everyone_free":
            return None
        if settings.rule == "no_one_free":
            return 0
        if settings.rule == "old":
            threads = sum(worker.threads for worker in self.workers if worker.online)
            tokens = 512 + 5 * threads - round(0.9 * len(self.queue))
            return tokens if not request.slow_workers else min(max(tokens, 256), 512)
        if settings.rule == "jobs":
            threads = sum(worker.threads for worker in eligible)
            return self.curve(len(ahead) / threads if eligible else None, 0.0, settings.jobs_rule_floor_per_thread)
        return self.curve(request.wait_s, setting_us(settings.wait_full_s) / 1e6, setting_us(settings.wait_floor_s) / 1e6)

    def decide(self, request: Request, *, has_eligible: bool) -> None:
        allowance = request.allowance
        if allowance is None or (request.slow_workers and request.max_length <= allowance):
            request.outcome = "free"
        elif request.can_pay:
            request.outcome = "funded"
        elif request.allow_downgrade and not request.chat and self.settings.rule != "no_one_free":
            request.outcome = "downgraded"
            request.max_length = min(request.max_length, allowance)
            if self.settings.rule == "old":
                request.max_length = max(1, request.max_length)
            request.slow_workers = True
        else:
            request.outcome = "refused"
            request.reason = "NoEligibleWorker" if not has_eligible and request.max_length > allowance else "KudosUpfront"

    # ---- what a refused client does

    def client(self, refused: Request) -> None:
        settings = self.settings
        if settings.client == "resend":
            allowance = refused.allowance
            assert allowance is not None
            if (
                refused.attempt == 1
                and refused.reason == "KudosUpfront"
                and refused.max_length > allowance
                and allowance >= 1  # less cannot be asked for
            ):
                self.send_again(refused, self.now, allowance)
        elif settings.client == "return" and refused.attempt <= settings.return_times:
            self.send_again(refused, self.now + setting_us(settings.return_after_s), refused.asked)

    def send_again(self, refused: Request, when: int, max_length: int) -> None:
        again = Request.__new__(Request)
        again.__dict__.update(refused.__dict__)
        again.row = len(self.requests)
        again.created = when
        again.asked = max_length
        again.attempt = refused.attempt + 1
        again.request_id = f"{refused.first.request_id}#{again.attempt}"
        again.reset()
        self.requests.append(again)
        self.to_arrive.append(again)

    # ---- output

    def output(self, request: Request) -> Row:
        started = request.started
        return {
            "request_id": request.request_id,
            "outcome": request.outcome,
            "reason": request.reason,
            "allowance": request.allowance,
            "estimated_wait_s": request.wait_s,
            "admitted_max_length": None if request.outcome == "refused" else request.max_length,
            "worker_id": None if request.worker is None else request.worker.worker_id,
            "started": instant(started),
            "finished": instant(request.finished),
            "queue_wait_s": None if started is None else (started - request.created) / 1e6,
            "status": request.status,
            "retry_of": None if request.first is request else request.first.request_id,
        }


def replay_oracle(traffic: list[Row], fleet: list[Row], settings: Any) -> list[Row]:
    """Return one output row a request, repeated ones after the traffic's."""
    return Oracle(traffic, fleet, settings).run()
