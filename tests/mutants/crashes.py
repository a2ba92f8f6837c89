"""DUR-1a: what is acknowledged before it is on disk, and batches of which a crash leaves half."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from memassay.spec.reference import Row
from memassay.spec.types import Message, NewMessage

from .adapter import Adapter
from .mutant import mutant


class _Fragile(Adapter):
    """Clients that know what of their namespace is on disk yet. Whoever dies takes the rest along."""

    @property
    def unsynced(self) -> list[Callable[[], None]]:
        """What would be lost by a crash now, as calls that lose it; of all clients."""
        first = cast(Any, self.peers[0] if self.peers else self)
        return first.__dict__.setdefault("_unsynced", [])

    def died(self) -> None:
        """The process of this client was killed."""
        for lose in reversed(self.unsynced):
            lose()
        self.unsynced.clear()


@mutant("DUR-1a")
class _SavesAreNotSynced(_Fragile):
    """The last batch that was acknowledged stands in a buffer, which a crash empties."""

    def save_messages(self, messages: Sequence[NewMessage], **config: Any) -> tuple[Message, ...]:
        before = dict(self.state.by_id)
        saved = super().save_messages(messages, **config)

        def crash() -> None:
            for each in saved:
                self._lose(each.id, before.get(each.id))

        self.unsynced[:] = [crash]
        return saved

    def _lose(self, name: str, old: Row | None) -> None:
        row = self.state.by_id.get(name)
        if row is not None:
            self._remove(name)
            self.state.embedded.pop(name, None)
            if old is not None and old.message.thread_id in self.state.threads:
                self._insert(old)


@mutant("DUR-1a")
class _DeletionsAreNotSynced(_Fragile):
    """Deletions are acknowledged before they are logged: after a crash the messages are there again."""

    def delete_messages(self, ids: Sequence[str]) -> int:
        before = dict(self.state.by_id)
        deleted = super().delete_messages(ids)
        gone = [row for name, row in before.items() if name not in self.state.by_id]
        if gone:
            self.unsynced[:] = [lambda: self._back(gone[0])]
        return deleted

    def _back(self, row: Row) -> None:
        if row.message.id not in self.state.by_id and row.message.thread_id in self.state.threads:
            self._insert(row)


@mutant("DUR-1a")
class _ACrashLeavesHalfABatch(_Fragile):
    """A batch is written row by row without a transaction: of one that dies in the middle the first rows are there."""

    def save_messages(self, messages: Sequence[NewMessage], **config: Any) -> tuple[Message, ...]:
        if isinstance(cast(object, messages), list) and len(messages) > 1:
            known = dict(self.state.by_id)
            saved = super().save_messages(messages, **config)
            rest = [message.id for message in saved[1:] if message.id not in known]
            moved = [(message.id, known[message.id]) for message in saved[1:] if message.id in known]
            self._middle(rest, moved)
            return saved
        return super().save_messages(messages, **config)

    def _middle(self, rest: Sequence[str], moved: Sequence[tuple[str, Row]]) -> None:
        """The moment at which only the first row is there."""
        rows = [self._remove(name) for name in (*rest, *(name for name, _ in moved))]
        for _, old in moved:
            self._insert(old)
        self.runtime.fault("before commit")
        for name, _ in moved:
            self._remove(name)
        for row in rows:
            if row is not None:
                self._insert(row)
        self.runtime.fault("after commit")
