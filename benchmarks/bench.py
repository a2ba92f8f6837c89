"""A benchmark run: engines started together, gated and filled, then measured in rounds in which they take turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import msgspec
import psutil

from ..backends.provision import EngineUnavailable, interruption
from ..harness import events
from ..harness.artefact import BackendResult
from ..harness.corpus import Corpus
from ..harness.engine import AUTO, Engine, EngineFailed, methods
from ..spec.types import IndexConfig
from . import artefact, freshness, gate
from .artefact import Gate, Profile
from .contenders import Contender, Unfilled
from .drive import HERE, Drive
from .entrants import Entrant
from .load import Stuck
from .measure import Course, Lacking, Measured, Wrong
from .noop import NAME as NOOP
from .scene import Scene
from .state import State
from .summary import Warmth
from .workloads import WORKLOADS, Workload

ROOM = 3 * 2**30
"""Bytes of memory that have to be free for one more engine to be started beside others."""

ENOUGH = 3.0
"""The no-op store's peak has to be so many times a store's for the harness not to be what is measured."""


class Tell(Protocol):
    """Where progress goes; see harness.progress.Display."""

    def say(self, line: str) -> None:
        """Tell something."""
        ...

    def working(self, what: str, done: int, of: int) -> None:
        """How far it is."""
        ...


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to measure, and how.

    index: how indices are built; None is each engine's default. method, urls: how engines are had (engine.choose).
    results: verdicts known from runs of `memassay verify`, with the files they are from. drive: who makes the load.
    """

    entrants: Sequence[Entrant]
    profile: Profile
    scene: Scene
    seed: int = 0
    index: IndexConfig | None = None
    method: str = AUTO
    urls: Mapping[str, str] = {}
    results: Sequence[tuple[Path, BackendResult]] = ()
    drive: Drive = HERE

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """Those of the profile."""
        return tuple(WORKLOADS[name] for name in self.profile.workloads)


class Bench:
    """A run. What it learns is in `state`, also when it is interrupted.

    checkpoint: called after every round. What is wrong with one contender is told in its `Engine.error`; the others
    go on.
    """

    def __init__(self, plan: Plan, state: State, tell: Tell, checkpoint: Callable[[], object]) -> None:
        self.state = state
        self._plan = plan
        self._tell = tell
        self._checkpoint = checkpoint
        self._programs: Corpus | None = None
        self._done = self._steps = 0

    def run(self) -> None:
        """Measure what is not in the state yet. Engines are stopped before a KeyboardInterrupt leaves."""
        profile = self._plan.profile
        each = -(-profile.rounds // profile.starts)
        for first in range(1, profile.rounds + 1, each):
            numbers = range(first, min(first + each, profile.rounds + 1))
            waiting = [one for one in self._plan.entrants if self._waits(one, numbers[-1])]
            group = 0
            while waiting:
                group += 1
                with ExitStack() as stack:
                    here = self._together(stack, waiting, group)
                    stack.callback(self._plan.drive.leave)
                    self._measure(here, numbers)
            if group > 1:
                self.state.note(
                    f"engines did not fit into memory: they took turns in {group} groups, one after another"
                )

    def _waits(self, entrant: Entrant, last: int) -> bool:
        """Whether something of it is still to be measured until a round is done."""
        return self._finished(entrant.name) < last or (last == self._plan.profile.rounds and self._unseen(entrant))

    def _unseen(self, one: Entrant | Contender) -> bool:
        """Whether it is still to be found out when its writes show."""
        return bool(self._plan.profile.freshness) and one.kind == "store" and one.name not in self.state.freshness

    def _finished(self, contender: str) -> int:
        return self.state.finished.get(contender, 0)

    # Engines

    def _together(self, stack: ExitStack, waiting: list[Entrant], group: int) -> list[Contender]:
        """Start, gate and fill as many as fit into memory, one at least; they are taken off those that wait."""
        here: list[Contender] = []
        running: dict[str, Engine] = {}
        while waiting and (not here or waiting[0].store in running or not methods(waiting[0].backend) or _room()):
            entrant = waiting.pop(0)
            try:
                if entrant.store not in running:
                    running[entrant.store] = self._started(stack, entrant)
                contender = stack.enter_context(entrant.enter(running[entrant.store], self._plan.scene))
                if entrant.kind == "store" and entrant.name not in self.state.engines:
                    self._pass_gate(contender)
                self.state.engines[entrant.name] = contender.describe(group)
                self._tell.working(f"{entrant.name}: storing", 0, 1)
                contender.fill(self._plan.workloads, self._plan.index, self._plan.profile.effort)
            except (EngineUnavailable, EngineFailed, Unfilled) as error:
                self._give_up(entrant, str(error))
                continue
            self.state.engines[entrant.name] = contender.describe(group)
            here.append(contender)
        return here

    def _started(self, stack: ExitStack, entrant: Entrant) -> Engine:
        self._tell.working(f"{entrant.store}: starting", 0, 1)
        engine = stack.enter_context(entrant.start(self._plan.method, self._plan.urls))
        self._tell.say(f"{entrant.store}: {engine.version} ({engine.endpoint.method}: {engine.endpoint.detail})")
        return engine

    def _give_up(self, entrant: Entrant | Contender, error: str) -> None:
        known = self.state.engines.get(entrant.name) or artefact.Engine(name=entrant.name, kind=entrant.kind)
        self.state.engines[entrant.name] = msgspec.structs.replace(known, error=error)
        self._tell.say(f"{entrant.name}: {error}")

    def _pass_gate(self, contender: Contender) -> None:
        """Find out which workloads the contender may have a number for."""
        plan, name = self._plan, contender.name
        verdicts = gate.known(plan.results, name, contender.engine.version)
        if verdicts is None:

            def ran(event: events.Event) -> None:
                if isinstance(event, events.ProgramRan):
                    self._tell.working(f"{name}: gate", event.done, event.of)

            verdicts = gate.short_run(name, contender.engine, gate.clauses_of(plan.workloads), self._short(), ran)
        for workload in plan.workloads:
            closed = None if contender.lacks(workload) else gate.judge(name, workload, verdicts)
            if closed is not None:
                self.state.gates[name, workload.name] = closed
                self._tell.say(f"{name}: no number for {workload.name}: {closed.reason}")

    def _short(self) -> Corpus:
        """The programs of the gate, chosen when a contender without a result first needs them."""
        if self._programs is None:
            clauses = gate.clauses_of(self._plan.workloads)
            self._programs = gate.programs(clauses, self._plan.seed, self._tell.working)
            self._tell.say(f"gate: {len(clauses)} clauses, {len(self._programs.entries)} programs")
        return self._programs

    # Rounds

    def _measure(self, here: Sequence[Contender], numbers: Sequence[int]) -> None:
        """Warm up every workload on every contender, then measure them round by round."""
        plan = self._plan
        courses = [
            Course(contender, workload, plan.scene, plan.profile, plan.seed, plan.drive)
            for workload in plan.workloads
            for contender in here
            if self._finished(contender.name) < numbers[-1]
            and (contender.name, workload.name) not in self.state.gates
            and not self._lacks(contender, workload)
        ]
        self._done, self._steps = 0, len(courses) * (1 + len(numbers))
        for course in courses:
            self._prepare(course)
        self._mark_bound()
        for number in numbers:
            due = [course for course in courses if self._finished(course.contender.name) < number]
            for course in _in_turn(due, number):
                if course.peak is not None:
                    self._step(course, f"round {number}", course.round(number))
            # Whole only now: contenders take turns at every workload.
            self.state.finished |= {course.contender.name: number for course in due if not self._lost(course.contender)}
            self._checkpoint()
        for contender in here:
            if numbers[-1] == plan.profile.rounds and self._unseen(contender) and not self._lost(contender):
                self._look(contender)
                self._checkpoint()

    def _look(self, contender: Contender) -> None:
        """Measure when writes show. It is no reason to give the contender up when that fails."""
        name = contender.name
        self._tell.working(f"{name}: freshness", 0, 1)
        try:
            self.state.freshness[name] = freshness.measure(contender.engine, rows=self._plan.profile.freshness)
        except EngineFailed as error:
            self.state.note(f"{name}: {error}")

    def _lacks(self, contender: Contender, workload: Workload) -> bool:
        reason = contender.lacks(workload)
        if reason:
            self.state.unsupported.setdefault(contender.name, {})[workload.name] = reason
        return bool(reason)

    def _prepare(self, course: Course) -> None:
        """Warm up, and find the peak; an interrupted run's peak stands, as rates must not change between rounds."""
        key = course.contender.name, course.workload.name
        course.peak = self.state.peaks.get(key)
        phases = course.warm_up(find_peak=course.peak is None)
        self._step(course, "warming up, finding the peak", phases)
        self.state.warmths[key] = Warmth(course.discarded, course.stationary)
        if course.peak is not None:
            self.state.peaks[key] = course.peak

    def _step(self, course: Course, what: str, phases: Iterable[Measured]) -> None:
        interruption.check()
        self._tell.working(f"{course.workload.name} on {course.contender.name}: {what}", self._done, self._steps)
        self._done += 1
        if self._lost(course.contender):
            return
        try:
            for measured in phases:
                self.state.add(measured)
        except Lacking as error:
            self.state.unsupported.setdefault(course.contender.name, {})[course.workload.name] = str(error)
        except Wrong as error:
            closed = Gate(
                contender=course.contender.name,
                workload=course.workload.name,
                clauses={"answers": str(error)},
                source="the run itself",
            )
            self.state.gates[closed.contender, closed.workload] = closed
        except Stuck as error:
            self._give_up(course.contender, f"{course.workload.name}: {error}")

    def _lost(self, contender: Contender) -> bool:
        return bool(self.state.engines[contender.name].error)

    def _mark_bound(self) -> None:
        """Mark peaks that are near what the harness itself can do."""
        for (contender, workload), peak in self.state.peaks.items():
            floor = self.state.peaks.get((NOOP, workload))
            bound = contender != NOOP and floor is not None and floor.rate < ENOUGH * peak.rate
            self.state.peaks[contender, workload] = msgspec.structs.replace(peak, harness_bound=bound)


def _room() -> bool:
    return psutil.virtual_memory().available > ROOM


def _in_turn(courses: Sequence[Course], number: int) -> Iterable[Course]:
    """By workload, as they come; the contenders in another order every round, so that none is always first."""
    by_workload: dict[str, list[Course]] = {}
    for course in courses:
        by_workload.setdefault(course.workload.name, []).append(course)
    for own in by_workload.values():
        start = number % len(own)
        yield from (*own[start:], *own[:start])
