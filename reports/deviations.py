"""Results of several stores as one Markdown page: every deviation once, with its clause, its stores and a program.

    python -m memassay.reports.deviations libsql.json pg.json > deviations.md

Two findings are one deviation when clause and aspect agree. What a store refuses with `Unsupported` is listed apart.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..harness.artefact import Case, Finding, Result, decode_result
from ..spec.clauses import CLAUSES
from .findings import evidence, program, replay

Found = dict[tuple[str, str], list[tuple[str, Finding]]]
"""By clause and aspect: the stores, each with a finding."""


def page(results: Sequence[Result], cases: str = ".memassay/cases") -> str:
    """The page; cases: the folder of the case files. The same results give the same text."""
    lacking, deviating = sort(results)
    lines = ["# Deviations", "", *_stores(results), "", f"{len(deviating)} deviations, by clause and aspect.", ""]
    for clause in CLAUSES.values():
        of_clause = {key: found for key, found in deviating.items() if key[0] == clause.id}
        if not of_clause:
            continue
        lines += [f"## {clause.id} {clause.title}", "", clause.statement, ""]
        for (_, aspect), found in of_clause.items():
            lines += [*_deviation(aspect, found, cases), ""]
    if lacking:
        lines += ["## Not supported", "", "| store | call | where a clause asks for it |", "| --- | --- | --- |"]
        lines += sorted(
            f"| {store} | {finding.case.signature.operation} | {clause} |"
            for (clause, _), found in lacking.items()
            for store, finding in found
        )
        lines.append("")
    return "\n".join(lines)


def sort(results: Iterable[Result]) -> tuple[Found, Found]:
    """What is lacking, and what deviates, each by clause and aspect."""
    lacking: Found = {}
    deviating: Found = {}
    for result in results:
        for backend in result.backends:
            for found in backend.clauses.values():
                for finding in found.findings:
                    case = finding.case
                    kind = lacking if lacks(case) else deviating
                    kind.setdefault((case.signature.clause, case.signature.aspect), []).append((backend.name, finding))
    return lacking, deviating


def lacks(case: Case) -> bool:
    """Whether all that it shows is that the store refuses something as unsupported."""
    return isinstance(case.got, dict) and case.got.get("refused") == "unsupported"  # pyright: ignore


def _stores(results: Iterable[Result]) -> Iterator[str]:
    yield "| store | versions | level | programs | seed | clauses | deviations |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for result in results:
        for backend in result.backends:
            verdicts = [backend.clauses[clause].verdict for clause in result.selected]
            counts = ", ".join(f"{verdicts.count(each)} {each}" for each in dict.fromkeys(sorted(verdicts)))
            keys = {
                (finding.case.signature.clause, finding.case.signature.aspect)
                for found in backend.clauses.values()
                for finding in found.findings
                if not lacks(finding.case)
            }
            run = f"{result.corpus.level} | {backend.programs:,} | {result.corpus.seed}"
            yield f"| {backend.name} | {backend.engine} | {run} | {counts} | {len(keys)} |"


def _deviation(aspect: str, found: Sequence[tuple[str, Finding]], cases: str) -> Iterator[str]:
    store, finding = min(
        found, key=lambda each: (not each[1].case.minimal, len(each[1].case.program.operations), each[0])
    )
    operations = ", ".join(sorted({each.case.signature.operation for _, each in found}))
    yield f"### {aspect}: {operations}"
    yield ""
    yield "On " + ", ".join(dict.fromkeys(name for name, _ in found)) + f". A program, on {store}:"
    yield ""
    yield "```text"
    yield from program(finding.case)
    yield from evidence(finding.case)
    if command := replay(finding, cases):
        yield f"replay: {command}"
    yield "```"


def main() -> None:
    """Write the page of the results named on the command line to standard output."""
    sys.stdout.write(page([decode_result(Path(name).read_bytes()) for name in sys.argv[1:]]))


if __name__ == "__main__":
    main()
