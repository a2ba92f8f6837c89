"""Write storms that a fault strikes: what was acknowledged is noted outside the engine, and looked for afterwards.

Each writer has a namespace and a client of its own, so that what it was told is a program with one call in doubt at
its end, and what it left is judged like any program's (judge_histories.py): all that was acknowledged is there, and
the call in doubt happened or not. So a round that fails leaves a case, which holds the ledger.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from random import Random
from typing import Any, Protocol

import msgspec

from ..spec.capabilities import Capabilities
from ..spec.divergence import Divergence
from ..spec.errors import Unavailable, Unsupported
from ..spec.interpreter import Crashed, Interpreter, Lost, Namespace, Outcome, Returned, Victim
from ..spec.judge import judge
from ..spec.operation import Target
from ..spec.program import AnyOperation, GetThread, Kill, ListIndexes, Observe, Program
from ..spec.protocols import Memory, Runtime, VectorIndex
from ..spec.strategies import storms
from ..spec.types import MemoryConfig
from .faults import Fault

WRITERS = 4
LENGTH = 160
"""Calls of a writer at most."""

FIRST, LAST = 10, 90
"""Between how many acknowledged calls, of all writers, the fault strikes."""

SLACK = 0.01
"""Seconds at most between the call that gives the sign and the fault."""

PATIENCE = 120.0
"""Seconds that writers may take to end, and engines and clients to recover."""

POLL = 0.05
DOUBT = "the fault"
"""The point at which a call in doubt was."""


class Opener(Protocol):
    """Opens clients of namespaces: a backend on its URL, here or in another process."""

    def open_memory(self, url: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> Memory:
        """See protocols.Backend."""
        ...

    def open_index(self, url: str, namespace: str, runtime: Runtime) -> VectorIndex:
        """See protocols.Backend."""
        ...


class Place(msgspec.Struct):
    """A namespace, as clients of one opener see it; implements interpreter.Namespace."""

    opener: Opener
    url: str
    name: str
    capabilities: Capabilities

    def open_memory(self, runtime: Runtime, config: MemoryConfig, client: int) -> Memory:
        """See interpreter.Namespace."""
        return self.opener.open_memory(self.url, self.name, runtime, config)

    def open_index(self, runtime: Runtime, client: int) -> VectorIndex:
        """See interpreter.Namespace."""
        return self.opener.open_index(self.url, self.name, runtime)

    def victim(self, runtime: Runtime, config: MemoryConfig, target: Target) -> Victim:
        """See interpreter.Namespace."""
        raise Unsupported("clients in processes of their own")


class Ledger(msgspec.Struct):
    """What one writer was told, kept outside the engine."""

    program: Program
    """All that it was going to do."""
    outcomes: list[Outcome] = []
    """What came of the calls that were answered."""
    broken: Crashed | None = None
    """What the call in doubt raised; None when none is."""

    @property
    def doubtful(self) -> AnyOperation | None:
        """The call whose answer did not come."""
        return None if self.broken is None else self.program.operations[len(self.outcomes)]

    @property
    def look(self) -> AnyOperation:
        """A call that reads and changes nothing."""
        index = self.program.operations[0].target == "index"
        return ListIndexes() if index else GetThread(thread_id="t")

    def history(self, seen: Outcome) -> tuple[Program, tuple[Outcome, ...]]:
        """The program as far as it came, with the call in doubt, and what was observed afterwards."""
        call: Any = self.doubtful or self.look
        done = self.program.operations[: len(self.outcomes)]
        program = msgspec.structs.replace(
            self.program, operations=(*done, Kill(operation=call, point=DOUBT), Observe())
        )
        return program, (*self.outcomes, Returned(Lost(DOUBT)), seen)


class Found(msgspec.Struct, frozen=True):
    """What is wrong with what one writer was told or found: its program and transcript, and how they deviate."""

    program: Program
    transcript: tuple[Outcome, ...]
    divergence: Divergence


class Round(msgspec.Struct, frozen=True):
    """What came of one storm."""

    acknowledged: int
    doubtful: int
    found: tuple[Found, ...]


class Storm:
    """A storm: one writer for each place, and a fault that strikes at some point of it."""

    def __init__(
        self, places: Sequence[Namespace], bystanders: Sequence[Namespace], rng: Random, *, bulk: int = 0
    ) -> None:
        """`bystanders` are the same namespaces, as clients see them that the fault does not hit."""
        self._rng = rng
        self._places = places
        self._bystanders = bystanders
        capabilities = places[0].capabilities
        kinds = storms.kinds(capabilities)
        self.ledgers = [
            Ledger(storms.writer(Random(rng.getrandbits(64)), kinds[i % len(kinds)], LENGTH, capabilities, bulk), [])
            for i in range(len(places))
        ]
        self._told = threading.Condition()
        self._acknowledged = 0
        self._over = threading.Event()

    def run(self, fault: Fault) -> Round:
        """Let it loose, strike, mend, and look at what is there. Raises EngineUnavailable."""
        interpreters = [
            Interpreter(ledger.program, place) for ledger, place in zip(self.ledgers, self._places, strict=True)
        ]
        watching = [
            Interpreter(ledger.program, place) for ledger, place in zip(self.ledgers, self._bystanders, strict=True)
        ]
        try:
            everybody = interpreters if self._places is self._bystanders else [*interpreters, *watching]
            for interpreter, look in zip(
                everybody, itertools.cycle(ledger.look for ledger in self.ledgers), strict=False
            ):
                interpreter.step(look)  # Opens its client: what the storm is about is calls.
            hung = self._let_loose(interpreters, fault)
            fault.mend()
            if hung:
                return self._round([*map(self._hung, hung)])
            alive = everybody[-len(self.ledgers) :]
            return self._round([found for i in range(len(self.ledgers)) for found in self._judged(i, alive[i])])
        finally:
            for interpreter in (*interpreters, *watching):
                _close(interpreter)

    def _round(self, found: Sequence[Found]) -> Round:
        doubtful = sum(ledger.broken is not None for ledger in self.ledgers)
        return Round(sum(len(ledger.outcomes) for ledger in self.ledgers), doubtful, tuple(found))

    def _let_loose(self, interpreters: Sequence[Interpreter], fault: Fault) -> list[Ledger]:
        """The writers that did not end."""
        writers = [
            threading.Thread(target=self._write, args=(interpreter, ledger), daemon=True)
            for interpreter, ledger in zip(interpreters, self.ledgers, strict=True)
        ]
        for writer in writers:
            writer.start()
        self._wait(self._rng.randint(FIRST, LAST), writers)
        time.sleep(self._rng.uniform(0, SLACK))
        fault.strike(self._rng)
        self._wait(self._acknowledged + fault.after, writers)
        self._over.set()
        deadline = time.monotonic() + PATIENCE
        for writer in writers:
            writer.join(max(0.0, deadline - time.monotonic()))
        return [ledger for ledger, writer in zip(self.ledgers, writers, strict=True) if writer.is_alive()]

    def _wait(self, many: int, writers: Sequence[threading.Thread]) -> None:
        """Until so many calls were acknowledged, or there is nobody left to make them."""
        deadline = time.monotonic() + PATIENCE
        with self._told:
            while self._acknowledged < many and time.monotonic() < deadline:
                if not any(writer.is_alive() for writer in writers):
                    return
                self._told.wait(POLL)

    def _write(self, interpreter: Interpreter, ledger: Ledger) -> None:
        for operation in ledger.program.operations:
            if self._over.is_set():
                return
            outcome = interpreter.step(operation)
            if isinstance(outcome, Crashed):
                ledger.broken = outcome
                return
            with self._told:
                ledger.outcomes.append(outcome)
                self._acknowledged += 1
                self._told.notify_all()

    def _judged(self, number: int, alive: Interpreter) -> list[Found]:
        """What is wrong with a writer's part, by a client that lived through it, and by a new one."""
        ledger, place = self.ledgers[number], self._bystanders[number]
        found: list[Found] = []
        if ledger.broken is not None and not _typed(ledger.broken) and self._places is self._bystanders:
            found.append(_failure(ledger, "error", ledger.broken))
        _pass_over(alive, ledger)
        survived = _observed(alive)
        if isinstance(survived, Crashed):
            return [*found, _failure(ledger, "error" if not _typed(survived) else "recovery", survived)]
        with Interpreter(ledger.program, place) as fresh:
            _pass_over(fresh, ledger)
            seen = _settled(fresh)
        program, transcript = ledger.history(seen)
        divergences = judge(program, transcript, place.capabilities)
        return [*found, *(Found(program, transcript, divergence) for divergence in divergences[:1])]

    def _hung(self, ledger: Ledger) -> Found:
        return _failure(ledger, "recovery", Crashed("TimeOut", f"a call did not return within {PATIENCE:g} s"))


def _pass_over(interpreter: Interpreter, ledger: Ledger) -> None:
    """Have it know of all that the writer named."""
    program, _ = ledger.history(Returned(None))
    for operation in program.operations:
        interpreter.pass_over(operation)


def _typed(crash: Crashed) -> bool:
    """Whether the error is one of the specification's."""
    return crash.kind == Unavailable.code


def _failure(ledger: Ledger, aspect: str, got: Crashed) -> Found:
    program, transcript = ledger.history(got)
    index = len(program.operations) - (2 if aspect == "error" else 1)
    wanted = "the error `unavailable`, or none" if aspect == "error" else "an answer, once the engine is back"
    name = (ledger.doubtful or Observe()).name if aspect == "error" else "observe"
    return Found(program, transcript, Divergence("DUR-1a", aspect, name, index, wanted, got, crashed=True))


def _observed(interpreter: Interpreter) -> Outcome:
    """What a client sees that lived through a fault: errors of the specification are put up with for a while."""
    deadline = time.monotonic() + PATIENCE
    while True:
        seen = interpreter.step(Observe())
        if not isinstance(seen, Crashed) or not _typed(seen) or time.monotonic() > deadline:
            return seen
        time.sleep(POLL)


def _settled(interpreter: Interpreter) -> Outcome:
    """What is there once nothing changes any more: a call in doubt may still be under way in the engine."""
    deadline = time.monotonic() + PATIENCE
    before, alike = _observed(interpreter), 0
    while alike < 2 and time.monotonic() < deadline:
        time.sleep(POLL)
        now = _observed(interpreter)
        before, alike = now, alike + 1 if now == before else 0
    return before


def _close(interpreter: Interpreter) -> None:
    """Its clients may be broken, and what they raise was noted before."""
    try:
        interpreter.close()
    except Exception:  # noqa: BLE001
        return
