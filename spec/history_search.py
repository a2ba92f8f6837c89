"""Looking for an order of calls that explains what a store did: depth first, the likeliest order first."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from . import program as ops
from .capabilities import Capabilities
from .compare import equal, same
from .interpreter import (
    Call,
    Crashed,
    History,
    Interpreter,
    Lost,
    Outcome,
    Refused,
    Returned,
    Snapshot,
    Standing,
    Transcript,
)
from .reference import ModelNamespace, State
from .reference_index import IndexState
from .types import CloneResult, IndexDescription, RecallResult, Thread

MOST_STEPS = 60_000
"""Calls tried in one search: many times what the races of our scenarios need at worst."""

MOST_REJECTED = 200
"""Answers that are kept to find the one that is nearest to the store's."""

MOST_PARTS = 6
"""Rows of a batch that died of which every part is tried."""


class TooManyOrders(Exception):
    """A race has too many orders to try them all: its program has to be made smaller."""


class Ways(msgspec.Struct, frozen=True):
    """What is left out of account in a search, to find out what it is that no order explains."""

    reads: bool = True
    """Whether what the races' reads showed has to be explained."""
    after: bool = True
    """Whether what is observed after a race has to be."""


def meets(operation: ops.Operation) -> bool:
    """Whether calls meet in it, or one dies."""
    return isinstance(operation, ops.Race | ops.Kill)


class _World(msgspec.Struct, frozen=True):
    """What a namespace may hold. `loose`: of batches that died a part is there, and what goes with rows may lag."""

    state: State
    indexes: IndexState
    loose: bool = False

    @property
    def key(self) -> bytes:
        """A digest, equal for worlds that no call could tell apart."""
        rows = {
            name: ([row.message for row in rows], [row.message.id for row in sorted(rows, key=lambda r: r.position)])
            for name, rows in self.state.rows.items()
        }
        state = self.state
        parts = (state.threads, rows, state.embedded, state.untitled, state.notes, self.indexes, self.loose)
        return hashlib.sha256(msgspec.msgpack.encode(parts)).digest()


class Search:
    """Looks for an order of the calls that explains a transcript, depth first, the likeliest order first."""

    def __init__(self, program: ops.Program, transcript: Transcript, capabilities: Capabilities) -> None:
        self._program = program
        self._operations = program.operations
        self._got = transcript
        self._capabilities = capabilities
        self._lenient = capabilities.atomicity == "compensated"
        self._standing: list[Standing] = []
        with Interpreter(program, ModelNamespace(capabilities)) as interpreter:
            for operation in program.operations:
                self._standing.append(interpreter.standing())
                interpreter.pass_over(operation)
        self._first = next(i for i, operation in enumerate(program.operations) if meets(operation))
        self._seen: set[tuple[Any, ...]] = set()
        self._steps = 0
        self._ways = Ways()
        self.furthest = 0
        """The operation at which the last search ended that explained nothing."""
        self.best: tuple[Outcome, ...] = ()
        """The model's answers up to there."""
        self.rejected: list[Outcome] = []
        """What the model would have answered there, in the orders that came so far."""

    def explains(self, ways: Ways) -> bool:
        """Whether some order explains the transcript. Raises TooManyOrders."""
        self._ways = ways
        self._seen.clear()
        self._steps = self.furthest = 0
        self.best, self.rejected = (), []
        return self._from(0, _World(State(), IndexState()), ())

    def race(self, index: int) -> int:
        """The last race or kill at or before an operation."""
        return next((i for i in reversed(range(index + 1)) if meets(self._operations[i])), index)

    def _from(self, index: int, world: _World, answers: tuple[Outcome, ...]) -> bool:
        """Whether the operations from `index` on can be explained, in this world."""
        if index == len(self._got):
            return True
        if self._known(index, (), world):
            return False
        operation, got = self._operations[index], self._got[index]
        match operation:
            case ops.Race() if isinstance(got, Returned) and isinstance(got.value, History):
                self._reached(index, answers)
                rest = _Rest(operation, got.value, self._shown(index))
                return self._raced(index, rest, (0,) * len(operation.branches), world, (*answers, got))
            case ops.Kill() if got == Returned(Lost(operation.point)):
                return any(
                    self._from(index + 1, after, (*answers, got)) for after in self._died(index, operation, world)
                )
            case ops.Kill():
                return self._next(index, operation.operation, world, answers)
            case _:
                return self._next(index, operation, world, answers)

    def _next(self, index: int, operation: ops.Operation, world: _World, answers: tuple[Outcome, ...]) -> bool:
        """One operation that was not beside others."""
        got = self._got[index]
        after, right = self._step(index, operation, world, got)
        self._reached(index, answers)
        free = not self._ways.after and index > self._first
        if free or self._alike(right, got, world, frozenset()):
            return self._from(index + 1, after, (*answers, right))
        if index == self.furthest and len(self.rejected) < MOST_REJECTED:
            self.rejected.append(right)
        return False

    def _reached(self, index: int, answers: tuple[Outcome, ...]) -> None:
        if index > self.furthest or not self.best:
            self.furthest, self.best, self.rejected = index, answers, []

    def _raced(
        self, index: int, rest: _Rest, done: tuple[int, ...], world: _World, answers: tuple[Outcome, ...]
    ) -> bool:
        """The calls of a race that are left, and what comes after it."""
        ready = rest.ready(done)
        if not ready:
            return self._from(index + 1, world, answers)
        if self._known(index, done, world):
            return False
        for call in ready:
            operation = rest.operation(call)
            after, right = self._step(index, operation, world, call.outcome)
            ignored = operation.role != "write" and not self._ways.reads
            if ignored or self._alike(right, call.outcome, world, self._touched(rest, call)):
                advanced = tuple(many + (branch == call.branch) for branch, many in enumerate(done))
                if self._raced(index, rest, advanced, after, answers):
                    return True
        return False

    def _shown(self, index: int) -> dict[str, int]:
        """Where messages stand in the first observation after a race."""
        for outcome in self._got[index + 1 :]:
            if isinstance(outcome, Returned) and isinstance(outcome.value, Snapshot):
                listed = [rows.messages for rows in outcome.value.rows.values()]
                return {message.id: place for rows in listed for place, message in enumerate(rows)}
        return {}

    def _known(self, index: int, done: tuple[int, ...], world: _World) -> bool:
        """Whether this was tried before, in vain."""
        key = index, done, world.key
        if key in self._seen:
            return True
        self._seen.add(key)
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise TooManyOrders(f"no order explains operation {index + 1}, and not all could be tried")
        return False

    def _touched(self, rest: _Rest, call: Call) -> frozenset[str]:
        """The rows, and threads, that a call is not held to: of writes at the same time, where a part may show."""
        if not self._lenient:
            return frozenset()
        return frozenset(name for other in rest.beside(call) for name in rest.names(other))

    def _step(self, index: int, operation: ops.Operation, world: _World, got: Outcome) -> tuple[_World, Outcome]:
        """What the model does and answers. Ids that the store gave to a clone are taken over."""
        namespace = ModelNamespace(self._capabilities)
        namespace.state, namespace.indexes = world.state.copy(), _copied(world.indexes)
        given = iter(_given(operation, got))
        with Interpreter(self._program, namespace) as interpreter:
            interpreter.stand(self._standing[index], lambda label: next(given, label))
            right = interpreter.step(self._selected(operation, got))
        if isinstance(right, Refused | Crashed):
            return world, right
        return _World(namespace.state, namespace.indexes, world.loose), right

    def _selected(self, operation: ops.Operation, got: Outcome) -> ops.Operation:
        """A clone of what the store cloned, where rows may have come and gone meanwhile."""
        value = got.value if isinstance(got, Returned) else None
        if self._lenient and isinstance(operation, ops.CloneThread) and isinstance(value, CloneResult):
            return msgspec.structs.replace(operation, message_ids=[*value.id_map])
        return operation

    def _died(self, index: int, operation: ops.Kill, world: _World) -> Iterator[_World]:
        """What a call may have left that died."""
        call = operation.operation
        done, _ = self._step(index, call, world, Returned(None))
        if call.role != "write":
            yield world
            return
        if not self._lenient:
            yield world
            yield done
            return
        for part in _parts(call):
            after, _ = self._step(index, part, world, Returned(None))
            yield msgspec.structs.replace(after, loose=True)
        yield msgspec.structs.replace(world, loose=True)

    def _alike(self, right: Outcome, got: Outcome, world: _World, touched: frozenset[str]) -> bool:
        if same(right, got):
            return True
        if not touched and not world.loose:
            return False
        if isinstance(right, Returned) and isinstance(got, Returned):
            return equal(_apart(right.value, touched, loose=world.loose), _apart(got.value, touched, loose=world.loose))
        return False


class _Rest:
    """The calls of a race, and which may come next."""

    def __init__(self, race: ops.Race, history: History, shown: Mapping[str, int]) -> None:
        self._race = race
        self._calls = history.calls
        self._by_branch: list[list[Call]] = [[] for _ in race.branches]
        for call in history.calls:
            self._by_branch[call.branch].append(call)
        self._place = {
            (call.branch, call.number): place
            for call in history.calls
            if (place := self._saved(call, shown)) is not None
        }

    def _saved(self, call: Call, shown: Mapping[str, int]) -> int | None:
        """Where the first message stands that a call saved."""
        operation = self.operation(call)
        if not isinstance(operation, ops.SaveMessages):
            return None
        return next((shown[item.id] for item in operation.arguments()["messages"] if item.id in shown), None)

    def ready(self, done: Sequence[int]) -> list[Call]:
        """The next calls of the branches that began before any other that is left had ended, the likeliest first.

        That is one of which no message stands behind another's that is still to be saved, and then what ended first.
        """
        left = [calls[many] for calls, many in zip(self._by_branch, done, strict=True) if many < len(calls)]
        end = min((call.ended for call in left), default=0)
        places = [
            self._place.get((call.branch, call.number))
            for calls, many in zip(self._by_branch, done, strict=True)
            for call in calls[many:]
        ]

        def later(call: Call) -> tuple[int, int]:
            own = self._place.get((call.branch, call.number))
            before = 0 if own is None else sum(place is not None and place < own for place in places)
            return before, call.ended

        return sorted((call for call in left if call.began < end), key=later)

    def operation(self, call: Call) -> ops.Operation:
        """What was called."""
        return self._race.branches[call.branch][call.number]

    def beside(self, call: Call) -> Iterator[Call]:
        """The writes that ran while a call did."""
        for other in self._calls:
            together = other.branch != call.branch and other.began < call.ended and call.began < other.ended
            if together and self.operation(other).role == "write":
                yield other

    def names(self, call: Call) -> frozenset[str]:
        """The messages, threads and vectors that a write names."""
        operation = self.operation(call)
        found = {str(name) for name in operation.threads()}
        for field in ("messages", "updates", "vectors", "ids"):
            for item in operation.arguments().get(field) or ():
                found.add(str(getattr(item, "id", item)))
        if isinstance(call.outcome, Returned) and isinstance(call.outcome.value, CloneResult):
            found |= {*call.outcome.value.id_map.values()}
        return frozenset(found)


def _given(operation: ops.Operation, got: Outcome) -> Iterator[str]:
    """The ids that a store gave to what it made: of the thread, unless the call named it, then of its messages."""
    value = got.value if isinstance(got, Returned) else None
    if isinstance(operation, ops.CreateThread) and isinstance(value, Thread):
        yield value.id
    elif isinstance(operation, ops.CloneThread) and isinstance(value, CloneResult):
        if operation.new_thread_id in (msgspec.UNSET, None):
            yield value.thread.id
        yield from value.id_map.values()


def _parts(call: ops.Operation) -> Iterator[ops.Operation]:
    """A batch, and whatever part of it may be there."""
    for field in ("messages", "updates", "vectors", "ids"):
        rows = getattr(call, field, None)
        if isinstance(rows, list) and len(cast("list[Any]", rows)) <= MOST_PARTS:
            items = cast("list[Any]", rows)
            for many in reversed(range(1, len(items) + 1)):
                for part in itertools.combinations(items, many):
                    yield msgspec.structs.replace(call, **{field: [*part]})
            return
    yield call


def _apart(value: Any, touched: frozenset[str], *, loose: bool) -> Any:
    """A value without what a call is not held to."""
    match value:
        case RecallResult():
            rows = tuple(message for message in value.messages if message.id not in touched)
            if len(rows) == len(value.messages) and not touched:
                return value
            return msgspec.structs.replace(value, messages=rows, total=0, has_more=False, hits=())
        case Thread():
            if value.id in touched or loose:
                return msgspec.structs.replace(value, updated_at=value.created_at)
            return value
        case IndexDescription():
            return msgspec.structs.replace(value, count=0)
        case CloneResult():
            return value.id_map.keys() - touched
        case dict():
            pairs = cast("dict[str, Any]", value)
            return {key: _apart(item, touched, loose=loose) for key, item in pairs.items()}
        case list() | tuple():
            items = cast("Sequence[Any]", value)
            kept = [item for item in items if getattr(item, "id", None) not in touched]
            return tuple(_apart(item, touched, loose=loose) for item in kept)
        case Snapshot():
            return [_apart(getattr(value, field), touched, loose=loose) for field in value.__struct_fields__]
        case msgspec.Struct() if hasattr(value, "threads"):
            return _apart(cast(Any, value).threads, touched, loose=loose)
        case _:
            return value


def _copied(indexes: IndexState) -> IndexState:
    return IndexState({**indexes.indexes}, {name: {**rows} for name, rows in indexes.rows.items()})
