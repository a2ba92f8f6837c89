"""Versioned JSON files, read back: of a version that is known, or refused with the reason."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from . import artefact
from .exits import UsageProblem

T = TypeVar("T")

VERSION = 1
"""The version of results and of case files that this memassay reads and writes."""


class _Head(msgspec.Struct):
    version: Any = None


def load(path: Path, *, hint: str) -> bytes:
    """A file's bytes, without a byte order mark. Raises UsageProblem."""
    try:
        return path.read_bytes().removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise UsageProblem(f"{path} cannot be read: {error.strerror}", hint=hint) from None


def decode(path: Path, data: bytes, kind: type[T], *, what: str, hint: str, versioned: bool = True) -> T:
    """A file's content. Raises UsageProblem.

    what: what the file should be, in words. versioned: it has to say of which version it is.
    """
    try:
        version = msgspec.json.decode(data, type=_Head).version
        if type(version) is int and version != VERSION:
            raise UsageProblem(
                f"{path} is of version {version}, which {'a newer' if version > VERSION else 'no'} memassay wrote; "
                f"this one ({artefact.own_version()}) reads version {VERSION}",
                hint="use the memassay that wrote it, or a later one",
            )
        if versioned and version is None:
            raise UsageProblem(f"{path} is no {what}: it has no version", hint=hint)
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UsageProblem(f"{path} is no {what}: {error}", hint=hint) from None
    except RecursionError:
        raise UsageProblem(f"{path} is no {what}: it is nested too deeply", hint=hint) from None
