"""Runs a corpus on backends: search, settle, verdicts. Knows no engine, prints nothing, writes nothing."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence, Set
from datetime import UTC, date, datetime

import msgspec

from ..backends.provision import EngineUnavailable
from ..spec.clauses import CLAUSES, Clause, Level, select
from ..spec.divergence import Signature
from ..spec.interpreter import History, Returned, Transcript
from ..spec.protocols import Backend
from ..spec.strategies.injection import hostile
from . import artefact, events, inflight, known, verdicts
from .artefact import BackendResult, ClauseResult, Finding, Result, Run
from .corpus import Corpus, Entry, depends, surveyed
from .counterexample import Limits, Settler, Sighting, note
from .engine import AUTO, Engine, EngineFailed, Namespaces, start
from .execution import TIME_LIMIT, TIME_OUT, execute_in
from .known import Known
from .programs import needs
from .zone import hostile_zone

MAX_TIME_OUTS = 3
"""Programs that may hang before a backend is given up."""

DIED = "the engine failed"
FAIL_FAST = "stopped at the first failure"
INTERRUPTED = "interrupted"
IN_THE_WAY = "declared failures come before what would put it to the test"
NOT_STARTED = "the engine did not start"


class Target(msgspec.Struct, frozen=True):
    """A backend and the name under which it was asked for."""

    name: str
    backend: Backend


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to verify, and how.

    clauses: ids or families that narrow the level; without any, all of the level.
    method, urls: how engines are had (engine.choose).
    time_limit: seconds a program may take.
    """

    targets: Sequence[Target]
    level: Level = "core"
    clauses: Sequence[str] = ()
    method: str = AUTO
    urls: Mapping[str, str] = {}
    fail_fast: bool = False
    time_limit: float = TIME_LIMIT
    limits: Limits = Limits()
    known: Sequence[Known] = ()
    """Failures that are declared."""
    today: date = msgspec.field(default_factory=date.today)
    """When declarations are judged to have expired."""

    def selected(self) -> tuple[Clause, ...]:
        """The clauses asked for."""
        return select(self.level, self.clauses)

    def reported(self) -> frozenset[str]:
        """The clauses whose failures count: with `clauses` those alone, else any that a program happens to show."""
        return frozenset(clause.id for clause in self.selected()) if self.clauses else frozenset(CLAUSES)

    def entries(self, corpus: Corpus) -> tuple[Entry, ...]:
        """The programs that exercise a selected clause; the corpus is the same whatever is selected."""
        if not self.clauses:
            return corpus.entries
        facts = {fact for clause in self.selected() for fact in clause.applies}
        # The facts are of a store that lacks nothing; what one has to refuse shows once it is known what it lacks.
        lacking = any(clause.requires == "lacking" for clause in self.selected())
        return tuple(
            entry
            for entry in corpus.entries
            if not entry.facts.isdisjoint(facts) or (lacking and depends(entry.program))
        )


def verify(plan: Plan, corpus: Corpus, emit: events.Emit = events.ignore) -> Result:
    """Hold every target to the corpus. Ctrl-C ends the run; what was learned so far is returned, marked so."""
    began, started = time.perf_counter(), datetime.now(UTC)
    entries = plan.entries(corpus)
    emit(events.CorpusReady(corpus.description, len(entries)))
    backends: list[BackendResult] = []
    seconds: dict[str, float] = {}
    stopped = ""
    with hostile_zone() as zone:
        for target in plan.targets:
            if stopped:
                backends.append(BackendResult(name=target.name, clauses=_none_run(plan, stopped)))
                continue
            since = time.perf_counter()
            verification = _Verification(plan, target, corpus, entries, emit)
            backends.append(verification.run())
            seconds[target.name] = round(time.perf_counter() - since, 3)
            emit(events.BackendDone(backends[-1]))
            if verification.stopped in (INTERRUPTED, FAIL_FAST):
                stopped = verification.stopped
    return Result(
        memassay=artefact.own_version(),
        python=platform.python_version(),
        hypothesis=artefact.version_of("hypothesis"),
        corpus=corpus.description,
        selected=[clause.id for clause in plan.selected()],
        time_zone=zone,
        interrupted=stopped == INTERRUPTED,
        backends=backends,
        run=Run(
            started=started.isoformat(timespec="seconds"),
            seconds=round(time.perf_counter() - began, 3),
            seconds_by_backend=seconds,
            platform=platform.platform(),
        ),
    )


class _Verification:
    """One backend held to the corpus."""

    def __init__(self, plan: Plan, target: Target, corpus: Corpus, entries: Sequence[Entry], emit: events.Emit) -> None:
        self.stopped = ""
        """Why the run of this backend ended before its end; empty when it did not."""
        self._plan = plan
        self._name = target.name
        self._backend = target.backend
        self._corpus = corpus
        self._entries = entries
        self._emit = emit
        self._error = ""
        self._ran: list[Entry] = []
        self._derailed: set[str] = set()
        """Programs in which a call failed that should not have: what came after it put nothing to the test."""
        self._excused: set[str] = set()
        """Of those, the programs in which only declared failures did that."""
        self._skipped = 0
        self._races: dict[str, bool] = {}
        """Programs with a race that ran, and whether calls in it really were under way at the same time."""
        self._beyond: set[str] = set()
        """Clauses that programs exercise, but none on a store that can do what this one declares."""
        self._sightings: dict[Signature, Sighting] = {}
        self._findings: Mapping[Signature, Finding] = {}
        self._known: Mapping[Signature, Known] = {}
        """The declared failures that are about this backend and its version."""

    def run(self) -> BackendResult:
        """The backend's verdicts."""
        self._emit(events.EngineStarting(self._name))
        engine: Engine | None = None
        try:
            with start(self._name, self._backend, self._plan.method, self._plan.urls) as engine:
                endpoint = engine.endpoint
                self._emit(events.EngineReady(self._name, engine.version, endpoint.method, endpoint.detail))
                if endpoint.passed_over:
                    self._emit(events.Notice(self._name, f"{endpoint.method}, as {endpoint.passed_over}"))
                self._beyond = _exercised(self._entries)
                self._entries = surveyed(self._entries, engine.capabilities)
                self._beyond -= _exercised(self._entries)
                names = {self._name, self._backend.name}
                self._known = {k.full: k for k in self._plan.known if k.about(names, engine.version)}
                self._on(engine)
        except EngineUnavailable as error:
            self._error, self.stopped = str(error), NOT_STARTED
        except KeyboardInterrupt:
            self._interrupt()
        if engine is None:
            return BackendResult(name=self._name, error=self._error, clauses=_none_run(self._plan, self.stopped))
        clauses = {clause.id: self._clause(clause, engine) for clause in CLAUSES.values()}
        return BackendResult(
            name=self._name,
            engine=engine.version,
            method=engine.endpoint.method,
            detail=engine.endpoint.detail,
            capabilities=engine.capabilities,
            programs=len(self._ran),
            races=len(self._races),
            overlapping=sum(self._races.values()),
            hostile=sum(hostile(entry.program) for entry in self._ran),
            skipped=self._skipped,
            error=self._error,
            clauses=clauses,
            known=known.judge(
                [*self._known.values()],
                self._met,
                lambda entry: self._asked(entry, clauses),
                self._plan.today,
            ),
        )

    def _on(self, engine: Engine) -> None:
        """Search, then settle what was found; an interrupt or a dead engine ends both."""
        with Namespaces(engine) as namespaces:
            settler = Settler(
                engine,
                namespaces,
                name=self._name,
                corpus=self._corpus.description,
                reported=self._plan.reported(),
                time_limit=self._plan.time_limit,
                limits=self._plan.limits,
                emit=self._emit,
            )
            self._findings = settler.findings
            try:
                self._search(engine, namespaces)
                settler.settle(self._unknown())
            except EngineFailed as error:
                self._error, self.stopped = str(error), DIED
            except KeyboardInterrupt:
                self._interrupt()
            settler.keep(self._sightings)
        for complaint in namespaces.left:
            self._emit(events.Notice(self._name, complaint))

    def _search(self, engine: Engine, namespaces: Namespaces) -> None:
        """Run every program once and collect what deviates. Raises EngineFailed."""
        time_outs = 0
        for done, entry in enumerate(self._entries, 1):
            if any(not getattr(engine.capabilities, need) for need in needs(entry.program)):
                self._skipped += 1
                continue
            try:
                execution = execute_in(namespaces, engine, entry.program, self._plan.time_limit)
            except EngineFailed as error:
                raise EngineFailed(f"{error}; program {entry.hash} was to be next") from error
            self._ran.append(entry)
            if (met := overlapping(execution.transcript)) is not None:
                self._races[entry.hash] = met
            derailing = [found for found in execution.divergences if found.aspect in ("error", TIME_OUT)]
            if derailing:
                self._derailed.add(entry.hash)
                if all(found.signature in self._known for found in derailing):
                    self._excused.add(entry.hash)
            for signature in note(self._sightings, entry.hash, execution, self._plan.reported()):
                self._emit(events.SignatureFound(self._name, signature))
            inflight.check(engine, execution, entry.hash)
            time_outs += execution.timed_out
            if time_outs == MAX_TIME_OUTS:
                hung = inflight.call(execution, entry.hash)
                self.stopped = engine.redactor.text(
                    f"given up after {time_outs} programs that hung: {hung} did not return within "
                    f"{self._plan.time_limit:g} s"
                )
                return
            self._emit(events.ProgramRan(self._name, done, len(self._entries), len(self._sightings)))
            if self._plan.fail_fast and self._unknown():
                self.stopped = FAIL_FAST
                return

    def _unknown(self) -> dict[Signature, Sighting]:
        """What was seen and is not declared."""
        return {signature: seen for signature, seen in self._sightings.items() if signature not in self._known}

    def _met(self, signature: Signature) -> int:
        """In how many programs a signature was seen."""
        return len(self._sightings[signature].programs) if signature in self._sightings else 0

    def _asked(self, entry: Known, clauses: Mapping[str, ClauseResult]) -> bool:
        """Whether a failure that was not met would have been, by a run that asked as much as the one that found it."""
        return (
            known.at_least(self._plan.level, entry.level)
            and self._corpus.description.examples is None
            and not self.stopped
            and clauses[entry.clause].verdict in ("pass", "fail", "flaky", "error", "known")
        )

    def _judged(self, finding: Finding) -> Finding:
        """The finding; a declared one is known."""
        if finding.case.signature not in self._known:
            return finding
        return msgspec.structs.replace(finding, verdict="known")

    def _interrupt(self) -> None:
        self.stopped = INTERRUPTED
        self._emit(events.Interrupted())

    def _clause(self, clause: Clause, engine: Engine) -> ClauseResult:
        findings = [self._judged(f) for f in self._findings.values() if f.case.signature.clause == clause.id]
        complete = len(self._ran) + self._skipped == len(self._entries)
        not_run = "" if complete else self.stopped
        if clause.id not in {selected.id for selected in self._plan.selected()}:
            not_run = _unselected(self._plan, clause)
        beyond = clause.id in self._beyond
        found = verdicts.of_clause(
            clause, self._tally(clause, self._derailed), findings, engine.capabilities, not_run=not_run, beyond=beyond
        )
        excused = self._tally(clause, self._derailed - self._excused)
        if found.verdict == "vacuous" and self._excused and not verdicts.vacuous(excused):
            return msgspec.structs.replace(found, verdict="known", reason=IN_THE_WAY)
        return found

    def _tally(self, clause: Clause, without: Set[str]) -> verdicts.Tally:
        """How often the programs that ran put the clause to the test; those of the hashes given do not count.

        Nor do races, if in none calls were under way at the same time: of a store that serves one after another they
        show nothing.
        """
        alone: Set[str] = frozenset() if any(self._races.values()) else self._races.keys()
        return verdicts.tally(clause, (entry for entry in self._ran if entry.hash not in without | alone))


def overlapping(transcript: Transcript) -> bool | None:
    """Whether calls of a race were under way at the same time; None without a race."""
    values = [outcome.value for outcome in transcript if isinstance(outcome, Returned)]
    histories = [value for value in values if isinstance(value, History)]
    return any(history.overlapping for history in histories) if histories else None


def _exercised(entries: Sequence[Entry]) -> set[str]:
    """The clauses that a program exercises."""
    facts = frozenset[str]().union(*(entry.facts for entry in entries))
    return {clause.id for clause in CLAUSES.values() if not facts.isdisjoint(clause.applies)}


def _none_run(plan: Plan, reason: str) -> dict[str, ClauseResult]:
    selected = {clause.id for clause in plan.selected()}
    return {
        clause.id: ClauseResult(
            verdict="not-run", reason=reason if clause.id in selected else _unselected(plan, clause)
        )
        for clause in CLAUSES.values()
    }


def _unselected(plan: Plan, clause: Clause) -> str:
    return "not selected" if plan.clauses else f"level {clause.level}"
