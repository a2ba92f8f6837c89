"""The AI SDK's own package, pinned: what it makes of UI messages, in a Node process (UI-1).

Fetched once by `memassay fetch ai-sdk`.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...provision import EngineUnavailable, Progress
from .. import npm
from ..npm import node

HERE = Path(__file__).parent
INSTALL = "memassay fetch ai-sdk"

SECONDS = 60.0


class Reading(msgspec.Struct, frozen=True):
    """What the package makes of UI messages: why they are none, or the messages for a model."""

    error: str | None = None
    model: list[Any] = []


def folder() -> Path:
    """Where these very pins are installed."""
    return npm.folder("ai-sdk", HERE)


def missing() -> str | None:
    """What has to be installed before; None when all is here."""
    return npm.missing(folder(), INSTALL)


class Packages:
    """The pinned packages. Implements provision.Fetchable."""

    @property
    def offer(self) -> str:
        """See provision.Fetchable."""
        return f"the packages of package.json, about 20 MB by npm, for {folder()}; licences: theirs (ai: Apache-2.0)"

    def fetch(self, progress: Progress) -> Path:
        """See provision.Fetchable; npm tells on standard error how it fares."""
        progress("npm ci", 0, 1)
        return install()


def install() -> Path:
    """Install the pinned packages, unless they are; the folder. Raises EngineUnavailable."""
    return npm.install(folder(), HERE)


def read(conversations: Sequence[Any]) -> list[Reading]:
    """What the package makes of each list of UI messages: validated, and converted for a model. EngineUnavailable."""
    if reason := missing():
        raise EngineUnavailable(reason, hint=INSTALL)
    done = subprocess.run(
        [str(node()), str(HERE / "read.mjs"), str(folder())],
        input=json.dumps(conversations).encode(),
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode:
        raise EngineUnavailable("Node ended with an error", hint=done.stderr.decode(errors="replace")[-1000:])
    return msgspec.json.decode(done.stdout, type=list[Reading])
