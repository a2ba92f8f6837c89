"""What of a message is embedded, and what is stored beside the embedding (SEM-4, SEM-5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from .errors import EmbedderError, InvalidVector
from .protocols import Embedder
from .types import Content, Message, Metadata, TextPart, Thread
from .values import copy_json, iso
from .vectors import Metric, Vector, vector


def text_of(content: Content) -> str | None:
    """The text that stands for a message: its string, or its text parts joined by newlines; None when blank."""
    words = (
        content if isinstance(content, str) else "\n".join(part.text for part in content if isinstance(part, TextPart))
    )
    return words if words.strip() else None


def snapshot(thread: Thread, message: Message) -> Metadata:
    """What a semantic filter sees: the thread's metadata now, under the system keys, which win."""
    kept: Metadata = copy_json(thread.metadata)
    return kept | {
        "message_id": message.id,
        "thread_id": message.thread_id,
        "resource_id": message.resource_id,
        "role": message.role,
        "created_at": iso(message.created_at),
    }


def embed(embedder: Embedder, texts: Sequence[str], kind: Literal["document", "query"], metric: Metric) -> list[Vector]:
    """The checked vectors of the texts, in order; EmbedderError for whatever goes wrong."""
    if not texts:
        return []
    try:
        found = list(embedder.embed(texts, kind))
    except EmbedderError:
        raise
    except Exception as error:
        raise EmbedderError(f"{embedder.name} failed: {error}", clause="SEM-4a") from error
    if len(found) != len(texts):
        raise EmbedderError(f"{embedder.name} gave {len(found)} vectors for {len(texts)} texts", clause="SEM-4a")
    try:
        return [vector(components, embedder.dimension, metric, "an embedding") for components in found]
    except InvalidVector as error:
        raise EmbedderError(f"{embedder.name}: {error.message}", clause="SEM-4a") from error
