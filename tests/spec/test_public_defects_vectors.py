"""Defects reported in public against vector stores and semantic recall, each with its smallest input and what is right.

Every test runs on every backend. The number in a test's name is the row of the project's list of defects; the
public reports are named by the first test of each row.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from memassay.spec.embedders import LiteralEmbedder
from memassay.spec.errors import (
    AlreadyExists,
    InvalidFilter,
    InvalidRequest,
    InvalidVector,
    OwnershipMismatch,
    Unsupported,
)
from memassay.spec.protocols import Memory, VectorIndex
from memassay.spec.types import (
    IndexConfig,
    MemoryConfig,
    Message,
    MessageFilter,
    MessageUpdate,
    NewMessage,
    NewVector,
    OrderBy,
    RecallResult,
    SemanticRecall,
    VectorHit,
)

T0 = datetime(2024, 3, 1, 12, tzinfo=UTC)
Row = tuple[Any, ...]
"""Id, vector and, maybe, metadata."""


def filled(index: VectorIndex, *rows: Row, metric: str = "cosine") -> VectorIndex:
    """The index `i` with these rows."""
    index.create_index("i", dimension=len(rows[0][1]), metric=metric)
    index.upsert_vectors("i", [NewVector(*row) for row in rows])
    return index


def tagged(index: VectorIndex, **metadata: Mapping[str, Any]) -> VectorIndex:
    """The index `i` with rows of equal vectors, told apart by their metadata."""
    return filled(index, *((name, [1.0, 0.0], given) for name, given in metadata.items()))


def ids(hits: Sequence[VectorHit]) -> list[str]:
    """The ids in the order returned."""
    return [hit.id for hit in hits]


def matching(index: VectorIndex, filter: Mapping[str, Any]) -> list[str]:
    """The ids that a filter lets through, sorted."""
    return sorted(ids(index.query_vectors("i", [1, 0], top_k=100, filter=filter)))


def found(index: VectorIndex, vector: Sequence[float], k: int, **given: Any) -> list[str]:
    """The ids of the k closest, closest first."""
    return ids(index.query_vectors("i", vector, top_k=k, **given))


def scored(index: VectorIndex, vector: Sequence[float], k: int = 10) -> dict[str, float]:
    """The scores of the k closest by id."""
    return {hit.id: hit.score for hit in index.query_vectors("i", vector, top_k=k)}


def count(index: VectorIndex) -> int:
    """How many rows the index says it has."""
    return index.describe_index("i").count


# Operator filters


@pytest.fixture
def three(index: VectorIndex) -> VectorIndex:
    """p is 9 in nine, 1 in one, absent in none."""
    return tagged(index, nine={"p": 9}, one={"p": 1}, none={})


def test_b21_a_range_is_false_for_a_missing_key(three: VectorIndex) -> None:
    """mastra-ai/mastra#18466"""
    assert matching(three, {"p": {"$gt": 5}}) == ["nine"]


def test_b21_unequal_holds_for_a_missing_key(three: VectorIndex) -> None:
    assert matching(three, {"p": {"$ne": 9}}) == ["none", "one"]


def test_b21_not_among_holds_for_a_missing_key(three: VectorIndex) -> None:
    assert matching(three, {"p": {"$nin": [9]}}) == ["none", "one"]


def test_b21_there_is_no_not(three: VectorIndex) -> None:
    with pytest.raises(InvalidFilter):
        matching(three, {"p": {"$not": {"$gt": 5}}})


STORED: tuple[Mapping[str, Any], ...] = (
    *({"k": value} for value in (None, 0, 1, "1", True, [1], "", False, {"a": 1}, "a")),
    {},
    {"other": 1},
)


def negated(filter: Any) -> dict[str, Any]:
    """The De Morgan complement of a filter of $eq $ne $in $nin under $and and $or."""
    ((key, given),) = filter.items()
    if key in ("$and", "$or"):
        return {"$or" if key == "$and" else "$and": [negated(part) for part in given]}
    ((operator, operand),) = given.items()
    return {key: {{"$eq": "$ne", "$ne": "$eq", "$in": "$nin", "$nin": "$in"}[operator]: operand}}


def random_filter(rng: np.random.Generator, depth: int = 0) -> dict[str, Any]:
    """A filter of $eq $ne $in $nin under $and and $or."""
    scalars: tuple[Any, ...] = (None, 0, 1, "1", True, "", False, "a")
    if depth < 2 and rng.random() < 0.5:
        name = ("$and", "$or")[rng.integers(2)]
        return {name: [random_filter(rng, depth + 1) for _ in range(rng.integers(4))]}
    if rng.random() < 0.5:
        return {"k": {("$eq", "$ne")[rng.integers(2)]: scalars[rng.integers(len(scalars))]}}
    some = [scalars[i] for i in rng.integers(len(scalars), size=rng.integers(4))]
    return {"k": {("$in", "$nin")[rng.integers(2)]: some}}


def test_b23_a_filter_and_its_complement_split_the_rows(index: VectorIndex) -> None:
    """run-llama/llama_index#21792, run-llama/llama_index#21750"""
    tagged(index, **{f"r{i}": metadata for i, metadata in enumerate(STORED)})
    rng = np.random.default_rng(23)
    for _ in range(200):
        filter = random_filter(rng)
        left, right = matching(index, filter), matching(index, negated(filter))
        assert sorted(left + right) == sorted(f"r{i}" for i in range(len(STORED))), filter


@pytest.fixture
def either(index: VectorIndex) -> VectorIndex:
    """a has n, b has name, c neither."""
    return tagged(index, a={"n": 100}, b={"name": "x"}, c={})


def test_b24_or_needs_one_side_only(either: VectorIndex) -> None:
    """deepset-ai/haystack-core-integrations#590"""
    assert matching(either, {"$or": [{"n": 100}, {"name": "x"}]}) == ["a", "b"]


@pytest.mark.parametrize(
    ("filter", "expected"),
    [({"$or": []}, []), ({"$and": []}, ["a", "b", "c"]), ({}, ["a", "b", "c"])],
    ids=["or", "and", "nothing"],
)
def test_b24_empty_lists_are_constants(either: VectorIndex, filter: dict[str, Any], expected: list[str]) -> None:
    assert matching(either, filter) == expected


@pytest.mark.parametrize(
    ("operator", "operand", "expected"),
    [
        ("$nin", ["good"], ["b"]),
        ("$nin", [], ["a", "b"]),
        ("$in", [], []),
        ("$nin", ["good", "bad"], []),
        ("$in", ["good", "bad"], ["a", "b"]),
    ],
)
def test_b25_among_and_not_among(index: VectorIndex, operator: str, operand: list[str], expected: list[str]) -> None:
    """chroma-core/chroma#1252, chroma-core/chroma#1424"""
    tagged(index, a={"f": "good"}, b={"f": "bad"})
    assert matching(index, {"f": {operator: operand}}) == expected


@pytest.mark.parametrize(("combinator", "expected"), [("$or", ["eighteen"]), ("$and", [])])
def test_b26_an_empty_in_is_false_inside_others(index: VectorIndex, combinator: str, expected: list[str]) -> None:
    """SAP/langchain-integration-for-sap-hana-cloud#17, stargate/data-api#625"""
    tagged(index, eighteen={"age": 18}, other={"x": 1})
    assert matching(index, {combinator: [{"x": {"$in": []}}, {"age": 18}]}) == expected


@pytest.fixture
def threads(index: VectorIndex) -> VectorIndex:
    """v1 and its opposite v3 of thread t1, v2 across of t2."""
    return filled(
        index,
        ("v1", [1, 0], {"thread_id": "t1"}),
        ("v2", [0, 1], {"thread_id": "t2"}),
        ("v3", [-1, 0], {"thread_id": "t1"}),
    )


def test_b28_a_plain_key_filters(threads: VectorIndex) -> None:
    """mastra-ai/mastra#6603"""
    assert found(threads, [1, 0], 3, filter={"thread_id": "t1"}) == ["v1", "v3"]


def test_b28_no_score_is_dropped_by_default(threads: VectorIndex) -> None:
    assert found(threads, [1, 0], 3) == ["v1", "v2", "v3"]


def test_b29_two_conditions_on_a_key_keep_their_values(index: VectorIndex) -> None:
    """langchain-ai/langchain-postgres#216"""
    tagged(index, a1={"c": "A1"}, a2={"c": "A2"}, b1={"c": "B1"})
    assert matching(index, {"$and": [{"c": {"$ne": "A1"}}, {"c": {"$ne": "A2"}}]}) == ["b1"]


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({"n": {"$gte": 2, "$lt": 5}}, ["n2", "n3", "n4"]),
        ({"$or": [{"n": {"$lt": 2}}, {"n": {"$gt": 5}}]}, ["n1", "n6"]),
        ({"$or": [{"n": {"$gte": 1, "$lt": 2}}, {"n": {"$gte": 5, "$lt": 6}}]}, ["n1", "n5"]),
    ],
    ids=["both bounds", "two ranges", "two bounded ranges"],
)
def test_b29_ranges_keep_their_bounds(index: VectorIndex, filter: dict[str, Any], expected: list[str]) -> None:
    tagged(index, **{f"n{n}": {"n": n} for n in range(1, 7)})
    assert matching(index, filter) == expected


@pytest.mark.parametrize(
    ("filter", "holds"),
    [
        ({"p": 5}, True),
        ({"p": "5"}, False),
        ({"p": 5.0}, True),
        ({"b": True}, True),
        ({"b": 1}, False),
        ({"b": "true"}, False),
        ({"s": "5"}, True),
        ({"s": 5}, False),
        ({"b": {"$gt": 0}}, False),
        ({"s": {"$gt": 1}}, False),
        ({"p": {"$in": ["5", True]}}, False),
    ],
    ids=str,
)
def test_b31_values_compare_by_type(index: VectorIndex, filter: dict[str, Any], holds: bool) -> None:
    """headroomlabs-ai/headroom#3240"""
    tagged(index, a={"p": 5, "b": True, "s": "5"})
    assert matching(index, filter) == (["a"] if holds else [])


def test_b32_a_tenant_sees_its_rows_only(index: VectorIndex) -> None:
    """langchain-ai/langgraphjs#2504, langchain-ai/langgraph#8829"""
    tagged(index, mine={"tenant": "acme"}, other={"tenant": "other"})
    assert matching(index, {"tenant": "acme"}) == ["mine"]


@pytest.mark.parametrize(
    "filter",
    [
        {"$xor": [{"k": 1}]},
        {"k": {"$gt": 1, "$bogus": 2}},
        {"$or": [{"k": 1}, {"$and": [{"k": {"$bogus": 1}}]}]},
        {"k": {}},
        {"k": {"$and": [{"$gt": 1}]}},
        {"k": [1]},
    ],
    ids=str,
)
def test_b32_what_is_unknown_is_refused(index: VectorIndex, filter: dict[str, Any]) -> None:
    tagged(index, a={"k": 1})
    with pytest.raises(InvalidFilter):
        matching(index, filter)


LONG = [*("a" * n for n in (255, 256, 257, 8191, 8192, 32_766, 32_767)), "한" * 11_000]


@pytest.mark.parametrize("text", LONG, ids=lambda text: f"{len(text)} {text[0]!a}")
def test_b34_long_strings_are_filtered(index: VectorIndex, text: str) -> None:
    """elastic/elasticsearch#24256, huridocs/uwazi#7524"""
    tagged(index, long={"k": text}, short={"k": "a"})
    answers = [
        matching(index, {"k": text}),
        matching(index, {"k": {"$ne": text}}),
        matching(index, {"k": {"$gt": "a"}}),
    ]
    assert answers == [["long"], ["short"], ["long"]]


# Writes


def test_b39_updating_the_vector_keeps_the_metadata(index: VectorIndex) -> None:
    """mem0ai/mem0#5160"""
    metadata = {"a": 1, "b": {"c": 2}, "d": None}
    filled(index, ("x", [1, 0], metadata)).update_vector("i", "x", vector=[0, 1])
    assert [(row.vector, row.metadata) for row in index.get_vectors("i", ["x"])] == [((0.0, 1.0), metadata)]


def test_b39_updating_the_metadata_replaces_it_and_keeps_the_vector(index: VectorIndex) -> None:
    filled(index, ("x", [1, 0], {"a": 1, "b": 2})).update_vector("i", "x", metadata={"a": 9})
    assert [(row.vector, row.metadata) for row in index.get_vectors("i", ["x"])] == [((1.0, 0.0), {"a": 9})]


def test_b43_an_upsert_leaves_one_entry(index: VectorIndex) -> None:
    """facebookresearch/faiss#508, facebookresearch/faiss#859"""
    filled(index, ("x", [1, 0])).upsert_vectors("i", [NewVector("x", [0, 1])])
    assert (found(index, [1, 0], 2), count(index)) == (["x"], 1)


def test_b43_an_upsert_scores_the_new_vector(index: VectorIndex) -> None:
    filled(index, ("x", [1, 0])).upsert_vectors("i", [NewVector("x", [0, 1])])
    assert scored(index, [1, 0]) == {"x": pytest.approx(0, abs=1e-5)}


@pytest.mark.parametrize(("named", "deleted"), [(["b", "ghost"], 1), (["ghost"], 0), ([], 0), (["b", "b"], 1)])
def test_b45_delete_counts_what_existed(index: VectorIndex, named: list[str], deleted: int) -> None:
    """chroma-core/chroma#7772, chroma-core/chroma#2841"""
    tagged(index, a={}, b={})
    assert (index.delete_vectors("i", ids=named), count(index)) == (deleted, 2 - deleted)


@pytest.mark.parametrize("filter", [{}, {"$and": []}, {"k": {"$nin": []}}, {"$or": [{}, {"k": 1}]}], ids=str)
def test_b45_a_filter_of_constants_deletes_nothing(index: VectorIndex, filter: dict[str, Any]) -> None:
    tagged(index, a={"k": 1}, b={})
    with pytest.raises(InvalidFilter):
        index.delete_vectors("i", filter=filter)
    assert count(index) == 2


# Nearest neighbours


TYPES = ("flat", "hnsw", "ivfflat")


def many(index: VectorIndex, kind: str, n: int, tag: Callable[[int], str], dimension: int = 8) -> None:
    """The index `i` of a type, if the engine has it, with n random rows r0 …, tagged."""
    try:
        index.create_index("i", dimension=dimension, config=IndexConfig(type=kind))
    except Exception as error:
        if getattr(error, "code", "") != "unsupported":
            raise
        pytest.skip(f"no index of type {kind}")
    drawn = np.random.default_rng(7).standard_normal((n, dimension)).tolist()
    for start in range(0, n, 2500):
        rows = [NewVector(f"r{i}", drawn[i], {"tag": tag(i)}) for i in range(start, min(n, start + 2500))]
        index.upsert_vectors("i", rows)


@pytest.mark.parametrize("kind", TYPES)
def test_b47_as_many_rows_as_asked_for_and_there_are(index: VectorIndex, kind: str) -> None:
    """pgvector/pgvector#671, pgvector/pgvector#881"""
    many(index, kind, 2500, lambda i: "rare" if i % 50 == 0 else "common")
    query = [1.0] * 8
    rare = index.query_vectors("i", query, top_k=10, filter={"tag": "rare"})
    assert [len(rare), len(index.query_vectors("i", query, top_k=100))] == [10, 100]
    assert {hit.metadata["tag"] for hit in rare} == {"rare"}


@pytest.mark.parametrize("kind", TYPES)
def test_b48_scores_never_rise(index: VectorIndex, kind: str) -> None:
    """pgvector/pgvector#862"""
    many(index, kind, 2500, lambda i: "ab"[i % 2])
    hits = index.query_vectors("i", [1.0] * 8, top_k=40, filter={"tag": "a"})
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_b49_the_nearest_of_those_that_match(index: VectorIndex) -> None:
    """mem0ai/mem0#7416, mem0ai/mem0#6998, langchain-ai/langchain#28413"""
    line = [(f"p{i}", [float(i)], {"tag": "B" if i < 4 else "A"}) for i in range(10)]
    filled(index, *line, metric="euclidean")
    assert found(index, [0], 5, filter={"tag": "A"}) == ["p4", "p5", "p6", "p7", "p8"]


@pytest.mark.parametrize("kind", TYPES)
def test_b49_a_few_behind_a_thousand(index: VectorIndex, kind: str) -> None:
    index.create_index("i", dimension=2, metric="euclidean", config=available(index, kind))
    near = [NewVector(f"b{i}", [i / 1000, 0], {"tag": "B"}) for i in range(1000)]
    index.upsert_vectors("i", [*near, *(NewVector(f"a{i}", [5.0 + i, 0], {"tag": "A"}) for i in range(5))])
    assert found(index, [0, 0], 5, filter={"tag": "A"}) == [f"a{i}" for i in range(5)]


def available(index: VectorIndex, kind: str) -> IndexConfig:
    """A configuration of this type; the test is skipped where the engine lacks it."""
    try:
        index.create_index(f"probe {kind}", dimension=2, config=IndexConfig(type=kind))
    except Exception as error:
        if getattr(error, "code", "") != "unsupported":
            raise
        pytest.skip(f"no index of type {kind}")
    return IndexConfig(type=kind)


def test_b51_no_placeholders(index: VectorIndex) -> None:
    """facebookresearch/faiss#2657, facebookresearch/faiss#1016"""
    filled(index, ("a", [1, 0]), ("b", [0, 1]), ("c", [1, 1]))
    assert sorted(found(index, [1, 0], 5)) == ["a", "b", "c"]


def test_b51_a_query_with_nan_is_refused(index: VectorIndex) -> None:
    with pytest.raises(InvalidVector):
        filled(index, ("a", [1, 0])).query_vectors("i", [float("nan"), 0])


def test_b51_no_rows_asked_for_is_refused(index: VectorIndex) -> None:
    with pytest.raises(InvalidRequest):
        filled(index, ("a", [1, 0])).query_vectors("i", [1, 0], top_k=0)


def test_b51_an_empty_index_has_no_hits(index: VectorIndex) -> None:
    index.create_index("i", dimension=2)
    assert found(index, [1, 0], 5) == []


@pytest.mark.parametrize("kind", TYPES)
def test_b53_a_row_deleted_and_stored_again_is_found(index: VectorIndex, kind: str) -> None:
    """opensearch-project/k-NN#1003, opensearch-project/k-NN#1081, opensearch-project/k-NN#2275"""
    index.create_index("i", dimension=2, config=available(index, kind))
    for _ in range(20):
        index.upsert_vectors("i", [NewVector("x", [1, 0])])
        assert found(index, [1, 0], 1) == ["x"]
        index.delete_vectors("i", ids=["x"])


@pytest.mark.parametrize("kind", TYPES)
def test_b53_rows_overwritten_take_one_slot(index: VectorIndex, kind: str) -> None:
    index.create_index("i", dimension=2, config=available(index, kind))
    for _ in range(5):
        index.upsert_vectors("i", [NewVector(f"r{i}", [1, i / 14]) for i in range(14)])
    assert sorted(found(index, [1, 0], 14)) == sorted(f"r{i}" for i in range(14))


@pytest.mark.parametrize("kind", TYPES)
def test_b54_as_many_rows_as_asked_for_of_little_more(index: VectorIndex, kind: str) -> None:
    index.create_index("i", dimension=4, config=available(index, kind))
    drawn = np.random.default_rng(54).standard_normal((403, 4)).tolist()
    index.upsert_vectors("i", [NewVector(f"r{i}", vector) for i, vector in enumerate(drawn)])
    index.delete_vectors("i", ids=["r0", "r1"])
    hits = ids(index.query_vectors("i", drawn[0], top_k=401))
    assert sorted(hits) == sorted(f"r{i}" for i in range(2, 403))


def test_b55_a_twin_survives(index: VectorIndex) -> None:
    """tursodatabase/libsql#2197"""
    for seed in range(10):
        drawn = np.random.default_rng(seed).standard_normal((3, 3)).tolist()
        rows = [NewVector(f"r{i}", vector) for i, vector in enumerate(drawn)]
        rows += [NewVector("twin", drawn[0]), NewVector("tail", [0.1, 0.2, 0.3])]
        index.create_index(f"i{seed}", dimension=3)
        index.upsert_vectors(f"i{seed}", rows)
        index.delete_vectors(f"i{seed}", ids=["r0"])
        assert ids(index.query_vectors(f"i{seed}", drawn[0], top_k=8))[0] == "twin"


def test_b56_the_far_ones_that_match(index: VectorIndex) -> None:
    """mastra-ai/mastra#14913, mastra-ai/mastra#14837"""
    near = [(f"x{i}", [1, i / 100], {"tag": "x"}) for i in range(2)]
    far = [(f"y{i}", [-1, i / 100], {"tag": "y"}) for i in range(2)]
    filled(index, *near, *far)
    assert sorted(found(index, [1, 0], 2, filter={"tag": "y"})) == ["y0", "y1"]


@pytest.mark.parametrize("exact", [True, False])
def test_b56_two_behind_a_thousand(index: VectorIndex, exact: bool) -> None:
    rows = [(f"x{i}", [1, i / 5000], {"tag": "x"}) for i in range(1000)]
    filled(index, *rows, ("y0", [-1, 0], {"tag": "y"}), ("y1", [-1, 0.1], {"tag": "y"}))
    assert found(index, [1, 0], 2, filter={"tag": "y"}, exact=exact) == ["y1", "y0"]


# Scores


@pytest.fixture
def compass(index: VectorIndex) -> VectorIndex:
    """One direction twice, across, and opposite."""
    return filled(index, ("v", [1, 0]), ("v2", [0, 1]), ("v3", [-1, 0]), ("v4", [2, 0]))


def test_b59_the_cosine_is_the_score(compass: VectorIndex) -> None:
    """llm-tools/embedJs#186, symfony/ai#195"""
    assert scored(compass, [1, 0]) == pytest.approx({"v": 1, "v4": 1, "v2": 0, "v3": -1}, abs=1e-5)


def test_b59_the_closest_come_first(compass: VectorIndex) -> None:
    hits = found(compass, [1, 0], 4)
    assert (set(hits[:2]), hits[2:]) == ({"v", "v4"}, ["v2", "v3"])


def test_b59_min_score_keeps_the_closest(compass: VectorIndex) -> None:
    assert set(found(compass, [1, 0], 4, min_score=0.5)) == {"v", "v4"}


def test_b60_distances_are_not_squared(index: VectorIndex) -> None:
    """langchain-ai/langchain#18709, langchain-ai/langchain#22209, langchain-ai/langchain#32498"""
    filled(index, ("p0", [0.0]), ("p1", [1.0]), ("p3", [3.0]), metric="euclidean")
    assert scored(index, [0]) == pytest.approx({"p0": 1, "p1": 1 / 2, "p3": 1 / 4}, abs=1e-5)


def test_b60_the_inner_product_is_not_normalised(index: VectorIndex) -> None:
    filled(index, ("a", [3, 4]), metric="dotproduct")
    assert scored(index, [3, 4]) == pytest.approx({"a": 25}, abs=1e-3)


@pytest.mark.parametrize(("metric", "least"), [("cosine", 0.9), ("dotproduct", 0.9), ("euclidean", 0.9)])
def test_b60_min_score_keeps_the_nearer(index: VectorIndex, metric: str, least: float) -> None:
    filled(index, ("near", [1, 0]), ("far", [0, 1]), metric=metric)
    assert found(index, [1, 0], 2, min_score=least) == ["near"]


@pytest.mark.parametrize("metric", ["cosine", "dotproduct", "euclidean"])
def test_b62_opposite_vectors_are_returned(index: VectorIndex, metric: str) -> None:
    """elastic/elasticsearch#100975"""
    direction = (np.random.default_rng(62).standard_normal(256) * 1000).tolist()
    filled(index, ("a", direction), ("b", [-component for component in direction]), metric=metric)
    assert found(index, direction, 2) == ["a", "b"]


def test_b62_the_cosine_of_opposite_vectors_is_in_range(index: VectorIndex) -> None:
    direction = (np.random.default_rng(62).standard_normal(256) * 1000).tolist()
    filled(index, ("a", direction), ("b", [-component for component in direction]))
    low, high = sorted(scored(index, direction).values())
    assert -1 <= low < -0.9999 < 0.9999 < high <= 1


def test_b63_another_dimension_is_refused_at_create(index: VectorIndex) -> None:
    """mastra-ai/mastra#11854, mastra-ai/mastra#13039, mastra-ai/mastra#22143"""
    filled(index, ("a", [1, 0, 0]))
    with pytest.raises(AlreadyExists):
        index.create_index("i", dimension=4)
    assert (index.describe_index("i").dimension, count(index)) == (3, 1)


def test_b63_another_metric_is_refused_at_create(index: VectorIndex) -> None:
    filled(index, ("a", [1, 0, 0]))
    with pytest.raises(AlreadyExists):
        index.create_index("i", dimension=3, metric="euclidean")


def test_b63_a_batch_with_another_dimension_is_refused_whole(index: VectorIndex) -> None:
    index.create_index("i", dimension=3)
    with pytest.raises(InvalidVector):
        index.upsert_vectors("i", [NewVector("good", [1, 0, 0]), NewVector("bad", [1, 0, 0, 0])])
    assert count(index) == 0


def test_b63_a_query_of_another_dimension_is_refused(index: VectorIndex) -> None:
    with pytest.raises(InvalidVector):
        filled(index, ("a", [1, 0, 0])).query_vectors("i", [1, 0, 0, 0])


def assert_usable(index: VectorIndex, dimension: int) -> None:
    index.upsert_vectors("i", [NewVector("a", [1.0] * dimension), NewVector("b", [-1.0] * dimension)])
    assert found(index, [1.0] * dimension, 1) == ["a"]


@pytest.mark.parametrize("dimension", [1, 2000, 2001, 3072, 4096])
def test_b64_what_was_created_works(index: VectorIndex, dimension: int) -> None:
    """spring-projects/spring-ai#940, pgvector/pgvector#915"""
    index.create_index("i", dimension=dimension)
    assert_usable(index, dimension)


@pytest.mark.parametrize("dimension", [4097, 16_000, 16_001, 100_000])
def test_b64_what_an_engine_cannot_hold_is_refused_at_creation(index: VectorIndex, dimension: int) -> None:
    refusal = ""
    try:
        index.create_index("i", dimension=dimension)
    except Unsupported as error:
        refusal = str(error)
    if index.list_indexes():
        assert_usable(index, dimension)
    else:
        assert str(dimension) in refusal


@pytest.mark.parametrize("dimension", [0, -1, 1.5, True])
def test_b64_other_dimensions_are_refused(index: VectorIndex, dimension: Any) -> None:
    with pytest.raises(InvalidRequest):
        index.create_index("i", dimension=dimension)


@pytest.mark.parametrize("name", ["x; drop table y", 'a"b', "a' OR 1=1 --", "A", "한글", "%", "a.b"])
def test_b65_an_index_name_is_a_name(index: VectorIndex, name: str) -> None:
    """mastra-ai/mastra#9531, mastra-ai/mastra#4244, langchain-ai/langgraph#5666, run-llama/llama_index#21822"""
    index.create_index("other", dimension=1)
    index.create_index(name, dimension=2)
    index.upsert_vectors(name, [NewVector("v", [1, 0])])
    assert (index.list_indexes(), index.describe_index("other").count) == (tuple(sorted((name, "other"))), 0)


# Consistency


def test_b70_each_client_sees_what_the_other_wrote(open_index: Callable[[], VectorIndex]) -> None:
    """deepset-ai/haystack-core-integrations#2605, run-llama/llama_index#22286"""
    writer, reader = open_index(), open_index()
    writer.create_index("i", dimension=2)
    for number in range(20):
        writer.upsert_vectors("i", [NewVector(f"r{number}", [1, 0])])
        assert len(found(reader, [1, 0], 100)) == number + 1


def test_b71_values_of_every_type_share_a_key(index: VectorIndex) -> None:
    values: dict[str, Any] = {"a": 1, "b": "one", "c": True, "d": None, "e": [1], "f": {"a": 1}, "g": 1.5}
    tagged(index, **{name: {"k": value} for name, value in values.items()})
    assert {row.id: row.metadata["k"] for row in index.get_vectors("i", [*values])} == values


def test_b70_rows_stored_just_now_are_deleted_by_filter(index: VectorIndex) -> None:
    tagged(index, a={"k": 1}, b={})
    assert (index.delete_vectors("i", filter={"k": 1}), found(index, [1, 0], 5)) == (1, ["b"])


@pytest.mark.parametrize("bad", [NewVector("bad", [1]), NewVector("k" * 256, [1, 0])], ids=["dimension", "id"])
def test_b71_a_batch_is_refused_whole(index: VectorIndex, bad: NewVector) -> None:
    """stac-utils/stac-fastapi-elasticsearch-opensearch#346, langchain-ai/langchainjs#1810"""
    index.create_index("i", dimension=2)
    with pytest.raises((InvalidVector, InvalidRequest)):
        index.upsert_vectors("i", [NewVector("a", [1, 0]), bad, NewVector("b", [0, 1])])
    assert (count(index), index.get_vectors("i", ["a", "b"])) == (0, ())


# Semantic recall

ON = MemoryConfig(semantic_recall=True)
RED, ORANGE, BLUE = "[1, 0] red", "[0.9, 0.1] orange", "[0, 1] blue"


@pytest.fixture
def memory(open_memory: Callable[..., Memory]) -> Memory:
    """A client that embeds what it saves; `[1, 0] red` has the vector (1, 0)."""
    return open_memory(ON, LiteralEmbedder(2))


def new(id: str, content: str, thread: str = "t", **given: Any) -> NewMessage:
    """A message; each is a millisecond after the last."""
    return NewMessage(id, thread, content, created_at=T0 + timedelta(milliseconds=next(_instants)), **given)


_instants = itertools.count(1)


def search(memory: Memory, text: str = "[1, 0]", thread: str = "t", **given: Any) -> RecallResult:
    """The hits of a search, without windows and page."""
    given = {"top_k": 10, "message_range": 0, **given}
    about = {name: given.pop(name) for name in ("resource_id", "narrowed") if name in given}
    return memory.recall(
        thread,
        resource_id=about.get("resource_id"),
        vector_search_string=text,
        per_page=0,
        filter=about.get("narrowed"),
        thread_config=MemoryConfig(semantic_recall=SemanticRecall(**given)),
    )


def hits(memory: Memory, text: str = "[1, 0]", thread: str = "t", **given: Any) -> list[str]:
    """The ids of the hits, best first."""
    return [hit.id for hit in search(memory, text, thread, **given).hits]


def embedded(memory: Memory) -> int:
    """How many messages have an embedding."""
    described = memory.semantic_index()
    assert described is not None
    return described.count


@pytest.fixture
def secret(memory: Memory) -> Memory:
    """A thread t1 of r1 with a secret, and t2 of r2 with a message of the same vector."""
    memory.create_thread(id="t1", resource_id="r1")
    memory.create_thread(id="t2", resource_id="r2")
    memory.save_messages([new("secret", RED, "t1"), new("other", RED, "t2")])
    return memory


@pytest.mark.parametrize("scope", ["thread", "resource"])
def test_b15_a_search_finds_nothing_of_another_resource(secret: Memory, scope: str) -> None:
    """mastra-ai/mastra#21863"""
    assert hits(secret, thread="t2", resource_id="r2", scope=scope) == ["other"]


@pytest.mark.parametrize("scope", ["thread", "resource"])
def test_b15_a_search_in_anothers_thread_is_refused(secret: Memory, scope: str) -> None:
    with pytest.raises(OwnershipMismatch):
        hits(secret, thread="t1", resource_id="r2", scope=scope)


def test_b16_a_hit_of_another_thread_brings_its_own_neighbours(memory: Memory) -> None:
    """mastra-ai/mastra#20303"""
    memory.create_thread(id="t1", resource_id="r")
    memory.create_thread(id="t2", resource_id="r")
    memory.save_messages([new("a", BLUE, "t2"), new("x", BLUE, "t1"), new("hit", RED, "t2"), new("b", BLUE, "t2")])
    result = search(memory, thread="t1", resource_id="r", scope="resource", top_k=1, message_range=1)
    assert sorted(message.id for message in result.messages) == ["a", "b", "hit"]


def test_b40_a_deleted_message_leaves_its_slot(memory: Memory) -> None:
    """mastra-ai/mastra#6604, mastra-ai/mastra#12225, mastra-ai/mastra#20509"""
    memory.create_thread(id="t", resource_id="r")
    memory.save_messages([new("red", RED), new("orange", ORANGE)])
    memory.delete_messages(["red"])
    assert (hits(memory, top_k=1), embedded(memory)) == (["orange"], 1)


def test_b40_a_deleted_thread_leaves_its_slots(memory: Memory) -> None:
    memory.create_thread(id="gone", resource_id="r")
    memory.create_thread(id="t", resource_id="r")
    memory.save_messages([new("red", RED, "gone"), new("orange", ORANGE)])
    memory.delete_thread("gone")
    assert (hits(memory, top_k=1, scope="resource", resource_id="r"), embedded(memory)) == (["orange"], 1)


def test_b40_a_cleared_thread_has_no_embeddings(memory: Memory) -> None:
    memory.create_thread(id="t", resource_id="r")
    memory.save_messages([new("red", RED)])
    memory.clear_messages("t")
    assert (hits(memory), embedded(memory)) == ([], 0)


@pytest.fixture
def five(memory: Memory) -> Memory:
    """A thread t with m1 … m5 at 1, 2, 3, 3 and 5 ms."""
    memory.create_thread(id="t", resource_id="r", metadata={"p": 1})
    at = (1, 2, 3, 3, 5)
    memory.save_messages(
        [NewMessage(f"m{i}", "t", RED, created_at=ms(at[i - 1]), metadata={"k": i}) for i in range(1, 6)]
    )
    return memory


def ms(milliseconds: int) -> datetime:
    """T0 and so many milliseconds."""
    return T0 + timedelta(milliseconds=milliseconds)


def copied(memory: Memory, **given: Any) -> list[str]:
    """Clone t as c: the source's ids of the clone's messages, oldest first."""
    result = memory.clone_thread("t", new_thread_id="c", **given)
    source = {new_id: old for old, new_id in result.id_map.items()}
    return [source[message.id] for message in listed(memory, "c")]


def listed(memory: Memory, thread: str = "t") -> Sequence[Message]:
    """All messages of a thread, oldest first."""
    return memory.recall(thread, per_page=False, order_by=OrderBy(direction="ASC")).messages


def test_b42_a_clone_keeps_the_order(five: Memory) -> None:
    """mastra-ai/mastra#12811, mastra-ai/mastra#11517"""
    assert copied(five) == ["m1", "m2", "m3", "m4", "m5"]


def test_b42_a_limit_takes_the_newest(five: Memory) -> None:
    assert copied(five, message_limit=3) == ["m3", "m4", "m5"]


def test_b42_a_range_of_instants(five: Memory) -> None:
    assert copied(five, start=ms(2), end=ms(3)) == ["m2", "m3", "m4"]


def test_b42_editing_the_clone_leaves_the_source(five: Memory) -> None:
    result = five.clone_thread("t", new_thread_id="c")
    five.update_messages([MessageUpdate(result.id_map["m1"], "changed", metadata={"k": 9})])
    five.update_thread("c", metadata={"p": 2})
    first, thread = listed(five)[0], five.get_thread("t")
    assert thread is not None
    assert (first.content, first.metadata, thread.metadata) == (RED, {"k": 1}, {"p": 1})


def test_b42_recall_in_the_clone_finds_the_clones_messages(five: Memory) -> None:
    result = five.clone_thread("t", new_thread_id="c")
    assert hits(five, thread="c") == [result.id_map[f"m{i}"] for i in range(1, 6)]


def test_b42_a_clone_of_a_clone(five: Memory) -> None:
    five.clone_thread("t", new_thread_id="c")
    five.clone_thread("c", new_thread_id="d")
    assert [message.metadata["k"] for message in listed(five, "d")] == [1, 2, 3, 4, 5]


def test_b42_deleting_the_source_keeps_the_clone(five: Memory) -> None:
    five.clone_thread("t", new_thread_id="c")
    five.delete_thread("t")
    assert (len(listed(five, "c")), len(hits(five, thread="c"))) == (5, 5)


def test_b49_a_search_narrows_before_top_k(memory: Memory) -> None:
    memory.create_thread(id="t", resource_id="r")
    near = [new(f"b{i}", f"[1, {i / 1000}]", metadata={"k": "B"}) for i in range(30)]
    memory.save_messages([*near, *(new(f"a{i}", f"[0.1, {i + 1}]", metadata={"k": "A"}) for i in range(5))])
    assert hits(memory, top_k=5, narrowed=MessageFilter(metadata={"k": "A"})) == [f"a{i}" for i in range(5)]


def test_b54_messages_without_an_embedding_are_never_hits(memory: Memory) -> None:
    """elastic/elasticsearch#115018"""
    memory.create_thread(id="t", resource_id="r")
    memory.save_messages([new(f"m{i}", f"[1, {i / 50}]" if i > 1 else "  ") for i in range(43)])
    assert sorted(hits(memory, top_k=41)) == sorted(f"m{i}" for i in range(2, 43))


def test_b59_a_search_scores_by_the_cosine(memory: Memory) -> None:
    memory.create_thread(id="t", resource_id="r")
    memory.save_messages([new("same", "[2, 0]"), new("across", BLUE), new("opposite", "[-1, 0]")])
    assert {hit.id: hit.score for hit in search(memory).hits} == pytest.approx(
        {"same": 1, "across": 0, "opposite": -1}, abs=1e-5
    )


def test_b59_a_threshold_keeps_the_closest(memory: Memory) -> None:
    memory.create_thread(id="t", resource_id="r")
    memory.save_messages([new("across", BLUE), new("same", RED)])
    assert hits(memory, threshold=0.5) == ["same"]


@pytest.fixture
def changed(memory: Memory) -> Memory:
    """A message m whose metadata p was 1, and is 2; and so is its thread's q."""
    memory.create_thread(id="t", resource_id="r", metadata={"q": 1})
    memory.save_messages([new("m", RED, metadata={"p": 1})])
    memory.update_messages([MessageUpdate("m", metadata={"p": 2})])
    memory.update_thread("t", metadata={"q": 2})
    return memory


def test_b73_the_metadata_filter_sees_the_message_as_it_is(changed: Memory) -> None:
    """headroomlabs-ai/headroom#2296"""
    narrowed = MessageFilter(metadata={"p": 2})
    assert [message.id for message in changed.recall("t", filter=narrowed).messages] == ["m"]


def test_b73_a_search_narrows_by_the_message_as_it_is(changed: Memory) -> None:
    assert [hits(changed, narrowed=MessageFilter(metadata={"p": p})) for p in (1, 2)] == [[], ["m"]]


def test_b73_the_semantic_filter_sees_the_thread_as_it_was_indexed(changed: Memory) -> None:
    assert [hits(changed, filter={"q": q}) for q in (1, 2)] == [["m"], []]


def test_b73_saving_again_indexes_the_thread_as_it_is(changed: Memory) -> None:
    changed.save_messages([new("m", RED)])
    assert [hits(changed, filter={"q": q}) for q in (1, 2)] == [[], ["m"]]


def test_b73_the_semantic_filter_never_sees_message_metadata(changed: Memory) -> None:
    assert [hits(changed, filter={"p": p}) for p in (1, 2)] == [[], []]
