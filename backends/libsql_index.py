"""Vector indices in a libSQL file: a table of vectors and one of their metadata's values to each, scanned exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ..spec.errors import AlreadyExists, IndexNotFound
from ..spec.index_requests import (
    VectorChange,
    parse_create_index,
    parse_delete_vectors,
    parse_query,
    parse_update_vector,
    parse_upsert,
)
from ..spec.protocols import Runtime
from ..spec.requests import parse_ids
from ..spec.types import IndexConfig, IndexDescription, NewVector, VectorHit, VectorRow
from ..spec.values import identifier
from ..spec.vectors import Metric
from .libsql_client import LISTED, Client, to_json
from .libsql_search import CAPABILITIES, compiled, from_bytes, nearest, searched, to_bytes, tokens, true_scores

# The schema. `$` stands for the namespace and an underscore, `#` for the number of an index: a name is any
# string and never part of SQL. `searched` and `length` are what the engine compares (libsql_search); they
# come first, so that a scan need not follow a row over its pages.

REGISTRY = """
    create table if not exists $indexes (
        number integer primary key,
        name text not null unique,
        dimension integer not null,
        metric text not null,
        type text not null
    )
"""
INDEX = (
    """
    create table $vectors_# (
        row integer primary key,
        searched blob not null,
        length real not null,
        id text not null unique,
        vector blob not null,
        metadata text not null
    )
    """,
    """
    create table $vector_values_# (
        row integer not null,
        key text not null,
        value text not null,
        primary key (row, key)
    ) without rowid
    """,
    "create index $vector_values_#_search on $vector_values_# (key, value)",
)
DROP = ("drop table $vector_values_#", "drop table $vectors_#")

HELD = "row in (select row from $vector_values_# where {})"


class Index(NamedTuple):
    """A row of the registry."""

    number: int
    dimension: int
    metric: Metric
    type: str

    def sql(self, text: str) -> str:
        """SQL on this index's tables."""
        return text.replace("#", str(self.number))


def drop_indexes(client: Client) -> None:
    """Drop the tables of all indices, and the registry."""
    client.execute(REGISTRY)
    for (number,) in client.rows("select number from $indexes"):
        for statement in DROP:
            client.execute(statement.replace("#", str(number)))
    client.execute("drop table $indexes")


class LibsqlIndex:
    """One client of the vector indices of a namespace; implements protocols.VectorIndex."""

    def __init__(self, path: str, namespace: str, runtime: Runtime) -> None:
        self._client = Client(path, namespace, runtime)
        self._client.create([REGISTRY])

    def close(self) -> None:
        """See protocols.VectorIndex."""
        self._client.close()

    # Indices

    def create_index(
        self, name: str, *, dimension: int, metric: str = "cosine", config: IndexConfig | None = None
    ) -> None:
        """See protocols.VectorIndex."""
        new = parse_create_index(name, dimension, metric, config, CAPABILITIES)
        with self._client.writing():
            old = self._registered(name)
            if old is None:
                [(number,)] = self._client.rows(
                    "insert into $indexes (name, dimension, metric, type) values (?, ?, ?, ?) returning number",
                    [new.name, new.dimension, new.metric, new.config.type],
                )
                for statement in INDEX:
                    self._client.execute(statement.replace("#", str(number)))
            elif (old.dimension, old.metric) != (new.dimension, new.metric):
                raise AlreadyExists(
                    f"index {name!r} has {old.dimension} dimensions and the metric {old.metric}", clause="VEC-1"
                )

    def describe_index(self, name: str) -> IndexDescription:
        """See protocols.VectorIndex."""
        with self._client.reading():
            index = self._existing(name)
            [(count,)] = self._client.rows(index.sql("select count(*) from $vectors_#"))
        return IndexDescription(name, index.dimension, index.metric, IndexConfig(type=index.type), count)

    def list_indexes(self) -> tuple[str, ...]:
        """See protocols.VectorIndex."""
        with self._client.reading():
            return tuple(name for (name,) in self._client.rows("select name from $indexes order by name"))

    def drop_index(self, name: str) -> None:
        """See protocols.VectorIndex."""
        with self._client.writing():
            index = self._existing(name)
            for statement in DROP:
                self._client.execute(index.sql(statement))
            self._client.execute("delete from $indexes where number = ?", [index.number])

    # Vectors

    def upsert_vectors(self, name: str, vectors: Sequence[NewVector]) -> int:
        """See protocols.VectorIndex."""
        with self._client.writing():
            index = self._existing(name)
            batch = parse_upsert(vectors, index.dimension, index.metric)
            self._client.execute_many(
                index.sql(
                    """
                    insert into $vectors_# (id, vector, searched, length, metadata) values (?, ?, ?, ?, ?)
                    on conflict (id) do update set
                        vector = excluded.vector,
                        searched = excluded.searched,
                        length = excluded.length,
                        metadata = excluded.metadata
                    """
                ),
                (
                    (row.id, to_bytes(row.vector), *searched(index.metric, row.vector), to_json(row.metadata))
                    for row in batch
                    if row.vector is not None
                ),
            )
            self._write_values(index, batch)
            return len(batch)

    def get_vectors(self, name: str, ids: Sequence[str]) -> tuple[VectorRow, ...]:
        """See protocols.VectorIndex."""
        with self._client.reading():
            index = self._existing(name)
            rows = self._client.rows(
                index.sql(
                    """
                    select id, vector, metadata from (select key as turn, value as named from json_each(?))
                    join $vectors_# on id = named order by turn
                    """
                ),
                [to_json(parse_ids(ids, clause="VEC-2"))],
            )
        return tuple(VectorRow(id, from_bytes(vector), msgspec.json.decode(data)) for id, vector, data in rows)

    def update_vector(
        self,
        name: str,
        id: str,
        *,
        vector: Sequence[float] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> bool:
        """See protocols.VectorIndex."""
        with self._client.writing():
            index = self._existing(name)
            change = parse_update_vector(id, vector, metadata, index.dimension, index.metric)
            if not self._client.rows(index.sql("select 1 from $vectors_# where id = ?"), [change.id]):
                return False
            if change.vector is not None:
                self._client.execute(
                    index.sql("update $vectors_# set vector = ?, searched = ?, length = ? where id = ?"),
                    [to_bytes(change.vector), *searched(index.metric, change.vector), change.id],
                )
            if change.metadata is not None:
                self._client.execute(
                    index.sql("update $vectors_# set metadata = ? where id = ?"), [to_json(change.metadata), change.id]
                )
                self._write_values(index, [change])
            return True

    def delete_vectors(
        self, name: str, *, ids: Sequence[str] | None = None, filter: Mapping[str, Any] | None = None
    ) -> int:
        """See protocols.VectorIndex."""
        with self._client.writing():
            index = self._existing(name)
            asked = parse_delete_vectors(ids, filter)
            if isinstance(asked, tuple):
                where, values = f"id in {LISTED}", [to_json(asked)]
            else:
                where, values = compiled(asked, HELD)
            found = self._client.rows(index.sql(f"select row from $vectors_# where {where}"), values)
            rows = [to_json([row for (row,) in found])]
            for table in ("$vector_values_#", "$vectors_#"):
                self._client.execute(index.sql(f"delete from {table} where row in {LISTED}"), rows)
            return len(found)

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
        with self._client.reading():
            index = self._existing(name)
            asked = parse_query(
                vector, index.dimension, index.metric, top_k=top_k, filter=filter, min_score=min_score, exact=exact
            )
            where = compiled(asked.filter, index.sql(HELD))
            rows = nearest(self._client, index.sql("$vectors_#"), "row", where, index.metric, asked.vector, asked.top_k)
            found = self._client.rows(
                index.sql(f"select id, metadata, vector from $vectors_# where row in {LISTED}"), [to_json(rows)]
            )
        scores = true_scores(index.metric, asked.vector, [vector for _, _, vector in found])
        ranked = sorted((-score, id, metadata) for (id, metadata, _), score in zip(found, scores, strict=True))
        return tuple(
            VectorHit(id, -negated, msgspec.json.decode(metadata))
            for negated, id, metadata in ranked[: asked.top_k]
            if asked.min_score is None or -negated >= asked.min_score
        )

    # Parts of several calls

    def _registered(self, name: str) -> Index | None:
        rows = self._client.rows(
            "select number, dimension, metric, type from $indexes where name = ?", [identifier(name, "name")]
        )
        return Index(*rows[0]) if rows else None

    def _existing(self, name: str) -> Index:
        index = self._registered(name)
        if index is None:
            raise IndexNotFound(f"there is no index {name!r}", clause="VEC-1")
        return index

    def _write_values(self, index: Index, rows: Sequence[VectorChange]) -> None:
        """Replace what the rows are found by."""
        self._client.execute(
            index.sql(f"delete from $vector_values_# where row in (select row from $vectors_# where id in {LISTED})"),
            [to_json([row.id for row in rows])],
        )
        self._client.execute_many(
            index.sql("insert into $vector_values_# (row, key, value) select row, ?, ? from $vectors_# where id = ?"),
            ((*pair, row.id) for row in rows for pair in tokens(row.metadata or {})),
        )
