"""Vectors in FAISS over SQLite: the file is the truth, the FAISS index in memory a cache replayed from its log.

SQLite holds the vectors, their metadata, a registry of index names, and the order in which all of it
changed. Before a query a client reads what changed since its last one, its own changes and those of other
clients alike; a process that dies loses nothing, as FAISS never holds what the file does not.
Messages are kept by libSQL in a second file, and composed with this index (composed.py).
"""

from __future__ import annotations

import math
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, cast

import faiss  # pyright: ignore[reportMissingTypeStubs]
import msgspec
import numpy as np
from numpy.typing import NDArray

from ..spec.capabilities import Capabilities
from ..spec.errors import AlreadyExists, ConfigurationError, IndexNotFound, InvalidRequest, answered
from ..spec.filters import Equals, kind_of
from ..spec.index_requests import (
    VectorChange,
    VectorQuery,
    parse_create_index,
    parse_delete_vectors,
    parse_query,
    parse_update_vector,
    parse_upsert,
)
from ..spec.operators import Among, And, Node, Or, Range, constant
from ..spec.protocols import Memory, Runtime
from ..spec.requests import parse_ids
from ..spec.types import IndexConfig, IndexDescription, MemoryConfig, Metadata, NewVector, VectorHit, VectorRow
from ..spec.values import identifier
from ..spec.vectors import Metric, Vector, Vectors, scores
from .composed import Half, compose, drop, semantic_capabilities
from .libsql import LibsqlBackend
from .provision import Provisioners
from .provision.faiss import MEMORY, PROVISIONERS, folder_of

# The schema. In all SQL of this file `$` stands for the namespace and an underscore.
#
# - `$counter` gives every change of the namespace its own number. A vector's `slot` is the number of the
#   change that wrote it, so "what is new since n" is `slot > n`; a new version of a vector takes a new slot.
# - `$removals` says which slots ceased to exist, and when. Only the newest are kept: a cache that is older
#   than that is read anew.
# - `$indexes.changed` is the number of the index's last change of vectors: a cache that knows it is fresh.
# - `$scalars` holds the top-level scalars of the metadata, which itself is opaque JSON. `value` has no
#   affinity: numbers are REAL, strings TEXT, booleans 0 or 1, null 0; `kind` tells them apart. Strings
#   compare by their UTF-8 bytes (BINARY, the default), which is code point order.

SCHEMA = (
    "create table if not exists $counter (last integer not null)",
    "insert into $counter select 0 where not exists (select 1 from $counter)",
    """
    create table if not exists $indexes (
        number integer primary key autoincrement,
        name text not null unique,
        dimension integer not null,
        metric text not null,
        type text not null,
        m integer,
        ef_construction integer,
        lists integer,
        changed integer not null
    )
    """,
    """
    create table if not exists $vectors (
        slot integer primary key,
        number integer not null,
        id text not null,
        metadata text not null,
        vector blob not null,
        unique (number, id)
    )
    """,
    "create index if not exists $vectors_slots on $vectors (number, slot)",
    """
    create table if not exists $scalars (
        number integer not null,
        key text not null,
        kind text not null,
        value not null,
        slot integer not null,
        primary key (number, key, kind, value, slot)
    ) without rowid
    """,
    "create table if not exists $removals (change integer primary key, number integer not null, slot integer not null)",
    "create index if not exists $removals_of on $removals (number, change)",
)
TABLES = ("$counter", "$indexes", "$vectors", "$scalars", "$removals")
NAMESPACE = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)

REGISTERED = "number, name, dimension, metric, type, m, ef_construction, lists, changed"
LISTED = "(select value from json_each(?))"
"""Any number of ids or slots, bound as one JSON array."""

BUSY_TIMEOUT = 60.0
"""Seconds a call waits for the locks of others; Python's SQLite lets go of the GIL meanwhile."""

KEPT_REMOVALS = 100_000
CHUNK = 4_096

SPARE = 16
"""Rows asked of FAISS beyond top_k, so that rounding to float32 does not decide who is in."""

SCANNED = 10_000
"""Up to so many candidates are scanned in full even by an approximate index, which would hardly be faster."""

REMAINS = 1_000
"""Dead rows that are always put up with; more, and more than the live ones, are left out of a new cache."""

TUNING = 40
TUNED_RECALL = 0.98
NARROWEST = 64
TRAINING = 39
"""Rows a list that FAISS wants for training an IVF index."""

Slots = NDArray[np.int64]
Mask = NDArray[np.bool_]
Row = tuple[Any, ...]

_faiss = cast(Any, faiss)


class FaissBackend:
    """A directory with files of messages (libSQL), of vectors (SQLite) and a lock; or each client's own in memory."""

    name = "faiss"
    provisioners: ClassVar[Provisioners] = PROVISIONERS

    def capabilities(self, url: str) -> Capabilities:
        """See protocols.Backend."""
        return semantic_capabilities(*self._halves(url))

    def version(self, url: str) -> str:
        """See protocols.Backend."""
        return f"{self.index_version(url)}, messages in {LibsqlBackend().version('')}"

    def index_version(self, url: str) -> str:
        """The same of the vectors alone, for who keeps the messages elsewhere."""
        return f"faiss {_faiss.__version__} (SQLite {sqlite3.sqlite_version})"

    def open_memory(self, url: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> Memory:
        """See protocols.Backend."""
        halves, folder = self._halves(url, create=True), _folder(url)
        return compose(*halves, namespace, runtime, config, lock=None if folder is None else folder / "writers.lock")

    def open_index(self, url: str, namespace: str, runtime: Runtime) -> FaissIndex:
        """See protocols.Backend."""
        index = FaissIndex(_database(url, create=True), namespace, runtime, INDEX_CAPABILITIES)
        try:
            index.create_tables()
        except BaseException:
            index.close()
            raise
        return index

    def drop_namespace(self, url: str, namespace: str) -> None:
        """See protocols.Backend."""
        drop(*self._halves(url), namespace)

    def _halves(self, url: str, *, create: bool = False) -> tuple[Half, Half]:
        """Where the messages are, and where their vectors."""
        folder = _folder(url, create=create)
        messages = MEMORY if folder is None else str(folder / "messages.db")
        return Half(LibsqlBackend(), messages), Half(_Vectors(), url)


class _Vectors:
    """The vector half of FaissBackend alone."""

    name = "faiss"

    def capabilities(self, url: str) -> Capabilities:
        kept = url != MEMORY
        return msgspec.structs.replace(INDEX_CAPABILITIES, durable=kept, concurrent_clients=kept)

    def version(self, url: str) -> str:
        return FaissBackend().index_version(url)

    def open_memory(self, url: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> Memory:
        raise NotImplementedError

    def open_index(self, url: str, namespace: str, runtime: Runtime) -> FaissIndex:
        return FaissBackend().open_index(url, namespace, runtime)

    def drop_namespace(self, url: str, namespace: str) -> None:
        path = _database(url)
        if path == MEMORY or not Path(path).exists():
            return
        index = FaissIndex(path, namespace, Runtime(), INDEX_CAPABILITIES)
        try:
            index.drop_tables()
        finally:
            index.close()


INDEX_CAPABILITIES = Capabilities(storage=False, vectors=True, index_types=("flat", "hnsw", "ivfflat"))


class Registered(msgspec.Struct, frozen=True):
    """A row of `$indexes`."""

    number: int
    name: str
    dimension: int
    metric: Metric
    type: str
    m: int | None
    ef_construction: int | None
    lists: int | None
    changed: int


class FaissIndex:
    """One connection to one namespace's indices; implements protocols.VectorIndex. Threads take turns on it."""

    def __init__(self, path: str, namespace: str, runtime: Runtime, capabilities: Capabilities) -> None:
        if not NAMESPACE.fullmatch(namespace):
            raise InvalidRequest(f"namespace is {namespace!r}", hint="use [a-z][a-z0-9_]{0,39}")
        self._runtime = runtime
        self._capabilities = capabilities
        self._prefix = namespace + "_"
        self._turn = threading.RLock()
        self._caches: dict[str, Cache] = {}
        self._connection: sqlite3.Connection | None = sqlite3.connect(
            path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False
        )

    def create_tables(self) -> None:
        """Create the namespace's tables where they are absent."""
        # A write-ahead log lets readers go on while another client writes. `synchronous` stays at SQLite's
        # default, FULL: what a call has committed is on disk when it returns (DUR-1).
        _patiently(lambda: self._rows("pragma journal_mode = wal"))
        with self._writing():
            for statement in SCHEMA:
                self._execute(statement)

    def drop_tables(self) -> None:
        """Drop the namespace's tables, their indexes with them."""
        with self._writing():
            for table in TABLES:
                self._execute(f"drop table if exists {table}")

    def close(self) -> None:
        """See protocols.VectorIndex."""
        with self._turn:
            self._caches.clear()
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    # Indices

    def create_index(
        self, name: str, *, dimension: int, metric: str = "cosine", config: IndexConfig | None = None
    ) -> None:
        """See protocols.VectorIndex."""
        new = parse_create_index(name, dimension, metric, config, self._capabilities)
        with self._writing():
            old = self._registered(new.name)
            if old is None:
                kind = new.config
                self._execute(
                    """
                    insert into $indexes (name, dimension, metric, type, m, ef_construction, lists, changed)
                    values (?, ?, ?, ?, ?, ?, ?, 0)
                    """,
                    (new.name, new.dimension, new.metric, kind.type, kind.m, kind.ef_construction, kind.lists),
                )
            elif (old.dimension, old.metric) != (new.dimension, new.metric):
                raise AlreadyExists(
                    f"index {old.name!r} has {old.dimension} dimensions and the metric {old.metric}", clause="VEC-1"
                )

    def describe_index(self, name: str) -> IndexDescription:
        """See protocols.VectorIndex. The configuration is read off the FAISS index."""
        with self._reading():
            index = self._find(name)
            [(count,)] = self._rows("select count(*) from $vectors where number = ?", [index.number])
            return IndexDescription(name, index.dimension, index.metric, self._cached(index).config(), count)

    def list_indexes(self) -> tuple[str, ...]:
        """See protocols.VectorIndex."""
        with self._reading():
            return tuple(name for (name,) in self._rows("select name from $indexes order by name"))

    def drop_index(self, name: str) -> None:
        """See protocols.VectorIndex."""
        with self._writing():
            index = self._find(name)
            for table in ("$scalars", "$removals", "$vectors", "$indexes"):
                self._execute(f"delete from {table} where number = ?", [index.number])

    # Vectors

    def upsert_vectors(self, name: str, vectors: Sequence[NewVector]) -> int:
        """See protocols.VectorIndex."""
        with self._writing():
            index = self._find(name)
            batch = parse_upsert(vectors, index.dimension, index.metric)
            self._remove(index, self._stored(index, [row.id for row in batch]))
            self._insert(index, batch)
            return len(batch)

    def get_vectors(self, name: str, ids: Sequence[str]) -> tuple[VectorRow, ...]:
        """See protocols.VectorIndex."""
        with self._reading():
            index = self._find(name)
            named = parse_ids(ids, clause="VEC-2")
            found = {row[1]: row for row in self._stored(index, named, "vector")}
        return tuple(
            VectorRow(id, tuple(np.frombuffer(found[id][3], np.float32).tolist()), msgspec.json.decode(found[id][2]))
            for id in named
            if id in found
        )

    def update_vector(
        self,
        name: str,
        id: str,
        *,
        vector: Sequence[float] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> bool:
        """See protocols.VectorIndex."""
        with self._writing():
            index = self._find(name)
            change = parse_update_vector(id, vector, metadata, index.dimension, index.metric)
            stored = self._stored(index, [change.id])
            if not stored:
                return False
            [(slot, _, text)] = stored
            old: Metadata = msgspec.json.decode(text)
            if change.vector is not None:
                self._remove(index, stored)
                self._insert(
                    index, [VectorChange(change.id, change.vector, old if change.metadata is None else change.metadata)]
                )
            elif change.metadata is not None:  # the vector stays where it is, so no cache has to know
                self._forget_scalars(index, [(slot, old)])
                self._execute("update $vectors set metadata = ? where slot = ?", [_json(change.metadata), slot])
                self._write_scalars(index, [(slot, change.metadata)])
            return True

    def delete_vectors(
        self, name: str, *, ids: Sequence[str] | None = None, filter: Mapping[str, Any] | None = None
    ) -> int:
        """See protocols.VectorIndex."""
        with self._writing():
            index = self._find(name)
            asked = parse_delete_vectors(ids, filter)
            if isinstance(asked, tuple):
                gone = self._stored(index, asked)
            else:
                slots = _column(self._rows("select slot from $vectors where number = ? order by slot", [index.number]))
                chosen = slots[self._matching(index, asked, slots)].tolist()
                gone = self._rows(f"select slot, id, metadata from $vectors where slot in {LISTED}", [_json(chosen)])
            self._remove(index, gone)
            return len(gone)

    def query_vectors(
        self,
        name: str,
        vector: Sequence[float],
        *,
        top_k: int = 10,
        filter: Mapping[str, Any] | None = None,
        min_score: float | None = None,
        exact: bool = False,
    ) -> tuple[VectorHit, ...]:
        """See protocols.VectorIndex.

        The filter is answered by SQLite and handed to FAISS as a bitmap of positions; FAISS selects, and the
        scores are computed from the stored vectors of what it selected.
        """
        with self._reading():
            index = self._find(name)
            asked = parse_query(
                vector, index.dimension, index.metric, top_k=top_k, filter=filter, min_score=min_score, exact=exact
            )
            cache = self._cached(index)
            candidates = cache.live
            if constant(asked.filter) is not True:
                candidates = candidates & self._matching(index, asked.filter, cache.slots)
            with _one_thread():
                slots = cache.closest(asked, candidates)
            return self._scored(index, asked, slots)

    def _scored(self, index: Registered, asked: VectorQuery, slots: Slots) -> tuple[VectorHit, ...]:
        """The best of these rows, by their true scores."""
        if not len(slots):
            return ()
        rows = self._rows(f"select id, metadata, vector from $vectors where slot in {LISTED}", [_json(slots.tolist())])
        stored = np.frombuffer(b"".join([row[2] for row in rows]), np.float32).reshape(len(rows), index.dimension)
        found = scores(index.metric, asked.vector, stored).tolist()
        ranked = sorted(
            (
                (-score, row[0], row[1])
                for score, row in zip(found, rows, strict=True)
                if asked.min_score is None or score >= asked.min_score
            ),
        )
        return tuple(VectorHit(id, -score, msgspec.json.decode(text)) for score, id, text in ranked[: asked.top_k])

    # Filters

    def _matching(self, index: Registered, node: Node, slots: Slots) -> Mask:
        """Which of the slots, all live ones among them and ascending, satisfy a filter.

        Each condition is a range of the primary key of `$scalars`; what joins conditions is done on the sets,
        so that nothing is ever compared with a missing value.
        """
        match node:
            case Among():
                return self._among(index, node, slots) != node.negated
            case Range():
                if node.operand.kind not in ("number", "string"):
                    return np.zeros(len(slots), np.bool_)
                sign = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}[node.operator]
                return self._holding(index, node.key, node.operand.kind, f"{sign} ?", [_value(node.operand)], slots)
            case And():
                mask = np.ones(len(slots), np.bool_)
                for part in node.nodes:
                    mask &= self._matching(index, part, slots)
                return mask
            case Or():
                mask = np.zeros(len(slots), np.bool_)
                for part in node.nodes:
                    mask |= self._matching(index, part, slots)
                return mask

    def _among(self, index: Registered, node: Among, slots: Slots) -> Mask:
        mask = np.zeros(len(slots), np.bool_)
        by_kind: dict[str, list[object]] = {}
        for each in node.any_of:
            by_kind.setdefault(each.kind, []).append(_value(each))
        for kind, values in by_kind.items():
            marks = ", ".join("?" * len(values))
            mask |= self._holding(index, node.key, kind, f"in ({marks})", values, slots)
        return mask

    def _holding(
        self, index: Registered, key: str, kind: str, comparison: str, values: Sequence[object], slots: Slots
    ) -> Mask:
        """Which of the slots hold a value of this kind under the key that compares so."""
        found = self._rows(
            f"select slot from $scalars where number = ? and key = ? and kind = ? and value {comparison}",
            [index.number, key, kind, *values],
        )
        mask = np.zeros(len(slots), np.bool_)
        mask[np.searchsorted(slots, _column(found))] = True
        return mask

    # The cache

    def _cached(self, index: Registered) -> Cache:
        """The index in FAISS, brought up to date with what this transaction sees."""
        cache = self._caches.pop(index.name, None)  # put back when the replay has succeeded
        if cache is None or cache.number != index.number or cache.change < index.changed - KEPT_REMOVALS:
            cache = Cache(index, self._runtime.effort)
        if cache.change < index.changed:
            self._replay(index, cache)
            if cache.dead > max(REMAINS, len(cache.slots) - cache.dead):
                cache = Cache(index, self._runtime.effort)
                self._replay(index, cache)
        self._caches[index.name] = cache
        return cache

    def _replay(self, index: Registered, cache: Cache) -> None:
        since = [index.number, cache.change]
        if len(cache.slots):
            gone = self._rows("select slot from $removals where number = ? and change > ?", since)
            cache.kill(_column(gone))
        added = self._execute("select slot, vector from $vectors where number = ? and slot > ? order by slot", since)
        while rows := added.fetchmany(CHUNK):
            stored = np.frombuffer(b"".join([row[1] for row in rows]), np.float32)
            cache.add(np.array([row[0] for row in rows]), stored.reshape(len(rows), index.dimension))
        cache.change = index.changed

    # Parts of several calls

    def _registered(self, name: str) -> Registered | None:
        rows = self._rows(f"select {REGISTERED} from $indexes where name = ?", [name])
        return Registered(*rows[0]) if rows else None

    def _find(self, name: object) -> Registered:
        """The index; IndexNotFound."""
        checked = identifier(name, "name")
        found = self._registered(checked)
        if found is None:
            self._caches.pop(checked, None)
            raise IndexNotFound(f"there is no index {name!r}", clause="VEC-1")
        return found

    def _stored(self, index: Registered, ids: Sequence[str], *more: str) -> list[Row]:
        """slot, id, metadata, and more columns, of the rows of these ids."""
        columns = ", ".join(("slot", "id", "metadata", *more))
        return self._rows(
            f"select {columns} from $vectors where number = ? and id in {LISTED}", [index.number, _json(ids)]
        )

    def _next(self, index: Registered, count: int) -> int:
        """Take the numbers of this many changes of the index; the first of them."""
        self._execute("update $counter set last = last + ?", [count])
        [(last,)] = self._rows("select last from $counter")
        self._execute("update $indexes set changed = ? where number = ?", [last, index.number])
        return last - count + 1

    def _insert(self, index: Registered, batch: Sequence[VectorChange]) -> None:
        if not batch:
            return
        rows = list(enumerate(batch, self._next(index, len(batch))))
        self._execute_many(
            "insert into $vectors (slot, number, id, metadata, vector) values (?, ?, ?, ?, ?)",
            (
                (slot, index.number, row.id, _json(row.metadata), cast(Vector, row.vector).tobytes())
                for slot, row in rows
            ),
        )
        self._write_scalars(index, ((slot, cast(Metadata, row.metadata)) for slot, row in rows))

    def _remove(self, index: Registered, stored: Sequence[Row]) -> None:
        """Delete rows of which slot, id and metadata are given, and log that they went."""
        if not stored:
            return
        first = self._next(index, len(stored))
        self._forget_scalars(index, ((row[0], msgspec.json.decode(row[2])) for row in stored))
        self._execute(f"delete from $vectors where slot in {LISTED}", [_json([row[0] for row in stored])])
        self._execute_many(
            "insert into $removals (change, number, slot) values (?, ?, ?)",
            ((change, index.number, row[0]) for change, row in enumerate(stored, first)),
        )
        self._execute("delete from $removals where number = ? and change < ?", [index.number, first - KEPT_REMOVALS])

    def _write_scalars(self, index: Registered, by_slot: Iterable[tuple[int, Metadata]]) -> None:
        self._execute_many(
            "insert into $scalars (number, key, kind, value, slot) values (?, ?, ?, ?, ?)", _scalars(index, by_slot)
        )

    def _forget_scalars(self, index: Registered, by_slot: Iterable[tuple[int, Metadata]]) -> None:
        self._execute_many(
            "delete from $scalars where number = ? and key = ? and kind = ? and value = ? and slot = ?",
            _scalars(index, by_slot),
        )

    # The connection

    @contextmanager
    def _reading(self) -> Generator[None]:
        """One snapshot for all that a call reads, and one turn with the cache."""
        with self._turn, answered(lost):
            self._execute("begin")
            try:
                yield
            finally:
                self._execute("rollback")

    @contextmanager
    def _writing(self) -> Generator[None]:
        """One transaction for all that a call writes: committed at the end, rolled back on any error."""
        with self._turn, answered(lost):
            self._execute("begin immediate")
            try:
                yield
                self._runtime.fault("before commit")
                self._execute("commit")
            except BaseException:
                if self._open().in_transaction:  # a full disk, for one, has already rolled it back
                    self._execute("rollback")
                raise
        self._runtime.fault("after commit")

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise ConfigurationError("this client is closed", hint="open the namespace again")
        return self._connection

    def _execute(self, sql: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        return self._open().execute(sql.replace("$", self._prefix), cast(Any, values))

    def _execute_many(self, sql: str, rows: Iterable[Row]) -> None:
        self._open().executemany(sql.replace("$", self._prefix), rows)

    def _rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        return self._execute(sql, values).fetchall()


class Cache:
    """What FAISS holds of one index: rows in the order of their slots, the dead among them marked.

    `rows` is a flat FAISS index, and the approximate one, if the index has one, is filled from it when a
    query first wants it. A position in either is a position in `slots`. Under cosine the rows are scaled to
    length 1, in float64: components of 1e-25 or 1e30 would be lost in FAISS's own arithmetic.
    """

    def __init__(self, index: Registered, effort: int | None) -> None:
        self.number = index.number
        self.metric: Metric = index.metric
        self.change = 0
        self.slots: Slots = np.empty(0, np.int64)
        self.live: Mask = np.empty(0, np.bool_)
        self.dead = 0
        measure = _faiss.METRIC_L2 if index.metric == "euclidean" else _faiss.METRIC_INNER_PRODUCT
        self.rows: Any = _faiss.IndexFlat(index.dimension, measure)
        self.ann = _ann(index, measure)
        self._longest = 0.0
        self._tuned_at = 0
        self._breadth = 0
        self._effort = effort

    def config(self) -> IndexConfig:
        """The index's configuration, as FAISS has it."""
        if isinstance(self.ann, _faiss.IndexHNSWFlat):
            graph = self.ann.hnsw
            return IndexConfig(type="hnsw", m=graph.nb_neighbors(1), ef_construction=graph.efConstruction)
        if isinstance(self.ann, _faiss.IndexIVFFlat):
            return IndexConfig(type="ivfflat", lists=self.ann.nlist)
        return IndexConfig(type="flat")

    def add(self, slots: Slots, vectors: Vectors) -> None:
        """Take new rows; their slots are above all others."""
        if self.metric == "cosine":
            vectors = _normalised(vectors)
        elif self.metric == "dotproduct":
            self._longest = max(self._longest, float(_norms(vectors).max(initial=0.0)))
        self.rows.add(vectors)
        self.slots = np.concatenate((self.slots, slots))
        self.live = np.concatenate((self.live, np.ones(len(slots), np.bool_)))

    def kill(self, slots: Slots) -> None:
        """Mark rows as dead. Slots that came and went since the last replay are unknown here."""
        self.live &= ~np.isin(self.slots, slots)
        self.dead = len(self.live) - int(self.live.sum())

    def closest(self, asked: VectorQuery, candidates: Mask) -> Slots:
        """Slots of candidates among which the top_k closest are (for an approximate index: nearly)."""
        count = int(np.count_nonzero(candidates))
        wanted = asked.top_k + SPARE
        if count <= wanted:
            return self.slots[candidates]
        query = (_normalised(asked.vector[None]) if self.metric == "cosine" else asked.vector[None]).copy()
        selector = _faiss.IDSelectorBitmap(np.packbits(candidates, bitorder="little"))
        if not asked.exact and self.ann is not None and (self._effort or count > SCANNED):
            positions = self._approximate(query, wanted, selector, count)
            if positions is not None:
                return self.slots[positions]
        while count > wanted:
            values, positions = self._scan(query, wanted, selector)
            if self._apart(query, values[asked.top_k - 1], values[-1]):
                return self.slots[positions]
            wanted *= 8
        return self.slots[candidates]

    def _scan(self, query: Vectors, wanted: int, selector: Any) -> tuple[NDArray[np.float32], Slots]:
        values, positions = self.rows.search(query, wanted, params=_faiss.SearchParameters(sel=selector))
        return values[0], positions[0]

    def _apart(self, query: Vectors, last: float, spare: float) -> bool:
        """Whether FAISS, in float32, cannot have mistaken rows beyond `spare` for rows up to `last`."""
        last, spare, dimension = float(last), float(spare), query.shape[1]
        rounding = (dimension + 32) * 2.0**-24
        if self.metric == "euclidean":  # squares of distances; nothing cancels, so errors are relative
            return math.sqrt(spare * (1 - rounding)) > math.sqrt(last * (1 + rounding) + dimension * 1e-37) + 1e-15
        length = 1.0 if self.metric == "cosine" else self._longest * float(_norms(query)[0])
        return last - spare > 2 * (rounding * length + dimension * 1e-37)

    # The approximate index

    def _approximate(self, query: Vectors, wanted: int, selector: Any, count: int) -> Slots | None:
        """Positions of `wanted` rows, or None when a scan has to answer."""
        if self._effort:
            self._grow()
            return self._searched(query, wanted, selector, self._effort) if self.ann.ntotal else None
        stale = len(self.slots) >= 2 * self._tuned_at
        if not stale and not self._breadth:  # a scan was better, and still is: no use in growing the index
            return None
        self._grow()
        if stale and self.ann.ntotal:
            self._tune()
        if not self._breadth:
            return None
        # A graph has to look at no fewer rows than it returns; a list holds many. With few candidates either has to
        # look at more to meet enough of them.
        least = max(self._breadth, wanted) if self._is_graph() else self._breadth
        breadth = math.ceil(least * len(self.slots) / count)
        if self._cost(breadth) >= count:
            return None
        return self._searched(query, wanted, selector, breadth)

    def _searched(self, query: Vectors, wanted: int, selector: Any, breadth: int) -> Slots | None:
        positions: Slots = self.ann.search(query, wanted, params=self._parameters(breadth, selector))[1][0]
        positions = positions[positions >= 0]  # FAISS fills up with -1
        return positions if len(positions) == wanted else None

    def _grow(self) -> None:
        """Give the approximate index the rows it lacks; an IVF index is trained once, when rows suffice."""
        if not self.ann.is_trained:
            live = np.flatnonzero(self.live)
            if len(live) < TRAINING * self.ann.nlist:
                return
            self.ann.train(self.rows.reconstruct_batch(live))
        for start in range(self.ann.ntotal, self.rows.ntotal, CHUNK):
            self.ann.add(self.rows.reconstruct_n(start, min(CHUNK, self.rows.ntotal - start)))

    def _tune(self) -> None:
        """Find how broadly to search (efSearch, nprobe) for nearly all neighbours of rows of its own; 0: better scan.

        That depends on the data more than on their number, so it is measured, and again when the rows have
        doubled.
        """
        live = np.flatnonzero(self.live)
        sample = self.rows.reconstruct_batch(live[:: max(1, len(live) // TUNING)][:TUNING])
        selector = _faiss.IDSelectorBitmap(np.packbits(self.live, bitorder="little"))
        truth = self.rows.search(sample, 11, params=_faiss.SearchParameters(sel=selector))[1]
        self._tuned_at, self._breadth = len(self.slots), 0
        breadth = NARROWEST if self._is_graph() else 1
        while self._cost(breadth) < len(live):
            found = self.ann.search(sample, 11, params=self._parameters(breadth, selector))[1]
            recall = np.mean([len(np.intersect1d(a, b)) / 11 for a, b in zip(found, truth, strict=True)])
            if recall >= TUNED_RECALL:
                self._breadth = breadth
                break
            breadth *= 2

    def _is_graph(self) -> bool:
        return isinstance(self.ann, _faiss.IndexHNSWFlat)

    def _cost(self, breadth: int) -> float:
        """About how many rows of a scan a search costs."""
        if self._is_graph():  # each of the nodes visited has its links followed, all over memory
            return float(breadth * self.ann.hnsw.nb_neighbors(1))
        return len(self.slots) * min(1.0, breadth / self.ann.nlist) + self.ann.nlist

    def _parameters(self, breadth: int, selector: Any) -> Any:
        if self._is_graph():
            return _faiss.SearchParametersHNSW(sel=selector, efSearch=min(breadth, len(self.slots)))
        return _faiss.SearchParametersIVF(sel=selector, nprobe=min(breadth, self.ann.nlist))


@contextmanager
def _one_thread() -> Generator[None]:
    """FAISS without threads of its own, for calls of this thread.

    They would build the graph in an order that differs from run to run, and gain nothing for one query: on a
    busy machine it would wait for them.
    """
    before = _faiss.omp_get_max_threads()
    _faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        _faiss.omp_set_num_threads(before)


def _ann(index: Registered, measure: int) -> Any:
    """The empty approximate index; None for a flat one."""
    if index.type == "hnsw":
        graph = _faiss.IndexHNSWFlat(index.dimension, index.m, measure)
        graph.hnsw.efConstruction = index.ef_construction
        return graph
    if index.type == "ivfflat":
        return _faiss.IndexIVFFlat(_faiss.IndexFlat(index.dimension, measure), index.dimension, index.lists, measure)
    return None


def _norms(vectors: Vectors) -> NDArray[np.float64]:
    components = vectors.astype(np.float64)
    return np.sqrt(np.vecdot(components, components))


def _normalised(vectors: Vectors) -> Vectors:
    return (vectors / _norms(vectors)[:, None]).astype(np.float32)


def _patiently(call: Callable[[], object]) -> None:
    """Make a call that SQLite may refuse at once while another client makes the same."""
    deadline = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            call()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.002)


LOST = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_READONLY,
)


def lost(error: BaseException) -> bool:
    """Whether SQLite says that it cannot read or write the file now."""
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in LOST


def _folder(url: str, *, create: bool = False) -> Path | None:
    """The directory that a URL names; None for memory."""
    try:
        folder = folder_of(url)
    except ValueError as error:
        raise ConfigurationError(str(error), hint="give a directory, file:/directory or :memory:") from None
    if folder is not None and create:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(f"{str(folder)!r} is no directory: {error.strerror}") from None
    return folder


def _database(url: str, *, create: bool = False) -> str:
    folder = _folder(url, create=create)
    return MEMORY if folder is None else str(folder / "vectors.db")


def _column(rows: Sequence[Row]) -> Slots:
    """The only column of rows, integers."""
    return np.fromiter(chain.from_iterable(rows), np.int64, len(rows))


def _scalars(index: Registered, by_slot: Iterable[tuple[int, Metadata]]) -> Generator[Row]:
    """What a filter can find in metadata objects: their top-level scalars, as rows of `$scalars`."""
    for slot, metadata in by_slot:
        for key, item in metadata.items():
            kind = kind_of(item)
            if kind is not None:
                yield index.number, key, kind, _value(Equals(key, kind, item)), slot


def _value(scalar: Equals) -> object:
    value: Any = scalar.value
    return 0 if scalar.kind == "null" else float(value) if scalar.kind == "number" else value


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
