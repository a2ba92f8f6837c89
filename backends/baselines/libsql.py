"""A filtered nearest-neighbour search in libSQL as one writes it by hand: the adapter's statements, and nothing else.

It reads the tables that the adapter has filled, the index's own: no validation, no error types, no model types; one
client, cosine, filters of one equality on a string.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import libsql  # pyright: ignore[reportMissingTypeStubs]
import numpy as np
from numpy.typing import NDArray

Hits = list[tuple[str, float, dict[str, Any]]]

FILTER = """
    row in (select row from {values} where key = ? and value in (select value from json_each(?)))
"""
BOUND = "length * (? - vector_distance_cos(searched, ?))"
SPARE = 8


class Baseline:
    """One index of a namespace in a database file, opened for queries."""

    def __init__(self, url: str, namespace: str, index: str) -> None:
        self._connection: Any = cast(Any, libsql).connect(url, isolation_level=None)
        [(number,)] = self._connection.execute(
            f"select number from {namespace}_indexes where name = ?", [index]
        ).fetchall()
        self._vectors = f"{namespace}_vectors_{number}"
        self._filter = FILTER.format(values=f"{namespace}_vector_values_{number}")
        self._registered = f"select number, dimension, metric, type from {namespace}_indexes where name = ?"
        self._name = index

    def query(
        self, vector: NDArray[np.float32], top_k: int, filter: Mapping[str, Any] | None = None, *, exact: bool = False
    ) -> Hits:
        """See baselines.Baseline. Every query is exact."""
        run, table = self._connection, self._vectors
        where, values = "true", list[object]()
        if filter is not None:
            [(key, value)] = filter.items()
            where, values = self._filter, [key, json.dumps(["s" + value])]
        error = (2 * len(vector) + 8) * 2.0**-24  # of the engine's float32
        bound = [1.0 + error, _unit(vector).tobytes()]
        run.execute("begin")
        run.execute(self._registered, [self._name]).fetchall()
        found = run.execute(
            f"select row, {BOUND} as bound, length from {table} where {where} order by bound desc limit ?",
            [*bound, *values, top_k + SPARE],
        ).fetchall()
        if len(found) == top_k + SPARE and found[-1][1] >= (worst := found[top_k - 1][1] - 2 * error):
            found = run.execute(
                f"select row from {table} where {where} and {BOUND} >= ?", [*values, *bound, worst]
            ).fetchall()
        rows = run.execute(
            f"select id, metadata, vector from {table} where row in (select value from json_each(?))",
            [json.dumps([row[0] for row in found])],
        ).fetchall()
        run.execute("rollback")
        stored = np.frombuffer(b"".join(row[2] for row in rows), dtype=np.float32).reshape(-1, len(vector))
        components, query = stored.astype(np.float64), vector.astype(np.float64)
        scores = components @ query / (np.linalg.norm(components, axis=1) * np.linalg.norm(query))
        ranked = sorted(zip(-scores, rows, strict=True), key=lambda hit: (hit[0], hit[1][0]))
        return [(id, -float(negated), json.loads(meta)) for negated, (id, meta, _) in ranked[:top_k]]

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    exact = vector.astype(np.float64)
    return (exact / np.linalg.norm(exact)).astype(np.float32)
