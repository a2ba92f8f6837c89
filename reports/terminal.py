"""A result on a terminal: the matrix of clauses by backend, every failure, and one line a backend."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..harness.artefact import BackendResult, Result, Verdict
from ..spec.clauses import CLAUSES
from .findings import count, lines
from .matrix import FAMILIES, counted, verdict
from .values import visible

STYLES: dict[Verdict, str] = {
    "pass": "green",
    "fail": "bold red",
    "flaky": "bold red",
    "error": "bold red",
    "known": "yellow",
    "unsupported": "dim",
    "vacuous": "yellow",
    "not-run": "dim",
}
INDENT = "    "


WIDE = 120
"""Columns beyond which the matrix does not fill the terminal."""

NAME = 24
"""Columns of the matrix that a backend's name may take before it is folded."""


def whole(result: Result, console: Console, cases: str) -> None:
    """All of it; `cases` is the folder of the case files, for the replay commands."""
    matrix(result, console)
    console.print()
    failures(result, console, cases)
    known(result, console)
    inconclusive(result, console)
    summary(result, console)


def matrix(result: Result, console: Console) -> None:
    """Clauses by backend, grouped by family; clauses that nobody asked for are left out."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), expand=console.width <= WIDE)
    table.add_column("", no_wrap=True)
    table.add_column("", no_wrap=True, ratio=1, overflow="ellipsis")
    for backend in result.backends:
        table.add_column(backend.name, max_width=NAME, overflow="fold")
    for family, clauses in groupby(counted(result, result.backends), key=lambda clause: clause.partition("-")[0]):
        table.add_row("", Text(FAMILIES.get(family, family), style="bold"))
        for clause in clauses:
            cells = [_cell(verdict(backend, clause)) for backend in result.backends]
            table.add_row(clause, Text(_title(clause), style="dim"), *cells)
    console.print(table)


def _cell(verdict: Verdict) -> Text:
    return Text(verdict, style=STYLES[verdict])


def _title(clause: str) -> str:
    return CLAUSES[clause].title if clause in CLAUSES else ""


def failures(result: Result, console: Console, cases: str) -> None:
    """Each finding: clause, program, expected and got, and the command that replays its case from the folder."""
    for backend in result.backends:
        for found in backend.clauses.values():
            for finding in found.findings:
                if finding.verdict == "known":
                    continue
                console.print(
                    Text.assemble(
                        (f"{finding.verdict.upper()}  ", STYLES[finding.verdict]),
                        (f"{finding.case.signature.clause} on {backend.name}", "bold"),
                    ),
                    soft_wrap=True,
                )
                for line in lines(finding, cases):
                    console.print(Text(INDENT + line if line else ""), soft_wrap=True)


def known(result: Result, console: Console) -> None:
    """Each declared failure: in how many programs it was met, or why it no longer stands."""
    for backend in result.backends:
        for entry in backend.known:
            detail = {
                "met": f"met in {count(entry.programs, 'program')}: {entry.reason}",
                "stale": "no longer fails: remove it from memassay.toml",
                "expired": f"expired on {entry.expires} ({count(entry.programs, 'program')}): {entry.reason}",
                "not judged": "not met; this run asks too little to tell",
            }[entry.status]
            style = STYLES["fail"] if entry.status in ("stale", "expired") else STYLES["known"]
            name = {"met": "KNOWN", "not judged": "KNOWN"}.get(entry.status, entry.status.upper())
            told = f"{entry.clause} / {entry.signature} on {backend.name}: {detail}"
            console.print(Text.assemble((f"{name}  ", style), told), soft_wrap=True)


def inconclusive(result: Result, console: Console) -> None:
    """Why clauses are vacuous, unsupported or were not run although asked for."""
    for backend in result.backends:
        for kind in ("vacuous", "unsupported", "not-run"):
            for reason, clauses in _by_reason(result, backend, kind).items():
                told = f"{', '.join(clauses)} on {backend.name}: {reason}"
                console.print(Text.assemble((f"{kind}  ", STYLES[kind]), told), soft_wrap=True)


def _by_reason(result: Result, backend: BackendResult, verdict: Verdict) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for clause, found in backend.clauses.items():
        if clause in result.selected and found.verdict == verdict:
            reasons.setdefault(found.reason, []).append(clause)
    return reasons


def summary(result: Result, console: Console) -> None:
    """One line a backend, with denominators."""
    for backend in result.backends:
        console.print(Text(summary_line(result, backend), style="bold"), soft_wrap=True)
    if result.interrupted:
        console.print(Text("interrupted: these results are partial", style="bold yellow"))


def summary_line(result: Result, backend: BackendResult) -> str:
    """How many of the clauses asked for pass, and what became of the rest."""
    shown = counted(result, [backend])
    verdicts = Counter(verdict(backend, clause) for clause in shown)
    rest = [f"{count} {verdict}" for verdict, count in verdicts.items() if verdict != "pass"]
    ran = f"{count(backend.programs, 'program')}, seed {result.corpus.seed}"
    skipped = f", {backend.skipped:,} skipped" if backend.skipped else ""
    skipped += f", {count(backend.hostile, 'hostile operation')}" if backend.hostile else ""
    if backend.races:
        skipped += f", {count(backend.races, 'race')}, of which {backend.overlapping} met"
    line = f"{backend.name}: {verdicts['pass']} of {len(shown)} clauses pass"
    return (
        line
        + (f", {', '.join(rest)}" if rest else "")
        + f" ({ran}{skipped})"
        + (f"; {_safe(backend.error)}" if backend.error else "")
    )


def _safe(text: str) -> str:
    """Lines by a stranger, an engine's log for one, that cannot move the cursor."""
    return "\n".join(visible(line) for line in text.splitlines())
