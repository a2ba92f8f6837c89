"""Vectors in document engines: what is stored of one, and how the nearest rows are found.

The engine selects, in float32, by a copy of the vector (under cosine of length 1, because raw components of 1e-25 or
1e30 leave float32); what it selected is scored here in float64 from the vector itself, kept beside the copy as its
bytes. An exact search ranks by scores that are never too low by more than is known, and asks for more when rounding
could have put a wrong row last. An answer of an approximate index that is short is replaced by an exact one.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec
import numpy as np

from ..spec.capabilities import Capabilities
from ..spec.index_requests import NewIndex
from ..spec.types import IndexConfig
from ..spec.vectors import Metric, Vector, Vectors, scores
from .document_filters import Clause
from .documents import Documents, Json, Row

RAW, NORM = "raw", "norm"
"""Fields of a vector: its float32 components as bytes, and its length. A third has the engine's copy."""

SPARE = 16
"""So many more rows are fetched than asked for, because float32 may have put them in a wrong order."""

MAX_APPROXIMATE = 1_000
"""Beyond so many hits an exact scan is no slower."""

PAGE = 10_000
"""The most rows that a search returns."""

ULP = 2.0**-24
"""Of float32, relative."""


class Target(msgspec.Struct, frozen=True):
    """Where vectors are: an index, what they are, and the full names of the fields of a vector.

    `source` says what of a row's source an answer has to have, as a search's `_source`; the bytes are in it.
    """

    index: str
    dimension: int
    metric: Metric
    type: str
    near: str
    norm: str
    source: Any


class VectorLanguage(Protocol):
    """How an engine says what vectors need."""

    capabilities: Capabilities

    def mapping(self, index: NewIndex) -> Json:
        """The field that the engine's copies are in."""
        ...

    def described(self, mapping: Json) -> tuple[int, Metric, IndexConfig]:
        """Dimension, metric and configuration of a field, as the engine's mapping has it."""
        ...

    def nearest(self, field: str, query: list[float], k: int, where: Clause) -> Clause:
        """A query for about the k nearest, by the approximate index, of the rows where a clause holds."""
        ...

    def product(self, field: str) -> str:
        """A script's expression: the inner product of params.query and the field."""
        ...

    def distance(self, field: str) -> str:
        """A script's expression: the euclidean distance of params.query and the field."""
        ...


class Ranking(msgspec.Struct, frozen=True):
    """The engine's scores in an exact search: float32, positive, the larger the closer.

    cosine: 1 + cos. euclidean: 1 / (1 + distance). dotproduct: of the inner product with what the engine may be
    wrong by added, b, it is 1 + b if b ≥ 0 and else 1 / (1 − b). The error of a sum of n products in float32 is within
    n roundings of the product of the lengths; `slack` is that, and a little for what is around it.
    """

    metric: Metric
    slack: float

    def script(self, language: VectorLanguage, near: str, norm: str) -> str:
        """What ranks a row; params has `query`, the copy of the query, and for an inner product `slack`, the error
        that it has for a row of length 1."""
        product, distance = language.product(near), language.distance(near)
        match self.metric:
            case "cosine":
                return f"Math.max(0, {product} + 1)"
            case "euclidean":
                return f"1 / (1 + {distance})"
            case "dotproduct":
                bound = f"double b = {product} + params.slack * doc['{norm}'].value;"
                return f"{bound} return b >= 0 ? b + 1 : 1 / (1 - b)"

    def most(self, ranked: float) -> float:
        """The largest true score of a row with this rank."""
        match self.metric:
            case "cosine":
                return ranked - 1 + self.slack
            case "euclidean":
                return ranked * (1 + 2 * self.slack) + 1e-15
            case "dotproduct":
                up = ranked * (1 + 4 * ULP)
                return up - 1 if up >= 1 else 1 - 1 / up

    def least(self, score: float) -> float:
        """A rank that every row of at least this true score has."""
        match self.metric:
            case "cosine":
                ranked = score + 1 - self.slack
            case "euclidean":
                ranked = (score - 1e-15) / (1 + 2 * self.slack)
            case "dotproduct":
                ranked = score + 1 if score >= 0 else 1 / (1 - score)
        return max(0.0, ranked * (1 - 8 * ULP) - ULP * (self.metric == "cosine"))


def ranking(metric: Metric, dimension: int) -> Ranking:
    """How an exact search ranks under a metric."""
    return Ranking(metric, (dimension + 32) * ULP)


def mapping(language: VectorLanguage, index: NewIndex, near: str) -> Json:
    """The fields of a vector; `near` is the name of that with the engine's copy."""
    return {
        RAW: {"type": "object", "enabled": False},
        NORM: {"type": "double"},
        near: language.mapping(index),
    }


def stored(vector: Vector, metric: Metric, near: str) -> Json:
    """The values of the fields of a vector."""
    return {
        RAW: base64.b64encode(vector.astype("<f4").tobytes()).decode(),
        NORM: float(np.linalg.norm(vector.astype(np.float64))),
        near: copy_of(vector, metric).tolist(),
    }


def copy_of(vector: Vector, metric: Metric) -> Vector:
    """What the engine compares."""
    if metric != "cosine":
        return vector
    exact = vector.astype(np.float64)
    return (exact / np.linalg.norm(exact)).astype(np.float32)


def vector_of(raw: str) -> Vector:
    """The vector whose bytes these are."""
    return np.frombuffer(base64.b64decode(raw), "<f4")


def components(raw: str) -> tuple[float, ...]:
    """The components of the vector whose bytes these are."""
    return tuple(vector_of(raw).tolist())


class Search(msgspec.Struct, frozen=True):
    """The k rows nearest to a vector, of those where a clause holds, all of which have a vector."""

    query: Vector
    k: int
    where: Clause


Scored = tuple[float, Row]


class Nearest:
    """Finds nearest rows. `raw` gets a row's vector from its source, `ties` what orders rows of equal scores."""

    def __init__(
        self,
        documents: Documents,
        language: VectorLanguage,
        target: Target,
        *,
        raw: Callable[[Json], str],
        ties: Callable[[Json], Any],
    ) -> None:
        self._documents = documents
        self._language = language
        self._target = target
        self._raw = raw
        self._ties = ties
        self._ranking = ranking(target.metric, target.dimension)

    def find(self, search: Search, *, exact: bool) -> list[Scored]:
        """The nearest rows, closest first, with their scores: all k of them, or all that match."""
        if not exact and self._target.type != "flat" and search.k <= MAX_APPROXIMATE:
            found = self._approximate(search)
            if len(found) >= search.k:
                return found[: search.k]
        return self._exact(search)

    def _approximate(self, search: Search) -> list[Scored]:
        limit = 2 * search.k + SPARE
        target = self._target
        near = copy_of(search.query, target.metric).tolist()
        query = self._language.nearest(target.near, near, limit, search.where)
        return self._scored(search, self._ask(query, size=limit))

    def _exact(self, search: Search) -> list[Scored]:
        limit = min(PAGE, search.k + SPARE)
        query = self._by_script(search)
        rows = self._ask(query, size=limit)
        found = self._scored(search, rows)
        if len(rows) == limit:
            worst = found[search.k - 1][0]
            last = rows[-1].score
            assert last is not None
            if self._ranking.most(last) >= worst:  # Of what was left out, some may belong.
                found = self._scored(search, self._all(query, self._ranking.least(worst)))
        return found[: search.k]

    def _by_script(self, search: Search) -> Clause:
        target = self._target
        params: Json = {"query": copy_of(search.query, target.metric).tolist()}
        if target.metric == "dotproduct":
            params["slack"] = self._ranking.slack * float(np.linalg.norm(search.query.astype(np.float64)))
        source = self._ranking.script(self._language, target.near, target.norm)
        return {"script_score": {"query": search.where, "script": {"source": source, "params": params}}}

    def _ask(self, query: Clause, **body: Any) -> Sequence[Row]:
        return self._documents.search(self._target.index, self._body(query, **body)).rows

    def _body(self, query: Clause, **body: Any) -> Json:
        return {"query": query, "_source": self._target.source, "track_total_hits": False, **body}

    def _all(self, query: Clause, least: float) -> list[Row]:
        """All rows whose rank is at least this. Rows have a field `id`, each its own."""
        found: list[Row] = []
        with self._documents.moment(self._target.index) as search:
            body = self._body(query, size=PAGE, min_score=least, sort=[{"_score": "desc"}, {"id": "asc"}])
            while True:
                rows = search(body).rows
                found += rows
                if len(rows) < PAGE:
                    return found
                body["search_after"] = list(rows[-1].sort)

    def _scored(self, search: Search, rows: Sequence[Row]) -> list[Scored]:
        """The rows, closest first."""
        if not rows:
            return []
        packed = b"".join(base64.b64decode(self._raw(row.source)) for row in rows)
        vectors: Vectors = np.frombuffer(packed, "<f4").reshape(len(rows), -1)
        true = scores(self._target.metric, search.query, vectors).tolist()
        return sorted(zip(true, rows, strict=True), key=lambda each: (-each[0], self._ties(each[1].source)))
