"""Soaking: a mixed load for minutes, every answer judged, with an eye on memory and file handles.

Programs of all kinds run one after another in clients of their own, which are opened and closed; between them a
client that stays open all the time works on. Every second it is noted what the processes hold.

Growth is judged after a warm-up, as caches fill and a heap is touched for the first time. The slope is that of Theil
and Sen, the median over all pairs of samples, which garbage collections and other outliers do not move; it counts as
growth only if the lower end of its interval of 95 %, over the time measured, exceeds what is allowed. That is a share
of what is held, as allocators do not give back every page, and at least some megabytes, as a slope over a minute
cannot tell less; an engine with a heap of its own, which it fills before it collects, is allowed more. Of file handles
it is a few: they go up and down with connections, and a leak of one a client is hundreds in a minute.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import count
from random import Random
from statistics import median
from typing import Any, cast

import msgspec
import psutil

from ..spec.clauses import find
from ..spec.divergence import Divergence
from ..spec.interpreter import Interpreter, Transcript
from ..spec.judge import judge
from ..spec.program import DeleteThread, DropIndex, Observe, Program
from ..spec.strategies import SCENARIOS, storms
from . import artefact, histories, verdicts
from .artefact import BackendSoak, Case, Finding, Found, Growth, Sample
from .corpus import derive, generate
from .engine import Engine, Namespaces
from .evidence import side_by_side
from .execution import execute_in
from .inflight import check
from .programs import cut, needs
from .storm import Place

WARM_UP = 1 / 3
"""The share of the time that is not judged."""

LEAST_SAMPLES = 12
LEAST_SECONDS = 15.0
"""What it takes for a verdict on growth."""

EVERY = 1.0
"""Seconds between samples."""

TURN = 12
"""Programs of a turn."""

CALLS = 25
"""Calls of the client that stays open, in a turn."""

DRAWN = 60
"""Programs drawn at once of each scenario."""

LEFT_OUT = frozenset({"window", "approximate", "large", "long", "long-values", "kills", "rare", "injection"})
"""Scenarios whose programs take seconds, or start processes."""

SHARE = 0.05
MEGABYTE = 1 << 20
CLIENT, ENGINE, HANDLES = 8 * MEGABYTE, 96 * MEGABYTE, 6
"""What may be gained in the time measured: a share of what is held, and at least so much."""

MOST_FINDINGS = 25

Tell = Callable[[float, int, Sample], None]
"""Told of each turn: seconds so far, programs, and what is held."""


class Soak:
    """One backend under load. `result` holds what was learned so far."""

    def __init__(self, name: str, engine: Engine, seed: int, seconds: float, tell: Tell) -> None:
        self._name = name
        self._engine = engine
        self._seed = seed
        self._seconds = seconds
        self._tell = tell
        self._samples: list[Sample] = []
        self._programs = self._calls = 0
        self._findings: dict[Any, Finding] = {}
        self._began = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds so far."""
        return time.monotonic() - self._began

    def run(self) -> None:
        """Until the time is over. Raises EngineFailed."""
        rng = Random(derive(self._seed, "soak"))
        programs = self._mixed()
        with Namespaces(self._engine) as namespaces, namespaces.fresh() as namespace:
            place = Place(self._engine.backend, self._engine.endpoint.url, namespace, self._engine.capabilities)
            kinds = storms.kinds(self._engine.capabilities)
            staying = [_Staying(kind, place) for kind in kinds[-2:]]
            try:
                while self.elapsed < self._seconds:
                    for _ in range(TURN):
                        self._program(namespaces, next(programs))
                        self._sample()
                    for client in staying:
                        program = storms.writer(rng, client.kind, CALLS, self._engine.capabilities)
                        self._long(client, program)
                        self._sample()
            finally:
                for client in staying:
                    with suppress(Exception):
                        client.interpreter.close()

    def result(self, error: str = "") -> BackendSoak:
        """What was learned so far."""
        engine, seconds = self._engine, self.elapsed
        judged = [sample for sample in self._samples if sample.seconds >= WARM_UP * self._seconds]
        span = judged[-1].seconds - judged[0].seconds if judged else 0.0
        reason = ""
        if len(judged) < LEAST_SAMPLES or span < LEAST_SECONDS:
            reason = f"{len(judged)} samples in {span:.0f} s after the warm-up say nothing about growth: soak longer"
        return BackendSoak(
            name=self._name,
            engine=engine.version,
            method=engine.endpoint.method,
            detail=engine.endpoint.detail,
            seconds=round(seconds, 1),
            programs=self._programs,
            calls=self._calls,
            error=error,
            reason=reason,
            growth=[] if reason else [*growth(judged)],
            samples=self._samples,
            findings=[*self._findings.values()],
        )

    def _mixed(self) -> Iterator[Program]:
        """Programs of all scenarios in turn, without end."""
        able = [scenario for name, scenario in SCENARIOS.items() if name not in LEFT_OUT]
        for number in count():
            drawn = [
                generate(scenario.strategy, DRAWN, derive(self._seed, f"soak/{scenario.name}/{number}"))
                for scenario in able
            ]
            for group in zip(*drawn, strict=False):
                for program in group:
                    if all(getattr(self._engine.capabilities, need) for need in needs(program)):
                        yield program

    def _program(self, namespaces: Namespaces, program: Program) -> None:
        execution = execute_in(namespaces, self._engine, program)
        self._programs += 1
        self._calls += len(execution.program.operations)
        for divergence in execution.divergences:
            self._found(execution.program, execution.transcript, divergence)
        check(self._engine, execution, program.hash)

    def _long(self, client: _Staying, program: Program) -> None:
        """Some work for the client that stays open, in an empty namespace."""
        client.clear()
        whole = msgspec.structs.replace(program, operations=(*program.operations, Observe()))
        transcript = client.interpreter.run(whole.operations)
        self._calls += len(whole.operations)
        for divergence in judge(whole, transcript, self._engine.capabilities):
            self._found(whole, transcript, divergence)

    def _found(self, program: Program, transcript: Transcript, divergence: Divergence) -> None:
        if divergence.signature in self._findings or len(self._findings) >= MOST_FINDINGS:
            return
        short = program if program.undetermined else cut(program, divergence.index)
        expected, got = side_by_side(divergence.expected, divergence.got)
        kept = histories.encode(transcript[: len(short.operations)]) if program.undetermined else None
        self._findings[divergence.signature] = Finding(
            verdict=verdicts.of_finding(divergence.crashed, None),
            programs=1,
            case=Case(
                signature=divergence.signature,
                statement=find(divergence.clause).statement,
                program=short,
                index=divergence.index,
                expected=expected,
                got=self._engine.redactor.value(got),
                found=Found(
                    backend=self._name,
                    engine=self._engine.version,
                    memassay=artefact.own_version(),
                    seed=self._seed,
                    level="core",
                ),
                reproduced=None,
                minimal=False,
                transcript=None if kept is None else self._engine.redactor.value(kept),
            ),
        )

    def _sample(self) -> None:
        """Note what is held, now and then."""
        if self._samples and self.elapsed < self._samples[-1].seconds + EVERY:
            return
        gc.collect()
        second = None if self._engine.second is None else self._engine.second.pid
        held: dict[str, Sequence[psutil.Process]] = {
            "client": [psutil.Process(os.getpid())],
            "second client": [] if second is None else [psutil.Process(second)],
            "engine": cast("Sequence[psutil.Process]", self._engine.processes()),
        }
        memory: dict[str, int] = {}
        handles: dict[str, int] = {}
        for who, processes in held.items():
            if processes:
                memory[who] = sum(_of(process, lambda each: each.memory_info().rss) for process in processes)
                handles[who] = sum(_of(process, lambda each: each.num_fds()) for process in processes)
        self._samples.append(Sample(seconds=round(self.elapsed, 3), memory=memory, handles=handles))
        self._tell(self.elapsed, self._programs, self._samples[-1])


class _Staying:
    """A client that stays open, and the interpreter that it is used through."""

    def __init__(self, kind: storms.Kind, place: Place) -> None:
        self.kind: storms.Kind = kind
        options: dict[str, Any] = {"semantic_recall": True} if kind == "embedded" else {}
        self.interpreter = Interpreter(Program((), options, 3 if kind == "embedded" else 0), place)

    def clear(self) -> None:
        """Delete all that it made, and forget the names."""
        for name in list(self.interpreter.threads):
            self.interpreter.step(DeleteThread(thread_id=name))
        for name in list(self.interpreter.vectors):
            self.interpreter.step(DropIndex(index=name))
        self.interpreter.forget()


def growth(samples: Sequence[Sample]) -> Iterator[Growth]:
    """How each figure went."""
    for what in ("memory", "handles"):
        figures = [getattr(sample, what) for sample in samples]
        for who in figures[-1]:
            pairs = [(sample.seconds, held[who]) for sample, held in zip(samples, figures, strict=True) if who in held]
            if len(pairs) >= LEAST_SAMPLES:
                yield grown(who, "memory" if what == "memory" else "handles", *zip(*pairs, strict=True))


def grown(who: str, what: Any, seconds: Sequence[float], held: Sequence[int]) -> Growth:
    """How one figure went: by the median slope, and by the lower end of its interval."""
    stats: Any = import_module("scipy.stats")  # comes without types, and takes longer to import than all the rest
    found = stats.theilslopes(held, seconds, alpha=0.95)
    span, middle = seconds[-1] - seconds[0], median(held)
    floor = HANDLES if what == "handles" else ENGINE if who == "engine" else CLIENT
    allowed = max(SHARE * middle, floor)
    least = float(found.low_slope) * span
    return Growth(
        who=who,
        what=what,
        middle=float(middle),
        growth=round(float(found.slope) * span, 1),
        least=round(least, 1),
        allowed=round(float(allowed), 1),
        grows=least > allowed,
    )


def _of(process: psutil.Process, ask: Callable[[psutil.Process], int]) -> int:
    """What a process holds; nothing when it has just ended."""
    try:
        return ask(process)
    except psutil.Error:
        return 0
