"""Data sets of vectors that exist: queries of their own, or held out of the rows; filters by where the rows lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..harness.exits import UsageProblem
from ..spec.vectors import LARGEST_NORM, SMALLEST_NORM, Metric
from .filters import closeness, mark
from .vectorset import Array, Arrays, Recipe

CHUNK = 8_192
"""Vectors that are read at a time."""

MOST = 10
"""At most a part in so many of the vectors is held out."""

CLOSE = 4
"""A part in so many of the queries, the nearest to the first of them, are the directed ones."""

VERSION = 1


class Source(NamedTuple):
    """Vectors as they are stored, of any type of number. `parts` yields them in order, shape (m, dimension) each."""

    name: str
    many: int
    dimension: int
    parts: Callable[[], Iterator[NDArray[Any]]]


def recipe(
    name: str, metric: Metric, key: str, rows: Source, queries: Source | int, limit: int | None, seed: int
) -> Recipe:
    """A data set of the first `limit` vectors of a source, with queries of another source, or so many held out.

    key: what tells the content of the sources. Raises UsageProblem for what cannot be; making it does for bad vectors.
    """
    count = rows.many if limit is None else min(limit, rows.many)
    if isinstance(queries, int):
        asked = min(queries, count // MOST)
        left = count - asked
    else:
        asked, left = queries.many, count
        if queries.dimension != rows.dimension:
            raise UsageProblem(
                f"{queries.name} has {queries.dimension} dimensions, {rows.name} {rows.dimension}",
                hint="the queries have to be of the same data set",
            )
    if left < 1 or asked < 1:
        raise UsageProblem(
            f"{count} vectors of {rows.name} are too few for rows and queries", hint=f"{MOST} or more, or queries apart"
        )
    return Recipe(
        name=name,
        metric=metric,
        key=f"held out {VERSION} {key} {metric} rows {count} queries {asked} seed {seed}",
        rows=left,
        dimension=rows.dimension,
        queries=asked,
        directed=max(1, asked // CLOSE),
        fill=lambda arrays: _fill(arrays, metric, rows, queries, count, seed),
    )


def _fill(arrays: Arrays, metric: Metric, rows: Source, queries: Source | int, count: int, seed: int) -> None:
    if isinstance(queries, int):
        held = np.zeros(count, np.bool_)
        held[np.random.default_rng(seed).choice(count, len(arrays.queries), replace=False)] = True
        _read(rows, metric, held, arrays.rows, arrays.queries)
    else:
        nothing = arrays.queries[:0]
        _read(rows, metric, np.zeros(count, np.bool_), arrays.rows, nothing)
        _read(queries, metric, np.zeros(queries.many, np.bool_), arrays.queries, nothing)
    centre = np.array(arrays.queries[0])
    nearest = np.argsort(-closeness(metric, centre, arrays.queries), kind="stable")
    arrays.directed[:] = arrays.queries[nearest[: len(arrays.directed)]]
    mark(arrays.marks, closeness(metric, centre, arrays.rows), seed)


def _read(source: Source, metric: Metric, held: NDArray[np.bool_], kept: Array, out: Array) -> None:
    """Put as many vectors as `held` says into `out` where it is true, and into `kept` where not."""
    at, kept_at, out_at = 0, 0, 0
    for part in source.parts():
        vectors = _checked(source, metric, part[: len(held) - at], at)
        those = held[at : at + len(vectors)]
        at += len(vectors)
        kept_end, out_end = kept_at + int(np.count_nonzero(~those)), out_at + int(np.count_nonzero(those))
        kept[kept_at:kept_end], out[out_at:out_end] = vectors[~those], vectors[those]
        kept_at, out_at = kept_end, out_end
        if at == len(held):
            return
    raise UsageProblem(f"{source.name} has {at} vectors, not {source.many}", hint="get the file again")


def _checked(source: Source, metric: Metric, part: NDArray[Any], at: int) -> Array:
    """The same in float32. Raises UsageProblem for a vector that no index may hold under the metric (VEC-2a)."""
    with np.errstate(over="ignore"):
        vectors = np.ascontiguousarray(part, np.float32)
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    good = lengths <= LARGEST_NORM  # false where a component is not a number
    if metric == "cosine":
        good &= lengths >= SMALLEST_NORM
    if not good.all():
        bad = int(np.argmin(good))
        raise UsageProblem(
            f"vector {at + bad} of {source.name} has the length {lengths[bad]:.3g}",
            hint=f"finite, up to {LARGEST_NORM:g}; under cosine at least {SMALLEST_NORM:g}",
        )
    return vectors
