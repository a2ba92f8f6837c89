"""One record for every operation of a benchmark: what was asked when, how it ended, how good the answer was."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

Phase = Literal["cold", "warmup", "closed", "open"]
"""`cold`: the first operations on an engine. `warmup`: discarded until times stood still. `closed`: each client asks
as soon as it was answered, which gives the peak. `open`: operations were scheduled whatever the engine did."""

Outcome = Literal["ok", "short", "wrong", "failed", "unsent"]
"""`ok`: as many rows as were due, none of them excluded (how many of them belong is `right`). `short`: fewer rows than
were due. `wrong`: a row that is excluded, one returned twice, another order, or another count than is due. `failed`:
the call raised. `unsent`: it was scheduled, and its phase was over before a client was free; its times are those at
which that was found out, so that they are a lower bound."""

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
PHASES: tuple[Phase, ...] = get_args(Phase)

LATE = 1_000_000
"""Nanoseconds after which an operation that the scheduler hands out is late, by the harness's own fault."""

TIMES = ("intended_ns", "dispatched_ns", "started_ns", "ended_ns")
COUNTS = ("due", "right", "returned")


class Samples(msgspec.Struct, frozen=True):
    """The operations of one phase of one round, in the order in which they were due: columns of equal length.

    rate: operations a second that were scheduled; 0 in closed loop. share: which part of the peak that is; 0 in closed
        loop. concurrency: clients at work.
    intended_ns: when it was due. dispatched_ns: when the scheduler handed it out; later than intended only by the
        harness's fault. started_ns, ended_ns: the call. All monotonic nanoseconds since the phase began. In closed loop
        the first three are one.
    due, right, returned: rows that the answer should have, those of them that it has (once each; ties count by
        distance), and rows that it has. 0 due where nothing is judged by rows.
    """

    contender: str
    workload: str
    phase: Phase
    rate: float
    share: float
    concurrency: int
    round: int
    intended_ns: NDArray[np.int64]
    dispatched_ns: NDArray[np.int64]
    started_ns: NDArray[np.int64]
    ended_ns: NDArray[np.int64]
    outcome: NDArray[np.int8]
    """An index into OUTCOMES."""
    due: NDArray[np.int32]
    right: NDArray[np.int32]
    returned: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.intended_ns)

    def of(self, *outcomes: Outcome) -> NDArray[np.bool_]:
        """Which operations ended in one of these ways."""
        return np.isin(self.outcome, [OUTCOMES.index(outcome) for outcome in outcomes])

    @property
    def response_ns(self) -> NDArray[np.int64]:
        """From when an operation was due to its end: what a user waits. Of every operation, however it ended."""
        return self.ended_ns - self.intended_ns

    @property
    def service_ns(self) -> NDArray[np.int64]:
        """From the call to its end: what the store took. Of those that were sent."""
        return (self.ended_ns - self.started_ns)[~self.of("unsent")]

    @property
    def late(self) -> NDArray[np.bool_]:
        """Which operations the scheduler handed out more than LATE after they were due."""
        return self.dispatched_ns - self.intended_ns > LATE


class Record(msgspec.Struct, frozen=True):
    """One operation, as a worker notes it down."""

    number: int
    intended_ns: int
    dispatched_ns: int
    started_ns: int
    ended_ns: int
    outcome: Outcome
    due: int = 0
    right: int = 0
    returned: int = 0


def gather(
    records: Iterable[Record],
    *,
    contender: str,
    workload: str,
    phase: Phase,
    concurrency: int,
    round: int,
    rate: float = 0.0,
    share: float = 0.0,
) -> Samples:
    """The records of one phase as columns, by when they were due."""
    ordered = sorted(records, key=lambda record: (record.intended_ns, record.number))

    def column(name: str, kind: Any) -> NDArray[Any]:
        return np.array([getattr(record, name) for record in ordered], dtype=kind)

    return Samples(
        contender=contender,
        workload=workload,
        phase=phase,
        rate=rate,
        share=share,
        concurrency=concurrency,
        round=round,
        outcome=np.array([OUTCOMES.index(record.outcome) for record in ordered], dtype=np.int8),
        **{name: column(name, np.int64) for name in TIMES},
        **{name: column(name, np.int32) for name in COUNTS},
    )
