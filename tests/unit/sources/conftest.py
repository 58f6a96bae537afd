"""A local server that replays, a clock that stands still, and pauses that are only written down."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from horde_policy.clock import FixedClock
from horde_policy.sources.horde import HordeClient
from horde_policy.sources.http import Patience
from tests.replaying_server import ReplayingServer

RECORDED = Path(__file__).parents[3] / "data" / "recorded"
NOW = datetime(2026, 11, 29, 20, 0, 0, tzinfo=UTC)
HASTE = Patience(connect_s=30.0, read_s=30.0, whole_s=30.0, largest_bytes=1_000_000)


@dataclass
class Stage:
    """A client of the replaying server with everything that passes time in the test's hands."""

    server: ReplayingServer
    clock: FixedClock = field(default_factory=lambda: FixedClock(NOW))
    pauses: list[float] = field(default_factory=list)

    def client(self, patience: Patience = HASTE, *, grace_s: float = 60.0, models_wait_s: float = 60.0) -> HordeClient:
        """Return a client that waits for every part, unless told otherwise: how fast the machine is decides nothing."""
        return HordeClient(
            self.server.url,
            name="a horde",
            clock=self.clock,
            sleep=self.pauses.append,
            draw=random.Random(7),
            patience=patience,
            grace_s=grace_s,
            models_wait_s=models_wait_s,
        )


@pytest.fixture
def server() -> Iterator[ReplayingServer]:
    with ReplayingServer(RECORDED / "snapshot") as running:
        yield running


@pytest.fixture
def stage(server: ReplayingServer) -> Stage:
    return Stage(server)


@pytest.fixture
def client(stage: Stage) -> Iterator[HordeClient]:
    with stage.client() as opened:
        yield opened


@pytest.fixture
def client_with(stage: Stage) -> Iterator[Callable[[Patience], HordeClient]]:
    opened: list[HordeClient] = []

    def build(patience: Patience) -> HordeClient:
        opened.append(stage.client(patience))
        return opened[-1]

    yield build
    for each in opened:
        each.close()
