"""Recorders as processes that a test may kill: a small program that forks one for each line it is told.

Reads lines of JSON on standard input, ``{"run", "url", "store", "pace", "zero", "start", …}``; answers each with the process id
of a recorder that has been forked off. Its clock runs ``pace`` times as fast as the machine's: at the machine's time ``zero`` it
showed ``start``. Forking spares each the seconds that the imports take; nothing but those and certificates is done before.
"""

import json
import os
import signal
import sys
import time
from datetime import datetime, timedelta
from typing import Any

from horde_policy.cli.stopping import stopped_by_signals
from horde_policy.history.recorder import RecorderState
from horde_policy.history.service import RecordingPlan, RecordingService
from horde_policy.sources.horde import HordeClient, LiveSource


class FastClock:
    """A clock that runs at a multiple of the machine's pace."""

    def __init__(self, start: datetime, zero: float, pace: float) -> None:
        self.start = start
        self.zero = zero
        self.pace = pace

    def now(self) -> datetime:
        return self.start + timedelta(seconds=(time.time() - self.zero) * self.pace)


def record(told: dict[str, Any]) -> None:
    pace = float(told["pace"])
    clock = FastClock(datetime.fromisoformat(told["start"]), float(told["zero"]), pace)
    plan = RecordingPlan(
        store=told["store"],
        interval_s=float(told.get("interval", 30.0)),
        metrics_port=told.get("metrics_port"),
        webhook=told.get("webhook"),
    )
    stop = stopped_by_signals()

    def say(state: RecorderState) -> None:
        print(f"{told['run']} {clock.now().isoformat()} {state.state} {state.text}", file=sys.stderr, flush=True)

    with HordeClient(told["url"], name="the churning server", clock=clock, agent=f"horde_policy:test:{told['run']}") as client:
        service = RecordingService(
            LiveSource(client),
            plan,
            clock=clock,
            monotonic=lambda: time.monotonic() * pace,
            owner=f"{told['run']}:{os.getpid()}",
            told=say,
            wait=lambda event, seconds: event.wait(seconds / pace),
        )
        service.run(stop)


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    HordeClient("http://127.0.0.1:1").close()  # reads the certificates, which is kept
    for line in sys.stdin:
        told = json.loads(line)
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(0)
            record(told)
            os._exit(0)
        print(pid, flush=True)


if __name__ == "__main__":
    main()
