"""Histories: races have to come to what some order of their calls comes to, and calls that died happened or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec
import pytest
from memassay.spec.interpreter import Call, Crashed, History, Interpreter, Lost, Outcome, Refused, Returned
from memassay.spec.judge import judge
from memassay.spec.operation import Operation
from memassay.spec.program import (
    CreateThread,
    DeleteThread,
    Kill,
    Observe,
    Program,
    Race,
    Raced,
    Recall,
    SaveMessages,
    UpdateThread,
)
from memassay.spec.reference import ModelNamespace
from memassay.spec.reference_index import MODEL_CAPABILITIES

NOON = {"$at": "2024-03-01T12:00:00+00:00"}
ASC = {"direction": "ASC"}
LISTING = Recall(thread_id="t", per_page=False, order_by=ASC)
THREAD = CreateThread(id="t", resource_id="r")
COMPENSATED = msgspec.structs.replace(MODEL_CAPABILITIES, atomicity="compensated")


def save(*names: str) -> SaveMessages:
    return SaveMessages(messages=[{"id": n, "thread_id": "t", "content": "x", "created_at": NOON} for n in names])


def answers(*operations: Operation) -> tuple[Outcome, ...]:
    """What the model says, one after another, in an empty namespace."""
    with Interpreter(Program(()), ModelNamespace()) as interpreter:
        return interpreter.run(operations)


def raced(branches: Sequence[Sequence[Raced]], calls: Sequence[Call], seen: Outcome) -> tuple[Program, Any]:
    """A thread, a race with this history, and what was observed after it."""
    program = Program((THREAD, Race(branches=[[*branch] for branch in branches]), Observe()))
    return program, (answers(THREAD)[0], Returned(History(tuple(calls))), seen)


def aspects(program: Program, transcript: tuple[Outcome, ...], capabilities: Any = MODEL_CAPABILITIES) -> list[str]:
    return [str(found.signature) for found in judge(program, transcript, capabilities)]


def order(*saves: SaveMessages) -> tuple[tuple[Outcome, ...], Outcome]:
    """What saves answer in this order, and what is there then."""
    said = answers(THREAD, *saves, Observe())
    return said[1:-1], said[-1]


ONE, OTHER = save("z"), save("a")


def test_any_order_of_calls_that_overlap_is_right() -> None:
    (first, second), seen = order(OTHER, ONE)
    calls = [Call(0, 0, 0, 2, second), Call(1, 0, 1, 3, first)]
    assert aspects(*raced([[ONE], [OTHER]], calls, seen)) == []


def test_a_call_that_had_returned_stands_before_one_that_began_later() -> None:
    (first, second), seen = order(OTHER, ONE)
    calls = [Call(0, 0, 0, 1, second), Call(1, 0, 2, 3, first)]
    assert aspects(*raced([[ONE], [OTHER]], calls, seen)) == ["CON-2 / order / observe"]


def test_what_was_acknowledged_and_is_missing_is_lost() -> None:
    (first, second), _ = order(ONE, OTHER)
    _, seen = order(ONE)
    calls = [Call(0, 0, 0, 2, first), Call(1, 0, 1, 3, second)]
    assert aspects(*raced([[ONE], [OTHER]], calls, seen)) == ["CON-2 / lost / observe"]


def test_a_row_of_a_deleted_thread_is_an_orphan() -> None:
    gone = DeleteThread(thread_id="t")
    said = answers(THREAD, ONE, gone)
    _, seen = order(ONE)
    assert isinstance(seen, Returned)
    last: Any = answers(Observe(), THREAD, gone, Observe())[-1]
    left = msgspec.structs.replace(cast(Any, seen).value, threads={"t": None}, listed=last.value.listed)
    calls = [Call(0, 0, 0, 2, said[2]), Call(1, 0, 1, 3, said[1])]
    assert aspects(*raced([[gone], [ONE]], calls, Returned(left))) == ["CON-2 / orphan / observe"]


def test_a_merge_that_is_gone_is_blamed_on_the_merge() -> None:
    merges = [UpdateThread(thread_id="t", metadata={f"k{i}": i}) for i in range(2)]
    alone = [answers(THREAD, merge, Observe()) for merge in merges]
    both = answers(THREAD, *merges, Observe())
    calls = [Call(0, 0, 0, 2, both[1]), Call(1, 0, 1, 3, both[2])]
    assert aspects(*raced([[merges[0]], [merges[1]]], calls, alone[1][-1])) == ["CON-2 / merge / observe"]


def test_two_creates_of_one_id_cannot_both_succeed() -> None:
    made = answers(THREAD)[0]
    new = CreateThread(id="u", resource_id="r")
    created = answers(new)[0]
    program = Program((Race(branches=[[new], [new]]), Observe()))
    calls = (Call(0, 0, 0, 2, created), Call(1, 0, 1, 3, created))
    seen = answers(new, Observe())[-1]
    assert isinstance(made, Returned)
    assert aspects(program, (Returned(History(calls)), seen)) == ["CON-2 / created / race"]


def test_one_of_two_creates_is_refused() -> None:
    new = CreateThread(id="u", resource_id="r")
    created, refused, seen = answers(new, new, Observe())
    assert isinstance(refused, Refused)
    program = Program((Race(branches=[[new], [new]]), Observe()))
    calls = (Call(0, 0, 0, 2, refused), Call(1, 0, 1, 3, created))
    assert aspects(program, (Returned(History(calls)), seen)) == []


HALF = save("m1", "m2")


def half_read() -> tuple[Program, Any]:
    """A reader sees the first row of a batch that is saved meanwhile."""
    whole, seen = answers(THREAD, HALF, Observe())[1:]
    part = answers(THREAD, save("m1"), LISTING)[-1]
    calls = [Call(0, 0, 0, 3, whole), Call(1, 0, 1, 2, part)]
    return raced([[HALF], [LISTING]], calls, seen)


def test_a_reader_that_sees_half_a_batch_is_explained_by_no_order() -> None:
    assert aspects(*half_read()) == ["CON-2 / read / race"]


def test_where_batches_are_compensated_a_reader_may_see_half_of_one_that_runs() -> None:
    assert aspects(*half_read(), COMPENSATED) == []


def test_also_there_a_reader_sees_all_of_one_that_had_returned() -> None:
    whole, seen = answers(THREAD, HALF, Observe())[1:]
    part = answers(THREAD, save("m1"), LISTING)[-1]
    calls = [Call(0, 0, 0, 1, whole), Call(1, 0, 2, 3, part)]
    assert aspects(*raced([[HALF], [LISTING]], calls, seen), COMPENSATED) == ["CON-2 / read / race"]


def test_a_crash_in_a_race_is_an_error() -> None:
    _, seen = order(ONE)
    calls = [Call(0, 0, 0, 2, order(ONE)[0][0]), Call(1, 0, 1, 3, Crashed("OSError", "gone"))]
    program, transcript = raced([[ONE], [OTHER]], calls, seen)
    assert aspects(program, transcript) == ["CON-2 / error / race"]


def test_what_is_wrong_before_the_race_is_blamed_on_itself() -> None:
    calls = [Call(0, 0, 0, 2, order(ONE)[0][0])]
    program, transcript = raced([[ONE]], calls, order(ONE)[1])
    refused = Refused("already_exists", "")
    assert aspects(program, (refused, *transcript[1:]))[0].startswith("THR-1 / error")


# Calls that died


def died(*seen: Operation) -> tuple[Program, Any]:
    """A batch of two is in doubt after `z` was acknowledged; then what these leave is seen."""
    program = Program((THREAD, ONE, Kill(operation=HALF), Observe()))
    said = answers(THREAD, ONE, *seen, Observe())
    return program, (*said[:2], Returned(Lost("before commit")), said[-1])


@pytest.mark.parametrize("left", [(), (HALF,)], ids=["not", "whole"])
def test_a_call_that_died_happened_or_not(left: tuple[Operation, ...]) -> None:
    assert aspects(*died(*left)) == []


def test_half_a_batch_that_died_is_neither() -> None:
    assert aspects(*died(save("m1"))) == ["DUR-1a / half / observe"]


def test_where_batches_are_compensated_a_part_may_be_there() -> None:
    assert aspects(*died(save("m2")), COMPENSATED) == []


@pytest.mark.parametrize("capabilities", [MODEL_CAPABILITIES, COMPENSATED])
def test_what_was_acknowledged_before_a_kill_is_there(capabilities: Any) -> None:
    program = Program((THREAD, ONE, Kill(operation=HALF), Observe()))
    said = answers(THREAD, ONE)
    nothing = answers(THREAD, Observe())[-1]
    assert aspects(program, (*said, Returned(Lost("before commit")), nothing), capabilities) == [
        "DUR-1a / lost / observe"
    ]
