"""Artefacts as Markdown for a job's summary: counts, matrix, figures, failures, within what GitHub takes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..benchmarks import comparison_shown
from ..benchmarks.artefact import Manifest
from ..harness.artefact import Finding
from . import difference as difference_report
from . import figures, findings, kill_grid, matrix, performance
from .given import Given
from .values import cut, visible

LIMIT = 1_000_000
"""Bytes of a summary. GitHub drops one of more than 1 MiB."""

LINE = 500
"""Characters of a line before it is cut."""

STRUCTURE = frozenset("`|\\")
"""What would end a code span, or a cell around it."""

NAME = 100
"""Characters of a name in a table before it is cut."""

OPERATIONS = 50
"""Operations of a program that are shown."""

BACKENDS = 100
"""Backends that a summary too large for the matrix still names."""


SITE = "see `index.html`"
"""Where what is left out can be read."""


def summary(given: Given) -> bytes:
    """The summary. What does not fit is counted, and failures come last."""
    columns = matrix.columns(given.results)
    families = matrix.families(columns)
    parts = [*_opening(columns, families)]
    room = LIMIT - 2_000 - sum(map(len, parts))
    left: list[str] = []
    for title, lines in _others(given):
        part = _joined([f"### {title}", "", *lines, ""])
        if len(part) > room:
            left.append(title)
            continue
        parts.append(part)
        room -= len(part)
    if left:
        parts.append(_joined([f"Left out: {', '.join(left[:BACKENDS])}; {SITE}.", ""]))
    if len(columns) <= BACKENDS or parts[0].count(b"\n| `") >= len(columns):
        parts += _failures(columns, families, given.folder, room)
    return b"".join(parts)


def _opening(columns: Sequence[matrix.Column], families: Sequence[matrix.Family]) -> Iterator[bytes]:
    """The backends and the matrix; of a matrix too large, as many backends as are named all the same."""
    yield _joined(["## memassay", ""])
    if not columns:
        return
    head = _joined([*_head(columns), *_matrix(families, columns)])
    if len(head) <= LIMIT - 2_000:
        yield head
        return
    more = findings.count(len(columns[BACKENDS:]), "more backend")
    yield _joined([*_head(columns[:BACKENDS]), f"{more}, the matrix and failures: {SITE}.", ""])


def _failures(
    columns: Sequence[matrix.Column], families: Sequence[matrix.Family], cases: str, room: int
) -> Iterator[bytes]:
    found = [
        _joined(_finding(row, column, finding, cases))
        for family in families
        for row in family.rows
        for column, finding in row.findings
    ]
    shown: list[bytes] = []
    for part in found:
        if len(part) > room:
            break
        room -= len(part)
        shown.append(part)
    if found:
        yield _joined([f"### Failures: {len(shown)} of {len(found)} shown", ""])
    yield from shown
    if left := len(found) - len(shown):
        yield _joined([f"{findings.count(left, 'more failure')}: {SITE}.", ""])


def _others(given: Given) -> Iterator[tuple[str, list[str]]]:
    """What is neither a result nor its failures: a title, and lines."""
    for kills in given.kills:
        lines = [kill_grid.told(kills) + f" (level {kills.level}).", ""]
        yield (
            "Mutants",
            lines
            + [
                f"- survives: {_code(mutant.id)} ({_code(mutant.clause)}): {_code(mutant.description, LINE)}"
                for mutant in kills.mutants
                if mutant.survives
            ],
        )
    if given.cases:
        stores: dict[str, int] = {}
        for file in given.cases:
            stores[file.case.found.backend] = stores.get(file.case.found.backend, 0) + 1
        yield "Findings", [f"- {_code(name)}: {findings.count(many, 'case')}" for name, many in stores.items()]
    for manifest in given.benchmarks:
        yield "Performance", [*_benchmark(manifest)]
    for difference in given.differences:
        yield "Changes", [difference_report.markdown(difference).decode()]
    for comparison in given.comparisons:
        yield "Benchmarks compared", [comparison_shown.markdown(comparison).decode()]


def _benchmark(manifest: Manifest) -> Iterator[str]:
    """A row for each workload of each store: the peak, and response times at the highest load that it keeps up with."""
    yield f"{_code(performance.told(manifest), LINE)}"
    yield ""
    yield "| workload | store | ops/s at the peak | of it, in open loop |"
    yield "| --- | --- | ---: | --- |"
    stores = [*figures.contenders([manifest])]
    for workload in manifest.profile.workloads:
        for store in stores:
            cell = figures.cell(workload, store)
            broken = ", ".join(f"{_code(clause)} {_code(verdict)}" for clause, verdict in cell.clauses)
            first = {"figure": cell.first, "gated": f"**no number**: {broken}"}.get(cell.kind, cell.kind)
            second = _code(cell.second) if cell.second else ""
            yield f"| {_code(workload)} | {_code(store.label)} | {first} | {second} |"
    yield ""


def _joined(lines: Sequence[str] | Iterator[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _head(columns: Sequence[matrix.Column]) -> Iterator[str]:
    """A row per backend: what it is, and its verdicts with denominators."""
    yield "| backend | engine | provisioned | clauses that pass | others | programs | seed, level |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for column in columns:
        backend, counts = column.backend, column.counts
        others = [f"{number:,} {verdict}" for verdict, number in counts.items() if verdict != "pass"]
        provisioned = ": ".join(part for part in (backend.method, backend.detail) if part)
        skipped = f", {backend.skipped:,} skipped" if backend.skipped else ""
        corpus = column.result.corpus
        cells = [
            _code(column.label),
            _code(backend.engine),
            _code(provisioned),
            f"**{counts.get('pass', 0):,} of {len(column.clauses):,}**",
            ", ".join(others) or "none",
            f"{backend.programs:,} of {corpus.programs:,}{skipped}",
            f"{corpus.seed}, {corpus.level}",
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""
    for column in columns:
        if column.backend.error:
            yield f"- {_code(column.label)}: the engine failed: {_code(column.backend.error, LINE)}"
        if column.result.interrupted:
            yield f"- {_code(column.label)}: interrupted, these results are partial"
    yield ""


def _matrix(families: Sequence[matrix.Family], columns: Sequence[matrix.Column]) -> Iterator[str]:
    yield "<details><summary>Matrix</summary>"
    yield ""
    yield f"| clause | | {' | '.join(_code(column.label) for column in columns)} |"
    yield f"| --- | --- |{' --- |' * len(columns)}"
    for family in families:
        for row in family.rows:
            verdicts = ["pass" if cell.found.verdict == "pass" else f"**{cell.found.verdict}**" for cell in row.cells]
            title = re.sub(r"([$|*_<>`\[\]])", r"\\\1", row.title)
            yield f"| {_code(row.id)} | {title} | {' | '.join(verdicts)} |"
    yield ""
    yield "</details>"
    yield ""


def _finding(row: matrix.Row, column: matrix.Column, finding: Finding, cases: str) -> Iterator[str]:
    signature = finding.case.signature
    where = f"{row.id} on {column.label}: {signature.aspect} of {signature.operation}"
    yield f"**{finding.verdict}** {_code(where, LINE)}"
    yield ""
    shown = [
        *(("> " if line.deviates else "  ") + line.text for line in findings.around(finding.case, OPERATIONS)),
        *findings.evidence(finding.case),
        findings.strength(finding),
    ]
    lines = [visible(cut(line, LINE)) for line in shown]
    command = findings.replay(finding, cases)
    if command:
        lines.append(f"replay: {visible(command)}")
    fence = _fence("\n".join(lines))
    yield f"{fence}text"
    yield from lines
    yield fence
    yield ""


def _code(text: str, width: int = NAME) -> str:
    """Any text as it is, in a table too: nothing in it is Markdown or HTML."""
    shown = visible(cut(text, width)).strip()
    if not shown:
        return "(none)"
    if STRUCTURE.isdisjoint(shown):
        return f"`{shown}`"
    return "<code>" + "".join(c if c.isalnum() or c == " " else f"&#{ord(c)};" for c in shown) + "</code>"


def _fence(text: str) -> str:
    """Backticks, more than the text has in a row."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(3, longest + 1)
