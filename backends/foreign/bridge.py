"""Adapters in any language: `bridge:COMMAND` runs a program that speaks the protocol of BRIDGE.md over stdio."""

from __future__ import annotations

import atexit
import itertools
import shlex
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Literal, cast

import msgspec

from ...spec.capabilities import Capabilities
from ...spec.errors import ConfigurationError, StoreError, Unsupported
from ...spec.protocols import Memory, Runtime, VectorIndex
from ...spec.requests import titling
from ...spec.types import (
    CloneResult,
    Include,
    IndexConfig,
    IndexDescription,
    MemoryConfig,
    Message,
    MessageFilter,
    MessageUpdate,
    NewMessage,
    NewVector,
    OrderBy,
    RecallResult,
    Thread,
    ThreadFilter,
    ThreadPage,
    VectorHit,
    VectorRow,
)
from ..provision import Endpoint, EngineUnavailable, Provisioner, Provisioners
from ..registry import UnknownBackend
from . import wire
from .process import AdapterGarbled, Process

PROTOCOL = 1
"""The version of the protocol that is spoken here."""

HELLO_SECONDS = 30.0
"""Seconds in which an adapter has to introduce itself."""

CALL_SECONDS = 50.0
"""Seconds that one call may take; less than a program may, so that a silent adapter is named as such."""


class _Hello(msgspec.Struct):
    """An adapter's introduction."""

    protocol: int
    version: str
    capabilities: Capabilities


class Bridge:
    """The process behind a backend: started when it is needed, and again after it died."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        call_seconds: float = CALL_SECONDS,
        hello_seconds: float = HELLO_SECONDS,
    ) -> None:
        self.name = name
        self.command = command
        self.call_seconds = call_seconds
        self.hello_seconds = hello_seconds
        self.numbers = itertools.count(1)
        """For clients: no number twice, whatever process they are in."""
        self._environment = environment
        self._process: Process | None = None

    def process(self, url: str) -> Process:
        """The running process, which has introduced itself at the URL. Raises EngineUnavailable."""
        if self._process is None or not self._process.alive:
            self.hello(url)
        return self._running()

    def _running(self) -> Process:
        if self._process is not None and not self._process.alive:
            self.stop()
        if self._process is None:
            self._process = Process(self.name, self.command, self._environment)
            atexit.register(self.stop)
        return self._process

    def stop(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            (self._process.stop if self._process.alive else self._process.kill)()
            self._process = None
            atexit.unregister(self.stop)

    def hello(self, url: str) -> _Hello:
        """The adapter's introduction. Raises EngineUnavailable for one that does not fit."""
        given = self._running().call("hello", {"args": {"protocol": PROTOCOL, "url": url}}, self.hello_seconds)
        spoken: Any = cast("dict[str, Any]", given).get("protocol") if isinstance(given, dict) else None
        if spoken != PROTOCOL:
            raise EngineUnavailable(
                f"{self.name} speaks the bridge's protocol {spoken!r}, this memassay speaks {PROTOCOL}",
                hint="answer hello with that protocol, or use a memassay that speaks yours",
            )
        try:
            hello = msgspec.convert(given, _Hello)
        except msgspec.ValidationError as error:
            raise EngineUnavailable(
                f"{self.name} introduces itself wrongly: {error}", hint="answer hello as the bridge's page says"
            ) from None
        # Titlers are not reached over the bridge.
        return msgspec.structs.replace(hello, capabilities=msgspec.structs.replace(hello.capabilities, titles=False))


class BridgeBackend:
    """An adapter behind a Bridge. Without an engine's own provisioners the process is all that is started."""

    def __init__(self, bridge: Bridge, provisioners: Provisioners | None = None) -> None:
        self.name = bridge.name
        self.bridge = bridge
        self.provisioners: Provisioners = provisioners or {
            "process": Spawned(bridge),
            "url": Spawned(bridge, needs_url=True),
        }

    def capabilities(self, url: str) -> Capabilities:
        """See protocols.Backend."""
        return self.bridge.hello(url).capabilities

    def version(self, url: str) -> str:
        """See protocols.Backend."""
        return self.bridge.hello(url).version

    def open_memory(self, url: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> Memory:
        """See protocols.Backend."""
        embedder = runtime.embedder
        return BridgeMemory(
            self.bridge,
            runtime,
            {
                **wire.arguments({"config": config}),
                "url": url,
                "namespace": namespace,
                "embedder": None if embedder is None else {"name": embedder.name, "dimension": embedder.dimension},
            },
            config,
        )

    def open_index(self, url: str, namespace: str, runtime: Runtime) -> VectorIndex:
        """See protocols.Backend."""
        return BridgeIndex(self.bridge, runtime, "open_index", {"url": url, "namespace": namespace})

    def drop_namespace(self, url: str, namespace: str) -> None:
        """See protocols.Backend."""
        process = self.bridge.process(url)
        process.call("drop_namespace", {"args": {"url": url, "namespace": namespace}}, self.bridge.call_seconds)


def from_command(name: str, command: str) -> BridgeBackend:
    """The backend `bridge:COMMAND`; the command is split as a shell splits it. Raises UnknownBackend."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UnknownBackend(f"{name!r} cannot be split into words: {error}", hint="mind the quotes") from None
    if not words:
        raise UnknownBackend("bridge: names no command", hint="write bridge:'node adapter.mjs'")
    return BridgeBackend(Bridge(name, words))


class Spawned:
    """The adapter's process for the length of a run, with the engine it talks to where it needs one.

    `inner` starts that engine; without one the URL that the user gives, or none, is the adapter's.
    """

    def __init__(self, bridge: Bridge, inner: Provisioner | None = None, *, needs_url: bool = False) -> None:
        self._bridge = bridge
        self._inner = inner
        self._needs_url = needs_url

    def missing(self) -> str | None:
        """See provision.Provisioner."""
        return None if self._inner is None else self._inner.missing()

    @contextmanager
    def start(self, url: str | None) -> Generator[Endpoint]:
        """See provision.Provisioner."""
        try:
            if self._inner is not None:
                with self._inner.start(url) as endpoint:
                    yield endpoint
            else:
                if url is None and self._needs_url:
                    raise EngineUnavailable("no url was given", hint="give one with --url")
                yield Endpoint(url or "", "url" if url else "process", "an adapter in a process of its own")
        finally:
            self._bridge.stop()


class _Client:
    """One open client in the adapter's process."""

    def __init__(self, bridge: Bridge, runtime: Runtime, opening: str, given: Mapping[str, Any]) -> None:
        self._bridge = bridge
        self._runtime = runtime
        self._number = next(bridge.numbers)
        self._process = bridge.process(given["url"])
        self._closed = False
        self._send(opening, given)

    @property
    def lost(self) -> bool:
        """Whether the process that held the client is gone; another would answer for it with what it does not know."""
        return not self._process.alive

    def _send(self, name: str, given: Mapping[str, Any]) -> Any:
        message = {"client": self._number, "now": self._runtime.clock().isoformat(), "args": given}
        found = self._process.call(name, message, self._bridge.call_seconds, self._answer)
        try:
            return wire.RESULTS.get(name, _same)(wire.decode(found))
        except (wire.Unreadable, TypeError, ValueError, AttributeError) as error:
            raise AdapterGarbled(f"the result of {name} is none: {error}") from None

    def _call(self, name: str, given: Mapping[str, Any]) -> Any:
        if self._closed:
            raise ConfigurationError("the client is closed", hint="open another")
        return self._send(name, wire.arguments(given))

    def _answer(self, asked: str, given: Mapping[str, Any]) -> Any:
        """What an adapter may ask for during a call: the runtime's part."""
        if asked == "new_id":
            return self._runtime.new_id()
        if asked == "embed" and self._runtime.embedder is not None:
            kind: Literal["document", "query"] = "query" if given.get("kind") == "query" else "document"
            found = self._runtime.embedder.embed(cast("list[str]", given.get("texts") or []), kind)
            return wire.result([[float(component) for component in vector] for vector in found])
        raise LookupError(f"{asked} cannot be asked for")

    def close(self) -> None:
        """See protocols.Memory."""
        if not self._closed:
            self._closed = True
            if not self.lost:  # The call that found it so has told; what interrupts a call ends the process, too.
                self._send("close", {})


def _same(value: Any) -> Any:
    return value


def _titled(options: MemoryConfig, thread_config: MemoryConfig | None) -> bool:
    """Whether titles are asked for. What is wrong with a configuration is the adapter's to say."""
    try:
        return titling(options, thread_config) is not None
    except (StoreError, AttributeError):
        return False


class BridgeMemory(_Client):
    """A memory on the other side. Implements protocols.Memory."""

    def __init__(self, bridge: Bridge, runtime: Runtime, opening: Mapping[str, Any], options: MemoryConfig) -> None:
        self._options = options
        super().__init__(bridge, runtime, "open_memory", opening)

    def create_thread(
        self,
        *,
        resource_id: str,
        id: str | None = None,
        title: str = "",
        metadata: Mapping[str, Any] | None = None,
        created_at: datetime | None = None,
    ) -> Thread:
        """See protocols.Memory."""
        given = {"resource_id": resource_id, "id": id, "title": title, "metadata": metadata, "created_at": created_at}
        return self._call("create_thread", given)

    def get_thread(self, thread_id: str, *, resource_id: str | None = None) -> Thread | None:
        """See protocols.Memory."""
        return self._call("get_thread", {"thread_id": thread_id, "resource_id": resource_id})

    def update_thread(
        self, thread_id: str, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Thread:
        """See protocols.Memory."""
        return self._call("update_thread", {"thread_id": thread_id, "title": title, "metadata": metadata})

    def title_thread(self, thread_id: str, title: str) -> bool:
        """See protocols.Memory."""
        raise Unsupported("titles over the bridge", clause="CAP-1")

    def settle(self, *, timeout: float = 60.0) -> None:
        """See protocols.Memory."""
        raise Unsupported("titles over the bridge", clause="CAP-1")

    def list_threads(
        self,
        *,
        filter: ThreadFilter | None = None,
        order_by: OrderBy | None = None,
        page: int = 0,
        per_page: int | Literal[False] | None = None,
    ) -> ThreadPage:
        """See protocols.Memory."""
        given = {"filter": filter, "order_by": order_by, "page": page, "per_page": per_page}
        return self._call("list_threads", given)

    def delete_thread(self, thread_id: str) -> bool:
        """See protocols.Memory."""
        return self._call("delete_thread", {"thread_id": thread_id})

    def clone_thread(
        self,
        source_thread_id: str,
        *,
        new_thread_id: str | None = None,
        resource_id: str | None = None,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        message_limit: int | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
        message_ids: Sequence[str] | None = None,
    ) -> CloneResult:
        """See protocols.Memory."""
        return self._call(
            "clone_thread",
            {
                "source_thread_id": source_thread_id,
                "new_thread_id": new_thread_id,
                "resource_id": resource_id,
                "title": title,
                "metadata": metadata,
                "message_limit": message_limit,
                "start": start,
                "end": end,
                "message_ids": message_ids,
            },
        )

    def list_clones(self, source_thread_id: str, *, resource_id: str | None = None) -> tuple[Thread, ...]:
        """See protocols.Memory."""
        return self._call("list_clones", {"source_thread_id": source_thread_id, "resource_id": resource_id})

    def save_messages(
        self, messages: Sequence[NewMessage], *, thread_config: MemoryConfig | None = None
    ) -> tuple[Message, ...]:
        """See protocols.Memory."""
        if _titled(self._options, thread_config):
            raise Unsupported("titles over the bridge", clause="CAP-1")
        return self._call("save_messages", {"messages": messages, "thread_config": thread_config})

    def update_messages(
        self, updates: Sequence[MessageUpdate], *, thread_config: MemoryConfig | None = None
    ) -> tuple[Message, ...]:
        """See protocols.Memory."""
        return self._call("update_messages", {"updates": updates, "thread_config": thread_config})

    def delete_messages(self, ids: Sequence[str]) -> int:
        """See protocols.Memory."""
        return self._call("delete_messages", {"ids": ids})

    def clear_messages(self, thread_id: str) -> int:
        """See protocols.Memory."""
        return self._call("clear_messages", {"thread_id": thread_id})

    def recall(
        self,
        thread_id: str,
        *,
        resource_id: str | None = None,
        vector_search_string: str | None = None,
        page: int = 0,
        per_page: int | Literal[False] | None = None,
        include: Sequence[Include] | None = None,
        filter: MessageFilter | None = None,
        order_by: OrderBy | None = None,
        thread_config: MemoryConfig | None = None,
    ) -> RecallResult:
        """See protocols.Memory."""
        return self._call(
            "recall",
            {
                "thread_id": thread_id,
                "resource_id": resource_id,
                "vector_search_string": vector_search_string,
                "page": page,
                "per_page": per_page,
                "include": include,
                "filter": filter,
                "order_by": order_by,
                "thread_config": thread_config,
            },
        )

    def semantic_index(self) -> IndexDescription | None:
        """See protocols.Memory."""
        return self._call("semantic_index", {})

    def get_working_memory(
        self, thread_id: str, *, resource_id: str | None = None, thread_config: MemoryConfig | None = None
    ) -> str | None:
        """See protocols.Memory."""
        given = {"thread_id": thread_id, "resource_id": resource_id, "thread_config": thread_config}
        return self._call("get_working_memory", given)

    def update_working_memory(
        self,
        thread_id: str,
        value: str,
        *,
        resource_id: str | None = None,
        thread_config: MemoryConfig | None = None,
    ) -> None:
        """See protocols.Memory."""
        given = {"thread_id": thread_id, "value": value, "resource_id": resource_id, "thread_config": thread_config}
        self._call("update_working_memory", given)


class BridgeIndex(_Client):
    """Vector indices on the other side. Implements protocols.VectorIndex."""

    def create_index(
        self, name: str, *, dimension: int, metric: str = "cosine", config: IndexConfig | None = None
    ) -> None:
        """See protocols.VectorIndex."""
        self._call("create_index", {"name": name, "dimension": dimension, "metric": metric, "config": config})

    def describe_index(self, name: str) -> IndexDescription:
        """See protocols.VectorIndex."""
        return self._call("describe_index", {"name": name})

    def list_indexes(self) -> tuple[str, ...]:
        """See protocols.VectorIndex."""
        return self._call("list_indexes", {})

    def drop_index(self, name: str) -> None:
        """See protocols.VectorIndex."""
        self._call("drop_index", {"name": name})

    def upsert_vectors(self, name: str, vectors: Sequence[NewVector]) -> int:
        """See protocols.VectorIndex."""
        return self._call("upsert_vectors", {"name": name, "vectors": vectors})

    def get_vectors(self, name: str, ids: Sequence[str]) -> tuple[VectorRow, ...]:
        """See protocols.VectorIndex."""
        return self._call("get_vectors", {"name": name, "ids": ids})

    def update_vector(
        self,
        name: str,
        id: str,
        *,
        vector: Sequence[float] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> bool:
        """See protocols.VectorIndex."""
        return self._call("update_vector", {"name": name, "id": id, "vector": vector, "metadata": metadata})

    def delete_vectors(
        self, name: str, *, ids: Sequence[str] | None = None, filter: Mapping[str, Any] | None = None
    ) -> int:
        """See protocols.VectorIndex."""
        return self._call("delete_vectors", {"name": name, "ids": ids, "filter": filter})

    def query_vectors(
        self,
        name: str,
        vector: Sequence[float],
        *,
        top_k: int = 10,
        filter: Mapping[str, Any] | None = None,
        min_score: float | None = None,
        exact: bool = False,
    ) -> tuple[VectorHit, ...]:
        """See protocols.VectorIndex."""
        return self._call(
            "query_vectors",
            {
                "name": name,
                "vector": vector,
                "top_k": top_k,
                "filter": filter,
                "min_score": min_score,
                "exact": exact,
            },
        )
