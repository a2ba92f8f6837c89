"""Where programs come from: scenarios, and how many of each a level runs.

Hypothesis draws a seed for each program and a `random.Random` does the rest. Drawn choice by choice, its
mutator repeats spans of one label all over a program: a quarter of the programs were duplicates, and
values of large pools never came. Shrinking is ours (harness/shrink.py), so nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

import hypothesis.strategies as st
from hypothesis.strategies import SearchStrategy

from ..clauses.model import Level
from ..program import Program
from . import injection, long, races, semantic, titles, vectors, visibility, working_memory
from . import scenarios as s


@dataclass(frozen=True)
class Scenario:
    """A strategy of programs; `share` is how many of them a level runs by default."""

    name: str
    strategy: SearchStrategy[Program]
    share: Mapping[Level, int]


SEEDS = st.tuples(*[st.integers(0, 63)] * 10)
"""60 bits in small digits: into larger ranges Hypothesis feeds constants it finds in whatever modules are imported."""


def _scenario(name: str, make: Callable[[Random], Program], smoke: int, core: int, extended: int) -> Scenario:
    strategy = SEEDS.map(lambda digits: make(Random(sum(digit << 6 * i for i, digit in enumerate(digits)))))
    return Scenario(name, strategy, {"smoke": smoke, "core": core, "extended": extended})


SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        _scenario("messages", s.messages, 140, 520, 3000),
        _scenario("values", s.values, 90, 300, 1500),
        _scenario("long-values", s.long_values, 0, 24, 100),
        _scenario("threads", s.threads, 70, 260, 1500),
        _scenario("paging", s.paging, 90, 260, 1500),
        _scenario("dates", s.dates, 40, 120, 600),
        _scenario("filters", s.filters, 110, 330, 1500),
        _scenario("includes", s.includes, 70, 240, 1200),
        _scenario("hostile", s.hostile, 24, 100, 1000),
        _scenario("reopened", s.reopened, 30, 80, 400),
        _scenario("together", s.together, 0, 24, 100),
        _scenario("indices", vectors.indices, 120, 560, 3000),
        _scenario("catalogue", vectors.catalogue, 36, 120, 500),
        _scenario("rare", vectors.rare, 0, 24, 100),
        _scenario("approximate", vectors.approximate, 0, 8, 20),
        _scenario("churn", vectors.churn, 8, 30, 200),
        _scenario("large", vectors.large, 0, 40, 100),
        _scenario("recalls", semantic.recalls, 110, 380, 2000),
        _scenario("without", semantic.without, 16, 50, 200),
        _scenario("clones", semantic.clones, 90, 260, 1000),
        _scenario("working-memory", working_memory.working_memory, 60, 180, 800),
        _scenario("titles", titles.titles, 20, 150, 500),
        _scenario("two-clients", visibility.memory, 50, 130, 500),
        _scenario("two-searchers", visibility.search, 20, 50, 200),
        _scenario("two-on-an-index", visibility.indices, 24, 60, 250),
        _scenario("two-rememberers", working_memory.two_clients, 16, 30, 150),
        _scenario("races", races.memory, 40, 80, 500),
        _scenario("embedded-races", races.embedded, 12, 30, 200),
        _scenario("index-races", races.indices, 14, 32, 200),
        _scenario("kills", races.kills, 0, 20, 150),
        _scenario("injection", injection.injection, 0, 16, 450),
        _scenario("long", long.long, 0, 12, 300),
        _scenario("window", s.window, 0, 8, 20),
    )
}
"""By name, in the order in which they run."""

UNSTEERED = _scenario("anything", s.anything, 400, 2000, 8000)
"""Operations as they come: for measuring what steering is worth."""
