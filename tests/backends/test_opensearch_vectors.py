"""OpenSearch: facts of its vectors that the clauses do not see."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np
import pytest
from memassay.backends.baselines.opensearch import Baseline
from memassay.backends.document_index import DocumentIndex
from memassay.backends.documents import Answer, Documents, Json
from memassay.backends.opensearch import OpenSearchBackend
from memassay.spec.embedders import LiteralEmbedder
from memassay.spec.errors import ConfigurationError
from memassay.spec.protocols import Memory, Runtime
from memassay.spec.types import IndexConfig, MemoryConfig, NewMessage, NewVector, SemanticRecall
from memassay.spec.vectors import METRICS, Metric
from opensearchpy import OpenSearch

BACKEND = OpenSearchBackend()
NAMESPACE = "os_vectors"
ROWS = 4_000
NORTH = [1.0] + [0.0] * 15


def place(name: str, namespace: str = NAMESPACE) -> str:
    return f"memassay-{namespace}-vectors-{hashlib.sha256(name.encode()).hexdigest()}"


@pytest.fixture
def url(opensearch_url: str) -> Generator[str]:
    """The server, with an empty namespace."""
    BACKEND.drop_namespace(opensearch_url, NAMESPACE)
    yield opensearch_url
    BACKEND.drop_namespace(opensearch_url, NAMESPACE)


def connect(url: str, namespace: str = NAMESPACE) -> DocumentIndex:
    client = BACKEND.open_index(url, namespace, Runtime())
    assert isinstance(client, DocumentIndex)
    return client


@pytest.fixture
def index(url: str) -> Generator[DocumentIndex]:
    """A client of the namespace."""
    client = connect(url)
    yield client
    client.close()


@pytest.fixture(scope="module")
def raw(opensearch_url: str) -> Generator[OpenSearch]:
    """A client of another program."""
    with OpenSearch(opensearch_url, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def crowd(opensearch_url: str) -> Generator[DocumentIndex]:
    """An index of each type over the same rows of 16 dimensions, in a namespace of its own; one segment each."""
    BACKEND.drop_namespace(opensearch_url, "os_crowd")
    client = connect(opensearch_url, "os_crowd")
    random = np.random.default_rng(1)
    rows = [
        NewVector(f"v{i}", vector, {"half": i % 2, "rare": i % 400 == 0} | ({} if i % 3 else {"third": "yes"}))
        for i, vector in enumerate(random.standard_normal((ROWS, 16)).tolist())
    ]
    for kind in ("hnsw", "flat"):
        client.create_index(kind, dimension=16, config=IndexConfig(kind))
        client.upsert_vectors(kind, rows)
    yield client
    client.close()
    BACKEND.drop_namespace(opensearch_url, "os_crowd")


class Searches:
    """The searches that a client makes while it is watched."""

    def __init__(self, client: DocumentIndex, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[tuple[str, Json]] = []
        documents: Documents = client._documents  # pyright: ignore[reportPrivateUsage]
        self._search = documents.search
        monkeypatch.setattr(documents, "search", self._watch)

    def _watch(self, index: str, body: Json) -> Answer:
        self.made.append((index, body))
        return self._search(index, body)


def plan(raw: OpenSearch, search: tuple[str, Json]) -> list[str]:
    """What a search was rewritten to, by the engine's own account."""
    index, body = search
    shards = raw.search(index=index, body=body | {"profile": True})["profile"]["shards"]
    return [query["description"] for shard in shards for each in shard["searches"] for query in each["query"]]


# What an index is


@pytest.mark.parametrize("metric", METRICS)
def test_the_graph_is_lucenes_and_its_parameters_reach_it(
    index: DocumentIndex, raw: OpenSearch, metric: Metric
) -> None:
    index.create_index("i", dimension=3, metric=metric, config=IndexConfig("hnsw", m=5, ef_construction=11))
    field = raw.indices.get_mapping(index=place("i"))[place("i")]["mappings"]["properties"]["near"]
    assert (field["method"]["engine"], field["method"]["name"]) == ("lucene", "hnsw")
    assert field["method"]["parameters"] == {"m": 5, "ef_construction": 11}


def test_nothing_is_quantised_and_no_source_derived(index: DocumentIndex, raw: OpenSearch) -> None:
    index.create_index("i", dimension=768)
    found = raw.indices.get(index=place("i"), params={"flat_settings": "true"})[place("i")]
    field = {"type": "knn_vector", "dimension": 768, "space_type": "cosinesimil"}
    assert found["mappings"]["properties"]["near"] == field
    assert found["settings"]["index.knn.derived_source.enabled"] == "false"
    assert found["settings"]["index.knn.advanced.approximate_threshold"] == "-1"


def test_what_is_derived_is_not_stored_twice(index: DocumentIndex, raw: OpenSearch) -> None:
    index.create_index("i", dimension=2)
    index.upsert_vectors("i", [NewVector("a", (1, 2), {"k": 1})])
    [hit] = raw.search(index=place("i"))["hits"]["hits"]
    assert hit["_source"].keys() == {"id", "metadata", "raw", "write"}


def test_an_index_of_another_program_is_left_alone(index: DocumentIndex, raw: OpenSearch) -> None:
    raw.indices.create(index=place("i"))
    try:
        with pytest.raises(ConfigurationError, match="not of this version"):
            index.create_index("i", dimension=2)
        with pytest.raises(ConfigurationError):
            index.drop_index("i")
        assert raw.indices.exists(index=place("i"))
    finally:
        raw.indices.delete(index=place("i"))


# Queries


@pytest.mark.parametrize("filter", [None, {"half": 1}], ids=["all", "half"])
def test_a_query_is_answered_by_the_graph(
    crowd: DocumentIndex, raw: OpenSearch, monkeypatch: pytest.MonkeyPatch, filter: dict[str, Any] | None
) -> None:
    searches = Searches(crowd, monkeypatch)
    assert len(crowd.query_vectors("hnsw", NORTH, filter=filter)) == 10
    [made] = searches.made
    [shown] = plan(raw, made)
    assert shown.startswith("OSKnnFloatVectorQuery:near[")


@pytest.mark.parametrize(("kind", "exact"), [("hnsw", True), ("flat", False)])
def test_an_exact_query_reads_every_row(
    crowd: DocumentIndex, raw: OpenSearch, monkeypatch: pytest.MonkeyPatch, kind: str, exact: bool
) -> None:
    searches = Searches(crowd, monkeypatch)
    crowd.query_vectors(kind, NORTH, exact=exact)
    [(index, body)] = searches.made
    assert body["query"]["script_score"]["query"] == {"match_all": {}}
    assert raw.search(index=index, body=body | {"track_total_hits": True})["hits"]["total"]["value"] == ROWS


def test_a_short_answer_is_completed_by_a_scan(crowd: DocumentIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    searches = Searches(crowd, monkeypatch)
    assert len(crowd.query_vectors("hnsw", NORTH, top_k=20, filter={"rare": True})) == 10
    assert [next(iter(body["query"])) for _, body in searches.made] == ["knn", "script_score"]


@pytest.mark.parametrize("top_k", [1, 41, 1_000, 1_001, 3_999, 10_000])
def test_top_k_is_never_capped(crowd: DocumentIndex, top_k: int) -> None:
    assert len(crowd.query_vectors("hnsw", NORTH, top_k=top_k)) == min(top_k, ROWS)


def test_the_graph_finds_what_a_scan_finds(crowd: DocumentIndex, raw: OpenSearch) -> None:
    raw.indices.forcemerge(index=place("hnsw", "os_crowd"), params={"max_num_segments": 1})
    raw.indices.refresh(index=place("hnsw", "os_crowd"))
    found = due = 0
    for query in np.random.default_rng(2).standard_normal((50, 16)).tolist():
        answers = [crowd.query_vectors("hnsw", query, exact=exact) for exact in (True, False)]
        true, near = ({hit.id for hit in answer} for answer in answers)
        found, due = found + len(true & near), due + len(true)
    assert found >= 0.97 * due


def test_the_widest_filter_is_answered(crowd: DocumentIndex) -> None:
    conditions = [{"half": {"$nin": [*range(i, i + 1_000)]}} for i in range(2, 101)]
    assert len(crowd.query_vectors("flat", NORTH, filter={"$or": [{"half": 1}, {"$and": conditions}]})) == 10


def test_the_deepest_filter_is_answered(crowd: DocumentIndex) -> None:
    filter: dict[str, Any] = {"half": {"$ne": 0}}
    for level in range(7):
        more: dict[str, Any] = {"$or": [filter, {"half": {"$lt": 0}}]} if level % 2 else {"$and": [filter]}
        filter = {"half": {"$gte": 1}} | more
    hits = crowd.query_vectors("flat", NORTH, filter=filter)
    assert {hit.metadata["half"] for hit in hits} == {1}


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("kind", ["hnsw", "flat"])
@pytest.mark.parametrize("filter", [None, {"third": "yes"}], ids=["all", "third"])
def test_the_baseline_finds_the_same(
    opensearch_url: str, crowd: DocumentIndex, kind: str, filter: dict[str, Any] | None, exact: bool
) -> None:
    baseline = Baseline(opensearch_url, "os_crowd", kind)
    found = [hit[0] for hit in baseline.query(np.array(NORTH, np.float32), 10, filter, exact=exact)]
    baseline.close()
    assert found == [hit.id for hit in crowd.query_vectors(kind, NORTH, filter=filter, exact=exact)]


# Semantic recall


def remember(url: str, dimension: int = 2, recall: SemanticRecall | bool = True) -> Memory:
    runtime = Runtime(embedder=LiteralEmbedder(dimension))
    return BACKEND.open_memory(url, NAMESPACE, runtime, MemoryConfig(semantic_recall=recall))


def hits(memory: Memory, text: str) -> Sequence[str]:
    return [hit.id for hit in memory.recall("t", vector_search_string=text).hits]


@pytest.fixture
def memory(url: str) -> Generator[Memory]:
    """A client that embeds, with a thread t that holds one embedded message."""
    client = remember(url)
    client.create_thread(resource_id="r", id="t")
    client.save_messages([NewMessage("a", "t", "[1, 0]")])
    yield client
    client.close()


def test_embeddings_of_another_dimension_are_refused(memory: Memory, url: str) -> None:
    assert hits(memory, "[1, 0]") == ["a"]
    with pytest.raises(ConfigurationError, match="2 dimensions"):
        remember(url, dimension=3)


def test_embeddings_stay_in_the_index_that_they_are_in(memory: Memory, url: str) -> None:
    other = remember(url, recall=SemanticRecall(index_config=IndexConfig("hnsw")))
    assert hits(other, "[1, 0]") == ["a"]
    described = other.semantic_index()
    assert described is not None
    assert (described.config, described.count) == (IndexConfig("flat"), 1)
    other.close()


def test_an_emptied_namespace_takes_another_embedder(memory: Memory, url: str) -> None:
    BACKEND.reset_namespace(url, NAMESPACE)
    other = remember(url, dimension=3, recall=SemanticRecall(index_config=IndexConfig("hnsw", m=7)))
    other.create_thread(resource_id="r", id="t")
    other.save_messages([NewMessage("b", "t", "[1, 0, 0]")])
    assert hits(other, "[1, 0, 0]") == ["b"]
    described = other.semantic_index()
    assert described is not None
    assert (described.dimension, described.config) == (3, IndexConfig("hnsw", m=7, ef_construction=64))
    other.close()
