"""What answers are worth: rows that belong, rows that do not, too few of them; by truth that is the harness's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from ..spec.types import RecallResult
from .samples import Outcome
from .truth import Truth

NEVER = -1
"""The number of a row that was never stored."""


class Judged(NamedTuple):
    """How an operation ended (samples.Outcome), and its rows: due, right among them, returned."""

    outcome: Outcome
    due: int = 0
    right: int = 0
    returned: int = 0


class Expected(Protocol):
    """What an operation should be answered with."""

    @property
    def due(self) -> int:
        """Rows that the answer should have; 0 where nothing is judged by rows."""
        ...

    def keep(self, answer: Any) -> Any:
        """What of an answer has to be remembered until it is judged; of the call's return value."""
        ...

    def judge(self, kept: Any) -> Judged:
        """What it is worth."""
        ...


class Nearest(msgspec.Struct, frozen=True):
    """The closest rows of an index: ties by distance. `numbers`: of the rows, by id."""

    truth: Truth
    numbers: Mapping[str, int]

    @property
    def due(self) -> int:
        """See Expected."""
        return self.truth.due

    def keep(self, answer: Any) -> tuple[str, ...]:
        """See Expected."""
        return tuple([hit.id for hit in answer])

    def judge(self, kept: tuple[str, ...]) -> Judged:
        """See Expected. An id that was never stored is wrong."""
        counted = self.truth.count([self.numbers.get(id, NEVER) for id in kept])
        due = self.truth.due
        wrong = counted.wrong > 0 or len(kept) > due
        outcome: Outcome = "wrong" if wrong else "short" if counted.returned_unique < due else "ok"
        return Judged(outcome, due, counted.right, len(kept))


class Listed(msgspec.Struct, frozen=True):
    """These messages in this order."""

    ids: tuple[str, ...]

    @property
    def due(self) -> int:
        """See Expected."""
        return len(self.ids)

    def keep(self, answer: RecallResult) -> tuple[str, ...]:
        """See Expected."""
        return tuple([message.id for message in answer.messages])

    def judge(self, kept: tuple[str, ...]) -> Judged:
        """See Expected. What is there has to be in order; short is a listing from which only some are missing."""
        due = len(self.ids)
        found = {*kept}
        right = len(found.intersection(self.ids))
        ordered = [id for id in self.ids if id in found]
        wrong = list(kept) != ordered
        return Judged("wrong" if wrong else "short" if right < due else "ok", due, right, len(kept))


class Closest(msgspec.Struct, frozen=True):
    """The messages nearest in meaning: `due` of those that belong (more where there are ties), none that may not be."""

    due: int
    belong: frozenset[str]
    allowed: frozenset[str]

    def keep(self, answer: RecallResult) -> tuple[str, ...]:
        """See Expected."""
        return tuple([hit.id for hit in answer.hits])

    def judge(self, kept: tuple[str, ...]) -> Judged:
        """See Expected."""
        found = {*kept}
        right = min(self.due, len(found & self.belong))
        wrong = len(found) < len(kept) or not found <= self.allowed or len(kept) > self.due
        return Judged("wrong" if wrong else "short" if len(found) < self.due else "ok", self.due, right, len(kept))


class Saved(msgspec.Struct, frozen=True):
    """The rows that a write returns, by their ids in order."""

    ids: tuple[str, ...]

    @property
    def due(self) -> int:
        """See Expected."""
        return 0

    def keep(self, answer: Any) -> tuple[str, ...]:
        """See Expected."""
        return tuple([row.id for row in answer])

    def judge(self, kept: tuple[str, ...]) -> Judged:
        """See Expected."""
        return Judged("ok" if kept == self.ids else "wrong")


class Counted(msgspec.Struct, frozen=True):
    """How many rows a write was about."""

    many: int

    @property
    def due(self) -> int:
        """See Expected."""
        return 0

    def keep(self, answer: int) -> int:
        """See Expected."""
        return answer

    def judge(self, kept: int) -> Judged:
        """See Expected."""
        return Judged("ok" if kept == self.many else "wrong")


class Cloned(msgspec.Struct, frozen=True):
    """A copy of so many messages."""

    many: int

    @property
    def due(self) -> int:
        """See Expected."""
        return self.many

    def keep(self, answer: Any) -> int:
        """See Expected."""
        return len(answer.cloned_messages)

    def judge(self, kept: int) -> Judged:
        """See Expected."""
        outcome: Outcome = "ok" if kept == self.many else "short" if kept < self.many else "wrong"
        return Judged(outcome, self.many, min(kept, self.many), kept)
