"""LangChain's stores, where they are installed: vectors, ids and filters reach them, and their numbers are scores."""

from __future__ import annotations

from typing import Any

import pytest
from memassay.backends.registry import UnknownBackend, find
from memassay.spec.errors import Unsupported
from memassay.spec.protocols import Runtime
from memassay.spec.types import NewVector

pytest.importorskip("langchain_core", reason="memassay[foreign] is absent")


def opened(name: str, metric: str) -> Any:
    index: Any = find(name).open_index("", "n", Runtime())  # pyright: ignore
    index.create_index("i", dimension=2, metric=metric)
    index.upsert_vectors("i", [NewVector("a", [1, 0], {"k": 1}), NewVector("b", [0, 1], {"k": 2})])
    return index


@pytest.mark.parametrize(
    ("name", "metric", "scores"),
    [("langchain:inmemory", "cosine", [0.8, 0.6]), ("langchain:faiss", "dotproduct", [0.8, 0.6])],
)
def test_numbers_that_are_similarities_are_scores(name: str, metric: str, scores: list[float]) -> None:
    found = opened(name, metric).query_vectors("i", [0.8, 0.6], top_k=2)
    assert [hit.id for hit in found] == ["a", "b"]
    assert [hit.score for hit in found] == pytest.approx(scores)


def test_a_filter_reaches_a_store_that_takes_fields() -> None:
    found = opened("langchain:faiss", "dotproduct").query_vectors("i", [1, 0], filter={"k": 2})
    assert [hit.id for hit in found] == ["b"]


def test_a_filter_is_unsupported_where_filters_are_functions() -> None:
    with pytest.raises(Unsupported, match="fields and values"):
        opened("langchain:inmemory", "cosine").query_vectors("i", [1, 0], filter={"k": 2})


def test_a_factory_of_the_users_own_opens_a_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "mine.py").write_text(
        "from langchain_core.vectorstores import InMemoryVectorStore\n"
        "def store(settings):\n"
        "    return InMemoryVectorStore(settings.embeddings)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)  # pyright: ignore
    assert len(opened("langchain:mine:store", "cosine").query_vectors("i", [1, 0])) == 2


def test_a_name_that_is_none_is_told_with_those_there_are() -> None:
    with pytest.raises(
        UnknownBackend, match="chroma, elasticsearch, faiss, inmemory, opensearch, pgvector, pgvectorst"
    ):
        find("langchain:weaviate")
