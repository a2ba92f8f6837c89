"""Runs an unpacked server in Java as a process for the run: unprivileged, on loopback, in a fresh directory."""

from __future__ import annotations

import os
import pwd
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from . import Endpoint, EngineUnavailable, Progress, homes, java, leftovers
from .fragile import Tree, at, moved
from .keeper import directory
from .settings import current

START_SECONDS = 240.0
"""A loaded machine of two cores has taken 46."""

STOP_SECONDS = 15.0
ANSWER_SECONDS = 5.0
POLL_SECONDS = 0.1
LOG_LINES = 30
LOG = "console.log"
NOBODY = "nobody"
QUICK = "-XX:TieredStopAtLevel=1"
"""Starts in half the time, at the cost of throughput, which is no matter of conformance."""

DROPPED = ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JAVA_OPTS", "JAVA_HOME", "ES_JAVA_OPTS", "OPENSEARCH_JAVA_OPTS")
"""Variables that would change the server behind the user's back."""


def compiler() -> str:
    """How Java compiles: its own way where speed over time is wanted."""
    return "" if current().steady else QUICK


class Server(msgspec.Struct, frozen=True):
    """How to run it. `ports` is the file in which it writes where it answers, as HOST:PORT lines."""

    name: str
    home: Path
    command: Sequence[str]
    environment: Mapping[str, str]
    java: Path
    ports: Path


class Embedded(msgspec.Struct, frozen=True):
    """A way to a server of its own for the run. It and its directory are gone when the run ends.

    program: its starter, relative to its home.
    lay_out: writes its configuration into a directory, given home, Java, heap and the directory.
    """

    recipe: homes.Recipe
    program: str
    need: java.Need
    lay_out: Callable[[Path, java.Java, str, Path], Server]

    def missing(self) -> str | None:
        """See provision.Provisioner."""
        home = homes.find(self.recipe, self.program)
        if isinstance(home, str):
            return home
        found = self._java(home)
        return found if isinstance(found, str) else None

    @contextmanager
    def start(self, url: str | None) -> Generator[Endpoint]:
        """See provision.Provisioner."""
        with self.fragile() as engine:
            yield engine.endpoint

    @contextmanager
    def fragile(self) -> Generator[Tree]:
        """See fragile.Breakable."""
        home = homes.find(self.recipe, self.program)
        if isinstance(home, str):
            raise EngineUnavailable(home)
        found = self._java(home)
        if isinstance(found, str):
            raise EngineUnavailable(found)
        heap = current().heap
        with directory(f"memassay-{self.recipe.backend}-", stop=stop) as root:
            server = self.lay_out(home, found, heap, root)
            address = start(server, root)
            detail = f"{home.name}, Java {found.version}, {heap_in_words()}, no other limits"
            yield Tree(
                endpoint=Endpoint(url=address, method="embedded", detail=detail),
                root=str(root),
                programs=(),
                listens=lambda: at(_url(server.ports) or address),
                reached=lambda host, port: moved(address, host, port),
                start=lambda: start(server, root),
                anew=True,  # It gives up shards that it could not write to, after a few tries.
            )

    @property
    def runs(self) -> str:
        """What would be started, in words."""
        home = homes.find(self.recipe, self.program)
        return "an unpacked server" if isinstance(home, str) else f"{home}, {heap_in_words()}"

    @property
    def offer(self) -> str:
        """See provision.Fetchable."""
        size = f"{self.recipe.bytes / 1e6:.0f} MB from Maven Central"
        return f"{self.recipe.name}, {size}, for {homes.assembled(self.recipe)}; licence: {self.recipe.licence}"

    def fetch(self, progress: Progress) -> Path:
        """See provision.Fetchable."""
        return homes.assemble(self.recipe, progress)

    def _java(self, home: Path) -> java.Java | str:
        """The Java that the home brings along, or one of the machine's."""
        own = java.look(home / "jdk")
        return own if own is not None and not self.need.unmet(own) else java.find(self.need)


def stop(root: Path) -> None:
    """End the processes of a directory: gently, and by force when that takes too long."""
    leftovers.end(leftovers.processes(str(root)), signal.SIGTERM, STOP_SECONDS)
    leftovers.kill_all(str(root))


def start(server: Server, root: Path) -> str:
    """Start it and wait until it is healthy; its URL. Raises EngineUnavailable with the end of its log."""
    account = unprivileged()
    server.ports.unlink(missing_ok=True)  # Of a run before, which was killed.
    _give(root, account)
    _check_readable(server, account)
    environment = {key: value for key, value in os.environ.items() if key not in DROPPED}
    with (root / LOG).open("wb") as log:
        process = subprocess.Popen(
            server.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=root,
            env={**environment, "HOME": str(root), leftovers.ROOT: str(root), **server.environment},
            start_new_session=True,
            user=account.user,
            group=account.group,
            extra_groups=account.groups,
        )
    deadline = time.monotonic() + START_SECONDS
    while True:
        if process.poll() is not None:
            raise _failure(server, root, f"ended with {process.returncode} before it answered")
        url = _url(server.ports)
        if url and _healthy(url):
            return url
        if time.monotonic() > deadline:
            raise _failure(server, root, f"was not healthy within {START_SECONDS:g} s")
        time.sleep(POLL_SECONDS)


def heap_in_words() -> str:
    """What of the settings of a server in Java makes a difference."""
    return ", ".join(filter(None, (f"heap {current().heap}", compiler())))


def java_options(home: Path) -> str:
    """Those of the home, without what would write into it, or up to 2 GB of a log of garbage collection."""
    lines = (home / "config/jvm.options").read_text().splitlines()
    written = re.compile(r"[\d:-]*-(Xlog:gc|XX:HeapDumpPath|XX:ErrorFile)")
    return "".join(line + "\n" for line in lines if not written.match(line))


def check_health(url: str) -> None:
    """Ask a server at this URL once whether it is healthy. Raises OSError when it does not say so."""
    with urllib.request.urlopen(f"{url}/_cluster/health?wait_for_status=yellow&timeout=1s", timeout=ANSWER_SECONDS):
        pass


def _healthy(url: str) -> bool:
    try:
        check_health(url)
    except OSError:
        return False
    return True


def _url(ports: Path) -> str | None:
    """Where it answers, as soon as it has written it down."""
    with suppress(OSError):
        for line in ports.read_text().split():
            if line.startswith("127.0.0.1:"):
                return f"http://{line}"
    return None


def _failure(server: Server, root: Path, what: str) -> EngineUnavailable:
    return EngineUnavailable(
        f"the {server.name} in {server.home} {what}{tail(root / LOG)}", hint="see what the server said above"
    )


def tail(log: Path) -> str:
    """The end of a log."""
    with suppress(OSError):
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        return "".join("\n" + line for line in lines[-LOG_LINES:])
    return ""


class Account(msgspec.Struct, frozen=True):
    """As whom a process runs; without a user, as whom we run."""

    user: int | None = None
    group: int | None = None
    groups: Sequence[int] | None = None


def unprivileged() -> Account:
    """As whom a server runs that refuses root. Raises EngineUnavailable."""
    if os.getuid() != 0:
        return Account()
    try:
        nobody = pwd.getpwnam(NOBODY)
        return Account(nobody.pw_uid, nobody.pw_gid, [])
    except KeyError:
        raise EngineUnavailable(
            f"the server refuses to run as root, and there is no user {NOBODY}", hint="run as another user"
        ) from None


def _give(root: Path, account: Account) -> None:
    if account.user is not None and account.group is not None:
        for path in (root, *root.rglob("*")):
            os.chown(path, account.user, account.group)


def _check_readable(server: Server, account: Account) -> None:
    """That it can reach the server, its Java and the directory: a parent may be closed to it."""
    for path in (server.home / "lib", server.java, server.ports.parents[1]):
        reach = ["/bin/sh", "-c", 'test -r "$1" && test -x "$1"', "sh", str(path)]
        done = subprocess.run(
            reach, check=False, cwd="/", user=account.user, group=account.group, extra_groups=account.groups
        )
        if done.returncode:
            who = "you" if account.user is None else f"the user {NOBODY}, as whom a server of root's runs,"
            raise EngineUnavailable(
                f"{who} cannot read {path}", hint="open its parent directories, move it, or do not run as root"
            )
