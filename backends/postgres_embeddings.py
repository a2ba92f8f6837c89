"""The embeddings of a memory's messages in PostgreSQL: a table beside theirs, written in their transactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import LiteralString

import msgspec
from psycopg import sql

from ..spec.embedding import embed, text_of
from ..spec.errors import ConfigurationError
from ..spec.index_requests import SEMANTIC_INDEX, NewIndex
from ..spec.protocols import Embedder
from ..spec.types import Content, IndexDescription, Message, Metadata
from ..spec.vectors import Vector
from .postgres_vectors import (
    Connection,
    Extension,
    Nearest,
    Registered,
    Search,
    Target,
    describe,
    facets,
    find_index,
    grow,
    need_extension,
    norms,
    pack_all,
    register,
)

# One row a message that has an embedding, made when the first is to be stored: a dimension is part of a table. What
# it repeats of the message changes in save_messages alone, which writes or deletes the row too (SEM-4). facets are of
# the snapshot, which is only filtered by (SEM-5).
EMBEDDINGS: LiteralString = """
CREATE TABLE embeddings (
    id           text COLLATE "C" PRIMARY KEY REFERENCES messages ON DELETE CASCADE,
    thread_id    text COLLATE "C" NOT NULL,
    resource_id  text COLLATE "C" NOT NULL,
    created_at   bigint NOT NULL,
    position     bigint NOT NULL,
    facets       jsonb NOT NULL,
    norm         double precision NOT NULL,
    embedding    {vector}({dimension}) NOT NULL
);
ALTER TABLE embeddings ALTER embedding SET STORAGE MAIN;
CREATE INDEX embeddings_in_thread ON embeddings (thread_id);
CREATE INDEX embeddings_of_resource ON embeddings (resource_id);
"""
SEMANTIC = ""
"""The name of the embeddings' index in the registry: no user's index has it."""


class Embedding(msgspec.Struct, frozen=True):
    """A message's vector, with where the message stands and what a semantic filter sees of it (SEM-5)."""

    message: Message
    created_at: int
    position: int
    snapshot: Metadata
    vector: Vector


class Embeddings:
    """The index of a memory's own embeddings, and the table it is made of once there is one to store."""

    def __init__(self, connection: Connection, index: NewIndex) -> None:
        self._connection = connection
        self.index = msgspec.structs.replace(index, name=SEMANTIC)
        self._extension: Extension | None = None
        self._nearest: Nearest | None = None
        self._made = self._register()

    def _register(self) -> Registered:
        """Its entry in the registry, made if absent. ConfigurationError when the namespace has another embedder's."""
        found = find_index(self._connection, SEMANTIC)
        if found is None:
            found = register(self._connection, self.index, "embeddings") or find_index(self._connection, SEMANTIC)
            assert found is not None
        was = found.index
        if (was.dimension, was.metric) != (self.index.dimension, self.index.metric):
            raise ConfigurationError(
                f"the embeddings here have {was.dimension} dimensions and the metric {was.metric}",
                hint="open it with the embedder and the metric that it was made with",
                clause="SEM-6",
            )
        return found

    def _engine(self) -> Extension:
        if self._extension is None:
            self._extension = need_extension(self._connection)
        return self._extension

    def describe(self) -> IndexDescription:
        """As the engine has it."""
        self._register()
        found = describe(self._connection, SEMANTIC)
        assert found is not None
        return msgspec.structs.replace(found[1], name=SEMANTIC_INDEX)

    def embed(self, embedder: Embedder, contents: Mapping[str, Content]) -> dict[str, Vector]:
        """The vectors of the messages that have a text, by id. The table is there then, if there are any."""
        texts = {each: words for each, content in contents.items() if (words := text_of(content)) is not None}
        vectors = embed(embedder, [*texts.values()], "document", self.index.metric)
        if vectors and not embedded(self._connection):
            self._create()
        return dict(zip(texts, vectors, strict=True))

    def _create(self) -> None:
        """In a transaction that holds no other lock: two clients that do so at once wait, and never in a circle."""
        extension = self._engine()
        with self._connection.transaction():
            self._register()
            self._connection.execute("SELECT FROM indexes WHERE name = %s FOR UPDATE", (SEMANTIC,))
            if embedded(self._connection):
                return
            self._connection.execute(
                sql.SQL(EMBEDDINGS).format(
                    vector=sql.SQL(extension.vector),  # pyright: ignore[reportArgumentType]  (quoted by the engine)
                    dimension=sql.Literal(self.index.dimension),
                )
            )

    def put(self, connection: Connection, rows: Sequence[Embedding]) -> None:
        """Store or replace embeddings, of messages whose threads are locked."""
        extension = self._engine()
        connection.execute(
            "INSERT INTO embeddings (id, thread_id, resource_id, created_at, position, facets, norm, embedding)"
            " SELECT * FROM unnest(%b::text[], %b::text[], %b::text[], %b::bigint[], %b::bigint[], %b::text[]::jsonb[],"
            f" %b::float8[], %s::{extension.vector}[]) ON CONFLICT (id) DO UPDATE SET"
            " (thread_id, created_at, position, facets, norm, embedding) = (excluded.thread_id, excluded.created_at,"
            " excluded.position, excluded.facets, excluded.norm, excluded.embedding)".encode(),
            (
                [row.message.id for row in rows],
                [row.message.thread_id for row in rows],
                [row.message.resource_id for row in rows],
                [row.created_at for row in rows],
                [row.position for row in rows],
                [facets(row.snapshot) for row in rows],
                norms([row.vector for row in rows]),
                pack_all([row.vector for row in rows], self.index.dimension, extension),
            ),
        )

    def grow(self) -> None:
        """See postgres_vectors.grow."""
        found = find_index(self._connection, SEMANTIC)
        if found is not None and embedded(self._connection):
            grow(self._connection, self._search(), self._target(), found)

    def _search(self) -> Nearest:
        if self._nearest is None:
            self._nearest = Nearest(self._connection, self._engine())
        return self._nearest

    def _target(self) -> Target:
        columns = "t.created_at, t.thread_id, t.position, t.id"
        kind = self._made.index.config.type or "flat"
        return Target("embeddings", self.index.dimension, self.index.metric, columns, 3, kind)

    def find(self, search: Search, *, exact: bool) -> list[tuple[float, str, str]]:
        """The nearest embeddings: score, thread and message; equal scores in the order of ORD-1."""
        if not embedded(self._connection):
            return []
        found = self._search().find(self._target(), search, exact=exact)
        return [(score, row[1], row[3]) for score, row in found]


def embedded(connection: Connection) -> bool:
    """Whether the namespace has a table of embeddings."""
    # Read from the catalogue: to_regclass() may still answer what it answered before this transaction waited.
    row = connection.execute(
        "SELECT 1 FROM pg_class WHERE relname = 'embeddings' AND relnamespace = current_schema()::regnamespace"
    ).fetchone()
    return row is not None
