"""What commands share: options, how they are read, and mistakes of the user as one line with a hint."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from ..backends.provision import EngineUnavailable
from ..backends.registry import UnknownBackend, find
from ..spec.clauses import CLAUSES, LEVELS, Level, by_family, select
from .engine import EngineFailed
from .exits import Exit, UsageProblem
from .runner import Target

EXIT_CODES = """\b
Exit codes:
  0  every clause asked for passes
  1  clauses fail (flaky and error included)
  2  the command line is wrong
  3  an engine could not be started, or died
  4  known failures are stale or expired
  6  inconclusive: clauses are vacuous or were not run
  130  interrupted; what is shown is partial"""


Backends = Annotated[list[str], typer.Argument(metavar="BACKEND", help="A registered name, or module:Factory.")]
Provision = Annotated[
    str, typer.Option(metavar="METHOD", help="How engines are had: auto, or a method that `memassay doctor` lists.")
]
Urls = Annotated[
    list[str] | None,
    typer.Option("--url", metavar="BACKEND=URL", help="An engine of yours; or set MEMASSAY_<BACKEND>_URL."),
]


def with_exit_codes(text: str) -> dict[str, Any]:
    """A command's help and, under it, what its exit codes mean; as keyword arguments."""
    return {"help": text, "epilog": EXIT_CODES}


class Output(Console):
    """A console that ends the process without a word when nobody reads on."""

    def on_broken_pipe(self) -> None:
        """See rich.console.Console."""
        silence()
        raise SystemExit(Exit.BROKEN_PIPE)


def silence() -> None:
    """Send what is still to be written nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def user_errors() -> Generator[None]:
    """Turns what a user can mend into one line and an exit code."""
    try:
        yield
    except (UsageProblem, UnknownBackend) as error:
        fail(str(error), Exit.USAGE)
    except (EngineUnavailable, EngineFailed) as error:
        fail(str(error), Exit.ENGINE)
    except KeyboardInterrupt:
        fail("interrupted", Exit.INTERRUPTED)


def fail(message: str, code: Exit) -> NoReturn:
    """End the process with one line on stderr."""
    Console(stderr=True).print(Text(f"memassay: {message}"), soft_wrap=True)
    raise typer.Exit(code)


def targets_of(names: Sequence[str]) -> tuple[Target, ...]:
    """The backends of these names, each once. UsageProblem, UnknownBackend."""
    return tuple(Target(name, load_backend(name)) for name in dict.fromkeys(names))


def load_backend(name: str) -> Any:
    """A backend; a module of the user's is found in the current directory too."""
    if ":" not in name:
        return find(name)
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return find(name)
    except UnknownBackend:
        raise
    except Exception as error:
        raise UsageProblem(
            f"{name} cannot be loaded: {type(error).__name__}: {error}",
            hint=f"see python -c 'import {name.partition(':')[0]}'",
        ) from error


def level_of(text: str) -> Level:
    """The level of this name. Raises UsageProblem."""
    for level in LEVELS:
        if text == level:
            return level
    raise UsageProblem(f"there is no level {text!r}", hint="use " + ", ".join(LEVELS))


def known_clauses(names: Sequence[str]) -> None:
    """Raises UsageProblem for a name that is no clause and no family."""
    for name in names:
        if name not in CLAUSES and name not in by_family():
            raise UsageProblem(f"there is no clause {name!r}", hint="`memassay clauses` lists them")


def chosen_clauses(names: Sequence[str], level: Level) -> tuple[str, ...]:
    """The clauses and families asked for, each once. Raises UsageProblem for one beyond the level."""
    known_clauses(names)
    for name in names:
        if not select(level, [name]):
            raise UsageProblem(f"{name} is beyond level {level}", hint="raise --level")
    return tuple(dict.fromkeys(names))


def urls_of(given: Sequence[str]) -> dict[str, str]:
    """The URLs of `--url` by backend. Raises UsageProblem."""
    urls: dict[str, str] = {}
    for item in given:
        backend, equals, url = item.partition("=")
        if not (backend and equals and url):
            raise UsageProblem("a --url is not BACKEND=URL", hint="e.g. --url postgres=postgresql://me@host/db")
        urls[backend] = url
    return urls


def writable(path: Path) -> None:
    """Find out before the run. Raises UsageProblem."""
    try:
        with path.open("ab"):
            pass
    except OSError as error:
        raise UsageProblem(f"{path} cannot be written: {error.strerror}", hint="choose another file") from None


def writable_folder(folder: Path, option: str = "--cases") -> None:
    """The same for a folder, which need not exist yet. Raises UsageProblem."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise UsageProblem(f"{folder} cannot be written to", hint=f"choose another folder with {option}")
