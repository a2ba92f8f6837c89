"""Facts of the libSQL adapter's vector half that no clause states: plans, bounds, tokens, tables, when it embeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from memassay.backends.libsql import LibsqlBackend
from memassay.backends.libsql_client import Connection, Cursor, Row, connect
from memassay.backends.libsql_search import searched, to_bytes, token, true_scores
from memassay.spec.embedders import LiteralEmbedder
from memassay.spec.errors import ConfigurationError, Unsupported
from memassay.spec.operators import MAX_CONDITIONS, MAX_LIST_VALUES
from memassay.spec.protocols import Memory, Runtime, VectorIndex
from memassay.spec.types import (
    IndexConfig,
    MemoryConfig,
    MessageUpdate,
    NewMessage,
    NewVector,
    SemanticRecall,
)
from memassay.spec.vectors import Metric

BACKEND = LibsqlBackend()
ON = MemoryConfig(semantic_recall=SemanticRecall(top_k=2, message_range=0))


class Recorder:
    """A connection that keeps the selects it ran and can tell their plans."""

    def __init__(self, inner: Connection) -> None:
        self.inner = inner
        self.selects: list[tuple[str, Sequence[object]]] = []

    @property
    def in_transaction(self) -> bool:
        return self.inner.in_transaction

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> Cursor:
        if sql.strip().startswith("select"):
            self.selects.append((sql, parameters))
        return self.inner.execute(sql, parameters)

    def executemany(self, sql: str, parameters: list[Row]) -> Cursor:
        return self.inner.executemany(sql, parameters)

    def close(self) -> None:
        self.inner.close()

    def searches(self) -> list[str]:
        """The plans of the recorded selects that compare vectors."""
        return [
            "; ".join(row[3] for row in self.inner.execute("explain query plan " + sql, values).fetchall())
            for sql, values in self.selects
            if "vector_distance" in sql
        ]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "memory.db")


@pytest.fixture
def recorder(path: str, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder(connect(path))

    def connected(path: str) -> Connection:
        return recorder

    monkeypatch.setattr("memassay.backends.libsql_client.connect", connected)
    return recorder


def opened(path: str, namespace: str = "one", dimension: int = 2) -> VectorIndex:
    index = BACKEND.open_index(path, namespace, Runtime())
    index.create_index("i", dimension=dimension)
    return index


@pytest.fixture
def index(path: str) -> Iterator[VectorIndex]:
    index = opened(path)
    yield index
    index.close()


@pytest.fixture
def recorded(recorder: Recorder, path: str) -> Iterator[VectorIndex]:
    index = opened(path)
    index.upsert_vectors("i", [NewVector(f"v{i:02}", [1, i], {"k": i % 10}) for i in range(30)])
    recorder.selects.clear()
    yield index
    index.close()


def remembering(path: str, embedder: LiteralEmbedder | None = None, config: MemoryConfig = ON) -> Memory:
    return BACKEND.open_memory(path, "one", Runtime(embedder=embedder or LiteralEmbedder(2)), config)


@pytest.fixture
def memory(path: str) -> Iterator[Memory]:
    memory = remembering(path)
    memory.create_thread(resource_id="r", id="t", metadata={"topic": "x"})
    yield memory
    memory.close()


def rows(path: str, sql: str) -> list[Row]:
    connection = connect(path)
    found = connection.execute(sql).fetchall()
    connection.close()
    return found


def tables(path: str) -> set[str]:
    return {name for (name,) in rows(path, "select name from sqlite_schema where type = 'table'")}


# Plans and statements


def test_without_a_filter_the_vectors_are_scanned_once(recorder: Recorder, recorded: VectorIndex) -> None:
    recorded.query_vectors("i", [1, 0], top_k=3)
    assert recorder.searches() == ["SCAN one_vectors_1; USE TEMP B-TREE FOR ORDER BY"]


def test_a_filter_is_applied_before_any_distance(recorder: Recorder, recorded: VectorIndex) -> None:
    recorded.query_vectors("i", [1, 0], top_k=3, filter={"k": 1})
    [plan] = recorder.searches()
    assert plan.startswith("SEARCH one_vectors_1 USING INTEGER PRIMARY KEY (rowid=?)")
    assert "one_vector_values_1_search (key=? AND value=?)" in plan


def test_a_range_is_found_by_its_value(recorder: Recorder, recorded: VectorIndex) -> None:
    recorded.query_vectors("i", [1, 0], top_k=3, filter={"k": {"$gt": 7}})
    assert "one_vector_values_1_search (key=? AND value>? AND value<?)" in recorder.searches()[0]


def test_the_candidates_of_a_recall_are_found_by_thread(recorder: Recorder, path: str) -> None:
    memory = remembering(path)
    memory.create_thread(resource_id="r", id="t")
    memory.recall("t", vector_search_string="[1, 0]")
    [plan] = recorder.searches()
    assert plan.startswith("SEARCH one_embeddings USING INTEGER PRIMARY KEY (rowid=?)")
    assert "one_messages_order (thread_id=?)" in plan
    memory.close()


def test_ties_that_straddle_the_limit_are_all_fetched(recorder: Recorder, recorded: VectorIndex) -> None:
    recorded.upsert_vectors("i", [NewVector(f"tie{i:02}", [5, 0]) for i in reversed(range(20))])
    recorder.selects.clear()
    hits = recorded.query_vectors("i", [1, 0], top_k=3)
    assert [hit.id for hit in hits] == ["tie00", "tie01", "tie02"]
    assert len(recorder.searches()) == 2


def test_no_name_reaches_the_sql(recorder: Recorder, recorded: VectorIndex) -> None:
    recorded.create_index("x; drop table y", dimension=2)
    recorded.upsert_vectors("x; drop table y", [NewVector("'; --", [1, 0], {"k": "' or 1"})])
    recorded.query_vectors("x; drop table y", [1, 0], filter={"k": "' or 1"})
    assert recorder.selects
    assert not [sql for sql, _ in recorder.selects if "drop" in sql or "'" in sql]


# Bounds and scores


@pytest.mark.parametrize("dimension", [1, 3, 100, 5000])
def test_the_engine_errs_less_than_a_tenth_of_what_is_allowed_for(dimension: int) -> None:
    source = np.random.default_rng(dimension)
    connection = connect(":memory:")
    for _ in range(20):
        a, b = np.abs(source.standard_normal((2, dimension))).astype(np.float32)
        blobs = [searched("cosine", vector).searched for vector in (a, b)]
        [(cosine,)] = connection.execute("select 1 - vector_distance_cos(?, ?)", blobs).fetchall()
        [truth] = true_scores("cosine", a, [to_bytes(b)])
        assert abs(cosine - truth) <= max(4, (2 * dimension + 8) / 10) * 2.0**-24
    connection.close()


def test_equal_vectors_score_equally_wherever_they_stand() -> None:
    source = np.random.default_rng(1)
    query, vector = source.standard_normal((2, 385)).astype(np.float32)
    metrics: tuple[Metric, ...] = ("cosine", "dotproduct", "euclidean")
    for metric in metrics:
        assert len({score for n in range(1, 20) for score in true_scores(metric, query, [to_bytes(vector)] * n)}) == 1


def test_components_beyond_float32_squares_keep_their_direction(index: VectorIndex) -> None:
    index.upsert_vectors(
        "i", [NewVector("huge", [9e14, 1e14]), NewVector("tiny", [1e-15, -9e-15]), NewVector("back", [-3e-15, 0])]
    )
    hits = index.query_vectors("i", [1e-14, 0])
    assert [(hit.id, round(hit.score, 4)) for hit in hits] == [("huge", 0.9939), ("tiny", 0.1104), ("back", -1.0)]


def test_a_long_vector_across_the_query_does_not_displace_a_short_one_along_it(index: VectorIndex) -> None:
    index.create_index("dot", dimension=2, metric="dotproduct")
    index.upsert_vectors("dot", [NewVector("along", [1, 0]), *(NewVector(f"v{i}", [0, 1e12]) for i in range(20))])
    assert [(hit.id, hit.score) for hit in index.query_vectors("dot", [1, 0], top_k=1)] == [("along", 1.0)]


def test_a_zero_query_ties_with_every_row(index: VectorIndex) -> None:
    index.create_index("dot", dimension=2, metric="dotproduct")
    index.upsert_vectors("dot", [NewVector(f"v{i:02}", [i - 9, i]) for i in reversed(range(20))])
    assert [hit.id for hit in index.query_vectors("dot", [0, 0], top_k=2)] == ["v00", "v01"]


def test_the_zero_vector_scores_zero_under_dotproduct(index: VectorIndex) -> None:
    index.create_index("dot", dimension=2, metric="dotproduct")
    index.upsert_vectors("dot", [NewVector("zero", [0, 0]), NewVector("plus", [1, 0]), NewVector("minus", [-1, 0])])
    hits = index.query_vectors("dot", [2, 0])
    assert [(hit.id, hit.score) for hit in hits] == [("plus", 2.0), ("zero", 0.0), ("minus", -2.0)]


# Dimensions and configuration


def test_the_largest_dimension_is_the_engines(path: str) -> None:
    index = opened(path, dimension=65_536)
    vector = [0.0] * 65_535 + [1.0]
    index.upsert_vectors("i", [NewVector("v", vector)])
    assert [hit.id for hit in index.query_vectors("i", vector)] == ["v"]
    index.close()


def test_a_larger_dimension_is_refused_at_create(index: VectorIndex) -> None:
    with pytest.raises(Unsupported):
        index.create_index("large", dimension=65_537)


@pytest.mark.parametrize("kind", ["hnsw", "ivfflat"])
def test_only_flat_indices_are_kept(index: VectorIndex, kind: str) -> None:
    with pytest.raises(Unsupported):
        index.create_index("other", dimension=2, config=IndexConfig(type=kind))


def test_the_configuration_is_read_from_the_file(path: str, index: VectorIndex) -> None:
    other = BACKEND.open_index(path, "one", Runtime())
    assert other.describe_index("i").config == IndexConfig(type="flat")
    other.close()


# Tokens


def test_tokens_of_numbers_sort_as_numbers() -> None:
    numbers = [-1e300, -2.5, -1, -5e-324, 0, 5e-324, 0.1, 0.30000000000000004, 1, 2**31, 2**53 - 1, 1e300]
    assert sorted(map(str, map(token, numbers))) == [token(number) for number in numbers]


def test_minus_zero_is_zero() -> None:
    assert token(-0.0) == token(0)


def test_no_two_types_share_a_token() -> None:
    assert len({token(value) for value in (None, False, True, 0, 1, "", "0", "1", "b0", "n", "s")}) == 11


def test_what_holds_other_values_has_no_token() -> None:
    assert (token([]), token({})) == (None, None)


def test_a_list_holds_doubles_exactly(index: VectorIndex) -> None:
    doubles = [float(number) for number in np.random.default_rng(3).random(500) * 1e-3]
    index.upsert_vectors("i", [NewVector(f"v{i}", [1, 0], {"x": number}) for i, number in enumerate(doubles)])
    assert len(index.query_vectors("i", [1, 0], top_k=1000, filter={"x": {"$in": doubles}})) == 500


def test_the_largest_filter_is_within_the_engines_limits(index: VectorIndex) -> None:
    index.upsert_vectors("i", [NewVector("v", [1, 0], {"x": 0.5})])
    values = [number + 0.5 for number in range(MAX_LIST_VALUES)]
    hits = index.query_vectors("i", [1, 0], filter={"$and": [{"x": {"$in": values}}] * MAX_CONDITIONS})
    assert [hit.id for hit in hits] == ["v"]


# What is stored


def test_no_value_outlives_its_vector(path: str, index: VectorIndex) -> None:
    index.upsert_vectors("i", [NewVector(f"v{i}", [1, i], {"k": i}) for i in range(4)])
    index.upsert_vectors("i", [NewVector("v0", [1, 0])])
    index.update_vector("i", "v1", metadata={})
    index.delete_vectors("i", ids=["v2"])
    index.delete_vectors("i", filter={"k": 3})
    assert rows(path, "select * from one_vector_values_1") == []


def test_a_dropped_index_leaves_no_table(path: str, index: VectorIndex) -> None:
    before = tables(path)
    index.create_index("j", dimension=3)
    index.drop_index("j")
    assert tables(path) == before


def test_dropping_a_namespace_drops_its_indices_only(path: str, index: VectorIndex) -> None:
    before = tables(path)
    opened(path, "two").close()
    BACKEND.drop_namespace(path, "two")
    assert tables(path) == before


def test_namespaces_do_not_see_each_others_indices(path: str, index: VectorIndex) -> None:
    other = BACKEND.open_index(path, "one_vectors", Runtime())
    assert other.list_indexes() == ()
    other.close()


def test_each_client_in_memory_has_its_own_indices() -> None:
    first, second = opened(":memory:"), BACKEND.open_index(":memory:", "one", Runtime())
    assert (first.list_indexes(), second.list_indexes()) == (("i",), ())
    first.close()
    second.close()


FORGETTING: dict[str, Callable[[Memory], object]] = {
    "delete_messages": lambda memory: memory.delete_messages(["m"]),
    "clear_messages": lambda memory: memory.clear_messages("t"),
    "delete_thread": lambda memory: memory.delete_thread("t"),
    "save_messages without embedding": lambda memory: memory.save_messages(
        [NewMessage("m", "t", "[1, 0]")], thread_config=MemoryConfig(semantic_recall=False)
    ),
    "save_messages of blank text": lambda memory: memory.save_messages([NewMessage("m", "t", " ")]),
    "update_messages without embedding": lambda memory: memory.update_messages(
        [MessageUpdate("m", role="tool")], thread_config=MemoryConfig(semantic_recall=False)
    ),
}


@pytest.mark.parametrize("call", FORGETTING)
def test_an_embedding_goes_with_its_snapshot(path: str, memory: Memory, call: str) -> None:
    memory.save_messages([NewMessage("m", "t", "[1, 0]")])
    FORGETTING[call](memory)
    assert rows(path, "select position from one_embeddings union all select position from one_embedding_values") == []


# The embedder


class Meddling(LiteralEmbedder):
    """An embedder during whose first work something happens."""

    def __init__(self, happening: Callable[[], object]) -> None:
        super().__init__(2)
        self.happening: Callable[[], object] | None = happening
        self.asked: list[list[str]] = []

    def embed(self, texts: Sequence[str], kind: Literal["document", "query"]) -> list[list[float]]:
        self.asked.append(list(texts))
        if self.happening is not None:
            happening, self.happening = self.happening, None
            happening()
        return super().embed(texts, kind)


CALLS: dict[str, Callable[[Memory], object]] = {
    "save_messages": lambda memory: memory.save_messages([NewMessage("n", "t", "[0, 1]")]),
    "update_messages": lambda memory: memory.update_messages([MessageUpdate("m", content="[1, 1]")]),
    "recall": lambda memory: memory.recall("t", vector_search_string="[1, 0]"),
}


@pytest.mark.parametrize("call", CALLS)
def test_the_embedder_works_outside_transactions(path: str, memory: Memory, recorder: Recorder, call: str) -> None:
    memory.save_messages([NewMessage("m", "t", "[1, 0]")])
    seen: list[bool] = []
    client = remembering(path, Meddling(lambda: seen.append(recorder.in_transaction)))
    CALLS[call](client)
    client.close()
    assert seen == [False]


def test_a_text_changed_while_the_embedder_works_is_embedded_anew(path: str, memory: Memory) -> None:
    memory.save_messages([NewMessage("m", "t", "[1, 0]")])
    embedder = Meddling(lambda: memory.update_messages([MessageUpdate("m", content="[0, 1]")]))
    client = remembering(path, embedder)
    client.update_messages([MessageUpdate("m", role="tool")])
    client.close()
    assert embedder.asked == [["[1, 0]"], ["[0, 1]"]]
    assert [hit.score for hit in memory.recall("t", vector_search_string="[0, 1]").hits] == [1.0]


@pytest.mark.parametrize(
    ("dimension", "metric"),
    [(3, "cosine"), (2, "euclidean")],
)
def test_another_kind_of_embedding_is_refused_at_open(path: str, memory: Memory, dimension: int, metric: str) -> None:
    config = MemoryConfig(semantic_recall=SemanticRecall(index_config=IndexConfig(metric=metric)))
    before = memory.semantic_index()
    with pytest.raises(ConfigurationError):
        remembering(path, LiteralEmbedder(dimension), config)
    assert memory.semantic_index() == before


def test_a_client_without_an_embedder_may_open_embedded_messages(path: str, memory: Memory) -> None:
    memory.save_messages([NewMessage("m", "t", "[1, 0]")])
    client = BACKEND.open_memory(path, "one", Runtime(), MemoryConfig())
    assert (client.semantic_index(), client.delete_messages(["m"])) == (None, 1)
    client.close()
    described = memory.semantic_index()
    assert described is not None
    assert described.count == 0
