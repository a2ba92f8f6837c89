"""A kill matrix on a terminal: what caught each mutant, what else failed, and the figures of the suite."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..harness.artefact import KillMatrix, MutantResult
from .kill_grid import first

SHOWN = 4
"""Failing clauses of a mutant that are named before the rest is counted."""


def table(found: KillMatrix, console: Console, *, full: bool) -> None:
    """A row a mutant; without `full` only those that survive or are blamed on a clause they should not be."""
    shown = [mutant for mutant in found.mutants if full or mutant.survives or mutant.stray]
    if not shown:
        return
    rows = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    rows.add_column("clause", no_wrap=True)
    rows.add_column("mutant", no_wrap=True, overflow="ellipsis", max_width=30)
    rows.add_column("killed by", no_wrap=True)
    for name in ("programs", "ops"):
        rows.add_column(name, no_wrap=True, justify="right")
    rows.add_column("also failing", overflow="fold")
    for mutant in shown:
        rows.add_row(mutant.clause, mutant.id, *_cells(mutant), _others(mutant))
    console.print(rows)
    console.print()


def _cells(mutant: MutantResult) -> tuple[Text, str, str]:
    if mutant.obstacle:
        return Text("not laid", style="dim"), "", ""
    kill = first(mutant)
    if kill is None:
        return Text("SURVIVES", style="bold red"), str(sum(kill.programs for kill in mutant.kills)), ""
    return Text(kill.blamed or "", style="green"), str(kill.programs), str(kill.operations)


def _others(mutant: MutantResult) -> Text:
    """The other clauses that failed, those that should not in red."""
    kill = first(mutant)
    others = [clause for clause in mutant.failing if kill is None or clause != kill.blamed]
    others.sort(key=lambda clause: clause not in mutant.stray)
    parts = [(f"{clause} ", "red" if clause in mutant.stray else "") for clause in others[:SHOWN]]
    rest = [(f"+{len(others) - SHOWN}", "dim")] if len(others) > SHOWN else []
    return Text.assemble(*parts, *rest)


def summary(found: KillMatrix, console: Console) -> None:
    """The figures, with denominators; why mutants were not laid over; who survives."""
    figures = found.summary
    over = f" laid over {found.over} ({found.engine})" if found.over else ""
    seeds = ", ".join(map(str, found.seeds))
    obstacles = Counter(mutant.obstacle for mutant in found.mutants if mutant.obstacle)
    if obstacles:
        told = "; ".join(f"{number}: {why}" for why, number in obstacles.most_common(SHOWN))
        more = sum(obstacles.values()) - sum(number for _, number in obstacles.most_common(SHOWN))
        rest = f"; {more}: other reasons, see --json" if more else ""
        _say(console, f"{sum(obstacles.values())} mutants cannot be laid over an engine: {told}{rest}", "dim")
    if figures.killed:
        share = figures.blamed_well / figures.killed
        _say(
            console,
            f"blame: {figures.blamed_well} of {figures.killed} killed mutants ({share:.1%}) fail no clause but their "
            f"family's and those said beforehand; a median of {figures.median_clauses:g} fail",
        )
        _say(console, f"first counterexample: a median of {figures.median_seconds:.3f} s")
    if figures.median_operations is not None:
        firsts = [kill for mutant in found.mutants if (kill := first(mutant)) and mutant.id not in figures.heavy]
        cut = sum(not kill.minimal for kill in firsts)
        heavy = f" (but for {', '.join(figures.heavy)})" if figures.heavy else ""
        _say(
            console,
            f"shrunk programs: a median of {figures.median_operations:g} operations, "
            f"none over {figures.most_operations}{heavy}" + (f"; {cut} are not as small as they get" if cut else ""),
        )
    for mutant in found.mutants:
        if mutant.survives:
            _say(console, f"SURVIVES  {mutant.id} ({mutant.clause}): {mutant.description}", "bold red")
    style = "bold red" if figures.survivors else "bold"
    _say(
        console,
        f"{figures.killed} of {figures.run} mutants{over} are killed by their own family "
        f"(level {found.level}, seed {seeds}, {found.seconds:.0f} s)",
        style,
    )
    if found.interrupted:
        _say(console, "interrupted: these results are partial", "bold yellow")


def _say(console: Console, line: str, style: str = "") -> None:
    console.print(Text(line, style=style), soft_wrap=True)
