"""A site of static pages from artefacts of any kind: opens from disk, loads nothing, same artefacts, same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from ..harness.artefact import Case, Finding
from ..spec.clauses import CLAUSES
from . import changes, deviations, findings, html, kill_grid, matrix, performance
from .given import CaseFile, Given
from .html import Link

OVERVIEW = Link("index.html", "Overview")
CLAUSES_PAGE = Link("clauses.html", "Clauses")
DEVIATIONS = Link("deviations.html", "Deviations")
FINDINGS = Link("findings.html", "Findings")
KILLS = Link("mutants.html", "Kill matrix")
PERFORMANCE = Link("performance.html", "Performance")
CHANGES = Link("changes.html", "Changes")


def pages(given: Given) -> dict[str, bytes]:
    """The pages by file name: those for which something was given, and the overview. Raises MissingLibrary."""
    links = [link for link, there in _links(given) if there]
    families = matrix.families(matrix.columns(given.results))
    made = {
        OVERVIEW: lambda: _overview(given, links, families),
        CLAUSES_PAGE: lambda: _clauses(given, links, families),
        DEVIATIONS: lambda: _deviations(given, links, families),
        FINDINGS: lambda: _findings(given, links),
        KILLS: lambda: _kills(given, links, families),
        PERFORMANCE: lambda: performance.page(given.benchmarks, links, PERFORMANCE),
        CHANGES: lambda: changes.page(given.differences, given.comparisons, links, CHANGES),
    }
    return {link.file: made[link]() for link in links}


def _links(given: Given) -> Iterator[tuple[Link, bool]]:
    results = bool(given.results)
    yield OVERVIEW, True
    yield CLAUSES_PAGE, results
    yield DEVIATIONS, results
    yield FINDINGS, bool(given.cases)
    yield KILLS, bool(given.kills)
    yield PERFORMANCE, bool(given.benchmarks)
    yield CHANGES, bool(given.differences or given.comparisons)


def _overview(given: Given, links: Sequence[Link], families: Sequence[matrix.Family]) -> bytes:
    return html.render(
        "index.html",
        links=links,
        here=OVERVIEW,
        results=given.results,
        columns=matrix.columns(given.results),
        families=families,
        rows=_rows(families),
        meanings={verdict: html.MEANINGS[verdict] for verdict in matrix.occurring(families)},
        told=[*_told(given)],
    )


def _told(given: Given) -> Iterator[tuple[Link, str]]:
    """What the other pages are about, in a line each."""
    if given.cases:
        stores = len({file.case.found.backend for file in given.cases})
        yield FINDINGS, f"{findings.count(len(given.cases), 'case')} of {findings.count(stores, 'store')}"
    for found in given.kills:
        yield KILLS, kill_grid.told(found)
    for manifest in given.benchmarks:
        yield PERFORMANCE, performance.told(manifest)
    for difference in given.differences:
        yield CHANGES, changes.told(difference)
    for comparison in given.comparisons:
        yield CHANGES, changes.compared(comparison)


def _clauses(given: Given, links: Sequence[Link], families: Sequence[matrix.Family]) -> bytes:
    shown = {
        row.id: [
            findings.shown(f"{row.key}.{number}", column.label, finding, given.folder)
            for number, (column, finding) in enumerate(row.findings, 1)
        ]
        for row in _rows(families)
    }
    return html.render(
        "clauses.html",
        links=links,
        here=CLAUSES_PAGE,
        families=families,
        shown=shown,
        mutants=_mutants(given),
        meanings={verdict: html.MEANINGS[verdict] for verdict in matrix.occurring(families)},
    )


def _mutants(given: Given) -> dict[str, tuple[int, int]]:
    """By clause, how many of the mutants that break it were killed, and how many there are."""
    found: dict[str, tuple[int, int]] = {}
    for mutant in (mutant for each in given.kills for mutant in each.mutants if not mutant.obstacle):
        killed, many = found.get(mutant.clause, (0, 0))
        found[mutant.clause] = killed + (not mutant.survives), many + 1
    return found


class Deviation(NamedTuple):
    """A clause's aspect that some store does otherwise.

    key: of the clause, in links. cells: by column, where each of its findings is shown.
    """

    clause: str
    title: str
    key: str
    aspect: str
    operations: str
    smallest: int
    cells: tuple[tuple[tuple[str, Finding], ...], ...]


def _deviations(given: Given, links: Sequence[Link], families: Sequence[matrix.Family]) -> bytes:
    columns = matrix.columns(given.results)
    found = [*_deviating(families, columns)]
    return html.render(
        "deviations.html",
        links=links,
        here=DEVIATIONS,
        columns=columns,
        deviations=[each for each in found if not _lacking(each)],
        lacking=[each for each in found if _lacking(each)],
        known=[(column, entry) for column in columns for entry in column.backend.known],
        clauses=CLAUSES_PAGE.file,
    )


def _deviating(families: Sequence[matrix.Family], columns: Sequence[matrix.Column]) -> Iterator[Deviation]:
    for row in _rows(families):
        places = [(f"{row.key}.{number}", *found) for number, found in enumerate(row.findings, 1)]
        aspects = dict.fromkeys(finding.case.signature.aspect for _, _, finding in places)
        for aspect in aspects:
            own = [place for place in places if place[2].case.signature.aspect == aspect]
            yield Deviation(
                clause=row.id,
                title=row.title,
                key=row.key,
                aspect=aspect,
                operations=", ".join(sorted({finding.case.signature.operation for _, _, finding in own})),
                smallest=min(len(finding.case.program.operations) for _, _, finding in own),
                cells=tuple(
                    tuple((key, finding) for key, column, finding in own if column.key == each.key) for each in columns
                ),
            )


def _lacking(deviation: Deviation) -> bool:
    return all(deviations.lacks(finding.case) for cell in deviation.cells for _, finding in cell)


class Store(NamedTuple):
    """The case files of one store."""

    key: str
    name: str
    engines: str
    runs: str
    clauses: tuple[tuple[str, str, tuple[findings.Shown, ...]], ...]

    @property
    def many(self) -> int:
        """How many cases there are."""
        return sum(len(shown) for _, _, shown in self.clauses)


def _findings(given: Given, links: Sequence[Link]) -> bytes:
    return html.render("findings.html", links=links, here=FINDINGS, stores=[*_stores(given.cases)])


def _stores(files: Sequence[CaseFile]) -> Iterator[Store]:
    names = dict.fromkeys(file.case.found.backend for file in files)
    for number, name in enumerate(names, 1):
        own = [file for file in files if file.case.found.backend == name]
        own.sort(key=lambda file: (_place(file.case), file.case.signature.aspect, file.path))
        numbered = [(file, f"s{number}.{place}") for place, file in enumerate(own, 1)]
        yield Store(
            key=f"s{number}",
            name=name,
            engines=", ".join(dict.fromkeys(file.case.found.engine for file in own)),
            runs=", ".join(
                dict.fromkeys(f"level {file.case.found.level}, seed {file.case.found.seed}" for file in own)
            ),
            clauses=tuple(
                (
                    clause,
                    CLAUSES[clause].title if clause in CLAUSES else "unknown to this memassay",
                    tuple(findings.shown_case(key, file.case, file.path) for file, key in group),
                )
                for clause, group in groupby(numbered, key=lambda each: each[0].case.signature.clause)
            ),
        )


def _place(case: Case) -> tuple[int, str]:
    """Clauses in the order of reports; those that this memassay does not know come last."""
    order = {clause: number for number, clause in enumerate(CLAUSES)}
    return order.get(case.signature.clause, len(order)), case.signature.clause


def _kills(given: Given, links: Sequence[Link], families: Sequence[matrix.Family]) -> bytes:
    return html.render(
        "mutants.html",
        links=links,
        here=KILLS,
        found=[kill_grid.overview(found) for found in given.kills],
        linked={row.id: f"{CLAUSES_PAGE.file}#{row.key}" for row in _rows(families)},
    )


def _rows(families: Sequence[matrix.Family]) -> list[matrix.Row]:
    return [row for family in families for row in family.rows]
