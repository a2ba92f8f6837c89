"""Work on a Dask cluster of two workers on this machine: the same results as in one process, and refusals."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Generator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import msgspec
import psutil
import pytest
from memassay.benchmarks import cluster as clusters
from memassay.benchmarks import datasets, truth
from memassay.benchmarks.cluster import Cluster, connected, local
from memassay.benchmarks.datasets import NO_FILTER, Filter, Reference, VectorSet, open_dataset
from memassay.benchmarks.mixture import make
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


PROCESS = "__import__('os').getpid()"


@pytest.mark.parametrize(
    "filter", [NO_FILTER, Filter("aligned", 100), Filter("against", 1)], ids=lambda each: each.label
)
def test_truth_of_two_workers_is_that_of_one_process(two: Two, filter: Filter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(truth, "BLOCK", 4 * 16 * 400)  # 8 blocks
    spread, alone = (compute(two.data, filter, 10, cluster=cluster) for cluster in (two.cluster, None))
    for one, other in zip(spread, alone, strict=True):
        assert (one.due, one.least) == (other.due, other.least)
        assert one.rows.tolist() == other.rows.tolist()
        assert one.scores.tolist() == other.scores.tolist()


def test_blocks_are_searched_by_the_workers(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(truth, "nearest", None)  # in this process
    assert len(compute(two.data, NO_FILTER, 10, cluster=two.cluster)) == 30


def test_what_is_mapped_comes_back_in_order(two: Two) -> None:
    assert two.cluster.map(abs, [-3, 1, -2]) == [3, 1, 2]


def test_each_part_runs_on_a_worker_of_its_own(two: Two) -> None:
    processes = two.cluster.each(eval, [PROCESS, PROCESS])
    assert len({*processes, os.getpid()}) == 3


def test_more_parts_than_workers_are_refused(two: Two) -> None:
    with pytest.raises(UsageProblem, match="3 parts need as many workers; the cluster has 2"):
        two.cluster.each(eval, [PROCESS] * 3)


@pytest.mark.parametrize("way", ["map", "each"])
def test_what_a_worker_raises_is_raised_here(two: Two, way: str) -> None:
    with pytest.raises(UsageProblem, match="no kind of data set 'none'") as raised:
        getattr(two.cluster, way)(open_dataset, ["none"])
    assert "mixture" in raised.value.hint


@pytest.mark.parametrize("way", ["map", "each"])
def test_what_a_worker_does_not_find_is_an_error(two: Two, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    only_here = ModuleType("only_here")
    exec("def same(item): return item", only_here.__dict__)
    monkeypatch.setitem(sys.modules, "only_here", only_here)
    with pytest.raises(ModuleNotFoundError):
        getattr(two.cluster, way)(only_here.__dict__["same"], [5])


def test_workers_of_another_version_are_refused(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "OWN", "9.9")
    with pytest.raises(UsageProblem, match=r"tcp://.* has not memassay 9\.9 but '0\.1"), connected(two.cluster.address):
        pass


def test_a_cluster_is_reached_by_its_address(two: Two) -> None:
    with connected(two.cluster.address) as again:
        assert again.workers == two.cluster.workers
        assert len(compute(two.data, NO_FILTER, 3, cluster=again)) == 30


def listening() -> set[tuple[int, str, int]]:
    """Where this process and its children listen: who, the address and the port."""
    return {
        (process.pid, connection.laddr.ip, connection.laddr.port)
        for process in (psutil.Process(), *psutil.Process().children(recursive=True))
        for connection in process.net_connections()
        if connection.status == psutil.CONN_LISTEN
    }


def test_it_listens_on_the_loopback_alone() -> None:
    before = listening()
    with local(1) as cluster:
        added = listening() - before
        assert cluster.workers[0].startswith("tcp://127.0.0.1:")
    assert {address for _, address, _ in added} == {"127.0.0.1"}


def test_workers_are_gone_afterwards() -> None:
    with local(1) as cluster:
        (worker,) = cluster.each(eval, [PROCESS])
        assert psutil.pid_exists(worker)
    assert not psutil.pid_exists(worker)


# Addresses


@pytest.mark.parametrize("address", ["", "localhost", "127.0.0.1:8786", "http://127.0.0.1:8787", "tcp://127.0.0.1"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(UsageProblem, match="is no address of a scheduler"), connected(address):
        pass


def test_an_address_where_nothing_answers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "ANSWER_SECONDS", 1)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(UsageProblem, match="no scheduler answers at"), connected(address):
            pass


def test_a_cluster_without_workers_is_refused() -> None:
    with (
        local(0) as empty,
        pytest.raises(UsageProblem, match="has no workers"),
        connected(empty.address),
    ):
        pass


# The data set on a worker


def test_a_data_set_in_memory_cannot_be_shared(two: Two) -> None:
    with pytest.raises(UsageProblem, match="is in memory alone"):
        compute(make(100, 4, 1, 0), NO_FILTER, 3, cluster=two.cluster)


def test_where_it_is_not_kept_it_is_made_by_its_name(two: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMASSAY_CACHE_DIR", str(tmp_path))
    elsewhere = msgspec.structs.replace(Reference.of(two.data), folder="/nowhere/datasets/mixture")
    made = datasets.reopen(elsewhere)
    assert made.hash() == two.data.hash()
    assert made.folder is not None
    assert made.folder.is_relative_to(tmp_path)


def test_one_that_differs_there_is_refused(two: Two) -> None:
    other = msgspec.structs.replace(Reference.of(two.data), hash="0" * 64)
    with pytest.raises(UsageProblem, match="is another data set here"):
        datasets.reopen(other)
