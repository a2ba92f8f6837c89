"""Work on several machines: a Dask cluster, given by its scheduler's address, or workers of our own on this one."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from ..harness.exits import UsageProblem
from .extras import needed

ADDRESS = re.compile(r"(tcp|tls)://.+:\d+")
ANSWER_SECONDS = 10

T = TypeVar("T")
R = TypeVar("R")


class Cluster:
    """Workers that compute. A function and what it is given have to be importable there: memassay is."""

    def __init__(self, client: Any) -> None:
        self._client = client

    @property
    def workers(self) -> list[str]:
        """Their addresses, sorted."""
        return sorted(self._client.scheduler_info(n_workers=-1)["workers"])

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """The function of each item, in the order of the items; whichever worker is free takes the next.

        A worker's error is raised here.
        """
        futures = self._client.map(function, items, pure=False)
        return cast("list[R]", self._client.gather(futures))

    def each(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """The function of each item, all at once: each on a worker of its own, for work that has to run side by side.

        Raises UsageProblem when there are fewer workers than items.
        """
        workers = self.workers
        if len(workers) < len(items):
            raise UsageProblem(
                f"{len(items)} parts need as many workers; the cluster has {len(workers)}", hint="add workers to it"
            )
        futures = [
            self._client.submit(function, item, workers=[worker], allow_other_workers=False, pure=False)
            for item, worker in zip(items, workers, strict=False)
        ]
        return cast("list[R]", self._client.gather(futures))


@contextmanager
def connected(address: str) -> Generator[Cluster]:
    """The cluster of a scheduler, `tcp://host:port` (or tls://). Raises UsageProblem when nothing answers there.

    Whoever reaches a scheduler can run code on its workers: let it listen on networks that are yours alone.
    """
    if not ADDRESS.fullmatch(address):
        raise UsageProblem(
            f"{address!r} is no address of a scheduler", hint="tcp://host:port, as the scheduler shows it"
        )
    distributed = needed("distributed", "--cluster", "cluster")
    try:
        client = distributed.Client(address, timeout=ANSWER_SECONDS, set_as_default=False)
    except (OSError, TimeoutError) as error:
        raise UsageProblem(
            f"no scheduler answers at {address}", hint="`dask scheduler` starts one, `dask worker` its workers"
        ) from error
    with client:
        if not client.scheduler_info(n_workers=-1)["workers"]:
            raise UsageProblem(f"the cluster at {address} has no workers", hint=f"`dask worker {address}` starts some")
        yield Cluster(client)


@contextmanager
def local(workers: int) -> Generator[Cluster]:
    """Processes of our own, reachable from this machine alone, and gone afterwards."""
    distributed = needed("distributed", "a local cluster", "cluster")
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, protocol="tcp://"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield Cluster(client)
