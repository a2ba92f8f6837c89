"""A finding in words: clause, program, expected and got, and how to replay it."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator
from typing import NamedTuple

from ..harness.artefact import RERUNS, Case, Finding
from ..spec.operation import Operation
from .values import TOO_DEEP, comparison, cut, expression

INDENT = "    "

LONGEST = 2_000
"""Characters of a statement or an operation before it is cut."""


class Line(NamedTuple):
    """A line of a program; `deviates` marks the operation at which the store does."""

    text: str
    deviates: bool = False


def lines(finding: Finding, cases: str) -> Iterator[str]:
    """A finding in words."""
    case = finding.case
    yield from textwrap.wrap(cut(case.statement, LONGEST), 96)
    yield ""
    yield from program(case)
    yield from evidence(case)
    yield strength(finding)
    if finding.cause is not None:
        yield f"vanishes without {finding.cause.without} ({finding.cause.family})"
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
    if case.program.embedder:
        yield Line(f"embedder(dimension={case.program.embedder})")
    if case.program.options:
        yield Line(f"open({expression(case.program.options)})")
    for i, operation in enumerate(case.program.operations):
        yield Line(_call(operation), deviates=i == case.index)


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


def _call(operation: Operation) -> str:
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
    case = finding.case
    seen = f"seen in {count(finding.programs, 'program')}"
    if case.reproduced is None:
        return f"{seen}; not rerun, not minimal"
    rate = f"{case.reproduced} of {RERUNS} reruns"
    return f"{seen}; {rate}" + ("" if case.minimal else "; not minimal")


def replay(finding: Finding, cases: str) -> str:
    """The command that replays the case from the folder, for a shell; empty when there is no case file."""
    return "" if finding.file is None else f"memassay replay {shlex.quote(f'{cases}/{finding.file}')}"


def count(number: int, noun: str) -> str:
    """A number and its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
