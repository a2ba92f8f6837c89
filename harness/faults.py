"""Faults of engines and of the way to them: what can be broken, how, and how it is mended again."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Literal, Protocol, get_args

from ..backends.provision import EngineUnavailable, interruption
from ..backends.provision.fragile import Fragile
from .exits import UsageProblem
from .proxy import Proxy
from .remote import SecondProcess

Kind = Literal["kill", "pause", "disk-full", "delay", "halve", "reset"]
KINDS: tuple[Kind, ...] = get_args(Kind)
ON_THE_WAY: frozenset[Kind] = frozenset({"delay", "halve", "reset"})
"""Faults of the connection."""

PAUSED = 0.5
"""Seconds that an engine stands still."""

DELAYED = 0.02
"""Seconds that each message is held up."""

DISK = "320m"
"""The size of the disk that is filled; PostgreSQL alone takes 60 MB of it."""

LEFT = 2_000_000
"""Bytes at most that a filled disk has left when a storm begins."""

BALLAST = "ballast"

AFTER, UNTIL_FULL = 12, 600
"""Calls that are acknowledged after a fault, of all writers, until a storm that it does not end is over."""


class Fault(Protocol):
    """One kind of fault, on one engine."""

    after: int
    """Calls that are acknowledged after it, of all writers, until a storm that it does not end is over."""

    @property
    def what(self) -> str:
        """What is done, in words."""
        ...

    def strike(self, rng: Random) -> None:
        """Break it, in the middle of a storm."""
        ...

    def mend(self) -> None:
        """Have it work again. Raises EngineUnavailable."""
        ...


class KillProcess:
    """SIGKILL to the process that the clients, and so an engine within them, run in."""

    after = AFTER

    def __init__(self, process: SecondProcess) -> None:
        self.what = "kill -9 of the process it runs in"
        self._process = process

    def strike(self, rng: Random) -> None:
        """See Fault."""
        self._process.kill()

    def mend(self) -> None:
        """See Fault. Whoever opens it next starts it."""


class Kill:
    """SIGKILL to the engine."""

    after = AFTER

    def __init__(self, engine: Fragile) -> None:
        self.what = engine.kills
        self._engine = engine

    def strike(self, rng: Random) -> None:
        """See Fault."""
        self._engine.kill()

    def mend(self) -> None:
        """See Fault."""
        self._engine.revive()


class Pause:
    """The engine stands still for a while: nothing is broken off, and nothing may be given up too early."""

    after = AFTER

    def __init__(self, engine: Fragile) -> None:
        self.what = f"stands still for {PAUSED:g} s"
        self._engine = engine

    def strike(self, rng: Random) -> None:
        """See Fault."""
        self._engine.pause()
        try:
            time.sleep(PAUSED)
        finally:
            self._engine.resume()

    def mend(self) -> None:
        """See Fault."""


class Delay:
    """Each message takes longer, until the storm is over."""

    after = AFTER

    def __init__(self, proxy: Proxy) -> None:
        self.what = f"each message {DELAYED * 1000:g} ms later"
        self._proxy = proxy

    def strike(self, rng: Random) -> None:
        """See Fault."""
        self._proxy.delay = DELAYED

    def mend(self) -> None:
        """See Fault."""
        self._proxy.delay = 0.0


class Halve:
    """Half of a request or of an answer arrives, and the connection ends."""

    after = AFTER

    def __init__(self, proxy: Proxy) -> None:
        self.what = "half a message, then the connection ends"
        self._proxy = proxy

    def strike(self, rng: Random) -> None:
        """See Fault."""
        self._proxy.halve(rng.choice((1, 2, 3)))

    def mend(self) -> None:
        """See Fault."""
        self._proxy.halve(0)


class Reset:
    """All connections are reset."""

    after = AFTER

    def __init__(self, proxy: Proxy) -> None:
        self.what = "all connections reset"
        self._proxy = proxy

    def strike(self, rng: Random) -> None:
        """See Fault."""
        self._proxy.reset()

    def mend(self) -> None:
        """See Fault."""


class Full:
    """The disk that the engine writes to is full: all but a little of it is taken when the storm begins."""

    after = UNTIL_FULL

    def __init__(self, folder: Path, engine: Fragile | None) -> None:
        self.what = f"a disk of {DISK} full"
        self._folder = folder
        self._engine = engine

    def strike(self, rng: Random) -> None:
        """See Fault."""
        room = shutil.disk_usage(self._folder).free - rng.randint(0, LEFT)
        with (self._folder / BALLAST).open("wb") as ballast, suppress(OSError):
            os.posix_fallocate(ballast.fileno(), 0, max(room, 1))

    def mend(self) -> None:
        """See Fault. An engine that ended itself, or gave up, is started again."""
        (self._folder / BALLAST).unlink(missing_ok=True)
        if self._engine is not None:
            self._engine.recover()


def disk_missing() -> str:
    """Why no small disk can be had here; empty when it can."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "mounting a small disk (tmpfs) takes root"
    return "" if shutil.which("mount") and shutil.which("umount") else "there is no mount"


@contextmanager
def small_disk() -> Generator[Path]:
    """A disk of DISK, mounted for the block. Raises UsageProblem where that cannot be."""
    if reason := disk_missing():
        raise UsageProblem(f"a full disk cannot be tried: {reason}", hint="run as root, or leave out disk-full")
    folder = Path(tempfile.mkdtemp(prefix="memassay-disk-"))
    try:
        options = f"size={DISK},mode=1777"
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=False, capture_output=True, text=True
        )
        if done.returncode:
            raise EngineUnavailable(f"no small disk can be mounted: {done.stderr.strip()}", hint="leave out disk-full")
        try:
            yield folder
        finally:
            with interruption.shield():
                subprocess.run(["umount", "--lazy", folder], check=False, capture_output=True)
    finally:
        with suppress(OSError):
            folder.rmdir()
