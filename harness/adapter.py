"""An adapter's few callables as a backend, synchronous or not: what the fixture `memassay_store` returns."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from ..spec.capabilities import Capabilities
from ..spec.errors import Unsupported
from ..spec.protocols import Backend, Memory, Runtime, VectorIndex
from ..spec.types import MemoryConfig
from .exits import UsageProblem

__all__ = ["Adapter", "Capabilities", "as_backend"]

PARTS = ("name", "capabilities", "version", "open_memory", "drop_namespace")


@dataclass(frozen=True, kw_only=True)
class Adapter:
    """How memassay opens a store. Everything may be a coroutine function, and so may the clients' methods.

    memory: opens a client of the threads and messages in a namespace (protocols.Memory).
    index: opens a client of the vector indices in a namespace (protocols.VectorIndex).
    drop: empties a namespace; without it no namespace is used twice.
    capabilities: what the store can do; `storage` and `vectors` follow from which of the two there is.
    """

    name: str
    memory: Callable[[str, Runtime, MemoryConfig], Any] | None = None
    index: Callable[[str, Runtime], Any] | None = None
    drop: Callable[[str], Any] | None = None
    capabilities: Capabilities = field(default_factory=Capabilities)
    version: str = "of unknown version"


def as_backend(store: object) -> Backend:
    """The backend of what a fixture returned: an Adapter, or a backend itself. Raises UsageProblem."""
    if isinstance(store, Adapter):
        if store.memory is None and store.index is None:
            raise UsageProblem("the adapter opens neither a memory nor an index", hint="give Adapter(memory=…)")
        return _AdapterBackend(store)
    missing = [part for part in PARTS if not hasattr(store, part)]
    if missing:
        raise UsageProblem(
            f"memassay_store returned a {type(store).__name__}, which lacks {', '.join(missing)}",
            hint="return an Adapter, or what memassay.spec.protocols.Backend describes",
        )
    return cast(Backend, store)


class _AdapterBackend:
    """Implements protocols.Backend."""

    def __init__(self, adapter: Adapter) -> None:
        self.name = adapter.name
        self._adapter = adapter
        self._loop = _Loop()
        self._generations: dict[str, int] = {}

    def capabilities(self, url: str) -> Capabilities:
        """See protocols.Backend."""
        given = self._adapter.capabilities
        return msgspec.structs.replace(
            given,
            storage=self._adapter.memory is not None,
            vectors=self._adapter.index is not None,
            index_types=given.index_types or (("flat",) if self._adapter.index is not None else ()),
        )

    def version(self, url: str) -> str:
        """See protocols.Backend."""
        return self._adapter.version

    def open_memory(self, url: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> Memory:
        """See protocols.Backend."""
        if self._adapter.memory is None:
            raise Unsupported("threads and messages")
        opened = self._loop.settle(self._adapter.memory(self._fresh(namespace), runtime, config))
        return cast(Memory, _Settled(opened, self._loop))

    def open_index(self, url: str, namespace: str, runtime: Runtime) -> VectorIndex:
        """See protocols.Backend."""
        if self._adapter.index is None:
            raise Unsupported("vector indices")
        opened = self._loop.settle(self._adapter.index(self._fresh(namespace), runtime))
        return cast(VectorIndex, _Settled(opened, self._loop))

    def drop_namespace(self, url: str, namespace: str) -> None:
        """See protocols.Backend."""
        if self._adapter.drop is not None:
            self._loop.settle(self._adapter.drop(namespace))
        else:
            self._generations[namespace] = self._generations.get(namespace, 0) + 1

    def _fresh(self, namespace: str) -> str:
        generation = self._generations.get(namespace, 0)
        return f"{namespace}_{generation}" if generation else namespace


class _Loop:
    """Awaits in an event loop of its own, in a thread that starts when there is something to await."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = threading.Lock()

    def settle(self, value: Any) -> Any:
        """The value, or what it yields when it is awaited."""
        if not inspect.isawaitable(value):
            return value
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="memassay adapter", daemon=True).start()
        return asyncio.run_coroutine_threadsafe(_await(value), self._loop).result()


async def _await(value: Any) -> Any:
    return await cast("Coroutine[Any, Any, Any]", value)


class _Settled:
    """A client whose methods return, whether they are coroutine functions or not."""

    def __init__(self, client: Any, loop: _Loop) -> None:
        self._client = client
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if not callable(method):
            return method

        def settled(*arguments: Any, **options: Any) -> Any:
            return self._loop.settle(method(*arguments, **options))

        return settled
