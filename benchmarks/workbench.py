"""An adapter and a hand-written client at one namespace of messages: every operation, in turn, its answers judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from functools import partial
from itertools import count, islice
from typing import Any, TypeVar

from ..backends.baselines import Listed, Messages, open_messages
from ..backends.baselines import Message as Row
from ..harness.engine import Engine, Namespaces
from ..harness.redact import Redactor
from ..spec.protocols import Memory, Runtime
from ..spec.requests import RecallOptions
from ..spec.types import Include, MemoryConfig, Message, MessageFilter, RecallResult
from .messages import (
    AROUND,
    MINE,
    NEWEST,
    PAGE,
    RESOURCE,
    START,
    THEIRS,
    THREADS,
    Question,
    Save,
    Workload,
    id_of,
    listed,
    row_of,
    thread_id,
)
from .turns import Asked, Pair, WarmUp, ask_in_turn

Request = TypeVar("Request")
Answer = TypeVar("Answer")

BATCH = 1_000
SAVED = 100

READS: dict[str, Callable[[Workload], Question]] = {
    f"newest {NEWEST}": Workload.newest,
    f"page of {PAGE}": Workload.page,
    f"page of {PAGE}, filtered 1 %": Workload.filtered,
    f"include ±{AROUND}": Workload.around,
}
SAVES = {"save 1": 1, f"save {SAVED}": SAVED}


class Measured(Pair, kw_only=True):
    """One operation: every time, and why there is none to show."""

    operation: str
    fault: str | None = None
    baseline_fault: str | None = None
    discarded: int = 0
    steady: bool = True

    @classmethod
    def failed(cls, operation: str, fault: str | None = None, baseline_fault: str | None = None) -> Measured:
        """An operation that somebody could not do."""
        return cls(
            operation=operation,
            fault=fault,
            baseline_fault=baseline_fault,
            nanoseconds=[],
            baseline_nanoseconds=[],
        )


class ByHandFailed(Exception):
    """The hand-written client raised; the message says what."""


def measure(
    name: str,
    engine: Engine,
    namespaces: Namespaces,
    workload: Workload,
    queries: int,
    warm_up: WarmUp,
    told: Callable[[str], None],
) -> Iterator[Measured]:
    """Every operation so many times, in a namespace of its own, which is dropped at the end."""
    url, backend = engine.endpoint.url, engine.backend
    with (
        namespaces.fresh() as namespace,
        closing(backend.open_memory(url, namespace, Runtime(), MemoryConfig())) as memory,
    ):
        told(f"{name}: storing {THREADS} threads of {workload.size:,} messages")
        fill(memory, workload)
        baseline = open_messages(backend.name, url, namespace)
        with nullcontext() if baseline is None else closing(baseline):
            bench = Workbench(memory, baseline, workload, queries, warm_up)
            for operation, question in READS.items():
                told(f"{name}: {operation}")
                yield attempt(operation, engine.redactor, partial(bench.read, question))
            for operation, messages in SAVES.items():
                told(f"{name}: {operation}")
                yield attempt(operation, engine.redactor, partial(bench.save, messages))


def attempt(operation: str, redactor: Redactor, work: Callable[[str], Measured]) -> Measured:
    """A store that fails at one operation is asked for the next."""
    try:
        return work(operation)
    except ByHandFailed as error:
        return Measured.failed(operation, baseline_fault=redactor.text(str(error)))
    except Exception as error:  # noqa: BLE001 - a store may raise anything
        return Measured.failed(operation, redactor.text(f"{type(error).__name__}: {error}"))


def fill(memory: Memory, workload: Workload) -> None:
    """Store all threads."""
    for thread in range(THREADS):
        memory.create_thread(resource_id=RESOURCE, id=thread_id(thread), created_at=START)
        for start in range(0, workload.size, BATCH):
            numbers = range(start, min(start + BATCH, workload.size))
            memory.save_messages([workload.message(thread, number) for number in numbers])


class Workbench:
    """Both clients, with what they are asked; without a hand-written one, the adapter alone."""

    def __init__(
        self, memory: Memory, baseline: Messages | None, workload: Workload, queries: int, warm_up: WarmUp
    ) -> None:
        self._memory = memory
        self._baseline = baseline
        self._workload = workload
        self._queries = queries
        self._warm_up = warm_up

    def read(self, question: Callable[[Workload], Question], operation: str) -> Measured:
        """One kind of read."""
        drawn = [question(self._workload) for _ in range(self._queries)]
        asked = ask_in_turn(
            drawn,
            self._ask,
            self._by_hand(_ask_by_hand),
            (question(self._workload) for _ in count()),
            self._warm_up,
        )
        right = [self._workload.answer(each) for each in drawn]
        return _result(
            operation,
            asked,
            _wrong(right, [listed(found) for found, _ in asked.adapter]),
            _wrong(right, [found for found, _ in asked.baseline]),
        )

    def save(self, messages: int, operation: str) -> Measured:
        """Saves of so many messages. What either side has saved has to be what the adapter then finds."""
        drawn: list[Save] = []
        saves = self._workload.saves(messages)

        def noted() -> Iterator[Save]:
            for each in islice(saves, self._queries):
                drawn.append(each)
                yield each

        asked = ask_in_turn(noted(), self._save, self._by_hand(_save_by_hand), saves, self._warm_up)
        mine = [
            [(new.id, new.thread_id, *row[2:]) for new, row in zip(each.mine, each.theirs, strict=True)]
            for each in drawn
        ]
        return _result(
            operation,
            asked,
            _wrong(mine, [[*map(row_of, found)] for found, _ in asked.adapter]) or self._lost(MINE),
            None
            if self._baseline is None
            else _wrong([[*each.theirs] for each in drawn], [[*found] for found, _ in asked.baseline])
            or self._lost(THEIRS),
        )

    def _save(self, asked: Save) -> Sequence[Message]:
        return self._memory.save_messages(asked.mine)

    def _by_hand(self, call: Callable[[Messages, Request], Answer]) -> Callable[[Request], Answer] | None:
        baseline = self._baseline
        if baseline is None:
            return None

        def ask(request: Request) -> Answer:
            try:
                return call(baseline, request)
            except Exception as error:
                raise ByHandFailed(f"{type(error).__name__}: {error}") from error

        return ask

    def _ask(self, question: Question) -> RecallResult:
        options: RecallOptions = {"resource_id": RESOURCE}
        if question.around is None:
            options["page"], options["per_page"] = question.page, question.count
        else:
            target = id_of(question.thread, question.around)
            options["include"] = [Include(target, with_previous_messages=AROUND, with_next_messages=AROUND)]
        if question.metadata is not None:
            options["filter"] = MessageFilter(metadata=question.metadata)
        return self._memory.recall(thread_id(question.thread), **options)

    def _lost(self, thread: int) -> str | None:
        """Whether the adapter finds something else in a thread than all that was saved to it."""
        metadata = {"topic": "t0", "user": "u0"}
        for question in (Question(thread, SAVED), Question(thread, PAGE, metadata=metadata)):
            if listed(self._ask(question)) != self._workload.answer(question):
                return "not as saved"
        return None


def _ask_by_hand(baseline: Messages, asked: Question) -> Listed:
    thread = thread_id(asked.thread)
    if asked.around is not None:
        return baseline.around(thread, RESOURCE, id_of(asked.thread, asked.around), AROUND, AROUND)
    return baseline.page(thread, RESOURCE, asked.count, asked.page * asked.count, asked.metadata)


def _save_by_hand(baseline: Messages, asked: Save) -> Sequence[Row]:
    return baseline.save(asked.theirs)


def _result(operation: str, asked: Asked[Any, Any], fault: str | None, baseline_fault: str | None) -> Measured:
    return Measured(
        operation=operation,
        fault=fault,
        baseline_fault=baseline_fault,
        discarded=asked.discarded,
        steady=asked.steady,
        nanoseconds=[took for _, took in asked.adapter],
        baseline_nanoseconds=[took for _, took in asked.baseline],
    )


def _wrong(right: Sequence[object], found: Sequence[object]) -> str | None:
    """How many answers are not right; nothing was found where nobody was asked."""
    wrong = sum(a != b for a, b in zip(right, found, strict=True)) if found else 0
    return f"{wrong} wrong" if wrong else None
