"""`memassay fault`: engines broken in the middle of writes, and what they had acknowledged looked for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ..reports import faults as shown
from . import artefact, cases, known, output
from .arguments import (
    Backends,
    Heap,
    Homes,
    Images,
    Output,
    Provision,
    Urls,
    bounded,
    engines,
    own_urls,
    reachable,
    targets_of,
    user_errors,
)
from .artefact import BackendFaults, FaultResult, FaultRow, Finding
from .breaking import Plan, breaking
from .engine import AUTO
from .exits import Exit, UsageProblem
from .faults import KINDS, Kind, disk_missing
from .output import own_stdout
from .progress import Display
from .settings import HEAP
from .zone import hostile_zone

HELP = """Break engines in the middle of write storms, and look whether all that they acknowledged is there (DUR-1a).

Kinds: kill (-9; docker kill for a container), pause, disk-full (takes root), delay, halve and reset (the connection).

\b
Examples:
  memassay fault BACKEND
  memassay fault BACKEND --kind kill --kind reset --rounds 50 --json fault.json
  memassay fault BACKEND --provision docker --kind kill --kind pause
  memassay fault BACKEND --kind kill --seed 7 --only 13      # one round again
"""

EPILOG = """\b
Exit codes:
  0  nothing acknowledged was lost, every error is typed, every client recovered
  1  something was lost, half there, not typed, or did not recover
  2  the command line is wrong
  3  an engine could not be started, or did not come back
  6  a kind that was asked for cannot be tried here
  130  interrupted; what is shown is partial"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="fault", help=HELP, epilog=EPILOG)(command)


def command(
    backends: Backends,
    kind: Annotated[
        list[str] | None, typer.Option(metavar="|".join(KINDS), help="Only this kind; may be repeated.")
    ] = None,
    rounds: Annotated[int, typer.Option(metavar="N", help="Storms of each kind.")] = 20,
    seed: Annotated[int, typer.Option(help="Which storms, and when the fault strikes.")] = 0,
    only: Annotated[int | None, typer.Option(metavar="N", help="Only the round of this number, from 0.")] = None,
    provision: Provision = AUTO,
    url: Urls = None,
    image: Images = None,
    home: Homes = None,
    heap: Heap = HEAP,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the result here.")] = None,
    markdown_file: Annotated[
        Path | None, typer.Option("--markdown", metavar="FILE", help="Write the table here.")
    ] = None,
    cases_folder: Annotated[
        Path, typer.Option("--cases", metavar="DIR", help="Where rounds that fail leave their case files.")
    ] = cases.DEFAULT_FOLDER,
) -> None:
    """See the help above."""
    with user_errors(), engines(url, image, home, heap) as chosen:
        bounded(seed)
        kinds = _kinds(kind or [])
        if rounds < 1 or (only is not None and only < 0):
            raise UsageProblem("there is nothing to run", hint="give --rounds at least 1, and --only at least 0")
        output.check({"--json": json_file, "--markdown": markdown_file})
        output.check_folder("--cases", cases_folder)
        targets = targets_of(backends)
        plan = Plan(
            targets=targets,
            kinds=kinds or KINDS,
            rounds=rounds,
            seed=seed,
            only=only,
            method=provision,
            urls=own_urls(chosen.options, targets),
            known=known.read().known,
        )
        reachable(targets, provision, plan.urls)
        with own_stdout() as stdout, Display(Output(file=stdout)) as display, hostile_zone():

            def tell(backend: str, kind: Kind, done: int, of: int, found: int) -> None:
                display.working(f"{backend}: {kind}" + (f", {found} findings" if found else ""), done, of)

            result = breaking(plan, tell)
        result = _kept(result, cases_folder)
        if json_file is not None:
            output.write(json_file, artefact.encode(result))
        if markdown_file is not None:
            output.write(markdown_file, shown.markdown(result).encode())
        shown.table(result, Output())
        raise typer.Exit(code_of(result, asked=bool(kinds)))


def _kinds(names: list[str]) -> tuple[Kind, ...]:
    """The kinds of these names. Raises UsageProblem."""
    for name in names:
        if name not in KINDS:
            raise UsageProblem(f"there is no fault {name!r}", hint="use " + ", ".join(KINDS))
    if "disk-full" in names and (reason := disk_missing()):
        raise UsageProblem(f"disk-full cannot be tried: {reason}", hint="run as root, or leave it out")
    return tuple(kind for kind in KINDS if kind in names)


def _kept(result: FaultResult, folder: Path) -> FaultResult:
    """Write a case file for each finding; the same result with the files' names."""

    def row(backend: str, found: FaultRow) -> FaultRow:
        kept: list[Finding] = []
        for number, finding in enumerate(found.findings):
            name = f"{cases.slug(str(finding.case.signature))}-{found.kind}-{finding.programs}-{number}.json"
            file = Path(cases.slug(backend)) / name
            output.write(folder / file, artefact.encode(finding.case))
            kept.append(msgspec.structs.replace(finding, file=(folder / file).as_posix()))
        return msgspec.structs.replace(found, findings=kept)

    def backend(found: BackendFaults) -> BackendFaults:
        return msgspec.structs.replace(found, rows=[row(found.name, each) for each in found.rows])

    return msgspec.structs.replace(result, backends=[backend(each) for each in result.backends])


def code_of(result: FaultResult, *, asked: bool) -> Exit:
    """The exit code. asked: whether the kinds were named, so that one that does not apply is told."""
    rows = [row for backend in result.backends for row in backend.rows]
    if result.interrupted:
        return Exit.INTERRUPTED
    if any(finding.verdict != "known" for row in rows for finding in row.findings):
        return Exit.CLAUSES_FAIL
    if any(row.broken for row in rows):
        return Exit.ENGINE
    if asked and not all(row.applies for row in rows):
        return Exit.INCONCLUSIVE
    return Exit.CONFORMS if any(row.rounds for row in rows) else Exit.INCONCLUSIVE
