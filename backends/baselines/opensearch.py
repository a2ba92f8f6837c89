"""What the OpenSearch adapter's queries cost without the adapter: its requests, sent by the plain client.

It reads an index that the adapter has filled, takes the first rows of what comes back, and checks nothing: no
arguments, no filter algebra, no scores in float64, no lost or renamed index.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch

SPARE, EFFORT = 16, 200
SCRIPT = "Math.max(0, innerProduct(params.query, doc['near']) + 1)"


class Baseline:
    """One vector index of a namespace, for queries with no filter or one of equality with a string."""

    def __init__(self, url: str, namespace: str, index: str) -> None:
        self._client = OpenSearch(url)
        self._index = f"memassay-{namespace}-vectors-{hashlib.sha256(index.encode()).hexdigest()}"
        mapping = self._client.indices.get_mapping(index=self._index)[self._index]["mappings"]
        self._graph = "method" in mapping["properties"]["near"]

    def query(
        self, vector: NDArray[np.float32], top_k: int, filter: Mapping[str, Any] | None = None, *, exact: bool = False
    ) -> list[tuple[str, Any]]:
        """See baselines.Baseline. By the requests that the adapter would send."""
        query = (vector / np.linalg.norm(vector)).tolist()
        where = [{"term": {"tokens": f"{key}:s{value}"}} for key, value in (filter or {}).items()]
        if not exact and self._graph:
            k = 2 * top_k + SPARE
            knn: dict[str, Any] = {"vector": query, "k": k, "method_parameters": {"ef_search": max(k, EFFORT)}}
            found = self._search({"knn": {"near": knn | ({"filter": where[0]} if where else {})}}, k)
            if len(found) >= top_k:
                return found[:top_k]
        matching: dict[str, Any] = where[0] if where else {"match_all": {}}
        script = {"source": SCRIPT, "params": {"query": query}}
        return self._search({"script_score": {"query": matching, "script": script}}, top_k + SPARE)[:top_k]

    def _search(self, query: dict[str, Any], size: int) -> list[tuple[str, Any]]:
        fields = ["id", "metadata", "raw"]
        body = {"query": query, "size": size, "_source": fields, "track_total_hits": False}
        found = self._client.search(index=self._index, body=body)
        return [(hit["_source"]["id"], json.loads(hit["_source"]["metadata"])) for hit in found["hits"]["hits"]]

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
