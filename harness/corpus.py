"""A seed's corpus: the programs of a level, generated once and run on every backend."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import cast

import msgspec
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.strategies import SearchStrategy

from ..spec.clauses.model import Level
from ..spec.facts import survey
from ..spec.program import Program
from ..spec.strategies import SCENARIOS, Scenario
from . import artefact

ROUNDS = 6
"""How often more is drawn where draws repeated themselves."""


class Entry(msgspec.Struct, frozen=True):
    """One program, where it came from, and the facts it shows."""

    program: Program
    hash: str
    scenario: str
    facts: frozenset[str]


class Corpus(msgspec.Struct, frozen=True):
    """Programs without duplicates, in the order in which they are run."""

    entries: tuple[Entry, ...]
    description: artefact.Corpus


def build(
    level: Level,
    seed_: int,
    total: int | None = None,
    *,
    scenarios: Mapping[str, Scenario] = SCENARIOS,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Corpus:
    """The corpus of a seed. Same seed and same memassay, Hypothesis and Python: same programs.

    total scales the scenarios' shares. `progress` is called with how many programs there are, of how many.
    """
    shares = scale({name: scenario.share[level] for name, scenario in scenarios.items()}, total)
    expected = sum(shares.values())
    generated: dict[str, list[Program]] = {}
    done = 0
    for name, share in shares.items():
        generated[name] = distinct(scenarios[name], share, seed_)
        done += share
        progress(done, expected)
    entries = tuple(
        Entry(program, digest, scenario, survey(program))
        for digest, (scenario, program) in _distinct(_interleave(generated)).items()
    )
    whole = hashlib.sha256("".join(entry.hash for entry in entries).encode()).hexdigest()[:16]
    return Corpus(
        entries,
        artefact.Corpus(seed=seed_, level=level, examples=total, programs=len(entries), hash=whole),
    )


def distinct(scenario: Scenario, count: int, seed_: int) -> list[Program]:
    """`count` different programs, or fewer when a few rounds of drawing do not give that many."""
    found: dict[str, Program] = {}
    for number in range(ROUNDS):
        missing = count - len(found)
        if missing <= 0:
            break
        # One more, as every round begins with the same simplest program.
        for program in generate(scenario.strategy, missing + 1, derive(seed_, f"{scenario.name}/{number}")):
            found.setdefault(program.hash, program)
    return list(found.values())[:count]


def generate(strategy: SearchStrategy[Program], count: int, seed_: int) -> list[Program]:
    """`count` draws. Every setting is explicit: a user's profile, or the automatic CI profile, must not leak in."""
    drawn: list[Program] = []
    if count == 0:
        return drawn

    @seed(seed_)
    @settings(
        max_examples=count,
        phases=(Phase.generate,),
        derandomize=False,
        database=None,
        verbosity=Verbosity.quiet,
        stateful_step_count=50,
        report_multiple_bugs=False,
        suppress_health_check=cast("list[HealthCheck]", list(HealthCheck)),
        deadline=None,
        print_blob=False,
        backend="hypothesis",
    )
    @given(strategy)
    def collect(program: Program) -> None:
        drawn.append(program)

    collect()
    return drawn


def derive(seed_: int, purpose: str) -> int:
    """A seed of its own for each purpose."""
    return int.from_bytes(hashlib.sha256(f"{seed_}/{purpose}".encode()).digest()[:8])


def scale(shares: Mapping[str, int], total: int | None) -> dict[str, int]:
    """Shares in proportion that sum up to `total`: the largest remainders get what rounding left."""
    whole = sum(shares.values())
    if total is None or whole == 0:
        return dict(shares)
    exact = {name: Fraction(share * total, whole) for name, share in shares.items()}
    scaled = {name: int(share) for name, share in exact.items()}
    short = total - sum(scaled.values())
    for name in sorted(exact, key=lambda name: scaled[name] - exact[name])[:short]:
        scaled[name] += 1
    return scaled


def _interleave(generated: Mapping[str, list[Program]]) -> list[tuple[str, Program]]:
    """Every scenario spread evenly over the run, so that a part of the run has a part of each."""
    placed = [
        (Fraction(2 * i + 1, 2 * len(programs)), order, (name, program))
        for order, (name, programs) in enumerate(generated.items())
        for i, program in enumerate(programs)
    ]
    return [item for _, _, item in sorted(placed, key=lambda place: place[:2])]


def _distinct(programs: Iterable[tuple[str, Program]]) -> dict[str, tuple[str, Program]]:
    found: dict[str, tuple[str, Program]] = {}
    for scenario, program in programs:
        found.setdefault(program.hash, (scenario, program))
    return found


def keep_hypothesis_tidy(folder: str) -> None:
    """Hypothesis keeps a cache of constants in the working directory unless told otherwise."""
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", folder)
