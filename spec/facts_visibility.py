"""What a program puts to the test of visibility: the calls of one client that need what another's just did (CON-1)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from . import program as ops
from .capabilities import Capabilities
from .compare import same
from .interpreter import Interpreter, Outcome
from .reference import ModelNamespace

_READS = {"get_thread": "thread", "list_threads": "threads", "query_vectors": "query", "get_vectors": "vectors"}
_WRITES = {"update_messages": "updated", "delete_messages": "deleted", "clear_messages": "deleted"}


def visible(program: ops.Program, capabilities: Capabilities) -> Iterator[str]:
    """Facts about every first call after another client's write whose outcome would be another without the write.

    A read counts only when the same is asked again before the next write: else what is late could not be
    told from what is lost.
    """
    operations = program.operations
    if not any(operation.client for operation in operations):
        return
    with Interpreter(program, ModelNamespace(capabilities)) as interpreter:
        for index, operation in enumerate(operations):
            outcome = interpreter.step(operation)
            last = _last_write(operations, index)
            if last is None or operations[last].client == operation.client or operation.role in ("control", "observe"):
                continue
            if operation.role == "read" and not _asked_again(operations, index):
                continue
            if same(outcome, _without(program, capabilities, last, index)):
                continue
            yield from _kinds(operation, operations[last])


def same_question(left: ops.Operation, right: ops.Operation) -> bool:
    """Whether two calls ask the same, be it by different clients. True is not 1."""
    return type(left) is type(right) and msgspec.json.encode(left.given()) == msgspec.json.encode(right.given())


def _last_write(operations: tuple[ops.AnyOperation, ...], index: int) -> int | None:
    """The write just before; None when something asked for its effect already, or there is none."""
    for i in reversed(range(index)):
        if operations[i].role == "write":
            return i
        if operations[i].role == "observe" or operations[i] == operations[index]:
            return None
    return None


def _asked_again(operations: tuple[ops.AnyOperation, ...], index: int) -> bool:
    asked = operations[index]
    for other in operations[index + 1 :]:
        if other.role == "write":
            return False
        if same_question(other, asked):
            return True
    return False


def _without(program: ops.Program, capabilities: Capabilities, last: int, index: int) -> Outcome:
    """What the call would come to, had the write not been."""
    operations = program.operations
    with Interpreter(program, ModelNamespace(capabilities)) as interpreter:
        return interpreter.run([*operations[:last], *operations[last + 1 : index + 1]])[-1]


def _kinds(operation: ops.Operation, write: ops.Operation) -> Iterator[str]:
    of = "index" if operation.target == "index" else "memory"
    if isinstance(operation, ops.GetWorkingMemory | ops.UpdateWorkingMemory):
        yield "visible.working"
        return
    if isinstance(operation, ops.Recall) and operation.vector_search_string is not msgspec.UNSET:
        yield "visible.search"
        yield "visible.search.gone" if write.name.startswith(("delete", "clear")) else "visible.search.new"
        return
    yield f"visible.{of}"
    if operation.role == "write":
        by_filter = isinstance(operation, ops.DeleteVectors) and operation.filter is not msgspec.UNSET
        yield "visible.delete_by_filter" if by_filter else f"visible.{of}.written"
    elif isinstance(operation, ops.Recall):
        yield "visible.filtered" if operation.filter is not msgspec.UNSET else "visible.listing"
        yield f"visible.{_WRITES.get(write.name, 'saved')}"
    else:
        yield f"visible.{_READS.get(operation.name, operation.name)}"
        if operation.target == "index":
            yield "visible.index.gone" if write.name == "delete_vectors" else "visible.index.new"
