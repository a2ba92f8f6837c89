"""Memory in a libSQL file: nine tables to a namespace, every question asked in SQL.

libSQL is SQLite underneath; what its Python binding does differently is noted where it matters.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Literal, Unpack, cast

import msgspec

from ..spec.capabilities import Capabilities
from ..spec.embedding import embed, snapshot, text_of
from ..spec.errors import (
    AlreadyExists,
    ConfigurationError,
    OwnershipMismatch,
    ThreadNotFound,
)
from ..spec.filters import Window
from ..spec.index_requests import SEMANTIC_INDEX, parse_semantic_index
from ..spec.protocols import Embedder, Memory, Runtime, VectorIndex
from ..spec.requests import (
    Clone,
    CloneOptions,
    MessageChange,
    MessageRow,
    Page,
    Recall,
    RecallOptions,
    Semantic,
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
)
from ..spec.types import (
    CloneInfo,
    CloneResult,
    Content,
    Hit,
    IndexConfig,
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
)
from ..spec.values import bounded, identifier, instant
from ..spec.vectors import Metric, Vector
from ..spec.working_memory import WorkingOptions, WorkingRequest, parse_get_working, parse_update_working
from .libsql_client import LISTED, Client, Row, connect, path_of, to_json
from .libsql_index import LibsqlIndex, drop_indexes
from .libsql_search import (
    CAPABILITIES,
    Condition,
    compiled,
    holding,
    nearest,
    searched,
    to_bytes,
    tokens,
    true_scores,
)
from .provision import Provisioners
from .provision.libsql import MEMORY, PROVISIONERS
from .titles import Titles

# The schema. In all SQL of this file `$` stands for the namespace and an underscore.
#
# - Instants are integer milliseconds since 1970. The binding passes an int beyond 32 bits as a REAL;
#   below 2^53 that is exact, and the column's INTEGER affinity stores and compares it as the integer.
# - Strings compare by their UTF-8 bytes (BINARY, the default), which is code point order.
# - `position` is not an INTEGER PRIMARY KEY: as the rowid it could not end a row-value search of an index.
# - The *_values tables hold the top-level scalars of an object as tokens (libsql_search): those of the
#   metadata, which itself is opaque JSON, and those of the snapshot that an embedding was made with.
# - `searched` and `length` are what the engine compares of an embedding (libsql_search).

SCHEMA = (
    """
    create table if not exists $threads (
        id text not null primary key,
        resource_id text not null,
        title text not null,
        metadata text not null,
        created_at integer not null,
        updated_at integer not null,
        cloned_from text,
        cloned_at integer,
        cloned_last text
    )
    """,
    "create index if not exists $threads_cloned on $threads (cloned_from) where cloned_from is not null",
    "create index if not exists $threads_created on $threads (created_at, id)",
    "create index if not exists $threads_updated on $threads (updated_at, id)",
    "create index if not exists $threads_created_of on $threads (resource_id, created_at, id)",
    "create index if not exists $threads_updated_of on $threads (resource_id, updated_at, id)",
    """
    create table if not exists $thread_values (
        thread_id text not null,
        key text not null,
        value text not null,
        primary key (thread_id, key)
    ) without rowid
    """,
    "create index if not exists $thread_values_search on $thread_values (key, value)",
    """
    create table if not exists $messages (
        id text not null primary key,
        thread_id text not null,
        position integer not null unique,
        resource_id text not null,
        role text not null,
        content text not null,
        metadata text not null,
        created_at integer not null
    )
    """,
    "create index if not exists $messages_order on $messages (thread_id, created_at, position)",
    """
    create table if not exists $message_values (
        position integer not null,
        thread_id text not null,
        key text not null,
        value text not null,
        primary key (position, key)
    ) without rowid
    """,
    "create index if not exists $message_values_search on $message_values (thread_id, key, value)",
    """
    create table if not exists $embedding_index (
        dimension integer not null,
        metric text not null,
        type text not null
    )
    """,
    """
    create table if not exists $embeddings (
        position integer primary key,
        searched blob not null,
        length real not null,
        vector blob not null
    )
    """,
    """
    create table if not exists $embedding_values (
        position integer not null,
        key text not null,
        value text not null,
        primary key (position, key)
    ) without rowid
    """,
    """
    create table if not exists $working_memory (
        scope text not null,
        owner text not null,
        value text not null,
        primary key (scope, owner)
    )
    """,
)
EMBEDDINGS = ("$embeddings", "$embedding_values")
OF_MESSAGES = ("$message_values", *EMBEDDINGS)
"""What stands beside a message, under its position."""

TABLES = (*OF_MESSAGES, "$embedding_index", "$messages", "$thread_values", "$threads", "$working_memory")
THREAD = "id, resource_id, title, metadata, created_at, updated_at, cloned_from, cloned_at, cloned_last"
MESSAGE = "id, thread_id, position, resource_id, role, content, metadata, created_at"

NEIGHBOURS = 2**31 - 1
"""What a LIMIT can be given: a larger int would be bound as a REAL, which it refuses."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
CONTENT = cast("msgspec.json.Decoder[Content]", msgspec.json.Decoder(cast(Any, Content)))


EMBEDDED_WITH = "exists (select 1 from $embedding_values held where held.position = $embeddings.position and {})"
"""That an embedding's snapshot has a value."""


class LibsqlBackend:
    """Namespaces in one database file, or each client's own in memory."""

    name = "libsql"
    provisioners: ClassVar[Provisioners] = PROVISIONERS

    def capabilities(self, url: str) -> Capabilities:
        """See protocols.Backend."""
        kept = url != MEMORY
        return msgspec.structs.replace(CAPABILITIES, durable=kept, concurrent_clients=kept)

    def version(self, url: str) -> str:
        """See protocols.Backend."""
        connection = connect(MEMORY)
        sqlite = connection.execute("select sqlite_version()").fetchall()[0][0]
        connection.close()
        return f"libsql {version('libsql')} (SQLite {sqlite})"

    def open_memory(self, url: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> Memory:
        """See protocols.Backend."""
        return LibsqlMemory(path_of(url), namespace, runtime, config)

    def open_index(self, url: str, namespace: str, runtime: Runtime) -> VectorIndex:
        """See protocols.Backend."""
        return LibsqlIndex(path_of(url), namespace, runtime)

    def drop_namespace(self, url: str, namespace: str) -> None:
        """See protocols.Backend."""
        path = path_of(url)
        if path == MEMORY or not Path(path).exists():
            return
        client = Client(path, namespace, Runtime())
        try:
            with client.writing():
                for table in TABLES:
                    client.execute(f"drop table if exists {table}")
                drop_indexes(client)
        finally:
            client.close()


class LibsqlMemory:
    """One client of a namespace's threads and messages; implements protocols.Memory."""

    def __init__(self, path: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> None:
        self._runtime = runtime
        self._options = parse_config(config, "config")
        embedder = runtime.embedder
        self._index = (
            None if embedder is None else parse_semantic_index(self._options, embedder.dimension, CAPABILITIES)
        )
        self._metric: Metric = "cosine" if self._index is None else self._index.metric
        self._titles = Titles(self, runtime, self._options)
        self._client = Client(path, namespace, runtime)
        self._client.create(SCHEMA, self._bind_embeddings)

    def _bind_embeddings(self) -> None:
        """Hold the namespace to one kind of embedding: that of the first client with an embedder (SEM-6)."""
        if self._index is None:
            return
        wanted = self._index.dimension, self._index.metric
        found = self._client.rows("select dimension, metric from $embedding_index")
        if not found:
            self._client.execute("insert into $embedding_index values (?, ?, ?)", [*wanted, self._index.config.type])
        elif found[0] != wanted:
            raise ConfigurationError(
                f"the embeddings here have {found[0][0]} dimensions and the metric {found[0][1]}",
                hint="open with the embedder and metric that made them, or use another namespace",
                clause="SEM-6",
            )

    def close(self) -> None:
        """See protocols.Memory."""
        self._titles.close()
        self._client.close()

    def settle(self, *, timeout: float = 60.0) -> None:
        """See protocols.Memory."""
        self._titles.settle(timeout)

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
        with self._client.writing():
            thread_id = self._runtime.new_id() if new.id is None else new.id
            if self._thread(thread_id) is not None:
                raise AlreadyExists(f"thread {thread_id!r} exists", clause="THR-1")
            at = _instant(self._now()) if new.created_at is None else new.created_at
            thread = Thread(thread_id, new.resource_id, new.title, new.metadata, at, at)
            self._insert_thread(thread)
            return thread

    def get_thread(self, thread_id: str, *, resource_id: str | None = None) -> Thread | None:
        """See protocols.Memory."""
        identifier(thread_id, "thread_id")
        if resource_id is not None:
            identifier(resource_id, "resource_id")
        with self._client.reading():
            thread = self._thread(thread_id)
        return thread if thread is not None and resource_id in (None, thread.resource_id) else None

    def update_thread(
        self, thread_id: str, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Thread:
        """See protocols.Memory."""
        thread_id, title, changes = parse_update_thread(thread_id, title, metadata)
        with self._client.writing():
            old = self._existing_thread(thread_id, "THR-3")
            merged = bounded(old.metadata | changes)
            self._client.execute(
                "update $threads set title = ?, metadata = ?, updated_at = max(updated_at, ?) where id = ?",
                (old.title if title is None else title, to_json(merged), self._now(), thread_id),
            )
            self._write_thread_values(thread_id, merged)
            return self._existing_thread(thread_id, "THR-3")

    def title_thread(self, thread_id: str, title: str) -> bool:
        """See protocols.Memory."""
        thread_id, title = parse_title_thread(thread_id, title)
        with self._client.writing():
            titled = self._client.execute(
                "update $threads set title = ?, updated_at = max(updated_at, ?) where id = ? and title = ''",
                (title, self._now(), thread_id),
            )
            return titled.rowcount > 0

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
        where, values = ["true"], list[object]()
        if asked.resource_id is not None:
            where.append("resource_id = ?")
            values.append(asked.resource_id)
        if asked.metadata:
            held = holding("thread_id", "$thread_values", asked.metadata, Condition("true", []))
            where.append(f"id in ({held.sql})")
            values += held.values
        matching = f"from $threads where {' and '.join(where)}"
        direction = "asc" if asked.ascending else "desc"
        with self._client.reading():
            total: int = self._client.rows(f"select count(*) {matching}", values)[0][0]
            rows = self._slice(
                f"select {THREAD} {matching} order by {asked.field} {direction}, id {direction}",
                values,
                asked.page,
                total,
            )
        return ThreadPage(
            threads=tuple(_thread(row) for row in rows),
            total=total,
            page=asked.page.page,
            per_page=asked.page.per_page,
            has_more=asked.page.has_more(total),
        )

    def delete_thread(self, thread_id: str) -> bool:
        """See protocols.Memory."""
        identifier(thread_id, "thread_id")
        with self._client.writing():
            self._forget("thread_id = ?", thread_id)
            self._client.execute("delete from $messages where thread_id = ?", [thread_id])
            self._client.execute("delete from $thread_values where thread_id = ?", [thread_id])
            self._client.execute("delete from $working_memory where scope = 'thread' and owner = ?", [thread_id])
            return self._client.execute("delete from $threads where id = ?", [thread_id]).rowcount > 0

    def clone_thread(self, source_thread_id: str, **options: Unpack[CloneOptions]) -> CloneResult:
        """See protocols.Memory."""
        asked = parse_clone(source_thread_id, **options)
        with self._client.writing():
            source = self._existing_thread(asked.source, "CLN-1")
            now = _instant(self._now())
            thread_id = self._runtime.new_id() if asked.id is None else asked.id
            if self._thread(thread_id) is not None:
                raise AlreadyExists(f"thread {thread_id!r} exists", clause="CLN-1")
            old_ids = self._cloned_ids(asked)
            thread = Thread(
                id=thread_id,
                resource_id=source.resource_id if asked.resource_id is None else asked.resource_id,
                title=f"Clone of {source.title}" if asked.title is None else asked.title,
                metadata=bounded(source.metadata | asked.metadata),
                created_at=now,
                updated_at=now,
                clone=CloneInfo(source.id, now, old_ids[-1] if old_ids else None),
            )
            self._insert_thread(thread)
            id_map = {old_id: self._runtime.new_id() for old_id in old_ids}
            messages = self._copy_messages(thread, id_map)
            self._client.execute(
                """
                insert into $working_memory (scope, owner, value)
                select scope, ?, value from $working_memory where scope = 'thread' and owner = ?
                """,
                [thread.id, source.id],
            )
            return CloneResult(thread, messages, id_map)

    def _cloned_ids(self, asked: Clone) -> list[str]:
        """The ids of the messages to clone, in the thread's order (CLN-1)."""
        where, values = _within(asked.window)
        if asked.message_ids is not None:
            where, values = f"{where} and id in {LISTED}", [*values, to_json(asked.message_ids)]
        rows = self._client.rows(
            f"""
            select id from $messages where thread_id = ? and {where}
            order by created_at desc, position desc limit ?
            """,
            [asked.source, *values, NEIGHBOURS if asked.limit is None else min(asked.limit, NEIGHBOURS)],
        )
        return [id for (id,) in reversed(rows)]

    def _copy_messages(self, thread: Thread, id_map: Mapping[str, str]) -> tuple[Message, ...]:
        """Copy the messages into a new thread, in this order, with what stands beside them; the copies."""
        turns = list(enumerate(id_map.items(), self._last_position() + 1))
        self._client.execute_many(
            f"""
            insert into $messages ({MESSAGE})
            select ?, ?, ?, ?, role, content, metadata, created_at from $messages where id = ?
            """,
            ((new_id, thread.id, position, thread.resource_id, old_id) for position, (old_id, new_id) in turns),
        )
        self._client.execute_many(
            """
            insert into $message_values (position, thread_id, key, value)
            select ?, ?, key, value from $messages join $message_values using (position) where id = ?
            """,
            ((position, thread.id, old_id) for position, (old_id, _) in turns),
        )
        self._client.execute_many(
            """
            insert into $embeddings (position, searched, length, vector)
            select ?, searched, length, vector from $messages join $embeddings using (position) where id = ?
            """,
            ((position, old_id) for position, (old_id, _) in turns),
        )
        copies = self._named(list(id_map.values()))
        embedded = self._client.rows(
            f"select id from $messages join $embeddings using (position) where id in {LISTED}",
            [to_json([message.id for message in copies])],
        )
        self._write_snapshots(copies, {id for (id,) in embedded})
        return copies

    def list_clones(self, source_thread_id: str, *, resource_id: str | None = None) -> tuple[Thread, ...]:
        """See protocols.Memory."""
        identifier(source_thread_id, "source_thread_id")
        if resource_id is not None:
            identifier(resource_id, "resource_id")
        with self._client.reading():
            rows = self._client.rows(
                f"""
                select {THREAD} from $threads where cloned_from = ?1 and (?2 is null or resource_id = ?2)
                order by created_at, id
                """,
                [source_thread_id, resource_id],
            )
        return tuple(_thread(row) for row in rows)

    # Messages

    def save_messages(
        self, messages: Sequence[NewMessage], *, thread_config: MemoryConfig | None = None
    ) -> tuple[Message, ...]:
        """See protocols.Memory."""
        batch = parse_save(messages)
        titling = self._titles.wanted(thread_config)
        embedder = self._embedder() if embeds(self._options, thread_config) else None
        texts = {} if embedder is None else _texts((row.id, row.content) for row in batch)
        vectors: dict[str, Vector] = {}
        if texts:
            with self._client.reading():  # what is refused is refused before the embedder is asked
                self._check(batch)
            vectors = self._embed(texts.values())
        ids = list(dict.fromkeys(row.id for row in batch))
        with self._client.writing():
            owners, came_from = self._check(batch)
            now = self._now()
            self._forget(f"id in {LISTED}", to_json(ids))
            # An id that is new to its thread takes the position given; one that is in it keeps its own (ORD-1).
            self._client.execute_many(
                f"""
                insert into $messages ({MESSAGE}) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, coalesce(?8, ?9))
                on conflict (id) do update set
                    position = case when thread_id = excluded.thread_id then position else excluded.position end,
                    thread_id = excluded.thread_id,
                    role = excluded.role,
                    content = excluded.content,
                    metadata = excluded.metadata,
                    created_at = coalesce(?8, created_at)
                """,
                (
                    (
                        row.id,
                        row.thread_id,
                        position,
                        owners[row.thread_id],
                        row.role,
                        to_json(row.content),
                        to_json(row.metadata),
                        None if row.created_at is None else _milliseconds(row.created_at),
                        now,
                    )
                    for position, row in enumerate(batch, self._last_position() + 1)
                ),
            )
            self._write_message_values({row.id: row.metadata for row in batch})
            self._touch({*owners, *came_from}, now)
            saved = self._named(ids)
            self._write_embeddings(saved, {id: vectors[words] for id, words in texts.items()})
        self._titles.begin(titling, saved)
        return saved

    def _check(self, batch: Sequence[MessageRow]) -> tuple[dict[str, str], set[str]]:
        """Refuse the batch as saving its messages one by one would (MSG-1, MSG-2).

        Returns its threads with their owners, and the threads that its messages are in now.
        """
        threads, ids = {row.thread_id for row in batch}, {row.id for row in batch}
        owners: dict[str, str] = dict(
            self._client.rows(f"select id, resource_id from $threads where id in {LISTED}", [to_json(threads)])
        )
        saved = self._client.rows(
            f"select id, resource_id, thread_id from $messages where id in {LISTED}", [to_json(ids)]
        )
        of_message = {id: owner for id, owner, _ in saved}
        errors: list[ThreadNotFound | OwnershipMismatch] = []
        for row in batch:
            owner = owners.get(row.thread_id)
            if owner is None:
                errors.append(ThreadNotFound(f"thread {row.thread_id!r} does not exist", clause="MSG-1"))
                continue
            if row.resource_id not in (None, owner):
                errors.append(OwnershipMismatch(f"thread {row.thread_id!r} is another resource's", clause="MSG-1"))
            if of_message.setdefault(row.id, owner) != owner:
                errors.append(OwnershipMismatch(f"message {row.id!r} is another resource's", clause="MSG-2"))
        if errors:
            errors[0].also = tuple(sorted({error.code for error in errors}))
            raise errors[0]
        return owners, {thread_id for _, _, thread_id in saved}

    def update_messages(
        self, updates: Sequence[MessageUpdate], *, thread_config: MemoryConfig | None = None
    ) -> tuple[Message, ...]:
        """See protocols.Memory."""
        changes = parse_updates(updates)
        embedder = self._embedder() if embeds(self._options, thread_config) else None
        vectors: dict[str, Vector] = {}
        while True:
            with self._client.writing():
                changed = self._changed(changes)
                # Content and role are what an embedding is made with (SEM-5).
                remade = {each.id for each in changes if each.content is not None or each.role is not None}
                reindexed = [id for id in changed if id in remade]
                texts = {} if embedder is None else _texts((id, changed[id].content) for id in reindexed)
                if vectors.keys() >= set(texts.values()):
                    self._write_changed(changed)
                    self._forget(f"id in {LISTED}", to_json(reindexed), EMBEDDINGS)
                    self._write_embeddings(changed.values(), {id: vectors[words] for id, words in texts.items()})
                    return self._named(list(changed))
            # The embedder is asked outside the transaction. Should the texts change meanwhile, it is asked again.
            vectors |= self._embed(texts.values())

    def _changed(self, changes: Sequence[MessageChange]) -> dict[str, Message]:
        """The existing messages named, by id, as the changes leave them (MSG-4)."""
        changed = {message.id: message for message in self._named(list(dict.fromkeys(each.id for each in changes)))}
        for change in changes:
            if change.id in changed:
                changed[change.id] = change.apply(changed[change.id])
                bounded(changed[change.id].metadata)
        return changed

    def _write_changed(self, changed: Mapping[str, Message]) -> None:
        self._client.execute_many(
            "update $messages set role = ?, content = ?, metadata = ? where id = ?",
            ((each.role, to_json(each.content), to_json(each.metadata), each.id) for each in changed.values()),
        )
        self._forget(f"id in {LISTED}", to_json(list(changed)), ["$message_values"])
        self._write_message_values({message.id: message.metadata for message in changed.values()})
        self._touch({message.thread_id for message in changed.values()}, self._now())

    def delete_messages(self, ids: Sequence[str]) -> int:
        """See protocols.Memory."""
        named = parse_ids(ids)
        with self._client.writing():
            touched = self._client.rows(
                f"select distinct thread_id from $messages where id in {LISTED}", [to_json(named)]
            )
            self._forget(f"id in {LISTED}", to_json(named))
            deleted = self._client.execute(f"delete from $messages where id in {LISTED}", [to_json(named)]).rowcount
            self._touch((thread_id for (thread_id,) in touched), self._now())
            return deleted

    def clear_messages(self, thread_id: str) -> int:
        """See protocols.Memory."""
        identifier(thread_id, "thread_id")
        with self._client.writing():
            self._existing_thread(thread_id, "MSG-5a")
            self._forget("thread_id = ?", thread_id)
            cleared = self._client.execute("delete from $messages where thread_id = ?", [thread_id]).rowcount
            if cleared:
                self._touch([thread_id], self._now())
            return cleared

    # Recall

    def recall(self, thread_id: str, **options: Unpack[RecallOptions]) -> RecallResult:
        """See protocols.Memory."""
        asked = parse_recall(thread_id, self._options, **options)
        query = None if asked.search is None else self._query(asked, asked.search)
        where, values = _matching(asked, IN_THREAD._replace(values=[asked.thread_id]))
        direction = "asc" if asked.ascending else "desc"
        with self._client.reading():
            self._check_owner(asked)
            total: int = self._client.rows(f"select count(*) from $messages where {where}", values)[0][0]
            rows = self._slice(
                f"""
                select {MESSAGE} from $messages where {where}
                order by created_at {direction}, position {direction}
                """,
                values,
                asked.page,
                total,
            )
            hits = [] if asked.search is None or query is None else self._hits(asked, asked.search, query)
            if asked.include or hits:
                rows = self._with_windows(asked, rows, [row for _, row in hits])
        return RecallResult(
            messages=tuple(_message(row) for row in rows),
            total=total,
            page=asked.page.page,
            per_page=asked.page.per_page,
            has_more=asked.page.has_more(total),
            hits=tuple(Hit(row[0], score) for score, row in hits),
        )

    def _query(self, asked: Recall, search: Semantic) -> Vector:
        """The vector to search for. The embedder is asked outside the transaction, and not by a stranger."""
        embedder = self._embedder()
        with self._client.reading():
            self._check_owner(asked)
        return embed(embedder, [search.text], "query", self._metric)[0]

    def _hits(self, asked: Recall, search: Semantic, query: Vector) -> list[tuple[float, Row]]:
        """The score and row of each hit, best first, ties in the order of ORD-1 (SEM-2)."""
        scope = (
            IN_THREAD._replace(values=[asked.thread_id])
            if search.scope == "thread"
            else IN_RESOURCE._replace(values=[asked.resource_id])
        )
        now, then = _matching(asked, scope), compiled(search.filter, EMBEDDED_WITH)
        candidates = Condition(
            f"position in (select position from $messages where {now.sql}) and {then.sql}", now.values + then.values
        )
        positions = nearest(self._client, "$embeddings", "position", candidates, self._metric, query, search.top_k)
        found = self._client.rows(
            f"select {MESSAGE}, vector from $messages join $embeddings using (position) where position in {LISTED}",
            [to_json(positions)],
        )
        scores = true_scores(self._metric, query, [vector for *_, vector in found])
        hits = [(score, row[:-1]) for score, row in zip(scores, found, strict=True)]
        hits.sort(key=lambda hit: (-hit[0], *_rank(hit[1])))
        return [hit for hit in hits[: search.top_k] if search.threshold is None or hit[0] >= search.threshold]

    def _check_owner(self, asked: Recall) -> None:
        """Refuse a request that names a resource which does not own the thread (ORD-6)."""
        if asked.resource_id is not None:
            thread = self._existing_thread(asked.thread_id, "ORD-6")
            if thread.resource_id != asked.resource_id:
                raise OwnershipMismatch(f"thread {thread.id!r} is another resource's", clause="ORD-6")

    def _with_windows(self, asked: Recall, page: list[Row], hits: list[Row]) -> list[Row]:
        """page ∪ includes ∪ windows of hits, each row once, in the requested order (INC-2, SEM-3)."""
        rows = {row[0]: row for row in page}
        for entry in asked.include:
            # With resource_id, a thread of another resource is never entered (INC-1).
            included = self._client.rows(
                f"""
                select {MESSAGE} from $messages
                where id = ?1 and thread_id = ?2 and (?3 is null or resource_id = ?3)
                """,
                [entry.id, entry.thread_id, asked.resource_id],
            )
            for row in included:
                rows |= {each[0]: each for each in self._window(row, entry.before, entry.after)}
        if asked.search is not None:
            for row in hits:
                rows |= {each[0]: each for each in self._window(row, asked.search.before, asked.search.after)}
        return sorted(rows.values(), key=_rank, reverse=not asked.ascending)

    def _window(self, row: Row, before: int, after: int) -> list[Row]:
        """The row and its neighbours in its thread (INC-1)."""
        created_at, thread_id, position = _rank(row)
        earlier = self._client.rows(
            f"""
            select {MESSAGE} from $messages where thread_id = ? and (created_at, position) < (?, ?)
            order by created_at desc, position desc limit ?
            """,
            [thread_id, created_at, position, min(before, NEIGHBOURS)],
        )
        later = self._client.rows(
            f"""
            select {MESSAGE} from $messages where thread_id = ? and (created_at, position) > (?, ?)
            order by created_at, position limit ?
            """,
            [thread_id, created_at, position, min(after, NEIGHBOURS)],
        )
        return [*earlier, row, *later]

    def semantic_index(self) -> IndexDescription | None:
        """See protocols.Memory."""
        if self._index is None:
            return None
        with self._client.reading():
            [(dimension, metric, kind)] = self._client.rows("select dimension, metric, type from $embedding_index")
            [(count,)] = self._client.rows("select count(*) from $embeddings")
        return IndexDescription(SEMANTIC_INDEX, dimension, metric, IndexConfig(type=kind), count)

    # Working memory

    def get_working_memory(self, thread_id: str, **options: Unpack[WorkingOptions]) -> str | None:
        """See protocols.Memory."""
        asked = parse_get_working(thread_id, self._options, **options)
        with self._client.reading():
            owner = self._working_owner(asked)
            rows = self._client.rows("select value from $working_memory where scope = ? and owner = ?", owner)
        return rows[0][0] if rows else None

    def update_working_memory(self, thread_id: str, value: str, **options: Unpack[WorkingOptions]) -> None:
        """See protocols.Memory."""
        asked, checked = parse_update_working(thread_id, value, self._options, **options)
        with self._client.writing():
            self._existing_thread(thread_id, "WM-1")
            self._client.execute(
                """
                insert into $working_memory (scope, owner, value) values (?, ?, ?)
                on conflict (scope, owner) do update set value = excluded.value
                """,
                (*self._working_owner(asked), checked),
            )

    def _working_owner(self, asked: WorkingRequest) -> tuple[str, str | None]:
        """Whose working memory is asked for: that of a thread or of its resource; nobody's if it is unknown (WM-1b)."""
        thread = self._thread(asked.thread_id)
        if asked.resource_id is not None and thread is None:
            raise ThreadNotFound(f"thread {asked.thread_id!r} does not exist", clause="WM-1b")
        if thread is None:
            return asked.scope, None
        if asked.resource_id not in (None, thread.resource_id):
            raise OwnershipMismatch(f"thread {thread.id!r} is another resource's", clause="WM-1b")
        return asked.scope, thread.id if asked.scope == "thread" else thread.resource_id

    # Parts of several calls

    def _now(self) -> int:
        return _milliseconds(instant(self._runtime.clock(), "the clock"))

    def _thread(self, thread_id: str) -> Thread | None:
        rows = self._client.rows(f"select {THREAD} from $threads where id = ?", [thread_id])
        return _thread(rows[0]) if rows else None

    def _existing_thread(self, thread_id: str, clause: str) -> Thread:
        thread = self._thread(thread_id)
        if thread is None:
            raise ThreadNotFound(f"thread {thread_id!r} does not exist", clause=clause)
        return thread

    def _named(self, ids: Sequence[str]) -> tuple[Message, ...]:
        """The rows of these ids, in this order."""
        rows = self._client.rows(
            f"""
            select {MESSAGE} from (select key as turn, value as named from json_each(?))
            join $messages on id = named order by turn
            """,
            [to_json(ids)],
        )
        return tuple(_message(row) for row in rows)

    def _slice(self, select: str, values: Sequence[object], page: Page, total: int) -> list[Row]:
        """The page of an ordered select of `total` rows. Past its end nothing is asked, however far that is."""
        limit = total - page.offset if page.limit is None else min(page.limit, total - page.offset)
        return self._client.rows(f"{select} limit ? offset ?", [*values, limit, page.offset]) if limit > 0 else []

    def _touch(self, thread_ids: Iterable[str], now: int) -> None:
        self._client.execute(
            f"update $threads set updated_at = max(updated_at, ?) where id in {LISTED}",
            [now, to_json(list(thread_ids))],
        )

    def _insert_thread(self, thread: Thread) -> None:
        clone = thread.clone
        self._client.execute(
            f"insert into $threads ({THREAD}) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                thread.id,
                thread.resource_id,
                thread.title,
                to_json(thread.metadata),
                _milliseconds(thread.created_at),
                _milliseconds(thread.updated_at),
                *((None, None, None) if clone is None else _clone_values(clone)),
            ],
        )
        self._write_thread_values(thread.id, thread.metadata)

    def _write_thread_values(self, thread_id: str, metadata: Metadata) -> None:
        self._client.execute("delete from $thread_values where thread_id = ?", [thread_id])
        self._client.execute_many(
            "insert into $thread_values (thread_id, key, value) values (?, ?, ?)",
            ((thread_id, *pair) for pair in tokens(metadata)),
        )

    def _last_position(self) -> int:
        return self._client.rows("select coalesce(max(position), 0) from $messages")[0][0]

    def _forget(self, where: str, value: str, tables: Sequence[str] = OF_MESSAGES) -> None:
        """Delete what stands beside the messages under a condition."""
        for table in tables:
            self._client.execute(
                f"delete from {table} where position in (select position from $messages where {where})", [value]
            )

    def _write_message_values(self, by_id: Mapping[str, Metadata]) -> None:
        self._client.execute_many(
            """
            insert into $message_values (position, thread_id, key, value)
            select position, thread_id, ?, ? from $messages where id = ?
            """,
            ((*pair, id) for id, metadata in by_id.items() for pair in tokens(metadata)),
        )

    # Embeddings

    def _embedder(self) -> Embedder:
        if self._runtime.embedder is None:
            raise ConfigurationError("no vector index and embedder", clause="SEM-1")
        return self._runtime.embedder

    def _embed(self, texts: Iterable[str]) -> dict[str, Vector]:
        """The vectors of texts, by text; EmbedderError."""
        asked = list(dict.fromkeys(texts))
        return dict(zip(asked, embed(self._embedder(), asked, "document", self._metric), strict=True))

    def _write_embeddings(self, messages: Iterable[Message], vectors: Mapping[str, Vector]) -> None:
        """Give those of the messages that have a vector here their embedding and snapshot (SEM-4, SEM-5)."""
        self._client.execute_many(
            """
            insert into $embeddings (position, searched, length, vector)
            select position, ?, ?, ? from $messages where id = ?
            """,
            ((*searched(self._metric, vector), to_bytes(vector), id) for id, vector in vectors.items()),
        )
        self._write_snapshots(messages, vectors.keys())

    def _write_snapshots(self, messages: Iterable[Message], embedded: Container[str]) -> None:
        """Store what a semantic filter sees of those of the messages that are embedded (SEM-5)."""
        threads: dict[str, Thread] = {}
        rows: list[Row] = []
        for message in messages:
            if message.id in embedded:
                if message.thread_id not in threads:
                    threads[message.thread_id] = self._existing_thread(message.thread_id, "SEM-5")
                kept = snapshot(threads[message.thread_id], message)
                rows += ((*pair, message.id) for pair in tokens(kept))
        self._client.execute_many(
            """
            insert into $embedding_values (position, key, value)
            select position, ?, ? from $messages where id = ?
            """,
            rows,
        )


IN_THREAD = Condition("thread_id = ?", [])
IN_RESOURCE = Condition("thread_id in (select id from $threads where resource_id = ?)", [])


def _matching(asked: Recall, scope: Condition) -> Condition:
    """The condition on $messages that a scope and the request's filters make (TIM-1, FLT-1)."""
    within = _within(asked.window)
    where, values = f"{scope.sql} and {within.sql}", scope.values + within.values
    if asked.metadata:
        held = holding("position", "$message_values", asked.metadata, scope)
        where, values = f"{where} and position in ({held.sql})", values + held.values
    return Condition(where, values)


def _within(window: Window) -> Condition:
    """The condition that a window makes on created_at (TIM-1)."""
    where, values = ["true"], list[object]()
    if window.start is not None:
        where.append(f"created_at {'>' if window.start_exclusive else '>='} ?")
        values.append(_milliseconds(window.start))
    if window.end is not None:
        where.append(f"created_at {'<' if window.end_exclusive else '<='} ?")
        values.append(_milliseconds(window.end))
    return Condition(" and ".join(where), values)


def _texts(contents: Iterable[tuple[str, Content]]) -> dict[str, str]:
    """By id the texts that are to be embedded: the last of each id, none for a blank one (SEM-4)."""
    return {id: words for id, content in dict(contents).items() if (words := text_of(content)) is not None}


def _thread(row: Row) -> Thread:
    id, resource_id, title, metadata, created_at, updated_at, *clone = row
    return Thread(
        id,
        resource_id,
        title,
        msgspec.json.decode(metadata),
        _instant(created_at),
        _instant(updated_at),
        None if clone[0] is None else CloneInfo(clone[0], _instant(clone[1]), clone[2]),
    )


def _clone_values(clone: CloneInfo) -> Row:
    return clone.source_thread_id, _milliseconds(clone.cloned_at), clone.last_message_id


def _message(row: Row) -> Message:
    id, thread_id, _, resource_id, role, content, metadata, created_at = row
    return Message(
        id,
        thread_id,
        resource_id,
        role,
        CONTENT.decode(content),
        msgspec.json.decode(metadata),
        _instant(created_at),
    )


def _rank(row: Row) -> tuple[int, str, int]:
    """The sort key of a message row; a str compares by code point, as in the engine (ORD-1)."""
    _, thread_id, position, _, _, _, _, created_at = row
    return created_at, thread_id, position


def _milliseconds(at: datetime) -> int:
    return (at - EPOCH) // MILLISECOND


def _instant(milliseconds: int) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)
