"""Judging visibility: whether what is wrong with an answer is its age, so that it is blamed on CON-1 alone.

An answer that was right before the last writes looks like that of a store which lost them. So it counts as
late only when the same question was answered rightly too, with no write in between: the writes had arrived.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import msgspec

from . import program as ops
from .capabilities import Capabilities
from .compare import equal, same
from .divergence import Divergence
from .facts_visibility import same_question
from .interpreter import Interpreter, Outcome, Refused, Returned, Snapshot, Transcript
from .reference import Event, ModelNamespace

_WHOLE_THREAD = ("thread_deleted", "cleared")
"""What happens to a thread with all that is in it."""


class Visibility:
    """Compares a transcript with the model's, `expected`, and with what the model answered earlier."""

    def __init__(
        self, program: ops.Program, transcript: Transcript, expected: Transcript, capabilities: Capabilities
    ) -> None:
        self._operations = program.operations
        self._program = program
        self._got = transcript
        self._expected = expected
        self._capabilities = capabilities

    def late(self, index: int) -> Divergence | None:
        """A read or an observation that does not show what had returned before, but showed it to another call."""
        right, got = self._expected[index], self._got[index]
        if same(right, got) or (since := self._answered_elsewhere(index)) is None:
            return None
        answers = [*self._earlier(index, since), right]
        if isinstance(got, Refused):
            stale = any(same(answer, got) for answer in answers)
        else:
            values = [answer.value for answer in answers if isinstance(answer, Returned)]
            stale = isinstance(got, Returned) and _between(got.value, values)
        return self._divergence(index, right, got) if stale else None

    def acted_late(self, index: int) -> Divergence | None:
        """A write that acted on what was there before the write before it, though its like acts well otherwise."""
        right, got = self._expected[index], self._got[index]
        before = next((i for i in reversed(range(index)) if self._operations[i].role != "control"), None)
        if same(right, got) or before is None or self._operations[before].role != "write":
            return None
        operation = self._operations[index]
        alike = [i for i, other in enumerate(self._operations) if i != index and _alike(other, operation)]
        if not any(same(self._expected[i], self._got[i]) and _effective(self._got[i]) for i in alike):
            return None
        after = next((i for i in range(index, len(self._got)) if isinstance(self._operations[i], ops.Observe)), None)
        if after is None:
            return None
        swapped = [*self._operations[:before], operation, *self._operations[before:index]]
        answers = self._run([*swapped, *self._operations[index + 1 : after + 1]])
        if not same(answers[before], got) or not same(answers[after], self._got[after]):
            return None
        return self._divergence(index, right, got)

    def _answered_elsewhere(self, index: int) -> int | None:
        """Whether the same question, with no write in between that matters, was answered as it should be.

        None if not; else the operation from which on an answer may date: any, or when there were other
        writes in between, those since the observation before.
        """
        asked = self._operations[index]
        for i in reversed(range(index)):
            if self._operations[i].role == "write" or isinstance(self._operations[i], ops.Reopen):
                break  # What was there before clients were opened anew, and is not now, is lost and not late.
            if same_question(asked, self._operations[i]) and same(self._expected[i], self._got[i]):
                return 0
        since: list[int] = []
        for i in range(index + 1, len(self._operations)):
            if self._operations[i].role == "write":
                since.append(i)
                if not isinstance(asked, ops.Observe):
                    return None
            elif same_question(asked, self._operations[i]) and same(self._expected[i], self._got[i]):
                first = self._segment(index)
                return 0 if not since else first if self._apart(first, index, since) else None
        return None

    def _segment(self, index: int) -> int:
        """Where the writes begin that an observation is the first to show."""
        return next((i + 1 for i in reversed(range(index)) if isinstance(self._operations[i], ops.Observe)), 0)

    def _apart(self, first: int, index: int, since: Sequence[int]) -> bool:
        """Whether the writes `since` an observation touch nothing that those just before it did."""
        namespace = ModelNamespace(self._capabilities)
        before, after = _Touched(), _Touched()
        with Interpreter(self._program, namespace) as interpreter:
            for i, operation in enumerate(self._operations[: since[-1] + 1]):
                namespace.events.clear()
                interpreter.step(operation)
                if operation.role == "write":
                    if first <= i < index:
                        before.add(operation, namespace.events)
                    elif i in since:
                        after.add(operation, namespace.events)
        return not before.meets(after)

    def _earlier(self, index: int, since: int) -> Iterator[Outcome]:
        """The model's answers to the question before each of the writes that came before it, from `since` on."""
        asked = self._operations[index]
        with Interpreter(self._program, ModelNamespace(self._capabilities)) as first:
            first.run(self._operations[:index])
        with Interpreter(self._program, ModelNamespace(self._capabilities)) as interpreter:
            # An observation looks at all that is named before it, also where it does not exist yet.
            interpreter.threads.update(first.threads)
            interpreter.vectors.update({name: dict(ids) for name, ids in first.vectors.items()})
            for i, operation in enumerate(self._operations[:index]):
                if operation.role == "write" and i >= since:
                    yield interpreter.step(asked)
                interpreter.step(operation)

    def _run(self, operations: Sequence[ops.AnyOperation]) -> Transcript:
        with Interpreter(self._program, ModelNamespace(self._capabilities)) as interpreter:
            return interpreter.run(operations)

    def _divergence(self, index: int, right: Outcome, got: Outcome) -> Divergence:
        operation = self._operations[index]
        clause, aspect = "CON-1", "late"
        if operation.target == "index" or (isinstance(operation, ops.Observe) and _of_indices(right, got)):
            clause = "CON-1b"
        elif isinstance(operation, ops.Recall) and operation.vector_search_string is not msgspec.UNSET:
            clause = "CON-1a"
        elif isinstance(operation, ops.GetWorkingMemory | ops.UpdateWorkingMemory):
            clause = "CON-1c"
        return Divergence(clause, aspect, operation.name, index, right, got)


class _Touched:
    """What writes did something to."""

    def __init__(self) -> None:
        self.single: set[str] = set()
        """Messages, threads' own fields, and indices."""
        self.entered: set[str] = set()
        """Threads of which some message was written."""
        self.whole: set[str] = set()
        """Threads of which all was."""

    def add(self, operation: ops.Operation, events: Sequence[Event]) -> None:
        """One write, and its events on the model."""
        if operation.target == "index":
            self.single.add(f"index {operation.given().get('name')}")
        for event in events:
            if event.message_id is not None:
                self.single.add(f"message {event.message_id}")
                self.entered.add(event.thread_id)
            elif event.kind in _WHOLE_THREAD:
                self.whole.add(event.thread_id)
            else:
                self.single.add(f"thread {event.thread_id}")
                self.entered.add(event.thread_id)

    def meets(self, other: _Touched) -> bool:
        """Whether both touched something."""
        return not (
            self.single.isdisjoint(other.single)
            and self.whole.isdisjoint(other.whole | other.entered)
            and self.entered.isdisjoint(other.whole)
        )


def _alike(left: ops.Operation, right: ops.Operation) -> bool:
    return type(left) is type(right) and left.given().keys() == right.given().keys()


def _effective(outcome: Outcome) -> bool:
    """Whether a write found something to do."""
    return isinstance(outcome, Returned) and bool(outcome.value)


def _of_indices(right: Outcome, got: Outcome) -> bool:
    """Whether two observations differ in what they show of indices alone."""
    if not isinstance(right, Returned) or not isinstance(got, Returned):
        return False
    memory = ("threads", "rows", "listed", "embeddings")
    expected, shown = cast(Snapshot, right.value), cast(Snapshot, got.value)
    return all(equal(getattr(expected, field), getattr(shown, field)) for field in memory)


def _between(got: Any, answers: Sequence[Any]) -> bool:
    """Whether every part of a value is that of some answer, and no part that all answers have is missing."""
    if any(equal(answer, got) for answer in answers):
        return True
    match got:
        case msgspec.Struct():
            alike = [answer for answer in answers if type(answer) is type(got)]
            return bool(alike) and all(
                _between(getattr(got, field), [getattr(answer, field) for answer in alike])
                for field in got.__struct_fields__
            )
        case dict():
            others = [cast("dict[Any, Any]", answer) for answer in answers if isinstance(answer, dict)]
            return _parts(cast("dict[Any, Any]", got), others)
        case list() | tuple():
            items = cast("Sequence[Any]", got)
            named = _named(items)
            others = [_named(cast("Sequence[Any]", answer)) for answer in answers if isinstance(answer, list | tuple)]
            return len(named) == len(items) and _parts(named, others)
        case _:
            return False


def _parts(got: dict[Any, Any], answers: Sequence[dict[Any, Any]]) -> bool:
    if not answers:
        return False
    lost = {key for answer in answers for key in answer.keys() - got.keys()}
    if any(all(key in answer for answer in answers) for key in lost):
        return False
    return all(_between(item, [answer[key] for answer in answers if key in answer]) for key, item in got.items())


def _named(items: Sequence[Any]) -> dict[Any, Any]:
    """Items by their ids, or by themselves where they are plain."""
    return {getattr(item, "id", None) or str(item): item for item in items}
