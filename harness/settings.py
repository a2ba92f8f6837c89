"""Reads what was chosen about engines: options of the command line, and `memassay.toml` in the current directory."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from ..backends.provision.settings import HEAP, Choices, Settings
from ..backends.registry import names
from .exits import UsageProblem

FILE = Path("memassay.toml")
EXAMPLES = {
    "urls": ("e.g. --url postgres=postgresql://me@host/db", 'e.g. [urls] postgres = "postgresql://me@host/db"'),
    "images": ("e.g. --image postgres=pgvector/pgvector:pg17", 'e.g. [images] postgres = "pgvector/pgvector:pg17"'),
    "homes": ("e.g. --home opensearch=/opt/opensearch", 'e.g. [homes] opensearch = "/opt/opensearch"'),
}
"""As an option and in the file, by kind of choice, which is the name of its table in the file."""

OTHERS = frozenset({"known", "cases"})
"""Tables of the file that are read elsewhere (known.py)."""


def gather(
    *, urls: Sequence[str] = (), images: Sequence[str] = (), homes: Sequence[str] = (), heap: str = HEAP
) -> Settings:
    """The settings of these options and of the file. Raises UsageProblem."""
    if re.fullmatch(r"[1-9]\d*[mMgG]", heap) is None:
        raise UsageProblem(f"--heap {heap!r} is no size", hint="write 512m or 1g")
    options = Choices(urls=pairs("urls", urls), images=pairs("images", images), homes=pairs("homes", homes))
    return Settings(options=options, file=read(FILE), heap=heap)


def pairs(kind: str, given: Sequence[str]) -> dict[str, str]:
    """What options of the form BACKEND=VALUE say. Raises UsageProblem."""
    chosen: dict[str, str] = {}
    for item in given:
        backend, equals, value = item.partition("=")
        option = f"--{kind.removesuffix('s')}"
        if not (backend and equals and value):
            raise UsageProblem(f"a {option} is not BACKEND={option[2:].upper()}", hint=EXAMPLES[kind][0])
        _check_backend(backend, option)
        if chosen.setdefault(backend, value) != value:
            raise UsageProblem(f"{option} is given twice for {backend}", hint="give one")
    return chosen


def read(path: Path) -> Choices:
    """What the file says; nothing when there is none. Raises UsageProblem."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Choices()
    except (OSError, ValueError) as error:
        raise UsageProblem(f"{path} cannot be read: {error}", hint="it is TOML, in UTF-8") from None
    if unknown := sorted(document.keys() - EXAMPLES.keys() - OTHERS):
        raise UsageProblem(
            f"{path} has an unknown table {unknown[0]!r}",
            hint=f"it may have {', '.join(f'[{kind}]' for kind in (*EXAMPLES, *sorted(OTHERS)))}",
        )
    return Choices(**{kind: _table(path, kind, document.get(kind, {})) for kind in EXAMPLES})


def _table(path: Path, kind: str, table: object) -> dict[str, str]:
    example = EXAMPLES[kind][1]
    if not isinstance(table, dict):
        raise UsageProblem(f"{path}: {kind} is no table", hint=example)
    chosen: dict[str, str] = {}
    for key, said in cast("dict[str, object]", table).items():
        _check_backend(key, f"{path}: [{kind}]")
        if not isinstance(said, str) or not said:
            raise UsageProblem(f"{path}: {kind}.{key} is no string, or empty", hint=example)
        chosen[key] = said
    return chosen


def _check_backend(name: str, where: str) -> None:
    """A slip in a name would otherwise choose nothing, silently."""
    if name not in names() and not set(":+") & set(name):
        raise UsageProblem(f"{where} names an unknown backend {name!r}", hint=f"registered: {', '.join(names())}")
