"""What stores return and raise as plain JSON: forms (spec/forms.py), so that a reader can tell every value."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any, cast

import msgspec

from ..spec.forms import Form, string
from ..spec.interpreter import Crashed, Refused, Returned

SHOWN = 20
"""Elements of a long list that are kept on each side of the first difference."""


def plain(value: Any) -> Form:
    """The value as a form. What JSON has no word for becomes its `repr`."""
    match value:
        case Returned():
            return plain(value.value)
        case Refused():
            return {"refused": value.code, "message": string(value.message)}
        case Crashed():
            return {"crashed": value.kind, "message": string(value.message)}
        case None | bool():
            return value
        case int():
            return int(value) if abs(value) < 2**53 else {"$int": str(int(value))}
        case float():
            return value if math.isfinite(value) else {"$float": str(value)}
        case str():
            return string(value)
        case datetime():
            return {"$at" if value.utcoffset() is not None else "$naive": value.isoformat()}
        case list() | tuple() | set() | frozenset():
            return [plain(item) for item in cast("list[Any]", value)]
        case dict():
            pairs = cast("dict[Any, Any]", value)
            if all(isinstance(key, str) and not key.startswith("$") and string(key) == key for key in pairs):
                return {key: plain(item) for key, item in pairs.items()}
            return {"$dict": [[plain(key), plain(item)] for key, item in pairs.items()]}
        case msgspec.Struct():
            return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
        case _:
            return string(repr(value))


def side_by_side(expected: Any, got: Any) -> tuple[Form, Form]:
    """Both values as forms; long lists are cut around where they first differ."""
    left, right = plain(expected), plain(got)
    around = _first_difference(left, right)
    return _cut(left, around), _cut(right, around)


def _first_difference(left: Form, right: Form) -> int:
    pairs = enumerate(zip(_items(left), _items(right), strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(_items(left)), len(_items(right))))


def _cut(form: Form, around: int) -> Form:
    items = _items(form)
    if len(items) <= 2 * SHOWN:
        return form
    start, end = max(0, around - SHOWN), min(len(items), around + SHOWN)
    before = [f"... {start} before"] if start else []
    after = [f"... {len(items) - end} more"] if end < len(items) else []
    return [*before, *items[start:end], *after]


def _items(form: Form) -> list[Form]:
    return cast("list[Form]", form) if isinstance(form, list) else []
