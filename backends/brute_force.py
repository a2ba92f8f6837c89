"""The rows nearest to queries by FAISS's brute force: quick, and right as far as float32 goes."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Literal, cast

import faiss  # pyright: ignore[reportMissingTypeStubs]
import numpy as np
from numpy.typing import NDArray

_faiss = cast(Any, faiss)


def nearest(
    queries: NDArray[np.float32], rows: NDArray[np.float32], count: int, by: Literal["product", "distance"]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The `count` best rows of each query, best first: what they were chosen by, and their numbers, shape (q, count).

    Chosen by the inner product, larger is better, or by the squared distance, smaller is better; of at least `count`.
    """
    kind = _faiss.METRIC_INNER_PRODUCT if by == "product" else _faiss.METRIC_L2

    def search(part: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        return _faiss.knn(part, rows, count, kind)

    # A thread for a part of the queries, not threads of its own for a part of the work: where a core is busy otherwise,
    # those wait for each other at every step, and took three times as long.
    threads = min(os.cpu_count() or 1, len(queries))
    with _products(), ThreadPoolExecutor(threads, initializer=_faiss.omp_set_num_threads, initargs=(1,)) as pool:
        parts = [*pool.map(search, np.array_split(queries, threads))]
    values, numbers = (np.concatenate(each) for each in zip(*parts, strict=True))
    return values, numbers


@contextmanager
def _products() -> Generator[None]:
    """Compute by matrix products for few queries, too: without them a hundred queries took fourteen times as long."""
    with _turn:
        before = _faiss.cvar.distance_compute_blas_threshold
        _faiss.cvar.distance_compute_blas_threshold = 1
        try:
            yield
        finally:
            _faiss.cvar.distance_compute_blas_threshold = before


_turn = threading.Lock()
"""Held by who searches: when products are used is one setting of the process."""
