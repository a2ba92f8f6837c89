"""What the OpenSearch adapter's messages cost without the adapter: its requests, sent by the plain client."""

from __future__ import annotations

from opensearchpy import OpenSearch

from ._documents import DocumentMessages, Json


class Messages(DocumentMessages):
    """See baselines.Messages."""

    def __init__(self, url: str, namespace: str) -> None:
        super().__init__(namespace)
        self._client = OpenSearch(url)

    def _get(self, docs: list[Json], *, exclude: str | None = None) -> list[Json]:
        return self._client.mget(body={"docs": docs}, params={"_source_excludes": exclude} if exclude else {})["docs"]

    def _refresh(self, index: str) -> None:
        self._client.indices.refresh(index=index)

    def _search(self, searches: list[Json]) -> list[Json]:
        return self._client.msearch(body=searches)["responses"]

    def _bulk(self, alias: str, body: bytes) -> list[Json]:
        return self._client.bulk(index=alias, body=body, params={"require_alias": "true"})["items"]

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
