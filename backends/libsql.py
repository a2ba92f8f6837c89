"""Memory in a libSQL file: four tables to a namespace, every question asked in SQL.

libSQL is SQLite underneath; what its Python binding does differently is noted where it matters.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeVar, cast

import libsql  # pyright: ignore[reportMissingTypeStubs]
import msgspec

from ..spec.capabilities import Capabilities
from ..spec.errors import (
    AlreadyExists,
    ConfigurationError,
    InvalidRequest,
    OwnershipMismatch,
    ThreadNotFound,
    Unsupported,
)
from ..spec.filters import Equals, Kind, kind_of
from ..spec.protocols import Memory, Runtime
from ..spec.requests import (
    Inclusion,
    MessageRow,
    Page,
    Recall,
    parse_config,
    parse_create_thread,
    parse_ids,
    parse_list_threads,
    parse_recall,
    parse_save,
    parse_update_thread,
    parse_updates,
)
from ..spec.types import (
    CloneResult,
    Content,
    Include,
    MemoryConfig,
    Message,
    MessageFilter,
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
from .provision import Provisioners
from .provision.libsql import MEMORY, PROVISIONERS, database_path

# The schema. In all SQL of this file `$` stands for the namespace and an underscore.
#
# - Instants are integer milliseconds since 1970. The binding passes an int beyond 32 bits as a REAL;
#   below 2^53 that is exact, and the column's INTEGER affinity stores and compares it as the integer.
# - Strings compare by their UTF-8 bytes (BINARY, the default), which is code point order.
# - `position` is not an INTEGER PRIMARY KEY: as the rowid it could not end a row-value search of an index.
# - The *_values tables hold the top-level scalars of the metadata, which itself is opaque JSON.
#   `value` has no affinity: numbers are REAL, strings TEXT, booleans 0 or 1, null 0; `kind` tells them apart.

SCHEMA = (
    """
    create table if not exists $threads (
        id text not null primary key,
        resource_id text not null,
        title text not null,
        metadata text not null,
        created_at integer not null,
        updated_at integer not null
    )
    """,
    "create index if not exists $threads_created on $threads (created_at, id)",
    "create index if not exists $threads_updated on $threads (updated_at, id)",
    "create index if not exists $threads_created_of on $threads (resource_id, created_at, id)",
    "create index if not exists $threads_updated_of on $threads (resource_id, updated_at, id)",
    """
    create table if not exists $thread_values (
        thread_id text not null,
        key text not null,
        kind text not null,
        value not null,
        primary key (thread_id, key)
    ) without rowid
    """,
    "create index if not exists $thread_values_search on $thread_values (key, kind, value)",
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
        kind text not null,
        value not null,
        primary key (position, key)
    ) without rowid
    """,
    "create index if not exists $message_values_search on $message_values (thread_id, key, kind, value)",
)
TABLES = ("$message_values", "$messages", "$thread_values", "$threads")
NAMESPACE = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)

THREAD = "id, resource_id, title, metadata, created_at, updated_at"
MESSAGE = "id, thread_id, position, resource_id, role, content, metadata, created_at"

LISTED = "(select value from json_each(?))"
"""Any number of ids, bound as one JSON array."""

MAX_CONDITIONS = 10_000
"""A statement takes 32,766 parameters; a condition of a filter takes three."""

NEIGHBOURS = 2**31 - 1
"""What a LIMIT can be given: a larger int would be bound as a REAL, which it refuses."""

BUSY_TIMEOUT = 0.01
"""Seconds the engine itself waits for a lock. Short, because the binding holds the GIL meanwhile."""

PATIENCE = 60.0
"""Seconds a call waits for the locks of other processes."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
CONTENT = cast("msgspec.json.Decoder[Content]", msgspec.json.Decoder(cast(Any, Content)))

T = TypeVar("T")
Row = tuple[Any, ...]


class Cursor(Protocol):
    """What is used of libsql.Cursor."""

    rowcount: int

    def fetchall(self) -> list[Row]:
        """All rows that are left."""
        ...


class Connection(Protocol):
    """What is used of libsql.Connection. Every error of the engine is a ValueError."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        ...

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> Cursor:
        """Run one statement."""
        ...

    def executemany(self, sql: str, parameters: list[Row]) -> Cursor:
        """Run one statement for each tuple of parameters."""
        ...

    def close(self) -> None:
        """Let go of the file; any later use panics."""
        ...


def connect(path: str) -> Connection:
    """A connection without implicit transactions, usable from any thread."""
    engine = cast(Any, libsql)
    return engine.connect(path, timeout=BUSY_TIMEOUT, isolation_level=None, _check_same_thread=False)


class LibsqlBackend:
    """Namespaces in one database file, or each client's own in memory."""

    name = "libsql"
    provisioners: ClassVar[Provisioners] = PROVISIONERS

    def capabilities(self, url: str) -> Capabilities:
        """See protocols.Backend."""
        kept = url != MEMORY
        return Capabilities(durable=kept, atomicity="transaction", concurrent_clients=kept)

    def version(self, url: str) -> str:
        """See protocols.Backend."""
        connection = connect(MEMORY)
        sqlite = connection.execute("select sqlite_version()").fetchall()[0][0]
        connection.close()
        return f"libsql {version('libsql')} (SQLite {sqlite})"

    def open_memory(self, url: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> Memory:
        """See protocols.Backend."""
        memory = LibsqlMemory(_path(url), namespace, runtime, config)
        try:
            memory.create_tables()
        except BaseException:
            memory.close()
            raise
        return memory

    def drop_namespace(self, url: str, namespace: str) -> None:
        """See protocols.Backend."""
        path = _path(url)
        if path == MEMORY or not Path(path).exists():
            return
        memory = LibsqlMemory(path, namespace, Runtime(), MemoryConfig())
        try:
            memory.drop_tables()
        finally:
            memory.close()


class LibsqlMemory:
    """One connection to one namespace; implements protocols.Memory. Threads may share it, one call at a time."""

    def __init__(self, path: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> None:
        if not NAMESPACE.fullmatch(namespace):
            raise InvalidRequest(f"namespace is {namespace!r}", hint="use [a-z][a-z0-9_]{0,39}")
        self._runtime = runtime
        self._options = parse_config(config, "config")
        self._prefix = namespace + "_"
        self._turn = threading.Lock()
        self._connection: Connection | None = connect(path)

    def create_tables(self) -> None:
        """Create the namespace's tables where they are absent."""
        # A write-ahead log lets readers go on while another client writes. `synchronous` stays at libSQL's
        # default, FULL: what a call has committed is on disk when it returns (DUR-1).
        _patiently(lambda: self._execute("pragma journal_mode = wal").fetchall())
        with self._writing():
            for statement in SCHEMA:
                self._execute(statement)

    def drop_tables(self) -> None:
        """Drop the namespace's tables, their indexes with them."""
        with self._writing():
            for table in TABLES:
                self._execute(f"drop table if exists {table}")

    def close(self) -> None:
        """See protocols.Memory."""
        with self._turn:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

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
        with self._writing():
            thread_id = self._runtime.new_id() if new.id is None else new.id
            if self._thread(thread_id) is not None:
                raise AlreadyExists(f"thread {thread_id!r} exists", clause="THR-1")
            at = self._now() if new.created_at is None else _milliseconds(new.created_at)
            row = thread_id, new.resource_id, new.title, _json(new.metadata), at, at
            self._execute(f"insert into $threads ({THREAD}) values (?, ?, ?, ?, ?, ?)", row)
            self._write_thread_values(thread_id, new.metadata)
            return _thread(row)

    def get_thread(self, thread_id: str, *, resource_id: str | None = None) -> Thread | None:
        """See protocols.Memory."""
        identifier(thread_id, "thread_id")
        if resource_id is not None:
            identifier(resource_id, "resource_id")
        with self._reading():
            thread = self._thread(thread_id)
        return thread if thread is not None and resource_id in (None, thread.resource_id) else None

    def update_thread(
        self, thread_id: str, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Thread:
        """See protocols.Memory."""
        thread_id, title, changes = parse_update_thread(thread_id, title, metadata)
        with self._writing():
            old = self._existing_thread(thread_id, "THR-3")
            merged = bounded(old.metadata | changes)
            self._execute(
                "update $threads set title = ?, metadata = ?, updated_at = max(updated_at, ?) where id = ?",
                (old.title if title is None else title, _json(merged), self._now(), thread_id),
            )
            self._write_thread_values(thread_id, merged)
            return self._existing_thread(thread_id, "THR-3")

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
            where.append(f"id in ({_holding('thread_id', '$thread_values', asked.metadata)})")
            values += _condition_values(asked.metadata)
        matching = f"from $threads where {' and '.join(where)}"
        direction = "asc" if asked.ascending else "desc"
        with self._reading():
            total: int = self._rows(f"select count(*) {matching}", values)[0][0]
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
        with self._writing():
            self._execute("delete from $message_values where thread_id = ?", [thread_id])
            self._execute("delete from $messages where thread_id = ?", [thread_id])
            self._execute("delete from $thread_values where thread_id = ?", [thread_id])
            return self._execute("delete from $threads where id = ?", [thread_id]).rowcount > 0

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
        """See protocols.Memory."""
        raise Unsupported("clone_thread", clause="CAP-1")

    # Messages

    def save_messages(self, messages: Sequence[NewMessage]) -> tuple[Message, ...]:
        """See protocols.Memory."""
        batch = parse_save(messages)
        ids = list(dict.fromkeys(row.id for row in batch))
        threads = {row.thread_id for row in batch}
        with self._writing():
            owners = dict(self._rows(f"select id, resource_id from $threads where id in {LISTED}", [_json(threads)]))
            saved = self._rows(f"select id, resource_id, thread_id from $messages where id in {LISTED}", [_json(ids)])
            _check(batch, owners, {id: resource_id for id, resource_id, _ in saved})
            now = self._now()
            self._forget_message_values(ids)
            # An id that is new to its thread takes the position given; one that is in it keeps its own (ORD-1).
            [(last,)] = self._rows("select coalesce(max(position), 0) from $messages")
            self._execute_many(
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
                        _json(row.content),
                        _json(row.metadata),
                        None if row.created_at is None else _milliseconds(row.created_at),
                        now,
                    )
                    for position, row in enumerate(batch, last + 1)
                ),
            )
            self._write_message_values({row.id: row.metadata for row in batch})
            self._touch(threads | {thread_id for _, _, thread_id in saved}, now)
            return self._named(ids)

    def update_messages(self, updates: Sequence[MessageUpdate]) -> tuple[Message, ...]:
        """See protocols.Memory."""
        changes = parse_updates(updates)
        ids = list(dict.fromkeys(change.id for change in changes))
        with self._writing():
            changed = {message.id: message for message in self._named(ids)}
            for change in changes:
                if change.id in changed:
                    changed[change.id] = change.apply(changed[change.id])
                    bounded(changed[change.id].metadata)
            self._execute_many(
                "update $messages set role = ?, content = ?, metadata = ? where id = ?",
                ((each.role, _json(each.content), _json(each.metadata), each.id) for each in changed.values()),
            )
            self._forget_message_values(ids)
            self._write_message_values({message.id: message.metadata for message in changed.values()})
            self._touch({message.thread_id for message in changed.values()}, self._now())
            return self._named(ids)

    def delete_messages(self, ids: Sequence[str]) -> int:
        """See protocols.Memory."""
        named = parse_ids(ids)
        with self._writing():
            touched = self._rows(f"select distinct thread_id from $messages where id in {LISTED}", [_json(named)])
            self._forget_message_values(named)
            deleted = self._execute(f"delete from $messages where id in {LISTED}", [_json(named)]).rowcount
            self._touch((thread_id for (thread_id,) in touched), self._now())
            return deleted

    def clear_messages(self, thread_id: str) -> int:
        """See protocols.Memory."""
        identifier(thread_id, "thread_id")
        with self._writing():
            self._existing_thread(thread_id, "MSG-5a")
            self._execute("delete from $message_values where thread_id = ?", [thread_id])
            cleared = self._execute("delete from $messages where thread_id = ?", [thread_id]).rowcount
            if cleared:
                self._touch([thread_id], self._now())
            return cleared

    # Recall

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
        """See protocols.Memory."""
        asked = parse_recall(
            thread_id,
            resource_id=resource_id,
            vector_search_string=vector_search_string,
            page=page,
            per_page=per_page,
            include=include,
            filter=filter,
            order_by=order_by,
            thread_config=thread_config,
            options=self._options,
        )
        if asked.search is not None:
            raise ConfigurationError("no vector index and embedder", clause="SEM-1")
        where, values = _matching(asked)
        direction = "asc" if asked.ascending else "desc"
        with self._reading():
            self._check_owner(asked)
            total: int = self._rows(f"select count(*) from $messages where {where}", values)[0][0]
            rows = self._slice(
                f"""
                select {MESSAGE} from $messages where {where}
                order by created_at {direction}, position {direction}
                """,
                values,
                asked.page,
                total,
            )
            if asked.include:
                rows = self._with_included(asked, rows)
        return RecallResult(
            messages=tuple(_message(row) for row in rows),
            total=total,
            page=asked.page.page,
            per_page=asked.page.per_page,
            has_more=asked.page.has_more(total),
        )

    def _check_owner(self, asked: Recall) -> None:
        """Refuse a request that names a resource which does not own the thread (ORD-6)."""
        if asked.resource_id is not None:
            thread = self._existing_thread(asked.thread_id, "ORD-6")
            if thread.resource_id != asked.resource_id:
                raise OwnershipMismatch(f"thread {thread.id!r} is another resource's", clause="ORD-6")

    def _with_included(self, asked: Recall, page: list[Row]) -> list[Row]:
        """page ∪ windows, each row once, in the requested order (INC-2)."""
        rows = {row[0]: row for row in page}
        for entry in asked.include:
            rows |= {row[0]: row for row in self._window(asked, entry)}
        return sorted(rows.values(), key=_rank, reverse=not asked.ascending)

    def _window(self, asked: Recall, entry: Inclusion) -> list[Row]:
        """The included message and its neighbours; empty when the entry is skipped (INC-1)."""
        found = self._rows(
            f"select {MESSAGE} from $messages where id = ?1 and thread_id = ?2 and (?3 is null or resource_id = ?3)",
            [entry.id, entry.thread_id, asked.resource_id],
        )
        for row in found[:1]:
            created_at, thread_id, position = _rank(row)
            found += self._rows(
                f"""
                select {MESSAGE} from $messages where thread_id = ? and (created_at, position) < (?, ?)
                order by created_at desc, position desc limit ?
                """,
                [thread_id, created_at, position, min(entry.before, NEIGHBOURS)],
            )
            found += self._rows(
                f"""
                select {MESSAGE} from $messages where thread_id = ? and (created_at, position) > (?, ?)
                order by created_at, position limit ?
                """,
                [thread_id, created_at, position, min(entry.after, NEIGHBOURS)],
            )
        return found

    # Working memory

    def get_working_memory(self, thread_id: str) -> str | None:
        """See protocols.Memory."""
        raise Unsupported("get_working_memory", clause="CAP-1")

    def update_working_memory(self, thread_id: str, value: str) -> None:
        """See protocols.Memory."""
        raise Unsupported("update_working_memory", clause="CAP-1")

    # Parts of several calls

    def _now(self) -> int:
        return _milliseconds(instant(self._runtime.clock(), "the clock"))

    def _thread(self, thread_id: str) -> Thread | None:
        rows = self._rows(f"select {THREAD} from $threads where id = ?", [thread_id])
        return _thread(rows[0]) if rows else None

    def _existing_thread(self, thread_id: str, clause: str) -> Thread:
        thread = self._thread(thread_id)
        if thread is None:
            raise ThreadNotFound(f"thread {thread_id!r} does not exist", clause=clause)
        return thread

    def _named(self, ids: Sequence[str]) -> tuple[Message, ...]:
        """The rows of these ids, in this order."""
        rows = self._rows(
            f"""
            select {MESSAGE} from (select key as turn, value as named from json_each(?))
            join $messages on id = named order by turn
            """,
            [_json(ids)],
        )
        return tuple(_message(row) for row in rows)

    def _slice(self, select: str, values: Sequence[object], page: Page, total: int) -> list[Row]:
        """The page of an ordered select of `total` rows. Past its end nothing is asked, however far that is."""
        limit = total - page.offset if page.limit is None else min(page.limit, total - page.offset)
        return self._rows(f"{select} limit ? offset ?", [*values, limit, page.offset]) if limit > 0 else []

    def _touch(self, thread_ids: Iterable[str], now: int) -> None:
        self._execute(
            f"update $threads set updated_at = max(updated_at, ?) where id in {LISTED}", [now, _json(list(thread_ids))]
        )

    def _write_thread_values(self, thread_id: str, metadata: Metadata) -> None:
        self._execute("delete from $thread_values where thread_id = ?", [thread_id])
        self._execute_many(
            "insert into $thread_values (thread_id, key, kind, value) values (?, ?, ?, ?)",
            ((thread_id, *scalar) for scalar in _scalars(metadata)),
        )

    def _forget_message_values(self, ids: Sequence[str]) -> None:
        self._execute(
            f"""
            delete from $message_values
            where position in (select position from $messages where id in {LISTED})
            """,
            [_json(ids)],
        )

    def _write_message_values(self, by_id: Mapping[str, Metadata]) -> None:
        self._execute_many(
            """
            insert into $message_values (position, thread_id, key, kind, value)
            select position, thread_id, ?, ?, ? from $messages where id = ?
            """,
            ((*scalar, id) for id, metadata in by_id.items() for scalar in _scalars(metadata)),
        )

    # The connection

    @contextmanager
    def _reading(self) -> Generator[None]:
        """One snapshot for all that a call reads."""
        with self._turn:
            self._execute("begin")
            try:
                # The first read takes the snapshot, and is the one that can find the file locked.
                _patiently(lambda: self._rows("select 1 from $threads limit 1"))
                yield
            finally:
                self._execute("rollback")

    @contextmanager
    def _writing(self) -> Generator[None]:
        """One transaction for all that a call writes: committed at the end, rolled back on any error."""
        with self._turn, _WRITER:
            _patiently(lambda: self._execute("begin immediate"))
            try:
                yield
                self._runtime.fault("before commit")
                self._execute("commit")
            except BaseException:
                if self._open().in_transaction:  # a full disk, for one, has already rolled it back
                    self._execute("rollback")
                raise
        self._runtime.fault("after commit")

    def _open(self) -> Connection:
        if self._connection is None:
            raise ConfigurationError("this client is closed", hint="open the namespace again")
        return self._connection

    def _execute(self, sql: str, values: Sequence[object] = ()) -> Cursor:
        return self._open().execute(sql.replace("$", self._prefix), values)

    def _execute_many(self, sql: str, rows: Iterable[Row]) -> None:
        self._open().executemany(sql.replace("$", self._prefix), list(rows))

    def _rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        return self._execute(sql, values).fetchall()


# The engine waits for a lock with the GIL held, so that a holder in this process could not go on:
# writers of one process queue here, and those of other processes are waited for in short naps.
_WRITER = threading.Lock()


def _patiently(call: Callable[[], T]) -> T:
    """The call's answer, once no other process holds the lock that it needs."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return call()
        except ValueError as error:
            if "database is locked" not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.002)


def _path(url: str) -> str:
    try:
        return database_path(url)
    except ValueError as error:
        raise ConfigurationError(str(error), hint="give a path, file:/path or :memory:") from None


def _check(batch: Sequence[MessageRow], owners: Mapping[str, str], saved: Mapping[str, str]) -> None:
    """Refuse the batch as saving its messages one by one would (MSG-1, MSG-2).

    `owners` maps the threads that exist to their resource, `saved` the messages that do.
    """
    of_message = dict(saved)
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


def _matching(asked: Recall) -> tuple[str, list[object]]:
    """The condition on $messages that the request's thread and filters make, and its parameters (TIM-1, FLT-1)."""
    where, values = ["thread_id = ?"], list[object]([asked.thread_id])
    if asked.window.start is not None:
        where.append(f"created_at {'>' if asked.window.start_exclusive else '>='} ?")
        values.append(_milliseconds(asked.window.start))
    if asked.window.end is not None:
        where.append(f"created_at {'<' if asked.window.end_exclusive else '<='} ?")
        values.append(_milliseconds(asked.window.end))
    if asked.metadata:
        where.append(f"position in ({_holding('position', '$message_values', asked.metadata, 'thread_id = ?')})")
        values += [*_condition_values(asked.metadata), asked.thread_id]
    return " and ".join(where), values


def _holding(owner: str, table: str, conditions: Sequence[Equals], scope: str = "true") -> str:
    """The owners in a *_values table that hold all of the conditions, each of another key (FLT-1)."""
    if len(conditions) > MAX_CONDITIONS:
        raise Unsupported(f"a filter of {len(conditions)} keys", hint=f"use at most {MAX_CONDITIONS}", clause="CAP-1")
    asked = ", ".join(["(?, ?, ?)"] * len(conditions))
    return f"""
        select {owner} from (values {asked}) asked
        join {table} held on key = asked.column1 and kind = asked.column2 and value = asked.column3
        where {scope}
        group by {owner} having count(*) = {len(conditions)}
    """


def _condition_values(conditions: Sequence[Equals]) -> list[object]:
    return [part for each in conditions for part in (each.key, each.kind, _sql_value(each.kind, each.value))]


def _scalars(metadata: Metadata) -> Iterator[tuple[str, Kind, object]]:
    """What a filter can find in a metadata object: its top-level scalars."""
    for key, item in metadata.items():
        kind = kind_of(item)
        if kind is not None:
            yield key, kind, _sql_value(kind, item)


def _sql_value(kind: Kind, value: Any) -> object:
    return 0 if kind == "null" else float(value) if kind == "number" else value


def _thread(row: Row) -> Thread:
    id, resource_id, title, metadata, created_at, updated_at = row
    return Thread(id, resource_id, title, msgspec.json.decode(metadata), _instant(created_at), _instant(updated_at))


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


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _milliseconds(at: datetime) -> int:
    return (at - EPOCH) // MILLISECOND


def _instant(milliseconds: int) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)
