"""Engines in containers, by testcontainers: one container a run, equal limits for all, gone when the run ends."""

from __future__ import annotations

import functools
import importlib.util
import os
import secrets
import socket
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec
import psutil

from . import Endpoint, EngineUnavailable, interruption, leftovers
from .fragile import at, moved
from .keeper import keep
from .settings import current, variable

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

MEMORY = "2g"
SHARED_MEMORY = "512m"
"""PostgreSQL builds indices in it, and docker's own 64 MB are too little."""

ASK_SECONDS = 10
"""For the daemon to say whether an image can be pulled; it does so without pulling."""

START_SECONDS = 240.0
POLL_SECONDS = 0.2
LOG_LINES = 30
RUN, HOST, PID, SINCE = "memassay.run", "memassay.host", "memassay.pid", "memassay.since"
"""Labels of a container: its run, and the process that runs it, so that what a dead one left can be told."""


class Container(msgspec.Struct, frozen=True):
    """A way to an engine in a container.

    image: unless the user chose another.
    make: a container of this image, not started; testcontainers' own class with the engine's settings.
    url: of what runs in the container.
    ready: one attempt to reach it; raises whatever the client does until it answers.
    note: settings that matter, in words.
    """

    backend: str
    image: str
    port: int
    make: Callable[..., DockerContainer]
    url: Callable[[Any], str]
    ready: Callable[[str], object]
    note: Callable[[], str] = lambda: ""

    def missing(self) -> str | None:
        """See provision.Provisioner."""
        return daemon() or obtainable(self.chosen())

    @property
    def runs(self) -> str:
        """What would be started, in words."""
        return self.chosen()

    def chosen(self) -> str:
        """The image to run."""
        return current().image(self.backend) or self.image

    @contextmanager
    def start(self, url: str | None) -> Generator[Endpoint]:
        """See provision.Provisioner."""
        with self.fragile() as engine:
            yield engine.endpoint

    @contextmanager
    def fragile(self) -> Generator[Contained]:
        """See fragile.Breakable."""
        image = self.chosen()
        if reason := self.missing():
            hint = f"choose another image with --image {self.backend}=IMAGE or {variable(self.backend, 'IMAGE')}"
            raise EngineUnavailable(reason, hint=hint)
        stale = remove_stale()
        label = f"{RUN}={secrets.token_hex(8)}"
        with keep(label=label):
            try:
                container = self._limited(image, label)
                address = self._start(container, image)
                said = [
                    _digest(container, image),
                    self.note(),
                    f"limits {MEMORY} of memory and {cores()} CPUs (all)",
                    stale,
                ]
                endpoint = Endpoint(url=address, method="docker", detail=", ".join(filter(None, said)))
                yield Contained(endpoint, self, container)
            finally:
                with interruption.shield():
                    _remove(label)

    def _limited(self, image: str, label: str) -> DockerContainer:
        from testcontainers.core.config import testcontainers_config

        reaper = testcontainers_config.ryuk_image
        if not testcontainers_config.ryuk_disabled and obtainable(reaper) is not None:
            testcontainers_config.ryuk_disabled = True  # We remove what we start ourselves.
        run = label.partition("=")[2]
        container = self.make(image).with_kwargs(
            mem_limit=MEMORY,
            memswap_limit=MEMORY,
            nano_cpus=cores() * 10**9,
            shm_size=SHARED_MEMORY,
            labels={RUN: run, HOST: socket.gethostname(), PID: str(os.getpid()), SINCE: _since(os.getpid()) or ""},
        )
        local = ("127.0.0.1", None) if _is_local(container) else None
        container.ports = {str(self.port): local}  # pyright: ignore[reportAttributeAccessIssue]
        return container

    def _start(self, container: DockerContainer, image: str) -> str:
        """Its URL, once it answers."""
        from testcontainers.core.wait_strategies import WaitStrategy

        reached: list[str] = []
        reach = self.wait

        class Answers(WaitStrategy):
            """Waits for a first answer, and no longer than the container runs."""

            def wait_until_ready(self, container: Any) -> None:
                reached.append(reach(container))

        try:
            container.waiting_for(Answers()).start()
        except EngineUnavailable as error:
            raise EngineUnavailable(
                f"{image} {error.message}{_log(container)}", hint="see what the engine said above"
            ) from error.__cause__
        except Exception as error:
            raise EngineUnavailable(
                f"{image} did not start: {type(error).__name__}: {error}{_log(container)}",
                hint="see what the daemon, or the engine, said above",
            ) from error
        return reached[-1]

    def wait(self, container: DockerContainer) -> str:
        """Its URL, once it answers. Raises EngineUnavailable when it does not in time, or no longer runs."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            container.reload()
            if container.status not in ("created", "running"):
                raise EngineUnavailable(f"is {container.status} before it answered")
            try:
                address = self.url(container)
                self.ready(address)
            except Exception as error:
                if time.monotonic() > deadline:
                    raise EngineUnavailable(f"did not answer within {START_SECONDS:g} s") from error
                time.sleep(POLL_SECONDS)
            else:
                return address


class Contained(msgspec.Struct):
    """An engine in a container; implements fragile.Fragile."""

    endpoint: Endpoint
    way: Container
    container: Any
    kills: str = "docker kill"

    def address(self) -> tuple[str, int]:
        """See fragile.Fragile. Docker publishes its port anew whenever it is started."""
        return at(self.way.url(self.container))

    def through(self, host: str, port: int) -> str:
        """See fragile.Fragile."""
        return moved(self.endpoint.url, host, port)

    def processes(self) -> list[psutil.Process]:
        """See fragile.Fragile. Those of a daemon on this machine, if it shows their ids as we see them."""
        wrapped = self.container.get_wrapped_container()
        found: list[psutil.Process] = []
        with suppress(Exception):  # The daemon may be elsewhere, or not let on.
            for row in wrapped.top()["Processes"]:
                found.append(psutil.Process(int(row[1])))
        return found

    def kill(self) -> None:
        """See fragile.Fragile."""
        with _asking("killed"):
            self.container.get_wrapped_container().kill()

    def revive(self) -> None:
        """See fragile.Fragile."""
        with _asking("started again"):
            wrapped = self.container.get_wrapped_container()
            wrapped.reload()
            if wrapped.status != "running":
                wrapped.start()
        self.way.wait(self.container)

    def recover(self) -> None:
        """See fragile.Fragile."""
        self.revive()

    def pause(self) -> None:
        """See fragile.Fragile."""
        with _asking("paused"):
            self.container.get_wrapped_container().pause()

    def resume(self) -> None:
        """See fragile.Fragile."""
        with _asking("resumed"):
            self.container.get_wrapped_container().unpause()


@contextmanager
def _asking(what: str) -> Generator[None]:
    """Around requests to the daemon, whose errors are of docker, requests or urllib3."""
    try:
        yield
    except EngineUnavailable:
        raise
    except Exception as error:
        raise EngineUnavailable(f"the container could not be {what}: {_brief(error)}") from error


def http_url(container: DockerContainer) -> str:
    """Of a container with one port."""
    (port,) = container.ports
    return f"http://{container.get_container_host_ip()}:{container.get_exposed_port(int(port))}"


def cores() -> int:
    """All that there are."""
    return os.cpu_count() or 1


def client() -> Any:
    """A client of the daemon that testcontainers would use."""
    import docker
    from testcontainers.core.docker_client import get_docker_host

    if host := get_docker_host():
        return docker.DockerClient(base_url=host, timeout=ASK_SECONDS)
    return docker.from_env(timeout=ASK_SECONDS)


def daemon() -> str | None:
    """Why no daemon can be asked; None when one answers."""
    if importlib.util.find_spec("testcontainers") is None:
        return "the module testcontainers is not installed: pip install 'memassay[docker]'"
    try:
        asked = client()
        try:
            asked.ping()
        finally:
            asked.close()
    except Exception as error:  # noqa: BLE001 - of docker, requests or urllib3, or of the URL in DOCKER_HOST
        where = os.environ.get("DOCKER_HOST") or "its socket"
        return f"no Docker daemon answers at {where} ({type(error).__name__})"
    return None


@functools.cache
def obtainable(image: str) -> str | None:
    """Why the image cannot be had; None when it is here, or its registry knows it. Pulls nothing."""
    from docker.errors import APIError, ImageNotFound

    asked = client()
    try:
        asked.images.get(image)
    except ImageNotFound:
        try:
            asked.images.get_registry_data(image)
        except (APIError, OSError) as error:
            return f"the image {image} is not here, and its registry does not offer it: {_brief(error)}"
    finally:
        asked.close()
    return None


def remove_stale() -> str:
    """Remove containers of runs on this machine whose process is dead; what was removed, in words."""
    asked = client()
    removed = 0
    try:
        for container in asked.containers.list(all=True, filters={"label": RUN}, ignore_removed=True):
            labels: Mapping[str, str] = container.labels
            if labels.get(HOST) == socket.gethostname() and _since(int(labels.get(PID) or 0)) != labels.get(SINCE):
                with suppress(Exception):  # Somebody else removes it too.
                    container.remove(force=True, v=True)
                    removed += 1
    finally:
        asked.close()
    return f"{removed} removed that runs now dead had left" if removed else ""


def _remove(label: str) -> None:
    """Remove this run's containers. Raises EngineUnavailable when the daemon no longer does."""
    try:
        leftovers.remove_containers(label)
    except Exception as error:
        raise EngineUnavailable(
            f"the container cannot be removed: {_brief(error)}",
            hint=f"remove what `docker ps -a --filter label={label}` shows",
        ) from error


def _since(pid: int) -> str | None:
    """When a process started; None for one that is dead. With the id it tells processes apart."""
    try:
        return f"{psutil.Process(pid).create_time():.2f}"
    except (psutil.Error, ValueError):
        return None


def _is_local(container: DockerContainer) -> bool:
    """Whether the published port is reached by loopback, so that nobody else needs to reach it."""
    from testcontainers.core.config import ConnectionMode

    reached = container.get_docker_client()
    return reached.get_connection_mode() is ConnectionMode.docker_host and reached.host() in ("localhost", "127.0.0.1")


def _digest(container: DockerContainer, image: str) -> str:
    """The image as it was run: by the digest of its registry, or its id when it was made here."""
    wrapped: Any = container.get_wrapped_container()
    attributes: Mapping[str, Any] = wrapped.image.attrs
    digests = [digest.rpartition("@")[2] for digest in attributes.get("RepoDigests") or ()]
    return f"{image} ({', '.join(digests) or 'local, ' + attributes['Id']})"


def _log(container: DockerContainer) -> str:
    with suppress(Exception):  # It was not created, or is gone.
        lines = b"\n".join(container.get_logs()).decode(errors="replace").splitlines()
        return "".join("\n" + line for line in [line for line in lines if line.strip()][-LOG_LINES:])
    return ""


def _brief(error: Exception) -> str:
    return str(getattr(error, "explanation", None) or error).splitlines()[0][:200]
