"""Filtered neighbours as one would write them by hand on faiss and sqlite3: the same statements, nothing checked.

What the adapter's latency is measured against. It reads a file that the adapter has written, once, and
knows one cosine index of it; it neither replays changes nor checks, re-ranks or completes an answer.
"""

from __future__ import annotations

import json
import sqlite3
from typing import Any, cast

import faiss  # pyright: ignore[reportMissingTypeStubs]
import numpy as np

_faiss = cast(Any, faiss)

SPARE = 16
CHUNK = 4_096


class Baseline:
    """One index of a namespace, opened for queries."""

    def __init__(self, path: str, namespace: str, name: str) -> None:
        _faiss.omp_set_num_threads(1)  # one query gains nothing by threads
        self._prefix = namespace
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._number, dimension = self._connection.execute(
            f"select number, dimension from {namespace}_indexes where name = ?", [name]
        ).fetchone()
        self._index = _faiss.IndexFlatIP(dimension)
        slots: list[int] = []
        # In parts, as the adapter does: where the rows come to lie in memory makes a third of the time of a scan.
        stored = self._connection.execute(
            f"select slot, vector from {namespace}_vectors where number = ? order by slot", [self._number]
        )
        while rows := stored.fetchmany(CHUNK):
            vectors = np.frombuffer(b"".join(row[1] for row in rows), np.float32).reshape(len(rows), dimension)
            self._index.add((vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32))
            slots += [row[0] for row in rows]
        self._slots = np.array(slots)

    def query(
        self, vector: list[float], top_k: int, equals: tuple[str, str, object] | None = None
    ) -> list[tuple[str, float, dict[str, Any]]]:
        """id, cosine and metadata of the top_k rows that hold `equals` (key, kind, value), closest first."""
        prefix, execute = self._prefix, self._connection.execute
        execute("begin")
        execute(f"select * from {prefix}_indexes where number = ?", [self._number]).fetchall()
        mask = np.ones(len(self._slots), np.bool_)
        if equals is not None:
            found = execute(
                f"select slot from {prefix}_scalars where number = ? and key = ? and kind = ? and value in (?)",
                [self._number, *equals],
            ).fetchall()
            mask[:] = False
            mask[np.searchsorted(self._slots, np.array([row[0] for row in found], np.int64))] = True
        wanted = top_k + SPARE
        query = np.array([vector], np.float32)
        query /= np.linalg.norm(query)
        selector = _faiss.IDSelectorBitmap(np.packbits(mask, bitorder="little"))
        values, positions = self._index.search(query, wanted, params=_faiss.SearchParameters(sel=selector))
        slots = self._slots[positions[0][positions[0] >= 0]].tolist()
        score = dict(zip(slots, values[0].tolist(), strict=False))
        rows = execute(
            f"select slot, id, metadata, vector from {prefix}_vectors where slot in (select value from json_each(?))",
            [json.dumps(slots)],
        ).fetchall()
        execute("rollback")
        rows.sort(key=lambda row: -score[row[0]])
        return [(row[1], score[row[0]], json.loads(row[2])) for row in rows[:top_k]]

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()
