"""The reference model's vector indices: a scan in float64 over float32 components."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from typing import Any, ClassVar, cast

import msgspec
import numpy as np

from .capabilities import Capabilities
from .errors import AlreadyExists, IndexNotFound, refusing
from .index_requests import (
    NewIndex,
    VectorQuery,
    parse_create_index,
    parse_delete_vectors,
    parse_query,
    parse_update_vector,
    parse_upsert,
)
from .operators import Node
from .requests import parse_ids
from .types import IndexConfig, IndexDescription, Metadata, NewVector, VectorHit, VectorRow
from .values import copy_json, identifier
from .vectors import Metric, Vector, scores

MODEL_CAPABILITIES = Capabilities(
    vectors=True,
    semantic_recall=True,
    resource_scope=True,
    clone=True,
    working_memory=True,
    titles=True,
    index_types=("flat", "hnsw", "ivfflat"),
    other_processes=False,
)


class Entry(msgspec.Struct, frozen=True):
    """A stored vector, float32 components as floats, and its metadata."""

    vector: tuple[float, ...]
    metadata: Metadata


class IndexState(msgspec.Struct):
    """All indices of a namespace, and the rows of each by id."""

    indexes: dict[str, NewIndex] = msgspec.field(default_factory=dict[str, NewIndex])
    rows: dict[str, dict[str, Entry]] = msgspec.field(default_factory=dict[str, dict[str, Entry]])


class ModelIndex:
    """Vector indices as plain Python data; implements protocols.VectorIndex."""

    # One lock for all: clients of a namespace share its state.
    _lock: ClassVar[threading.RLock] = threading.RLock()

    def __init__(self, state: IndexState | None = None, capabilities: Capabilities = MODEL_CAPABILITIES) -> None:
        self.state = state or IndexState()
        self.capabilities = capabilities

    def create_index(
        self, name: str, *, dimension: int, metric: str = "cosine", config: IndexConfig | None = None
    ) -> None:
        """See protocols.VectorIndex."""
        new = parse_create_index(name, dimension, metric, config, self.capabilities)
        with self._lock:
            old = self.state.indexes.get(new.name)
            if old is None:
                self.state.indexes[new.name] = new
                self.state.rows[new.name] = {}
            elif (old.dimension, old.metric) != (new.dimension, new.metric):
                raise AlreadyExists(
                    f"index {new.name!r} has {old.dimension} dimensions and the metric {old.metric}", clause="VEC-1"
                )

    def describe_index(self, name: str) -> IndexDescription:
        """See protocols.VectorIndex."""
        with self._lock:
            index, rows = self.find(name)
            return IndexDescription(index.name, index.dimension, index.metric, index.config, len(rows))

    def list_indexes(self) -> tuple[str, ...]:
        """See protocols.VectorIndex."""
        with self._lock:
            return tuple(sorted(self.state.indexes))

    def drop_index(self, name: str) -> None:
        """See protocols.VectorIndex."""
        with self._lock:
            self.find(name)
            del self.state.indexes[name], self.state.rows[name]

    def upsert_vectors(self, name: str, vectors: Sequence[NewVector]) -> int:
        """See protocols.VectorIndex."""
        with self._lock, refusing(lambda: _wrong_rows(vectors, self.state.indexes.get(name))):
            index, rows = self.find(name)
            batch = parse_upsert(vectors, index.dimension, index.metric)
            for row in batch:
                assert row.vector is not None
                assert row.metadata is not None
                rows[row.id] = Entry(_components(row.vector), row.metadata)
            return len(batch)

    def get_vectors(self, name: str, ids: Sequence[str]) -> tuple[VectorRow, ...]:
        """See protocols.VectorIndex."""
        with self._lock, refusing(lambda: [lambda: parse_ids(ids)]):
            _, rows = self.find(name)
            return tuple(
                VectorRow(row_id, rows[row_id].vector, copy_json(rows[row_id].metadata))
                for row_id in parse_ids(ids, clause="VEC-2")
                if row_id in rows
            )

    def update_vector(
        self,
        name: str,
        id: str,
        *,
        vector: Sequence[float] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> bool:
        """See protocols.VectorIndex."""
        with self._lock, refusing(lambda: _wrong_row(id, vector, metadata, self.state.indexes.get(name))):
            index, rows = self.find(name)
            change = parse_update_vector(id, vector, metadata, index.dimension, index.metric)
            old = rows.get(change.id)
            if old is None:
                return False
            rows[change.id] = Entry(
                old.vector if change.vector is None else _components(change.vector),
                old.metadata if change.metadata is None else change.metadata,
            )
            return True

    def delete_vectors(
        self, name: str, *, ids: Sequence[str] | None = None, filter: Mapping[str, Any] | None = None
    ) -> int:
        """See protocols.VectorIndex."""
        with self._lock, refusing(lambda: [lambda: parse_delete_vectors(ids, filter)]):
            _, rows = self.find(name)
            asked = parse_delete_vectors(ids, filter)
            named = asked if isinstance(asked, tuple) else tuple(self.matching(name, asked))
            return sum(rows.pop(row_id, None) is not None for row_id in named)

    def query_vectors(
        self,
        name: str,
        vector: Sequence[float],
        *,
        top_k: int = 10,
        filter: Mapping[str, Any] | None = None,
        min_score: float | None = None,
        exact: bool = False,
    ) -> tuple[VectorHit, ...]:
        """See protocols.VectorIndex."""
        with (
            self._lock,
            refusing(
                lambda: [
                    lambda: _parse_query(vector, self.state.indexes.get(name)),
                    lambda: _parse_query(top_k=top_k),
                    lambda: _parse_query(filter=filter),
                    lambda: _parse_query(min_score=min_score),
                    lambda: _parse_query(exact=exact),
                ]
            ),
        ):
            index, _ = self.find(name)
            asked = parse_query(
                vector, index.dimension, index.metric, top_k=top_k, filter=filter, min_score=min_score, exact=exact
            )
            return self.answer(index, asked)

    def answer(self, index: NewIndex, asked: VectorQuery) -> tuple[VectorHit, ...]:
        """The hits of a checked query."""
        matching = self.matching(index.name, asked.filter)
        if not matching:
            return ()
        stored = np.array([entry.vector for entry in matching.values()], dtype=np.float32)
        true = scores(index.metric, asked.vector, stored).tolist()
        # Closest first, equal scores by id.
        ranked = sorted((-score, row_id) for row_id, score in zip(matching, true, strict=True))
        return tuple(
            VectorHit(row_id, -negated, copy_json(matching[row_id].metadata))
            for negated, row_id in ranked[: asked.top_k]
            if asked.min_score is None or -negated >= asked.min_score
        )

    def matching(self, name: str, node: Node) -> dict[str, Entry]:
        """The rows that satisfy a filter."""
        return {row_id: entry for row_id, entry in self.state.rows[name].items() if node.matches(entry.metadata)}

    def find(self, name: str) -> tuple[NewIndex, dict[str, Entry]]:
        """The index and its rows; IndexNotFound."""
        identifier(name, "name")
        index = self.state.indexes.get(name)
        if index is None:
            raise IndexNotFound(f"there is no index {name!r}", clause="VEC-1")
        return index, self.state.rows[name]

    def close(self) -> None:
        """See protocols.VectorIndex."""


# What is wrong with one argument alone.


def _parse_query(
    vector: Any = (1.0,),
    index: NewIndex | None = None,
    *,
    top_k: Any = 1,
    filter: Any = None,
    min_score: Any = None,
    exact: Any = False,
) -> VectorQuery:
    kind = _kind(vector, index)
    return parse_query(vector, *kind, top_k=top_k, filter=filter, min_score=min_score, exact=exact)


def _wrong_rows(vectors: Any, index: NewIndex | None) -> Iterator[Callable[[], object]]:
    rows = cast("Sequence[object]", vectors) if isinstance(vectors, list | tuple) else ()
    for row in rows:
        if isinstance(row, NewVector):
            yield from _wrong_row(row.id, row.vector, row.metadata, index)


def _wrong_row(id: Any, vector: Any, metadata: Any, index: NewIndex | None) -> Iterator[Callable[[], object]]:
    kind = _kind(vector, index)
    yield lambda: parse_update_vector(id, None, None, *kind)
    yield lambda: parse_update_vector("id", vector, None, *kind)
    yield lambda: parse_update_vector("id", None, metadata, *kind)


def _kind(vector: Any, index: NewIndex | None) -> tuple[int, Metric]:
    """Of an index that is not there: as many components as the vector has."""
    if index is not None:
        return index.dimension, index.metric
    return len(vector) if isinstance(vector, Sized) else 1, "euclidean"


def _components(vector: Vector) -> tuple[float, ...]:
    return tuple(float(component) for component in vector)
