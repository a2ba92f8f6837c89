"""The gate: a store whose clauses do not pass gets no number for the workloads that rest on them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from pathlib import Path

import msgspec

from ..harness import artefact, corpus, events, results, runner
from ..harness.artefact import BackendResult, Verdict
from ..harness.corpus import Corpus, Entry
from ..harness.counterexample import Limits
from ..harness.engine import AUTO, Engine
from ..harness.exits import UsageProblem
from ..spec.clauses import CLAUSES, Clause
from ..spec.facts import survey
from ..spec.strategies import SCENARIOS
from .artefact import Gate
from .workloads import Workload

SHORT = "a short run before"

LEAST, SHARE = 7, 0.06
"""How often a short run meets each discriminator: a margin over verdicts.LEAST_MET and LEAST_SHARE."""

DRAWN, ROUNDS = 12, 16
"""Programs drawn from each scenario at once, and how often at most, until every discriminator is met."""

SETTING_UP = 5
"""What an empty namespace costs, in operations."""

LONG = frozenset({"long", "long-values", "large", "window", "injection", "together", "approximate", "kills"})
"""Scenarios of programs that take long; what they are about the others are about, too."""


class Verdicts(msgspec.Struct, frozen=True):
    """By clause, how a store fares, and where that is known from."""

    by_clause: Mapping[str, Verdict]
    source: str


def clauses_of(workloads: Iterable[Workload]) -> tuple[str, ...]:
    """All that the workloads rest on, each once."""
    return tuple(dict.fromkeys(clause for workload in workloads for clause in workload.clauses))


def judge(contender: str, workload: Workload, verdicts: Verdicts) -> Gate | None:
    """Why a store gets no number; None when it does.

    Only `pass` counts. What a store says it cannot do is no fault where the workload does not need it.
    """
    failing: dict[str, str] = {
        clause: verdict
        for clause in workload.clauses
        for verdict in [verdicts.by_clause.get(clause, "not-run")]
        if verdict != "pass" and not (verdict == "unsupported" and _beside(CLAUSES[clause], workload))
    }
    if not failing:
        return None
    return Gate(
        contender=contender,
        workload=workload.name,
        clauses=failing,
        source=verdicts.source,
    )


def _beside(clause: Clause, workload: Workload) -> bool:
    """Whether the clause is about a capability that the workload can do without."""
    return bool(clause.needs) and not {*clause.needs} <= {*workload.needs}


# Verdicts of a run before


def read(paths: Sequence[Path]) -> list[tuple[Path, BackendResult]]:
    """What results say, by file. Raises UsageProblem; for one that was interrupted too."""
    found: list[tuple[Path, BackendResult]] = []
    for path in paths:
        result = results.read(path)
        if result.interrupted:
            raise UsageProblem(f"{path} is of a run that was interrupted", hint="give results of complete runs")
        found += [(path, backend) for backend in result.backends]
    return found


def known(given: Iterable[tuple[Path, BackendResult]], contender: str, engine: str) -> Verdicts | None:
    """The verdicts of a contender in results given, where they are about this version of its engine."""
    for path, backend in given:
        if backend.name == contender and backend.engine == engine and not backend.error:
            return Verdicts({clause: each.verdict for clause, each in backend.clauses.items()}, path.name)
    return None


# A short run


def programs(clauses: Sequence[str], seed: int, progress: corpus.Progress) -> Corpus:
    """Few programs that put each of the clauses to the test: chosen from many, so that none of them is vacuous."""
    wanted = [CLAUSES[clause] for clause in clauses]
    drawn: dict[str, Entry] = {}
    chosen: list[Entry] = []
    for number in range(ROUNDS):
        progress("choosing", number, ROUNDS)
        rare = {fact for _, fact in _rare(wanted, chosen)}
        if not rare:
            break
        for name in _sources(rare, drawn.values()):
            for program in corpus.distinct(SCENARIOS[name], DRAWN, corpus.derive(seed, f"gate/{number}")):
                drawn.setdefault(program.hash, Entry(program, program.hash, name, survey(program)))
        chosen = _chosen(wanted, [*drawn.values()])
    whole = hashlib.sha256("".join(entry.hash for entry in chosen).encode()).hexdigest()[:16]
    many = len(chosen)
    return Corpus(tuple(chosen), artefact.Corpus(seed=seed, level="core", examples=many, programs=many, hash=whole))


def _sources(rare: Set[str], drawn: Collection[Entry]) -> list[str]:
    """The scenarios that have shown some of what is still rare; all at first, and when none has."""
    shown = {entry.scenario for entry in drawn if not rare.isdisjoint(entry.facts)}
    return [name for name in SCENARIOS if name not in LONG and (name in shown or not shown)]


def _chosen(clauses: Sequence[Clause], entries: Sequence[Entry]) -> list[Entry]:
    """Again and again the program that meets most, for its length, of what is still met too rarely."""
    chosen: list[Entry] = []
    left = [*entries]
    while rare := _rare(clauses, chosen):

        def gain(entry: Entry, rare: Sequence[tuple[Clause, str]] = rare) -> float:
            met = sum(fact in entry.facts and not entry.facts.isdisjoint(clause.applies) for clause, fact in rare)
            return met / (SETTING_UP + len(entry.program.operations))

        best = max(left, key=gain, default=None)
        if best is None or gain(best) == 0:
            break
        chosen.append(best)
        left.remove(best)
    return chosen


def _rare(clauses: Sequence[Clause], chosen: Sequence[Entry]) -> list[tuple[Clause, str]]:
    """What is met less often than a verdict needs (verdicts.vacuous), with a margin."""
    rare: list[tuple[Clause, str]] = []
    for clause in clauses:
        applicable = [entry.facts for entry in chosen if not entry.facts.isdisjoint(clause.applies)]
        wanted = max(LEAST, SHARE * len(applicable))
        facts = dict.fromkeys((*clause.discriminators.values(), *clause.variants))
        rare += [(clause, fact) for fact in facts if sum(fact in each for each in applicable) < wanted]
    return rare


def short_run(
    name: str, engine: Engine, clauses: Sequence[str], chosen: Corpus, emit: events.Emit = events.ignore
) -> Verdicts:
    """Verdicts from the programs chosen, on the engine that is up. Raises KeyboardInterrupt when it is interrupted."""
    urls = {name: engine.endpoint.url} if engine.endpoint.url else {}
    plan = runner.Plan(
        targets=(runner.Target(name, engine.backend),),
        clauses=clauses,
        method=AUTO,
        urls=urls,
        limits=Limits(signatures=0),
    )
    result = runner.verify(plan, chosen, emit)
    if result.interrupted:
        raise KeyboardInterrupt
    (backend,) = result.backends
    verdicts: dict[str, Verdict] = {clause: backend.clauses[clause].verdict for clause in clauses}
    return Verdicts(verdicts, SHORT + (f" that ended early: {backend.error}" if backend.error else ""))
