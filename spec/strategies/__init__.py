"""Where programs come from: scenarios, and how many of each a level runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis.strategies import SearchStrategy

from ..clauses.model import Level
from ..program import Program
from . import scenarios as s


@dataclass(frozen=True)
class Scenario:
    """A strategy of programs; `share` is how many of them a level runs by default."""

    name: str
    strategy: SearchStrategy[Program]
    share: Mapping[Level, int]


def _scenario(name: str, strategy: SearchStrategy[Program], smoke: int, core: int, extended: int) -> Scenario:
    return Scenario(name, strategy, {"smoke": smoke, "core": core, "extended": extended})


SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        _scenario("messages", s.messages(), 90, 520, 3000),
        _scenario("values", s.values(), 60, 300, 1500),
        _scenario("long-values", s.long_values(), 0, 24, 100),
        _scenario("threads", s.threads(), 60, 280, 1500),
        _scenario("paging", s.paging(), 60, 280, 1500),
        _scenario("dates", s.dates(), 30, 120, 600),
        _scenario("filters", s.filters(), 60, 260, 1500),
        _scenario("includes", s.includes(), 60, 240, 1200),
        _scenario("hostile", s.hostile(), 20, 100, 1000),
        _scenario("reopened", s.reopened(), 20, 80, 400),
        _scenario("together", s.together(), 0, 24, 100),
        _scenario("window", s.window(), 0, 6, 20),
    )
}
"""By name, in the order in which they run."""

UNSTEERED = _scenario("anything", s.anything(), 400, 2000, 8000)
"""Operations as they come: for measuring what steering is worth."""
