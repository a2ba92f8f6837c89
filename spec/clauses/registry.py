"""All clauses in the order of reports, and how to select among them."""

from __future__ import annotations

from collections.abc import Sequence

from . import (
    clones,
    filters,
    include,
    isolation,
    messages,
    operators,
    order,
    semantic,
    threads,
    titles,
    values,
    vectors,
    visibility,
    working_memory,
)
from .model import LEVELS, Clause, Level

CLAUSES: dict[str, Clause] = {
    clause.id: clause
    for module in (
        *(values, threads, clones, messages, order, filters, include),
        *(operators, vectors, semantic, working_memory, titles, isolation, visibility),
    )
    for clause in module.CLAUSES
}


def by_family() -> dict[str, tuple[Clause, ...]]:
    """Clauses grouped by family, in order."""
    families: dict[str, tuple[Clause, ...]] = {}
    for clause in CLAUSES.values():
        families[clause.family] = (*families.get(clause.family, ()), clause)
    return families


def find(clause_id: str) -> Clause:
    """The clause; KeyError when there is none."""
    return CLAUSES[clause_id]


def select(level: Level, ids: Sequence[str] = ()) -> tuple[Clause, ...]:
    """The clauses up to a level; `ids` (clauses, or whole families) narrow them. KeyError for an unknown one."""
    known = {*CLAUSES, *by_family()}
    for name in ids:
        if name not in known:
            raise KeyError(name)
    return tuple(
        clause
        for clause in CLAUSES.values()
        if LEVELS.index(clause.level) <= LEVELS.index(level) and (not ids or clause.id in ids or clause.family in ids)
    )
