"""How broadly approximate indices are searched may be fixed: it bears on recall, never on how many rows come back."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing

import numpy as np
import pytest
from memassay.backends.document_filters import EVERYTHING
from memassay.backends.elasticsearch_vectors import ElasticsearchVectors
from memassay.backends.faiss import FaissBackend
from memassay.backends.opensearch_vectors import OpenSearchVectors
from memassay.backends.postgres import PostgresBackend
from memassay.spec.protocols import Backend, Runtime
from memassay.spec.types import IndexConfig, NewVector

ROWS, DIMENSION, LISTS, TOP = 6_000, 12, 60, 10
NAMESPACE = "effort"
Stored = tuple[Backend, str]


def rows() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(ROWS, DIMENSION)).astype(np.float32)


@pytest.fixture(scope="module", params=["faiss", "postgres"])
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Stored]:
    """An ivfflat index of so many lists."""
    backend: Backend
    if request.param == "faiss":
        backend, url = FaissBackend(), str(tmp_path_factory.mktemp("faiss"))
    else:
        backend, url = PostgresBackend(), request.getfixturevalue("postgres_url")
    backend.drop_namespace(url, NAMESPACE)
    with closing(backend.open_index(url, NAMESPACE, Runtime())) as index:
        index.create_index("i", dimension=DIMENSION, config=IndexConfig("ivfflat", lists=LISTS))
        given = [NewVector(f"v{n:05}", row.tolist(), {}) for n, row in enumerate(rows())]
        for start in range(0, ROWS, 1_000):
            index.upsert_vectors("i", given[start : start + 1_000])
    yield backend, url
    backend.drop_namespace(url, NAMESPACE)


def recall(stored: Stored, effort: int) -> float:
    backend, url = stored
    right = 0
    with closing(backend.open_index(url, NAMESPACE, Runtime(effort=effort))) as index:
        for query in np.random.default_rng(4).normal(size=(20, DIMENSION)).tolist():
            found, due = (index.query_vectors("i", query, top_k=TOP, exact=exact) for exact in (False, True))
            assert len(found) == TOP
            right += len({hit.id for hit in found} & {hit.id for hit in due})
    return right / (20 * TOP)


def test_one_list_of_many_does_not_hold_what_is_nearest(stored: Stored) -> None:
    assert recall(stored, 1) < 0.9


def test_all_lists_hold_it(stored: Stored) -> None:
    assert recall(stored, LISTS) == 1.0


def test_too_few_rows_found_are_completed(stored: Stored) -> None:
    backend, url = stored
    with closing(backend.open_index(url, NAMESPACE, Runtime(effort=1))) as index:
        assert len(index.query_vectors("i", [1.0] * DIMENSION, top_k=1_000)) == 1_000


@pytest.mark.parametrize(("effort", "k", "candidates"), [(64, 10, 64), (64, 100, 100)])
def test_it_is_the_number_of_candidates(effort: int, k: int, candidates: int) -> None:
    clause = ElasticsearchVectors(effort).nearest("embedding", [1.0], k, EVERYTHING)
    assert clause["knn"]["num_candidates"] == candidates


@pytest.mark.parametrize(("effort", "k", "breadth"), [(64, 10, 64), (64, 100, 100)])
def test_it_is_how_broadly_a_graph_is_searched(effort: int, k: int, breadth: int) -> None:
    clause = OpenSearchVectors(effort).nearest("embedding", [1.0], k, EVERYTHING)
    assert clause["knn"]["embedding"]["method_parameters"] == {"ef_search": breadth}
