"""Calls, checked and completed before any I/O: what an adapter's methods work from. One parse function a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict, TypeVar, cast

import msgspec
from msgspec import UNSET, UnsetType

from . import operators, values
from .errors import ConfigurationError, InvalidRequest
from .filters import Equals, Window, parse_metadata, parse_window
from .schemas import check_schema
from .types import (
    Content,
    Include,
    IndexConfig,
    MemoryConfig,
    Message,
    MessageFilter,
    MessageRange,
    MessageUpdate,
    Metadata,
    NewMessage,
    OrderBy,
    SemanticRecall,
    ThreadFilter,
    ThreadsConfig,
    TitleGeneration,
    WorkingMemory,
)
from .values import content, identifier, instant, integer, metadata, role, show, text
from .vectors import MAX_TOP_K, METRICS, threshold

T = TypeVar("T")

DEFAULT_LAST_MESSAGES = 10
DEFAULT_THREADS_PER_PAGE = 100
DEFAULT_NEIGHBOURS = 2


class Page(msgspec.Struct, frozen=True):
    """Page `page` of `per_page` rows; per_page False is everything, 0 is no rows (ORD-4)."""

    page: int
    per_page: int | Literal[False]

    @property
    def limit(self) -> int | None:
        """How many rows the page may hold; None is all of them."""
        return None if self.per_page is False else self.per_page

    @property
    def offset(self) -> int:
        """How many rows stand before the page; up to 2^106, beyond what engines take as an OFFSET."""
        return self.page * int(self.per_page)

    def has_more(self, total: int) -> bool:
        """Whether matching rows remain after this page's slice (ORD-5)."""
        return bool(self.per_page) and self.offset + self.per_page < total


class NewThread(msgspec.Struct, frozen=True):
    """A checked create_thread. `id` and `created_at` are None when the runtime is to give them."""

    id: str | None
    resource_id: str
    title: str
    metadata: Metadata
    created_at: datetime | None


class MessageRow(msgspec.Struct, frozen=True):
    """A checked message to save. `resource_id` None is the thread's, `created_at` None was not given."""

    id: str
    thread_id: str
    resource_id: str | None
    role: str
    content: Content
    metadata: Metadata
    created_at: datetime | None


class MessageChange(msgspec.Struct, frozen=True):
    """A checked update: None leaves a field, metadata is merged."""

    id: str
    content: Content | None
    role: str | None
    metadata: Metadata | None

    def apply(self, old: Message) -> Message:
        """The message after this change; its metadata may now be too large (see values.bounded)."""
        return msgspec.structs.replace(
            old,
            content=old.content if self.content is None else self.content,
            role=old.role if self.role is None else self.role,
            metadata=old.metadata if self.metadata is None else old.metadata | self.metadata,
        )


class Inclusion(msgspec.Struct, frozen=True):
    """A checked include: message `id` of `thread_id` with `before` and `after` neighbours (INC-1)."""

    id: str
    thread_id: str
    before: int
    after: int


class Semantic(msgspec.Struct, frozen=True):
    """A checked semantic recall: what to search for, among what, and what to bring with each hit (SEM-1)."""

    text: str
    top_k: int
    before: int
    after: int
    scope: Literal["thread", "resource"]
    filter: operators.Node
    threshold: float | None


class Recall(msgspec.Struct, frozen=True):
    """A checked recall. `search` is None without a vector search (a blank string counts as absent)."""

    thread_id: str
    resource_id: str | None
    search: Semantic | None
    page: Page
    metadata: tuple[Equals, ...]
    window: Window
    ascending: bool
    include: tuple[Inclusion, ...]


class ListThreads(msgspec.Struct, frozen=True):
    """A checked list_threads."""

    resource_id: str | None
    metadata: tuple[Equals, ...]
    field: Literal["created_at", "updated_at"]
    ascending: bool
    page: Page


def parse_create_thread(resource_id: object, id: object, title: object, meta: object, created_at: object) -> NewThread:
    """create_thread (THR-1)."""
    return NewThread(
        id=None if id is None else identifier(id, "id"),
        resource_id=identifier(resource_id, "resource_id"),
        title=text(title, "title"),
        metadata=metadata(meta),
        created_at=None if created_at is None else instant(created_at, "created_at"),
    )


def parse_update_thread(thread_id: object, title: object, meta: object) -> tuple[str, str | None, Metadata]:
    """update_thread (THR-3): id, title or None, what to merge."""
    return identifier(thread_id, "thread_id"), None if title is None else text(title, "title"), metadata(meta)


def parse_save(messages: object) -> tuple[MessageRow, ...]:
    """save_messages: its messages (MSG-0, MSG-1); see `embeds` for its thread_config."""
    return tuple(_row(item) for item in items(messages, NewMessage, "messages", "MSG-1"))


def _row(message: NewMessage) -> MessageRow:
    return MessageRow(
        id=identifier(message.id, "id"),
        thread_id=identifier(message.thread_id, "thread_id"),
        resource_id=None if message.resource_id is None else identifier(message.resource_id, "resource_id"),
        role=role(message.role),
        content=content(message.content),
        metadata=metadata(message.metadata),
        created_at=None if message.created_at is None else instant(message.created_at, "created_at"),
    )


def parse_updates(updates: object) -> tuple[MessageChange, ...]:
    """update_messages (MSG-4)."""
    return tuple(
        MessageChange(
            id=identifier(item.id, "id"),
            content=None if item.content is None else content(item.content),
            role=None if item.role is None else role(item.role),
            metadata=None if item.metadata is None else metadata(item.metadata),
        )
        for item in items(updates, MessageUpdate, "updates", "MSG-4")
    )


def parse_ids(ids: object, *, clause: str = "MSG-5") -> tuple[str, ...]:
    """A list of ids: each once, in order (MSG-5)."""
    return tuple(dict.fromkeys(identifier(item, "an id") for item in items(ids, object, "ids", clause)))


class Clone(msgspec.Struct, frozen=True):
    """A checked clone_thread; None takes the source's, or no restriction (CLN-1)."""

    source: str
    id: str | None
    resource_id: str | None
    title: str | None
    metadata: Metadata
    limit: int | None
    window: Window
    message_ids: tuple[str, ...] | None


class CloneOptions(TypedDict, total=False):
    """What clone_thread takes beside the source (protocols.Memory)."""

    new_thread_id: str | None
    resource_id: str | None
    title: str | None
    metadata: Mapping[str, Any] | None
    message_limit: int | None
    start: datetime | None
    end: datetime | None
    message_ids: Sequence[str] | None


def parse_clone(
    source: object,
    *,
    new_thread_id: object = None,
    resource_id: object = None,
    title: object = None,
    metadata: object = None,
    message_limit: object = None,
    start: object = None,
    end: object = None,
    message_ids: object = None,
) -> Clone:
    """clone_thread (CLN-1)."""
    return Clone(
        source=identifier(source, "source_thread_id"),
        id=None if new_thread_id is None else identifier(new_thread_id, "new_thread_id"),
        resource_id=None if resource_id is None else identifier(resource_id, "resource_id"),
        title=None if title is None else text(title, "title"),
        metadata=values.metadata(metadata),
        limit=None if message_limit is None else integer(message_limit, "message_limit", clause="CLN-1"),
        window=Window(
            start=None if start is None else instant(start, "start"),
            end=None if end is None else instant(end, "end"),
        ),
        message_ids=None if message_ids is None else parse_ids(message_ids, clause="CLN-1"),
    )


class RecallOptions(TypedDict, total=False):
    """What recall takes beside the thread (protocols.Memory)."""

    resource_id: str | None
    vector_search_string: str | None
    page: int
    per_page: int | Literal[False] | None
    include: Sequence[Include] | None
    filter: MessageFilter | None
    order_by: OrderBy | None
    thread_config: MemoryConfig | None


def parse_recall(
    thread_id: object,
    options: MemoryConfig,
    *,
    resource_id: object = None,
    vector_search_string: object = None,
    page: object = 0,
    per_page: object = None,
    include: object = None,
    filter: object = None,
    order_by: object = None,
    thread_config: object = None,
) -> Recall:
    """recall; `options` are the store's, overlaid by thread_config (ORD-2 … ORD-4, TIM, FLT, INC, SEM-1)."""
    thread = identifier(thread_id, "thread_id")
    text_ = None if vector_search_string is None else text(vector_search_string, "vector_search_string")
    text_ = text_ if text_ and text_.strip() else None
    resource = None if resource_id is None else identifier(resource_id, "resource_id")
    config = overlay(options, thread_config)
    search = None if text_ is None else _search(text_, config, resource)
    narrowed = MessageFilter() if filter is None else filter
    if not isinstance(narrowed, MessageFilter):
        raise InvalidRequest(f"filter is {show(filter)}", hint="pass a MessageFilter", clause="FLT-2")
    neighbours = 0 if search is None else DEFAULT_NEIGHBOURS
    included = () if include is None else items(include, Include, "include", "INC-1")
    last = DEFAULT_LAST_MESSAGES if config.last_messages in (UNSET, None) else config.last_messages
    if included and per_page is None and search is None:
        last = 0  # INC-3: only the included messages
    return Recall(
        thread_id=thread,
        resource_id=resource,
        search=search,
        page=parse_page(page, per_page, default=int(cast(int, last))),
        metadata=parse_metadata(narrowed.metadata),
        window=parse_window(narrowed.date_range),
        ascending=_order(order_by, ("created_at",))[1],
        include=tuple(
            Inclusion(
                id=identifier(item.id, "include.id"),
                thread_id=thread if item.thread_id is None else identifier(item.thread_id, "include.thread_id"),
                before=_neighbours(item.with_previous_messages, neighbours),
                after=_neighbours(item.with_next_messages, neighbours),
            )
            for item in included
        ),
    )


def _search(words: str, config: MemoryConfig, resource_id: str | None) -> Semantic:
    recall = config.semantic_recall
    if recall is UNSET or recall is False:
        raise ConfigurationError("semantic recall is off", hint="set semantic_recall", clause="SEM-1")
    given = recall if isinstance(recall, SemanticRecall) else SemanticRecall()
    around = given.message_range
    if given.scope == "resource" and resource_id is None:
        raise InvalidRequest("scope is resource", hint="pass resource_id", clause="SEM-1")
    return Semantic(
        text=words,
        top_k=given.top_k,
        before=around.before if isinstance(around, MessageRange) else around,
        after=around.after if isinstance(around, MessageRange) else around,
        scope=cast(Literal["thread", "resource"], given.scope),
        filter=operators.parse(given.filter),
        threshold=threshold(given.threshold, "threshold", clause="SEM-1"),
    )


def _neighbours(given: object, default: int) -> int:
    return default if given is None else integer(given, "an include's neighbours", clause="INC-1")


def parse_list_threads(filter: object, order_by: object, page: object, per_page: object) -> ListThreads:
    """list_threads (THR-4)."""
    narrowed = ThreadFilter() if filter is None else filter
    if not isinstance(narrowed, ThreadFilter):
        raise InvalidRequest(f"filter is {show(filter)}", hint="pass a ThreadFilter", clause="THR-4")
    field, ascending = _order(order_by, ("created_at", "updated_at"))
    return ListThreads(
        resource_id=None if narrowed.resource_id is None else identifier(narrowed.resource_id, "resource_id"),
        metadata=parse_metadata(narrowed.metadata),
        field=cast(Literal["created_at", "updated_at"], field),
        ascending=ascending,
        page=parse_page(page, per_page, default=DEFAULT_THREADS_PER_PAGE),
    )


def parse_page(page: object, per_page: object, *, default: int) -> Page:
    """Paging (ORD-4): per_page None is the default, False is everything."""
    number = integer(page, "page")
    if per_page is False:
        if number:
            raise InvalidRequest(f"page is {number}, per_page False", hint="everything is page 0", clause="ORD-4")
        return Page(0, False)
    return Page(number, default if per_page is None else integer(per_page, "per_page"))


def overlay(options: MemoryConfig, thread_config: object) -> MemoryConfig:
    """The effective configuration: the store's options, overlaid by what thread_config sets."""
    if thread_config is None:
        return options
    checked = parse_config(thread_config, "thread_config")
    recall = checked.semantic_recall
    if isinstance(recall, SemanticRecall) and recall.index_config is not None:
        raise InvalidRequest("thread_config has an index_config", hint="give it in the store's options", clause="SEM-6")
    return MemoryConfig(
        last_messages=options.last_messages if checked.last_messages is UNSET else checked.last_messages,
        semantic_recall=options.semantic_recall if checked.semantic_recall is UNSET else checked.semantic_recall,
        working_memory=options.working_memory if checked.working_memory is UNSET else checked.working_memory,
        generate_title=_title(options) if _title(checked) is UNSET else _title(checked),
    )


def parse_config(config: object, name: str) -> MemoryConfig:
    """A configuration within ORD-4, SEM-1, WM-1e and TTL-1c."""
    if not isinstance(config, MemoryConfig):
        raise InvalidRequest(f"{name} is {show(config)}", hint="pass a MemoryConfig", clause="ORD-4")
    last = config.last_messages
    if last is not UNSET and last is not None and last is not False:
        integer(last, f"{name}.last_messages")
    recall: Any = config.semantic_recall
    if isinstance(recall, SemanticRecall):
        _check_semantic(recall)
    elif recall is not UNSET and not isinstance(recall, bool):
        raise InvalidRequest(f"{name}.semantic_recall is {show(recall)}", hint="pass a SemanticRecall", clause="SEM-1")
    if config.working_memory is not UNSET:
        _check_working(config.working_memory, f"{name}.working_memory")
    _check_titles(config, name)
    return config


def _title(config: MemoryConfig) -> bool | TitleGeneration | UnsetType:
    """Where generate_title is given, at the top or under threads (TTL-1c)."""
    if config.generate_title is UNSET and config.threads is not UNSET:
        return config.threads.generate_title
    return config.generate_title


def titling(options: MemoryConfig, thread_config: object) -> TitleGeneration | None:
    """What a save under this configuration has titles made with; None when it has none made (TTL-1)."""
    found = _title(overlay(options, thread_config))
    if isinstance(found, TitleGeneration):
        return found
    return TitleGeneration() if found is True else None


def parse_title_thread(thread_id: object, title: object) -> tuple[str, str]:
    """title_thread (TTL-1a)."""
    if text(title, "title") == "":
        raise InvalidRequest("title is empty", hint="give a title", clause="TTL-1a")
    return identifier(thread_id, "thread_id"), cast(str, title)


def _check_titles(config: MemoryConfig, name: str) -> None:
    """generate_title within TTL-1c."""
    threads = cast(object, config.threads)
    if threads is not UNSET and not isinstance(threads, ThreadsConfig):
        raise InvalidRequest(f"{name}.threads is {show(threads)}", hint="pass a ThreadsConfig", clause="TTL-1c")
    places = config.generate_title, UNSET if config.threads is UNSET else config.threads.generate_title
    for given in cast("tuple[object, ...]", places):
        if isinstance(given, TitleGeneration):
            for field in ("model", "instructions"):
                if (value := getattr(given, field)) is not None:
                    text(value, f"{name}.generate_title.{field}", clause="TTL-1c")
        elif given is not UNSET and not isinstance(given, bool):
            raise InvalidRequest(
                f"{name}.generate_title is {show(given)}", hint="pass a bool or a TitleGeneration", clause="TTL-1c"
            )
    if UNSET not in places and places[0] != places[1]:
        raise ConfigurationError(
            "generate_title is given twice", hint="give it at the top or under threads", clause="TTL-1c"
        )


def _check_working(working: object, name: str) -> None:
    """A configuration of working memory within WM-1e."""
    if not isinstance(working, WorkingMemory):
        raise InvalidRequest(f"{name} is {show(working)}", hint="pass a WorkingMemory", clause="WM-1e")
    template, schema = cast(object, working.template), cast(object, working.schema)
    if type(cast(object, working.enabled)) is not bool:
        raise InvalidRequest(f"{name}.enabled is {show(working.enabled)}", hint="pass True or False", clause="WM-1e")
    if working.scope not in ("thread", "resource"):
        raise InvalidRequest(f"{name}.scope is {show(working.scope)}", hint="use thread or resource", clause="WM-1e")
    if template is not None and schema is not None:
        raise ConfigurationError("working memory has a template and a schema", hint="give one of them", clause="WM-1e")
    if template is not None:
        text(template, f"{name}.template", clause="WM-1e")
    if schema is not None:
        if not isinstance(schema, dict):
            raise InvalidRequest(f"{name}.schema is {show(schema)}", hint="pass a dict", clause="WM-1e")
        check_schema(cast("dict[str, Any]", schema))


def _check_semantic(recall: SemanticRecall) -> None:
    if integer(recall.top_k, "top_k", least=1, clause="SEM-1") > MAX_TOP_K:
        raise InvalidRequest(f"top_k is {recall.top_k}", hint=f"use at most {MAX_TOP_K}", clause="SEM-1")
    around = recall.message_range
    sides = (around.before, around.after) if isinstance(around, MessageRange) else (around,)
    for side in sides:
        integer(side, "message_range", clause="SEM-1")
    if recall.scope not in ("thread", "resource"):
        raise InvalidRequest(f"scope is {show(recall.scope)}", hint="use thread or resource", clause="SEM-1")
    operators.parse(recall.filter)
    threshold(recall.threshold, "threshold", clause="SEM-1")
    config = recall.index_config
    if config is not None and not isinstance(config, IndexConfig):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidRequest(f"index_config is {show(config)}", hint="pass an IndexConfig", clause="SEM-6")
    if config is not None and config.metric not in (None, *METRICS):
        raise InvalidRequest(f"metric is {show(config.metric)}", hint="use " + ", ".join(METRICS), clause="SEM-6")


def index_config(options: MemoryConfig) -> IndexConfig:
    """How the store's options want the messages' embeddings indexed; its metric is cosine unless given (SEM-6)."""
    recall = options.semantic_recall
    given = recall.index_config if isinstance(recall, SemanticRecall) else None
    config = given or IndexConfig()
    return msgspec.structs.replace(config, metric=config.metric or "cosine")


def embeds(options: MemoryConfig, thread_config: object) -> bool:
    """Whether a save or update under this configuration embeds what it indexes (SEM-4)."""
    recall = overlay(options, thread_config).semantic_recall
    return recall is not UNSET and recall is not False


def _order(order_by: object, fields: tuple[str, ...]) -> tuple[str, bool]:
    if order_by is None:
        return fields[0], False
    if not isinstance(order_by, OrderBy):
        raise InvalidRequest(f"order_by is {show(order_by)}", hint="pass an OrderBy", clause="ORD-2")
    if order_by.field not in fields:
        raise InvalidRequest(
            f"order_by.field is {show(order_by.field)}", hint="use " + ", ".join(fields), clause="ORD-2"
        )
    if order_by.direction not in ("ASC", "DESC"):
        raise InvalidRequest(
            f"order_by.direction is {show(order_by.direction)}", hint="use ASC or DESC", clause="ORD-2"
        )
    return order_by.field, order_by.direction == "ASC"


def items(value: object, kind: type[T], name: str, clause: str) -> Sequence[T]:
    """A list or tuple of values of one kind."""
    if not isinstance(value, list | tuple):
        raise InvalidRequest(f"{name} is {show(value)}", hint="pass a list", clause=clause)
    items = cast("Sequence[object]", value)
    for item in items:
        if not isinstance(item, kind):
            raise InvalidRequest(f"{name} holds {show(item)}", hint=f"pass {kind.__name__} values", clause=clause)
    return cast("Sequence[T]", items)
