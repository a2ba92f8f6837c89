"""ISO, CAP, DUR: what leaks between resources, what hostile text does, what is silently missing or lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

import msgspec
from memassay.spec.errors import InvalidRequest
from memassay.spec.protocols import Runtime
from memassay.spec.reference import Event, Row, State
from memassay.spec.reference_index import MODEL_CAPABILITIES
from memassay.spec.requests import Inclusion, ListThreads, Recall
from memassay.spec.types import MemoryConfig, Message, MessageUpdate, NewMessage, Thread

from .adapter import Adapter, is_text, replaced
from .mutant import mutant


@mutant("ISO-1", "mastra-ai/mastra#21863")
class _IncludesFromOtherResources(Adapter):
    """include looks a message up without the resource."""

    def window(self, asked: Recall, entry: Inclusion) -> list[Row]:
        return super().window(replaced(asked, resource_id=None), entry)


@mutant("ISO-1")
class _ListsEveryResource(Adapter):
    """list_threads ignores resource_id."""

    def threads(self, asked: ListThreads) -> list[Thread]:
        return super().threads(replaced(asked, resource_id=None))


@mutant("ISO-1")
class _ResourcesArePatterns(Adapter):
    """list_threads compares resource_id with LIKE."""

    def threads(self, asked: ListThreads) -> list[Thread]:
        wanted = asked.resource_id
        every = super().threads(replaced(asked, resource_id=None))
        return [thread for thread in every if wanted is None or _like(thread.resource_id, wanted)]


def _like(text: str, pattern: str) -> bool:
    return text == pattern or (
        pattern.strip("%_") == "" and fnmatchcase(text, pattern.replace("%", "*").replace("_", "?"))
    )


@mutant("ISO-2", "mastra-ai/mastra#9531")
class _QuotesBreakTheQuery(Adapter):
    """A quote in an id ends the string it is pasted into, and the query does not parse."""

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        for name, value in arguments.items():
            if name.endswith("id") and isinstance(value, str) and "'" in value:
                raise RuntimeError(f"unrecognized token near {value[:20]!r}")


@mutant("ISO-2", "langchain-ai/langgraph#5666")
class _DeletesByPattern(Adapter):
    """delete_thread compares the id with LIKE: % deletes every thread."""

    def delete_thread(self, thread_id: str) -> bool:
        if not is_text(thread_id) or thread_id in self.state.threads:
            return super().delete_thread(thread_id)
        names = [name for name in self.state.threads if _like(name, thread_id)]
        deleted = [super(_DeletesByPattern, self).delete_thread(name) for name in names]
        return bool(deleted) or super().delete_thread(thread_id)


@mutant("ISO-2", "run-llama/llama_index#21822")
class _ConditionsInIds(Adapter):
    """Ids are pasted into the query of delete_messages: ' OR '1'='1 deletes every message."""

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        if call == "delete_messages" and "' OR '1'='1" in str(arguments["ids"]):
            arguments["ids"] = list(self.state.by_id)


@mutant("ISO-2")
class _RefusedThreadsStay(Adapter):
    """create_thread inserts the thread before it checks the metadata."""

    def create_thread(
        self,
        *,
        resource_id: str,
        id: str | None = None,
        title: str = "",
        metadata: Mapping[str, Any] | None = None,
        created_at: datetime | None = None,
    ) -> Thread:
        try:
            return super().create_thread(
                resource_id=resource_id, id=id, title=title, metadata=metadata, created_at=created_at
            )
        except InvalidRequest:
            if id is not None and metadata:
                super().create_thread(resource_id=resource_id, id=id, title=title, created_at=created_at)
            raise


FORGETFUL = msgspec.structs.replace(MODEL_CAPABILITIES, working_memory=False)


@mutant("CAP-1", capabilities=FORGETFUL)
class _RemembersNothing(Adapter):
    """Working memory is not there, and reads as None."""

    def get_working_memory(self, thread_id: str, **options: Any) -> str | None:
        return None


@mutant("CAP-1", capabilities=FORGETFUL)
class _WritesNothing(Adapter):
    """Working memory is not there, and writing to it does nothing."""

    def update_working_memory(self, thread_id: str, value: str, **options: Any) -> None:
        return None


@mutant("CAP-1", capabilities=msgspec.structs.replace(MODEL_CAPABILITIES, clone=False))
class _ListsNoClones(Adapter):
    """Threads cannot be cloned, and none has clones."""

    def list_clones(self, source_thread_id: str, *, resource_id: str | None = None) -> tuple[Thread, ...]:
        return ()


@mutant("DUR-1")
class _ReloadsById(Adapter):
    """What is read back after a reopen is ordered by instant and id."""

    def __init__(
        self,
        runtime: Runtime | None = None,
        config: MemoryConfig | None = None,
        state: State | None = None,
        events: list[Event] | None = None,
    ) -> None:
        super().__init__(runtime, config, state, events)
        for rows in self.state.rows.values():
            rows.sort(key=lambda row: (row.message.created_at, row.message.id))


@mutant("DUR-1")
class _LosesTheLastSave(Adapter):
    """The last batch is not flushed when the client closes."""

    _last: tuple[Message, ...] = ()

    def save_messages(self, messages: Sequence[NewMessage], **config: Any) -> tuple[Message, ...]:
        self._last = super().save_messages(messages, **config)
        return self._last

    def close(self) -> None:
        for message in self._last:
            self._remove(message.id)


@mutant("DUR-1")
class _DeletedRowsComeBack(Adapter):
    """Deletions live in the client: after a reopen the messages are there again."""

    _gone: tuple[Row, ...] = ()

    def delete_messages(self, ids: Sequence[str]) -> int:
        before = dict(self.state.by_id)
        deleted = super().delete_messages(ids)
        self._gone += tuple(row for name, row in before.items() if name not in self.state.by_id)
        return deleted

    def close(self) -> None:
        for row in self._gone:
            if row.message.id not in self.state.by_id and row.message.thread_id in self.state.threads:
                self._insert(row)
        self._gone = ()


@mutant("DUR-1")
class _UpdatesAreNotWritten(Adapter):
    """Updates change the client's cache alone."""

    def update_messages(self, updates: Sequence[MessageUpdate], **config: Any) -> tuple[Message, ...]:
        before = dict(self.state.by_id)
        updated = super().update_messages(updates, **config)
        self._old = self.__dict__.get("_old", {})
        for message in updated:
            self._old.setdefault(message.id, before[message.id].message)
        return updated

    def close(self) -> None:
        for name, message in self.__dict__.get("_old", {}).items():
            row = self.state.by_id.get(name)
            if row is not None and row.message.thread_id == message.thread_id:
                self.put(row, message)
        self._old: dict[str, Message] = {}
