"""The reference model: the plainest store that is right. Its answers are the expected ones.

A thread keeps its rows in a list sorted by (created_at, position); every read is a slice or a scan of
that list. `events` records what each call did, so that a deviation can be blamed on the call that
touched the row last (judge.py).
"""

from __future__ import annotations

import contextlib
import threading
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Literal, Unpack, cast

import msgspec
import numpy as np

from .capabilities import Capabilities
from .embedding import embed, snapshot, text_of
from .errors import (
    AlreadyExists,
    ConfigurationError,
    InvalidRequest,
    OwnershipMismatch,
    ThreadNotFound,
    Unsupported,
    refusing,
)
from .index_requests import parse_semantic_index
from .operation import Target
from .protocols import Embedder, Memory, Runtime, VectorIndex
from .reference_index import MODEL_CAPABILITIES, IndexState, ModelIndex
from .requests import (
    Clone,
    CloneOptions,
    Inclusion,
    ListThreads,
    MessageRow,
    Recall,
    RecallOptions,
    embeds,
    parse_clone,
    parse_config,
    parse_create_thread,
    parse_ids,
    parse_list_threads,
    parse_recall,
    parse_save,
    parse_title_thread,
    parse_update_thread,
    parse_updates,
    titling,
)
from .types import (
    CloneInfo,
    CloneResult,
    Content,
    Hit,
    IndexDescription,
    MemoryConfig,
    Message,
    MessageUpdate,
    Metadata,
    NewMessage,
    OrderBy,
    RecallResult,
    Thread,
    ThreadFilter,
    ThreadPage,
    TitleGeneration,
)
from .values import bounded, copy_json, copy_message, copy_thread, identifier, instant, text
from .vectors import Metric, Vector, scores
from .working_memory import WorkingOptions, WorkingRequest, parse_get_working, parse_update_working, working

SCOPES: tuple[Literal["thread", "resource"], ...] = ("thread", "resource")
Owner = tuple[Literal["thread", "resource"], str]
"""Whose working memory: a thread's or a resource's, and its id."""

EventKind = Literal[
    "thread_created",
    "thread_updated",
    "thread_deleted",
    "inserted",
    "replaced",
    "moved",
    "updated",
    "deleted",
    "cleared",
    "cloned",
    "titled",
]

TITLE_MESSAGES = 20
"""How many of a thread's first messages a titler gets."""


class Event(msgspec.Struct, frozen=True):
    """What one call did to one thread, or to one message in it. A move names the thread entered."""

    kind: EventKind
    thread_id: str
    message_id: str | None = None


class Row(msgspec.Struct, frozen=True):
    """A message and the position it took when it entered its thread (ORD-1)."""

    message: Message
    position: int

    @property
    def rank(self) -> tuple[datetime, int]:
        """The sort key within a thread."""
        return self.message.created_at, self.position


class Embedded(msgspec.Struct, frozen=True):
    """A message's embedding, float32 components as floats, and the snapshot taken with it (SEM-5)."""

    vector: tuple[float, ...]
    snapshot: Metadata


class Untitled(msgspec.Struct, frozen=True):
    """A title that a client has begun, for a thread that has none."""

    client: int
    thread_id: str
    wanted: TitleGeneration


class State(msgspec.Struct):
    """All that a namespace holds: threads, their rows in order, every row by message id, embeddings, and by
    scope and owner the working memory.
    """

    threads: dict[str, Thread] = msgspec.field(default_factory=dict[str, Thread])
    rows: dict[str, list[Row]] = msgspec.field(default_factory=dict[str, list[Row]])
    by_id: dict[str, Row] = msgspec.field(default_factory=dict[str, Row])
    embedded: dict[str, Embedded] = msgspec.field(default_factory=dict[str, Embedded])
    untitled: list[Untitled] = msgspec.field(default_factory=list[Untitled])
    notes: dict[str, dict[str, str]] = msgspec.field(default_factory=lambda: {"thread": {}, "resource": {}})
    next_position: int = 0

    def copy(self) -> State:
        """Another that holds the same; what is in it is never changed in place."""
        return State(
            threads={**self.threads},
            rows={name: [*rows] for name, rows in self.rows.items()},
            by_id={**self.by_id},
            embedded={**self.embedded},
            untitled=[*self.untitled],
            notes={scope: {**values} for scope, values in self.notes.items()},
            next_position=self.next_position,
        )

    @property
    def working(self) -> dict[Owner, str]:
        """The working memory by owner; a copy."""
        return {(scope, name): value for scope in SCOPES for name, value in self.notes[scope].items()}

    def note(self, owner: Owner, value: str | None) -> None:
        """Set the working memory of an owner; None removes it."""
        if value is None:
            self.notes[owner[0]].pop(owner[1], None)
        else:
            self.notes[owner[0]][owner[1]] = value

    def place(self, row: Row) -> tuple[list[Row], int]:
        """The rows of the row's thread, and its index among them."""
        rows = self.rows[row.message.thread_id]
        index = bisect_left(rows, row.rank, key=lambda other: other.rank)
        if index < len(rows) and rows[index] is row:
            return rows, index
        # Only in a state that was read from a store whose order is wrong.
        return rows, next(i for i, other in enumerate(rows) if other is row)


class Model:
    """A memory store as plain Python data; implements protocols.Memory."""

    # One lock for all: clients of a namespace share its state.
    _lock: ClassVar[threading.RLock] = threading.RLock()

    def __init__(
        self,
        runtime: Runtime | None = None,
        config: MemoryConfig | None = None,
        state: State | None = None,
        events: list[Event] | None = None,
        capabilities: Capabilities = MODEL_CAPABILITIES,
    ) -> None:
        self.runtime = runtime or Runtime()
        self.options = parse_config(config or MemoryConfig(), "config")
        self.state = state or State()
        self.events: list[Event] = [] if events is None else events
        self.capabilities = capabilities
        embedder = self.runtime.embedder
        self.index = (
            parse_semantic_index(self.options, embedder.dimension, capabilities)
            if embedder is not None and capabilities.semantic_recall
            else None
        )

    # Threads

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
        new = parse_create_thread(resource_id, id, title, metadata, created_at)
        with self._lock:
            thread_id = self.runtime.new_id() if new.id is None else new.id
            if thread_id in self.state.threads:
                raise AlreadyExists(f"thread {thread_id!r} exists", clause="THR-1")
            at = self._now() if new.created_at is None else new.created_at
            thread = Thread(thread_id, new.resource_id, new.title, new.metadata, at, at)
            self.state.threads[thread_id] = thread
            self.state.rows[thread_id] = []
            self._event("thread_created", thread_id)
            return copy_thread(thread)

    def get_thread(self, thread_id: str, *, resource_id: str | None = None) -> Thread | None:
        """See protocols.Memory."""
        identifier(thread_id, "thread_id")
        if resource_id is not None:
            identifier(resource_id, "resource_id")
        with self._lock:
            thread = self.state.threads.get(thread_id)
            if thread is None or resource_id not in (None, thread.resource_id):
                return None
            return copy_thread(thread)

    def update_thread(
        self, thread_id: str, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Thread:
        """See protocols.Memory."""
        thread_id, title, changes = parse_update_thread(thread_id, title, metadata)
        with self._lock:
            old = self._thread(thread_id, "THR-3")
            new = msgspec.structs.replace(
                old,
                title=old.title if title is None else title,
                metadata=bounded(old.metadata | changes),
                updated_at=max(old.updated_at, self._now()),
            )
            self.state.threads[thread_id] = new
            self._event("thread_updated", thread_id)
            return copy_thread(new)

    def title_thread(self, thread_id: str, title: str) -> bool:
        """See protocols.Memory."""
        if not self.capabilities.titles:
            raise Unsupported("title_thread", clause="CAP-1")
        parse_title_thread(thread_id, title)
        with self._lock:
            return self.entitle(thread_id, title)

    def entitle(self, thread_id: str, title: str) -> bool:
        """Give a thread a title if it has none."""
        old = self.state.threads.get(thread_id)
        if old is None or old.title:
            return False
        new = msgspec.structs.replace(old, title=title, updated_at=max(old.updated_at, self._now()))
        self.state.threads[thread_id] = new
        self._event("titled", thread_id)
        return True

    def begin_titles(self, wanted: TitleGeneration | None, saved: Sequence[Message]) -> None:
        """Note the threads without a title that an answer was saved into (TTL-1)."""
        for row in saved:
            thread = self.state.threads[row.thread_id]
            known = {each.thread_id for each in self.state.untitled if each.client == id(self)}
            if wanted is not None and row.role == "assistant" and not thread.title and thread.id not in known:
                self.state.untitled.append(Untitled(id(self), thread.id, wanted))

    def settle(self, *, timeout: float = 60.0) -> None:
        """See protocols.Memory. The model makes its titles here."""
        if not self.capabilities.titles:
            raise Unsupported("settle", clause="CAP-1")
        with self._lock:
            for begun in self.begun():
                self.make_title(begun)

    def begun(self) -> list[Untitled]:
        """The titles that this client has begun, which are begun no more."""
        own = [each for each in self.state.untitled if each.client == id(self)]
        self.state.untitled = [each for each in self.state.untitled if each.client != id(self)]
        return own

    def make_title(self, begun: Untitled) -> None:
        """Make and write one title; whatever goes wrong leaves the thread as it is (TTL-1b)."""
        titler, messages = self.runtime.titler, [row.message for row in self.state.rows.get(begun.thread_id, ())]
        if titler is None or begun.thread_id not in self.state.threads:
            return
        with contextlib.suppress(Exception):
            wanted = begun.wanted
            title = titler(messages[:TITLE_MESSAGES], model=wanted.model, instructions=wanted.instructions)
            self.entitle(*parse_title_thread(begun.thread_id, title))

    def list_threads(
        self,
        *,
        filter: ThreadFilter | None = None,
        order_by: OrderBy | None = None,
        page: int = 0,
        per_page: int | Literal[False] | None = None,
    ) -> ThreadPage:
        """See protocols.Memory."""
        asked = parse_list_threads(filter, order_by, page, per_page)
        with self._lock:
            return self.listed(asked)

    def listed(self, asked: ListThreads) -> ThreadPage:
        """The page of threads that a checked request asks for."""
        matching = [
            thread
            for thread in self.state.threads.values()
            if asked.resource_id in (None, thread.resource_id)
            and all(condition.matches(thread.metadata) for condition in asked.metadata)
        ]
        matching.sort(key=lambda thread: (getattr(thread, asked.field), thread.id), reverse=not asked.ascending)
        total = len(matching)
        return ThreadPage(
            threads=tuple(copy_thread(thread) for thread in _slice(matching, asked.page.offset, asked.page.limit)),
            total=total,
            page=asked.page.page,
            per_page=asked.page.per_page,
            has_more=asked.page.has_more(total),
        )

    def delete_thread(self, thread_id: str) -> bool:
        """See protocols.Memory."""
        identifier(thread_id, "thread_id")
        with self._lock:
            if self.state.threads.pop(thread_id, None) is None:
                return False
            for row in self.state.rows.pop(thread_id):
                self._forget(row.message.id)
            self.state.note(("thread", thread_id), None)
            self._event("thread_deleted", thread_id)
            return True

    def clone_thread(self, source_thread_id: str, **options: Unpack[CloneOptions]) -> CloneResult:
        """See protocols.Memory."""
        if not self.capabilities.clone:
            raise Unsupported("clone_thread", clause="CAP-1")
        asked = parse_clone(source_thread_id, **options)
        with self._lock:
            return self._clone(asked)

    def _clone(self, asked: Clone) -> CloneResult:
        source = self._thread(asked.source, "CLN-1")
        now = self._now()
        thread_id = self.runtime.new_id() if asked.id is None else asked.id
        if thread_id in self.state.threads:
            raise AlreadyExists(f"thread {thread_id!r} exists", clause="CLN-1")
        rows = [
            row
            for row in self.state.rows[source.id]
            if asked.window.holds(row.message.created_at)
            and (asked.message_ids is None or row.message.id in asked.message_ids)
        ]
        if asked.limit is not None:
            rows = rows[len(rows) - min(asked.limit, len(rows)) :]
        thread = Thread(
            id=thread_id,
            resource_id=source.resource_id if asked.resource_id is None else asked.resource_id,
            title=f"Clone of {source.title}" if asked.title is None else asked.title,
            metadata=bounded(copy_json(source.metadata) | asked.metadata),
            created_at=now,
            updated_at=now,
            clone=CloneInfo(source.id, now, rows[-1].message.id if rows else None),
        )
        self.state.threads[thread_id] = thread
        self.state.rows[thread_id] = []
        id_map: dict[str, str] = {}
        for row in rows:
            new_id = self.runtime.new_id()
            id_map[row.message.id] = new_id
            message = msgspec.structs.replace(
                copy_message(row.message), id=new_id, thread_id=thread_id, resource_id=thread.resource_id
            )
            self._insert(Row(message, self._position()))
            embedded = self.state.embedded.get(row.message.id)
            if embedded is not None:
                self.state.embedded[new_id] = Embedded(embedded.vector, snapshot(thread, message))
        self.state.note(("thread", thread_id), self.remembered(("thread", source.id)))
        self._event("cloned", thread_id)
        return CloneResult(copy_thread(thread), self._named(id_map.values()), id_map)

    def list_clones(self, source_thread_id: str, *, resource_id: str | None = None) -> tuple[Thread, ...]:
        """See protocols.Memory."""
        if not self.capabilities.clone:
            raise Unsupported("list_clones", clause="CAP-1")
        identifier(source_thread_id, "source_thread_id")
        if resource_id is not None:
            identifier(resource_id, "resource_id")
        with self._lock:
            clones = [
                copy_thread(thread)
                for thread in self.state.threads.values()
                if thread.clone is not None
                and thread.clone.source_thread_id == source_thread_id
                and resource_id in (None, thread.resource_id)
            ]
            return tuple(sorted(clones, key=lambda thread: (thread.created_at, thread.id)))

    # Messages

    def save_messages(
        self, messages: Sequence[NewMessage], *, thread_config: MemoryConfig | None = None
    ) -> tuple[Message, ...]:
        """See protocols.Memory."""
        try:
            batch = parse_save(messages)
        except InvalidRequest as error:
            error.also = (*error.also, *self._wrong_beside(messages))
            raise
        on = embeds(self.options, thread_config)
        wanted = self.titling(thread_config)
        with self._lock:
            embedder = self._embedder() if on else None
            self._check(batch)
            vectors = self._embed(embedder, {row.id: row.content for row in batch})
            now = self._now()
            touched: set[str] = set()
            for row in batch:
                touched |= self._save(row, now)
            self._reindex((row.id for row in batch), vectors)
            self._touch(touched, now)
            saved = self._named(row.id for row in batch)
            self.begin_titles(wanted, saved)
            return saved

    def titling(self, thread_config: MemoryConfig | None) -> TitleGeneration | None:
        """What titles are made with, if any (TTL-1c)."""
        wanted = titling(self.options, thread_config)
        if wanted is not None and not self.capabilities.titles:
            raise Unsupported("generate_title", clause="CAP-1")
        if wanted is not None and self.runtime.titler is None:
            raise ConfigurationError("there is no titler", hint="give the runtime one", clause="TTL-1c")
        return wanted

    def _check(self, batch: Sequence[MessageRow]) -> None:
        """Refuse the batch as saving its messages one by one would; any error among them is a right answer."""
        owners: dict[str, str] = {}
        errors: list[ThreadNotFound | OwnershipMismatch] = []
        for row in batch:
            thread = self.state.threads.get(row.thread_id)
            if thread is None:
                errors.append(ThreadNotFound(f"thread {row.thread_id!r} does not exist", clause="MSG-1"))
                continue
            if row.resource_id not in (None, thread.resource_id):
                errors.append(OwnershipMismatch(f"thread {thread.id!r} is another resource's", clause="MSG-1"))
            old = self.state.by_id.get(row.id)
            owner = owners.get(row.id) or (old.message.resource_id if old else thread.resource_id)
            if owner != thread.resource_id:
                errors.append(OwnershipMismatch(f"message {row.id!r} is another resource's", clause="MSG-2"))
            owners[row.id] = owner
        if errors:
            errors[0].also = tuple({error.code for error in errors})
            raise errors[0]

    def _wrong_beside(self, messages: object) -> tuple[str, ...]:
        """Codes of what is wrong with the valid messages of an invalid batch."""
        rows: list[MessageRow] = []
        for item in cast("Sequence[object]", messages) if isinstance(messages, list | tuple) else ():
            with contextlib.suppress(InvalidRequest):
                rows += parse_save([item])
        try:
            self._check(rows)
        except (ThreadNotFound, OwnershipMismatch) as error:
            return error.also
        return ()

    def _save(self, row: MessageRow, now: datetime) -> set[str]:
        """Insert, replace or move one message; the threads it touched."""
        thread = self.state.threads[row.thread_id]
        old = self._remove(row.id)
        came_from = old.message.thread_id if old else None
        position = old.position if old and came_from == row.thread_id else self._position()
        created_at = row.created_at or (old.message.created_at if old else now)
        message = Message(row.id, row.thread_id, thread.resource_id, row.role, row.content, row.metadata, created_at)
        self._insert(Row(message, position))
        kind: EventKind = "inserted" if old is None else "replaced" if came_from == row.thread_id else "moved"
        self._event(kind, row.thread_id, row.id)
        return {row.thread_id} if came_from is None else {row.thread_id, came_from}

    def update_messages(
        self, updates: Sequence[MessageUpdate], *, thread_config: MemoryConfig | None = None
    ) -> tuple[Message, ...]:
        """See protocols.Memory."""
        changes = parse_updates(updates)
        on = embeds(self.options, thread_config)
        with self._lock:
            embedder = self._embedder() if on else None
            now = self._now()
            changed: dict[str, Message] = {}
            reindexed: dict[str, Content] = {}
            for change in changes:
                row = self.state.by_id.get(change.id)
                if row is not None:
                    new = change.apply(changed.get(change.id, row.message))
                    bounded(new.metadata)
                    changed[change.id] = new
                    if change.id in reindexed or change.content is not None or change.role is not None:
                        reindexed[change.id] = new.content
            vectors = self._embed(embedder, reindexed)
            for message in changed.values():
                old = self._remove(message.id)
                assert old is not None
                # The change's own values become the store's, so they are copied (VAL-4).
                self._insert(Row(copy_message(message), old.position))
                self._event("updated", message.thread_id, message.id)
            self._reindex(reindexed, vectors)
            self._touch({message.thread_id for message in changed.values()}, now)
            return self._named(changed)

    def delete_messages(self, ids: Sequence[str]) -> int:
        """See protocols.Memory."""
        named = parse_ids(ids)
        with self._lock:
            now = self._now()
            touched: set[str] = set()
            deleted = 0
            for message_id in named:
                row = self._remove(message_id)
                if row is not None:
                    self.state.embedded.pop(message_id, None)
                    deleted += 1
                    touched.add(row.message.thread_id)
                    self._event("deleted", row.message.thread_id, message_id)
            self._touch(touched, now)
            return deleted

    def clear_messages(self, thread_id: str) -> int:
        """See protocols.Memory."""
        identifier(thread_id, "thread_id")
        with self._lock:
            self._thread(thread_id, "MSG-5a")
            now = self._now()
            rows = self.state.rows[thread_id]
            self.state.rows[thread_id] = []
            for row in rows:
                self._forget(row.message.id)
            self._event("cleared", thread_id)
            if rows:
                self._touch({thread_id}, now)
            return len(rows)

    # Recall

    def recall(self, thread_id: str, **options: Unpack[RecallOptions]) -> RecallResult:
        """See protocols.Memory."""
        with self._lock, refusing(lambda: self._wrong_recall(thread_id, **options)):
            asked = parse_recall(thread_id, self.options, **options)
            embedder = None
            if asked.search is not None:
                embedder = self._embedder()
                if asked.search.scope == "resource" and not self.capabilities.resource_scope:
                    raise Unsupported("semantic recall over a resource", clause="CAP-1")
            self.own(asked)
            hits = () if embedder is None else self.hits(asked, embedder)
            return self.result(asked, hits)

    def result(self, asked: Recall, hits: Sequence[Hit]) -> RecallResult:
        """The answer that goes with these hits."""
        matching = self.matching(asked)
        ordered = matching if asked.ascending else matching[::-1]
        page = _slice(ordered, asked.page.offset, asked.page.limit)
        return RecallResult(
            messages=tuple(copy_message(row.message) for row in self._union(asked, page, hits)),
            total=len(matching),
            page=asked.page.page,
            per_page=asked.page.per_page,
            has_more=asked.page.has_more(len(matching)),
            hits=tuple(hits),
        )

    def hits(self, asked: Recall, embedder: Embedder) -> tuple[Hit, ...]:
        """The best top_k candidates at or above the threshold (SEM-2)."""
        assert asked.search is not None
        query = embed(embedder, [asked.search.text], "query", self.metric)[0]
        ranked = self.ranked(asked, query)
        return tuple(hit for hit in ranked if asked.search.threshold is None or hit.score >= asked.search.threshold)[
            : asked.search.top_k
        ]

    def candidates(self, asked: Recall) -> list[Row]:
        """The live embedded messages that may be hits, in the order of ORD-1 (SEM-2, SEM-5)."""
        assert asked.search is not None
        rows = [
            row
            for message_id, row in self.state.by_id.items()
            if message_id in self.state.embedded
            and (
                row.message.thread_id == asked.thread_id
                if asked.search.scope == "thread"
                else row.message.resource_id == asked.resource_id
            )
            and asked.window.holds(row.message.created_at)
            and all(condition.matches(row.message.metadata) for condition in asked.metadata)
            and asked.search.filter.matches(self.state.embedded[message_id].snapshot)
        ]
        return sorted(rows, key=_across_threads)

    def ranked(self, asked: Recall, query: Vector) -> list[Hit]:
        """All candidates, best first, equal vectors in the order of ORD-1."""
        candidates = self.candidates(asked)
        if not candidates:
            return []
        stored = np.array([self.state.embedded[row.message.id].vector for row in candidates], dtype=np.float32)
        found = [
            Hit(row.message.id, float(score))
            for row, score in zip(candidates, scores(self.metric, query, stored), strict=True)
        ]
        return sorted(found, key=lambda hit: -hit.score)

    @property
    def metric(self) -> Metric:
        """The metric of the messages' embeddings (SEM-6)."""
        return "cosine" if self.index is None else self.index.metric

    def semantic_index(self) -> IndexDescription | None:
        """See protocols.Memory."""
        if self.index is None:
            return None
        index = self.index
        return IndexDescription(index.name, index.dimension, index.metric, index.config, len(self.state.embedded))

    def _embedder(self) -> Embedder:
        if self.runtime.embedder is None or self.index is None:
            raise ConfigurationError("no vector index and embedder", clause="SEM-1")
        return self.runtime.embedder

    def _embed(self, embedder: Embedder | None, contents: Mapping[str, Content]) -> dict[str, Vector]:
        """The vectors of the messages that have a text, by id; none without an embedder."""
        if embedder is None:
            return {}
        texts = {message_id: words for message_id, given in contents.items() if (words := text_of(given)) is not None}
        return dict(zip(texts, embed(embedder, [*texts.values()], "document", self.metric), strict=True))

    def _reindex(self, ids: Iterable[str], vectors: Mapping[str, Vector]) -> None:
        """Give the messages these embeddings, and the rest of the ids none (SEM-4)."""
        for message_id in ids:
            vector = vectors.get(message_id)
            if vector is None:
                self.state.embedded.pop(message_id, None)
            else:
                message = self.state.by_id[message_id].message
                self.state.embedded[message_id] = Embedded(
                    tuple(float(component) for component in vector),
                    snapshot(self.state.threads[message.thread_id], message),
                )

    def _wrong_recall(self, thread_id: str, **options: Unpack[RecallOptions]) -> Iterator[Callable[[], object]]:
        """What is wrong with one argument alone, where others are wrong too."""
        given: dict[str, Any] = {**options}
        for together in (("include",), ("filter",), ("order_by",), ("thread_config",), ("page", "per_page")):
            alone = {name: given[name] for name in together if name in given}
            yield lambda alone=alone: parse_recall("t", self.options, **alone)
        yield lambda: parse_recall(thread_id, self.options)
        if options.get("vector_search_string") is not None:
            asked = given | {"page": 0, "per_page": None, "include": None, "filter": None, "order_by": None}
            yield lambda: parse_recall("t", self.options, **asked).search and self._embedder()
        yield lambda: self.own(parse_recall(thread_id, self.options, resource_id=options.get("resource_id")))

    def own(self, asked: Recall) -> None:
        """Refuse a request that names a resource which does not own the thread (ORD-6)."""
        if asked.resource_id is None:
            return
        thread = self._thread(asked.thread_id, "ORD-6")
        if thread.resource_id != asked.resource_id:
            raise OwnershipMismatch(f"thread {thread.id!r} is another resource's", clause="ORD-6")

    def matching(self, asked: Recall) -> list[Row]:
        """The thread's rows that satisfy the filters, in order (TIM-1, FLT-1)."""
        rows = self.state.rows.get(asked.thread_id, [])
        if asked.window.start is not None or asked.window.end is not None:
            rows = [row for row in rows if asked.window.holds(row.message.created_at)]
        for condition in asked.metadata:
            rows = [row for row in rows if condition.matches(row.message.metadata)]
        return rows

    def window(self, asked: Recall, entry: Inclusion) -> list[Row]:
        """The included message and its neighbours in thread order; empty when the entry is skipped (INC-1)."""
        row = self.state.by_id.get(entry.id)
        if row is None or row.message.thread_id != entry.thread_id:
            return []
        if asked.resource_id not in (None, self.state.threads[entry.thread_id].resource_id):
            return []
        rows, index = self.state.place(row)
        return rows[max(0, index - entry.before) : index + entry.after + 1]

    def hit_window(self, asked: Recall, hit: Hit) -> list[Row]:
        """A hit with its neighbours, unfiltered, in its own thread (SEM-3)."""
        assert asked.search is not None
        rows, index = self.state.place(self.state.by_id[hit.id])
        return rows[max(0, index - asked.search.before) : index + asked.search.after + 1]

    def _union(self, asked: Recall, page: list[Row], hits: Sequence[Hit]) -> list[Row]:
        """page ∪ windows, each row once, in the requested order (INC-2, SEM-3)."""
        if not asked.include and not hits:
            return page
        rows = {row.message.id: row for row in page}
        for entry in asked.include:
            rows |= {row.message.id: row for row in self.window(asked, entry)}
        for hit in hits:
            rows |= {row.message.id: row for row in self.hit_window(asked, hit)}
        return sorted(rows.values(), key=_across_threads, reverse=not asked.ascending)

    # Working memory

    def get_working_memory(self, thread_id: str, **options: Unpack[WorkingOptions]) -> str | None:
        """See protocols.Memory."""
        if not self.capabilities.working_memory:
            raise Unsupported("get_working_memory", clause="CAP-1")
        with refusing(lambda: self._wrong_working(thread_id, options)):
            asked = parse_get_working(thread_id, self.options, **options)
        with self._lock:
            owner = self.working_owner(asked)
            return None if owner is None else self.remembered(owner)

    def update_working_memory(self, thread_id: str, value: str, **options: Unpack[WorkingOptions]) -> None:
        """See protocols.Memory."""
        if not self.capabilities.working_memory:
            raise Unsupported("update_working_memory", clause="CAP-1")
        with refusing(lambda: (*self._wrong_working(thread_id, options), lambda: text(value, "value"))):
            asked, checked = parse_update_working(thread_id, value, self.options, **options)
        with self._lock:
            owner = self.working_owner(asked)
            if owner is None:
                raise ThreadNotFound(f"thread {thread_id!r} does not exist", clause="WM-1")
            self.remember(owner, checked)

    def working_owner(self, asked: WorkingRequest) -> Owner | None:
        """Whose working memory is asked for; None when the thread is unknown (WM-1b)."""
        thread = self.state.threads.get(asked.thread_id)
        if asked.resource_id is not None:
            thread = self._thread(asked.thread_id, "WM-1b")
            if thread.resource_id != asked.resource_id:
                raise OwnershipMismatch(f"thread {thread.id!r} is another resource's", clause="WM-1b")
        if thread is None:
            return None
        return asked.scope, thread.id if asked.scope == "thread" else thread.resource_id

    def remembered(self, owner: Owner) -> str | None:
        """The value that an owner has."""
        return self.state.notes[owner[0]].get(owner[1])

    def remember(self, owner: Owner, value: str) -> None:
        """Replace the value that an owner has."""
        self.state.note(owner, value)

    def _wrong_working(self, thread_id: str, options: WorkingOptions) -> Iterator[Callable[[], object]]:
        """What is wrong with one argument alone, where others are wrong too."""
        yield lambda: identifier(thread_id, "thread_id")
        yield lambda: identifier(options.get("resource_id") or "r", "resource_id")
        yield lambda: working(self.options, options.get("thread_config"))

    def close(self) -> None:
        """See protocols.Memory."""
        with self._lock:
            self.begun()

    # The state

    def _now(self) -> datetime:
        return instant(self.runtime.clock(), "the clock")

    def _event(self, kind: EventKind, thread_id: str, message_id: str | None = None) -> None:
        self.events.append(Event(kind, thread_id, message_id))

    def _thread(self, thread_id: str, clause: str) -> Thread:
        thread = self.state.threads.get(thread_id)
        if thread is None:
            raise ThreadNotFound(f"thread {thread_id!r} does not exist", clause=clause)
        return thread

    def _position(self) -> int:
        self.state.next_position += 1
        return self.state.next_position

    def _remove(self, message_id: str) -> Row | None:
        row = self.state.by_id.pop(message_id, None)
        if row is not None:
            rows, index = self.state.place(row)
            del rows[index]
        return row

    def _forget(self, message_id: str) -> None:
        del self.state.by_id[message_id]
        self.state.embedded.pop(message_id, None)

    def _insert(self, row: Row) -> None:
        insort(self.state.rows[row.message.thread_id], row, key=lambda other: other.rank)
        self.state.by_id[row.message.id] = row

    def _named(self, ids: Iterable[str]) -> tuple[Message, ...]:
        """The rows of these ids, each once, in order of first occurrence."""
        rows = (self.state.by_id.get(message_id) for message_id in dict.fromkeys(ids))
        return tuple(copy_message(row.message) for row in rows if row is not None)

    def _touch(self, threads: Iterable[str], now: datetime) -> None:
        for thread_id in threads:
            old = self.state.threads[thread_id]
            self.state.threads[thread_id] = msgspec.structs.replace(old, updated_at=max(old.updated_at, now))


def _across_threads(row: Row) -> tuple[datetime, str, int]:
    """The sort key of rows of several threads (ORD-1)."""
    return row.message.created_at, row.message.thread_id, row.position


def _slice(rows: list[Any], offset: int, limit: int | None) -> list[Any]:
    return rows if limit is None else rows[offset : offset + limit]


class ModelNamespace:
    """A namespace that lives in the model; implements interpreter.Namespace."""

    def __init__(self, capabilities: Capabilities = MODEL_CAPABILITIES) -> None:
        self.capabilities = capabilities
        self.state = State()
        self.indexes = IndexState()
        self.events: list[Event] = []

    def open_memory(self, runtime: Runtime, config: MemoryConfig, client: int) -> Memory:
        """See interpreter.Namespace."""
        if not self.capabilities.storage:
            raise Unsupported("threads and messages", clause="CAP-1")
        return Model(runtime, config, self.state, self.events, self.capabilities)

    def open_index(self, runtime: Runtime, client: int) -> VectorIndex:
        """See interpreter.Namespace."""
        if not self.capabilities.vectors:
            raise Unsupported("vector indices", clause="CAP-1")
        return ModelIndex(self.indexes, self.capabilities)

    def victim(self, runtime: Runtime, config: MemoryConfig, target: Target) -> ModelVictim:
        """See interpreter.Namespace. Every call of the model is done at once: none dies in the middle."""
        if target == "memory":
            return ModelVictim(self.open_memory(runtime, config, 0))
        return ModelVictim(self.open_index(runtime, 0))


class ModelVictim(msgspec.Struct, frozen=True):
    """A client whose process dies; `died` is what this does to what the namespace holds."""

    client: Memory | VectorIndex
    died: Callable[[], None] = lambda: None

    def kill(self) -> None:
        """See interpreter.Victim."""
        self.died()
