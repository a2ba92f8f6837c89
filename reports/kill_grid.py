"""A kill matrix for a page: which families' mutants fail which families' clauses, and every mutant with its killer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..harness.artefact import Kill, KillMatrix, MutantResult
from .matrix import FAMILIES


class Mutant(NamedTuple):
    """A mutant as a page shows it. others: clauses that fail beside the one that it is killed by, stray ones first.

    programs: until it was killed; of one that survives, all that were run.
    """

    result: MutantResult
    status: str
    kill: Kill | None
    programs: int
    others: tuple[str, ...]
    rest: int


class Grid(NamedTuple):
    """families: those that clauses fail of. rows: by a mutant's family, how many there are, and by family of failing
    clauses, of how many mutants some clause of it fails."""

    families: tuple[str, ...]
    rows: tuple[tuple[str, int, tuple[int, ...]], ...]


class Overview(NamedTuple):
    """A kill matrix as a page shows it."""

    matrix: KillMatrix
    told: str
    grid: Grid
    mutants: tuple[Mutant, ...]
    survivors: tuple[Mutant, ...]
    seeds: str


SHOWN = 12
"""Failing clauses of a mutant that are named before the rest is counted."""


def overview(found: KillMatrix) -> Overview:
    """What a page shows of it."""
    mutants = tuple(_mutant(result) for result in found.mutants)
    return Overview(
        matrix=found,
        told=told(found),
        grid=_grid(found.mutants),
        mutants=mutants,
        survivors=tuple(mutant for mutant in mutants if mutant.status == "survives"),
        seeds=", ".join(map(str, found.seeds)),
    )


def told(found: KillMatrix) -> str:
    """What came of it, in a line."""
    over = f" laid over {found.over} ({found.engine})" if found.over else ""
    line = f"{found.summary.killed} of {found.summary.run} mutants{over} are killed by their own family"
    return line + (" (interrupted: partial)" if found.interrupted else "")


def first(mutant: MutantResult) -> Kill | None:
    """Of the first seed that killed it; None when none did."""
    return next((kill for kill in mutant.kills if kill.blamed is not None), None)


def _mutant(result: MutantResult) -> Mutant:
    kill = first(result)
    others = [clause for clause in result.failing if kill is None or clause != kill.blamed]
    others.sort(key=lambda clause: clause not in result.stray)
    return Mutant(
        result=result,
        status="not laid" if result.obstacle else "killed" if kill else "survives",
        kill=kill,
        programs=kill.programs if kill else sum(kill.programs for kill in result.kills),
        others=tuple(others[:SHOWN]),
        rest=max(0, len(others) - SHOWN),
    )


def _grid(mutants: Sequence[MutantResult]) -> Grid:
    run = [mutant for mutant in mutants if not mutant.obstacle]
    own = _known(_family(mutant.clause) for mutant in run)
    failing = _known(_family(clause) for mutant in run for clause in mutant.failing)
    rows: list[tuple[str, int, tuple[int, ...]]] = []
    for family in own:
        members = [mutant for mutant in run if _family(mutant.clause) == family]
        fails = [{_family(clause) for clause in mutant.failing} for mutant in members]
        rows.append((family, len(members), tuple(sum(each in families for families in fails) for each in failing)))
    return Grid(tuple(failing), tuple(rows))


def _known(families: Iterable[str]) -> list[str]:
    there = {*families}
    return [*(family for family in FAMILIES if family in there), *sorted(there - FAMILIES.keys())]


def _family(clause: str) -> str:
    return clause.partition("-")[0]
