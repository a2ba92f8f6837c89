"""Who takes part in a benchmark, by the names they were asked for: stores, baselines, and the floors beside them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Literal

import msgspec

from ..backends.registry import UnknownBackend, find
from ..harness.engine import AUTO, Engine, Namespaces, start
from ..spec.protocols import Backend
from .by_hand import PREFIX, ByHand, written
from .contenders import MODEL, Contender
from .noop import NAME as NOOP
from .noop import NoopBackend
from .scene import Scene

FLOORS = (NOOP, MODEL)
"""They run beside every engine: what harness, and the plainest store in this process, cost."""


class Entrant(msgspec.Struct, frozen=True):
    """Who is to take part. backend: of a baseline, the one whose adapter stores what it asks for."""

    name: str
    backend: Backend

    @property
    def kind(self) -> Literal["store", "baseline", "floor"]:
        """Floors are compared with, and pass no gate; nor do baselines, to which no clause can be put."""
        return "floor" if self.name in FLOORS else "baseline" if self.name.startswith(PREFIX) else "store"

    @property
    def store(self) -> str:
        """The name of the backend."""
        return self.name.removeprefix(PREFIX)

    def start(self, method: str, urls: Mapping[str, str]) -> AbstractContextManager[Engine]:
        """Its engine. Raises EngineUnavailable, UsageProblem."""
        return start(self.store, self.backend, AUTO if self.kind == "floor" else method, urls)

    @contextmanager
    def enter(self, engine: Engine, scene: Scene) -> Generator[Contender]:
        """The contender, in a namespace of its own on its engine."""
        with (
            Namespaces(engine) as namespaces,
            namespaces.fresh() as namespace,
            closing(self.contender(engine, namespace, scene)) as contender,
        ):
            yield contender

    def contender(self, engine: Engine, namespace: str, scene: Scene) -> Contender:
        """The contender, in this namespace."""
        made = ByHand if self.kind == "baseline" else Contender
        return made(self.name, self.kind, engine, namespace, scene)


def entrants(names: Sequence[str], load: Callable[[str], Backend] = find) -> tuple[Entrant, ...]:
    """The floors, and those named, each once. Raises UnknownBackend."""
    return tuple(_entrant(name, load) for name in dict.fromkeys((*FLOORS, *names)))


def _entrant(name: str, load: Callable[[str], Backend]) -> Entrant:
    if name == NOOP:
        return Entrant(name, NoopBackend())
    store = name.removeprefix(PREFIX)
    if store != name and not written(store):
        raise UnknownBackend(f"there is no baseline of {store!r}", hint=f"name a backend that has one, as {PREFIX}NAME")
    return Entrant(name, load(store))
