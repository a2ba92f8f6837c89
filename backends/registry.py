"""Finding a backend by name: a registered one, `module:Factory`, `STORE+INDEX`, or a driver's (`bridge:COMMAND`)."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from ..spec.protocols import Backend
from .provision import Fetchable

GROUP = "memassay.backends"

DRIVERS = {
    "bridge": ".foreign.bridge:from_command",
    "langchain": ".foreign.langchain:from_factory",
    "langgraph": ".foreign.langgraph:from_factory",
}
"""Prefixes of names that a function makes a backend of, given the name and what follows the prefix."""

FETCHED = {"mastra": ".foreign.mastra.packages:Packages", "ai-sdk": ".foreign.ai_sdk:Packages"}
"""Families of backends whose packages are fetched once, for all of them, by a provision.Fetchable."""

CALLS = ("capabilities", "version", "open_memory", "drop_namespace")
"""What every backend can be asked for."""


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


def fetched(family: str) -> Fetchable | None:
    """What has to be fetched for a family of backends; None when there is no such family."""
    if family not in FETCHED:
        return None
    module, kind = FETCHED[family].split(":")
    return cast(Fetchable, getattr(importlib.import_module(module, __package__), kind)())


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
        return _make(_own(name))
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

    vectors = find(index)
    if not callable(getattr(vectors, "open_index", None)):
        raise UnknownBackend(f"{index!r} has no vector indices", hint="join a backend that has open_index")
    return ComposedBackend(find(storage), vectors)


def _own(name: str) -> EntryPoint:
    """A backend that is not registered. Raises UnknownBackend."""
    module, _, factory = name.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *factory.split("."))):
        raise UnknownBackend(f"{name!r} is not module:Factory", hint="such as acme:AcmeBackend, or pkg.acme:Backend")
    return EntryPoint(name=name, value=name, group=GROUP)


def _make(point: EntryPoint) -> Backend:
    factory = _factory(point)
    if not callable(factory):
        raise UnknownBackend(
            f"{point.value!r} is a {type(factory).__name__}, not a factory", hint="give a callable without arguments"
        )
    if _required(factory):
        raise UnknownBackend(
            f"{point.value!r} wants arguments: {', '.join(_required(factory))}", hint="a factory takes none"
        )
    try:
        backend = factory()
    except SystemExit as error:
        raise UnknownBackend(f"{point.value!r} ended with {error!r}", hint="a factory must only return") from None
    except Exception as error:
        raise UnknownBackend(
            f"{point.value!r} raised {type(error).__name__}: {error}", hint="a factory must return a backend"
        ) from error
    if isinstance(backend, type):
        raise UnknownBackend(
            f"{point.value!r} returned the class {backend.__name__}, not a backend", hint="return an instance of it"
        )
    _check(point, backend)
    return cast(Backend, backend)


def _factory(point: EntryPoint) -> object:
    """What an entry point names. Raises UnknownBackend."""
    try:
        importlib.import_module(point.module)
        return point.load()
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


def _required(factory: Callable[..., object]) -> list[str]:
    """Parameters that have to be given."""
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):  # some callables of C have no signature
        return []
    variable = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    return [each.name for each in parameters if each.default is each.empty and each.kind not in variable]


def _check(point: EntryPoint, backend: object) -> None:
    """Raises UnknownBackend for what is no backend."""
    missing = [part for part in ("name", *CALLS) if not hasattr(backend, part)]
    if missing:
        raise UnknownBackend(
            f"{point.name!r} is no backend: it lacks {', '.join(missing)}", hint="see memassay.spec.protocols.Backend"
        )
    name: object = getattr(backend, "name", None)
    if type(name) is not str or not re.search("[A-Za-z0-9]", name):
        raise UnknownBackend(f"{point.name!r} has the name {name!a:.60}", hint="name it with a str, such as 'acme'")
    wrong = [part for part in CALLS if not callable(getattr(backend, part))]
    if wrong:
        raise UnknownBackend(f"{point.name!r} has no methods {', '.join(wrong)}", hint="define them as methods")
