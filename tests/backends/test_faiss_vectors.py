"""Facts of the FAISS adapter that no clause states: the log and the cache, the file, what FAISS is asked."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import faiss  # pyright: ignore[reportMissingTypeStubs]
import numpy as np
import pytest
from memassay.backends import faiss as adapter
from memassay.backends.baselines.faiss import Baseline
from memassay.backends.faiss import Cache, FaissBackend, FaissIndex
from memassay.backends.provision import EngineUnavailable
from memassay.backends.registry import find
from memassay.spec.embedders import LiteralEmbedder
from memassay.spec.errors import AlreadyExists, ConfigurationError, IndexNotFound, InvalidRequest
from memassay.spec.protocols import Runtime
from memassay.spec.types import IndexConfig, MemoryConfig, NewMessage, NewVector, SemanticRecall

BACKEND = FaissBackend()
DIMENSION = 8


def opened(folder: Path, namespace: str = "one") -> FaissIndex:
    return BACKEND.open_index(str(folder), namespace, Runtime())


def rows(count: int, first: int = 0, seed: int = 0) -> list[NewVector]:
    """`count` vectors `v<first>` …; every tenth is marked rare."""
    drawn = np.random.default_rng(seed + first).standard_normal((count, DIMENSION)).tolist()
    return [NewVector(f"v{first + i}", drawn[i], {"rare": i % 10 == 0, "n": first + i}) for i in range(count)]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[FaissIndex]:
    index = opened(tmp_path)
    index.create_index("i", dimension=DIMENSION)
    yield index
    index.close()


@pytest.fixture
def approximate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaissIndex]:
    """An index of type hnsw that asks its graph even for few rows."""
    monkeypatch.setattr(adapter, "SCANNED", 0)
    monkeypatch.setattr(adapter, "SPARE", 0)
    index = opened(tmp_path)
    index.create_index("i", dimension=DIMENSION, config=IndexConfig(type="hnsw", m=4, ef_construction=20))
    index.upsert_vectors("i", rows(600))
    monkeypatch.setattr(Cache, "_cost", _free)
    yield index
    index.close()


def _free(self: Cache, breadth: int) -> float:
    return breadth / 100


def cache(index: FaissIndex, name: str = "i") -> Cache:
    return index._caches[name]  # pyright: ignore[reportPrivateUsage]


# The file


def test_find() -> None:
    assert isinstance(find("faiss"), FaissBackend)


def test_two_files(tmp_path: Path) -> None:
    BACKEND.open_memory(str(tmp_path / "new" / "one"), "one", Runtime(), MemoryConfig()).close()
    assert {path.name for path in (tmp_path / "new" / "one").iterdir()} == {"messages.db", "vectors.db"}


def test_write_ahead_log_at_full_durability(index: FaissIndex) -> None:
    connection = cast(sqlite3.Connection, index._connection)  # pyright: ignore[reportPrivateUsage]
    assert connection.execute("pragma journal_mode").fetchone() == ("wal",)
    assert connection.execute("pragma synchronous").fetchone() == (2,)


def test_durable_unless_in_memory(tmp_path: Path) -> None:
    assert BACKEND.capabilities(str(tmp_path)).durable
    in_memory = BACKEND.capabilities(":memory:")
    assert not in_memory.durable
    assert not in_memory.concurrent_clients


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError):
        opened(tmp_path / "file")


def test_a_server_is_no_directory() -> None:
    with pytest.raises(ConfigurationError):
        BACKEND.open_index("http://localhost", "one", Runtime())


def test_namespace_is_checked(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest):
        opened(tmp_path, "One; drop")


def test_drop_removes_every_table(tmp_path: Path) -> None:
    BACKEND.open_memory(str(tmp_path), "one", Runtime(embedder=LiteralEmbedder()), MemoryConfig()).close()
    opened(tmp_path).close()
    BACKEND.drop_namespace(str(tmp_path), "one")
    connection = sqlite3.connect(tmp_path / "vectors.db")
    assert connection.execute("select name from sqlite_schema where name not like 'sqlite_%'").fetchall() == []
    connection.close()


def test_drop_of_nothing_makes_nothing(tmp_path: Path) -> None:
    BACKEND.drop_namespace(str(tmp_path / "absent"), "one")
    assert not (tmp_path / "absent").exists()


def test_names_are_values_of_a_registry(index: FaissIndex) -> None:
    name = "x'; drop table one_indexes; --😀"
    index.create_index(name, dimension=3)
    assert index.list_indexes() == ("i", name)


def test_the_users_index_messages_is_not_the_embeddings(tmp_path: Path) -> None:
    memory = BACKEND.open_memory(str(tmp_path), "one", Runtime(embedder=LiteralEmbedder()), MemoryConfig())
    index = opened(tmp_path)
    index.create_index("messages", dimension=DIMENSION)
    described = memory.semantic_index()
    assert described is not None
    assert described.dimension == 3
    index.close()
    memory.close()


def test_a_killed_process_loses_nothing(tmp_path: Path) -> None:
    program = f"""
import os, signal
from pathlib import Path
from memassay.backends.faiss import FaissBackend
from memassay.spec.protocols import Runtime
from memassay.spec.types import NewVector
index = FaissBackend().open_index({str(tmp_path)!r}, "one", Runtime())
index.create_index("i", dimension=2)
index.upsert_vectors("i", [NewVector("a", [1.0, 0.0])])
index.query_vectors("i", [1.0, 0.0])
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False, env=os.environ).returncode == -signal.SIGKILL
    index = opened(tmp_path)
    assert [hit.id for hit in index.query_vectors("i", [1.0, 0.0])] == ["a"]
    index.close()


def test_a_fault_before_commit_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    def fault(point: str) -> None:
        if point == "before commit" and armed:
            raise KeyboardInterrupt

    armed = False
    index = BACKEND.open_index(str(tmp_path), "one", Runtime(fault=fault))
    index.create_index("i", dimension=DIMENSION)
    armed = True
    with pytest.raises(KeyboardInterrupt):
        index.upsert_vectors("i", rows(3))
    assert index.query_vectors("i", [1.0] * DIMENSION) == ()
    index.close()


# The cache and the log


def test_another_clients_writes_are_replayed(tmp_path: Path, index: FaissIndex) -> None:
    index.upsert_vectors("i", rows(50))
    index.query_vectors("i", [1.0] * DIMENSION)
    other = opened(tmp_path)
    other.upsert_vectors("i", rows(20, first=40))
    other.delete_vectors("i", ids=["v0"])
    other.close()
    assert {hit.id for hit in index.query_vectors("i", [1.0] * DIMENSION, top_k=100)} == {f"v{i}" for i in range(1, 60)}


def test_a_replay_adds_only_what_is_new(index: FaissIndex) -> None:
    index.upsert_vectors("i", rows(50))
    index.query_vectors("i", [1.0] * DIMENSION)
    before = cache(index)
    index.upsert_vectors("i", rows(5, first=50))
    index.query_vectors("i", [1.0] * DIMENSION)
    assert cache(index) is before
    assert before.rows.ntotal == 55


def test_metadata_alone_changes_no_row_of_the_cache(index: FaissIndex) -> None:
    index.upsert_vectors("i", rows(50))
    index.query_vectors("i", [1.0] * DIMENSION)
    index.update_vector("i", "v7", metadata={"rare": "no"})
    assert [hit.id for hit in index.query_vectors("i", [1.0] * DIMENSION, filter={"rare": "no"})] == ["v7"]
    assert cache(index).rows.ntotal == 50


def test_a_cache_older_than_the_log_is_read_anew(
    tmp_path: Path, index: FaissIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "KEPT_REMOVALS", 4)
    index.upsert_vectors("i", rows(50))
    index.query_vectors("i", [1.0] * DIMENSION)
    other = opened(tmp_path)
    for i in range(30):
        other.delete_vectors("i", ids=[f"v{i}"])
    other.close()
    assert {hit.id for hit in index.query_vectors("i", [1.0] * DIMENSION, top_k=50)} == {f"v{i}" for i in range(30, 50)}


def test_the_log_of_removals_is_bounded(index: FaissIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "KEPT_REMOVALS", 10)
    for _ in range(30):
        index.upsert_vectors("i", rows(2))
    connection = cast(sqlite3.Connection, index._connection)  # pyright: ignore[reportPrivateUsage]
    assert connection.execute("select count(*) from one_removals").fetchone()[0] <= 12


def test_churn_leaves_the_dead_out_of_a_new_cache(index: FaissIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "REMAINS", 10)
    for round in range(10):
        index.upsert_vectors("i", rows(30, seed=round))
        assert len(index.query_vectors("i", [1.0] * DIMENSION, top_k=30)) == 30
    assert cache(index).rows.ntotal <= 60


def test_an_index_made_again_starts_empty(tmp_path: Path, index: FaissIndex) -> None:
    index.upsert_vectors("i", rows(50))
    index.query_vectors("i", [1.0] * DIMENSION)
    other = opened(tmp_path)
    other.drop_index("i")
    other.create_index("i", dimension=3)
    other.close()
    assert index.query_vectors("i", [1.0, 0.0, 0.0]) == ()


def test_a_dropped_index_frees_its_cache(tmp_path: Path, index: FaissIndex) -> None:
    index.query_vectors("i", [1.0] * DIMENSION)
    other = opened(tmp_path)
    other.drop_index("i")
    other.close()
    with pytest.raises(IndexNotFound):
        index.query_vectors("i", [1.0] * DIMENSION)
    assert not index._caches  # pyright: ignore[reportPrivateUsage]


# FAISS


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        (IndexConfig(type="flat"), "IndexFlat"),
        (IndexConfig(type="hnsw", m=12, ef_construction=55), "IndexHNSWFlat"),
        (IndexConfig(type="ivfflat", lists=7), "IndexIVFFlat"),
    ],
)
def test_the_configuration_is_read_off_faiss(index: FaissIndex, config: IndexConfig, kind: str) -> None:
    index.create_index("c", dimension=3, config=config)
    assert index.describe_index("c").config == config
    held = cache(index, "c")
    assert type(held.rows if held.ann is None else held.ann).__name__ == kind


def test_a_graph_answers_many_candidates(approximate: FaissIndex) -> None:
    approximate.query_vectors("i", [1.0] * DIMENSION)
    assert cache(approximate).ann.ntotal == 600


def test_an_exact_query_leaves_the_graph_alone(approximate: FaissIndex) -> None:
    approximate.query_vectors("i", [1.0] * DIMENSION, exact=True)
    assert cache(approximate).ann.ntotal == 0


def test_a_short_graph_is_completed_by_a_scan(approximate: FaissIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    def short(query: Any, wanted: int, params: Any) -> tuple[Any, Any]:
        return np.zeros((1, wanted), np.float32), np.full((1, wanted), -1)

    approximate.query_vectors("i", [1.0] * DIMENSION)
    monkeypatch.setattr(cache(approximate).ann, "search", short)
    found = approximate.query_vectors("i", [1.0] * DIMENSION)
    assert found == approximate.query_vectors("i", [1.0] * DIMENSION, exact=True)


def test_an_index_no_graph_suits_is_scanned(approximate: FaissIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "TUNED_RECALL", 2)  # which no breadth reaches
    found = approximate.query_vectors("i", [1.0] * DIMENSION)
    assert found == approximate.query_vectors("i", [1.0] * DIMENSION, exact=True)


def test_ivf_is_trained_once_rows_suffice(index: FaissIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "SCANNED", 0)
    index.create_index("c", dimension=DIMENSION, config=IndexConfig(type="ivfflat", lists=2))
    index.upsert_vectors("c", rows(77))
    index.query_vectors("c", [1.0] * DIMENSION)
    assert not cache(index, "c").ann.is_trained
    index.upsert_vectors("c", rows(1, first=77))
    index.query_vectors("c", [1.0] * DIMENSION)
    assert cache(index, "c").ann.ntotal == 78


def test_faiss_keeps_the_number_of_threads(index: FaissIndex) -> None:
    before = cast(Any, faiss).omp_get_max_threads()
    index.upsert_vectors("i", rows(100))
    index.query_vectors("i", [1.0] * DIMENSION)
    assert cast(Any, faiss).omp_get_max_threads() == before


def test_equal_vectors_beyond_what_was_asked_tie_by_id(index: FaissIndex) -> None:
    index.upsert_vectors("i", [NewVector(f"{9999 - i}", [1.0] * DIMENSION) for i in range(500)])
    assert [hit.id for hit in index.query_vectors("i", [1.0] * DIMENSION, top_k=3)] == ["9500", "9501", "9502"]


def test_components_that_float32_arithmetic_loses(index: FaissIndex) -> None:
    tiny = [NewVector(f"t{i}", [0.0] * i + [1e-15] + [0.0] * (7 - i)) for i in range(8)]
    huge = [NewVector(f"h{i}", [0.0] * i + [-1e14] + [0.0] * (7 - i)) for i in range(8)]
    index.upsert_vectors("i", rows(50) + tiny + huge)
    assert index.query_vectors("i", [1e-14] + [0.0] * 7, top_k=1)[0].id == "t0"
    assert index.query_vectors("i", [-1e-14] + [0.0] * 7, top_k=1)[0].id == "h0"


# Filters


def test_a_condition_is_a_range_of_the_primary_key(index: FaissIndex) -> None:
    connection = cast(sqlite3.Connection, index._connection)  # pyright: ignore[reportPrivateUsage]
    ran: list[str] = []
    connection.set_trace_callback(ran.append)
    index.query_vectors("i", [1.0] * DIMENSION, filter={"a": {"$in": [1, 2]}, "b": {"$gt": "x"}, "c": {"$ne": None}})
    connection.set_trace_callback(None)
    asked = [sql for sql in ran if "one_scalars" in sql]
    plans = [connection.execute("explain query plan " + sql).fetchone()[3] for sql in asked]
    assert len(plans) == 3
    assert all(
        plan.startswith("SEARCH one_scalars USING PRIMARY KEY (number=? AND key=? AND kind=? AND value")
        for plan in plans
    )


# The baseline, and ways to an engine


def test_the_baseline_agrees(tmp_path: Path, index: FaissIndex) -> None:
    index.upsert_vectors("i", rows(200))
    baseline = Baseline(str(tmp_path), "one", "i")
    by_hand = baseline.query(np.ones(DIMENSION, np.float32), 5, {"rare": True})
    baseline.close()
    assert [row[0] for row in by_hand] == [
        hit.id for hit in index.query_vectors("i", [1.0] * DIMENSION, top_k=5, filter={"rare": True})
    ]


def test_embedded_is_gone_afterwards() -> None:
    with BACKEND.provisioners["embedded"].start(None) as endpoint:
        opened(Path(endpoint.url)).close()
        assert Path(endpoint.url).exists()
    assert not Path(endpoint.url).exists()


def test_url_makes_the_directory_and_leaves_it(tmp_path: Path) -> None:
    with BACKEND.provisioners["url"].start(f"file:{tmp_path}/a/b") as endpoint:
        assert endpoint.url == str(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


def test_url_refuses_a_server() -> None:
    with pytest.raises(EngineUnavailable), BACKEND.provisioners["url"].start("redis://x"):
        pass


def test_memory_keeps_nothing() -> None:
    runtime = Runtime(embedder=LiteralEmbedder())
    memory = BACKEND.open_memory(":memory:", "one", runtime, MemoryConfig(semantic_recall=True))
    memory.create_thread(resource_id="r", id="t")
    memory.save_messages([NewMessage("m", "t", "[1, 0, 0]")])
    assert [hit.id for hit in memory.recall("t", vector_search_string="[1, 0, 0]").hits] == ["m"]
    memory.close()
    memory = BACKEND.open_memory(":memory:", "one", runtime, MemoryConfig(semantic_recall=SemanticRecall()))
    assert memory.get_thread("t") is None
    memory.close()


def test_an_embedder_of_another_dimension_is_refused(tmp_path: Path) -> None:
    config = MemoryConfig(semantic_recall=True)
    BACKEND.open_memory(str(tmp_path), "one", Runtime(embedder=LiteralEmbedder(3)), config).close()
    with pytest.raises(ConfigurationError) as refused:
        BACKEND.open_memory(str(tmp_path), "one", Runtime(embedder=LiteralEmbedder(4)), config)
    assert isinstance(refused.value.__cause__, AlreadyExists)
