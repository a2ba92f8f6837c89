"""PostgreSQL: facts of its vectors that the clauses do not see."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import psycopg
import pytest
from memassay.backends import postgres_vectors
from memassay.backends.baselines.postgres import Baseline
from memassay.backends.postgres import PostgresBackend
from memassay.backends.postgres_index import PostgresIndex
from memassay.backends.postgres_vectors import Packed, adapt, pack, pack_all
from memassay.spec.embedders import LiteralEmbedder
from memassay.spec.errors import ConfigurationError, EmbedderError, IndexNotFound, InvalidVector, Unsupported
from memassay.spec.protocols import Memory, Runtime, VectorIndex
from memassay.spec.types import IndexConfig, MemoryConfig, MessageUpdate, NewMessage, NewVector, SemanticRecall

AT = datetime(2024, 2, 29, 12, 0, tzinfo=UTC)
BACKEND = PostgresBackend()
ON = MemoryConfig(semantic_recall=True)
OFF = MemoryConfig(semantic_recall=False)
MANY = 3_000
"""More rows than are scored one by one."""


@pytest.fixture
def url(postgres_url: str) -> Generator[str]:
    """The server, with an empty namespace `vectors`."""
    BACKEND.drop_namespace(postgres_url, "vectors")
    yield postgres_url
    BACKEND.drop_namespace(postgres_url, "vectors")


def connect(url: str) -> PostgresIndex:
    client = BACKEND.open_index(url, "vectors", Runtime())
    assert isinstance(client, PostgresIndex)
    return client


@pytest.fixture
def index(url: str) -> Generator[VectorIndex]:
    """A client of the namespace, with the index `i` of two dimensions."""
    client = connect(url)
    client.create_index("i", dimension=2)
    yield client
    client.close()


def remember(url: str, config: MemoryConfig = ON, dimension: int = 2) -> Memory:
    return BACKEND.open_memory(url, "vectors", Runtime(clock=lambda: AT, embedder=LiteralEmbedder(dimension)), config)


@pytest.fixture
def memory(url: str) -> Generator[Memory]:
    """A client that embeds, with the thread t of resource r."""
    client = remember(url)
    client.create_thread(resource_id="r", id="t")
    yield client
    client.close()


@pytest.fixture
def raw(url: str) -> Generator[psycopg.Connection[Any]]:
    """A connection of another program, in the namespace."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET search_path = memassay_vectors")
        yield connection


def tables(raw: psycopg.Connection[Any]) -> set[str]:
    found = raw.execute("SELECT relname FROM pg_class WHERE relnamespace = 'memassay_vectors'::regnamespace").fetchall()
    return {name for (name,) in found}


def ring(n: int) -> list[NewVector]:
    """n directions, all different; every hundredth row is marked."""
    return [NewVector(f"v{i}", (float(np.cos(i)), float(np.sin(i))), {"marked": i % 100 == 0}) for i in range(n)]


class Statements:
    """The statements that a client sends while it is watched, and how the engine would run the last one."""

    def __init__(self, client: PostgresIndex, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[tuple[bytes, Any]] = []
        self._connection = client._connection  # pyright: ignore[reportPrivateUsage]
        self._execute = self._connection.execute
        monkeypatch.setattr(self._connection, "execute", self._watch)

    def _watch(self, query: Any, params: Any = None, **options: Any) -> Any:
        if isinstance(query, bytes):
            self.sent.append((query, params))
        return self._execute(query, params, **options)

    def plan(self) -> str:
        query, params = self.sent[-1]
        rows = self._execute(b"EXPLAIN (COSTS off) " + query, params, prepare=False).fetchall()
        return "\n".join(row[0] for row in rows)


# What an index is


@pytest.mark.parametrize(
    "config",
    [IndexConfig("flat"), IndexConfig("hnsw", m=5, ef_construction=11), IndexConfig("ivfflat", lists=3)],
    ids=lambda config: str(config.type),
)
@pytest.mark.parametrize("rows", [0, MANY])
def test_the_config_is_described_before_and_after_it_is_built(url: str, config: IndexConfig, rows: int) -> None:
    client = connect(url)
    client.create_index("i", dimension=2, config=config)
    client.upsert_vectors("i", ring(rows))
    described = client.describe_index("i")
    client.close()
    assert (described.config, described.count) == (config, rows)


def test_the_config_is_read_from_the_index_itself(url: str, raw: psycopg.Connection[Any]) -> None:
    client = connect(url)
    client.create_index("i", dimension=2, config=IndexConfig("hnsw"))
    client.upsert_vectors("i", ring(MANY))
    row = raw.execute(
        "SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class ON oid = indexrelid JOIN pg_am AS a"
        " ON a.oid = relam WHERE amname = 'hnsw' AND relnamespace = 'memassay_vectors'::regnamespace"
    ).fetchone()
    assert row is not None
    raw.execute(f"ALTER INDEX {row[0]} SET (m = 7)".encode())
    assert client.describe_index("i").config == IndexConfig("hnsw", m=7, ef_construction=64)
    client.close()


@pytest.mark.parametrize("kind", ["ivfflat", "hnsw"])
def test_an_index_is_built_when_rows_suffice(url: str, raw: psycopg.Connection[Any], kind: str) -> None:
    client = connect(url)
    client.create_index("i", dimension=2, config=IndexConfig(kind, lists=3 if kind == "ivfflat" else None))
    client.upsert_vectors("i", ring(MANY)[:100])
    built = (
        "SELECT count(*) FROM pg_class JOIN pg_am AS a ON a.oid = relam WHERE amname = %s AND relkind = 'i'"
        " AND relnamespace = 'memassay_vectors'::regnamespace"
    )
    assert raw.execute(built, (kind,)).fetchone() == (0,)
    client.upsert_vectors("i", ring(MANY)[100:])
    assert raw.execute(built, (kind,)).fetchone() == (1,)
    client.close()


def test_an_ivfflat_index_is_built_anew_when_its_table_has_doubled(url: str, raw: psycopg.Connection[Any]) -> None:
    client = connect(url)
    client.create_index("i", dimension=2, config=IndexConfig("ivfflat", lists=3))
    client.upsert_vectors("i", ring(MANY))
    before = raw.execute("SELECT built FROM indexes").fetchone()
    client.upsert_vectors("i", [NewVector(f"more {row.id}", row.vector) for row in ring(2 * MANY)])
    after = raw.execute("SELECT built FROM indexes").fetchone()
    assert before is not None
    assert after is not None
    assert after[0] >= 2 * before[0]
    assert client.describe_index("i").config == IndexConfig("ivfflat", lists=3)
    client.close()


def test_an_index_that_cannot_be_built_refuses_no_rows(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_vectors, "ROWS_PER_LIST", 0)
    client = connect(url)
    client.create_index("i", dimension=2_000, config=IndexConfig("ivfflat", lists=32_768))  # k-means in 13 GB
    rows = [NewVector(f"v{i}", [1.0] + [0.0] * 1_998 + [float(i)]) for i in range(3)]
    monkeypatch.setattr(postgres_vectors, "FEW", 2)
    assert client.upsert_vectors("i", rows) == 3
    assert [hit.id for hit in client.query_vectors("i", rows[0].vector, top_k=2)] == ["v0", "v1"]
    client.close()


def test_one_dimension_is_searched_exactly(url: str) -> None:
    client = connect(url)
    client.create_index("i", dimension=1, config=IndexConfig("ivfflat", lists=3))  # which pgvector refuses to build
    assert client.upsert_vectors("i", [NewVector(f"v{i}", (i - 0.5,)) for i in range(MANY)]) == MANY
    assert client.query_vectors("i", (-1,), top_k=1)[0].id == "v0"
    client.close()


@pytest.mark.parametrize("kind", ["ivfflat", "hnsw"])
def test_two_thousand_dimensions_are_indexed_and_no_more(url: str, kind: str) -> None:
    client = connect(url)
    client.create_index("widest", dimension=2_000, config=IndexConfig(kind))
    with pytest.raises(Unsupported):
        client.create_index("wider", dimension=2_001, config=IndexConfig(kind))
    assert client.list_indexes() == ("widest",)
    client.close()


def test_sixteen_thousand_dimensions_are_stored_and_found(url: str) -> None:
    client = connect(url)
    client.create_index("i", dimension=16_000)
    wide = [float(i % 7 - 3) for i in range(16_000)]
    client.upsert_vectors("i", [NewVector("a", wide), NewVector("b", wide[::-1])])
    assert client.get_vectors("i", ["a"])[0].vector == tuple(wide)
    assert [hit.id for hit in client.query_vectors("i", wide, top_k=1)] == ["a"]
    with pytest.raises(Unsupported):
        client.create_index("wider", dimension=16_001)
    client.close()


# Names and namespaces


@pytest.mark.parametrize(
    "name", ['x"; DROP TABLE threads; --', "indexes", "embeddings", "é" * 255, " ", "%s", "messages"]
)
def test_any_name_is_a_name_and_not_the_name_of_a_table(index: VectorIndex, name: str) -> None:
    index.create_index(name, dimension=3)
    index.upsert_vectors(name, [NewVector("a", (1, 2, 3))])
    assert index.describe_index(name).count == 1
    assert index.describe_index("i").count == 0
    assert set(index.list_indexes()) == {"i", name}


def test_dropping_an_index_drops_its_table(index: VectorIndex, raw: psycopg.Connection[Any]) -> None:
    index.drop_index("i")
    assert not [name for name in tables(raw) if name.startswith("vectors_")]


def test_the_embeddings_are_no_index_of_the_users(memory: Memory, url: str) -> None:
    memory.save_messages([NewMessage("a", "t", "[1, 0]")])
    client = connect(url)
    assert client.list_indexes() == ()
    client.close()


def test_reset_drops_the_tables_of_vectors_and_of_embeddings(
    memory: Memory, index: VectorIndex, url: str, raw: psycopg.Connection[Any]
) -> None:
    memory.save_messages([NewMessage("a", "t", "[1, 0]")])
    BACKEND.reset_namespace(url, "vectors")
    assert not [name for name in tables(raw) if name.startswith(("vectors_", "embeddings"))]
    assert index.list_indexes() == ()


def test_another_clients_index_of_the_same_name_is_the_index(index: VectorIndex, url: str) -> None:
    index.upsert_vectors("i", [NewVector("a", (1, 0))])
    other = connect(url)
    other.drop_index("i")
    with pytest.raises(IndexNotFound):
        index.query_vectors("i", (1, 0, 0))  # not InvalidVector: there is no index that wants two components
    other.create_index("i", dimension=3)
    assert index.upsert_vectors("i", [NewVector("a", (1, 0, 0))]) == 1
    with pytest.raises(InvalidVector):
        index.query_vectors("i", (1, 0))
    other.close()


def test_twenty_clients_may_create_one_index_at_once(url: str) -> None:
    clients = [connect(url) for _ in range(20)]
    failures: list[BaseException] = []

    def create(client: VectorIndex) -> None:
        try:
            client.create_index("i", dimension=2)
            client.upsert_vectors("i", [NewVector("a", (1, 0)), NewVector("b", (0, 1))])
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=create, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert clients[0].describe_index("i").count == 2
    for client in clients:
        client.close()


def test_pgvector_may_be_in_a_schema_of_any_name(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("CREATE DATABASE elsewhere")
    try:
        there = url.replace("/postgres?", "/elsewhere?")
        with psycopg.connect(there, autocommit=True) as admin:
            admin.execute('CREATE SCHEMA "some ""where"; CREATE EXTENSION vector WITH SCHEMA "some ""where"')
        client = connect(there)
        client.create_index("i", dimension=2)
        client.upsert_vectors("i", ring(MANY))
        assert client.query_vectors("i", (1, 0), top_k=1)[0].id == "v0"
        client.close()
    finally:
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("DROP DATABASE elsewhere WITH (FORCE)")


# Queries


@pytest.fixture(scope="module")
def crowd(postgres_url: str) -> Generator[PostgresIndex]:
    """Indices of each type over the same 8,000 vectors of 32 dimensions around 16 centres, in a namespace of its own.

    Around them widely: across narrow clusters a graph may be unlucky, and a scan is then found cheaper.
    """
    client = BACKEND.open_index(postgres_url, "crowd", Runtime())
    assert isinstance(client, PostgresIndex)
    random = np.random.default_rng(1)
    centres = random.standard_normal((16, 32))
    rows = [
        NewVector(f"v{i}", centres[i % 16] + 0.6 * random.standard_normal(32), {"rare": i % 800 == 0, "half": i % 2})
        for i in range(8_000)
    ]
    for kind in ("ivfflat", "hnsw", "flat"):
        client.create_index(kind, dimension=32, config=IndexConfig(kind))
        client.upsert_vectors(kind, rows)
    yield client
    client.close()
    BACKEND.drop_namespace(postgres_url, "crowd")


NORTH = [1.0] + [0.0] * 31


@pytest.mark.parametrize("kind", ["ivfflat", "hnsw"])
@pytest.mark.parametrize("filter", [None, {"half": 1}], ids=["all", "half"])
def test_a_query_of_many_rows_is_answered_by_the_index(
    crowd: PostgresIndex, monkeypatch: pytest.MonkeyPatch, kind: str, filter: dict[str, Any] | None
) -> None:
    crowd.query_vectors(kind, NORTH)
    watched = Statements(crowd, monkeypatch)
    crowd.query_vectors(kind, NORTH, filter=filter)
    assert "Order By: (embedding" in watched.plan()


@pytest.mark.parametrize("kind", ["ivfflat", "hnsw", "flat"])
def test_an_exact_query_reads_every_row(crowd: PostgresIndex, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    watched = Statements(crowd, monkeypatch)
    crowd.query_vectors(kind, NORTH, exact=True)
    assert "Order By" not in watched.plan()
    assert "Seq Scan" in watched.plan()


def test_rare_rows_are_found_by_their_facets_and_scored_one_by_one(
    crowd: PostgresIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Statements(crowd, monkeypatch)
    assert len(crowd.query_vectors("hnsw", NORTH, filter={"rare": True})) == 10
    assert len(watched.sent) == 1
    assert "facets_idx" in watched.plan()


@pytest.mark.parametrize("kind", ["ivfflat", "hnsw"])
def test_a_short_approximate_answer_is_replaced_by_an_exact_one(
    crowd: PostgresIndex, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    expected = crowd.query_vectors(kind, NORTH, exact=True)
    nearest = crowd._nearest  # pyright: ignore[reportPrivateUsage]
    approximate = nearest.approximate

    def short(*given: Any) -> Any:
        return approximate(*given)[:-1]

    monkeypatch.setattr(nearest, "approximate", short)
    assert crowd.query_vectors(kind, NORTH) == expected


@pytest.mark.parametrize("kind", ["ivfflat", "hnsw"])
def test_more_hits_than_an_index_gives_are_found(crowd: PostgresIndex, kind: str) -> None:
    assert len(crowd.query_vectors(kind, NORTH, top_k=10_000)) == 8_000


@pytest.mark.parametrize("kind", ["ivfflat", "hnsw"])
def test_an_index_that_finds_too_little_is_not_used(url: str, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(postgres_vectors, "RECALL", 1.1)
    client = connect(url)
    client.create_index("i", dimension=2, config=IndexConfig(kind, lists=3 if kind == "ivfflat" else None))
    client.upsert_vectors("i", ring(MANY))
    client.query_vectors("i", (1, 0))
    watched = Statements(client, monkeypatch)
    client.query_vectors("i", (1, 0))
    assert "Order By" not in watched.plan()
    client.close()


@pytest.mark.parametrize("metric", ["cosine", "euclidean", "dotproduct"])
def test_rows_that_float32_cannot_tell_apart_are_ordered_by_their_true_scores(url: str, metric: str) -> None:
    client = connect(url)
    client.create_index("i", dimension=3, metric=metric)
    client.upsert_vectors("i", [NewVector(f"v{i:03}", (1, 1, 1 + i * 6e-8)) for i in range(200)])
    query = (1.0, 1.0, 1.0)
    full = [hit.id for hit in client.query_vectors("i", query, top_k=200, exact=True)]
    for k in range(1, 200, 13):
        assert [hit.id for hit in client.query_vectors("i", query, top_k=k, exact=True)] == full[:k]
    client.close()


def test_equal_vectors_are_ordered_by_id_however_many_they_are(index: VectorIndex) -> None:
    index.upsert_vectors("i", [NewVector(f"v{i:03}", (0.1, 0.7)) for i in range(300)][::-1])
    assert [hit.id for hit in index.query_vectors("i", (0.3, 0.2), top_k=5)] == [f"v{i:03}" for i in range(5)]


def test_a_filter_on_a_string_of_one_mebibyte_finds_it(index: VectorIndex) -> None:
    long = "한" * 349_000
    index.upsert_vectors("i", [NewVector("a", (1, 0), {"k": long}), NewVector("b", (1, 0), {"k": long[:-1]})])
    assert [hit.id for hit in index.query_vectors("i", (1, 0), filter={"k": long})] == ["a"]
    assert [hit.id for hit in index.query_vectors("i", (1, 0), filter={"k": {"$gt": "한" * 1000}})] == ["a", "b"]


def test_vectors_are_sent_and_read_as_pgvector_writes_them(index: VectorIndex, url: str) -> None:
    two = [np.array([1.5, -2e-15], np.float32), np.array([3e14, 0.1], np.float32)]
    with psycopg.connect(url) as connection:
        adapt(connection)
        extension = postgres_vectors.need_extension(connection)
        one = connection.execute("SELECT %s::public.vector::text", (pack(two[0]),)).fetchone()
        many = connection.execute("SELECT %s::public.vector[]::text", (pack_all(two, 2, extension),)).fetchone()
    assert one == ("[1.5,-2e-15]",)
    assert many == ('{"[1.5,-2e-15]","[3e+14,0.1]"}',)
    assert isinstance(pack(two[0]), Packed)


def test_the_baseline_finds_what_the_adapter_finds(crowd: PostgresIndex, postgres_url: str) -> None:
    query = np.array(NORTH, np.float32)
    for kind in ("ivfflat", "hnsw", "flat"):
        baseline = Baseline(postgres_url, "crowd", kind)
        crowd.query_vectors(kind, NORTH)  # A client's first answer is exact, and tells it how broadly to search.
        for filter in (None, {"half": 1}, {"rare": True}):
            expected = [hit.id for hit in crowd.query_vectors(kind, NORTH, filter=filter)]
            assert [found for found, _ in baseline.query(query, 10, filter)] == expected
        baseline.close()


# Embeddings


def test_embeddings_go_with_their_messages(memory: Memory, raw: psycopg.Connection[Any]) -> None:
    memory.save_messages([NewMessage(each, "t", "[1, 0]") for each in "abc"])
    memory.delete_messages(["a"])
    assert raw.execute("SELECT id FROM embeddings ORDER BY id").fetchall() == [("b",), ("c",)]
    memory.delete_thread("t")
    assert raw.execute("SELECT id FROM embeddings").fetchall() == []


def test_opening_makes_no_table_of_embeddings(memory: Memory, raw: psycopg.Connection[Any]) -> None:
    assert "embeddings" not in tables(raw)
    assert memory.semantic_index() is not None
    assert "embeddings" not in tables(raw)


@pytest.mark.parametrize(
    ("config", "dimension"),
    [(ON, 3), (MemoryConfig(semantic_recall=SemanticRecall(index_config=IndexConfig(metric="euclidean"))), 2)],
    ids=["dimension", "metric"],
)
def test_another_embedder_is_refused_when_it_is_opened(
    memory: Memory, url: str, config: MemoryConfig, dimension: int
) -> None:
    before = memory.semantic_index()
    with pytest.raises(ConfigurationError):
        remember(url, config, dimension)
    assert memory.semantic_index() == before


def test_a_client_without_an_embedder_removes_what_it_overwrites(memory: Memory, url: str) -> None:
    memory.save_messages([NewMessage(each, "t", "[1, 0]") for each in "ab"])
    plain = BACKEND.open_memory(url, "vectors", Runtime(clock=lambda: AT), MemoryConfig())
    plain.save_messages([NewMessage("a", "t", "new")])
    plain.update_messages([MessageUpdate("b", role="tool")])
    plain.close()
    described = memory.semantic_index()
    assert described is not None
    assert described.count == 0


def test_a_failing_embedder_leaves_no_lock(memory: Memory, url: str) -> None:
    with pytest.raises(EmbedderError):
        memory.save_messages([NewMessage("a", "t", "!fail")])
    other = remember(url)
    other.save_messages([NewMessage("b", "t", "[1, 0]")])
    other.close()
    assert memory.recall("t").total == 1


def test_text_that_changes_while_it_is_embedded_is_embedded_again(memory: Memory, url: str) -> None:
    class Slow(LiteralEmbedder):
        """Another client changes the message during the first call."""

        calls = 0

        def embed(self, texts: Any, kind: Any) -> list[list[float]]:
            self.calls += 1
            if self.calls == 1:
                memory.update_messages([MessageUpdate("a", content="[0, 1]")])
            return super().embed(texts, kind)

    memory.save_messages([NewMessage("a", "t", "[1, 0]")])
    slow = BACKEND.open_memory(url, "vectors", Runtime(clock=lambda: AT, embedder=Slow(2)), ON)
    slow.update_messages([MessageUpdate("a", role="tool")])
    found = slow.recall("t", vector_search_string="[0, 1]", per_page=0)
    slow.close()
    assert [(hit.id, hit.score) for hit in found.hits] == [("a", 1.0)]


def test_twenty_clients_may_store_the_first_embeddings_at_once(memory: Memory, url: str) -> None:
    clients = [remember(url) for _ in range(20)]
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            clients[number].save_messages([NewMessage(f"m{number}", "t", "[1, 0]")])
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for client in clients:
        client.close()
    assert failures == []
    described = memory.semantic_index()
    assert described is not None
    assert described.count == 20


class Crash(BaseException):
    """The process ends here."""


WRITES: dict[str, Callable[[Memory], object]] = {
    "save_messages": lambda memory: memory.save_messages([NewMessage("a", "t", "[0, 1]")]),
    "update_messages": lambda memory: memory.update_messages([MessageUpdate("a", content="[0, 1]")]),
    "clone_thread": lambda memory: memory.clone_thread("t", new_thread_id="clone"),
}


@pytest.mark.parametrize("call", WRITES)
def test_a_crash_before_the_commit_leaves_the_embeddings_as_they_were(
    memory: Memory, url: str, raw: psycopg.Connection[Any], call: str
) -> None:
    memory.save_messages([NewMessage("a", "t", "[1, 0]")])
    everything = "SELECT e::text FROM embeddings AS e"
    before = raw.execute(everything).fetchall()

    def fault(point: str) -> None:
        if point == "before commit":
            raise Crash

    client = BACKEND.open_memory(
        url, "vectors", Runtime(clock=lambda: AT, embedder=LiteralEmbedder(2), fault=fault), ON
    )
    with pytest.raises(Crash):
        WRITES[call](client)
    client.close()
    assert raw.execute(everything).fetchall() == before
    assert [thread.id for thread in memory.list_threads().threads] == ["t"]
