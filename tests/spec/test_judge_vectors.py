"""The judge on vectors, semantic recall and clones: what it blames, and what it leaves alone."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import numpy as np
import pytest
from memassay.spec import program as ops
from memassay.spec.compare import equal
from memassay.spec.divergence import Divergence
from memassay.spec.forms import FillVectors, fill_vectors
from memassay.spec.interpreter import Crashed, Outcome, Refused, Returned, keep
from memassay.spec.judge import expect, judge
from memassay.spec.reference_index import MODEL_CAPABILITIES
from memassay.spec.types import Hit, IndexConfig, RecallResult, VectorHit, VectorRow
from memassay.spec.vectors import METRICS, Metric, scores
from memassay.spec.well_formed import Malformed, well_formed

OBSERVE = ops.Observe()


def judged(program: ops.Program, changed: dict[int, Outcome]) -> list[str]:
    """The clauses blamed when these outcomes replace the model's."""
    transcript = tuple(changed.get(index, outcome) for index, outcome in enumerate(expect(program)))
    return [divergence.clause for divergence in judge(program, transcript)]


def value(program: ops.Program, index: int) -> Any:
    outcome = expect(program)[index]
    assert isinstance(outcome, Returned)
    return outcome.value


def searched(metric: str) -> ops.Program:
    """A thread with a message, searched by a vector that is near it, then read."""
    return ops.Program(
        operations=(
            ops.CreateThread(id="t", resource_id="r"),
            ops.SaveMessages(messages=[{"id": "m", "thread_id": "t", "content": "[3, 4, 0]"}]),
            OBSERVE,
            ops.Recall(thread_id="t", vector_search_string="[1, 0, 0]"),
            ops.GetThread(thread_id="t"),
        ),
        options={"semantic_recall": {"index_config": {"metric": metric}}},
        embedder=3,
    )


@pytest.mark.parametrize("metric", ["cosine", "euclidean", "dotproduct"])
def test_right_scores_are_right_beside_another_fault(metric: str) -> None:
    assert judged(searched(metric), {4: Returned(None)}) == ["THR-2"]


@pytest.mark.parametrize("metric", ["euclidean", "dotproduct"])
def test_a_cosine_under_another_metric_is_the_index_configs(metric: str) -> None:
    program = searched(metric)
    wrong = msgspec.structs.replace(value(program, 3), hits=(Hit("m", 0.6),))
    assert judged(program, {3: Returned(wrong)}) == ["SEM-6"]


def test_any_other_score_is_the_embeddings() -> None:
    program = searched("euclidean")
    wrong = msgspec.structs.replace(value(program, 3), hits=(Hit("m", 0.5),))
    assert judged(program, {3: Returned(wrong)}) == ["SEM-4"]


def queried(filter: Any) -> ops.Program:
    return ops.Program(
        operations=(
            ops.CreateIndex(index="i", dimension=1),
            ops.UpsertVectors(index="i", vectors=[{"id": "a", "vector": [1], "metadata": {"k": "x"}}]),
            OBSERVE,
            ops.QueryVectors(index="i", vector=[1], filter=filter),
        )
    )


@pytest.mark.parametrize(
    ("filter", "clause"),
    [({"k": "x"}, "OPR-2"), ({"k": {"$gt": 1}}, "OPR-2"), ({"k": {"$ne": 1}}, "OPR-3"), ({"k": {"$in": []}}, "OPR-4")],
    ids=str,
)
def test_a_crash_is_the_filters_that_was_evaluated(filter: Any, clause: str) -> None:
    assert judged(queried(filter), {3: Crashed("Error", "invalid input syntax")}) == [clause]


def test_a_refusal_is_the_grammars() -> None:
    assert judged(queried({"k": {"$gt": 1}}), {3: Refused("invalid_filter", "no $gt here")}) == ["OPR-1"]


@pytest.mark.parametrize(
    ("filter", "clause"),
    [({}, "VEC-4"), ({"$or": [{}, {"k": 1}]}, "OPR-4"), ({"k": {"$nin": []}}, "OPR-4")],
    ids=str,
)
def test_a_row_that_every_constant_lets_through(filter: Any, clause: str) -> None:
    assert judged(queried(filter), {3: Returned(())}) == [clause]


CLONED = ops.Program(
    operations=(
        ops.CreateThread(id="t", resource_id="r", title="old"),
        ops.CloneThread(source_thread_id="t", new_thread_id="c"),
        OBSERVE,
        ops.UpdateThread(thread_id="c", title="new"),
        OBSERVE,
    )
)


def test_a_change_of_the_clone_that_shows_in_its_source_is_the_clones() -> None:
    shown = value(CLONED, 4)
    source = msgspec.structs.replace(shown.threads["t"], title="new")
    wrong = msgspec.structs.replace(shown, threads={**shown.threads, "t": source})
    assert judged(CLONED, {4: Returned(wrong)}) == ["CLN-4"]


def test_a_clone_that_goes_with_its_source_is_the_clones() -> None:
    deleted = ops.Program(operations=(*CLONED.operations[:3], ops.DeleteThread(thread_id="t"), OBSERVE))
    shown = value(deleted, 4)
    wrong = msgspec.structs.replace(shown, threads={**shown.threads, "c": None})
    assert judged(deleted, {4: Returned(wrong)})[0] == "CLN-4"


def test_vectors_may_be_filled_without_metadata() -> None:
    assert [row.metadata for row in fill_vectors(FillVectors("r", 2, 1, metadata=[]))] == [None, None]


def test_a_divergence_names_its_operation() -> None:
    (found,) = judge(queried({}), (*expect(queried({}))[:3], Returned(())))
    assert isinstance(found, Divergence)
    assert (found.operation, found.index) == ("query_vectors", 3)


# What stores return that is none of the specification's


@pytest.mark.parametrize(
    ("returned", "clause"),
    [
        (VectorRow("a", cast(Any, np.array([1.0, 0.0])), {}), "VEC-2"),
        (VectorRow("a", cast(Any, [np.float32(1.0)]), {}), "VEC-2"),
        (VectorRow(cast(Any, 1), (1.0,), {}), "VAL-2"),
        (VectorRow("a", (1.0,), cast(Any, None)), "VEC-2"),
        (Hit(cast(Any, ["a"]), 1.0), "VAL-2"),
        (VectorHit("a", cast(Any, "1.0"), {}), "VEC-3"),
        (VectorHit("a", 10**400, {}), "VEC-3"),
    ],
    ids=[
        "an array",
        "a component of numpy's",
        "an id",
        "metadata",
        "an id of a hit",
        "a score",
        "a score beyond floats",
    ],
)
def test_what_is_no_row_of_ours_is_said(returned: object, clause: str) -> None:
    with pytest.raises(Malformed) as caught:
        well_formed((returned,))
    assert caught.value.clause == clause


def test_an_integer_beyond_floats_is_compared() -> None:
    assert not equal({"k": 1.5}, {"k": 10**400})


def test_nan_that_a_store_showed_is_what_it_shows() -> None:
    assert equal({"k": float("nan")}, {"k": float("nan")})


def test_hits_of_a_recall_that_searches_for_nothing_are_blamed_on_asking() -> None:
    program = ops.Program(
        (ops.CreateThread(id="t", resource_id="r"), OBSERVE, ops.Recall(thread_id="t"), ops.Recall(thread_id="t"))
    )
    shown = value(program, 2)
    for stranger in (Hit("nobody", 1.0), Hit("nobody", 10.0**300)):
        assert judged(program, {2: Returned(msgspec.structs.replace(shown, hits=(stranger,)))}) == ["SEM-1"]


def test_hits_come_as_a_list() -> None:
    kept = keep(RecallResult((), 0, 0, 10, False, hits=cast(Any, [Hit("a", 1.0)])))
    assert kept.hits == (Hit("a", 1.0),)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dimension", [1, 2, 3, 7, 31, 64, 97, 384])
def test_equal_vectors_score_the_same_wherever_they_stand(metric: Metric, dimension: int) -> None:
    random = np.random.default_rng(dimension)
    query, row, others = (
        random.standard_normal(shape).astype(np.float32) for shape in (dimension, dimension, (50, dimension))
    )
    others[[0, 7, 8, 23, 49]] = row
    assert len(set(scores(metric, query, others)[[0, 7, 8, 23, 49]].tolist())) == 1


@pytest.mark.parametrize(("semantic_recall", "clause"), [(True, "SEM-6"), (False, "VEC-1")])
def test_an_indexs_configuration_is_asked_of_every_store_with_indices(semantic_recall: bool, clause: str) -> None:
    able = msgspec.structs.replace(MODEL_CAPABILITIES, semantic_recall=semantic_recall)
    config = {"type": "hnsw", "m": 8}
    program = ops.Program(operations=(ops.CreateIndex(index="i", dimension=2, config=config), ops.Observe()))
    created, observed = expect(program, able)
    assert isinstance(observed, Returned)
    right = observed.value.described["i"]
    wrong = msgspec.structs.replace(right, config=IndexConfig("hnsw", m=16, ef_construction=64))
    shown = msgspec.structs.replace(observed.value, described={"i": wrong})
    found = judge(program, (created, Returned(shown)), able)
    assert [divergence.clause for divergence in found] == [clause]
