"""Judging what may come out in more than one way: races, and calls that died (CON-2, DUR-1a).

A transcript is right when there is an order of the calls of each race, consistent with which call had returned before
which began, in which the model, doing one after another, answers as the store did: that call by call, and then in
the observations that follow. A call that died happened or not.

Stores that declare their batches `compensated` may show a part of a write while it runs. So a read is not held to rows
that a write touches which runs at the same time, and of a batch that died a part may be there.

What deviates before the first race is judged as in any other program, and then nothing else is: scenarios rehearse
the calls of the race one after another, so that what they do wrong alone is not blamed on their meeting.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard, cast

import msgspec

from . import program as ops
from .capabilities import Capabilities
from .divergence import Divergence
from .history_search import Search, Ways, meets
from .interpreter import (
    Crashed,
    History,
    Outcome,
    Returned,
    Snapshot,
    Transcript,
)
from .types import Message


def judge_history(
    program: ops.Program,
    transcript: Transcript,
    capabilities: Capabilities,
    sequential: Callable[[ops.Program, Transcript, Capabilities], tuple[Divergence, ...]],
) -> tuple[Divergence, ...]:
    """The deviations of a transcript of a program with races or kills. `sequential` judges what comes before them."""
    first = next(i for i, operation in enumerate(program.operations) if meets(operation))
    before = msgspec.structs.replace(program, operations=program.operations[:first])
    if found := sequential(before, transcript[:first], capabilities):
        return found
    for index, outcome in enumerate(transcript):
        if (crash := _crash(outcome)) is not None:
            return (_divergence(program, index, "error", Returned(None), crash, crashed=True),)
    search = Search(program, transcript, capabilities)
    if search.explains(Ways()):
        return ()
    return (_blamed(program, transcript, search),)


def explained(program: ops.Program, transcript: Transcript, capabilities: Capabilities) -> Transcript:
    """The model's answers in the order that explains a transcript furthest; of races the store's own history."""
    search = Search(program, transcript, capabilities)
    search.explains(Ways())
    answers = search.best
    rest = itertools.repeat(Returned(None), len(transcript) - len(answers))
    return tuple(
        got if isinstance(operation, ops.Race) else right
        for operation, right, got in zip(program.operations, [*answers, *rest], transcript, strict=False)
    )


def _crash(outcome: Outcome) -> Crashed | None:
    """What crashed, in a race too."""
    if isinstance(outcome, Returned) and isinstance(outcome.value, History):
        crashes = [call.outcome for call in outcome.value.calls if isinstance(call.outcome, Crashed)]
        return crashes[0] if crashes else None
    return outcome if isinstance(outcome, Crashed) else None


def _blamed(program: ops.Program, transcript: Transcript, search: Search) -> Divergence:
    """What it is that no order explains."""
    index = search.furthest
    if not search.explains(Ways(after=False)):
        if search.explains(Ways(reads=False, after=False)):
            return _divergence(program, search.race(index), "read", None, transcript[search.race(index)])
        index = search.race(search.furthest)
        aspect = "created" if _created_twice(program.operations[index], transcript[index]) else "outcome"
        return _divergence(program, index, aspect, None, transcript[index])
    if search.explains(Ways(reads=False)):
        return _divergence(program, search.race(index), "read", None, transcript[search.race(index)])
    index, got = search.furthest, transcript[search.furthest]
    nearest = min(search.rejected, key=lambda right: _distance(right, got), default=Returned(None))
    aspects = {_aspect(right, got) for right in search.rejected}
    aspect = _aspect(nearest, got)
    if clause_of(program, index) == "DUR-1a" and aspect in ("lost", "orphan") and {"lost", "orphan"} <= aspects:
        aspect = "half"  # Neither what was before the call nor what is after it.
    return _divergence(program, index, aspect, nearest, got)


def _divergence(
    program: ops.Program, index: int, aspect: str, expected: Any, got: Any, *, crashed: bool = False
) -> Divergence:
    operation = program.operations[index]
    wanted = "outcomes that some order of the calls has" if expected is None else expected
    return Divergence(clause_of(program, index), aspect, operation.name, index, wanted, got, crashed)


def clause_of(program: ops.Program, index: int) -> str:
    """The clause that a race or a kill at or before an operation is about."""
    operation = next(
        (op for op in reversed(program.operations[: index + 1]) if meets(op)),
        next(op for op in program.operations if meets(op)),
    )
    if isinstance(operation, ops.Kill):
        return "DUR-1a"
    calls = [*operation.calls()] if isinstance(operation, ops.Race) else []
    if calls and all(call.target == "index" for call in calls):
        return "CON-2b"
    return "CON-2a" if program.embedder else "CON-2"


def _created_twice(operation: ops.Operation, outcome: Outcome) -> bool:
    """Whether two creates of one id succeeded, though nothing deletes it."""
    if not isinstance(operation, ops.Race) or not isinstance(outcome, Returned):
        return False
    if any(isinstance(call, ops.DeleteThread) for call in operation.calls()):
        return False
    made = [
        operation.branches[call.branch][call.number]
        for call in cast(History, outcome.value).calls
        if isinstance(call.outcome, Returned)
    ]
    ids = [call.id if isinstance(call, ops.CreateThread) else call.new_thread_id for call in made if _creates(call)]
    return len(ids) > len({*map(str, ids)})


def _creates(call: ops.Operation) -> TypeGuard[ops.CreateThread | ops.CloneThread]:
    return isinstance(call, ops.CreateThread | ops.CloneThread)


def _aspect(right: Outcome, got: Outcome) -> str:
    """What is wrong with an observation, or any other answer, seen from the nearest that would be right."""
    if not isinstance(right, Returned) or not isinstance(got, Returned):
        return "outcome"
    expected, shown = right.value, got.value
    if not isinstance(expected, Snapshot) or not isinstance(shown, Snapshot):
        return "state"
    wanted, there = _ids(expected), _ids(shown)
    if any(wanted[name] - there.get(name, set()) for name in wanted):
        return "lost"
    if any(there[name] - wanted.get(name, set()) for name in there) or _count(shown) > _count(expected):
        return "orphan"
    if any(
        [*map(_id, rows.messages)] != [*map(_id, shown.rows[name].messages)] for name, rows in expected.rows.items()
    ):
        return "order"
    return "merge"


def _count(snapshot: Snapshot) -> int:
    return -1 if snapshot.embeddings is None else snapshot.embeddings.count


def _id(message: Message) -> str:
    return message.id


def _ids(snapshot: Snapshot) -> dict[str, set[str]]:
    """What there is, by where it is."""
    found = {f"thread {name}": {message.id for message in rows.messages} for name, rows in snapshot.rows.items()}
    found |= {f"index {name}": {row.id for row in rows} for name, rows in snapshot.vectors.items()}
    listed = () if snapshot.listed is None else snapshot.listed.threads
    return {**found, "threads": {thread.id for thread in listed}, "indexes": {*snapshot.indexes}}


def _distance(right: Outcome, got: Outcome) -> tuple[int, int]:
    """How far an answer is from another: ids that differ, and then places that do."""
    if not isinstance(right, Returned) or not isinstance(got, Returned):
        return 10**6, 0
    if not isinstance(right.value, Snapshot) or not isinstance(got.value, Snapshot):
        return 10**6, 0
    wanted, there = _ids(right.value), _ids(got.value)
    ids = sum(len(wanted.get(name, set()) ^ there.get(name, set())) for name in {*wanted, *there})
    left, found = msgspec.to_builtins(right.value), msgspec.to_builtins(got.value)
    return ids, _unlike(left, found)


def _unlike(left: Any, right: Any) -> int:
    if isinstance(left, dict) and isinstance(right, dict):
        one, other = cast("dict[str, Any]", left), cast("dict[str, Any]", right)
        return sum(_unlike(one.get(key), other.get(key)) for key in {*one, *other})
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        pairs = itertools.zip_longest(cast("Sequence[Any]", left), cast("Sequence[Any]", right))
        return sum(_unlike(one, other) for one, other in pairs)
    return left != right
