"""The workload of messages against the model, and what a workbench makes of clients that are wrong or fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Unpack

import pytest
from memassay.backends.baselines import Listed
from memassay.backends.baselines import Message as Row
from memassay.benchmarks.messages import MINE, PAGE, THEIRS, Question, Workload, listed, thread_id
from memassay.benchmarks.turns import WarmUp
from memassay.benchmarks.workbench import READS, Measured, Workbench, attempt, fill
from memassay.harness.redact import Redactor
from memassay.spec.reference import Model
from memassay.spec.requests import RecallOptions
from memassay.spec.types import Include, MessageFilter, NewMessage, RecallResult

SIZE, QUERIES = 1_000, 4
WARM_UP = WarmUp(turns=2)


class Store(Model):
    """The model, with what a test breaks of it."""

    def __init__(self) -> None:
        super().__init__()
        self.twist: Callable[[RecallResult], RecallResult] = lambda result: result

    def recall(self, thread_id: str, **options: Unpack[RecallOptions]) -> RecallResult:
        return self.twist(super().recall(thread_id, **options))


class ByHand:
    """A hand-written client of the same model, with what a test breaks of it."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.twist: Callable[[Listed], Listed] = lambda found: found
        self.forgets = False

    def page(
        self, thread_id: str, resource_id: str, count: int, offset: int = 0, metadata: Mapping[str, str] | None = None
    ) -> Listed:
        narrowed = None if metadata is None else MessageFilter(metadata=dict(metadata))
        page = offset // count
        found = self._model.recall(thread_id, resource_id=resource_id, per_page=count, page=page, filter=narrowed)
        return self.twist(listed(found))

    def around(self, thread_id: str, resource_id: str, id: str, before: int, after: int) -> Listed:
        include = [Include(id, with_previous_messages=before, with_next_messages=after)]
        return self.twist(listed(self._model.recall(thread_id, resource_id=resource_id, include=include)))

    def save(self, messages: Sequence[Row]) -> Sequence[Row]:
        if not self.forgets:
            self._model.save_messages([new(row) for row in messages])
        return messages

    def close(self) -> None:
        pass


def new(row: Row) -> NewMessage:
    id, thread, resource, role, content, metadata, at = row
    return NewMessage(id, thread, content, role, metadata, datetime.fromtimestamp(at / 1000, UTC), resource)


class Bench:
    """A store and a client by hand, both right, at a workbench."""

    def __init__(self, *, alone: bool = False) -> None:
        self.workload = Workload(SIZE, 7)
        self.store = Store()
        fill(self.store, self.workload)
        self.by_hand = ByHand(Model(state=self.store.state))
        self.bench = Workbench(self.store, None if alone else self.by_hand, self.workload, QUERIES, WARM_UP)

    def newest(self) -> Measured:
        return self.bench.read(Workload.newest, "newest")


@pytest.fixture
def bench() -> Bench:
    return Bench()


# The workload


def test_the_same_seed_asks_the_same() -> None:
    asked = [[question(Workload(SIZE, seed)) for question in READS.values()] for seed in (7, 7, 8)]
    assert asked[0] == asked[1] != asked[2]


def test_a_filter_leaves_one_in_a_hundred() -> None:
    rows, total, more = Workload(SIZE, 7).answer(Question(3, PAGE, metadata={"topic": "t3", "user": "u4"}))
    assert [int(row[0][-8:]) for row in rows] == [943, 843, 743, 643, 543, 443, 343, 243, 143, 43]
    assert (total, more) == (10, False)


@pytest.mark.parametrize("around", [0, 1, 500, SIZE - 2, SIZE - 1])
def test_neighbours_end_where_the_thread_does(around: int) -> None:
    rows, total, more = Workload(SIZE, 7).answer(Question(3, around=around))
    expected = [number for number in range(around + 2, around - 3, -1) if 0 <= number < SIZE]
    assert [int(row[0][-8:]) for row in rows] == expected
    assert (total, more) == (SIZE, False)


@pytest.mark.parametrize("question", READS.values(), ids=READS)
def test_what_is_right_is_what_the_model_answers(bench: Bench, question: Callable[[Workload], Question]) -> None:
    found = bench.bench.read(question, "read")
    assert (found.fault, found.baseline_fault) == (None, None)


def test_more_follow_a_page_but_the_last() -> None:
    workload = Workload(SIZE, 7)
    assert workload.answer(Question(3, PAGE, 18))[2]
    assert not workload.answer(Question(3, PAGE, 19))[2]


# Right clients


def test_both_sides_are_timed_as_often_as_asked_for(bench: Bench) -> None:
    found = bench.newest()
    assert (len(found.nanoseconds), len(found.baseline_nanoseconds)) == (QUERIES, QUERIES)


def test_a_save_stores_what_both_were_given(bench: Bench) -> None:
    found = bench.bench.save(3, "save")
    assert (found.fault, found.baseline_fault, found.operation) == (None, None, "save")
    saved = SIZE + 3 * (QUERIES + found.discarded)
    counts = [bench.store.recall(thread_id(thread), per_page=0).total for thread in (MINE, THEIRS, 2)]
    assert counts == [saved, saved, SIZE]


def test_an_adapter_alone_is_measured_alone() -> None:
    bench = Bench(alone=True)
    for found in (bench.newest(), bench.bench.save(1, "save")):
        assert (len(found.nanoseconds), found.baseline_nanoseconds) == (QUERIES, [])
        assert (found.fault, found.baseline_fault) == (None, None)


# Wrong ones


def test_a_wrong_page_of_the_adapter_is_counted(bench: Bench) -> None:
    bench.store.twist = lambda result: RecallResult(result.messages[::-1], result.total, 0, 10, result.has_more)
    found = bench.newest()
    assert (found.fault, found.baseline_fault) == (f"{QUERIES} wrong", None)


def test_a_wrong_total_by_hand_is_counted(bench: Bench) -> None:
    bench.by_hand.twist = lambda found: (found[0], found[1] + 1, found[2])
    found = bench.newest()
    assert (found.fault, found.baseline_fault) == (None, f"{QUERIES} wrong")


def test_what_is_not_stored_by_hand_is_missed(bench: Bench) -> None:
    bench.by_hand.forgets = True
    found = bench.bench.save(1, "save")
    assert (found.fault, found.baseline_fault) == (None, "not as saved")


def test_what_the_adapter_loses_is_missed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def save(messages: Sequence[NewMessage]) -> object:
        saved = Model.save_messages(bench.store, messages)
        bench.store.delete_messages([messages[0].id])
        return saved

    monkeypatch.setattr(bench.store, "save_messages", save)
    found = bench.bench.save(1, "save")
    assert (found.fault, found.baseline_fault) == ("not as saved", None)


# Clients that fail


def fail(found: object) -> RecallResult:
    raise ValueError("no luck at secret")


def test_an_adapter_that_fails_is_told_of(bench: Bench) -> None:
    bench.store.twist = fail
    found = attempt("newest", Redactor([]), lambda operation: bench.newest())
    assert (found.fault, found.baseline_fault) == ("ValueError: no luck at secret", None)
    assert found.nanoseconds == []


def test_a_client_by_hand_that_fails_is_no_fault_of_the_adapter(bench: Bench) -> None:
    bench.by_hand.twist = lambda found: (fail(found).messages, 0, False)  # pyright: ignore[reportAttributeAccessIssue, reportReturnType]
    found = attempt("newest", Redactor([]), lambda operation: bench.newest())
    assert (found.fault, found.baseline_fault) == (None, "ValueError: no luck at secret")
