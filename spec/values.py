"""Checks and normal forms of single values: instants, ids, text, metadata, content (VAL-1 … VAL-3, MSG-0)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from .errors import InvalidRequest
from .types import Content, FilePart, Message, Metadata, Part, ReasoningPart, TextPart, Thread, ToolPart

MAX_ID_CHARACTERS = 255
MAX_METADATA_BYTES = 1 << 20
MAX_METADATA_DEPTH = 64
MAX_SAFE_INTEGER = 2**53 - 1
ROLES = ("user", "assistant", "system", "tool")


def instant(value: object, name: str) -> datetime:
    """An aware datetime in UTC, floored to the millisecond (VAL-1)."""
    if not isinstance(value, datetime):
        raise InvalidRequest(f"{name} is not a datetime: {show(value)}", hint="pass an aware datetime", clause="VAL-1a")
    if value.tzinfo is UTC:  # most are; this and the like below make a batch cheap
        return value.replace(microsecond=value.microsecond // 1000 * 1000)
    if value.utcoffset() is None:
        raise InvalidRequest(f"{name} has no time zone", hint="pass an aware datetime, e.g. in UTC", clause="VAL-1a")
    try:
        utc = value.astimezone(UTC)
    except OverflowError:
        raise InvalidRequest(
            f"{name} is outside the years 0001 to 9999 in UTC", hint="pass an instant within them", clause="VAL-1a"
        ) from None
    # The microsecond counts up within its second, before 1970 too, so this floors toward minus infinity.
    return utc.replace(microsecond=utc.microsecond // 1000 * 1000)


def iso(at: datetime) -> str:
    """An instant of VAL-1 as `YYYY-MM-DDTHH:MM:SS.mmmZ`."""
    return at.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def text(value: object, name: str, *, clause: str = "VAL-2a") -> str:
    """A string that every engine can hold: no U+0000, no lone surrogate (VAL-2a)."""
    if type(value) is not str:
        raise InvalidRequest(f"{name} is not a string: {show(value)}", hint="pass a str", clause=clause)
    if "\0" in value:
        raise InvalidRequest(f"{name} contains U+0000", hint="remove it or encode it", clause=clause)
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(
            f"{name} contains a lone surrogate", hint="pass well-formed Unicode", clause=clause
        ) from None
    return value


def identifier(value: object, name: str) -> str:
    """An id: a non-empty string of at most 255 characters (VAL-2a)."""
    checked = text(value, name)
    if not 1 <= len(checked) <= MAX_ID_CHARACTERS:
        raise InvalidRequest(
            f"{name} has {len(checked)} characters", hint=f"use 1 to {MAX_ID_CHARACTERS}", clause="VAL-2a"
        )
    return checked


def json_value(value: object, name: str, depth: int = 1) -> Any:
    """A deep copy of a JSON value within the limits of VAL-3; `depth` is that of the container it would be."""
    match value:
        case None | bool():
            return value
        case str():
            return text(value, name)
        case int():
            if abs(value) > MAX_SAFE_INTEGER:
                raise InvalidRequest(f"{name} is beyond ±(2^53 − 1)", hint="store a string", clause="VAL-3a")
            return int(value)
        case float():
            if not math.isfinite(value):
                raise InvalidRequest(f"{name} is not finite", hint="store null or a string", clause="VAL-3a")
            return float(value)
        case dict() | list():
            if depth > MAX_METADATA_DEPTH:
                raise InvalidRequest(
                    f"{name} nests deeper than {MAX_METADATA_DEPTH} levels", hint="flatten it", clause="VAL-3a"
                )
            if isinstance(value, list):
                items = cast("list[object]", value)
                return [json_value(item, name, depth + 1) for item in items]
            pairs = cast("dict[Any, object]", value)
            return {
                key if _plain(key) else _key(key, name): item if _plain(item) else json_value(item, name, depth + 1)
                for key, item in pairs.items()
            }
        case _:
            raise InvalidRequest(f"{name} is not JSON: {show(value)}", hint="store a string", clause="VAL-3a")


def _plain(value: object) -> bool:
    """Whether this is a string that needs no further look."""
    return type(value) is str and value.isascii() and "\0" not in value


def _key(key: object, name: str) -> str:
    if type(key) is not str:
        raise InvalidRequest(f"{name} has the key {show(key)}", hint="keys are strings", clause="VAL-3a")
    return text(key, f"a key of {name}")


def metadata(value: object, name: str = "metadata") -> Metadata:
    """A deep copy of a metadata object; None is {} (VAL-3)."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidRequest(f"{name} is not an object: {show(value)}", hint="pass a dict", clause="VAL-3a")
    copied: Metadata = json_value(cast(object, value), name)
    return bounded(copied, name)


def bounded(value: Metadata, name: str = "metadata") -> Metadata:
    """The same object, refused when its compact JSON is larger than 1 MiB in UTF-8 (VAL-3)."""
    if not value or len(msgspec.json.encode(value)) <= MAX_METADATA_BYTES // 2:
        return value  # much faster, and never half as long as what counts: floats are written otherwise
    size = len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
    if size > MAX_METADATA_BYTES:
        raise InvalidRequest(f"{name} takes {size} bytes as JSON", hint="store at most 1 MiB", clause="VAL-3a")
    return value


def role(value: object) -> str:
    """One of the four roles (MSG-0)."""
    if type(value) is not str or value not in ROLES:
        raise InvalidRequest(f"role is {show(value)}", hint="use " + ", ".join(ROLES), clause="MSG-0")
    return value


def content(value: object) -> Content:
    """A string, or a deep copy of a non-empty sequence of parts (MSG-0)."""
    if isinstance(value, str):
        return text(value, "content")
    if not isinstance(value, list | tuple) or not value:
        raise InvalidRequest(
            f"content is {show(cast(object, value))}", hint="pass a string or a non-empty list of parts", clause="MSG-0"
        )
    return tuple(_part(item) for item in cast("Sequence[object]", value))


def _part(part: object) -> Part:
    match part:
        case TextPart(text=words):
            return TextPart(text=text(words, "a part's text"))
        case ReasoningPart(text=words):
            return ReasoningPart(text=text(words, "a part's text"))
        case FilePart(media_type=media_type, url=url, filename=filename):
            return FilePart(
                media_type=text(media_type, "a file's media_type"),
                url=text(url, "a file's url"),
                filename=None if filename is None else text(filename, "a file's filename"),
            )
        case ToolPart(tool_call_id=call, tool_name=tool, input=given, output=out, error=error):
            if out is not None and error is not None:
                raise InvalidRequest("a tool has an output and an error", hint="give one of them", clause="MSG-0")
            return ToolPart(
                tool_call_id=text(call, "a tool's tool_call_id"),
                tool_name=text(tool, "a tool's tool_name"),
                input=json_value(given, "a tool's input"),
                output=json_value(out, "a tool's output"),
                error=None if error is None else text(error, "a tool's error"),
            )
        case _:
            raise InvalidRequest(
                f"a part is {show(part)}", hint="use TextPart, ReasoningPart, FilePart, ToolPart", clause="MSG-0"
            )


def integer(value: object, name: str, *, least: int = 0, clause: str = "ORD-4") -> int:
    """An integer from `least` to 2^53 − 1; booleans and floats are refused."""
    if type(value) is not int or not least <= value <= MAX_SAFE_INTEGER:
        raise InvalidRequest(f"{name} is {show(value)}", hint=f"pass an integer ≥ {least}", clause=clause)
    return value


def copy_json(value: Any) -> Any:
    """A deep copy of a valid JSON value (VAL-4)."""
    if isinstance(value, dict):
        return {key: copy_json(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [copy_json(item) for item in cast("list[Any]", value)]
    return value


def copy_message(message: Message) -> Message:
    """A copy that shares no mutable value with the original (VAL-4)."""
    parts = message.content
    if not isinstance(parts, str):
        parts = tuple(
            ToolPart(p.tool_call_id, p.tool_name, copy_json(p.input), copy_json(p.output), p.error)
            if isinstance(p, ToolPart)
            else p
            for p in parts
        )
    return Message(
        message.id,
        message.thread_id,
        message.resource_id,
        message.role,
        parts,
        copy_json(message.metadata),
        message.created_at,
    )


def copy_thread(thread: Thread) -> Thread:
    """A copy that shares no mutable value with the original (VAL-4)."""
    return Thread(
        thread.id,
        thread.resource_id,
        thread.title,
        copy_json(thread.metadata),
        thread.created_at,
        thread.updated_at,
        thread.clone,
    )


def show(value: object) -> str:
    """A short ASCII rendering for messages."""
    shown = ascii(value)
    return shown if len(shown) <= 60 else shown[:57] + "…"


def walk(value: Any) -> Iterator[Any]:
    """Every value inside a value, itself first; keys of objects too."""
    yield value
    match value:
        case dict():
            for key, item in cast("dict[Any, Any]", value).items():
                yield key
                yield from walk(item)
        case list() | tuple():
            for item in cast("Sequence[Any]", value):
                yield from walk(item)
        case msgspec.Struct():
            for field in value.__struct_fields__:
                yield from walk(getattr(value, field))
        case _:
            return
