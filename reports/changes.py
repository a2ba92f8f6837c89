"""What changed between two results, and between two benchmarks, as a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..benchmarks import comparison_shown
from ..benchmarks.comparison import Comparison
from ..harness.artefact import CaseChange, Difference
from . import html
from .difference import about, summary, title
from .findings import call, count, opening
from .html import Link

SYMBOLS = {"regressed": "▼", "improved": "▲", "no change": "=", "inconclusive": "?", "not measured": "·"}
KINDS = {"regressed": "fail", "improved": "pass", "no change": "not-run", "inconclusive": "vacuous"}
"""By verdict of a figure: the colours it shares with which verdict of a clause."""

RIGHT = frozenset(comparison_shown.RIGHT)


class Compared(NamedTuple):
    """A comparison of benchmarks as a page shows it."""

    told: str
    heading: tuple[str, ...]
    notes: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    controls: tuple[tuple[str, tuple[str, ...]], ...]


def page(
    differences: Sequence[Difference], comparisons: Sequence[Comparison], links: Sequence[Link], here: Link
) -> bytes:
    """The page."""
    return html.render(
        "changes.html",
        links=links,
        here=here,
        differences=[(told(found), found) for found in differences],
        title=title,
        about=about,
        program=program,
        comparisons=[_compared(found) for found in comparisons],
        names=comparison_shown.COLUMNS,
        right=RIGHT,
        symbols=SYMBOLS,
        kinds=KINDS,
    )


def told(found: Difference) -> str:
    """What came of it, in a line."""
    return summary(found)


def compared(found: Comparison) -> str:
    """The same of benchmarks."""
    return comparison_shown.summary(found)


def program(case: CaseChange) -> list[str]:
    """A case's program, an operation a line, no more of them than can be read."""
    lines = [*opening(case.program), *map(call, case.program.operations)]
    left = len(lines) - html.OPERATIONS
    return lines if left <= 0 else [*lines[: html.OPERATIONS], f"... {count(left, 'more operation')}"]


def _compared(found: Comparison) -> Compared:
    return Compared(
        told=comparison_shown.summary(found),
        heading=tuple(comparison_shown.heading(found)),
        notes=tuple(found.notes),
        rows=tuple(
            (change.judgement.verdict, comparison_shown.cells(change))
            for change in comparison_shown.ordered(found.changes)
        ),
        controls=tuple((change.judgement.verdict, comparison_shown.cells(change)) for change in found.controls),
    )
