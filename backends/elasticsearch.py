"""Elasticsearch: its own calls, behind the document API that the stores are written on (documents.py)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing, contextmanager
from typing import Any, ClassVar, cast

from elasticsearch import ApiError, BadRequestError, Elasticsearch, TransportError

from ..spec.capabilities import Capabilities
from ..spec.errors import ConfigurationError, answered
from ..spec.index_requests import parse_semantic_index
from ..spec.protocols import Memory, Runtime, VectorIndex
from ..spec.requests import parse_config
from ..spec.types import MemoryConfig
from .document_embeddings import Embeddings
from .document_index import DocumentIndex
from .document_layout import drop, enter, names, namespaces, reset
from .document_store import DocumentMemory
from .document_url import HINT, address
from .documents import (
    Answer,
    Definition,
    Document,
    Json,
    Outcome,
    Write,
    answer,
    bodies,
    deleted,
    documents,
    lines,
    outcomes,
    refused,
    unanswered,
)
from .elasticsearch_vectors import VECTOR_CAPABILITIES, ElasticsearchVectors
from .provision import Provisioners
from .provision.elasticsearch import PROVISIONERS

REQUEST_SECONDS = 60.0
DELETION_SECONDS = 3600.0
"""How long an answer may take; that to a deletion of all that matches longer, as it may be of millions."""

KEEP_ALIVE = "1m"
"""How long a point in time outlives its last search."""


SETTINGS: Json = {
    "number_of_shards": 1,
    "number_of_replicas": 0,
    "refresh_interval": "-1",  # Who searches refreshes.
    "translog.durability": "request",  # Whatever a template of the cluster's says.
    "mapping.exclude_source_vectors": False,  # Documents are written back as they were read.
}


class ElasticsearchBackend:
    """Elasticsearch 9 or later, reached by a URL (see document_url)."""

    name = "elasticsearch"
    provisioners: ClassVar[Provisioners] = PROVISIONERS

    def capabilities(self, url: str) -> Capabilities:
        """See protocols.Backend."""
        return VECTOR_CAPABILITIES

    def version(self, url: str) -> str:
        """See protocols.Backend."""
        with connect(url) as client:
            return f"Elasticsearch {client.info()['version']['number']}"

    def open_memory(self, url: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> Memory:
        """See protocols.Backend."""
        where, options = names(namespace), parse_config(config, "config")
        embedder = runtime.embedder
        index = None if embedder is None else parse_semantic_index(options, embedder.dimension, VECTOR_CAPABILITIES)
        documents = ElasticsearchDocuments(connect(url))
        try:
            with answered(lost):
                enter(documents, where, SETTINGS)
            semantic = None if index is None else Embeddings(documents, where.messages, index, ElasticsearchVectors())
            return DocumentMemory(documents, where, runtime, options, semantic)
        except BaseException:
            documents.close()
            raise

    def open_index(self, url: str, namespace: str, runtime: Runtime) -> VectorIndex:
        """See protocols.Backend."""
        where = names(namespace)
        return DocumentIndex(
            ElasticsearchDocuments(connect(url)), where, SETTINGS, ElasticsearchVectors(runtime.effort), runtime
        )

    def drop_namespace(self, url: str, namespace: str) -> None:
        """See protocols.Backend."""
        where = names(namespace)
        with closing(ElasticsearchDocuments(connect(url))) as documents:
            drop(documents, where)

    def namespaces(self, url: str) -> tuple[str, ...]:
        """The namespaces on the server. ConfigurationError when an index has such a name and is not ours."""
        with closing(ElasticsearchDocuments(connect(url))) as documents:
            return namespaces(documents)

    def reset_namespace(self, url: str, namespace: str) -> None:
        """Empty the namespace, which keeps its indices of threads and messages; nothing happens when there is none."""
        where = names(namespace)
        with closing(ElasticsearchDocuments(connect(url))) as documents:
            reset(documents, where)


def lost(error: BaseException) -> bool:
    """See documents.Documents."""
    if isinstance(error, ApiError):
        return unanswered(error.status_code, str(error))
    return isinstance(error, TransportError)


def connect(url: str, *, seconds: float = REQUEST_SECONDS) -> Elasticsearch:
    """A client that retries nothing: what a write that was sent twice did, nobody could tell."""
    try:
        where = address(url)
    except ValueError as error:
        raise ConfigurationError(str(error), hint=HINT) from None
    tls: dict[str, Any] = {"verify_certs": where.verify_certs} if where.tls else {}
    return Elasticsearch(
        where.base,
        basic_auth=where.login,
        request_timeout=seconds,
        max_retries=0,
        **tls,
    )


class ElasticsearchDocuments:
    """A client of Elasticsearch. Implements documents.Documents; may be used by several threads."""

    def __init__(self, client: Elasticsearch) -> None:
        self._client = client

    def create(self, index: str, definition: Definition) -> bool:
        """See documents.Documents."""
        try:
            self._client.indices.create(
                index=index,
                settings=definition.settings,
                mappings=definition.mappings,
                aliases=definition.aliases,
            )
        except BadRequestError as error:
            if error.error != "resource_already_exists_exception":
                raise
            self.ready(index)
            return False
        return True

    def ready(self, *indexes: str) -> None:
        """See documents.Documents."""
        # Not for the status yellow, which a new index has whose shard is not there yet.
        self._client.cluster.health(index=",".join(indexes), wait_for_active_shards=len(indexes))

    def drop(self, indexes: Iterable[str]) -> None:
        """See documents.Documents."""
        if listed := ",".join(indexes):
            self._client.indices.delete(index=listed, ignore_unavailable=True)

    def metas(self, pattern: str) -> dict[str, Json]:
        """See documents.Documents."""
        found = self._client.indices.get_mapping(index=pattern, ignore_unavailable=True)
        return {name: entry["mappings"].get("_meta", {}) for name, entry in found.items()}

    def extend(self, index: str, properties: Json) -> None:
        """See documents.Documents."""
        self._client.indices.put_mapping(index=index, properties=properties)

    def properties(self, index: str) -> Json:
        """See documents.Documents."""
        (found,) = self._client.indices.get_mapping(index=index).body.values()
        return found["mappings"]["properties"]

    def fetch(self, wanted: Sequence[tuple[str, str]], *, exclude: Sequence[str] = ()) -> list[Document | None]:
        """See documents.Documents."""
        if not wanted:
            return []
        docs = [{"_index": index, "_id": id} for index, id in wanted]
        return documents(self._client.mget(docs=docs, source_excludes=list(exclude) or None)["docs"])

    def write(self, alias: str, writes: Sequence[Write], *, refresh: bool = False) -> list[Outcome]:
        """See documents.Documents."""
        done: list[Outcome] = []
        for rows, body in bodies(lines(writes)):
            try:
                answered = self._client.bulk(index=alias, body=cast(Any, body), refresh=refresh, require_alias=True)
            except ApiError as error:
                if not done:
                    raise
                done += refused(writes[len(done) : len(done) + rows], error.status_code, str(error))
            else:
                done += outcomes(answered["items"])
        return done

    def refresh(self, *indexes: str) -> None:
        """See documents.Documents."""
        self._client.indices.refresh(index=",".join(indexes))

    def search(self, index: str, body: Json) -> Answer:
        """See documents.Documents."""
        return answer(self._client.search(index=index, body=body, allow_partial_search_results=False).body)

    def search_all(self, searches: Sequence[tuple[str, Json]]) -> list[Answer]:
        """See documents.Documents."""
        asked: list[Json] = []
        for index, body in searches:
            asked += [{"index": index, "allow_partial_search_results": False}, body]
        return [answer(each) for each in self._client.msearch(searches=asked)["responses"]]

    @contextmanager
    def moment(self, index: str) -> Generator[Callable[[Json], Answer]]:
        """See documents.Documents."""
        pit = self._client.open_point_in_time(index=index, keep_alive=KEEP_ALIVE)["id"]

        def search(body: Json) -> Answer:
            nonlocal pit
            found = self._client.search(
                body={**body, "pit": {"id": pit, "keep_alive": KEEP_ALIVE}}, allow_partial_search_results=False
            ).body
            pit = found["pit_id"]
            return answer(found)

        try:
            yield search
        finally:
            self._client.close_point_in_time(id=pit)

    def count(self, index: str, query: Json) -> int:
        """See documents.Documents."""
        return self.search(index, {"query": query, "size": 0, "track_total_hits": True}).total

    def delete_matching(self, index: str, query: Json) -> int:
        """See documents.Documents."""
        total, again = 0, True
        while again:
            self.refresh(index)
            patient = self._client.options(request_timeout=DELETION_SECONDS)
            body = patient.delete_by_query(index=index, query=query, conflicts="proceed").body
            count, again = deleted(body)
            total += count
        return total

    def lost(self, error: BaseException) -> bool:
        """See documents.Documents."""
        return lost(error)

    def close(self) -> None:
        """See documents.Documents."""
        self._client.close()
