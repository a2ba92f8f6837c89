"""The matrix of results, whatever shows it: backends by clauses, and counts with denominators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import get_args

import msgspec

from ..harness.artefact import FAILING, BackendResult, ClauseResult, Finding, Result, Verdict
from ..spec.clauses import CLAUSES, Clause

FAMILIES = {
    "VAL": "values",
    "THR": "threads",
    "CLN": "clones",
    "MSG": "messages",
    "ORD": "order and paging",
    "TIM": "date ranges",
    "FLT": "metadata filters",
    "INC": "include",
    "OPR": "filter operators",
    "VEC": "vector indices",
    "SEM": "semantic recall",
    "WM": "working memory",
    "TTL": "titles",
    "ISO": "isolation",
    "CON": "several clients",
    "DUR": "durability",
    "CAP": "capabilities",
}

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""In the order in which counts are told."""


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One backend of one run. `run` counts the results from 1; `key` names the column in links."""

    key: str
    label: str
    run: int
    result: Result
    backend: BackendResult

    def found(self, clause: str) -> ClauseResult:
        """What became of a clause."""
        return self.backend.clauses.get(clause, ClauseResult(verdict="not-run", reason="not in this result"))

    @property
    def clauses(self) -> list[str]:
        """The clauses that count."""
        return counted(self.result, [self.backend])

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many of them have which verdict, verdicts that none has left out."""
        verdicts = Counter(verdict(self.backend, clause) for clause in self.clauses)
        return {kind: verdicts[kind] for kind in VERDICTS if verdicts[kind]}


class Cell(msgspec.Struct, frozen=True):
    """A clause on a backend. `first`: the number of its first finding among those of the clause; None without one."""

    column: Column
    found: ClauseResult
    first: int | None = None


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A clause on every backend. `clause` is None when this memassay does not know the id; `key` is fit for links."""

    id: str
    key: str
    title: str
    clause: Clause | None
    cells: tuple[Cell, ...]

    @property
    def discriminators(self) -> list[str]:
        """What puts the clause to the test, of this memassay and of the one that ran."""
        return list(dict.fromkeys(words for cell in self.cells for words in cell.found.discriminators))

    @property
    def findings(self) -> Iterator[tuple[Column, Finding]]:
        """Every finding of the clause, and where."""
        for cell in self.cells:
            for finding in cell.found.findings:
                yield cell.column, finding


class Family(msgspec.Struct, frozen=True):
    """The rows of a family."""

    id: str
    title: str
    rows: tuple[Row, ...]


def columns(results: Sequence[Result]) -> tuple[Column, ...]:
    """The backends of all runs in the order given; one that occurs twice says of which run it is."""
    names = Counter(backend.name for result in results for backend in result.backends)
    pairs = [(run, result, backend) for run, result in enumerate(results, 1) for backend in result.backends]
    return tuple(
        Column(
            key=f"c{number}",
            label=backend.name if names[backend.name] == 1 else f"{backend.name} (run {run})",
            run=run,
            result=result,
            backend=backend,
        )
        for number, (run, result, backend) in enumerate(pairs, 1)
    )


def families(columns: Sequence[Column]) -> tuple[Family, ...]:
    """The rows that any column counts, by family."""
    counting = {clause for column in columns for clause in column.clauses}
    ids = _in_order(counting)
    rows = [_row(number, clause, columns) for number, clause in enumerate(ids, 1)]
    return tuple(
        Family(family, FAMILIES.get(family, family), tuple(members))
        for family, members in groupby(rows, key=lambda row: row.id.partition("-")[0])
    )


def _row(number: int, clause: str, columns: Sequence[Column]) -> Row:
    known = CLAUSES.get(clause)
    return Row(
        id=clause,
        key=clause if known else f"clause-{number}",
        title=known.title if known else "unknown to this memassay",
        clause=known,
        cells=tuple(_cells(clause, columns)),
    )


def _cells(clause: str, columns: Sequence[Column]) -> Iterator[Cell]:
    before = 0
    for column in columns:
        found = column.found(clause)
        yield Cell(column, found, before + 1 if found.findings else None)
        before += len(found.findings)


def counted(result: Result, backends: Iterable[BackendResult]) -> list[str]:
    """The clauses that were asked for, and those that fail although nobody asked."""
    failing = {clause for backend in backends for clause, found in backend.clauses.items() if found.verdict in FAILING}
    return _in_order({*result.selected, *failing})


def _in_order(clauses: set[str]) -> list[str]:
    """As reports have them; clauses that this memassay does not know come last."""
    return [*(clause for clause in CLAUSES if clause in clauses), *sorted(clauses - CLAUSES.keys())]


def verdict(backend: BackendResult, clause: str) -> Verdict:
    """The verdict; what is missing was not run."""
    return backend.clauses[clause].verdict if clause in backend.clauses else "not-run"


def occurring(families: Iterable[Family]) -> list[Verdict]:
    """The verdicts that some cell has, in the order in which counts are told."""
    there = {cell.found.verdict for family in families for row in family.rows for cell in row.cells}
    return [verdict for verdict in VERDICTS if verdict in there]


def lacking(backend: BackendResult) -> list[str]:
    """The capabilities that the backend does not declare."""
    if backend.capabilities is None:
        return []
    declared = msgspec.structs.asdict(backend.capabilities)
    return [name for name, value in declared.items() if value is False]
