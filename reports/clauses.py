"""The clauses on a terminal: all in one list, or one with what puts it to the test."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from ..spec.clauses import Clause
from .matrix import FAMILIES


def listing(families: Mapping[str, tuple[Clause, ...]], console: Console) -> None:
    """Id, level and title, by family."""
    for family, clauses in families.items():
        console.print(Text(FAMILIES.get(family, family), style="bold"))
        for clause in clauses:
            line = Text(f"  {clause.id:8}{clause.level:10}{clause.title}")
            console.print(line, no_wrap=True, overflow="ellipsis")


def detail(clause: Clause, console: Console) -> None:
    """All there is to know about one clause."""
    console.print(Text(f"{clause.id} {clause.title} (level {clause.level})", style="bold"))
    console.print(Text(clause.statement))
    console.print(Text(f"source: {clause.source}"))
    if clause.needs and clause.requires != "lacking":
        console.print(Text("needs the capability: " + ", ".join(clause.needs)))
    console.print(Text("put to the test by programs with:"))
    for words in clause.discriminators:
        console.print(Text(f"  - {words}"))
    if clause.reports:
        console.print(Text("reported in the field: " + ", ".join(clause.reports)), soft_wrap=True)
    console.print()
