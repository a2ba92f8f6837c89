"""A finding in words: clause, program, expected and got, and how to replay it."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator
from typing import NamedTuple

from ..harness.artefact import RERUNS, Case, Finding, Verdict
from ..spec.operation import Operation
from ..spec.program import Program
from .values import TOO_DEEP, comparison, cut, expression

INDENT = "    "

LONGEST = 2_000
"""Characters of a statement or an operation before it is cut."""


class Line(NamedTuple):
    """A line of a program; `deviates` marks the operation at which the store does."""

    text: str
    deviates: bool = False


class Shown(NamedTuple):
    """A finding as a page shows it. key: what links lead to; where: the store; command: replays it, or is empty."""

    key: str
    where: str
    verdict: Verdict
    case: Case
    strength: str
    cause: str
    command: str

    @property
    def what(self) -> str:
        """What deviated, at which operation."""
        return f"{self.case.signature.aspect} of {self.case.signature.operation}"


def shown(key: str, where: str, finding: Finding, cases: str) -> Shown:
    """A finding of a result; `cases` is the folder of its case files."""
    return Shown(
        key=key,
        where=where,
        verdict=finding.verdict,
        case=finding.case,
        strength=strength(finding),
        cause=cause(finding),
        command=replay(finding, cases),
    )


def shown_case(key: str, case: Case, path: str) -> Shown:
    """A case file by itself, which says no verdict: it failed when it was found."""
    return Shown(
        key=key,
        where=case.found.backend,
        verdict="flaky" if case.reproduced is not None and case.reproduced < RERUNS else "fail",
        case=case,
        strength=_rate(case),
        cause="",
        command=f"memassay replay {shlex.quote(path)}",
    )


def lines(finding: Finding, cases: str) -> Iterator[str]:
    """A finding in words."""
    case = finding.case
    yield from textwrap.wrap(cut(case.statement, LONGEST), 96)
    yield ""
    yield from program(case)
    yield from evidence(case)
    yield strength(finding)
    if finding.cause is not None:
        yield cause(finding)
    command = replay(finding, cases)
    if command:
        yield f"replay: {command}"
    yield ""


def program(case: Case) -> Iterator[str]:
    """The program, an operation a line, with a mark at the one that deviates."""
    for line in operations(case):
        yield from textwrap.wrap(
            cut(line.text, LONGEST),
            110,
            initial_indent="> " if line.deviates else "  ",
            subsequent_indent=INDENT,
            break_on_hyphens=False,
        )


def operations(case: Case) -> Iterator[Line]:
    """The program line by line, what the store is opened with first."""
    yield from (Line(line) for line in opening(case.program))
    for i, operation in enumerate(case.program.operations):
        yield Line(call(operation), deviates=i == case.index)


def opening(program: Program) -> Iterator[str]:
    """What the store is opened with, a line each."""
    if program.embedder:
        yield f"embedder(dimension={program.embedder})"
    if program.options:
        yield f"open({expression(program.options)})"


def around(case: Case, many: int) -> list[Line]:
    """The program's lines; of one with more than `many` those around the deviation, and how many are left out."""
    lines = list(operations(case))
    if len(lines) <= many:
        return lines
    start = min(max(0, case.index - many // 2), len(lines) - many)
    end = start + many
    before = [Line(f"... {count(start, 'operation')} before")] if start else []
    after = [Line(f"... {count(len(lines) - end, 'more operation')}")] if end < len(lines) else []
    return [*before, *lines[start:end], *after]


def call(operation: Operation) -> str:
    """An operation as a line, whatever its arguments are."""
    try:
        return str(operation)
    except RecursionError:
        return f"{operation.name}({TOO_DEEP})"
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        return f"{operation.name}(arguments that cannot be read)"


def evidence(case: Case) -> Iterator[str]:
    """What was expected and what came, where they differ."""
    yield f"{case.signature.aspect} of {case.signature.operation}"
    for path, expected, got in comparison(case.expected, case.got):
        at = f" {path}" if path else ""
        yield f"  expected{at}: {expected}"
        if got:
            yield f"  got{at}:      {got}"


def strength(finding: Finding) -> str:
    """How often it was seen, in how many reruns, and whether the program is the smallest."""
    return f"seen in {count(finding.programs, 'program')}; {_rate(finding.case)}"


def _rate(case: Case) -> str:
    if case.reproduced is None:
        return "not rerun, not minimal"
    return f"{case.reproduced} of {RERUNS} reruns" + ("" if case.minimal else "; not minimal")


def cause(finding: Finding) -> str:
    """What the program cannot do without; empty when it is not known."""
    found = finding.cause
    return "" if found is None else f"vanishes without {found.without} ({found.family})"


def replay(finding: Finding, cases: str) -> str:
    """The command that replays the case from the folder, for a shell; empty when there is no case file."""
    return "" if finding.file is None else f"memassay replay {shlex.quote(f'{cases}/{finding.file}')}"


def count(number: int, noun: str) -> str:
    """A number and its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
