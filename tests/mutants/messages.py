"""MSG: messages that are half saved, wrongly replaced, moved or counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, cast

from memassay.spec.errors import InvalidRequest, OwnershipMismatch, ThreadNotFound
from memassay.spec.protocols import Runtime
from memassay.spec.reference import Event, EventKind, State
from memassay.spec.requests import MessageRow
from memassay.spec.types import MemoryConfig, Message, MessageUpdate, NewMessage, TextPart, ToolPart
from memassay.spec.values import ROLES, copy_message

from .adapter import Adapter, is_text, replaced
from .mutant import mutant

MILLISECOND = timedelta(milliseconds=1)


def _distinct(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The last of each id, in order of first occurrence."""
    return tuple({message.id: message for message in messages}.values())


# MSG-0


@mutant("MSG-0")
class _SystemBecomesUser(Adapter):
    """A table with two roles: system and tool messages come back as user."""

    def message(self, message: NewMessage) -> NewMessage:
        return replaced(message, role="user") if message.role in ("system", "tool") else message


@mutant("MSG-0")
class _PartsBecomeText(Adapter):
    """Only the text of content parts is stored."""

    def message(self, message: NewMessage) -> NewMessage:
        if isinstance(message.content, str) or not isinstance(message.content, list | tuple) or not message.content:
            return message
        texts = [part.text for part in message.content if isinstance(part, TextPart)]
        return replaced(message, content="\n".join(texts))


@mutant("MSG-0")
class _LosesToolOutput(Adapter):
    """A tool part is stored without its output."""

    def shown(self, message: Message) -> Message:
        message = copy_message(message)
        if isinstance(message.content, str):
            return message
        parts = tuple(replaced(p, output=None) if isinstance(p, ToolPart) else p for p in message.content)
        return replaced(message, content=parts)


@mutant("MSG-0")
class _TakesAnyRole(Adapter):
    """An unknown role is stored as user."""

    def message(self, message: NewMessage) -> NewMessage:
        return message if message.role in ROLES else replaced(message, role="user")


@mutant("MSG-0")
class _RefusesEmptyContent(Adapter):
    """The empty string is refused as content."""

    def message(self, message: NewMessage) -> NewMessage:
        if message.content == "":
            raise InvalidRequest("content is empty")
        return message


# MSG-1


@mutant("MSG-1", "stac-utils/stac-fastapi-elasticsearch-opensearch#346")
class _SavesOneByOne(Adapter):
    """A batch is saved message by message: what came before a refused one stays."""

    def save_messages(self, messages: Sequence[NewMessage], **config: Any) -> tuple[Message, ...]:
        if not isinstance(messages, list | tuple):
            return super().save_messages(messages, **config)
        save = super().save_messages
        return _distinct(message for item in messages for message in save([item], **config))


@mutant("MSG-1", "langchain-ai/langchainjs#1810")
class _SkipsWhatIsRefused(Adapter):
    """Messages whose thread does not exist are dropped without an error."""

    def save_messages(self, messages: Sequence[NewMessage], **config: Any) -> tuple[Message, ...]:
        try:
            return super().save_messages(messages, **config)
        except ThreadNotFound:
            return super().save_messages([m for m in messages if m.thread_id in self.state.threads], **config)


@mutant("MSG-1")
class _ReturnsARowPerMessage(Adapter):
    """An id that occurs twice in a batch is returned twice."""

    def _named(self, ids: Iterable[str]) -> tuple[Message, ...]:
        return tuple(copy_message(self.state.by_id[name].message) for name in ids if name in self.state.by_id)

    def update_messages(self, updates: Sequence[MessageUpdate], **config: Any) -> tuple[Message, ...]:
        return _distinct(super().update_messages(updates, **config))


@mutant("MSG-1")
class _SpreadsTheClock(Adapter):
    """Messages without an instant get now, now + 1 ms, … so that a sort by time keeps their order."""

    def save_messages(self, messages: Sequence[NewMessage], **config: Any) -> tuple[Message, ...]:
        self._spread = 0
        return super().save_messages(messages, **config)

    def _save(self, row: MessageRow, now: datetime) -> set[str]:
        if row.created_at is None and row.id not in self.state.by_id:
            row = replaced(row, created_at=now + self._spread * MILLISECOND)
            self._spread += 1
        return super()._save(row, now)


@mutant("MSG-1")
class _IgnoresTheMessagesOwner(Adapter):
    """A resource_id other than the thread's is taken without a word."""

    def message(self, message: NewMessage) -> NewMessage:
        thread = self.state.threads.get(message.thread_id) if is_text(message.thread_id) else None
        if thread and message.resource_id in ("r1", "r2", "R1"):
            return replaced(message, resource_id=thread.resource_id)
        return message


# MSG-2


@mutant("MSG-2", "mastra-ai/mastra#5286")
class _SavesAgainBeside(Adapter):
    """Saving an id again adds a second row."""

    def _save(self, row: MessageRow, now: datetime) -> set[str]:
        old = self.state.by_id.get(row.id)
        touched = super()._save(row, now)
        if old is not None and old.message.thread_id == row.thread_id:
            new = self.state.by_id[row.id]
            self._insert(old)
            self.state.by_id[row.id] = new
        return touched


@mutant("MSG-2", "mastra-ai/mastra#5214")
class _KeepsTheFirstSave(Adapter):
    """INSERT OR IGNORE: saving an id again changes nothing."""

    def _save(self, row: MessageRow, now: datetime) -> set[str]:
        if row.id in self.state.by_id:
            return {row.thread_id}
        return super()._save(row, now)


@mutant("MSG-2", "mastra-ai/mastra#16216")
class _SavingAgainMergesMetadata(Adapter):
    """Saving an id again merges its metadata instead of replacing it."""

    def _save(self, row: MessageRow, now: datetime) -> set[str]:
        old = self.state.by_id.get(row.id)
        return super()._save(replaced(row, metadata=old.message.metadata | row.metadata) if old else row, now)


@mutant("MSG-2", "mastra-ai/mastra#5286")
class _SavingAgainIsNow(Adapter):
    """Saving an id again without created_at sets it to the clock's now."""

    def _save(self, row: MessageRow, now: datetime) -> set[str]:
        return super()._save(row if row.created_at else replaced(row, created_at=now), now)


@mutant("MSG-2", "mastra-ai/mastra#5214")
class _NeverMoves(Adapter):
    """A message saved into another thread is replaced where it is."""

    def _save(self, row: MessageRow, now: datetime) -> set[str]:
        old = self.state.by_id.get(row.id)
        return super()._save(replaced(row, thread_id=old.message.thread_id) if old else row, now) | {row.thread_id}


@mutant("MSG-2", "mastra-ai/mastra#5214")
class _MovesLeaveACopy(Adapter):
    """A message saved into another thread still shows in the old one."""

    def _save(self, row: MessageRow, now: datetime) -> set[str]:
        old = self.state.by_id.get(row.id)
        touched = super()._save(row, now)
        if old is not None and old.message.thread_id != row.thread_id:
            moved = self.state.by_id[row.id]
            self._insert(old)
            self.state.by_id[row.id] = moved
        return touched


@mutant("MSG-2")
class _TakesOthersMessages(Adapter):
    """Saving another resource's message into one's own thread takes it over."""

    def _check(self, batch: Sequence[MessageRow]) -> None:
        try:
            super()._check(batch)
        except OwnershipMismatch:
            for row in batch:
                thread = self.state.threads.get(row.thread_id)
                if thread is None or row.resource_id not in (None, thread.resource_id):
                    raise


# MSG-3


class _Touching(Adapter):
    def touched(self, threads: set[str]) -> Iterable[str]:
        raise NotImplementedError

    def _touch(self, threads: Iterable[str], now: datetime) -> None:
        super()._touch([name for name in self.touched(set(threads)) if name in self.state.threads], now)


@mutant("MSG-3")
class _SavingDoesNotTouch(Adapter):
    """save_messages leaves updated_at alone."""

    def save_messages(self, messages: Sequence[NewMessage], **config: Any) -> tuple[Message, ...]:
        before = dict(self.state.threads)
        saved = super().save_messages(messages, **config)
        self.state.threads |= before
        return saved


@mutant("MSG-3")
class _DeletingDoesNotTouch(Adapter):
    """delete_messages leaves updated_at alone."""

    def delete_messages(self, ids: Sequence[str]) -> int:
        before = dict(self.state.threads)
        deleted = super().delete_messages(ids)
        self.state.threads |= before
        return deleted


@mutant("MSG-3")
class _TouchesTheWholeResource(_Touching):
    """A write bumps updated_at of every thread of the resource."""

    def touched(self, threads: set[str]) -> Iterable[str]:
        owners = {self.state.threads[name].resource_id for name in threads}
        return [thread.id for thread in self.state.threads.values() if thread.resource_id in owners]


@mutant("MSG-3")
class _MovesTouchOneThread(Adapter):
    """A move bumps updated_at of the thread entered only."""

    def _save(self, row: MessageRow, now: datetime) -> set[str]:
        return super()._save(row, now) & {row.thread_id}


@mutant("MSG-3")
class _TouchGoesBack(Adapter):
    """A write sets updated_at to now although it was later."""

    def _touch(self, threads: Iterable[str], now: datetime) -> None:
        for name in threads:
            self.state.threads[name] = replaced(self.state.threads[name], updated_at=now)


@mutant("MSG-3")
class _TouchesForNothing(Adapter):
    """Deleting only unknown ids bumps updated_at of every thread."""

    def delete_messages(self, ids: Sequence[str]) -> int:
        deleted = super().delete_messages(ids)
        if not deleted:
            self._touch(list(self.state.threads), self._now())
        return deleted


# MSG-4


@mutant("MSG-4", "mem0ai/mem0#5160")
class _MergingAMessageReplaces(Adapter):
    """update_messages replaces the metadata by what was given."""

    def update_messages(self, updates: Sequence[MessageUpdate], **config: Any) -> tuple[Message, ...]:
        result = super().update_messages(updates, **config)
        given = {update.id: update.metadata for update in updates if update.metadata is not None}
        for message in result:
            if message.id in given:
                kept = {key: item for key, item in message.metadata.items() if key in (given[message.id] or {})}
                self.put(self.state.by_id[message.id], replaced(message, metadata=kept))
        return self._named(message.id for message in result)


@mutant("MSG-4")
class _UpdatingKeepsTheRole(Adapter):
    """update_messages does not know the role."""

    def change(self, update: MessageUpdate) -> MessageUpdate:
        return replaced(update, role=None) if update.role in ROLES else update


@mutant("MSG-4")
class _UpdatesOneByOne(Adapter):
    """A batch of updates is made one by one: what came before a refused one stays."""

    def update_messages(self, updates: Sequence[MessageUpdate], **config: Any) -> tuple[Message, ...]:
        if not isinstance(updates, list | tuple):
            return super().update_messages(updates, **config)
        return _distinct(m for item in updates for m in super(_UpdatesOneByOne, self).update_messages([item], **config))


@mutant("MSG-4")
class _UpdatingUnknownFails(Adapter):
    """update_messages raises for an unknown id."""

    def change(self, update: MessageUpdate) -> MessageUpdate:
        if is_text(update.id) and update.id.isalpha() and update.id not in self.state.by_id:
            raise KeyError(update.id)
        return update


@mutant("MSG-4")
class _LastUpdateWins(Adapter):
    """Of updates that name one message, only the last is applied."""

    def update_messages(self, updates: Sequence[MessageUpdate], **config: Any) -> tuple[Message, ...]:
        items = cast("Sequence[Any]", updates if isinstance(updates, list | tuple) else [None])
        if all(isinstance(item, MessageUpdate) for item in items):
            updates = list({update.id: update for update in updates}.values())
        return super().update_messages(updates, **config)


@mutant("MSG-4a")
class _MergesMessagesFromACopy(Adapter):
    """A client merges into the metadata it last saw, and so undoes what others merged since."""

    def __init__(
        self,
        runtime: Runtime | None = None,
        config: MemoryConfig | None = None,
        state: State | None = None,
        events: list[Event] | None = None,
    ) -> None:
        super().__init__(runtime, config, state, events)
        self._known = {name: row.message.metadata for name, row in self.state.by_id.items()}

    def update_messages(self, updates: Sequence[MessageUpdate], **config: Any) -> tuple[Message, ...]:
        with self._lock:
            for row in list(self.state.by_id.values()):
                stale = self._known.get(row.message.id)
                if stale is not None and any(getattr(update, "id", None) == row.message.id for update in updates):
                    self.put(row, replaced(row.message, metadata=stale))
            return super().update_messages(updates, **config)

    def _event(self, kind: EventKind, thread_id: str, message_id: str | None = None) -> None:
        super()._event(kind, thread_id, message_id)
        for name in [message_id] if message_id else list(self._known):
            self._known.pop(name, None)
            if name in self.state.by_id:
                self._known[name] = self.state.by_id[name].message.metadata


# MSG-5


@mutant("MSG-5", "chroma-core/chroma#7772")
class _CountsWhatWasAskedFor(Adapter):
    """delete_messages says how many ids were passed."""

    def delete_messages(self, ids: Sequence[str]) -> int:
        super().delete_messages(ids)
        return len(ids)


@mutant("MSG-5", "chroma-core/chroma#2841")
class _DeletingNothingDeletesAll(Adapter):
    """An empty list of ids is no condition: everything goes."""

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        if call == "delete_messages" and arguments["ids"] == []:
            arguments["ids"] = list(self.state.by_id)


@mutant("MSG-5")
class _DeletesByCharacters(Adapter):
    """A bare string is taken for a list of one-letter ids."""

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        if call == "delete_messages" and isinstance(arguments["ids"], str):
            arguments["ids"] = list(arguments["ids"])


@mutant("MSG-5")
class _DeletingUnknownFails(Adapter):
    """delete_messages raises for an unknown id."""

    def delete_messages(self, ids: Sequence[str]) -> int:
        for name in ids if isinstance(ids, list) else []:
            if is_text(name) and name.isalpha() and name not in self.state.by_id:
                raise ThreadNotFound(f"message {name!r} does not exist")
        return super().delete_messages(ids)


@mutant("MSG-5a")
class _ClearingDeletesTheThread(Adapter):
    """clear_messages deletes the thread with its messages."""

    def clear_messages(self, thread_id: str) -> int:
        cleared = super().clear_messages(thread_id)
        self.delete_thread(thread_id)
        return cleared


@mutant("MSG-5a")
class _ClearingUnknownIsZero(Adapter):
    """clear_messages of an unknown thread says 0."""

    def clear_messages(self, thread_id: str) -> int:
        try:
            return super().clear_messages(thread_id)
        except ThreadNotFound:
            return 0


@mutant("MSG-5a")
class _ClearsThePage(Adapter):
    """clear_messages deletes what a page with default settings shows: ten messages at most, here the newest two."""

    def clear_messages(self, thread_id: str) -> int:
        rows = list(self.state.rows.get(thread_id, ())) if is_text(thread_id) else []
        cleared = super().clear_messages(thread_id)
        for row in rows[:-2]:
            self._insert(row)
        return min(cleared, 2)
