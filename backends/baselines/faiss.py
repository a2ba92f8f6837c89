"""Filtered neighbours as one would write them by hand on faiss and sqlite3: the same statements, nothing checked.

It reads the file that the adapter has written, once, and knows one cosine index of it; it neither replays changes nor
checks, re-ranks or completes an answer. How broadly it searches an approximate index was found beforehand, as by hand.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import faiss  # pyright: ignore[reportMissingTypeStubs]
import numpy as np
from numpy.typing import NDArray

_faiss = cast(Any, faiss)

SPARE = 16
CHUNK = 4_096
SCANNED = 10_000
"""Up to so many candidates a scan is as fast."""

SAMPLE, ENOUGH = 40, 0.98
KINDS: dict[type, str] = {str: "string", bool: "bool", int: "number", float: "number"}


class Baseline:
    """One index of a namespace in a directory, opened for queries."""

    def __init__(self, url: str, namespace: str, index: str) -> None:
        _faiss.omp_set_num_threads(1)  # one query gains nothing by threads
        self._prefix = namespace
        self._connection = sqlite3.connect(Path(url) / "vectors.db", isolation_level=None)
        self._number, dimension, kind, m, ef_construction, lists = self._connection.execute(
            f"select number, dimension, type, m, ef_construction, lists from {namespace}_indexes where name = ?",
            [index],
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
        self._ann: Any = None
        self._parameters: Any = None
        if kind == "hnsw" and len(slots) > SCANNED:
            self._ann = _faiss.IndexHNSWFlat(dimension, m, _faiss.METRIC_INNER_PRODUCT)
            self._ann.hnsw.efConstruction = ef_construction
        elif kind == "ivfflat" and len(slots) > SCANNED:
            self._ann = _faiss.IndexIVFFlat(
                _faiss.IndexFlatIP(dimension), dimension, lists, _faiss.METRIC_INNER_PRODUCT
            )
        if self._ann is not None:
            self._fill(kind)

    def _fill(self, kind: str) -> None:
        """Build the approximate index, and find how broadly it has to be searched."""
        rows = self._index.reconstruct_n(0, len(self._slots))
        if not self._ann.is_trained:
            self._ann.train(rows)
        self._ann.add(rows)
        sample = rows[:: max(1, len(rows) // SAMPLE)][:SAMPLE]
        truth = self._index.search(sample, 11)[1]
        # From where the adapter begins, so that both search as broadly and find as much.
        for breadth in (64, 128, 256, 512, 1024) if kind == "hnsw" else (1, 2, 4, 8, 16, 32, 64):
            self._parameters = (
                _faiss.SearchParametersHNSW(efSearch=breadth)
                if kind == "hnsw"
                else _faiss.SearchParametersIVF(nprobe=breadth)
            )
            found = self._ann.search(sample, 11, params=self._parameters)[1]
            if np.mean([len(np.intersect1d(a, b)) / 11 for a, b in zip(found, truth, strict=True)]) >= ENOUGH:
                return
        self._ann = None

    def query(
        self, vector: NDArray[np.float32], top_k: int, filter: Mapping[str, Any] | None = None, *, exact: bool = False
    ) -> list[tuple[str, float, dict[str, Any]]]:
        """See baselines.Baseline: id, cosine and metadata."""
        prefix, execute = self._prefix, self._connection.execute
        execute("begin")
        execute(f"select * from {prefix}_indexes where number = ?", [self._number]).fetchall()
        mask = np.ones(len(self._slots), np.bool_)
        if filter is not None:
            [(key, value)] = filter.items()
            found = execute(
                f"select slot from {prefix}_scalars where number = ? and key = ? and kind = ? and value in (?)",
                [self._number, key, KINDS[type(value)], value],
            ).fetchall()
            mask[:] = False
            mask[np.searchsorted(self._slots, np.array([row[0] for row in found], np.int64))] = True
        wanted = top_k + SPARE
        query = np.array(vector[None], np.float32)
        query /= np.linalg.norm(query)
        if self._ann is not None and not exact and np.count_nonzero(mask) > SCANNED:
            values, positions = self._ann.search(query, wanted, params=self._parameters)
        else:
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
