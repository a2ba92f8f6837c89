"""Judging reads of an observed state, by what they return."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from . import judge_hits, judge_vectors
from . import program as ops
from .compare import equal, same
from .divergence import Divergence
from .facts import parsed_list_threads, parsed_recall
from .interpreter import Outcome, Returned, spoilt
from .judge_errors import Errors
from .judge_known import Known, deviation
from .judge_recalls import Recalls
from .judge_texts import confusion
from .judge_working import Working
from .requests import ListThreads
from .types import RecallResult, Thread, ThreadPage, VectorHit


class Reads:
    """Blames a read's answer."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.errors = Errors(known)
        self.recalls = Recalls(known, self.errors)
        self.working = Working(known)

    def read(self, index: int, operation: ops.Operation, expected: Outcome, got: Outcome) -> Iterator[Divergence]:
        """What is wrong with an answer."""
        name = operation.name
        if not (isinstance(expected, Returned) and isinstance(got, Returned)):
            if not same(expected, got):
                yield deviation(self.errors.error_clause(operation, expected, got), "error", name, index, expected, got)
            return
        match operation:
            case ops.Recall():
                asked = parsed_recall(operation.arguments(), self.known.options)
                assert asked is not None
                if not isinstance(got.value, RecallResult):
                    yield Divergence("ORD-3", "type", name, index, "RecallResult", type(got.value).__name__)
                    return
                yield from self.recalls.recall(index, operation, asked, expected.value, got.value)
                self.known.seen.append((asked, got.value))
                yield from self.recalls.walk(index, asked)
            case ops.QueryVectors():
                faults = tuple(judge_vectors.query(index, operation, self.known.vectors, got.value, self.known.queries))
                yield from faults
                if not faults:
                    yield from self._count_recall(index, operation, got.value)
                    self.known.queries.append((operation, got.value))
            case ops.Operation() if operation.target == "index":
                if not equal(expected.value, got.value):
                    clause = "VAL-4" if spoilt(got.value) else judge_vectors.MAIN_CLAUSE[name]
                    yield Divergence(clause, "returned", name, index, expected.value, got.value)
            case ops.ListClones():
                if not equal(expected.value, got.value):
                    yield Divergence("CLN-4", "returned", name, index, expected.value, got.value)
            case ops.GetWorkingMemory():
                clause = self.working.clause(index, operation, expected.value, got.value)
                if clause is not None:
                    yield Divergence(clause, "returned", name, index, expected.value, got.value)
            case ops.ListThreads():
                yield from self._list_threads(index, operation, expected.value, got.value)
            case _:
                if equal(expected.value, got.value):
                    return
                clause = "THR-2"
                if isinstance(got.value, Thread) and got.value.resource_id != operation.given().get("resource_id"):
                    clause = "THR-2" if expected.value is None else "VAL-2"
                if isinstance(got.value, Thread):
                    clause = confusion(str(operation.arguments()["thread_id"]), [got.value.id]) or clause
                if spoilt(got.value):
                    clause = "VAL-4"
                yield Divergence(clause, "returned", name, index, expected.value, got.value)

    def _count_recall(self, index: int, operation: ops.QueryVectors, got: Sequence[VectorHit]) -> Iterator[Divergence]:
        """VEC-5, once enough approximate queries of an index were answered."""
        asked, candidates, _ = judge_vectors.question(operation, self.known.vectors)
        if candidates.exact or asked.min_score is not None:
            return
        recall = self.known.recalls.setdefault(str(operation.given()["name"]), judge_hits.Recall())
        recall.count(candidates, [hit.id for hit in got])
        if recall.queries == judge_hits.RECALL_QUERIES and (found := recall.fault()) is not None:
            yield Divergence("VEC-5", "recall", operation.name, index, found.expected, found.got)

    def _list_threads(
        self, index: int, operation: ops.ListThreads, expected: ThreadPage, got: Any
    ) -> Iterator[Divergence]:
        if equal(expected, got):
            return
        name = "list_threads"
        if not isinstance(got, ThreadPage):
            yield Divergence("THR-4", "type", name, index, "ThreadPage", type(got).__name__)
            return
        asked = cast(ListThreads, parsed_list_threads(operation.arguments()))
        rows, shown = [thread.id for thread in expected.threads], [thread.id for thread in got.threads]
        if any(asked.resource_id not in (None, thread.resource_id) for thread in got.threads):
            yield Divergence("ISO-1", "rows", name, index, rows, shown)
        elif rows != shown:
            yield Divergence("THR-4", "rows", name, index, rows, shown)
        elif not equal(expected.threads, got.threads):
            clause = "VAL-4" if any(spoilt(thread.metadata) for thread in got.threads) else "THR-4"
            yield Divergence(clause, "threads", name, index, expected.threads, got.threads)
        else:
            right = (expected.total, expected.has_more, expected.page, expected.per_page)
            everyone = [
                t for t in self.known.state.threads.values() if all(c.matches(t.metadata) for c in asked.metadata)
            ]
            leaks = asked.resource_id is not None and expected.total != got.total == len(everyone)
            shown = (got.total, got.has_more, got.page, got.per_page)
            yield Divergence("ISO-1" if leaks else "THR-4", "total", name, index, right, shown)
