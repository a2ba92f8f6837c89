"""The judge: a right transcript conforms, a wrong one never passes, and the broken clause is the one blamed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
import pytest
from memassay.harness.corpus import generate
from memassay.spec import program as ops
from memassay.spec.interpreter import Crashed, Outcome, Refused, Returned, Snapshot
from memassay.spec.judge import expect, judge
from memassay.spec.program import AnyOperation, Program
from memassay.spec.strategies import SCENARIOS
from memassay.spec.types import Message, RecallResult

SHORT = [name for name in SCENARIOS if name not in ("window", "long-values", "approximate", "rare")]
T0 = "2024-03-01T12:00:00+00:00"
ASC, DESC = {"direction": "ASC"}, {"direction": "DESC"}
replace = msgspec.structs.replace


@cache
def programs(scenario: str) -> list[Program]:
    return generate(SCENARIOS[scenario].strategy, 12, 3)


@pytest.mark.parametrize("scenario", SHORT)
def test_the_models_own_transcript_conforms(scenario: str) -> None:
    assert [judge(program, expect(program)) for program in programs(scenario)] == [()] * len(programs(scenario))


WRONG: tuple[Outcome, ...] = (
    Crashed("DriverError", "no such table"),
    Refused("unsupported", "not here"),
    Returned("something else"),
)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: type(wrong).__name__)
@pytest.mark.parametrize("scenario", SHORT)
def test_no_wrong_outcome_passes(scenario: str, wrong: Outcome) -> None:
    silent: list[str] = []
    for program in programs(scenario)[:4]:
        right = expect(program)
        for index, operation in enumerate(program.operations):
            if isinstance(operation, ops.Observe | ops.Together | ops.Race) and isinstance(wrong, Returned):
                continue  # Those are the interpreter's own values, never a store's.
            if isinstance(right[index], Refused) and isinstance(wrong, Refused):
                continue
            if not judge(program, (*right[:index], wrong, *right[index + 1 :])):
                silent.append(f"{index} {operation}")
    assert silent == []


def test_a_shortened_transcript_is_an_error_of_the_caller() -> None:
    program = Program((ops.CreateThread(id="t", resource_id="r"),))
    with pytest.raises(AssertionError):
        judge(program, ())


# Blame

ARRANGED: tuple[AnyOperation, ...] = (
    ops.CreateThread(id="t", resource_id="r"),
    ops.SaveMessages(
        messages=[
            {"id": name, "thread_id": "t", "content": "x", "created_at": {"$at": T0}, "metadata": {"k": number}}
            for number, name in enumerate(("c", "a", "b", "d"))
        ]
    ),
    ops.Observe(),
)


def blame(operation: AnyOperation, tamper: Callable[[Any], Any], *before: AnyOperation) -> list[str]:
    """The clauses blamed when the value of the last operation is tampered with."""
    program = Program((*ARRANGED, *before, operation))
    right = expect(program)
    last = right[-1]
    assert isinstance(last, Returned)
    return [divergence.clause for divergence in judge(program, (*right[:-1], Returned(tamper(last.value))))]


def rows(change: Callable[[list[Message]], list[Message]]) -> Callable[[RecallResult], RecallResult]:
    return lambda result: replace(result, messages=tuple(change(list(result.messages))))


def reverse(messages: list[Message]) -> list[Message]:
    return messages[::-1]


def seen(change: Callable[[list[Message]], list[Message]]) -> Callable[[Snapshot], Snapshot]:
    """Change the listing of t in an observation."""

    def tamper(snapshot: Snapshot) -> Snapshot:
        messages = tuple(change(list(snapshot.rows["t"].messages)))
        listing = replace(snapshot.rows["t"], messages=messages, total=len(messages))
        return replace(snapshot, rows={"t": listing})

    return tamper


def first(**fields: Any) -> Callable[[list[Message]], list[Message]]:
    """Other fields for the first message."""
    return lambda messages: [replace(messages[0], **fields), *messages[1:]]


def test_a_reversed_listing_is_blamed_on_the_direction() -> None:
    assert blame(ops.Recall(thread_id="t", per_page=False, order_by=DESC), rows(reverse)) == ["ORD-2"]


def test_a_page_of_other_rows_is_blamed_on_paging() -> None:
    listing = ops.Recall(thread_id="t", per_page=False, order_by=ASC)
    page = ops.Recall(thread_id="t", per_page=2, order_by=ASC)
    assert blame(page, rows(lambda messages: messages[:1]), listing) == ["ORD-3"]


def test_a_wrong_default_is_blamed_on_the_default() -> None:
    assert blame(ops.Recall(thread_id="t", order_by=ASC), rows(lambda messages: messages[:3])) == ["ORD-4"]


@pytest.mark.parametrize("fields", [{"total": 5}, {"has_more": False}], ids=str)
def test_wrong_counts_are_blamed_on_counting(fields: dict[str, Any]) -> None:
    page = ops.Recall(thread_id="t", per_page=2)
    assert blame(page, lambda result: replace(result, **fields)) == ["ORD-5"]


def test_a_lost_neighbour_is_blamed_on_the_window() -> None:
    window = ops.Recall(thread_id="t", include=[{"id": "a", "with_next_messages": 1}], order_by=ASC)
    assert blame(window, rows(lambda messages: messages[:1])) == ["INC-1"]


def test_included_rows_out_of_order_are_blamed_on_the_union() -> None:
    window = ops.Recall(thread_id="t", include=[{"id": "a", "with_next_messages": 1}], order_by=ASC)
    assert blame(window, rows(reverse)) == ["INC-2"]


def test_a_row_the_filter_excludes_is_blamed_on_the_filter() -> None:
    narrowed = ops.Recall(thread_id="t", per_page=False, order_by=ASC, filter={"metadata": {"k": 1}})
    assert blame(narrowed, rows(lambda messages: [])) == ["FLT-1"]


def test_a_row_the_range_excludes_is_blamed_on_the_range() -> None:
    narrowed = ops.Recall(thread_id="t", per_page=False, order_by=ASC, filter={"date_range": {"start": {"$at": T0}}})
    assert blame(narrowed, rows(lambda messages: messages[1:])) == ["TIM-1"]


def test_another_resources_row_is_blamed_on_isolation() -> None:
    read = ops.Recall(thread_id="t", resource_id="r", per_page=False, order_by=ASC)
    assert blame(read, rows(first(resource_id="other"))) == ["ISO-1"]


def test_ties_in_another_order_are_blamed_on_the_order() -> None:
    saved = ops.SaveMessages(messages=[{"id": "a", "thread_id": "t", "content": "again"}])
    assert blame(ops.Observe(), seen(reverse), saved) == ["ORD-1"]


@pytest.mark.parametrize(
    ("operation", "clause"),
    [
        (ops.SaveMessages(messages=[{"id": "e", "thread_id": "t", "content": "x"}]), "MSG-1"),
        (ops.SaveMessages(messages=[{"id": "c", "thread_id": "t", "content": "again"}]), "MSG-2"),
        (ops.UpdateMessages(updates=[{"id": "c", "role": "tool"}]), "MSG-4"),
        (ops.DeleteMessages(ids=["unknown"]), "MSG-5"),
        (ops.Reopen(), "DUR-1"),
    ],
    ids=["save", "save again", "update", "delete", "reopen"],
)
def test_a_lost_row_is_blamed_on_the_call_that_touched_it(operation: AnyOperation, clause: str) -> None:
    victim = "e" if clause == "MSG-1" else "c"
    lost = seen(lambda messages: [message for message in messages if message.id != victim])
    assert blame(ops.Observe(), lost, operation) == [clause]


@pytest.mark.parametrize(
    ("fields", "clause"),
    [
        ({"content": "X"}, "VAL-2"),
        ({"metadata": {"k": 1}}, "VAL-3"),
        ({"metadata": {"k": 0, "spoilt-by-the-caller": True}}, "VAL-4"),
        ({"role": "tool"}, "MSG-0"),
        ({"resource_id": "other"}, "ISO-1"),
    ],
    ids=["content", "metadata", "alias", "role", "owner"],
)
def test_a_value_that_did_not_come_back_is_blamed_on_its_kind(fields: dict[str, Any], clause: str) -> None:
    program = Program(ARRANGED)
    right = expect(program)
    observed = right[-1]
    assert isinstance(observed, Returned)
    tampered = Returned(seen(first(**fields))(observed.value))
    assert [divergence.clause for divergence in judge(program, (*right[:-1], tampered))] == [clause]


def test_a_fault_seen_once_is_not_blamed_again() -> None:
    program = Program((*ARRANGED, ops.UpdateThread(thread_id="t", title="new"), ops.Observe()))
    right = list(expect(program))
    for index in (2, 4):
        observed = right[index]
        assert isinstance(observed, Returned)
        right[index] = Returned(seen(lambda messages: messages[1:])(observed.value))
    assert [(found.clause, found.index) for found in judge(program, tuple(right))] == [("MSG-1", 2)]


def test_a_page_is_judged_by_the_stores_own_listing() -> None:
    """A listing in a wrong order is one fault; pages that are slices of it are none."""
    listing = ops.Recall(thread_id="t", per_page=False, order_by=DESC)
    page = ops.Recall(thread_id="t", per_page=2, order_by=DESC)
    program = Program((*ARRANGED, listing, page))
    right = list(expect(program))
    whole = right[3]
    assert isinstance(whole, Returned)
    messages: tuple[Message, ...] = whole.value.messages[::-1]
    right[3] = Returned(replace(whole.value, messages=messages))
    part = right[4]
    assert isinstance(part, Returned)
    right[4] = Returned(replace(part.value, messages=messages[:2]))
    assert [found.clause for found in judge(program, tuple(right))] == ["ORD-2"]
