"""Judging a transcript: every deviation from the model, blamed on the clause it breaks.

Two devices keep one fault from being blamed on many clauses:

* The model is set to what the store itself showed at each `observe`. So the writes between two
  observations are judged from the store's own earlier state, and reads are judged against it: a row that
  a save lost does not count against paging, filters or include.
* A read with several features is judged against the store's own answers to simpler reads of the same
  state, where the program made them: a page against the full listing, a filtered page against the
  filtered listing, an include against the same page without it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from . import judge_vectors
from . import program as ops
from .capabilities import Capabilities
from .compare import same
from .divergence import Divergence
from .interpreter import Outcome, Transcript, run
from .judge_histories import explained, judge_history
from .judge_known import MAIN_CLAUSE, Known
from .judge_observations import Observations
from .judge_reads import Reads
from .judge_visibility import Visibility
from .judge_writes import Writes
from .reference import ModelNamespace
from .reference_index import MODEL_CAPABILITIES

__all__ = ["MAIN_CLAUSE", "expect", "judge", "right"]


def judge(
    program: ops.Program, transcript: Transcript, capabilities: Capabilities = MODEL_CAPABILITIES
) -> tuple[Divergence, ...]:
    """The deviations of a transcript, in order; empty when the store conforms. Pure."""
    if program.undetermined:
        return judge_history(program, transcript, capabilities, judge)
    expected = expect(program, capabilities)
    if len(expected) == len(transcript) and all(map(same, expected, transcript)):
        return ()
    if len(transcript) != len(expected):
        raise AssertionError("a transcript is not as long as its program")
    walk = _Judge(program, transcript, expected, capabilities)
    found = tuple(_asked_of(each, capabilities) for each in walk.run())
    if found:
        return found
    # What differs was judged to be as right, or no rule explains it: never a silent pass.
    for index, (right, wrong) in enumerate(zip(expected, transcript, strict=False)):
        if index not in walk.accepted and not same(right, wrong):
            name = program.operations[index].name
            clause = MAIN_CLAUSE.get(name) or judge_vectors.MAIN_CLAUSE.get(name, "ISO-2")
            return (Divergence(clause, "outcome", name, index, right, wrong),)
    return ()


def _asked_of(divergence: Divergence, capabilities: Capabilities) -> Divergence:
    """Blamed on what may be asked of the store: without semantic recall an index's configuration is VEC-1's."""
    if divergence.clause == "SEM-6" and not capabilities.semantic_recall:
        return msgspec.structs.replace(divergence, clause="VEC-1")
    return divergence


def expect(program: ops.Program, capabilities: Capabilities = MODEL_CAPABILITIES) -> Transcript:
    """The model's transcript."""
    return run(program, ModelNamespace(capabilities))


def right(program: ops.Program, transcript: Transcript, capabilities: Capabilities) -> Transcript:
    """What stands beside a transcript: the model's, or where several are right, the one nearest to it."""
    if program.undetermined:
        return explained(program, transcript, capabilities)
    return expect(program, capabilities)


class _Judge:
    def __init__(
        self, program: ops.Program, transcript: Transcript, expected: Transcript, capabilities: Capabilities
    ) -> None:
        self.transcript = transcript
        self.known = Known(program, capabilities)
        self.visibility = Visibility(program, transcript, expected, capabilities)
        self.writes = Writes(self.known)
        self.observations = Observations(self.known)
        self.reads = Reads(self.known)
        self.accepted: set[int] = set()
        """Indices of outcomes that differ from the model's and are as right."""

    def run(self) -> Iterator[Divergence]:
        known = self.known
        for index, (operation, got) in enumerate(zip(known.program.operations, self.transcript, strict=False)):
            known.index = index
            expected = known.interpreter.step(operation)
            if operation.role == "read":
                yield from self.read(index, operation, expected, got)
                continue
            if isinstance(operation, ops.Observe):
                late = None if known.dirty else self.visibility.late(index)
                if late is not None:
                    # The model stays as it is: the store has what it does not show yet.
                    yield late
                    known.observed()
                else:
                    yield from self.observations.observation(index, expected, got)
                continue
            if isinstance(operation, ops.Tick):
                continue
            known.synced = False
            known.segment.append(operation)
            if not known.dirty:
                yield from self.write(index, operation, expected, got)

    def read(self, index: int, operation: ops.Operation, expected: Outcome, got: Outcome) -> Iterator[Divergence]:
        """A read is judged where the state was observed; whether it is late, everywhere."""
        late = None if self.known.dirty else self.visibility.late(index)
        if late is not None:
            yield late
        elif self.known.synced:
            faults = tuple(self.reads.read(index, operation, expected, got))
            if not faults:
                self.accepted.add(index)
            yield from faults

    def write(self, index: int, operation: ops.Operation, expected: Outcome, got: Outcome) -> Iterator[Divergence]:
        """A write's own result; after one that failed, or acted on an older state, all waits for an observation."""
        late = None if operation.role == "control" else self.visibility.acted_late(index)
        for divergence in (late,) if late is not None else self.writes.write(index, operation, expected, got):
            self.known.dirty = self.known.dirty or divergence.aspect in ("error", "late")
            yield divergence
