"""Judging writes by their own results; what they did to the store is for the next observation to show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from . import judge_vectors
from . import program as ops
from .compare import equal, same
from .divergence import Divergence
from .interpreter import Outcome, Returned, spoilt
from .judge_errors import Errors
from .judge_known import MAIN_CLAUSE, Known, deviation, together_clause
from .judge_texts import confusion
from .judge_values import Values
from .reference import Event
from .types import CloneResult, Message, Thread


class Writes:
    """Blames what a write returned."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.errors = Errors(known)
        self.values = Values(known)

    def write(self, index: int, operation: ops.Operation, expected: Outcome, got: Outcome) -> Iterator[Divergence]:
        """What is wrong with what a write returned."""
        if same(expected, got):
            return
        name = operation.name
        if not (isinstance(expected, Returned) and isinstance(got, Returned)):
            clause = self.errors.error_clause(operation, expected, got)
            yield deviation(clause, "error", name, index, expected, got)
            return
        if operation.target == "index":
            yield from judge_vectors.write_values(operation, index, expected.value, got.value)
            return
        if isinstance(operation, ops.CloneThread):
            yield from self._clone(index, expected.value, got.value)
            return
        if isinstance(operation, ops.Together):
            yield from self._together(index, operation, expected.value, got.value)
            return
        if isinstance(expected.value, Thread) and isinstance(got.value, Thread):
            event = Event("thread_created" if isinstance(operation, ops.CreateThread) else "thread_updated", "")
            if isinstance(operation, ops.CreateThread) and expected.value.updated_at != got.value.updated_at:
                self.known.misdated.add(expected.value.id)
            yield from self.values.thread_values(index, name, expected.value, got.value, event)
            return
        if _messages(expected.value) and _messages(got.value):
            wanted = {message.id: message for message in cast("tuple[Message, ...]", expected.value)}
            shown = {message.id: message for message in got.value}
            if [*wanted] != [message.id for message in got.value]:
                known = [*self.known.state.by_id, *self.known.old]
                confused = [clause for lost in wanted.keys() - shown.keys() if (clause := confusion(lost, known))]
                yield Divergence(
                    min(confused, default=MAIN_CLAUSE[name]),
                    "returned rows",
                    name,
                    index,
                    [*wanted],
                    [message.id for message in got.value],
                )
                return
            for message_id, message in wanted.items():
                yield from self.values.message_values(index, name, message, shown[message_id])
            return
        yield Divergence(MAIN_CLAUSE[name], "returned", name, index, expected.value, got.value)

    def _clone(self, index: int, expected: CloneResult, got: Any) -> Iterator[Divergence]:
        name = "clone_thread"
        if not isinstance(got, CloneResult):
            yield Divergence("CLN-1", "type", name, index, "CloneResult", type(got).__name__)
            return
        rows, shown = [m.id for m in expected.cloned_messages], [m.id for m in got.cloned_messages]
        if rows != shown or expected.id_map != got.id_map:
            yield Divergence("CLN-1", "rows", name, index, expected.id_map, got.id_map)
        elif not equal(expected.thread, got.thread):
            field = next(
                f for f in Thread.__struct_fields__ if not equal(getattr(expected.thread, f), getattr(got.thread, f))
            )
            clause = "VAL-4" if spoilt(got.thread.metadata) else "CLN-2"
            yield Divergence(clause, f"thread.{field}", name, index, expected.thread, got.thread)
        elif not equal(expected.cloned_messages, got.cloned_messages):
            clause = "VAL-4" if any(spoilt(m) for m in got.cloned_messages) else "CLN-1"
            yield Divergence(clause, "messages", name, index, expected.cloned_messages, got.cloned_messages)

    def _together(self, index: int, operation: ops.Together, expected: Any, got: Any) -> Iterator[Divergence]:
        """Only success counts: what a writer sees of the others is not determined."""
        for branch, right, wrong in zip(operation.operations, expected, got, strict=True):
            if isinstance(right, Returned) and not isinstance(wrong, Returned):
                yield deviation(together_clause(branch), "error", operation.name, index, right, wrong)
                return


def _messages(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(item, Message) for item in cast("Sequence[object]", value)
    )
