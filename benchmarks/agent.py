"""Memory of agents: threads of ten to a hundred thousand messages, of several resources, made of real dialogue.

A message says one to three lines about a topic. The next goes on where it stopped, until the thread turns to something
else. For filters, a tenth of the messages have each `mood` and a hundredth each `ticket`. Three share an instant.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..harness.exits import UsageProblem
from ..spec.types import NewMessage
from .dialogues import Line, TableEmbedder, directions, embedder, lines
from .keeping import Told, silent
from .names import count, options, split

KIND = "agent"
SHORTEST = 10
"""Messages of a resource's shortest thread; each other one has ten times as many as the one before it."""

OTHERS = 100
"""The longest thread of all resources but the first is shorter by so much."""

QUESTIONS = 200
"""Lines that no message says: they are what is looked for."""

TURN = 0.1
"""How likely it is that a thread turns to something else."""

MORE = 0.9, 0.5
"""How likely it is that a message says a second line, and then a third."""

MOODS, TICKETS = 10, 100
AT_ONCE = 3
BATCH = 1_000
START = datetime(2026, 1, 1, tzinfo=UTC)

VERSION = 1
"""Of what is made from a seed: another when anything of it changes."""

Places = NDArray[np.int64]


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What may be chosen: `agent:100k?seed=1`. resources: how many own threads."""

    seed: Annotated[int, msgspec.Meta(ge=0)] = 0
    resources: Annotated[int, msgspec.Meta(ge=1)] = 10


class Messages(NamedTuple):
    """Of all messages in their order: their lines, shape (n, 3), −1 where there is none; and numbers for metadata."""

    lines: Places
    moods: Places
    tickets: Places


class AgentMemory:
    """Threads and their messages, the same for the same seed, and what to ask about them.

    threads: id, resource and number of messages of each. embedder: knows the lines of messages and questions.
    """

    def __init__(self, name: str, longest: int, chosen: Options, said: Sequence[Line], embedder: TableEmbedder) -> None:
        self.name = name
        self.embedder = embedder
        self.threads = [*_threads(longest, chosen.resources)]
        random = np.random.default_rng(chosen.seed)
        asked: set[int] = {*random.choice(len(said), QUESTIONS, replace=False).tolist()}
        self.questions = [line.text for place, line in enumerate(said) if place in asked]
        self._lines = [line for place, line in enumerate(said) if place not in asked]
        self._messages = _messages(random, self._lines, sum(many for _, _, many in self.threads))

    def batches(self) -> Iterator[list[NewMessage]]:
        """All messages, thread by thread, each batch of one thread and in its order."""
        first = 0
        for thread, _, many in self.threads:
            for start in range(0, many, BATCH):
                numbers = range(start, min(start + BATCH, many))
                yield [self._message(thread, number, first + number) for number in numbers]
            first += many

    def hash(self) -> str:
        """Of all messages, their vectors, and the questions, in hexadecimal."""
        return self._hash

    @cached_property
    def _hash(self) -> str:
        digest = hashlib.sha256(f"{VERSION} {self.embedder.name} {self.threads}".encode())
        for text in (*(line.text for line in self._lines), *self.questions):
            digest.update(f"{text}\n".encode())
        digest.update(np.ascontiguousarray(self.embedder.table).data)
        for array in self._messages:
            digest.update(array.astype("<i8").data)
        return digest.hexdigest()

    def _message(self, thread: str, number: int, place: int) -> NewMessage:
        places: list[int] = self._messages.lines[place].tolist()
        chosen = [self._lines[place] for place in places if place >= 0]
        return NewMessage(
            id=f"{thread}-{number:06}",
            thread_id=thread,
            content="\n".join(line.text for line in chosen),
            role="assistant" if number % 2 else "user",
            metadata={
                "topic": chosen[0].topic,
                "mood": f"mood {self._messages.moods[place]}",
                "ticket": f"ticket {self._messages.tickets[place]}",
            },
            created_at=START + timedelta(seconds=number // AT_ONCE),
        )


def open_agent_memory(
    spec: str, *, cache: Path | None = None, told: Told = silent, meaning: bool = True
) -> AgentMemory:
    """The memory of a name, `agent:LONGEST?option=value&…`: messages of the longest thread, such as 100k.

    Vectors are the local MiniLM's, kept in the cache; where it is not installed they mean nothing, which is told.
    meaning: without it they mean nothing either, and the minute that embedding takes is spared. Raises UsageProblem.
    """
    name = split(spec)
    longest = count(name.what) or 0
    if name.kind != KIND or longest < SHORTEST:
        raise UsageProblem(f"{spec!r} is no memory of agents", hint=f"{KIND}:100k; {KIND}:{SHORTEST} is the smallest")
    chosen, said = options(name, Options), lines()
    texts = [line.text for line in said]
    made = embedder(texts, cache, told) if meaning else directions(texts)
    return AgentMemory(spec, longest, chosen, said, made)


def _threads(longest: int, resources: int) -> Iterator[tuple[str, str, int]]:
    for number in range(resources):
        most = longest if number == 0 else max(SHORTEST, longest // OTHERS)
        size = SHORTEST
        while size < most:
            yield f"resource{number}-{size}", f"resource{number}", size
            size *= 10
        yield f"resource{number}-{most}", f"resource{number}", most


def _messages(random: np.random.Generator, said: Sequence[Line], many: int) -> Messages:
    turns = random.random(many) < TURN
    turns[0] = True
    since = np.arange(many) - np.maximum.accumulate(np.where(turns, np.arange(many), 0))
    begun = random.integers(len(said), size=many)[np.flatnonzero(turns)[np.cumsum(turns) - 1]]
    first = (begun + since) % len(said)
    # Lines are by topic: the others are any of the same topic's.
    topics = np.array([line.topic for line in said])
    starts = np.flatnonzero(np.concatenate([[True], topics[1:] != topics[:-1]]))
    ends = np.append(starts[1:], len(said))
    of = np.searchsorted(starts, first, side="right") - 1
    second, third = (starts[of] + (random.random(many) * (ends[of] - starts[of])).astype(np.int64) for _ in range(2))
    more = random.random((2, many)) < np.array(MORE)[:, None]
    chosen = np.stack([first, np.where(more[0], second, -1), np.where(more[0] & more[1], third, -1)], axis=1)
    return Messages(chosen, random.integers(MOODS, size=many), random.integers(TICKETS, size=many))
