"""What a mutant is, the registry of all of them, and the decorator that enters one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from memassay.spec.capabilities import Capabilities
from memassay.spec.operation import Target
from memassay.spec.protocols import Memory, Runtime, VectorIndex
from memassay.spec.reference import Model, ModelNamespace, ModelVictim
from memassay.spec.reference_index import MODEL_CAPABILITIES, ModelIndex
from memassay.spec.types import MemoryConfig

from . import blame, laid
from .adapter import Adapter
from .engine import Engine

Client = TypeVar("Client", Model, ModelIndex)
Store = TypeVar("Store", bound=Model | ModelIndex)


@dataclass(frozen=True)
class Mutant:
    """A store with exactly one fault, in its memory or in its vector indices.

    clause: the clause it breaks. report: a public report of the same fault in a real adapter, or "".
    description: the fault in a sentence. store: the faulty half. capabilities: what it can do, so what it may refuse.
    """

    id: str
    clause: str
    report: str
    description: str
    store: type[Model] | type[ModelIndex]
    capabilities: Capabilities = MODEL_CAPABILITIES

    def namespace(self) -> MutantNamespace:
        """A fresh namespace of the mutant."""
        return MutantNamespace(self.store, self.capabilities)

    @property
    def family(self) -> str:
        """The letters of the clause before the dash."""
        return self.clause.partition("-")[0]

    @property
    def half(self) -> Literal["memory", "index"]:
        """Which client the fault is in."""
        return "memory" if issubclass(self.store, Model) else "index"

    @property
    def also(self) -> tuple[str, ...]:
        """The clauses of other families, at most three, that the fault may show in beside its own family."""
        names = (self.id, self.clause, self.family)
        return next((blame.ALSO[name] for name in names if name in blame.ALSO), ())

    @property
    def obstacle(self) -> str:
        """Why the fault cannot be laid over a real engine; empty when it can."""
        return laid.CANNOT.get(self.id) or laid.obstacle(self.store)

    def over_memory(self, real: Memory, runtime: Runtime, config: MemoryConfig, capabilities: Capabilities) -> Memory:
        """The fault between a caller and a client that is right."""
        if issubclass(self.store, Model):
            return laid.laid_memory(self.store, real, runtime, config, capabilities)
        return real

    def over_index(self, real: VectorIndex, capabilities: Capabilities) -> VectorIndex:
        """The same for a client of vector indices."""
        return laid.laid_index(self.store, real, capabilities) if issubclass(self.store, ModelIndex) else real


class MutantNamespace(ModelNamespace):
    """A namespace of the model with one half replaced; implements interpreter.Namespace."""

    def __init__(self, store: type[Model] | type[ModelIndex], capabilities: Capabilities = MODEL_CAPABILITIES) -> None:
        super().__init__(capabilities)
        self._store = store
        self._clients: list[object] = []

    def open_memory(self, runtime: Runtime, config: MemoryConfig, client: int) -> Memory:
        """See interpreter.Namespace."""
        if issubclass(self._store, Model):
            store = self._store(runtime, config, self.state)
            store.capabilities = self.capabilities
            return self._among(store)
        return super().open_memory(runtime, config, client)

    def open_index(self, runtime: Runtime, client: int) -> VectorIndex:
        """See interpreter.Namespace."""
        if issubclass(self._store, ModelIndex):
            return self._among(self._store(self.indexes))
        return super().open_index(runtime, client)

    def victim(self, runtime: Runtime, config: MemoryConfig, target: Target) -> ModelVictim:
        """See interpreter.Namespace. What a crash does, the mutant says by `died`."""
        victim = super().victim(runtime, config, target)
        return ModelVictim(victim.client, getattr(victim.client, "died", victim.died))

    def _among(self, client: Client) -> Client:
        """A new client, which knows the others."""
        self._clients.append(client)
        if isinstance(client, Adapter | Engine):
            client.peers = self._clients
        return client


MUTANTS: dict[str, Mutant] = {}
"""Every mutant by id."""


def mutant(
    clause: str, report: str = "", *, capabilities: Capabilities = MODEL_CAPABILITIES
) -> Callable[[type[Store]], type[Store]]:
    """Enter a store under the snake-case form of its class name; its docstring is the description."""

    def enter(store: type[Store]) -> type[Store]:
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", store.__name__.strip("_")).lower()
        assert name not in MUTANTS, name
        MUTANTS[name] = Mutant(name, clause, report, (store.__doc__ or "").strip(), store, capabilities)
        return store

    return enter
