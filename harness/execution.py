"""One program on one engine: run within a time limit, and judged."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager

import msgspec

from ..backends.provision import interruption
from ..spec.divergence import Divergence
from ..spec.errors import Unsupported
from ..spec.interpreter import Crashed, Interpreter, Outcome, Transcript, Victim
from ..spec.judge import MAIN_CLAUSE, judge
from ..spec.operation import Target
from ..spec.program import AnyOperation, Program, Reopen
from ..spec.protocols import Backend, Memory, Runtime, VectorIndex
from ..spec.types import MemoryConfig
from .engine import Engine, Namespaces
from .remote import SecondProcess
from .timing import TimeOut, time_limit

TIME_LIMIT = 60.0
"""Seconds a program may take."""

CLOSE_LIMIT = 5.0
"""Seconds that closing a client may take once its program is over."""

HASTE = 1e-5
"""Seconds a thread of a race may run before others get their turn."""

TIME_OUT = "time-out"
"""The aspect of a divergence that is a program not coming to its end."""


class Execution(msgspec.Struct, frozen=True):
    """What a program did on a store. `program` ends where the store hung or broke, if it did."""

    program: Program
    transcript: Transcript
    divergences: tuple[Divergence, ...]
    seconds: float

    @property
    def timed_out(self) -> bool:
        """Whether the time limit struck."""
        return any(divergence.aspect == TIME_OUT for divergence in self.divergences)


def execute(engine: Engine, namespace: str, program: Program, limit: float = TIME_LIMIT) -> Execution:
    """Run the program in an empty namespace and judge what it did there."""
    began = time.perf_counter()
    ran, transcript, timed_out = _run(program, _Opened(engine, namespace), limit)
    seconds = time.perf_counter() - began
    divergences = judge(ran, transcript, engine.capabilities)
    if timed_out:
        divergences = _with_time_out(ran, divergences, limit)
    return Execution(ran, transcript, divergences, seconds)


def execute_in(namespaces: Namespaces, engine: Engine, program: Program, limit: float = TIME_LIMIT) -> Execution:
    """The same in a leased namespace; one in which a program hung is not used again."""
    interruption.check()
    with namespaces.lease() as namespace:
        execution = execute(engine, namespace, program, limit)
        if execution.timed_out:
            namespaces.retire()
        return execution


@contextmanager
def hasty(program: Program) -> Generator[None]:
    """While a program with a race runs, have threads take turns quickly.

    What is done within this process then overlaps, as what servers do.
    """
    before = sys.getswitchinterval()
    if program.undetermined:
        sys.setswitchinterval(HASTE)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


class _Opened:
    """A namespace of an engine that remembers the clients opened in it; implements interpreter.Namespace."""

    def __init__(self, engine: Engine, namespace: str) -> None:
        self.capabilities = engine.capabilities
        self._engine = engine
        self._namespace = namespace
        self.clients: list[Memory | VectorIndex] = []

    @property
    def lost(self) -> bool:
        """Whether a client says, by `lost`, that its process is gone: what came after would be put to another."""
        return any(getattr(client, "lost", False) for client in self.clients)

    def open_memory(self, runtime: Runtime, config: MemoryConfig, client: int) -> Memory:
        """See interpreter.Namespace."""
        opener = self._opener(client)
        memory = opener.open_memory(self._engine.endpoint.url, self._namespace, runtime, config)
        self.clients.append(memory)
        return memory

    def open_index(self, runtime: Runtime, client: int) -> VectorIndex:
        """See interpreter.Namespace; a backend without vectors may leave open_index out."""
        if not self.capabilities.vectors and not hasattr(self._engine.backend, "open_index"):
            raise Unsupported("vector indices")
        index = self._opener(client).open_index(self._engine.endpoint.url, self._namespace, runtime)
        self.clients.append(index)
        return index

    def victim(self, runtime: Runtime, config: MemoryConfig, target: Target) -> Victim:
        """See interpreter.Namespace."""
        if self._engine.victims is None:
            raise Unsupported("clients in processes of their own")
        return self._engine.victims.open(target, self._engine.endpoint.url, self._namespace, runtime, config)

    def _opener(self, client: int) -> Backend | SecondProcess:
        """Who opens a client: the first is of this process, others of another where one can reach the namespace."""
        return self._engine.second if client and self._engine.second is not None else self._engine.backend


def _run(program: Program, namespace: _Opened, limit: float) -> tuple[Program, Transcript, bool]:
    """The program as far as it came, its transcript, and whether time ran out.

    What stops it counts as a crash of the operation at hand; what stops the closing, of a reopen.
    """
    outcomes: list[Outcome] = []
    timed_out = False
    try:
        with time_limit(limit), hasty(program), Interpreter(program, namespace) as interpreter:
            for operation in program.operations:
                outcomes.append(interpreter.step(operation))
                if isinstance(outcomes[-1], Crashed) and namespace.lost:
                    break
        return msgspec.structs.replace(program, operations=program.operations[: len(outcomes)]), tuple(outcomes), False
    except (KeyboardInterrupt, Exception) as error:  # noqa: BLE001 - what a driver raises on closing is an observation
        interruption = _interruption(error)
        if interruption is not None and not isinstance(interruption, TimeOut):
            raise interruption from None
        timed_out, crash = interruption is not None, _crash(interruption or error)
    finally:
        _close(namespace.clients, min(limit, CLOSE_LIMIT))
    done = program.operations[: len(outcomes)]
    if len(outcomes) < len(program.operations):
        stopped: tuple[AnyOperation, ...] = (*done, program.operations[len(outcomes)])
    elif done and isinstance(done[-1], Reopen):
        stopped = done
        outcomes.pop()
    else:
        stopped = (*done, Reopen())
    return msgspec.structs.replace(program, operations=stopped), (*outcomes, crash), timed_out


def _interruption(error: BaseException | None) -> KeyboardInterrupt | None:
    """What interrupted the program, also where a client that cannot be closed because of it raised something else."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error


def _crash(error: BaseException) -> Crashed:
    return Crashed(type(error).__name__, str(error))


def _close(clients: Sequence[Memory | VectorIndex], limit: float) -> None:
    """Close what may still be open; a second close does nothing, and a failing one was noted before."""
    for client in clients:
        try:
            with time_limit(limit):
                client.close()
        except (TimeOut, Exception):  # noqa: BLE001
            continue


def _with_time_out(program: Program, found: tuple[Divergence, ...], limit: float) -> tuple[Divergence, ...]:
    """What was found before the last operation, and that this did not come to its end."""
    index = len(program.operations) - 1
    name = program.operations[index].name
    blamed = next((item.clause for item in found if item.index == index), MAIN_CLAUSE.get(name, "CAP-1"))
    hung = Divergence(blamed, TIME_OUT, name, index, f"an outcome within {limit:g} s", "none", crashed=True)
    return (*(item for item in found if item.index < index), hung)
