"""OpenSearch: its own calls, behind the document API that the stores are written on (documents.py)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, cast

from opensearchpy import OpenSearch
from opensearchpy.exceptions import RequestError

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


class OpenSearchDocuments:
    """A client of OpenSearch. Implements documents.Documents; may be used by several threads."""

    def __init__(self, client: OpenSearch) -> None:
        self._client = client

    def create(self, index: str, definition: Definition) -> bool:
        """See documents.Documents."""
        body = {"settings": {"index": definition.settings}, "mappings": definition.mappings}
        try:
            self._client.indices.create(index=index, body=body)
        except RequestError as error:
            if error.error != "resource_already_exists_exception":
                raise
            self._client.cluster.health(index=index, params={"wait_for_status": "yellow"})
            return False
        return True

    def drop(self, indexes: Iterable[str]) -> None:
        """See documents.Documents."""
        self._client.indices.delete(index=",".join(indexes), params={"ignore_unavailable": "true"})

    def metas(self, pattern: str) -> dict[str, Json]:
        """See documents.Documents."""
        found = self._client.indices.get_mapping(index=pattern, params={"ignore_unavailable": "true"})
        return {name: entry["mappings"].get("_meta", {}) for name, entry in found.items()}

    def extend(self, index: str, properties: Json) -> None:
        """See documents.Documents."""
        self._client.indices.put_mapping(index=index, body={"properties": properties})

    def properties(self, index: str) -> Json:
        """See documents.Documents."""
        return self._client.indices.get_mapping(index=index)[index]["mappings"]["properties"]

    def fetch(self, wanted: Sequence[tuple[str, str]], *, exclude: Sequence[str] = ()) -> list[Document | None]:
        """See documents.Documents."""
        if not wanted:
            return []
        docs = [{"_index": index, "_id": id} for index, id in wanted]
        params = {"_source_excludes": ",".join(exclude)} if exclude else {}
        return documents(self._client.mget(body={"docs": docs}, params=params)["docs"])

    def write(self, index: str, writes: Sequence[Write], *, refresh: bool = False) -> list[Outcome]:
        """See documents.Documents."""
        params = {"refresh": "true"} if refresh else {}
        done: list[Outcome] = []
        for _, body in bodies(lines(writes)):
            done += outcomes(self._client.bulk(index=index, body=body, params=params)["items"])
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
            body = self._client.delete_by_query(index=index, body={"query": query}, params={"conflicts": "proceed"})
            count, again = deleted(body)
            total += count
        return total

    def close(self) -> None:
        """See documents.Documents."""
        self._client.close()


WHOLE = {"allow_partial_search_results": "false"}
"""A part of the shards is no answer."""
