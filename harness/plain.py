"""What stores return and raise as plain JSON: forms (spec/forms.py), so that a reader can tell every value."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any, cast

import msgspec

from ..spec.forms import Form, string
from ..spec.interpreter import Crashed, Refused, Returned

LONGEST = 2_000
"""Characters of a text by a store that are kept."""


def bounded(text: str, most: int = LONGEST) -> str:
    """The text, or its beginning and its length: what stores say may be of any length."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def plain(value: Any) -> Form:
    """The value as a form. What JSON has no word for becomes its `repr`; errors' messages are bounded."""
    match value:
        case Returned():
            return plain(value.value)
        case Refused():
            return {"refused": _said(value.code), "message": _said(value.message)}
        case Crashed():
            return {"crashed": _said(value.kind), "message": _said(value.message)}
        case None | bool():
            return value
        case int():
            return int(value) if abs(value) < 2**53 else {"$int": _digits(value)}
        case float():
            return float(value) if math.isfinite(value) else {"$float": str(float(value))}
        case str():
            return string(str.__str__(value))  # what a value of a subclass holds, whatever it says
        case datetime():
            return {"$at" if value.utcoffset() is not None else "$naive": value.isoformat()}
        case list() | tuple() | set() | frozenset():
            return [plain(item) for item in cast("list[Any]", value)]
        case dict():
            pairs = cast("dict[Any, Any]", value)
            if all(type(key) is str and not key.startswith("$") and string(key) == key for key in pairs):
                return {key: plain(item) for key, item in pairs.items()}
            return {"$dict": [[plain(key), plain(item)] for key, item in pairs.items()]}
        case msgspec.Struct():
            return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
        case _:
            return _said(_repr(value))


def _said(told: object) -> Form:
    """A text by a store, which may be of any length, and no text at all."""
    return string(bounded(str.__str__(told) if isinstance(told, str) else _repr(told)))


def _digits(number: int) -> str:
    try:
        return str(int(number))
    except ValueError:  # Python refuses beyond 4,300 digits
        return hex(number)


def _repr(value: object) -> str:
    try:
        return repr(value)
    except Exception as error:  # noqa: BLE001 - it is a stranger's code
        return f"<{type(value).__name__}, whose repr raises {type(error).__name__}>"
