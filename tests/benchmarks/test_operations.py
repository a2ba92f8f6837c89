"""Each operation on each engine, for pytest-benchmark: `nox -s benchmarks`, `--benchmark-compare`. No time is asserted.

In the default run every operation is made a few times on little data, for its answer alone. Measured are the data of
the profile quick, one client, closed loop: what an operation costs, not what a user waits (`memassay bench`).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import Any, NamedTuple

import pytest
from memassay.benchmarks.agent import open_agent_memory
from memassay.benchmarks.contenders import StoreClient
from memassay.benchmarks.datasets import open_dataset
from memassay.benchmarks.profiles import QUICK, STANDARD
from memassay.benchmarks.scene import Scene, Series, fill_index, fill_memory
from memassay.benchmarks.truth import exact
from memassay.benchmarks.workloads import WORKLOADS
from memassay.spec.capabilities import Capabilities

BACKENDS = ("reference", "libsql", "postgres", "faiss", "elasticsearch", "opensearch")
OPERATIONS = (*STANDARD.workloads, "upsert-100", "churn", "clone")

FEW = 4
"""Operations made where nothing is measured: churn has four kinds."""

READS = 200
"""Different ones, in turn, of what reads."""

WRITES, ROWS = 20, 400
"""How often what writes is measured, as none can be made twice: so often at least, or for so many rows."""


class Store(NamedTuple):
    """An engine that holds a scene."""

    capabilities: Capabilities
    client: StoreClient
    scene: Scene
    series: Series


@pytest.fixture(scope="module")
def stage(request: pytest.FixtureRequest, scene: Scene) -> Scene:
    """What is stored and asked: little, unless it is measured."""
    if not request.config.getoption("benchmark_enable"):
        return scene
    return Scene(open_dataset(QUICK.data), open_agent_memory(QUICK.memory), k=10, seed=0, truth=exact)


@pytest.fixture(scope="module", params=BACKENDS)
def store(request: pytest.FixtureRequest, engines: Any, stage: Scene) -> Generator[Store]:
    """Each engine in turn, filled once for all operations."""
    with engines.namespace(request.param) as namespace:
        capabilities: Capabilities = namespace.backend.capabilities(namespace.url)
        opened = StoreClient(lambda: namespace(embedder=stage.embedder), namespace.index)
        with closing(opened) as client:
            fill_memory(client.get("memory"), stage, embedded=capabilities.semantic_recall)
            if capabilities.vectors:
                fill_index(client.get("index"), stage, None)
            yield Store(capabilities, client, stage, Series())


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operation(benchmark: Any, store: Store, operation: str) -> None:
    workload = WORKLOADS[operation]
    if missing := [need for need in workload.needs if not getattr(store.capabilities, need)]:
        pytest.skip(f"needs the capability {' and '.join(missing)}")
    benchmark.group = operation
    measured = READS if workload.reads else max(WRITES, ROWS // workload.rows)
    many = measured if benchmark.enabled else FEW
    before = [] if workload.before is None else [*workload.before(store.scene, store.series.ahead(), many)]
    prepare = store.client.bind(before)
    for number in range(len(before)):
        prepare(number)
    calls = [*workload.make(store.scene, store.series, many)]
    send = store.client.bind(calls)
    kept: dict[int, Any] = {}
    made = 0

    def once() -> None:
        nonlocal made
        number = made % len(calls)
        made += 1
        kept[number] = send(number)

    if workload.reads:
        benchmark(once)
    else:
        benchmark.pedantic(once, rounds=len(calls))
    while len(kept) < len(calls):
        once()
    expected = [call.expected for call in calls]
    judged = [each.judge(each.keep(kept[number])) for number, each in enumerate(expected)]
    assert {each.outcome for each in judged} == {"ok"}
