"""Messages in long threads: what is stored, what is asked and saved, and what is right, all from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from ..backends.baselines import Listed
from ..backends.baselines import Message as Row
from ..spec.types import Message, NewMessage, RecallResult

RESOURCE = "resource"
THREADS = 5
MINE, THEIRS = 0, 1
"""Of these threads: the one that the adapter saves to, and the one that is saved to by hand. All are read."""

NEWEST, PAGE, PAGES, AROUND = 10, 50, 10, 2
"""How many messages: the newest, a page, of which one of the first PAGES is asked for, neighbours on each side."""

START = datetime(2024, 1, 1, tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_WORDS = (
    "memory",
    "agent",
    "user",
    "asks",
    "about",
    "plans",
    "travel",
    "food",
    "music",
    "code",
    "forgets",
    "remembers",
)


class Question(msgspec.Struct, frozen=True):
    """One read: a page of a thread, perhaps of those alone that have metadata; or a message with its neighbours."""

    thread: int
    count: int = 0
    page: int = 0
    metadata: dict[str, str] | None = None
    around: int | None = None


class Save(msgspec.Struct, frozen=True):
    """One save: messages for the adapter, and the same by hand, but for their ids and thread."""

    mine: tuple[NewMessage, ...]
    theirs: tuple[Row, ...]


class Workload:
    """THREADS threads of `size` messages each, two of them to every instant. One in a hundred has two given metadata.

    A message is known by its number in the order of its thread.
    """

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self._random = random.Random(seed)
        self._saved = size
        self._texts = [" ".join(self._random.choices(_WORDS, k=40)) for _ in range(100)]

    def message(self, thread: int, number: int) -> NewMessage:
        """As it is saved."""
        return NewMessage(
            id=id_of(thread, number),
            thread_id=thread_id(thread),
            content=self._texts[number % len(self._texts)],
            role=("user", "assistant")[number % 2],
            metadata={"topic": f"t{number % 10}", "user": f"u{number // 10 % 10}", "source": f"document-{number}"},
            created_at=START + timedelta(seconds=number // 2),
        )

    def row(self, thread: int, number: int) -> Row:
        """As it is stored."""
        new = self.message(thread, number)
        assert new.created_at is not None
        at = (new.created_at - _EPOCH) // _MILLISECOND
        return new.id, new.thread_id, RESOURCE, new.role, new.content, new.metadata, at

    def newest(self) -> Question:
        """The newest messages of a thread, as an agent reads them before each of its turns."""
        return Question(self._random.randrange(THREADS), NEWEST)

    def page(self) -> Question:
        """A longer page, not far back."""
        return Question(self._random.randrange(THREADS), PAGE, self._random.randrange(PAGES))

    def filtered(self) -> Question:
        """The first page of the messages, one in a hundred, that have two given metadata."""
        asked = {"topic": f"t{self._random.randrange(10)}", "user": f"u{self._random.randrange(10)}"}
        return Question(self._random.randrange(THREADS), PAGE, metadata=asked)

    def around(self) -> Question:
        """A message with its neighbours."""
        return Question(self._random.randrange(THREADS), around=self._random.randrange(self.size))

    def saves(self, count: int) -> Iterator[Save]:
        """Saves of so many new messages, without end: each goes on where the last one stopped."""
        while True:
            numbers = range(self._saved, self._saved + count)
            self._saved += count
            yield Save(
                tuple(self.message(MINE, number) for number in numbers),
                tuple(self.row(THEIRS, number) for number in numbers),
            )

    def answer(self, asked: Question) -> Listed:
        """What a read has to find, after all that was saved so far."""
        held = self._saved if asked.thread in (MINE, THEIRS) else self.size
        numbers: Sequence[int] = range(held - 1, -1, -1)
        if asked.around is not None:
            first = max(0, held - 1 - asked.around - AROUND)
            near = numbers[first : held - asked.around + AROUND]
            return [self.row(asked.thread, number) for number in near], held, False
        if asked.metadata is not None:
            topic, user = (int(asked.metadata[key][1:]) for key in ("topic", "user"))
            numbers = [number for number in numbers if number % 100 == 10 * user + topic]
        start, end = asked.page * asked.count, (asked.page + 1) * asked.count
        return [self.row(asked.thread, number) for number in numbers[start:end]], len(numbers), end < len(numbers)


def thread_id(thread: int) -> str:
    """The id of a thread."""
    return f"thread-{thread}"


def id_of(thread: int, number: int) -> str:
    """The id of a message."""
    return f"message-{thread}-{number:08}"


def row_of(message: Message) -> Row:
    """A message that a store gave."""
    at = (message.created_at - _EPOCH) // _MILLISECOND
    given = message.id, message.thread_id, message.resource_id, message.role, message.content, message.metadata
    return (*given, at)


def listed(result: RecallResult) -> Listed:
    """What a store's recall found."""
    return [row_of(message) for message in result.messages], result.total, result.has_more
