"""When a store's answer is the expected one: equality by JSON type, aware instants, sets of acceptable errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, cast

import msgspec

from .interpreter import Outcome, Refused, Returned
from .types import Hit, VectorHit
from .vectors import TOLERANCE


def equal(expected: Any, got: Any) -> bool:
    """Whether two returned values are the same: numbers by value, otherwise exactly, by type too."""
    match expected:
        case None | bool() | str():
            return type(got) is type(expected) and got == expected
        case int() | float():
            if isinstance(got, bool) or not isinstance(got, int | float):
                return False
            return got == expected or (_nan(got) and _nan(expected))  # the model takes over what a store showed
        case datetime():
            return isinstance(got, datetime) and got.utcoffset() == timedelta(0) and got == expected
        case dict():
            pairs = cast("dict[Any, Any]", expected)
            return (
                isinstance(got, dict)
                and pairs.keys() == cast("dict[Any, Any]", got).keys()
                and all(equal(item, got[key]) for key, item in pairs.items())
            )
        case list() | tuple():
            items = cast("Sequence[Any]", expected)
            return (
                isinstance(got, list | tuple)
                and len(cast("Sequence[Any]", got)) == len(items)
                and all(map(equal, items, cast("Sequence[Any]", got)))
            )
        case Hit() | VectorHit():
            return (
                type(got) is type(expected)
                and got.id == expected.id
                and close(expected.score, got.score)
                and equal(getattr(expected, "metadata", None), getattr(got, "metadata", None))
            )
        case msgspec.Struct():
            return type(got) is type(expected) and all(
                equal(getattr(expected, field), getattr(got, field)) for field in expected.__struct_fields__
            )
        case _:
            return expected == got


def close(expected: float, got: Any) -> bool:
    """Whether a score is within VEC-3's tolerance whatever the norms are; a stricter test than the clause's."""
    if isinstance(got, bool) or not isinstance(got, int | float):
        return False
    if _nan(got) or _nan(expected):
        return _nan(got) and _nan(expected)
    return abs(expected - got) <= TOLERANCE * max(1.0, abs(expected))


def same(expected: Outcome, got: Outcome) -> bool:
    """Whether an outcome is the expected one, or as right."""
    match expected:
        case Returned():
            return isinstance(got, Returned) and equal(expected.value, got.value)
        case Refused():
            return isinstance(got, Refused) and (got.code == expected.code or got.code in expected.also)
        case _:
            return expected == got


def _nan(value: float) -> bool:
    return isinstance(value, float) and math.isnan(value)
