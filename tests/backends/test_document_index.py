"""Vector indices of document engines: how batches are undone, what clients know of each other, exactness at edges."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from memassay.backends.document_index import DocumentIndex
from memassay.backends.document_layout import Names
from memassay.backends.document_vectors import Ranking, components, copy_of, ranking, stored
from memassay.backends.documents import Documents, Outcome, RequestFailed, Write
from memassay.spec.errors import ConfigurationError, IndexNotFound, InvalidVector, Unsupported
from memassay.spec.protocols import Backend, Runtime, VectorIndex
from memassay.spec.types import IndexConfig, NewVector, VectorRow
from memassay.spec.vectors import METRICS, Metric, scores

NAMESPACE = "document_vectors"
OLD = NewVector("a", (1, 0), {"was": "here"})


class Opener:
    """Opens clients of one empty namespace."""

    def __init__(self, backend: Backend, url: str) -> None:
        self.backend = backend
        self.url = url
        self.open: list[DocumentIndex] = []

    def __call__(self) -> DocumentIndex:
        client = self.backend.open_index(self.url, NAMESPACE, Runtime())
        assert isinstance(client, DocumentIndex)
        self.open.append(client)
        return client


@pytest.fixture(params=["elasticsearch", "opensearch"])
def connect(request: pytest.FixtureRequest, engines: Any) -> Generator[Opener]:
    """Opens clients of an empty namespace on each engine in turn."""
    backend, url = engines.get(request.param)
    backend.drop_namespace(url, NAMESPACE)
    opener = Opener(backend, url)
    yield opener
    for client in opener.open:
        client.close()
    backend.drop_namespace(url, NAMESPACE)


@pytest.fixture
def index(connect: Opener) -> DocumentIndex:
    """A client, with the index `i` of two dimensions that holds OLD."""
    client = connect()
    client.create_index("i", dimension=2)
    client.upsert_vectors("i", [OLD])
    return client


def documents(client: DocumentIndex) -> Documents:
    return client._documents  # pyright: ignore[reportPrivateUsage]


def tamper(
    client: DocumentIndex,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Write], Write],
    then: Callable[[], None] = lambda: None,
) -> None:
    """Change the writes of the next batch on their way to the engine, and do something once they have arrived."""
    real = documents(client).write

    def write(alias: str, writes: Sequence[Write], *, refresh: bool = False) -> list[Outcome]:
        monkeypatch.setattr(documents(client), "write", real)
        outcomes = real(alias, [change(each) for each in writes], refresh=refresh)
        then()
        return outcomes

    monkeypatch.setattr(documents(client), "write", write)


def spoil_third(write: Write) -> Write:
    """What the engine refuses, as its mapping is strict, when it is of the third row."""
    if write.source is None or write.source["id"] != "c":
        return write
    return Write(write.kind, write.id, write.source | {"unknown": 1}, write.seen)


def fail() -> None:
    raise ConnectionError("the answer was lost")


# All or nothing


BATCH = [NewVector("a", (0, 1), {"is": "new"}), NewVector("b", (1, 1)), NewVector("c", (1, 2))]


def test_a_refused_row_undoes_the_others(index: DocumentIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    tamper(index, monkeypatch, spoil_third)
    with pytest.raises(RequestFailed, match="1 vectors were refused"):
        index.upsert_vectors("i", BATCH)
    assert index.get_vectors("i", ["a", "b", "c"]) == (VectorRow("a", (1.0, 0.0), {"was": "here"}),)


def test_a_row_that_was_put_back_is_found(index: DocumentIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    tamper(index, monkeypatch, spoil_third)
    with pytest.raises(RequestFailed):
        index.upsert_vectors("i", BATCH)
    (hit,) = index.query_vectors("i", (1, 0), filter={"was": "here"})
    assert (hit.id, hit.score) == ("a", 1.0)


def test_a_lost_answer_undoes_what_was_written(index: DocumentIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    tamper(index, monkeypatch, lambda write: write, fail)
    with pytest.raises(ConnectionError):
        index.upsert_vectors("i", BATCH)
    assert index.get_vectors("i", ["a", "b", "c"]) == (VectorRow("a", (1.0, 0.0), {"was": "here"}),)


def test_a_lost_answer_undoes_a_deletion(index: DocumentIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    tamper(index, monkeypatch, lambda write: write, fail)
    with pytest.raises(ConnectionError):
        index.delete_vectors("i", ids=["a"])
    assert [row.id for row in index.get_vectors("i", ["a"])] == ["a"]


def test_what_others_wrote_since_is_not_undone(
    index: DocumentIndex, connect: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = connect()

    def meddle() -> None:
        other.upsert_vectors("i", [NewVector("a", (7, 7))])
        fail()

    tamper(index, monkeypatch, lambda write: write, meddle)
    with pytest.raises(ConnectionError):
        index.upsert_vectors("i", BATCH)
    assert index.get_vectors("i", ["a", "b"]) == (VectorRow("a", (7.0, 7.0), {}),)


def test_twenty_clients_update_what_they_read(index: DocumentIndex, connect: Opener) -> None:
    clients = [connect() for _ in range(10)]
    in_parallel(
        [
            *(lambda each=each: each.update_vector("i", "a", vector=(3, 4)) for each in clients),
            *(lambda each=each: each.update_vector("i", "a", metadata={"n": 1}) for each in clients[:1]),
        ]
    )
    assert index.get_vectors("i", ["a"]) == (VectorRow("a", (3.0, 4.0), {"n": 1}),)


# Names, and other clients


def in_parallel(calls: Iterable[Callable[[], object]]) -> None:
    """Make the calls, each in a thread of its own; raises what one of them raised."""
    failures: list[BaseException] = []

    def run(call: Callable[[], object]) -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    if failures:
        raise failures[0]


def test_clients_may_create_one_index_at_once(connect: Opener) -> None:
    clients = [connect() for _ in range(10)]

    def create(client: VectorIndex) -> None:
        client.create_index("new", dimension=2)
        client.upsert_vectors("new", [NewVector("a", (1, 0)), NewVector("b", (0, 1))])

    in_parallel([lambda each=each: create(each) for each in clients])
    assert clients[0].describe_index("new").count == 2


def test_another_clients_index_of_the_same_name_is_the_index(index: DocumentIndex, connect: Opener) -> None:
    other = connect()
    other.drop_index("i")
    with pytest.raises(IndexNotFound):
        index.query_vectors("i", (1, 0, 0))  # not InvalidVector: there is no index that wants two components
    other.create_index("i", dimension=3)
    assert index.upsert_vectors("i", [NewVector("a", (1, 0, 0))]) == 1
    with pytest.raises(InvalidVector):
        index.query_vectors("i", (1, 0))


CALLS: dict[str, Callable[[VectorIndex], object]] = {
    "upsert": lambda client: client.upsert_vectors("i", [OLD]),
    "upsert nothing": lambda client: client.upsert_vectors("i", []),
    "get": lambda client: client.get_vectors("i", ["a"]),
    "get nothing": lambda client: client.get_vectors("i", []),
    "update": lambda client: client.update_vector("i", "a", vector=(1, 1)),
    "delete": lambda client: client.delete_vectors("i", ids=["a"]),
    "delete nothing": lambda client: client.delete_vectors("i", ids=[]),
    "delete by filter": lambda client: client.delete_vectors("i", filter={"was": "here"}),
    "query": lambda client: client.query_vectors("i", (1, 0)),
    "describe": lambda client: client.describe_index("i"),
    "drop": lambda client: client.drop_index("i"),
}


@pytest.mark.parametrize("call", CALLS)
def test_an_index_that_another_client_dropped_is_not_made_up(index: DocumentIndex, connect: Opener, call: str) -> None:
    connect().drop_index("i")
    with pytest.raises(IndexNotFound):
        CALLS[call](index)
    assert documents(index).metas(Names(NAMESPACE).all) == {}


@pytest.mark.parametrize("name", ["*", "a,b", "_all", "../x", "é" * 255, " ", 'x"', "-messages", "threads"])
def test_any_name_is_a_name(index: DocumentIndex, name: str) -> None:
    index.create_index(name, dimension=3)
    index.upsert_vectors(name, [NewVector("a", (1, 2, 3))])
    assert index.describe_index(name).count == 1
    assert set(index.list_indexes()) == {"i", name}


def test_a_closed_client_says_so(index: DocumentIndex) -> None:
    index.close()
    index.close()
    with pytest.raises(ConfigurationError):
        index.list_indexes()


# What an index is


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    "config",
    [IndexConfig("flat"), IndexConfig("hnsw", m=5, ef_construction=11), IndexConfig("hnsw", m=16, ef_construction=100)],
    ids=["flat", "hnsw", "hnsw by the engine's defaults"],
)
def test_an_index_is_described_by_its_mapping(connect: Opener, config: IndexConfig, metric: Metric) -> None:
    connect().create_index("i", dimension=3, metric=metric, config=config)
    described = connect().describe_index("i")
    assert (described.dimension, described.metric, described.config, described.count) == (3, metric, config, 0)


def test_a_dimension_beyond_the_engines_is_refused_when_created(connect: Opener) -> None:
    client = connect()
    most = connect.backend.capabilities(connect.url).max_dimension
    client.create_index("widest", dimension=most)
    wide = [float(i % 7 - 3) for i in range(most)]
    client.upsert_vectors("widest", [NewVector("a", wide), NewVector("b", wide[::-1])])
    assert client.get_vectors("widest", ["a"])[0].vector == tuple(wide)
    assert [hit.id for hit in client.query_vectors("widest", wide, top_k=1)] == ["a"]
    with pytest.raises(Unsupported):
        client.create_index("wider", dimension=most + 1)
    assert client.list_indexes() == ("widest",)


@pytest.mark.parametrize("kind", ["flat", "hnsw"])
def test_more_rows_than_a_search_returns(connect: Opener, kind: str) -> None:
    client = connect()
    client.create_index("i", dimension=1, metric="euclidean", config=IndexConfig(kind))
    # The engine ranks all of them 1, in float32, and the last is the closest.
    rows = [NewVector(f"v{i:05}", (1e-9,)) for i in range(10_030)] + [NewVector("w", (0.5e-9,))]
    client.upsert_vectors("i", rows)
    found = client.query_vectors("i", (0.0,), top_k=10_000)
    assert [hit.id for hit in found] == ["w", *(f"v{i:05}" for i in range(9_999))]
    assert client.query_vectors("i", (0.0,), top_k=7, exact=True) == found[:7]


# Rows that float32 cannot tell apart


def rows_of(rng: np.random.Generator, kind: str, dimension: int) -> list[list[float]]:
    base = rng.standard_normal(dimension)
    match kind:
        case "near ties":
            rows = [base + 1e-6 * rng.standard_normal(dimension) for _ in range(80)]
        case "scales":
            rows = [rng.standard_normal(dimension) * 10.0 ** rng.integers(-12, 12) for _ in range(80)]
        case _:
            rows = [base, -base] * 30
    return [row.astype(np.float32).tolist() for row in rows]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["near ties", "scales", "opposite"])
def test_an_exact_answer_is_the_scan_in_float64(connect: Opener, metric: Metric, kind: str) -> None:
    rng = np.random.default_rng(7)
    given = rows_of(rng, kind, 24)
    client = connect()
    client.create_index("i", dimension=24, metric=metric)
    client.upsert_vectors("i", [NewVector(f"v{i:03}", row) for i, row in enumerate(given)])
    query = np.array(given[3], np.float32)
    true = scores(metric, query, np.array(given, np.float32)).tolist()
    ranked = sorted((-score, f"v{i:03}") for i, score in enumerate(true))
    for k in (1, 9, 30):
        found = client.query_vectors("i", query.tolist(), top_k=k, exact=True)
        assert [(-hit.score, hit.id) for hit in found] == ranked[:k]


def float32_rank(how: Ranking, metric: Metric, query: Any, row: Any) -> float:
    """As the engine's script ranks a row, in float32."""
    near, at = copy_of(row, metric), copy_of(query, metric)
    if metric == "euclidean":
        return float(np.float32(1 / (1 + float(np.sqrt(np.sum((near - at) ** 2, dtype=np.float32))))))
    product = float(np.sum(near * at, dtype=np.float32))
    if metric == "cosine":
        return float(np.float32(max(0.0, product + 1)))
    norms = float(np.linalg.norm(query.astype(np.float64)) * np.linalg.norm(row.astype(np.float64)))
    bound = product + how.slack * norms
    return float(np.float32(bound + 1 if bound >= 0 else 1 / (1 - bound)))


@pytest.mark.parametrize("metric", METRICS)
def test_a_rank_bounds_the_true_score(metric: Metric) -> None:
    rng, random = np.random.default_rng(3), Random(3)
    for _ in range(2_000):
        dimension = random.choice([1, 2, 16, 300])
        scale = 10.0 ** random.randint(-10, 10)
        query = (rng.standard_normal(dimension) * scale).astype(np.float32)
        row = (query + 10.0 ** random.randint(-9, 2) * rng.standard_normal(dimension)).astype(np.float32)
        if random.random() < 0.3:
            row = -row
        how = ranking(metric, dimension)
        ranked = float32_rank(how, metric, query, row)
        true = float(scores(metric, query, row[None])[0])
        assert true <= how.most(ranked)
        assert how.least(true) <= ranked


@pytest.mark.parametrize("metric", METRICS)
def test_what_is_stored_of_a_vector_gives_it_back(metric: Metric) -> None:
    vector = np.array([1e-25, -3.4e14, 0.1], np.float32)
    kept = stored(vector, metric, "near")
    assert components(kept["raw"]) == tuple(vector.tolist())
    assert kept["near"] == (vector if metric != "cosine" else copy_of(vector, metric)).tolist()
