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

SHOWN = 200
"""Lines of a failure before the rest is left out."""


def summary(results: Sequence[Result], cases: str) -> bytes:
    """The summary. `cases` is the folder of the case files; failures that do not fit are counted."""
    columns = matrix.columns(results)
    families = matrix.families(columns)
    head = _joined([*_head(columns), *_matrix(families, columns)])
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
    if len(head) > LIMIT:
        return _joined([*_head(columns[:SHOWN]), "The matrix is too large for a summary: see `index.html`.", ""])
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
            _cell(column.label),
            _cell(backend.engine),
            _cell(provisioned),
            f"**{counts.get('pass', 0):,} of {len(column.clauses):,}**",
            ", ".join(others) or "none",
            f"{backend.programs:,} of {corpus.programs:,}{skipped}",
            f"{corpus.seed}, {corpus.level}",
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""
    for column in columns:
        if column.backend.error:
            yield f"- {_code(column.label)}: the engine failed: {_code(column.backend.error)}"
        if column.result.interrupted:
            yield f"- {_code(column.label)}: interrupted, these results are partial"
    yield ""


def _matrix(families: Sequence[matrix.Family], columns: Sequence[matrix.Column]) -> Iterator[str]:
    yield "<details><summary>Matrix</summary>"
    yield ""
    yield f"| clause | | {' | '.join(_cell(column.label) for column in columns)} |"
    yield f"| --- | --- |{' --- |' * len(columns)}"
    for family in families:
        for row in family.rows:
            verdicts = ["pass" if cell.found.verdict == "pass" else f"**{cell.found.verdict}**" for cell in row.cells]
            title = row.title.replace("|", "\\|").replace("$", "\\$")
            yield f"| {_cell(row.id)} | {title} | {' | '.join(verdicts)} |"
    yield ""
    yield "</details>"
    yield ""


def _finding(row: matrix.Row, column: matrix.Column, finding: Finding, cases: str) -> Iterator[str]:
    signature = finding.case.signature
    yield f"**{finding.verdict}** {_code(f'{row.id} on {column.label}: {signature.aspect} of {signature.operation}')}"
    yield ""
    lines = [visible(cut(line, LINE)) for line in findings.lines(finding, cases)]
    if len(lines) > SHOWN:
        lines = [*lines[:SHOWN], f"... {findings.count(len(lines) - SHOWN, 'more line')}"]
    fence = _fence("\n".join(lines), 3)
    yield f"{fence}text"
    yield from lines[:-1] if not lines[-1] else lines
    yield fence
    yield ""


def _cell(text: str) -> str:
    """Any text in a table."""
    return _code(text).replace("|", "\\|")


def _code(text: str) -> str:
    """Any text as it is: nothing in it is Markdown or HTML."""
    shown = visible(cut(text, LINE))
    if not shown.strip():
        return "(none)"
    fence = _fence(shown, 1)
    space = " " if "`" in shown or shown.startswith(" ") else ""
    return f"{fence}{space}{shown}{space}{fence}"


def _fence(text: str, least: int) -> str:
    """Backticks, more than the text has in a row."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(least, longest + 1)
