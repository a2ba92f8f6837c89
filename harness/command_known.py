"""`memassay known`: the failures that memassay.toml declares, listed or checked."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from . import known
from .arguments import Output, user_errors
from .exits import Exit, UsageProblem
from .known import Known

HELP = """Known failures: declared in memassay.toml, each with a reason and an end.

\b
Examples:
  memassay known list
  memassay known check
\b
An entry:
  [[known]]
  clause = "ORD-1"
  signature = "order / observe"
  backend = "acme"
  versions = ">=2.1, <3"
  reason = "ties are sorted by id until positions are stored"
  url = "https://example.org/issues/7"
  expires = 2027-03-01
`memassay verify --accept` writes the first ones. In a run they are `known`, not `fail`; one that no longer fails, or
whose time is over, ends the run with exit 4.
"""

File = Annotated[Path, typer.Option("--file", metavar="FILE", help="Where they are declared.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help=HELP, no_args_is_help=True, rich_markup_mode=None)
    group.command(name="list", help="List the declared failures.")(listing)
    group.command(name="check", help="Exit 2 if the file is wrong, 4 if entries are expired or doubled.")(check)
    app.add_typer(group, name="known")


def listing(file: File = known.FILE) -> None:
    """See the help above."""
    with user_errors():
        out, today = Output(), date.today()
        entries = _entries(file)
        for entry in entries:
            _show(entry, today, out)
        if not entries:
            out.print(Text(f"{file} declares no failures"))


def check(file: File = known.FILE) -> None:
    """See the help above."""
    with user_errors():
        out, today = Output(), date.today()
        entries = _entries(file)
        seen: set[tuple[str, str, str, str]] = set()
        wrong = 0
        for entry in entries:
            key = entry.clause, entry.signature, entry.backend, entry.versions
            if entry.expires < today or key in seen:
                wrong += 1
                _show(entry, today, out, doubled=key in seen)
            seen.add(key)
        out.print(Text(f"{file}: {len(entries)} known failures, {wrong} of them expired or doubled", style="bold"))
        raise typer.Exit(Exit.STALE_KNOWN_FAILURES if wrong else Exit.CONFORMS)


def _entries(file: Path) -> tuple[Known, ...]:
    if file != known.FILE and not file.exists():
        raise UsageProblem(f"{file} does not exist", hint="give the file that declares known failures")
    return known.read(file).known


def _show(entry: Known, today: date, out: Console, *, doubled: bool = False) -> None:
    days = (entry.expires - today).days
    when = f"expired on {entry.expires}" if days < 0 else f"{days} days left"
    mark = f"{'declared twice, ' if doubled else ''}{when}"
    versions = f" {entry.versions}" if entry.versions else ""
    head = f"{entry.full} on {entry.backend}{versions} ({mark})"
    out.print(Text(head, style="bold red" if days < 0 or doubled else "bold"), soft_wrap=True)
    out.print(Text(f"    {entry.reason}" + (f" ({entry.url})" if entry.url else "")), soft_wrap=True)
