"""What libSQL searches by: typed tokens of metadata, filters compiled over them, and the exact scan of vectors."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..spec.capabilities import Capabilities
from ..spec.filters import Equals
from ..spec.operators import Among, And, Node, Or, Range, RangeOperator
from ..spec.types import Metadata
from ..spec.vectors import Metric, Vector
from .libsql_client import LISTED, Client, to_json

# Tokens. A filter can find the top-level scalars of a metadata object. Each is one row (owner, key, value)
# of a *_values table, and `value` is a string that tells its JSON type by its first letter and that sorts as
# the scalar does. So one index column serves every type, equality is equality of strings, a range is a range
# of strings, and a list of any values is one parameter, exactly (the engine's JSON functions return some
# doubles off by an ulp, so numbers must not pass through them).

SIGN = 1 << 63


def token(value: object) -> str | None:
    """The token of a scalar; None for arrays and objects, which no condition matches (FLT-1)."""
    match value:
        case None:
            return "0"
        case bool():
            return "b1" if value else "b0"
        case int() | float():
            return "n" + _sortable(float(value))
        case str():
            return "s" + value
        case _:
            return None


def _sortable(number: float) -> str:
    """16 hexadecimal digits that sort as the number does; −0.0 is 0 (VAL-3)."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", number + 0.0))
    return f"{bits ^ SIGN if bits < SIGN else bits ^ (2 * SIGN - 1):016x}"


def tokens(metadata: Metadata) -> Iterator[tuple[str, str]]:
    """The (key, value) rows of a metadata object."""
    for key, item in metadata.items():
        value = token(item)
        if value is not None:
            yield key, value


# Filters. No column of a *_values table is ever NULL, so IN, NOT IN, EXISTS and NOT EXISTS are two-valued.


class Condition(NamedTuple):
    """SQL text and the values of its parameters, in order."""

    sql: str
    values: list[object]


def holding(owner: str, table: str, conditions: Sequence[Equals], scope: Condition) -> Condition:
    """The owners in a *_values table that hold all of the conditions, each of another key (FLT-1)."""
    asked = {each.key: token(each.value) for each in conditions}
    return Condition(
        f"""
        select {owner} from json_each(?) asked cross join {table} held on held.key = asked.key
            and held.value = asked.value
        where {scope.sql}
        group by {owner} having count(*) = {len(asked)}
        """,
        [to_json(asked), *scope.values],
    )


def compiled(node: Node, held: str) -> Condition:
    """A filter as SQL (OPR). `held` says that the row has a value, with {} for the condition on key and value."""
    match node:
        case Among():
            listed = to_json([token(each.value) for each in node.any_of])
            return Condition(
                ("not " if node.negated else "") + held.format(f"key = ? and value in {LISTED}"), [node.key, listed]
            )
        case Range():
            limit = token(node.operand.value)
            if limit is None or node.operand.kind not in ("number", "string"):
                return Condition("false", [])
            test, above = RANGES[node.operator]
            # The tokens of one type lie between its letter and the next.
            edge = chr(ord(limit[0]) + 1) if above else limit[0]
            return Condition(held.format(f"key = ? and {test}"), [node.key, limit, edge])
        case And() | Or():
            word, neutral = (" and ", "true") if isinstance(node, And) else (" or ", "false")
            parts = [compiled(part, held) for part in node.nodes]
            return Condition(
                f"({word.join(part.sql for part in parts) or neutral})",
                [value for part in parts for value in part.values],
            )


RANGES: dict[RangeOperator, tuple[str, bool]] = {
    "$gt": ("value > ? and value < ?", True),
    "$gte": ("value >= ? and value < ?", True),
    "$lt": ("value < ? and value >= ?", False),
    "$lte": ("value <= ? and value >= ?", False),
}
"""The condition on a token, and whether its second bound is the upper one."""


# Vectors. The engine compares in float32, the truth is float64 (VEC-3), so the engine selects and we score.
# What it compares is a copy: under cosine and dotproduct the direction, normalised in float64, because raw
# components of 1e-25 or 1e30 leave float32; its length stands beside it. There is no inner product in libSQL:
# it is length · cosine. Under euclidean the copy is the vector itself.
#
# Its index (DiskANN) is not used: it answers wrongly after updates and deletes in some runs, and takes no filter.


SPARE = 8
"""Rows asked for beyond top_k, so that mostly no tie straddles the limit."""

ROUNDING = 2.0**-24
"""Of float32, relative."""

CAPABILITIES = Capabilities(
    clone=True,
    working_memory=True,
    titles=True,
    vectors=True,
    semantic_recall=True,
    resource_scope=True,
    index_types=("flat",),
    max_dimension=65_536,  # the engine's own limit for a vector
    max_indexed_dimension=65_536,
)
"""Of a database file."""


class Searched(NamedTuple):
    """What the columns `searched` and `length` hold for a vector."""

    searched: bytes
    length: float


def searched(metric: Metric, vector: Vector) -> Searched:
    """The engine's copy of a vector. A direction's length is 1 under cosine, 0 for the zero vector."""
    if metric == "euclidean":
        return Searched(to_bytes(vector), 1.0)
    exact = vector.astype(np.float64)
    length = float(np.linalg.norm(exact))
    if length == 0:
        exact[0] = 1.0  # any direction: times 0 it makes no difference
    return Searched(to_bytes((exact / (length or 1.0)).astype(np.float32)), 1.0 if metric == "cosine" else length)


def nearest(
    client: Client, table: str, key: str, where: Condition, metric: Metric, query: Vector, top_k: int
) -> list[int]:
    """The integer keys of rows among which the top_k nearest are, by float64; mostly a few more than that."""
    if metric == "dotproduct" and not query.any():
        return [found for (found,) in client.rows(f"select {key} from {table} where {where.sql}", where.values)]
    # `bound` is the best that a row's score can be given the engine's error; `worst` is the least that the
    # score of the k-th can be. What lies between may be among the top_k.
    error = _error(metric, len(query))
    if metric == "euclidean":
        bound, asked = "-vector_distance_l2(searched, ?)", [to_bytes(query)]
    else:
        bound = "length * (? - vector_distance_cos(searched, ?))"
        asked = [1.0 + error, searched("cosine", query).searched]
    limit = top_k + SPARE
    found = client.rows(
        f"select {key}, {bound} as bound, length from {table} where {where.sql} order by bound desc limit ?",
        [*asked, *where.values, limit],
    )
    if len(found) == limit:
        bounds, lengths = np.array([row[1:] for row in found]).T
        slack = 1e-16 - 3 * error * bounds if metric == "euclidean" else 2 * error * lengths
        worst = float(np.sort(bounds - slack)[-top_k])
        if bounds[-1] >= worst:  # rows that tie, or nearly do, straddle the limit
            found = client.rows(
                f"select {key} from {table} where {where.sql} and {bound} >= ?", [*where.values, *asked, worst]
            )
    return [row[0] for row in found]


def _error(metric: Metric, dimension: int) -> float:
    """How far the engine's distance can be off: relatively under euclidean, else absolutely.

    The bound of a sum of n products in float32, each rounded to 2^-24, and a little for what is around it:
    once, under a root, for the euclidean distance; three times for the cosine. Measured: at most a tenth of it.
    """
    return (dimension / 2 + 8) * ROUNDING if metric == "euclidean" else (2 * dimension + 8) * ROUNDING


def true_scores(metric: Metric, query: Vector, stored: Sequence[bytes]) -> list[float]:
    """The scores of stored vectors (VEC-3). Equal vectors score equally, which a BLAS product does not ensure."""
    q = query.astype(np.float64)
    rows = np.frombuffer(b"".join(stored), dtype="<f4").reshape(-1, len(q)).astype(np.float64)
    if metric == "euclidean":
        return (1.0 / (1.0 + np.linalg.norm(rows - q, axis=1))).tolist()
    products = np.einsum("ij,j->i", rows, q)
    if metric == "cosine":
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        products = np.clip(products / (lengths * np.linalg.norm(q)), -1.0, 1.0)
    return products.tolist()


def to_bytes(vector: Vector) -> bytes:
    """A vector as the engine stores it: little-endian float32."""
    return vector.astype("<f4").tobytes()


def from_bytes(stored: bytes) -> tuple[float, ...]:
    """The components of a stored vector."""
    return tuple(np.frombuffer(stored, dtype="<f4").tolist())
