"""Judging strings: what is special about the ids and texts of a call, and which clause that is about."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

from .values import walk


def confusion(name: str, others: Sequence[str]) -> str | None:
    """The clause of taking this id for another: one like it but for case, space or Unicode form, or for its end."""
    rest = [other for other in others if other != name]
    if any(_fold(other) == _fold(name) for other in rest):
        return "VAL-2"
    return "VAL-2b" if len(name) > 100 and any(other[:100] == name[:100] for other in rest) else None


def _fold(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold().strip()


def text_clause(value: Any) -> str | None:
    """The clause that is put to the test by the strings in a value, if they are special."""
    texts = list(_texts(value))
    if any(_hostile(text) for text in texts):
        return "ISO-2"
    if any(len(text) > 200 for text in texts):
        return "VAL-2b"
    return None if all(text.isascii() for text in texts) else "VAL-2"


def hostile_text(value: Any) -> bool:
    """Whether any string has a character that means something to an engine."""
    return any(map(_hostile, _texts(value)))


def _hostile(text: str) -> bool:
    return len(text) <= 200 and any(mark in text for mark in "'\"%\\;*")


def length_clause(text: str) -> str:
    """The clause of a text that did not come back."""
    return "VAL-2b" if len(text) > 200 else "VAL-2"


def _texts(value: Any) -> Iterator[str]:
    """Every string inside a value; keys of objects too."""
    return (each for each in walk(value) if isinstance(each, str))
