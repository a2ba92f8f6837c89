"""Known failures: what `memassay.toml` of an adapter's own repository declares to fail, until when and why.

[[known]]
clause = "ORD-1"
signature = "order / observe"        # aspect / operation, as reports print them
backend = "acme"
versions = ">=2.1, <3"               # of the engine; absent: all
reason = "ties are sorted by id until positions are stored"
url = "https://example.org/issues/7"
expires = 2027-03-01

[cases]
folder = "cases"                     # their programs are run first
"""

from __future__ import annotations

import json
import operator
import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import msgspec

from ..spec.clauses import CLAUSES, LEVELS, Level
from ..spec.divergence import Signature
from . import output
from .artefact import BackendResult, Finding, KnownResult, Result
from .exits import UsageProblem

FILE = Path("memassay.toml")
"""Where the declarations are, in the current directory."""

ACCEPTED_FOR = timedelta(days=90)
"""How long a failure is known that `--accept` wrote down."""

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}


class Known(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One declared failure. `signature` is "aspect / operation"; level: from which level on it must be met."""

    clause: str
    signature: str
    backend: str
    reason: str
    expires: date
    versions: str = ""
    url: str = ""
    level: Level = "core"

    @property
    def full(self) -> Signature:
        """The signature with its clause."""
        aspect, _, operation = self.signature.rpartition(" / ")
        return Signature(self.clause, aspect, operation)

    def about(self, names: Iterable[str], version: str) -> bool:
        """Whether it is about a backend of one of these names, with an engine of this version."""
        return self.backend in names and within(version, self.versions)


class Declared(msgspec.Struct, frozen=True):
    """What the file says; `cases` is the folder of cases to run first."""

    known: tuple[Known, ...] = ()
    cases: Path | None = None


class _Cases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    folder: str


def read(path: Path = FILE) -> Declared:
    """The declarations of a file, none when there is no file. Other tables are others' to read. Raises UsageProblem."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Declared()
    except OSError as error:
        raise UsageProblem(f"{path} cannot be read: {error.strerror}", hint="mend or remove it") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageProblem(f"{path} is no TOML: {error}", hint="mend it") from None
    entries = tables.get("known", [])
    if not isinstance(entries, list):
        raise UsageProblem(f"{path}: known is no list of tables", hint="write [[known]]")
    known = tuple(_entry(path, number, entry) for number, entry in enumerate(msgspec.to_builtins(entries), 1))
    folder = None
    if "cases" in tables:
        try:
            folder = path.parent / msgspec.convert(tables["cases"], _Cases).folder
        except msgspec.ValidationError as error:
            raise UsageProblem(f"{path}: [cases]: {error}", hint='write folder = "…"') from None
    return Declared(known, folder)


def _entry(path: Path, number: int, given: Any) -> Known:
    where = f"{path}: [[known]] number {number}"
    try:
        entry = msgspec.convert(given, Known)
    except msgspec.ValidationError as error:
        raise UsageProblem(f"{where}: {error}", hint="see `memassay known --help`") from None
    if entry.clause not in CLAUSES:
        raise UsageProblem(f"{where}: there is no clause {entry.clause!r}", hint="`memassay clauses` lists them")
    if not re.fullmatch(r"\S.* / \S+", entry.signature):
        raise UsageProblem(f"{where}: {entry.signature!r} is no signature", hint='write "aspect / operation"')
    if not entry.reason.strip():
        raise UsageProblem(f"{where}: the reason is empty", hint="say why it fails")
    try:
        ranges(entry.versions)
    except ValueError as error:
        raise UsageProblem(f"{where}: {error}", hint='write versions = ">=2.1, <3"') from None
    return entry


def ranges(text: str) -> list[tuple[str, tuple[int, ...]]]:
    """A range of versions as its conditions. Raises ValueError."""
    conditions: list[tuple[str, tuple[int, ...]]] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        found = re.fullmatch(r"(>=|<=|==|!=|>|<)\s*(\d+(?:\.\d+)*)", part)
        if found is None:
            raise ValueError(f"{part!r} is no condition on a version")
        conditions.append((found[1], _numbers(found[2])))
    return conditions


def version_in(text: str) -> tuple[int, ...] | None:
    """The first version in what an engine says of itself, such as `Engine 3.45.1 (driver 0.1)`."""
    found = re.search(r"\d+(?:\.\d+)*", text)
    return None if found is None else _numbers(found[0])


def within(version: str, wanted: str) -> bool:
    """Whether an engine's version is in a range; the empty range holds for all, any other for none without number."""
    conditions, own = ranges(wanted), version_in(version)
    if own is None:
        return not conditions
    return all(COMPARE[sign](*_padded(own, bound)) for sign, bound in conditions)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def _padded(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Both with as many numbers: 2 is 2.0."""
    size = max(len(left), len(right))
    return left + (0,) * (size - len(left)), right + (0,) * (size - len(right))


def judge(
    entries: Sequence[Known],
    met: Callable[[Signature], int],
    asked: Callable[[Known], bool],
    today: date,
) -> list[KnownResult]:
    """What became of the entries about one backend.

    met: in how many programs a signature showed. asked: whether the run would have met the entry, did it still fail.
    An expired entry stays expired whether it was met or not.
    """
    results: list[KnownResult] = []
    for entry in entries:
        programs = met(entry.full)
        status = "met" if programs else "stale" if asked(entry) else "not judged"
        results.append(
            KnownResult(
                clause=entry.clause,
                signature=entry.signature,
                versions=entry.versions,
                reason=entry.reason,
                url=entry.url,
                expires=entry.expires.isoformat(),
                status="expired" if entry.expires < today else status,
                programs=programs,
            )
        )
    return results


def at_least(level: Level, wanted: Level) -> bool:
    """Whether a level asks all that another does."""
    return LEVELS.index(level) >= LEVELS.index(wanted)


def accept(result: Result, path: Path, today: date) -> int:
    """Append an entry for every finding that fails, and return how many. Raises UsageProblem when it cannot.

    What is there is left as it is; the reasons are the user's to fill in.
    """
    written = [
        entry(backend, finding, result.corpus.level, f"accepted on {today.isoformat()}: say why", today + ACCEPTED_FOR)
        for backend in result.backends
        for found in backend.clauses.values()
        for finding in found.findings
        if finding.verdict != "known"
    ]
    if not written:
        return 0
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
    output.write(path, (before + gap + "\n".join(written)).encode())
    return len(written)


def entry(backend: BackendResult, finding: Finding, level: Level, reason: str, expires: date) -> str:
    """A finding as an entry of the file, for the version of the engine on which it was found."""
    signature, version = finding.case.signature, version_in(backend.engine)
    pairs = {
        "clause": signature.clause,
        "signature": f"{signature.aspect} / {signature.operation}",
        "backend": backend.name,
        "versions": "" if version is None else "==" + ".".join(map(str, version)),
        "reason": reason,
        "url": "",
        "level": level,
    }
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in pairs.items() if value]
    return "\n".join(["[[known]]", *lines, f"expires = {expires.isoformat()}", ""])
