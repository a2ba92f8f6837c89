"""What runs on this machine, and what is missing for the rest."""

from __future__ import annotations

import platform
import signal
import time
from collections.abc import Iterator
from typing import cast

import msgspec

from ..backends.provision import EngineUnavailable, Provisioner, containers
from ..backends.provision.settings import variable
from ..backends.registry import UnknownBackend, find, names
from ..spec.protocols import Backend
from .artefact import own_version, version_of
from .engine import methods, start, url_for
from .exits import UsageProblem
from .zone import hostile_zone


class Check(msgspec.Struct, frozen=True):
    """One line of the report; `missing` says what to install, and is empty when it runs."""

    subject: str
    what: str
    missing: str = ""


def checks() -> Iterator[Check]:
    """The machine, then every way to every backend."""
    yield Check("memassay", own_version())
    yield Check("python", f"{platform.python_version()} on {platform.platform()}")
    yield Check("hypothesis", version_of("hypothesis"))
    yield _zone()
    yield _limits()
    yield Check("docker", "a daemon", containers.daemon() or "")
    for name in names():
        yield from _backend(name)


def _zone() -> Check:
    with hostile_zone() as zone:
        moved = time.timezone != 0
    return Check("time zone", zone, "" if moved else "runs do not move the process to a hostile zone: install tzdata")


def _limits() -> Check:
    timed = hasattr(signal, "setitimer")
    return Check(
        "time limit",
        "programs that hang are stopped",
        "" if timed else "POSIX timers: here a hung program hangs the run",
    )


def _backend(name: str) -> Iterator[Check]:
    try:
        backend = find(name)
    except UnknownBackend as error:
        yield Check(name, "cannot be used", str(error))
        return
    ways = methods(backend)
    if not ways:
        yield Check(name, "needs no engine")
    for method, way in ways.items():
        if method == "url":
            yield _own(name, backend, way)
        else:
            runs = cast("str", getattr(way, "runs", ""))
            yield Check(name, f"{method}: {runs}" if runs else method, way.missing() or "")


def _own(name: str, backend: Backend, way: Provisioner) -> Check:
    """The user's own engine: reached, if the environment has its URL."""
    url = url_for(name, backend, {})
    if url is None or way.missing():
        runs = cast("str", getattr(way, "runs", ""))
        yours = f"url: yours, by --url {name}=... or {variable(name)}"
        return Check(name, f"{yours}: {runs}" if runs else yours, way.missing() or "")
    try:
        with start(name, backend, "url", {}) as engine:
            return Check(name, f"url: {engine.version} ({engine.endpoint.detail}), by {variable(name)}")
    except (EngineUnavailable, UsageProblem) as error:
        return Check(name, f"url: yours, by {variable(name)}", str(error))
