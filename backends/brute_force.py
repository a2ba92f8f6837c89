"""The rows nearest to queries by FAISS's brute force: quick, and right as far as float32 goes."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
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
    # A thread for a part of the queries, not threads of its own for a part of the work: where a core is busy otherwise,
    # those wait for each other at every step, and took three times as long.
    threads = min(os.cpu_count() or 1, len(queries))
    with ThreadPoolExecutor(threads, initializer=lambda: _faiss.omp_set_num_threads(1)) as pool:
        parts = [*pool.map(lambda part: _faiss.knn(part, rows, count, kind), np.array_split(queries, threads))]
    values, numbers = (np.concatenate(each) for each in zip(*parts, strict=True))
    return values, numbers
