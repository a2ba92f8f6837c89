"""Names of data sets, `KIND:WHAT?option=value&…`, taken apart."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl

import msgspec

from ..harness.exits import UsageProblem

Options = TypeVar("Options", bound=msgspec.Struct)

COUNT = r"(\d+)([kM]?)"
FACTORS = {"": 1, "k": 1_000, "M": 1_000_000}


class Name(NamedTuple):
    """What comes before the first colon, between that and a question mark, and after it."""

    kind: str
    what: str
    given: str


def split(spec: str) -> Name:
    """The parts; those that are not there are empty."""
    found = re.match(r"([^:?]*)(?::([^?]*))?(?:\?(.*))?", spec, re.DOTALL)
    assert found is not None  # every string begins with nothing
    return Name(found[1], found[2] or "", found[3] or "")


def options(name: Name, wanted: type[Options]) -> Options:
    """The options of a name, of a type that says which there are. Raises UsageProblem."""
    try:
        pairs = parse_qsl(name.given, keep_blank_values=True, strict_parsing=True) if name.given else []
        return msgspec.convert(dict(pairs), type=wanted, strict=False)
    except (ValueError, msgspec.ValidationError) as error:
        known = ", ".join(field.name for field in msgspec.structs.fields(wanted))
        raise UsageProblem(
            f"bad options of {name.kind}, {name.given!r}: {error}", hint=f"name=value&…, of {known}"
        ) from error


def count(text: str) -> int | None:
    """A number such as 500, 10k or 1M; None for what is none."""
    found: Any = re.fullmatch(COUNT, text)
    return int(found[1]) * FACTORS[found[2]] if found else None
