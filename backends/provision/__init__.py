"""How engines are started, reached and stopped: one provisioner per way, chosen by `--provision`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import msgspec


class EngineUnavailable(Exception):
    """An engine could not be started or reached; the message says why and `hint` what to do."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class Endpoint(msgspec.Struct, frozen=True):
    """A running engine.

    url: what the backend opens; it may hold a password and is not printed.
    detail: what runs, and with which limits, in words.
    passed_over: what `auto` would have preferred, and why it could not be had.
    """

    url: str
    method: str
    detail: str
    passed_over: str = ""


class Provisioner(Protocol):
    """One way to get an engine."""

    def missing(self) -> str | None:
        """Why this way cannot be gone on this machine, and what to install; None when it can."""
        ...

    def start(self, url: str | None) -> AbstractContextManager[Endpoint]:
        """Start (or reach, for a given url) the engine; leaving the context stops what was started.

        Raises EngineUnavailable with the engine's own log when it does not come up.
        """
        ...


Progress = Callable[[str, int, int], None]
"""Told what is being done, and how much of how much is."""


class Fetchable(Protocol):
    """A way whose engine has to be fetched once before; `start` never does so by itself."""

    @property
    def offer(self) -> str:
        """What is fetched, from where, how much it is, and under which licence it stands."""
        ...

    def fetch(self, progress: Progress) -> Path:
        """Fetch it unless it is there; where it is. Raises EngineUnavailable."""
        ...


class Given(msgspec.Struct, frozen=True):
    """Your server: nothing is started or stopped there, and only what bears our prefix is touched.

    module and extra: what a client of it needs. probe: connects once; what is there, without secrets, or
    EngineUnavailable. hint: how its URLs look. check: ValueError, without secrets, for what is none by its looks alone.
    """

    module: str
    extra: str
    probe: Callable[[str], str]
    hint: str
    check: Callable[[str], object]

    def missing(self) -> str | None:
        """See Provisioner."""
        return lacks(self.module, self.extra)

    @contextmanager
    def start(self, url: str | None) -> Generator[Endpoint]:
        """See Provisioner."""
        if url is None:
            raise EngineUnavailable("no url was given", hint=self.hint)
        try:
            self.check(url)
        except ValueError as error:
            raise EngineUnavailable(str(error), hint=self.hint) from None
        yield Endpoint(url=url, method="url", detail=self.probe(url))


def lacks(module: str, extra: str) -> str | None:
    """What to install where a module is not here; None where it is."""
    if find_spec(module) is not None:
        return None
    return f"the module {module} is not installed: pip install 'memassay[{extra}]'"


Provisioners = Mapping[str, Provisioner]
"""By method (`embedded`, `url`, …), in the order in which `auto` prefers them."""
