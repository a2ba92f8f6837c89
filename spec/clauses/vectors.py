"""VEC: vector indices."""

from __future__ import annotations

from .model import Clause

CLAUSES = (
    Clause(
        id="VEC-1",
        title="create, describe, list, drop",
        statement=(
            "create_index with the same dimension and metric again does nothing (whatever its config); with "
            "another it is AlreadyExists, the first intact. describe_index gives dimension, metric, config and "
            "count from the engine; list_indexes the namespace's names by code point; drop_index removes. An "
            "unknown index is IndexNotFound in every call, never an empty answer. Index names are ids (VAL-2). Where a "
            "call is wrong in several ways, any of its errors is right."
        ),
        source="decision",
        level="smoke",
        requires="vectors",
        applies=("index.create", "index.again", "index.drop", "refused.VEC-1"),
        discriminators={
            "the same index again": "index.again",
            "another dimension or metric": "refused.VEC-1.already_exists",
            "an unknown index": "refused.VEC-1.index_not_found",
            "an index dropped": "index.drop",
        },
        reports=("mastra-ai/mastra#11854", "mastra-ai/mastra#13039", "mastra-ai/mastra#22143"),
    ),
    Clause(
        id="VEC-1a",
        title="dimensions: at creation or never",
        statement=(
            "A dimension is an integer ≥ 1, else InvalidRequest; one over the engine's cap is Unsupported at "
            "create_index, not later. What was created works."
        ),
        source="decision",
        requires="vectors",
        applies=("index.large",),
        discriminators={"a dimension of 1,500 or more that is used": "index.large"},
        reports=("spring-projects/spring-ai#940", "pgvector/pgvector#915"),
    ),
    Clause(
        id="VEC-2",
        title="upsert, get and update",
        statement=(
            "upsert_vectors replaces vector and metadata (absent is {}), the last of an id wins within a batch, "
            "all or nothing; it says how many distinct ids. get_vectors gives the existing rows once each, in "
            "order of first occurrence, components as float32. update_vector replaces what is given and keeps the "
            "other; an unknown id is False."
        ),
        source="decision",
        level="smoke",
        requires="vectors",
        applies=("upsert", "update_vector", "update_vector.unknown"),
        discriminators={
            "an id that exists": "upsert.replaces",
            "an id twice in a batch": "upsert.duplicate_ids",
            "metadata absent on the second upsert": "upsert.bare",
            "a vector alone updated": "update_vector.keeps_metadata",
            "metadata alone updated": "update_vector.keeps_vector",
            "an unknown id updated": "update_vector.unknown",
        },
        reports=(
            "facebookresearch/faiss#508",
            "facebookresearch/faiss#859",
            "mem0ai/mem0#5160",
            "headroomlabs-ai/headroom#2296",
        ),
    ),
    Clause(
        id="VEC-2a",
        title="invalid vectors are refused",
        statement=(
            "A vector is valid if it has the index's dimension, its float32 components are finite and its float64 "
            "norm is at most 1e15, and under cosine at least 1e-15 (so no zero vector there): else InvalidVector, "
            "on write and on query; a batch with one is refused whole."
        ),
        source="decision",
        level="smoke",
        requires="vectors",
        applies=("refused.VEC-2a",),
        discriminators={
            "in a write": "refused.VEC-2a.write",
            "in a query": "refused.VEC-2a.read",
            "in a batch with a valid one": "upsert.refused_batch",
        },
        reports=("mastra-ai/mastra#11854", "facebookresearch/faiss#2657"),
    ),
    Clause(
        id="VEC-2b",
        title="delete by ids or by filter",
        statement=(
            "delete_vectors takes ids or a filter, exactly one, and says how many rows there were; unknown ids "
            "are ignored, [] deletes nothing. A filter that holds by constants alone ({}, $and [], $nin []) is "
            "InvalidFilter."
        ),
        source="decision",
        level="smoke",
        requires="vectors",
        applies=("delete_vectors.ids", "delete_vectors.none", "delete_vectors.filter", "refused.VEC-2b"),
        discriminators={
            "by ids": "delete_vectors.ids",
            "an unknown id": "delete_vectors.unknown",
            "by a filter that some rows meet": "delete_vectors.filter",
            "a filter that is constant": "refused.VEC-2b.invalid_filter",
        },
        reports=("chroma-core/chroma#7772", "deepset-ai/haystack-core-integrations#2605"),
    ),
    Clause(
        id="VEC-3",
        title="scores are the metric's",
        statement=(
            "A larger score is closer. cosine: the cosine in [−1, 1]; dotproduct: the inner product; euclidean: 1 "
            "/ (1 + distance). Truth is float64 over float32-rounded components; tolerance 1e-5 (dotproduct: 1e-5 "
            "· max(1, |q||v|)) by every path. Opposite vectors are returned."
        ),
        source="decision",
        level="smoke",
        requires="vectors",
        applies=("query",),
        discriminators={
            "cosine": "query.cosine",
            "dotproduct": "query.dotproduct",
            "euclidean": "query.euclidean",
            "opposite vectors": "query.opposite",
            "vectors far from unit length": "query.scaled",
        },
        reports=(
            "llm-tools/embedJs#186",
            "symfony/ai#195",
            "langchain-ai/langchain#18709",
            "langchain-ai/langchain#22209",
            "langchain-ai/langchain#32498",
            "elastic/elasticsearch#100975",
        ),
    ),
    Clause(
        id="VEC-4",
        title="min(k, matching) rows, the closest",
        statement=(
            "query_vectors (1 ≤ top_k ≤ 10,000) returns min(top_k, matching live rows) rows with score ≥ "
            "min_score, sorted: never fewer, never a placeholder, a duplicate, a deleted or an excluded row. "
            "Exact mode, and a flat index, give the closest rows up to ties; approximate mode may differ in rows "
            "only."
        ),
        source="decision",
        level="smoke",
        requires="vectors",
        applies=("query", "refused.VEC-4"),
        discriminators={
            "fewer rows than top_k": "query.fewer",
            "more rows than top_k": "query.more",
            "top_k closer rows outside the filter": "query.post_filter",
            "equal vectors": "query.equal_vectors",
            "rows deleted or replaced before": "query.after_change",
            "rows below min_score": "query.below_threshold",
            "exact mode": "query.exact",
            "approximate mode": "query.approximate",
            "a top_k that is refused": "refused.VEC-4",
        },
        reports=(
            "pgvector/pgvector#671",
            "pgvector/pgvector#881",
            "pgvector/pgvector#862",
            "mem0ai/mem0#7416",
            "mem0ai/mem0#6998",
            "langchain-ai/langchain#28413",
            "facebookresearch/faiss#2657",
            "facebookresearch/faiss#1016",
            "opensearch-project/k-NN#1003",
            "opensearch-project/k-NN#1081",
            "opensearch-project/k-NN#2275",
            "elastic/elasticsearch#115018",
            "tursodatabase/libsql#2197",
            "mastra-ai/mastra#14913",
            "mastra-ai/mastra#14837",
        ),
    ),
    Clause(
        id="VEC-4a",
        title="q(k) is a prefix of q(k+1)",
        statement=(
            "In exact mode, with no write between, the answer for k is a prefix of the answer for any larger k."
        ),
        source="decision",
        requires="vectors",
        applies=("query.prefix",),
        discriminators={"one query with several top_k": "query.prefix", "equal vectors": "query.equal_vectors"},
    ),
    Clause(
        id="VEC-4b",
        title="beyond an engine's default window",
        statement="VEC-4 holds for top_k beyond 40, and for filters that few of many rows meet.",
        source="decision",
        requires="vectors",
        applies=("query.beyond_40",),
        discriminators={"top_k beyond 40": "query.beyond_40", "few rows of many": "query.rare"},
        reports=("pgvector/pgvector#671", "elastic/elasticsearch#115018"),
    ),
    Clause(
        id="VEC-5",
        title="recall of approximate queries",
        statement=(
            "Over at least 200 approximate queries of one index, recall@10 is at least 0.9 with 95 % confidence "
            "(one-sided, Clopper and Pearson): the share of returned rows that score no less than the true tenth, "
            "ties included."
        ),
        source="decision",
        requires="approximate",
        applies=("recall.measured",),
        discriminators={"200 approximate queries of one index": "recall.measured"},
        variants=("recall.hnsw", "recall.ivfflat"),
        reports=("pgvector/pgvector#671",),
    ),
)
