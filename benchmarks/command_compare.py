"""`memassay compare`: two benchmarks against each other, with a verdict and an interval for every figure."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ..harness import output
from ..harness.arguments import user_errors
from ..harness.exits import UsageProblem
from . import comparison_shown
from .commands import wide
from .compare import compare, read

HELP = """Compare two benchmarks, of two versions of an engine or an adapter: what became slower, faster or worse.

\b
Examples:
  memassay compare before.json after.json
  memassay compare main/ branch/ --effect 10% --markdown changes.md
  memassay compare before.json after.json --contender postgres --workload newest --all

\b
A side is a file that `bench --json` wrote, or a folder of them: make runs of both in turn (A, B, A, B, …), as what
the machine does meanwhile then meets both alike. A verdict needs 8 runs a side, or 8 rounds of a run. Latencies are
compared at equal rates alone: give `bench --peaks-of` the first run for all others.
"""

EPILOG = """\b
Exit codes:
  0  nothing regressed: every figure improved, or did not change
  2  the command line is wrong, a file cannot be read, or the runs are not alike
  5  a figure regressed
  6  figures are inconclusive, or were not measured"""


WIDTH = 180
"""Of the table, where no terminal says how wide it is."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="compare", help=HELP, epilog=EPILOG)(command)


def command(
    a: Annotated[Path, typer.Argument(metavar="A", help="A run before, or a folder of runs.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="A run after, or a folder of runs.")],
    effect: Annotated[str, typer.Option(metavar="PERCENT", help="The smallest change that matters.")] = "5%",
    contender: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this contender; may be repeated.")
    ] = None,
    workload: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this workload; may be repeated.")
    ] = None,
    across_machines: Annotated[
        bool, typer.Option("--across-machines", help="Compare also what was measured on different machines.")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="Show what did not change too, and the floors.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write all figures here.")] = None,
    markdown_file: Annotated[
        Path | None, typer.Option("--markdown", metavar="FILE", help="Write them as Markdown, for a CI job.")
    ] = None,
) -> None:
    """See the help above."""
    with user_errors():
        smallest = percent(effect)
        output.check({"--json": json_file, "--markdown": markdown_file})
        found = compare(
            read(a),
            read(b),
            effect=smallest,
            across_machines=across_machines,
            contenders=contender or (),
            workloads=workload or (),
        )
        if json_file is not None:
            output.write(json_file, msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
        if markdown_file is not None:
            output.write(markdown_file, comparison_shown.markdown(found))
        comparison_shown.text(found, wide(WIDTH), everything=everything)
        raise typer.Exit(found.exit)


def percent(text: str) -> float:
    """`5%` or `0.05` as a part. Raises UsageProblem unless it is above 0 and at most 100 %."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = math.nan
    if not 0 < value <= 1:
        raise UsageProblem(f"--effect is {text!r}", hint="give a percentage above 0% and at most 100%, such as 5%")
    return value
