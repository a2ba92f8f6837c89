"""A data set of vectors near a few centres, with rows marked for filters: made from a seed, the same everywhere."""

from __future__ import annotations

import hashlib
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..spec.vectors import scores

Array = NDArray[np.float32]
Relation = Literal["independent", "against"]

CENTRES = 64
SPREAD = 1.0
"""The length of what is added to a centre, whose own length is 1."""

PERMILLES = (100, 10, 1)
"""Selectivities, in thousandths of the rows."""

YES = "yes"


class Filter(msgspec.Struct, frozen=True):
    """Which rows a query may find.

    permille: how many of a thousand rows. relation: whether these are any rows, or those farthest from where the
    queries are.
    """

    relation: Relation = "independent"
    permille: int = 1_000

    @property
    def label(self) -> str:
        """How a table names it."""
        return (
            "none"
            if self.permille == 1_000
            else f"{self.permille / 10:g} %" + (" against" if self.relation == "against" else "")
        )

    @property
    def key(self) -> str:
        """The key that the matching rows' metadata have."""
        return f"{self.relation}_{self.permille}"

    @property
    def condition(self) -> dict[str, Any] | None:
        """As the filter of a query."""
        return None if self.permille == 1_000 else {self.key: YES}


NO_FILTER = Filter()
FILTERS = (
    NO_FILTER,
    *(Filter("independent", permille) for permille in PERMILLES),
    *(Filter("against", permille) for permille in PERMILLES),
)


class Mixture(msgspec.Struct, frozen=True):
    """Rows of length 1, shape (n, dimension), the rows that each filter leaves, and queries held out of the rows.

    `queries` are near any centre, `directed` all near the first, from which the rows `against` are farthest.
    """

    seed: int
    rows: Array
    queries: Array
    directed: Array
    matching: dict[str, NDArray[np.bool_]]

    def ids(self) -> list[str]:
        """A row's id, of equal length for all."""
        return [f"v{number:06}" for number in range(len(self.rows))]

    def metadata(self, row: int) -> dict[str, str]:
        """What a row is marked with, one key for each filter that leaves it."""
        return {key: YES for key, mask in self.matching.items() if mask[row]}

    def mask(self, filter: Filter) -> NDArray[np.bool_]:
        """Which rows a filter leaves."""
        return self.matching[filter.key] if filter.condition else np.ones(len(self.rows), np.bool_)

    def asked(self, filter: Filter) -> Array:
        """The queries that go with a filter."""
        return self.directed if filter.relation == "against" else self.queries

    def hash(self) -> str:
        """Of all that is asked and stored."""
        digest = hashlib.sha256()
        for array in (self.rows, self.queries, self.directed, *self.matching.values()):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def make(count: int, dimension: int, queries: int, seed: int) -> Mixture:
    """A data set of so many rows, and so many queries of either kind."""
    random = np.random.default_rng(seed)
    centres = _unit(random.standard_normal((CENTRES, dimension)))

    def near(chosen: NDArray[np.int64]) -> Array:
        noise = random.standard_normal((len(chosen), dimension)) * (SPREAD / np.sqrt(dimension))
        return _unit(centres[chosen] + noise).astype(np.float32)

    rows = near(random.integers(CENTRES, size=count))
    asked = near(random.integers(CENTRES, size=queries))
    directed = near(np.zeros(queries, np.int64))
    matching: dict[str, NDArray[np.bool_]] = {}
    farthest = np.argsort(scores("cosine", centres[0].astype(np.float32), rows), kind="stable")
    anyhow = random.permutation(count)
    for filter in FILTERS:
        if filter.condition:
            order = farthest if filter.relation == "against" else anyhow
            mask = np.zeros(count, np.bool_)
            mask[order[: max(1, count * filter.permille // 1_000)]] = True
            matching[filter.key] = mask
    return Mixture(seed, rows, asked, directed, matching)


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
