"""OpenSearch: its own calls, behind the document API that the stores are written on (documents.py)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing, contextmanager
from typing import ClassVar

import msgspec
from opensearchpy import OpenSearch
from opensearchpy.exceptions import ConnectionError, RequestError, TransportError

from ..spec.capabilities import Capabilities
from ..spec.errors import ConfigurationError, Unsupported, answered
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
from .opensearch_vectors import VECTOR_CAPABILITIES, VECTOR_SETTINGS, OpenSearchVectors
from .provision import Provisioners
from .provision.opensearch import PROVISIONERS

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
}


class OpenSearchBackend:
    """OpenSearch 3 or later, reached by a URL (see document_url); without its k-NN plugin there are no vectors."""

    name = "opensearch"
    provisioners: ClassVar[Provisioners] = PROVISIONERS

    def capabilities(self, url: str) -> Capabilities:
        """See protocols.Backend."""
        with connect(url) as client:
            if plugin(client) is not None:
                return VECTOR_CAPABILITIES
        return msgspec.structs.replace(
            VECTOR_CAPABILITIES, vectors=False, semantic_recall=False, resource_scope=False, index_types=()
        )

    def version(self, url: str) -> str:
        """See protocols.Backend."""
        with connect(url) as client:
            knn = plugin(client)
            return f"OpenSearch {client.info()['version']['number']}" + ("" if knn is None else f", k-NN {knn}")

    def open_memory(self, url: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> Memory:
        """See protocols.Backend."""
        where, options = names(namespace), parse_config(config, "config")
        embedder = runtime.embedder
        index = None if embedder is None else parse_semantic_index(options, embedder.dimension, VECTOR_CAPABILITIES)
        client = connect(url)
        documents = OpenSearchDocuments(client)
        try:
            with answered(lost):
                vectors = plugin(client) is not None
                enter(documents, where, SETTINGS | (VECTOR_SETTINGS if vectors else {}))
            semantic = None
            if index is not None and vectors:
                semantic = Embeddings(documents, where.messages, index, OpenSearchVectors())
            return DocumentMemory(documents, where, runtime, options, semantic)
        except BaseException:
            documents.close()
            raise

    def open_index(self, url: str, namespace: str, runtime: Runtime) -> VectorIndex:
        """See protocols.Backend."""
        where, client = names(namespace), connect(url)
        documents = OpenSearchDocuments(client)
        try:
            with answered(lost):
                there = plugin(client) is not None
            if not there:
                raise Unsupported("vectors", hint="install OpenSearch's k-NN plugin", clause="CAP-1")
            return DocumentIndex(
                documents, where, SETTINGS | VECTOR_SETTINGS, OpenSearchVectors(runtime.effort), runtime
            )
        except BaseException:
            documents.close()
            raise

    def drop_namespace(self, url: str, namespace: str) -> None:
        """See protocols.Backend."""
        where = names(namespace)
        with closing(OpenSearchDocuments(connect(url))) as documents:
            drop(documents, where)

    def namespaces(self, url: str) -> tuple[str, ...]:
        """The namespaces on the server. ConfigurationError when an index has such a name and is not ours."""
        with closing(OpenSearchDocuments(connect(url))) as documents:
            return namespaces(documents)

    def reset_namespace(self, url: str, namespace: str) -> None:
        """Empty the namespace, which keeps its indices of threads and messages; nothing happens when there is none."""
        where = names(namespace)
        with closing(OpenSearchDocuments(connect(url))) as documents:
            reset(documents, where)


def lost(error: BaseException) -> bool:
    """See documents.Documents."""
    if isinstance(error, ConnectionError):
        return True
    return isinstance(error, TransportError) and unanswered(error.status_code, str(error))


def plugin(client: OpenSearch) -> str | None:
    """The version of the k-NN plugin; None where it is not installed."""
    plugins = client.cat.plugins(params={"format": "json", "h": "component,version"})
    return next((each["version"] for each in plugins if each["component"] == "opensearch-knn"), None)


def connect(url: str, *, seconds: float = REQUEST_SECONDS) -> OpenSearch:
    """A client that retries nothing: what a write that was sent twice did, nobody could tell."""
    try:
        where = address(url)
    except ValueError as error:
        raise ConfigurationError(str(error), hint=HINT) from None
    return OpenSearch(
        where.base,
        http_auth=where.login,
        verify_certs=where.verify_certs,
        timeout=seconds,
        max_retries=0,
    )


class OpenSearchDocuments:
    """A client of OpenSearch. Implements documents.Documents; may be used by several threads."""

    def __init__(self, client: OpenSearch) -> None:
        self._client = client

    def create(self, index: str, definition: Definition) -> bool:
        """See documents.Documents."""
        body = {
            "settings": {"index": definition.settings},
            "mappings": definition.mappings,
            "aliases": definition.aliases,
        }
        try:
            self._client.indices.create(index=index, body=body)
        except RequestError as error:
            if error.error != "resource_already_exists_exception":
                raise
            self.ready(index)
            return False
        return True

    def ready(self, *indexes: str) -> None:
        """See documents.Documents."""
        # Not for the status yellow, which a new index has whose shard is not there yet.
        self._client.cluster.health(index=",".join(indexes), params={"wait_for_active_shards": len(indexes)})

    def drop(self, indexes: Iterable[str]) -> None:
        """See documents.Documents."""
        if listed := ",".join(indexes):
            self._client.indices.delete(index=listed, params={"ignore_unavailable": "true"})

    def metas(self, pattern: str) -> dict[str, Json]:
        """See documents.Documents."""
        found = self._client.indices.get_mapping(index=pattern, params={"ignore_unavailable": "true"})
        return {name: entry["mappings"].get("_meta", {}) for name, entry in found.items()}

    def extend(self, index: str, properties: Json) -> None:
        """See documents.Documents."""
        self._client.indices.put_mapping(index=index, body={"properties": properties})

    def properties(self, index: str) -> Json:
        """See documents.Documents."""
        (found,) = self._client.indices.get_mapping(index=index).values()
        return found["mappings"]["properties"]

    def fetch(self, wanted: Sequence[tuple[str, str]], *, exclude: Sequence[str] = ()) -> list[Document | None]:
        """See documents.Documents."""
        if not wanted:
            return []
        docs = [{"_index": index, "_id": id} for index, id in wanted]
        params = {"_source_excludes": ",".join(exclude)} if exclude else {}
        return documents(self._client.mget(body={"docs": docs}, params=params)["docs"])

    def write(self, alias: str, writes: Sequence[Write], *, refresh: bool = False) -> list[Outcome]:
        """See documents.Documents."""
        params = {"require_alias": "true"} | ({"refresh": "true"} if refresh else {})
        done: list[Outcome] = []
        for rows, body in bodies(lines(writes)):
            try:
                answered = self._client.bulk(index=alias, body=body, params=params)
            except TransportError as error:
                if not done or not isinstance(error.status_code, int):
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
        return answer(self._client.search(index=index, body=body, params=WHOLE))

    def search_all(self, searches: Sequence[tuple[str, Json]]) -> list[Answer]:
        """See documents.Documents."""
        asked: list[Json] = []
        for index, body in searches:
            asked += [{"index": index, "allow_partial_search_results": False}, body]
        return [answer(each) for each in self._client.msearch(body=asked)["responses"]]

    @contextmanager
    def moment(self, index: str) -> Generator[Callable[[Json], Answer]]:
        """See documents.Documents."""
        pit = self._client.create_pit(index=index, params={"keep_alive": KEEP_ALIVE})["pit_id"]

        def search(body: Json) -> Answer:
            asked = {**body, "pit": {"id": pit, "keep_alive": KEEP_ALIVE}}
            return answer(self._client.search(body=asked, params=WHOLE))

        try:
            yield search
        finally:
            self._client.delete_pit(body={"pit_id": [pit]})

    def count(self, index: str, query: Json) -> int:
        """See documents.Documents."""
        return self.search(index, {"query": query, "size": 0, "track_total_hits": True}).total

    def delete_matching(self, index: str, query: Json) -> int:
        """See documents.Documents."""
        total, again = 0, True
        while again:
            self.refresh(index)
            params = {"conflicts": "proceed", "request_timeout": DELETION_SECONDS}
            body = self._client.delete_by_query(index=index, body={"query": query}, params=params)
            count, again = deleted(body)
            total += count
        return total

    def lost(self, error: BaseException) -> bool:
        """See documents.Documents."""
        return lost(error)

    def close(self) -> None:
        """See documents.Documents."""
        self._client.close()


WHOLE = {"allow_partial_search_results": "false"}
"""A part of the shards is no answer."""
