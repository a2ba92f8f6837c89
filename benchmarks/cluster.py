"""Work on several machines: a Dask cluster, given by its scheduler's address, or workers of our own on this one."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, TypeVar, cast

from ..harness.exits import UsageProblem
from .extras import needed

ADDRESS = re.compile(r"(tcp|tls)://.+:\d+")
ANSWER_SECONDS = 10

OWN = version("memassay")

T = TypeVar("T")
R = TypeVar("R")


class Cluster:
    """Workers that compute. A function has to be found there by its name: those of memassay are."""

    def __init__(self, client: Any) -> None:
        self._client = client

    @property
    def address(self) -> str:
        """Of its scheduler: other processes reach it there."""
        return self._client.scheduler.address

    @property
    def workers(self) -> list[str]:
        """Their addresses, sorted."""
        return sorted(self._client.nthreads())

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """The function of each item, in the order of the items; whichever worker is free takes the next.

        A worker's error is raised here.
        """
        futures = self._client.map(_unpacking(), [pickle.dumps((function, item)) for item in items], pure=False)
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
            self._client.submit(_unpacking(), pickle.dumps((function, item)), workers=[worker], pure=False)
            for item, worker in zip(items, workers, strict=False)
        ]
        return cast("list[R]", self._client.gather(futures))

    def check(self) -> None:
        """Raises UsageProblem unless there are workers, and each has this version of memassay."""

        def theirs() -> str:  # it goes there as its code: they may not have memassay
            from importlib.metadata import version

            return version("memassay")

        found: dict[str, Any] = self._client.run(theirs, on_error="return")
        if not found:
            raise UsageProblem(f"the cluster at {self.address} has no workers", hint=f"dask worker {self.address}")
        for worker, has in found.items():
            if has != OWN:
                raise UsageProblem(
                    f"{worker} has not memassay {OWN} but {has!r}",
                    hint="install the same everywhere",
                )


def _unpacking() -> Callable[[bytes], Any]:
    """What a worker does. It goes there as its code, and what it calls only by name and within the task.

    A worker that cannot unpack a message falls silent, and everybody waits; a task that cannot raises.
    """

    def unpacked(packed: bytes) -> Any:
        import pickle

        function, item = pickle.loads(packed)
        return function(item)

    return unpacked


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
        cluster = Cluster(client)
        cluster.check()
        yield cluster


@contextmanager
def local(workers: int) -> Generator[Cluster]:
    """Processes of our own, reachable from this machine alone, and gone afterwards."""
    distributed = needed("distributed", "a local cluster", "cluster")
    with (
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            protocol="tcp://",
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield Cluster(client)
