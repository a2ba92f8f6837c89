"""Load: worker threads with one client each, in a closed loop, or in an open one whose arrivals are scheduled."""

from __future__ import annotations

import gc
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Arrivals = Literal["poisson", "uniform"]

SPIN = 60_000
"""Nanoseconds before an arrival from which the scheduler no longer sleeps: about what a sleep overshoots by."""

SLACK = Path("/proc/self/timerslack_ns")
"""By how much Linux lets sleeps of this process overshoot; 50 µs unless told otherwise."""

SWITCH = 0.000_2
"""Seconds after which a thread of Python gives way to another, so that a busy worker does not hold up the scheduler."""

PATIENCE = 60.0
"""Seconds a call may take beyond its phase. Threads cannot be ended: after that the clients are of no use any more."""

POLL = 0.05
"""Seconds between looks whether a worker has ended."""

GRACE = 5.0
"""Seconds that a call may take to its end after an interruption."""

DRAIN = 1.0
"""Seconds, and parts of the phase's length, that operations which are due may still be taken up after it."""


class Stuck(Exception):
    """Calls did not come back; the clients cannot be used any more."""


class Work(NamedTuple):
    """Operations by number, ready to be called.

    senders: one for each client; each makes the call of a number and returns the answer. keep: what to remember of the
    answer to a number, until it is judged. many: how many numbers there are. cyclic: they may be used again and again.
    """

    senders: Sequence[Callable[[int], Any]]
    keep: Callable[[int, Any], Any]
    many: int
    cyclic: bool


class Note(NamedTuple):
    """One operation as it went: nanoseconds since the phase began; `answer` is what was kept, or what was raised.

    sent: whether it was; what was not has the time at which its phase was given up.
    """

    number: int
    intended: int
    dispatched: int
    started: int
    ended: int
    answer: Any
    failed: bool = False
    sent: bool = True


class Ran(NamedTuple):
    """A phase: its notes, how long it took (nanoseconds, to the last answer), and the CPU this process took for it."""

    notes: list[Note]
    elapsed: int
    cpu: int

    @property
    def throughput(self) -> float:
        """Operations a second that were answered."""
        return sum(not note.failed and note.sent for note in self.notes) * 1e9 / max(1, self.elapsed)


def closed(work: Work, concurrency: int, *, seconds: float, most: int | None = None, at: int | None = None) -> Ran:
    """Every client asks as soon as it was answered, for so long, or for at most so many operations.

    at: when to begin, nanoseconds of the system's clock; at once unless it is given. Raises Stuck.
    """
    limit = work.many if not work.cyclic else sys.maxsize
    limit = min(limit, most) if most is not None else limit
    numbers = itertools.count()  # its next is atomic
    length = int(seconds * 1e9)
    begin, stop = threading.Event(), threading.Event()
    origin = 0

    def worker(send: Callable[[int], Any], notes: list[Note]) -> None:
        begin.wait()
        now, keep, many = time.perf_counter_ns, work.keep, work.many
        while not stop.is_set():
            number = next(numbers)
            started = now() - origin
            if number >= limit or started >= length:
                return
            number %= many
            answer, failed, ended = _call(send, number, origin)
            kept = answer if failed else keep(number, answer)
            notes.append(Note(number, started, started, started, ended, kept, failed))

    with _quiet(), _workers(worker, work.senders[:concurrency], stop) as (threads, notes):
        cpu, origin = time.process_time_ns(), _begun(at)
        begin.set()
        _join(threads, seconds + PATIENCE)
        cpu = time.process_time_ns() - cpu
    done = [note for each in notes for note in each]
    return Ran(done, max((note.ended for note in done), default=1), cpu)


def schedule(rate: float, seconds: float, arrivals: Arrivals, seed: int) -> NDArray[np.int64]:
    """When operations are due, nanoseconds since the phase began: independently of each other, or evenly spread."""
    if arrivals == "uniform":
        return (np.arange(1, int(rate * seconds) + 1) * (1e9 / rate)).astype(np.int64)
    # Some more than are expected, so that they reach to the end.
    expected = rate * seconds
    gaps = np.random.default_rng(seed).exponential(1e9 / rate, size=int(expected + 6 * np.sqrt(expected) + 16))
    due = np.cumsum(gaps)
    return due[due < seconds * 1e9].astype(np.int64)


def open_loop(work: Work, concurrency: int, due: Sequence[int] | NDArray[np.int64], *, at: int | None = None) -> Ran:
    """Hand out every operation when it is due, whatever became of the others. None is dropped.

    What no client took up in a while after the last was due is noted as not sent. The caller's thread schedules; so an
    interruption reaches it. at: see closed. Raises Stuck, and ValueError when there are not enough operations.
    """
    if len(due) > work.many and not work.cyclic:
        raise ValueError(f"{len(due)} operations are due, {work.many} are prepared")
    queue: SimpleQueue[tuple[int, int, int] | None] = SimpleQueue()
    begin, stop = threading.Event(), threading.Event()
    origin = 0

    def worker(send: Callable[[int], Any], notes: list[Note]) -> None:
        begin.wait()
        now, keep, take = time.perf_counter_ns, work.keep, queue.get
        while (item := take()) is not None and not stop.is_set():
            number, intended, dispatched = item
            started = now() - origin
            answer, failed, ended = _call(send, number, origin)
            kept = answer if failed else keep(number, answer)
            notes.append(Note(number, intended, dispatched, started, ended, kept, failed))

    times = [int(at) for at in due]
    with (
        _quiet(),
        _workers(worker, work.senders[:concurrency], stop, lambda: _release(queue, concurrency)) as (
            threads,
            notes,
        ),
    ):
        cpu, origin = time.process_time_ns(), _begun(at)
        begin.set()
        with _punctual():
            _hand_out(queue, times, work.many, origin)
        unsent = _drained(queue, origin, (times[-1] if times else 0) * (1 + DRAIN) + DRAIN * 1e9)
        _release(queue, concurrency)
        _join(threads, PATIENCE)
        cpu = time.process_time_ns() - cpu
    done = [note for each in notes for note in each] + unsent
    return Ran(done, max((note.ended for note in done), default=1), cpu)


def told(error: BaseException) -> str:
    """What was raised, in words."""
    return f"{type(error).__name__}: {error}"


def _begun(at: int | None) -> int:
    """Wait until it is time; when that was, by the clock that times everything."""
    now = time.perf_counter_ns()
    if at is None:
        return now
    wait = at - time.time_ns()
    if wait > 0:
        time.sleep(wait / 1e9)
    return now + wait


def _hand_out(queue: SimpleQueue[Any], times: Sequence[int], many: int, origin: int) -> None:
    """Sleep until shortly before each is due, then look at the clock."""
    now, put, sleep = time.perf_counter_ns, queue.put, time.sleep
    for place, intended in enumerate(times):
        while (wait := intended - (now() - origin)) > 0:
            if wait > SPIN:
                sleep((wait - SPIN) / 1e9)
        put((place % many, intended, now() - origin))


def _drained(queue: SimpleQueue[Any], origin: int, until: float) -> list[Note]:
    """Wait until every operation was taken up; those that were not by then, as they were never sent."""
    while not queue.empty():
        if time.perf_counter_ns() - origin > until:
            break
        time.sleep(0.001)
    unsent: list[Note] = []
    while True:
        try:
            number, intended, dispatched = queue.get_nowait()
        except Empty:
            return unsent
        found = time.perf_counter_ns() - origin
        unsent.append(Note(number, intended, dispatched, found, found, None, sent=False))


def _release(queue: SimpleQueue[Any], workers: int) -> None:
    for _ in range(workers):
        queue.put(None)


def _call(send: Callable[[int], Any], number: int, origin: int) -> tuple[Any, bool, int]:
    """The answer or what was raised, which of the two, and when it was there."""
    try:
        answer = send(number)
    except BaseException as error:  # noqa: BLE001 - whatever a driver raises is a result; some raise outside Exception
        return error, True, time.perf_counter_ns() - origin
    return answer, False, time.perf_counter_ns() - origin


@contextmanager
def _workers(
    target: Callable[[Callable[[int], Any], list[Note]], None],
    senders: Sequence[Callable[[int], Any]],
    stop: threading.Event,
    release: Callable[[], None] = lambda: None,
) -> Generator[tuple[list[_Worker], list[list[Note]]]]:
    """A thread for each client, waiting to begin. Leaving by an exception, such as Ctrl-C, lets them end first."""
    notes: list[list[Note]] = [[] for _ in senders]
    workers = [
        _Worker(target, send, own, f"client-{number}")
        for number, (send, own) in enumerate(zip(senders, notes, strict=True))
    ]
    for worker in workers:
        worker.start()
    try:
        yield workers, notes
    except Stuck:
        raise
    except BaseException:
        stop.set()
        release()
        with suppress(Stuck):
            _join(workers, GRACE)
        raise


class _Worker(threading.Thread):
    """A thread that tells by an event that it has ended: an interrupted `join` takes a thread for ended that is not."""

    def __init__(
        self,
        target: Callable[[Callable[[int], Any], list[Note]], None],
        send: Callable[[int], Any],
        notes: list[Note],
        name: str,
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._work = lambda: target(send, notes)
        self.ended = threading.Event()

    def run(self) -> None:
        """See threading.Thread."""
        try:
            self._work()
        finally:
            self.ended.set()


def _join(workers: Sequence[_Worker], seconds: float) -> None:
    until = time.monotonic() + seconds
    for worker in workers:
        # By and by: a signal that comes just before a thread begins to wait is seen only when it wakes up again.
        while not worker.ended.wait(POLL) and time.monotonic() < until:
            pass
    if hung := sum(not worker.ended.is_set() for worker in workers):
        raise Stuck(f"{hung} of {len(workers)} clients did not come back within {seconds:g} s")
    for worker in workers:
        worker.join()


@contextmanager
def _punctual() -> Generator[None]:
    """Let this thread wake up in time, as far as the system allows: it is idle nearly always, and must not be held up.

    Where it is not allowed, what is late is counted.
    """
    with ExitStack() as stack:
        with suppress(OSError):
            before = SLACK.read_text()
            SLACK.write_text("1")
            stack.callback(SLACK.write_text, before)
        with suppress(AttributeError, OSError):  # another system, or no right to
            policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
            stack.callback(os.sched_setscheduler, 0, policy, parameters)
        yield


@contextmanager
def _quiet() -> Generator[None]:
    """Keep out of the way: what exists is not searched for garbage, and threads give way soon."""
    interval = sys.getswitchinterval()
    gc.freeze()
    sys.setswitchinterval(SWITCH)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        gc.unfreeze()
