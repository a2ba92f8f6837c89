"""Runs the suite against mutants, stores with one fault each: what kills each, how fast, and what else it fails."""

from __future__ import annotations

import os
import platform
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from importlib.metadata import entry_points
from multiprocessing import get_context, parent_process
from multiprocessing.synchronize import Event
from statistics import median
from threading import Thread
from typing import Literal, Protocol, cast

import msgspec

from ..backends.provision import interruption
from ..spec.capabilities import Capabilities
from ..spec.clauses import CLAUSES, Level
from ..spec.compare import same
from ..spec.divergence import Divergence
from ..spec.interpreter import Namespace, Transcript, run
from ..spec.judge import expect, judge
from ..spec.program import Program
from ..spec.protocols import Backend, Memory, Runtime, VectorIndex
from ..spec.types import MemoryConfig
from . import artefact, events
from .artefact import Kill, KillMatrix, KillSummary, MutantResult
from .corpus import Entry
from .engine import Engine, Namespaces
from .execution import execute_in
from .exits import UsageProblem
from .programs import cut, needs
from .shrink import MAX_RUNS, shrink

GROUP = "memassay.mutants"
"""The entry points that name mappings of mutants by id."""

HEAVY = {"window": "ORD-3b", "approximate": "VEC-5"}
"""Scenarios whose programs take seconds, each with the only clause whose mutants run them."""

ON_MODEL, ON_ENGINE = 300, 8
"""Programs of the matrix, by default: on the model, and on an engine, where they take longer."""


SHRINK_ON_ENGINE = 1.0
"""Seconds for making a program small on an engine: how small it gets is measured on the model."""


class Mutant(Protocol):
    """A store with exactly one fault; see memassay.mutants."""

    @property
    def id(self) -> str:
        """Its name."""
        ...

    @property
    def clause(self) -> str:
        """The clause that it breaks."""
        ...

    @property
    def report(self) -> str:
        """A public report of the same fault, or nothing."""
        ...

    @property
    def description(self) -> str:
        """The fault in a sentence."""
        ...

    @property
    def half(self) -> Literal["memory", "index"]:
        """Which client the fault is in."""
        ...

    @property
    def also(self) -> tuple[str, ...]:
        """Clauses of other families, at most three, that the fault may show in."""
        ...

    @property
    def obstacle(self) -> str:
        """Why it cannot be laid over an engine; empty when it can."""
        ...

    def namespace(self) -> Namespace:
        """A fresh namespace of the faulty model."""
        ...

    def over_memory(self, real: Memory, runtime: Runtime, config: MemoryConfig, capabilities: Capabilities) -> Memory:
        """The fault laid over a client that is right."""
        ...

    def over_index(self, real: VectorIndex, capabilities: Capabilities) -> VectorIndex:
        """The same for a client of vector indices."""
        ...


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Which mutants are run against which programs.

    corpora: the programs by seed. engine: what the mutants are laid over; None for the model.
    matrix: how many programs every mutant runs, beside those until it is killed.
    """

    mutants: tuple[Mutant, ...]
    level: Level
    corpora: Mapping[int, tuple[Entry, ...]]
    engine: Engine | None = None
    over: str = ""
    matrix: int = ON_MODEL
    jobs: int = 1
    shrink_runs: int = MAX_RUNS
    shrink_seconds: float = 10.0


class Interrupted(Exception):
    """The run was stopped; what this mutant showed so far is dropped."""


def load(chosen: Sequence[str] = ()) -> tuple[Mutant, ...]:
    """Every mutant installed, in the order of clauses; `chosen` (families, clauses or ids) narrows. UsageProblem."""
    found: dict[str, Mutant] = {}
    for point in entry_points(group=GROUP):
        found |= cast("Mapping[str, Mutant]", point.load())
    if not found:
        raise UsageProblem("no mutants are installed", hint=f"they come as entry points of the group {GROUP}")
    for name in chosen:
        if not any(name in _names(mutant) for mutant in found.values()):
            raise UsageProblem(f"there is no mutant of {name!r}", hint="give a family, a clause, or a mutant's id")
    order = {clause: number for number, clause in enumerate(CLAUSES)}
    some = [mutant for mutant in found.values() if not chosen or not _names(mutant).isdisjoint(chosen)]
    return tuple(sorted(some, key=lambda mutant: order[mutant.clause]))


def _names(mutant: Mutant) -> set[str]:
    return {mutant.id, mutant.clause, _family(mutant.clause)}


def _family(clause: str) -> str:
    return clause.partition("-")[0]


def matrix(plan: Plan, emit: events.Emit = events.ignore) -> KillMatrix:
    """Run every mutant. Ctrl-C ends the run; what was learned so far is returned, marked so."""
    began = time.perf_counter()
    done: dict[str, MutantResult] = {}
    interrupted = False
    context = get_context("fork")
    stop = context.Event()
    with ProcessPoolExecutor(plan.jobs, mp_context=context, initializer=_begin, initargs=(plan, stop)) as pool:
        futures: dict[Future[MutantResult], Mutant] = {
            pool.submit(_examined_by_worker, number): mutant for number, mutant in enumerate(plan.mutants)
        }
        try:
            for future in as_completed(futures):
                interruption.check()
                result = future.result()
                done[result.id] = result
                survivors = sum(mutant.survives for mutant in done.values())
                emit(events.MutantRan(result.id, len(done), len(plan.mutants), survivors))
        except KeyboardInterrupt:
            interrupted = True
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
    results = [done[mutant.id] for mutant in plan.mutants if mutant.id in done]
    return KillMatrix(
        memassay=artefact.own_version(),
        python=platform.python_version(),
        hypothesis=artefact.version_of("hypothesis"),
        level=plan.level,
        seeds=[*plan.corpora],
        over=plan.over,
        engine="" if plan.engine is None else plan.engine.version,
        interrupted=interrupted,
        seconds=round(time.perf_counter() - began, 3),
        summary=summary(results),
        mutants=results,
    )


_plan: Plan | None = None
_examiner: Examiner | None = None


def _begin(plan: Plan, stop: Event) -> None:
    """A worker: Ctrl-C is the parent's to handle, which tells by the event; without a parent there is nothing to do."""
    global _plan, _examiner
    Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _plan, _examiner = plan, Examiner(plan, stop.is_set)


def _end_with_parent() -> None:
    """Wait for the parent's death: a worker would wait for ever for its next mutant."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _examined_by_worker(number: int) -> MutantResult:
    assert _plan is not None
    assert _examiner is not None
    return _examiner.examine(_plan.mutants[number])


class Examiner:
    """Runs mutants one by one; remembers the model's answers from one to the next."""

    def __init__(self, plan: Plan, stopped: Callable[[], bool] = lambda: False) -> None:
        self._plan = plan
        self._stopped = stopped
        self._expected: dict[str, Transcript] = {}

    def examine(self, mutant: Mutant) -> MutantResult:
        """What every seed's programs did to the mutant. Raises Interrupted."""
        obstacle = mutant.obstacle if self._plan.engine is not None else ""
        kills: list[Kill] = []
        if not obstacle:
            for seed, entries in self._plan.corpora.items():
                with _Subject(mutant, self._plan.engine, self._expected) as subject:
                    kills.append(self._kill(subject, seed, entries))
        return MutantResult(
            id=mutant.id,
            clause=mutant.clause,
            report=mutant.report,
            description=mutant.description,
            also=list(mutant.also),
            obstacle=obstacle,
            kills=kills,
        )

    def _kill(self, subject: _Subject, seed: int, entries: Sequence[Entry]) -> Kill:
        mutant = subject.mutant
        failing: Counter[str] = Counter()
        shown: dict[str, tuple[Divergence, ...]] = {}
        began, programs, killer, seconds = time.perf_counter(), 0, None, 0.0
        for entry in self._in_order(subject, entries):
            if self._stopped():
                raise Interrupted
            programs += 1
            shown[entry.hash] = subject.found(entry.program, entry.hash)
            own = [found for found in shown[entry.hash] if _family(found.clause) == _family(mutant.clause)]
            if own:
                killer = entry, own[0]
                break
        seconds = time.perf_counter() - began
        for entry in _sample(mutant, entries, self._plan.matrix):
            if self._stopped():
                raise Interrupted
            if entry.hash not in shown:
                shown[entry.hash] = subject.found(entry.program, entry.hash)
        for divergences in shown.values():
            failing.update({found.clause for found in divergences})
        small, minimal = (None, False) if killer is None else self._shrunk(subject, *killer)
        return Kill(
            seed=seed,
            blamed=None if killer is None else killer[1].clause,
            programs=programs,
            seconds=round(seconds, 4),
            operations=0 if small is None else len(small.operations),
            minimal=minimal,
            failing={clause: failing[clause] for clause in CLAUSES if failing[clause]},
            matrix=len(shown),
        )

    def _in_order(self, subject: _Subject, entries: Sequence[Entry]) -> Iterator[Entry]:
        """The programs that exercise the family; on an engine, where each takes long, the likeliest first."""
        mutant = subject.mutant
        if self._plan.engine is None:
            yield from _own(mutant, entries)
            return
        on_model = _Subject(mutant, None, self._expected)
        killer = next((entry for entry in _own(mutant, entries) if self._killed_by(on_model, entry)), None)
        if killer is not None:
            yield killer
        yield from (entry for entry in _own(mutant, entries) if entry is not killer)

    def _killed_by(self, subject: _Subject, entry: Entry) -> bool:
        """Whether a program blames the mutant on its own family."""
        if self._stopped():
            raise Interrupted
        family = _family(subject.mutant.clause)
        return any(_family(found.clause) == family for found in subject.found(entry.program, entry.hash))

    def _shrunk(self, subject: _Subject, entry: Entry, wanted: Divergence) -> tuple[Program, bool]:
        """The smallest program of the same finding; a heavy one is only cut after it."""

        def fails(candidate: Program) -> bool:
            return any(found.signature == wanted.signature for found in subject.found(candidate))

        short = cut(entry.program, wanted.index)
        best = short if fails(short) else entry.program
        if entry.scenario in HEAVY:
            return best, False
        seconds = self._plan.shrink_seconds if self._plan.engine is None else SHRINK_ON_ENGINE
        deadline = time.monotonic() + seconds
        shrunk = shrink(
            best,
            fails,
            runs=self._plan.shrink_runs,
            expired=lambda: self._stopped() or time.monotonic() > deadline,
        )
        return shrunk.program, shrunk.minimal


def _own(mutant: Mutant, entries: Sequence[Entry]) -> Iterator[Entry]:
    """The programs that exercise the mutant's family; of a heavy clause its own scenario alone."""
    facts = {fact for clause in CLAUSES.values() if clause.family == _family(mutant.clause) for fact in clause.applies}
    heavy = mutant.clause in HEAVY.values()
    # The facts are of a store that lacks nothing.
    lacking = mutant.namespace().capabilities.lacking
    for entry in entries:
        about = HEAVY.get(entry.scenario)
        if about == mutant.clause or (not about and not heavy and (lacking or not entry.facts.isdisjoint(facts))):
            yield entry


def _sample(mutant: Mutant, entries: Sequence[Entry], number: int) -> list[Entry]:
    """The first programs that use the mutant's half, of every scenario alike as they are spread evenly."""
    usable = (
        entry
        for entry in entries
        if entry.scenario not in HEAVY
        and any(
            operation.target == mutant.half for operation in entry.program.operations if operation.role != "control"
        )
    )
    return [entry for entry, _ in zip(usable, range(number), strict=False)]


class _Subject:
    """A mutant to run programs on: the faulty model, or the fault laid over an engine."""

    def __init__(self, mutant: Mutant, engine: Engine | None, expected: dict[str, Transcript]) -> None:
        self.mutant = mutant
        self._expected = expected
        # Every client is of this process: in another it would not have the fault.
        laid = None
        if engine is not None:
            here = msgspec.structs.replace(engine.capabilities, other_processes=False)
            laid = msgspec.structs.replace(engine, backend=Laid(engine, mutant), second=None, capabilities=here)
        self._engine = laid
        self._namespaces = None if self._engine is None else Namespaces(self._engine)

    def __enter__(self) -> _Subject:
        return self

    def __exit__(self, *error: object) -> None:
        if self._namespaces is not None:
            self._namespaces.__exit__(*error)

    def found(self, program: Program, known_as: str = "") -> tuple[Divergence, ...]:
        """The deviations on a program; one that the engine cannot be asked shows none."""
        if self._engine is not None and self._namespaces is not None:
            if any(not getattr(self._engine.capabilities, need) for need in needs(program)):
                return ()
            return execute_in(self._namespaces, self._engine, program).divergences
        namespace = self.mutant.namespace()
        transcript = run(program, namespace)
        if namespace.capabilities.lacking:
            return judge(program, transcript, namespace.capabilities)
        expected = self._expected.get(known_as)
        if expected is None:
            expected = expect(program)
            if known_as:
                self._expected[known_as] = expected
        return () if all(map(same, expected, transcript)) else judge(program, transcript)


class Laid:
    """A backend whose clients have a mutant's fault; implements protocols.Backend."""

    def __init__(self, engine: Engine, mutant: Mutant) -> None:
        self.name = engine.backend.name
        self._backend: Backend = engine.backend
        self._capabilities = engine.capabilities
        self._mutant = mutant

    def capabilities(self, url: str) -> Capabilities:
        """See protocols.Backend."""
        return self._backend.capabilities(url)

    def version(self, url: str) -> str:
        """See protocols.Backend."""
        return self._backend.version(url)

    def open_memory(self, url: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> Memory:
        """See protocols.Backend."""
        real = self._backend.open_memory(url, namespace, runtime, config)
        return self._mutant.over_memory(real, runtime, config, self._capabilities)

    def open_index(self, url: str, namespace: str, runtime: Runtime) -> VectorIndex:
        """See protocols.Backend."""
        return self._mutant.over_index(self._backend.open_index(url, namespace, runtime), self._capabilities)

    def drop_namespace(self, url: str, namespace: str) -> None:
        """See protocols.Backend."""
        self._backend.drop_namespace(url, namespace)

    def reset_namespace(self, url: str, namespace: str) -> None:
        """See protocols.Backend; dropping is what a backend without it does."""
        getattr(self._backend, "reset_namespace", self._backend.drop_namespace)(url, namespace)


def summary(results: Sequence[MutantResult]) -> KillSummary:
    """The figures of the matrix; of several seeds, each mutant counts with the first that killed it."""
    run = [result for result in results if not result.obstacle]
    killed = [result for result in run if not result.survives]
    kills = [next(kill for kill in result.kills if kill.blamed is not None) for result in killed]
    heavy = [result.id for result in killed if result.clause in HEAVY.values()]
    small = [kill.operations for result, kill in zip(killed, kills, strict=True) if result.id not in heavy]
    return KillSummary(
        mutants=len(results),
        run=len(run),
        killed=len(killed),
        survivors=[result.id for result in run if result.survives],
        blamed_well=sum(not result.stray for result in killed),
        median_clauses=_median([len(result.failing) for result in killed]),
        median_operations=_median(small),
        most_operations=max(small, default=None),
        median_seconds=_median([kill.seconds for kill in kills]),
        heavy=heavy,
    )


def _median(numbers: Sequence[float]) -> float | None:
    return median(numbers) if numbers else None


def processors() -> int:
    """How many processes are worth starting here."""
    return os.cpu_count() or 1
