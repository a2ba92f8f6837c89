"""The one interpreter: runs a program on any store and yields its transcript, one outcome an operation."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Barrier
from threading import Thread as Worker
from typing import Any, Protocol, cast

import msgspec

from .capabilities import Capabilities
from .embedders import LiteralEmbedder
from .errors import InvalidRequest, StoreError, Unavailable
from .forms import resolve
from .operation import Operation, Target
from .program import (
    CloneThread,
    CreateThread,
    IndexOperation,
    Kill,
    Observe,
    Program,
    Race,
    Reopen,
    Settle,
    Tick,
    Together,
    config,
)
from .protocols import Memory, Runtime, VectorIndex
from .titlers import Gate, LiteralTitler
from .types import (
    CloneResult,
    IndexDescription,
    MemoryConfig,
    Message,
    OrderBy,
    RecallResult,
    Thread,
    ThreadPage,
    VectorHit,
    VectorRow,
)
from .values import copy_json, copy_message, copy_thread, identifier
from .well_formed import Malformed, well_formed

START = datetime(2024, 3, 1, 12, tzinfo=UTC)
"""Where a program's clock stands until it ticks."""

SETTLE_SECONDS = 20.0
"""How long a store may take to write titles that are made at once."""

VICTIM = -1
"""The number of the client whose process is killed."""

SPOILT = "spoilt-by-the-caller"
"""What the interpreter writes into every mutable value it gave or got, so that aliasing shows (VAL-4)."""


class Namespace(Protocol):
    """The namespace a program runs in: how to open one more client of it, and what it can do.

    `client` is the program's number of the client, from 0.
    """

    capabilities: Capabilities

    def open_memory(self, runtime: Runtime, config: MemoryConfig, client: int) -> Memory:
        """A client of its threads and messages."""
        ...

    def open_index(self, runtime: Runtime, client: int) -> VectorIndex:
        """A client of its vector indices."""
        ...

    def victim(self, runtime: Runtime, config: MemoryConfig, target: Target) -> Victim:
        """A client in a process of its own, to be killed. Unsupported where there is none."""
        ...


class Victim(Protocol):
    """A client whose process is going to be killed."""

    @property
    def client(self) -> Memory | VectorIndex:
        """It. A call that the process dies in raises whatever it may."""
        ...

    def kill(self) -> None:
        """Kill its process; a second time does nothing."""
        ...


class Killed(BaseException):
    """Ends a call at a fault point, where it is made in this process: nothing that handles errors gets to run."""


class Returned(msgspec.Struct, frozen=True):
    """The call returned this."""

    value: Any


class Refused(msgspec.Struct, frozen=True):
    """The call raised an error of the specification.

    clause and also (codes as right) are set by the model alone; during is the call of an `observe` that raised.
    """

    code: str
    message: str
    clause: str = ""
    also: tuple[str, ...] = ()
    during: str = ""


class Crashed(msgspec.Struct, frozen=True):
    """The call raised something the specification does not name, or returned what is no value of it.

    during as in Refused; clause is that of a malformed value.
    """

    kind: str
    message: str
    during: str = ""
    clause: str = ""


class Lost(msgspec.Struct, frozen=True):
    """What a call comes to whose process was killed in it, or whose answer did not arrive: it happened or not."""

    at: str


class Call(msgspec.Struct, frozen=True):
    """A call of a race: the `number`th of its branch, made between two ticks of a count that all branches share."""

    branch: int
    number: int
    began: int
    ended: int
    outcome: Outcome


class History(msgspec.Struct, frozen=True):
    """The calls of a race, branch by branch."""

    calls: tuple[Call, ...]

    @property
    def overlapping(self) -> bool:
        """Whether any two calls were under way at the same time."""
        return any(
            one.branch != other.branch and one.began < other.ended and other.began < one.ended
            for one, other in itertools.combinations(self.calls, 2)
        )


Outcome = Returned | Refused | Crashed
Transcript = tuple[Outcome, ...]


class Snapshot(msgspec.Struct, frozen=True):
    """All that can be seen.

    Of the memory, if the program used one: by thread id get_thread and the full ascending listing, the
    list of threads, and the index of embeddings. Of the indices named: their list, and by name the
    description and the rows of every id that was ever upserted.
    """

    threads: dict[str, Thread | None]
    rows: dict[str, RecallResult]
    listed: ThreadPage | None = None
    embeddings: IndexDescription | None = None
    indexes: tuple[str, ...] = ()
    described: dict[str, IndexDescription | None] = {}
    vectors: dict[str, tuple[VectorRow, ...]] = {}


class Standing(msgspec.Struct, frozen=True):
    """Where an interpreter stands: the clock, what was named so far, and whether the memory was used."""

    now: datetime
    threads: dict[str, None]
    vectors: dict[str, dict[str, None]]
    used_memory: bool


class Interpreter:
    """Runs operations one by one on the clients it opens. Use as a context manager: leaving closes them."""

    def __init__(self, program: Program, namespace: Namespace) -> None:
        self._namespace = namespace
        self._config = cast(MemoryConfig, config(program.options))
        self._embedder = LiteralEmbedder(program.embedder) if program.embedder else None
        self._titler = program.titler
        self._gates: dict[int, Gate] = {}
        self._memories: dict[int, Memory] = {}
        self._indexes: dict[int, VectorIndex] = {}
        self._now = START
        self._labels: dict[int, str] = {}
        self._name: Callable[[str], str] = str
        self._given: Counter[str] = Counter()
        self._used_memory = False
        self._during = ""
        self.threads: dict[str, None] = {}
        """Ids of the threads named so far, in order."""
        self.vectors: dict[str, dict[str, None]] = {}
        """By name of every index named so far, the ids of its vectors, in order."""

    def __enter__(self) -> Interpreter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its clients."""
        self._close()

    def run(self, operations: Iterable[Operation]) -> Transcript:
        """The outcomes of the operations, in order."""
        return tuple(self.step(operation) for operation in operations)

    def forget(self) -> None:
        """Forget all names, as if in an empty namespace; clients stay open."""
        self.threads.clear()
        self.vectors.clear()
        self._given.clear()

    def standing(self) -> Standing:
        """Where it stands: what calls and observations depend on beside what the namespace holds."""
        vectors = {name: dict(ids) for name, ids in self.vectors.items()}
        return Standing(self._now, dict(self.threads), vectors, self._used_memory)

    def stand(self, where: Standing, name: Callable[[str], str]) -> None:
        """Stand there. `name` gives an id for a label, instead of the program's own."""
        self._now, self._used_memory, self._name = where.now, where.used_memory, name
        self.threads = dict(where.threads)
        self.vectors = {name: dict(ids) for name, ids in where.vectors.items()}

    def pass_over(self, operation: Operation) -> None:
        """Stand where an operation leads, without doing it."""
        self._note(operation)
        if isinstance(operation, Tick):
            self._now += timedelta(milliseconds=operation.ms)
        calls = [call for call in _calls(operation) if call.role in ("read", "write")]
        self._used_memory = self._used_memory or any(call.target == "memory" for call in calls)

    def step(self, operation: Operation) -> Outcome:
        """Do one operation."""
        self._during = ""
        self._note(operation)
        match operation:
            case Tick():
                self._now += timedelta(milliseconds=operation.ms)
                return Returned(None)
            case Reopen():
                return self._attempt(self._reopen)
            case Observe():
                return self._attempt(self._observe, operation.client)
            case Together():
                return self._together(operation)
            case Settle():
                return self._settle(operation)
            case Race():
                return self._race(operation)
            case Kill():
                return self._kill(operation)
            case _:
                self._name_by(operation, operation.client)
                return self._call(operation)

    def _call(self, operation: Operation) -> Outcome:
        arguments = operation.arguments()
        client = self._memory if operation.target == "memory" else self._index
        outcome = self._attempt(lambda: operation.call(client(operation.client), arguments))
        spoil(arguments)
        return outcome

    def _settle(self, operation: Settle) -> Outcome:
        opened = self._attempt(lambda: self._memory(operation.client) and None)
        if not isinstance(opened, Returned):
            return opened
        gate = self._gates[operation.client]
        gate.open()
        try:
            return self._attempt(lambda: self._memory(operation.client).settle(timeout=SETTLE_SECONDS))
        finally:
            gate.shut()

    def _attempt(self, action: Callable[..., Any], *arguments: Any) -> Outcome:
        try:
            value = action(*arguments)
            well_formed(value)
            kept = keep(value)
            spoil(value)
            return Returned(kept)
        except Unavailable as error:
            # No outcome of a call: what the call comes to is not known.
            return Crashed(error.code, error.message, self._during)
        except StoreError as error:
            return Refused(error.code, error.message, error.clause, error.also, self._during)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except Malformed as error:
            return Crashed("Malformed", str(error), self._during, error.clause)
        except BaseException as error:  # noqa: BLE001
            # Whatever an engine's driver raises is an observation; some raise outside Exception.
            return Crashed(type(error).__name__, str(error), self._during)

    def _memory(self, number: int) -> Memory:
        self._used_memory = True
        if number not in self._memories:
            # A client that is opened anew has a gate of its own: what an earlier one has begun is not let through.
            gate = self._gates[number] = Gate(LiteralTitler())
            runtime = replace(self._runtime(number), titler=gate if self._titler else None)
            self._memories[number] = self._namespace.open_memory(runtime, self._config, number)
        return self._memories[number]

    def _index(self, number: int) -> VectorIndex:
        if number not in self._indexes:
            self._indexes[number] = self._namespace.open_index(self._runtime(number), number)
        return self._indexes[number]

    def _runtime(self, client: int, fault: Callable[[str], None] = Runtime.fault) -> Runtime:
        return Runtime(
            clock=lambda: self._now, new_id=lambda: self._new_id(client), embedder=self._embedder, fault=fault
        )

    def _name_by(self, operation: Operation, client: int) -> None:
        """Have the ids that the client is given from now on named as the operation says."""
        if isinstance(operation, CreateThread | CloneThread):
            self._labels[client] = operation.label

    def _new_id(self, client: int) -> str:
        """`label`, `label-2`, …: no id twice in a program."""
        label = self._name(self._labels.get(client, "generated"))
        self._given[label] += 1
        number = self._given[label]
        return label if number == 1 else f"{label}-{number}"

    def _close(self) -> None:
        while self._memories:
            number, memory = self._memories.popitem()
            memory.close()
            self._gates[number].open()
        while self._indexes:
            self._indexes.popitem()[1].close()

    def _reopen(self) -> None:
        if self._namespace.capabilities.durable:
            memories, indexes = list(self._memories), list(self._indexes)
            self._close()
            for number in memories:
                self._memory(number)
            for number in indexes:
                self._index(number)

    def _note(self, operation: Operation) -> None:
        for thread_id in operation.threads():
            if _valid_id(thread_id):
                self.threads[thread_id] = None
        for inner in _calls(operation):
            self._note_vectors(inner)

    def _note_vectors(self, operation: Operation) -> None:
        if isinstance(operation, IndexOperation) and _valid_id(name := resolve(operation.index)):
            ids = self.vectors.setdefault(name, {})
            ids.update((row_id, None) for row_id in operation.vector_ids() if _valid_id(row_id))

    def _observe(self, client: int) -> Snapshot:
        oldest_first = OrderBy(direction="ASC")
        snapshot = Snapshot({}, {})
        if self._used_memory:
            memory = self._memory(client)
            snapshot = Snapshot(
                threads={name: self._noted("get_thread", memory.get_thread, name) for name in self.threads},
                rows={
                    name: self._noted("recall", memory.recall, name, per_page=False, order_by=oldest_first)
                    for name in self.threads
                },
                listed=self._noted("list_threads", memory.list_threads, per_page=False, order_by=oldest_first),
                embeddings=self._noted("semantic_index", memory.semantic_index) if self._embedder else None,
            )
        if self.vectors and self._namespace.capabilities.vectors:
            index = self._index(client)
            listed = self._noted("list_indexes", index.list_indexes)
            snapshot = msgspec.structs.replace(
                snapshot,
                indexes=listed,
                described={
                    name: self._noted("describe_index", index.describe_index, name) if name in listed else None
                    for name in self.vectors
                },
                vectors={
                    name: self._noted("get_vectors", index.get_vectors, name, [*ids])
                    for name, ids in self.vectors.items()
                    if name in listed
                },
            )
        self._during = ""
        return snapshot

    def _noted(self, name: str, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Make one call of an observation, remembering which it is in case it raises."""
        self._during = name
        value = call(*arguments, **options)
        if not isinstance(value, SHOWS[name]):
            raise Malformed(f"{name} returned {type(value).__name__}", "")
        well_formed(value)
        return value

    def _together(self, operation: Together) -> Outcome:
        branches = operation.operations
        if not branches:
            return Returned(())
        # The clients are opened beforehand, so that what meets is the calls.
        opened = self._attempt(lambda: [self._memory(i) for i in range(len(branches))] and None)
        if not isinstance(opened, Returned):
            return opened
        arguments = [branch.arguments() for branch in branches]
        barrier = Barrier(len(branches))

        def branch(number: int) -> Outcome:
            barrier.wait()
            outcome = self._attempt(lambda: branches[number].call(self._memory(number), arguments[number]))
            # What a writer sees of the others is not determined: only that it was answered.
            return Returned(None) if isinstance(outcome, Returned) else outcome

        with ThreadPoolExecutor(len(branches)) as pool:
            return Returned(tuple(pool.map(branch, range(len(branches)))))

    def _race(self, operation: Race) -> Outcome:
        branches = operation.branches
        opened = self._attempt(lambda: [self._client(call, i) for i, calls in enumerate(branches) for call in calls])
        if not isinstance(opened, Returned):
            return opened
        barrier, ticks = Barrier(max(1, len(branches))), itertools.count()
        done: list[list[Call]] = [[] for _ in branches]

        def follow(branch: int) -> None:
            barrier.wait()
            for number, call in enumerate(branches[branch]):
                self._name_by(call, branch)
                arguments = call.arguments()
                began = next(ticks)
                outcome = self._attempt(call.call, self._client(call, branch), arguments)
                done[branch].append(Call(branch, number, began, next(ticks), outcome))
                spoil(arguments)

        # Daemons: a call that hangs must not keep the process from ending.
        workers = [Worker(target=follow, args=(branch,), daemon=True) for branch in range(len(branches))]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return Returned(History(tuple(call for calls in done for call in calls)))

    def _client(self, operation: Operation, number: int) -> Memory | VectorIndex:
        return self._memory(number) if operation.target == "memory" else self._index(number)

    def _kill(self, operation: Kill) -> Outcome:
        """The call's outcome, or that it is lost."""
        victim: Victim | None = None
        reached = 0
        killed = False

        def fault(point: str) -> None:
            nonlocal reached, killed
            reached += point == operation.point
            if point == operation.point and reached == operation.nth and victim is not None:
                killed = True
                victim.kill()
                raise Killed(point)

        call = operation.operation
        self._used_memory = self._used_memory or call.target == "memory"
        self._name_by(call, VICTIM)
        try:
            victim = self._namespace.victim(self._runtime(VICTIM, fault), self._config, call.target)
        except StoreError as error:
            return Refused(error.code, error.message, error.clause, error.also)
        arguments = call.arguments()
        try:
            outcome = self._attempt(call.call, victim.client, arguments)
        finally:
            victim.kill()
        spoil(arguments)
        return Returned(Lost(operation.point)) if killed else outcome


def run(program: Program, namespace: Namespace) -> Transcript:
    """The program's transcript on a fresh namespace. On a store that is not durable, reopen does nothing."""
    with Interpreter(program, namespace) as interpreter:
        return interpreter.run(program.operations)


def _calls(operation: Operation) -> Sequence[Operation]:
    """The calls that an operation stands for."""
    match operation:
        case Race():
            return [*operation.calls()]
        case Kill():
            return [operation.operation]
        case _:
            return [operation]


def _valid_id(name: object) -> bool:
    try:
        return bool(identifier(name, "id"))
    except InvalidRequest:
        return False


SHOWS: dict[str, tuple[type[Any], ...]] = {
    "get_thread": (Thread, type(None)),
    "recall": (RecallResult,),
    "list_threads": (ThreadPage,),
    "semantic_index": (IndexDescription, type(None)),
    "list_indexes": (list, tuple),
    "describe_index": (IndexDescription,),
    "get_vectors": (list, tuple),
}
"""What the calls of an observation return."""


def keep(value: Any) -> Any:
    """A copy of a returned value that shares nothing mutable with it."""
    match value:
        case Message():
            return copy_message(value)
        case Thread():
            return copy_thread(value)
        case RecallResult():
            return msgspec.structs.replace(
                value, messages=tuple(keep(item) for item in value.messages), hits=tuple(value.hits)
            )
        case ThreadPage():
            return msgspec.structs.replace(value, threads=tuple(keep(item) for item in value.threads))
        case CloneResult():
            return CloneResult(keep(value.thread), keep(value.cloned_messages), dict(value.id_map))
        case VectorRow():
            return VectorRow(value.id, tuple(value.vector), copy_json(value.metadata))
        case VectorHit():
            return VectorHit(value.id, value.score, copy_json(value.metadata))
        case Snapshot():
            return msgspec.structs.replace(
                value,
                threads={thread_id: keep(thread) for thread_id, thread in value.threads.items()},
                rows={thread_id: keep(rows) for thread_id, rows in value.rows.items()},
                listed=keep(value.listed),
                vectors={name: keep(rows) for name, rows in value.vectors.items()},
            )
        case list() | tuple():
            return tuple(keep(item) for item in cast("list[Any]", value))
        case _:
            return value


def spoil(value: Any) -> None:
    """Write into every mutable container reachable from the value, as a careless caller might."""
    match value:
        case dict():
            pairs = cast("dict[Any, Any]", value)
            for item in list(pairs.values()):
                spoil(item)
            pairs[SPOILT] = True
        case list():
            items = cast("list[Any]", value)
            for item in list(items):
                spoil(item)
            items.append(SPOILT)
        case tuple():
            for item in cast("tuple[Any, ...]", value):
                spoil(item)
        case Snapshot():
            for item in (*value.threads.values(), *value.rows.values(), value.listed, *value.vectors.values()):
                spoil(item)
        case msgspec.Struct():
            for field in value.__struct_fields__:
                spoil(getattr(value, field))
        case _:
            return


def spoilt(value: Any) -> bool:
    """Whether a value holds what the interpreter wrote into an argument or a result."""
    match value:
        case str():
            return value == SPOILT
        case dict():
            pairs = cast("dict[Any, Any]", value)
            return SPOILT in pairs or any(spoilt(item) for item in pairs.values())
        case list() | tuple():
            return any(spoilt(item) for item in cast("Sequence[Any]", value))
        case msgspec.Struct():
            return any(spoilt(getattr(value, field)) for field in value.__struct_fields__)
        case _:
            return False
