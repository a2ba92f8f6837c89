"""Workloads: streams of the specification's operations, bound to calls ahead of time, and the clauses they rest on."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec
import numpy as np

from ..spec.forms import at
from ..spec.operation import Operation, Target
from ..spec.program import (
    CloneThread,
    DeleteMessages,
    DeleteVectors,
    QueryVectors,
    Recall,
    SaveMessages,
    UpdateMessages,
    UpsertVectors,
)
from .answers import Cloned, Closest, Counted, Expected, Listed, Nearest, Saved
from .filters import FILTERS, NO_FILTER, Filter
from .scene import CHURNED, CLONED, INDEX, SAVED, Scene, Series

POOL = 500
"""Different operations of a workload that reads. They are repeated, each time in another order."""

PAGE = 10
WINDOW = 50
"""Messages in a date range."""

BATCH = 100
READS = 9
"""Of a mixed workload, to each write."""

SEARCHED = ("VEC-3", "VEC-4")
"""How good approximate answers are (VEC-5) is measured in the run itself."""

LISTED = ("ORD-1", "ORD-2", "ORD-5")
RECALLED = ("SEM-1", "SEM-2", "SEM-3")
WRITTEN = ("MSG-1", "CON-1", "DUR-1")


class Call(msgspec.Struct, frozen=True):
    """One operation, its arguments resolved: the method of a client, and what it should return."""

    name: str
    target: Target
    arguments: dict[str, Any]
    expected: Expected


class Stream(msgspec.Struct, frozen=True):
    """Calls in the order in which they are due. cyclic: they may be made again. before: what they need, untimed."""

    calls: Sequence[Call]
    cyclic: bool
    before: Sequence[Call] = ()


Make = Callable[[Scene, Series, int], Iterator[Call]]
"""So many operations (writes), or the pool of them (reads)."""


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of operation. `needs`: capabilities without which a store lacks it; `clauses`: those that have to hold.

    A clause that is about something the store does not claim to do, and the workload does not need, does not count.
    """

    name: str
    about: str
    clauses: tuple[str, ...]
    needs: tuple[str, ...]
    make: Make
    reads: bool = True
    before: Make | None = None
    rows: int = 1
    """Rows that an operation writes."""

    def stream(self, scene: Scene, series: Series, many: int, seed: int) -> Stream:
        """Operations for a phase: at least `many`, or to be repeated. The seed decides their order, for reads."""
        if not self.reads:
            ahead = series.ahead()
            before: tuple[Call, ...] = () if self.before is None else tuple(self.before(scene, ahead, many))
            return Stream([*self.make(scene, series, many)], cyclic=False, before=before)
        pool: list[Call] = scene.pool(self.name, lambda: list(self.make(scene, series, POOL)))
        random = np.random.default_rng([seed, zlib.crc32(self.name.encode())])
        order: list[int] = random.permutation(len(pool)).tolist()
        return Stream([pool[place] for place in order], cyclic=True)


def bind(operation: Operation, expected: Expected) -> Call:
    """The operation as a call: what is symbolic in it is resolved now."""
    return Call(operation.name, operation.target, operation.arguments(), expected)


# Messages


def _recall(scene: Scene, operation: Recall) -> Call:
    """A recall, with what the model answers to it."""
    bound = bind(operation, Listed(()))
    answer = scene.oracle.recall(**bound.arguments)
    return msgspec.structs.replace(bound, expected=Listed(tuple(message.id for message in answer.messages)))


def _newest(scene: Scene, series: Series, many: int) -> Iterator[Call]:
    for thread in scene.threads(many, least=PAGE):
        yield _recall(scene, Recall(thread_id=thread, per_page=PAGE))


def _deep_page(scene: Scene, series: Series, many: int) -> Iterator[Call]:
    random = scene.random("deep-page")
    for thread in scene.threads(many, least=10 * PAGE):
        pages = len(scene.messages(thread)) // PAGE
        yield _recall(scene, Recall(thread_id=thread, page=int(random.integers(pages // 2, pages)), per_page=PAGE))


def _date_range(scene: Scene, series: Series, many: int) -> Iterator[Call]:
    random = scene.random("date-range")
    for thread in scene.threads(many, least=2 * WINDOW):
        messages = scene.messages(thread)
        first = int(random.integers(0, len(messages) - WINDOW))
        start, end = messages[first].created_at, messages[first + WINDOW].created_at
        within = {"start": at(start), "end": at(end + timedelta(milliseconds=1)), "end_exclusive": True}
        yield _recall(scene, Recall(thread_id=thread, per_page=PAGE, filter={"date_range": within}))


def _filtered(scene: Scene, series: Series, many: int) -> Iterator[Call]:
    for thread, metadata in scene.conditions(many, least=10 * PAGE):
        yield _recall(scene, Recall(thread_id=thread, per_page=PAGE, filter={"metadata": dict(metadata)}))


def _include(scene: Scene, series: Series, many: int) -> Iterator[Call]:
    random = scene.random("include")
    for thread in scene.threads(many, least=PAGE):
        messages = scene.messages(thread)
        chosen = messages[int(random.integers(len(messages)))]
        window = {"id": chosen.id, "with_previous_messages": 2, "with_next_messages": 2}
        yield _recall(scene, Recall(thread_id=thread, include=[window]))


def _semantic(scope: str) -> Make:
    def make(scene: Scene, series: Series, many: int) -> Iterator[Call]:
        for thread, owner, text in scene.questions(many):
            allowed, belong, due = scene.closest(thread, text, scope, scene.k)
            recall = Recall(
                thread_id=thread,
                resource_id=owner,
                vector_search_string=text,
                per_page=0,
                thread_config={"semantic_recall": {"top_k": scene.k, "scope": scope, "message_range": 1}},
            )
            yield bind(recall, Closest(due, belong, allowed))

    return make


def _save(batch: int) -> Make:
    def make(scene: Scene, series: Series, many: int) -> Iterator[Call]:
        for number in series.take(many):
            messages: list[Any] = [
                {
                    "id": f"{SAVED}-{number}-{place}",
                    "thread_id": f"{SAVED}-{number % scene.spread}",
                    "content": scene.text(number + place),
                    "metadata": {"turn": f"turn {number}"},
                }
                for place in range(batch)
            ]
            yield bind(SaveMessages(messages=messages), Saved(tuple(message["id"] for message in messages)))

    return make


def _churn(scene: Scene, series: Series, many: int) -> Iterator[Call]:
    """Updates and deletions in turn, of messages and of vectors, each of a row that nothing else is about."""
    for number in series.take(many):
        id = f"{CHURNED}-{number}"
        match number % 4:
            case 0:
                yield bind(UpdateMessages(updates=[{"id": id, "metadata": {"seen": number}}]), Saved((id,)))
            case 1:
                yield bind(DeleteMessages(ids=[id]), Counted(1))
            case 2:
                vectors: list[Any] = [{"id": id, "vector": scene.vector(number + 1)}]
                yield bind(UpsertVectors(index=CHURNED, vectors=vectors), Counted(1))
            case _:
                yield bind(DeleteVectors(index=CHURNED, ids=[id]), Counted(1))


def _before_churn(scene: Scene, series: Series, many: int) -> Iterator[Call]:
    """Store what a churn is going to change."""
    numbers = series.take(many)
    for start in range(0, many, BATCH):
        own = numbers[start : start + BATCH]
        messages: list[Any] = [
            {"id": f"{CHURNED}-{number}", "thread_id": CHURNED, "content": scene.text(number)}
            for number in own
            if number % 4 < 2
        ]
        vectors: list[Any] = [
            {"id": f"{CHURNED}-{number}", "vector": scene.vector(number)} for number in own if number % 4 >= 2
        ]
        if messages:
            yield bind(SaveMessages(messages=messages), Saved(tuple(message["id"] for message in messages)))
        if vectors:
            yield bind(UpsertVectors(index=CHURNED, vectors=vectors), Counted(len(vectors)))


def _clone(scene: Scene, series: Series, many: int) -> Iterator[Call]:
    for number in series.take(many):
        clone = CloneThread(source_thread_id=CLONED, new_thread_id=f"{CLONED}-{number}")
        yield bind(clone, Cloned(BATCH))


def _mixed(scene: Scene, series: Series, many: int) -> Iterator[Call]:
    """Newest messages and searches, and a save after so many of them. What is saved is in threads of its own."""
    reads = [*_newest(scene, series, POOL), *_search(NO_FILTER)(scene, series, POOL)]
    order = scene.random("mixed").permutation(len(reads))
    saves = _save(1)(scene, series, many)
    for place in range(many):
        if place % (READS + 1) == READS:
            yield next(saves)
        else:
            yield reads[order[place % len(order)]]


# Vectors


def _search(filter: Filter) -> Make:
    def make(scene: Scene, series: Series, many: int) -> Iterator[Call]:
        asked, truths = scene.vectors.asked(filter), scene.truth(filter)
        for query, truth in zip(asked[:many], truths, strict=False):
            search = QueryVectors(index=INDEX, vector=query.tolist(), top_k=scene.k)
            if filter.condition is not None:
                search = msgspec.structs.replace(search, filter=filter.condition)
            yield bind(search, Nearest(truth, scene.numbers))

    return make


def _upsert(batch: int) -> Make:
    def make(scene: Scene, series: Series, many: int) -> Iterator[Call]:
        for number in series.take(many):
            vectors: list[Any] = [
                {"id": f"{SAVED}-{number}-{place}", "vector": scene.vector(number + place), "metadata": {"n": number}}
                for place in range(batch)
            ]
            yield bind(UpsertVectors(index=SAVED, vectors=vectors), Counted(batch))

    return make


def _name(filter: Filter) -> str:
    return "vector" if filter == NO_FILTER else f"vector-{filter.relation}-{filter.permille / 10:g}%"


def _workloads() -> Iterator[Workload]:
    storage, vectors = ("storage",), ("vectors",)

    def workload(name: str, about: str, clauses: Sequence[str], needs: tuple[str, ...], make: Make) -> Workload:
        return Workload(name=name, about=about, clauses=tuple(dict.fromkeys(clauses)), needs=needs, make=make)

    def writing(
        name: str, about: str, clauses: Sequence[str], needs: tuple[str, ...], make: Make, **more: Any
    ) -> Workload:
        return msgspec.structs.replace(workload(name, about, clauses, needs, make), reads=False, **more)

    yield workload("newest", f"the newest {PAGE} of a thread", (*LISTED, "ORD-4"), storage, _newest)
    yield workload("deep-page", f"a page of {PAGE} in the older half", (*LISTED, "ORD-3"), storage, _deep_page)
    yield workload("date-range", f"the newest {PAGE} of {WINDOW} in a range", (*LISTED, "TIM-1"), storage, _date_range)
    yield workload("filtered", f"the newest {PAGE} by metadata", (*LISTED, "FLT-1", "FLT-3"), storage, _filtered)
    yield workload("include", "a message and two on either side", ("INC-1", "INC-3"), storage, _include)
    semantic = ("storage", "semantic_recall")
    yield workload("semantic-thread", "a thread, by meaning", RECALLED, semantic, _semantic("thread"))
    yield workload(
        "semantic-resource",
        "a resource's threads, by meaning",
        (*RECALLED, "SEM-2a"),
        (*semantic, "resource_scope"),
        _semantic("resource"),
    )
    for filter in FILTERS:
        clauses = SEARCHED if filter == NO_FILTER else (*SEARCHED, "OPR-2")
        yield workload(_name(filter), f"search of vectors, filter: {filter.label}", clauses, vectors, _search(filter))
    yield writing("save-1", "one new message", WRITTEN, storage, _save(1))
    yield writing(f"save-{BATCH}", f"{BATCH} new messages", WRITTEN, storage, _save(BATCH), rows=BATCH)
    yield writing("upsert-1", "one new vector", ("VEC-2", "CON-1b"), vectors, _upsert(1))
    yield writing(f"upsert-{BATCH}", f"{BATCH} new vectors", ("VEC-2", "CON-1b"), vectors, _upsert(BATCH), rows=BATCH)
    both = ("storage", "vectors")
    mixed = (*LISTED, "ORD-4", *SEARCHED, *WRITTEN)
    yield writing("mixed", f"{READS} newest or searches to one save", mixed, both, _mixed)
    churned = ("MSG-4", "MSG-5", "VEC-2", "VEC-2b")
    yield writing("churn", "updates and deletions", churned, both, _churn, before=_before_churn)
    cloned = ("CLN-1", "CLN-2", "CLN-4")
    yield writing("clone", f"a copy of a thread of {BATCH}", cloned, ("storage", "clone"), _clone, rows=BATCH)


WORKLOADS: Mapping[str, Workload] = {workload.name: workload for workload in _workloads()}
"""By name."""
