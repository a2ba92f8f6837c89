"""The same requests hand-written on raw clients: what an adapter costs is measured against them.

A baseline reads what the adapter has stored, so that both ask the same engine about the same rows; messages it also
saves, beside the adapter's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray


class Baseline(Protocol):
    """One vector index of a namespace, under cosine, that an adapter has filled: opened for queries alone.

    A module of this package is named as its backend, and its class `Baseline` is made of the URL of the engine, a
    namespace and the name of an index.
    """

    def query(
        self, vector: NDArray[np.float32], top_k: int, filter: Mapping[str, Any] | None = None, *, exact: bool = False
    ) -> Sequence[tuple[Any, ...]]:
        """The id, and more, of the nearest rows, closest first; `filter` is one key and the value that it has."""
        ...

    def close(self) -> None:
        """Let go of the engine."""
        ...


Message = tuple[str, str, str, str, Any, Any, int]
"""id, thread, resource, role, content, metadata, milliseconds since 1970; content and metadata as they come of JSON."""

Listed = tuple[list[Message], int, bool]
"""Messages, how many match, and whether more of these follow."""


class Messages(Protocol):
    """The messages of a namespace that an adapter has filled, newest first. Nothing is embedded.

    A module of this package is named as its backend with `_messages`, and its class `Messages` is made of the URL of
    the engine and a namespace. Every thread asked for is there and the resource's own, which has to be looked up.
    """

    def page(
        self, thread_id: str, resource_id: str, count: int, offset: int = 0, metadata: Mapping[str, str] | None = None
    ) -> Listed:
        """`count` messages of a thread behind `offset` newer ones; of those alone whose metadata have these values."""
        ...

    def around(self, thread_id: str, resource_id: str, id: str, before: int, after: int) -> Listed:
        """A message of a thread with so many neighbours, and no page; the total is the thread's."""
        ...

    def save(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Save messages of new ids, all or none, as durably as the adapter does; as they are stored."""
        ...

    def close(self) -> None:
        """Let go of the engine."""
        ...


def open_messages(backend: str, url: str, namespace: str) -> Messages | None:
    """The messages of a namespace by hand; None when nobody has written that for the backend."""
    module = _module(f"{backend}_messages")
    return None if module is None else cast(Messages, module.Messages(url, namespace))


def open_baseline(backend: str, url: str, namespace: str, index: str) -> Baseline | None:
    """The baseline of a backend; None when nobody has written one."""
    module = _module(backend)
    return None if module is None else cast(Baseline, module.Baseline(url, namespace, index))


def _module(name: str) -> Any:
    """A module of this package; None when there is none of this name."""
    module = f"{__name__}.{name}"
    return import_module(module) if name.isidentifier() and find_spec(module) is not None else None
