"""Artefacts of any kind, read back from files and folders: of a version that is known, or refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from . import documents, extensions
from .artefact import KINDS
from .exits import UsageProblem

HINT = "give files that --json wrote, case files, or folders of them"

MARKS = {"result": "selected", "mutants": "mutants", "difference": "losses", "case": "signature"}
"""By kind, a field that no other kind has; kinds that entry points add have a field `format` instead."""

WORDS = {
    "result": "result",
    "mutants": "kill matrix",
    "difference": "difference",
    "case": "case file",
    "bench": "bundle of a benchmark",
    "compare": "comparison of benchmarks",
}
"""How a message names a kind."""


class Artefact(NamedTuple):
    """What a file holds. kind: as `memassay schema` knows it."""

    path: Path
    kind: str
    value: Any


class _Head(msgspec.Struct):
    """Enough of a file to tell its kind."""

    version: Any = None
    format: Any = None
    selected: Any = None
    mutants: Any = None
    losses: Any = None
    signature: Any = None


def read(paths: Sequence[Path]) -> tuple[list[Artefact], list[Path]]:
    """The artefacts of all files, each once, and files in folders that are none. Raises UsageProblem.

    A file that is named has to be an artefact; in a folder there may be other JSON, which is not read.
    """
    kinds = extensions.artefacts()
    found: dict[Path, Artefact] = {}
    others: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.setdefault(path, _read(path, kinds))
            continue
        below = [file for file in sorted(path.rglob("*.json")) if file.is_file()]
        for file in below:
            data = documents.load(file, hint=HINT)
            if _kind(data, kinds):
                found.setdefault(file, _read(file, kinds))
            else:
                others.append(file)
        if not any(file in found for file in below):
            raise UsageProblem(f"{path} holds no artefacts", hint=HINT)
    return [*found.values()], others


def _read(path: Path, kinds: Mapping[str, type[Any]]) -> Artefact:
    data = documents.load(path, hint=HINT)
    kind = _kind(data, kinds)
    if not kind:
        # A result is what is given most often: what is wrong with it says most.
        documents.decode(path, data, KINDS["result"], what="artefact", hint=HINT)
        raise UsageProblem(f"{path} is no artefact", hint=HINT)
    what = WORDS.get(kind, kind)
    return Artefact(path, kind, documents.decode(path, data, kinds[kind], what=what, hint=HINT))


def _kind(data: bytes, kinds: Mapping[str, type[Any]]) -> str:
    """The kind of artefact that a file holds, whatever its version; empty when it is none."""
    try:
        head = msgspec.json.decode(data, type=_Head)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
    for kind, struct in kinds.items():
        if head.format is not None and head.format == _format(struct):
            return kind
    if head.format is not None:
        return ""
    return next((kind for kind, mark in MARKS.items() if getattr(head, mark) is not None), "")


def _format(struct: type[Any]) -> object:
    return next((field.default for field in msgspec.structs.fields(struct) if field.name == "format"), None)


def by_kind(found: Sequence[Artefact]) -> Mapping[str, list[Any]]:
    """The artefacts of each kind, in the order given."""
    sorted_: dict[str, list[Any]] = {}
    for artefact in found:
        sorted_.setdefault(artefact.kind, []).append(artefact.value)
    return sorted_


def unknown(found: Sequence[Artefact], known: Sequence[str]) -> Iterator[Artefact]:
    """Artefacts of kinds that other packages add and that nobody here can show."""
    yield from (artefact for artefact in found if artefact.kind not in known)
