"""The manifest of a run, from what is known so far; and whether a run can go on where another was interrupted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, requires
from typing import Any

import msgspec

from ..harness.artefact import own_version, version_of
from ..harness.exits import UsageProblem
from . import summary
from .artefact import DataSet, Manifest, Profile, SampleFile
from .machine import Machine
from .scene import Scene
from .state import State
from .workloads import WORKLOADS

PAYLOAD = "searches return ids, scores and metadata, recalls whole messages; vectors are given as lists of floats"
CONSISTENCY = "a write is acknowledged when every later call sees it (CON-1)"
ALIKE = ("memassay", "seed", "k", "profile", "data", "backends")
"""What has to be the same for a run to go on."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is about, whatever comes of it. started: an instant in ISO 8601."""

    profile: Profile
    scene: Scene
    seed: int
    backends: Sequence[str]
    machine: dict[str, Any]
    started: str


def build(run: Run, state: State, *, seconds: float, partial: bool) -> Manifest:
    """What is known so far; `samples` is filled in by bundle.write."""
    taking_part = [engine.name for engine in state.engines.values() if not engine.error]
    return Manifest(
        memassay=own_version(),
        versions=_versions(),
        started=run.started,
        seconds=round(seconds, 3),
        seed=run.seed,
        k=run.scene.k,
        payload=PAYLOAD,
        consistency=CONSISTENCY,
        profile=run.profile,
        data=described(run.scene, run.profile),
        machine=run.machine,
        backends=[*run.backends],
        engines=[*state.engines.values()],
        gates=[*state.gates.values()],
        unsupported=state.unsupported,
        peaks=[*state.peaks.values()],
        rows=summary.rows(state.blocks, state.asides, state.warmths, run.profile.percentiles),
        freshness=state.freshness,
        rounds_done=min((state.finished.get(name, 0) for name in taking_part), default=0),
        finished=state.finished,
        partial=partial,
        notes=state.notes,
        samples=SampleFile(name="", sha256="", samples=0),
        about={name: WORKLOADS[name].about for name in run.profile.workloads},
    )


def described(scene: Scene, profile: Profile) -> DataSet:
    """The data sets of a scene."""
    vectors, memory = scene.vectors, scene.memory
    return DataSet(
        spec=profile.data,
        hash=vectors.hash(),
        rows=len(vectors.rows),
        dimension=vectors.rows.shape[1],
        metric=vectors.metric,
        queries=len(vectors.queries),
        memory=profile.memory,
        memory_hash=memory.hash(),
        threads=len(memory.threads),
        messages=sum(count for _, _, count in memory.threads),
        embedder=memory.embedder.name,
    )


def check(run: Run, before: Manifest) -> None:
    """Raises UsageProblem unless a run is what an interrupted one was."""
    if not before.partial:
        raise UsageProblem("that run came to its end", hint="drop --resume, or name another file")
    if unlike := msgspec.convert(before.machine, Machine).other_than(msgspec.convert(run.machine, Machine)):
        raise UsageProblem(f"the interrupted run was on another machine: {'; '.join(unlike)}", hint="run it again here")
    now = build(run, State(), seconds=0.0, partial=True)
    for part in ALIKE:
        if getattr(now, part) != getattr(before, part):
            raise UsageProblem(
                f"the interrupted run had another {part}", hint="give the options that it was given, or another file"
            )


def _versions() -> dict[str, str]:
    """Of every package that memassay may use and that is here."""
    found: dict[str, str] = {}
    for requirement in requires("memassay") or ():
        package = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
        try:
            found[package] = version_of(package)
        except PackageNotFoundError:
            continue
    return dict(sorted(found.items()))
