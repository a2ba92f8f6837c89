"""The shrinker, on predicates that need no store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from memassay.harness.shrink import Shrunk, read, shrink
from memassay.spec.program import (
    AnyOperation,
    CreateThread,
    DeleteMessages,
    Observe,
    Program,
    QueryVectors,
    Recall,
    Reopen,
    SaveMessages,
    Tick,
    Together,
    UpdateThread,
)


def program(*operations: AnyOperation, **options: Any) -> Program:
    return Program(operations=operations, options=options)


def single(shrunk: Shrunk) -> Any:
    """The only operation of what is left."""
    (operation,) = shrunk.program.operations
    return operation


def save(*messages: Any) -> SaveMessages:
    return SaveMessages(messages=list(messages))


LONG = program(
    CreateThread(id="t1", resource_id="r1", title="a long title", metadata={"a": 1, "b": [1, 2, {"c": "d"}]}),
    Tick(ms=5000),
    save(*({"id": f"m{i}", "thread_id": "t1", "content": "words"} for i in range(9))),
    Reopen(),
    Observe(),
    Recall(thread_id="t1", per_page=7, page=3, order_by={"direction": "ASC"}),
    DeleteMessages(ids=["m1", "m2", "m3"]),
    Observe(),
    last_messages=3,
)


def has(name: str) -> Callable[[Program], bool]:
    return lambda candidate: any(operation.name == name for operation in candidate.operations)


def test_only_the_operation_that_matters_remains() -> None:
    assert shrink(LONG, has("reopen")).program == program(Reopen())


def test_two_operations_far_apart_are_kept_together() -> None:
    shrunk = shrink(LONG, lambda candidate: has("tick")(candidate) and has("delete_messages")(candidate)).program
    assert [operation.name for operation in shrunk.operations] == ["tick", "delete_messages"]


def test_their_order_is_kept() -> None:
    def fails(candidate: Program) -> bool:
        names = [operation.name for operation in candidate.operations]
        return "reopen" in names and "observe" in names[names.index("reopen") :]

    assert shrink(LONG, fails).program == program(Reopen(), Observe())


def test_options_go() -> None:
    assert shrink(program(Reopen(), last_messages=3), has("reopen")).program.options == {}


def test_optional_fields_go() -> None:
    assert shrink(LONG, has("create_thread")).program == program(CreateThread(resource_id=""))


def test_list_elements_go() -> None:
    def fails(candidate: Program) -> bool:
        return any(
            item["id"] == "m5"
            for operation in candidate.operations
            if isinstance(operation, SaveMessages)
            for item in operation.messages
        )

    only = single(shrink(LONG, fails))
    assert [item["id"] for item in only.messages] == ["m5"]


def test_keys_go() -> None:
    def fails(candidate: Program) -> bool:
        return any(isinstance(o, CreateThread) and "b" in (o.metadata or {}) for o in candidate.operations)

    only = single(shrink(LONG, fails))
    assert only.metadata == {"b": []}


@pytest.mark.parametrize(
    ("form", "place", "least"),
    [({"$repeat": ["ab", 5000]}, ("$repeat", 1), 37), ({"$nest": [64, 1]}, ("$nest", 0), 11)],
)
def test_counts_are_bisected(form: Any, place: tuple[str, int], least: int) -> None:
    tag, i = place

    def fails(candidate: Program) -> bool:
        titles: list[Any] = [o.title for o in candidate.operations if isinstance(o, UpdateThread)]
        return any(tag in (title or ()) and title[tag][i] >= least for title in titles)

    only = single(shrink(program(UpdateThread(thread_id="t", title=form)), fails))
    assert only.title[tag][i] == least


def test_fills_are_bisected() -> None:
    filled = program(save({"$fill": {"id": "m", "thread_id": "t", "n": 10_000, "step_ms": 5}}))

    def fails(candidate: Program) -> bool:
        return any(len(o.arguments()["messages"]) > 1000 for o in candidate.operations)

    only = single(shrink(filled, fails))
    assert only.messages == [{"$fill": {"id": "", "thread_id": "", "n": 1001}}]


@pytest.mark.parametrize(
    ("value", "plainest"),
    [
        ("a title", ""),
        (734, 0),
        (-12.5, 0),
        ({"$at": "2031-01-01T00:00:00+09:00"}, {"$at": "2024-03-01T12:00:00+00:00"}),
    ],
)
def test_scalars_become_plain(value: Any, plainest: Any) -> None:
    def fails(candidate: Program) -> bool:
        return any(isinstance(o, UpdateThread) and o.title is not msgspec.UNSET for o in candidate.operations)

    only = single(shrink(program(UpdateThread(thread_id="t", title=value)), fails))
    assert only.title == plainest


def test_numbers_shrink_to_a_bound() -> None:
    def fails(candidate: Program) -> bool:
        return any(isinstance(o, Tick) and o.ms >= 100 for o in candidate.operations)

    only = single(shrink(program(Tick(ms=100_000)), fails))
    assert 100 <= only.ms < 200


def test_branches_go() -> None:
    branches = [UpdateThread(thread_id=f"t{i}") for i in range(4)]

    def fails(candidate: Program) -> bool:
        return any(isinstance(o, Together) and len(o.operations) >= 2 for o in candidate.operations)

    only = single(shrink(program(Together(operations=[*branches])), fails))
    assert len(only.operations) == 2


def test_branches_that_fail_one_after_another_are_no_longer_together() -> None:
    branches = [UpdateThread(thread_id="a"), UpdateThread(thread_id="b")]

    def fails(candidate: Program) -> bool:
        inner = [o for p in candidate.operations for o in (p.operations if isinstance(p, Together) else [p])]
        return len(inner) == 2

    shrunk = shrink(program(Together(operations=[*branches])), fails).program
    assert [operation.name for operation in shrunk.operations] == ["update_thread", "update_thread"]


def test_what_cannot_shrink_is_minimal() -> None:
    assert shrink(program(Reopen()), has("reopen")).minimal


def test_the_cap_on_runs_is_kept() -> None:
    asked: list[Program] = []

    def fails(candidate: Program) -> bool:
        asked.append(candidate)
        return False

    shrink(LONG, fails, runs=7)
    assert len(asked) == 7


def test_at_the_cap_nothing_is_called_minimal() -> None:
    assert not shrink(LONG, lambda candidate: False, runs=7).minimal


def test_no_time_no_runs() -> None:
    assert shrink(LONG, has("reopen"), expired=lambda: True).runs == 0


def test_what_was_gained_before_time_ran_out_is_kept() -> None:
    left = iter([False] * 20 + [True] * 1000)
    shrunk = shrink(LONG, has("reopen"), expired=lambda: next(left)).program
    assert len(shrunk.operations) < len(LONG.operations)


def test_no_candidate_is_asked_about_twice() -> None:
    asked: list[str] = []

    def fails(candidate: Program) -> bool:
        asked.append(candidate.hash)
        return len(candidate.operations) > 3

    shrink(LONG, fails)
    assert len(asked) == len(set(asked))


def test_every_candidate_decodes_from_json() -> None:
    def fails(candidate: Program) -> bool:
        assert msgspec.json.decode(msgspec.json.encode(candidate), type=Program) == candidate
        return len(candidate.operations) > 2

    shrink(LONG, fails)


def test_every_candidate_has_readable_forms() -> None:
    def fails(candidate: Program) -> bool:
        for operation in candidate.operations:
            operation.arguments()
        return len(candidate.operations) > 2

    shrink(LONG, fails)


def test_a_tree_with_an_unknown_form_is_no_program() -> None:
    assert read({"operations": [{"op": "delete_messages", "ids": {"$at": 1}}]}) is None


def test_a_tree_without_a_required_field_is_no_program() -> None:
    assert read({"operations": [{"op": "get_thread"}]}) is None


def test_a_branch_with_an_unreadable_form_is_no_program() -> None:
    branch = {"op": "save_messages", "messages": [{"id": "m"}]}
    assert read({"operations": [{"op": "together", "operations": [branch]}]}) is None


def test_an_embedder_that_matters_not_is_dropped() -> None:
    program = msgspec.structs.replace(LONG, embedder=3)
    assert shrink(program, lambda candidate: len(candidate.operations) > 2).program.embedder == 0


def test_the_branches_of_an_operator_filter_are_dropped() -> None:
    where = {"$or": [{"k": 1}, {"n": {"$gt": 1}}, {"s": "x"}]}
    program = Program((QueryVectors(index="i", vector=[1], filter=where),))

    def fails(candidate: Program) -> bool:
        return any(
            isinstance(operation, QueryVectors) and "$gt" in str(operation) for operation in candidate.operations
        )

    (operation,) = shrink(program, fails).program.operations
    assert isinstance(operation, QueryVectors)
    assert str(operation).count("{") <= 3
