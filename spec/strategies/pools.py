"""The values programs are made of: few, so that they collide, and each there for a reason.

Strategies draw from these alone. Forms (forms.py), not Python values.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from ..forms import Form

T = TypeVar("T")

NOON = "2024-03-01T12:00:00.000000+00:00"

NEAR = (
    NOON,
    NOON,
    "2024-03-01T21:00:00.000000+09:00",
    "2024-03-01T12:00:00.001000+00:00",
    "2024-03-01T12:00:00.002000+00:00",
)
"""Instants that tie."""

FINE = (
    "2024-03-01T12:00:00.000123+00:00",
    "2024-03-01T12:00:00.000999+00:00",
    "2024-03-01T12:00:00.001999+00:00",
    "1969-12-31T23:59:59.998001+00:00",
    "1969-12-31T23:59:59.998999+00:00",
    "1969-12-31T23:59:59.999999+00:00",
)
"""Finer than a millisecond, on both sides of 1970."""

FAR = (
    "2024-03-01T21:00:00.001000+09:00",
    "2024-03-01T06:30:00.000000-05:30",
    "1969-12-31T23:59:59.999000+00:00",
    "1970-01-01T00:00:00.000000+00:00",
    "0001-01-01T00:00:00.000000+00:00",
    "9999-12-31T23:59:59.999000+00:00",
    "9999-12-31T23:59:59.999999+00:00",
)
"""Other zones, and the ends of the calendar."""

BAD_INSTANTS: tuple[Form, ...] = (
    {"$naive": "2024-03-01T12:00:00"},
    {"$at": "0001-01-01T00:00:00+09:00"},
    {"$at": "9999-12-31T23:59:59-05:00"},
    "2024-03-01",
    1709294400,
)

IDS = ("z", "a", "m", "b", "k")
"""Message ids whose order is not the order of the alphabet."""

ODD_IDS: tuple[Form, ...] = (
    "A",
    " a",
    "a ",
    "\u00e9",
    "e\u0301",
    "\uff5e",
    "\U0001f600",
    "a' OR '1'='1",
    'a"b',
    "a%",
    "a_",
    "a\\",
    "*",
    "../a",
    "a.b",
    "a:b",
    "$a",
    "null",
    {"$repeat": ["x", 255]},
)

LONG_IDS: tuple[Form, ...] = (
    {"$repeat": ["x", 255]},
    {"$concat": [{"$repeat": ["x", 254]}, "y"]},
    {"$repeat": ["x", 254]},
    {"$repeat": ["\uac00", 255]},
    {"$concat": [{"$repeat": ["\uac00", 254]}, "\uac01"]},
    {"$repeat": ["\U0001f600", 255]},
)

BAD_IDS: tuple[Form, ...] = (
    "",
    {"$repeat": ["x", 256]},
    {"$concat": ["a", {"$chars": [0]}, "b"]},
    {"$chars": [0xD83D]},
    7,
)

TEXTS: tuple[Form, ...] = (
    "x",
    "",
    " padded ",
    "line\nbreak\ttab\r\n",
    "quote ' double \" back \\ slash",
    "percent % under _ star * question ?",
    "'; drop table messages; --",
    "\u00e9 and e\u0301",
    "\uc548\ub155\ud558\uc138\uc694",
    "\u1112\u1161\u11ab",
    "\u05e9\u05dc\u05d5\u05dd \u202e\u200f",
    "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\ufeffbom\ufffd\uffff",
    "null",
    '{"a": 1}',
)

LONG_TEXTS: tuple[Form, ...] = (
    {"$repeat": ["x", 1 << 20]},
    {"$repeat": ["\ud55c", 1 << 16]},
    {"$repeat": ["\U0001f600 ", 1 << 16]},
    {"$concat": [{"$repeat": ["ab", 1 << 16]}, "'"]},
)

BAD_TEXTS: tuple[Form, ...] = (
    {"$concat": ["a", {"$chars": [0]}, "b"]},
    {"$chars": [0]},
    {"$chars": [0xD83D]},
    {"$chars": [97, 0xDE00, 98]},
)

LONG_STRINGS: tuple[Form, ...] = (
    {"$repeat": ["a", 255]},
    {"$repeat": ["a", 256]},
    {"$repeat": ["a", 257]},
    {"$concat": [{"$repeat": ["a", 256]}, "b"]},
    {"$repeat": ["a", 8191]},
    {"$repeat": ["a", 8192]},
    {"$repeat": ["a", 32766]},
    {"$repeat": ["a", 32767]},
    {"$concat": [{"$repeat": ["a", 32766]}, "b"]},
    {"$repeat": ["\ud55c", 11000]},
)
"""Lengths at which engines stop indexing."""

SCALARS: tuple[Form, ...] = (
    1,
    1.0,
    "1",
    True,
    "true",
    0,
    -0.0,
    False,
    "",
    None,
    "null",
    "a",
    "A",
    "a ",
    1.5,
    "\u00e9",
    "e\u0301",
    1e16,
    2**53 - 1,
    "%",
)
"""Filterable values, many of which are alike."""

ODD_SCALARS: tuple[Form, ...] = (
    1e300,
    -1e300,
    5e-324,
    0.1,
    -(2**53 - 1),
    1e16,
    123456789.123456789,
    "' OR 1=1 --",
    "a*",
    "_",
    "\\",
    "\U0001f600",
    "\uff5e",
)

CONTAINERS: tuple[Form, ...] = ([1], ["a"], {"a": 1}, [], {}, [None], {"a": {"b": [True]}}, [[1, "1"], {"": None}])

ODD_KEYS = ("a.b", "a", "$eq", "\ud55c\uae00", "with space", "quote'", "", "UPPER", "__proto__", "0", 'd"q')

BAD_METADATA: tuple[Form, ...] = (
    {"k": {"$float": "nan"}},
    {"k": {"$float": "inf"}},
    {"k": [{"$float": "-inf"}]},
    {"k": 2**53},
    {"k": {"a": -(2**53)}},
    {"k": {"$int": "123456789012345678901234567890"}},
    {"k": {"$tuple": [1, 2]}},
    {"k": {"$at": NOON}},
    {"$dict": [[1, "a"]]},
    {"k": {"$nest": [64, 1]}},
    {"k": {"$repeat": ["a", 1 << 20]}},
    [],
    "text",
)

BAD_KEYS = (
    "",
    "1a",
    "a-b",
    "a.b",
    "a b",
    'a"b',
    "a' OR 1=1 --",
    "$eq",
    "$or",
    "__proto__",
    "constructor",
    "prototype",
    "\ud55c",
    "a\n",
)

BAD_FILTER_VALUES: tuple[Form, ...] = (
    [],
    [1],
    {"$dict": []},
    {"$dict": [["$eq", 1]]},
    {"a": 1},
    {"$float": "nan"},
    {"$float": "inf"},
    {"$int": "9007199254740992"},
    {"$tuple": [1]},
    {"$at": NOON},
    {"$chars": [0]},
    {"$chars": [0xD83D]},
)

BAD_NUMBERS: tuple[Form, ...] = (-1, True, "1", 1.0, 1.5, {"$int": "9007199254740992"}, {"$float": "nan"})
"""Refused as a page, a page size, or a number of neighbours."""

PARTS: tuple[Form, ...] = (
    {"$part": {"type": "text", "text": "hello"}},
    {"$part": {"type": "text", "text": "\ud55c\uae00 \U0001f600"}},
    {"$part": {"type": "reasoning", "text": "because"}},
    {"$part": {"type": "file", "media_type": "image/png", "url": "data:image/png;base64,AA=="}},
    {"$part": {"type": "file", "media_type": "text/plain", "url": "https://example.org/a?b=c", "filename": "a.txt"}},
    {"$part": {"type": "tool", "tool_call_id": "c1", "tool_name": "search", "input": {"q": ["a", None]}}},
    {"$part": {"type": "tool", "tool_call_id": "c2", "tool_name": "add", "input": {"a": 1}, "output": {"sum": 2.5}}},
    {"$part": {"type": "tool", "tool_call_id": "c3", "tool_name": "add", "input": [], "error": "no numbers: ' \u00e9"}},
)

ROLES = ("user", "assistant", "system", "tool")


def chance(rng: Random, percent: int) -> bool:
    """True in about this share of programs."""
    return rng.randrange(100) < percent


def pick(rng: Random, pool: Sequence[T]) -> T:
    """One of a pool."""
    return rng.choice(pool)


def some(rng: Random, pool: Sequence[T], least: int, most: int) -> list[T]:
    """A few of a pool, with repetition."""
    return rng.choices(pool, k=rng.randint(least, most))


def distinct(rng: Random, pool: Sequence[T], least: int, most: int) -> list[T]:
    """A few of a pool, each once, in any order."""
    return rng.sample(pool, k=min(rng.randint(least, most), len(pool)))


def instant(rng: Random) -> Form:
    """An instant, most often one that ties."""
    kind = rng.randrange(10)
    return {"$at": pick(rng, NEAR if kind < 7 else FINE if kind < 9 else FAR)}
