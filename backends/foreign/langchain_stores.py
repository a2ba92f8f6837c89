"""The LangChain stores of `memassay[foreign]`: how each is set up, and what its numbers are documented to be.

`langchain:inmemory`, `:faiss`, `:chroma`, `:pgvector`, `:pgvectorstore`, `:elasticsearch`, `:opensearch`.
"""

# The packages are in no environment in which types are checked.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from .langchain import Kind, Settings, as_it_is, from_distance, opener
from .texts import IN_MEMORY, Opener

APPROXIMATE = msgspec.structs.replace(IN_MEMORY, index_types=("hnsw",))


def inmemory() -> Opener:
    """InMemoryVectorStore of langchain-core: cosine similarity; filters are functions there."""
    from langchain_core.vectorstores import InMemoryVectorStore

    kind = Kind(lambda settings: InMemoryVectorStore(settings.embeddings), filters=False)
    capabilities = msgspec.structs.replace(IN_MEMORY, metrics=("cosine",))
    return opener("inmemory", ["langchain-core"], kind, capabilities=capabilities)


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

    kind = Kind(make, score=lambda metric: (from_distance if metric == "euclidean" else as_it_is)(metric))
    capabilities = msgspec.structs.replace(IN_MEMORY, metrics=("euclidean", "dotproduct"))
    return opener("faiss", ["langchain-community", "faiss-cpu"], kind, capabilities=capabilities)


def chroma() -> Opener:
    """Chroma of langchain-chroma, in memory: hnsw; the number is a distance."""
    import chromadb
    from langchain_chroma import Chroma

    client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))
    spaces = {"cosine": "cosine", "euclidean": "l2", "dotproduct": "ip"}

    def make(settings: Settings) -> VectorStore:
        return Chroma(
            collection_name=settings.name,
            embedding_function=settings.embeddings,
            client=client,
            collection_configuration={"hnsw": {"space": spaces[settings.metric]}},
        )

    return opener("chroma", ["langchain-chroma", "chromadb"], Kind(make, score=from_distance), capabilities=APPROXIMATE)


def pgvector() -> Opener:
    """PGVector of langchain-postgres: an exact scan in PostgreSQL; the number is a distance."""
    from langchain_postgres import PGVector
    from langchain_postgres.vectorstores import DistanceStrategy
    from sqlalchemy import Engine, create_engine

    from ..provision.postgres import WITHOUT_CONTAINERS

    strategies = {
        "cosine": DistanceStrategy.COSINE,
        "euclidean": DistanceStrategy.EUCLIDEAN,
        "dotproduct": DistanceStrategy.MAX_INNER_PRODUCT,
    }
    engines: dict[str, Engine] = {}

    def make(settings: Settings) -> VectorStore:
        if settings.url not in engines:
            engines[settings.url] = create_engine(_with_driver(settings.url))
        return PGVector(
            embeddings=settings.embeddings,
            collection_name=settings.name,
            connection=engines[settings.url],
            distance_strategy=strategies[settings.metric],
            use_jsonb=True,
        )

    kind = Kind(make, score=from_distance)
    return opener("pgvector", ["langchain-postgres"], kind, provisioners=WITHOUT_CONTAINERS)


def pgvectorstore() -> Opener:
    """PGVectorStore of langchain-postgres: a table an index, an exact scan; the number is a distance, or the product.

    Ids are texts instead of the UUIDs that it makes by default.
    """
    from langchain_postgres import Column, PGEngine, PGVectorStore
    from langchain_postgres.v2.indexes import DistanceStrategy

    from ..provision.postgres import WITHOUT_CONTAINERS

    strategies = {
        "cosine": DistanceStrategy.COSINE_DISTANCE,
        "euclidean": DistanceStrategy.EUCLIDEAN,
        "dotproduct": DistanceStrategy.INNER_PRODUCT,
    }
    engines: dict[str, PGEngine] = {}

    def make(settings: Settings) -> VectorStore:
        if settings.url not in engines:
            engines[settings.url] = PGEngine.from_connection_string(_with_driver(settings.url))
        engine = engines[settings.url]
        engine.init_vectorstore_table(
            settings.name, settings.dimension, id_column=Column("langchain_id", "TEXT", nullable=False)
        )
        store = PGVectorStore.create_sync(
            engine, settings.embeddings, settings.name, distance_strategy=strategies[settings.metric]
        )
        store.drop_table = lambda: engine.drop_table(settings.name)  # pyright: ignore
        return store

    def score(metric: str) -> Callable[[float], float]:
        return (as_it_is if metric == "dotproduct" else from_distance)(metric)

    kind = Kind(make, score=score, drop=lambda store: store.drop_table())
    return opener("pgvectorstore", ["langchain-postgres"], kind, provisioners=WITHOUT_CONTAINERS)


def elasticsearch() -> Opener:
    """ElasticsearchStore of langchain-elasticsearch: hnsw; numbers are the engine's scores, filters its queries."""
    from elasticsearch.helpers.vectorstore import DistanceMetric
    from langchain_elasticsearch import DenseVectorStrategy, ElasticsearchStore

    from ..provision.elasticsearch import PROVISIONERS

    metrics = {
        "cosine": DistanceMetric.COSINE,
        "euclidean": DistanceMetric.EUCLIDEAN_DISTANCE,
        "dotproduct": DistanceMetric.MAX_INNER_PRODUCT,
    }

    def make(settings: Settings) -> VectorStore:
        return ElasticsearchStore(
            settings.name,
            embedding=settings.embeddings,
            es_url=settings.url,
            strategy=DenseVectorStrategy(distance=metrics[settings.metric]),
            num_dimensions=settings.dimension,
        )

    def read(store: Any, ids: Sequence[str]) -> Iterable[Document]:
        found = store.client.mget(index=store._store.index, ids=list(ids))
        return [_of_hit(hit) for hit in found["docs"] if hit.get("found")]

    def drop(store: Any) -> None:
        store.client.indices.delete(index=store._store.index, ignore_unavailable=True)
        store.close()

    # Its documents have no id unless the caller builds them.
    kind = Kind(make, filters=False, searching={"doc_builder": _of_hit}, read=read, drop=drop)
    packages = ["langchain-elasticsearch", "elasticsearch"]
    return opener("elasticsearch", packages, kind, capabilities=APPROXIMATE, provisioners=PROVISIONERS)


def opensearch() -> Opener:
    """OpenSearchVectorSearch of langchain-community, with Lucene's hnsw; number and filters as above."""
    from langchain_community.vectorstores import OpenSearchVectorSearch

    from ..provision.opensearch import PROVISIONERS

    spaces = {"cosine": "cosinesimil", "euclidean": "l2", "dotproduct": "innerproduct"}

    def make(settings: Settings) -> VectorStore:
        return OpenSearchVectorSearch(settings.url, settings.name, settings.embeddings, engine="lucene")

    def read(store: Any, ids: Sequence[str]) -> Iterable[Document]:
        found = store.client.mget(index=store.index_name, body={"ids": list(ids)})
        return [_of_hit(hit) for hit in found["docs"] if hit.get("found")]

    def drop(store: Any) -> None:
        store.client.indices.delete(index=store.index_name, params={"ignore_unavailable": "true"})
        store.client.close()

    kind = Kind(make, filters=False, adding=lambda metric: {"space_type": spaces[metric]}, read=read, drop=drop)
    packages = ["langchain-community", "opensearch-py"]
    return opener("opensearch", packages, kind, capabilities=APPROXIMATE, provisioners=PROVISIONERS)


def _with_driver(url: str) -> str:
    """A URL of PostgreSQL as SQLAlchemy has it."""
    return url.replace("postgresql://", "postgresql+psycopg://", 1)


def _of_hit(hit: dict[str, Any]) -> Document:
    """A search engine's document."""
    source = hit["_source"]
    return Document(id=hit["_id"], page_content=source["text"], metadata=source["metadata"])


OWN = {
    "inmemory": inmemory,
    "faiss": faiss,
    "chroma": chroma,
    "pgvector": pgvector,
    "pgvectorstore": pgvectorstore,
    "elasticsearch": elasticsearch,
    "opensearch": opensearch,
}
