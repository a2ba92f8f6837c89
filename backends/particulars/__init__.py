"""What a reader of measurements has to know of an engine: durability, plans and sizes, as the engine tells them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import cast

import msgspec


class Particulars(msgspec.Struct, frozen=True):
    """Of one namespace. settings: what decides how durable and how fast it is. plan: how a query is answered, in the
    engine's words. sizes: bytes by what takes them, on disk unless the name says memory.
    """

    settings: dict[str, str] = {}
    plan: dict[str, str] = {}
    sizes: dict[str, int] = {}


def particulars(backend: str, url: str, namespace: str, index: str) -> Particulars:
    """Of a namespace that the backend's adapter has filled, and of the vector index of this name where there is one.

    Nothing for a backend of which nobody has written how to ask. A module of this package is named as its backend.
    """
    name = f"{__name__}.{backend}"
    if not backend.isidentifier() or find_spec(name) is None:
        return Particulars()
    return cast(Particulars, import_module(name).ask(url, namespace, index))
