"""A memory on a document engine: threads and messages as documents, written one by one, found by sorted searches.

There are no transactions: what a call has to do at once is one write of one document where that can be (creating,
clearing, deleting a thread), and is undone where it cannot (document_writes.py). Documents are read by id as they
are now; before a search the engine is told to let it see all that was written (CON-1). Semantic recall is in
document_embeddings.py.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Literal, TypeVar, Unpack

import msgspec

from ..spec.embedding import embed, snapshot
from ..spec.errors import (
    AlreadyExists,
    ConfigurationError,
    OwnershipMismatch,
    ThreadNotFound,
    answered,
)
from ..spec.protocols import Embedder, Runtime
from ..spec.requests import (
    Clone,
    CloneOptions,
    MessageChange,
    MessageRow,
    RecallOptions,
    embeds,
    parse_clone,
    parse_create_thread,
    parse_ids,
    parse_list_threads,
    parse_recall,
    parse_save,
    parse_title_thread,
    parse_update_thread,
    parse_updates,
)
from ..spec.types import (
    CloneInfo,
    CloneResult,
    Content,
    IndexDescription,
    MemoryConfig,
    Message,
    MessageUpdate,
    NewMessage,
    OrderBy,
    RecallResult,
    Thread,
    ThreadFilter,
    ThreadPage,
)
from ..spec.values import bounded, copy_message, identifier, instant
from ..spec.vectors import Vector
from ..spec.working_memory import WorkingOptions, WorkingRequest, parse_get_working, parse_update_working
from .document_embeddings import Embeddings, copied
from .document_filters import Clause, equal, millis, within
from .document_layout import (
    EMBEDDING,
    WORKING,
    Names,
    fresh,
    message_of,
    message_source,
    thread_of,
    thread_source,
)
from .document_recall import IN_ORDER, MessageReads
from .document_saves import check, entries, plan
from .document_search import Slice, read
from .document_vectors import Scored
from .document_writes import LOOKUPS, Done, Gone, MessageWrites, Seen, attempts, incarnation
from .documents import Document, Documents, Json, RequestFailed, Row, Version, Write, digest
from .titles import Titles

T = TypeVar("T")


class Engine(msgspec.Struct, frozen=True):
    """What a memory embeds with, and where it keeps the embeddings."""

    embedder: Embedder
    semantic: Embeddings


class DocumentMemory:
    """One client. Implements protocols.Memory."""

    def __init__(
        self,
        documents: Documents,
        names: Names,
        runtime: Runtime,
        options: MemoryConfig,
        semantic: Embeddings | None,
    ) -> None:
        self._documents = documents
        self._names = names
        self._runtime = runtime
        self._options = options
        self._semantic = semantic
        self._writes = MessageWrites(documents, names)
        self._reads = MessageReads(documents, names)
        self._titles = Titles(self, runtime, options)
        self._closed = False
        self._lock = threading.RLock()

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
        with self._session():
            thread_id = self._runtime.new_id() if new.id is None else new.id
            at = self._now() if new.created_at is None else new.created_at
            thread = Thread(thread_id, new.resource_id, new.title, new.metadata, at, at)
            if not self._put_thread(thread_source(thread, fresh(), 0), None):
                raise AlreadyExists(f"thread {thread_id!r} exists", clause="THR-1")
            return thread

    def get_thread(self, thread_id: str, *, resource_id: str | None = None) -> Thread | None:
        """See protocols.Memory."""
        identifier(thread_id, "thread_id")
        if resource_id is not None:
            identifier(resource_id, "resource_id")
        with self._session():
            found = self._thread(thread_id)
            if found is None or resource_id not in (None, found.source["resource_id"]):
                return None
            return thread_of(found.source)

    def update_thread(
        self, thread_id: str, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Thread:
        """See protocols.Memory."""
        thread_id, title, changes = parse_update_thread(thread_id, title, metadata)

        def change(found: Document) -> tuple[Json, Thread]:
            old = thread_of(found.source)
            new = msgspec.structs.replace(
                old,
                title=old.title if title is None else title,
                metadata=bounded(old.metadata | changes),
                updated_at=max(old.updated_at, self._now()),
            )
            held = found.source.get(WORKING)
            return thread_source(new, incarnation(found), found.source["next_position"], held), new

        with self._session():
            return self._change_thread(thread_id, change, "THR-3")

    def title_thread(self, thread_id: str, title: str) -> bool:
        """See protocols.Memory."""
        thread_id, title = parse_title_thread(thread_id, title)

        def change(found: Document) -> tuple[Json | None, bool]:
            if found.source["title"]:
                return None, False
            now = max(found.source["updated_at"], millis(self._now()))
            return found.source | {"title": title, "updated_at": now}, True

        with self._session():
            try:
                return self._change_thread(thread_id, change, "TTL-1a")
            except ThreadNotFound:
                return False

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
        clauses = equal(asked.metadata, "tokens")
        if asked.resource_id is not None:
            clauses.append({"term": {"resource_id": asked.resource_id}})
        with self._session():
            self._documents.refresh(self._names.threads)
            (found,) = read(
                self._documents,
                [
                    Slice(
                        index=self._names.threads,
                        clauses=clauses,
                        sort=(asked.field, "id"),
                        ascending=asked.ascending,
                        offset=asked.page.offset,
                        limit=asked.page.limit,
                        exclude=(WORKING,),
                    )
                ],
            )
        return ThreadPage(
            threads=tuple(thread_of(row.source) for row in found.rows),
            total=found.total,
            page=asked.page.page,
            per_page=asked.page.per_page,
            has_more=asked.page.has_more(found.total),
        )

    def delete_thread(self, thread_id: str) -> bool:
        """See protocols.Memory."""
        identifier(thread_id, "thread_id")
        with self._session():
            for _ in attempts():
                found = self._thread(thread_id)
                if found is None:
                    return False
                (outcome,) = self._documents.write(
                    self._names.threads, [Write("delete", digest(thread_id), None, found.version)]
                )
                if outcome.done:
                    self._sweep(incarnation(found))
                    return True
                if not outcome.conflict:
                    raise RequestFailed(f"thread {thread_id!r} was not deleted: {outcome.reason}")
        raise AssertionError

    def clone_thread(self, source_thread_id: str, **options: Unpack[CloneOptions]) -> CloneResult:
        """See protocols.Memory."""
        asked = parse_clone(source_thread_id, **options)
        with self._session():
            return self._clone(asked)

    def _clone(self, asked: Clone) -> CloneResult:
        thread_id = self._runtime.new_id() if asked.id is None else asked.id
        origin, taken = self._documents.fetch(
            [(self._names.threads, digest(asked.source)), (self._names.threads, digest(thread_id))]
        )
        if origin is None:
            raise ThreadNotFound(f"thread {asked.source!r} does not exist", clause="CLN-1")
        if taken is not None:
            raise AlreadyExists(f"thread {thread_id!r} exists", clause="CLN-1")
        source, now = thread_of(origin.source), self._now()
        rows = self._selected(asked, origin)
        thread = Thread(
            id=thread_id,
            resource_id=source.resource_id if asked.resource_id is None else asked.resource_id,
            title=f"Clone of {source.title}" if asked.title is None else asked.title,
            metadata=bounded(source.metadata | asked.metadata),
            created_at=now,
            updated_at=now,
            clone=CloneInfo(source.id, now, rows[-1].source["id"] if rows else None),
        )
        born = fresh()
        cloned: dict[str, Message] = {}
        sources: dict[str, Json | None] = {}
        for position, row in enumerate(rows):
            message = msgspec.structs.replace(
                message_of(row.source), id=self._runtime.new_id(), thread_id=thread.id, resource_id=thread.resource_id
            )
            embedding = row.source.get(EMBEDDING)
            if embedding is not None:
                embedding = copied(embedding, snapshot(thread, message))
            cloned[row.source["id"]] = message
            sources[message.id] = message_source(message, born, position, embedding)
        done: dict[str, Done] = {}
        try:
            self._create(sources, done)
            self._runtime.fault("before commit")
            # Its messages become visible with the thread.
            if not self._put_thread(thread_source(thread, born, len(rows), origin.source.get(WORKING)), None):
                raise AlreadyExists(f"thread {thread.id!r} exists", clause="CLN-1")
        except BaseException:
            self._writes.undo(done)
            raise
        self._runtime.fault("after commit")
        return CloneResult(thread, tuple(cloned.values()), {old: new.id for old, new in cloned.items()})

    def _selected(self, asked: Clone, origin: Document) -> tuple[Row, ...]:
        """The messages to be cloned, in order."""
        clauses: list[Clause] = [{"term": {"incarnation": incarnation(origin)}}, *within(asked.window, "created_at")]
        among: list[list[Clause]] = [[]]
        if asked.message_ids is not None:
            ids = [digest(each) for each in asked.message_ids]
            among = [[{"ids": {"values": ids[i : i + LOOKUPS]}}] for i in range(0, len(ids), LOOKUPS)]
        self._documents.refresh(self._names.messages)
        wanted = [
            Slice(self._names.messages, clauses + some, IN_ORDER, ascending=False, limit=asked.limit) for some in among
        ]
        newest = heapq.merge(*(each.rows for each in read(self._documents, wanted)), key=_sort, reverse=True)
        return tuple(itertools.islice(newest, asked.limit))[::-1]

    def _create(self, sources: Mapping[str, Json | None], done: dict[str, Done]) -> None:
        """Write messages whose ids no message has; AlreadyExists."""
        taken = self._writes.apply(sources, Seen({}, {}, {}), done)
        if taken:
            seen = self._writes.look((), taken)
            if seen.messages or self._writes.apply({each: sources[each] for each in taken}, seen, done):
                raise AlreadyExists("a message of the clone's exists", clause="CLN-1")

    def list_clones(self, source_thread_id: str, *, resource_id: str | None = None) -> tuple[Thread, ...]:
        """See protocols.Memory."""
        clauses: list[Clause] = [{"term": {"clone_source": identifier(source_thread_id, "source_thread_id")}}]
        if resource_id is not None:
            clauses.append({"term": {"resource_id": identifier(resource_id, "resource_id")}})
        with self._session():
            self._documents.refresh(self._names.threads)
            wanted = Slice(self._names.threads, clauses, ("created_at", "id"), ascending=True, exclude=(WORKING,))
            return tuple(thread_of(row.source) for row in read(self._documents, [wanted])[0].rows)

    def _thread(self, thread_id: str) -> Document | None:
        return self._documents.fetch([(self._names.threads, digest(thread_id))])[0]

    def _put_thread(self, source: Json, seen: Version | None) -> bool:
        """Create a thread, or replace the version seen; False when somebody else came first."""
        kind: Literal["create", "index"] = "create" if seen is None else "index"
        write = Write(kind, digest(source["id"]), source, seen)
        (outcome,) = self._documents.write(self._names.threads, [write])
        if not outcome.done and not outcome.conflict:
            raise RequestFailed(f"thread {source['id']!r} was refused: {outcome.reason}")
        return outcome.done

    def _change_thread(self, thread_id: str, change: Callable[[Document], tuple[Json | None, T]], clause: str) -> T:
        """Replace a thread's document by what `change` makes of it, if anything; again when it has changed meanwhile.

        What `change` gives beside. ThreadNotFound.
        """
        for _ in attempts():
            found = self._thread(thread_id)
            if found is None:
                raise ThreadNotFound(f"thread {thread_id!r} does not exist", clause=clause)
            source, result = change(found)
            if source is None:
                return result
            self._runtime.fault("before commit")
            if self._put_thread(source, found.version):
                self._runtime.fault("after commit")
                return result
        raise AssertionError

    def _sweep(self, gone: str) -> int:
        """Delete the messages of an incarnation that is no more; how many there were."""
        return self._documents.delete_matching(self._names.messages, {"term": {"incarnation": gone}})

    # Messages

    def save_messages(
        self, messages: Sequence[NewMessage], *, thread_config: MemoryConfig | None = None
    ) -> tuple[Message, ...]:
        """See protocols.Memory."""
        batch = parse_save(messages)
        on = embeds(self._options, thread_config)
        titling = self._titles.wanted(thread_config)
        with self._session():
            engine = self._embedder() if on else None
            saved = self._whole(lambda done: self._save(batch, engine, done))
        self._titles.begin(titling, saved)
        return saved

    def _save(self, batch: Sequence[MessageRow], engine: Engine | None, done: dict[str, Done]) -> tuple[Message, ...]:
        now = self._now()
        vectors: dict[str, Vector] | None = None
        first: dict[str, int] = {}
        threads: dict[str, str] = {}
        saved: dict[str, Message] = {}
        left = entries(batch)
        for _ in attempts():
            seen = self._writes.look((entry.row.thread_id for entry in left), (entry.row.id for entry in left))
            check(left, seen)
            if vectors is None:
                vectors = self._vectors(engine, {row.id: row.content for row in batch})
            places, touched = plan(left, seen, now)
            _note(threads, touched, seen)
            entered = {place.message.thread_id for place in places.values() if place.position is None}
            counts = Counter(row.thread_id for row in batch if row.thread_id in entered - first.keys())
            first |= self._writes.reserve(seen.threads, counts)
            sources: dict[str, Json | None] = {}
            for each, place in places.items():
                thread = seen.threads[place.message.thread_id]
                position = place.position
                if position is None:
                    position = first[place.message.thread_id] + place.ordinal
                embedding = _embedding(engine, vectors.get(each), thread, place.message)
                sources[each] = message_source(place.message, incarnation(thread), position, embedding)
                saved[each] = place.message
            overtaken = self._writes.apply(sources, seen, done)
            left = [entry for entry in left if entry.row.id in overtaken]
            if not left:
                break
        self._runtime.fault("before commit")
        self._writes.touch(threads, millis(now), {message.thread_id for message in saved.values()})
        return tuple(saved[each] for each in dict.fromkeys(row.id for row in batch))

    def update_messages(
        self, updates: Sequence[MessageUpdate], *, thread_config: MemoryConfig | None = None
    ) -> tuple[Message, ...]:
        """See protocols.Memory."""
        changes = parse_updates(updates)
        on = embeds(self._options, thread_config)
        with self._session():
            engine = self._embedder() if on else None
            return self._whole(lambda done: self._update(changes, engine, done))

    def _update(
        self, changes: Sequence[MessageChange], engine: Engine | None, done: dict[str, Done]
    ) -> tuple[Message, ...]:
        now = self._now()
        # A new content or role is indexed anew; other embeddings stay as they are (SEM-4, SEM-5).
        anew = {change.id for change in changes if change.content is not None or change.role is not None}
        threads: dict[str, str] = {}
        updated: dict[str, Message] = {}
        left = list(dict.fromkeys(change.id for change in changes))
        for _ in attempts():
            seen = self._writes.look((), left)
            changed = {each: message_of(doc.source) for each, doc in seen.messages.items()}
            for change in changes:
                if change.id in changed:
                    message = change.apply(changed[change.id])
                    bounded(message.metadata)
                    changed[change.id] = message
            vectors = self._vectors(engine, {each: changed[each].content for each in changed if each in anew})
            _note(threads, {message.thread_id for message in changed.values()}, seen)
            sources: dict[str, Json | None] = {}
            for each, message in changed.items():
                old, thread = seen.messages[each], seen.threads[message.thread_id]
                embedding = old.source.get(EMBEDDING)
                if each in anew:
                    embedding = _embedding(engine, vectors.get(each), thread, message)
                sources[each] = message_source(message, incarnation(thread), old.source["position"], embedding)
            overtaken = self._writes.apply(sources, seen, done)
            updated = {each: message for each, message in (updated | changed).items() if each not in overtaken}
            left = overtaken
            if not left:
                break
        self._runtime.fault("before commit")
        self._writes.touch(threads, millis(now), threads)
        named = dict.fromkeys(change.id for change in changes)
        return tuple(copy_message(updated[each]) for each in named if each in updated)

    def delete_messages(self, ids: Sequence[str]) -> int:
        """See protocols.Memory."""
        named = parse_ids(ids)
        with self._session():
            return self._whole(lambda done: self._delete(named, done))

    def _delete(self, ids: Sequence[str], done: dict[str, Done]) -> int:
        now = self._now()
        threads: dict[str, str] = {}
        left: Sequence[str] = ids
        for _ in attempts():
            seen = self._writes.look((), left)
            _note(threads, {doc.source["thread_id"] for doc in seen.messages.values()}, seen)
            left = self._writes.apply(dict.fromkeys(seen.messages), seen, done)
            if not left:
                break
        self._runtime.fault("before commit")
        # All are needed: of a thread that was cleared meanwhile, the messages are those that the clearing has counted.
        self._writes.touch(threads, millis(now), threads)
        return len(done)

    def clear_messages(self, thread_id: str) -> int:
        """See protocols.Memory."""
        identifier(thread_id, "thread_id")

        def clear(found: Document) -> tuple[Json | None, tuple[str, int]]:
            # Counted here: what writers do meanwhile changes the thread's document, and then this is done again. When
            # it is swept, some of it may have been taken away by those who came too late.
            old = incarnation(found)
            self._documents.refresh(self._names.messages)
            count = self._documents.count(self._names.messages, {"term": {"incarnation": old}})
            if not count:
                return None, (old, 0)
            now = max(found.source["updated_at"], millis(self._now()))
            return found.source | {"incarnation": fresh(), "updated_at": now}, (old, count)

        with self._session():
            gone, count = self._change_thread(thread_id, clear, "MSG-5a")
            if count:
                self._sweep(gone)
            return count

    # Recall

    def recall(self, thread_id: str, **options: Unpack[RecallOptions]) -> RecallResult:
        """See protocols.Memory."""
        asked = parse_recall(thread_id, self._options, **options)
        with self._session():
            search = None if asked.search is None else self._embedder()
            thread, included = self._reads.named(asked)
            query = None
            if search is not None and asked.search is not None:
                query = embed(search.embedder, [asked.search.text], "query", search.semantic.index.metric)[0]
            self._documents.refresh(self._names.messages)
            hits: list[Scored] = []
            if search is not None and query is not None:
                hits = self._reads.hits(asked, thread, search.semantic, query)
            return self._reads.result(asked, thread, included, hits)

    def semantic_index(self) -> IndexDescription | None:
        """See protocols.Memory."""
        with self._session():
            return None if self._semantic is None else self._semantic.describe()

    # Working memory

    def get_working_memory(self, thread_id: str, **options: Unpack[WorkingOptions]) -> str | None:
        """See protocols.Memory."""
        asked = parse_get_working(thread_id, self._options, **options)
        with self._session():
            thread = self._thread(thread_id)
            if thread is None and asked.resource_id is None:
                return None
            owner = _owner(asked, thread)
            if asked.scope == "resource":
                thread = self._documents.fetch([(self._names.resources, digest(owner))])[0]
        return None if thread is None else thread.source.get(WORKING)

    def update_working_memory(self, thread_id: str, value: str, **options: Unpack[WorkingOptions]) -> None:
        """See protocols.Memory."""
        asked, checked = parse_update_working(thread_id, value, self._options, **options)

        def write(found: Document) -> tuple[Json, None]:
            _owner(asked, found)
            return found.source | {WORKING: checked}, None

        with self._session():
            if asked.scope == "thread":
                self._change_thread(thread_id, write, "WM-1")
                return
            owner = _owner(asked, self._thread(thread_id))
            self._runtime.fault("before commit")
            document = Write("index", digest(owner), {"id": owner, WORKING: checked})
            (outcome,) = self._documents.write(self._names.resources, [document])
            if not outcome.done:
                raise RequestFailed(f"the working memory of {owner!r} was refused: {outcome.reason}")
            self._runtime.fault("after commit")

    def close(self) -> None:
        """See protocols.Memory."""
        self._titles.close()
        with self._lock:
            if not self._closed:
                self._closed = True
                self._documents.close()

    def settle(self, *, timeout: float = 60.0) -> None:
        """See protocols.Memory."""
        self._titles.settle(timeout)

    # The client

    @contextmanager
    def _session(self) -> Generator[None]:
        with self._lock:
            if self._closed:
                raise ConfigurationError("this client is closed", hint="open the namespace again")
            with answered(self._documents.lost):
                yield

    def _whole(self, work: Callable[[dict[str, Done]], T]) -> T:
        """Do work that notes what it has done, which is undone when it fails; again when a thread has gone away."""
        for _ in attempts():
            done: dict[str, Done] = {}
            try:
                result = work(done)
            except Gone as gone:
                self._writes.undo(done, gone.incarnations)
                continue
            except BaseException:
                self._writes.undo(done)
                raise
            self._runtime.fault("after commit")
            return result
        raise AssertionError

    def _embedder(self) -> Engine:
        if self._runtime.embedder is None or self._semantic is None:
            raise ConfigurationError("no vector index and embedder", clause="SEM-1")
        return Engine(self._runtime.embedder, self._semantic)

    def _vectors(self, engine: Engine | None, contents: Mapping[str, Content]) -> dict[str, Vector]:
        """The vectors of the messages that have a text, by id; none when nothing is to be embedded."""
        return {} if engine is None else engine.semantic.embed(engine.embedder, contents)

    def _now(self) -> datetime:
        return instant(self._runtime.clock(), "the clock")


def _owner(asked: WorkingRequest, thread: Document | None) -> str:
    """The resource that owns the thread, which is the one that is named, if any (WM-1, WM-1b)."""
    if thread is None:
        clause = "WM-1" if asked.resource_id is None else "WM-1b"
        raise ThreadNotFound(f"thread {asked.thread_id!r} does not exist", clause=clause)
    owner: str = thread.source["resource_id"]
    if asked.resource_id not in (None, owner):
        raise OwnershipMismatch(f"thread {asked.thread_id!r} is another resource's", clause="WM-1b")
    return owner


def _sort(row: Row) -> tuple[Any, ...]:
    return row.sort


def _note(threads: dict[str, str], touched: Iterable[str], seen: Seen) -> None:
    """Note the incarnations of threads that a call touches. Gone, when one has changed since it was noted."""
    for each in touched:
        now = incarnation(seen.threads[each])
        if threads.setdefault(each, now) != now:
            raise Gone({threads[each]})


def _embedding(engine: Engine | None, vector: Vector | None, thread: Document, message: Message) -> Json | None:
    """What is stored beside a message that is indexed; nothing when it has no vector."""
    if engine is None or vector is None:
        return None
    return engine.semantic.source(vector, snapshot(thread_of(thread.source), message))
