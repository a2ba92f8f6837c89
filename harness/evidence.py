"""What was expected and what came, as plain JSON for people: what is long is cut around where the two first differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from ..spec.forms import Form
from .plain import LONGEST, bounded, plain

SHOWN = 20
"""Elements of a long list that are kept on each side of the first difference, and half of a large object's keys."""

MOST = 200_000
"""Bytes of a value that are kept at all."""

TOO_DEEP = "nested too deeply to be kept"


def side_by_side(expected: Any, got: Any) -> tuple[Form, Form]:
    """Both values as forms, cut alike."""
    try:
        left, right = _cut(plain(expected), plain(got))
        return _at_most(left), _at_most(right)
    except RecursionError:
        return TOO_DEEP, TOO_DEEP


def _cut(left: Form, right: Form) -> tuple[Form, Form]:
    if isinstance(left, str) and isinstance(right, str):
        return _texts(left, right)
    if isinstance(left, list) and isinstance(right, list):
        return _lists(cast("list[Form]", left), cast("list[Form]", right))
    if isinstance(left, dict) and isinstance(right, dict):
        return _objects(cast("dict[str, Form]", left), cast("dict[str, Form]", right))
    return _alone(left), _alone(right)


def _alone(form: Form) -> Form:
    """A form that has no counterpart."""
    return _cut(form, form)[0] if isinstance(form, str | list | dict) else form


def _texts(left: str, right: str) -> tuple[Form, Form]:
    if max(len(left), len(right)) <= LONGEST:
        return left, right
    start = 0 if left == right else max(0, _first_difference(left, right) - LONGEST // 2)
    return _window(left, start), _window(right, start)


def _window(text: str, start: int) -> str:
    if start == 0:
        return bounded(text)
    return f"…{text[start : start + LONGEST]}… (from character {start:,} of {len(text):,})"


def _lists(left: list[Form], right: list[Form]) -> tuple[Form, Form]:
    around = _first_difference(left, right)
    long = max(len(left), len(right)) > 2 * SHOWN
    start, end = (max(0, around - SHOWN), around + SHOWN) if long else (0, 2 * SHOWN)
    pairs = [_cut(a, b) for a, b in zip(left[start:end], right[start:end], strict=False)]
    return (
        _part(left, start, end, [pair[0] for pair in pairs]),
        _part(right, start, end, [pair[1] for pair in pairs]),
    )


def _part(items: list[Form], start: int, end: int, paired: list[Form]) -> list[Form]:
    """The elements from start to end; those that have counterparts are cut already."""
    before = [f"... {start} before"] if start else []
    after = [f"... {len(items) - end} more"] if end < len(items) else []
    return [*before, *paired, *(_alone(item) for item in items[start + len(paired) : end]), *after]


def _objects(left: dict[str, Form], right: dict[str, Form]) -> tuple[Form, Form]:
    """Of many keys those that differ are kept first."""
    missing = object()
    differing = [key for key in {**left, **right} if left.get(key, missing) != right.get(key, missing)]
    kept = set([*differing, *left, *right][: 2 * SHOWN])
    pairs = {key: _cut(left[key], right[key]) for key in left if key in kept and key in right}
    return (
        _some(left, kept, {key: pair[0] for key, pair in pairs.items()}),
        _some(right, kept, {key: pair[1] for key, pair in pairs.items()}),
    )


def _some(form: dict[str, Form], kept: set[str], paired: dict[str, Form]) -> dict[str, Form]:
    shown = {bounded(key): paired[key] if key in paired else _alone(item) for key, item in form.items() if key in kept}
    return shown if len(shown) == len(form) else {**shown, "...": f"{len(form) - len(shown)} more"}


def _first_difference(left: Sequence[Any], right: Sequence[Any]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(left), len(right)))


def _at_most(form: Form) -> Form:
    """Much of little may be much too."""
    text = msgspec.json.encode(form)
    return form if len(text) <= MOST else bounded(text.decode())
