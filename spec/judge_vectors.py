"""Judging vector indices: writes by what an observation shows, queries by what the store itself holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import msgspec

from . import program as ops
from .compare import equal
from .divergence import Divergence
from .index_requests import VectorQuery, parse_query
from .interpreter import Outcome, Refused, Snapshot, spoilt
from .judge_hits import Candidates, Fault, fault, filter_clause
from .operators import EVERYTHING, parse
from .reference_index import Entry, ModelIndex
from .types import VectorHit, VectorRow

MAIN_CLAUSE = {
    "create_index": "VEC-1",
    "describe_index": "VEC-1",
    "list_indexes": "VEC-1",
    "drop_index": "VEC-1",
    "upsert_vectors": "VEC-2",
    "get_vectors": "VEC-2",
    "update_vector": "VEC-2",
    "delete_vectors": "VEC-2b",
    "query_vectors": "VEC-4",
}
"""The clause that a call answers to when nothing about it is special."""


FEWEST_CAP = 40
"""Rows at which the lowest of the engines' own caps cuts."""


def error_clause(operation: ops.Operation, got: Outcome) -> str:
    """The clause of a call that was refused, or failed, and should not have been."""
    if isinstance(operation, ops.QueryVectors) and operation.filter is not msgspec.UNSET:
        # A filter that is right was not understood, or what it means went wrong.
        refused = isinstance(got, Refused)
        return "OPR-1" if refused else filter_clause(parse(operation.arguments()["filter"]))
    return MAIN_CLAUSE[operation.name]


def write_values(operation: ops.Operation, index: int, expected: Any, got: Any) -> Iterator[Divergence]:
    """A write's own result: a count, or whether the row was there."""
    if not equal(expected, got):
        yield Divergence(MAIN_CLAUSE[operation.name], "returned", operation.name, index, expected, got)


def snapshot(
    index: int, expected: Snapshot, got: Snapshot, writes: Sequence[ops.Operation], *, reopened: bool
) -> Iterator[Divergence]:
    """What the store shows of its indices after the writes, against what it should."""
    last = next((MAIN_CLAUSE[op.name] for op in reversed(writes) if op.target == "index"), "VEC-1")
    clause = "DUR-1" if reopened else last
    if sorted(expected.indexes) != sorted(got.indexes):
        blamed = clause if clause in ("DUR-1", "VEC-1") else "VEC-1"
        yield Divergence(blamed, "indexes", "observe", index, expected.indexes, got.indexes)
        return
    if expected.indexes != got.indexes:
        yield Divergence("VEC-1", "indexes order", "observe", index, expected.indexes, got.indexes)
    for name, right in expected.described.items():
        wrong = got.described.get(name)
        rows = {row.id: row for row in expected.vectors.get(name, ())}
        shown = {row.id: row for row in got.vectors.get(name, ())}
        if rows.keys() != shown.keys():
            yield Divergence(clause, "rows", "observe", index, [*rows], [*shown])
        elif [*rows] != [row.id for row in got.vectors.get(name, ())]:
            yield Divergence("VEC-2", "rows order", "observe", index, [*rows], [*shown])
        else:
            yield from _rows(index, rows, shown, clause)
        if equal(right, wrong):
            continue
        if right is not None and wrong is not None and right.count != wrong.count:
            if wrong.count != len(shown):
                yield Divergence("VEC-1", "count", "observe", index, len(shown), wrong.count)
        else:
            blamed = "SEM-6" if right is not None and wrong is not None and right.config != wrong.config else "VEC-1"
            yield Divergence("DUR-1" if reopened else blamed, "description", "observe", index, right, wrong)


def _rows(index: int, rows: dict[str, VectorRow], shown: dict[str, VectorRow], clause: str) -> Iterator[Divergence]:
    for row_id, row in rows.items():
        if not equal(row.vector, shown[row_id].vector):
            yield Divergence(clause, "vector", "observe", index, row, shown[row_id])
            return
        if not equal(row.metadata, shown[row_id].metadata):
            blamed = "VAL-4" if spoilt(shown[row_id].metadata) else clause
            yield Divergence(blamed, "metadata", "observe", index, row, shown[row_id])
            return


def load(model: ModelIndex, got: Snapshot) -> None:
    """Make the model's indices hold what the store showed."""
    state = model.state
    for name, description in got.described.items():
        if description is None:
            state.indexes.pop(name, None)
            state.rows.pop(name, None)
        elif name in state.indexes:
            state.rows[name] = {row.id: Entry(row.vector, row.metadata) for row in got.vectors.get(name, ())}


def query(
    index: int,
    operation: ops.QueryVectors,
    model: ModelIndex,
    got: Any,
    seen: Sequence[tuple[ops.QueryVectors, tuple[VectorHit, ...]]],
) -> Iterator[Divergence]:
    """A query's answer against the rows that the store holds."""
    name = operation.name
    hits: Sequence[VectorHit] = got
    if not _hits(got):
        yield Divergence("VEC-4", "type", name, index, "VectorHits", type(got).__name__)
        return
    asked, candidates, stored = question(operation, model)
    found = fault(candidates, hits)
    if found is not None:
        yield Divergence(_clause(found, asked, candidates, stored), found.kind, name, index, found.expected, found.got)
        return
    for hit in hits:
        if not equal(stored[hit.id].metadata, hit.metadata):
            blamed = "VAL-4" if spoilt(hit.metadata) else "VEC-4"
            yield Divergence(blamed, "metadata", name, index, stored[hit.id].metadata, hit.metadata)
            return
    for earlier, result in seen:
        if candidates.exact and _same_but_k(earlier, operation):
            left, right = [hit.id for hit in result], [hit.id for hit in hits]
            n = min(len(left), len(right))
            if left[:n] != right[:n]:
                yield Divergence("VEC-4a", "prefix", name, index, left[:n], right[:n])
                return


def question(operation: ops.QueryVectors, model: ModelIndex) -> tuple[VectorQuery, Candidates, dict[str, Entry]]:
    """A query as parsed, its candidates, and all the rows of its index."""
    arguments = operation.arguments()
    new, rows = model.find(arguments["name"])
    asked = parse_query(
        arguments["vector"],
        new.dimension,
        new.metric,
        top_k=arguments.get("top_k", 10),
        filter=arguments.get("filter"),
        min_score=arguments.get("min_score"),
        exact=arguments.get("exact", False),
    )
    matching = model.matching(new.name, asked.filter)
    candidates = Candidates(
        new.metric,
        asked.vector,
        {row_id: entry.vector for row_id, entry in matching.items()},
        asked.top_k,
        asked.min_score,
        asked.exact or new.config.type == "flat",
    )
    return asked, candidates, rows


def _clause(found: Fault, asked: VectorQuery, candidates: Candidates, stored: dict[str, Entry]) -> str:
    match found.kind:
        case "score":
            return "VEC-3"
        case "foreign" if all(row_id in stored for row_id in found.got):
            return filter_clause(asked.filter)
        case "missing" if len(found.got) >= FEWEST_CAP:
            return "VEC-4"  # So many and no more: a cap, not a filter.
        case "missing" | "rank" if asked.top_k >= len(stored) and asked.filter != EVERYTHING:
            # Every row could have come: what is missing was filtered out, or its score was not kept.
            return filter_clause(asked.filter) if asked.min_score is None else "VEC-4"
        case "rank" if candidates.exact and asked.filter != EVERYTHING and asked.min_score is None:
            # As many as there should be, but not the closest: the filter let one less through.
            return filter_clause(asked.filter)
        case _:
            return "VEC-4"


def _same_but_k(left: ops.QueryVectors, right: ops.QueryVectors) -> bool:
    given, other = left.given(), right.given()
    given.pop("top_k", None)
    other.pop("top_k", None)
    return given == other


def _hits(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(item, VectorHit) for item in cast("Sequence[object]", value)
    )
