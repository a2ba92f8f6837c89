"""Judging values: a thread or a message that a write left, or returned, other than it should."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, cast

from . import program as ops
from .compare import equal
from .divergence import Divergence
from .interpreter import spoilt
from .judge_known import EVENT_CLAUSE, Known, updates_of
from .judge_texts import confusion, length_clause
from .judge_titles import title_clause
from .reference import Event
from .types import Message, Thread


class Values:
    """Blames the first field that differs."""

    def __init__(self, known: Known) -> None:
        self.known = known

    def thread_values(
        self, index: int, name: str, expected: Thread, got: Thread, event: Event | None
    ) -> Iterator[Divergence]:
        """What is wrong with a thread; `event` is what was last done to it."""
        created = event is not None and event.kind == "thread_created"
        # A call's own result is judged by the call, an observation by what happened before it.
        touched = [
            e
            for e in self.known.events
            if e.thread_id == expected.id and e.kind not in ("thread_created", "thread_updated")
        ]
        for field in Thread.__struct_fields__:
            right, wrong = getattr(expected, field), getattr(got, field)
            if equal(right, wrong):
                continue
            if spoilt(wrong):
                clause = "VAL-4"
            elif _other_zone(right, wrong):
                clause = "VAL-1"
            elif field == "id" and (confused := confusion(expected.id, [got.id])):
                clause = confused
            elif self.known.reopened():
                clause = "DUR-1"
            elif any(isinstance(operation, ops.Together) for operation in self.known.segment):
                clause = self.known.collateral("THR-3a")
            elif field in ("title", "updated_at") and (titled := title_clause(self.known, expected, got)):
                clause = titled
            elif field == "resource_id":
                clause = "THR-1" if created else "ISO-1"
            elif field == "updated_at":
                own = (
                    not touched
                    and event is not None
                    and (expected.id in self.known.misdated or not self.known.touching())
                )
                if name != "observe" or own or expected.id in self.known.misdated:
                    clause = "THR-1" if created else "THR-3"
                else:
                    clause = (
                        "MSG-3"
                        if self.known.touching()
                        else "CLN-4"
                        if self.known.related(expected.id)
                        else self.known.collateral("ISO-2")
                    )
            elif field == "created_at":
                given = created and self.known.given_instant(expected.id)
                clause = "VAL-1" if given else "THR-1" if created else "THR-3"
            elif created and field == "title":
                clause = length_clause(expected.title) if expected.title and wrong else "THR-1"
            elif created and field == "metadata":
                clause = "VAL-3"
            elif event is not None and field == "metadata" and name == "update_thread":
                changes: dict[str, Any] = self.known.segment[-1].arguments().get("metadata") or {}
                clause = self._merged_clause(changes, expected.metadata, got.metadata, "THR-3")
            elif event is None and self.known.related(expected.id):
                clause = "CLN-4"
            else:
                clause = "THR-3" if event is not None else self.known.collateral("ISO-2")
            yield Divergence(clause, f"thread.{field}", name, index, right, wrong)
            return

    def message_values(self, index: int, name: str, expected: Message, got: Message) -> Iterator[Divergence]:
        """What is wrong with a message."""
        kinds = [event.kind for event in self.known.events if event.message_id == expected.id]
        kind = kinds[-1] if kinds else None
        for field in Message.__struct_fields__:
            right, wrong = getattr(expected, field), getattr(got, field)
            if equal(right, wrong):
                continue
            if spoilt(wrong):
                clause = "VAL-4"
            elif _other_zone(right, wrong):
                clause = "VAL-1"
            elif field == "thread_id" and (confused := confusion(str(right), [str(wrong)])):
                clause = confused
            elif self.known.reopened():
                clause = "DUR-1"
            elif any(isinstance(operation, ops.Together) for operation in self.known.segment):
                clause = self.known.collateral("MSG-4a")
            elif field == "resource_id":
                clause = "ISO-1"
            elif kind is None:
                clause = "CLN-4" if self.known.related(expected.thread_id) else self.known.collateral("ISO-2")
            elif kind == "inserted":
                clause = self._inserted_clause(expected, field, wrong)
            elif kinds == [kind]:
                clause = self._changed_clause(kind, expected, got, field)
            else:
                clause = EVENT_CLAUSE[kind]
            yield Divergence(clause, f"message.{field}", name, index, right, wrong)
            return

    def _changed_clause(self, kind: str, expected: Message, got: Message, field: str) -> str:
        """Whether one replacement or update was not made as it should, or what it gave did not come back."""
        old, default = self.known.old.get(expected.id), EVENT_CLAUSE[kind]
        right, wrong = getattr(expected, field), getattr(got, field)
        if old is None or equal(getattr(old, field), wrong) or equal(getattr(old, field), right):
            return default
        if field == "metadata":
            changes: dict[str, Any] = dict(right) if kind != "updated" else {}
            for update in (update for operation in self.known.segment for update in updates_of(operation)):
                if kind == "updated" and update.id == expected.id:
                    changes |= update.metadata or {}
            if kind != "updated" and equal(old.metadata | right, wrong):
                return default
            return self._merged_clause(changes, right, wrong, default, dict(old.metadata))
        if field == "created_at":
            given = any(name == expected.id and message.created_at is not None for name, message in self.known.saves())
            return "VAL-1" if given and wrong != self.known.now else default
        if field == "content":
            return length_clause(str(right)) if isinstance(right, str) else "MSG-0"
        return default

    def _merged_clause(
        self, changes: Any, expected: Any, got: Any, default: str, old: dict[str, Any] | None = None
    ) -> str:
        """Whether a merge went wrong, or a value of the change did not come back as given."""
        given = cast("dict[str, Any]", changes) if isinstance(changes, dict) else {}
        for key in expected.keys() | got.keys():
            if _same_item(key, expected, got):
                continue
            value, came = given.get(key), got.get(key)
            kept = old is not None and _same_item(key, old, got)
            lost = key not in got and value not in (None, [], {}) and not any(mark in key for mark in ".$")
            merged = isinstance(came, dict) and isinstance(value, dict)
            if kept or lost or merged or (key not in given and not any(name.startswith(f"{key}.") for name in given)):
                return default
        return "VAL-3"

    def _inserted_clause(self, expected: Message, field: str, got: Any) -> str:
        """The clause of a value that did not come back as saved."""
        saves = [operation for operation in self.known.segment if isinstance(operation, ops.SaveMessages)]
        given = [
            message
            for operation in saves
            for message in operation.arguments()["messages"]
            if getattr(message, "id", None) == expected.id
        ]
        if len(given) > 1:
            return "MSG-2"
        match field:
            case "created_at":
                return "VAL-1" if given and given[0].created_at is not None else "MSG-1"
            case "content":
                return length_clause(expected.content) if isinstance(expected.content, str) else "MSG-0"
            case "metadata":
                return "VAL-3"
            case _:
                return "MSG-0"


def _other_zone(expected: Any, got: Any) -> bool:
    """Whether an instant is right but for its zone."""
    if not isinstance(expected, datetime) or not isinstance(got, datetime):
        return False
    return got.tzinfo is None or got == expected


def _same_item(key: str, left: dict[str, Any], right: dict[str, Any]) -> bool:
    return key in left and key in right and equal(left[key], right[key])
