"""Removes from a server of the user's the namespaces that runs left on it."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from ..spec.protocols import Backend
from .engine import lister, start
from .exits import UsageProblem


def clean(name: str, backend: Backend, url: str, out: Console) -> None:
    """Drop every namespace on the server at this URL. Raises UsageProblem, EngineUnavailable, EngineFailed."""
    listed = lister(backend)
    if listed is None:
        raise UsageProblem(f"{name} keeps nothing on a server", hint="remove the file or directory yourself")
    with start(name, backend, "url", {name: url}) as engine:
        found: list[str] = []
        engine.ask("namespaces cannot be listed", lambda: found.extend(listed(engine.endpoint.url)))
        for namespace in found:
            engine.ask(
                f"namespace {namespace} cannot be dropped",
                lambda namespace=namespace: backend.drop_namespace(engine.endpoint.url, namespace),
            )
        out.print(Text(f"{name}: {len(found)} namespaces removed ({engine.endpoint.detail})"), soft_wrap=True)
