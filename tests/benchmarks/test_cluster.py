"""Work on a Dask cluster of two workers on this machine: the same results as in one process, and refusals."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any, NamedTuple

import pytest
from memassay.benchmarks import truth
from memassay.benchmarks.cluster import Cluster, local
from memassay.benchmarks.datasets import NO_FILTER, Filter, VectorSet, open_dataset
from memassay.benchmarks.truth import compute
from memassay.harness.exits import UsageProblem

SPEC = "mixture:3k×16?queries=30"


class Two(NamedTuple):
    """Two workers, and what they are asked about."""

    cluster: Cluster
    data: VectorSet


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Generator[Two]:
    data = open_dataset(SPEC, cache=tmp_path_factory.mktemp("cache"))
    with local(2) as cluster:
        yield Two(cluster, data)


def process(item: Any) -> int:
    return os.getpid()


def failing(item: Any) -> int:
    raise UsageProblem(f"{item} is bad", hint="another")


@pytest.mark.parametrize(
    "filter", [NO_FILTER, Filter("aligned", 100), Filter("against", 1)], ids=lambda each: each.label
)
def test_truth_of_two_workers_is_that_of_one_process(two: Two, filter: Filter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(truth, "BLOCK", 4 * 16 * 400)  # 8 blocks
    there, here = (compute(two.data, filter, 10, cluster=cluster) for cluster in (two.cluster, None))
    for one, other in zip(there, here, strict=True):
        assert (one.due, one.least) == (other.due, other.least)
        assert one.rows.tolist() == other.rows.tolist()
        assert one.scores.tolist() == other.scores.tolist()


def test_blocks_are_searched_by_the_workers(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(truth, "nearest", None)  # in this process
    assert len(compute(two.data, NO_FILTER, 10, cluster=two.cluster)) == 30
