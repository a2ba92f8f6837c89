"""Injection and long programs: what they are made of, that the model passes them, and what they catch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest
from memassay.harness.corpus import distinct
from memassay.harness.programs import check_forms
from memassay.mutants import MUTANTS
from memassay.spec.interpreter import Refused, Returned, run
from memassay.spec.judge import judge
from memassay.spec.operation import Operation
from memassay.spec.program import CreateThread, Program
from memassay.spec.reference import ModelNamespace
from memassay.spec.strategies import SCENARIOS
from memassay.spec.strategies.injection import CANARY_OWNER, CANARY_THREAD, hostile
from memassay.spec.strategies.long import LEAST, MOST

SAMPLE = 60


@cache
def sample(scenario: str) -> tuple[Program, ...]:
    return tuple(distinct(SCENARIOS[scenario], SAMPLE, 3))


def operations(programs: Sequence[Program]) -> list[Operation]:
    return [operation for program in programs for operation in program.operations]


@pytest.mark.parametrize("scenario", ["injection", "long"])
def test_the_forms_of_every_program_can_be_read(scenario: str) -> None:
    for program in sample(scenario):
        check_forms(program)


@pytest.mark.parametrize("scenario", ["injection", "long"])
def test_the_model_is_right_on_every_program(scenario: str) -> None:
    assert [str(program) for program in sample(scenario) if judge(program, run(program, ModelNamespace()))] == []


@pytest.mark.parametrize("scenario", ["injection", "long"])
def test_smoke_runs_none_and_core_a_share(scenario: str) -> None:
    share = SCENARIOS[scenario].share
    assert share["smoke"] == 0 < share["core"] < share["extended"]


# Injection


def test_extended_runs_ten_thousand_hostile_operations() -> None:
    mean = sum(map(hostile, sample("injection"))) / SAMPLE
    assert mean * SCENARIOS["injection"].share["extended"] >= 10_000


EVERY = {
    *("create_thread", "get_thread", "update_thread", "list_threads", "delete_thread", "clone_thread", "list_clones"),
    *("save_messages", "update_messages", "delete_messages", "clear_messages", "recall"),
    *("get_working_memory", "update_working_memory", "title_thread"),
    *("create_index", "describe_index", "drop_index", "upsert_vectors", "get_vectors", "update_vector"),
    *("delete_vectors", "query_vectors"),
}


def test_every_operation_is_made_with_hostile_values() -> None:
    shown = {
        operation.name
        for operation in operations(sample("injection"))
        if hostile(Program(operations=(operation,)))  # pyright: ignore[reportArgumentType]
    }
    assert shown == EVERY


def test_plain_values_are_not_hostile() -> None:
    assert hostile(Program(operations=(CreateThread(id="t1", resource_id="r1", title="x", metadata={"k": ""}),))) == 0


def test_a_hostile_key_deep_inside_is_hostile() -> None:
    assert hostile(Program(operations=(CreateThread(resource_id="r1", metadata={"a": [{"$where": 1}]}),))) == 1


def canary(program: Program) -> list[object]:
    """Whatever the last operation, which reads the canary's thread, shows."""
    outcome = run(program, ModelNamespace())[-1]
    assert isinstance(outcome, Returned)
    return [(message.id, message.content) for message in outcome.value.messages]


def test_no_program_has_business_with_the_canaries() -> None:
    assert {tuple(canary(program)) for program in sample("injection")} == {
        (("canary-1", "secret"), ("canary-0", "secret"))
    }


def test_the_last_operation_reads_the_canaries_for_their_owner() -> None:
    assert {program.operations[-1].given()["resource_id"] for program in sample("injection")} == {CANARY_OWNER}
    assert {program.operations[-1].given()["thread_id"] for program in sample("injection")} == {CANARY_THREAD}


def test_many_hostile_operations_are_refused_and_many_are_not() -> None:
    outcomes = [outcome for program in sample("injection") for outcome in run(program, ModelNamespace())]
    refused = sum(isinstance(outcome, Refused) for outcome in outcomes)
    assert 0.1 < refused / len(outcomes) < 0.6


def killed(mutant: str, scenario: str) -> bool:
    """Whether the sample shows the mutant's fault in its own family."""
    subject = MUTANTS[mutant]
    return any(
        found.clause.startswith(subject.family)
        for program in sample(scenario)
        for found in judge(program, run(program, subject.namespace()))
    )


@pytest.mark.parametrize("mutant", ["deletes_by_pattern", "conditions_in_ids", "quotes_break_the_query"])
def test_injection_alone_catches_stores_that_can_be_injected(mutant: str) -> None:
    assert killed(mutant, "injection")


# Long programs


def test_long_programs_are_long() -> None:
    assert {LEAST <= len(program.operations) <= MOST for program in sample("long")} == {True}


def test_long_programs_use_the_whole_interface() -> None:
    unused = {
        "get_thread",
        "get_working_memory",
        "update_working_memory",
        "title_thread",
        "describe_index",
        "drop_index",
        "get_vectors",
    }
    assert {operation.name for operation in operations(sample("long"))} >= EVERY - unused


def test_long_programs_are_made_by_two_clients_in_two_resources() -> None:
    assert {operation.client for operation in operations(sample("long"))} == {0, 1}
    owners = {o.given()["resource_id"] for o in operations(sample("long")) if o.name == "create_thread"}
    assert owners == {"r1", "r2"}


def test_most_long_programs_reopen() -> None:
    assert sum("reopen()" in str(program) for program in sample("long")) > SAMPLE / 3


@pytest.mark.parametrize("mutant", ["batches_arrive_reversed", "clones_take_the_embeddings", "comes_back_to_its_place"])
def test_long_programs_catch_faults_of_many_kinds(mutant: str) -> None:
    assert killed(mutant, "long")
