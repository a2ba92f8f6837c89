"""What becomes of a deviation that the search saw: rerun, shrunk, and put into a case."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

import msgspec

from ..spec.clauses import CLAUSES
from ..spec.divergence import Divergence, Signature
from ..spec.interpreter import Crashed, Refused, Returned, Transcript
from ..spec.program import Program
from . import artefact, events, histories, inflight, verdicts
from .ablation import ablate
from .artefact import RERUNS, ROUNDS, Case, Finding, Found
from .engine import Engine, Namespaces
from .evidence import side_by_side
from .execution import TIME_OUT, Execution, execute, execute_in
from .programs import cut, openable
from .shrink import MAX_RUNS, shrink

LONG = 30
"""Operations from which on a program is about so much that its finding is blamed by ablation too."""


CHANCES = 3
"""Runs that a candidate has to show a deviation which need not show up every time."""

SHRUNK = 25
"""Counterexamples that are rerun and shrunk, per backend, unless another number is asked for."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What is spent on making counterexamples small."""

    signatures: int = SHRUNK
    """Counterexamples that are rerun and shrunk; what lies beyond is reported as it was found."""
    runs: int = MAX_RUNS
    """Runs per counterexample."""
    seconds: float = 20.0
    """Seconds per counterexample."""


class Sighting(msgspec.Struct):
    """A signature as the search saw it: the smallest program that showed it, and the hashes of all that did."""

    program: Program
    divergence: Divergence
    programs: set[str]
    transcript: Transcript = ()

    @property
    def size(self) -> tuple[bool, int, int]:
        """Whether a call crashed, which tells less than a wrong answer; operations up to the deviation; bytes."""
        return self.divergence.crashed, self.divergence.index, len(msgspec.json.encode(self.cut))

    @property
    def cut(self) -> Program:
        """The program as far as the deviation."""
        return cut(self.program, self.divergence.index)


def note(
    sightings: dict[Signature, Sighting], digest: str, execution: Execution, reported: frozenset[str]
) -> list[Signature]:
    """Add what an execution showed of the reported clauses; the signatures not seen before."""
    new: list[Signature] = []
    for divergence in execution.divergences:
        if divergence.clause not in reported:
            continue
        sighting = Sighting(execution.program, divergence, {digest}, execution.transcript)
        known = sightings.get(divergence.signature)
        if known is None:
            new.append(divergence.signature)
        elif sighting.size < known.size:
            sighting.programs |= known.programs
        else:
            known.programs.add(digest)
            continue
        sightings[divergence.signature] = sighting
    return new


class Settler:
    """Turns the sightings on one backend into findings. `findings` holds what is settled so far."""

    def __init__(
        self,
        engine: Engine,
        namespaces: Namespaces,
        *,
        name: str,
        corpus: artefact.Corpus,
        reported: frozenset[str],
        time_limit: float,
        limits: Limits,
        emit: events.Emit,
    ) -> None:
        self.findings: dict[Signature, Finding] = {}
        self._engine = engine
        self._namespaces = namespaces
        self._name = name
        self._corpus = corpus
        self._reported = reported
        self._time_limit = time_limit
        self._limits = limits
        self._emit = emit
        self._programs: dict[Signature, set[str]] = {}
        self._done: set[Signature] = set()

    def settle(self, sightings: Mapping[Signature, Sighting]) -> None:
        """Rerun and shrink the sightings, as many as the limit allows. Raises EngineFailed."""
        for number, (signature, sighting) in enumerate(sightings.items(), 1):
            if number > self._limits.signatures:
                self._emit(
                    events.Notice(
                        self._name,
                        f"{len(sightings) - number + 1} more deviations are reported as found, "
                        f"neither rerun nor made small: --shrink is {self._limits.signatures}",
                    )
                )
                return
            self._emit(events.Shrinking(self._name, signature, number, len(sightings)))
            finding = self._settled(sighting)
            self._add(finding, sighting.programs)
            self._done.add(signature)
            self._emit(events.Shrank(self._name, finding))

    def keep(self, sightings: Mapping[Signature, Sighting]) -> None:
        """Take over as they were found the sightings that were not settled: they are failures all the same."""
        for signature, sighting in sightings.items():
            if signature not in self._done:
                found = self._finding(sighting.cut, sighting.divergence, transcript=sighting.transcript)
                self._add(found, sighting.programs)

    def _settled(self, sighting: Sighting) -> Finding:
        wanted = sighting.divergence
        if wanted.aspect == TIME_OUT:
            return self._finding(sighting.cut, wanted)
        if sighting.program.undetermined:
            return self._by_chance(sighting)
        program, reproduced = sighting.cut, self._reruns(sighting.cut, wanted)
        if not reproduced:
            # The deviation may show only in the light of what comes after it.
            program, reproduced = sighting.program, self._reruns(sighting.program, wanted)
        if reproduced < RERUNS:
            return self._finding(program, wanted, reproduced)
        deadline = time.monotonic() + self._limits.seconds
        shrunk = shrink(
            program,
            lambda candidate: self._leased(candidate, wanted) is not None,
            runs=self._limits.runs,
            expired=lambda: time.monotonic() > deadline,
        )
        shown = self._fresh(shrunk.program, wanted)
        if shown is None:
            return self._finding(program, wanted, reproduced)
        finding = self._finding(shown.program, shown.divergence, reproduced, minimal=shrunk.minimal)
        if len(sighting.program.operations) < LONG or time.monotonic() > deadline:
            return finding
        family = CLAUSES[shown.divergence.clause].family
        cause = ablate(shown.program, lambda candidate: self._leased(candidate, wanted) is not None, family)
        return msgspec.structs.replace(finding, cause=cause)

    def _by_chance(self, sighting: Sighting) -> Finding:
        """What need not show up every time: rerun as it was seen, and made small if it showed up again at all.

        A smaller program counts as failing when one of a few runs shows the deviation.
        """
        wanted, program = sighting.divergence, sighting.program
        reproduced = self._reruns(program, wanted)
        if not reproduced:
            return self._finding(sighting.cut, wanted, 0, transcript=sighting.transcript)
        deadline = time.monotonic() + self._limits.seconds

        def fails(candidate: Program) -> bool:
            return any(self._leased(candidate, wanted) is not None for _ in range(CHANCES))

        shrunk = shrink(program, fails, runs=self._limits.runs, expired=lambda: time.monotonic() > deadline)
        for _ in range(ROUNDS):
            if (shown := self._fresh(shrunk.program, wanted)) is not None:
                return self._finding(
                    shown.program, shown.divergence, reproduced, minimal=shrunk.minimal, transcript=shown.transcript
                )
        return self._finding(sighting.cut, wanted, reproduced, transcript=sighting.transcript)

    def _reruns(self, program: Program, wanted: Divergence) -> int:
        return sum(self._fresh(program, wanted) is not None for _ in range(RERUNS))

    def _fresh(self, program: Program, wanted: Divergence) -> Sighting | None:
        with self._namespaces.fresh() as namespace:
            return self._match(execute(self._engine, namespace, program, self._time_limit), wanted)

    def _leased(self, program: Program, wanted: Divergence) -> Sighting | None:
        if not openable(program):
            return None
        limit = min(self._time_limit, self._limits.seconds)
        return self._match(execute_in(self._namespaces, self._engine, program, limit), wanted)

    def _match(self, execution: Execution, wanted: Divergence) -> Sighting | None:
        """The wanted finding, if the execution shows it, in the program as it was run."""
        inflight.check(self._engine, execution, execution.program.hash)
        shown = find(execution.divergences, wanted, self._reported)
        return None if shown is None else Sighting(execution.program, shown, set(), execution.transcript)

    def _finding(
        self,
        program: Program,
        shown: Divergence,
        reproduced: int | None = None,
        *,
        minimal: bool = False,
        transcript: Transcript = (),
    ) -> Finding:
        expected, got = side_by_side(shown.expected, shown.got)
        kept = histories.encode(transcript[: len(program.operations)]) if program.undetermined else None
        return Finding(
            verdict=verdicts.of_finding(shown.crashed, reproduced),
            programs=0,
            case=Case(
                signature=shown.signature,
                statement=CLAUSES[shown.clause].statement,
                program=program,
                index=shown.index,
                expected=expected,
                got=self._engine.redactor.value(got),
                found=Found(
                    backend=self._name,
                    engine=self._engine.version,
                    memassay=artefact.own_version(),
                    seed=self._corpus.seed,
                    level=self._corpus.level,
                ),
                reproduced=reproduced,
                minimal=minimal,
                transcript=None if kept is None else self._engine.redactor.value(kept),
            ),
        )

    def _add(self, finding: Finding, programs: set[str]) -> None:
        """Keep a finding; of two that turned out to be the same, the one with the better case."""
        signature = finding.case.signature
        seen = self._programs.setdefault(signature, set())
        seen |= programs
        best = min((f for f in (self.findings.get(signature), finding) if f is not None), key=_goodness)
        self.findings[signature] = msgspec.structs.replace(best, programs=len(seen))


def _goodness(finding: Finding) -> tuple[bool, bool, int]:
    case = finding.case
    return case.reproduced != RERUNS, not case.minimal, len(case.program.operations)


def find(divergences: Iterable[Divergence], wanted: Divergence, reported: frozenset[str]) -> Divergence | None:
    """The divergence that is the wanted finding: of its signature, or else the same unexpected error.

    Which clause an error is blamed on depends on what else the call asks for, so that a smaller program
    may name the right one.
    """
    candidates = [divergence for divergence in divergences if divergence.clause in reported]
    for divergence in candidates:
        if divergence.signature == wanted.signature:
            return divergence
    error = _unexpected(wanted)
    if error is None:
        return None
    return next((divergence for divergence in candidates if _unexpected(divergence) == error), None)


def _unexpected(divergence: Divergence) -> tuple[str, str, str] | None:
    """Aspect, operation and kind of an error where there should be none."""
    if not isinstance(divergence.expected, Returned):
        return None
    match divergence.got:
        case Refused(code=kind) | Crashed(kind=kind):
            return divergence.aspect, divergence.operation, kind
        case _:
            return None
