"""Time limits on calls into stores, which may hang."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

AGAIN = 5.0
"""Seconds until the limit strikes again, should what it interrupted hang while it is cleaned up."""


class TimeOut(KeyboardInterrupt):
    """The limit has passed. Drivers treat it like the Ctrl-C it descends from: they cancel the call and pass it on."""


@contextmanager
def time_limit(seconds: float) -> Generator[None]:
    """Raise TimeOut in the block once it has taken this long.

    Only where signals reach it, in the main thread of a POSIX process; elsewhere there is no limit.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    armed = True

    def strike(number: int, frame: FrameType | None) -> None:
        if armed:
            raise TimeOut(f"not done after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, strike)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
