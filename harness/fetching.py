"""Has a backend's servers downloaded and unpacked, where its engine comes as no package."""

from __future__ import annotations

from typing import cast

from rich.console import Console
from rich.text import Text

from ..backends.provision import Fetchable
from ..spec.protocols import Backend
from .engine import methods
from .exits import UsageProblem
from .progress import Display


def fetchable(backend: Backend) -> Fetchable | None:
    """The backend's way to an engine that has to be fetched before; None when it has none."""
    ways = [way for way in methods(backend).values() if hasattr(way, "fetch")]
    return cast("Fetchable", ways[0]) if ways else None


def fetch(name: str, backend: Backend, out: Console) -> None:
    """Fetch it unless it is there. Raises UsageProblem, EngineUnavailable."""
    way = fetchable(backend)
    if way is None:
        raise UsageProblem(f"{name} has nothing to fetch", hint="`memassay doctor` says how engines are had")
    out.print(Text(f"{name}: {way.offer}"), soft_wrap=True)
    with Display(out) as display:
        where = way.fetch(display.working)
    out.print(Text(f"{name}: in {where}"), soft_wrap=True)
