"""Finding a backend by name: a registered one, `module:Factory`, `STORE+INDEX`, or a driver's (`bridge:COMMAND`)."""

from __future__ import annotations

import importlib
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from ..spec.protocols import Backend

GROUP = "memassay.backends"

DRIVERS = {
    "bridge": ".foreign.bridge:from_command",
    "langchain": ".foreign.langchain:from_factory",
    "langgraph": ".foreign.langgraph:from_factory",
}
"""Prefixes of names that a function makes a backend of, given the name and what follows the prefix."""


class UnknownBackend(Exception):
    """No such backend, or its package is not installed; the message says which, `hint` what to do."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})"


def names() -> tuple[str, ...]:
    """The registered backends, sorted."""
    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def find(name: str) -> Backend:
    """A backend by registered name, or by `module:Factory` (a class or function that takes no argument).

    `STORE+INDEX` keeps messages in the one and their embeddings, and other vectors, in the other.
    `bridge:COMMAND` runs an adapter in any language; the other DRIVERS take somebody else's store by module:factory.
    """
    driver, colon, rest = name.partition(":")
    if colon and driver in DRIVERS:
        module, function = DRIVERS[driver].split(":")
        try:
            found = importlib.import_module(module, __package__)
            return cast(Backend, getattr(found, function)(name, rest))
        except ModuleNotFoundError as error:
            raise UnknownBackend(
                f"{name!r} needs the module {error.name!r}, which is not installed",
                hint="pip install 'memassay[foreign]'",
            ) from None
    if "+" in name:
        return _join(*name.split("+", 1))
    if ":" in name:
        return _make(EntryPoint(name=name, value=name, group=GROUP))
    points = [point for point in entry_points(group=GROUP) if point.name == name]
    if not points:
        raise UnknownBackend(
            f"there is no backend {name!r}", hint="registered: " + ", ".join(names()) + "; or give module:Factory"
        )
    return _make(points[0])


def _join(storage: str, index: str) -> Backend:
    if not storage or not index or "+" in index:
        raise UnknownBackend(f"{storage}+{index} does not join two backends", hint="give STORE+INDEX")
    from .composed import ComposedBackend  # needs numpy, which finding a backend does not

    return ComposedBackend(find(storage), find(index))


def _make(point: EntryPoint) -> Backend:
    try:
        importlib.import_module(point.module)
        factory = point.load()
    except ModuleNotFoundError as error:
        raise UnknownBackend(
            f"backend {point.name!r} needs the module {error.name!r}, which is not installed",
            hint=f"pip install 'memassay[{point.name}]'"
            if ":" not in point.name
            else "check the module's name and path",
        ) from None
    except AttributeError:
        raise UnknownBackend(
            f"{point.module!r} has no {point.attr!r}", hint="give module:Factory, a callable without arguments"
        ) from None
    except SystemExit as error:
        raise UnknownBackend(f"{point.module!r} ended with {error!r}", hint="a module must only define") from None
    try:
        backend = factory()
    except SystemExit as error:
        raise UnknownBackend(f"{point.value!r} ended with {error!r}", hint="a factory must only return") from None
    missing = [
        part
        for part in ("name", "capabilities", "version", "open_memory", "drop_namespace")
        if not hasattr(backend, part)
    ]
    if missing:
        raise UnknownBackend(
            f"{point.name!r} is no backend: it lacks {', '.join(missing)}", hint="see memassay.spec.protocols.Backend"
        )
    return cast(Backend, backend)
