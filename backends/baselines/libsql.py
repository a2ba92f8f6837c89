"""A filtered nearest-neighbour search in libSQL as one writes it by hand: the adapter's statements, and nothing else.

No validation, no error types, no model types; one client, cosine, filters of one equality on a string.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, cast

import libsql  # pyright: ignore[reportMissingTypeStubs]
import numpy as np
from numpy.typing import NDArray

Rows = Iterable[tuple[str, NDArray[np.float32], dict[str, str]]]
Hits = list[tuple[str, float, dict[str, str]]]

TABLES = (
    """
    create table baseline_vectors (
        row integer primary key,
        searched blob not null,
        length real not null,
        id text not null unique,
        vector blob not null,
        metadata text not null
    )
    """,
    """
    create table baseline_values (
        row integer not null,
        key text not null,
        value text not null,
        primary key (row, key)
    ) without rowid
    """,
    "create index baseline_values_search on baseline_values (key, value)",
)
FILTER = """
    row in (select row from baseline_values where key = ? and value in (select value from json_each(?)))
"""
BOUND = "length * (? - vector_distance_cos(searched, ?))"
SPARE = 8


class LibsqlBaseline:
    """A table of vectors in a database file, made by load()."""

    def __init__(self, path: str) -> None:
        self._connection: Any = cast(Any, libsql).connect(path, isolation_level=None)
        self._connection.execute("pragma journal_mode = wal").fetchall()

    def load(self, rows: Rows) -> None:
        """Make the tables and fill them."""
        given = [(i, id, vector, metadata) for i, (id, vector, metadata) in enumerate(rows)]
        run = self._connection
        run.execute("begin immediate")
        for statement in TABLES:
            run.execute(statement)
        run.executemany(
            "insert into baseline_vectors values (?, ?, 1.0, ?, ?, ?)",
            [(i, _unit(vector).tobytes(), id, vector.tobytes(), json.dumps(meta)) for i, id, vector, meta in given],
        )
        run.executemany(
            "insert into baseline_values values (?, ?, ?)",
            [(i, key, "s" + value) for i, _, _, meta in given for key, value in meta.items()],
        )
        run.execute("commit")

    def query(self, vector: NDArray[np.float32], top_k: int, equals: tuple[str, str] | None = None) -> Hits:
        """The top_k nearest by cosine among the rows whose metadata has this key and value."""
        run = self._connection
        where, values = ("true", []) if equals is None else (FILTER, [equals[0], json.dumps(["s" + equals[1]])])
        error = (2 * len(vector) + 8) * 2.0**-24  # of the engine's float32
        bound = [1.0 + error, _unit(vector).tobytes()]
        run.execute("begin")
        found = run.execute(
            f"select row, {BOUND} as bound, length from baseline_vectors where {where} order by bound desc limit ?",
            [*bound, *values, top_k + SPARE],
        ).fetchall()
        if len(found) == top_k + SPARE and found[-1][1] >= (worst := found[top_k - 1][1] - 2 * error):
            found = run.execute(
                f"select row from baseline_vectors where {where} and {BOUND} >= ?", [*values, *bound, worst]
            ).fetchall()
        rows = run.execute(
            """
            select id, metadata, vector from baseline_vectors where row in (select value from json_each(?))
            """,
            [json.dumps([row[0] for row in found])],
        ).fetchall()
        run.execute("rollback")
        stored = np.frombuffer(b"".join(row[2] for row in rows), dtype=np.float32).reshape(-1, len(vector))
        exact, query = stored.astype(np.float64), vector.astype(np.float64)
        scores = exact @ query / (np.linalg.norm(exact, axis=1) * np.linalg.norm(query))
        ranked = sorted(zip(-scores, rows, strict=True), key=lambda hit: (hit[0], hit[1][0]))
        return [(id, -float(negated), json.loads(meta)) for negated, (id, meta, _) in ranked[:top_k]]

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    exact = vector.astype(np.float64)
    return (exact / np.linalg.norm(exact)).astype(np.float32)
