"""Values on the wire of the bridge: calls and their results as JSON that no language has to guess at.

JSON stands for itself, but for three objects with a single key: `{"$at": "2024-03-01T12:00:00.000Z"}` is an
instant, `{"$float": "nan"}` (inf, -inf) a number that JSON lacks, and `{"$object": {…}}` an object that would
otherwise be read as one of these three. Integers lie within ±(2^53 − 1); other numbers are IEEE doubles in
their shortest form. Strings are well-formed Unicode.

Arguments that the wire cannot carry are refused on this side, with the error that the specification has for
them: a lone surrogate, an instant without zone, an integer beyond 2^53 − 1, a tuple or a key that is no string
where JSON is wanted, an object where a message or another typed value is wanted, and 1.0 where an integer is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, cast

import msgspec
from msgspec import NODEFAULT, UNSET

from ...spec.errors import ConfigurationError, InvalidFilter, InvalidRequest, StoreError
from ...spec.types import (
    CloneInfo,
    CloneResult,
    DateRange,
    FilePart,
    Hit,
    Include,
    IndexConfig,
    IndexDescription,
    MemoryConfig,
    Message,
    MessageFilter,
    MessageRange,
    MessageUpdate,
    NewMessage,
    NewVector,
    OrderBy,
    Part,
    ReasoningPart,
    RecallResult,
    SemanticRecall,
    TextPart,
    Thread,
    ThreadFilter,
    ThreadPage,
    ThreadsConfig,
    TitleGeneration,
    ToolPart,
    VectorHit,
    VectorRow,
    WorkingMemory,
)
from ...spec.values import MAX_SAFE_INTEGER, show

AT, FLOAT, OBJECT = "$at", "$float", "$object"
TAGS = frozenset({AT, FLOAT, OBJECT})
FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}

JSON_FIELDS = frozenset({"metadata", "filter", "input", "output", "schema"})
"""Fields of structs, and parameters, that hold JSON of the user's."""

INTEGERS = frozenset(
    {"page", "per_page", "top_k", "message_limit", "dimension", "last_messages", "message_range", "before", "after"}
    | {"with_previous_messages", "with_next_messages", "m", "ef_construction", "lists"}
)
"""Parameters and fields that are integers."""

PARTS: dict[str, type[Part]] = {"text": TextPart, "reasoning": ReasoningPart, "file": FilePart, "tool": ToolPart}


class Unreadable(Exception):
    """What came over the wire is none of its values."""


# Lines


def line(message: Mapping[str, Any]) -> bytes:
    """A message as one line."""
    return json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def read(data: bytes) -> dict[str, Any]:
    """The message of a line. Raises Unreadable."""
    try:
        message = json.loads(data.decode(), parse_int=_integer, parse_constant=_constant)
        if b"\\u" in data:
            json.dumps(message, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Unreadable("a string holds a lone surrogate") from None
    except (ValueError, RecursionError) as error:
        raise Unreadable(str(error)) from None
    if not isinstance(message, dict):
        raise Unreadable("it is no object")
    return cast("dict[str, Any]", message)


def _integer(digits: str) -> int | float:
    """Beyond 2^53 − 1 the digits are those of a double, as languages print it that have no other numbers."""
    number = int(digits)
    return number if abs(number) <= MAX_SAFE_INTEGER else float(digits)


def _constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


# Arguments


def arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """A call's arguments for the wire; null is an absent one. Raises InvalidRequest, InvalidFilter."""
    return {name: _field(name, value, filter=name == "filter") for name, value in given.items()}


def _field(name: str, value: object, *, filter: bool = False) -> Any:
    if name in JSON_FIELDS and not isinstance(value, msgspec.Struct):
        refusal = InvalidFilter if filter else ConfigurationError if name == "schema" else InvalidRequest
        return _json(value, name, refusal)
    return _typed(value, name)


def _typed(value: object, name: str) -> Any:
    """A value whose type the specification names."""
    match value:
        case msgspec.Struct():
            return _struct(value)
        case list() | tuple():
            return [_typed(item, name) for item in cast("list[object]", value)]
        case dict():
            raise InvalidRequest(f"{name} is {show(cast(object, value))}", hint="pass the specification's own types")
        case float() if name in INTEGERS and value.is_integer():
            raise InvalidRequest(f"{name} is {value}", hint="pass an integer")
        case _:
            return _scalar(value, name, InvalidRequest)


def _struct(value: msgspec.Struct) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    tag = value.__struct_config__.tag
    if tag is not None:
        fields["type"] = tag
    for field in msgspec.structs.fields(value):
        item: object = getattr(value, field.name)
        if item is UNSET or (item is None and field.default is None):
            continue
        filter = field.name == "filter" or (
            field.name == "metadata" and isinstance(value, MessageFilter | ThreadFilter)
        )
        fields[field.name] = _field(field.name, item, filter=filter)
    return fields


def _json(value: object, name: str, refusal: type[StoreError]) -> Any:
    """JSON of the user's, tagged where it needs to be."""
    match value:
        case dict():
            pairs = cast("dict[object, object]", value)
            for key in pairs:
                if type(key) is not str:
                    raise refusal(f"{name} has the key {show(key)}", hint="keys are strings")
            carried = {
                _string(cast(str, key), name, refusal): _json(item, name, refusal) for key, item in pairs.items()
            }
            return {OBJECT: carried} if len(carried) == 1 and TAGS & carried.keys() else carried
        case list():
            return [_json(item, name, refusal) for item in cast("list[object]", value)]
        case _:
            return _scalar(value, name, refusal)


def _scalar(value: object, name: str, refusal: type[StoreError]) -> Any:
    match value:
        case None | bool():
            return value
        case str():
            return _string(value, name, refusal)
        case int():
            if abs(value) > MAX_SAFE_INTEGER:
                raise refusal(f"{name} is beyond ±(2^53 − 1)", hint="pass a string")
            return int(value)
        case float():
            if math.isfinite(value):
                return float(value)
            return {FLOAT: "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
        case datetime():
            if value.utcoffset() is None:
                raise refusal(f"{name} has no time zone", hint="pass an aware datetime")
            return {AT: value.isoformat()}
        case _:
            raise refusal(f"{name} is {show(value)}", hint="pass JSON, or the specification's own types")


def _string(value: str, name: str, refusal: type[StoreError]) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise refusal(f"{name} contains a lone surrogate", hint="pass well-formed Unicode") from None
    return value


# Results


def result(value: object) -> Any:
    """A call's result, or an argument, of any type for the wire."""
    match value:
        case msgspec.Struct():
            tag = value.__struct_config__.tag
            return ({"type": tag} if tag is not None else {}) | {
                name: result(getattr(value, name)) for name in value.__struct_fields__
            }
        case list() | tuple():
            return [result(item) for item in cast("list[object]", value)]
        case dict():
            carried = {str(key): result(item) for key, item in cast("dict[object, object]", value).items()}
            return {OBJECT: carried} if len(carried) == 1 and TAGS & carried.keys() else carried
        case _:
            return _scalar(value, "a result", InvalidRequest)


def decode(value: Any) -> Any:
    """A value from the wire. Raises Unreadable for a tag with the wrong thing in it."""
    if isinstance(value, list):
        return [decode(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    pairs = cast("dict[str, Any]", value)
    if len(pairs) != 1 or TAGS.isdisjoint(pairs):
        return {key: decode(item) for key, item in pairs.items()}
    ((tag, given),) = pairs.items()
    try:
        match tag:
            case "$at":
                return datetime.fromisoformat(given)
            case "$float":
                return FLOATS[given]
            case _:
                return {key: decode(item) for key, item in given.items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Unreadable(f"{tag} holds {show(given)}") from None


Reader = Callable[[Any], Any]


def build(kind: type[Any], fields: Any, **readers: Reader) -> Any:
    """A struct from a decoded object; a field that is left out has its default. Raises Unreadable."""
    if not isinstance(fields, dict):
        raise Unreadable(f"{show(fields)} is no {kind.__name__}")
    given = cast("dict[str, Any]", fields)
    known = {field.name: field for field in msgspec.structs.fields(kind)}
    for name in given:
        if name not in known and name != "type":
            raise Unreadable(f"{kind.__name__} has no field {show(name)}")
    for name, field in known.items():
        if name not in given and field.default is NODEFAULT and field.default_factory is NODEFAULT:
            raise Unreadable(f"{kind.__name__} lacks the field {name}")
    return kind(**{name: readers.get(name, _same)(item) for name, item in given.items() if name in known})


def _same(value: Any) -> Any:
    return value


def optional(reader: Reader) -> Reader:
    """Reads what may be null."""
    return lambda value: None if value is None else reader(value)


def many(reader: Reader) -> Reader:
    """Reads a list, as a tuple."""

    def read_all(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise Unreadable(f"{show(value)} is no list")
        return tuple(reader(item) for item in cast("list[Any]", value))

    return read_all


def thread(value: Any) -> Any:
    """A Thread."""
    return build(Thread, value, clone=optional(lambda clone: build(CloneInfo, clone)))


def message(value: Any) -> Any:
    """A Message."""
    return build(Message, value, content=content)


def content(value: Any) -> Any:
    """A message's content: a string, or parts."""
    return tuple(_part(item) for item in cast("list[Any]", value)) if isinstance(value, list) else value


def _part(value: Any) -> Any:
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    kind = PARTS.get(str(fields.get("type")))
    if kind is None:
        raise Unreadable(f"{show(cast(object, value))} is no part")
    return build(kind, fields)


def index_config(value: Any) -> Any:
    """An IndexConfig."""
    return build(IndexConfig, value)


def _description(value: Any) -> Any:
    return build(IndexDescription, value, config=index_config)


def _row(value: Any) -> Any:
    return build(VectorRow, value, vector=many(float))


RESULTS: dict[str, Reader] = {
    **dict.fromkeys(("create_thread", "update_thread"), thread),
    "get_thread": optional(thread),
    "list_threads": lambda value: build(ThreadPage, value, threads=many(thread)),
    "clone_thread": lambda value: build(CloneResult, value, thread=thread, cloned_messages=many(message)),
    "list_clones": many(thread),
    **dict.fromkeys(("save_messages", "update_messages"), many(message)),
    "recall": lambda value: build(
        RecallResult, value, messages=many(message), hits=many(lambda hit: build(Hit, hit, score=float))
    ),
    "semantic_index": optional(_description),
    "describe_index": _description,
    "list_indexes": many(_same),
    "get_vectors": many(_row),
    "query_vectors": many(lambda hit: build(VectorHit, hit, score=float)),
}
"""How a call's decoded result becomes the specification's types; of other calls it is a plain value."""


# Arguments, on the other side


def _config(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return build(
        MemoryConfig,
        value,
        semantic_recall=_semantic_recall,
        working_memory=_maybe(WorkingMemory),
        generate_title=_maybe(TitleGeneration),
        threads=_maybe(ThreadsConfig, generate_title=_maybe(TitleGeneration)),
    )


def _semantic_recall(value: Any) -> Any:
    def around(given: Any) -> Any:
        return _maybe(MessageRange)(given)

    if not isinstance(value, dict):
        return value
    return build(SemanticRecall, value, message_range=around, index_config=_maybe(IndexConfig))


def _maybe(kind: type[Any], **readers: Reader) -> Reader:
    """Reads an object as a struct; anything else stays as it is, for the callee to refuse."""
    return lambda value: build(kind, value, **readers) if isinstance(value, dict) else value


def _maybe_many(reader: Reader) -> Reader:
    return lambda value: [reader(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


PARAMETERS: dict[tuple[str, str], Reader] = {
    ("list_threads", "filter"): _maybe(ThreadFilter),
    ("recall", "filter"): _maybe(MessageFilter, date_range=_maybe(DateRange)),
    ("list_threads", "order_by"): _maybe(OrderBy),
    ("recall", "order_by"): _maybe(OrderBy),
    ("recall", "include"): _maybe_many(_maybe(Include)),
    ("save_messages", "messages"): _maybe_many(_maybe(NewMessage, content=content)),
    ("update_messages", "updates"): _maybe_many(_maybe(MessageUpdate, content=content)),
    ("upsert_vectors", "vectors"): _maybe_many(_maybe(NewVector)),
    ("create_index", "config"): _maybe(IndexConfig),
    **{
        (call, "thread_config"): _config
        for call in ("save_messages", "update_messages", "recall", "get_working_memory", "update_working_memory")
    },
    ("open_memory", "config"): _config,
}
"""How a call's decoded argument becomes the specification's types, for adapters in Python."""


def parameters(call: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call from the wire, as an adapter in Python takes them. Raises Unreadable."""
    return {name: PARAMETERS.get((call, name), _same)(decode(item)) for name, item in given.items()}
