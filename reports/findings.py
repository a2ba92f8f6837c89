"""A finding in words: clause, program, expected and got, and how to replay it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from ..harness.artefact import RERUNS, Case, Finding
from ..spec.forms import show
from .values import comparison

INDENT = "    "


def lines(finding: Finding, cases: str) -> Iterator[str]:
    """A finding in words."""
    case = finding.case
    yield from textwrap.wrap(case.statement, 96)
    yield ""
    yield from program(case)
    yield from evidence(case)
    yield _strength(finding)
    if finding.file is not None:
        yield f"replay: memassay replay {cases}/{finding.file}"
    yield ""


def program(case: Case) -> Iterator[str]:
    """The program, an operation a line, with a mark at the one that deviates."""
    if case.program.options:
        yield f"  open({show(case.program.options)})"
    for i, operation in enumerate(case.program.operations):
        yield from textwrap.wrap(
            str(operation),
            110,
            initial_indent="> " if i == case.index else "  ",
            subsequent_indent=INDENT,
            break_on_hyphens=False,
        )


def evidence(case: Case) -> Iterator[str]:
    """What was expected and what came, where they differ."""
    yield f"{case.signature.aspect} of {case.signature.operation}"
    for path, expected, got in comparison(case.expected, case.got):
        at = f" {path}" if path else ""
        yield f"  expected{at}: {expected}"
        if got:
            yield f"  got{at}:      {got}"


def _strength(finding: Finding) -> str:
    case = finding.case
    seen = f"seen in {count(finding.programs, 'program')}"
    if case.reproduced is None:
        return f"{seen}; not rerun, not minimal"
    rate = f"{case.reproduced} of {RERUNS} reruns"
    return f"{seen}; {rate}" + ("" if case.minimal else "; not minimal")


def count(number: int, noun: str) -> str:
    """A number and its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
