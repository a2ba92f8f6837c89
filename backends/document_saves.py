"""What a batch of messages to save comes to: refused, or what each id is at the end (MSG-1, MSG-2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from ..spec.errors import OwnershipMismatch, ThreadNotFound
from ..spec.requests import MessageRow
from ..spec.types import Message
from .document_filters import instant_of
from .document_writes import Seen


class Entry(msgspec.Struct, frozen=True):
    """A row of a batch. `ordinal` is how many of the batch's rows for its thread stand before it."""

    row: MessageRow
    ordinal: int


class Place(msgspec.Struct, frozen=True):
    """What a message is after its save. Where `position` is None it enters the thread, as the ordinal says."""

    message: Message
    position: int | None
    ordinal: int


def entries(batch: Iterable[MessageRow]) -> list[Entry]:
    """The rows with their ordinals."""
    before: Counter[str] = Counter()
    found: list[Entry] = []
    for row in batch:
        found.append(Entry(row, before[row.thread_id]))
        before[row.thread_id] += 1
    return found


def check(batch: Sequence[Entry], seen: Seen) -> None:
    """Refuse the batch as saving its messages one by one would; any error among them is a right answer."""
    owners: dict[str, str] = {}
    errors: list[ThreadNotFound | OwnershipMismatch] = []
    for row in (entry.row for entry in batch):
        thread = seen.threads.get(row.thread_id)
        if thread is None:
            errors.append(ThreadNotFound(f"thread {row.thread_id!r} does not exist", clause="MSG-1"))
            continue
        resource = thread.source["resource_id"]
        if row.resource_id not in (None, resource):
            errors.append(OwnershipMismatch(f"thread {row.thread_id!r} is another resource's", clause="MSG-1"))
        old = seen.messages.get(row.id)
        if owners.setdefault(row.id, old.source["resource_id"] if old else resource) != resource:
            errors.append(OwnershipMismatch(f"message {row.id!r} is another resource's", clause="MSG-2"))
    if errors:
        errors[0].also = tuple({error.code for error in errors})
        raise errors[0]


def plan(batch: Sequence[Entry], seen: Seen, now: datetime) -> tuple[dict[str, Place], set[str]]:
    """Save the rows one by one, on paper: what each id ends as, and the threads that were touched on the way."""
    places: dict[str, Place] = {}
    where = {each: doc.source["thread_id"] for each, doc in seen.messages.items()}
    since = {each: instant_of(doc.source["created_at"]) for each, doc in seen.messages.items()}
    position: dict[str, int | None] = {each: doc.source["position"] for each, doc in seen.messages.items()}
    ordinal: dict[str, int] = {}
    touched: set[str] = set()
    for entry in batch:
        row = entry.row
        came_from = where.get(row.id)
        if came_from != row.thread_id:
            position[row.id], ordinal[row.id] = None, entry.ordinal
        where[row.id] = row.thread_id
        since[row.id] = row.created_at or since.get(row.id, now)
        message = Message(
            id=row.id,
            thread_id=row.thread_id,
            resource_id=seen.threads[row.thread_id].source["resource_id"],
            role=row.role,
            content=row.content,
            metadata=row.metadata,
            created_at=since[row.id],
        )
        places[row.id] = Place(message, position[row.id], ordinal.get(row.id, 0))
        touched |= {row.thread_id} if came_from is None else {row.thread_id, came_from}
    return places, touched
