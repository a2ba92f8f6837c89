"""The suite is tested: every mutant is killed by a clause of its own family, by a program that shrinks small."""

from __future__ import annotations

from collections.abc import Generator
from statistics import median

import msgspec
import pytest
from memassay.harness.corpus import Entry, build
from memassay.harness.shrink import shrink
from memassay.mutants import MUTANTS, Mutant
from memassay.mutants.adapter import Adapter
from memassay.mutants.engine import Engine
from memassay.spec.clauses import CLAUSES
from memassay.spec.divergence import Divergence
from memassay.spec.interpreter import run
from memassay.spec.judge import judge
from memassay.spec.program import Program
from memassay.spec.reference import Model

MOST_OPERATIONS = 12
MEDIAN_OPERATIONS = 5
ORDER = {clause: number for number, clause in enumerate(CLAUSES)}
HEAVY = {"window": "ORD-3b", "approximate": "VEC-5"}
"""Scenarios whose programs take seconds, each with the clause that it is for."""
BY_CLAUSE = [mutant.id for mutant in sorted(MUTANTS.values(), key=lambda mutant: ORDER[mutant.clause])]


class Kill(msgspec.Struct, frozen=True):
    """How a mutant was caught: by which clause, by which program of the corpus, shrunk to what."""

    blamed: str
    programs: int
    program: Program


KILLS: dict[str, Kill] = {}
"""What the tests of this process found, by mutant."""


def found(mutant: Mutant, program: Program) -> tuple[Divergence, ...]:
    """The deviations of the mutant on a program."""
    return judge(program, run(program, mutant.namespace()), mutant.capabilities)


@pytest.fixture(scope="module")
def corpus() -> tuple[Entry, ...]:
    """The core corpus of seed 0."""
    return build("core", 0).entries


@pytest.fixture(scope="module", autouse=True)
def table() -> Generator[None]:
    """Prints what killed each mutant (shown by -s), and by how small a program."""
    yield
    for name, kill in sorted(KILLS.items(), key=lambda item: ORDER[MUTANTS[item[0]].clause]):
        operations = len(kill.program.operations)
        print(  # noqa: T201
            f"{MUTANTS[name].clause:7} {name:36} blamed on {kill.blamed:7} "
            f"after {kill.programs:4} programs, {operations:2} operations"
        )


def kill(mutant: Mutant, corpus: tuple[Entry, ...]) -> Kill | None:
    """The first program of the corpus that blames the mutant on its own family, shrunk; None for a survivor."""
    applies = {fact for clause in CLAUSES.values() if clause.family == mutant.family for fact in clause.applies}
    for number, entry in enumerate(corpus, 1):
        heavy = HEAVY.get(entry.scenario)
        beside = entry.facts.isdisjoint(applies) and not mutant.capabilities.lacking  # facts are of one without a lack
        if heavy != mutant.clause and (heavy or mutant.clause in HEAVY.values() or beside):
            continue
        for divergence in found(mutant, entry.program):
            if CLAUSES[divergence.clause].family == mutant.family:
                return Kill(divergence.clause, number, shrunk(mutant, entry.program, divergence))
    return None


def shrunk(mutant: Mutant, program: Program, wanted: Divergence) -> Program:
    """The smallest program that shows the same finding; a heavy one is only cut after it, for time."""
    cut = msgspec.structs.replace(program, operations=program.operations[: wanted.index + 1])

    def fails(candidate: Program) -> bool:
        return any(divergence.signature == wanted.signature for divergence in found(mutant, candidate))

    best = cut if fails(cut) else program
    return best if mutant.clause in HEAVY.values() else shrink(best, fails).program


@pytest.mark.parametrize("name", BY_CLAUSE)
def test_a_mutant_is_killed_by_its_own_family_with_a_small_program(name: str, corpus: tuple[Entry, ...]) -> None:
    killed = kill(MUTANTS[name], corpus)
    assert killed is not None, f"{name} survives: {MUTANTS[name].description}"
    if MUTANTS[name].clause == "VEC-5":
        return  # That clause is about 200 queries.
    KILLS[name] = killed
    assert len(killed.program.operations) <= MOST_OPERATIONS, str(killed.program)


def test_half_of_the_programs_are_tiny() -> None:
    if not KILLS:
        pytest.skip("no mutant was killed in this process")
    assert median(len(kill.program.operations) for kill in KILLS.values()) <= MEDIAN_OPERATIONS


@pytest.mark.parametrize("hooks", [Model, Adapter, Engine])
def test_without_a_fault_nothing_deviates(hooks: type[Model | Adapter | Engine], corpus: tuple[Entry, ...]) -> None:
    mutant = Mutant("hooks", "ORD-1", "", "no fault", hooks)
    assert [str(entry.program) for entry in corpus if found(mutant, entry.program)] == []


def test_every_clause_has_a_mutant() -> None:
    assert CLAUSES.keys() - {mutant.clause for mutant in MUTANTS.values()} == set()


def test_every_mutant_names_a_clause() -> None:
    assert {mutant.clause for mutant in MUTANTS.values()} - CLAUSES.keys() == set()


def test_every_mutant_says_what_is_wrong() -> None:
    assert [name for name, mutant in MUTANTS.items() if not mutant.description.endswith(".")] == []
