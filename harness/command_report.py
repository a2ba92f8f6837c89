"""`memassay report`: artefacts of any kind as a site that opens from disk, and as the formats that other tools read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from ..reports import badge, junit, markdown, site, terminal
from ..reports.charts import MissingLibrary
from ..reports.given import CaseFile, Given
from . import cases, collected, output
from .arguments import Output, complain, user_errors
from .artefact import Result
from .collected import Artefact
from .exits import UsageProblem

HELP = """Write what runs left as a site of static pages that opens from disk, and as Markdown, JUnit and a badge.

\b
Examples:
  memassay report result.json -o report
  memassay report libsql.json postgres.json kills.json run.json -o report --cases cases
  memassay report results/ -o report
  memassay report result.json

\b
Artefacts are what `verify`, `mutants`, `bench`, `diff` and `compare` write with --json, and case files; of a folder,
all that are in it. Without -o, results are shown on the terminal. The same artefacts give the same bytes.
"""

EPILOG = """\b
Exit codes:
  0  it is written, whatever the verdicts
  2  the command line is wrong, or a file is no artefact of a version that this memassay reads"""

SHOWN = ("result", "mutants", "difference", "case", "bench", "compare")
"""Kinds of artefacts that a site shows."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="report", help=HELP, epilog=EPILOG)(command)


def command(
    files: Annotated[list[Path], typer.Argument(metavar="ARTEFACT", help="Files that --json wrote, or folders.")],
    folder: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Where to write the site.")
    ] = None,
    cases_folder: Annotated[
        Path, typer.Option("--cases", metavar="DIR", help="Where the case files are, for the replay commands.")
    ] = cases.DEFAULT_FOLDER,
) -> None:
    """See the help above."""
    with user_errors():
        found, others = collected.read(files)
        for path in others:
            complain(f"{path} is no artefact, and is left out")
        for unknown in collected.unknown(found, SHOWN):
            raise UsageProblem(f"{unknown.path} is a {unknown.kind}, which a site does not show", hint="leave it out")
        kinds = collected.by_kind(found)
        results: Sequence[Result] = kinds.get("result", [])
        if folder is None:
            _print(results, cases_folder)
            return
        output.check_folder("-o", folder)
        written = {folder / name: content for name, content in _files(found, kinds, cases_folder).items()}
        output.check({path.name: path for path in written if path.parent.is_dir()})
        for path, content in written.items():
            output.write(path, content)
        for path in written:
            typer.echo(f"wrote {path}")


def _files(found: Sequence[Artefact], kinds: Mapping[str, list[Any]], cases_folder: Path) -> dict[str, bytes]:
    """What is written, by name. Raises UsageProblem."""
    given = Given(
        results=kinds.get("result", []),
        kills=kinds.get("mutants", []),
        differences=kinds.get("difference", []),
        cases=[CaseFile(each.path.as_posix(), each.value) for each in found if each.kind == "case"],
        benchmarks=kinds.get("bench", []),
        comparisons=kinds.get("compare", []),
        folder=cases_folder.as_posix(),
    )
    try:
        files = site.pages(given)
    except MissingLibrary as problem:
        raise UsageProblem(str(problem), hint="pip install 'memassay[report]'") from None
    files["summary.md"] = markdown.summary(given)
    if given.results:
        files["junit.xml"] = junit.document(given.results, given.folder)
        files["badge.json"] = badge.badge(given.results)
    return files


def _print(results: Sequence[Result], cases_folder: Path) -> None:
    """Raises UsageProblem where there is nothing to print."""
    if not results:
        raise UsageProblem("there is no result to show", hint="give -o DIR for a site, which shows every artefact")
    out = Output()
    for number, result in enumerate(results, 1):
        if len(results) > 1:
            out.print(Text(f"run {number}, {result.run.started}", style="bold"))
        terminal.whole(result, out, cases_folder.as_posix())
