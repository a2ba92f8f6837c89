"""Engines that are there to be broken: killed, paused, and brought back on what they had stored."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Protocol
from urllib.parse import urlsplit, urlunsplit

import msgspec
import psutil

from . import Endpoint, leftovers

Address = tuple[str, int] | str
"""Where an engine listens: host and port, or the path of a socket."""


class Fragile(Protocol):
    """A running engine that may be broken. What is broken is mended by its counterpart, and by stopping it all."""

    @property
    def endpoint(self) -> Endpoint:
        """How it was reached when it was started."""
        ...

    @property
    def kills(self) -> str:
        """What killing it is, in words."""
        ...

    def address(self) -> Address:
        """Where it listens now: after it was brought back that may be elsewhere."""
        ...

    def through(self, host: str, port: int) -> str:
        """The URL that reaches it through something that listens there."""
        ...

    def processes(self) -> Sequence[psutil.Process]:
        """Its processes, as far as they can be seen from here."""
        ...

    def kill(self) -> None:
        """SIGKILL to all of it."""
        ...

    def revive(self) -> None:
        """Start it again on what it had stored, and wait until it answers; nothing when it runs. EngineUnavailable."""
        ...

    def recover(self) -> None:
        """What an operator does once a disk that was full has room again. EngineUnavailable."""
        ...

    def pause(self) -> None:
        """Let it stand still: connections stay, and nothing is answered."""
        ...

    def resume(self) -> None:
        """Let it go on."""
        ...


class Breakable(Protocol):
    """A provisioner whose engine may be broken."""

    def fragile(self) -> AbstractContextManager[Fragile]:
        """Start an engine of the run's own; leaving stops it. Raises EngineUnavailable."""
        ...


class Tree(msgspec.Struct):
    """An engine that is processes of ours (leftovers.processes); implements Fragile.

    listens: where it does. reached: the URL through a host and port. start: starts it again.
    anew: whether it takes that, to use a disk again that was full.
    """

    endpoint: Endpoint
    root: str
    programs: Sequence[str]
    listens: Callable[[], Address]
    reached: Callable[[str, int], str]
    start: Callable[[], object]
    kills: str = "kill -9 of its processes"
    anew: bool = False

    def address(self) -> Address:
        """See Fragile."""
        return self.listens()

    def through(self, host: str, port: int) -> str:
        """See Fragile."""
        return self.reached(host, port)

    def processes(self) -> list[psutil.Process]:
        """See Fragile."""
        found = leftovers.processes(self.root, self.programs)
        children: list[psutil.Process] = []
        for process in found:
            with suppress(psutil.Error):
                children += process.children(recursive=True)
        return list(dict.fromkeys([*found, *children]))

    def kill(self) -> None:
        """See Fragile."""
        leftovers.kill_all(self.root, self.programs)

    def revive(self) -> None:
        """See Fragile."""
        if not leftovers.processes(self.root, self.programs):
            self.start()

    def recover(self) -> None:
        """See Fragile."""
        if self.anew:
            self.kill()
        self.revive()

    def pause(self) -> None:
        """See Fragile."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        """See Fragile."""
        self._send(signal.SIGCONT)

    def _send(self, number: int) -> None:
        for process in self.processes():
            with suppress(psutil.Error):
                process.send_signal(number)


def at(url: str) -> tuple[str, int]:
    """The host and port of a URL that has both."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


def moved(url: str, host: str, port: int) -> str:
    """The URL with another host and port."""
    parts = urlsplit(url)
    login, separator, _ = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{login}{separator}{host}:{port}"))
