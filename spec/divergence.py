"""A deviation from the specification, blamed on one clause."""

from __future__ import annotations

from typing import Any

import msgspec


class Signature(msgspec.Struct, frozen=True, order=True):
    """What makes two deviations the same finding."""

    clause: str
    aspect: str
    operation: str

    def __str__(self) -> str:
        return f"{self.clause} / {self.aspect} / {self.operation}"


class Divergence(msgspec.Struct, frozen=True):
    """At operation `index` the store's `aspect` was `got` where the clause demands `expected` (plain values)."""

    clause: str
    aspect: str
    operation: str
    index: int
    expected: Any
    got: Any
    crashed: bool = False
    """The store raised what the specification does not name: verdict `error`, not `fail`."""

    @property
    def signature(self) -> Signature:
        """What makes it the same finding as another."""
        return Signature(self.clause, self.aspect, self.operation)
