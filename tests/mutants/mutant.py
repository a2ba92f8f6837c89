"""What a mutant is, the registry of all of them, and the decorator that enters one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from memassay.spec.protocols import Memory, Runtime
from memassay.spec.reference import Model, State
from memassay.spec.types import MemoryConfig

Make = Callable[[Runtime, MemoryConfig, State], Memory]
"""Opens one more client of the namespace whose rows `state` holds."""

Store = TypeVar("Store", bound=Model)


@dataclass(frozen=True)
class Mutant:
    """A store with exactly one fault.

    clause: the clause it breaks. report: a public report of the same fault in a real adapter, or "".
    description: the fault in a sentence. make: opens a client.
    """

    id: str
    clause: str
    report: str
    description: str
    make: Make

    @property
    def family(self) -> str:
        """The letters of the clause before the dash."""
        return self.clause.partition("-")[0]


MUTANTS: dict[str, Mutant] = {}
"""Every mutant by id."""


def mutant(clause: str, report: str = "") -> Callable[[type[Store]], type[Store]]:
    """Enter a store under the snake-case form of its class name; its docstring is the description."""

    def enter(store: type[Store]) -> type[Store]:
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", store.__name__.strip("_")).lower()
        assert name not in MUTANTS, name
        MUTANTS[name] = Mutant(name, clause, report, (store.__doc__ or "").strip(), store)
        return store

    return enter
