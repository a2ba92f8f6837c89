"""The reference model as a backend: what is kept goes through its JSON form whenever the last client closes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import ClassVar

import msgspec

from ..spec.capabilities import Capabilities
from ..spec.protocols import Memory, Runtime
from ..spec.reference import Model, Row, State
from ..spec.types import MemoryConfig


class ReferenceBackend:
    """Namespaces in this process. It needs no engine and is what every other backend is compared with."""

    name = "reference"
    _saved: ClassVar[dict[str, bytes]] = {}
    _open: ClassVar[dict[str, tuple[State, int]]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def capabilities(self, url: str) -> Capabilities:
        """See protocols.Backend."""
        return Capabilities()

    def version(self, url: str) -> str:
        """See protocols.Backend."""
        from memassay import __version__

        return __version__

    def open_memory(self, url: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> Memory:
        """See protocols.Backend."""
        with self._lock:
            state, clients = self._open.get(namespace) or (_decode(self._saved.get(namespace)), 0)
            self._open[namespace] = state, clients + 1
        return _Client(runtime, config, state, lambda: self._close(namespace))

    def _close(self, namespace: str) -> None:
        with self._lock:
            state, clients = self._open.pop(namespace)
            if clients > 1:
                self._open[namespace] = state, clients - 1
            else:
                self._saved[namespace] = msgspec.json.encode(state)

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


def _decode(saved: bytes | None) -> State:
    if saved is None:
        return State()
    state = msgspec.json.decode(saved, type=State)
    # A row appears once in its thread and once by id; both must be the same object again.
    rows: dict[str, Row] = {row.message.id: row for rows in state.rows.values() for row in rows}
    return msgspec.structs.replace(state, by_id=rows)
