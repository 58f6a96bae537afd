"""The request-path estimator (A11) against walking the queue: 300 synthetic workers, 60 models, growing queues.

Run ``python -m benchmarks.bench_estimator``. Target (performance page): at most 50 µs an estimate at 10,000 queued, aim 10 µs.
"""

import random
import statistics
import time
from collections.abc import Callable
from functools import partial

from horde_policy.policy.allowance import free_output_allowance
from horde_policy.policy.decision import Pool, decide
from horde_policy.policy.eligibility import Request, Worker, eligible_workers
from horde_policy.policy.estimator import Estimate, Estimator
from horde_policy.policy.queue_order import QueueKey, Waiting, queue_key, tokens_ahead
from horde_policy.policy.telemetry import AllowanceTelemetry
from horde_policy.policy.wait import combined_speed_tok_per_s, wait_at_speed_s
from horde_policy.settings import AllowanceSettings

SETTINGS = AllowanceSettings()
QUEUES = (100, 1_000, 10_000, 100_000)
TARGET_US, AIM_US = 50.0, 10.0
MODELS = tuple(f"model-{i}-{size}B" for i, size in zip(range(60), [7, 8, 12, 13, 24, 70] * 10, strict=True))
LENGTHS = (80, 150, 200, 256, 300, 400, 512, 512, 512, 700, 1024, 2048, 4096)


def synthetic_workers(rng: random.Random) -> list[Worker]:
    return [
        Worker(
            worker_id=f"w{i}",
            models=tuple(rng.sample(MODELS, rng.randint(1, 5))),
            max_length=rng.choice((80, 256, 400, 512, 512, 512, 1024, 2048, 4096)),
            max_context_length=rng.choice((2048, 4096, 8192, 8192, 16384)),
            speed_tok_per_s=round(rng.lognormvariate(2.4, 0.7), 1) + 0.1,
            measured=rng.random() < 0.95,
        )
        for i in range(300)
    ]


def synthetic_lists(rng: random.Random) -> list[tuple[str, ...]]:
    """Return the lists of models that 400 clients have set: most name one, some several, few none."""
    return [tuple(rng.sample(MODELS, rng.choices((0, 1, 2, 3), (5, 75, 12, 8))[0])) for _ in range(400)]


def synthetic_request(rng: random.Random, lists: list[tuple[str, ...]] | None) -> Request:
    """Return a request of one of these lists or, without them, of a list that nobody named before."""
    models = rng.choice(lists) if lists else tuple(rng.sample(MODELS, 3))
    length = rng.choice(LENGTHS) if rng.random() < 0.8 else rng.randint(16, 4096)
    return Request(
        models=models,
        max_length=length,
        max_context_length=max(length, rng.choice((1024, 2048, 2048, 4096, 8192))),
        slow_workers=rng.random() > 0.05,
        trusted_workers=rng.random() < 0.05,
        n=rng.choices((1, 2, 4), (90, 7, 3))[0],
        priority=rng.choices((-50.0, rng.uniform(0, 5000)), (70, 30))[0],
    )


def walked(workers: list[Worker], waiting: list[Waiting], request: Request, key: QueueKey) -> Estimate:
    """The same answer by walking over every worker and all that waits."""
    pool = eligible_workers(workers, request, SETTINGS)
    queued = tokens_ahead(waiting, pool, key, SETTINGS)
    speed = combined_speed_tok_per_s(pool, SETTINGS)
    wait_s = wait_at_speed_s(queued, speed)
    return Estimate(wait_s, free_output_allowance(wait_s, SETTINGS), queued, speed, len(pool))


def walk_into(found: list[Estimate], workers: list[Worker], waiting: list[Waiting], request: Request, key: QueueKey) -> None:
    found.append(walked(workers, waiting, request, key))


def timed(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return (time.perf_counter() - start) * 1e6


def leave_and_join(estimator: Estimator, worker: Worker) -> None:
    estimator.remove_worker(worker.worker_id)
    estimator.add_worker(worker)


def new_sizes_us(queued: int, calls: int = 40) -> tuple[list[float], list[float]]:
    """Return the times of letting in workers of sizes that nobody declared before, by the clock and of the processor alone."""
    served = Served(queued, seed=11, new_lists=False)
    times: list[float] = []
    own: list[float] = []
    for number in range(calls):
        worker = Worker(
            worker_id=f"new{number}",
            models=tuple(served.rng.sample(MODELS, 3)),
            max_length=served.rng.randrange(81, 4095),
            max_context_length=served.rng.randrange(1025, 16383),
            speed_tok_per_s=12.0,
            measured=True,
        )
        before = time.process_time()
        times.append(timed(partial(served.estimator.add_worker, worker)))
        own.append((time.process_time() - before) * 1e6)
    return times, own


def quantile(times_us: list[float], share: float) -> float:
    return sorted(times_us)[min(len(times_us) - 1, int(share * len(times_us)))]


class Served:
    """A queue of constant length under traffic: one arrives, one leaves, and now and then a worker changes."""

    def __init__(self, queued: int, seed: int, *, new_lists: bool) -> None:
        self.rng = random.Random(seed)
        self.lists = None if new_lists else synthetic_lists(self.rng)
        self.workers = synthetic_workers(self.rng)
        self.estimator = Estimator(SETTINGS)
        for worker in self.workers:
            self.estimator.add_worker(worker)
        self.now_us, self.row = 0, 0
        self.waiting: dict[int, Waiting] = {}
        for _ in range(queued):
            self.arrive(*self.next_request())

    def next_request(self) -> tuple[Request, QueueKey]:
        request = synthetic_request(self.rng, self.lists)
        self.now_us += self.rng.randint(1, 50_000)
        self.row += 1
        return request, queue_key(request.starting_priority, self.now_us, self.row)

    def arrive(self, request: Request, key: QueueKey) -> None:
        self.estimator.add(key.row, request, key, request.n)
        self.waiting[key.row] = Waiting(request, key, request.n)

    def leave(self) -> None:
        row = next(iter(self.waiting)) if self.rng.random() < 0.8 else self.rng.choice(list(self.waiting)[:500])
        self.estimator.remove(row)
        del self.waiting[row]


def measure(queued: int, rounds: int, *, new_lists: bool = False) -> float:
    """Print the figures of one queue length; return the median of an estimate in µs."""
    served = Served(queued, seed=7, new_lists=new_lists)
    rng, estimator = served.rng, served.estimator
    estimates: list[float] = []
    updates: list[float] = []
    speeds: list[float] = []
    churn: list[float] = []
    for i in range(rounds):
        request, key = served.next_request()
        estimates.append(timed(partial(estimator.estimate, request, key)))
        updates.append(timed(partial(served.arrive, request, key)))
        served.leave()
        if i % 10 == 0:
            worker_id = f"w{rng.randrange(300)}"
            speeds.append(timed(partial(estimator.set_speed, worker_id, round(rng.uniform(1, 40), 1))))
        if i % 50 == 0:
            away = rng.choice(estimator.workers)
            churn.append(timed(partial(leave_and_join, estimator, away)))
    walks: list[float] = []
    for _ in range(max(2, min(30, 200_000 // queued))):
        request, key = served.next_request()
        found: list[Estimate] = []
        waiting, workers = list(served.waiting.values()), list(estimator.workers)
        walks.append(timed(partial(walk_into, found, workers, waiting, request, key)))
        if found[0] != estimator.estimate(request, key):
            raise SystemExit(f"estimator and walk disagree: {found[0]} against {estimator.estimate(request, key)}")
    median = statistics.median(estimates)
    print(
        f"{queued:>9,} {statistics.mean(estimates):>9.1f} {median:>7.1f} {quantile(estimates, 0.95):>7.1f} "
        f"{quantile(estimates, 0.99):>7.1f} {statistics.median(updates):>8.1f} {statistics.median(speeds):>7.1f} "
        f"{statistics.median(churn):>9.0f} {statistics.median(walks):>12,.0f} {statistics.median(walks) / median:>9,.0f}"
    )
    return median


def cost_of_no_sdk() -> None:
    """Print what recording costs where no SDK is configured."""
    pool = Pool(workers=(), queued_tokens=0)
    decision = decide(Request(models=("m",), max_length=80), pool, SETTINGS)
    recorder = AllowanceTelemetry()
    times = 20_000

    def record_all() -> None:
        for _ in range(times):
            recorder.record_decision(decision)

    each = timed(record_all) / times
    print(f"telemetry without an SDK: {each:.2f} µs a recorded decision")


def main() -> None:
    print("Synthetic: 300 workers on 1–5 of 60 models; times in µs; one arrives and one leaves between estimates,")
    print("a speed changes every 10 and a worker leaves and joins again every 50 of them.")
    print(
        f"{'queued':>9} {'mean':>9} {'median':>7} {'p95':>7} {'p99':>7} {'enqueue':>8} {'speed':>7} {'re-join':>9} "
        f"{'walk':>12} {'walk/est.':>9}"
    )
    medians = {queued: measure(queued, rounds=4_000) for queued in QUEUES}
    at = medians[10_000]
    growth = medians[QUEUES[-1]] / medians[QUEUES[0]]
    measure(10_000, rounds=4_000, new_lists=True)
    print("(the last line: every request names three models as nobody did before)")
    for queued in QUEUES:
        for kind, times in zip(("by the clock", "of the processor"), new_sizes_us(queued), strict=True):
            told = f"median {statistics.median(times):,.0f}, worst {max(times):,.0f} µs {kind}"
            print(f"{queued:,} queued, a worker of sizes that nobody declared before: {told}")
    print(f"growth of the median from {QUEUES[0]:,} to {QUEUES[-1]:,} queued: {growth:.1f}×")
    print(f"10,000 queued: {at:.1f} µs; target {TARGET_US:g} µs {'met' if at <= TARGET_US else 'MISSED'}, aim {AIM_US:g} µs")
    cost_of_no_sdk()


if __name__ == "__main__":
    main()
