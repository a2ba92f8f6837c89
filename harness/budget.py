"""Turns a time budget into a number of programs, before the run, by timing a small sample."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from ..backends.provision import EngineUnavailable
from ..spec.strategies import Scenario
from . import corpus
from .engine import EngineFailed, Namespaces, start
from .execution import execute_in
from .exits import UsageProblem
from .programs import needs
from .runner import Plan, Target
from .zone import hostile_zone

SAMPLE = 60
"""Programs timed on every backend."""

LONGEST = 24 * 3600
"""Seconds of the longest budget."""

UNITS = {"s": 1, "m": 60, "h": 3600}


def seconds(text: str) -> float:
    """A duration such as 90s, 2m or 1h30m. Raises UsageProblem."""
    parts = re.findall(r"(\d+(?:\.\d+)?)([smh])", text)
    total = sum(float(number) * UNITS[unit] for number, unit in parts)
    if "".join(number + unit for number, unit in parts) != text or total <= 0:
        raise UsageProblem(f"--budget {text!r} is no duration", hint="write 90s, 2m or 1h30m")
    if total > LONGEST:
        raise UsageProblem(f"--budget {text!r} is too long", hint="give at most 24h")
    return total


def affordable(
    plan: Plan, seed: int, budget: float, scenarios: Mapping[str, Scenario], progress: corpus.Progress
) -> int:
    """How many programs can be generated, and run on every backend, in that many seconds; at most a corpus's most.

    A backend whose engine does not start, or dies, takes no time of it: the run will say so.
    """
    began = time.perf_counter()
    sample = corpus.build(plan.level, seed, SAMPLE, scenarios=scenarios, progress=progress).entries
    spent = time.perf_counter() - began
    with hostile_zone():
        for target in plan.targets:
            with suppress(EngineUnavailable, EngineFailed):
                spent += _spent(plan, target, sample, progress)
    return min(corpus.MAX_PROGRAMS, max(1, int(budget * len(sample) / spent)))


def _spent(plan: Plan, target: Target, sample: Sequence[corpus.Entry], progress: corpus.Progress) -> float:
    """Seconds that a backend takes for the sample, up to the first program that hangs."""
    with start(target.name, target.backend, plan.method, plan.urls) as engine, Namespaces(engine) as namespaces:
        able = [e for e in sample if all(getattr(engine.capabilities, need) for need in needs(e.program))]
        began = time.perf_counter()
        for done, entry in enumerate(able, 1):
            if execute_in(namespaces, engine, entry.program, plan.time_limit).timed_out:
                break
            progress(f"{target.name}: timing", done, len(able))
        return time.perf_counter() - began
