"""A watchdog for functions that do not return: it ends a run as Ctrl-C would.

Python lets signals interrupt Python code, sleeping and waiting, in the main thread; not a C
function that is busy, and not other threads. There `max_time` is looked at between two calls.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from goldstein.checker.constrained.limits import Group
from goldstein.errors import FunctionHangs, GoldsteinError
from goldstein.oracles import CountedOracle

#: After the end of the time a call may take as long as the whole run, and at least so long.
LEAST = 5.0

#: Where the user's functions are called.
_CALLS = {part.__code__ for part in (CountedOracle.value, CountedOracle._gradient, Group._numbers)}


@contextlib.contextmanager
def watched(max_time: float | None) -> Iterator[None]:
    """Interrupt a call that goes on, after max_time, for `max_time` (at least `LEAST`) seconds."""
    if max_time is None or not _available():
        yield
        return
    grace = max(LEAST, float(max_time))
    before: FrameType | None = None

    def look(number: int, frame: FrameType | None) -> None:
        nonlocal before
        while frame is not None and frame.f_code not in _CALLS:
            frame = frame.f_back
        if frame is not None and frame is before:  # the very call of the last time
            before = None
            raise FunctionHangs
        before = frame

    previous = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, float(max_time), grace)
    try:
        yield
    except FunctionHangs:
        raise GoldsteinError(
            f"the function does not return: after max_time a call went on for {grace:g} s, and so "
            "did one to state what is known by then. See where it waits or loops."
        ) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)


def _available() -> bool:
    """Whether the alarm clock is there, free, and ours to set."""
    return (
        hasattr(signal, "setitimer")
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
        and signal.getitimer(signal.ITIMER_REAL)[0] == 0.0
    )
