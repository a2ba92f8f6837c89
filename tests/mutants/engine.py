"""The model's vector indices taken apart where real engines go wrong: every hook does what is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from memassay.spec.index_requests import NewIndex, VectorQuery
from memassay.spec.operators import Among, And, Node, Or, Range
from memassay.spec.reference_index import Entry, ModelIndex
from memassay.spec.types import Metadata, VectorHit
from memassay.spec.values import copy_json
from memassay.spec.vectors import Metric, Vector, scores

Scored = tuple[float, str]
"""A row's score and its id."""


class Engine(ModelIndex):
    """ModelIndex, with hooks: filters as given and as evaluated, scores, ranking, the cut, the hits.

    `peers` are all clients of the namespace's indices that are open, itself among them.
    """

    peers: Sequence[object] = ()

    # Filters

    def where(self, given: Any) -> Any:
        """A filter as it is passed on to be parsed."""
        return given

    def holds(self, node: Node, metadata: Metadata) -> bool:
        """Whether a row satisfies a filter."""
        match node:
            case And():
                return all(self.holds(part, metadata) for part in node.nodes)
            case Or():
                return any(self.holds(part, metadata) for part in node.nodes)
            case Among():
                return self.among(node, metadata)
            case Range():
                return self.range(node, metadata)

    def among(self, node: Among, metadata: Metadata) -> bool:
        """$eq, $in, $ne, $nin."""
        return node.matches(metadata)

    def range(self, node: Range, metadata: Metadata) -> bool:
        """$gt, $gte, $lt, $lte."""
        return node.matches(metadata)

    def matching(self, name: str, node: Node) -> dict[str, Entry]:
        """See ModelIndex."""
        return {row_id: entry for row_id, entry in self.state.rows[name].items() if self.holds(node, entry.metadata)}

    def delete_vectors(
        self, name: str, *, ids: Sequence[str] | None = None, filter: Mapping[str, Any] | None = None
    ) -> int:
        """See ModelIndex."""
        return super().delete_vectors(name, ids=ids, filter=self.where(filter))

    # Queries

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
        """See ModelIndex."""
        return super().query_vectors(
            name, vector, top_k=top_k, filter=self.where(filter), min_score=min_score, exact=exact
        )

    def answer(self, index: NewIndex, asked: VectorQuery) -> tuple[VectorHit, ...]:
        """The hits of a checked query."""
        ranked = self.ranked(index, asked, self.matching(index.name, asked.filter))
        return self.shown(index, self.cut(asked, ranked))

    def ranked(self, index: NewIndex, asked: VectorQuery, rows: dict[str, Entry]) -> list[Scored]:
        """The rows, closest first, equal scores by id."""
        if not rows:
            return []
        stored = np.array([entry.vector for entry in rows.values()], dtype=np.float32)
        found = self.scores(index.metric, asked.vector, stored)
        return sorted(zip(map(float, found), rows, strict=True), key=lambda row: (-row[0], row[1]))

    def scores(self, metric: Metric, query: Vector, stored: Any) -> Any:
        """The score of each row."""
        return scores(metric, query, stored)

    def cut(self, asked: VectorQuery, ranked: list[Scored]) -> list[Scored]:
        """The rows of the answer."""
        return [row for row in ranked if self.enough(asked, row[0])][: asked.top_k]

    def enough(self, asked: VectorQuery, score: float) -> bool:
        """Whether a score is kept."""
        return asked.min_score is None or score >= asked.min_score

    def shown(self, index: NewIndex, ranked: list[Scored]) -> tuple[VectorHit, ...]:
        """The rows as hits."""
        rows = self.state.rows[index.name]
        return tuple(VectorHit(row_id, score, copy_json(rows[row_id].metadata)) for score, row_id in ranked)


def conditions_of(given: Any) -> list[tuple[Any, Any]]:
    """The pairs of a filter, or of a field's operators; empty for what is no object."""
    return list(cast("Mapping[Any, Any]", given).items()) if isinstance(given, Mapping) else []


def items_of(given: Any) -> list[Any]:
    """The items of a list; empty for what is none."""
    return list(cast("list[Any]", given)) if isinstance(given, list) else []
