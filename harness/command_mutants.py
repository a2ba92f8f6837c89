"""`memassay mutants`: the suite tested, as a kill matrix."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ..reports import kills
from . import artefact, corpus, mutation, output
from .arguments import Output, Provision, Urls, engines, level_of, own_urls, targets_of, user_errors
from .corpus import Entry
from .engine import AUTO, start
from .exits import Exit, UsageProblem
from .progress import Display
from .zone import hostile_zone

HELP = """Test the suite: run it against mutants, stores with one realistic fault each, and show what catches them.

\b
Examples:
  memassay mutants
  memassay mutants --family ORD --family MSG-1 --seed 0 --seed 1
  memassay mutants --over BACKEND --jobs 2 --json kills.json
"""

EPILOG = """\b
Exit codes:
  0  every mutant is killed by its own family
  1  mutants survive
  2  the command line is wrong
  3  an engine could not be started
  130  interrupted; what is shown is partial"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="mutants", help=HELP, epilog=EPILOG)(command)


def command(
    family: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only mutants of this family or clause, or this one.")
    ] = None,
    over: Annotated[
        str | None, typer.Option(metavar="BACKEND", help="Lay the faults over this backend, instead of the model.")
    ] = None,
    level: Annotated[str, typer.Option(metavar="smoke|core|extended", help="Which programs are run.")] = "core",
    seed: Annotated[
        list[int] | None, typer.Option(metavar="N", help="Which programs are generated; may be repeated.")
    ] = None,
    examples: Annotated[
        int | None,
        typer.Option(metavar="N", help="How many programs are generated, instead of the level's own number."),
    ] = None,
    programs: Annotated[
        int | None, typer.Option(metavar="N", help="Programs that every mutant runs, killed or not, for the matrix.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(metavar="N", help="Processes; by default one a processor.")] = None,
    full: Annotated[bool, typer.Option("--full", help="List every mutant, also those killed as they should.")] = False,
    provision: Provision = AUTO,
    url: Urls = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the matrix here.")] = None,
) -> None:
    """See the help above."""
    with user_errors(), engines(url) as chosen, ExitStack() as stack:
        mutants = mutation.load(family or ())
        wanted = level_of(level)
        for option, value in (("--jobs", jobs), ("--programs", programs), ("--examples", examples)):
            if value is not None and value < 1:
                raise UsageProblem(f"{option} is {value}", hint="give at least 1")
        targets = targets_of([over] if over else [])
        output.check({"--json": json_file})
        out = Output()
        engine = None
        if targets:
            stack.enter_context(hostile_zone())
            (target,) = targets
            engine = stack.enter_context(
                start(target.name, target.backend, provision, own_urls(chosen.options, targets))
            )
            out.print(Text(f"{target.name}: {engine.version}"), soft_wrap=True)
        display = stack.enter_context(Display(out))
        corpora: dict[int, tuple[Entry, ...]] = {}
        for number in dict.fromkeys(seed or [0]):
            corpora[number] = corpus.build(wanted, number, examples, progress=display.corpus).entries
        display.close()
        plan = mutation.Plan(
            mutants=mutants,
            level=wanted,
            corpora=corpora,
            engine=engine,
            over=over or "",
            matrix=programs or (mutation.ON_ENGINE if targets else mutation.ON_MODEL),
            jobs=jobs or mutation.processors(),
        )
        found = mutation.matrix(plan, display)
        if json_file is not None:
            output.write(json_file, artefact.encode(found))
        kills.table(found, out, full=full)
        kills.summary(found, out)
        if found.interrupted:
            raise typer.Exit(Exit.INTERRUPTED)
        raise typer.Exit(Exit.CLAUSES_FAIL if found.summary.survivors else Exit.CONFORMS)
