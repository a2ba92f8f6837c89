"""What came of a soak, on a terminal: what was held, how it went, and what deviated."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..harness.artefact import BackendSoak, Growth, Sample, SoakResult

MEGABYTE = 1 << 20


def held(sample: Sample) -> str:
    """What was held at a moment, in a few words."""
    memory = ", ".join(f"{who} {bytes_ / MEGABYTE:,.0f} MB" for who, bytes_ in sample.memory.items())
    return f"{memory}; {sum(sample.handles.values()):,} handles"


def report(result: SoakResult, console: Console) -> None:
    """A table a backend, and a line that says what it comes to."""
    for backend in result.backends:
        if backend.growth:
            console.print(_table(backend))
        for finding in backend.findings:
            where = f"; {finding.file}" if finding.file else ""
            console.print(Text(f"{backend.name}: {finding.case.signature}{where}", style="bold red"), soft_wrap=True)
        console.print(Text(_line(backend), style="bold"), soft_wrap=True)
    if result.interrupted:
        console.print(Text("interrupted: these results are partial", style="bold yellow"))


def _table(backend: BackendSoak) -> Table:
    rows = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for number, name in enumerate((backend.name, "", "median", "growth", "at least", "allowed", "")):
        rows.add_column(name, no_wrap=True, justify="left" if number in (0, 1, 6) else "right")
    for row in backend.growth:
        verdict = Text("GROWS", style="bold red") if row.grows else Text("steady", style="green")
        figures = (row.middle, row.growth, row.least, row.allowed)
        rows.add_row(row.who, row.what, *(_figure(row, figure) for figure in figures), verdict)
    return rows


def _figure(row: Growth, figure: float) -> str:
    return f"{figure / MEGABYTE:,.1f} MB" if row.what == "memory" else f"{figure:,.0f}"


def _line(backend: BackendSoak) -> str:
    told = f"{backend.name}: {backend.programs:,} programs and {backend.calls:,} calls in {backend.seconds:.0f} s"
    if backend.error:
        return f"{told}; {backend.error}"
    grows = [f"{row.who}'s {row.what}" for row in backend.growth if row.grows]
    deviations = f"{len(backend.findings)} deviations" if backend.findings else "no deviation"
    return f"{told}, {deviations}, " + (backend.reason or (f"growing: {', '.join(grows)}" if grows else "no growth"))
