"""Vector indices in PostgreSQL: each is a table, with pgvector's ivfflat or hnsw on it once it has rows enough."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, LiteralString, TypeVar

import msgspec
from psycopg import errors, sql

from ..spec.errors import AlreadyExists, ConfigurationError, IndexNotFound, StoreError, answered
from ..spec.index_requests import (
    parse_create_index,
    parse_delete_vectors,
    parse_query,
    parse_update_vector,
    parse_upsert,
)
from ..spec.operators import constant
from ..spec.protocols import Runtime
from ..spec.requests import parse_ids
from ..spec.types import IndexConfig, IndexDescription, NewVector, VectorHit, VectorRow
from ..spec.values import identifier
from .postgres_vectors import (
    VECTOR_CAPABILITIES,
    Connection,
    Nearest,
    Registered,
    Search,
    Target,
    condition,
    describe,
    facets,
    find_index,
    grow,
    json_text,
    lost,
    need_extension,
    norms,
    pack,
    pack_all,
    register,
    unpack,
)

T = TypeVar("T")

# norm is the length of the vector, by which the error of an inner product is bounded. The vector stays beside the
# rest (MAIN) when the row fits a page: pgvector's own default would put all beyond 2 kB elsewhere.
VECTORS: LiteralString = """
CREATE TABLE {relation} (
    id         text COLLATE "C" PRIMARY KEY,
    metadata   text NOT NULL,
    facets     jsonb NOT NULL,
    norm       double precision NOT NULL,
    embedding  {vector}({dimension}) NOT NULL
);
ALTER TABLE {relation} ALTER embedding SET STORAGE MAIN;
CREATE INDEX ON {relation} USING gin (facets jsonb_path_ops);
"""


class PostgresIndex:
    """One client: one connection, used by one thread at a time; a new one when it was lost.

    Implements protocols.VectorIndex.
    """

    def __init__(self, enter: Callable[[], Connection], runtime: Runtime) -> None:
        self._enter = enter
        self._runtime = runtime
        self._connect()
        self._closed = False
        self._lock = threading.RLock()
        self._known: dict[str, Registered] = {}

    def create_index(
        self, name: str, *, dimension: int, metric: str = "cosine", config: IndexConfig | None = None
    ) -> None:
        """See protocols.VectorIndex."""
        new = parse_create_index(name, dimension, metric, config, VECTOR_CAPABILITIES)
        with self._session():
            connection = self._open()
            while True:
                with connection.transaction():
                    made = register(connection, new, f"vectors_{secrets.token_hex(8)}")
                    if made is not None:
                        connection.execute(self._definition(made))
                        self._runtime.fault("before commit")
                if made is not None:
                    self._known[name] = made
                    self._runtime.fault("after commit")
                    return
                old = find_index(connection, name)
                if old is not None:  # else it was dropped in between
                    break
        if (old.index.dimension, old.index.metric) != (new.dimension, new.metric):
            raise AlreadyExists(
                f"index {name!r} has {old.index.dimension} dimensions and the metric {old.index.metric}", clause="VEC-1"
            )

    def _definition(self, made: Registered) -> bytes:
        extension = self._extension
        table = sql.SQL(VECTORS).format(
            relation=sql.SQL(made.relation),  # pyright: ignore[reportArgumentType]  (ours, of letters and digits)
            vector=sql.SQL(extension.vector),  # pyright: ignore[reportArgumentType]  (quoted by the engine)
            dimension=sql.Literal(made.index.dimension),
        )
        return table.as_bytes(None)

    def describe_index(self, name: str) -> IndexDescription:
        """See protocols.VectorIndex."""
        identifier(name, "name")
        with self._session():
            while True:
                try:
                    found = describe(self._open(), name)
                except errors.UndefinedTable:
                    if find_index(self._open(), name) is None:
                        raise _not_found(name) from None
                    continue  # It was dropped and made anew in between.
                if found is None:
                    raise _not_found(name)
                return found[1]

    def list_indexes(self) -> tuple[str, ...]:
        """See protocols.VectorIndex."""
        with self._session():
            rows = self._open().execute("SELECT name FROM indexes WHERE name <> '' ORDER BY name").fetchall()
        return tuple(row[0] for row in rows)

    def drop_index(self, name: str) -> None:
        """See protocols.VectorIndex."""
        identifier(name, "name")
        with self._session():
            connection = self._open()
            with connection.transaction():
                row = connection.execute("DELETE FROM indexes WHERE name = %s RETURNING relation", (name,)).fetchone()
                if row is None:
                    raise _not_found(name)
                connection.execute(f"DROP TABLE {row[0]}".encode())
                self._runtime.fault("before commit")
            self._known.pop(name, None)
            self._runtime.fault("after commit")

    def upsert_vectors(self, name: str, vectors: Sequence[NewVector]) -> int:
        """See protocols.VectorIndex."""

        def work(connection: Connection, found: Registered) -> int:
            index, extension = found.index, self._extension
            # In the order of their ids: so two clients with the same rows never wait for each other in a circle.
            batch = sorted(parse_upsert(vectors, index.dimension, index.metric), key=lambda row: row.id)
            components = [row.vector for row in batch if row.vector is not None]
            metadata = [row.metadata or {} for row in batch]
            self._write(
                f"INSERT INTO {found.relation} (id, metadata, facets, norm, embedding) SELECT * FROM"
                f" unnest(%b::text[], %b::text[], %b::text[]::jsonb[], %b::float8[], %s::{extension.vector}[])"
                " ON CONFLICT (id) DO UPDATE SET"
                " (metadata, facets, norm, embedding) ="
                " (excluded.metadata, excluded.facets, excluded.norm, excluded.embedding)",
                (
                    [row.id for row in batch],
                    [json_text(each) for each in metadata],
                    [facets(each) for each in metadata],
                    norms(components),
                    pack_all(components, index.dimension, extension),
                ),
            )
            grow(connection, self._nearest, _target(found), found)
            return len(batch)

        return self._on(name, work)

    def get_vectors(self, name: str, ids: Sequence[str]) -> tuple[VectorRow, ...]:
        """See protocols.VectorIndex."""

        def work(connection: Connection, found: Registered) -> tuple[VectorRow, ...]:
            named = list(parse_ids(ids, clause="VEC-2"))
            rows = connection.execute(
                f"SELECT id, {self._extension.schema}.vector_send(embedding), metadata FROM {found.relation}"
                " WHERE id = ANY(%b::text[])".encode(),
                (named,),
                binary=True,
            ).fetchall()
            stored = unpack([row[1] for row in rows], found.index.dimension).tolist()
            existing = {
                row[0]: VectorRow(row[0], tuple(vector), msgspec.json.decode(row[2]))
                for row, vector in zip(rows, stored, strict=True)
            }
            return tuple(existing[each] for each in named if each in existing)

        return self._on(name, work)

    def update_vector(
        self,
        name: str,
        id: str,
        *,
        vector: Sequence[float] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> bool:
        """See protocols.VectorIndex."""

        def work(connection: Connection, found: Registered) -> bool:
            index = found.index
            change = parse_update_vector(id, vector, metadata, index.dimension, index.metric)
            return (
                self._write(
                    f"UPDATE {found.relation} SET metadata = coalesce(%s, metadata),"
                    f" facets = coalesce(%s::jsonb, facets), norm = coalesce(%s, norm),"
                    f" embedding = coalesce(%s::{self._extension.vector}, embedding)"
                    " WHERE id = %s",
                    (
                        None if change.metadata is None else json_text(change.metadata),
                        None if change.metadata is None else facets(change.metadata),
                        None if change.vector is None else norms([change.vector])[0],
                        None if change.vector is None else pack(change.vector),
                        change.id,
                    ),
                )
                == 1
            )

        return self._on(name, work)

    def delete_vectors(
        self, name: str, *, ids: Sequence[str] | None = None, filter: Mapping[str, Any] | None = None
    ) -> int:
        """See protocols.VectorIndex."""

        def work(connection: Connection, found: Registered) -> int:
            asked = parse_delete_vectors(ids, filter)
            if isinstance(asked, tuple):
                return self._write(f"DELETE FROM {found.relation} WHERE id = ANY(%b::text[])", (list(asked),))
            parameters: dict[str, Any] = {}
            where = condition(asked, "facets", parameters)
            return self._write(f"DELETE FROM {found.relation} WHERE {where}", parameters)

        return self._on(name, work)

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
        """See protocols.VectorIndex."""

        def work(connection: Connection, found: Registered) -> tuple[VectorHit, ...]:
            index = found.index
            asked = parse_query(
                vector, index.dimension, index.metric, top_k=top_k, filter=filter, min_score=min_score, exact=exact
            )
            parameters: dict[str, Any] = {}
            where = "true" if constant(asked.filter) is True else condition(asked.filter, "t.facets", parameters)
            search = Search(asked.vector, asked.top_k, where, parameters)
            return tuple(
                VectorHit(row[0], score, msgspec.json.decode(row[1]))
                for score, row in self._nearest.find(_target(found), search, exact=asked.exact)
                if asked.min_score is None or score >= asked.min_score
            )

        return self._on(name, work)

    def close(self) -> None:
        """See protocols.VectorIndex."""
        with self._lock:
            self._closed = True
            self._connection.close()

    # The connection, and the index of a name

    def _connect(self) -> None:
        connection = self._enter()
        try:
            self._extension = need_extension(connection)
            self._nearest = Nearest(connection, self._extension, self._runtime.effort)
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    @contextmanager
    def _session(self) -> Generator[None]:
        """A turn with the connection."""
        with self._lock, answered(lost):
            if not self._closed and self._connection.closed:
                self._connect()
            yield

    def _open(self) -> Connection:
        if self._closed:
            raise ConfigurationError("this client is closed", hint="open the namespace again")
        return self._connection

    def _on(self, name: str, work: Callable[[Connection, Registered], T]) -> T:
        """Do something with the index of this name, as it is now.

        What is known of it is tried first. Whatever fails then may be due to another client that has dropped it, and
        perhaps made one of the same name; a table of the same name is none that it has made.
        """
        identifier(name, "name")
        with self._session():
            connection = self._open()
            known = self._known.get(name)
            while True:
                try:
                    if known is not None:
                        return work(connection, known)
                except (StoreError, errors.UndefinedTable):
                    now = find_index(connection, name)
                    if now == known:
                        raise
                else:
                    now = find_index(connection, name)
                if now is None:
                    self._known.pop(name, None)
                    raise _not_found(name)
                self._known[name] = known = now

    def _write(self, statement: str, parameters: Sequence[Any] | Mapping[str, Any]) -> int:
        """Run a write of one statement, which is its own transaction; how many rows it wrote."""
        self._runtime.fault("before commit")
        count = self._connection.execute(statement.encode(), parameters).rowcount
        self._runtime.fault("after commit")
        return count


def _target(found: Registered) -> Target:
    index = found.index
    return Target(found.relation, index.dimension, index.metric, "t.id, t.metadata", 1, index.config.type or "flat")


def _not_found(name: str) -> IndexNotFound:
    return IndexNotFound(f"there is no index {name!r}", clause="VEC-1")
