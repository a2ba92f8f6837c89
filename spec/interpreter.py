"""The one interpreter: runs a program on any store and yields its transcript, one outcome an operation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import Any, cast

import msgspec

from .errors import InvalidRequest, StoreError
from .program import AnyOperation, CreateThread, Observe, Operation, Program, Reopen, Tick, Together, config
from .protocols import Memory, Runtime
from .types import MemoryConfig, Message, OrderBy, RecallResult, Thread, ThreadPage
from .values import copy_message, copy_thread, identifier

START = datetime(2024, 3, 1, 12, tzinfo=UTC)
"""Where a program's clock stands until it ticks."""

SPOILT = "spoilt-by-the-caller"
"""What the interpreter writes into every mutable value it gave or got, so that aliasing shows (VAL-4)."""

Open = Callable[[Runtime, MemoryConfig], Memory]
"""How to open one more client of the namespace a program runs in."""


class Returned(msgspec.Struct, frozen=True):
    """The call returned this."""

    value: Any


class Refused(msgspec.Struct, frozen=True):
    """The call raised an error of the specification. `clause` is set by the model alone; `also` are codes as right."""

    code: str
    message: str
    clause: str = ""
    also: tuple[str, ...] = ()


class Crashed(msgspec.Struct, frozen=True):
    """The call raised something the specification does not name."""

    kind: str
    message: str


Outcome = Returned | Refused | Crashed
Transcript = tuple[Outcome, ...]


class Snapshot(msgspec.Struct, frozen=True):
    """All that can be seen: by thread id get_thread and the full ascending listing, and the list of threads."""

    threads: dict[str, Thread | None]
    rows: dict[str, RecallResult]
    listed: ThreadPage


class Interpreter:
    """Runs operations one by one on the clients it opens. Use as a context manager: leaving closes them."""

    def __init__(self, open_client: Open, options: dict[str, Any], *, durable: bool = True) -> None:
        self._open = open_client
        self._config = cast(MemoryConfig, config(options))
        self._durable = durable
        self._clients: dict[int, Memory] = {}
        self._now = START
        self._label = "generated"
        self._given = 0
        self.threads: dict[str, None] = {}
        """Ids of the threads named so far, in order."""

    def __enter__(self) -> Interpreter:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def run(self, operations: Iterable[AnyOperation]) -> Transcript:
        """The outcomes of the operations, in order."""
        return tuple(self.step(operation) for operation in operations)

    def step(self, operation: Operation) -> Outcome:
        """Do one operation."""
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
            case _:
                if isinstance(operation, CreateThread):
                    self._label, self._given = operation.label, 0
                return self._call(operation)

    def _call(self, operation: Operation) -> Outcome:
        arguments = operation.arguments()
        outcome = self._attempt(lambda: operation.call(self._client(operation.client), arguments))
        spoil(arguments)
        return outcome

    def _attempt(self, action: Callable[..., Any], *arguments: Any) -> Outcome:
        try:
            value = action(*arguments)
            kept = keep(value)
            spoil(value)
            return Returned(kept)
        except StoreError as error:
            return Refused(error.code, error.message, error.clause, error.also)
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001
            # Whatever an engine's driver raises is an observation; some raise outside Exception.
            return Crashed(type(error).__name__, str(error))

    def _client(self, number: int) -> Memory:
        if number not in self._clients:
            runtime = Runtime(clock=lambda: self._now, new_id=self._new_id)
            self._clients[number] = self._open(runtime, self._config)
        return self._clients[number]

    def _new_id(self) -> str:
        self._given += 1
        return self._label if self._given == 1 else f"{self._label}-{self._given}"

    def _close(self) -> None:
        while self._clients:
            self._clients.popitem()[1].close()

    def _reopen(self) -> None:
        if self._durable:
            numbers = list(self._clients)
            self._close()
            for number in numbers:
                self._client(number)

    def _note(self, operation: Operation) -> None:
        for thread_id in operation.threads():
            try:
                self.threads[identifier(thread_id, "thread_id")] = None
            except InvalidRequest:
                continue

    def _observe(self, client: int) -> Snapshot:
        memory = self._client(client)
        oldest_first = OrderBy(direction="ASC")
        return Snapshot(
            threads={thread_id: memory.get_thread(thread_id) for thread_id in self.threads},
            rows={
                thread_id: memory.recall(thread_id, per_page=False, order_by=oldest_first) for thread_id in self.threads
            },
            listed=memory.list_threads(per_page=False, order_by=oldest_first),
        )

    def _together(self, operation: Together) -> Outcome:
        branches = operation.operations
        if not branches:
            return Returned(())
        # The clients are opened beforehand, so that what meets is the calls.
        opened = self._attempt(lambda: [self._client(i) for i in range(len(branches))] and None)
        if not isinstance(opened, Returned):
            return opened
        barrier = Barrier(len(branches))

        def branch(number: int) -> Outcome:
            arguments = branches[number].arguments()
            barrier.wait()
            outcome = self._attempt(lambda: branches[number].call(self._client(number), arguments))
            # What a writer sees of the others is not determined: only that it was answered.
            return Returned(None) if isinstance(outcome, Returned) else outcome

        with ThreadPoolExecutor(len(branches)) as pool:
            return Returned(tuple(pool.map(branch, range(len(branches)))))


def run(program: Program, open_client: Open, *, durable: bool = True) -> Transcript:
    """The program's transcript on a fresh namespace. On a store that is not durable, reopen does nothing."""
    with Interpreter(open_client, program.options, durable=durable) as interpreter:
        return interpreter.run(program.operations)


def keep(value: Any) -> Any:
    """A copy of a returned value that shares nothing mutable with it."""
    match value:
        case Message():
            return copy_message(value)
        case Thread():
            return copy_thread(value)
        case RecallResult():
            return msgspec.structs.replace(value, messages=tuple(keep(item) for item in value.messages))
        case ThreadPage():
            return msgspec.structs.replace(value, threads=tuple(keep(item) for item in value.threads))
        case Snapshot():
            return Snapshot(
                {thread_id: keep(thread) for thread_id, thread in value.threads.items()},
                {thread_id: keep(rows) for thread_id, rows in value.rows.items()},
                keep(value.listed),
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
            for item in (*value.threads.values(), *value.rows.values(), value.listed):
                spoil(item)
        case msgspec.Struct():
            for field in value.__struct_fields__:
                spoil(getattr(value, field))
        case _:
            return
