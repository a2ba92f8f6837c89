"""Whom the judge blames for working memory and titles that are not what they should be."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from memassay.spec.interpreter import Returned, Snapshot
from memassay.spec.judge import expect, judge
from memassay.spec.program import (
    AnyOperation,
    CreateThread,
    DeleteThread,
    GetWorkingMemory,
    Observe,
    Program,
    Reopen,
    SaveMessages,
    Settle,
    UpdateThread,
    UpdateWorkingMemory,
)
from memassay.spec.titlers import IN_THE_WAY

CREATE = CreateThread(id="t1", resource_id="r1")
WRITE, READ = UpdateWorkingMemory(thread_id="t1", value="x"), GetWorkingMemory(thread_id="t1")
SAVE = SaveMessages(
    messages=[
        {"id": "q", "thread_id": "t1", "content": "why?"},
        {"id": "a", "thread_id": "t1", "content": "so", "role": "assistant"},
    ]
)


def notes(*operations: AnyOperation) -> Program:
    return Program(operations=operations, options={"working_memory": {"enabled": True}})


def blamed(program: Program, wrong: dict[int, Any]) -> list[tuple[int, str]]:
    """Where the judge finds what, when operations returned something else than they should."""
    outcomes = [Returned(wrong[i]) if i in wrong else right for i, right in enumerate(expect(program))]
    return [(found.index, found.clause) for found in judge(program, tuple(outcomes))]


def test_a_value_that_does_not_come_back_is_wm_1s() -> None:
    assert blamed(notes(CREATE, WRITE, Observe(), READ), {3: "y"}) == [(3, "WM-1")]


def test_a_value_that_a_reopen_lost_is_wm_1fs() -> None:
    assert blamed(notes(CREATE, WRITE, Observe(), READ, Reopen(), Observe(), READ), {6: None}) == [(6, "WM-1f")]


def test_a_value_that_was_never_there_is_not_lost_by_a_reopen() -> None:
    found = blamed(notes(CREATE, WRITE, Observe(), READ, Reopen(), Observe(), READ), {3: None, 6: None})
    assert found == [(3, "WM-1"), (6, "WM-1")]


def test_a_value_of_a_thread_that_was_deleted_is_wm_1cs() -> None:
    program = notes(CREATE, WRITE, Observe(), DeleteThread(thread_id="t1"), CREATE, Observe(), READ)
    assert blamed(program, {6: "x"}) == [(6, "WM-1c")]


def test_a_value_that_only_the_next_read_shows_is_late() -> None:
    other = GetWorkingMemory(thread_id="t1", client=1)
    assert blamed(notes(CREATE, Observe(), WRITE, other, Observe(), other), {3: None}) == [(3, "CON-1c")]


def retitled(program: Program, index: int, title: str) -> Snapshot:
    """What an observation of the model shows, but for the title of t1."""
    outcome = expect(program)[index]
    assert isinstance(outcome, Returned)
    shown: Snapshot = outcome.value
    thread = shown.threads["t1"]
    assert thread is not None
    return msgspec.structs.replace(shown, threads={"t1": msgspec.structs.replace(thread, title=title)})


TITLED: dict[str, tuple[tuple[AnyOperation, ...], str, str]] = {
    "made before the save returned": ((CREATE, SAVE, Observe()), IN_THE_WAY, "TTL-1b"),
    "not made": ((CREATE, SAVE, Observe(), Settle(), Observe()), "", "TTL-1"),
    "another": ((CREATE, SAVE, Observe(), Settle(), Observe()), "other", "TTL-1"),
    "over one that was set meanwhile": (
        (CREATE, SAVE, UpdateThread(thread_id="t1", title="mine"), Observe(), Settle(), Observe()),
        "About why?",
        "TTL-1a",
    ),
}


@pytest.mark.parametrize(("operations", "title", "clause"), TITLED.values(), ids=TITLED.keys())
def test_a_title_that_is_wrong_is_blamed(operations: tuple[AnyOperation, ...], title: str, clause: str) -> None:
    program = Program(operations=operations, options={"generate_title": True}, titler=True)
    last = len(operations) - 1
    assert blamed(program, {last: retitled(program, last, title)}) == [(last, clause)]
