"""The reference model as a backend: what is kept goes through its JSON form whenever the last client closes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import ClassVar

import msgspec

from ..spec.capabilities import Capabilities
from ..spec.protocols import Memory, Runtime, VectorIndex
from ..spec.reference import Model, Row, State
from ..spec.reference_index import MODEL_CAPABILITIES, IndexState, ModelIndex
from ..spec.types import MemoryConfig


class _Kept(msgspec.Struct):
    """All that a namespace holds."""

    memory: State = msgspec.field(default_factory=State)
    indexes: IndexState = msgspec.field(default_factory=IndexState)


class ReferenceBackend:
    """Namespaces in this process. It needs no engine and is what every other backend is compared with."""

    name = "reference"
    _saved: ClassVar[dict[str, bytes]] = {}
    _open: ClassVar[dict[str, tuple[_Kept, int]]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def capabilities(self, url: str) -> Capabilities:
        """See protocols.Backend."""
        return MODEL_CAPABILITIES

    def version(self, url: str) -> str:
        """See protocols.Backend."""
        from memassay import __version__

        return __version__

    def open_memory(self, url: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> Memory:
        """See protocols.Backend."""
        return _Client(runtime, config, self._acquire(namespace).memory, lambda: self._release(namespace))

    def open_index(self, url: str, namespace: str, runtime: Runtime) -> VectorIndex:
        """See protocols.Backend."""
        return _IndexClient(self._acquire(namespace).indexes, lambda: self._release(namespace))

    def _acquire(self, namespace: str) -> _Kept:
        with self._lock:
            kept, clients = self._open.get(namespace) or (_decode(self._saved.get(namespace)), 0)
            self._open[namespace] = kept, clients + 1
            return kept

    def _release(self, namespace: str) -> None:
        with self._lock:
            kept, clients = self._open.pop(namespace)
            if clients > 1:
                self._open[namespace] = kept, clients - 1
            else:
                self._saved[namespace] = msgspec.json.encode(kept)

    def drop_namespace(self, url: str, namespace: str) -> None:
        """See protocols.Backend."""
        with self._lock:
            self._open.pop(namespace, None)
            self._saved.pop(namespace, None)


class _Client(Model):
    def __init__(self, runtime: Runtime, config: MemoryConfig, state: State, on_close: Callable[[], None]) -> None:
        super().__init__(runtime, config, state)
        self._on_close: Callable[[], None] | None = on_close

    def close(self) -> None:
        if self._on_close is not None:
            self._on_close()
            self._on_close = None


class _IndexClient(ModelIndex):
    def __init__(self, state: IndexState, on_close: Callable[[], None]) -> None:
        super().__init__(state)
        self._on_close: Callable[[], None] | None = on_close

    def close(self) -> None:
        if self._on_close is not None:
            self._on_close()
            self._on_close = None


def _decode(saved: bytes | None) -> _Kept:
    if saved is None:
        return _Kept()
    kept = msgspec.json.decode(saved, type=_Kept)
    # A row appears once in its thread and once by id; both must be the same object again.
    rows: dict[str, Row] = {row.message.id: row for rows in kept.memory.rows.values() for row in rows}
    return msgspec.structs.replace(kept, memory=msgspec.structs.replace(kept.memory, by_id=rows))
