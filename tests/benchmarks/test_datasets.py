"""Data sets by name: what is in them, that they are the same everywhere, and what becomes of damaged ones."""

from __future__ import annotations

import numpy as np
from memassay.benchmarks.filters import Filter
from memassay.benchmarks.mixture import make
from memassay.spec.vectors import scores


def test_rows_lie_where_the_relation_of_a_filter_says() -> None:
    data = make(600, 64, 20, 7)
    for query in data.directed:
        near = scores("cosine", query, data.rows)
        assert near[data.mask(Filter("against", 10))].max() < np.median(near)
        assert near[data.mask(Filter("aligned", 10))].min() > np.median(near)
        assert (
            near[data.mask(Filter("independent", 100))].min()
            < np.median(near)
            < near[data.mask(Filter("independent", 100))].max()
        )
