"""Metadata filters for document engines: what of metadata is indexed, and conditions as queries of the bool kind.

Metadata is kept as opaque text, and beside it one keyword field of tokens that sort as what they stand for, so that
an equality is a term and a range is a range of terms: nothing depends on mappings, on what was written first, or on
how many keys there are (FLT-3). Keyword terms compare as UTF-8, which is by code point (ORD-1, OPR-2a).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from ..spec.filters import KEY, MAX_KEY_CHARACTERS, Equals, Window, kind_of
from ..spec.operators import MAX_RANGE_CHARACTERS, Among, And, Node, Or, Range, constant
from ..spec.types import Metadata

Clause = dict[str, Any]
"""A query, as both engines write it in JSON."""

TOKENS: dict[str, Any] = {"type": "keyword", "doc_values": False}
"""The mapping of a field of tokens, which are looked up, and never sorted or counted by."""

EVERYTHING: Clause = {"match_all": {}}
NOTHING: Clause = {"match_none": {}}

PREFIX_CHARACTERS = MAX_RANGE_CHARACTERS + 1
"""What a range sees of a string. An operand is shorter, so that the rest of the string cannot matter."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


# What is stored


def tokens(metadata: Metadata) -> list[str]:
    """What filters can find in an object: for each key they may name, its scalar; of a long string two tokens.

    Arrays, objects and other keys have none, as no condition matches them.
    """
    found: list[str] = []
    for key, item in metadata.items():
        kind = kind_of(item)
        if kind is None or len(key) > MAX_KEY_CHARACTERS or not KEY.fullmatch(key):
            continue
        found.append(token(Equals(key, kind, item)))
        if isinstance(item, str) and len(item) > MAX_RANGE_CHARACTERS:
            found.append(f"{key}:s{item[:PREFIX_CHARACTERS]}")
    return found


def token(equals: Equals) -> str:
    """The term that stands for this key with this scalar, and for no other."""
    key, value = equals.key, equals.value
    match value:
        case None:
            return f"{key}:-"
        case bool():
            return f"{key}:b{value:d}"
        case int() | float():
            return f"{key}:n{_ordered(value)}"
        case str() if len(value) <= MAX_RANGE_CHARACTERS:
            return f"{key}:s{value}"
        case str():
            return f"{key}:h{hashlib.sha256(value.encode()).hexdigest()}"


def _ordered(number: float) -> str:
    """16 hexadecimal digits that sort as the numbers do; −0.0 is 0."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", number + 0.0))
    return f"{bits ^ 0xFFFF_FFFF_FFFF_FFFF if bits >> 63 else bits | 1 << 63:016x}"


def millis(at: datetime) -> int:
    """An instant of VAL-1 as milliseconds since 1970."""
    return (at - _EPOCH) // _MILLISECOND


def instant_of(value: int) -> datetime:
    """The instant of so many milliseconds since 1970."""
    return _EPOCH + value * _MILLISECOND


# What is asked


def equal(conditions: Iterable[Equals], field: str) -> list[Clause]:
    """Clauses, all of which must hold, for a shallow filter on a field of tokens (FLT-1)."""
    return [{"term": {field: token(each)}} for each in conditions]


def within(window: Window, field: str) -> list[Clause]:
    """Clauses, all of which must hold, for bounds on a field of milliseconds (TIM-1)."""
    bounds: dict[str, int] = {}
    if window.start is not None:
        bounds["gt" if window.start_exclusive else "gte"] = millis(window.start)
    if window.end is not None:
        bounds["lt" if window.end_exclusive else "lte"] = millis(window.end)
    return [{"range": {field: bounds}}] if bounds else []


def holds(node: Node, field: str) -> Clause:
    """The query for an operator filter on a field of tokens (OPR); two-valued, as queries of rows are.

    What is constant is folded, so that there are as many clauses as conditions, and no level without one.
    """
    always = constant(node)
    if always is not None:
        return EVERYTHING if always else NOTHING
    match node:
        case Among():
            found = _among(node, field)
            return {"bool": {"must_not": [found]}} if node.negated else found
        case Range():
            return {"range": {field: _bounds(node)}} if _orders(node) else NOTHING
        case And():
            return _all(node, field)
        case Or():
            parts = [holds(part, field) for part in _flat(node)]
            return parts[0] if len(parts) == 1 else any_of(parts)


def all_of(clauses: Sequence[Clause]) -> Clause:
    """All of these."""
    return {"bool": {"filter": [*clauses]}} if clauses else EVERYTHING


def any_of(clauses: Sequence[Clause]) -> Clause:
    """At least one of these."""
    return {"bool": {"should": [*clauses], "minimum_should_match": 1}} if clauses else NOTHING


def _all(node: And, field: str) -> Clause:
    """What must hold and what must not, side by side; ranges of one key as one."""
    wanted: list[Clause] = []
    unwanted: list[Clause] = []
    ranges: dict[tuple[str, str], dict[str, str]] = {}
    for part in _flat(node):
        if isinstance(part, Among) and part.negated:
            unwanted.append(_among(part, field))
        elif isinstance(part, Range) and _orders(part):
            bounds = ranges.setdefault((part.key, part.operand.kind), {})
            for side, value in _bounds(part).items():
                _narrow(bounds, side, value)
        else:
            wanted.append(holds(part, field))
    wanted += [{"range": {field: bounds}} for bounds in ranges.values()]
    if len(wanted) == 1 and not unwanted:
        return wanted[0]
    return {"bool": {key: value for key, value in (("filter", wanted), ("must_not", unwanted)) if value}}


def _flat(node: And | Or) -> list[Node]:
    """The parts that rows decide, those of parts of the same kind among them."""
    parts: list[Node] = []
    for part in node.nodes:
        if constant(part) is not None:
            continue
        if isinstance(part, And | Or) and type(part) is type(node):
            parts += _flat(part)
        else:
            parts.append(part)
    return parts


def _among(node: Among, field: str) -> Clause:
    found = sorted({token(each) for each in node.any_of})
    return {"term": {field: found[0]}} if len(found) == 1 else {"terms": {field: found}}


def _orders(node: Range) -> bool:
    """Whether the operand is of a type that ranges compare."""
    return node.operand.kind in ("number", "string")


def _bounds(node: Range) -> dict[str, str]:
    """Bounds on tokens: of the operand on the one side, of its key and type on the other."""
    first, beyond = (
        (f"{node.key}:n", f"{node.key}:o") if node.operand.kind == "number" else (f"{node.key}:s", f"{node.key}:t")
    )
    operand = token(node.operand)
    if node.operator in ("$gt", "$gte"):
        return {node.operator[1:]: operand, "lt": beyond}
    return {"gte": first, node.operator[1:]: operand}


def _narrow(bounds: dict[str, str], side: str, value: str) -> None:
    """Give bounds one more, of which the narrower counts; of equal ones that which excludes."""
    strict, other = (side[0] + "t", side[0] + "te")
    old = {name: bounds.pop(name) for name in (strict, other) if name in bounds}
    new = [*old.items(), (side, value)]
    # By code point, as the engine compares.
    limit = max(each for _, each in new) if side[0] == "g" else min(each for _, each in new)
    bounds[strict if (strict, limit) in new else other] = limit
