"""Whether what a store returned is a value of the specification at all: structs of ours with fields of their types."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

from .types import CloneResult, Hit, Message, RecallResult, Thread, ThreadPage, VectorHit, VectorRow


class Malformed(Exception):
    """A returned value that is none of the specification's; `clause` is the one it breaks, if it is plain."""

    def __init__(self, message: str, clause: str) -> None:
        super().__init__(message)
        self.clause = clause


def well_formed(value: Any) -> None:
    """Raise Malformed for a struct of ours whose fields are not of their types; anything else is judged elsewhere."""
    match value:
        case Message() | Thread():
            texts = [value.id, value.resource_id]
            texts += [value.thread_id, value.role] if isinstance(value, Message) else [value.title]
            for text in texts:
                _string(text)
            instants = [value.created_at] if isinstance(value, Message) else [value.created_at, value.updated_at]
            for at in cast("list[object]", instants):
                if not isinstance(at, datetime) or at.utcoffset() is None:
                    raise Malformed(f"{at!a:.60} is no aware datetime", "VAL-1")
            if not isinstance(cast(object, value.metadata), dict):
                raise Malformed(f"metadata is {value.metadata!a:.60}", "VAL-3")
            if isinstance(value, Message) and not isinstance(cast(object, value.content), str | list | tuple):
                raise Malformed(f"content is {value.content!a:.60}", "MSG-0")
        case RecallResult():
            _sequence(value.messages, Message, "messages")
            _sequence(value.hits, Hit, "hits")
            _counts(value.total, value.has_more)
        case ThreadPage():
            _sequence(value.threads, Thread, "threads")
            _counts(value.total, value.has_more)
        case VectorRow() | VectorHit():
            _string(value.id)
            if not isinstance(cast(object, value.metadata), dict):
                raise Malformed(f"metadata is {value.metadata!a:.60}", "VEC-2")
            if isinstance(value, VectorRow):
                _components(value.vector)
            else:
                _number(value.score, "score", "VEC-3")
        case Hit():
            _string(value.id)
            _number(value.score, "score", "VEC-3")
        case CloneResult():
            well_formed(value.thread)
            _sequence(value.cloned_messages, Message, "cloned_messages")
            if not isinstance(cast(object, value.id_map), dict):
                raise Malformed(f"id_map is {value.id_map!a:.60}", "CLN-1")
        case list() | tuple():
            for item in cast("Sequence[Any]", value):
                well_formed(item)
        case _:
            return


def _string(value: object) -> None:
    if type(value) is not str:
        raise Malformed(f"{value!a:.60} is a {type(value).__name__}, not a str", "VAL-2")


def _components(vector: object) -> None:
    if not isinstance(vector, list | tuple):
        raise Malformed(f"vector is a {type(vector).__name__}, not a tuple or list", "VEC-2")
    for component in cast("Sequence[object]", vector):
        _number(component, "a component", "VEC-2")


def _number(value: object, name: str, clause: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Malformed(f"{name} is a {type(value).__name__}, not a float", clause)
    try:
        float(value)
    except OverflowError:
        raise Malformed(f"{name} is beyond every float", clause) from None


def _sequence(values: object, kind: type[Any], name: str) -> None:
    if not isinstance(values, list | tuple):
        raise Malformed(f"{name} is a {type(values).__name__}, not a tuple or list", "")
    for item in cast("Sequence[object]", values):
        if not isinstance(item, kind):
            raise Malformed(f"{name} holds a {type(item).__name__}, not a {kind.__name__}", "")
        well_formed(item)


def _counts(total: object, has_more: object) -> None:
    if type(total) is not int or type(has_more) is not bool:
        raise Malformed(f"total is {total!a:.60}, has_more {has_more!a:.60}", "ORD-5")
