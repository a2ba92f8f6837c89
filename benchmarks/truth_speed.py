"""What exact truth costs beside the bare matrix product of float32, and whether a full scan in float64 agrees.

`python -m memassay.benchmarks.truth_speed`. Both take turns in one process, after a round to warm up, on the same rows
in memory; the product writes into an array that is there. Ratios of other runs or machines say nothing of this one.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Annotated

import numpy as np
import typer

from .exact import scan
from .filters import FILTERS, NO_FILTER, Filter
from .mixture import make
from .truth import compute
from .vectorset import VectorSet


def main(
    rows: Annotated[int, typer.Option(min=1)] = 100_000,
    dimension: Annotated[int, typer.Option(min=2)] = 384,
    queries: Annotated[int, typer.Option(min=1)] = 1_000,
    top_k: Annotated[int, typer.Option(min=1)] = 10,
    rounds: Annotated[int, typer.Option(min=1)] = 7,
    seed: Annotated[int, typer.Option()] = 0,
) -> None:
    """Time exact truth without a filter beside the product, and compare it with the scan under every filter."""
    data = make(rows, dimension, queries, seed)
    product = np.empty((queries, rows), np.float32)
    sides: dict[str, tuple[Callable[[], object], list[float]]] = {
        "bare product": (lambda: np.matmul(data.queries, data.rows.T, out=product), []),
        "exact truth": (lambda: compute(data, NO_FILTER, top_k), []),
    }
    for number in range(rounds + 1):
        for run, seconds in sides.values():
            began = time.perf_counter()
            run()
            if number:
                seconds.append(time.perf_counter() - began)
    bare, truth = (seconds for _, seconds in sides.values())
    typer.echo(f"{queries:,} queries × {rows:,} rows × {dimension}, k = {top_k}, {rounds} rounds")
    for name, (_, seconds) in sides.items():
        typer.echo(f"{name}: median {statistics.median(seconds):.3f} s, least {min(seconds):.3f} s")
    by_round = [of_truth / of_bare for of_truth, of_bare in zip(truth, bare, strict=True)]
    typer.echo(f"ratio: median of rounds {statistics.median(by_round):.2f}, of the least {min(truth) / min(bare):.2f}")
    for filter in FILTERS:
        typer.echo(f"filter {filter.label}: {_agreement(data, filter, top_k)}")


def _agreement(data: VectorSet, filter: Filter, top_k: int) -> str:
    numbers = np.flatnonzero(data.mask(filter))
    scanned = scan(data.metric, data.asked(filter), data.rows[numbers], top_k)
    found = compute(data, filter, top_k)
    same = sum(np.array_equal(truth.rows, numbers[near.rows]) for truth, near in zip(found, scanned, strict=True))
    ties = sum(len(truth.rows) > truth.due for truth in found)
    return f"{same:,} of {len(found):,} queries have the ids of a full float64 scan; {ties} have ties at the end"


if __name__ == "__main__":
    typer.run(main)
