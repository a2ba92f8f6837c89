"""Embeddings in document engines: they survive what rewrites their messages, and are searched as configured."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import pytest
from memassay.backends.document_store import DocumentMemory
from memassay.backends.documents import Answer, Documents, Json, Outcome, Write
from memassay.spec.embedders import LiteralEmbedder
from memassay.spec.protocols import Backend, Runtime
from memassay.spec.types import IndexConfig, MemoryConfig, MessageUpdate, NewMessage, SemanticRecall

NAMESPACE = "document_embeddings"


class Opener:
    """Opens clients of one empty namespace."""

    def __init__(self, backend: Backend, url: str) -> None:
        self.backend = backend
        self.url = url
        self.open: list[DocumentMemory] = []

    def __call__(self, kind: str = "flat", dimension: int = 2) -> DocumentMemory:
        recall = SemanticRecall(index_config=IndexConfig(kind), top_k=10, message_range=0)
        config = MemoryConfig(semantic_recall=recall)
        memory = self.backend.open_memory(self.url, NAMESPACE, Runtime(embedder=LiteralEmbedder(dimension)), config)
        assert isinstance(memory, DocumentMemory)
        self.open.append(memory)
        return memory


@pytest.fixture(params=["elasticsearch", "opensearch"])
def connect(request: pytest.FixtureRequest, engines: Any) -> Generator[Opener]:
    """Opens clients of an empty namespace on each engine in turn."""
    backend, url = engines.get(request.param)
    backend.drop_namespace(url, NAMESPACE)
    opener = Opener(backend, url)
    yield opener
    for memory in opener.open:
        memory.close()
    backend.drop_namespace(url, NAMESPACE)


def embedded(memory: DocumentMemory) -> DocumentMemory:
    """The client, with the thread t that holds the embedded messages a and b."""
    memory.create_thread(resource_id="r", id="t")
    memory.save_messages([NewMessage("a", "t", "[1, 0]"), NewMessage("b", "t", "[0, 1]")])
    return memory


def documents(memory: DocumentMemory) -> Documents:
    return memory._documents  # pyright: ignore[reportPrivateUsage]


def hits(memory: DocumentMemory, thread_id: str = "t") -> list[tuple[str, float]]:
    found = memory.recall(thread_id, vector_search_string="[1, 0]")
    texts = {message.id: str(message.content) for message in found.messages}
    return [(texts[hit.id], hit.score) for hit in found.hits]


BOTH = [("[1, 0]", 1.0), ("[0, 1]", 0.0)]


def test_an_embedding_that_was_put_back_is_found(connect: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = embedded(connect())
    client = documents(memory)
    real = client.write

    def write(alias: str, writes: Sequence[Write], *, refresh: bool = False) -> list[Outcome]:
        outcomes = real(alias, writes, refresh=refresh)
        if alias.endswith("-messages"):
            monkeypatch.setattr(client, "write", real)
            raise ConnectionError("the answer was lost")
        return outcomes

    monkeypatch.setattr(client, "write", write)
    with pytest.raises(ConnectionError):
        memory.save_messages([NewMessage("a", "t", "[0, -1]")])
    assert hits(memory) == BOTH


def test_an_update_of_metadata_keeps_the_embedding(connect: Opener) -> None:
    memory = embedded(connect())
    memory.update_messages([MessageUpdate("a", metadata={"k": 1})])
    assert hits(memory) == BOTH


def test_a_clones_embeddings_are_found(connect: Opener) -> None:
    memory = embedded(connect())
    memory.clone_thread("t", new_thread_id="copy")
    assert hits(memory, "copy") == BOTH


def test_a_graph_is_searched_over_a_resource(connect: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = connect("hnsw")
    memory.create_thread(resource_id="r", id="t")
    memory.save_messages([NewMessage(f"m{i}", "t", f"[1, {i}]") for i in range(30)])
    client = documents(memory)
    real, made = client.search, list[str]()

    def search(index: str, body: Json) -> Answer:
        made.extend(body["query"])
        return real(index, body)

    monkeypatch.setattr(client, "search", search)
    everywhere = SemanticRecall(top_k=10, scope="resource")
    for recall in (everywhere, SemanticRecall(top_k=10)):
        config = MemoryConfig(semantic_recall=recall)
        found = memory.recall("t", resource_id="r", vector_search_string="[1, 0]", thread_config=config)
        assert len(found.hits) == 10
    assert made == ["knn", "script_score"]  # One thread is always searched exactly.


def test_many_equal_embeddings_come_in_the_order_of_the_thread(connect: Opener) -> None:
    memory = connect()
    memory.create_thread(resource_id="r", id="t")
    memory.save_messages([NewMessage(f"m{i}", "t", "[1, 0]") for i in reversed(range(60))])
    found = memory.recall("t", vector_search_string="[1, 0]").hits
    assert [hit.id for hit in found] == [f"m{i}" for i in range(59, 49, -1)]
