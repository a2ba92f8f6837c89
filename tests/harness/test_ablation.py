"""What a deviation cannot do without names the family of its cause."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from memassay.harness.ablation import ablate
from memassay.harness.artefact import Cause
from memassay.harness.corpus import distinct
from memassay.harness.programs import cut
from memassay.harness.shrink import shrink
from memassay.mutants import MUTANTS, Mutant
from memassay.spec.divergence import Divergence
from memassay.spec.interpreter import run
from memassay.spec.judge import judge
from memassay.spec.program import AnyOperation, CreateThread, DeleteMessages, Program, Recall, Reopen
from memassay.spec.strategies import SCENARIOS

Fails = Callable[[Program], bool]


def program(*operations: AnyOperation) -> Program:
    return Program(operations=operations)


def has(kind: type[AnyOperation], argument: str = "") -> Fails:
    """Fails as long as there is such an operation, with that argument."""
    return lambda candidate: any(
        isinstance(operation, kind) and (not argument or argument in operation.given())
        for operation in candidate.operations
    )


LONG = program(
    CreateThread(id="t1", resource_id="r1"),
    Reopen(),
    Recall(
        thread_id="t1",
        include=[{"id": "a"}],
        filter={"metadata": {"k": 1}, "date_range": {"start_exclusive": True}},
        order_by={"direction": "ASC"},
    ),
)


def test_an_argument_that_matters_names_its_family() -> None:
    assert ablate(LONG, has(Recall, "include"), "ORD") == Cause("include", "INC")


def test_an_operation_that_matters_names_its_family() -> None:
    assert ablate(LONG, has(Reopen), "ORD") == Cause("reopening", "DUR")


def test_what_every_program_has_leaves_the_family_that_was_blamed() -> None:
    assert ablate(LONG, has(Recall), "VAL") == Cause("recall", "VAL")


def test_a_program_of_one_operation_vanishes_with_it() -> None:
    assert ablate(program(DeleteMessages(ids=["a"])), has(DeleteMessages), "VAL") == Cause("deletes of messages", "MSG")


def test_what_fails_whatever_is_taken_away_has_no_cause() -> None:
    assert ablate(LONG, lambda candidate: True, "ORD") is None


def test_it_asks_about_each_aspect_once_at_most() -> None:
    asked: list[str] = []

    def fails(candidate: Program) -> bool:
        asked.append(candidate.hash)
        return True

    ablate(LONG, fails, "ORD")
    assert len(asked) == len(set(asked)) == 7


@cache
def long_programs() -> tuple[Program, ...]:
    return tuple(distinct(SCENARIOS["long"], 60, 1))


def first(mutant: Mutant) -> tuple[Program, Divergence]:
    """The first deviation that long programs show."""
    for candidate in long_programs():
        found = judge(candidate, run(candidate, mutant.namespace()))
        if found:
            return candidate, found[0]
    raise AssertionError(f"long programs do not catch {mutant.id}")


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("includes_replace_the_page", "INC"),
        ("farthest_first", "SEM"),
        ("or_is_and", "OPR"),
        ("quantises", "VEC"),
        ("clones_take_the_embeddings", "CLN"),
        ("total_of_the_page", "ORD"),
        ("batches_arrive_reversed", "ORD"),
        ("keeps_microseconds", "VAL"),
        ("null_matches_nothing", "FLT"),
        ("deleting_unknown_is_true", "THR"),
        ("counts_what_was_asked_for", "MSG"),
    ],
)
def test_a_fault_found_by_a_long_program_is_traced_to_its_family(name: str, family: str) -> None:
    mutant = MUTANTS[name]
    found, wanted = first(mutant)

    def fails(candidate: Program) -> bool:
        return any(d.signature == wanted.signature for d in judge(candidate, run(candidate, mutant.namespace())))

    small = shrink(cut(found, wanted.index), fails).program
    cause = ablate(small, fails, wanted.clause.partition("-")[0])
    assert cause is not None
    assert cause.family == family
