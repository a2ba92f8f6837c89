"""What a run leaves behind: the result and the case file, versioned JSON whose schema `memassay schema` prints."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, Literal

import msgspec

from ..spec.capabilities import Capabilities
from ..spec.clauses.model import Level
from ..spec.divergence import Signature
from ..spec.program import Program

Verdict = Literal["pass", "fail", "flaky", "error", "known", "unsupported", "vacuous", "not-run"]
"""Only `pass` counts. `error` is an undeclared exception or a time-out; `not-run` says why."""

FAILING: frozenset[Verdict] = frozenset({"fail", "flaky", "error"})
"""Verdicts that break the specification."""

RERUNS = 3
"""How often a counterexample is run again; one that shows up less often is flaky."""

ROUNDS = 20
"""How often a case with a race or a kill is replayed, at most: until it shows again."""


class Found(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a counterexample came from."""

    backend: str
    engine: str
    """The engine's own version."""
    memassay: str
    seed: int
    level: Level


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A counterexample that any backend can replay. The same finding has the same bytes.

    index: the operation at which the store first deviates, from 0.
    expected, got: what the clause demands there and what the store did, as plain values.
    reproduced: in how many of 3 reruns it showed up; None when it was not rerun.
    minimal: no smaller program was found before the shrinker's limits were reached.
    transcript: of a program with a race or a kill all that the store did (histories.py): a rerun need not repeat it,
        but it can be judged again.
    """

    version: Literal[1] = 1
    signature: Signature
    statement: str
    program: Program
    index: int
    expected: Any
    got: Any
    found: Found
    reproduced: int | None
    minimal: bool
    transcript: list[Any] | None = None


class Cause(msgspec.Struct, frozen=True):
    """The smallest aspect without which a deviation vanishes, and the family of clauses that it is about."""

    without: str
    family: str


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One signature on one backend: how many programs of the search showed it, and the smallest found."""

    verdict: Verdict
    programs: int
    case: Case
    file: str | None = None
    """The case file's path relative to where cases are written; None when none was."""
    cause: Cause | None = None
    """What the program cannot do without; None when it was not made small, or is small enough to see."""


class ClauseResult(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on one clause.

    applicable: how many programs that ran exercise the clause.
    discriminators: in how many of those each discriminator was met, by its words.
    """

    verdict: Verdict
    reason: str = ""
    applicable: int = 0
    discriminators: dict[str, int] = {}
    findings: list[Finding] = []


class KnownResult(msgspec.Struct, frozen=True, kw_only=True):
    """A known failure that was declared, and in how many programs it was met.

    stale: it no longer fails, though its clause was put to the test. not judged: the run asked too little to tell.
    """

    clause: str
    signature: str
    versions: str
    reason: str
    url: str
    expires: str
    status: Literal["met", "stale", "expired", "not judged"]
    programs: int


class BackendResult(msgspec.Struct, frozen=True, kw_only=True):
    """One backend's part. `error` says why its engine did not start, or died; `programs` is how many ran."""

    name: str
    engine: str = ""
    method: str = ""
    detail: str = ""
    capabilities: Capabilities | None = None
    programs: int = 0
    races: int = 0
    overlapping: int = 0
    """How many programs with a race ran, and in how many calls really were under way at the same time."""
    hostile: int = 0
    """How many of the operations that ran carried hostile ids, keys, names or values."""
    skipped: int = 0
    """Programs that need a capability which the backend does not declare."""
    error: str = ""
    clauses: dict[str, ClauseResult] = {}
    known: list[KnownResult] = []


class Corpus(msgspec.Struct, frozen=True, kw_only=True):
    """Which programs were generated; `hash` covers each of them."""

    seed: int
    level: Level
    examples: int | None
    """How many were asked for; None is the level's own number."""
    programs: int
    hash: str
    cases: int = 0
    """Programs of case files that were run before these."""
    scenarios: tuple[str, ...] = ()
    """The kinds of programs asked for; none is all."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What differs from one run to the next even when nothing else does."""

    started: str
    seconds: float
    seconds_by_backend: dict[str, float]
    platform: str


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """All verdicts of one `memassay verify`. Everything but `run` is comparable between runs.

    selected: the clauses asked for. interrupted: the run was stopped by hand; what is here is partial.
    """

    version: Literal[1] = 1
    memassay: str
    python: str
    hypothesis: str
    corpus: Corpus
    selected: list[str]
    time_zone: str
    interrupted: bool
    backends: list[BackendResult]
    run: Run


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One operation of a trace, with the outcomes of the model and of a store; `alike` tells whether they agree."""

    operation: str
    expected: Any
    got: Any
    alike: bool


class Kill(msgspec.Struct, frozen=True, kw_only=True):
    """What one seed's programs did to a mutant.

    blamed: the first clause of the mutant's own family that failed; None when it survived.
    programs, seconds: how many programs it took to that failure, and how long they ran. Only programs that exercise
        the family are run, as `verify --clause FAMILY` runs them; over an engine first what kills it on the model.
    operations: of the program that showed it, made small; minimal: whether the shrinker came to its end.
    failing: every clause that failed in the programs of the matrix, with in how many of them; `matrix` is how many
        programs that were.
    """

    seed: int
    blamed: str | None
    programs: int
    seconds: float
    operations: int
    minimal: bool
    failing: dict[str, int]
    matrix: int


class MutantResult(msgspec.Struct, frozen=True, kw_only=True):
    """A store with one fault, and what caught it; `obstacle` says why it could not be laid over the engine.

    also: clauses of other families that its fault may show in, said beforehand.
    """

    id: str
    clause: str
    report: str
    description: str
    also: list[str]
    obstacle: str
    kills: list[Kill]

    @property
    def survives(self) -> bool:
        """Whether no seed's programs blamed it on its own family."""
        return not self.obstacle and all(kill.blamed is None for kill in self.kills)

    @property
    def failing(self) -> list[str]:
        """The clauses that failed, whatever the seed."""
        return list(dict.fromkeys(clause for kill in self.kills for clause in kill.failing))

    @property
    def stray(self) -> list[str]:
        """Those neither of its family nor said beforehand."""
        family = self.clause.partition("-")[0]
        return [clause for clause in self.failing if clause.partition("-")[0] != family and clause not in self.also]


class KillSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a kill matrix; medians are None without a mutant that was killed.

    run: mutants that were put to the test. blamed_well: killed mutants without a stray clause.
    operations are of shrunk programs, except of those `heavy` mutants whose programs are about hundreds of calls.
    """

    mutants: int
    run: int
    killed: int
    survivors: list[str]
    blamed_well: int
    median_clauses: float | None
    median_operations: float | None
    most_operations: int | None
    median_seconds: float | None
    heavy: list[str]


class KillMatrix(msgspec.Struct, frozen=True, kw_only=True):
    """What the suite catches: mutants by failing clauses. Everything but times is comparable between runs.

    over: the backend that the mutants were laid over; "" for the model.
    """

    version: Literal[1] = 1
    memassay: str
    python: str
    hypothesis: str
    level: Level
    seeds: list[int]
    over: str
    engine: str
    interrupted: bool
    seconds: float
    summary: KillSummary
    mutants: list[MutantResult]


class FaultRow(msgspec.Struct, frozen=True, kw_only=True):
    """What one kind of fault did to a backend.

    applies: whether it can be tried there; reason: why not, or what ended it. broken: the engine did not come back.
    what: what was done, in words. rounds: storms that ran. acknowledged: writes that were, in all of them.
    doubtful: calls that were broken off.
    lost, half, errors, recovery, other: writers that found acknowledged writes missing; a batch half there; an error
        that the specification does not name; no way back; or anything else that is wrong.
    findings: of each of these its case; `programs` is the number of the round.
    """

    kind: str
    what: str = ""
    applies: bool = True
    reason: str = ""
    broken: bool = False
    rounds: int = 0
    acknowledged: int = 0
    doubtful: int = 0
    lost: int = 0
    half: int = 0
    errors: int = 0
    recovery: int = 0
    other: int = 0
    seconds: float = 0.0
    findings: list[Finding] = []


class BackendFaults(msgspec.Struct, frozen=True, kw_only=True):
    """One backend's part of a FaultResult."""

    name: str
    engine: str
    method: str
    detail: str
    atomicity: str
    rows: list[FaultRow]


class FaultResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of `memassay fault`. Round n of a kind is the same storm whenever the seed is."""

    version: Literal[1] = 1
    memassay: str
    seed: int
    interrupted: bool
    backends: list[BackendFaults]
    started: str
    seconds: float
    platform: str


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """What was held at a moment of a soak: bytes of resident memory and file handles, by who holds them."""

    seconds: float
    memory: dict[str, int]
    handles: dict[str, int]


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """How one figure went after the warm-up.

    who: "client" (this process), "second client" or "engine". what: "memory" in bytes, or "handles".
    middle: its median. growth, least: over the time measured, by the median slope and by the lower end of its interval
        of 95 % (Theil and Sen). allowed: what `least` may come to. grows: whether it is more.
    """

    who: str
    what: Literal["memory", "handles"]
    middle: float
    growth: float
    least: float
    allowed: float
    grows: bool


class BackendSoak(msgspec.Struct, frozen=True, kw_only=True):
    """One backend's part of a SoakResult. reason: why there is no verdict on growth; empty when there is one."""

    name: str
    engine: str
    method: str
    detail: str
    seconds: float
    programs: int
    calls: int
    error: str = ""
    reason: str = ""
    growth: list[Growth] = []
    samples: list[Sample] = []
    findings: list[Finding] = []


class SoakResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of `memassay soak`."""

    version: Literal[1] = 1
    memassay: str
    seed: int
    minutes: float
    interrupted: bool
    backends: list[BackendSoak]
    started: str
    platform: str


class VerdictChange(msgspec.Struct, frozen=True, kw_only=True):
    """A clause with another verdict than before. loss: it passed and does not, or did not fail and does."""

    clause: str
    before: Verdict
    after: Verdict
    loss: bool


class CaseChange(msgspec.Struct, frozen=True, kw_only=True):
    """A counterexample that is only in one of the results; known ones are no loss when they come."""

    signature: Signature
    change: Literal["came", "went"]
    verdict: Verdict
    program: Program
    loss: bool


class BackendDifference(msgspec.Struct, frozen=True, kw_only=True):
    """What changed on one backend. `gone`: it is only in the first result, which is a loss."""

    before: str
    after: str
    engine_before: str
    engine_after: str
    gone: bool
    verdicts: list[VerdictChange]
    cases: list[CaseChange]

    @property
    def losses(self) -> int:
        """How many changes are losses."""
        return self.gone + sum(change.loss for change in self.verdicts) + sum(change.loss for change in self.cases)


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What changed from one result to another.

    notes: why they are not alike in what they asked. compared: clauses asked for in both.
    """

    version: Literal[1] = 1
    memassay: str
    notes: list[str]
    compared: list[str]
    losses: int
    backends: list[BackendDifference]


Artefact = Case | Result | KillMatrix | Difference | FaultResult | SoakResult
KINDS: dict[str, type[Artefact]] = {
    "case": Case,
    "result": Result,
    "mutants": KillMatrix,
    "difference": Difference,
    "fault": FaultResult,
    "soak": SoakResult,
}
"""By the name under which `memassay schema` knows them."""


def version_of(distribution: str) -> str:
    """An installed distribution's version."""
    return version(distribution)


def own_version() -> str:
    """memassay's version."""
    return version_of("memassay")


def version_in(struct: type[Any]) -> int:
    """The version of an artefact that this memassay writes."""
    return next(field.default for field in msgspec.structs.fields(struct) if field.name == "version")


def schema(kind: str, struct: type[Any]) -> dict[str, Any]:
    """The JSON schema (2020-12) of an artefact; a change of what it allows is a new version, and a new name."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:memassay:{kind}:{version_in(struct)}",
        **msgspec.json.schema(struct),
    }


def encode(artefact: Artefact) -> bytes:
    """Readable JSON; equal artefacts give equal bytes."""
    return msgspec.json.format(msgspec.json.encode(artefact), indent=2) + b"\n"


def decode_case(data: bytes) -> Case:
    """A case file. Raises msgspec.DecodeError or ValidationError when it is none."""
    return msgspec.json.decode(data, type=Case)


def decode_result(data: bytes) -> Result:
    """A result. Raises msgspec.DecodeError or ValidationError when it is none."""
    return msgspec.json.decode(data, type=Result)
