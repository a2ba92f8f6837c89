"""Warm-up: load that is not counted, until its times stand still."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from .load import Note, Ran

ALIKE = 3
"""Windows whose medians have to be alike."""

TOLERANCE = 0.1
"""How far apart they may be: a tenth of the median of them."""


class WarmedUp(NamedTuple):
    """What was discarded, and whether times stood still at the end of it."""

    notes: list[Note]
    stationary: bool


def warm_up(window: Callable[[], Ran], most_seconds: float) -> WarmedUp:
    """Run windows until the times of the last ones are alike, or time is over; one at least."""
    medians: list[float] = []
    notes: list[Note] = []
    since = time.monotonic()
    while True:
        ran = window()
        notes += ran.notes
        times = [note.ended - note.started for note in ran.notes if note.sent and not note.failed]
        if not times:  # nothing is answered: nothing will stand still
            return WarmedUp(notes, stationary=False)
        medians.append(float(np.median(times)))
        if stationary(medians):
            return WarmedUp(notes, stationary=True)
        if time.monotonic() - since > most_seconds:
            return WarmedUp(notes, stationary=False)


def stationary(medians: Sequence[float]) -> bool:
    """Whether the last ALIKE windows' medians lie within TOLERANCE of their middle one."""
    last = medians[-ALIKE:]
    if len(last) < ALIKE:
        return False
    middle = statistics.median(last)
    return max(abs(each - middle) for each in last) <= TOLERANCE * middle
