"""THR: threads that are overwritten, lose what a merge did not name, or are listed wrongly."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from memassay.spec.errors import InvalidRequest, ThreadNotFound
from memassay.spec.protocols import Runtime
from memassay.spec.reference import Event, EventKind, Row, State
from memassay.spec.requests import Inclusion, ListThreads, Recall
from memassay.spec.types import MemoryConfig, Thread, ThreadPage
from memassay.spec.values import copy_thread

from .adapter import Adapter, is_text, replaced
from .mutant import mutant


@mutant("THR-1", "mastra-ai/mastra#16216")
class _CreatingOverwrites(Adapter):
    """Creating an existing thread is an upsert: title and metadata are replaced."""

    def create_thread(
        self,
        *,
        resource_id: str,
        id: str | None = None,
        title: str = "",
        metadata: Mapping[str, Any] | None = None,
        created_at: datetime | None = None,
    ) -> Thread:
        old = self.state.threads.get(id) if isinstance(id, str) else None
        rows = self.state.rows.get(id, []) if isinstance(id, str) else []
        if old is not None:
            del self.state.threads[old.id]
        try:
            made = super().create_thread(
                resource_id=resource_id, id=id, title=title, metadata=metadata, created_at=created_at
            )
        except InvalidRequest:
            if old is not None:
                self.state.threads[old.id] = old
            raise
        self.state.rows[made.id] = rows
        return made


@mutant("THR-1")
class _UpdatedAtStartsNow(Adapter):
    """updated_at starts at the clock's now although created_at was given."""

    def create_thread(
        self,
        *,
        resource_id: str,
        id: str | None = None,
        title: str = "",
        metadata: Mapping[str, Any] | None = None,
        created_at: datetime | None = None,
    ) -> Thread:
        made = super().create_thread(
            resource_id=resource_id, id=id, title=title, metadata=metadata, created_at=created_at
        )
        self.state.threads[made.id] = replaced(self.state.threads[made.id], updated_at=self._now())
        return copy_thread(self.state.threads[made.id])


@mutant("THR-1")
class _EmptyTitleGetsADefault(Adapter):
    """A thread without a title is called "New Thread"."""

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        if call == "create_thread" and arguments["title"] == "":
            arguments["title"] = "New Thread"


@mutant("THR-2")
class _GetsAnyonesThread(Adapter):
    """get_thread does not look at resource_id."""

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        if call == "get_thread" and isinstance(arguments["resource_id"], str) and arguments["resource_id"]:
            arguments["resource_id"] = None


@mutant("THR-2")
class _GettingUnknownFails(Adapter):
    """get_thread raises for an unknown thread instead of returning None."""

    def get_thread(self, thread_id: str, *, resource_id: str | None = None) -> Thread | None:
        found = super().get_thread(thread_id, resource_id=resource_id)
        if found is None and resource_id is None and thread_id not in self.state.threads:
            raise ThreadNotFound(f"thread {thread_id!r} does not exist")
        return found


class _Updating(Adapter):
    def updated(self, old: Thread, new: Thread, metadata: Any) -> Thread:
        raise NotImplementedError

    def update_thread(
        self, thread_id: str, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Thread:
        old = self.state.threads.get(thread_id) if is_text(thread_id) else None
        new = super().update_thread(thread_id, title=title, metadata=metadata)
        assert old is not None
        self.state.threads[thread_id] = self.updated(old, self.state.threads[thread_id], metadata)
        return copy_thread(self.state.threads[new.id])


@mutant("THR-3", "mastra-ai/mastra#16216")
class _MergingAThreadReplaces(_Updating):
    """update_thread replaces the metadata by what was given, nothing included."""

    def updated(self, old: Thread, new: Thread, metadata: Any) -> Thread:
        kept = {key: item for key, item in new.metadata.items() if key in (metadata or {})}
        return replaced(new, metadata=kept)


@mutant("THR-3")
class _MergingAThreadGoesDeep(_Updating):
    """update_thread merges nested objects instead of replacing them."""

    def updated(self, old: Thread, new: Thread, metadata: Any) -> Thread:
        def merged(key: str, item: Any) -> Any:
            before = old.metadata.get(key)
            if not isinstance(before, dict) or not isinstance(item, dict):
                return item
            return cast("dict[str, Any]", before) | cast("dict[str, Any]", item)

        return replaced(new, metadata={key: merged(key, item) for key, item in new.metadata.items()})


@mutant("THR-3")
class _UpdatedAtGoesBack(_Updating):
    """update_thread sets updated_at to now although it was later."""

    def updated(self, old: Thread, new: Thread, metadata: Any) -> Thread:
        return replaced(new, updated_at=self._now())


@mutant("THR-3")
class _UpdatingForgetsTheTitle(_Updating):
    """update_thread without a title empties it."""

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        if call == "update_thread" and arguments["title"] is None:
            arguments["title"] = ""

    def updated(self, old: Thread, new: Thread, metadata: Any) -> Thread:
        return new


@mutant("THR-3a")
class _MergesThreadsFromACopy(Adapter):
    """A client merges into the metadata it last saw, and so undoes what others merged since."""

    def __init__(
        self,
        runtime: Runtime | None = None,
        config: MemoryConfig | None = None,
        state: State | None = None,
        events: list[Event] | None = None,
    ) -> None:
        super().__init__(runtime, config, state, events)
        self._known = dict(self.state.threads)

    def update_thread(
        self, thread_id: str, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Thread:
        with self._lock:
            if is_text(thread_id) and thread_id in self.state.threads and thread_id in self._known:
                stale = self._known[thread_id].metadata
                current = self.state.threads[thread_id]
                self.state.threads[thread_id] = replaced(current, metadata=stale)
            return super().update_thread(thread_id, title=title, metadata=metadata)

    def _event(self, kind: EventKind, thread_id: str, message_id: str | None = None) -> None:
        super()._event(kind, thread_id, message_id)
        self._known.pop(thread_id, None)
        if thread_id in self.state.threads:
            self._known[thread_id] = self.state.threads[thread_id]


@mutant("THR-4")
class _ListsTiesForward(Adapter):
    """Threads of one instant come by ascending id in both directions."""

    def threads_directed(self, asked: ListThreads, matching: list[Thread]) -> list[Thread]:
        by_id = sorted(matching, key=lambda thread: thread.id)
        return sorted(by_id, key=lambda thread: getattr(thread, asked.field), reverse=not asked.ascending)


@mutant("THR-4")
class _CollatesThreadIds(Adapter):
    """Ids are sorted by a locale's collation: case counts last."""

    def threads_directed(self, asked: ListThreads, matching: list[Thread]) -> list[Thread]:
        return sorted(
            matching,
            key=lambda thread: (getattr(thread, asked.field), thread.id.casefold(), thread.id.swapcase()),
            reverse=not asked.ascending,
        )


@mutant("THR-4")
class _AlwaysSortsByCreation(Adapter):
    """order_by updated_at is taken for created_at."""

    def threads_directed(self, asked: ListThreads, matching: list[Thread]) -> list[Thread]:
        return super().threads_directed(replaced(asked, field="created_at"), matching)


@mutant("THR-4")
class _CountsTheThreadsShown(Adapter):
    """total of list_threads is the number of threads on the page."""

    def listed(self, asked: ListThreads) -> ThreadPage:
        page = super().listed(asked)
        return replaced(page, total=len(page.threads))


@mutant("THR-4")
class _FiltersThePageOfThreads(Adapter):
    """The metadata filter is applied to the page of threads, after it was cut."""

    def listed(self, asked: ListThreads) -> ThreadPage:
        right = super().listed(asked)
        whole = super().listed(replaced(asked, metadata=()))
        kept = tuple(t for t in whole.threads if all(condition.matches(t.metadata) for condition in asked.metadata))
        return replaced(right, threads=kept)


@mutant("THR-5", "mastra-ai/mastra#6604")
class _DeletingLeavesMessages(Adapter):
    """delete_thread removes the thread alone; its messages show again when the id is created anew."""

    def delete_thread(self, thread_id: str) -> bool:
        rows = list(self.state.rows.get(thread_id, ())) if is_text(thread_id) else []
        deleted = super().delete_thread(thread_id)
        if deleted and rows:
            self.state.rows[thread_id] = rows
            self.state.by_id |= {row.message.id: row for row in rows}
        return deleted

    def create_thread(
        self,
        *,
        resource_id: str,
        id: str | None = None,
        title: str = "",
        metadata: Mapping[str, Any] | None = None,
        created_at: datetime | None = None,
    ) -> Thread:
        orphans = dict(self.state.rows)
        made = super().create_thread(
            resource_id=resource_id, id=id, title=title, metadata=metadata, created_at=created_at
        )
        self.state.rows[made.id] = orphans.get(made.id, [])
        return made

    def window(self, asked: Recall, entry: Inclusion) -> list[Row]:
        return super().window(asked, entry) if entry.thread_id in self.state.threads else []

    def _touch(self, threads: Any, now: datetime) -> None:
        super()._touch([thread_id for thread_id in threads if thread_id in self.state.threads], now)


@mutant("THR-5")
class _DeletingUnknownIsTrue(Adapter):
    """delete_thread says True for an unknown thread."""

    def delete_thread(self, thread_id: str) -> bool:
        super().delete_thread(thread_id)
        return True
