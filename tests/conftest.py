"""Engines that all tests share, one of each a session (and a worker), and empty namespaces on them."""

from __future__ import annotations

import itertools
import secrets
import signal
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from memassay.backends.provision import EngineUnavailable
from memassay.backends.registry import find
from memassay.harness.engine import AUTO, choose, methods, url_for
from memassay.spec.protocols import Backend, Embedder, Memory, Runtime, Titler, VectorIndex
from memassay.spec.types import MemoryConfig

BACKENDS = ("reference", "libsql", "postgres", "faiss", "elasticsearch", "opensearch")
SERVERS = ("elasticsearch", "opensearch")
"""Engines that are had in whichever way `auto` finds; of the others the one that comes as a package."""

START = datetime(2024, 3, 1, 12, tzinfo=UTC)
"""Where the clock of a test stands until it ticks."""

_numbers = itertools.count(1)
_prefix = f"t_{secrets.token_hex(4)}"


def pytest_configure() -> None:
    """Have the processes of tests listen to interruptions, which a job in the background ignores, and its children."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda number, frame: None)


class Clock:
    """An instant that moves when told to."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        """The current instant."""
        return self.now

    def tick(self, milliseconds: int) -> None:
        """Move the clock; negative is backwards."""
        self.now += timedelta(milliseconds=milliseconds)


class Engines:
    """The engines of a session, each started when it is first asked for."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._started: dict[str, tuple[Backend, str]] = {}
        self._entered: set[str] = set()

    def get(self, name: str) -> tuple[Backend, str]:
        """The backend, and the URL of its running engine: one given by the environment, or of the session's own.

        Skips the test when the engine cannot be had here.
        """
        if name not in self._started:
            backend = find(name)
            given = url_for(name, backend, {})
            url = ""
            if methods(backend):
                try:
                    way = choose(backend, AUTO if given or name in SERVERS else "embedded", given).way
                except EngineUnavailable as error:
                    pytest.skip(str(error))
                if reason := "" if way is None else way.missing():
                    pytest.skip(reason)
                url = "" if way is None else self._stack.enter_context(way.start(given)).url
            self._started[name] = backend, url
        return self._started[name]

    @contextmanager
    def namespace(self, name: str) -> Generator[Namespace]:
        """An empty namespace on a backend: the one that the session has there, where it can be emptied."""
        backend, url = self.get(name)
        reset = getattr(backend, "reset_namespace", None)
        if reset is None:
            namespace = Namespace(backend, url, f"{_prefix}_{next(_numbers)}")
        else:
            namespace = Namespace(backend, url, _prefix)
            if name not in self._entered:
                self._entered.add(name)
                self._stack.callback(backend.drop_namespace, url, _prefix)
        yield namespace
        namespace.close()
        if reset is None:
            backend.drop_namespace(url, namespace.name)
        else:
            reset(url, namespace.name)


class Namespace:
    """An empty namespace: opens clients, which it closes at the end."""

    def __init__(self, backend: Backend, url: str, name: str) -> None:
        self.backend = backend
        self.url = url
        self.name = name
        self.clock = Clock()
        self._ids = itertools.count(1)
        self._open: list[Memory | VectorIndex] = []

    def __call__(
        self, config: MemoryConfig | None = None, embedder: Embedder | None = None, titler: Titler | None = None
    ) -> Memory:
        """One more client."""
        runtime = replace(self._runtime(embedder), titler=titler)
        memory = self.backend.open_memory(self.url, self.name, runtime, config or MemoryConfig())
        self._open.append(memory)
        return memory

    def index(self) -> VectorIndex:
        """One more client of its vector indices."""
        index = self.backend.open_index(self.url, self.name, self._runtime())
        self._open.append(index)
        return index

    def _runtime(self, embedder: Embedder | None = None) -> Runtime:
        return Runtime(clock=self.clock, new_id=lambda: f"generated-{next(self._ids)}", embedder=embedder)

    def reopen(self) -> Memory:
        """Close every client and open a new one."""
        self.close()
        return self()

    def close(self) -> None:
        """Close every client."""
        while self._open:
            self._open.pop().close()


@pytest.fixture(scope="session")
def engines() -> Generator[Engines]:
    """The session's engines, stopped at its end."""
    with ExitStack() as stack:
        yield Engines(stack)


@pytest.fixture(scope="session")
def postgres_url(engines: Engines) -> str:
    """The session's PostgreSQL."""
    return engines.get("postgres")[1]


@pytest.fixture(scope="session")
def elasticsearch_url(engines: Engines) -> str:
    """The session's Elasticsearch."""
    return engines.get("elasticsearch")[1]


@pytest.fixture(scope="session")
def opensearch_url(engines: Engines) -> str:
    """The session's OpenSearch."""
    return engines.get("opensearch")[1]


@pytest.fixture(params=BACKENDS)
def namespace(request: pytest.FixtureRequest, engines: Engines) -> Generator[Namespace]:
    """An empty namespace on each backend in turn."""
    with engines.namespace(request.param) as namespace:
        yield namespace


@pytest.fixture
def open_memory(namespace: Namespace) -> Callable[..., Memory]:
    """Opens one more client of the test's namespace; takes a MemoryConfig and an embedder, or nothing."""
    return namespace


@pytest.fixture
def open_index(namespace: Namespace) -> Callable[[], VectorIndex]:
    """Opens one more client of the vector indices of the test's namespace."""
    return namespace.index


@pytest.fixture
def index(namespace: Namespace) -> VectorIndex:
    """A client of the vector indices of a fresh namespace on each backend in turn."""
    return namespace.index()


@pytest.fixture
def reopen(namespace: Namespace) -> Callable[[], Memory]:
    """Closes every client of the test's namespace and opens a new one."""
    return namespace.reopen


@pytest.fixture
def tick(namespace: Namespace) -> Callable[[int], None]:
    """Moves the clock of the test's namespace by milliseconds; it stands at START before."""
    return namespace.clock.tick


@pytest.fixture
def memory(namespace: Namespace) -> Memory:
    """A client of a fresh namespace on each backend in turn."""
    return namespace()
