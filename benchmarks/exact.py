"""The nearest rows of a block, exactly: selected in float32, proven or scanned, decided in float64.

FAISS's brute force selects more rows than are asked for, in float32. They are scored in float64, and the selection is
proven: no row left out can belong, by the bound on what rounding does to an inner product, |error| ≤ γ(d) |x||y| in
whatever order it is summed (Higham, Accuracy and Stability of Numerical Algorithms, 3.1). Where the proof fails, as
with many near ties, a scan in float64 decides. A sample of the queries is scanned every time, and has to agree.

A value is what rows are chosen by, larger is closer: the cosine, the inner product, or the squared distance negated.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..spec.vectors import Metric, scores
from .extras import needed
from .vectorset import Array

TIE = 1e-9
"""Scores as near as this are equal, and any of their rows will do; relative to the score but under cosine."""

SPARE = 22
"""Selected beyond what is asked for; as many again where that is more."""

SAMPLE = 8
"""Queries that are scanned too."""

PART = 384 << 10
"""Bytes of rows that are in float64 at a time: they stay in a processor's cache."""

BATCH = 64
"""Queries that are scanned at a time."""

U32, TINY32, U64 = 2.0**-24, 2.0**-149, 2.0**-53
"""The unit roundoff of float32 and its smallest number; the unit roundoff of float64."""

UNIT = 1e-6
"""Rows whose length is as near to 1 as this are taken as they are under cosine."""

MARGIN = 1.001
"""On bounds, for what is of second order."""

Exact = NDArray[np.float64]
Numbers = NDArray[np.int64]


class Near(NamedTuple):
    """Of one query: the k closest rows, and all that tie with the last of them, closest first, with their scores."""

    rows: Numbers
    scores: Exact


class DisagreementError(RuntimeError):
    """The selection and the scan do not find the same: a defect of ours, or of a library."""


class _Swept(NamedTuple):
    """What a pass over all rows in float64 yields: inner products, shape (q, n), and the rows' lengths, shape (n,)."""

    products: Exact
    lengths: Exact


def nearest(metric: Metric, queries: Array, rows: Array, k: int) -> list[Near]:
    """Of each query, shape (q, d), among rows of shape (n, d). All must be valid vectors under the metric.

    Raises DisagreementError.
    """
    rows = np.asarray(rows)
    take = k + max(SPARE, k)
    if len(rows) <= take:
        return scan(metric, queries, rows, k)
    sample = list(range(0, len(queries), max(1, -(-len(queries) // SAMPLE))))
    swept = _sweep(queries[sample], rows)
    found, unproven = _select(metric, queries, rows, swept.lengths, k, take)
    for number, near in zip(unproven, scan(metric, queries[unproven], rows, k), strict=True):
        found[number] = near
    for number, near in zip(sample, _decided(metric, queries[sample], rows, swept, k), strict=True):
        if not np.array_equal(found[number].rows, near.rows):
            raise DisagreementError(
                f"query {number}: selected {found[number].rows.tolist()}, scanned {near.rows.tolist()}"
            )
    return found


def scan(metric: Metric, queries: Array, rows: Array, k: int) -> list[Near]:
    """The same by a scan in float64 of every row for every query: slow, and nothing to prove."""
    rows = np.asarray(rows)
    found: list[Near] = []
    for start in range(0, len(queries), BATCH):
        batch = queries[start : start + BATCH]
        found += _decided(metric, batch, rows, _sweep(batch, rows), k)
    return found


def merge(metric: Metric, parts: list[Near], k: int) -> Near:
    """What the blocks of a whole found, each by numbers of rows of the whole, as if it had been one."""
    rows, scored = (np.concatenate(each) for each in zip(*parts, strict=True))
    return _best(metric, rows, scored, k)


def threshold(metric: Metric, least: Exact) -> Exact:
    """The score from which on a row belongs, where the last that is due has the score `least`."""
    return least - TIE * (1.0 if metric == "cosine" else np.abs(least))


def _floor(metric: Metric, last: Exact, error: Exact) -> Exact:
    """The value below which a row cannot belong, where `last` is the k-th best value; both may be off by `error`."""
    if metric != "euclidean":
        return threshold(metric, last - error) - error
    score = 1 / (1 + np.sqrt(np.maximum(0.0, error - last)))
    distance = 1 / threshold(metric, score) - 1
    return -np.square(distance + 4 * U64 * (1 + distance)) - error


def _best(metric: Metric, numbers: Numbers, scored: Exact, k: int) -> Near:
    if len(scored) == 0:
        return Near(numbers, scored)
    due = min(k, len(scored))
    least = np.partition(scored, -due)[-due]
    belongs = scored >= threshold(metric, least)
    numbers, scored = numbers[belongs], scored[belongs]
    order = np.lexsort((numbers, -scored))
    return Near(numbers[order], scored[order])


def _gamma(count: int, roundoff: float) -> float:
    return count * roundoff / (1 - count * roundoff)


# In float32


def _select(
    metric: Metric, queries: Array, rows: Array, lengths: Exact, k: int, take: int
) -> tuple[list[Near], list[int]]:
    """What the selection yields, and the numbers of the queries for which it is not proven."""
    needed("faiss", "exact truth")
    brute_force: Any = import_module("..backends.brute_force", __package__)
    asked = queries.astype(np.float64)
    long = np.linalg.norm(asked, axis=1)
    stored, off = rows, 0.0
    if metric == "cosine":
        asked /= long[:, None]
        off = float(np.abs(lengths - 1).max())
        if off > UNIT:
            stored, off = rows * (1 / lengths).astype(np.float32)[:, None], 3 * U32
    by = "distance" if metric == "euclidean" else "product"
    found, numbers = brute_force.nearest(asked.astype(np.float32), stored, take, by)
    values = found.astype(np.float64) * (-1 if metric == "euclidean" else 1)
    errors = rounding(metric, long, float(lengths.max()), off, rows.shape[1])
    may = values >= _floor(metric, values[:, k - 1], errors)[:, None]
    near: list[Near] = []
    for query, candidates, those in zip(queries, numbers, may, strict=True):
        candidates = candidates[those]
        near.append(_best(metric, candidates, scores(metric, query, rows[candidates]), k))
    # No row that was left out has a better value than the last of those selected.
    return near, np.flatnonzero(may[:, -1]).tolist()


def rounding(metric: Metric, asked: Exact, longest: float, off: float, dimension: int) -> Exact:
    """How far a value in float32 may lie from the true one, of each query, given the lengths of queries and rows.

    off: under cosine, how far the rows' lengths are from 1, or a row scaled to 1 from where it should be.
    """
    if metric == "cosine":
        bound = np.full(len(asked), _gamma(dimension, U32) * (1 + off) + U32 + off)
    elif metric == "dotproduct":
        bound = _gamma(dimension, U32) * asked * longest
    else:  # it is computed as |x|² + |y|² − 2 x·y
        bound = _gamma(dimension + 4, U32) * (asked + longest) ** 2
    return MARGIN * bound + 4 * dimension * TINY32


# In float64


def _sweep(queries: Array, rows: Array) -> _Swept:
    asked = queries.astype(np.float64)
    products, lengths = np.empty((len(queries), len(rows))), np.empty(len(rows))
    step = max(1, PART // (8 * rows.shape[1]))

    def sweep(starts: range) -> None:
        for start in starts:
            exact = rows[start : start + step].astype(np.float64)
            np.sqrt(np.einsum("ij,ij->i", exact, exact), out=lengths[start : start + step])
            products[:, start : start + step] = asked @ exact.T

    threads, starts = os.cpu_count() or 1, range(0, len(rows), step)
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(sweep, [starts[first::threads] for first in range(threads)]):
            pass
    return _Swept(products, lengths)


def _decided(metric: Metric, queries: Array, rows: Array, swept: _Swept, k: int) -> list[Near]:
    """By the values of a sweep, which are rounded too, as scores are: whatever may belong is scored."""
    found: list[Near] = []
    dimension, longest, due = rows.shape[1], float(swept.lengths.max()), min(k, len(rows))
    squares = swept.lengths**2
    for query, products in zip(queries, swept.products, strict=True):
        asked = float(np.linalg.norm(query.astype(np.float64)))
        if metric == "euclidean":
            values, error = 2 * products - squares - asked**2, _gamma(dimension + 4, U64) * (asked + longest) ** 2
        elif metric == "dotproduct":
            values, error = products, _gamma(dimension, U64) * asked * longest
        else:
            values, error = products / (swept.lengths * asked), _gamma(3 * dimension, U64)
        floor = _floor(metric, np.partition(values, -due)[-due], np.array(2 * error))
        candidates = np.flatnonzero(values >= floor)
        found.append(_best(metric, candidates, scores(metric, query, rows[candidates]), k))
    return found
