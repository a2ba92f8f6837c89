"""The model taken apart where real adapters go wrong: every hook does what is right until a mutant overrides it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Unpack, cast

import msgspec
from memassay.spec.filters import Equals
from memassay.spec.reference import Model, Row
from memassay.spec.requests import ListThreads, Recall, RecallOptions
from memassay.spec.types import (
    Hit,
    Message,
    MessageUpdate,
    NewMessage,
    OrderBy,
    RecallResult,
    Thread,
    ThreadFilter,
    ThreadPage,
)
from memassay.spec.values import copy_message, copy_thread


class Adapter(Model):
    """The model, with hooks: what a call was given, which rows match, their order, the page, the counts.

    `peers` are all clients of the namespace that are open, itself among them.
    """

    peers: Sequence[object] = ()

    # What a call was given

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        """Change a call's arguments in place."""

    def message(self, message: NewMessage) -> NewMessage:
        """Change a message to be saved."""
        return message

    def change(self, update: MessageUpdate) -> MessageUpdate:
        """Change an update to be made."""
        return update

    def create_thread(
        self,
        *,
        resource_id: str,
        id: str | None = None,
        title: str = "",
        metadata: Mapping[str, Any] | None = None,
        created_at: datetime | None = None,
    ) -> Thread:
        """See Model."""
        arguments = {
            "resource_id": resource_id,
            "id": id,
            "title": title,
            "metadata": metadata,
            "created_at": created_at,
        }
        self.given("create_thread", arguments)
        return super().create_thread(**cast(Any, arguments))

    def get_thread(self, thread_id: str, *, resource_id: str | None = None) -> Thread | None:
        """See Model."""
        arguments: dict[str, Any] = {"thread_id": thread_id, "resource_id": resource_id}
        self.given("get_thread", arguments)
        return super().get_thread(**arguments)

    def update_thread(
        self, thread_id: str, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Thread:
        """See Model."""
        arguments: dict[str, Any] = {"thread_id": thread_id, "title": title, "metadata": metadata}
        self.given("update_thread", arguments)
        return super().update_thread(**arguments)

    def delete_thread(self, thread_id: str) -> bool:
        """See Model. A row that a mutant left in two threads is no obstacle."""
        arguments: dict[str, Any] = {"thread_id": thread_id}
        self.given("delete_thread", arguments)
        with self._lock:
            for row in self.state.rows.get(arguments["thread_id"], ()):
                self.state.by_id.setdefault(row.message.id, row)
            return super().delete_thread(**arguments)

    def save_messages(self, messages: Sequence[NewMessage], **config: Any) -> tuple[Message, ...]:
        """See Model."""
        return super().save_messages(_each(messages, NewMessage, self.message), **config)

    def update_messages(self, updates: Sequence[MessageUpdate], **config: Any) -> tuple[Message, ...]:
        """See Model."""
        return super().update_messages(_each(updates, MessageUpdate, self.change), **config)

    def delete_messages(self, ids: Sequence[str]) -> int:
        """See Model."""
        arguments: dict[str, Any] = {"ids": ids}
        self.given("delete_messages", arguments)
        return super().delete_messages(**arguments)

    def clear_messages(self, thread_id: str) -> int:
        """See Model. A row that a mutant left in two threads is no obstacle."""
        arguments: dict[str, Any] = {"thread_id": thread_id}
        self.given("clear_messages", arguments)
        with self._lock:
            for row in self.state.rows.get(arguments["thread_id"], ()):
                self.state.by_id.setdefault(row.message.id, row)
            return super().clear_messages(**arguments)

    def recall(self, thread_id: str, **options: Unpack[RecallOptions]) -> RecallResult:
        """See Model."""
        absent = dict.fromkeys(RecallOptions.__annotations__) | {"page": 0}
        arguments: dict[str, Any] = {"thread_id": thread_id} | absent | {**options}
        self.given("recall", arguments)
        return super().recall(**arguments)

    # Recall

    def holds(self, condition: Equals, metadata: dict[str, Any]) -> bool:
        """Whether a row meets a condition."""
        return condition.matches(metadata)

    def matching(self, asked: Recall) -> list[Row]:
        """The thread's rows that satisfy the filters, in order."""
        rows = self.state.rows.get(asked.thread_id, [])
        return [
            row
            for row in rows
            if asked.window.holds(row.message.created_at)
            and all(self.holds(condition, row.message.metadata) for condition in asked.metadata)
        ]

    def directed(self, asked: Recall, matching: list[Row]) -> list[Row]:
        """The rows in the direction asked for."""
        return matching if asked.ascending else matching[::-1]

    def offset(self, asked: Recall) -> int:
        """How many rows stand before the page."""
        return asked.page.offset

    def page(self, asked: Recall, matching: list[Row]) -> list[Row]:
        """The rows of the page."""
        ordered, limit = self.directed(asked, matching), asked.page.limit
        return ordered if limit is None else ordered[self.offset(asked) : self.offset(asked) + limit]

    def total(self, asked: Recall, matching: list[Row], page: list[Row], shown: list[Row]) -> int:
        """How many rows there are to page through."""
        return len(matching)

    def more(self, asked: Recall, matching: list[Row], page: list[Row], shown: list[Row]) -> bool:
        """Whether rows remain after the page."""
        return asked.page.has_more(len(matching))

    def shown(self, message: Message) -> Message:
        """A message as it is returned."""
        return copy_message(message)

    def result(self, asked: Recall, hits: Sequence[Hit]) -> RecallResult:
        """See Model."""
        matching = self.matching(asked)
        page = self.page(asked, matching)
        rows = self._union(asked, page, hits)
        return RecallResult(
            messages=tuple(self.shown(row.message) for row in rows),
            total=self.total(asked, matching, page, rows),
            page=asked.page.page,
            per_page=asked.page.per_page,
            has_more=self.more(asked, matching, page, rows),
            hits=tuple(hits),
        )

    def _union(self, asked: Recall, page: list[Row], hits: Sequence[Hit] = ()) -> list[Row]:
        if not asked.include and not hits:
            return page
        rows = {row.message.id: row for row in page}
        for entry in asked.include:
            rows |= {row.message.id: row for row in self.window(asked, entry)}
        for hit in hits:
            rows |= {row.message.id: row for row in self.hit_window(asked, hit)}
        return sorted(rows.values(), key=self.rank, reverse=not asked.ascending)

    def rank(self, row: Row) -> tuple[datetime, str, int]:
        """Where a row stands among rows of several threads: within its thread, as the thread lists it."""
        rows = self.state.rows[row.message.thread_id]
        index = next((i for i, other in enumerate(rows) if other is row), 0)
        return row.message.created_at, row.message.thread_id, index

    # Threads

    def threads(self, asked: ListThreads) -> list[Thread]:
        """The threads that satisfy the filter."""
        return [
            thread
            for thread in self.state.threads.values()
            if asked.resource_id in (None, thread.resource_id)
            and all(condition.matches(thread.metadata) for condition in asked.metadata)
        ]

    def threads_directed(self, asked: ListThreads, matching: list[Thread]) -> list[Thread]:
        """The threads in the order asked for."""
        return sorted(
            matching, key=lambda thread: (getattr(thread, asked.field), thread.id), reverse=not asked.ascending
        )

    def list_threads(
        self,
        *,
        filter: ThreadFilter | None = None,
        order_by: OrderBy | None = None,
        page: int = 0,
        per_page: int | Literal[False] | None = None,
    ) -> ThreadPage:
        """See Model."""
        arguments: dict[str, Any] = {"filter": filter, "order_by": order_by, "page": page, "per_page": per_page}
        self.given("list_threads", arguments)
        return super().list_threads(**arguments)

    def listed(self, asked: ListThreads) -> ThreadPage:
        """The page of threads that a checked request asks for."""
        matching = self.threads(asked)
        ordered, limit = self.threads_directed(asked, matching), asked.page.limit
        rows = ordered if limit is None else ordered[asked.page.offset : asked.page.offset + limit]
        return ThreadPage(
            threads=tuple(copy_thread(thread) for thread in rows),
            total=len(matching),
            page=asked.page.page,
            per_page=asked.page.per_page,
            has_more=asked.page.has_more(len(matching)),
        )

    # What mutants do to rows

    def put(self, row: Row, message: Message | None = None, *, position: int | None = None) -> None:
        """Replace a row of the state: another message, another position, or both."""
        self._remove(row.message.id)
        self._insert(Row(message or row.message, row.position if position is None else position))


def _each(items: Any, kind: type[Any], change: Any) -> Any:
    """The items changed; whatever is no such item, or no list of them, is left for the model to refuse."""
    if not isinstance(items, list | tuple):
        return items
    return [change(item) if isinstance(item, kind) else item for item in cast("Sequence[Any]", items)]


def is_text(value: object) -> bool:
    """Whether a value is a string; what callers pass may be anything."""
    return isinstance(value, str)


def is_message(value: object) -> bool:
    """Whether a value is a message with an id."""
    return isinstance(value, NewMessage) and is_text(value.id)


def replaced(value: Any, /, **fields: Any) -> Any:
    """A copy of a struct with other fields."""
    return msgspec.structs.replace(value, **fields)
