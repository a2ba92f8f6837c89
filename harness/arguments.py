"""What commands share: options, how they are read, and mistakes of the user as one line with a hint."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from ..backends.provision import EngineUnavailable
from ..backends.provision import settings as current
from ..backends.provision.settings import HEAP, Choices, Settings
from ..backends.registry import UnknownBackend, find
from ..spec.clauses import CLAUSES, LEVELS, Level, by_family, select
from ..spec.strategies import SCENARIOS, Scenario
from . import corpus, settings
from .engine import EngineFailed, choose, methods, url_for
from .exits import Exit, UsageProblem
from .output import own_stdout
from .runner import Target

EXIT_CODES = """\b
Exit codes:
  0  every clause asked for passes
  1  clauses fail (flaky and error included)
  2  the command line is wrong, or a file cannot be read or written
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


Images = Annotated[
    list[str] | None,
    typer.Option("--image", metavar="BACKEND=IMAGE", help="What docker runs; or set MEMASSAY_<BACKEND>_IMAGE."),
]
Homes = Annotated[
    list[str] | None,
    typer.Option("--home", metavar="BACKEND=DIR", help="An unpacked server to run; or set MEMASSAY_<BACKEND>_HOME."),
]
Heap = Annotated[str, typer.Option(metavar="SIZE", help="The heap of servers in Java.")]


@contextmanager
def engines(
    url: list[str] | None, image: list[str] | None = None, home: list[str] | None = None, heap: str = HEAP
) -> Generator[Settings]:
    """What was chosen about engines, for as long as the command runs. Raises UsageProblem."""
    chosen = settings.gather(urls=url or (), images=image or (), homes=home or (), heap=heap)
    with current.use(chosen):
        yield chosen


def with_exit_codes(text: str) -> dict[str, Any]:
    """A command's help and, under it, what its exit codes mean; as keyword arguments."""
    return {"help": text, "epilog": EXIT_CODES}


class Output(Console):
    """A console that ends the process without a word when nobody reads on."""

    def on_broken_pipe(self) -> None:
        """See rich.console.Console."""
        silence(self.file)
        raise SystemExit(Exit.BROKEN_PIPE)


def silence(stream: IO[str]) -> None:
    """Send nowhere what is still to be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


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


def complain(message: str) -> None:
    """Say one line on standard error."""
    Console(stderr=True).print(Text(f"memassay: {message}"), soft_wrap=True)


def fail(message: str, code: Exit) -> NoReturn:
    """End the process with one line on standard error."""
    complain(message)
    raise typer.Exit(code)


def targets_of(names: Sequence[str]) -> tuple[Target, ...]:
    """The backends of these names, each once. UsageProblem, UnknownBackend."""
    return tuple(Target(name, load_backend(name)) for name in dict.fromkeys(names))


def load_backend(name: str) -> Any:
    """A backend; a module of the user's is found in the current directory too."""
    if ":" in name and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        with own_stdout():
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


def chosen_scenarios(names: Sequence[str], level: Level) -> Mapping[str, Scenario]:
    """The kinds of programs asked for, all unless named. Raises UsageProblem for one that the level has none of."""
    able = {name: scenario for name, scenario in SCENARIOS.items() if scenario.share[level]}
    for name in names:
        if name not in able:
            raise UsageProblem(f"level {level} has no scenario {name!r}", hint="use " + ", ".join(able))
    return {name: able[name] for name in names} if names else SCENARIOS


def own_urls(chosen: Choices, targets: Sequence[Target]) -> Mapping[str, str]:
    """The URLs chosen. Raises UsageProblem when something was chosen for a backend that is not at hand, or has no use
    for it."""
    at_hand = {name: target.backend for target in targets for name in (target.name, target.backend.name)}
    for option, given in (("--url", chosen.urls), ("--image", chosen.images), ("--home", chosen.homes)):
        for backend in given:
            if backend not in at_hand:
                raise UsageProblem(
                    f"{option} is for {backend!r}, which this command does not use",
                    hint="it uses " + ", ".join(at_hand),
                )
    for backend in chosen.images:
        if "docker" not in methods(at_hand[backend]):
            raise UsageProblem(f"{backend} runs in no container", hint="leave out its --image")
    return chosen.urls


def reachable(targets: Sequence[Target], provision: str, urls: Mapping[str, str]) -> None:
    """Raises UsageProblem for a way that a backend does not have; an engine that cannot be had is told later."""
    for target in targets:
        with suppress(EngineUnavailable), own_stdout():
            choose(target.backend, provision, url_for(target.name, target.backend, urls))


def bounded(seed: int, *, examples: int | None = None, shrink: int = 0) -> None:
    """Raises UsageProblem for a seed or a number of programs or of counterexamples that is out of bounds."""
    if abs(seed) >= 2**53:
        raise UsageProblem(f"--seed is {seed}", hint=f"use one of at most {2**53 - 1}")
    if examples is not None and not 1 <= examples <= corpus.MAX_PROGRAMS:
        raise UsageProblem(
            f"--examples is {examples}",
            hint=f"ask for at least 1 program and at most {corpus.MAX_PROGRAMS}; for more, run other seeds",
        )
    if shrink < 0:
        raise UsageProblem(f"--shrink is {shrink}", hint="use 0 for none")
