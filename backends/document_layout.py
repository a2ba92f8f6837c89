"""How a namespace lies in a document engine: indices of threads, messages and resources, one for each vector index.

A thread has an incarnation, a name that it gets when it is created and anew when it is cleared; its messages bear it.
A message is in a thread when the thread is there and of the same incarnation. So one write of the thread's document
removes all its messages at once, and what a slower writer adds to a thread that is gone is seen nowhere.
"""

from __future__ import annotations

import re
import uuid
from typing import Any

import msgspec

from ..spec.errors import ConfigurationError, InvalidRequest
from ..spec.types import CloneInfo, Content, Message, Thread
from ..spec.values import show
from .document_filters import EVERYTHING, TOKENS, instant_of, millis, tokens
from .documents import LAYOUT, PROJECT, Definition, Document, Documents, Json, digest

KEYWORD: Json = {"type": "keyword"}
LONG: Json = {"type": "long"}
OPAQUE: Json = {"type": "object", "enabled": False}
"""A field that is kept as it was given and never looked at: exact, of any length."""

# Instants are milliseconds since 1970; metadata and content are JSON text, as JSON objects would lose numbers' types
# and keys' forms on the way (VAL-3); tokens holds what filters find of metadata (FLT-1).
THREADS: Json = {
    "id": KEYWORD,
    "resource_id": KEYWORD,
    "title": OPAQUE,
    "metadata": OPAQUE,
    "tokens": TOKENS,
    "created_at": LONG,
    "updated_at": LONG,
    "incarnation": OPAQUE,
    "next_position": OPAQUE,
    "clone_source": KEYWORD,
    "cloned_at": OPAQUE,
    "clone_last": OPAQUE,
    "working": OPAQUE,
}
WORKING = "working"
"""The field with the working memory, in the document of the thread or resource whose it is: gone with it (WM-1c)."""

RESOURCES: Json = {"id": KEYWORD, WORKING: OPAQUE}
# `write` names the batch that wrote the document last. `embedding` has what is embedded of the message, if anything
# (document_embeddings.py).
MESSAGES: Json = {
    "id": KEYWORD,
    "thread_id": KEYWORD,
    "resource_id": KEYWORD,
    "incarnation": KEYWORD,
    "role": OPAQUE,
    "content": OPAQUE,
    "metadata": OPAQUE,
    "tokens": TOKENS,
    "created_at": LONG,
    "position": LONG,
    "write": OPAQUE,
    "embedding": {"type": "object", "properties": {}},
}
EMBEDDING = "embedding"

_content = msgspec.json.Decoder[Content](Content)


class Names(msgspec.Struct, frozen=True):
    """The names of a namespace's indices. It has no hyphen, so that none is a prefix of another's."""

    namespace: str

    @property
    def threads(self) -> str:
        """The alias of the index of threads."""
        return f"memassay-{self.namespace}-threads"

    @property
    def messages(self) -> str:
        """The alias of the index of messages and their embeddings."""
        return f"memassay-{self.namespace}-messages"

    @property
    def resources(self) -> str:
        """The alias of the index of resources, which has those that have working memory."""
        return f"memassay-{self.namespace}-resources"

    @property
    def all(self) -> str:
        """A pattern of all of them."""
        return f"memassay-{self.namespace}-*"

    @property
    def all_vectors(self) -> str:
        """A pattern of the indices for vector indices of the user's."""
        return f"memassay-{self.namespace}-vectors-*"

    def vectors(self, name: str) -> str:
        """The index for a vector index of the user's."""
        return f"memassay-{self.namespace}-vectors-{digest(name)}"


def names(namespace: str) -> Names:
    """The names for a namespace. InvalidRequest unless it is [a-z][a-z0-9_]{0,39}."""
    if not re.fullmatch("[a-z][a-z0-9_]{0,39}", namespace):
        raise InvalidRequest(f"namespace is {show(namespace)}", hint="use [a-z][a-z0-9_]{0,39}")
    return Names(namespace)


def ours(documents: Documents, pattern: str) -> dict[str, Json]:
    """Our indices of these names, with their `_meta`; one that another program made is refused."""
    found = documents.metas(pattern)
    for index, meta in found.items():
        if (meta.get("project"), meta.get("layout")) != (PROJECT, LAYOUT):
            raise ConfigurationError(
                f"the index {index} is not of this version of memassay", hint="delete it or use another engine"
            )
    return found


def namespaces(documents: Documents) -> tuple[str, ...]:
    """The namespaces on the server. ConfigurationError when an index has such a name and is not ours."""
    return tuple(sorted({index.split("-")[1] for index in ours(documents, "memassay-*")}))


def enter(documents: Documents, where: Names, settings: Json) -> None:
    """Create the indices of threads, messages and resources where they are absent."""
    found = {meta["kind"] for meta in ours(documents, f"{where.threads},{where.messages},{where.resources}").values()}
    for kind, alias, properties in (
        ("threads", where.threads, THREADS),
        ("messages", where.messages, MESSAGES),
        ("resources", where.resources, RESOURCES),
    ):
        if kind not in found:
            documents.create(f"{alias}-{LAYOUT}", Definition(settings, properties, kind, alias))
    if found:
        documents.ready(where.threads, where.messages, where.resources)


def drop(documents: Documents, where: Names) -> None:
    """Delete the indices of a namespace, if there are any."""
    documents.drop(ours(documents, where.all))


def reset(documents: Documents, where: Names) -> None:
    """Empty a namespace, which keeps its indices but those of vectors; nothing happens when there is none."""
    found = ours(documents, where.all)
    kept = [each for each, meta in found.items() if meta["kind"] != "vectors"]
    documents.drop(found.keys() - kept)
    if kept:
        documents.delete_matching(",".join(kept), EVERYTHING)


def json_text(value: Any) -> str:
    """A value as compact JSON."""
    return msgspec.json.encode(value).decode()


def fresh() -> str:
    """An incarnation that no thread has had. Nothing shows it, so it need not come from the runtime."""
    return uuid.uuid4().hex


# Threads


def thread_source(thread: Thread, incarnation: str, next_position: int, working: str | None = None) -> Json:
    """The document of a thread, with its working memory if it has any."""
    source: Json = {
        "id": thread.id,
        "resource_id": thread.resource_id,
        "title": thread.title,
        "metadata": json_text(thread.metadata),
        "tokens": tokens(thread.metadata),
        "created_at": millis(thread.created_at),
        "updated_at": millis(thread.updated_at),
        "incarnation": incarnation,
        "next_position": next_position,
    }
    if thread.clone is not None:
        source |= {
            "clone_source": thread.clone.source_thread_id,
            "cloned_at": millis(thread.clone.cloned_at),
            "clone_last": thread.clone.last_message_id,
        }
    return source if working is None else source | {WORKING: working}


def thread_of(source: Json) -> Thread:
    """The thread that a document holds."""
    clone = source.get("clone_source")
    return Thread(
        id=source["id"],
        resource_id=source["resource_id"],
        title=source["title"],
        metadata=msgspec.json.decode(source["metadata"]),
        created_at=instant_of(source["created_at"]),
        updated_at=instant_of(source["updated_at"]),
        clone=None if clone is None else CloneInfo(clone, instant_of(source["cloned_at"]), source["clone_last"]),
    )


# Messages


def message_source(message: Message, incarnation: str, position: int, embedding: Json | None) -> Json:
    """The document of a message in a thread of this incarnation."""
    source: Json = {
        "id": message.id,
        "thread_id": message.thread_id,
        "resource_id": message.resource_id,
        "incarnation": incarnation,
        "role": message.role,
        "content": json_text(message.content),
        "metadata": json_text(message.metadata),
        "tokens": tokens(message.metadata),
        "created_at": millis(message.created_at),
        "position": position,
    }
    return source if embedding is None else source | {EMBEDDING: embedding}


def message_of(source: Json) -> Message:
    """The message that a document holds."""
    return Message(
        id=source["id"],
        thread_id=source["thread_id"],
        resource_id=source["resource_id"],
        role=source["role"],
        content=_content.decode(source["content"]),
        metadata=msgspec.json.decode(source["metadata"]),
        created_at=instant_of(source["created_at"]),
    )


def live(message: Document | None, thread: Document | None) -> bool:
    """Whether a message is in this thread, which is the one that it names, or None when there is none."""
    return message is not None and thread is not None and message.source["incarnation"] == thread.source["incarnation"]
