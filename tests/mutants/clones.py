"""CLN: clones of the wrong rows, under the wrong name, or tied to their source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memassay.spec.embedding import snapshot
from memassay.spec.errors import AlreadyExists, EmbedderError, ThreadNotFound
from memassay.spec.reference import Embedded, Row
from memassay.spec.requests import Clone
from memassay.spec.types import CloneResult, MessageUpdate, Thread
from memassay.spec.values import copy_message, copy_thread

from .adapter import Adapter, replaced
from .mutant import mutant


class _Cloner(Adapter):
    """Changes a clone once it is made."""

    def asked(self, asked: Clone) -> Clone:
        """Change what was asked for."""
        return asked

    def made(self, asked: Clone, thread: Thread) -> Thread:
        """Change the clone's own row."""
        return thread

    def _clone(self, asked: Clone) -> CloneResult:
        asked = self.asked(asked)
        result = super()._clone(asked)
        thread = self.made(asked, self.state.threads[result.thread.id])
        self.state.threads[thread.id] = thread
        return replaced(result, thread=copy_thread(thread))

    def source_rows(self, asked: Clone) -> list[Row]:
        return list(self.state.rows.get(asked.source, ()))


# CLN-1


@mutant("CLN-1", "mastra-ai/mastra#11517")
class _ClonesTheOldest(_Cloner):
    """message_limit takes the oldest messages."""

    def asked(self, asked: Clone) -> Clone:
        if asked.limit is None:
            return asked
        ids = [row.message.id for row in self.source_rows(asked) if asked.window.holds(row.message.created_at)]
        ids = [name for name in ids if asked.message_ids is None or name in asked.message_ids]
        return replaced(asked, message_ids=tuple(ids[: asked.limit]), limit=None)


@mutant("CLN-1")
class _LimitsBeforeItSelects(_Cloner):
    """message_limit is taken first, then range and ids."""

    def asked(self, asked: Clone) -> Clone:
        if asked.limit is None:
            return asked
        rows = self.source_rows(asked)
        newest = [row.message.id for row in rows[len(rows) - min(asked.limit, len(rows)) :]]
        ids = newest if asked.message_ids is None else [name for name in newest if name in asked.message_ids]
        return replaced(asked, message_ids=tuple(ids), limit=None)


@mutant("CLN-1")
class _ZeroIsNoLimit(_Cloner):
    """message_limit 0 and message_ids [] are falsy: everything is cloned."""

    def asked(self, asked: Clone) -> Clone:
        return replaced(asked, limit=asked.limit or None, message_ids=asked.message_ids or None)


@mutant("CLN-1")
class _CloningIgnoresTheRange(_Cloner):
    """start and end are not looked at when message_ids are given, nor otherwise."""

    def asked(self, asked: Clone) -> Clone:
        return replaced(asked, window=type(asked.window)())


@mutant("CLN-1")
class _CloningUnknownIdsFails(_Cloner):
    """An id that the source does not have is an error."""

    def asked(self, asked: Clone) -> Clone:
        known = {row.message.id for row in self.source_rows(asked)}
        for name in asked.message_ids or ():
            if name not in known:
                raise ThreadNotFound(f"message {name!r} does not exist")
        return asked


@mutant("CLN-1")
class _ClonesOverAThread(_Cloner):
    """A clone under the id of an existing thread replaces it."""

    def _clone(self, asked: Clone) -> CloneResult:
        try:
            return super()._clone(asked)
        except AlreadyExists:
            if asked.id is None or asked.id == asked.source:
                raise
            self.delete_thread(asked.id)
            return super()._clone(asked)


@mutant("CLN-1", "mastra-ai/mastra#12811")
class _ClonesReorderTies(_Cloner):
    """Cloned messages of one instant come in the order of their old ids."""

    def _clone(self, asked: Clone) -> CloneResult:
        result = super()._clone(asked)
        old = {new: name for name, new in result.id_map.items()}
        rows = self.state.rows[result.thread.id]
        positions = sorted(row.position for row in rows)
        ranked = sorted(rows, key=lambda row: (row.message.created_at, old[row.message.id]))
        for row, position in zip(ranked, positions, strict=True):
            self.put(row, position=position)
        return result


@mutant("CLN-1")
class _ClonesAreNew(_Cloner):
    """Cloned messages are created now."""

    def _clone(self, asked: Clone) -> CloneResult:
        result = super()._clone(asked)
        for row in list(self.state.rows[result.thread.id]):
            self.put(row, replaced(row.message, created_at=self._now()))
        return replaced(result, cloned_messages=self._named(result.id_map.values()))


@mutant("CLN-1")
class _ClonesNothing(Adapter):
    """clone_thread returns the source itself."""

    def _clone(self, asked: Clone) -> CloneResult:
        return CloneResult(copy_thread(self._thread(asked.source, "CLN-1")), (), {})


# CLN-2


@mutant("CLN-2")
class _ClonesKeepTheTitle(_Cloner):
    """Without a title the clone has its source's."""

    def made(self, asked: Clone, thread: Thread) -> Thread:
        return thread if asked.title is not None else replaced(thread, title=self.state.threads[asked.source].title)


@mutant("CLN-2")
class _CloneMetadataReplaces(_Cloner):
    """Metadata given replaces the source's."""

    def made(self, asked: Clone, thread: Thread) -> Thread:
        return replaced(thread, metadata=dict(asked.metadata)) if asked.metadata else thread


@mutant("CLN-2")
class _LineageInMetadata(_Cloner):
    """The lineage is written into the clone's metadata."""

    def made(self, asked: Clone, thread: Thread) -> Thread:
        return replaced(thread, metadata=thread.metadata | {"clone": {"source_thread_id": asked.source}})


@mutant("CLN-2")
class _ClonedMessagesKeepTheirOwner(_Cloner):
    """The messages of a clone for another resource stay the source's owner's."""

    def _clone(self, asked: Clone) -> CloneResult:
        result = super()._clone(asked)
        owner = self.state.threads[asked.source].resource_id
        for row in list(self.state.rows[result.thread.id]):
            self.put(row, replaced(row.message, resource_id=owner))
        return replaced(result, cloned_messages=self._named(result.id_map.values()))


@mutant("CLN-2")
class _LastIsTheSourcesLast(_Cloner):
    """last_message_id is the newest message of the source, cloned or not."""

    def made(self, asked: Clone, thread: Thread) -> Thread:
        rows = self.source_rows(asked)
        return replaced(thread, clone=replaced(thread.clone, last_message_id=rows[-1].message.id if rows else None))


@mutant("CLN-2")
class _LineageIsTheRoot(_Cloner):
    """A clone of a clone names the first source."""

    def made(self, asked: Clone, thread: Thread) -> Thread:
        above = self.state.threads[asked.source].clone
        return thread if above is None else replaced(thread, clone=replaced(thread.clone, **_source_of(above)))


def _source_of(clone: Any) -> dict[str, Any]:
    return {"source_thread_id": clone.source_thread_id}


# CLN-3


@mutant("CLN-3", "mastra-ai/mastra#12811")
class _ClonesHaveNoEmbeddings(_Cloner):
    """Embeddings are not cloned."""

    def _clone(self, asked: Clone) -> CloneResult:
        before = dict(self.state.embedded)
        result = super()._clone(asked)
        self.state.embedded = before
        return result


@mutant("CLN-3")
class _ClonesKeepTheSnapshot(_Cloner):
    """The embeddings of a clone keep the snapshot of the source: its thread_id, its metadata."""

    def _clone(self, asked: Clone) -> CloneResult:
        result = super()._clone(asked)
        for old, new in result.id_map.items():
            if old in self.state.embedded:
                self.state.embedded[new] = self.state.embedded[old]
        return result


@mutant("CLN-3")
class _CloningEmbeds(_Cloner):
    """A clone's messages are embedded anew: also those that had no embedding."""

    def _clone(self, asked: Clone) -> CloneResult:
        result = super()._clone(asked)
        contents = {message.id: message.content for message in result.cloned_messages}
        try:
            vectors = self._embed(self.runtime.embedder, contents)
        except EmbedderError:
            vectors = {}
        for name, vector in vectors.items():
            message = self.state.by_id[name].message
            self.state.embedded[name] = Embedded(tuple(map(float, vector)), snapshot(result.thread, message))
        return result


@mutant("CLN-3", "mastra-ai/mastra#12811")
class _ClonesTakeTheEmbeddings(_Cloner):
    """Embeddings are moved to the clone instead of copied."""

    def _clone(self, asked: Clone) -> CloneResult:
        result = super()._clone(asked)
        for old in result.id_map:
            self.state.embedded.pop(old, None)
        return result


# CLN-4


@mutant("CLN-4")
class _ClonesShareTheThreadsMetadata(Adapter):
    """A clone's metadata is the source's own object: an update of either shows in both."""

    def update_thread(
        self, thread_id: str, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Thread:
        updated = super().update_thread(thread_id, title=title, metadata=metadata)
        for other in list(self.state.threads.values()):
            lineage = (updated.clone and updated.clone.source_thread_id, other.clone and other.clone.source_thread_id)
            if other.id == lineage[0] or updated.id == lineage[1]:
                self.state.threads[other.id] = replaced(other, metadata=other.metadata | dict(metadata or {}))
        return updated


@mutant("CLN-4")
class _ClonesShareContent(_Cloner):
    """A clone refers to the source's texts: an update of a source message shows in the clone."""

    def _clone(self, asked: Clone) -> CloneResult:
        result = super()._clone(asked)
        self.__dict__.setdefault("copies", []).extend(result.id_map.items())
        return result

    def update_messages(self, updates: Sequence[MessageUpdate], **config: Any) -> Any:
        updated = super().update_messages(updates, **config)
        for old, new in self.__dict__.get("copies", ()):
            source, copy = self.state.by_id.get(old), self.state.by_id.get(new)
            if source is not None and copy is not None and any(message.id == old for message in updated):
                self.put(copy, replaced(copy.message, content=copy_message(source.message).content))
        return updated


@mutant("CLN-4", "mastra-ai/mastra#12811")
class _DeletingDeletesClones(Adapter):
    """delete_thread takes the clones with it."""

    def delete_thread(self, thread_id: str) -> bool:
        deleted = super().delete_thread(thread_id)
        for other in list(self.state.threads.values()):
            if other.clone is not None and other.clone.source_thread_id == thread_id:
                super().delete_thread(other.id)
        return deleted


@mutant("CLN-4")
class _CloningTouchesTheSource(_Cloner):
    """Cloning bumps the source's updated_at."""

    def _clone(self, asked: Clone) -> CloneResult:
        result = super()._clone(asked)
        self._touch([asked.source], self._now())
        return result


@mutant("CLN-4")
class _CloningMoves(_Cloner):
    """The messages are moved into the clone."""

    def _clone(self, asked: Clone) -> CloneResult:
        result = super()._clone(asked)
        for old in result.id_map:
            self._remove(old)
            self.state.embedded.pop(old, None)
        return result


@mutant("CLN-4")
class _ListsEverybodysClones(Adapter):
    """list_clones does not look at resource_id."""

    def list_clones(self, source_thread_id: str, *, resource_id: str | None = None) -> tuple[Thread, ...]:
        return super().list_clones(source_thread_id)


@mutant("CLN-4")
class _ListsClonesOfClones(Adapter):
    """list_clones gives every descendant."""

    def list_clones(self, source_thread_id: str, *, resource_id: str | None = None) -> tuple[Thread, ...]:
        found = super().list_clones(source_thread_id, resource_id=resource_id)
        return (*found, *(below for thread in found for below in self.list_clones(thread.id, resource_id=resource_id)))
