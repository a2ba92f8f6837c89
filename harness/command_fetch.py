"""`memassay fetch`: downloads and unpacks what has no Python package, servers and stores of other people, once."""

from __future__ import annotations

from typing import Annotated, cast

import typer
from rich.console import Console
from rich.text import Text

from ..backends.provision import Fetchable
from ..backends.registry import fetched
from ..spec.protocols import Backend
from .arguments import EXIT_CODES, Output, engines, targets_of, user_errors
from .engine import methods
from .exits import UsageProblem
from .progress import Display

HELP = """Download and unpack what has no Python package, once: servers for `--provision embedded`, and other people's
stores in another language; says their licences.

\b
Examples:
  memassay fetch opensearch
  memassay fetch mastra
"""

Names = Annotated[list[str], typer.Argument(metavar="NAME", help="A backend, or a family of other people's.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="fetch", help=HELP, epilog=EXIT_CODES)(command)


def command(names: Names) -> None:
    """See the help above."""
    with user_errors(), engines(None):
        out = Output()
        for name, way in {name: _way(name) for name in names}.items():
            fetch(name, way, out)


def fetchable(backend: Backend) -> Fetchable | None:
    """The backend's way to an engine that has to be fetched before; None when it has none."""
    ways = [way for way in methods(backend).values() if hasattr(way, "fetch")]
    return cast("Fetchable", ways[0]) if ways else None


def _way(name: str) -> Fetchable:
    """What a name stands for. Raises UsageProblem, UnknownBackend."""
    way = fetched(name) or fetchable(targets_of([name])[0].backend)
    if way is None:
        raise UsageProblem(f"{name} has nothing to fetch", hint="`memassay doctor` says how engines are had")
    return way


def fetch(name: str, way: Fetchable, out: Console) -> None:
    """Fetch it unless it is there. Raises EngineUnavailable."""
    out.print(Text(f"{name}: {way.offer}"), soft_wrap=True)
    with Display(out) as display:
        where = way.fetch(display.working)
    out.print(Text(f"{name}: in {where}"), soft_wrap=True)
