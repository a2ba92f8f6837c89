"""Forms: JSON that stands for any Python value a call may be given, symbolic and invalid ones included.

Plain JSON stands for itself. An object whose first key is one of TAGS is symbolic, so that a program
with a 1 MiB string or 10,000 messages stays a few lines and a lone surrogate survives a JSON file:

    {"$at": "2024-03-01T12:00:00.000999+09:00"}   an aware instant        {"$naive": "2024-…"}  without zone
    {"$repeat": ["ab", 500]}  {"$concat": [form, …]}  {"$chars": [55357]}  strings
    {"$float": "nan"}  {"$int": "9007199254740993"}                        numbers JSON lacks
    {"$tuple": [form, …]}  {"$dict": [[key form, form], …]}  {"$nest": [64, form]}   containers
    {"$part": {"type": "text", "text": form}}                              a content part
    {"$vector": [seed, dimension]}  {"$spike": [dimension, i, x]}          unit normals; zeros but for x at i
    {"$fill": {"id": "m", "n": 10000, …}}  in a batch: n messages (see `fill`) or vectors (`fill_vectors`)
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec
import numpy as np

from .types import FilePart, NewMessage, NewVector, ReasoningPart, TextPart, ToolPart

Form = Any
"""A JSON value read as above."""

PARTS = {"text": TextPart, "reasoning": ReasoningPart, "file": FilePart, "tool": ToolPart}


TAGS = frozenset(
    f"${name}"
    for name in (
        *("at", "naive", "repeat", "concat", "chars", "float", "int"),
        *("tuple", "dict", "nest", "part", "vector", "spike", "fill"),
    )
)
"""Keys that make an object symbolic; any other key, `$and` for one, is a key."""


class FormError(Exception):
    """A form that stands for nothing: an unknown tag, or a tag's argument of the wrong shape."""


def resolve(form: Form) -> Any:
    """The Python value, built afresh at every call."""
    if isinstance(form, list):
        return [resolve(item) for item in cast("list[Form]", form)]
    if not isinstance(form, dict):
        return form
    pairs = cast("dict[str, Form]", form)
    tag = next(iter(pairs), "")
    if tag not in TAGS:
        return {key: resolve(item) for key, item in pairs.items()}
    try:
        return _symbolic(tag, pairs[tag])
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise FormError(f"cannot read {tag}: {error}") from error


def _symbolic(tag: str, given: Any) -> Any:
    match tag:
        case "$at":
            return datetime.fromisoformat(given)
        case "$naive":
            return datetime.fromisoformat(given).replace(tzinfo=None)
        case "$repeat":
            return given[0] * given[1]
        case "$concat":
            return "".join(resolve(item) for item in given)
        case "$chars":
            return "".join(chr(point) for point in given)
        case "$float":
            return float(given)
        case "$int":
            return int(given)
        case "$tuple":
            return tuple(resolve(item) for item in given)
        case "$dict":
            return {resolve(key): resolve(item) for key, item in given}
        case "$vector":
            return unit_vector(*given)
        case "$spike":
            dimension, index, component = given
            return [float(component) if i == index else 0.0 for i in range(dimension)]
        case "$nest":
            value = resolve(given[1])
            for _ in range(given[0]):
                value = {"n": value}
            return value
        case "$part":
            fields = {key: resolve(item) for key, item in given.items() if key != "type"}
            return PARTS[given["type"]](**fields)
        case _:
            raise FormError(f"there is no form {tag}")


def at(instant: datetime) -> Form:
    """The form of an aware instant."""
    return {"$at": instant.isoformat()}


def string(text: str) -> Form:
    """The form of any string: code points where JSON in UTF-8 cannot hold it, symbolic where it is long and uniform."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        return {"$chars": [ord(character) for character in text]}
    if len(text) > 64 and len(set(text)) == 1:
        return {"$repeat": [text[0], len(text)]}
    return text


def unit_vector(seed: int, dimension: int) -> list[float]:
    """A direction that only the seed decides, with float32 components."""
    normal = np.random.Generator(np.random.PCG64(seed)).standard_normal(dimension)
    unit = (normal / np.linalg.norm(normal)).astype(np.float32)
    return [float(component) for component in unit]


class Fill(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """n messages `<id>0` … of one thread, `step_ms` apart from `start`; `metadata` cycles through the list."""

    id: str
    thread_id: str
    n: int
    start: str = "2024-03-01T12:00:00+00:00"
    step_ms: int = 1
    content: Form = "x"
    metadata: list[Form] = msgspec.field(default_factory=lambda: [None])


def fill(spec: Fill) -> Iterator[NewMessage]:
    """The messages a Fill stands for."""
    start = datetime.fromisoformat(spec.start).astimezone(UTC)
    step = timedelta(milliseconds=spec.step_ms)
    content = resolve(spec.content)
    for i in range(spec.n):
        yield NewMessage(
            id=f"{spec.id}{i}",
            thread_id=spec.thread_id,
            content=content,
            metadata=resolve(spec.metadata[i % len(spec.metadata)]) if spec.metadata else None,
            created_at=start + i * step,
        )


class FillVectors(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """n vectors `<id>0` …: unit normals of the seeds from `seed` on, or all `vector`; `metadata` cycles."""

    id: str
    n: int
    dimension: int
    seed: int = 0
    vector: Form = None
    metadata: list[Form] = msgspec.field(default_factory=lambda: [None])


def fill_vectors(spec: FillVectors) -> Iterator[NewVector]:
    """The vectors a FillVectors stands for."""
    for i in range(spec.n):
        yield NewVector(
            id=f"{spec.id}{i}",
            vector=unit_vector(spec.seed + i, spec.dimension) if spec.vector is None else resolve(spec.vector),
            metadata=resolve(spec.metadata[i % len(spec.metadata)]) if spec.metadata else None,
        )


def show(form: Form) -> str:
    """A form as a short Python-like expression, for people; ASCII only."""
    if isinstance(form, list):
        return "[" + ", ".join(show(item) for item in cast("list[Form]", form)) + "]"
    if not isinstance(form, dict):
        return ascii(form)
    pairs = cast("dict[str, Any]", form)
    tag = next(iter(pairs), "")
    given: Any = pairs.get(tag)
    match tag:
        case "$at" | "$naive":
            return f"{tag[1:]}({given!r})"
        case "$repeat":
            return f"{given[0]!a} * {given[1]}"
        case "$concat":
            return " + ".join(show(item) for item in given)
        case "$chars":
            return ascii("".join(chr(point) for point in given))
        case "$float":
            return f"float({given!r})"
        case "$int":
            return str(given)
        case "$tuple":
            return "(" + "".join(show(item) + ", " for item in given).strip() + ")"
        case "$dict":
            return "{" + ", ".join(f"{show(key)}: {show(item)}" for key, item in given) + "}"
        case "$vector" | "$spike":
            return f"{tag[1:]}({', '.join(show(item) for item in given)})"
        case "$nest":
            return f"nest({given[0]}, {show(given[1])})"
        case "$part":
            return f"{given['type']}_part(" + _arguments(given, "type") + ")"
        case "$fill":
            return "fill(" + _arguments(given) + ")"
        case _:
            return "{" + ", ".join(f"{key!a}: {show(item)}" for key, item in pairs.items()) + "}"


def _arguments(pairs: dict[str, Any], *hidden: str) -> str:
    return ", ".join(f"{key}={show(item)}" for key, item in pairs.items() if key not in hidden)
