"""The rounds of `memassay fault`: an engine is started to be broken, storms let loose on it, and what came counted."""

from __future__ import annotations

import platform
import secrets
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, date, datetime
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, Protocol, cast

import msgspec

from ..backends.provision import Endpoint, EngineUnavailable, interruption, settings
from ..backends.provision.fragile import Breakable, Fragile
from ..spec.capabilities import Capabilities
from ..spec.clauses import find
from ..spec.protocols import Backend
from . import artefact, faults, histories, verdicts
from .artefact import BackendFaults, Case, FaultResult, FaultRow, Finding, Found
from .corpus import derive
from .engine import Engine, EngineFailed, choose, url_for
from .evidence import side_by_side
from .faults import KINDS, ON_THE_WAY, Fault, Kind
from .known import Known
from .proxy import Proxy
from .redact import Redactor
from .remote import SecondProcess
from .runner import Target
from .storm import WRITERS, Opener, Place, Round, Storm

CLAUSE = "DUR-1a"
BULK = 20_000
"""Characters of a text, where a disk is to be filled."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to break, and how often. `only`: the number of the one round to run, for doing it again."""

    targets: Sequence[Target]
    kinds: Sequence[Kind] = KINDS
    rounds: int = 20
    seed: int = 0
    only: int | None = None
    method: str = "auto"
    urls: Mapping[str, str] = {}
    known: Sequence[Known] = ()
    today: date = msgspec.field(default_factory=date.today)

    def numbers(self) -> Sequence[int]:
        """The rounds to run."""
        return range(self.rounds) if self.only is None else [self.only]


Tell = Callable[[str, Kind, int, int, int], None]
"""Told of each round: backend, kind, how many are done, of how many, and what was found so far."""


class Impossible(Exception):
    """A kind of fault cannot be tried on an engine; the message says why."""


class Site(NamedTuple):
    """An engine under a fault: `writing` opens the clients that it hits, `watching` those that it does not."""

    engine: Engine
    fault: Fault
    writing: Callable[[str], Place]
    watching: Callable[[str], Place] | None
    bulk: int = 0


def breaking(plan: Plan, tell: Tell) -> FaultResult:
    """Break every target in every way asked for. Ctrl-C ends the run; what was learned so far is returned."""
    began, started = time.perf_counter(), datetime.now(UTC)
    backends: list[BackendFaults] = []
    interrupted = False
    for target in plan.targets:
        if interrupted:
            break
        found = _Breaking(plan, target, tell)
        try:
            found.run()
        except KeyboardInterrupt:
            interrupted = True
        backends.append(found.result())
    return FaultResult(
        memassay=artefact.own_version(),
        seed=plan.seed,
        interrupted=interrupted,
        backends=backends,
        started=started.isoformat(timespec="seconds"),
        seconds=round(time.perf_counter() - began, 3),
        platform=platform.platform(),
    )


class _Breaking:
    def __init__(self, plan: Plan, target: Target, tell: Tell) -> None:
        self._plan = plan
        self._target = target
        self._tell = tell
        self._rows: list[FaultRow] = []
        self._engine: Engine | None = None

    def result(self) -> BackendFaults:
        """What was learned so far."""
        engine = self._engine
        return BackendFaults(
            name=self._target.name,
            engine="" if engine is None else engine.version,
            method="" if engine is None else engine.endpoint.method,
            detail="" if engine is None else engine.endpoint.detail,
            atomicity="" if engine is None else engine.capabilities.atomicity,
            rows=self._rows,
        )

    def run(self) -> None:
        """Every kind in turn: on one engine, but for a full disk, which takes one that lives on it."""
        with ExitStack() as stack:
            shared: Ground | None = None
            for kind in self._plan.kinds:
                self._rows.append(FaultRow(kind=kind))
                try:
                    if kind == "disk-full":
                        with _ground(self._target, self._plan, full=True) as ground:
                            self._on(kind, ground.site(kind))
                    else:
                        shared = shared or stack.enter_context(_ground(self._target, self._plan, full=False))
                        self._on(kind, shared.site(kind))
                except Impossible as reason:
                    self._update(applies=False, reason=str(reason))
                except (EngineUnavailable, EngineFailed) as error:
                    self._update(reason=str(error), broken=True)

    def _update(self, **changes: Any) -> None:
        """Change the row of the kind at hand."""
        self._rows[-1] = msgspec.structs.replace(self._rows[-1], **changes)

    def _on(self, kind: Kind, site: Site) -> None:
        numbers, began = self._plan.numbers(), time.perf_counter()
        self._engine = site.engine
        self._update(what=site.fault.what)
        prefix = f"ma_{secrets.token_hex(4)}"
        names = [f"{prefix}_{i}" for i in range(WRITERS)]
        try:
            for done, number in enumerate(numbers, 1):
                interruption.check()
                self._count(number, self._round(site, kind, number, names))
                self._update(seconds=round(time.perf_counter() - began, 3))
                self._tell(self._target.name, kind, done, len(numbers), len(self._rows[-1].findings))
        finally:
            for name in names:
                with suppress(EngineFailed):  # It is stopped in the end, and all of it removed.
                    site.engine.ask(
                        f"namespace {name} cannot be dropped",
                        lambda name=name: site.engine.backend.drop_namespace(site.engine.endpoint.url, name),
                    )

    def _round(self, site: Site, kind: Kind, number: int, names: Sequence[str]) -> Round:
        backend, url = site.engine.backend, site.engine.endpoint.url
        empty = getattr(backend, "reset_namespace", backend.drop_namespace)
        for name in names:
            site.engine.ask(f"namespace {name} cannot be emptied", lambda name=name: empty(url, name))
        rng = Random(derive(self._plan.seed, f"{kind}/{number}"))
        writing = [site.writing(name) for name in names]
        watching = writing if site.watching is None else [site.watching(name) for name in names]
        return Storm(writing, watching, rng, bulk=site.bulk).run(site.fault)

    def _count(self, number: int, came: Round) -> None:
        row = self._rows[-1]
        aspects = [found.divergence.aspect for found in came.found]
        self._update(
            rounds=row.rounds + 1,
            acknowledged=row.acknowledged + came.acknowledged,
            doubtful=row.doubtful + came.doubtful,
            lost=row.lost + aspects.count("lost"),
            half=row.half + aspects.count("half"),
            errors=row.errors + aspects.count("error"),
            recovery=row.recovery + aspects.count("recovery"),
            other=row.other + sum(each not in ("lost", "half", "error", "recovery") for each in aspects),
            findings=[*row.findings, *(self._finding(number, each) for each in came.found)],
        )

    def _finding(self, number: int, found: Any) -> Finding:
        assert self._engine is not None
        engine, divergence = self._engine, found.divergence
        expected, got = side_by_side(divergence.expected, divergence.got)
        kept = histories.encode(found.transcript)
        names = {self._target.name, self._target.backend.name}
        declared = {each.full for each in self._plan.known if each.about(names, engine.version)}
        known = divergence.signature in declared
        return Finding(
            verdict="known" if known else verdicts.of_finding(divergence.crashed, None),
            programs=number,
            case=Case(
                signature=divergence.signature,
                statement=find(divergence.clause).statement,
                program=found.program,
                index=divergence.index,
                expected=expected,
                got=engine.redactor.value(got),
                found=Found(
                    backend=self._target.name,
                    engine=engine.version,
                    memassay=artefact.own_version(),
                    seed=self._plan.seed,
                    level="core",
                ),
                reproduced=None,
                minimal=False,
                transcript=None if kept is None else engine.redactor.value(kept),
            ),
        )


class Ground(Protocol):
    """A running engine that is there to be broken."""

    def site(self, kind: Kind) -> Site:
        """It under one kind of fault. Raises Impossible."""
        ...


@contextmanager
def _ground(target: Target, plan: Plan, *, full: bool) -> Generator[Ground]:
    """Start an engine, on a small disk if it is to be full. Raises Impossible, EngineUnavailable, UsageProblem."""
    if url_for(target.name, target.backend, plan.urls):
        raise Impossible("an engine of yours is not broken")
    method, way, _ = choose(target.backend, plan.method, None)
    if way is None:
        raise Impossible("it keeps nothing: there is no engine")
    with ExitStack() as stack:
        folder: Path | None = None
        if full:
            if method == "docker":
                raise Impossible("the disk of a container is not ours to fill")
            if reason := faults.disk_missing():
                raise Impossible(reason)
            folder = stack.enter_context(faults.small_disk())
            stack.enter_context(settings.use(msgspec.structs.replace(settings.current(), folder=folder)))
        if hasattr(way, "fragile"):
            fragile = stack.enter_context(cast(Breakable, way).fragile())
            proxy = Proxy(fragile.address, Random(0))
            stack.callback(proxy.close)
            yield _Server(target.backend, fragile, proxy, folder)
        else:
            endpoint = stack.enter_context(way.start(None))
            within = _Within(target, endpoint, folder)
            stack.callback(within.close)
            yield within


class _Server:
    """A server, reached through a proxy: it may come back elsewhere."""

    def __init__(self, backend: Backend, fragile: Fragile, proxy: Proxy, folder: Path | None) -> None:
        self._fragile = fragile
        self._proxy = proxy
        self._folder = folder
        url = fragile.through("127.0.0.1", proxy.port)
        endpoint = msgspec.structs.replace(fragile.endpoint, url=url)
        self._engine = Engine(backend, endpoint, backend.version(url), backend.capabilities(url), Redactor([url]))

    def site(self, kind: Kind) -> Site:
        """See Ground."""
        engine = self._engine
        places = _places(engine.backend, engine.endpoint.url, engine.capabilities)
        return Site(engine, self._fault(kind), places, None, BULK if self._folder else 0)

    def _fault(self, kind: Kind) -> Fault:
        match kind:
            case "kill":
                return faults.Kill(self._fragile)
            case "pause":
                return faults.Pause(self._fragile)
            case "delay":
                return faults.Delay(self._proxy)
            case "halve":
                return faults.Halve(self._proxy)
            case "reset":
                return faults.Reset(self._proxy)
            case "disk-full":
                assert self._folder is not None
                return faults.Full(self._folder, self._fragile)


class _Within:
    """An engine within its client's process, which is killed for it."""

    def __init__(self, target: Target, endpoint: Endpoint, folder: Path | None) -> None:
        backend, url = target.backend, endpoint.url
        self._folder = folder
        self._process = SecondProcess(target.name)
        capabilities = backend.capabilities(url)
        self._engine = Engine(backend, endpoint, backend.version(url), capabilities, Redactor([url]))

    def site(self, kind: Kind) -> Site:
        """See Ground."""
        engine, url = self._engine, self._engine.endpoint.url
        if kind in ON_THE_WAY or kind == "pause":
            raise Impossible("it runs within its client's process: there is no connection")
        if not engine.capabilities.durable or not engine.capabilities.other_processes:
            raise Impossible("it is declared not to outlive its process")
        here = _places(engine.backend, url, engine.capabilities)
        if self._folder is not None:
            return Site(engine, faults.Full(self._folder, None), here, None, BULK)
        there = _places(self._process, url, engine.capabilities)
        return Site(engine, faults.KillProcess(self._process), there, here)

    def close(self) -> None:
        """End the process."""
        self._process.close()


def _places(opener: Opener, url: str, capabilities: Capabilities) -> Callable[[str], Place]:
    return lambda name: Place(opener, url, name, capabilities)
