"""The replay's job once more in plain Python, over heapq and over SimPy, as measures for the compiled engine.

Both do all of it under the default rule: eligibility, queue order, chat, estimate, allowance, downgrade, expiry, workers that
come, go and lose their jobs. Their results are compared with the engine's, row by row. They are written for speed as far as
Python goes: requests in classes by the set of workers (an int as a bit set), a sorted list and a running total a class.
"""

import heapq
import math
from bisect import bisect_right, insort
from collections.abc import Callable, Generator
from typing import Any

import polars as pl
import simpy

from horde_policy.frames.fleet import normalised_fleet
from horde_policy.frames.traffic import normalised_traffic
from horde_policy.settings import ReplaySettings

INFINITE = math.inf


class Desk:
    """What both twins share: who could take what, the queue, and what becomes of an arrival."""

    def __init__(self, traffic: pl.DataFrame, fleet: pl.DataFrame, settings: ReplaySettings) -> None:
        traffic, fleet = normalised_traffic(traffic), normalised_fleet(fleet)
        self.settings = settings
        self.ttl = round(settings.request_ttl_s * 1e6)
        self.created = traffic["created"].to_physical().to_list()
        self.models = [tuple(names) for names in traffic["models"].to_list()]
        self.length = traffic["max_length"].to_list()
        self.output = traffic["output_tokens"].to_list()
        self.context = traffic["max_context_length"].to_list()
        self.can_pay, self.chat = traffic["can_pay"].to_list(), traffic["chat"].to_list()
        self.slow, self.downgrade = traffic["slow_workers"].to_list(), traffic["allow_downgrade"].to_list()
        every = round(settings.ageing_every_s * 1e6)
        priority = traffic["priority"].to_list()
        self.key = [settings.ageing_kudos * float(c // every) - p for c, p in zip(self.created, priority, strict=True)]
        self.read_fleet(fleet)
        count = len(self.created)
        self.outcome = [""] * count
        self.wait_s: list[float | None] = [None] * count
        self.status = [""] * count
        self.finished: list[int | None] = [None] * count
        self.cls = [0] * count
        self.class_of: dict[Any, int] = {}
        self.class_of_mask: dict[int, int] = {}
        self.masks: list[int] = []
        self.queues: list[list[tuple[float, int, int]]] = []
        self.totals: list[int] = []
        self.active: dict[int, None] = {}
        self.speed_known: list[tuple[int, float]] = []
        self.overlapping: list[tuple[int, set[int]]] = []
        self.waiting = 0
        self.expiry = 0

    def read_fleet(self, fleet: pl.DataFrame) -> None:
        rows = fleet.height
        self.worker_id = fleet["worker_id"].to_list()
        self.fleet_length, self.fleet_context = fleet["max_length"].to_list(), fleet["max_context_length"].to_list()
        self.speed, self.fleet_slow = fleet["speed"].to_list(), fleet["slow"].to_list()
        self.measured = dict.fromkeys(self.worker_id, False)
        self.row_measured = fleet["measured"].to_list()
        self.rows_of: dict[str, int] = {}
        for row, names in enumerate(fleet["models"].to_list()):
            for name in names:
                self.rows_of[name] = self.rows_of.get(name, 0) | 1 << row
        self.every_row = (1 << rows) - 1
        self.row_classes: list[set[int]] = [set() for _ in range(rows)]
        self.online = 0
        self.idle = 0
        self.idle_since = [0] * rows
        self.version = 0
        ends = fleet["online_to"].to_physical().to_list()
        changes = [(end, 0, row) for row, end in enumerate(ends) if end is not None]
        self.changes = sorted(changes + [(t, 1, row) for row, t in enumerate(fleet["online_from"].to_physical().to_list())])

    # ---- classes

    def bits(self, mask: int) -> Generator[int, None, None]:
        while mask:
            low = mask & -mask
            yield low.bit_length() - 1
            mask ^= low

    def named(self, i: int) -> int:
        if not self.models[i]:
            return self.every_row
        mask = 0
        for name in self.models[i]:
            mask |= self.rows_of.get(name, 0)
        return mask

    def classify(self, i: int, length: int, slow: bool) -> int:
        what = (self.models[i], length, self.context[i], slow)
        cls = self.class_of.get(what)
        if cls is not None:
            return cls
        mask = 0
        for row in self.bits(self.named(i)):
            fits = self.fleet_length[row] >= length and self.fleet_context[row] >= self.context[i]
            if fits and (slow or not self.fleet_slow[row]):
                mask |= 1 << row
        cls = self.class_of_mask.get(mask)
        if cls is None:
            cls = self.class_of_mask[mask] = len(self.masks)
            self.masks.append(mask)
            self.queues.append([])
            self.totals.append(0)
            self.speed_known.append((-1, 0.0))
            self.overlapping.append((0, set()))
            for row in self.bits(mask):
                self.row_classes[row].add(cls)
        self.class_of[what] = cls
        return cls

    def class_speed(self, cls: int) -> float:
        """Return the combined speed of the eligible workers, kept while the fleet stays as it is."""
        version, speed = self.speed_known[cls]
        if version != self.version:
            speed = 0.0
            for row in self.bits(self.masks[cls] & self.online):
                known = self.row_measured[row] or self.measured[self.worker_id[row]]
                speed += self.speed[row] if known else self.settings.assumed_speed_tok_per_s
            self.speed_known[cls] = self.version, speed
        return speed

    def overlaps(self, cls: int) -> set[int]:
        """Return the classes that any fleet row could take as well as this one, ever."""
        seen, found = self.overlapping[cls]
        if seen < len(self.masks):
            mask = self.masks[cls]
            found.update(other for other in range(seen, len(self.masks)) if self.masks[other] & mask)
            self.overlapping[cls] = len(self.masks), found
        return found

    # ---- the queue

    def put(self, i: int) -> None:
        cls = self.cls[i]
        queue = self.queues[cls]
        if not queue:
            self.active[cls] = None
        insort(queue, (self.key[i], i, self.length[i]))
        self.totals[cls] += self.length[i]
        self.waiting += 1
        self.status[i] = "waiting"

    def take_out(self, i: int) -> None:
        cls = self.cls[i]
        queue = self.queues[cls]
        item = (self.key[i], i, self.length[i])
        queue.pop(0 if queue[0] == item else bisect_right(queue, item) - 1)
        self.totals[cls] -= self.length[i]
        self.waiting -= 1
        if not queue:
            del self.active[cls]

    def expire(self, now: int, arrived: int) -> None:
        while self.expiry < arrived and self.created[self.expiry] + self.ttl <= now:
            if self.status[self.expiry] == "waiting":
                self.take_out(self.expiry)
                self.status[self.expiry] = "expired"
            self.expiry += 1

    def ahead(self, cls: int, key: float) -> int:
        """Return the tokens that wait at or before the key and that an eligible worker could take."""
        eligible = self.masks[cls] & self.online
        masks, queues, totals = self.masks, self.queues, self.totals
        tokens = 0
        overlaps = self.overlaps(cls)
        others = overlaps & self.active.keys() if len(overlaps) < len(self.active) else self.active.keys() & overlaps
        for other in others:
            queue = queues[other]
            if queue[0][0] > key or not masks[other] & eligible:
                continue
            if queue[-1][0] <= key:
                tokens += totals[other]
            else:
                tokens += sum(item[2] for item in queue[: bisect_right(queue, (key, INFINITE))])
        return tokens

    def best(self, row: int) -> int:
        """Return the waiting request with the best key that the worker could take, or −1."""
        queues = self.queues
        firsts = [queues[cls][0] for cls in self.active.keys() & self.row_classes[row]]
        return min(firsts)[1] if firsts else -1

    def longest_idle(self, i: int) -> int:
        best, best_since = -1, INFINITE
        for row in self.bits(self.masks[self.cls[i]] & self.idle):
            if self.idle_since[row] < best_since:
                best, best_since = row, self.idle_since[row]
        return best

    # ---- an arrival

    def allowance(self, wait_s: float | None) -> int:
        s = self.settings
        if wait_s is None or wait_s >= s.wait_floor_s:
            return s.floor_tokens
        if wait_s <= s.wait_full_s:
            return s.ceiling_tokens
        fall = (s.ceiling_tokens - s.floor_tokens) * (wait_s - s.wait_full_s) / (s.wait_floor_s - s.wait_full_s)
        return math.floor(s.ceiling_tokens - fall)

    def admit(self, i: int) -> bool:
        """Measure and decide; return whether the request joins the queue."""
        if self.chat[i]:
            declared = [self.fleet_length[row] for row in self.bits(self.named(i) & self.online)]
            if declared:
                self.length[i] = min(self.length[i], max(declared))
        cls = self.cls[i] = self.classify(i, self.length[i], self.slow[i])
        wait_s = None
        if self.masks[cls] & self.online:
            tokens = self.ahead(cls, self.key[i]) if self.waiting else 0
            wait_s = self.wait_s[i] = tokens / self.class_speed(cls)
        allowance = self.allowance(wait_s)
        if self.slow[i] and self.length[i] <= allowance:
            self.outcome[i] = "free"
        elif self.can_pay[i]:
            self.outcome[i] = "funded"
        elif self.downgrade[i] and not self.chat[i]:
            self.outcome[i] = "downgraded"
            self.length[i] = min(self.length[i], allowance)
            self.cls[i] = self.classify(i, self.length[i], slow=True)
        else:
            self.outcome[i] = self.status[i] = "refused"
            return False
        return True

    def takes(self, i: int, row: int) -> int:
        work_us: int = math.ceil(min(self.output[i], self.length[i]) * 1e6 / self.speed[row])
        return work_us

    def complete(self, i: int, row: int, now: int) -> None:
        self.finished[i] = now
        self.status[i] = "completed"
        if not self.measured[self.worker_id[row]]:
            self.measured[self.worker_id[row]] = True
            if not self.row_measured[row]:
                self.version += 1

    def come_online(self, row: int) -> None:
        self.online |= 1 << row
        self.version += 1

    def go_offline(self, row: int) -> None:
        self.online &= ~(1 << row)
        self.idle &= ~(1 << row)
        self.version += 1

    def lost(self, jobs: list[int], now: int, offer: Callable[[int], None]) -> None:
        for i in sorted(jobs, key=lambda i: (self.key[i], i)):
            if self.created[i] + self.ttl <= now:
                self.status[i] = "expired"
            else:
                offer(i)


def run_heapq(traffic: pl.DataFrame, fleet: pl.DataFrame, settings: ReplaySettings) -> Callable[[], Desk]:
    """Return the job over heapq, ready to start; workers of one thread."""
    desk = Desk(traffic, fleet, settings)

    def run() -> Desk:
        jobs: list[tuple[int, int, int]] = []
        running: dict[int, int] = {}
        created, changes = desk.created, desk.changes
        arrived, changed = 0, 0
        count = len(created)

        def start(i: int, row: int, now: int) -> None:
            desk.idle &= ~(1 << row)
            desk.status[i] = "running"
            running[row] = i
            heapq.heappush(jobs, (now + desk.takes(i, row), i, row))

        def offer(i: int, now: int) -> None:
            row = desk.longest_idle(i) if desk.idle else -1
            if row < 0:
                desk.put(i)
            else:
                start(i, row, now)

        def work(row: int, now: int) -> None:
            i = desk.best(row) if desk.waiting else -1
            if i < 0:
                desk.idle |= 1 << row
                desk.idle_since[row] = now
            else:
                desk.take_out(i)
                start(i, row, now)

        while True:
            while jobs and running.get(jobs[0][2]) != jobs[0][1]:
                heapq.heappop(jobs)
            end = jobs[0][0] if jobs else INFINITE
            change = changes[changed][0] if changed < len(changes) else INFINITE
            arrival = created[arrived] if arrived < count else INFINITE
            if arrived == count and not jobs and not desk.waiting:
                break
            soonest = min(end, change, arrival)
            if soonest == INFINITE:
                desk.expire(2**62, arrived)
                break
            now = int(soonest)
            desk.expire(now, arrived)
            if end == now:
                _, i, row = heapq.heappop(jobs)
                del running[row]
                desk.complete(i, row, now)
                work(row, now)
            elif change == now:
                _, online, row = changes[changed]
                changed += 1
                if online:
                    desk.come_online(row)
                    work(row, now)
                else:
                    desk.go_offline(row)
                    desk.lost([running.pop(row)] if row in running else [], now, lambda i, at=now: offer(i, at))  # type: ignore[misc]
            else:
                arrived += 1
                if desk.admit(arrived - 1):
                    offer(arrived - 1, now)
        return desk

    return run


def run_simpy(traffic: pl.DataFrame, fleet: pl.DataFrame, settings: ReplaySettings) -> Callable[[], Desk]:
    """Return the job over SimPy, ready to start: a process for the arrivals, one for the fleet, and one a job."""
    desk = Desk(traffic, fleet, settings)

    def run() -> Desk:
        began = min([desk.created[0], *(time for time, _, _ in desk.changes)])
        env = simpy.Environment(initial_time=began)
        running: dict[int, tuple[int, Any]] = {}
        arrived = 0

        def job(i: int, row: int) -> Generator[Any, Any, None]:
            try:
                yield env.timeout(desk.takes(i, row))
            except simpy.Interrupt:
                return
            desk.expire(env.now, arrived)
            del running[row]
            desk.complete(i, row, env.now)
            work(row)

        def start(i: int, row: int) -> None:
            desk.idle &= ~(1 << row)
            desk.status[i] = "running"
            running[row] = (i, env.process(job(i, row)))

        def offer(i: int) -> None:
            row = desk.longest_idle(i) if desk.idle else -1
            if row < 0:
                desk.put(i)
            else:
                start(i, row)

        def work(row: int) -> None:
            i = desk.best(row) if desk.waiting else -1
            if i < 0:
                desk.idle |= 1 << row
                desk.idle_since[row] = env.now
            else:
                desk.take_out(i)
                start(i, row)

        def fleet_changes() -> Generator[Any, Any, None]:
            for time, online, row in desk.changes:
                yield env.timeout(time - env.now)
                desk.expire(time, arrived)
                if online:
                    desk.come_online(row)
                    work(row)
                    continue
                desk.go_offline(row)
                lost = []
                if row in running:
                    i, process = running.pop(row)
                    process.interrupt()
                    lost.append(i)
                desk.lost(lost, time, offer)

        def arrivals() -> Generator[Any, Any, None]:
            nonlocal arrived
            for i, created in enumerate(desk.created):
                yield env.timeout(created - env.now)
                desk.expire(created, arrived)
                arrived = i + 1
                if desk.admit(i):
                    offer(i)

        env.process(fleet_changes())
        env.process(arrivals())
        env.run()
        desk.expire(2**62, arrived)
        return desk

    return run


def same_as(desk: Desk, run: pl.DataFrame) -> bool:
    """Return whether a twin came to what the engine came to, on every request."""
    return bool(
        run["outcome"].to_list() == desk.outcome
        and run["status"].to_list() == desk.status
        and run["estimated_wait_s"].to_list() == desk.wait_s
        and run["finished"].to_physical().to_list() == desk.finished
    )
