"""`memassay diff`: two results compared."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..reports import difference
from . import artefact, diff, output, results
from .arguments import Output, user_errors
from .exits import Exit

HELP = """Compare two results, of two versions of an engine or an adapter: what passes no more, what came, what went.

\b
Examples:
  memassay diff before.json after.json
  memassay diff before.json after.json --markdown changes.md --json changes.json
"""

EPILOG = """\b
Exit codes:
  0  nothing was lost
  2  the command line is wrong
  5  a clause that passed does not, or something fails that did not"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="diff", help=HELP, epilog=EPILOG)(command)


def command(
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="A file that `verify --json` wrote.")],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="Another, of a later run.")],
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the changes here.")] = None,
    markdown_file: Annotated[
        Path | None, typer.Option("--markdown", metavar="FILE", help="Write them as Markdown, for a CI job.")
    ] = None,
) -> None:
    """See the help above."""
    with user_errors():
        found = diff.between(results.read(before), results.read(after))
        output.check({"--json": json_file, "--markdown": markdown_file})
        if json_file is not None:
            output.write(json_file, artefact.encode(found))
        if markdown_file is not None:
            output.write(markdown_file, difference.markdown(found))
        difference.text(found, Output())
        raise typer.Exit(Exit.REGRESSION if found.losses else Exit.CONFORMS)
