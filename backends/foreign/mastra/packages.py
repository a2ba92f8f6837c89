"""The pinned packages of Mastra: where they are, what is missing, and how they are fetched."""

from __future__ import annotations

from pathlib import Path

from ...provision import Progress
from .. import npm
from ..npm import NODE, node

__all__ = ["HERE", "INSTALL", "NODE", "Packages", "folder", "install", "missing", "node"]

HERE = Path(__file__).parent
INSTALL = "memassay fetch mastra"


def folder() -> Path:
    """Where these very pins are installed."""
    return npm.folder("mastra", HERE)


def missing() -> str | None:
    """What has to be installed before Mastra can be driven; None when all is here."""
    return npm.missing(folder(), INSTALL)


class Packages:
    """The pinned packages. Implements provision.Fetchable."""

    @property
    def offer(self) -> str:
        """See provision.Fetchable."""
        return (
            f"the packages of package.json, about 290 MB by npm, for {folder()}; licences: theirs (@mastra: Apache-2.0)"
        )

    def fetch(self, progress: Progress) -> Path:
        """See provision.Fetchable; npm tells on standard error how it fares."""
        progress("npm ci", 0, 1)
        return install()


def install() -> Path:
    """Install the pinned packages, unless they are; the folder. Raises EngineUnavailable."""
    return npm.install(folder(), HERE)
