"""Workloads on the model, which answers all of them rightly, and on stores with one fault, which shows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest
from memassay.backends.reference import ReferenceBackend
from memassay.benchmarks.answers import Cloned, Closest, Counted, Judged, Listed, Nearest, Saved
from memassay.benchmarks.contenders import StoreClient
from memassay.benchmarks.filters import NO_FILTER, Filter
from memassay.benchmarks.profiles import PROFILES
from memassay.benchmarks.scene import Scene, Series, fill_index, fill_memory
from memassay.benchmarks.workloads import WORKLOADS, Call
from memassay.spec.capabilities import Capabilities
from memassay.spec.clauses import CLAUSES
from memassay.spec.protocols import Runtime
from memassay.spec.types import MemoryConfig

MANY = 40


@pytest.fixture(scope="module")
def model(scene: Scene) -> StoreClient:
    """A client of the reference backend that holds the scene."""
    backend, runtime = ReferenceBackend(), Runtime(embedder=scene.embedder)
    client = StoreClient(
        lambda: backend.open_memory("", "workloads", runtime, MemoryConfig()),
        lambda: backend.open_index("", "workloads", runtime),
    )
    fill_memory(client.get("memory"), scene, embedded=True)
    fill_index(client.get("index"), scene, None)
    return client


@pytest.fixture(scope="module")
def series() -> Series:
    return Series()


def made(client: StoreClient, calls: Sequence[Call]) -> list[Judged]:
    send = client.bind(calls)
    return [call.expected.judge(call.expected.keep(send(number))) for number, call in enumerate(calls)]


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_model_does_every_workload_rightly(name: str, model: StoreClient, scene: Scene, series: Series) -> None:
    stream = WORKLOADS[name].stream(scene, series, MANY, seed=0)
    assert {judged.outcome for judged in made(model, stream.before)} <= {"ok"}
    judged = made(model, stream.calls[:MANY])
    assert {each.outcome for each in judged} == {"ok"}
    assert [each.right for each in judged] == [each.due for each in judged]


@pytest.mark.parametrize("name", [name for name, workload in WORKLOADS.items() if workload.reads])
def test_reads_have_something_to_find(name: str, scene: Scene) -> None:
    stream = WORKLOADS[name].stream(scene, Series(), MANY, seed=0)
    assert stream.cyclic
    assert sum(call.expected.due > 0 for call in stream.calls) > 0.9 * len(stream.calls)


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_rests_on_clauses_and_capabilities_that_there_are(name: str) -> None:
    workload = WORKLOADS[name]
    assert workload.clauses
    assert {*workload.clauses} <= CLAUSES.keys()
    assert {*workload.needs} <= {*Capabilities.__struct_fields__}


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_asks_for_workloads_that_there_are(profile: str) -> None:
    assert {*PROFILES[profile].workloads} <= WORKLOADS.keys()


def test_reads_are_repeated_in_another_order(scene: Scene) -> None:
    orders = [
        [repr(call.arguments) for call in WORKLOADS["vector"].stream(scene, Series(), MANY, seed).calls]
        for seed in (0, 0, 1)
    ]
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2])


def test_writes_name_no_row_twice(scene: Scene) -> None:
    series = Series()
    streams = [WORKLOADS["save-100"].stream(scene, series, 3, seed=0) for _ in range(2)]
    ids = [message.id for stream in streams for call in stream.calls for message in call.arguments["messages"]]
    assert len(ids) == len({*ids}) == 600
    assert not any(stream.cyclic for stream in streams)


def test_what_is_changed_was_stored_before(scene: Scene) -> None:
    series = Series(first=5)
    stream = WORKLOADS["churn"].stream(scene, series, MANY, seed=0)
    stored = {
        row.id for call in stream.before for row in call.arguments.get("messages", call.arguments.get("vectors", ()))
    }
    named: set[str] = set()
    for call in stream.calls:
        rows = call.arguments.get("updates") or call.arguments.get("vectors")
        named |= {row.id for row in rows} if rows else {*call.arguments["ids"]}
    assert named == stored
    assert len(named) == MANY


def test_arguments_are_resolved_ahead_of_time(scene: Scene) -> None:
    call = WORKLOADS["date-range"].stream(scene, Series(), 1, seed=0).calls[0]
    assert isinstance(call.arguments["filter"].date_range.start, datetime)


def test_a_filter_of_metadata_leaves_few_messages(scene: Scene) -> None:
    conditions = {tuple(metadata) for _, metadata in scene.conditions(20, least=100)}
    assert conditions == {("tens",), ("hundreds",)}


def test_the_model_is_spared_searches_of_large_sets_alone(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not scene.large(("storage", "vectors", "semantic_recall"))
    monkeypatch.setattr("memassay.benchmarks.scene.LARGEST", 5_000)  # 460 messages × 8, 1,000 × 8
    assert scene.large(("vectors",))
    assert not scene.large(("storage", "semantic_recall"))


# Answers


@pytest.fixture(scope="module")
def nearest(scene: Scene) -> tuple[Nearest, list[str]]:
    """What is expected of the first query under a filter, and the right answer."""
    expected = Nearest(scene.truth(Filter("independent", 100))[0], scene.numbers)
    ids = [*scene.numbers]
    return expected, [ids[row] for row in expected.truth.rows[: expected.due].tolist()]


def test_the_rows_that_are_due_are_ok(nearest: tuple[Nearest, list[str]]) -> None:
    expected, right = nearest
    assert expected.judge(tuple(right)) == Judged("ok", 5, 5, 5)


def test_fewer_rows_than_due_are_short(nearest: tuple[Nearest, list[str]]) -> None:
    expected, right = nearest
    assert expected.judge(tuple(right[:3])) == Judged("short", 5, 3, 3)


def test_a_row_twice_is_wrong_and_counts_once(nearest: tuple[Nearest, list[str]]) -> None:
    expected, right = nearest
    assert expected.judge((*right[:4], right[0])) == Judged("wrong", 5, 4, 5)


def test_a_row_that_the_filter_leaves_out_is_wrong(nearest: tuple[Nearest, list[str]], scene: Scene) -> None:
    expected, right = nearest
    out = [*scene.numbers][int(np.flatnonzero(~scene.vectors.mask(Filter("independent", 100)))[0])]
    assert expected.judge((*right[:4], out)) == Judged("wrong", 5, 4, 5)


def test_a_row_that_was_never_stored_is_wrong(nearest: tuple[Nearest, list[str]]) -> None:
    expected, right = nearest
    assert expected.judge((*right[:4], "nobody")).outcome == "wrong"


def test_more_rows_than_asked_for_are_wrong(nearest: tuple[Nearest, list[str]], scene: Scene) -> None:
    expected, right = nearest
    inside = [*scene.numbers][int(np.flatnonzero(scene.vectors.mask(Filter("independent", 100)))[-1])]
    assert expected.judge((*right, inside)).outcome == "wrong"


def test_a_missed_row_lowers_recall_alone(nearest: tuple[Nearest, list[str]], scene: Scene) -> None:
    expected, right = nearest
    others: list[int] = np.flatnonzero(scene.vectors.mask(Filter("independent", 100))).tolist()
    far = next(id for id, row in scene.numbers.items() if row in others and row not in expected.truth.rows.tolist())
    assert expected.judge((*right[:4], far)) == Judged("ok", 5, 4, 5)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (("a", "b", "c"), Judged("ok", 3, 3, 3)),
        (("a", "b"), Judged("short", 3, 2, 2)),
        (("b", "a", "c"), Judged("wrong", 3, 3, 3)),
        (("a", "b", "x"), Judged("wrong", 3, 2, 3)),
        (("a", "a", "b"), Judged("wrong", 3, 2, 3)),
    ],
)
def test_a_listing_is_judged_by_rows_and_order(answer: tuple[str, ...], expected: Judged) -> None:
    assert Listed(("a", "b", "c")).judge(answer) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (("a", "b"), Judged("ok", 2, 2, 2)),
        (("b", "c"), Judged("ok", 2, 2, 2)),  # tied
        (("a", "d"), Judged("ok", 2, 1, 2)),  # missed
        (("a",), Judged("short", 2, 1, 1)),
        (("a", "x"), Judged("wrong", 2, 1, 2)),  # another thread's
        (("a", "a"), Judged("wrong", 2, 1, 2)),
    ],
)
def test_hits_by_meaning_are_judged_as_sets(answer: tuple[str, ...], expected: Judged) -> None:
    assert Closest(2, frozenset("abc"), frozenset("abcd")).judge(answer) == expected


def test_writes_are_judged_by_what_they_return() -> None:
    assert Saved(("a",)).judge(("a",)).outcome == "ok"
    assert Saved(("a",)).judge(()).outcome == "wrong"
    assert Counted(1).judge(0).outcome == "wrong"
    assert Cloned(3).judge(2) == Judged("short", 3, 2, 2)


# Stores with a fault


class Faulty:
    """Passes everything on to the model, but for one call."""

    def __init__(self, client: Any, name: str, fault: Any) -> None:
        self._client, self._name, self._fault = client, name, fault

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        return partial(self._fault, method) if name == self._name else method


def outcomes(client: Any, name: str, scene: Scene) -> set[str]:
    calls = WORKLOADS[name].stream(scene, Series(), MANY, seed=0).calls[:MANY]
    faulty = StoreClient(lambda: client, lambda: client)
    return {judged.outcome for judged in made(faulty, calls)}


def test_a_store_that_drops_the_filter_is_wrong(model: StoreClient, scene: Scene) -> None:
    def fault(query: Any, name: str, **given: Any) -> Any:
        return query(name, **{**given, "filter": None})

    faulty = Faulty(model.get("index"), "query_vectors", fault)
    assert "wrong" in outcomes(faulty, "vector-independent-1%", scene)


def test_a_store_that_filters_afterwards_is_short(model: StoreClient, scene: Scene) -> None:
    filter = Filter("independent", 10)

    def fault(query: Any, name: str, **given: Any) -> Any:
        return [hit for hit in query(name, **{**given, "filter": None}) if filter.key in hit.metadata]

    faulty = Faulty(model.get("index"), "query_vectors", fault)
    assert outcomes(faulty, "vector-independent-1%", scene) <= {"short", "ok"}
    assert "short" in outcomes(faulty, "vector-independent-1%", scene)


def test_a_store_that_orders_otherwise_is_wrong(model: StoreClient, scene: Scene) -> None:
    def fault(recall: Any, thread_id: str, **given: Any) -> Any:
        found = recall(thread_id, **given)
        return msgspec.structs.replace(found, messages=found.messages[::-1])

    assert outcomes(Faulty(model.get("memory"), "recall", fault), "newest", scene) == {"wrong"}


def test_a_search_without_a_filter_is_asked_with_the_queries_held_out(scene: Scene) -> None:
    calls = WORKLOADS["vector"].stream(scene, Series(), MANY, seed=0).calls
    asked = {tuple(call.arguments["vector"]) for call in calls}
    assert asked == {tuple(query) for query in scene.vectors.asked(NO_FILTER).tolist()}
