"""How a command that runs until it is interrupted hears of it."""

import signal
import threading

__all__ = ["Stop", "stopped_by_signals"]

SLICE_S = 0.5


class Stop(threading.Event):
    """An event that a signal sets, for a main thread to wait for.

    Python runs what handles a signal in the main thread, and only once that is awake; the system may give the signal to another
    thread of the process (a library's own), which wakes nobody. So the main thread never sleeps longer than half a second.

    >>> stop = Stop()
    >>> stop.wait(0.0)
    False
    >>> stop.set()
    >>> stop.wait()
    True
    """

    def wait(self, timeout: float | None = None) -> bool:
        """Return whether it is set, at the latest after so many seconds; with null, once it is."""
        left_s = timeout
        while left_s is None or left_s > SLICE_S:
            if super().wait(SLICE_S):
                return True
            left_s = None if left_s is None else left_s - SLICE_S
        return super().wait(left_s)


def stopped_by_signals() -> Stop:
    """Return an event that SIGINT and SIGTERM set; a second signal ends the program at once."""
    stop = Stop()

    def stopped(number: int, _frame: object) -> None:
        # In a thread of its own: the one that the signal interrupts may hold the event's lock, and would wait for itself.
        threading.Thread(target=stop.set, name="stop").start()
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stopped)
    return stop
