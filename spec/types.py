"""The values that stores take and return: messages, threads, filters, pages, configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

Metadata = dict[str, Any]
"""A JSON object (VAL-3)."""

Direction = Literal["ASC", "DESC"]


class TextPart(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    """Plain text."""

    text: str


class ReasoningPart(msgspec.Struct, frozen=True, tag_field="type", tag="reasoning"):
    """A model's visible reasoning."""

    text: str


class FilePart(msgspec.Struct, frozen=True, tag_field="type", tag="file"):
    """A file by URL (a data URL holds it inline)."""

    media_type: str
    url: str
    filename: str | None = None


class ToolPart(msgspec.Struct, frozen=True, tag_field="type", tag="tool"):
    """A tool call, and its output once there is one, or the error it ended with; input and output are JSON."""

    tool_call_id: str
    tool_name: str
    input: Any = None
    output: Any = None
    error: str | None = None


Part = TextPart | ReasoningPart | FilePart | ToolPart
Content = str | tuple[Part, ...]
"""A string, or a non-empty sequence of parts (MSG-0)."""


class Message(msgspec.Struct, frozen=True):
    """A stored message. `created_at` is aware UTC with millisecond precision."""

    id: str
    thread_id: str
    resource_id: str
    role: str
    content: Content
    metadata: Metadata
    created_at: datetime


class NewMessage(msgspec.Struct, frozen=True):
    """A message to save. `resource_id` defaults to the thread's owner, `created_at` to the clock's now."""

    id: str
    thread_id: str
    content: str | Sequence[Part]
    role: str = "user"
    metadata: Mapping[str, Any] | None = None
    created_at: datetime | None = None
    resource_id: str | None = None


class MessageUpdate(msgspec.Struct, frozen=True):
    """A change of one message: None leaves a field; metadata is merged shallowly."""

    id: str
    content: str | Sequence[Part] | None = None
    role: str | None = None
    metadata: Mapping[str, Any] | None = None


class CloneInfo(msgspec.Struct, frozen=True):
    """Where a cloned thread came from (CLN-1)."""

    source_thread_id: str
    cloned_at: datetime
    last_message_id: str | None = None


class Thread(msgspec.Struct, frozen=True):
    """A stored thread. Instants are aware UTC with millisecond precision."""

    id: str
    resource_id: str
    title: str
    metadata: Metadata
    created_at: datetime
    updated_at: datetime
    clone: CloneInfo | None = None


class DateRange(msgspec.Struct, frozen=True):
    """Bounds on `created_at`, inclusive unless marked exclusive; None is unbounded (TIM-1)."""

    start: datetime | None = None
    end: datetime | None = None
    start_exclusive: bool = False
    end_exclusive: bool = False


class MessageFilter(msgspec.Struct, frozen=True):
    """What a recall may be narrowed by; all given conditions must hold."""

    date_range: DateRange | None = None
    metadata: Mapping[str, str | int | float | bool | None] | None = None


class ThreadFilter(msgspec.Struct, frozen=True):
    """What a listing of threads may be narrowed by."""

    resource_id: str | None = None
    metadata: Mapping[str, str | int | float | bool | None] | None = None


class OrderBy(msgspec.Struct, frozen=True):
    """`field` is created_at, or updated_at for threads; the default direction is DESC."""

    field: str = "created_at"
    direction: str = "DESC"


class Include(msgspec.Struct, frozen=True):
    """A message to add to the result with its neighbours (INC-1). `thread_id` defaults to the request's."""

    id: str
    thread_id: str | None = None
    with_previous_messages: int | None = None
    with_next_messages: int | None = None


class IndexConfig(msgspec.Struct, frozen=True):
    """How an index is built (SEM-6). None is the backend's default.

    type: flat (exact), hnsw or ivfflat; m and ef_construction apply to hnsw, lists to ivfflat.
    metric: cosine, euclidean or dotproduct; only for an index that a memory keeps for its messages.
    """

    type: str | None = None
    m: int | None = None
    ef_construction: int | None = None
    lists: int | None = None
    metric: str | None = None


class MessageRange(msgspec.Struct, frozen=True):
    """Neighbours brought with each semantic hit."""

    before: int = 2
    after: int = 2


class SemanticRecall(msgspec.Struct, frozen=True):
    """How a vector search is made (SEM-1)."""

    top_k: int = 4
    message_range: int | MessageRange = 2
    scope: str = "thread"
    filter: Mapping[str, Any] | None = None
    threshold: float | None = None
    index_config: IndexConfig | None = None


class WorkingMemory(msgspec.Struct, frozen=True):
    """A note that a thread, or a resource, keeps beside its messages (WM-1).

    template: what an agent fills in; it is not the note's first value. schema: a JSON Schema that the note, as JSON
    text, has to satisfy; one of the two at most. scope: thread, or resource for one note of all its threads.
    """

    enabled: bool
    template: str | None = None
    schema: Mapping[str, Any] | None = None
    scope: str = "thread"


class TitleGeneration(msgspec.Struct, frozen=True):
    """What the runtime's titler is told when it makes the title of a thread (TTL-1)."""

    model: str | None = None
    instructions: str | None = None


class ThreadsConfig(msgspec.Struct, frozen=True):
    """Another place for generate_title (TTL-1c)."""

    generate_title: bool | TitleGeneration | UnsetType = UNSET


class MemoryConfig(msgspec.Struct, frozen=True):
    """A store's options, or a call's `thread_config`, whose set fields win over the store's.

    last_messages: integer ≥ 0, None (= 10) or False (no page unless per_page is given) (ORD-4).
    semantic_recall: off by default (SEM-1, SEM-4).
    working_memory: off by default (WM-1e).
    generate_title: off by default; may stand under threads instead (TTL-1).
    """

    last_messages: int | bool | UnsetType | None = UNSET
    semantic_recall: bool | SemanticRecall | UnsetType = UNSET
    working_memory: WorkingMemory | UnsetType = UNSET
    generate_title: bool | TitleGeneration | UnsetType = UNSET
    threads: ThreadsConfig | UnsetType = UNSET


class IndexDescription(msgspec.Struct, frozen=True):
    """An index as its engine describes it; `config` holds only what applies to its type."""

    name: str
    dimension: int
    metric: str
    config: IndexConfig
    count: int


class NewVector(msgspec.Struct, frozen=True):
    """A vector to store: a sequence of numbers (rounded to float32), and a JSON object beside it."""

    id: str
    vector: Sequence[float]
    metadata: Mapping[str, Any] | None = None


class VectorRow(msgspec.Struct, frozen=True):
    """A stored vector: its float32 components as floats."""

    id: str
    vector: tuple[float, ...]
    metadata: Metadata


class VectorHit(msgspec.Struct, frozen=True):
    """An answer to a query: larger scores are closer (VEC-3)."""

    id: str
    score: float
    metadata: Metadata


class Hit(msgspec.Struct, frozen=True):
    """A semantic hit: larger scores are closer (VEC-3)."""

    id: str
    score: float


class RecallResult(msgspec.Struct, frozen=True):
    """A page of messages and what was included with it.

    `total` counts all rows matching thread, resource and filter; `per_page` is the effective page
    size (False for everything); `hits` is empty without a vector search.
    """

    messages: tuple[Message, ...]
    total: int
    page: int
    per_page: int | Literal[False]
    has_more: bool
    hits: tuple[Hit, ...] = ()


class ThreadPage(msgspec.Struct, frozen=True):
    """A page of threads; fields as in RecallResult."""

    threads: tuple[Thread, ...]
    total: int
    page: int
    per_page: int | Literal[False]
    has_more: bool


class CloneResult(msgspec.Struct, frozen=True):
    """The new thread, its messages in order, and source id → new id."""

    thread: Thread
    cloned_messages: tuple[Message, ...]
    id_map: dict[str, str]
