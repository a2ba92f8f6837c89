"""Ways to a libSQL database: a file in a temporary directory, none but memory, or a file of the user's."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from . import Endpoint, EngineUnavailable, Provisioners
from .keeper import directory

MEMORY = ":memory:"
MAGIC = b"SQLite format 3\0"
REMOTE = ("libsql://", "http://", "https://", "ws://", "wss://")


def database_path(url: str) -> str:
    """The path that the engine opens for `:memory:`, a plain path or `file:/path`. ValueError for anything else."""
    if url == MEMORY:
        return url
    if url.startswith(REMOTE):
        raise ValueError("a libSQL server is not supported, as there was none to try it on: a file is")
    path = unquote(urlsplit(url).path) if url.startswith("file:") else url
    if not path or "://" in path:
        raise ValueError(f"{url!r} names no database file")
    return os.path.abspath(path)


class Embedded:
    """A database file in a fresh temporary directory, which is removed on exit."""

    def missing(self) -> str | None:
        """See provision.Provisioner. The engine is the Python package itself."""
        return None

    @contextmanager
    def start(self, url: str | None) -> Generator[Endpoint]:
        """See provision.Provisioner."""
        with directory("memassay-libsql-") as folder:
            yield Endpoint(str(folder / "memory.db"), "embedded", "a file in a temporary directory")


class InMemory:
    """No file: what a client wrote is gone when it closes."""

    def missing(self) -> str | None:
        """See provision.Provisioner."""
        return None

    @contextmanager
    def start(self, url: str | None) -> Generator[Endpoint]:
        """See provision.Provisioner."""
        yield Endpoint(MEMORY, "memory", "in memory")


class UserFile:
    """A file of the user's, made when absent and left where it is."""

    runs = "a file, no server (libsql://), as there was none to try it on"

    def missing(self) -> str | None:
        """See provision.Provisioner."""
        return None

    @contextmanager
    def start(self, url: str | None) -> Generator[Endpoint]:
        """See provision.Provisioner."""
        try:
            path = database_path(url or "")
        except ValueError as error:
            raise EngineUnavailable(str(error), hint="give a path or file:/path") from None
        folder = Path(path).parent
        if path != MEMORY and not os.access(folder, os.W_OK):
            raise EngineUnavailable(f"{str(folder)!r} cannot be written to", hint="make the directory first")
        if path != MEMORY and Path(path).exists() and not _is_database(Path(path)):
            raise EngineUnavailable(f"{path!r} is no database", hint="give one, or a path where there is nothing yet")
        yield Endpoint(path, "url", path)


def _is_database(path: Path) -> bool:
    """Whether a file begins as SQLite's do, or is empty."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) in (b"", MAGIC)


PROVISIONERS: Provisioners = {"embedded": Embedded(), "memory": InMemory(), "url": UserFile()}
