"""example: a memory store held to the specification of memassay. It works as it is; put your engine in its place.

    memassay verify example:ExampleBackend --level smoke

`memassay clauses` says what every call has to do. The parse functions check and complete a call's
arguments as the clauses want them, so that a method has only to do its work.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Unpack

import msgspec

from ..spec import requests
from ..spec.capabilities import Capabilities
from ..spec.errors import AlreadyExists, ConfigurationError, OwnershipMismatch, ThreadNotFound, Unsupported
from ..spec.protocols import Runtime
from ..spec.types import (
    CloneResult,
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
from ..spec.values import bounded, copy_message, copy_thread, identifier, instant
from ..spec.working_memory import WorkingOptions


class Namespace:
    """What one namespace holds. Replace it by a connection to your engine."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.threads: dict[str, Thread] = {}
        self.messages: dict[str, Message] = {}
        """In the order in which they entered their threads: their positions."""


class ExampleBackend:
    """How memassay opens the store. It takes no argument."""

    name = "example"

    def __init__(self) -> None:
        self._namespaces: dict[str, Namespace] = {}

    def capabilities(self, url: str) -> Capabilities:
        """What the store can do; the rest it has to refuse with Unsupported."""
        return Capabilities(durable=False)

    def version(self, url: str) -> str:
        """Ask your engine."""
        return "0.1"

    def open_memory(self, url: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> ExampleMemory:
        """A client of the namespace, which is created if absent."""
        return ExampleMemory(self._namespaces.setdefault(namespace, Namespace()), runtime, config)

    def drop_namespace(self, url: str, namespace: str) -> None:
        """Remove the namespace and all in it."""
        self._namespaces.pop(namespace, None)


class ExampleMemory:
    """One client. Every method has its whole effect or raises."""

    def __init__(self, kept: Namespace, runtime: Runtime, config: MemoryConfig) -> None:
        self._kept = kept
        self._runtime = runtime
        self._options = requests.parse_config(config, "config")

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
        """THR-1."""
        new = requests.parse_create_thread(resource_id, id, title, metadata, created_at)
        with self._kept.lock:
            thread_id = self._runtime.new_id() if new.id is None else new.id
            if thread_id in self._kept.threads:
                raise AlreadyExists(f"thread {thread_id!r} exists")
            at = new.created_at or self._now()
            thread = Thread(thread_id, new.resource_id, new.title, new.metadata, at, at)
            self._kept.threads[thread_id] = thread
            return copy_thread(thread)

    def get_thread(self, thread_id: str, *, resource_id: str | None = None) -> Thread | None:
        """THR-2."""
        owner = None if resource_id is None else identifier(resource_id, "resource_id")
        thread = self._kept.threads.get(identifier(thread_id, "thread_id"))
        return copy_thread(thread) if thread and owner in (None, thread.resource_id) else None

    def update_thread(
        self, thread_id: str, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Thread:
        """THR-3."""
        name, new_title, merged = requests.parse_update_thread(thread_id, title, metadata)
        with self._kept.lock:
            old = self._thread(name)
            thread = msgspec.structs.replace(
                old,
                title=old.title if new_title is None else new_title,
                metadata=bounded(old.metadata | merged),
                updated_at=max(old.updated_at, self._now()),
            )
            self._kept.threads[name] = thread
            return copy_thread(thread)

    def list_threads(
        self,
        *,
        filter: ThreadFilter | None = None,
        order_by: OrderBy | None = None,
        page: int = 0,
        per_page: int | Literal[False] | None = None,
    ) -> ThreadPage:
        """THR-4."""
        asked = requests.parse_list_threads(filter, order_by, page, per_page)
        with self._kept.lock:
            threads = [
                thread
                for thread in self._kept.threads.values()
                if asked.resource_id in (None, thread.resource_id)
                and all(condition.matches(thread.metadata) for condition in asked.metadata)
            ]
            threads.sort(key=lambda thread: (getattr(thread, asked.field), thread.id), reverse=not asked.ascending)
            return ThreadPage(
                threads=tuple(copy_thread(thread) for thread in _slice(threads, asked.page)),
                total=len(threads),
                page=asked.page.page,
                per_page=asked.page.per_page,
                has_more=asked.page.has_more(len(threads)),
            )

    def delete_thread(self, thread_id: str) -> bool:
        """THR-5."""
        name = identifier(thread_id, "thread_id")
        with self._kept.lock:
            for message in self._rows(name):
                del self._kept.messages[message.id]
            return self._kept.threads.pop(name, None) is not None

    def clone_thread(self, source_thread_id: str, **_: Any) -> CloneResult:
        """CAP-1: refused, as `clone` is not among the capabilities."""
        raise Unsupported("clone_thread")

    def list_clones(self, source_thread_id: str, *, resource_id: str | None = None) -> tuple[Thread, ...]:
        """CAP-1."""
        raise Unsupported("list_clones")

    # Messages

    def save_messages(
        self, messages: Sequence[NewMessage], *, thread_config: MemoryConfig | None = None
    ) -> tuple[Message, ...]:
        """MSG-1, MSG-2."""
        batch = requests.parse_save(messages)
        self._cannot_embed(thread_config)
        self._cannot_title(thread_config)
        with self._kept.lock:
            before = dict(self._kept.messages)
            now = self._now()
            touched: set[str] = set()
            try:
                for row in batch:
                    touched |= self._save(row, now)
            except (ThreadNotFound, OwnershipMismatch):
                self._kept.messages = before
                raise
            self._touch(touched)
            return self._named(row.id for row in batch)

    def _save(self, row: requests.MessageRow, now: datetime) -> set[str]:
        """Save one message; the threads it touched."""
        thread = self._thread(row.thread_id)
        if row.resource_id not in (None, thread.resource_id):
            raise OwnershipMismatch(f"thread {thread.id!r} is another resource's")
        old = self._kept.messages.get(row.id)
        if old is not None and old.resource_id != thread.resource_id:
            raise OwnershipMismatch(f"message {row.id!r} is another resource's")
        if old is not None and old.thread_id != row.thread_id:
            del self._kept.messages[row.id]  # it leaves its thread, and its position there
        created_at = row.created_at or (old.created_at if old else now)
        self._kept.messages[row.id] = Message(
            row.id, row.thread_id, thread.resource_id, row.role, row.content, row.metadata, created_at
        )
        return {row.thread_id} if old is None else {row.thread_id, old.thread_id}

    def update_messages(
        self, updates: Sequence[MessageUpdate], *, thread_config: MemoryConfig | None = None
    ) -> tuple[Message, ...]:
        """MSG-4."""
        changes = requests.parse_updates(updates)
        self._cannot_embed(thread_config)
        with self._kept.lock:
            changed: dict[str, Message] = {}
            for change in changes:
                old = changed.get(change.id) or self._kept.messages.get(change.id)
                if old is not None:
                    changed[change.id] = copy_message(change.apply(old))
                    bounded(changed[change.id].metadata)
            self._kept.messages.update(changed)
            self._touch(message.thread_id for message in changed.values())
            return self._named(changed)

    def _cannot_embed(self, thread_config: MemoryConfig | None) -> None:
        """SEM-1: semantic recall is never implied where there is none."""
        if requests.embeds(self._options, thread_config):
            raise ConfigurationError("there is no vector index")

    def _cannot_title(self, thread_config: MemoryConfig | None) -> None:
        """CAP-1: what is asked for and cannot be done is refused, not left out."""
        if requests.titling(self._options, thread_config) is not None:
            raise Unsupported("generate_title")

    def delete_messages(self, ids: Sequence[str]) -> int:
        """MSG-5."""
        named = requests.parse_ids(ids)
        with self._kept.lock:
            gone = [self._kept.messages.pop(name) for name in named if name in self._kept.messages]
            self._touch(message.thread_id for message in gone)
            return len(gone)

    def clear_messages(self, thread_id: str) -> int:
        """MSG-5a."""
        name = identifier(thread_id, "thread_id")
        with self._kept.lock:
            self._thread(name)
            return self.delete_messages([message.id for message in self._rows(name)])

    # Recall

    def recall(self, thread_id: str, **options: Unpack[requests.RecallOptions]) -> RecallResult:
        """ORD, TIM, FLT, INC."""
        asked = requests.parse_recall(thread_id, self._options, **options)
        if asked.search is not None:
            raise ConfigurationError("there is no vector index")
        with self._kept.lock:
            if asked.resource_id not in (None, self._owner(asked)):
                raise OwnershipMismatch(f"thread {asked.thread_id!r} is another resource's")
            matching = [message for message in self._rows(asked.thread_id) if _matches(message, asked)]
            shown = _slice(matching if asked.ascending else matching[::-1], asked.page)
            if asked.include:
                shown = self._with_included(asked, shown)
            return RecallResult(
                messages=tuple(copy_message(message) for message in shown),
                total=len(matching),
                page=asked.page.page,
                per_page=asked.page.per_page,
                has_more=asked.page.has_more(len(matching)),
            )

    def _owner(self, asked: requests.Recall) -> str | None:
        return self._thread(asked.thread_id).resource_id if asked.resource_id is not None else None

    def _with_included(self, asked: requests.Recall, shown: Iterable[Message]) -> list[Message]:
        """The page and what is included, each message once, in the order asked for (INC-1, INC-2)."""
        wanted = {message.id for message in shown}
        threads = {self._kept.messages[name].thread_id for name in wanted}
        for entry in asked.include:
            message = self._kept.messages.get(entry.id)
            if message is None or message.thread_id != entry.thread_id:
                continue
            if asked.resource_id not in (None, message.resource_id):
                continue
            ids = [row.id for row in self._rows(entry.thread_id)]
            at = ids.index(entry.id)
            wanted |= {*ids[max(0, at - entry.before) : at + entry.after + 1]}
            threads.add(entry.thread_id)
        rows = [row for thread in sorted(threads) for row in self._rows(thread) if row.id in wanted]
        rows.sort(key=lambda row: row.created_at)  # stable: then by thread, then by position
        return rows if asked.ascending else rows[::-1]

    # Working memory

    def semantic_index(self) -> IndexDescription | None:
        """SEM-6: there is none."""
        return None

    def get_working_memory(self, thread_id: str, **options: Unpack[WorkingOptions]) -> str | None:
        """CAP-1: refused, as `working_memory` is not among the capabilities."""
        raise Unsupported("get_working_memory")

    def update_working_memory(self, thread_id: str, value: str, **options: Unpack[WorkingOptions]) -> None:
        """CAP-1."""
        raise Unsupported("update_working_memory")

    # Titles

    def title_thread(self, thread_id: str, title: str) -> bool:
        """CAP-1: refused, as `titles` is not among the capabilities."""
        raise Unsupported("title_thread")

    def settle(self, *, timeout: float = 60.0) -> None:
        """CAP-1."""
        raise Unsupported("settle")

    def close(self) -> None:
        """Release what this client holds; a second call does nothing."""

    # The dicts

    def _now(self) -> datetime:
        return instant(self._runtime.clock(), "the clock")

    def _thread(self, thread_id: str) -> Thread:
        if thread_id not in self._kept.threads:
            raise ThreadNotFound(f"thread {thread_id!r} does not exist")
        return self._kept.threads[thread_id]

    def _rows(self, thread_id: str) -> list[Message]:
        """A thread's messages, oldest first, equal instants by position (ORD-1)."""
        rows = [message for message in self._kept.messages.values() if message.thread_id == thread_id]
        return sorted(rows, key=lambda message: message.created_at)

    def _named(self, ids: Iterable[str]) -> tuple[Message, ...]:
        return tuple(copy_message(self._kept.messages[name]) for name in dict.fromkeys(ids))

    def _touch(self, threads: Iterable[str]) -> None:
        """MSG-3."""
        for name in {*threads}:
            old = self._kept.threads[name]
            self._kept.threads[name] = msgspec.structs.replace(old, updated_at=max(old.updated_at, self._now()))


def _matches(message: Message, asked: requests.Recall) -> bool:
    """TIM-1 and FLT-1."""
    return asked.window.holds(message.created_at) and all(
        condition.matches(message.metadata) for condition in asked.metadata
    )


def _slice(rows: Sequence[Any], page: requests.Page) -> Iterator[Any] | Sequence[Any]:
    """ORD-3."""
    return rows if page.limit is None else rows[page.offset : page.offset + page.limit]
