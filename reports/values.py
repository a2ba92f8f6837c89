"""Plain values for people: short, ASCII, and of two that differ only where they do."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any, cast

from ..spec.forms import show

WIDTH = 300
"""Characters of a value before it is cut."""

AROUND = 40
"""Characters shown on each side of a difference that is far inside."""

INVISIBLE = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
"""Unicode categories that are escaped: controls, formats (bidi among them), unassigned, private, surrogates, breaks."""

TOO_DEEP = "a value nested too deeply to be shown"

MANY = 6
"""Differences that are shown."""


def short(form: Any, width: int = WIDTH) -> str:
    """A form as an expression, cut in the middle when it is long."""
    return cut(expression(form), width)


def expression(form: Any) -> str:
    """A form as an expression; JSON where a tag's argument makes none."""
    try:
        return show(form)
    except RecursionError:
        return TOO_DEEP
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        return json.dumps(form)


def cut(text: str, width: int = WIDTH) -> str:
    """The text, or its ends and its length."""
    if len(text) <= width:
        return text
    said = f" ({len(text):,} characters)"
    left = (width - len(said)) // 2
    return f"{text[:left]} ... {text[-left + 5 :]}{said}"


def visible(text: str) -> str:
    """The text with what no font shows, and what would reorder or end the line, as escapes: U+202E is \\u202e."""
    if text.isprintable():
        return text
    return "".join(ascii(character)[1:-1] if _invisible(character) else character for character in text)


def _invisible(character: str) -> bool:
    return unicodedata.category(character) in INVISIBLE


def comparison(expected: Any, got: Any) -> Iterator[tuple[str, str, str]]:
    """Where two values differ: path, expected, got. The path is empty when they differ as a whole."""
    try:
        found = list(_differences(expected, got, ""))
    except RecursionError:
        found = [("", expected, got)]
    for path, left, right in found[:MANY]:
        yield path, *_pair(expression(left), expression(right))
    if len(found) > MANY:
        yield "", f"and {len(found) - MANY} more differences", ""


def _pair(left: str, right: str) -> tuple[str, str]:
    """Both texts, cut; where the cut would hide how they differ, what is around the first difference."""
    if cut(left) != cut(right) or left == right:
        return cut(left), cut(right)
    first = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    start = max(0, first - AROUND)
    shown = (
        f"... {text[start : start + 2 * AROUND]} ... (from character {start:,} of {len(text):,})"
        for text in (left, right)
    )
    return next(shown), next(shown)


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
            for i, (left, right) in enumerate(zip(lefts, rights, strict=True), _left_out(lefts)):
                yield from _differences(left, right, f"{path}[{i}]")
            return
    yield path, expected, got


def _ids(items: list[Any]) -> list[Any] | None:
    """The ids of a list of rows, which may have been cut; None when it holds anything else."""
    rows = [item for item in items if not (isinstance(item, str) and item.startswith("... "))]
    if all(isinstance(item, dict) and "id" in item for item in rows):
        return [item["id"] if isinstance(item, dict) else item for item in items]
    return None


def _left_out(items: list[Any]) -> int:
    """What to add to the indices of a list whose beginning was cut off: it begins with `... 480 before`."""
    found = re.fullmatch(r"\.\.\. (\d+) before", items[0]) if items and isinstance(items[0], str) else None
    return int(found[1]) - 1 if found else 0
