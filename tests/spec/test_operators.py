"""Operator filters: what is accepted, what each condition matches, and the laws of the algebra."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from memassay.spec.errors import InvalidFilter
from memassay.spec.operators import EVERYTHING, Among, And, Node, Or, conditions, constant, parse

ROWS: tuple[dict[str, Any], ...] = (
    *({"k": value} for value in (None, 0, 1, 2.5, "", "1", "a", "b", True, False, [1], {"a": 1})),
    {},
    {"n": 1},
    {"k": 1, "n": 2},
)


def holds(filter: Any, row: dict[str, Any]) -> bool:
    return parse(filter).matches(row)


def matching(filter: Any) -> list[dict[str, Any]]:
    node = parse(filter)
    return [row for row in ROWS if node.matches(row)]


# What is accepted (OPR-1)


@pytest.mark.parametrize("filter", [None, {}], ids=["none", "empty"])
def test_no_filter_is_everything(filter: Any) -> None:
    assert parse(filter) == EVERYTHING


def test_a_scalar_is_equality() -> None:
    assert parse({"k": 1}) == parse({"k": {"$eq": 1}})


def test_operators_of_one_key_must_all_hold() -> None:
    assert parse({"k": {"$gte": 1, "$lt": 3}}) == parse({"$and": [{"k": {"$gte": 1}}, {"k": {"$lt": 3}}]})


def test_several_keys_must_all_hold() -> None:
    assert matching({"k": 1, "n": 2}) == [{"k": 1, "n": 2}]


def test_several_keys_must_all_hold_inside_or() -> None:
    assert matching({"$or": [{"k": 1, "n": 2}]}) == [{"k": 1, "n": 2}]


def test_a_key_beside_a_combinator_must_hold_too() -> None:
    assert matching({"n": 2, "$or": [{"k": 1}, {"k": 0}]}) == [{"k": 1, "n": 2}]


@pytest.mark.parametrize(
    "filter",
    [
        {"k": {"$not": 1}},
        {"$not": {"k": 1}},
        {"$xor": []},
        {"k": {"$gt": 1, "$bogus": 2}},
        {"k": {}},
        {"k": {"$and": [1]}},
        {"k": {"a": 1}},
        {"k": [1]},
        {"k": {"$eq": [1]}},
        {"k": {"$in": 1}},
        {"k": {"$in": "ab"}},
        {"k": {"$nin": None}},
        {"k": {"$in": [[1]]}},
        {"$and": {"k": 1}},
        {"$or": [1]},
        {"$or": "k"},
        {"k": {"$gt": float("nan")}},
        {"k": float("inf")},
        {"k": 2**53},
        {"k": "a\0b"},
        "k = 1",
        [],
        1,
        False,
    ],
    ids=str,
)
def test_anything_else_is_refused(filter: Any) -> None:
    with pytest.raises(InvalidFilter):
        parse(filter)


@pytest.mark.parametrize("depth", range(4))
def test_the_unknown_is_refused_at_any_depth(depth: int) -> None:
    filter: dict[str, Any] = {"k": {"$bogus": 1}}
    for number in range(depth):
        filter = {("$and", "$or")[number % 2]: [{"k": 1}, filter]}
    with pytest.raises(InvalidFilter):
        parse(filter)


@pytest.mark.parametrize(
    "key", ["", "1a", "a.b", "a-b", "é", "k" * 129, "__proto__", "constructor", "prototype", 1, None], ids=ascii
)
def test_other_keys_are_refused(key: Any) -> None:
    with pytest.raises(InvalidFilter):
        parse({key: 1})


def test_a_refusal_names_the_key() -> None:
    with pytest.raises(InvalidFilter, match="'colour'"):
        parse({"$or": [{"colour": {"$bogus": 1}}]})


# Limits (OPR-1)


def nested(levels: int) -> dict[str, Any]:
    """A filter of so many levels; a condition is one."""
    filter: dict[str, Any] = {"k": 1}
    for _ in range(levels - 1):
        filter = {"$and": [filter]}
    return filter


def test_eight_levels_are_accepted() -> None:
    assert holds(nested(8), {"k": 1})


def test_nine_levels_are_refused() -> None:
    with pytest.raises(InvalidFilter):
        parse(nested(9))


def test_a_hundred_conditions_are_accepted() -> None:
    assert len([*conditions(parse({"$or": [{"k": i} for i in range(100)]}))]) == 100


def test_a_hundred_and_one_conditions_are_refused() -> None:
    with pytest.raises(InvalidFilter):
        parse({"$or": [{"k": i} for i in range(101)]})


def test_conditions_count_wherever_they_stand() -> None:
    with pytest.raises(InvalidFilter):
        parse({"$and": [{"k": {"$gt": i, "$lt": i + 1}} for i in range(51)]})


@pytest.mark.parametrize("operator", ["$in", "$nin"])
def test_a_thousand_values_are_accepted(operator: str) -> None:
    assert holds({"k": {operator: list(range(1000))}}, {"k": 999}) is (operator == "$in")


@pytest.mark.parametrize("operator", ["$in", "$nin"])
def test_a_thousand_and_one_values_are_refused(operator: str) -> None:
    with pytest.raises(InvalidFilter):
        parse({"k": {operator: list(range(1001))}})


@pytest.mark.parametrize("operator", ["$gt", "$gte", "$lt", "$lte"])
def test_an_operand_of_a_range_has_1024_characters_at_most(operator: str) -> None:
    parse({"k": {operator: "a" * 1024}})
    with pytest.raises(InvalidFilter):
        parse({"k": {operator: "a" * 1025}})


def test_a_string_to_equal_may_be_long() -> None:
    assert holds({"k": "a" * 100_000}, {"k": "a" * 100_000})


# Equality (OPR-2)


@pytest.mark.parametrize("value", [None, 0, 1, 2.5, "", "1", "a", True, False], ids=ascii)
def test_equality_is_exact_to_the_type(value: Any) -> None:
    found = [row["k"] for row in matching({"k": value, "$or": [{"n": {"$ne": 2}}]}) if "k" in row]
    assert [(type(item), item) for item in found] == [(type(value), value)]


def test_null_equals_explicit_null_only() -> None:
    assert matching({"k": None}) == [{"k": None}]


def test_in_is_any_of_them() -> None:
    assert matching({"k": {"$in": ["a", None]}}) == [{"k": None}, {"k": "a"}]


# Ranges (OPR-2)


@pytest.mark.parametrize(
    ("operator", "expected"),
    [("$gt", [2, 3]), ("$gte", [1.0, 2, 3]), ("$lt", [-1]), ("$lte", [-1, 1.0])],
)
def test_numbers_compare_with_numbers(operator: str, expected: list[float]) -> None:
    assert [n for n in (-1, 1.0, 2, 3) if holds({"k": {operator: 1}}, {"k": n})] == expected


@pytest.mark.parametrize("stored", ["2", True, None, [2], {"a": 2}], ids=ascii)
@pytest.mark.parametrize("operator", ["$gt", "$gte", "$lt", "$lte"])
def test_any_other_pairing_with_a_number_is_false(operator: str, stored: Any) -> None:
    assert not holds({"k": {operator: 1}}, {"k": stored})


@pytest.mark.parametrize("operand", [True, None])
@pytest.mark.parametrize("operator", ["$gt", "$gte", "$lt", "$lte"])
def test_no_range_has_a_boolean_or_null(operator: str, operand: Any) -> None:
    assert matching({"k": {operator: operand}}) == []


@pytest.mark.parametrize("operator", ["$gt", "$gte", "$lt", "$lte"])
def test_a_range_is_false_for_a_missing_key(operator: str) -> None:
    assert not holds({"k": {operator: 1}}, {})


@pytest.mark.parametrize(
    ("left", "right"),
    [("\uff5e", "\U0001f600"), ("Z", "a"), ("a", "a "), ("", "a"), ("a" * 5000, "b"), ("e\u0301", "é")],
    ids=lambda text: ascii(text[:8]),
)
def test_strings_compare_by_code_point(left: str, right: str) -> None:
    assert holds({"k": {"$lt": right}}, {"k": left})


# Negation (OPR-3)


@pytest.mark.parametrize("row", [{}, {"k": [1]}, {"k": {"a": 1}}, {"k": "1"}, {"k": True}, {"k": None}], ids=str)
@pytest.mark.parametrize("filter", [{"k": {"$ne": 1}}, {"k": {"$nin": [1, 2]}}], ids=["$ne", "$nin"])
def test_what_does_not_equal_satisfies_the_negation(filter: dict[str, Any], row: dict[str, Any]) -> None:
    assert holds(filter, row)


def complement(filter: dict[str, Any]) -> dict[str, Any]:
    """By De Morgan."""
    ((key, given),) = filter.items()
    if key in ("$and", "$or"):
        return {"$or" if key == "$and" else "$and": [complement(part) for part in given]}
    ((operator, operand),) = given.items()
    return {key: {{"$eq": "$ne", "$ne": "$eq", "$in": "$nin", "$nin": "$in"}[operator]: operand}}


LEAVES: tuple[dict[str, Any], ...] = (
    {"k": {"$eq": 1}},
    {"k": {"$ne": "1"}},
    {"k": {"$in": [None, "a", False]}},
    {"k": {"$nin": [0, True]}},
    {"k": {"$in": []}},
    {"n": {"$eq": 2}},
)
PAIRS: list[dict[str, Any]] = [
    {name: [left, right]} for name in ("$and", "$or") for left, right in itertools.product(LEAVES, repeat=2)
]
FILTERS: list[dict[str, Any]] = [
    *LEAVES,
    *PAIRS,
    *({"$or": [{"$and": [*LEAVES[:2]]}, pair]} for pair in PAIRS[:12]),
    {"$and": []},
    {"$or": []},
]


@pytest.mark.parametrize("filter", FILTERS, ids=str)
def test_a_filter_and_its_complement_split_the_rows(filter: dict[str, Any]) -> None:
    assert len(matching(filter)) + len(matching(complement(filter))) == len(ROWS)


def test_gt_and_lte_are_no_complements() -> None:
    assert len(matching({"k": {"$gt": 1}})) + len(matching({"k": {"$lte": 1}})) < len(ROWS)


@pytest.mark.parametrize("filter", LEAVES, ids=str)
def test_a_filter_may_stand_alone_in_and_or_or(filter: dict[str, Any]) -> None:
    assert matching({"$and": [filter]}) == matching({"$or": [filter]}) == matching(filter)


@pytest.mark.parametrize("filter", PAIRS, ids=str)
def test_the_order_of_parts_means_nothing(filter: dict[str, Any]) -> None:
    ((name, parts),) = filter.items()
    assert matching({name: parts[::-1]}) == matching(filter)


# Constants (OPR-4)


FOLDED: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"$and": []}, True),
    ({"$or": []}, False),
    ({"k": {"$in": []}}, False),
    ({"k": {"$nin": []}}, True),
    ({"$or": [{}, {"k": 1}]}, True),
    ({"$and": [{"$or": []}, {"k": 1}]}, False),
    ({"$and": [{"$and": []}, {"k": {"$nin": []}}]}, True),
    ({"$or": [{"$or": []}, {"k": {"$in": []}}]}, False),
    ({"k": {"$nin": [], "$in": []}}, False),
]


@pytest.mark.parametrize(("filter", "value"), FOLDED, ids=str)
def test_empty_lists_fold_to_constants(filter: dict[str, Any], value: bool) -> None:
    assert (constant(parse(filter)), matching(filter)) == (value, list(ROWS) if value else [])


DECIDED: list[dict[str, Any]] = [
    {"k": 1},
    {"$or": [{"$or": []}, {"k": 1}]},
    {"$and": [{}, {"k": {"$ne": 1}}]},
    {"k": {"$gt": 1}},
]


@pytest.mark.parametrize("filter", DECIDED, ids=str)
def test_what_rows_decide_is_no_constant(filter: dict[str, Any]) -> None:
    assert constant(parse(filter)) is None


@pytest.mark.parametrize(("node", "expected"), [(And(()), True), (Or(()), False)], ids=["and", "or"])
def test_of_nothing_and_is_true_and_or_is_false(node: Node, expected: bool) -> None:
    assert node.matches({}) is expected


def test_a_scalar_of_a_subclass_is_kept_as_a_plain_one() -> None:
    node = parse({"$and": [{"k": np.float64(1)}, {"k": np.str_("a")}]})
    assert [type(equals.value) for each in conditions(node) if isinstance(each, Among) for equals in each.any_of] == [
        float,
        str,
    ]
