"""Operator filters over stored metadata: parsed once, evaluated by the model, compiled by engines (OPR).

The algebra is two-valued: a filter holds for a row or it does not. It has four nodes, so an engine
compiles four things.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, cast

import msgspec

from .errors import InvalidFilter
from .filters import Equals, check_key, equality, kind_of
from .types import Metadata
from .values import show

MAX_DEPTH = 8
MAX_CONDITIONS = 100
MAX_LIST_VALUES = 1000
MAX_RANGE_CHARACTERS = 1024

RangeOperator = Literal["$gt", "$gte", "$lt", "$lte"]
RANGES: tuple[RangeOperator, ...] = ("$gt", "$gte", "$lt", "$lte")


class Among(msgspec.Struct, frozen=True):
    """`key` holds one of these scalars, by FLT-1's equality; negated: it does not ($eq, $in, $ne, $nin)."""

    key: str
    any_of: tuple[Equals, ...]
    negated: bool = False

    def matches(self, metadata: Metadata) -> bool:
        """See Node."""
        return any(equals.matches(metadata) for equals in self.any_of) != self.negated


class Range(msgspec.Struct, frozen=True):
    """`key` holds a number (string) on this side of the number (string) operand; any other pairing is false."""

    key: str
    operator: RangeOperator
    operand: Equals

    def matches(self, metadata: Metadata) -> bool:
        """See Node."""
        stored: Any = metadata.get(self.key)
        kind = kind_of(stored)
        if kind != self.operand.kind or kind not in ("number", "string"):
            return False
        limit: Any = self.operand.value
        match self.operator:
            case "$gt":
                return stored > limit
            case "$gte":
                return stored >= limit
            case "$lt":
                return stored < limit
            case "$lte":
                return stored <= limit


class And(msgspec.Struct, frozen=True):
    """All of these; of nothing: true."""

    nodes: tuple[Node, ...]

    def matches(self, metadata: Metadata) -> bool:
        """See Node."""
        return all(node.matches(metadata) for node in self.nodes)


class Or(msgspec.Struct, frozen=True):
    """Any of these; of nothing: false."""

    nodes: tuple[Node, ...]

    def matches(self, metadata: Metadata) -> bool:
        """See Node."""
        return any(node.matches(metadata) for node in self.nodes)


Node = Among | Range | And | Or
"""A parsed filter; `matches(metadata)` evaluates it."""

EVERYTHING = And(())


def constant(node: Node) -> bool | None:
    """What the filter is by constants alone ({}, $and [], $or [], $in [], $nin []); None when rows decide."""
    match node:
        case Among():
            return None if node.any_of else node.negated
        case Range():
            return None
        case And() | Or():
            neutral = isinstance(node, And)
            parts = [constant(part) for part in node.nodes]
            if (not neutral) in parts:
                return not neutral
            return neutral if all(part is neutral for part in parts) else None


def conditions(node: Node) -> Iterator[Among | Range]:
    """The conditions of a filter, left to right."""
    if isinstance(node, And | Or):
        for part in node.nodes:
            yield from conditions(part)
    else:
        yield node


def parse(value: object) -> Node:
    """A filter as the document writes it; None and {} are everything (OPR-1). InvalidFilter names what is wrong."""
    if value is None:
        return EVERYTHING
    parsed = _filter(value, 1)
    count = sum(1 for _ in conditions(parsed))
    if count > MAX_CONDITIONS:
        raise _invalid(f"the filter has {count} conditions", hint=f"use at most {MAX_CONDITIONS}")
    return parsed


def _filter(value: object, depth: int) -> Node:
    if depth > MAX_DEPTH:
        raise _invalid("the filter nests too deep", hint=f"use at most {MAX_DEPTH} levels")
    if not isinstance(value, Mapping):
        raise _invalid(f"{show(value)} is no filter", hint="pass key → scalar or operators")
    nodes: list[Node] = []
    for key, given in cast("Mapping[object, object]", value).items():
        if key == "$and":
            nodes.append(And(_filters("$and", given, depth)))
        elif key == "$or":
            nodes.append(Or(_filters("$or", given, depth)))
        else:
            nodes.append(_field(key, given))
    return nodes[0] if len(nodes) == 1 else And(tuple(nodes))


def _filters(key: str, given: object, depth: int) -> tuple[Node, ...]:
    if not isinstance(given, list | tuple):
        raise _invalid(f"{key} is {show(given)}", hint="pass a list of filters")
    return tuple(_filter(item, depth + 1) for item in cast("list[object]", given))


def _field(raw: object, given: object) -> Node:
    if isinstance(raw, str) and raw.startswith("$"):
        raise _invalid(f"there is no operator {show(raw)} here", hint="use $and and $or, or a key")
    key = check_key(raw, clause="OPR-1")
    if not isinstance(given, Mapping):
        return Among(key, (_scalar(key, "$eq", given),))
    operators = cast("Mapping[object, object]", given)
    if not operators:
        raise _invalid(f"filter key {key!r} has no operator", hint='write {"$eq": value}')
    nodes = tuple(_condition(key, operator, operand) for operator, operand in operators.items())
    return nodes[0] if len(nodes) == 1 else And(nodes)


def _condition(key: str, given: object, operand: object) -> Node:
    operator = cast(str, given)
    match operator:
        case "$eq" | "$ne":
            return Among(key, (_scalar(key, operator, operand),), negated=operator == "$ne")
        case "$in" | "$nin":
            if not isinstance(operand, list | tuple):
                raise _invalid(f"{operator} of {key!r} is {show(operand)}", hint="pass a list of scalars")
            values = cast("list[object]", operand)
            if len(values) > MAX_LIST_VALUES:
                raise _invalid(f"{operator} of {key!r} has {len(values)} values", hint=f"use at most {MAX_LIST_VALUES}")
            return Among(key, tuple(_scalar(key, operator, item) for item in values), negated=operator == "$nin")
        case "$gt" | "$gte" | "$lt" | "$lte":
            scalar = _scalar(key, operator, operand)
            if isinstance(scalar.value, str) and len(scalar.value) > MAX_RANGE_CHARACTERS:
                raise _invalid(
                    f"{operator} of {key!r} has {len(scalar.value)} characters",
                    hint=f"use at most {MAX_RANGE_CHARACTERS}",
                )
            return Range(key, operator, scalar)
        case _:
            raise _invalid(
                f"filter key {key!r} has the operator {show(operator)}",
                hint="use $eq $ne $gt $gte $lt $lte $in $nin",
            )


def _scalar(key: str, operator: str, value: object) -> Equals:
    return equality(key, value, f"{operator} of {key!r}", clause="OPR-1")


def _invalid(message: str, *, hint: str) -> InvalidFilter:
    return InvalidFilter(message, hint=hint, clause="OPR-1")
