"""LangChain's VectorStore as vector indices: `langchain:module:factory`, where factory(Settings) returns the store.

The stores named here are those that `pip install memassay[foreign]` brings: `langchain:inmemory`, `langchain:faiss`,
`langchain:chroma`, `langchain:pgvector`.
"""

# The packages are in no environment in which types are checked.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import msgspec
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from ...spec.errors import Unsupported
from ...spec.index_requests import NewIndex
from .texts import IN_MEMORY, Opener, Stored, TextBackend, from_either, vector_of


class JsonEmbeddings(Embeddings):
    """Reads the vector that a text is the JSON of."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """See Embeddings."""
        return [vector_of(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """See Embeddings."""
        return vector_of(text)


@dataclass(frozen=True)
class Settings:
    """What a factory makes a VectorStore of. `name` is an identifier that no other index has."""

    embeddings: Embeddings
    name: str
    dimension: int
    metric: str
    url: str


class Documents:
    """A VectorStore as texts.Collection.

    score: turns its number into one that is larger when closer. filters: it takes filters that are data.
    """

    def __init__(self, store: VectorStore, score: Callable[[float], float], *, filters: bool = True) -> None:
        self._store = store
        self._score = score
        self._filters = filters

    def put(self, items: Sequence[Stored]) -> Sequence[str]:
        """See texts.Collection."""
        documents = [Document(id=item.id, page_content=item.text, metadata=item.metadata) for item in items]
        return self._store.add_documents(documents, ids=[item.id for item in items])

    def get(self, ids: Sequence[str]) -> Iterable[Stored]:
        """See texts.Collection."""
        return [_stored(document) for document in self._store.get_by_ids(ids)]

    def delete(self, ids: Sequence[str]) -> Any:
        """See texts.Collection."""
        return self._store.delete(list(ids))

    def query(self, text: str, top_k: int, filter: Mapping[str, Any] | None) -> Iterable[tuple[Stored, float]]:
        """See texts.Collection."""
        if filter is not None and not self._filters:
            raise Unsupported("a filter that is no function")
        narrowed: dict[str, Any] = {} if filter is None else {"filter": filter}
        found = self._store.similarity_search_with_score(text, k=top_k, **narrowed)
        return [(_stored(document), self._score(float(number))) for document, number in found]

    def drop(self) -> None:
        """See texts.Collection."""
        if hasattr(self._store, "delete_collection"):
            self._store.delete_collection()  # pyright: ignore


def _stored(document: Document) -> Stored:
    return Stored(document.id or "", document.page_content, document.metadata)


def as_it_is(metric: str) -> Callable[[float], float]:
    """The number is a similarity."""
    return lambda number: number


def from_distance(metric: str) -> Callable[[float], float]:
    """The number is documented as a distance: 1 − cosine, the Euclidean one, or the negated inner product."""
    if metric == "euclidean":
        return lambda number: 1 / (1 + number)
    return (lambda number: 1 - number) if metric == "cosine" else (lambda number: -number)


def _opener(name: str, packages: Sequence[str], factory: Callable[[Settings], VectorStore], **more: Any) -> Opener:
    score = more.pop("score", as_it_is)
    filters = more.pop("filters", True)

    def open_collection(collection: str, index: NewIndex, url: str) -> Documents:
        settings = Settings(JsonEmbeddings(), collection, index.dimension, index.metric, url)
        return Documents(factory(settings), score(index.metric), filters=filters)

    told = ", ".join(f"{package} {version(package)}" for package in packages)
    return Opener(name=name, version=told, open=open_collection, **more)


def inmemory() -> Opener:
    """InMemoryVectorStore of langchain-core: cosine similarity; filters are functions there."""
    from langchain_core.vectorstores import InMemoryVectorStore

    capabilities = msgspec.structs.replace(IN_MEMORY, metrics=("cosine",))
    return _opener(
        "inmemory",
        ["langchain-core"],
        lambda settings: InMemoryVectorStore(settings.embeddings),
        filters=False,
        capabilities=capabilities,
    )


def faiss() -> Opener:
    """FAISS of langchain-community: the number is documented as the L2 distance, or is the product."""
    import faiss as library
    from langchain_community.docstore.in_memory import InMemoryDocstore
    from langchain_community.vectorstores import FAISS
    from langchain_community.vectorstores.utils import DistanceStrategy

    def make(settings: Settings) -> VectorStore:
        euclidean = settings.metric == "euclidean"
        flat = library.IndexFlatL2 if euclidean else library.IndexFlatIP
        return FAISS(
            embedding_function=settings.embeddings,
            index=flat(settings.dimension),
            docstore=InMemoryDocstore(),
            index_to_docstore_id={},
            distance_strategy=DistanceStrategy.EUCLIDEAN_DISTANCE if euclidean else DistanceStrategy.MAX_INNER_PRODUCT,
        )

    return _opener(
        "faiss",
        ["langchain-community", "faiss-cpu"],
        make,
        score=lambda metric: from_distance(metric) if metric == "euclidean" else as_it_is(metric),
        capabilities=msgspec.structs.replace(IN_MEMORY, metrics=("euclidean", "dotproduct")),
    )


def chroma() -> Opener:
    """Chroma of langchain-chroma, in memory: hnsw; the number is a distance."""
    import chromadb
    from langchain_chroma import Chroma

    client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))

    def make(settings: Settings) -> VectorStore:
        space = {"cosine": "cosine", "euclidean": "l2", "dotproduct": "ip"}[settings.metric]
        return Chroma(
            collection_name=settings.name,
            embedding_function=settings.embeddings,
            client=client,
            collection_configuration={"hnsw": {"space": space}},
        )

    return _opener(
        "chroma",
        ["langchain-chroma", "chromadb"],
        make,
        score=from_distance,
        capabilities=msgspec.structs.replace(IN_MEMORY, index_types=("hnsw",)),
    )


def pgvector() -> Opener:
    """PGVector of langchain-postgres: an exact scan in PostgreSQL; the number is a distance."""
    from langchain_postgres import PGVector
    from langchain_postgres.vectorstores import DistanceStrategy

    from ..provision.postgres import WITHOUT_CONTAINERS

    strategies = {
        "cosine": DistanceStrategy.COSINE,
        "euclidean": DistanceStrategy.EUCLIDEAN,
        "dotproduct": DistanceStrategy.MAX_INNER_PRODUCT,
    }

    def make(settings: Settings) -> VectorStore:
        return PGVector(
            embeddings=settings.embeddings,
            collection_name=settings.name,
            connection=settings.url.replace("postgresql://", "postgresql+psycopg://", 1),
            distance_strategy=strategies[settings.metric],
            use_jsonb=True,
        )

    return _opener(
        "pgvector",
        ["langchain-postgres"],
        make,
        score=from_distance,
        provisioners=WITHOUT_CONTAINERS,
    )


OWN = {"inmemory": inmemory, "faiss": faiss, "chroma": chroma, "pgvector": pgvector}


def from_factory(name: str, rest: str) -> TextBackend:
    """The backend `langchain:NAME` or `langchain:module:factory`. Raises UnknownBackend."""
    return from_either(name, rest, OWN, lambda factory: _opener(rest, ["langchain-core"], factory))
