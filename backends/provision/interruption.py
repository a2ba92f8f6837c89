"""Ctrl-C, a termination and a hang-up: each ends the run once, and none of them ends its cleaning up."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))

ONE = 1.0
"""Seconds within which several are taken for one: Ctrl-C is pressed in bursts."""


class _State:
    shields = 0
    pending = False
    last = float("-inf")
    interrupted = False


def listen() -> None:
    """Turn each of the signals into a KeyboardInterrupt; call it in the main thread, at the start of a process."""
    _State.interrupted = False
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup, and jobs of shells in the background
            signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    now = time.monotonic()
    if _State.shields:
        _State.pending = _State.last == float("-inf")
    elif now - _State.last >= ONE:
        _State.last = now
        _State.interrupted = True
        raise KeyboardInterrupt


def check() -> None:
    """Raise the KeyboardInterrupt of this process once more, if there was one; loops of long work call it each round.

    The first can be swallowed by whatever ran just then: Python drops what a finaliser or a callback raises.
    """
    if _State.interrupted:
        raise KeyboardInterrupt


@contextmanager
def shield() -> Generator[None]:
    """Let nothing interrupt the block, which cleans up. A first interruption is made up for after it; others are not.

    Without `listen`, and outside the main thread, it changes nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _State.shields += 1
    try:
        yield
    finally:
        _State.shields -= 1
        if not _State.shields and _State.pending:
            _State.pending = False
            _interrupt(signal.SIGINT, None)
