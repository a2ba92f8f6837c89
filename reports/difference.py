"""What changed between two results, on a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from ..harness.artefact import BackendDifference, CaseChange, Difference
from ..spec.clauses import CLAUSES
from .findings import count

INDENT = "    "


def text(found: Difference, console: Console) -> None:
    """Losses first in each backend's part, then what else changed."""
    for note in found.notes:
        console.print(Text(f"note: {note}", style="yellow"), soft_wrap=True)
    for backend in found.backends:
        console.print(Text(title(backend), style="bold"), soft_wrap=True)
        for change in sorted(backend.verdicts, key=lambda change: not change.loss):
            style = "bold red" if change.loss else "green" if change.after == "pass" else ""
            mark = "LOSS  " if change.loss else "      "
            console.print(
                Text(f"{mark}{change.clause:8}{change.before} -> {change.after}   {about(change.clause)}", style=style),
                soft_wrap=True,
            )
        for case in sorted(backend.cases, key=lambda case: not case.loss):
            mark = "LOSS  " if case.loss else "      "
            console.print(
                Text(f"{mark}case {case.change}: {case.signature} ({case.verdict})", style="red" if case.loss else ""),
                soft_wrap=True,
            )
            for operation in _program(case):
                console.print(Text(INDENT * 2 + operation, style="dim"), soft_wrap=True)
        if not backend.verdicts and not backend.cases and not backend.gone:
            console.print("      nothing changed")
    console.print(Text(summary(found), style="bold red" if found.losses else "bold green"), soft_wrap=True)


def markdown(found: Difference) -> bytes:
    """The same as a document, UTF-8."""
    lines = [f"## {summary(found)}", "", *(f"> {note}" for note in found.notes)]
    for backend in found.backends:
        lines += ["", f"### {_escaped(title(backend))}", ""]
        if backend.verdicts:
            lines += ["| clause | before | after | |", "| --- | --- | --- | --- |"]
            lines += [
                f"| {change.clause} {_escaped(about(change.clause))} | {change.before} | {change.after} "
                f"| {'**loss**' if change.loss else ''} |"
                for change in backend.verdicts
            ]
            lines.append("")
        lines += [
            f"- {'**loss**: ' if case.loss else ''}case {case.change}: `{case.signature}` ({case.verdict})"
            for case in backend.cases
        ]
        if not backend.verdicts and not backend.cases and not backend.gone:
            lines.append("Nothing changed.")
    return ("\n".join(lines) + "\n").encode()


def title(backend: BackendDifference) -> str:
    """A backend of both results, with its engine's versions."""
    if backend.gone:
        return f"{backend.before} ({backend.engine_before}): not in the second result"
    name = backend.before if backend.before == backend.after else f"{backend.before} -> {backend.after}"
    engine = backend.engine_before
    if backend.engine_after != engine:
        engine = f"{engine} -> {backend.engine_after}"
    return f"{name} ({engine})"


def about(clause: str) -> str:
    """What a clause is about."""
    return CLAUSES[clause].title if clause in CLAUSES else "unknown to this memassay"


def _program(case: CaseChange) -> Iterator[str]:
    if case.change == "came":
        yield from str(case.program).splitlines()[:12]


def summary(found: Difference) -> str:
    """How much changed, in a line, losses first."""
    verdicts = sum(len(backend.verdicts) for backend in found.backends)
    came = sum(case.change == "came" for backend in found.backends for case in backend.cases)
    went = sum(case.change == "went" for backend in found.backends for case in backend.cases)
    lost = "nothing was lost" if not found.losses else f"{found.losses} {'loss' if found.losses == 1 else 'losses'}"
    return f"{lost}: {count(verdicts, 'verdict')} changed, {count(came, 'case')} came, {went} went"


def _escaped(text: str) -> str:
    return "".join(f"\\{character}" if character in "\\`*_|<>[]" else character for character in text)
