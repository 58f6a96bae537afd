"""A command that is interrupted ends, whichever of its threads the system gives the signal to."""

import signal
import subprocess
import sys
import threading

import pytest

from horde_policy.cli.stopping import SLICE_S, Stop

SCRIPT = """
import signal, threading, time
from horde_policy.cli.stopping import stopped_by_signals

stop = stopped_by_signals()

def other():
    time.sleep(0.3)
    signal.pthread_kill(threading.get_ident(), {number})
    stop.wait()

threading.Thread(target=other, daemon=True).start()
stop.wait({timeout})
print("ended", stop.is_set())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("timeout", ["", "60"])
def test_a_signal_that_another_thread_receives_ends_the_wait(number: signal.Signals, timeout: str) -> None:
    script = SCRIPT.format(number=int(number), timeout=timeout)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=40, check=True)
    assert ended.stdout == "ended True\n"


@pytest.mark.parametrize("timeout", [0.0, 0.01, 2.2 * SLICE_S])
def test_a_wait_with_a_limit_ends_without_a_signal(timeout: float) -> None:
    assert not Stop().wait(timeout)


def test_all_that_wait_are_woken() -> None:
    stop = Stop()
    seen: list[bool] = []
    threads = [threading.Thread(target=lambda: seen.append(stop.wait())) for _ in range(3)]
    for thread in threads:
        thread.start()
    stop.set()
    for thread in threads:
        thread.join(5)
    assert seen == [True, True, True]
