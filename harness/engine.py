"""Reaching a backend's engine, and the namespaces in which programs run on it."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, TypeVar, cast

import msgspec

from ..backends.provision import Endpoint, EngineUnavailable, Given, Provisioner
from ..backends.provision.fragile import Breakable
from ..backends.provision.settings import current, variable
from ..backends.registry import UnknownBackend, find
from ..spec.capabilities import Capabilities
from ..spec.protocols import Backend, Runtime
from ..spec.types import MemoryConfig
from .exits import UsageProblem
from .plain import bounded
from .redact import Redactor
from .remote import SecondProcess, Victims
from .timing import TimeOut, time_limit

T = TypeVar("T")

AUTO = "auto"
POOL = 3
"""Namespaces that take turns."""

USES = 50
"""Every so many programs a namespace is given up for a new one."""

PATIENCE = 60.0
"""Seconds a namespace may take to be emptied or dropped."""


Lister = Callable[[str], Iterable[str]]
"""Lists the namespaces on a server; raises when something there only looks like one."""


class EngineFailed(Exception):
    """The engine no longer answers, or does not give an empty namespace; the message says which."""


class NotEmpty(Exception):
    """A namespace that was emptied or dropped still holds something; the message says what."""


class Engine(msgspec.Struct, frozen=True):
    """A backend with a running engine behind it.

    second: opens second clients in another process, if it can. victims: opens clients whose processes are killed.
    """

    backend: Backend
    endpoint: Endpoint
    version: str
    capabilities: Capabilities
    redactor: Redactor
    second: SecondProcess | None = None
    victims: Victims | None = None
    processes: Callable[[], Sequence[Any]] = tuple
    """Those of an engine that was started here (psutil.Process); none of one that is somewhere else."""

    def check(self) -> None:
        """Ask the engine for its version. Raises EngineFailed."""
        self.ask("it no longer tells its version", lambda: self.backend.version(self.endpoint.url))

    def ask(self, complaint: str, call: Callable[[], object]) -> None:
        """Make a call of the backend that has to succeed. Raises EngineFailed with the complaint."""
        try:
            with time_limit(PATIENCE):
                call()
        except (TimeOut, SystemExit, Exception) as error:
            told = self.redactor.text(f"{complaint}: {type(error).__name__}: {error}")
            raise EngineFailed(bounded(told)) from error


def methods(backend: Backend) -> Mapping[str, Provisioner]:
    """The backend's ways to get an engine, in the order of `auto`; none when it needs no engine."""
    return cast("Mapping[str, Provisioner]", getattr(backend, "provisioners", {}))


def url_for(name: str, backend: Backend, urls: Mapping[str, str]) -> str | None:
    """The URL given by `--url`, by the environment (MEMASSAY_<BACKEND>_URL), or in memassay.toml."""
    return urls.get(name) or urls.get(backend.name) or current().url(backend.name)


def lister(backend: Backend) -> Lister | None:
    """The backend's optional `namespaces(url)`."""
    return cast("Lister | None", getattr(backend, "namespaces", None))


class Choice(NamedTuple):
    """A way to get an engine; none for a backend that needs no engine. `why` says what `auto` could not do instead."""

    method: str
    way: Provisioner | None
    why: str = ""


def choose(backend: Backend, method: str, url: str | None) -> Choice:
    """The way that `--provision` means.

    `auto`: a given URL, else the first way that can be gone here. Raises EngineUnavailable, UsageProblem.
    """
    ways = methods(backend)
    if not ways:
        if method not in (AUTO, "url"):
            raise UsageProblem(
                f"{backend.name} needs no engine, so there is no way {method!r}", hint="drop --provision"
            )
        return Choice("url" if url else "in process", None)
    if method != AUTO:
        if method not in ways:
            raise UsageProblem(f"{backend.name} cannot be had by {method!r}", hint="use " + ", ".join([AUTO, *ways]))
        if method == "url" and not url:
            raise UsageProblem(
                f"there is no URL for {backend.name}",
                hint=f"give --url {backend.name}=… or set {variable(backend.name)}",
            )
        return _fitting(backend, Choice(method, ways[method]), url)
    if url and "url" in ways:
        return _fitting(backend, Choice("url", ways["url"]), url)
    reasons: list[str] = []
    for name, way in ways.items():
        if name == "url":
            continue
        missing = way.missing()
        if missing is None:
            return Choice(name, way, "; ".join(reasons))
        reasons.append(f"{name}: {missing}")
    raise EngineUnavailable(f"{backend.name} has no engine here", hint="; ".join([*reasons, "url: none was given"]))


def _fitting(backend: Backend, choice: Choice, url: str | None) -> Choice:
    """The choice, unless its way can tell by the URL alone that it is none. Raises UsageProblem."""
    if isinstance(choice.way, Given) and url:
        try:
            choice.way.check(url)
        except ValueError as error:
            raise UsageProblem(f"{backend.name}: {error}", hint=choice.way.hint) from None
    return choice


@contextmanager
def start(name: str, backend: Backend, method: str, urls: Mapping[str, str]) -> Generator[Engine]:
    """Start or reach the engine; leaving stops what was started. Raises EngineUnavailable, UsageProblem."""
    url = url_for(name, backend, urls)
    chosen, way, why = choose(backend, method, url)
    redactor = Redactor([url] if url else [])
    with ExitStack() as stack:
        try:
            processes: Callable[[], Sequence[Any]] = tuple
            if way is None:
                endpoint = Endpoint(url or "", chosen, "no engine needed" if not url else "given by URL")
            elif chosen != "url" and hasattr(way, "fragile"):
                started = stack.enter_context(cast(Breakable, way).fragile())
                endpoint, processes = started.endpoint, started.processes
            else:
                endpoint = stack.enter_context(way.start(url if chosen == "url" else None))
            redactor = Redactor([url or "", endpoint.url])
            if endpoint.method == "url" and (listed := lister(backend)) is not None:
                listed(endpoint.url)  # Refuses a server on which something of others' bears our names.
            version = bounded(redactor.text(_text("version()", _told("version()", backend.version, endpoint.url))))
            capabilities = _checked(name, _told("capabilities()", backend.capabilities, endpoint.url))
            second = SecondProcess(name) if _reachable(name, backend, capabilities) else None
            victims = None if second is None else Victims(name)
            if second is not None and victims is not None:
                stack.callback(second.close)
                stack.callback(victims.close)
            elif capabilities.other_processes:
                # Nobody else can open it: what takes another process cannot be asked.
                capabilities = msgspec.structs.replace(capabilities, other_processes=False)
            detail = endpoint.detail + (", second client: in another process" if second is not None else "")
            engine = Engine(
                backend=backend,
                endpoint=msgspec.structs.replace(
                    endpoint, detail=bounded(redactor.text(detail)), passed_over=redactor.text(why)
                ),
                version=version,
                capabilities=capabilities,
                redactor=redactor,
                second=second,
                victims=victims,
                processes=processes,
            )
        except EngineUnavailable as error:
            told = bounded(redactor.text(error.message))
            raise EngineUnavailable(told, hint=bounded(redactor.text(error.hint))) from None
        except Exception as error:
            raise EngineUnavailable(bounded(redactor.text(f"{type(error).__name__}: {error}"))) from error
        yield engine


class Namespaces:
    """Empty namespaces on one engine; leaving drops them all.

    A few take turns, each emptied just before its next use, so that a program runs beside what others
    left; after USES programs one is given up for a new one. The prefix is random: two runs may meet on
    one server.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._prefix = f"ma_{secrets.token_hex(4)}"
        self._made = 0
        self._uses: dict[str, int] = {}
        self._idle: deque[str] = deque()
        self._retired = False
        self.left: list[str] = []
        """Why namespaces could not be dropped at the end."""

    def __enter__(self) -> Namespaces:
        return self

    def __exit__(self, *_: object) -> None:
        for namespace in list(self._uses):
            try:
                self._drop(namespace)
            except EngineFailed as error:
                self.left.append(str(error))

    @contextmanager
    def lease(self) -> Generator[str]:
        """An empty namespace, used before as a rule. Raises EngineFailed."""
        namespace = self._empty(self._idle.popleft()) if len(self._idle) == POOL else self._new()
        self._uses[namespace] += 1
        self._retired = False
        try:
            yield namespace
        finally:
            if not self._retired:
                self._idle.append(namespace)

    def retire(self) -> None:
        """Not use again the namespace that is leased: something may still be going on in it."""
        self._retired = True

    @contextmanager
    def fresh(self) -> Generator[str]:
        """A namespace never used before, dropped at the end. Raises EngineFailed."""
        namespace = self._new()
        yield namespace
        self._drop(namespace)

    def _new(self) -> str:
        self._made += 1
        namespace = f"{self._prefix}_{self._made}"
        self._uses[namespace] = 0
        return namespace

    def _empty(self, namespace: str) -> str:
        if self._uses[namespace] >= USES:
            self._drop(namespace)
            return self._new()
        backend = self._engine.backend
        reset = getattr(backend, "reset_namespace", backend.drop_namespace)
        self._engine.ask("a namespace cannot be emptied", lambda: reset(self._engine.endpoint.url, namespace))
        if self._uses[namespace] <= POOL:
            self._engine.ask(f"namespace {namespace} was emptied", lambda: self._look(namespace))
        return namespace

    def _look(self, namespace: str) -> None:
        """Raise NotEmpty when something is left: else what programs leave would pass for what others do."""
        url, runtime, left = self._engine.endpoint.url, Runtime(), list[str]()
        if self._engine.capabilities.storage:
            memory = self._engine.backend.open_memory(url, namespace, runtime, MemoryConfig())
            try:
                left += [f"thread {thread.id!r}" for thread in memory.list_threads(per_page=3).threads]
            finally:
                memory.close()
        if self._engine.capabilities.vectors:
            index = self._engine.backend.open_index(url, namespace, runtime)
            try:
                left += [f"index {name!r}" for name in index.list_indexes()[:3]]
            finally:
                index.close()
        if left:
            raise NotEmpty(f"there are still {', '.join(left)}: see drop_namespace and reset_namespace")

    def _drop(self, namespace: str) -> None:
        self._engine.ask(
            f"namespace {namespace} cannot be dropped",
            lambda: self._engine.backend.drop_namespace(self._engine.endpoint.url, namespace),
        )
        del self._uses[namespace]


def _told(what: str, call: Callable[[str], T], url: str) -> T:
    """What the backend tells of its engine. Raises EngineUnavailable."""
    try:
        with time_limit(PATIENCE):
            return call(url)
    except EngineUnavailable:
        raise
    except (TimeOut, SystemExit, Exception) as error:
        raise EngineUnavailable(f"{what} raised {type(error).__name__}: {error}") from error


def _text(what: str, told: object) -> str:
    if not isinstance(told, str) or not told.strip():
        raise EngineUnavailable(f"{what} returned {told!a:.60}", hint="return the engine's version, a str")
    return str.__str__(told)


def _reachable(name: str, backend: Backend, capabilities: Capabilities) -> bool:
    """Whether another process can find the backend by its name, and open what this one opened."""
    if not (capabilities.durable and capabilities.concurrent_clients and capabilities.other_processes):
        return False
    try:
        return type(find(name)) is type(backend)
    except UnknownBackend:
        return False


def _checked(name: str, capabilities: object) -> Capabilities:
    """Capabilities that fit together. Raises EngineUnavailable."""
    if not isinstance(capabilities, Capabilities):
        raise EngineUnavailable(
            f"{name}: capabilities() returned {type(capabilities).__name__}", hint="return a Capabilities"
        )
    try:
        msgspec.convert(msgspec.to_builtins(capabilities), Capabilities)
    except msgspec.ValidationError as error:
        raise EngineUnavailable(f"{name} declares capabilities that there are not: {error}") from None
    if (capabilities.vectors or capabilities.semantic_recall) and not capabilities.index_types:
        raise EngineUnavailable(f"{name} declares vectors and no index_types", hint='declare at least ("flat",)')
    if not capabilities.storage and not capabilities.vectors:
        raise EngineUnavailable(f"{name} declares neither storage nor vectors", hint="declare what it can do")
    return capabilities
