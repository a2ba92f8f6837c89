"""Programs on vector indices: equal and opposite vectors, rare matches far from the query, churn."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, cast

from .. import program as ops
from ..forms import Form
from . import pools
from .arrange import OBSERVE
from .pools import chance, distinct, pick, some

Operations = list[ops.AnyOperation]

METRICS = ("cosine", "euclidean", "dotproduct")
ROW_IDS = ("z", "a", "m", "b", "k", "y", "c", "n")
INDEX_NAMES = ("notes", "notes", "Notes", "x; drop table y", "q\"u'o", "\ud55c\uae00", "a.b", "_", "%")


def vector(rng: Random, dimension: int) -> Form:
    """One of few directions, so that vectors are equal, opposite or nearly so; sometimes far from unit length."""
    axis = rng.randrange(min(dimension, 2))
    match pick(rng, range(12)):
        case 0 | 1 | 2:
            return {"$spike": [dimension, axis, 1]}
        case 3:
            return {"$spike": [dimension, axis, -1]}
        case 4:
            return {"$spike": [dimension, axis, pick(rng, (2, 0.5, 1e-12, 1e12, 1e15, 1e-15))]}
        case 5 | 6:
            return [1.0, *(pick(rng, (0.0, 0.1, 0.5, 1e-4, 1.00001e-4, 1.0)) for _ in range(dimension - 1))]
        case 7:
            return [1] * dimension
        case _:
            return {"$vector": [rng.randrange(6), dimension]}


def bad_vector(rng: Random, dimension: int, metric: str) -> Form:
    """A vector that is refused."""
    short: Form = {"$vector": [1, dimension + 1]}
    zero: Form = [0.0] * dimension if metric == "cosine" else short
    return pick(
        rng,
        (
            short,
            [],
            zero,
            [{"$float": "nan"}] * dimension,
            [{"$float": "inf"}, *[0.0] * (dimension - 1)],
            {"$spike": [dimension, 0, 1e39]},
            {"$spike": [dimension, 0, 1.1e15]},
            ["1"] * dimension,
            [True] * dimension,
            "vector",
        ),
    )


LIKES: tuple[tuple[Form, ...], ...] = (
    (1, 1, 2, 3, 1.0, 2.5, "1", True, [1]),
    (0, -1, False, None, "", "0", 1e16, -1e300),
    ("a", "b", "A", "ab", "a ", "B", ["a"], 1),
    (None, "null", 0, {"a": 1}, [], "x"),
    (True, False, 1, 0, "true", [True]),
    ("\uff5e", "\U0001f600", "\ud55c", "\uff5e", "\U0001f600"),
    (5, 1, 9, 5, 7, 3),
    ({"$repeat": ["a", 256]}, {"$repeat": ["a", 255]}, {"$repeat": ["a", 2000]}, {"$repeat": ["a", 1999]}, "a"),
    (16_777_216, 16_777_217, 16_777_217.0, 9_007_199_254_740_991, 9_007_199_254_740_990, "16777217"),
    (0.3, 0.1 + 0.2, 0.30000001, 0, -0.0, 0.0, -0.1),
    ("\u00e9", "e\u0301", "e", "\u00c9", "\ufb01", "fi"),
)
"""Values of one key, alike enough to be confused and comparable enough to be ordered."""


def metadata(rng: Random, likes: tuple[Form, ...]) -> Form:
    """An object with some of four keys, seldom after many others."""
    pairs: dict[str, Form] = {f"x{number}": number for number in range(30)} if chance(rng, 4) else {}
    if chance(rng, 15):
        pairs["K"] = pick(rng, likes)
    if chance(rng, 80):
        pairs["k"] = pick(rng, likes)
    if chance(rng, 50):
        pairs["n"] = pick(rng, (1, 2, 3, 4, 5))
    if chance(rng, 20):
        pairs["s"] = pick(rng, pools.CONTAINERS)
    return pairs or None


def scalar(rng: Random, likes: tuple[Form, ...]) -> Form:
    """An operand: a scalar that may be stored."""
    scalars = [like for like in likes if not isinstance(like, list) and like != {"a": 1}]
    return pick(rng, scalars)


def condition(rng: Random, likes: tuple[Form, ...]) -> dict[str, Form]:
    """One condition, on k mostly."""
    if chance(rng, 15):
        return {"n": {pick(rng, ("$gt", "$gte", "$lt", "$lte")): pick(rng, (1, 2, 3))}}
    operand = scalar(rng, likes)
    match pick(rng, range(13)):
        case 0 | 1:
            return {"k": operand}
        case 12:
            return {"K": operand}
        case 2 | 3:
            return {"k": {"$ne": operand}}
        case 4:
            return {"k": {"$in": [scalar(rng, likes) for _ in range(pick(rng, (0, 1, 2, 2)))]}}
        case 5 | 6:
            return {"k": {"$nin": [scalar(rng, likes) for _ in range(pick(rng, (0, 1, 2, 2)))]}}
        case 7:
            return {"k": {"$gte": short(operand), "$lt": short(scalar(rng, likes))}}
        case 8:
            return {"k": {"$eq": operand}}
        case _:
            return {"k": {pick(rng, ("$gt", "$gte", "$lt", "$lte")): short(operand)}}


def short(operand: Form) -> Form:
    """An operand that a range takes."""
    return "aa" if isinstance(operand, dict) else operand


def where(rng: Random, likes: tuple[Form, ...], depth: int = 1) -> Form:
    """A filter: a condition, or several under $and and $or, empty ones among them."""
    luck = pick(rng, range(11))
    if depth > 2 or luck < 5:
        return condition(rng, likes)
    if luck == 10:
        return pick(rng, EMPTY_LISTS)
    if luck == 5:
        return {**condition(rng, likes), "n": {"$ne": pick(rng, (1, 2))}}
    if luck == 6:
        return pick(rng, CONSTANTS)
    name = pick(rng, ("$and", "$or"))
    return {name: [where(rng, likes, depth + 1) for _ in range(pick(rng, (1, 2, 2)))]}


def deep(rng: Random, likes: tuple[Form, ...]) -> Form:
    """A filter of three to eight levels, the most there may be: $and and $or in one another, each with a condition."""
    found = condition(rng, likes)
    for _ in range(pick(rng, (2, 3, 5, 7))):
        parts = [condition(rng, likes), found]
        rng.shuffle(parts)
        found = cast("dict[str, Form]", {pick(rng, ("$and", "$or")): parts})
    return cast(Form, found)


def bad_where(rng: Random) -> Form:
    """A filter that is refused, at some depth."""
    wrong = pick(rng, BAD_FILTERS)
    if chance(rng, 5):
        wrong = {"$dict": [[pick(rng, pools.BAD_KEYS[:6]), 1]]}
    for _ in range(rng.randrange(3)):
        if isinstance(wrong, dict) and rng.randrange(2):
            wrong = cast("dict[str, Form]", {pick(rng, ("$and", "$or")): [{"n": 1}, wrong]})
    return cast("dict[str, Form]", wrong)


BAD_FILTERS: tuple[Form, ...] = (
    {"k": {"$not": 1}},
    {"$not": {"k": 1}},
    {"$xor": [{"k": 1}]},
    {"k": {"$gt": 1, "$bogus": 2}},
    {"k": {"$dict": []}},
    {"k": {"$and": [1]}},
    {"k": [1]},
    {"k": {"$in": 1}},
    {"k": {"$in": [[1]]}},
    {"k": {"$in": {"a": 1}}},
    {"$and": {"k": 1}},
    {"$or": [1]},
    {"$or": "k"},
    {"k": {"a": 1}},
    {"k": {"$eq": {"a": 1}}},
    {"k": {"$gt": {"$float": "nan"}}},
    {"k": {"$lt": {"$repeat": ["a", 1025]}}},
    {"k": {"$in": {"$tuple": [{"$int": "9007199254740992"}]}}},
    "k = 1",
    [],
)


def _rows(rng: Random, ids: Any, dimension: int, likes: tuple[Form, ...]) -> list[Form]:
    rows: list[Form] = []
    for row_id in ids:
        row: dict[str, Form] = {"id": row_id, "vector": vector(rng, dimension)}
        given = metadata(rng, likes)
        if given is not None:
            row["metadata"] = given
        rows.append(row)
    return rows


def _create(rng: Random, name: Form, dimension: int, metric: str) -> ops.CreateIndex:
    given: dict[str, Form] = {} if metric == "cosine" and chance(rng, 50) else {"metric": metric}
    luck = pick(rng, range(10))
    if luck < 2:
        given["config"] = {"type": "flat"}
    elif luck == 2:
        given["config"] = pick(
            rng, ({"type": "hnsw"}, {"type": "hnsw", "m": 8, "ef_construction": 32}, {"type": "ivfflat", "lists": 2})
        )
    return ops.CreateIndex(index=name, dimension=dimension, **given)


MANY: list[Form] = list(range(100, 1000))
"""Values of a list, two of which make more than the 1,024 clauses that search engines take."""


def _query(rng: Random, name: Form, dimension: int, likes: tuple[Form, ...], n: int) -> Operations:
    """A query, sometimes again for another k."""
    given: dict[str, Form] = {"vector": vector(rng, dimension)}
    if chance(rng, 55):
        given["filter"] = deep(rng, likes) if chance(rng, 15) else where(rng, likes)
    elif chance(rng, 12):
        one, other = scalar(rng, likes), pick(rng, (1, 2, 3))
        given["filter"] = {pick(rng, ("$or", "$and")): [{"k": {"$in": [*MANY, one]}}, {"n": {"$in": [*MANY, other]}}]}
    if chance(rng, 20):
        given["min_score"] = pick(rng, (0.5, 0.9, 0.0, -1, 1))
    if chance(rng, 70):
        given["exact"] = True
    k = pick(rng, (1, 1, 2, 3, n, n + 1, 10_000))
    steps: Operations = [ops.QueryVectors(index=name, top_k=k, **given)]
    if chance(rng, 40):
        steps.append(ops.QueryVectors(index=name, top_k=k + 1 if k < 10_000 else 2, **given))
    return steps


def indices(rng: Random) -> ops.Program:
    """VEC, OPR: one index or two, changed and asked."""
    dimension, metric = pick(rng, (1, 2, 2, 3, 3, 8)), pick(rng, METRICS)
    likes, name = pick(rng, LIKES), pick(rng, INDEX_NAMES)
    ids = distinct(rng, ROW_IDS, 4, 8)
    steps: Operations = [_create(rng, name, dimension, metric)]
    rows = _rows(rng, ids, dimension, likes)
    if chance(rng, 15):
        rows.append(rows[0] | {"vector": vector(rng, dimension)})
    steps += [ops.UpsertVectors(index=name, vectors=rows), OBSERVE]
    for _ in range(pick(rng, (0, 1, 2, 3))):
        steps += [_change(rng, name, ids, dimension, metric, likes), OBSERVE]
    for _ in range(3):
        steps += _query(rng, name, dimension, likes, len(ids))
    luck = pick(rng, range(12))
    if luck == 0:
        steps.append(ops.QueryVectors(index=name, vector=bad_vector(rng, dimension, metric)))
    elif luck in (1, 2):
        steps.append(ops.QueryVectors(index=name, vector=[1] * dimension, filter=bad_where(rng)))
    elif luck in (3, 4):
        wrong = pick(rng, BAD_QUERIES)
        steps.append(ops.QueryVectors(index=name, vector=[1] * dimension, **wrong))
    elif luck == 5:
        steps.append(ops.QueryVectors(index="unknown", vector=[1] * dimension))
    return ops.Program(operations=tuple(steps))


def _change(
    rng: Random, name: Form, ids: Sequence[str], dimension: int, metric: str, likes: tuple[Form, ...]
) -> ops.AnyOperation:
    match pick(rng, range(20)):
        case 0 | 1 | 2:
            rows = _rows(rng, some(rng, ids, 1, 3), dimension, likes)
            if chance(rng, 70):
                rows.append(rows[0] | {"vector": vector(rng, dimension)})
            if chance(rng, 40):
                rows[0].pop("metadata", None)
            return ops.UpsertVectors(index=name, vectors=rows)
        case 3 | 4 | 16 | 17 | 18 | 19:
            given: dict[str, Form] = pick(rng, ({"vector": vector(rng, dimension)}, {"metadata": {"k": 9}}))
            if chance(rng, 15):
                given = pick(rng, ({"vector": bad_vector(rng, dimension, metric)}, {"metadata": cast(Form, {})}))
            return ops.UpdateVector(index=name, id="unknown" if chance(rng, 33) else pick(rng, ids), **given)
        case 5 | 6 | 7:
            named = distinct(rng, ids, 1, 2)
            return ops.DeleteVectors(index=name, ids=pick(rng, (named, [*named, *named, "unknown"], ["unknown"], [])))
        case 8 | 9:
            return ops.DeleteVectors(index=name, filter=condition(rng, likes))
        case 10:
            return ops.DeleteVectors(index=name, filter=pick(rng, ALL_ROWS))
        case 11 | 12:
            good = {"id": "good", "vector": [1] * dimension}
            bad: dict[str, Form] = {"id": "bad", "vector": bad_vector(rng, dimension, metric)}
            return ops.UpsertVectors(index=name, vectors=[good, bad])
        case 13:
            other = pick(rng, (dimension, dimension, dimension + 1))
            return ops.CreateIndex(index=name, dimension=other, metric=pick(rng, (metric, metric, "euclidean")))
        case 14:
            return ops.CreateIndex(index="other", dimension=pick(rng, (0, -1, 1.5, True, "3", 4)))
        case _:
            return pick(
                rng,
                (
                    ops.DropIndex(index=name),
                    ops.DropIndex(index="unknown"),
                    ops.UpsertVectors(index="unknown", vectors=[{"id": "a", "vector": [1] * dimension}]),
                    ops.DeleteVectors(index=name),
                ),
            )


def catalogue(rng: Random) -> ops.Program:
    """VEC-1: indices created again, described, listed, dropped, and asked for when there are none."""
    name, other = distinct(rng, INDEX_NAMES[1:], 2, 2)
    metric, dimension = pick(rng, METRICS), pick(rng, (1, 2, 3))
    row: Form = {"id": "a", "vector": [1] * dimension}
    steps: Operations = [
        ops.CreateIndex(index=name, dimension=dimension, metric=metric),
        ops.UpsertVectors(index=name, vectors=[row]),
        OBSERVE,
    ]
    again: list[Operations] = [
        [ops.CreateIndex(index=name, dimension=dimension, metric=metric)],
        [ops.CreateIndex(index=name, dimension=dimension, metric=metric)],
        [ops.CreateIndex(index=name, dimension=dimension + 1, metric=metric)],
        [ops.CreateIndex(index=name, dimension=dimension, metric="cosine" if metric != "cosine" else "euclidean")],
        [ops.CreateIndex(index=other, dimension=dimension, metric=metric)],
        [ops.DropIndex(index=name)],
        [ops.DropIndex(index=name), ops.CreateIndex(index=name, dimension=dimension + 1)],
        [ops.DropIndex(index=other)],
        [ops.UpsertVectors(index=other, vectors=[row])],
        [ops.CreateIndex(index=other, dimension=pick(rng, BAD_DIMENSIONS))],
        [ops.CreateIndex(index=other, dimension=2, metric=pick(rng, ("l2", "COSINE", None, 1)))],
        [ops.CreateIndex(index=other, dimension=2, config=pick(rng, BAD_CONFIGS))],
    ]
    for step in distinct(rng, again, 3, 5):
        steps += [*step, OBSERVE]
    asked = pick(rng, (name, other, "unknown"))
    steps += [
        ops.ListIndexes(),
        ops.DescribeIndex(index=asked),
        ops.GetVectors(index=asked, ids=pick(rng, (["a", "unknown", "a"], [], "a"))),
        ops.QueryVectors(index=asked, vector=[1] * dimension),
    ]
    return ops.Program(operations=tuple(steps))


BAD_DIMENSIONS: tuple[Form, ...] = (0, -1, 1.5, True, "3", 2.0)
BAD_CONFIGS: tuple[Form, ...] = (
    {"type": "btree"},
    {"type": "flat", "m": 8},
    {"type": "hnsw", "m": 1},
    {"type": "hnsw", "m": 16, "ef_construction": 8},
    {"type": "ivfflat", "m": 16},
    {"type": "ivfflat", "lists": 0},
    {"metric": "euclidean"},
    "hnsw",
)
BAD_QUERIES: tuple[dict[str, Any], ...] = (
    {"top_k": 0},
    {"top_k": 10_001},
    {"top_k": True},
    {"top_k": 1.0},
    {"top_k": -1},
    {"exact": 1},
)
EMPTY: list[Form] = []
EMPTY_LISTS: tuple[Form, ...] = (
    {"k": {"$in": EMPTY}},
    {"k": {"$nin": EMPTY}},
    {"$or": [{"n": 1}, {"k": {"$in": EMPTY}}]},
)
CONSTANTS: tuple[Form, ...] = (
    cast(Form, {}),
    {"$and": EMPTY},
    {"$or": EMPTY},
    {"$or": [cast(Form, {}), {"k": 1}]},
    {"$and": [{"$or": EMPTY}, {"n": 1}]},
)
ALL_ROWS: tuple[Form, ...] = ({}, {"$and": []}, {"k": {"$nin": []}}, {"$or": [{}, {"k": 1}]})
CONFIGS: tuple[dict[str, Any], ...] = ({}, {}, {"config": {"type": "hnsw"}}, {"config": {"type": "flat"}})


def rare(rng: Random) -> ops.Program:
    """VEC-4b: many rows of which few match, on the far side of the query; top_k beyond 40. Then many are deleted."""
    dimension, n = pick(rng, (2, 4, 8)), pick(rng, (120, 300, 600, 1200))
    few = pick(rng, (5, 12, 20))
    toward: Form = {"$spike": [dimension, 0, 1]}
    away: Form = {"$spike": [dimension, 0, -1]}
    rows: list[Form] = [
        {
            "$fill": {
                "id": "common",
                "n": n,
                "dimension": dimension,
                "seed": rng.randrange(99),
                "metadata": [{"k": "common"}],
            }
        },
        {"$fill": {"id": "rare", "n": few, "dimension": dimension, "vector": away, "metadata": [{"k": "rare"}]}},
    ]
    config = pick(rng, CONFIGS)
    exact: dict[str, Form] = {"exact": True} if chance(rng, 50) else {}
    steps: Operations = [
        ops.CreateIndex(index="many", dimension=dimension, metric=pick(rng, METRICS), **config),
        ops.UpsertVectors(index="many", vectors=rows),
        OBSERVE,
        ops.QueryVectors(index="many", vector=toward, top_k=pick(rng, (1, 5, 10, 30)), filter={"k": "rare"}, **exact),
        ops.QueryVectors(index="many", vector=toward, top_k=pick(rng, (41, 100)), **exact),
        ops.QueryVectors(index="many", vector=toward, top_k=n + few, filter={"k": {"$ne": "rare"}}, **exact),
        ops.DeleteVectors(index="many", filter={"k": "common"}),
        ops.QueryVectors(index="many", vector=toward, top_k=n + few, **exact),
    ]
    return ops.Program(operations=tuple(steps))


def approximate(rng: Random) -> ops.Program:
    """VEC-5: 200 approximate queries of one index, more of its rows replaced and deleted in between."""
    dimension, n, seed = 16, pick(rng, (800, 1200)), rng.randrange(1000)
    config = pick(rng, ({"type": "hnsw"}, {"type": "ivfflat", "lists": 10}))
    rows: Form = {"$fill": {"id": "r", "n": n, "dimension": dimension, "seed": seed}}
    again: Form = {"$fill": {"id": "r", "n": n // 5, "dimension": dimension, "seed": seed + n}}
    steps: Operations = [
        ops.CreateIndex(index="many", dimension=dimension, metric=pick(rng, METRICS), config=config),
        ops.UpsertVectors(index="many", vectors=[rows]),
        ops.UpsertVectors(index="many", vectors=[again]),
        ops.DeleteVectors(index="many", ids=[f"r{i}" for i in range(n // 5, n // 4)]),
        OBSERVE,
    ]
    steps += [ops.QueryVectors(index="many", vector={"$vector": [10_000 + i, dimension]}) for i in range(200)]
    return ops.Program(operations=tuple(steps))


def churn(rng: Random) -> ops.Program:
    """VEC-4: the same rows deleted and stored again, over and over."""
    config = pick(rng, CONFIGS)
    steps: Operations = [ops.CreateIndex(index="busy", dimension=2, **config)]
    rows = _rows(rng, ROW_IDS, 2, LIKES[0])
    steps.append(ops.UpsertVectors(index="busy", vectors=rows))
    for _ in range(pick(rng, (5, 10, 15))):
        row = pick(rng, rows)
        again = {"id": row["id"], "vector": vector(rng, 2)} if chance(rng, 50) else row
        if chance(rng, 70):
            steps.append(ops.DeleteVectors(index="busy", ids=[row["id"]]))
        steps.append(ops.UpsertVectors(index="busy", vectors=[again]))
    steps.append(OBSERVE)
    for _ in range(2):
        steps += _query(rng, "busy", 2, LIKES[0], len(ROW_IDS))
    return ops.Program(operations=tuple(steps))


def large(rng: Random) -> ops.Program:
    """VEC-1a: dimensions around engines' caps; what is created must work."""
    dimension = pick(rng, (1536, 2000, 2001, 3072, 4096, 4097, 16_000, 100_000))
    config = pick(rng, CONFIGS)
    used = min(dimension, 5000)
    created = ops.CreateIndex(index="wide", dimension=dimension, metric=pick(rng, METRICS), **config)
    steps: Operations = [created]
    if used == dimension:
        rows: list[Form] = [{"id": f"r{i}", "vector": {"$vector": [i, dimension]}} for i in range(3)]
        steps += [
            ops.UpsertVectors(index="wide", vectors=rows),
            OBSERVE,
            ops.QueryVectors(index="wide", vector={"$vector": [1, dimension]}, top_k=2),
        ]
    return ops.Program(operations=(*steps, OBSERVE))
