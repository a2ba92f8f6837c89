"""Results as Markdown for a job's summary: counts, failures, matrix, within what GitHub takes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..harness.artefact import Finding, Result
from . import findings, matrix
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


def summary(results: Sequence[Result], cases: str) -> bytes:
    """The summary. `cases` is the folder of the case files; failures that do not fit are counted."""
    columns = matrix.columns(results)
    families = matrix.families(columns)
    head = _joined([*_head(columns), *_matrix(families, columns)])
    if len(head) > LIMIT - 1_000:
        left = findings.count(len(columns[BACKENDS:]), "more backend")
        return _joined([*_head(columns[:BACKENDS]), f"{left}, the matrix and failures: see `index.html`."])
    found = [
        _joined(_finding(row, column, finding, cases))
        for family in families
        for row in family.rows
        for column, finding in row.findings
    ]
    room = LIMIT - len(head) - 1_000
    shown: list[bytes] = []
    for part in found:
        if len(part) > room:
            break
        room -= len(part)
        shown.append(part)
    left = len(found) - len(shown)
    note = _joined([f"{findings.count(left, 'more failure')}: see `index.html`.", ""]) if left else b""
    title = _joined([f"### Failures: {len(shown)} of {len(found)} shown", ""]) if found else b""
    return b"".join([head, title, *shown, note])


def _joined(lines: Sequence[str] | Iterator[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _head(columns: Sequence[matrix.Column]) -> Iterator[str]:
    """A row per backend: what it is, and its verdicts with denominators."""
    yield "## memassay"
    yield ""
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
