"""OpenSearch: how its k-NN plugin is told of vectors (knn_vector), and asked for the nearest."""

from __future__ import annotations

from ..spec.capabilities import Capabilities
from ..spec.index_requests import NewIndex
from ..spec.types import IndexConfig
from ..spec.vectors import Metric
from .document_filters import EVERYTHING, Clause
from .documents import Json

VECTOR_CAPABILITIES = Capabilities(
    durable=True,
    atomicity="compensated",
    clone=True,
    working_memory=True,
    titles=True,
    vectors=True,
    semantic_recall=True,
    resource_scope=True,
    index_types=("flat", "hnsw"),
    max_dimension=16_000,
    max_indexed_dimension=16_000,
)

VECTOR_SETTINGS: Json = {
    "knn": True,
    # With it, reads after a scroll fail (opensearch-project/k-NN issue 3191).
    "knn.derived_source.enabled": False,
    # No graph for a field without a method, whose rows are only ever scanned.
    "knn.advanced.approximate_threshold": -1,
}
"""Of an index that has vectors. Lucene's graphs, which a field of type hnsw has, are built all the same."""

SPACES: dict[Metric, str] = {"cosine": "cosinesimil", "euclidean": "l2", "dotproduct": "innerproduct"}

EFFORT = 200
"""How many candidates a search of the graph keeps at least."""


class OpenSearchVectors:
    """Implements document_vectors.VectorLanguage."""

    capabilities = VECTOR_CAPABILITIES

    def __init__(self, effort: int | None = None) -> None:
        self._effort = effort or EFFORT

    def mapping(self, index: NewIndex) -> Json:
        """See document_vectors.VectorLanguage."""
        field: Json = {"type": "knn_vector", "dimension": index.dimension}
        config, space = index.config, SPACES[index.metric]
        if config.type == "flat":
            return field | {"space_type": space}
        parameters = {"m": config.m, "ef_construction": config.ef_construction}
        method = {"name": "hnsw", "engine": "lucene", "space_type": space, "parameters": parameters}
        return field | {"method": method}

    def described(self, mapping: Json) -> tuple[int, Metric, IndexConfig]:
        """See document_vectors.VectorLanguage."""
        method = mapping.get("method")
        space = mapping["space_type"] if method is None else method["space_type"]
        metric: Metric = next(each for each, known in SPACES.items() if known == space)
        config = IndexConfig("flat")
        if method is not None:
            parameters = method["parameters"]
            config = IndexConfig(method["name"], parameters["m"], parameters["ef_construction"])
        return mapping["dimension"], metric, config

    def nearest(self, field: str, query: list[float], k: int, where: Clause) -> Clause:
        """See document_vectors.VectorLanguage."""
        knn: Json = {"vector": query, "k": k, "method_parameters": {"ef_search": max(k, self._effort)}}
        return {"knn": {field: knn if where == EVERYTHING else knn | {"filter": where}}}

    def product(self, field: str) -> str:
        """See document_vectors.VectorLanguage."""
        return f"innerProduct(params.query, doc['{field}'])"

    def distance(self, field: str) -> str:
        """See document_vectors.VectorLanguage."""
        return f"Math.sqrt(l2Squared(params.query, doc['{field}']))"
