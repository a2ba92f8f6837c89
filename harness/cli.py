"""The command line: `memassay verify`, `clauses`, `replay`, `report`, `run`, `doctor`, `schema`, `new-adapter`."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from platformdirs import user_cache_path
from rich.console import Console
from rich.text import Text

from ..backends.provision import EngineUnavailable
from ..reports import clauses as clause_report
from ..reports import html, junit, markdown, terminal, trace
from ..spec.clauses import CLAUSES, LEVELS, by_family
from . import (
    artefact,
    budget,
    cases,
    command_diff,
    command_known,
    command_mutants,
    corpus,
    doctor,
    exits,
    known,
    results,
    runner,
    scaffold,
)
from .arguments import (
    Backends,
    Output,
    Provision,
    Urls,
    user_errors,
)
from .arguments import chosen_clauses as _clauses
from .arguments import known_clauses as _known
from .arguments import level_of as _level
from .arguments import silence as _silence
from .arguments import targets_of as _targets
from .arguments import urls_of as _urls
from .arguments import with_exit_codes as _help
from .arguments import writable as _writable
from .arguments import writable_folder as _writable_folder
from .artefact import Case, Result
from .engine import AUTO, EngineFailed, Namespaces, choose, start, url_for
from .execution import execute
from .exits import Exit, UsageProblem
from .progress import Display
from .zone import hostile_zone

app = typer.Typer(
    name="memassay",
    help="Holds agent-memory stores to one executable specification.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; a termination is treated like Ctrl-C, so that engines are stopped."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    corpus.keep_hypothesis_tidy(str(user_cache_path("memassay") / "hypothesis"))
    try:
        app(prog_name="memassay")
    except BrokenPipeError:
        _silence()
        sys.exit(Exit.BROKEN_PIPE)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"memassay {version('memassay')}")
        raise typer.Exit()


@app.callback()
def _root(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command(
    **_help(
        """Hold backends to the specification.

\b
Examples:
  memassay verify libsql
  memassay verify libsql postgres --level smoke
  memassay verify my_adapter:MyBackend --clause ORD-1 --clause FLT
  memassay verify postgres --url postgres=postgresql://me@host/db --budget 2m --json result.json
"""
    )
)
def verify(
    backends: Backends,
    level: Annotated[str, typer.Option(metavar="|".join(LEVELS), help="How much is asked, and how often.")] = "core",
    clause: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Only this clause or family; may be repeated.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Which programs are generated.")] = 0,
    examples: Annotated[
        int | None, typer.Option(metavar="N", help="How many programs, instead of the level's own number.")
    ] = None,
    time_budget: Annotated[
        str | None, typer.Option("--budget", metavar="TIME", help="As many programs as fit: 90s, 2m, 1h30m.")
    ] = None,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="Stop at the first failure.")] = False,
    provision: Provision = AUTO,
    url: Urls = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the result here.")] = None,
    junit_file: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML here.")] = None,
    cases_folder: Annotated[
        Path,
        typer.Option(
            "--cases", metavar="DIR", help="Where failures leave their case files; those there are run first."
        ),
    ] = cases.DEFAULT_FOLDER,
    accept: Annotated[
        bool,
        typer.Option("--accept", help="Declare in memassay.toml what fails now."),
    ] = False,
) -> None:
    """See the help above."""
    with user_errors():
        declared = known.read()
        plan = runner.Plan(
            targets=_targets(backends),
            level=_level(level),
            clauses=_clauses(clause or [], _level(level)),
            method=provision,
            urls=_urls(url or []),
            fail_fast=fail_fast,
            known=declared.known,
        )
        for target in plan.targets:
            # An engine that cannot be had is reported later, in the backend's own column.
            with suppress(EngineUnavailable):
                choose(target.backend, provision, url_for(target.name, target.backend, plan.urls))
        if examples is not None and examples < 1:
            raise UsageProblem(f"--examples is {examples}", hint="ask for at least 1 program")
        if examples is not None and time_budget is not None:
            raise UsageProblem("--examples and --budget exclude each other", hint="give one of them")
        allowed = None if time_budget is None else budget.seconds(time_budget)
        for path in (json_file, junit_file):
            if path is not None:
                _writable(path)
        _writable_folder(cases_folder)
        out = Output()
        if allowed is not None:
            examples = budget.affordable(plan, plan.level, seed, allowed)
            out.print(Text(f"a budget of {time_budget} allows {examples:,} programs"))
        with Display(out) as display:
            programs = corpus.build(plan.level, seed, examples, progress=display.generating)
            given = None if cases_folder == cases.DEFAULT_FOLDER else cases_folder
            programs = corpus.with_cases(programs, cases.programs([declared.cases, given]))
            result = runner.verify(plan, programs, display)
        result = cases.keep(result, cases_folder)
        if json_file is not None:
            json_file.write_bytes(artefact.encode(result))
        if junit_file is not None:
            junit_file.write_bytes(junit.document(result, cases_folder.as_posix()))
        _report(result, out, cases_folder)
        if accept:
            entries = known.accept(result, known.FILE, plan.today)
            out.print(Text(f"{known.FILE}: {entries} failures declared; say there why they fail"), soft_wrap=True)
        raise typer.Exit(exits.of(result))


def _report(result: Result, out: Console, cases_folder: Path) -> None:
    out.print()
    terminal.matrix(result, out)
    out.print()
    terminal.failures(result, out, cases_folder.as_posix())
    terminal.known(result, out)
    terminal.inconclusive(result, out)
    terminal.summary(result, out)


@app.command(
    help="""List the clauses, or show one with what puts it to the test.

\b
Examples:
  memassay clauses
  memassay clauses ORD-1
"""
)
def clauses(
    clause: Annotated[str | None, typer.Argument(metavar="ID", help="A clause, or a family.")] = None,
) -> None:
    """See the help above."""
    with user_errors():
        out = Output()
        if clause is None:
            clause_report.listing(by_family(), out)
            return
        _known([clause])
        for found in CLAUSES.values():
            if clause in (found.id, found.family):
                clause_report.detail(found, out)


@app.command(
    **_help(
        """Replay case files: is each FIXED, or does it STILL FAIL? Shows the model and the store side by side.

\b
Examples:
  memassay replay .memassay/cases
  memassay replay .memassay/cases/libsql/ORD-1-order-observe.json --on postgres
"""
    )
)
def replay(
    paths: Annotated[list[Path], typer.Argument(metavar="FILE|DIR", help="Case files, or folders of them.")],
    on: Annotated[
        list[str] | None, typer.Option("--on", metavar="BACKEND", help="Instead of the backend it was found on.")
    ] = None,
    provision: Provision = AUTO,
    url: Urls = None,
) -> None:
    """See the help above."""
    with user_errors():
        read = [(path, cases.read(path)) for path in cases.files(paths)]
        names = on or list(dict.fromkeys(case.found.backend for _, case in read))
        targets = _targets(names)
        urls = _urls(url or [])
        out = Output()
        codes: set[Exit] = set()
        for target in targets:
            own = [(path, case) for path, case in read if on or case.found.backend == target.name]
            codes.add(_replay_on(target, own, provision, urls, out))
        raise typer.Exit(max(codes))


def _replay_on(
    target: runner.Target, read: Sequence[tuple[Path, Case]], provision: str, urls: dict[str, str], out: Console
) -> Exit:
    code = Exit.CONFORMS
    try:
        with (
            hostile_zone(),
            start(target.name, target.backend, provision, urls) as engine,
            Namespaces(engine) as namespaces,
        ):
            for path, case in read:
                replayed = cases.replay(case, engine, namespaces)
                detail = cases.in_words(case, replayed)
                trace.replay(path.as_posix(), replayed.status, detail, replayed.steps, out, store=target.name)
                if replayed.status != "FIXED":
                    code = Exit.CLAUSES_FAIL
    except (EngineUnavailable, EngineFailed) as error:
        out.print(Text(f"ERROR  {target.name}: {error}", style="bold red"), soft_wrap=True)
        return Exit.ENGINE
    return code


@app.command(
    help="""Write results as one HTML page that opens from disk, and as a Markdown summary for a CI job.

\b
Examples:
  memassay report result.json -o report
  memassay report libsql.json postgres.json -o report --cases cases
"""
)
def report(
    files: Annotated[list[Path], typer.Argument(metavar="RESULT", help="Files that `verify --json` wrote.")],
    folder: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Where to write them.")],
    cases_folder: Annotated[
        Path, typer.Option("--cases", metavar="DIR", help="Where the case files are, for the replay commands.")
    ] = cases.DEFAULT_FOLDER,
) -> None:
    """See the help above."""
    with user_errors():
        read = [results.read(path) for path in files]
        _writable_folder(folder, option="-o")
        written = {
            folder / "index.html": html.page(read, cases_folder.as_posix()),
            folder / "summary.md": markdown.summary(read, cases_folder.as_posix()),
        }
        for path in written:
            if path.exists() and not (path.is_file() and os.access(path, os.W_OK)):
                raise UsageProblem(f"{path} cannot be written", hint="choose another folder with -o")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for path, content in written.items():
                path.write_bytes(content)
        except OSError as error:
            raise UsageProblem(
                f"{folder} cannot be written to: {error.strerror}", hint="choose another folder"
            ) from None
        for path in written:
            typer.echo(f"wrote {path}")


@app.command(
    help="""Run the program of a case file (or a bare program) and trace it, without a verdict.

\b
Examples:
  memassay run case.json --on libsql
"""
)
def run(
    file: Annotated[Path, typer.Argument(metavar="CASE", help="A case file, or a program as JSON.")],
    on: Annotated[str, typer.Option("--on", metavar="BACKEND", help="A registered name, or module:Factory.")],
    provision: Provision = AUTO,
    url: Urls = None,
) -> None:
    """See the help above."""
    with user_errors():
        program = cases.read_program(file)
        (target,) = _targets([on])
        with (
            hostile_zone(),
            start(target.name, target.backend, provision, _urls(url or [])) as engine,
            Namespaces(engine) as namespaces,
            namespaces.fresh() as namespace,
        ):
            steps = cases.steps(program, execute(engine, namespace, program), engine)
        trace.outcomes(steps, Output())


@app.command(
    name="doctor",
    help="""What runs on this machine, and what is missing for the rest.

\b
Examples:
  memassay doctor
""",
)
def doctor_command() -> None:
    """See the help above."""
    with user_errors():
        out = Output()
        for check in doctor.checks():
            mark, style = ("missing", "yellow") if check.missing else ("ok", "green")
            out.print(Text.assemble((f"{mark:8}", style), f"{check.subject}: {check.what}"), soft_wrap=True)
            if check.missing:
                out.print(Text(f"        {check.missing}"), soft_wrap=True)


@app.command(
    help="""Print the JSON schema of an artefact: case files, results, kill matrices, differences.

\b
Examples:
  memassay schema case
  memassay schema result > result.schema.json
"""
)
def schema(
    artefact_name: Annotated[str, typer.Argument(metavar="|".join(artefact.KINDS), help="Which artefact.")],
) -> None:
    """See the help above."""
    with user_errors():
        if artefact_name not in artefact.KINDS:
            raise UsageProblem(f"there is no artefact {artefact_name!r}", hint="use " + ", ".join(artefact.KINDS))
        typer.echo(json.dumps(artefact.schema(artefact.KINDS[artefact_name]), indent=2))


@app.command(
    help="""Write a working adapter in one file, an in-memory store to put your engine into.

\b
Examples:
  memassay new-adapter acme
  memassay verify acme:AcmeBackend --level smoke
"""
)
def new_adapter(
    name: Annotated[str, typer.Argument(help="The module's name.")],
    folder: Annotated[Path, typer.Option("-o", metavar="DIR", help="Where to write it.")] = Path(),
) -> None:
    """See the help above."""
    with user_errors():
        path, factory = scaffold.write(name, folder)
        typer.echo(f"wrote {path}\nnext: memassay verify {name}:{factory} --level smoke")


for _command in (command_mutants, command_known, command_diff):
    _command.register(app)
