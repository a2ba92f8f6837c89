"""An adapter and a hand-written client of its engine, asked in turn: who goes first, how both warm up, what counts.

One client asks one thing at a time (a closed loop: latencies are of an idle engine). The two take turns request by
request, each first every other time, so that whatever else the machine does falls on both.
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import islice
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np

Request = TypeVar("Request")
Answer = TypeVar("Answer")
ByHand = TypeVar("ByHand")
Timed = tuple[Answer, int]
"""An answer, and the nanoseconds that it took."""

RATIO, DIFFERENCE = 1.25, 0.2
"""What an adapter should not exceed, whichever is more: a ratio to the baseline, milliseconds beyond it."""

ROUND = 20
"""Turns whose median is looked at while warming up."""

STEADY, ROUNDS = 0.1, 3
"""Warm: in so many rounds no side's median was off from another of its own by more than this share."""


class WarmUp(msgspec.Struct, frozen=True):
    """For how long answers are discarded: until times are steady, at the latest after so many turns or seconds."""

    turns: int = 2_000
    seconds: float = 20.0


class Asked(msgspec.Struct, Generic[Answer, ByHand], frozen=True):
    """What both sides answered, in turn.

    discarded: turns that went before. steady: whether times had settled by then.
    """

    adapter: list[Timed[Answer]]
    baseline: list[Timed[ByHand]]
    discarded: int
    steady: bool


class Pair(msgspec.Struct, kw_only=True):
    """The times of two sides, raw, in nanoseconds. The baseline has none where nobody has written one."""

    nanoseconds: list[int]
    baseline_nanoseconds: list[int]

    @property
    def median(self) -> float:
        """Milliseconds."""
        return statistics.median(self.nanoseconds) / 1e6

    @property
    def baseline_median(self) -> float | None:
        """Milliseconds."""
        return statistics.median(self.baseline_nanoseconds) / 1e6 if self.baseline_nanoseconds else None

    @property
    def within(self) -> bool | None:
        """Whether the adapter costs no more than it should; None without a baseline."""
        base = self.baseline_median
        return None if base is None else self.median <= max(RATIO * base, base + DIFFERENCE)

    def compared(self) -> tuple[str, str, str]:
        """The cells of a table: ratio, + ms, within."""
        base = self.baseline_median
        if base is None:
            return ("–", "–", "–")
        return f"{self.median / base:.2f}", f"{self.median - base:+.2f}", "yes" if self.within else "no"


class Setting(msgspec.Struct, kw_only=True):
    """Where and when a run was made: what is needed to read its times."""

    started: str
    machine: str
    cores: int
    load_before: tuple[float, float, float]
    load_after: tuple[float, float, float]
    versions: dict[str, str]

    @classmethod
    def now(cls) -> Setting:
        """As a run begins."""
        load = os.getloadavg()
        return cls(
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            machine=platform.platform(),
            cores=os.cpu_count() or 0,
            load_before=load,
            load_after=load,
            versions={"memassay": version("memassay"), "python": sys.version.split()[0], "numpy": np.__version__},
        )

    def ended(self) -> Setting:
        """The same, as the run ends."""
        return msgspec.structs.replace(self, load_after=os.getloadavg())

    @property
    def noise(self) -> str:
        """What else the machine did, in words."""
        return f"{self.cores} cores, load {self.load_before[0]:.2f} before and {self.load_after[0]:.2f} after"


def ask_in_turn(
    requests: Iterable[Request],
    adapter: Callable[[Request], Answer],
    baseline: Callable[[Request], ByHand] | None,
    others: Iterator[Request],
    warm_up: WarmUp,
) -> Asked[Answer, ByHand]:
    """The answers and nanoseconds of either to all requests, after `others` to warm up; who goes first changes."""
    sides: tuple[Callable[[Request], Any], ...] = (adapter,) if baseline is None else (adapter, baseline)
    discarded, steady = _warm(others, sides, warm_up)
    answers = _ask(requests, sides)
    return Asked(answers[0], answers[1] if len(sides) > 1 else [], discarded, steady)


def _ask(requests: Iterable[Request], sides: Sequence[Callable[[Request], Any]]) -> list[list[Timed[Any]]]:
    answers: list[list[Timed[Any]]] = [[] for _ in sides]
    for turn, request in enumerate(requests):
        for side in range(len(sides)) if turn % 2 else reversed(range(len(sides))):
            began = time.perf_counter_ns()
            found = sides[side](request)
            answers[side].append((found, time.perf_counter_ns() - began))
    return answers


def _warm(others: Iterator[Request], sides: Sequence[Callable[[Request], Any]], warm_up: WarmUp) -> tuple[int, bool]:
    """How many turns it took, and whether times were steady at the end."""
    until = time.monotonic() + warm_up.seconds
    medians: list[deque[float]] = [deque(maxlen=ROUNDS) for _ in sides]
    turns = 0
    while turns < warm_up.turns and time.monotonic() < until:
        some = list(islice(others, min(ROUND, warm_up.turns - turns)))
        for kept, answers in zip(medians, _ask(some, sides), strict=True):
            kept.append(statistics.median(took for _, took in answers))
        turns += len(some)
        if all(len(kept) == ROUNDS and max(kept) <= (1 + STEADY) * min(kept) for kept in medians):
            return turns, True
    return turns, False
