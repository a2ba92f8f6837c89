"""`memassay curves`: benchmarks of one engine at several settings, or of several engines, compared at equal recall."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from ..harness.arguments import user_errors
from ..harness.exits import UsageProblem
from .commands import wide
from .compare import read, refuse_other_machines, refuse_unlike
from .equal_recall import TARGETS, Curve, Point, curves, frontier

HELP = """Compare engines at equal recall: what each gives at 0.90, 0.95 and 0.99, from runs at several settings.

\b
Examples:
  memassay curves runs/
  memassay curves effort-16.json effort-64.json effort-256.json

\b
Each run of `bench --effort` or `--index` is one point of a curve; a run at one setting alone says nothing about another
recall. The whole curve is shown under the figures read off it.
"""

SEARCHES = {"vectors", "semantic_recall"}
"""Needs of workloads whose answers may be good in part."""

WIDTH = 180


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="curves", help=HELP)(command)


def command(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="A file of `bench --json`, or a folder of them.")],
    across_machines: Annotated[
        bool, typer.Option("--across-machines", help="Put also runs of different machines together.")
    ] = False,
) -> None:
    """See the help above."""
    with user_errors():
        manifests = [given.manifest for path in runs for given in read(path)]
        refuse_unlike(manifests)
        if not across_machines and (distrust := refuse_other_machines(manifests)):
            raise UsageProblem(distrust, hint="measure again on a machine with nothing else to do")
        found = curves(manifests)
        if not found:
            raise UsageProblem("these runs have no search that was measured", hint="bench a workload such as vector")
        out = wide(WIDTH)
        out.print(table(found))
        out.print()
        for curve in found:
            out.print(Text(told(curve)), soft_wrap=True)


def table(found: Sequence[Curve]) -> Table:
    """A line a curve: what it gives at each recall."""
    shown = Table(box=None, pad_edge=False)
    for name in ("search", "unit", "store"):
        shown.add_column(name)
    for target in TARGETS:
        shown.add_column(f"recall {target:.2f}", justify="right")
    for curve in found:
        cells = (curve.told(curve.at(target)) for target in TARGETS)
        shown.add_row(curve.workload, curve.unit, curve.contender, *cells)
    return shown


def told(curve: Curve) -> str:
    """The whole curve in a line, by recall; settings that another beats are in brackets."""
    kept = frontier(curve.points, higher_is_better=curve.yields)
    return f"{curve.contender}, {curve.workload}, {curve.unit}: " + "; ".join(_points(curve, kept))


def _points(curve: Curve, kept: Sequence[Point]) -> Iterator[str]:
    for point in sorted(curve.points, key=lambda point: (point.recall, point.value)):
        said = f"{point.recall:.3f} {curve.number(point.value)} ({point.setting or 'default'})"
        yield said if point in kept else f"[{said}]"
