"""The reference model: the plainest store that is right. Its answers are the expected ones.

A thread keeps its rows in a list sorted by (created_at, position); every read is a slice or a scan of
that list. `events` records what each call did, so that a deviation can be blamed on the call that
touched the row last (judge.py).
"""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

from .errors import AlreadyExists, ConfigurationError, OwnershipMismatch, ThreadNotFound, Unsupported
from .protocols import Runtime
from .requests import (
    Inclusion,
    MessageRow,
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
from .types import (
    CloneResult,
    Include,
    MemoryConfig,
    Message,
    MessageFilter,
    MessageUpdate,
    NewMessage,
    OrderBy,
    RecallResult,
    Thread,
    ThreadFilter,
    ThreadPage,
)
from .values import bounded, copy_message, copy_thread, identifier, instant

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
]


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


class State(msgspec.Struct):
    """All that a namespace holds: threads, the rows of each in order, and every row by message id."""

    threads: dict[str, Thread] = msgspec.field(default_factory=dict[str, Thread])
    rows: dict[str, list[Row]] = msgspec.field(default_factory=dict[str, list[Row]])
    by_id: dict[str, Row] = msgspec.field(default_factory=dict[str, Row])
    next_position: int = 0

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

    def __init__(
        self,
        runtime: Runtime | None = None,
        config: MemoryConfig | None = None,
        state: State | None = None,
        events: list[Event] | None = None,
    ) -> None:
        self.runtime = runtime or Runtime()
        self.options = parse_config(config or MemoryConfig(), "config")
        self.state = state or State()
        self.events: list[Event] = [] if events is None else events
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
                del self.state.by_id[row.message.id]
            self._event("thread_deleted", thread_id)
            return True

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
        with self._lock:
            self._check(batch)
            now = self._now()
            touched: set[str] = set()
            for row in batch:
                touched |= self._save(row, now)
            self._touch(touched, now)
            return self._named(row.id for row in batch)

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

    def update_messages(self, updates: Sequence[MessageUpdate]) -> tuple[Message, ...]:
        """See protocols.Memory."""
        changes = parse_updates(updates)
        with self._lock:
            now = self._now()
            changed: dict[str, Message] = {}
            for change in changes:
                row = self.state.by_id.get(change.id)
                if row is not None:
                    new = change.apply(changed.get(change.id, row.message))
                    bounded(new.metadata)
                    changed[change.id] = new
            for message in changed.values():
                old_row = self._remove(message.id)
                assert old_row is not None
                # The change's own values become the store's, so they are copied (VAL-4).
                self._insert(Row(copy_message(message), old_row.position))
                self._event("updated", message.thread_id, message.id)
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
                del self.state.by_id[row.message.id]
            self._event("cleared", thread_id)
            if rows:
                self._touch({thread_id}, now)
            return len(rows)

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
            options=self.options,
        )
        with self._lock:
            return self._recall(asked)

    def _recall(self, asked: Recall) -> RecallResult:
        if asked.search is not None:
            raise ConfigurationError("no vector index and embedder", clause="SEM-1")
        self.own(asked)
        matching = self.matching(asked)
        ordered = matching if asked.ascending else matching[::-1]
        page = _slice(ordered, asked.page.offset, asked.page.limit)
        return RecallResult(
            messages=tuple(copy_message(row.message) for row in self._union(asked, page)),
            total=len(matching),
            page=asked.page.page,
            per_page=asked.page.per_page,
            has_more=asked.page.has_more(len(matching)),
        )

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

    def _union(self, asked: Recall, page: list[Row]) -> list[Row]:
        """page ∪ windows, each row once, in the requested order (INC-2)."""
        if not asked.include:
            return page
        rows = {row.message.id: row for row in page}
        for entry in asked.include:
            rows |= {row.message.id: row for row in self.window(asked, entry)}
        return sorted(
            rows.values(),
            key=lambda row: (row.message.created_at, row.message.thread_id, row.position),
            reverse=not asked.ascending,
        )

    # Working memory

    def get_working_memory(self, thread_id: str) -> str | None:
        """See protocols.Memory."""
        raise Unsupported("get_working_memory", clause="CAP-1")

    def update_working_memory(self, thread_id: str, value: str) -> None:
        """See protocols.Memory."""
        raise Unsupported("update_working_memory", clause="CAP-1")

    def close(self) -> None:
        """See protocols.Memory."""

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


def _slice(rows: list[Any], offset: int, limit: int | None) -> list[Any]:
    return rows if limit is None else rows[offset : offset + limit]
