"""What engines tell about themselves beside a measurement: durability, plans, sizes."""

from __future__ import annotations

from typing import Any

import pytest
from memassay.backends.particulars import Particulars, particulars
from memassay.spec.types import IndexConfig, NewMessage, NewVector

INDEX = "i"
DURABLE = {
    "libsql": ("synchronous", "FULL"),
    "faiss": ("synchronous", "FULL"),
    "postgres": ("fsync", "on"),
    "elasticsearch": ("translog.durability", "request"),
    "opensearch": ("translog.durability", "request"),
}
"""By engine, the setting that decides whether what was acknowledged is on disk, and its value here."""


@pytest.fixture(params=DURABLE)
def told(request: pytest.FixtureRequest, engines: Any) -> tuple[str, Particulars]:
    """The engine, and what it tells of a namespace with a few rows."""
    with engines.namespace(request.param) as namespace:
        memory, index = namespace(), namespace.index()
        memory.create_thread(resource_id="r", id="t")
        memory.save_messages([NewMessage(f"m{n}", "t", "x" * 100) for n in range(20)])
        kind = "hnsw" if request.param != "libsql" else "flat"
        index.create_index(INDEX, dimension=3, config=IndexConfig(type=kind))
        index.upsert_vectors(INDEX, [NewVector(f"v{n}", [1.0, n, 2.0]) for n in range(20)])
        return request.param, particulars(request.param, namespace.url, namespace.name, INDEX)


def test_an_engine_tells_how_durable_a_write_is(told: tuple[str, Particulars]) -> None:
    name, setting = told[0], DURABLE[told[0]]
    assert told[1].settings[setting[0]] == setting[1], name


def test_an_engine_tells_how_much_is_there(told: tuple[str, Particulars]) -> None:
    assert sum(told[1].sizes.values()) > 0


def test_postgres_tells_its_plans(engines: Any) -> None:
    with engines.namespace("postgres") as namespace:
        memory, index = namespace(), namespace.index()
        memory.create_thread(resource_id="r", id="t")
        memory.save_messages([NewMessage(f"m{n}", "t", "x") for n in range(20)])
        index.create_index(INDEX, dimension=3, config=IndexConfig(type="flat"))
        index.upsert_vectors(INDEX, [NewVector(f"v{n}", [1.0, n, 2.0]) for n in range(20)])
        plan = particulars("postgres", namespace.url, namespace.name, INDEX).plan
    assert "Scan" in plan["newest"]
    assert "Seq Scan on" in plan["search"]


def test_of_a_store_that_nobody_has_written_it_for_nothing_is_told() -> None:
    assert particulars("reference", "", "n", INDEX) == Particulars()
    assert particulars("some:Store", "", "n", INDEX) == Particulars()
