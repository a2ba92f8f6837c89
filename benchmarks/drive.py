"""Who makes the load of a phase: threads of this process, or of the workers of a cluster, all in step."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..backends.provision import Endpoint
from ..harness.engine import Engine
from ..harness.redact import Redactor
from ..spec.capabilities import Capabilities
from . import load
from .agent import open_agent_memory
from .cluster import Cluster
from .contenders import Client, Contender
from .datasets import open_dataset
from .entrants import entrants
from .filters import Filter
from .keeping import Told, silent
from .load import Note, Ran, Work
from .noop import NAME as NOOP
from .scene import Scene, Series
from .truth import Truth, exact
from .vectorset import VectorSet
from .workloads import WORKLOADS, Stream, Workload

LEAD = 0.2
"""Seconds ahead that a phase's begin is announced to workers, which are ready and only have to be told."""

PINGS = 20
KEPT_SCENES = 4


class Operations(NamedTuple):
    """Operations of one phase on a contender, and what they are made of: the same again on whoever has the scene.

    first: where the contender's series stood; many, seed: see Workload.stream.
    """

    contender: Contender
    workload: Workload
    stream: Stream
    many: int
    seed: int
    first: int


class Drive(Protocol):
    """Makes load; see load.closed and load.open_loop."""

    def closed(self, phase: Operations, clients: int, *, seconds: float, most: int) -> Ran:
        """Every client asks as soon as it was answered. Raises Stuck."""
        ...

    def open_loop(self, phase: Operations, clients: int, due: NDArray[np.int64]) -> Ran:
        """Operations are made when they are due. Raises Stuck."""
        ...

    def leave(self) -> None:
        """Close the clients that were opened for it."""
        ...


class Here:
    """Threads of this process."""

    def closed(self, phase: Operations, clients: int, *, seconds: float, most: int) -> Ran:
        """See Drive."""
        work = _work(phase.contender, phase.stream, phase.contender.clients(clients))
        return load.closed(work, clients, seconds=seconds, most=most)

    def open_loop(self, phase: Operations, clients: int, due: NDArray[np.int64]) -> Ran:
        """See Drive."""
        work = _work(phase.contender, phase.stream, phase.contender.clients(clients))
        return load.open_loop(work, clients, due)

    def leave(self) -> None:
        """See Drive. The contender itself closes its clients."""


HERE = Here()


# On a cluster


class Recipe(msgspec.Struct, frozen=True):
    """What a scene is made of, wherever it is made."""

    data: str
    memory: str
    meaning: bool
    k: int
    seed: int

    def make(self, cluster: Cluster | None = None, told: Told = silent) -> Scene:
        """The scene. Exact truth is found on the cluster, if there is one. Raises UsageProblem."""
        vectors = open_dataset(self.data, told=told)
        memory = open_agent_memory(self.memory, told=told, meaning=self.meaning)

        def truth(data: VectorSet, filter: Filter, k: int) -> list[Truth]:
            return exact(data, filter, k, cluster=cluster, told=told)

        return Scene(vectors, memory, k=self.k, seed=self.seed, truth=truth)


class Part(msgspec.Struct, frozen=True):
    """A worker's part of a phase: `clients` clients, and of the operations every `of`-th, from the `place`-th."""

    recipe: Recipe
    contender: str
    endpoint: Endpoint
    engine: str
    capabilities: Capabilities
    namespace: str
    embedded: bool
    effort: int | None
    workload: str
    many: int
    seed: int
    first: int
    clients: int
    place: int
    of: int
    loop: Literal["closed", "open"]
    seconds: float = 0.0
    most: int = 0
    due: list[int] = []


class Elsewhere(Exception):
    """What a call on a worker raised, told as text: a driver's exception may not survive being sent."""


class Spread:
    """Workers of a cluster, each with clients of its own, beginning together.

    What lives in this process (the model, stores in memory) no worker can reach: its load is made here, and `note`
    says so. Clocks of other machines may differ: by how much is measured once, to half of the shortest round trip.
    """

    def __init__(self, cluster: Cluster, workers: int, recipe: Recipe, note: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._workers = workers
        self._recipe = recipe
        self._note = note
        self._ahead = _clocks(cluster, workers, note)

    def closed(self, phase: Operations, clients: int, *, seconds: float, most: int) -> Ran:
        """See Drive."""
        if not self._reaches(phase.contender):
            return HERE.closed(phase, clients, seconds=seconds, most=most)
        shares = _shares(clients, self._workers)
        return self._run(
            [
                self._part(phase, place, shares, loop="closed", seconds=seconds, most=_share(most, place, len(shares)))
                for place in range(len(shares))
            ]
        )

    def open_loop(self, phase: Operations, clients: int, due: NDArray[np.int64]) -> Ran:
        """See Drive."""
        if not self._reaches(phase.contender):
            return HERE.open_loop(phase, clients, due)
        shares = _shares(clients, self._workers)
        return self._run(
            [
                self._part(phase, place, shares, loop="open", due=due[place :: len(shares)].tolist())
                for place in range(len(shares))
            ]
        )

    def leave(self) -> None:
        """See Drive."""
        self._cluster.each(_leave, [None] * self._workers)

    def _reaches(self, contender: Contender) -> bool:
        if contender.name == NOOP or contender.engine.second is not None:
            return True
        self._note(f"{contender.name} lives in one process: its load was made by that process alone")
        return False

    def _part(self, phase: Operations, place: int, shares: Sequence[int], **loop: Any) -> Part:
        contender = phase.contender
        return Part(
            recipe=self._recipe,
            contender=contender.name,
            endpoint=contender.engine.endpoint,
            engine=contender.engine.version,
            capabilities=contender.engine.capabilities,
            namespace=contender.namespace,
            embedded=contender.embedded,
            effort=contender.effort,
            workload=phase.workload.name,
            many=phase.many,
            seed=phase.seed,
            first=phase.first,
            clients=shares[place],
            place=place,
            of=len(shares),
            **loop,
        )

    def _run(self, parts: Sequence[Part]) -> Ran:
        """Prepare everywhere, then begin everywhere at once."""
        self._cluster.each(_prepare, parts)
        at = time.time_ns() + int(LEAD * 1e9)
        ran = self._cluster.each(_begin, [(part, at + self._ahead[part.place]) for part in parts])
        notes = [note for each in ran for note in each.notes]
        return Ran(notes, max(each.elapsed for each in ran), sum(each.cpu for each in ran))


def _shares(clients: int, workers: int) -> list[int]:
    """So many clients over at most so many workers."""
    return [share for place in range(workers) if (share := _share(clients, place, workers))]


def _share(whole: int, place: int, of: int) -> int:
    return whole // of + (place < whole % of)


def _clocks(cluster: Cluster, workers: int, note: Callable[[str], None]) -> list[int]:
    """By how many nanoseconds each worker's clock is ahead of this one."""
    trips: list[tuple[int, list[int]]] = []
    for _ in range(PINGS):
        asked = time.time_ns()
        told = cluster.each(_now, [None] * workers)
        answered = time.time_ns()
        trips.append((answered - asked, [each - (asked + answered) // 2 for each in told]))
    trip, ahead = min(trips)
    note(f"load from {workers} workers, whose clocks are known to {trip / 2e6:.1f} ms")
    # Within what is known a difference is only how uneven the two ways of a message are; on one machine, always.
    return [each if abs(each) > trip / 2 else 0 for each in ahead]


def _now(_: None) -> int:
    return time.time_ns()


# On a worker: what one phase has made is there for the next.

_scenes: dict[Recipe, Scene] = {}
_contenders: dict[tuple[str, str, str], Contender] = {}
_prepared: list[Work] = []


def _prepare(part: Part) -> None:
    """Make the scene, the clients and the calls of a part."""
    scene = _scene(part.recipe)
    contender = _contender(part, scene)
    stream = WORKLOADS[part.workload].stream(scene, Series(part.first), part.many, part.seed)
    own = Stream(stream.calls[part.place :: part.of], cyclic=stream.cyclic)
    _prepared[:] = [_work(contender, own, contender.clients(part.clients))]


def _begin(given: tuple[Part, int]) -> Ran:
    """Make the load of a part that was prepared here; its numbers are those of the whole phase."""
    part, at = given
    work = _prepared.pop()
    if part.loop == "closed":
        ran = load.closed(work, part.clients, seconds=part.seconds, most=part.most, at=at)
    else:
        ran = load.open_loop(work, part.clients, part.due, at=at)
    return ran._replace(notes=[_sendable(note, part) for note in ran.notes])


def _leave(_: None) -> None:
    """Close what this worker has opened."""
    while _contenders:
        _contenders.popitem()[1].close()


def _sendable(note: Note, part: Part) -> Note:
    answer = Elsewhere(load.told(note.answer)) if note.failed else note.answer
    return note._replace(number=part.place + part.of * note.number, answer=answer)


def _scene(recipe: Recipe) -> Scene:
    if recipe not in _scenes:
        while len(_scenes) >= KEPT_SCENES:
            _scenes.pop(next(iter(_scenes)))
        _scenes[recipe] = recipe.make()
    return _scenes[recipe]


def _contender(part: Part, scene: Scene) -> Contender:
    """The part's, with clients of this process; it was filled by another."""
    key = part.contender, part.endpoint.url, part.namespace
    if key not in _contenders:
        (entrant,) = (one for one in entrants([part.contender]) if one.name == part.contender)
        engine = Engine(
            backend=entrant.backend,
            endpoint=part.endpoint,
            version=part.engine,
            capabilities=part.capabilities,
            redactor=Redactor([part.endpoint.url]),
        )
        made = entrant.contender(engine, part.namespace, scene)
        made.embedded, made.effort = part.embedded, part.effort
        _contenders[key] = made
    return _contenders[key]


def _work(contender: Contender, stream: Stream, clients: Sequence[Client]) -> Work:
    """The calls of a stream, bound to clients."""
    calls = stream.calls

    def keep(number: int, answer: Any) -> Any:
        return contender.keep(calls[number], answer)

    return Work([client.bind(calls) for client in clients], keep, len(calls), stream.cyclic)
