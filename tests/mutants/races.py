"""CON-2: what is read before a write and gone by then, batches seen half, and rows that nobody owns any more."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

from memassay.spec.index_requests import NewIndex
from memassay.spec.reference import Row
from memassay.spec.types import IndexConfig, Message, NewMessage, RecallResult, Thread
from memassay.spec.values import copy_thread

from .adapter import Adapter, is_text, replaced
from .engine import Engine
from .mutant import mutant

MOMENT = 0.002
"""Seconds between reading and writing: what a round trip takes."""


def _hesitate() -> None:
    time.sleep(MOMENT)


# CON-2


@mutant("CON-2")
class _UpdatesOfThreadsAreLost(Adapter):
    """A merge into a thread reads it, merges in the client, and writes it back whole."""

    def update_thread(
        self, thread_id: str, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Thread:
        before = self.state.threads.get(thread_id) if is_text(thread_id) else None
        _hesitate()
        with self._lock:
            made = super().update_thread(thread_id, title=title, metadata=metadata)
            if before is not None:
                merged = {**before.metadata, **(metadata or {})}
                self.state.threads[thread_id] = replaced(
                    made, metadata=merged, title=before.title if title is None else title
                )
            return copy_thread(self.state.threads[thread_id])


@mutant("CON-2")
class _SavesTheThreadWhole(Adapter):
    """A thread's messages are one value, which a saver reads, appends to, and writes back: others' saves are lost."""

    def save_messages(self, messages: Sequence[NewMessage], **config: Any) -> tuple[Message, ...]:
        before = {name: {row.message.id for row in rows} for name, rows in [*self.state.rows.items()]}
        _hesitate()
        with self._lock:
            saved = super().save_messages(messages, **config)
            own = {message.id for message in saved}
            for name in {message.thread_id for message in saved} & before.keys():
                for row in [*self.state.rows[name]]:
                    if row.message.id not in before[name] | own:
                        self._remove(row.message.id)
                        self.state.embedded.pop(row.message.id, None)
            return saved


@mutant("CON-2")
class _ReadersSeeHalfABatch(Adapter):
    """A batch is written row by row, and readers see the rows that are there already."""

    def save_messages(self, messages: Sequence[NewMessage], **config: Any) -> tuple[Message, ...]:
        if not isinstance(cast(object, messages), list) or len(messages) < 2:
            return super().save_messages(messages, **config)
        with self._lock:
            known = dict(self.state.by_id)
            saved = super().save_messages(messages, **config)
            late = [self.state.by_id[message.id] for message in saved[1:] if message.id not in known]
            for row in late:
                self._remove(row.message.id)
        _hesitate()
        with self._lock:
            for row in late:
                if row.message.thread_id in self.state.threads:
                    self._insert(row)
        return saved


@mutant("CON-2")
class _SavesIntoWhatWasDeleted(Adapter):
    """The thread is looked up, then rows are written: those of a thread that was deleted meanwhile stay."""

    def save_messages(self, messages: Sequence[NewMessage], **config: Any) -> tuple[Message, ...]:
        before = dict(self.state.threads)
        _hesitate()
        with self._lock:
            gone = {
                message.thread_id
                for message in messages
                if isinstance(cast(object, message), NewMessage)
                and is_text(message.thread_id)
                and message.thread_id in before
                and message.thread_id not in self.state.threads
            }
            for name in gone:
                self.state.threads[name] = before[name]
                self.state.rows.setdefault(name, [])
            try:
                return super().save_messages(messages, **config)
            finally:
                for name in gone:
                    del self.state.threads[name]

    def create_thread(self, **given: Any) -> Thread:
        with self._lock:
            left = dict(self.state.rows)
            made = super().create_thread(**given)
            self.state.rows[made.id] = left.get(made.id, [])
            return made


@mutant("CON-2")
class _SaversTakeOnePosition(Adapter):
    """Two savers take the same position, and how rows of one position are ordered changes from read to read."""

    reads = 0

    def save_messages(self, messages: Sequence[NewMessage], **config: Any) -> tuple[Message, ...]:
        before = self.state.next_position
        _hesitate()
        with self._lock:
            known = dict(self.state.by_id)
            now, self.state.next_position = self.state.next_position, before
            try:
                saved = super().save_messages(messages, **config)
            finally:
                self.state.next_position = max(now, self.state.next_position)
            assert known is not None
            return saved

    def recall(self, thread_id: str, **options: Any) -> RecallResult:
        with self._lock:
            self.reads += 1
            rows = self.state.rows.get(thread_id, []) if is_text(thread_id) else []
            if self.reads % 2:
                rows.sort(key=lambda row: (row.rank, row.message.id))
            else:
                rows.sort(key=lambda row: (row.rank, _backwards(row)))
            return super().recall(thread_id, **options)


def _backwards(row: Row) -> list[int]:
    return [-ord(character) for character in row.message.id]


@mutant("CON-2")
class _CreatesOverwriteEachOther(Adapter):
    """Whether the id is free is asked first, and the thread written a moment later, whatever is there by then."""

    def create_thread(self, **given: Any) -> Thread:
        name = given.get("id")
        free = is_text(name) and name not in self.state.threads
        _hesitate()
        with self._lock:
            if free and name in self.state.threads:
                rows = self.state.rows[str(name)]
                del self.state.threads[str(name)]
                made = super().create_thread(**given)
                self.state.rows[made.id] = rows
                return made
            return super().create_thread(**given)


@mutant("CON-2")
class _ClonesWhatIsHalfSaved(Adapter):
    """A clone copies the thread and looks up its last message a moment later, when another may be the last."""

    def clone_thread(self, source_thread_id: str, **options: Any) -> Any:
        made = super().clone_thread(source_thread_id, **options)
        _hesitate()
        with self._lock:
            rows = self.state.rows.get(source_thread_id, ())
            taken = options.get("message_limit"), options.get("message_ids"), options.get("start"), options.get("end")
            thread = self.state.threads.get(made.thread.id)
            if rows and thread is not None and thread.clone is not None and taken == (None,) * 4:
                clone = replaced(thread.clone, last_message_id=rows[-1].message.id)
                self.state.threads[thread.id] = replaced(thread, clone=clone)
                return replaced(made, thread=copy_thread(self.state.threads[thread.id]))
            return made


# CON-2a


@mutant("CON-2a")
class _EmbeddingsOutliveTheirMessages(Adapter):
    """A saver writes embeddings a moment after the messages, which may be gone by then."""

    def save_messages(self, messages: Sequence[NewMessage], **config: Any) -> tuple[Message, ...]:
        with self._lock:
            saved = super().save_messages(messages, **config)
            ids = {message.id for message in saved}
            late = {name: self.state.embedded.pop(name) for name in ids if name in self.state.embedded}
        _hesitate()
        with self._lock:
            self.state.embedded.update(late)
        return saved

    def create_thread(self, **given: Any) -> Thread:
        return super().create_thread(**given)


@mutant("CON-2a")
class _TheSlowerEmbeddingWins(Adapter):
    """Of two savers of one message one leaves the text, and the other the embedding."""

    def save_messages(self, messages: Sequence[NewMessage], **config: Any) -> tuple[Message, ...]:
        with self._lock:
            first = dict(self.state.by_id)
        _hesitate()
        with self._lock:
            overtaken = {
                name: self.state.embedded[name]
                for name, row in self.state.by_id.items()
                if name in self.state.embedded and first.get(name) is not row
            }
            saved = super().save_messages(messages, **config)
            for message in saved:
                if message.id in overtaken:
                    self.state.embedded[message.id] = overtaken[message.id]
            return saved


# CON-2b


@mutant("CON-2b")
class _IndicesOverwriteEachOther(Engine):
    """Whether the name is free is asked first, and the index made a moment later, whatever is there by then."""

    def create_index(
        self, name: str, *, dimension: int, metric: str = "cosine", config: IndexConfig | None = None
    ) -> None:
        free = name not in self.state.indexes
        _hesitate()
        with self._lock:
            old = self.state.indexes.get(name)
            if free and isinstance(old, NewIndex) and old.dimension != dimension:
                del self.state.indexes[name]
            super().create_index(name, dimension=dimension, metric=metric, config=config)


@mutant("CON-2b")
class _ChangesOfOneRowAreLost(Engine):
    """A change of a row's vector writes the metadata too, as it was when the row was read."""

    def update_vector(self, name: str, id: str, **given: Any) -> bool:
        before = self.state.rows.get(name, {}).get(id) if is_text(name) and is_text(id) else None
        _hesitate()
        with self._lock:
            changed = super().update_vector(name, id, **given)
            row = self.state.rows.get(name, {}).get(id) if changed else None
            if row is not None and before is not None:
                kept = {field: getattr(before, field) for field in ("vector", "metadata") if given.get(field) is None}
                self.state.rows[name][id] = replaced(row, **kept)
            return changed
