"""What the commands of benchmarks share: engines had as `verify` has them, progress, tables, and how they end."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, TextIO

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..backends.provision import interruption
from ..harness import engine as engines
from ..harness import output
from ..harness.arguments import Output, own_urls, reachable, targets_of, user_errors
from ..harness.arguments import engines as settings
from ..harness.runner import Target

WIDTH = 120
"""Of a table, where no terminal says how wide it is."""

JsonFile = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write everything here, raw times included.")
]


class Ways(msgspec.Struct, frozen=True):
    """The backends of a run, and how their engines are had."""

    targets: tuple[Target, ...]
    method: str = engines.AUTO
    urls: Mapping[str, str] = {}

    def start(self, target: Target) -> AbstractContextManager[engines.Engine]:
        """The engine of one, stopped at the end. EngineUnavailable, UsageProblem."""
        return engines.start(target.name, target.backend, self.method, self.urls)


@contextmanager
def ways(
    backends: Sequence[str],
    provision: str,
    url: list[str] | None,
    image: list[str] | None,
    home: list[str] | None,
    heap: str,
    json_file: Path | None,
) -> Generator[Ways]:
    """The options of a command, checked before any I/O. In the block, what a user can mend is an exit code."""
    with user_errors(), settings(url, image, home, heap) as chosen:
        output.check({"--json": json_file})
        targets = targets_of(backends)
        found = Ways(targets, provision, own_urls(chosen.options, targets))
        reachable(targets, provision, found.urls)
        yield found


def progress(line: str) -> None:
    """Say on standard error what is done now."""
    Console(stderr=True).print(Text(line, style="dim"), soft_wrap=True)


def wide(width: int = WIDTH, stdout: TextIO | None = None) -> Console:
    """Where tables are printed: as wide as the terminal, and `width` where there is none."""
    out = Output(file=stdout)
    return out if out.is_terminal else Output(file=stdout, width=width)


def show(stdout: TextIO, heading: Sequence[str], table: Table) -> None:
    """Print what the figures are of, and the figures."""
    out = wide(stdout=stdout)
    for line in heading:
        out.print(Text(line), soft_wrap=True)
    out.print()
    out.print(table)


def run_as_command(main: Callable[..., None]) -> None:
    """Be a process that runs this command; a termination and a hang-up are treated like Ctrl-C."""
    interruption.listen()
    command = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    command.command()(main)
    command()
