"""Filters of benchmarks: which rows a query may find, how many, and where they lie as seen from the queries."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..spec.vectors import Metric, Vector, Vectors, scores

Relation = Literal["independent", "aligned", "against"]
RELATIONS: tuple[Relation, ...] = ("independent", "aligned", "against")

ALL = 1_000
PERMILLES = (500, 100, 10, 1)
"""Selectivities, in thousandths of the rows."""

YES = "yes"

CHUNK = 8_192
"""Rows that are in float64 at a time."""


class Filter(msgspec.Struct, frozen=True):
    """Which rows a query may find.

    permille: how many of a thousand rows, at least one row. relation: whether these are any rows, those nearest to
    where the queries are (aligned), or those farthest from it (against).
    """

    relation: Relation = "independent"
    permille: int = ALL

    @property
    def label(self) -> str:
        """How a table names it."""
        if self.permille == ALL:
            return "none"
        return f"{self.permille / 10:g} %" + ("" if self.relation == "independent" else f" {self.relation}")

    @property
    def key(self) -> str:
        """The key that the matching rows' metadata have."""
        return f"{self.relation}_{self.permille}"

    @property
    def condition(self) -> dict[str, Any] | None:
        """As the filter of a query."""
        return None if self.permille == ALL else {self.key: YES}


NO_FILTER = Filter()
MARKED = tuple(Filter(relation, permille) for relation in RELATIONS for permille in PERMILLES)
"""Those that leave out rows: a row's metadata say which of them leave it."""

FILTERS = (NO_FILTER, *MARKED)


def closeness(metric: Metric, point: Vector, rows: Vectors) -> NDArray[np.float64]:
    """The true score of each row, a part of them at a time, shape (n,)."""
    starts = range(0, len(rows), CHUNK)
    return np.concatenate([scores(metric, point, rows[start : start + CHUNK]) for start in starts])


def mark(marks: NDArray[np.bool_], closeness: NDArray[np.float64], seed: int) -> None:
    """Fill `marks`, shape (MARKED, n): which rows each filter leaves.

    closeness: of each row to where the directed queries are, larger is closer, shape (n,). Rows as close as each
    other count in their order.
    """
    count = len(closeness)
    nearest = np.argsort(-closeness, kind="stable")
    orders = {
        "independent": np.random.default_rng([seed, count]).permutation(count),
        "aligned": nearest,
        "against": nearest[::-1],
    }
    marks[:] = False
    for place, filter in enumerate(MARKED):
        marks[place, orders[filter.relation][: max(1, count * filter.permille // ALL)]] = True
