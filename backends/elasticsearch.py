"""Elasticsearch: its own calls, behind the document API that the stores are written on (documents.py)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, cast

from elasticsearch import BadRequestError, Elasticsearch

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
)

REQUEST_SECONDS = 60.0
KEEP_ALIVE = "1m"
"""How long a point in time outlives its last search."""


class ElasticsearchDocuments:
    """A client of Elasticsearch. Implements documents.Documents; may be used by several threads."""

    def __init__(self, client: Elasticsearch) -> None:
        self._client = client

    def create(self, index: str, definition: Definition) -> bool:
        """See documents.Documents."""
        try:
            self._client.indices.create(index=index, settings=definition.settings, mappings=definition.mappings)
        except BadRequestError as error:
            if error.error != "resource_already_exists_exception":
                raise
            self._client.cluster.health(index=index, wait_for_status="yellow")
            return False
        return True

    def drop(self, indexes: Iterable[str]) -> None:
        """See documents.Documents."""
        self._client.indices.delete(index=",".join(indexes), ignore_unavailable=True)

    def metas(self, pattern: str) -> dict[str, Json]:
        """See documents.Documents."""
        found = self._client.indices.get_mapping(index=pattern, ignore_unavailable=True)
        return {name: entry["mappings"].get("_meta", {}) for name, entry in found.items()}

    def extend(self, index: str, properties: Json) -> None:
        """See documents.Documents."""
        self._client.indices.put_mapping(index=index, properties=properties)

    def properties(self, index: str) -> Json:
        """See documents.Documents."""
        return self._client.indices.get_mapping(index=index)[index]["mappings"]["properties"]

    def fetch(self, wanted: Sequence[tuple[str, str]], *, exclude: Sequence[str] = ()) -> list[Document | None]:
        """See documents.Documents."""
        if not wanted:
            return []
        docs = [{"_index": index, "_id": id} for index, id in wanted]
        return documents(self._client.mget(docs=docs, source_excludes=list(exclude) or None)["docs"])

    def write(self, index: str, writes: Sequence[Write], *, refresh: bool = False) -> list[Outcome]:
        """See documents.Documents."""
        done: list[Outcome] = []
        for _, body in bodies(lines(writes)):
            done += outcomes(self._client.bulk(index=index, body=cast(Any, body), refresh=refresh)["items"])
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
            body = self._client.delete_by_query(index=index, query=query, conflicts="proceed").body
            count, again = deleted(body)
            total += count
        return total

    def close(self) -> None:
        """See documents.Documents."""
        self._client.close()
