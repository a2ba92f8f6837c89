"""What the Elasticsearch adapter's messages cost without the adapter: its requests, sent by the plain client."""

from __future__ import annotations

from typing import Any, cast

from elasticsearch import Elasticsearch

from ._documents import DocumentMessages, Json


class Messages(DocumentMessages):
    """See baselines.Messages."""

    def __init__(self, url: str, namespace: str) -> None:
        super().__init__(namespace)
        self._client = Elasticsearch(url)

    def _get(self, docs: list[Json], *, exclude: str | None = None) -> list[Json]:
        return self._client.mget(docs=docs, source_excludes=exclude)["docs"]

    def _refresh(self, index: str) -> None:
        self._client.indices.refresh(index=index)

    def _search(self, searches: list[Json]) -> list[Json]:
        return self._client.msearch(searches=searches)["responses"]

    def _bulk(self, alias: str, body: bytes) -> list[Json]:
        return self._client.bulk(index=alias, body=cast(Any, body), require_alias=True)["items"]

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
