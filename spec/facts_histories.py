"""What a program with a race or a kill puts to the test, seen by its calls and by what the model makes of them.

A race counts only when its outcome is observed afterwards by two clients, and before by one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, cast

from . import program as ops
from .capabilities import Capabilities
from .interpreter import Interpreter, Returned
from .operation import Operation
from .reference import ModelNamespace


def histories(program: ops.Program, capabilities: Capabilities) -> Iterator[str]:
    """The facts of every race and kill that is observed."""
    operations = program.operations
    with Interpreter(program, ModelNamespace(capabilities)) as interpreter:
        for index, operation in enumerate(operations):
            if isinstance(operation, ops.Race) and _observed(operations, index):
                yield from _race(operation, embedder=bool(program.embedder))
            if isinstance(operation, ops.Race):
                interpreter.run(operation.calls())  # One after another: what the model makes of it must not vary.
                continue
            outcome = interpreter.step(operation)
            if isinstance(operation, ops.Kill) and _observed(operations, index, 1) and isinstance(outcome, Returned):
                yield from _kill(operation)


def _observed(operations: Sequence[ops.AnyOperation], index: int, clients: int = 2) -> bool:
    """Whether that many clients observe what an operation came to, before anything else is written."""
    after = itertools.takewhile(
        lambda operation: operation.role in ("observe", "read", "control"), operations[index + 1 :]
    )
    seen = {operation.client for operation in after if isinstance(operation, ops.Observe)}
    return len(seen) >= clients and any(isinstance(operation, ops.Observe) for operation in operations[:index])


def _race(race: ops.Race, *, embedder: bool) -> Iterator[str]:
    """By pairs of calls of two branches, which meet as far as the race lets them."""
    calls = [*race.calls()]
    if len([branch for branch in race.branches if branch]) < 2:
        return
    kind = "index" if all(call.target == "index" for call in calls) else "embedded" if embedder else "memory"
    yield f"race.{kind}"
    for one, other in itertools.permutations(range(len(race.branches)), 2):
        for left, right in itertools.product(race.branches[one], race.branches[other]):
            for met in _meeting(left, right):
                yield f"race.{kind}.{met}"


def _meeting(left: Operation, right: Operation) -> Iterator[str]:
    if left.target == "index" and right.target == "index":
        yield from _indices(left, right)
        return
    threads, others = {*map(str, left.threads())}, {*map(str, right.threads())}
    common = bool(threads & others)
    match left, right:
        case ops.SaveMessages(), ops.SaveMessages():
            if _ids(left) & _ids(right):
                yield "one_message"
            elif common:
                yield "savers"
        case ops.UpdateMessages(), ops.UpdateMessages() if _ids(left) & _ids(right):
            yield "mergers"
        case ops.UpdateThread(), ops.UpdateThread() if common:
            yield "mergers"
        case ops.DeleteThread(), ops.SaveMessages() if common:
            yield "delete_save"
        case ops.ClearMessages() | ops.DeleteMessages(), ops.SaveMessages() | ops.UpdateMessages():
            if common or _ids(left) & _ids(right):
                yield "delete_save"
        case ops.CloneThread(), ops.SaveMessages() if common:
            yield "clone_save"
        case ops.CreateThread(), ops.CreateThread() if common:
            yield "creates"
        case (ops.Recall() | ops.GetThread(), _) if right.role == "write" and common:
            yield "reads"
        case _:
            return


def _indices(left: Operation, right: Operation) -> Iterator[str]:
    names = left.given().get("name"), right.given().get("name")
    if names[0] != names[1]:
        return
    match left, right:
        case ops.CreateIndex(), ops.CreateIndex():
            yield "creates"
        case ops.UpsertVectors(), ops.UpsertVectors():
            yield "one_row" if _ids(left) & _ids(right) else "savers"
        case ops.UpdateVector(), ops.UpdateVector() if left.id == right.id:
            yield "mergers"
        case ops.DeleteVectors() | ops.DropIndex(), ops.UpsertVectors() | ops.UpdateVector():
            yield "delete_save"
        case (ops.GetVectors() | ops.QueryVectors() | ops.DescribeIndex(), _) if right.role == "write":
            yield "reads"
        case _:
            return


def _ids(operation: Operation) -> set[str]:
    """The messages or vectors that a call names."""
    found: set[str] = set()
    arguments = operation.arguments()
    for field in ("messages", "updates", "vectors", "ids"):
        for item in cast("Sequence[Any]", arguments.get(field) or ()):
            found.add(str(getattr(item, "id", item)))
    return found | ({str(arguments["id"])} if isinstance(operation, ops.UpdateVector) else set())


def _kill(kill: ops.Kill) -> Iterator[str]:
    call = kill.operation
    yield "kill"
    yield "kill.before" if kill.point == "before commit" else "kill.after"
    if len(_ids(call)) > 1:
        yield "kill.batch"
    if isinstance(call, ops.DeleteThread | ops.ClearMessages | ops.DeleteMessages | ops.DeleteVectors | ops.DropIndex):
        yield "kill.deletion"
    if isinstance(call, ops.CloneThread):
        yield "kill.clone"
    if call.target == "index":
        yield "kill.index"
