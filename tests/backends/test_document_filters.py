"""Filters of document engines: tokens that sort as values do, and queries that hold where the specification's do."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from memassay.backends.document_filters import (
    Clause,
    equal,
    holds,
    instant_of,
    millis,
    token,
    tokens,
    within,
)
from memassay.spec.filters import Equals, Window, kind_of, parse_metadata
from memassay.spec.operators import parse

TEXTS = (
    "",
    "a",
    "A",
    "b",
    "a b",
    "a:",
    "ｅ",
    "～",
    "😀",
    "é",
    "é",
    "x" * 1024,
    "x" * 1025,
    "x" * 1026,
    "x" * 1024 + "y",
)
NUMBERS = (0, -0.0, 1, 1.0, -1, 0.1, -0.1, 5e-324, -5e-324, 1e300, -1e300, 2**53 - 1, 1 - 2**53, 2**53 - 2)
SCALARS = (*TEXTS, *NUMBERS, True, False, None)
STORED: tuple[Any, ...] = (*SCALARS, [], ["a"], {}, {"a": 1})
KEYS = ("k", "kn", "k_", "n")
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}


def answers(clause: Clause, row: dict[str, Any]) -> bool:
    """Evaluate a query of the bool kind on a row of which field `f` holds tokens, or `at` a number."""
    [(kind, body)] = clause.items()
    match kind:
        case "match_all":
            return True
        case "match_none":
            return False
        case "term":
            [(field, value)] = body.items()
            return value in row[field]
        case "terms":
            [(field, values)] = body.items()
            return bool({*values} & {*row[field]})
        case "range":
            [(field, bounds)] = body.items()
            return any(
                all(COMPARISONS[side](encoded(each), encoded(value)) for side, value in bounds.items())
                for each in row[field]
            )
        case "bool":
            assert body.keys() <= {"filter", "must_not", "should", "minimum_should_match"}
            return (
                all(answers(each, row) for each in body.get("filter", ()))
                and not any(answers(each, row) for each in body.get("must_not", ()))
                and ("should" not in body or any(answers(each, row) for each in body["should"]))
            )
        case _:
            raise AssertionError(kind)


def encoded(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def row(metadata: dict[str, Any]) -> dict[str, Any]:
    return {"f": tokens(metadata)}


def depth(clause: Clause) -> int:
    if "bool" not in clause:
        return 0
    parts = [part for key in ("filter", "must_not", "should") for part in clause["bool"].get(key, ())]
    return 1 + max(map(depth, parts))


def size(clause: Clause) -> int:
    if "bool" not in clause:
        return 1
    return sum(size(part) for key in ("filter", "must_not", "should") for part in clause["bool"].get(key, ()))


def random_filter(rng: Random, level: int = 1) -> dict[str, Any]:
    def condition() -> Any:
        chosen = rng.choice(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", None])
        if chosen in ("$in", "$nin"):
            return {chosen: rng.choices(SCALARS, k=rng.randrange(4))}
        scalar = rng.choice([each for each in SCALARS if not isinstance(each, str) or len(each) <= 1024])
        if chosen is None:
            return scalar
        if rng.random() < 0.3 and chosen in ("$gt", "$gte"):
            return {chosen: scalar, "$lt": rng.choice(NUMBERS), "$lte": rng.choice(NUMBERS)}
        return {chosen: scalar}

    made: dict[str, Any] = {key: condition() for key in rng.sample(KEYS, rng.randrange(3))}
    if level < 4:
        for combinator in rng.sample(["$and", "$or"], rng.randrange(3)):
            made[combinator] = [random_filter(rng, level + 1) for _ in range(rng.randrange(4))]
    return made


@pytest.mark.parametrize("seed", range(20))
def test_a_query_holds_where_the_filter_does(seed: int) -> None:
    rng = Random(seed)
    for _ in range(200):
        given = random_filter(rng)
        node = parse(given)
        query = holds(node, "f")
        for _ in range(20):
            metadata = {key: rng.choice(STORED) for key in rng.sample(KEYS, rng.randrange(len(KEYS) + 1))}
            assert answers(query, row(metadata)) == node.matches(metadata), (given, metadata)


@pytest.mark.parametrize("wanted", SCALARS, ids=lambda each: ascii(each)[:20])
def test_equality_is_exact(wanted: Any) -> None:
    conditions = parse_metadata({"k": wanted})
    for stored in STORED:
        metadata = {"k": stored, "kn": wanted}
        found = all(answers(each, row(metadata)) for each in equal(conditions, "f"))
        assert found == all(each.matches(metadata) for each in conditions), stored


def test_tokens_of_numbers_sort_as_the_numbers() -> None:
    ordered = sorted({float(each) for each in NUMBERS})
    terms = [token(Equals("k", "number", each)) for each in ordered]
    assert terms == sorted(terms)
    assert len({*terms}) == len(ordered)


def test_integers_at_the_limit_differ() -> None:
    assert tokens({"k": 2**53 - 1}) != tokens({"k": 2**53 - 2})


def test_tokens_fit_a_keyword() -> None:
    found = tokens({"k" * 128: "😀" * 262_144})
    assert max(len(each.encode()) for each in found) < 32_766


@pytest.mark.parametrize("key", ["", "a.b", "a:b", "é", "1a", "k" * 129], ids=ascii)
def test_what_no_filter_can_name_has_no_token(key: str) -> None:
    assert tokens({key: 1}) == []


def test_a_long_string_is_in_a_range_by_its_beginning() -> None:
    stored = row({"k": "x" * 1_000_000})
    assert answers(holds(parse({"k": {"$gt": "x" * 1024}}), "f"), stored)
    assert not answers(holds(parse({"k": {"$lt": "x" * 1024}}), "f"), stored)


def test_the_deepest_filter_stays_within_20_levels() -> None:
    given: dict[str, Any] = {"k": {"$ne": 1}}
    for level in range(7):
        given = {"k": 1, "$or" if level % 2 else "$and": [{"n": 1}, given]}
    assert depth(holds(parse(given), "f")) <= 20


def test_the_widest_filter_has_as_many_clauses_as_conditions() -> None:
    empty: list[Any] = [{"$or": []}] * 5000
    given = [*({"k": {"$gt": i, "$ne": i}} for i in range(50)), *empty]
    assert size(holds(parse({"$and": [{"$or": given}]}), "f")) == 100


def test_two_bounds_of_one_key_are_one_range() -> None:
    query = holds(parse({"k": {"$gte": 1, "$gt": 1, "$lt": 9, "$lte": 5}}), "f")
    assert query == {"range": {"f": {"gt": "k:nbff0000000000000", "lte": "k:nc014000000000000"}}}


BOUNDS = [datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC) + timedelta(milliseconds=each) for each in range(4)]


@pytest.mark.parametrize(("starts", "ends"), [*itertools.product([False, True], repeat=2)])
def test_windows_cut_where_they_say(starts: bool, ends: bool) -> None:
    for start, end in itertools.product([None, *BOUNDS], repeat=2):
        window = Window(start, end, starts, ends)
        for at in BOUNDS:
            found = all(answers(each, {"at": [millis(at)]}) for each in within(window, "at"))
            assert found == window.holds(at)


@pytest.mark.parametrize("year", [1, 1969, 1970, 9999])
def test_instants_come_back(year: int) -> None:
    at = datetime(year, 12, 31, 23, 59, 59, 999_000, UTC)
    assert instant_of(millis(at)) == at
    assert kind_of(millis(at)) == "number"
