"""What a backend implements: Memory (the calls), Backend (how to open one), Runtime (what it may not decide itself)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from .capabilities import Capabilities
from .types import (
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


def _now() -> datetime:
    return datetime.now(UTC)


def _uuid() -> str:
    return str(uuid.uuid4())


def _no_fault(point: str) -> None:
    """Nothing happens at a fault point outside crash tests."""


class Embedder(Protocol):
    """Turns texts into vectors. `name` and `dimension` are what an index is bound to."""

    name: str
    dimension: int

    def embed(self, texts: Sequence[str], kind: Literal["document", "query"]) -> Sequence[Sequence[float]]:
        """One vector of `dimension` components a text, in order. Whatever it raises becomes EmbedderError."""
        ...


class Titler(Protocol):
    """Makes the title of a thread from its first messages, oldest first. May be slow, and may fail (TTL-1).

    `model` and `instructions` are what generate_title says.
    """

    def __call__(self, messages: Sequence[Message], *, model: str | None, instructions: str | None) -> str:
        """The title; an empty one is none."""
        ...


@dataclass(frozen=True)
class Runtime:
    """Every source of non-determinism a store may use.

    clock: the current instant, aware; finer than a millisecond is floored (VAL-1).
    new_id: a fresh id for what the caller did not name. A clone asks once for the thread unless it is
        named, then once a message in the thread's order.
    embedder: for semantic recall; None when there is none.
    titler: for generate_title; None when there is none. Called in threads of the store's own.
    fault: called with the name of a point at which a crash test may end the process.
    effort: how broadly an approximate index is searched, in its engine's own unit (ef_search, probes,
        num_candidates); None leaves it to the store. It bears on recall and time, never on what may be returned.
    """

    clock: Callable[[], datetime] = _now
    new_id: Callable[[], str] = _uuid
    embedder: Embedder | None = None
    fault: Callable[[str], None] = _no_fault
    titler: Titler | None = None
    effort: int | None = None


class Memory(Protocol):
    """One client of a store. Every method either has its whole effect or raises (errors.py).

    Absent optional arguments are None. The clauses (`memassay clauses`) say what each call means.
    """

    def create_thread(
        self,
        *,
        resource_id: str,
        id: str | None = None,
        title: str = "",
        metadata: Mapping[str, Any] | None = None,
        created_at: datetime | None = None,
    ) -> Thread:
        """Create a thread (THR-1). AlreadyExists."""
        ...

    def get_thread(self, thread_id: str, *, resource_id: str | None = None) -> Thread | None:
        """The thread, or None when unknown or another resource's (THR-2)."""
        ...

    def update_thread(
        self, thread_id: str, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Thread:
        """Set the title and merge metadata shallowly (THR-3). ThreadNotFound."""
        ...

    def title_thread(self, thread_id: str, title: str) -> bool:
        """Give the thread this title if it has none; whether it did (TTL-1a). Unsupported without `titles`."""
        ...

    def list_threads(
        self,
        *,
        filter: ThreadFilter | None = None,
        order_by: OrderBy | None = None,
        page: int = 0,
        per_page: int | Literal[False] | None = None,
    ) -> ThreadPage:
        """A page of threads, by default 100 and newest first (THR-4)."""
        ...

    def delete_thread(self, thread_id: str) -> bool:
        """Remove the thread and all that is in it; False when unknown (THR-5)."""
        ...

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
        """Copy a thread and its selected messages (CLN-1). Unsupported without the capability `clone`."""
        ...

    def list_clones(self, source_thread_id: str, *, resource_id: str | None = None) -> tuple[Thread, ...]:
        """The clones of a thread, oldest first (CLN-4). Unsupported without the capability `clone`."""
        ...

    def save_messages(
        self, messages: Sequence[NewMessage], *, thread_config: MemoryConfig | None = None
    ) -> tuple[Message, ...]:
        """Save a batch, all or nothing; one row per distinct id (MSG-1, MSG-2), embedded if configured (SEM-4).

        ThreadNotFound, OwnershipMismatch, ConfigurationError, EmbedderError.
        """
        ...

    def update_messages(
        self, updates: Sequence[MessageUpdate], *, thread_config: MemoryConfig | None = None
    ) -> tuple[Message, ...]:
        """Change messages, all or nothing; returns every existing row named (MSG-4, SEM-4)."""
        ...

    def delete_messages(self, ids: Sequence[str]) -> int:
        """Delete by id; how many existed (MSG-5)."""
        ...

    def clear_messages(self, thread_id: str) -> int:
        """Delete all messages of a thread; how many there were (MSG-5a). ThreadNotFound."""
        ...

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
        """A page of a thread's messages and what is included with it (ORD, TIM, FLT, INC, SEM)."""
        ...

    def semantic_index(self) -> IndexDescription | None:
        """The index of the messages' embeddings, as the engine knows it; None without an embedder (SEM-6).

        Its `count` is how many messages have an embedding.
        """
        ...

    def get_working_memory(
        self, thread_id: str, *, resource_id: str | None = None, thread_config: MemoryConfig | None = None
    ) -> str | None:
        """The working memory of the thread, or of its resource; None before the first update (WM-1).

        ConfigurationError where it is off; Unsupported without the capability `working_memory`.
        """
        ...

    def update_working_memory(
        self,
        thread_id: str,
        value: str,
        *,
        resource_id: str | None = None,
        thread_config: MemoryConfig | None = None,
    ) -> None:
        """Replace the working memory whole; with a schema `value` is the JSON text of what satisfies it (WM-1).

        ThreadNotFound, OwnershipMismatch; otherwise as get_working_memory.
        """
        ...

    def settle(self, *, timeout: float = 60.0) -> None:
        """Wait until the titles that this client's saves have begun are made, or are not to be (TTL-1b).

        NotSettled after `timeout` seconds. Unsupported without the capability `titles`.
        """
        ...

    def close(self) -> None:
        """Release what this client holds, and forget the titles it has begun; a second call does nothing."""
        ...


class VectorIndex(Protocol):
    """One client of the vector indices of a namespace. An unknown index is IndexNotFound everywhere."""

    def create_index(
        self, name: str, *, dimension: int, metric: str = "cosine", config: IndexConfig | None = None
    ) -> None:
        """Create an index; nothing when there is one of this dimension and metric (VEC-1).

        AlreadyExists, Unsupported.
        """
        ...

    def describe_index(self, name: str) -> IndexDescription:
        """The index as the engine knows it (VEC-1)."""
        ...

    def list_indexes(self) -> tuple[str, ...]:
        """The names of the namespace's indices, sorted by code point (VEC-1)."""
        ...

    def drop_index(self, name: str) -> None:
        """Remove the index and all in it (VEC-1)."""
        ...

    def upsert_vectors(self, name: str, vectors: Sequence[NewVector]) -> int:
        """Store or replace, all or nothing; how many distinct ids (VEC-2). InvalidVector."""
        ...

    def get_vectors(self, name: str, ids: Sequence[str]) -> tuple[VectorRow, ...]:
        """The existing rows of these ids, each once, in order of first occurrence (VEC-2)."""
        ...

    def update_vector(
        self,
        name: str,
        id: str,
        *,
        vector: Sequence[float] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> bool:
        """Replace what is given and keep the rest; False when unknown (VEC-2)."""
        ...

    def delete_vectors(
        self, name: str, *, ids: Sequence[str] | None = None, filter: Mapping[str, Any] | None = None
    ) -> int:
        """Delete by ids or by filter, exactly one of them; how many there were (VEC-2b)."""
        ...

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
        """The min(top_k, matching) closest rows, closest first (VEC-3, VEC-4)."""
        ...

    def close(self) -> None:
        """Release what this client holds; a second call does nothing."""
        ...


class Backend(Protocol):
    """An engine that can hold memories. Namespaces on one URL never see each other.

    A backend that needs a server also has `provisioners` (backends/provision); one without is opened
    with the empty URL.
    """

    name: str

    def capabilities(self, url: str) -> Capabilities:
        """What the engine at this URL can do through this adapter."""
        ...

    def version(self, url: str) -> str:
        """The engine's own exact version, asked of it."""
        ...

    def open_memory(self, url: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> Memory:
        """A client of the namespace, which is created if absent. `namespace` is [a-z][a-z0-9_]{0,39}."""
        ...

    def open_index(self, url: str, namespace: str, runtime: Runtime) -> VectorIndex:
        """A client of the namespace's vector indices. A backend without the capability `vectors` may leave it out."""
        ...

    def drop_namespace(self, url: str, namespace: str) -> None:
        """Remove the namespace and all in it; nothing happens when there is none."""
        ...
