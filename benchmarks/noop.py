"""A store that does nothing and answers at once: what harness, threads and clock cost by themselves."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ..harness.artefact import own_version
from ..spec.capabilities import Capabilities
from ..spec.protocols import Memory, Runtime, VectorIndex
from ..spec.types import (
    CloneResult,
    Hit,
    IndexConfig,
    IndexDescription,
    MemoryConfig,
    Message,
    RecallResult,
    Thread,
    VectorHit,
)

NAME = "noop"
ROWS = 10
"""Of every answer."""

EPOCH = datetime(2024, 3, 1, tzinfo=UTC)
MESSAGES = tuple(Message(f"m{n}", "t", "r", "user", "so", {}, EPOCH) for n in range(ROWS))
THREAD = Thread("t", "r", "", {}, EPOCH, EPOCH)
RECALLED = RecallResult(MESSAGES, ROWS, 0, ROWS, has_more=False, hits=tuple(Hit(f"m{n}", 1.0) for n in range(ROWS)))
HITS = tuple(VectorHit(f"v{n}", 1.0, {}) for n in range(ROWS))
CLONED = CloneResult(THREAD, MESSAGES, {})
DESCRIBED = IndexDescription("i", 2, "cosine", IndexConfig(type="flat"), ROWS)


class NoopClient:
    """Answers every call of a Memory and of a VectorIndex that a benchmark makes; always with the same."""

    def create_thread(self, **given: Any) -> Thread:
        """See protocols.Memory."""
        return THREAD

    def recall(self, thread_id: str, **given: Any) -> RecallResult:
        """See protocols.Memory."""
        return RECALLED

    def save_messages(self, messages: Any, **given: Any) -> tuple[Message, ...]:
        """See protocols.Memory."""
        return MESSAGES

    def update_messages(self, updates: Any, **given: Any) -> tuple[Message, ...]:
        """See protocols.Memory."""
        return MESSAGES

    def delete_messages(self, ids: Any) -> int:
        """See protocols.Memory."""
        return 1

    def clone_thread(self, source_thread_id: str, **given: Any) -> CloneResult:
        """See protocols.Memory."""
        return CLONED

    def create_index(self, name: str, **given: Any) -> None:
        """See protocols.VectorIndex."""

    def describe_index(self, name: str) -> IndexDescription:
        """See protocols.VectorIndex."""
        return DESCRIBED

    def upsert_vectors(self, name: str, vectors: Any) -> int:
        """See protocols.VectorIndex."""
        return len(vectors)

    def query_vectors(self, name: str, vector: Any, **given: Any) -> tuple[VectorHit, ...]:
        """See protocols.VectorIndex."""
        return HITS

    def delete_vectors(self, name: str, **given: Any) -> int:
        """See protocols.VectorIndex."""
        return 1

    def close(self) -> None:
        """See protocols.Memory."""


class NoopBackend:
    """Has no engine. Its answers are nobody's, so they are not judged."""

    name = NAME

    def capabilities(self, url: str) -> Capabilities:
        """See protocols.Backend."""
        return Capabilities(
            durable=False, clone=True, vectors=True, semantic_recall=True, resource_scope=True, index_types=("flat",)
        )

    def version(self, url: str) -> str:
        """See protocols.Backend."""
        return f"memassay {own_version()}"

    def open_memory(self, url: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> Memory:
        """See protocols.Backend."""
        client: Any = NoopClient()
        return client

    def open_index(self, url: str, namespace: str, runtime: Runtime) -> VectorIndex:
        """See protocols.Backend."""
        client: Any = NoopClient()
        return client

    def drop_namespace(self, url: str, namespace: str) -> None:
        """See protocols.Backend."""
