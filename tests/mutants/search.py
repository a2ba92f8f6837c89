"""What search engines do: mappings that the first value makes, bulk answers nobody reads, caps, quantised scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from memassay.spec.errors import InvalidRequest
from memassay.spec.filters import Equals, kind_of
from memassay.spec.index_requests import VectorQuery
from memassay.spec.operators import Among, Range, conditions
from memassay.spec.reference import Row
from memassay.spec.requests import MessageRow, Recall
from memassay.spec.types import Message, Metadata, NewVector
from memassay.spec.vectors import Metric, Vector
from numpy.typing import NDArray

from .adapter import Adapter
from .engine import Engine, Scored
from .mutant import mutant

CLAUSES = 1024
"""Conditions that a boolean query may have."""

ID_BYTES = 512
"""The longest `_id`."""

MAPPED = ("string", "number", "bool")


def _conflicts(metadata: Metadata, others: Sequence[Metadata]) -> bool:
    """Whether a value is of another kind than the first one of its key: mapper_parsing_exception."""
    for key, value in metadata.items():
        kinds = [kind for other in others if (kind := kind_of(other.get(key))) in MAPPED]
        if kind_of(value) in MAPPED and kinds and kinds[0] != kind_of(value):
            return True
    return False


# Writes


@mutant("MSG-1", "stac-utils/stac-fastapi-elasticsearch-opensearch#346")
class _BulkErrorsAreNotRead(Adapter):
    """One message of a bulk is rejected by the mapping, the answer is 200, and all ids are returned."""

    def _save(self, row: MessageRow, now: Any) -> set[str]:
        stored = [other.message.metadata for other in self.state.by_id.values()]
        lost = row.id not in self.state.by_id and _conflicts(row.metadata, stored)
        touched = super()._save(row, now)
        if lost:
            self._lost = {*getattr(self, "_lost", ()), row.id}
        return touched

    def save_messages(self, messages: Any, **config: Any) -> tuple[Message, ...]:
        self._lost: set[str] = set()
        saved = super().save_messages(messages, **config)
        for name in self._lost:
            self._remove(name)
        return saved


@mutant("MSG-1")
class _TheMappingRefuses(Adapter):
    """A value of another type than the first of its key makes the whole batch fail."""

    def _save(self, row: MessageRow, now: Any) -> set[str]:
        if _conflicts(row.metadata, [other.message.metadata for other in self.state.by_id.values()]):
            raise InvalidRequest("mapper_parsing_exception: failed to parse field [metadata.k]")
        return super()._save(row, now)


@mutant("VEC-2", "langchain-ai/langchainjs#1810")
class _BulkErrorsOfVectorsAreNotRead(Engine):
    """One row of a bulk is rejected by the mapping, the answer is 200, and the count is that of the batch."""

    def upsert_vectors(self, name: str, vectors: Sequence[NewVector]) -> int:
        before = dict(self.state.rows.get(name, {}))
        count = super().upsert_vectors(name, vectors)
        rows = self.state.rows[name]
        for row_id in [*rows]:
            others = [entry.metadata for other, entry in rows.items() if other != row_id]
            if row_id not in before and _conflicts(rows[row_id].metadata, others):
                del rows[row_id]
        return count


class _IdsInBytes(Adapter):
    """Looks at ids as UTF-8."""

    def message(self, message: Any) -> Any:
        if isinstance(message.id, str):
            self.check(message.id)
        return message

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        if call == "create_thread" and isinstance(arguments["id"], str):
            self.check(arguments["id"])

    def check(self, name: str) -> None:
        """Raise for what the engine does not take."""


@mutant("VAL-2b")
class _IdsOfManyBytesAreRefused(_IdsInBytes):
    """`_id` takes 512 bytes: 255 characters of three bytes each are too many."""

    def check(self, name: str) -> None:
        if len(name.encode("utf-8", "replace")) > ID_BYTES and len(name) <= 255:
            raise InvalidRequest(f"id is too long, must be no longer than {ID_BYTES} bytes")


# Lists


@mutant("ORD-3b", "mastra-ai/mastra#19562")
class _CountsToTenThousand(Adapter):
    """track_total_hits is left at its default: total stops at 10,000."""

    def total(self, asked: Recall, matching: list[Row], page: list[Row], shown: list[Row]) -> int:
        return min(len(matching), 10_000)


@mutant("FLT-3")
class _TheFirstTypeConverts(Adapter):
    """A key whose first value is a number is a number: strings that read as one are indexed, and asked for, as it."""

    def holds(self, condition: Equals, metadata: dict[str, Any]) -> bool:
        rows = sorted(self.state.by_id.values(), key=lambda row: row.position)
        values = (row.message.metadata[condition.key] for row in rows if condition.key in row.message.metadata)
        first = next((kind for value in values if (kind := kind_of(value)) in MAPPED), None)
        if first != "number":
            return super().holds(condition, metadata)
        stored = _number(metadata.get(condition.key))
        return stored == _number(condition.value) if stored is not None else super().holds(condition, metadata)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


# Filters of indices


@mutant("OPR-2", "mastra-ai/mastra#19991")
class _NullIsNotIndexed(Engine):
    """null is not indexed: equality with it finds nothing, and $ne finds all."""

    def among(self, node: Among, metadata: Metadata) -> bool:
        if metadata.get(node.key, 0) is None:
            return node.negated
        return super().among(node, metadata)


@mutant("OPR-2")
class _AnalysesText(Engine):
    """A text field instead of a keyword: strings are equal when their words are, in lower case."""

    def among(self, node: Among, metadata: Metadata) -> bool:
        stored = metadata.get(node.key)
        if isinstance(stored, str) and any(
            isinstance(condition.value, str) and condition.value.lower().split() == stored.lower().split()
            for condition in node.any_of
        ):
            return not node.negated
        return super().among(node, metadata)


@mutant("OPR-2", "elastic/elasticsearch#24256")
class _LongStringsHaveNoOrder(Engine):
    """ignore_above 256: ranges do not see longer strings."""

    def range(self, node: Range, metadata: Metadata) -> bool:
        stored = metadata.get(node.key)
        return not (isinstance(stored, str) and len(stored) > 256) and super().range(node, metadata)


@mutant("OPR-2")
class _TooManyClauses(Engine):
    """A list becomes one clause a value, and a boolean query takes 1,024."""

    def answer(self, index: Any, asked: VectorQuery) -> Any:
        found = [*conditions(asked.filter)]
        if sum(len(condition.any_of) if isinstance(condition, Among) else 1 for condition in found) > CLAUSES:
            raise RuntimeError(f"too_many_clauses: maxClauseCount is set to {CLAUSES}")
        return super().answer(index, asked)


# Scores and neighbours


@mutant("VEC-3")
class _QuantisesToBytes(Engine):
    """int8_hnsw, the default: a component is one of 255 steps between the least and the largest."""

    def scores(self, metric: Metric, query: Vector, stored: Any) -> Any:
        exact: NDArray[np.float32] = stored
        most = max(float(np.abs(exact).max(initial=0)), 1e-30)
        rounded = (np.round(exact / most * 127) / 127 * most).astype(np.float32)
        # The exact score comes back for what quantising leaves without a direction.
        kept = np.where(np.abs(rounded).sum(axis=1, keepdims=True) > 0, rounded, exact)
        return super().scores(metric, query, kept)


@mutant("VEC-3", "langchain-ai/langchain#32498")
class _ShiftsTheInnerProduct(Engine):
    """max_inner_product scores are positive: dot + 1, or 1 / (1 − dot) below zero."""

    def scores(self, metric: Metric, query: Vector, stored: Any) -> Any:
        true: NDArray[np.float64] = super().scores(metric, query, stored)
        return np.where(true < 0, 1 / (1 - np.minimum(true, 0)), true + 1) if metric == "dotproduct" else true


@mutant("VEC-4b", "pgvector/pgvector#671")
class _AHundredAtMost(Engine):
    """num_candidates, and with it k, is capped at 100."""

    def cut(self, asked: VectorQuery, ranked: list[Scored]) -> list[Scored]:
        return super().cut(asked, ranked)[:100]
