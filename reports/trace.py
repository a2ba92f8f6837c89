"""A program's outcomes on a terminal: a store's alone, or beside the model's where they differ."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from ..harness.artefact import Step
from .values import comparison, short

INDENT = "    "

WIDTH = 20_000
"""Characters of an outcome before it is cut."""


def side_by_side(steps: Iterable[Step], console: Console, *, store: str) -> None:
    """Operations; under one on which model and store disagree, both outcomes where they differ."""
    for step in steps:
        mark, style = ("  ", "") if step.alike else ("> ", "bold")
        console.print(Text(mark + step.operation, style=style), soft_wrap=True)
        if step.alike:
            continue
        for path, expected, got in comparison(step.expected, step.got):
            at = f" {path}" if path else ""
            _line(console, f"model{at}: {expected}")
            if got:
                _line(console, f"{store}{at}: {got}")


def replay(file: str, status: str, detail: str, steps: Iterable[Step], console: Console, *, store: str) -> None:
    """A replayed case: FIXED or STILL FAILS, and where it fails, how."""
    style = "green" if status == "FIXED" else "bold red"
    where = f"  {file} on {store}" + (f": {detail}" if detail else "")
    console.print(Text.assemble((status, style), where), soft_wrap=True)
    if status != "FIXED":
        side_by_side(steps, console, store=store)


def outcomes(steps: Iterable[Step], console: Console) -> None:
    """Operations with the store's outcomes."""
    for step in steps:
        console.print(Text(step.operation, style="bold"), soft_wrap=True)
        _line(console, f"-> {short(step.got, WIDTH)}")


def _line(console: Console, line: str) -> None:
    console.print(Text(INDENT + line), soft_wrap=True)
