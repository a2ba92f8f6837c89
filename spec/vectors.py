"""Vectors: what is valid, and the scores that are true (VEC-2, VEC-3). float64 over float32-rounded components."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from .errors import InvalidRequest, InvalidVector
from .values import show

Metric = Literal["cosine", "euclidean", "dotproduct"]
METRICS: tuple[Metric, ...] = ("cosine", "euclidean", "dotproduct")
IndexType = Literal["flat", "hnsw", "ivfflat"]
INDEX_TYPES: tuple[IndexType, ...] = ("flat", "hnsw", "ivfflat")

LARGEST_NORM = 1e15
SMALLEST_NORM = 1e-15
"""Under cosine; shorter vectors have no direction that survives float32."""

TOLERANCE = 1e-5
MAX_TOP_K = 10_000

Vector = NDArray[np.float32]
Vectors = NDArray[np.float32]


def vector(value: object, dimension: int, metric: Metric, name: str = "vector") -> Vector:
    """The float32 components, shape (dimension,), of a valid vector; InvalidVector otherwise (VEC-2)."""
    components = _components(value, name)
    if len(components) != dimension:
        raise InvalidVector(f"{name} has {len(components)} components, not {dimension}", clause="VEC-2a")
    with np.errstate(over="ignore"):
        rounded = components.astype(np.float32)
    components = rounded.astype(np.float64)
    norm = math.sqrt(components.dot(components))
    if not math.isfinite(norm):  # Squares of finite float32s do not overflow: a component is infinite, or no number.
        raise InvalidVector(f"{name} has a component that float32 does not hold", clause="VEC-2a")
    if norm > LARGEST_NORM or (metric == "cosine" and norm < SMALLEST_NORM):
        raise InvalidVector(
            f"{name} has the norm {norm:.3g}",
            hint=f"up to {LARGEST_NORM:g}; under cosine at least {SMALLEST_NORM:g}",
            clause="VEC-2a",
        )
    return rounded


def _components(value: object, name: str) -> NDArray[np.float64]:
    if isinstance(value, np.ndarray):
        array = cast("NDArray[Any]", value)
        if array.ndim != 1 or array.dtype.kind not in "fiu":
            raise InvalidVector(
                f"{name} is an array of shape {array.shape}", hint="pass one dimension", clause="VEC-2a"
            )
        return array.astype(np.float64)
    if not isinstance(value, list | tuple):
        raise InvalidVector(f"{name} is {show(value)}", hint="pass a sequence of numbers", clause="VEC-2a")
    items = cast("Sequence[object]", value)
    for item in items:
        if type(item) is not int and type(item) is not float:
            raise InvalidVector(f"{name} holds {show(item)}", hint="pass numbers", clause="VEC-2a")
    try:
        return np.array(items, dtype=np.float64)
    except OverflowError:
        raise InvalidVector(f"{name} holds an integer that no float holds", clause="VEC-2a") from None


def scores(metric: Metric, query: Vector, rows: Vectors) -> NDArray[np.float64]:
    """The true score of each row, shape (n,) for rows of shape (n, dimension): larger is closer (VEC-3).

    cosine: the cosine, in [−1, 1]. dotproduct: the inner product. euclidean: 1 / (1 + distance).
    """
    q, r = query.astype(np.float64), rows.astype(np.float64)
    if metric == "euclidean":
        r -= q
        return 1.0 / (1.0 + np.sqrt(np.vecdot(r, r)))
    # Row by row: equal vectors score the same whatever stands beside them, which a matrix product does not promise.
    products = np.vecdot(r, q)
    if metric == "dotproduct":
        return products
    products /= np.sqrt(np.vecdot(r, r) * np.vecdot(q, q))
    return np.maximum(np.minimum(products, 1.0), -1.0)


def tolerance(metric: Metric, query: Vector, row: Vector) -> float:
    """How far a returned score may lie from the true one (VEC-3)."""
    if metric != "dotproduct":
        return TOLERANCE
    norms = np.linalg.norm(query.astype(np.float64)) * np.linalg.norm(row.astype(np.float64))
    return TOLERANCE * max(1.0, float(norms))


def threshold(value: object, name: str, *, clause: str = "VEC-4") -> float | None:
    """A finite number, or None."""
    if value is None:
        return None
    try:
        number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    except OverflowError:  # an integer that no float holds
        number = math.inf
    if not math.isfinite(number):
        raise InvalidRequest(f"{name} is {show(value)}", hint="pass a finite number", clause=clause)
    return number
