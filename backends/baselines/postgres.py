"""What the PostgreSQL adapter's queries cost without the adapter: its statements, sent by plain client code.

It reads a table that the adapter has filled, takes the first rows of what comes back, and checks nothing: no
arguments, no filter algebra, no scores in float64, no lost or renamed index.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import pq
from psycopg.adapt import Dumper

FEW, SPARE = 2_500, 16
OPERATORS = {"cosine": "<=>", "euclidean": "<->", "dotproduct": "<#>"}


class _Vector(bytes):
    """A vector in pgvector's binary format."""


class _VectorDumper(Dumper):
    format = pq.Format.BINARY

    def dump(self, obj: _Vector) -> _Vector:
        return obj


class Baseline:
    """One vector index of a namespace, for queries with no filter or one of equality."""

    def __init__(self, url: str, namespace: str, index: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.adapters.register_dumper(_Vector, _VectorDumper)
        self._connection.execute(
            "SELECT set_config('search_path', %s, false), set_config('hnsw.iterative_scan', 'relaxed_order', false),"
            " set_config('ivfflat.iterative_scan', 'relaxed_order', false),"
            " set_config('hnsw.scan_mem_multiplier', '4', false)",
            (f"memassay_{namespace}",),
        )
        found = self._connection.execute(
            "SELECT relation, metric, type, effort FROM indexes WHERE name = %s", (index,)
        ).fetchone()
        assert found is not None
        self._table, metric, self._type, self._effort = found
        self._operator = f"OPERATOR(public.{OPERATORS[metric]})"
        self._select = (
            f"SELECT (SELECT effort FROM indexes WHERE relation = '{self._table}'), t.id, t.metadata,"
            " public.vector_send(t.embedding),"
        )
        if self._effort:
            name = "ivfflat.probes" if self._type == "ivfflat" else "hnsw.ef_search"
            self._connection.execute("SELECT set_config(%s, %s, false)", (name, str(self._effort)))

    def query(
        self, vector: NDArray[np.float32], top_k: int, filter: Mapping[str, Any] | None = None, *, exact: bool = False
    ) -> list[tuple[str, Any]]:
        """See baselines.Baseline. By the statements that the adapter would send."""
        k = top_k
        values: dict[str, Any] = {
            "query": _Vector(len(vector).to_bytes(2, "big") + b"\0\0" + vector.astype(">f4").tobytes())
        }
        where = "true"
        if filter is not None:
            values["f0"] = json.dumps(dict(filter))
            where = "t.facets @> %(f0)s::jsonb"
        distance = f"t.embedding {self._operator} %(query)s::public.vector"
        if not exact and self._effort and filter is not None:
            rows = self._rows(
                f"WITH few AS MATERIALIZED (SELECT t.id, ({distance}) + 0 AS bound FROM {self._table} AS t"
                f"  WHERE {where} LIMIT {FEW + 1}) {self._select} near.bound, (SELECT count(*) FROM few) FROM"
                f" (SELECT * FROM few ORDER BY bound LIMIT %(limit)s) AS near JOIN {self._table} AS t USING (id)",
                values | {"limit": k + SPARE},
            )
            if not rows or rows[0][-1] <= FEW:
                return _hits(rows, k)
        if not exact and self._effort:
            rows = self._rows(
                f"{self._select} t.near FROM (SELECT t.*, {distance} AS near FROM {self._table} AS t  WHERE {where}"
                " ORDER BY near LIMIT %(limit)s) AS t",
                values | {"limit": 2 * k + SPARE},
            )
            if len(rows) >= k:
                return _hits(rows, k)  # relaxed: the rows do not come in order
        rows = self._rows(
            f"{self._select} near.bound FROM (SELECT t.id, ({distance}) + 0 AS bound FROM {self._table} AS t "
            f" WHERE {where} ORDER BY bound LIMIT %(limit)s) AS near JOIN {self._table} AS t USING (id)",
            values | {"limit": k + SPARE},
        )
        return _hits(rows, k)

    def _rows(self, statement: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement.encode(), values, prepare=False, binary=True).fetchall()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _hits(rows: list[tuple[Any, ...]], k: int) -> list[tuple[str, Any]]:
    return [(row[1], json.loads(row[2])) for row in sorted(rows, key=lambda row: row[4])[:k]]
