"""Conversations of a few hundred messages, for tests of benchmarks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from memassay.spec.embedders import LiteralEmbedder
from memassay.spec.types import NewMessage

START = datetime(2024, 1, 1, tzinfo=UTC)


class SmallTalk:
    """Two threads of one resource and one of another; `tens` and `hundreds` leave a tenth and a hundredth."""

    name = "small talk"

    def __init__(self) -> None:
        self.threads = [("long", "ann", 300), ("short", "ann", 40), ("other", "bob", 120)]
        self.embedder = LiteralEmbedder(8)
        self.questions = [f"what about {number}?" for number in range(7)]

    def batches(self) -> Iterator[list[NewMessage]]:
        """All messages, two of them at the same instant each time."""
        for thread, _, count in self.threads:
            messages = [
                NewMessage(
                    f"{thread}-{number}",
                    thread,
                    f"line {number} of {thread}",
                    metadata={"tens": f"t{number % 10}", "hundreds": f"h{number % 100}"},
                    created_at=START + timedelta(milliseconds=number // 2),
                )
                for number in range(count)
            ]
            for start in range(0, count, 100):
                yield messages[start : start + 100]

    def hash(self) -> str:
        """Says what it is."""
        return "small"
