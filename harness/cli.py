"""The command line: `memassay verify` and the commands around it; some register themselves from files of their own."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from platformdirs import user_cache_path
from rich.text import Text

from ..backends.provision import EngineUnavailable, interruption
from ..backends.provision.settings import HEAP
from ..reports import clauses as clause_report
from ..reports import junit, terminal, trace
from ..spec.clauses import CLAUSES, LEVELS, by_family
from ..spec.program import Program
from . import (
    artefact,
    budget,
    cases,
    cleaning,
    command_diff,
    command_fault,
    command_fetch,
    command_known,
    command_mutants,
    command_report,
    command_shrink,
    command_soak,
    corpus,
    counterexample,
    doctor,
    exits,
    extensions,
    known,
    output,
    runner,
    scaffold,
)
from .arguments import (
    Backends,
    Heap,
    Homes,
    Images,
    Output,
    Provision,
    Urls,
    bounded,
    chosen_clauses,
    chosen_scenarios,
    complain,
    engines,
    known_clauses,
    level_of,
    own_urls,
    reachable,
    silence,
    targets_of,
    user_errors,
    with_exit_codes,
)
from .artefact import Case
from .engine import AUTO, EngineFailed, Namespaces, start
from .execution import execute
from .exits import Exit, UsageProblem
from .output import own_stdout
from .progress import Display
from .zone import hostile_zone

app = typer.Typer(
    name="memassay",
    cls=extensions.Commands,
    help="Holds agent-memory stores to one executable specification.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; a termination and a hang-up are treated like Ctrl-C, so that engines are stopped."""
    interruption.listen()
    corpus.keep_hypothesis_tidy(str(user_cache_path("memassay") / "hypothesis"))
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # it was closed beforehand
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - it stays open to the end
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # what stores say may not fit the terminal's encoding
    try:
        try:
            app(prog_name="memassay")
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        silence(sys.stdout)
        sys.exit(Exit.BROKEN_PIPE)
    except OSError as error:
        silence(sys.stdout)
        complain(f"standard output cannot be written to: {error.strerror}")
        sys.exit(Exit.USAGE)


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
    **with_exit_codes(
        """Hold backends to the specification.

\b
Examples:
  memassay verify libsql
  memassay verify libsql postgres --level smoke
  memassay verify my_adapter:MyBackend --clause ORD-1 --clause FLT
  memassay verify postgres --url postgres=postgresql://me@host/db --budget 2m --json result.json
  memassay verify my_adapter:MyBackend --scenario injection --clause ISO --examples 400
"""
    )
)
def verify(
    backends: Backends,
    level: Annotated[str, typer.Option(metavar="|".join(LEVELS), help="How much is asked, and how often.")] = "core",
    clause: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Only this clause or family; may be repeated.")
    ] = None,
    scenario: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only programs of this kind; may be repeated. A wrong name lists them."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Which programs are generated.")] = 0,
    examples: Annotated[
        int | None, typer.Option(metavar="N", help="How many programs, instead of the level's own number.")
    ] = None,
    time_budget: Annotated[
        str | None, typer.Option("--budget", metavar="TIME", help="As many programs as fit: 90s, 2m, 1h30m.")
    ] = None,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="Stop at the first failure.")] = False,
    shrink: Annotated[
        int, typer.Option(metavar="N", help="How many deviations of a backend are made small; all are counted.")
    ] = counterexample.SHRUNK,
    provision: Provision = AUTO,
    url: Urls = None,
    image: Images = None,
    home: Homes = None,
    heap: Heap = HEAP,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the result here.")] = None,
    junit_file: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML here.")] = None,
    cases_folder: Annotated[
        Path,
        typer.Option(
            "--cases", metavar="DIR", help="Where failures leave their case files; those there are run first."
        ),
    ] = cases.DEFAULT_FOLDER,
    accept: Annotated[bool, typer.Option("--accept", help="Declare in memassay.toml what fails now.")] = False,
) -> None:
    """See the help above."""
    with user_errors(), engines(url, image, home, heap) as chosen:
        bounded(seed, examples=examples, shrink=shrink)
        if examples is not None and time_budget is not None:
            raise UsageProblem("--examples and --budget exclude each other", hint="give one of them")
        allowed = None if time_budget is None else budget.seconds(time_budget)
        output.check({"--json": json_file, "--junit": junit_file})
        output.check_folder("--cases", cases_folder)
        targets = targets_of(backends)
        scenarios = chosen_scenarios(scenario or [], level_of(level))
        declared = known.read()
        given = None if cases_folder == cases.DEFAULT_FOLDER else cases_folder
        first = cases.programs([declared.cases, given])
        plan = runner.Plan(
            targets=targets,
            level=level_of(level),
            clauses=chosen_clauses(clause or [], level_of(level)),
            method=provision,
            urls=own_urls(chosen.options, targets),
            fail_fast=fail_fast,
            limits=counterexample.Limits(signatures=shrink),
            known=declared.known,
        )
        reachable(plan.targets, provision, plan.urls)
        with own_stdout() as stdout, Display(Output(file=stdout)) as display:
            if allowed is not None:
                examples = budget.affordable(plan, seed, allowed, scenarios, display.corpus)
                display.say(f"a budget of {time_budget} allows {examples:,} programs")
            programs = corpus.build(plan.level, seed, examples, scenarios=scenarios, progress=display.corpus)
            result = runner.verify(plan, corpus.with_cases(programs, first), display)
        unwritten: list[str] = []
        with _noted(unwritten):
            result = cases.keep(result, cases_folder)
        for path, content in {
            json_file: lambda: artefact.encode(result),
            junit_file: lambda: junit.document([result], cases_folder.as_posix()),
        }.items():
            with _noted(unwritten):
                if path is not None:
                    output.write(path, content())
        out = Output()
        out.print()
        terminal.whole(result, out, cases_folder.as_posix())
        if accept:
            with _noted(unwritten):
                entries = known.accept(result, known.FILE, plan.today)
                Output().print(Text(f"{known.FILE}: {entries} failures declared; say there why they fail"))
        if unwritten:
            raise UsageProblem("; ".join(unwritten))
        raise typer.Exit(exits.of(result))


@contextmanager
def _noted(problems: list[str]) -> Generator[None]:
    """A file that cannot be written must not cost the report of the run."""
    try:
        yield
    except UsageProblem as problem:
        problems.append(str(problem))


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
        known_clauses([clause])
        for found in CLAUSES.values():
            if clause in (found.id, found.family):
                clause_report.detail(found, out)


@app.command(
    **with_exit_codes(
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
    image: Images = None,
    home: Homes = None,
    heap: Heap = HEAP,
) -> None:
    """See the help above."""
    with user_errors(), engines(url, image, home, heap) as chosen:
        read, code = _read(cases.files(paths))
        targets = targets_of(on or list(dict.fromkeys(case.found.backend for _, case in read)))
        urls = own_urls(chosen.options, targets)
        reachable(targets, provision, urls)
        codes = {code}
        for target in targets:
            own = [(path, case) for path, case in read if on or case.found.backend == target.name]
            codes.add(_replay_on(target, own, provision, urls))
        raise typer.Exit(max(codes))


def _read(paths: Sequence[Path]) -> tuple[list[tuple[Path, Case]], Exit]:
    """The cases, and the exit code that those give which cannot be read: each is named, the rest is replayed."""
    read: list[tuple[Path, Case]] = []
    code = Exit.CONFORMS
    for path in paths:
        try:
            read.append((path, cases.read(path)))
        except UsageProblem as problem:
            complain(str(problem))
            code = Exit.USAGE
    return read, code


def _replay_on(
    target: runner.Target, read: Sequence[tuple[Path, Case]], provision: str, urls: Mapping[str, str]
) -> Exit:
    code = Exit.CONFORMS
    with own_stdout() as stdout:
        out = Output(file=stdout)
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
    help="""Run the program of a case file (or a bare program) and trace it, without a verdict.

\b
Examples:
  memassay run case.json --on libsql
  memassay run case.json --on reference --on libsql
"""
)
def run(
    file: Annotated[Path, typer.Argument(metavar="CASE", help="A case file, or a program as JSON.")],
    on: Annotated[
        list[str],
        typer.Option("--on", metavar="BACKEND", help="A registered name, or module:Factory; may be repeated."),
    ],
    provision: Provision = AUTO,
    url: Urls = None,
    image: Images = None,
    home: Homes = None,
    heap: Heap = HEAP,
) -> None:
    """See the help above."""
    with user_errors(), engines(url, image, home, heap) as chosen:
        program = cases.read_program(file)
        targets = targets_of(on)
        urls = own_urls(chosen.options, targets)
        reachable(targets, provision, urls)
        raise typer.Exit(max(_run_on(target, program, provision, urls, titled=len(targets) > 1) for target in targets))


def _run_on(target: runner.Target, program: Program, provision: str, urls: Mapping[str, str], *, titled: bool) -> Exit:
    with own_stdout() as stdout:
        out = Output(file=stdout)
        if titled:
            out.print(Text(f"on {target.name}", style="bold"), soft_wrap=True)
        try:
            with (
                hostile_zone(),
                start(target.name, target.backend, provision, urls) as engine,
                Namespaces(engine) as namespaces,
                namespaces.fresh() as namespace,
            ):
                steps = cases.steps(program, execute(engine, namespace, program), engine)
                trace.outcomes(steps, out)
        except (EngineUnavailable, EngineFailed) as error:
            complain(f"{target.name}: {error}")
            return Exit.ENGINE
    return Exit.CONFORMS


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
    with user_errors(), engines(None), own_stdout() as stdout:
        out = Output(file=stdout)
        for check in doctor.checks():
            mark, style = ("missing", "yellow") if check.missing else ("ok", "green")
            out.print(Text.assemble((f"{mark:8}", style), f"{check.subject}: {check.what}"), soft_wrap=True)
            if check.missing:
                out.print(Text(f"        {check.missing}"), soft_wrap=True)


@app.command(
    name="clean",
    **with_exit_codes(
        """Remove from servers of yours what runs of memassay left there, and nothing else.

\b
Examples:
  memassay clean --url postgres=postgresql://me@host/db
"""
    ),
)
def clean_command(url: Urls = None) -> None:
    """See the help above."""
    with user_errors(), engines(url) as chosen:
        out = Output()
        if not chosen.options.urls:
            raise UsageProblem("there is no --url", hint="say which server: --url BACKEND=URL")
        for target in targets_of(list(chosen.options.urls)):
            cleaning.clean(target.name, target.backend, chosen.options.urls[target.name], out)


@app.command(
    help="""Print the JSON schema of an artefact: case files, results, kill matrices, differences, benchmarks.

\b
Examples:
  memassay schema case
  memassay schema result > result.schema.json
  memassay schema -o schemas
"""
)
def schema(
    artefact_name: Annotated[
        str | None, typer.Argument(metavar="ARTEFACT", help="Which: case, result, mutants, …")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("-o", metavar="DIR", help="Write it there, by kind and version; all without ARTEFACT."),
    ] = None,
) -> None:
    """See the help above."""
    with user_errors():
        kinds = extensions.artefacts()
        if artefact_name is not None and artefact_name not in kinds:
            raise UsageProblem(f"there is no artefact {artefact_name!r}", hint="use " + ", ".join(kinds))
        if artefact_name is None and folder is None:
            raise UsageProblem("there is no ARTEFACT", hint="use " + ", ".join(kinds) + "; or -o DIR for all")
        for kind in kinds if artefact_name is None else [artefact_name]:
            text = json.dumps(artefact.schema(kind, kinds[kind]), indent=2) + "\n"
            if folder is None:
                typer.echo(text, nl=False)
            else:
                path = folder / f"{kind}-{artefact.version_in(kinds[kind])}.json"
                output.write(path, text.encode())
                typer.echo(f"wrote {path}")


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


for _command in (
    *(command_report, command_mutants, command_known, command_diff, command_shrink, command_fetch),
    *(command_fault, command_soak),
):
    _command.register(app)
