"""The model against a second implementation that keeps no order and no index: it replays its log at every question."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pytest
from memassay.harness.corpus import generate
from memassay.spec import program as ops
from memassay.spec.errors import StoreError
from memassay.spec.interpreter import START, Interpreter, Refused, Returned, run
from memassay.spec.program import Program
from memassay.spec.reference import Model, ModelNamespace
from memassay.spec.strategies import SCENARIOS
from memassay.spec.types import Message, MessageFilter, NewMessage, OrderBy, RecallResult, Thread, ThreadPage

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
OLDEST_FIRST = OrderBy(direction="ASC")
COMPARED = ("messages", "threads", "paging", "dates", "filters", "includes", "values", "reopened")
PROGRAMS = 60


@cache
def programs(scenario: str) -> list[Program]:
    return generate(SCENARIOS[scenario].strategy, PROGRAMS, 7)


# The second implementation


def milliseconds(at: datetime) -> int:
    return (at - EPOCH) // timedelta(milliseconds=1)


def alike(stored: Any, wanted: Any) -> bool:
    """Equal scalars of one JSON type."""
    if isinstance(stored, list | dict):
        return False
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in (stored, wanted)]
    return stored == wanted if all(numbers) else json.dumps(stored) == json.dumps(wanted)


class Ledger:
    """Calls that succeeded, with the instants at which they were made. Reads replay them all.

    A row is [id, thread, role, content, metadata, milliseconds]; rows stand in the order in which they
    entered their threads. A thread is [resource, title, metadata, created, updated].
    """

    def __init__(self) -> None:
        self.log: list[tuple[int, str, dict[str, Any]]] = []
        self.rows: list[list[Any]] = []
        self.threads: dict[str, list[Any]] = {}

    def replay(self) -> None:
        self.rows, self.threads = [], {}
        for now, name, arguments in self.log:
            getattr(self, name)(now, **arguments)

    def row(self, message_id: str) -> list[Any] | None:
        return next((row for row in self.rows if row[0] == message_id), None)

    def touch(self, thread_id: str, now: int) -> None:
        self.threads[thread_id][4] = max(self.threads[thread_id][4], now)

    def create_thread(self, now: int, **given: Any) -> None:
        at = milliseconds(given["created_at"]) if given.get("created_at") else now
        metadata: dict[str, Any] = given.get("metadata") or {}
        self.threads[given["id"]] = [given["resource_id"], given.get("title", ""), metadata, at, at]

    def update_thread(self, now: int, *, thread_id: str, title: str | None = None, metadata: Any = None) -> None:
        thread = self.threads[thread_id]
        thread[1] = thread[1] if title is None else title
        thread[2] = {**thread[2], **(metadata or {})}
        self.touch(thread_id, now)

    def delete_thread(self, now: int, *, thread_id: str) -> None:
        self.threads.pop(thread_id, None)
        self.rows = [row for row in self.rows if row[1] != thread_id]

    def save_messages(self, now: int, *, messages: list[NewMessage]) -> None:
        for message in messages:
            old = self.row(message.id)
            at = now if old is None else old[5]
            at = at if message.created_at is None else milliseconds(message.created_at)
            content = message.content if isinstance(message.content, str) else list(message.content)
            new = [message.id, message.thread_id, message.role, content, message.metadata or {}, at]
            self.touch(message.thread_id, now)
            if old is None:
                self.rows.append(new)
            elif old[1] == message.thread_id:
                old[:] = new
            else:
                self.touch(old[1], now)
                self.rows.remove(old)
                self.rows.append(new)

    def update_messages(self, now: int, *, updates: list[Any]) -> None:
        for update in updates:
            row = self.row(update.id)
            if row is not None:
                row[2] = update.role or row[2]
                content = row[3] if update.content is None else update.content
                row[3] = content if isinstance(content, str) else list(content)
                row[4] = {**row[4], **(update.metadata or {})}
                self.touch(row[1], now)

    def delete_messages(self, now: int, *, ids: list[str]) -> None:
        for row in [row for row in self.rows if row[0] in ids]:
            self.touch(row[1], now)
            self.rows.remove(row)

    def clear_messages(self, now: int, *, thread_id: str) -> None:
        if any(row[1] == thread_id for row in self.rows):
            self.touch(thread_id, now)
        self.rows = [row for row in self.rows if row[1] != thread_id]

    # Questions

    def ordered(self, thread_id: str) -> list[list[Any]]:
        return sorted((row for row in self.rows if row[1] == thread_id), key=lambda row: row[5])

    def recall(self, options: Any, **given: Any) -> tuple[list[str], int, bool]:
        """The ids, the total and whether there are more."""
        thread_id: str = given["thread_id"]
        rows = self.ordered(thread_id)
        narrowed = given.get("filter") or MessageFilter()
        for key, wanted in (narrowed.metadata or {}).items():
            rows = [row for row in rows if key in row[4] and alike(row[4][key], wanted)]
        if (window := narrowed.date_range) is not None:
            low, high = window.start and milliseconds(window.start), window.end and milliseconds(window.end)
            rows = [row for row in rows if low is None or row[5] > low - (not window.start_exclusive)]
            rows = [row for row in rows if high is None or row[5] < high + (not window.end_exclusive)]
        total, ascending = len(rows), given.get("order_by") is not None and given["order_by"].direction == "ASC"
        include: list[Any] = given.get("include") or []
        size, page = given.get("per_page"), given.get("page", 0)
        if size is None:
            config = given.get("thread_config") or options
            last = getattr(config, "last_messages", None)
            last = getattr(options, "last_messages", None) if type(last).__name__ == "UnsetType" else last
            size = 10 if last is None or type(last).__name__ == "UnsetType" else int(last)
            size = 0 if include else size
        rows = rows if ascending else rows[::-1]
        shown = rows if size is False else [row for i, row in enumerate(rows) if page * size <= i < (page + 1) * size]
        more = size is not False and size > 0 and (page + 1) * size < total
        if not include:
            return [row[0] for row in shown], total, more
        everything = [row for name in sorted(self.threads) for row in self.ordered(name)]
        kept = {row[0] for row in shown}
        for entry in include:
            where = self.ordered(entry.thread_id or thread_id)
            names = [row[0] for row in where]
            owner = self.threads.get(entry.thread_id or thread_id, [None])[0]
            if entry.id in names and given.get("resource_id") in (None, owner):
                i = names.index(entry.id)
                before, after = entry.with_previous_messages or 0, entry.with_next_messages or 0
                kept |= {name for j, name in enumerate(names) if i - before <= j <= i + after}
        found = sorted((row for row in everything if row[0] in kept), key=lambda row: row[5])
        return [row[0] for row in (found if ascending else found[::-1])], total, more

    def list_threads(self, **given: Any) -> tuple[list[str], int, bool]:
        """The ids, the total and whether there are more."""
        names = sorted(self.threads)
        narrowed, order = given.get("filter"), given.get("order_by") or OrderBy()
        if narrowed is not None:
            names = [name for name in names if narrowed.resource_id in (None, self.threads[name][0])]
            conditions: dict[str, Any] = narrowed.metadata or {}
            for key, wanted in conditions.items():
                held = {name: self.threads[name][2] for name in names}
                names = [name for name in names if key in held[name] and alike(held[name][key], wanted)]
        names = sorted(names, key=lambda name: self.threads[name][3 if order.field == "created_at" else 4])
        names = names if order.direction == "ASC" else names[::-1]
        size, page = given.get("per_page"), given.get("page", 0)
        if size is False:
            return names, len(names), False
        size = 100 if size is None else size
        shown = names[page * size : (page + 1) * size]
        return shown, len(names), size > 0 and (page + 1) * size < len(names)


def shape(message: Message) -> list[Any]:
    content = list(message.content) if isinstance(message.content, tuple) else message.content
    fields = [message.id, message.thread_id, message.role, content, message.metadata]
    return [*fields, milliseconds(message.created_at)]


def thread_shape(thread: Thread) -> list[Any]:
    instants = [milliseconds(thread.created_at), milliseconds(thread.updated_at)]
    return [thread.resource_id, thread.title, thread.metadata, *instants]


def page_shape(result: RecallResult | ThreadPage) -> tuple[list[str], int, bool]:
    rows = result.messages if isinstance(result, RecallResult) else result.threads
    return [row.id for row in rows], result.total, result.has_more


def check(program: Program) -> None:
    """Run the program on the model, and ask the ledger the same questions."""
    namespace, ledger, now = ModelNamespace(), Ledger(), milliseconds(START)
    state = namespace.state
    options = ops.config(program.options)
    with Interpreter(program, namespace) as interpreter:
        for operation in program.operations:
            outcome = interpreter.step(operation)
            if isinstance(operation, ops.Tick):
                now += operation.ms
            if isinstance(outcome, Refused):
                continue
            assert isinstance(outcome, Returned)
            arguments = operation.arguments()
            if isinstance(operation, ops.CreateThread):
                arguments["id"] = outcome.value.id
            if operation.role == "write":
                ledger.log.append((now, operation.name, arguments))
            ledger.replay()
            match operation:
                case ops.Recall():
                    assert page_shape(outcome.value) == ledger.recall(options, **arguments), str(operation)
                case ops.ListThreads():
                    assert page_shape(outcome.value) == ledger.list_threads(**arguments), str(operation)
                case _:
                    pass
            for name, thread in state.threads.items():
                rows = [shape(row.message) for row in state.rows[name]]
                assert rows == ledger.ordered(name), str(operation)
                assert thread_shape(thread) == ledger.threads[name], str(operation)
            assert state.threads.keys() == ledger.threads.keys()


@pytest.mark.parametrize("scenario", COMPARED)
def test_the_model_answers_as_the_ledger_does(scenario: str) -> None:
    for program in programs(scenario):
        check(program)


# Laws


def held(scenario: str) -> list[tuple[Model, str]]:
    """Models in the state each program leaves, with the threads that have messages."""
    left: list[tuple[Model, str]] = []
    for program in programs(scenario):
        namespace = ModelNamespace()
        run(program, namespace)
        state = namespace.state
        left += [(Model(state=state), name) for name, rows in state.rows.items() if rows]
    assert left
    return left


def names(result: RecallResult) -> list[str]:
    return [message.id for message in result.messages]


def asked(scenario: str) -> list[tuple[Model, str, Callable[..., list[str]]]]:
    def lister(model: Model, thread: str) -> Callable[..., list[str]]:
        def listing(**given: Any) -> list[str]:
            given.setdefault("per_page", False)
            return names(model.recall(thread, **given))

        return listing

    return [(model, thread, lister(model, thread)) for model, thread in held(scenario)]


@pytest.mark.parametrize("scenario", ["messages", "paging"])
def test_descending_is_ascending_reversed(scenario: str) -> None:
    for _, _, listing in asked(scenario):
        assert listing() == listing(order_by=OLDEST_FIRST)[::-1]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_pages_partition_the_listing(size: int) -> None:
    for model, thread, listing in asked("paging"):
        total = model.recall(thread).total
        pages = [listing(page=page, per_page=size) for page in range(-(-total // size))]
        assert [name for page in pages for name in page] == listing()


def test_a_page_says_there_is_more_unless_it_is_the_last() -> None:
    for model, thread in held("paging"):
        total = model.recall(thread).total
        more = [model.recall(thread, page=page, per_page=2).has_more for page in range(-(-total // 2))]
        assert more == [True] * (len(more) - 1) + [False]


def test_a_filter_never_adds_rows() -> None:
    for _, _, listing in asked("filters"):
        one = listing(filter=MessageFilter(metadata={"k": 1}))
        both = listing(filter=MessageFilter(metadata={"k": 1, "n": 1}))
        assert set(both) <= set(one) <= set(listing())


def test_saving_what_was_read_changes_nothing() -> None:
    for model, thread in held("messages"):
        before = model.recall(thread, per_page=False, order_by=OLDEST_FIRST)
        again = [
            NewMessage(m.id, m.thread_id, m.content, m.role, m.metadata, m.created_at, m.resource_id)
            for m in before.messages
        ]
        model.save_messages(again)
        assert model.recall(thread, per_page=False, order_by=OLDEST_FIRST) == before


def test_a_refused_call_changes_nothing() -> None:
    for model, thread in held("messages"):
        before = model.recall(thread, per_page=False)
        with pytest.raises(StoreError):
            model.save_messages([NewMessage("new", thread, "x"), NewMessage("bad", thread, "x", role="nobody")])
        assert model.recall(thread, per_page=False) == before


# Calls that are wrong in several ways: any of their errors is right


def refused(*operations: ops.AnyOperation) -> set[str]:
    """Every code that would be right for the last operation."""
    outcome = run(Program(operations), ModelNamespace())[-1]
    assert isinstance(outcome, Refused)
    return {outcome.code, *outcome.also}


INDEX = ops.CreateIndex(index="i", dimension=2)
THREAD = ops.CreateThread(id="t", resource_id="r")


def test_an_unknown_index_alone_is_index_not_found() -> None:
    assert refused(ops.QueryVectors(index="x", vector=[1.0, 0.0])) == {"index_not_found"}


def test_an_unknown_index_and_a_bad_argument() -> None:
    assert refused(ops.QueryVectors(index="x", vector=[1.0, 0.0], top_k=1.0)) == {"index_not_found", "invalid_request"}


def test_a_query_with_every_argument_wrong() -> None:
    query = ops.QueryVectors(index="i", vector=[1.0], top_k=0, filter={"k": {"$no": 1}}, min_score="x")
    assert refused(INDEX, query) == {"invalid_request", "invalid_vector", "invalid_filter"}


def test_a_wrong_row_in_an_unknown_index() -> None:
    rows = [{"id": "", "vector": [1.0]}, {"id": "a", "vector": ["x"]}]
    assert refused(ops.UpsertVectors(index="x", vectors=rows)) == {
        "index_not_found",
        "invalid_request",
        "invalid_vector",
    }


def test_a_recall_of_a_stranger_with_a_bad_page() -> None:
    recall = ops.Recall(thread_id="t", resource_id="other", page=-1, filter={"metadata": {"$k": []}})
    assert refused(THREAD, recall) == {"invalid_request", "invalid_filter", "ownership_mismatch"}


def test_a_recall_that_is_wrong_in_one_way() -> None:
    assert refused(THREAD, ops.Recall(thread_id="t", resource_id="r", page=-1)) == {"invalid_request"}
