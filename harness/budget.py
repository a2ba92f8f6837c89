"""Turns a time budget into a number of programs, before the run, by timing a small sample."""

from __future__ import annotations

import re
import time

from ..spec.clauses import Level
from . import corpus
from .engine import Namespaces, start
from .execution import execute_in
from .exits import UsageProblem
from .programs import needs
from .runner import Plan
from .zone import hostile_zone

SAMPLE = 60
"""Programs timed on every backend."""

UNITS = {"s": 1, "m": 60, "h": 3600}


def seconds(text: str) -> float:
    """A duration such as 90s, 2m or 1h30m. Raises UsageProblem."""
    parts = re.findall(r"(\d+(?:\.\d+)?)([smh])", text)
    total = sum(float(number) * UNITS[unit] for number, unit in parts)
    if "".join(number + unit for number, unit in parts) != text or total <= 0:
        raise UsageProblem(f"--budget {text!r} is no duration", hint="write 90s, 2m or 1h30m")
    return total


def affordable(plan: Plan, level: Level, seed: int, budget: float) -> int:
    """How many programs can be generated, and run on every backend, in that many seconds.

    Raises EngineUnavailable, EngineFailed.
    """
    began = time.perf_counter()
    sample = corpus.build(level, seed, SAMPLE).entries
    spent = time.perf_counter() - began
    with hostile_zone():
        for target in plan.targets:
            with start(target.name, target.backend, plan.method, plan.urls) as engine, Namespaces(engine) as namespaces:
                able = [e for e in sample if all(getattr(engine.capabilities, need) for need in needs(e.program))]
                began = time.perf_counter()
                for entry in able:
                    execute_in(namespaces, engine, entry.program, plan.time_limit)
                spent += time.perf_counter() - began
    return max(1, int(budget * len(sample) / spent))
