"""How engines are started, reached and stopped: one provisioner per way, chosen by `--provision`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
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
    """A running engine. `url` is what the backend opens and may hold a password; only `detail` is printed."""

    url: str
    method: str
    detail: str


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


Provisioners = Mapping[str, Provisioner]
"""By method (`embedded`, `url`, …), in the order in which `auto` prefers them."""
