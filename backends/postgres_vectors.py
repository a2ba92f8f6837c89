"""Vectors in PostgreSQL: how pgvector is spoken to, filters compiled, nearest rows found and indices built.

The engine selects, in float32; what it selected is scored here in float64, and more is fetched when rounding could
have put a wrong row last. An answer of an approximate index that is short is replaced by an exact one. Filters are
compiled to two-valued SQL: no condition of theirs is ever NULL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, LiteralString, TypeVar

import msgspec
import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import errors, pq
from psycopg.abc import AdaptContext
from psycopg.adapt import Dumper

from ..spec.capabilities import Capabilities
from ..spec.errors import Unsupported
from ..spec.filters import kind_of
from ..spec.index_requests import (
    NewIndex,
)
from ..spec.operators import Among, And, Node, Or, Range
from ..spec.types import IndexConfig, IndexDescription, Metadata
from ..spec.vectors import Metric, Vector, scores

T = TypeVar("T")
Connection = psycopg.Connection[tuple[Any, ...]]

VECTOR_CAPABILITIES = Capabilities(
    durable=True,
    atomicity="transaction",
    clone=True,
    working_memory=True,
    titles=True,
    vectors=True,
    semantic_recall=True,
    resource_scope=True,
    index_types=("ivfflat", "flat", "hnsw"),
    max_dimension=16_000,
    # What an index on `vector` takes. halfvec would take 4,000, but refuses components beyond 65,504.
    max_indexed_dimension=2_000,
)
"""With pgvector 0.8 or later (run on 0.8.5)."""

# A name of the user's is any string, so a row maps it to a table, whose name is never given twice. The row named ''
# is the index of the memory's own embeddings. `built` is how many bytes the table had when its approximate index was
# built, and `effort` how many probes (ivfflat) or what ef_search (hnsw) finds enough in it; 0 while nothing does.
INDEXES: LiteralString = """
CREATE TABLE IF NOT EXISTS {schema}.indexes (
    name             text COLLATE "C" PRIMARY KEY,
    relation         text NOT NULL,
    dimension        integer NOT NULL,
    metric           text NOT NULL,
    type             text NOT NULL,
    m                integer,
    ef_construction  integer,
    lists            integer,
    built            bigint NOT NULL DEFAULT 0,
    effort           integer NOT NULL DEFAULT 0
);
"""

OPERATORS: dict[Metric, tuple[str, str]] = {
    "cosine": ("<=>", "vector_cosine_ops"),
    "euclidean": ("<->", "vector_l2_ops"),
    "dotproduct": ("<#>", "vector_ip_ops"),  # the negative inner product
}
"""The distance operator of each metric, and the operator class that an index needs for it."""

FEW = 2_500
"""So many matching rows are scored one by one, sooner than an approximate index would find ten of them."""

ROWS_PER_LIST = 50
"""An ivfflat index is built when there are so many rows for each of its lists; k-means on fewer means little."""

SPARE = 16
"""So many more rows are fetched than asked for, because float32 may have put them in a wrong order."""

MAX_APPROXIMATE = 500
"""Beyond so many hits an exact scan is no slower."""

RECALL = 0.98
"""What an approximate index must find of the ten nearest neighbours of its own rows, to be used at all."""

SAMPLED = 24
"""So many rows are asked for theirs."""

SETTINGS: LiteralString = (
    "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', false),"
    " set_config('ivfflat.iterative_scan', 'relaxed_order', false),"
    " set_config('hnsw.scan_mem_multiplier', '4', false)"
)
"""A scan goes on until LIMIT is reached. Relaxed, because what comes late is sorted in here, and else dropped."""


# What pgvector is called here


class Extension(msgspec.Struct, frozen=True):
    """Where pgvector is installed: its schema, quoted, and the oid of its type. It is not on our search_path."""

    schema: str
    oid: int

    @property
    def vector(self) -> str:
        """The type."""
        return f"{self.schema}.vector"

    def operator(self, metric: Metric) -> str:
        """The distance operator."""
        return f"OPERATOR({self.schema}.{OPERATORS[metric][0]})"

    def ann(self, relation: str, index: NewIndex) -> str:
        """The statement that builds the approximate index."""
        given = index.config
        options = (
            f"lists = {given.lists}"
            if given.type == "ivfflat"
            else f"m = {given.m}, ef_construction = {given.ef_construction}"
        )
        return (
            f"CREATE INDEX ON {relation} USING {given.type}"
            f" (embedding {self.schema}.{OPERATORS[index.metric][1]}) WITH ({options})"
        )


def find_extension(connection: Connection) -> Extension | None:
    """pgvector in this database, or None."""
    row = connection.execute(
        "SELECT quote_ident(n.nspname), t.oid FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace"
        " JOIN pg_type AS t ON t.typnamespace = n.oid AND t.typname = 'vector' WHERE e.extname = 'vector'"
    ).fetchone()
    return Extension(*row) if row else None


def need_extension(connection: Connection) -> Extension:
    """pgvector in this database, created in the schema public if absent; clients that do so at once wait."""
    found = find_extension(connection)
    if found is None:
        try:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('memassay pgvector', 0))")
                connection.execute("CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public")
        except (errors.FeatureNotSupported, errors.UndefinedFile, errors.InsufficientPrivilege) as error:
            raise Unsupported(
                f"vectors: {error.diag.message_primary}", hint="CREATE EXTENSION vector", clause="CAP-1"
            ) from error
        found = find_extension(connection)
        assert found is not None
    return found


# Vectors as pgvector sends them: their length (int16), two bytes of nothing, float32s, all big-endian


class Packed(bytes):
    """A vector, or an array of them, in the binary format; its cast in the statement says which."""


class _PackedDumper(Dumper):
    format = pq.Format.BINARY
    oid = 0

    def dump(self, obj: Packed) -> Packed:
        return obj


def pack(vector: Vector) -> Packed:
    """A parameter `%s::vector`."""
    return Packed(len(vector).to_bytes(2, "big") + b"\0\0" + vector.astype(">f4").tobytes())


def pack_all(vectors: Sequence[Vector], dimension: int, extension: Extension) -> Packed:
    """A parameter `%s::vector[]`: one dimension, no nulls, the element's oid; lower bound 1; each with its size."""
    kind = np.dtype([("size", ">i4"), ("dimension", ">i2"), ("unused", ">i2"), ("components", ">f4", (dimension,))])
    rows = np.zeros(len(vectors), kind)
    rows["size"] = kind.itemsize - 4
    rows["dimension"] = dimension
    if vectors:
        rows["components"] = np.stack(vectors)
    return Packed(np.array([1, 0, extension.oid, len(vectors), 1], ">i4").tobytes() + rows.tobytes())


def unpack(sent: Sequence[bytes], dimension: int) -> NDArray[np.float32]:
    """The results of vector_send(), shape (n, dimension)."""
    kind = np.dtype([("header", ">i4"), ("components", ">f4", (dimension,))])
    return np.frombuffer(b"".join(sent), kind)["components"].astype(np.float32)


def norms(vectors: Sequence[Vector]) -> list[float]:
    """The length of each vector, in float64."""
    return [float(np.linalg.norm(vector.astype(np.float64))) for vector in vectors]


def adapt(context: AdaptContext) -> None:
    """Let a connection send packed vectors."""
    assert context.adapters is not None
    context.adapters.register_dumper(Packed, _PackedDumper)


def lost(error: BaseException) -> bool:
    """Whether the driver says that the engine did not answer, broke off, or has no room left."""
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)


# Metadata and filters


CONTAINERS = frozenset((dict, list))
"""Types of values that no condition can match."""


def json_text(value: object) -> str:
    """JSON as text."""
    return msgspec.json.encode(value).decode()


def facets(metadata: Metadata) -> str:
    """The top-level scalars of an object, as JSON: what a condition can match."""
    if not CONTAINERS.isdisjoint(map(type, metadata.values())):  # seldom
        metadata = {key: value for key, value in metadata.items() if kind_of(value) is not None}
    return json_text(metadata)


def condition(node: Node, column: str, parameters: dict[str, Any]) -> str:
    """The filter as an SQL expression that is true or false and never NULL; its values go to `parameters`."""

    def parameter(value: object) -> str:
        name = f"f{len(parameters)}"
        parameters[name] = value
        return f"%({name})s"

    match node:
        case And() | Or():
            word, neutral = (" AND ", "true") if isinstance(node, And) else (" OR ", "false")
            return (
                "(" + word.join(condition(part, column, parameters) for part in node.nodes) + ")"
                if (node.nodes)
                else neutral
            )
        case Among():
            # jsonb compares by type, and numbers by value, as FLT-1 does; @> is what the index on facets answers.
            if len(node.any_of) <= 8:
                each = (f"{column} @> {parameter(json_text({e.key: e.value}))}::jsonb" for e in node.any_of)
                held = "(" + (" OR ".join(each) or "false") + ")"
            else:
                values = [json_text(equals.value) for equals in node.any_of]
                held = f"coalesce({column} -> {parameter(node.key)}::text = ANY({parameter(values)}::jsonb[]), false)"
            return f"(NOT {held})" if node.negated else held
        case Range():
            key, sign = parameter(node.key), {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}[node.operator]
            operand = node.operand.value
            if node.operand.kind == "number":
                compared = f"{column} -> {key}::text {sign} {parameter(json_text(operand))}::jsonb"
            elif node.operand.kind == "string":
                compared = f'({column} ->> {key}::text) COLLATE "C" {sign} {parameter(operand)}::text'
            else:
                return "false"
            typed = f"jsonb_typeof({column} -> {key}::text)"
            return f"(CASE {typed} WHEN '{node.operand.kind}' THEN {compared} ELSE false END)"


# Nearest rows


ULP = 2.0**-24
"""By which float32 may be wrong in each of its steps, relatively."""


class Target(msgspec.Struct, frozen=True):
    """A table of vectors, as a query needs it."""

    relation: str
    dimension: int
    metric: Metric
    columns: str
    """What to return of a row `t`: its id first, then what breaks ties among equal scores, then the rest."""
    ties: int
    """How many of these columns order rows of equal scores."""
    kind: str = "flat"
    """The type of its index."""


def efforts(config: IndexConfig) -> list[int]:
    """What may be tried: probes of an ivfflat index (of so many lists), ef_search of an hnsw one."""
    if config.lists is not None:
        return sorted({-(-config.lists * percent // 100) for percent in (5, 10, 20, 40)})
    return [64, 128, 256, 512, 1000]


class Search(msgspec.Struct, frozen=True):
    """What to look for: the k nearest rows `t` where a condition holds, joined with `source`."""

    query: Vector
    k: int
    where: str
    parameters: dict[str, Any]
    join: str = ""


Row = tuple[Any, ...]


class Nearest:
    """Finds nearest rows over one connection, whose settings it keeps."""

    def __init__(self, connection: Connection, extension: Extension, effort: int | None = None) -> None:
        self._connection = connection
        self._effort = effort
        self.extension = extension
        self._efforts: dict[str, int] = {}
        self._set: dict[str, int] = {}
        connection.execute(SETTINGS)

    def find(self, target: Target, search: Search, *, exact: bool) -> list[tuple[float, Row]]:
        """The nearest rows, closest first, with their scores: all k of them, or all that match."""
        if exact or target.kind == "flat" or search.k > MAX_APPROXIMATE:
            return self.exact(target, search)
        if search.where != "true":
            found = self.few(target, search)
            if found is not None:
                return found
        while effort := self._effort or self._efforts.get(target.relation):
            found = self.approximate(target, search, effort)
            if len(found) < search.k:
                break
            if self._effort or self._efforts[target.relation] == effort:  # else it has been tuned anew
                return found
        return self.exact(target, search)

    def exact(self, target: Target, search: Search) -> list[tuple[float, Row]]:
        """The nearest rows with their scores, by reading every row that matches."""
        bound, parameters = self._bound(target, search)
        rows = self._fetch(
            target,
            "near.bound",
            f"(SELECT t.id, {bound} AS bound FROM {target.relation} AS t {search.join} WHERE {search.where}"
            f" ORDER BY bound LIMIT %(limit)s) AS near JOIN {target.relation} AS t USING (id)",
            parameters,
        )
        return self._settle(target, search, rows, len(rows) == parameters["limit"])

    def few(self, target: Target, search: Search) -> list[tuple[float, Row]] | None:
        """As exact, when few rows match; None when many do."""
        bound, parameters = self._bound(target, search)
        rows = self._fetch(
            target,
            "near.bound, (SELECT count(*) FROM few)",
            f"(SELECT * FROM few ORDER BY bound LIMIT %(limit)s) AS near JOIN {target.relation} AS t USING (id)",
            parameters,
            f"WITH few AS MATERIALIZED (SELECT t.id, {bound} AS bound FROM {target.relation} AS t {search.join}"
            f" WHERE {search.where} LIMIT {FEW + 1})",
        )
        count = rows[0][-1] if rows else 0
        return None if count > FEW else self._settle(target, search, [row[:-1] for row in rows], count > len(rows))

    def approximate(self, target: Target, search: Search, effort: int) -> list[tuple[float, Row]]:
        """The rows that the approximate index finds; they may be fewer than there are."""
        limit = 2 * search.k + SPARE
        if target.kind == "ivfflat":
            self._tune("ivfflat.probes", effort)
        else:
            self._tune("hnsw.ef_search", min(1000, max(effort, limit)))
        rows = self._fetch(
            target,
            "NULL",
            f"(SELECT t.* FROM {target.relation} AS t {search.join} WHERE {search.where} ORDER BY t.embedding"
            f" {self.extension.operator(target.metric)} %(query)s::{self.extension.vector} LIMIT %(limit)s) AS t",
            search.parameters | {"query": pack(search.query), "limit": limit},
        )
        return self._scored(target, search, rows)[: search.k]

    def effort(self, target: Target, tried: Sequence[int]) -> int:
        """The least effort by which the index finds enough of what is nearest to rows of its own; 0 if none does."""
        sample = self._connection.execute(
            f"SELECT {self.extension.schema}.vector_send(embedding) FROM {target.relation} WHERE id IN"
            f" (SELECT id FROM {target.relation} ORDER BY random() LIMIT {SAMPLED})".encode(),
            binary=True,
        ).fetchall()
        # The row itself is nearest, and found if anything is.
        searches = [Search(query, 11, "true", {}) for query in unpack([row[0] for row in sample], target.dimension)]
        worst = [self.exact(target, search)[-1][0] for search in searches]
        for effort in tried:
            found = [
                sum(score >= least - 1e-9 * abs(least) for score, _ in self.approximate(target, search, effort)) - 1
                for search, least in zip(searches, worst, strict=True)
            ]
            if sum(found) >= RECALL * 10 * len(searches):
                return effort
        return 0

    def _bound(self, target: Target, search: Search) -> tuple[str, dict[str, Any]]:
        """A lower bound of a row's true distance up to a constant, of a form that no index orders by."""
        slack = target.dimension * ULP
        parameters = search.parameters | {"query": pack(search.query), "limit": search.k + SPARE}
        bound = f"(t.embedding {self.extension.operator(target.metric)} %(query)s::{self.extension.vector})"
        if target.metric == "dotproduct":
            parameters["slack"] = slack * float(np.linalg.norm(search.query.astype(np.float64)))
            return f"{bound} - %(slack)s::float8 * t.norm", parameters
        return f"{bound} + 0", parameters

    def _settle(self, target: Target, search: Search, rows: Sequence[Row], more: bool) -> list[tuple[float, Row]]:
        """The best k of the rows; with all that might be among them, when float32 cannot tell."""
        scored = self._scored(target, search, rows)
        if more and scored:
            worst = scored[search.k - 1][0]
            slack = target.dimension * ULP
            match target.metric:
                case "cosine":
                    reach = 1 - worst + slack
                case "dotproduct":
                    reach = -worst + abs(worst) * 1e-12
                case "euclidean":
                    reach = (1 / worst - 1) * (1 + slack) + 1e-12
            if max(row[-1] for row in rows) <= reach:
                bound, parameters = self._bound(target, search)
                del parameters["limit"]
                rows = self._fetch(
                    target,
                    "NULL",
                    f"{target.relation} AS t {search.join} WHERE {search.where} AND {bound} <= %(reach)s::float8",
                    parameters | {"reach": reach},
                )
                scored = self._scored(target, search, rows)
        return scored[: search.k]

    def _scored(self, target: Target, search: Search, rows: Sequence[Row]) -> list[tuple[float, Row]]:
        """The rows, closest first; equal ones by their id or what else breaks ties."""
        width = target.columns.count(",") + 1
        stored = unpack([row[width] for row in rows], target.dimension)
        scored = zip(scores(target.metric, search.query, stored).tolist(), rows, strict=True)
        return sorted(scored, key=lambda each: (-each[0], *each[1][: target.ties]))

    def _fetch(
        self, target: Target, last: str, source: str, parameters: Mapping[str, Any], before: str = ""
    ) -> list[Row]:
        """Rows `t` of a source: the columns of the target, the vector, and what `last` names."""
        statement = (
            f"{before} SELECT (SELECT effort FROM indexes WHERE relation = '{target.relation}'), {target.columns},"
            f" {self.extension.schema}.vector_send(t.embedding), {last} FROM {source}"
        )
        # Never prepared: a plan that knows neither the limit nor the filter is a bad one.
        rows = self._connection.execute(statement.encode(), parameters, prepare=False, binary=True).fetchall()
        if rows:
            self._efforts[target.relation] = rows[0][0] or 0
        return [row[1:] for row in rows]

    def _tune(self, setting: str, value: int) -> None:
        """Set it for the session, unless it is."""
        if self._set.get(setting) != value:
            self._connection.execute("SELECT set_config(%s, %s, false)", (setting, str(value)))
            self._set[setting] = value


# The registry


class Registered(msgspec.Struct, frozen=True):
    """An index and the table that holds its vectors. What is in here never changes while the table exists."""

    index: NewIndex
    relation: str


REGISTERED: LiteralString = "name, relation, dimension, metric, type, m, ef_construction, lists"


def _registered(row: Row) -> Registered:
    name, relation, dimension, metric, kind, m, ef_construction, lists = row
    return Registered(NewIndex(name, dimension, metric, IndexConfig(kind, m, ef_construction, lists)), relation)


def find_index(connection: Connection, name: str) -> Registered | None:
    """The index of this name."""
    row = connection.execute(f"SELECT {REGISTERED} FROM indexes WHERE name = %s", (name,)).fetchone()
    return _registered(row) if row else None


def register(connection: Connection, index: NewIndex, relation: str) -> Registered | None:
    """Put the index into the registry; None when the name is taken."""
    config = index.config
    row = connection.execute(
        f"INSERT INTO indexes ({REGISTERED}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
        f" RETURNING {REGISTERED}",
        (
            index.name,
            relation,
            index.dimension,
            index.metric,
            config.type,
            config.m,
            config.ef_construction,
            config.lists,
        ),
    ).fetchone()
    return _registered(row) if row else None


def describe(connection: Connection, name: str) -> tuple[str | None, IndexDescription] | None:
    """The table and the index as the catalogue has them, or as the registry has what is not built yet."""
    row = connection.execute(
        "SELECT relation, dimension, metric, type, m, ef_construction, lists, a.atttypmod, ann.amname, ann.opcname,"
        " ann.reloptions FROM indexes LEFT JOIN pg_attribute AS a ON a.attrelid = to_regclass(quote_ident(relation))"
        " AND a.attname = 'embedding' LEFT JOIN (SELECT i.indrelid, am.amname, opc.opcname, c.reloptions FROM pg_index"
        " AS i JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_am AS am ON am.oid = c.relam JOIN pg_opclass AS opc"
        " ON opc.oid = i.indclass[0] WHERE am.amname IN ('ivfflat', 'hnsw')) AS ann ON ann.indrelid = a.attrelid"
        " WHERE name = %s",
        (name,),
    ).fetchone()
    if row is None:
        return None
    relation, dimension, metric, kind, m, ef_construction, lists, modifier, method, operators, options = row
    config = IndexConfig(kind, m, ef_construction, lists)
    if method is not None:
        given = {key: int(value) for key, _, value in (option.partition("=") for option in options or ())}
        config = IndexConfig(method, given.get("m"), given.get("ef_construction"), given.get("lists"))
        metric = next(each for each, (_, known) in OPERATORS.items() if known == operators)
    count = 0
    if modifier is not None:
        dimension = modifier
        count = _count(connection, relation)
    return relation, IndexDescription(name, dimension, metric, config, count)


def _count(connection: Connection, relation: str) -> int:
    row = connection.execute(f"SELECT count(*) FROM {relation}".encode()).fetchone()
    assert row is not None
    return row[0]


def grow(connection: Connection, nearest: Nearest, target: Target, registered: Registered) -> None:
    """Build the approximate index once rows suffice, and tune it; tune it anew when the table has doubled.

    An ivfflat one is built anew then, so that its lists fit their rows again. All this is done when the rows are
    there and committed, for without the index every answer is exact. That it cannot be built is no reason to refuse
    rows: one dimension is too few for ivfflat under cosine, many lists take more than maintenance_work_mem.
    """
    config, relation = registered.index.config, registered.relation
    if config.type == "flat":
        return
    enough = max(FEW, ROWS_PER_LIST * (config.lists or 0))
    due = (
        "SELECT size, built FROM (SELECT built, pg_relation_size(to_regclass(relation)) AS size FROM indexes"
        " WHERE relation = %s) AS i WHERE CASE built WHEN 0 THEN"
        f" (SELECT count(*) FROM (SELECT FROM {relation} LIMIT {enough}) AS first) = {enough}"
        " ELSE size >= 2 * built END"
    ).encode()
    if connection.execute(due, (relation,)).fetchone() is None:
        return
    with connection.transaction():
        connection.execute("SELECT FROM indexes WHERE relation = %s FOR UPDATE", (relation,))
        row = connection.execute(due, (relation,)).fetchone()
        if row is None:
            return  # Another client has just done it.
        size, built = row
        connection.execute("UPDATE indexes SET built = %s WHERE relation = %s", (size, relation))
        if not built or config.type == "ivfflat":
            with suppress(psycopg.Error), connection.transaction():
                _build(connection, nearest.extension, registered)
    # That the planner knows what filters hold for. And an index is of use to transactions alone that begin after it.
    connection.execute(f"ANALYZE {relation} (facets)".encode())
    effort = nearest.effort(target, efforts(config))
    connection.execute("UPDATE indexes SET effort = %s WHERE relation = %s", (effort, relation))


def _build(connection: Connection, extension: Extension, registered: Registered) -> None:
    """Build the approximate index, in place of what there is."""
    old = connection.execute(
        "SELECT quote_ident(c.relname) FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid"
        " JOIN pg_am AS am ON am.oid = c.relam WHERE am.amname IN ('ivfflat', 'hnsw')"
        " AND i.indrelid = to_regclass(%s)",
        (registered.relation,),
    ).fetchall()
    connection.execute("SET LOCAL client_min_messages = error")
    connection.execute(extension.ann(registered.relation, registered.index).encode())
    for (name,) in old:
        connection.execute(f"DROP INDEX {name}".encode())
