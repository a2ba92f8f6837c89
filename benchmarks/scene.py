"""What a benchmark stores and asks about, and the truth about it: the model's answers, and exact nearest neighbours."""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeVar

import msgspec
import numpy as np

from ..spec.embedding import text_of
from ..spec.protocols import Embedder, Memory, Runtime, VectorIndex
from ..spec.reference import Model, State
from ..spec.types import IndexConfig, MemoryConfig, Message, NewMessage, NewVector, OrderBy
from ..spec.vectors import Vectors, scores
from .filters import Filter
from .vectorset import VectorSet

T = TypeVar("T")

INDEX = "benchmark"
SAVED, CHURNED, CLONED = "saved", "churned", "cloned"
"""Threads and indices that writes go to: no read sees them, so that the truth about reads stands."""

RESOURCE = "benchmark"
SPREAD = 8
"""Threads that saves go to in turn."""

COPIED = 100
"""Messages of the thread that is cloned."""

VECTORS_AT_ONCE = 1_000

SELECTIVITIES = (0.1, 0.01)
"""What part of a thread's messages a metadata filter should leave, about."""

TIE = 1e-9
"""Scores as near as this are equal."""

LARGEST = 5_000_000
"""Components of all vectors, or embeddings, beyond which a plain scan of them in Python takes too long to be asked."""


class Conversations(Protocol):
    """Threads of messages, seeded: see agent.AgentMemory."""

    name: str

    @property
    def threads(self) -> Sequence[tuple[str, str, int]]:
        """Id, resource and number of messages of each."""
        ...

    @property
    def embedder(self) -> Embedder:
        """Embeds their texts, and questions about them, by looking them up."""
        ...

    @property
    def questions(self) -> Sequence[str]:
        """Texts that are no message's."""
        ...

    def batches(self) -> Iterator[list[NewMessage]]:
        """All messages, each batch of one thread."""
        ...

    def hash(self) -> str:
        """Of all of it."""
        ...


class Series:
    """Numbers for what a contender's writes name, none twice."""

    def __init__(self, first: int = 0) -> None:
        self._next = first

    def take(self, many: int) -> range:
        """The next so many."""
        first = self._next
        self._next += many
        return range(first, self._next)

    @property
    def at(self) -> int:
        """The next number."""
        return self._next

    def ahead(self) -> Series:
        """One that stands where this does."""
        return Series(self._next)


class Filled(msgspec.Struct, frozen=True):
    """Rows given to a store: acknowledged by it, visible afterwards, refused; and how long each part took."""

    acknowledged: int
    visible: int
    rejected: int
    seconds: dict[str, float]


class Scene:
    """A data set of vectors and one of messages; `k` rows are asked of every search."""

    spread = SPREAD

    def __init__(self, vectors: VectorSet, memory: Conversations, *, k: int, seed: int, truth: TruthOf) -> None:
        self.vectors = vectors
        self.memory = memory
        self.k = k
        self.seed = seed
        self._truth = truth
        self._pools: dict[str, Any] = {}
        self.numbers: Mapping[str, int] = {id: row for row, id in enumerate(vectors.ids())}

    @property
    def embedder(self) -> Embedder:
        """Of the messages."""
        return self.memory.embedder

    def large(self, needs: Collection[str]) -> bool:
        """Whether scanning all that a workload with these needs searches takes too long to be done every time."""
        embeddings = sum(count for _, _, count in self.memory.threads) * self.embedder.dimension
        sizes = {"vectors": self.vectors.rows.size, "semantic_recall": embeddings}
        return any(sizes.get(need, 0) > LARGEST for need in needs)

    def random(self, purpose: str) -> np.random.Generator:
        """Of the seed, another for every purpose."""
        return np.random.default_rng([self.seed, zlib.crc32(purpose.encode())])

    def pool(self, name: str, make: Callable[[], list[T]]) -> list[T]:
        """What is made once for all contenders."""
        if name not in self._pools:
            self._pools[name] = make()
        return self._pools[name]

    # Vectors

    def truth(self, filter: Filter) -> Sequence[Any]:
        """What the queries of a filter should find, in their order."""
        return self.pool(f"truth {filter.key}", lambda: [*self._truth(self.vectors, filter, self.k)])

    def vector(self, number: int) -> list[float]:
        """One to store beside those of the data set: any of them again, with a little added."""
        rows = self.vectors.rows
        row = rows[number * 7919 % len(rows)].astype(np.float64)
        row[number % len(row)] += 0.1
        return (row / np.linalg.norm(row)).tolist()

    # Messages

    @cached_property
    def oracle(self) -> Memory:
        """The model, which holds all messages."""
        model = Model(Runtime(), MemoryConfig(), State())
        store_messages(model, self.memory)
        return model

    def messages(self, thread: str) -> Sequence[Message]:
        """A thread's, oldest first."""
        return self.pool(f"messages {thread}", lambda: [*_all(self.oracle, thread)])

    def threads(self, many: int, *, least: int) -> Iterator[str]:
        """Threads of at least so many messages, any of them, again and again."""
        long = [thread for thread, _, count in self.memory.threads if count >= least]
        random = self.random(f"threads {least}")
        yield from (long[place] for place in random.integers(len(long), size=many)) if long else ()

    def conditions(self, many: int, *, least: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Threads of at least so many messages, each with metadata that few of them have."""
        for number, thread in enumerate(self.threads(many, least=least)):
            found = self.pool(f"conditions {thread}", lambda thread=thread: _conditions(self.messages(thread)))
            yield thread, found[number % len(found)]

    def text(self, number: int) -> str:
        """Something somebody said."""
        return self._texts[number % len(self._texts)]

    @cached_property
    def _texts(self) -> list[str]:
        first = next(self.memory.batches())
        return [
            text_of(message.content if isinstance(message.content, str) else tuple(message.content)) or "so"
            for message in first
        ]

    def questions(self, many: int) -> Iterator[tuple[str, str, str]]:
        """A thread, its resource, and a text to look for there."""
        for thread, text in zip(self.threads(many, least=self.k), self.memory.questions, strict=False):
            yield thread, self.owner(thread), text

    def owner(self, thread: str) -> str:
        """The resource of a thread."""
        return next(resource for name, resource, _ in self.memory.threads if name == thread)

    def closest(self, thread: str, text: str, scope: str, k: int) -> tuple[frozenset[str], frozenset[str], int]:
        """Messages that may be found, those among them that belong (ties included), and how many are due."""
        owner = self.owner(thread)
        names = [thread] if scope == "thread" else [name for name, other, _ in self.memory.threads if other == owner]
        asked = np.array(self.embedder.embed([text], "query")[0], np.float32)
        ids: list[str] = [message.id for name in names for message in self.messages(name)]
        reached = np.concatenate([scores("cosine", asked, self._embedded(name)) for name in names])
        due = min(k, len(ids))
        least = np.partition(reached, -due)[-due] - TIE
        belong = frozenset(ids[place] for place in np.flatnonzero(reached >= least).tolist())
        return frozenset(ids), belong, due

    def _embedded(self, thread: str) -> Vectors:
        """The embeddings of a thread's messages, shape (n, dimension)."""

        def embed() -> list[Vectors]:
            texts = [text_of(message.content) or "" for message in self.messages(thread)]
            return [np.array(self.embedder.embed(texts, "document"), np.float32)]

        return self.pool(f"embedded {thread}", embed)[0]


TruthOf = Callable[[VectorSet, Filter, int], Iterable[Any]]
"""Finds what the queries of a filter should find: truth.exact."""


# Storing


def fill_memory(memory: Memory, scene: Scene, *, embedded: bool) -> Filled:
    """Store all messages, and what writes need; embedded where they are to be found by meaning."""
    began = time.perf_counter()
    config = _semantic({}) if embedded else None
    acknowledged = store_messages(memory, scene.memory, config)
    stored = time.perf_counter() - began
    for thread in (*(f"{SAVED}-{number}" for number in range(SPREAD)), CHURNED, CLONED):
        memory.create_thread(resource_id=RESOURCE, id=thread)
    memory.save_messages([NewMessage(f"{CLONED}-{n}", CLONED, scene.text(n)) for n in range(COPIED)])
    visible = sum(memory.recall(thread, per_page=1).total for thread, _, _ in scene.memory.threads)
    given = sum(count for _, _, count in scene.memory.threads)
    return Filled(acknowledged, visible, given - acknowledged, {"messages": stored})


def store_messages(memory: Memory, given: Conversations, config: MemoryConfig | None = None) -> int:
    """Create the threads and save every batch; how many messages were acknowledged."""
    for thread, resource, _ in given.threads:
        memory.create_thread(resource_id=resource, id=thread)
    return sum(len(memory.save_messages(batch, thread_config=config)) for batch in given.batches())


def fill_index(index: VectorIndex, scene: Scene, config: IndexConfig | None) -> Filled:
    """Store all vectors, and make the indices that writes go to."""
    data, ids = scene.vectors, scene.vectors.ids()
    dimension = data.rows.shape[1]
    began = time.perf_counter()
    for name in (INDEX, SAVED, CHURNED):
        index.create_index(name, dimension=dimension, metric=data.metric, config=config)
    acknowledged = 0
    for start in range(0, len(ids), VECTORS_AT_ONCE):
        numbers = range(start, min(start + VECTORS_AT_ONCE, len(ids)))
        given = [NewVector(ids[row], data.rows[row].tolist(), data.metadata(row)) for row in numbers]
        acknowledged += index.upsert_vectors(INDEX, given)
    stored = time.perf_counter() - began
    visible = index.describe_index(INDEX).count
    return Filled(acknowledged, visible, len(ids) - acknowledged, {"vectors": stored})


def _semantic(options: Mapping[str, Any]) -> MemoryConfig:
    return msgspec.convert({"semantic_recall": options or True}, MemoryConfig)


def _all(memory: Memory, thread: str) -> Iterable[Message]:
    return memory.recall(thread, per_page=False, order_by=OrderBy(direction="ASC")).messages


def _conditions(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """For each selectivity, the keys and values that about so many messages have: those nearest to it."""
    counts = Counter(
        (key, value)
        for message in messages
        for key, value in message.metadata.items()
        if isinstance(value, str)  # baselines filter by texts
    )
    return [
        dict([min(counts, key=lambda pair: (abs(counts[pair] / len(messages) - wanted), str(pair)))])
        for wanted in SELECTIVITIES
        if counts
    ]
