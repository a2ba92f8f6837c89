"""Ways to a FAISS store: a temporary directory, none but memory, or a directory of the user's."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from . import Endpoint, EngineUnavailable, Provisioners
from .keeper import directory

MEMORY = ":memory:"


def folder_of(url: str) -> Path | None:
    """The directory for a plain path or `file:/path`; None for `:memory:`. ValueError for anything else."""
    if url == MEMORY:
        return None
    path = unquote(urlsplit(url).path) if url.startswith("file:") else url
    if not path or "://" in path:
        raise ValueError(f"{url!r} names no directory")
    return Path(os.path.abspath(path))


class Embedded:
    """A fresh temporary directory, which is removed on exit."""

    def missing(self) -> str | None:
        """See provision.Provisioner. The engine is the Python packages themselves."""
        return None

    @contextmanager
    def start(self, url: str | None) -> Generator[Endpoint]:
        """See provision.Provisioner."""
        with directory("memassay-faiss-") as folder:
            yield Endpoint(str(folder), "embedded", "a temporary directory")


class InMemory:
    """No file: what a client wrote is gone when it closes."""

    def missing(self) -> str | None:
        """See provision.Provisioner."""
        return None

    @contextmanager
    def start(self, url: str | None) -> Generator[Endpoint]:
        """See provision.Provisioner."""
        yield Endpoint(MEMORY, "memory", "in memory")


class UserFolder:
    """A directory of the user's, made when absent and left where it is."""

    def missing(self) -> str | None:
        """See provision.Provisioner."""
        return None

    @contextmanager
    def start(self, url: str | None) -> Generator[Endpoint]:
        """See provision.Provisioner."""
        try:
            folder = folder_of(url or "")
        except ValueError as error:
            raise EngineUnavailable(str(error), hint="give a directory or file:/directory") from None
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise EngineUnavailable(f"{str(folder)!r} is no directory: {error.strerror}") from None
            if not os.access(folder, os.W_OK):
                raise EngineUnavailable(f"{str(folder)!r} cannot be written to", hint="give a directory of yours")
        yield Endpoint(MEMORY if folder is None else str(folder), "url", str(folder or MEMORY))


PROVISIONERS: Provisioners = {"embedded": Embedded(), "memory": InMemory(), "url": UserFolder()}
