"""What a user chooses about engines: urls, images, homes and heap; by option, by environment, or in `memassay.toml`."""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import msgspec

HEAP = "512m"
"""Of a server in Java, unless chosen otherwise."""


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """Choices by backend: the URL of a server, the image of a container, the directory of an unpacked server."""

    urls: Mapping[str, str] = {}
    images: Mapping[str, str] = {}
    homes: Mapping[str, str] = {}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All that was chosen. An option wins over the environment, and this over the file."""

    options: Choices = Choices()
    file: Choices = Choices()
    heap: str = HEAP
    steady: bool = False
    """Servers are run for their speed over time, not for a quick start."""
    folder: Path | None = None
    """Where the directories of engines are made, instead of the system's temporary directory."""

    def url(self, backend: str) -> str | None:
        """The server to use: `--url`, MEMASSAY_<BACKEND>_URL, `[urls]`."""
        return self._chosen(backend, self.options.urls, "URL", self.file.urls)

    def image(self, backend: str) -> str | None:
        """The image to run: `--image`, MEMASSAY_<BACKEND>_IMAGE, `[images]`."""
        return self._chosen(backend, self.options.images, "IMAGE", self.file.images)

    def home(self, backend: str) -> Path | None:
        """The unpacked server to run: `--home`, MEMASSAY_<BACKEND>_HOME, `[homes]`."""
        chosen = self._chosen(backend, self.options.homes, "HOME", self.file.homes)
        return None if chosen is None else Path(chosen).expanduser().absolute()

    def _chosen(self, backend: str, options: Mapping[str, str], kind: str, file: Mapping[str, str]) -> str | None:
        return options.get(backend) or os.environ.get(variable(backend, kind)) or file.get(backend)


_current: ContextVar[Settings] = ContextVar("settings")


def current() -> Settings:
    """What provisioners look up: the settings in use, or none but the environment."""
    return _current.get(_NONE)


@contextmanager
def use(settings: Settings) -> Generator[None]:
    """Make these the current settings in the block."""
    token = _current.set(settings)
    try:
        yield
    finally:
        _current.reset(token)


_NONE = Settings()


def variable(backend: str, kind: str = "URL") -> str:
    """The environment variable for one kind of choice about a backend: MEMASSAY_<BACKEND>_<KIND>."""
    return f"MEMASSAY_{re.sub(r'[^A-Za-z0-9]+', '_', backend).strip('_').upper()}_{kind}"
