"""What holds for all tests: how hypothesis behaves on a busy machine, and which tests begin."""

import itertools
import os

import pytest
from hypothesis import HealthCheck, settings

# Speed is measured in benchmarks, never by a test: a slow machine must not fail one. On a build machine the examples are the
# same every time, so that what is green once is green again; at a desk they vary, so that new faults are found.
settings.register_profile("desk", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("build", parent=settings.get_profile("desk"), derandomize=True)
settings.load_profile("build" if os.environ.get("CI") else "desk")


def dealt(heavy: list[pytest.Item], light: list[pytest.Item], processes: int) -> list[pytest.Item]:
    """Return all tests in an order of which each process is given an equal stretch that begins with its share of the heavy.

    A process takes its stretch from the front, and what is left of another's from the end: so no heavy test comes last, when
    the other processes have nothing left to do. The tests of a module stay together, and so does what they share.
    """
    shares: list[list[pytest.Item]] = [[] for _ in range(processes)]
    modules = [list(tests) for _, tests in itertools.groupby(heavy, key=lambda item: item.path)]
    for tests in sorted(modules, key=len, reverse=True):
        min(shares, key=len).extend(tests)
    rest = iter(light)
    stretch = -(-(len(heavy) + len(light)) // processes)
    return [item for share in shares for item in (*share, *itertools.islice(rest, max(0, stretch - len(share))))] + list(rest)


@pytest.hookimpl(trylast=True)  # after what is not asked for has been left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if processes > 1:
        heavy = [item for item in items if item.get_closest_marker("browser") or item.get_closest_marker("server")]
        kept = set(heavy)
        items[:] = dealt(heavy, [item for item in items if item not in kept], processes)
