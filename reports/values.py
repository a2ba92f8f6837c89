"""Plain values for people: short, ASCII, and of two that differ only where they do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from ..spec.forms import show

WIDTH = 300
"""Characters of a value before it is cut."""

MANY = 6
"""Differences that are shown."""


def short(form: Any, width: int = WIDTH) -> str:
    """A form as an expression, cut in the middle when it is long."""
    shown = show(form)
    return shown if len(shown) <= width else f"{shown[: width // 2]} ... {shown[-width // 2 + 5 :]}"


def comparison(expected: Any, got: Any) -> Iterator[tuple[str, str, str]]:
    """Where two values differ: path, expected, got. The path is empty when they differ as a whole."""
    found = list(_differences(expected, got, ""))
    for path, left, right in found[:MANY]:
        yield path, short(left), short(right)
    if len(found) > MANY:
        yield "", f"and {len(found) - MANY} more differences", ""


def _differences(expected: Any, got: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if expected == got and type(expected) is type(got):
        return
    if isinstance(expected, dict) and isinstance(got, dict):
        left, right = cast("dict[str, Any]", expected), cast("dict[str, Any]", got)
        if left.keys() == right.keys() and not any(key.startswith("$") for key in left):
            for key, value in left.items():
                yield from _differences(value, right[key], f"{path}.{key}" if path else key)
            return
    if isinstance(expected, list) and isinstance(got, list):
        lefts, rights = cast("list[Any]", expected), cast("list[Any]", got)
        if _ids(lefts) is not None and _ids(rights) is not None and _ids(lefts) != _ids(rights):
            yield f"{path}[ids]", _ids(lefts), _ids(rights)
            return
        if len(lefts) == len(rights):
            for i, (left, right) in enumerate(zip(lefts, rights, strict=True)):
                yield from _differences(left, right, f"{path}[{i}]")
            return
    yield path, expected, got


def _ids(items: list[Any]) -> list[Any] | None:
    """The ids of a list of rows; None when it holds anything else."""
    if all(isinstance(item, dict) and "id" in item for item in items):
        return [item["id"] for item in items]
    return None
