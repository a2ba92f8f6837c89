"""Mutants laid over a real engine: the faulty code stands between the caller and a store that is right.

A mutant is a subclass of `Adapter` or `Engine`. Here a base of another kind is slipped in between that and the
model: a call that the mutant passes on reaches the engine instead. Where a mutant only reads wrongly, as an adapter
does that filters or pages by itself, its reads work on rows fetched from the engine beforehand. A fault that is in how
rows are kept has nothing to stand between, and cannot be laid over (`obstacle`).
"""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any, cast

from memassay.spec.capabilities import Capabilities
from memassay.spec.index_requests import NewIndex, parse_delete_vectors
from memassay.spec.protocols import Memory, Runtime, VectorIndex
from memassay.spec.reference import Model, Row, State
from memassay.spec.reference_index import Entry, ModelIndex
from memassay.spec.types import MemoryConfig, OrderBy

from .adapter import Adapter
from .engine import Engine

MEMORY_CALLS = frozenset(
    {
        *("create_thread", "get_thread", "update_thread", "list_threads", "delete_thread", "clone_thread"),
        *("list_clones", "save_messages", "update_messages", "delete_messages", "clear_messages", "recall"),
        *(
            "semantic_index",
            "get_working_memory",
            "update_working_memory",
            "title_thread",
            "settle",
            "close",
            "given",
            "message",
            "change",
        ),
    }
)
MEMORY_READS = frozenset(
    {
        *("holds", "matching", "directed", "offset", "page", "total", "more", "shown", "result", "_union", "rank"),
        *("window", "threads", "threads_directed", "listed", "own"),
    }
)
INDEX_CALLS = frozenset(
    {
        *("create_index", "describe_index", "list_indexes", "drop_index", "upsert_vectors", "get_vectors"),
        *("update_vector", "delete_vectors", "query_vectors", "close", "where"),
    }
)
INDEX_READS = frozenset(
    {"holds", "among", "range", "matching", "answer", "ranked", "scores", "cut", "enough", "shown", "find"}
)
HARMLESS = frozenset({"runtime", "options", "capabilities", "index", "_lock"})
"""What a laid mutant has as the model does."""

IN_A_SEARCH = "its fault shows in searches, which are the engine's own"
NOTHING_LACKING = "an engine that lacks nothing has nothing to refuse"
CANNOT = {
    "remembers_nothing": NOTHING_LACKING,
    "writes_nothing": NOTHING_LACKING,
    "lists_no_clones": NOTHING_LACKING,
    "finds_on_the_page_only": IN_A_SEARCH,
    "hits_replace_the_page": IN_A_SEARCH,
    "results_come_by_score": IN_A_SEARCH,
    "ignores_the_metric": IN_A_SEARCH,
    "returns_its_own_messages": "rows that are fetched are nobody's own",
    "takes_zero_vectors": "the engine refuses what the fault lets pass",
    "exact_is_approximate": "its fault shows only where queries are approximate",
    "probes_a_quarter": "its fault shows only where queries are approximate",
}
"""Mutants that go through, but whose fault does not, each with why."""

EVERYTHING = 10_000
"""Rows that one query may return, and so rows that a laid index can read."""


class LaidMemory(Model):
    """Passes every call on to a store. With `reads`, recall and list_threads are the mutant's, over fetched rows."""

    def __init__(
        self, real: Memory, runtime: Runtime, config: MemoryConfig, capabilities: Capabilities, *, reads: bool
    ) -> None:
        super().__init__(runtime, config, State(), capabilities=capabilities)
        self._real = real
        self._reads = reads

    def create_thread(self, *given: Any, **named: Any) -> Any:
        return self._real.create_thread(*given, **named)

    def get_thread(self, *given: Any, **named: Any) -> Any:
        return self._real.get_thread(*given, **named)

    def update_thread(self, *given: Any, **named: Any) -> Any:
        return self._real.update_thread(*given, **named)

    def delete_thread(self, *given: Any, **named: Any) -> Any:
        return self._real.delete_thread(*given, **named)

    def clone_thread(self, *given: Any, **named: Any) -> Any:
        return self._real.clone_thread(*given, **named)

    def list_clones(self, *given: Any, **named: Any) -> Any:
        return self._real.list_clones(*given, **named)

    def save_messages(self, *given: Any, **named: Any) -> Any:
        return self._real.save_messages(*given, **named)

    def update_messages(self, *given: Any, **named: Any) -> Any:
        return self._real.update_messages(*given, **named)

    def delete_messages(self, *given: Any, **named: Any) -> Any:
        return self._real.delete_messages(*given, **named)

    def clear_messages(self, *given: Any, **named: Any) -> Any:
        return self._real.clear_messages(*given, **named)

    def semantic_index(self) -> Any:
        return self._real.semantic_index()

    def get_working_memory(self, *given: Any, **named: Any) -> Any:
        return self._real.get_working_memory(*given, **named)

    def update_working_memory(self, *given: Any, **named: Any) -> Any:
        return self._real.update_working_memory(*given, **named)

    def title_thread(self, *given: Any, **named: Any) -> Any:
        return self._real.title_thread(*given, **named)

    def settle(self, *given: Any, **named: Any) -> Any:
        return self._real.settle(*given, **named)

    def close(self) -> None:
        self._real.close()

    def list_threads(self, *given: Any, **named: Any) -> Any:
        if not self._reads:
            return self._real.list_threads(*given, **named)
        self._fetch()
        return super().list_threads(*given, **named)

    def recall(self, *given: Any, **named: Any) -> Any:
        # Embeddings cannot be read: a search is the engine's own.
        if not self._reads or named.get("vector_search_string"):
            return self._real.recall(*given, **named)
        self._fetch()
        return super().recall(*given, **named)

    def _fetch(self) -> None:
        """All that the store shows, as the model keeps it."""
        oldest_first = OrderBy(direction="ASC")
        state = State()
        for thread in self._real.list_threads(per_page=False, order_by=oldest_first).threads:
            state.threads[thread.id] = thread
            state.rows[thread.id] = []
            for message in self._real.recall(thread.id, per_page=False, order_by=oldest_first).messages:
                state.next_position += 1
                row = Row(message, state.next_position)
                state.rows[thread.id].append(row)
                state.by_id[message.id] = row
        self.state = state


class LaidIndex(ModelIndex):
    """Passes every call on to an index. With `reads`, queries and deletes by filter are the mutant's, over all rows."""

    def __init__(self, real: VectorIndex, capabilities: Capabilities, *, reads: bool) -> None:
        super().__init__(capabilities=capabilities)
        self._real = real
        self._reads = reads

    def create_index(self, *given: Any, **named: Any) -> Any:
        return self._real.create_index(*given, **named)

    def describe_index(self, *given: Any, **named: Any) -> Any:
        return self._real.describe_index(*given, **named)

    def list_indexes(self) -> Any:
        return self._real.list_indexes()

    def drop_index(self, *given: Any, **named: Any) -> Any:
        return self._real.drop_index(*given, **named)

    def upsert_vectors(self, *given: Any, **named: Any) -> Any:
        return self._real.upsert_vectors(*given, **named)

    def get_vectors(self, *given: Any, **named: Any) -> Any:
        return self._real.get_vectors(*given, **named)

    def update_vector(self, *given: Any, **named: Any) -> Any:
        return self._real.update_vector(*given, **named)

    def delete_vectors(self, name: str, *, ids: Any = None, filter: Any = None) -> Any:
        if self._reads and ids is None and filter is not None:
            self._fetch(name)
            asked = parse_delete_vectors(ids, filter)
            ids, filter = [*(asked if isinstance(asked, tuple) else self.matching(name, asked))], None
        return self._real.delete_vectors(name, ids=ids, filter=filter)

    def query_vectors(self, name: str, *given: Any, **named: Any) -> Any:
        if not self._reads:
            return self._real.query_vectors(name, *given, **named)
        self._fetch(name)
        return super().query_vectors(name, *given, **named)

    def close(self) -> None:
        self._real.close()

    def _fetch(self, name: str) -> None:
        """The index and its rows, as the model keeps them."""
        described = self._real.describe_index(name)
        probe = [1.0] + [0.0] * (described.dimension - 1)
        hits = self._real.query_vectors(name, probe, top_k=EVERYTHING, exact=True)
        self.state.indexes[name] = NewIndex(
            described.name, described.dimension, cast(Any, described.metric), described.config
        )
        self.state.rows[name] = {
            row.id: Entry(row.vector, row.metadata) for row in self._real.get_vectors(name, [hit.id for hit in hits])
        }


def obstacle(store: type[Model] | type[ModelIndex]) -> str:
    """Why the mutant cannot be laid over an engine; empty when it can."""
    if issubclass(store, Adapter):
        base, calls, reads = Adapter, MEMORY_CALLS, MEMORY_READS
    elif issubclass(store, Engine):
        base, calls, reads = Engine, INDEX_CALLS, INDEX_READS
    else:
        return "it is no Adapter and no Engine"
    of_base = {name for name in dir(base) if not name.startswith("__")} | {"__init__", "state", "events"}
    inner = of_base - calls - reads - HARMLESS
    for name, function in _own(store, base):
        if name in inner:
            return f"its fault is in {name}, in how the model keeps its rows"
        used = {used for code in _codes(function.__code__) for used in code.co_names}
        if "state" in used and name in calls:
            return f"its {name} looks into the model's rows"
        if wrong := sorted(used & (inner - {"state"})):
            return f"its {name} uses {wrong[0]}, which only the model has"
    return ""


def reads(store: type[Model] | type[ModelIndex]) -> bool:
    """Whether the mutant reads wrongly, so that its reads have to be its own."""
    hooks = MEMORY_READS if issubclass(store, Adapter) else INDEX_READS
    return any(name in hooks for name, _ in _own(store, Adapter if issubclass(store, Adapter) else Engine))


def laid_memory(
    store: type[Model], real: Memory, runtime: Runtime, config: MemoryConfig, capabilities: Capabilities
) -> Memory:
    """The mutant as a client of the store."""
    return _between(store, LaidMemory)(real, runtime, config, capabilities, reads=reads(store))


def laid_index(store: type[ModelIndex], real: VectorIndex, capabilities: Capabilities) -> VectorIndex:
    """The mutant as a client of the index."""
    return _between(store, LaidIndex)(real, capabilities, reads=reads(store))


def _between(store: Any, layer: Any) -> Any:
    """The mutant's class with the layer between its hooks and the model: both are subclasses of the model."""
    return type(f"{store.__name__}Laid", (store, layer), {})


def _own(store: type[Any], base: type[Any]) -> Iterator[tuple[str, FunctionType]]:
    """The functions that the mutant's own classes define."""
    for kind in store.__mro__:
        if kind is base:
            return
        for name, value in vars(kind).items():
            if isinstance(value, FunctionType):
                yield name, value


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
