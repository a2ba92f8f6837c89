"""Arguments that are nearly of the right type, on every backend: taken as what they are, or refused by name."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
import pytest
from memassay.spec.errors import InvalidRequest
from memassay.spec.protocols import VectorIndex
from memassay.spec.types import NewVector


class Level(IntEnum):
    """An int that is more."""

    LOW = 1


class Word(str):
    """A str that is more."""

    __slots__ = ()


@pytest.fixture
def rows(index: VectorIndex) -> VectorIndex:
    """An index of two rows."""
    index.create_index("i", dimension=2)
    index.upsert_vectors(
        "i", [NewVector("one", [1, 0], {"k": 1, "s": "a"}), NewVector("two", [0, 1], {"k": 2, "s": "b"})]
    )
    return index


@pytest.mark.parametrize(
    "filter",
    [
        {"k": np.float64(1)},
        {"k": Level.LOW},
        {"k": {"$in": [np.float64(1), Level.LOW]}},
        {"k": {"$lt": np.float64(1.5)}},
        {"s": np.str_("a")},
        {"s": {"$nin": [Word("b")]}},
        {"s": {"$lte": Word("a")}},
    ],
    ids=repr,
)
def test_a_filter_takes_scalars_of_subclasses(rows: VectorIndex, filter: dict[str, Any]) -> None:
    assert [hit.id for hit in rows.query_vectors("i", [1, 1], filter=filter)] == ["one"]


@pytest.mark.parametrize(
    "score", [10**400, -(10**400), float("inf"), float("nan"), "1", True], ids=lambda each: f"{each!r:.9}"
)
def test_a_threshold_is_a_finite_number(rows: VectorIndex, score: Any) -> None:
    with pytest.raises(InvalidRequest):
        rows.query_vectors("i", [1, 1], min_score=score)
