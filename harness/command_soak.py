"""`memassay soak`: a mixed load for minutes, judged, with memory and file handles watched."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ..backends.provision import EngineUnavailable
from ..reports import soak as shown
from . import artefact, cases, output
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
from .artefact import BackendSoak, Finding, Sample, SoakResult
from .engine import AUTO, EngineFailed, start
from .exits import Exit, UsageProblem
from .output import own_stdout
from .progress import Display
from .runner import Target
from .settings import HEAP
from .soak import Soak
from .zone import hostile_zone

MOST_MINUTES = 24 * 60

HELP = """Run a mixed load for minutes: every answer is judged, memory and file handles must not grow.

\b
Examples:
  memassay soak BACKEND --minutes 1
  memassay soak BACKEND --minutes 10 --provision docker --json soak.json
"""

EPILOG = """\b
Exit codes:
  0  no deviation, and no growth
  1  a deviation, or memory or file handles grow
  2  the command line is wrong
  3  an engine could not be started, or died
  6  too short to say anything about growth
  130  interrupted; what is shown is partial"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="soak", help=HELP, epilog=EPILOG)(command)


def command(
    backends: Backends,
    minutes: Annotated[float, typer.Option(metavar="N", help="How long, each backend.")] = 10.0,
    seed: Annotated[int, typer.Option(help="Which programs are generated.")] = 0,
    provision: Provision = AUTO,
    url: Urls = None,
    image: Images = None,
    home: Homes = None,
    heap: Heap = HEAP,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result here, all samples too.")
    ] = None,
    cases_folder: Annotated[
        Path, typer.Option("--cases", metavar="DIR", help="Where deviations leave their case files.")
    ] = cases.DEFAULT_FOLDER,
) -> None:
    """See the help above."""
    with user_errors(), engines(url, image, home, heap) as chosen:
        bounded(seed)
        if not 0 < minutes <= MOST_MINUTES:
            raise UsageProblem(f"--minutes is {minutes:g}", hint=f"give more than 0, and at most {MOST_MINUTES}")
        output.check({"--json": json_file})
        output.check_folder("--cases", cases_folder)
        targets = targets_of(backends)
        urls = own_urls(chosen.options, targets)
        reachable(targets, provision, urls)
        began = datetime.now(UTC).isoformat(timespec="seconds")
        found: list[BackendSoak] = []
        interrupted = False
        with own_stdout() as stdout, Display(Output(file=stdout)) as display, hostile_zone():
            for target in targets:
                if interrupted:
                    break
                result, interrupted = _soak(target, minutes * 60, seed, provision, urls, display)
                found.append(_kept(result, cases_folder))
        result = SoakResult(
            memassay=artefact.own_version(),
            seed=seed,
            minutes=minutes,
            interrupted=interrupted,
            backends=found,
            started=began,
            platform=platform.platform(),
        )
        if json_file is not None:
            output.write(json_file, artefact.encode(result))
        shown.report(result, Output())
        raise typer.Exit(code_of(result))


def _soak(
    target: Target, seconds: float, seed: int, provision: str, urls: Mapping[str, str], display: Display
) -> tuple[BackendSoak, bool]:
    """What came of one backend, and whether it was interrupted."""

    def tell(elapsed: float, programs: int, sample: Sample) -> None:
        what = f"{target.name}: {programs:,} programs, {shown.held(sample)}; seconds"
        display.working(what, min(round(elapsed), round(seconds)), max(1, round(seconds)))

    soak: Soak | None = None
    error, interrupted = "", False
    try:
        with start(target.name, target.backend, provision, urls) as engine:
            soak = Soak(target.name, engine, seed, seconds, tell)
            try:
                soak.run()
            except EngineFailed as failed:
                error = str(failed)
    except EngineUnavailable as unavailable:
        error = str(unavailable)
    except KeyboardInterrupt:
        interrupted = True
    if soak is not None:
        return soak.result(error), interrupted
    nothing = BackendSoak(
        name=target.name, engine="", method="", detail="", seconds=0, programs=0, calls=0, error=error
    )
    return nothing, interrupted


def _kept(backend: BackendSoak, folder: Path) -> BackendSoak:
    """Write a case file for each finding; the same result with the files' names."""
    kept: list[Finding] = []
    for finding in backend.findings:
        file = folder / cases.slug(backend.name) / f"{cases.slug(str(finding.case.signature))}.json"
        output.write(file, artefact.encode(finding.case))
        kept.append(msgspec.structs.replace(finding, file=file.as_posix()))
    return msgspec.structs.replace(backend, findings=kept)


def code_of(result: SoakResult) -> Exit:
    """The exit code."""
    if result.interrupted:
        return Exit.INTERRUPTED
    if any(backend.error for backend in result.backends):
        return Exit.ENGINE
    if any(backend.findings or any(row.grows for row in backend.growth) for backend in result.backends):
        return Exit.CLAUSES_FAIL
    return Exit.INCONCLUSIVE if any(backend.reason for backend in result.backends) else Exit.CONFORMS
