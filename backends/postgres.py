"""PostgreSQL: a namespace is a schema `memassay_<namespace>` of a few tables; every call is one transaction.

Every writer locks the threads it touches, in the order of their ids, before it looks at their messages: the lock
of a thread guards its messages, its count and its next position. Readers take one statement, hence one snapshot;
semantic recall takes two in one snapshot. Embeddings are in postgres_embeddings.py, the vector indices of the user's
own in postgres_index.py, what both do with vectors in postgres_vectors.py.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Literal, LiteralString, TypeVar, Unpack

import msgspec
import psycopg
from psycopg import sql

from ..spec.capabilities import Capabilities
from ..spec.embedding import embed, snapshot
from ..spec.errors import (
    AlreadyExists,
    ConfigurationError,
    InvalidRequest,
    OwnershipMismatch,
    ThreadNotFound,
    answered,
)
from ..spec.filters import Equals, Window
from ..spec.index_requests import NewIndex, parse_semantic_index
from ..spec.protocols import Embedder, Memory, Runtime, VectorIndex
from ..spec.requests import (
    Clone,
    CloneOptions,
    Inclusion,
    MessageChange,
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
)
from ..spec.types import (
    CloneInfo,
    CloneResult,
    Content,
    Hit,
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
from ..spec.values import bounded, copy_message, identifier, instant, show
from ..spec.vectors import Vector
from ..spec.working_memory import WorkingOptions, WorkingRequest, parse_get_working, parse_update_working
from .postgres_embeddings import Embedding, Embeddings, embedded
from .postgres_index import PostgresIndex
from .postgres_vectors import (
    INDEXES,
    VECTOR_CAPABILITIES,
    Connection,
    Search,
    adapt,
    condition,
    facets,
    json_text,
    lost,
)
from .provision import Provisioners
from .provision.postgres import CONTAINER, GIVEN, EmbeddedPostgres
from .titles import Titles

T = TypeVar("T")

# Instants are milliseconds since 1970: no time zone can touch them, and years 0001 to 9999 fit. Metadata is opaque
# JSON text, because jsonb changes numbers (VAL-3); facets holds its top-level scalars, for filters alone (FLT-1).
# The notes are working memory (WM-1). Ids compare by code point, which is what UTF-8 under COLLATE "C" does (ORD-1).
SCHEMA: LiteralString = (
    """
SELECT pg_advisory_xact_lock(hashtextextended({name}, 0));
CREATE SCHEMA IF NOT EXISTS {schema};
COMMENT ON SCHEMA {schema} IS {mark};
CREATE TABLE IF NOT EXISTS {schema}.threads (
    id             text COLLATE "C" PRIMARY KEY,
    resource_id    text COLLATE "C" NOT NULL,
    title          text NOT NULL,
    metadata       text NOT NULL,
    facets         jsonb NOT NULL,
    created_at     bigint NOT NULL,
    updated_at     bigint NOT NULL,
    message_count  bigint NOT NULL DEFAULT 0,
    next_position  bigint NOT NULL DEFAULT 0,
    clone_source   text COLLATE "C",
    cloned_at      bigint,
    clone_last     text
);
CREATE INDEX IF NOT EXISTS threads_by_resource ON {schema}.threads (resource_id, created_at, id);
CREATE INDEX IF NOT EXISTS threads_by_source ON {schema}.threads (clone_source) WHERE clone_source IS NOT NULL;
CREATE TABLE IF NOT EXISTS {schema}.messages (
    id           text COLLATE "C" PRIMARY KEY,
    thread_id    text COLLATE "C" NOT NULL REFERENCES {schema}.threads ON DELETE CASCADE,
    resource_id  text COLLATE "C" NOT NULL,
    role         text NOT NULL,
    content      text NOT NULL,
    metadata     text NOT NULL,
    facets       jsonb NOT NULL,
    created_at   bigint NOT NULL,
    position     bigint NOT NULL
);
CREATE INDEX IF NOT EXISTS messages_in_order ON {schema}.messages (thread_id, created_at, position);
CREATE TABLE IF NOT EXISTS {schema}.thread_notes (
    thread_id  text COLLATE "C" PRIMARY KEY REFERENCES {schema}.threads ON DELETE CASCADE,
    value      text NOT NULL
);
CREATE TABLE IF NOT EXISTS {schema}.resource_notes (
    resource_id  text COLLATE "C" PRIMARY KEY,
    value        text NOT NULL
);
"""
    + INDEXES
)
PREFIX = "memassay_"
MARK = "memassay, layout 2"
"""The comment on our schemas: what does not carry it is not ours and is neither opened nor dropped."""

THREAD: LiteralString = "id, resource_id, title, metadata, created_at, updated_at, clone_source, cloned_at, clone_last"
MESSAGE: LiteralString = "id, thread_id, resource_id, role, content, metadata, created_at"

# One array a column (_columns), so that a batch is one statement, whatever its size; in the binary format (%b), as
# psycopg escapes the elements of a textual array one by one.
ROWS: LiteralString = (
    "unnest(%b::text[], %b::text[], %b::text[], %b::text[], %b::text[], %b::text[], %b::text[]::jsonb[], %b::bigint[],"
    " %b::bigint[])"
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
MAX_BIGINT = 2**63 - 1

_content = msgspec.json.Decoder[Content](Content)


class PostgresBackend:
    """PostgreSQL 14 or later (run on 16 and 18), reached by a libpq URL (`postgresql://…`).

    A client keeps a session with settings of its own: a pooler in between must pool sessions, not transactions.
    """

    name = "postgres"
    provisioners: ClassVar[Provisioners] = {
        "url": GIVEN,
        "docker": CONTAINER,
        "embedded": EmbeddedPostgres(),
    }

    def capabilities(self, url: str) -> Capabilities:
        """See protocols.Backend."""
        with _connect(url) as connection:
            there = _one(connection, "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector')")[0]
        if there:
            return VECTOR_CAPABILITIES
        return msgspec.structs.replace(
            VECTOR_CAPABILITIES, vectors=False, semantic_recall=False, resource_scope=False, index_types=()
        )

    def version(self, url: str) -> str:
        """See protocols.Backend."""
        with _connect(url) as connection:
            return f"PostgreSQL {_one(connection, 'SHOW server_version')[0].split()[0]}"

    def open_memory(self, url: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> Memory:
        """See protocols.Backend."""
        schema, options = _schema(namespace), parse_config(config, "config")
        embedder = runtime.embedder
        index = None if embedder is None else parse_semantic_index(options, embedder.dimension, VECTOR_CAPABILITIES)
        with answered(lost):
            return PostgresMemory(lambda: _enter(url, schema), runtime, options, index)

    def open_index(self, url: str, namespace: str, runtime: Runtime) -> VectorIndex:
        """See protocols.Backend."""
        schema = _schema(namespace)
        with answered(lost):
            return PostgresIndex(lambda: _enter(url, schema), runtime)

    def drop_namespace(self, url: str, namespace: str) -> None:
        """See protocols.Backend."""
        schema = _schema(namespace)
        with _connect(url) as connection, connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (schema,))
            if _ours(connection, schema):
                connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))

    def namespaces(self, url: str) -> tuple[str, ...]:
        """The namespaces in the database. ConfigurationError when a schema has such a name and is not ours."""
        with _connect(url) as connection:
            found = connection.execute("SELECT nspname FROM pg_namespace WHERE starts_with(nspname, %s)", (PREFIX,))
            return tuple(name.removeprefix(PREFIX) for (name,) in found.fetchall() if _ours(connection, name))

    def reset_namespace(self, url: str, namespace: str) -> None:
        """Empty the namespace, which keeps its tables; nothing happens when there is none."""
        schema = _schema(namespace)
        with _connect(url) as connection, connection.transaction():
            if _ours(connection, schema):
                for table in ("threads", "resource_notes"):
                    connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(schema, table)))
                indexes = connection.execute(
                    sql.SQL("DELETE FROM {} RETURNING relation").format(sql.Identifier(schema, "indexes"))
                ).fetchall()
                if indexes:
                    tables = [sql.Identifier(schema, relation) for (relation,) in indexes]
                    connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.SQL(", ").join(tables)))


class PostgresMemory:
    """One client: one connection, used by one thread at a time; a new one when it was lost.

    Implements protocols.Memory.
    """

    def __init__(
        self, enter: Callable[[], Connection], runtime: Runtime, options: MemoryConfig, index: NewIndex | None
    ) -> None:
        self._enter = enter
        self._runtime = runtime
        self._options = options
        self._index = index
        self._closed = False
        self._lock = threading.RLock()
        self._connection, self._semantic = self._connected()
        self._titles = Titles(self, runtime, options)

    def _connected(self) -> tuple[Connection, Embeddings | None]:
        """A connection, and the embeddings by it."""
        connection = self._enter()
        try:
            return connection, None if self._index is None else Embeddings(connection, self._index)
        except BaseException:
            connection.close()
            raise

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
        with self._session() as connection:
            thread_id = self._runtime.new_id() if new.id is None else new.id
            at = self._now() if new.created_at is None else new.created_at
            inserted = self._statement(
                connection,
                "INSERT INTO threads (id, resource_id, title, metadata, facets, created_at, updated_at)"
                " VALUES (%(id)s, %(resource)s, %(title)s, %(metadata)s, %(facets)s::jsonb, %(at)s, %(at)s)"
                " ON CONFLICT DO NOTHING",
                {
                    "id": thread_id,
                    "resource": new.resource_id,
                    "title": new.title,
                    "metadata": json_text(new.metadata),
                    "facets": facets(new.metadata),
                    "at": _milliseconds(at),
                },
            )
            if not inserted:
                raise AlreadyExists(f"thread {thread_id!r} exists", clause="THR-1")
            return Thread(thread_id, new.resource_id, new.title, new.metadata, at, at)

    def get_thread(self, thread_id: str, *, resource_id: str | None = None) -> Thread | None:
        """See protocols.Memory."""
        identifier(thread_id, "thread_id")
        if resource_id is not None:
            identifier(resource_id, "resource_id")
        with self._session() as connection:
            row = connection.execute(
                f"SELECT {THREAD} FROM threads WHERE id = %s AND resource_id = coalesce(%s, resource_id)",
                (thread_id, resource_id),
            ).fetchone()
            return _thread(row) if row else None

    def update_thread(
        self, thread_id: str, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Thread:
        """See protocols.Memory."""
        thread_id, title, changes = parse_update_thread(thread_id, title, metadata)

        def work(connection: Connection) -> Thread:
            row = connection.execute(f"SELECT {THREAD} FROM threads WHERE id = %s FOR UPDATE", (thread_id,)).fetchone()
            if row is None:
                raise ThreadNotFound(f"thread {thread_id!r} does not exist", clause="THR-3")
            old = _thread(row)
            new = msgspec.structs.replace(
                old,
                title=old.title if title is None else title,
                metadata=bounded(old.metadata | changes),
                updated_at=max(old.updated_at, self._now()),
            )
            connection.execute(
                "UPDATE threads SET title = %s, metadata = %s, facets = %s::jsonb, updated_at = %s WHERE id = %s",
                (new.title, json_text(new.metadata), facets(new.metadata), _milliseconds(new.updated_at), new.id),
            )
            return new

        return self._write(work)

    def title_thread(self, thread_id: str, title: str) -> bool:
        """See protocols.Memory."""
        thread_id, title = parse_title_thread(thread_id, title)
        with self._session() as connection:
            titled = self._statement(
                connection,
                "UPDATE threads SET title = %(title)s, updated_at = greatest(updated_at, %(now)s)"
                " WHERE id = %(id)s AND title = ''",
                {"title": title, "now": _milliseconds(self._now()), "id": thread_id},
            )
            return titled > 0

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
        where: LiteralString = "true"
        if asked.resource_id is not None:
            where += " AND resource_id = %(resource)s"
        if asked.metadata:
            where += " AND facets @> %(facets)s::jsonb"
        column: LiteralString = "created_at" if asked.field == "created_at" else "updated_at"
        down: LiteralString = "" if asked.ascending else " DESC"
        with self._session() as connection:
            # The total stands in every row, and in one of nulls when the page is empty.
            rows = connection.execute(
                f"SELECT total, t.* FROM (SELECT count(*) FROM threads WHERE {where}) AS counted (total)"
                f" LEFT JOIN (SELECT {THREAD} FROM threads WHERE {where} ORDER BY {column}{down}, id{down}"
                " LIMIT %(limit)s::bigint OFFSET %(offset)s::bigint) AS t ON true"
                f" ORDER BY t.{column}{down}, t.id{down}",
                {
                    "resource": asked.resource_id,
                    "facets": _condition(asked.metadata),
                    "limit": asked.page.limit,
                    "offset": min(asked.page.offset, MAX_BIGINT),
                },
            ).fetchall()
        total: int = rows[0][0]
        return ThreadPage(
            threads=tuple(_thread(row[1:]) for row in rows if row[1] is not None),
            total=total,
            page=asked.page.page,
            per_page=asked.page.per_page,
            has_more=asked.page.has_more(total),
        )

    def delete_thread(self, thread_id: str) -> bool:
        """See protocols.Memory."""
        identifier(thread_id, "thread_id")
        with self._session() as connection:
            return bool(self._statement(connection, "DELETE FROM threads WHERE id = %(id)s", {"id": thread_id}))

    def clone_thread(self, source_thread_id: str, **options: Unpack[CloneOptions]) -> CloneResult:
        """See protocols.Memory."""
        asked = parse_clone(source_thread_id, **options)
        result = self._write(lambda connection: self._clone(connection, asked))
        self._grow()
        return result

    def _clone(self, connection: Connection, asked: Clone) -> CloneResult:
        row = connection.execute(f"SELECT {THREAD} FROM threads WHERE id = %s FOR UPDATE", (asked.source,)).fetchone()
        if row is None:
            raise ThreadNotFound(f"thread {asked.source!r} does not exist", clause="CLN-1")
        source, now = _thread(row), self._now()
        matching, parameters = _window(asked.window)
        rows = connection.execute(
            f"SELECT {MESSAGE} FROM messages WHERE thread_id = %(thread)s AND {matching}"
            " AND (%(ids)s::text[] IS NULL OR id = ANY(%(ids)s)) ORDER BY created_at DESC, position DESC"
            " LIMIT %(limit)s::bigint",
            parameters
            | {
                "thread": source.id,
                "ids": None if asked.message_ids is None else list(asked.message_ids),
                "limit": asked.limit,
            },
        ).fetchall()
        originals = [_message(each) for each in reversed(rows)]
        thread = Thread(
            id=self._runtime.new_id() if asked.id is None else asked.id,
            resource_id=source.resource_id if asked.resource_id is None else asked.resource_id,
            title=f"Clone of {source.title}" if asked.title is None else asked.title,
            metadata=source.metadata | asked.metadata,
            created_at=now,
            updated_at=now,
            clone=CloneInfo(source.id, now, originals[-1].id if originals else None),
        )
        inserted = connection.execute(
            f"INSERT INTO threads ({THREAD}, facets, message_count, next_position)"
            " VALUES (%(id)s, %(resource)s, %(title)s, %(metadata)s, %(now)s, %(now)s, %(source)s, %(now)s, %(last)s,"
            " %(facets)s::jsonb, %(count)s, %(count)s) ON CONFLICT DO NOTHING",
            {
                "id": thread.id,
                "resource": thread.resource_id,
                "title": thread.title,
                "metadata": json_text(thread.metadata),
                "facets": facets(thread.metadata),
                "now": _milliseconds(now),
                "source": source.id,
                "last": originals[-1].id if originals else None,
                "count": len(originals),
            },
        ).rowcount
        if not inserted:
            raise AlreadyExists(f"thread {thread.id!r} exists", clause="CLN-1")
        bounded(thread.metadata)
        connection.execute(
            "INSERT INTO thread_notes SELECT %s, value FROM thread_notes WHERE thread_id = %s", (thread.id, source.id)
        )
        cloned = [
            msgspec.structs.replace(
                each, id=self._runtime.new_id(), thread_id=thread.id, resource_id=thread.resource_id
            )
            for each in originals
        ]
        positions = range(1, len(cloned) + 1)
        if _insert(connection, cloned, positions) < len(cloned):
            raise AlreadyExists("a message of the clone's exists", clause="CLN-1")
        if cloned and embedded(connection):
            connection.execute(
                "INSERT INTO embeddings (id, thread_id, resource_id, created_at, position, facets, norm, embedding)"
                " SELECT new.id, %s, %s, old.created_at, new.position, new.facets, old.norm, old.embedding"
                " FROM unnest(%b::text[], %b::text[], %b::bigint[], %b::text[]::jsonb[])"
                " AS new (source, id, position, facets)"
                " JOIN embeddings AS old ON old.id = new.source",
                (
                    thread.id,
                    thread.resource_id,
                    [each.id for each in originals],
                    [each.id for each in cloned],
                    list(positions),
                    [facets(snapshot(thread, each)) for each in cloned],
                ),
            )
        return CloneResult(thread, tuple(cloned), {o.id: c.id for o, c in zip(originals, cloned, strict=True)})

    def list_clones(self, source_thread_id: str, *, resource_id: str | None = None) -> tuple[Thread, ...]:
        """See protocols.Memory."""
        identifier(source_thread_id, "source_thread_id")
        if resource_id is not None:
            identifier(resource_id, "resource_id")
        with self._session() as connection:
            rows = connection.execute(
                f"SELECT {THREAD} FROM threads WHERE clone_source = %s AND resource_id = coalesce(%s, resource_id)"
                " ORDER BY created_at, id",
                (source_thread_id, resource_id),
            ).fetchall()
        return tuple(_thread(row) for row in rows)

    # Messages

    def save_messages(
        self, messages: Sequence[NewMessage], *, thread_config: MemoryConfig | None = None
    ) -> tuple[Message, ...]:
        """See protocols.Memory."""
        batch = parse_save(messages)
        titling = self._titles.wanted(thread_config)
        saved = self._saved(batch, embed=embeds(self._options, thread_config))
        self._titles.begin(titling, saved)
        return saved

    def _saved(self, batch: Sequence[MessageRow], *, embed: bool) -> tuple[Message, ...]:
        if not embed:
            return self._write(lambda connection: self._save(connection, batch, {}))
        embedder, semantic = self._embedder()
        with self._session() as connection:  # First refused, then embedded, and only then locked and written.
            _check(batch, *_hold(connection, {row.thread_id for row in batch}, {row.id for row in batch}, lock=""))
            vectors = semantic.embed(embedder, {row.id: row.content for row in batch})
            saved = self._write(lambda connection: self._save(connection, batch, vectors))
            self._grow()
            return saved

    def _save(
        self, connection: Connection, batch: Sequence[MessageRow], vectors: Mapping[str, Vector]
    ) -> tuple[Message, ...]:
        threads, places = _hold(connection, {row.thread_id for row in batch}, {row.id for row in batch})
        _check(batch, threads, places)
        now = self._now()
        known = list(places)
        touched: set[str] = set()
        saved: dict[str, Message] = {}
        for row in batch:  # One by one, as MSG-2 says; what each id ends as is written below.
            thread, old = threads[row.thread_id], places.get(row.id)
            if old is None or old.thread_id != row.thread_id:
                thread.next_position += 1
                thread.message_count += 1
                if old is not None:
                    threads[old.thread_id].message_count -= 1
                    touched.add(old.thread_id)
                position = thread.next_position
            else:
                position = old.position
            created_at = row.created_at or (old.created_at if old else now)
            places[row.id] = Place(row.thread_id, thread.resource_id, created_at, position)
            saved[row.id] = Message(
                row.id, row.thread_id, thread.resource_id, row.role, row.content, row.metadata, created_at
            )
            touched.add(row.thread_id)
        # New ids are put in first and sorted, and without a lock on what is in their way: so two savers of the same
        # ids, who meet in the primary key, never wait for each other in a circle.
        new = sorted(saved.keys() - known)
        if _insert(connection, [saved[each] for each in new], [places[each].position for each in new]) < len(new):
            raise _Overtaken  # Another saver has since put one of them into a thread that is not locked here.
        _replace(connection, [saved[each] for each in known], [places[each].position for each in known])
        self._reindex(connection, saved, places, vectors, known)
        _touch(connection, {thread_id: threads[thread_id] for thread_id in touched}, now)
        return tuple(saved.values())

    def update_messages(
        self, updates: Sequence[MessageUpdate], *, thread_config: MemoryConfig | None = None
    ) -> tuple[Message, ...]:
        """See protocols.Memory."""
        changes = parse_updates(updates)
        if not embeds(self._options, thread_config):
            return self._write(lambda connection: self._update(connection, changes, None))
        embedder, semantic = self._embedder()
        with self._session() as connection:
            while True:  # Until what was embedded is what the messages say when they are locked.
                before = _changed(connection, changes, list(dict.fromkeys(change.id for change in changes)))
                contents = {each: before[each].content for each in _reindexed(changes) if each in before}
                vectors = semantic.embed(embedder, contents)
                try:
                    changed = self._write(lambda connection: self._update(connection, changes, (contents, vectors)))  # noqa: B023
                except _Stale:
                    continue
                self._grow()
                return changed

    def _update(
        self,
        connection: Connection,
        changes: Sequence[MessageChange],
        embedded: tuple[Mapping[str, Content], Mapping[str, Vector]] | None,
    ) -> tuple[Message, ...]:
        ids = list(dict.fromkeys(change.id for change in changes))
        threads, places = _hold(connection, (), ids)
        # Those that were there under the lock: one that has entered another thread since is not ours to change.
        changed = _changed(connection, changes, list(places))
        reindexed = {each: changed[each] for each in _reindexed(changes) if each in changed}
        contents, vectors = embedded or ({}, {})
        if embedded and contents != {each: message.content for each, message in reindexed.items()}:
            raise _Stale
        _replace(connection, list(changed.values()), [places[message_id].position for message_id in changed])
        self._reindex(connection, reindexed, places, vectors, list(reindexed))
        touched = {message.thread_id for message in changed.values()}
        _touch(connection, {thread_id: threads[thread_id] for thread_id in touched}, self._now())
        return tuple(copy_message(changed[message_id]) for message_id in ids if message_id in changed)

    def delete_messages(self, ids: Sequence[str]) -> int:
        """See protocols.Memory."""
        named = parse_ids(ids)
        return self._write(lambda connection: self._delete(connection, named))

    def _delete(self, connection: Connection, ids: Sequence[str]) -> int:
        threads, places = _hold(connection, (), ids)
        connection.execute("DELETE FROM messages WHERE id = ANY(%b::text[])", (list(places),))
        removed = Counter(place.thread_id for place in places.values())
        for thread_id, count in removed.items():
            threads[thread_id].message_count -= count
        _touch(connection, {thread_id: threads[thread_id] for thread_id in removed}, self._now())
        return len(places)

    def clear_messages(self, thread_id: str) -> int:
        """See protocols.Memory."""
        identifier(thread_id, "thread_id")
        return self._write(lambda connection: self._clear(connection, thread_id))

    def _clear(self, connection: Connection, thread_id: str) -> int:
        threads, _ = _hold(connection, (thread_id,), ())
        if thread_id not in threads:
            raise ThreadNotFound(f"thread {thread_id!r} does not exist", clause="MSG-5a")
        count = connection.execute("DELETE FROM messages WHERE thread_id = %s", (thread_id,)).rowcount
        if count:
            threads[thread_id].message_count = 0
            _touch(connection, threads, self._now())
        return count

    # Recall

    def recall(self, thread_id: str, **options: Unpack[RecallOptions]) -> RecallResult:
        """See protocols.Memory."""
        asked = parse_recall(thread_id, self._options, **options)
        with self._session() as connection:
            found: list[tuple[float, str, str]] = []
            if asked.search is None:
                rows = connection.execute(*recall_statement(asked)).fetchall()
            else:
                embedder, semantic = self._embedder()
                if asked.resource_id is not None:
                    row = connection.execute("SELECT resource_id FROM threads WHERE id = %s", (thread_id,)).fetchone()
                    _own(asked, row[0] if row else None)
                query = embed(embedder, [asked.search.text], "query", semantic.index.metric)[0]
                with _snapshot(connection):
                    found = _hits(semantic, asked, query)
                    rows = connection.execute(*recall_statement(asked, found)).fetchall()
        _own(asked, rows[0][0])
        total: int = rows[0][1] or 0
        return RecallResult(
            messages=tuple(_message(row[2:]) for row in rows if row[2] is not None),
            total=total,
            page=asked.page.page,
            per_page=asked.page.per_page,
            has_more=asked.page.has_more(total),
            hits=tuple(Hit(message_id, score) for score, _, message_id in found),
        )

    def semantic_index(self) -> IndexDescription | None:
        """See protocols.Memory."""
        with self._session():
            return None if self._semantic is None else self._semantic.describe()

    def _embedder(self) -> tuple[Embedder, Embeddings]:
        if self._runtime.embedder is None or self._semantic is None:
            raise ConfigurationError("no vector index and embedder", clause="SEM-1")
        return self._runtime.embedder, self._semantic

    def _reindex(
        self,
        connection: Connection,
        messages: Mapping[str, Message],
        places: Mapping[str, Place],
        vectors: Mapping[str, Vector],
        known: Iterable[str],
    ) -> None:
        """Give the messages these embeddings, and those that were known before and have none now, none (SEM-4)."""
        gone = [each for each in known if each not in vectors]
        if gone and embedded(connection):
            connection.execute("DELETE FROM embeddings WHERE id = ANY(%b::text[])", (gone,))
        if vectors:
            assert self._semantic is not None
            changed = [messages[each] for each in vectors]
            found = connection.execute(
                f"SELECT {THREAD} FROM threads WHERE id = ANY(%b::text[])", ([each.thread_id for each in changed],)
            ).fetchall()
            threads = {row[0]: _thread(row) for row in found}
            self._semantic.put(
                connection,
                [
                    Embedding(
                        message=message,
                        created_at=_milliseconds(message.created_at),
                        position=places[message.id].position,
                        snapshot=snapshot(threads[message.thread_id], message),
                        vector=vectors[message.id],
                    )
                    for message in changed
                ],
            )

    def _grow(self) -> None:
        if self._semantic is not None:
            self._semantic.grow()

    # Working memory

    def get_working_memory(self, thread_id: str, **options: Unpack[WorkingOptions]) -> str | None:
        """See protocols.Memory."""
        asked = parse_get_working(thread_id, self._options, **options)
        of: LiteralString = "n.thread_id = t.id" if asked.scope == "thread" else "n.resource_id = t.resource_id"
        with self._session() as connection:
            row = connection.execute(
                f"SELECT t.resource_id, n.value FROM threads AS t LEFT JOIN {asked.scope}_notes AS n ON {of}"
                " WHERE t.id = %s",
                (thread_id,),
            ).fetchone()
        if row is None and asked.resource_id is None:
            return None
        _own_working(asked, row[0] if row else None)
        return row[1] if row else None

    def update_working_memory(self, thread_id: str, value: str, **options: Unpack[WorkingOptions]) -> None:
        """See protocols.Memory."""
        asked, checked = parse_update_working(thread_id, value, self._options, **options)

        def work(connection: Connection) -> None:
            # The lock keeps the thread from being deleted before its note is there.
            row = connection.execute(
                "SELECT resource_id FROM threads WHERE id = %s FOR KEY SHARE", (thread_id,)
            ).fetchone()
            _own_working(asked, row[0] if row else None)
            assert row is not None
            key: LiteralString = "thread_id" if asked.scope == "thread" else "resource_id"
            connection.execute(
                f"INSERT INTO {asked.scope}_notes ({key}, value) VALUES (%s, %s)"
                f" ON CONFLICT ({key}) DO UPDATE SET value = excluded.value",
                (thread_id if asked.scope == "thread" else row[0], checked),
            )

        self._write(work)

    def close(self) -> None:
        """See protocols.Memory."""
        self._titles.close()
        with self._lock:
            self._closed = True
            self._connection.close()

    def settle(self, *, timeout: float = 60.0) -> None:
        """See protocols.Memory."""
        self._titles.settle(timeout)

    # The connection

    @contextmanager
    def _session(self) -> Generator[Connection]:
        with self._lock:
            if self._closed:
                raise ConfigurationError("this client is closed", hint="open the namespace again")
            with answered(lost):
                if self._connection.closed:
                    self._connection, self._semantic = self._connected()
                yield self._connection

    def _write(self, work: Callable[[Connection], T]) -> T:
        """Run one transaction; again when another writer put one of its messages into a thread it had not locked."""
        with self._session() as connection:
            while True:
                try:
                    with connection.transaction():
                        done = work(connection)
                        self._runtime.fault("before commit")
                except _Overtaken:
                    continue
                self._runtime.fault("after commit")
                return done

    def _statement(self, connection: Connection, statement: LiteralString, parameters: Mapping[str, Any]) -> int:
        """Run a write of one statement, which is its own transaction; how many rows it wrote."""
        self._runtime.fault("before commit")
        count = connection.execute(statement, parameters).rowcount
        self._runtime.fault("after commit")
        return count

    def _now(self) -> datetime:
        return instant(self._runtime.clock(), "the clock")


@contextmanager
def _snapshot(connection: Connection) -> Generator[None]:
    """What is read inside is of one instant."""
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


# What a writer holds


class _Overtaken(Exception):
    """A message is in a thread that was not locked; nothing is written, and the transaction starts again."""


class _Stale(Exception):
    """A message says something else than what was embedded; nothing is written."""


class Held(msgspec.Struct):
    """A locked thread: who owns it, and the counters to be written back."""

    resource_id: str
    message_count: int
    next_position: int


class Place(msgspec.Struct, frozen=True):
    """Where a message stands."""

    thread_id: str
    resource_id: str
    created_at: datetime
    position: int


def _hold(
    connection: Connection,
    thread_ids: Iterable[str],
    message_ids: Iterable[str],
    *,
    lock: Literal["", " FOR UPDATE"] = " FOR UPDATE",
) -> tuple[dict[str, Held], dict[str, Place]]:
    """Lock the named threads and those that the named messages are in, by id, then read where the messages are."""
    ids = list(message_ids)
    locked = connection.execute(
        "SELECT id, resource_id, message_count, next_position FROM threads WHERE id IN"
        " (SELECT unnest(%b::text[]) UNION SELECT thread_id FROM messages WHERE id = ANY(%b::text[]))"
        f" ORDER BY id{lock}",
        (list(thread_ids), ids),
    ).fetchall()
    threads = {row[0]: Held(*row[1:]) for row in locked}
    found = connection.execute(
        "SELECT id, thread_id, resource_id, created_at, position FROM messages WHERE id = ANY(%b::text[])", (ids,)
    ).fetchall()
    places = {row[0]: Place(row[1], row[2], _instant(row[3]), row[4]) for row in found}
    if lock and any(place.thread_id not in threads for place in places.values()):
        raise _Overtaken
    return threads, places


def _changed(connection: Connection, changes: Sequence[MessageChange], ids: Sequence[str]) -> dict[str, Message]:
    """The messages of these ids as the changes make them."""
    found = connection.execute(f"SELECT {MESSAGE} FROM messages WHERE id = ANY(%b::text[])", (list(ids),))
    changed = {row[0]: _message(row) for row in found}
    for change in changes:
        if change.id in changed:
            new = change.apply(changed[change.id])
            bounded(new.metadata)
            changed[change.id] = new
    return changed


def _reindexed(changes: Sequence[MessageChange]) -> list[str]:
    """The ids whose content or role is changed: their embedding is made anew, or goes (SEM-4, SEM-5)."""
    return list(dict.fromkeys(change.id for change in changes if change.content is not None or change.role is not None))


def _check(batch: Sequence[MessageRow], threads: Mapping[str, Held], places: Mapping[str, Place]) -> None:
    """Refuse the batch as saving its messages one by one would; any error among them is a right answer."""
    owners: dict[str, str] = {}
    errors: list[ThreadNotFound | OwnershipMismatch] = []
    for row in batch:
        thread = threads.get(row.thread_id)
        if thread is None:
            errors.append(ThreadNotFound(f"thread {row.thread_id!r} does not exist", clause="MSG-1"))
            continue
        if row.resource_id not in (None, thread.resource_id):
            errors.append(OwnershipMismatch(f"thread {row.thread_id!r} is another resource's", clause="MSG-1"))
        old = places.get(row.id)
        owner = owners.setdefault(row.id, old.resource_id if old else thread.resource_id)
        if owner != thread.resource_id:
            errors.append(OwnershipMismatch(f"message {row.id!r} is another resource's", clause="MSG-2"))
    if errors:
        errors[0].also = tuple({error.code for error in errors})
        raise errors[0]


def _columns(rows: Sequence[Message], positions: Sequence[int]) -> tuple[list[Any], ...]:
    return (
        [row.id for row in rows],
        [row.thread_id for row in rows],
        [row.resource_id for row in rows],
        [row.role for row in rows],
        [json_text(row.content) for row in rows],
        [json_text(row.metadata) for row in rows],
        [facets(row.metadata) for row in rows],
        [_milliseconds(row.created_at) for row in rows],
        list(positions),
    )


def _insert(connection: Connection, rows: Sequence[Message], positions: Sequence[int]) -> int:
    """Insert the messages whose ids do not exist; how many these are."""
    if not rows:
        return 0
    return connection.execute(
        "INSERT INTO messages (id, thread_id, resource_id, role, content, metadata, facets, created_at, position)"
        f" SELECT * FROM {ROWS} ON CONFLICT DO NOTHING",
        _columns(rows, positions),
    ).rowcount


def _replace(connection: Connection, rows: Sequence[Message], positions: Sequence[int]) -> None:
    """Overwrite messages that exist, all in locked threads."""
    if rows:
        connection.execute(
            "UPDATE messages SET (thread_id, role, content, metadata, facets, created_at, position) ="
            " (new.thread_id, new.role, new.content, new.metadata, new.facets, new.created_at, new.position)"
            f" FROM {ROWS} AS new (id, thread_id, resource_id, role, content, metadata, facets, created_at, position)"
            " WHERE messages.id = new.id",
            _columns(rows, positions),
        )


def _touch(connection: Connection, threads: Mapping[str, Held], now: datetime) -> None:
    """Write the counters of these locked threads back, and that they changed now (MSG-3)."""
    if not threads:
        return
    connection.execute(
        "UPDATE threads SET updated_at = greatest(updated_at, %s), message_count = held.message_count,"
        " next_position = held.next_position FROM unnest(%b::text[], %b::bigint[], %b::bigint[])"
        " AS held (id, message_count, next_position) WHERE threads.id = held.id",
        (
            _milliseconds(now),
            list(threads),
            [thread.message_count for thread in threads.values()],
            [thread.next_position for thread in threads.values()],
        ),
    )


# What a reader asks


def _own(asked: Recall, owner: str | None) -> None:
    """Refuse a request that names a resource which does not own the thread (ORD-6)."""
    if asked.resource_id is not None and owner is None:
        raise ThreadNotFound(f"thread {asked.thread_id!r} does not exist", clause="ORD-6")
    if asked.resource_id not in (None, owner):
        raise OwnershipMismatch(f"thread {asked.thread_id!r} is another resource's", clause="ORD-6")


def _own_working(asked: WorkingRequest, owner: str | None) -> None:
    """Refuse a request about a thread that is unknown, or not of the resource that it names (WM-1, WM-1b)."""
    if owner is None:
        clause = "WM-1" if asked.resource_id is None else "WM-1b"
        raise ThreadNotFound(f"thread {asked.thread_id!r} does not exist", clause=clause)
    if asked.resource_id not in (None, owner):
        raise OwnershipMismatch(f"thread {asked.thread_id!r} is another resource's", clause="WM-1b")


def _window(window: Window, row: LiteralString = "") -> tuple[LiteralString, dict[str, Any]]:
    """The condition that created_at of a row lies in the window (TIM-1)."""
    held: LiteralString = "true"
    if window.start is not None:
        held += f" AND {row}created_at > %(start)s" if window.start_exclusive else f" AND {row}created_at >= %(start)s"
    if window.end is not None:
        held += f" AND {row}created_at < %(end)s" if window.end_exclusive else f" AND {row}created_at <= %(end)s"
    return held, {
        "start": window.start and _milliseconds(window.start),
        "end": window.end and _milliseconds(window.end),
    }


def _hits(embeddings: Embeddings, asked: Recall, query: Vector) -> list[tuple[float, str, str]]:
    """The best candidates: score, thread and message (SEM-2). One thread is always searched exactly."""
    wanted = asked.search
    assert wanted is not None
    where, parameters = _window(asked.window, "t.")
    where += " AND t.thread_id = %(owner)s" if wanted.scope == "thread" else " AND t.resource_id = %(owner)s"
    parameters["owner"] = asked.thread_id if wanted.scope == "thread" else asked.resource_id
    join: LiteralString = ""
    if asked.metadata:
        join = "JOIN messages AS m ON m.id = t.id"
        where += " AND m.facets @> %(facets)s::jsonb"
        parameters["facets"] = _condition(asked.metadata)
    narrowed = f"{where} AND {condition(wanted.filter, 't.facets', parameters)}"
    found = embeddings.find(Search(query, wanted.top_k, narrowed, parameters, join), exact=wanted.scope == "thread")
    return [hit for hit in found if wanted.threshold is None or hit[0] >= wanted.threshold]


def recall_statement(
    asked: Recall, hits: Sequence[tuple[float, str, str]] = ()
) -> tuple[LiteralString, dict[str, Any]]:
    """One statement for a whole recall: each row holds the thread's owner, the total and a message (or nulls)."""
    within, bounds = _window(asked.window)
    matching: LiteralString = f"thread_id = %(thread)s AND {within}"
    included = list(asked.include)
    if asked.search is not None:
        included += [Inclusion(each, thread, asked.search.before, asked.search.after) for _, thread, each in hits]
    if asked.metadata:
        matching += " AND facets @> %(facets)s::jsonb"
    narrowed = asked.metadata or asked.window.start is not None or asked.window.end is not None
    total: LiteralString = (
        f"SELECT count(*) FROM messages WHERE {matching}"
        if narrowed
        else "SELECT message_count FROM threads WHERE id = %(thread)s"
    )
    down: LiteralString = "" if asked.ascending else " DESC"
    rows: LiteralString = (
        f"(SELECT {MESSAGE}, position FROM messages WHERE {matching}"
        f" ORDER BY created_at{down}, position{down} LIMIT %(limit)s::bigint OFFSET %(offset)s::bigint)"
    )
    distinct: LiteralString = ""
    if included:
        rows += f" UNION ALL ({_windows(owned=asked.resource_id is not None)})"
        distinct = "DISTINCT ON (m.created_at, m.thread_id, m.position)"
    return (
        f"SELECT {distinct} owner, total, m.* FROM (SELECT (SELECT resource_id FROM threads WHERE id = %(thread)s),"
        f" ({total})) AS head (owner, total) LEFT JOIN ({rows}) AS m ON true"
        f" ORDER BY m.created_at{down}, m.thread_id{down}, m.position{down}"
    ), {
        **bounds,
        "thread": asked.thread_id,
        "resource": asked.resource_id,
        "facets": _condition(asked.metadata),
        "limit": asked.page.limit,
        "offset": min(asked.page.offset, MAX_BIGINT),
        "ids": [entry.id for entry in included],
        "threads": [entry.thread_id for entry in included],
        "before": [entry.before for entry in included],
        "after": [entry.after for entry in included],
    }


def _windows(*, owned: bool) -> LiteralString:
    """Each included message with its neighbours, by keyset: the index is entered at the message (INC-1)."""
    own: LiteralString = " AND target.resource_id = %(resource)s" if owned else ""
    return (
        "SELECT w.* FROM unnest(%(ids)s::text[], %(threads)s::text[], %(before)s::bigint[], %(after)s::bigint[])"
        " AS entry (id, thread_id, before, after)"
        f" JOIN messages AS target ON target.id = entry.id AND target.thread_id = entry.thread_id{own}"
        " CROSS JOIN LATERAL ("
        f"(SELECT {MESSAGE}, position FROM messages WHERE thread_id = target.thread_id"
        " AND (created_at, position) < (target.created_at, target.position)"
        " ORDER BY created_at DESC, position DESC LIMIT entry.before)"
        " UNION ALL "
        f"(SELECT {MESSAGE}, position FROM messages WHERE thread_id = target.thread_id"
        " AND (created_at, position) >= (target.created_at, target.position)"
        " ORDER BY created_at, position LIMIT entry.after + 1)"
        ") AS w"
    )


def _condition(conditions: Sequence[Equals]) -> str | None:
    """What facets must contain. jsonb compares by type, and numbers by value, as FLT-1 does."""
    return json_text({condition.key: condition.value for condition in conditions}) if conditions else None


# Values


def _milliseconds(at: datetime) -> int:
    return (at - EPOCH) // MILLISECOND


def _instant(milliseconds: int) -> datetime:
    return EPOCH + milliseconds * MILLISECOND


def _thread(row: Sequence[Any]) -> Thread:
    thread_id, resource_id, title, metadata, created_at, updated_at, source, cloned_at, last = row
    return Thread(
        thread_id,
        resource_id,
        title,
        msgspec.json.decode(metadata),
        _instant(created_at),
        _instant(updated_at),
        None if source is None else CloneInfo(source, _instant(cloned_at), last),
    )


def _message(row: Sequence[Any]) -> Message:
    message_id, thread_id, resource_id, role, content, metadata, created_at = row[:7]
    return Message(
        message_id,
        thread_id,
        resource_id,
        role,
        _content.decode(content),
        msgspec.json.decode(metadata),
        _instant(created_at),
    )


# Namespaces


def _connect(url: str) -> Connection:
    return psycopg.connect(url, autocommit=True, client_encoding="utf8", fallback_application_name="memassay")


def _enter(url: str, schema: str) -> Connection:
    """A connection to the namespace, which is created if absent."""
    connection = _connect(url)
    try:
        adapt(connection)
        if not _ours(connection, schema):
            _create(connection, schema)
        # Here, not in each statement; and READ COMMITTED whatever the role's default is: the locks rely on it.
        connection.execute(
            "SELECT set_config('search_path', %s, false),"
            " set_config('default_transaction_isolation', 'read committed', false)",
            (schema,),
        )
    except BaseException:
        connection.close()
        raise
    return connection


def _one(connection: Connection, statement: LiteralString, *parameters: str) -> tuple[Any, ...]:
    row = connection.execute(statement, parameters).fetchone()
    assert row is not None
    return row


def _schema(namespace: str) -> str:
    if not re.fullmatch("[a-z][a-z0-9_]{0,39}", namespace):
        raise InvalidRequest(f"namespace is {show(namespace)}", hint="use [a-z][a-z0-9_]{0,39}")
    return PREFIX + namespace


def _ours(connection: Connection, schema: str) -> bool:
    """Whether the schema exists; one that another program made is refused."""
    found = connection.execute(
        "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s", (schema,)
    ).fetchone()
    if found is not None and found[0] != MARK:
        raise ConfigurationError(
            f"schema {schema} is not of this version of memassay", hint="drop it or use another database"
        )
    return found is not None


def _create(connection: Connection, schema: str) -> None:
    """Create the namespace in one round trip; a second client that does the same waits and finds it there."""
    connection.execute(
        sql.SQL(SCHEMA).format(name=sql.Literal(schema), schema=sql.Identifier(schema), mark=sql.Literal(MARK))
    )
