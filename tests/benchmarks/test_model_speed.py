"""How fast the reference model answers over a 100,000-message thread: `nox -s benchmarks`. Time is never asserted.

In the default run every benchmark runs once, for its answer alone.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from memassay.spec.protocols import Runtime
from memassay.spec.reference import Model
from memassay.spec.types import Include, MemoryConfig, MessageFilter, NewMessage, RecallResult

Benchmark = Callable[..., Any]

MESSAGES = 100_000
BATCH = 1_000
RARE = 50
"""Every so many messages one is about billing."""
START = datetime(2026, 1, 1, tzinfo=UTC)


def message(number: int) -> NewMessage:
    """Three messages share each instant."""
    return NewMessage(
        id=f"m{number}",
        thread_id="t",
        content=f"message {number}",
        metadata={"topic": "billing" if number % RARE == 0 else "other", "number": number},
        created_at=START + timedelta(seconds=number // 3),
    )


@pytest.fixture(scope="module")
def model() -> Model:
    model = Model(Runtime(clock=lambda: START), MemoryConfig())
    model.create_thread(resource_id="r", id="t")
    for first in range(0, MESSAGES, BATCH):
        model.save_messages([message(number) for number in range(first, first + BATCH)])
    return model


def shown(result: RecallResult) -> list[str]:
    return [message.id for message in result.messages]


def test_the_newest_ten(benchmark: Benchmark, model: Model) -> None:
    result = benchmark(model.recall, "t")
    assert shown(result) == [f"m{MESSAGES - 1 - i}" for i in range(10)]


def test_a_deep_page(benchmark: Benchmark, model: Model) -> None:
    result = benchmark(model.recall, "t", page=5_000, per_page=10)
    assert shown(result) == [f"m{MESSAGES - 50_001 - i}" for i in range(10)]


def test_a_filtered_page(benchmark: Benchmark, model: Model) -> None:
    result = benchmark(model.recall, "t", filter=MessageFilter(metadata={"topic": "billing"}), page=100, per_page=10)
    newest = MESSAGES - RARE
    assert shown(result) == [f"m{newest - RARE * (1_000 + i)}" for i in range(10)]
    assert result.total == MESSAGES // RARE


def test_a_message_and_two_neighbours_on_each_side(benchmark: Benchmark, model: Model) -> None:
    include = [Include(id="m50000", with_previous_messages=2, with_next_messages=2)]
    result = benchmark(model.recall, "t", include=include)
    assert shown(result) == [f"m{number}" for number in range(50_002, 49_997, -1)]
