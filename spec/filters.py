"""The shallow message and thread filter, parsed once: the model evaluates it, engines compile it (FLT, TIM)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Literal, cast

import msgspec

from .errors import InvalidFilter, InvalidRequest
from .types import DateRange, Metadata
from .values import MAX_METADATA_BYTES, MAX_SAFE_INTEGER, instant, show

Kind = Literal["null", "bool", "number", "string"]
Scalar = str | int | float | bool | None

KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
MAX_KEY_CHARACTERS = 128
RESERVED_KEYS = frozenset({"__proto__", "constructor", "prototype"})


def kind_of(value: object) -> Kind | None:
    """The JSON type of a scalar; None for arrays and objects, which no condition matches."""
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case _:
            return None


_MISSING = object()


class Equals(msgspec.Struct, frozen=True):
    """`key` holds exactly this scalar of this JSON type (FLT-1)."""

    key: str
    kind: Kind
    value: Scalar

    def matches(self, metadata: Metadata) -> bool:
        """Whether the object has the key with an equal value of the same JSON type."""
        stored = metadata.get(self.key, _MISSING)
        # The value first: it is the quicker test, and seldom true.
        return stored == self.value and kind_of(stored) == self.kind


class Window(msgspec.Struct, frozen=True):
    """Bounds on created_at; both are instants of VAL-1, None is unbounded (TIM-1)."""

    start: datetime | None = None
    end: datetime | None = None
    start_exclusive: bool = False
    end_exclusive: bool = False

    def holds(self, at: datetime) -> bool:
        """Whether the instant lies within the bounds."""
        if self.start is not None and (at < self.start or (self.start_exclusive and at == self.start)):
            return False
        return self.end is None or not (at > self.end or (self.end_exclusive and at == self.end))


def check_key(key: object, *, clause: str = "FLT-2") -> str:
    """A filter key within FLT-2."""
    if type(key) is not str or not KEY.fullmatch(key) or len(key) > MAX_KEY_CHARACTERS or key in RESERVED_KEYS:
        raise InvalidFilter(f"filter key {show(key)} is not allowed", clause=clause)
    return key


def parse_metadata(value: object) -> tuple[Equals, ...]:
    """The conditions of a shallow metadata filter, all of which must hold (FLT-1, FLT-2)."""
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise InvalidFilter(f"metadata filter is {show(value)}", hint="pass key → scalar", clause="FLT-2")
    conditions: list[Equals] = []
    for raw, scalar in cast("Mapping[object, object]", value).items():
        key = check_key(raw)
        conditions.append(equality(key, scalar, f"filter key {key!r}", clause="FLT-2"))
    return tuple(conditions)


def equality(key: str, scalar: object, what: str, *, clause: str) -> Equals:
    """That the key holds this scalar; InvalidFilter, which says `what` has the value, for one that no key may hold."""
    kind = kind_of(scalar)
    if kind is None or not _storable(scalar):
        raise InvalidFilter(
            f"{what} has the value {show(scalar)}",
            hint="use a string up to 1 MiB, a finite number within ±(2^53 − 1) if an integer, a boolean or null",
            clause=clause,
            also=(InvalidRequest.code,),
        )
    return Equals(key, kind, _plain(scalar))


def _plain(scalar: object) -> Scalar:
    """A scalar as a str, int, float, bool or None: what callers pass may be a subclass, which drivers do not know."""
    match scalar:
        case None | bool():
            return scalar
        case int():
            return int(scalar)
        case float():
            return float(scalar)
        case _:
            return str.__str__(cast(str, scalar))


def _storable(scalar: object) -> bool:
    """Whether a scalar is within what metadata may hold, and so may be asked for."""
    match scalar:
        case bool():
            return True
        case int():
            return abs(scalar) <= MAX_SAFE_INTEGER
        case float():
            return math.isfinite(scalar)
        case str():
            try:
                return "\0" not in scalar and len(scalar.encode()) <= MAX_METADATA_BYTES
            except UnicodeEncodeError:
                return False
        case _:
            return True


def parse_window(value: object) -> Window:
    """The bounds of a date range (TIM-1); start after end is an empty window, not an error."""
    if value is None:
        return Window()
    if not isinstance(value, DateRange):
        raise InvalidRequest(f"date_range is {show(value)}", hint="pass a DateRange", clause="TIM-1")
    for name in ("start_exclusive", "end_exclusive"):
        if type(flag := getattr(value, name)) is not bool:
            raise InvalidRequest(f"date_range.{name} is {show(flag)}", hint="pass a bool", clause="TIM-1")
    return Window(
        start=None if value.start is None else instant(value.start, "date_range.start"),
        end=None if value.end is None else instant(value.end, "date_range.end"),
        start_exclusive=value.start_exclusive,
        end_exclusive=value.end_exclusive,
    )
