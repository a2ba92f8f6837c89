"""Contenders: whatever takes part in a benchmark, as clients that make calls and a description of what was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import closing
from typing import Any, Literal, Protocol

from ..backends.particulars import Particulars, particulars
from ..harness.engine import Engine
from ..harness.plain import bounded
from ..spec.protocols import Memory, Runtime, VectorIndex
from ..spec.types import IndexConfig, MemoryConfig
from . import artefact
from .noop import NAME as NOOP
from .scene import INDEX, Filled, Scene, Series, fill_index, fill_memory
from .workloads import Call, Workload

MODEL = "reference"


class Unfilled(Exception):
    """A store does not hold what it was given: there is nothing to measure."""


class Client(Protocol):
    """What one worker has: a connection of its own."""

    def bind(self, calls: Sequence[Call]) -> Callable[[int], Any]:
        """Makes the call of a number."""
        ...

    def close(self) -> None:
        """Let go of the engine."""
        ...


class StoreClient:
    """A client of the specification's protocols; opened when a call first needs it."""

    def __init__(self, open_memory: Callable[[], Memory], open_index: Callable[[], VectorIndex]) -> None:
        self._open: Mapping[str, Callable[[], Any]] = {"memory": open_memory, "index": open_index}
        self._opened: dict[str, Any] = {}

    def get(self, target: str) -> Any:
        """The Memory or the VectorIndex."""
        if target not in self._opened:
            self._opened[target] = self._open[target]()
        return self._opened[target]

    def bind(self, calls: Sequence[Call]) -> Callable[[int], Any]:
        """Makes the call of a number."""
        methods = {(call.target, call.name): None for call in calls}
        bound = {name: getattr(self.get(target), name) for target, name in methods}

        def send(number: int) -> Any:
            call = calls[number]
            return bound[call.name](**call.arguments)

        return send

    def close(self) -> None:
        """Let go of the engine."""
        while self._opened:
            self._opened.popitem()[1].close()


class Contender:
    """A store on a running engine, in a namespace of its own."""

    def __init__(
        self, name: str, kind: Literal["store", "baseline", "floor"], engine: Engine, namespace: str, scene: Scene
    ) -> None:
        self.name = name
        self.kind: Literal["store", "baseline", "floor"] = kind
        self.engine = engine
        self.namespace = namespace
        self.scene = scene
        self.series = Series()
        self._clients: list[Client] = []
        self._filled: list[Filled] = []
        self._index: IndexConfig | None = None
        self.effort: int | None = None
        """How broadly approximate indices are searched; None leaves it to the store."""
        self.embedded = False
        """Whether messages are embedded; where nothing is found by meaning, stores are spared that."""

    @property
    def judged(self) -> bool:
        """Whether its answers mean anything."""
        return self.name != NOOP

    def lacks(self, workload: Workload) -> str:
        """Why it cannot do a workload; empty when it can."""
        missing = [need for need in workload.needs if not getattr(self.engine.capabilities, need)]
        if missing:
            return f"needs the capability {' and '.join(missing)}"
        if self.name == MODEL and self.scene.large(workload.needs):
            return "it would scan all vectors, in float64, for every search"
        return ""

    def concurrency(self, wanted: int) -> int:
        """How many clients there may be, up to so many."""
        return wanted if self.engine.capabilities.concurrent_clients else 1

    def clients(self, many: int) -> Sequence[Client]:
        """So many, opened when they are first needed."""
        while len(self._clients) < many:
            self._clients.append(self.client())
        return self._clients[:many]

    def client(self) -> Client:
        """One more."""
        return self._store()

    def keep(self, call: Call, answer: Any) -> Any:
        """What of an answer is remembered until it is judged."""
        return call.expected.keep(answer) if self.judged else None

    def _store(self) -> StoreClient:
        backend, url = self.engine.backend, self.engine.endpoint.url
        runtime = Runtime(embedder=self.scene.embedder if self.embedded else None, effort=self.effort)
        return StoreClient(
            lambda: backend.open_memory(url, self.namespace, runtime, MemoryConfig()),
            lambda: backend.open_index(url, self.namespace, runtime),
        )

    def fill(self, workloads: Sequence[Workload], index: IndexConfig | None, effort: int | None = None) -> None:
        """Store what the workloads are about, as far as it can do them. Raises Unfilled."""
        self.effort = effort
        if not self.judged:
            return
        try:
            self._fill({need for workload in workloads if not self.lacks(workload) for need in workload.needs}, index)
        except Exception as error:
            told = self.engine.redactor.text(f"{type(error).__name__}: {error}")
            raise Unfilled(bounded(f"it could not be filled: {told}")) from error
        for filled in self._filled:
            if filled.rejected or filled.visible != filled.acknowledged:
                raise Unfilled(
                    f"of {', '.join(filled.seconds)}, {filled.acknowledged:,} were acknowledged and {filled.rejected:,}"
                    f" refused, and {filled.visible:,} are there"
                )

    def _fill(self, needs: Set[str], index: IndexConfig | None) -> None:
        self.embedded = "semantic_recall" in needs
        with closing(self._store()) as client:
            if "storage" in needs:
                self._filled.append(fill_memory(client.get("memory"), self.scene, embedded=self.embedded))
            if "vectors" in needs:
                self._filled.append(fill_index(client.get("index"), self.scene, index))
                self._index = client.get("index").describe_index(INDEX).config

    def describe(self, group: int) -> artefact.Engine:
        """What was measured, as far as it is known by now."""
        endpoint = self.engine.endpoint
        told = self._particulars() if self._filled else Particulars()
        return artefact.Engine(
            name=self.name,
            kind=self.kind,
            engine=self.engine.version,
            method=endpoint.method,
            detail=endpoint.detail,
            index=self._index,
            settings=told.settings,
            plan=told.plan,
            sizes=told.sizes,
            fill_seconds={part: round(s, 3) for filled in self._filled for part, s in filled.seconds.items()},
            acknowledged=sum(filled.acknowledged for filled in self._filled),
            visible=sum(filled.visible for filled in self._filled),
            rejected=sum(filled.rejected for filled in self._filled),
            group=group,
        )

    def _particulars(self) -> Particulars:
        """What the engine tells; where it does not, why."""
        try:
            return particulars(self.engine.backend.name, self.engine.endpoint.url, self.namespace, INDEX)
        except Exception as error:  # noqa: BLE001 - whatever a driver raises: figures are none the worse for it
            told = self.engine.redactor.text(f"{type(error).__name__}: {error}")
            return Particulars(settings={"not told": bounded(told)})

    def close(self) -> None:
        """Close every client."""
        while self._clients:
            self._clients.pop().close()
