"""`memassay shrink`: a case that others wrote, made small."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.text import Text

from ..reports import findings
from ..spec.clauses import CLAUSES
from ..spec.divergence import Divergence
from ..spec.program import Program
from . import artefact, cases
from . import output as files
from .ablation import ablate
from .arguments import Output, Provision, Urls, engines, own_urls, targets_of, user_errors
from .artefact import RERUNS, Case, Found
from .counterexample import find
from .engine import AUTO, Engine, Namespaces, start
from .evidence import side_by_side
from .execution import execute, execute_in
from .exits import Exit, UsageProblem
from .output import own_stdout
from .programs import cut
from .shrink import Shrunk, shrink
from .zone import hostile_zone

HELP = """Make a case small: one that others wrote, a history, or one whose search ended before it was minimal.

\b
Examples:
  memassay shrink case.json --on BACKEND
  memassay shrink program.json --on my_adapter:MyBackend -o small.json --seconds 120
"""

EPILOG = """\b
Exit codes:
  0  it is as small as it gets
  1  the program does not fail there, or not every time
  2  the command line is wrong
  3  an engine could not be started, or died
  6  a limit ended the search: smaller ones may fail too
  130  interrupted; nothing is written"""

RUNS = 5_000
"""Programs run at most; `--seconds` ends it before."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="shrink", help=HELP, epilog=EPILOG)(command)


def command(
    file: Annotated[Path, typer.Argument(metavar="CASE", help="A case file, or a program as JSON.")],
    on: Annotated[
        str | None, typer.Option("--on", metavar="BACKEND", help="Instead of the backend it was found on.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the small case here.")
    ] = None,
    seconds: Annotated[float, typer.Option(metavar="N", help="How long to look.")] = 60.0,
    provision: Provision = AUTO,
    url: Urls = None,
) -> None:
    """See the help above."""
    with user_errors(), engines(url) as chosen:
        program, wanted, backend = _given(file)
        name = on or backend
        if not name:
            raise UsageProblem(f"{file} is a bare program", hint="say with --on where it fails")
        if seconds <= 0:
            raise UsageProblem(f"--seconds is {seconds:g}", hint="give a positive number")
        targets = targets_of([name])
        (target,) = targets
        files.check({"-o": output})
        out = Output()
        with (
            own_stdout(),
            hostile_zone(),
            start(target.name, target.backend, provision, own_urls(chosen.options, targets)) as engine,
            Namespaces(engine) as namespaces,
        ):
            made = make_small(program, wanted, engine, namespaces, name=target.name, seconds=seconds)
        if made is None:
            told = f"{file} does not fail on {target.name}, or not in each of {RERUNS} runs"
            out.print(Text(told, style="bold"), soft_wrap=True)
            raise typer.Exit(Exit.CLAUSES_FAIL)
        case = made.case
        if output is not None:
            files.write(output, artefact.encode(case))
        out.print(Text(f"{case.signature} on {target.name}", style="bold"), soft_wrap=True)
        for line in (*findings.program(case), *findings.evidence(case)):
            out.print(Text("    " + line), soft_wrap=True)
        if made.cause is not None:
            out.print(Text(f"vanishes without {made.cause.without} ({made.cause.family})"))
        before, after = len(program.operations), len(case.program.operations)
        end = "" if case.minimal else "; a limit ended the search, smaller ones may fail too"
        out.print(Text(f"{before} -> {after} operations in {made.runs} runs{end}", style="bold"), soft_wrap=True)
        raise typer.Exit(Exit.CONFORMS if case.minimal else Exit.INCONCLUSIVE)


class Small(msgspec.Struct, frozen=True):
    """A case made small, what it vanishes without, and how many programs were run for it."""

    case: Case
    cause: artefact.Cause | None
    runs: int


def _given(file: Path) -> tuple[Program, Case | None, str]:
    """The program, the case that it comes from if it does, and the backend that the case names."""
    program = cases.read_program(file)
    try:
        case = cases.read(file)
    except UsageProblem:
        return program, None, ""
    return program, case, case.found.backend


def make_small(
    program: Program, given: Case | None, engine: Engine, namespaces: Namespaces, *, name: str, seconds: float
) -> Small | None:
    """The smallest program that shows the case's finding, or else its own first; None unless it fails in every rerun.

    name: what the backend was asked for as. Raises EngineFailed.
    """
    wanted = _wanted(program, given, engine, namespaces)
    if wanted is None:
        return None

    def fails(candidate: Program) -> bool:
        found = execute_in(namespaces, engine, candidate).divergences
        if any(divergence.crashed for divergence in found):
            engine.check()
        return find(found, wanted, frozenset(CLAUSES)) is not None

    short = cut(program, wanted.index)
    deadline = time.monotonic() + seconds
    shrunk: Shrunk = shrink(
        short if fails(short) else program,
        fails,
        runs=RUNS,
        expired=lambda: time.monotonic() > deadline,
    )
    with namespaces.fresh() as namespace:
        execution = execute(engine, namespace, shrunk.program)
    shown = find(execution.divergences, wanted, frozenset(CLAUSES))
    if shown is None:
        return None
    expected, got = side_by_side(shown.expected, shown.got)
    case = Case(
        signature=shown.signature,
        statement=CLAUSES[shown.clause].statement,
        program=execution.program,
        index=shown.index,
        expected=expected,
        got=engine.redactor.value(got),
        found=Found(
            backend=name,
            engine=engine.version,
            memassay=artefact.own_version(),
            seed=given.found.seed if given else 0,
            level=given.found.level if given else "core",
        ),
        reproduced=RERUNS,
        minimal=shrunk.minimal,
    )
    return Small(case, ablate(execution.program, fails, CLAUSES[shown.clause].family), shrunk.runs)


def _wanted(program: Program, given: Case | None, engine: Engine, namespaces: Namespaces) -> Divergence | None:
    """The deviation that every rerun shows: the case's own if they do, else the first."""
    runs: list[tuple[Divergence, ...]] = []
    for _ in range(RERUNS):
        with namespaces.fresh() as namespace:
            runs.append(execute(engine, namespace, program).divergences)
    if any(divergence.crashed for found in runs for divergence in found):
        engine.check()
    always = [d for d in runs[0] if all(any(d.signature == other.signature for other in found) for found in runs)]
    own = [divergence for divergence in always if given is not None and divergence.signature == given.signature]
    return next(iter([*own, *always]), None)
