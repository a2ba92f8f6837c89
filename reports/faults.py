"""What faults did to engines, as a table: on a terminal, or in Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..harness.artefact import BackendFaults, FaultResult, FaultRow

COLUMNS = ("backend", "fault", "rounds", "acked", "doubt", "lost", "half", "untyped", "stuck", "other")
"""Acked: calls that were acknowledged; doubt: broken off; untyped: errors that are none of the specification's; stuck:
clients that did not recover."""


def cells(backend: BackendFaults, row: FaultRow) -> tuple[str, ...]:
    """A row's cells, below COLUMNS."""
    counts = (row.rounds, row.acknowledged, row.doubtful, row.lost, row.half, row.errors, row.recovery, row.other)
    return (backend.name, row.kind, *(f"{count:,}" for count in counts))


def table(result: FaultResult, console: Console) -> None:
    """A row a fault; those that do not apply, and why, below."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for number, name in enumerate(COLUMNS):
        shown.add_column(name, no_wrap=True, justify="left" if number < 2 else "right")
    for backend, row in _rows(result):
        if row.rounds or row.applies:
            style = "bold red" if _wrong(row) else ""
            shown.add_row(*(Text(cell, style=style) for cell in cells(backend, row)))
    console.print(shown)
    for line in notes(result):
        console.print(Text(line, style="dim"), soft_wrap=True)


def notes(result: FaultResult) -> Iterator[str]:
    """What was done, what does not apply, and what went wrong beside."""
    for backend in result.backends:
        if backend.engine:
            yield f"{backend.name}: {backend.engine} ({backend.method}: {backend.detail}), batches {backend.atomicity}"
        for row in backend.rows:
            if not row.applies:
                yield f"{row.kind} on {backend.name}: does not apply, {row.reason}"
            elif row.reason:
                yield f"{row.kind} on {backend.name}: ended after {row.rounds} rounds, {row.reason}"
            for finding in row.findings:
                known = ", known" if finding.verdict == "known" else ""
                yield (
                    f"{row.kind} on {backend.name}, round {finding.programs}: {finding.case.signature}{known}"
                    + (f"; {finding.file}" if finding.file else "")
                )
    if result.interrupted:
        yield "interrupted: these results are partial"


def markdown(result: FaultResult) -> str:
    """The table, for a CI job or a page."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "| --- | --- |" + " ---: |" * (len(COLUMNS) - 2)]
    lines += ["| " + " | ".join(cells(backend, row)) + " |" for backend, row in _rows(result) if row.applies]
    lines += ["", f"Seed {result.seed}, memassay {result.memassay}, {result.platform}.", ""]
    lines += [f"- {line}" for line in notes(result)]
    return "\n".join(lines) + "\n"


def _rows(result: FaultResult) -> Iterator[tuple[BackendFaults, FaultRow]]:
    for backend in result.backends:
        for row in backend.rows:
            yield backend, row


def _wrong(row: FaultRow) -> bool:
    return bool(row.reason and row.applies) or any(finding.verdict != "known" for finding in row.findings)
