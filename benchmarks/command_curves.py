"""`memassay curves`: benchmarks of one engine at several settings, or of several engines, compared at equal recall."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.table import Table
from rich.text import Text

from ..harness.arguments import user_errors
from ..harness.exits import UsageProblem
from ..spec.types import IndexConfig
from .bundle import Manifest, Row
from .commands import wide
from .compare import read, refuse_other_machines, refuse_unlike
from .equal_recall import TARGETS, AtRecall, Point, at_recall, frontier
from .workloads import WORKLOADS

HELP = """Compare engines at equal recall: what each gives at 0.90, 0.95 and 0.99, from runs at several settings.

\b
Examples:
  memassay curves runs/
  memassay curves effort-16.json effort-64.json effort-256.json

\b
Each run of `bench --effort` or `--index` is one point of a curve; a run at one setting alone says nothing about another
recall. The whole curve is shown under the figures read off it.
"""

SEARCHES = {"vectors", "semantic_recall"}
"""Needs of workloads whose answers may be good in part."""

WIDTH = 180


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """A contender's settings in one search: operations a second at the peak, or milliseconds (p50) at a share of it."""

    workload: str
    contender: str
    share: float
    points: tuple[Point, ...]

    @property
    def yields(self) -> bool:
        """Whether more is better."""
        return not self.share

    @property
    def unit(self) -> str:
        """Of its values."""
        return "ops/s at the peak" if self.yields else f"p50 ms at {self.share:.0%}"

    def at(self, target: float) -> AtRecall:
        """See equal_recall.at_recall."""
        return at_recall(self.points, target, higher_is_better=self.yields)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="curves", help=HELP)(command)


def command(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="A file of `bench --json`, or a folder of them.")],
    across_machines: Annotated[
        bool, typer.Option("--across-machines", help="Put also runs of different machines together.")
    ] = False,
) -> None:
    """See the help above."""
    with user_errors():
        manifests = [given.manifest for path in runs for given in read(path)]
        refuse_unlike(manifests)
        if not across_machines and (distrust := refuse_other_machines(manifests)):
            raise UsageProblem(distrust, hint="measure again on a machine with nothing else to do")
        found = curves(manifests)
        if not found:
            raise UsageProblem("these runs have no search that was measured", hint="bench a workload such as vector")
        out = wide(WIDTH)
        out.print(table(found))
        out.print()
        for curve in found:
            out.print(Text(told(curve)), soft_wrap=True)


def curves(manifests: Sequence[Manifest]) -> list[Curve]:
    """One for each search, contender and load, by search; every run is a point."""
    points: dict[tuple[str, float, str], list[Point]] = {}
    for manifest in manifests:
        settings = {engine.name: _setting(engine.index, manifest.profile.effort) for engine in manifest.engines}
        for row in manifest.rows:
            value = _value(row)
            if row.recall is not None and value and _searches(row.workload):
                point = Point(setting=settings.get(row.contender, ""), recall=row.recall, value=value)
                points.setdefault((row.workload, row.share, row.contender), []).append(point)
    return [
        Curve(workload=workload, share=share, contender=contender, points=tuple(own))
        for (workload, share, contender), own in sorted(points.items(), key=lambda pair: pair[0])
    ]


def _searches(workload: str) -> bool:
    known = WORKLOADS.get(workload)
    return known is not None and known.reads and not SEARCHES.isdisjoint(known.needs)


def _value(row: Row) -> float | None:
    """None for what is no point: a backlog, the first operations, a rate that was asked for."""
    if row.phase == "closed":
        return row.throughput
    return row.response_ms.get("50") if row.phase == "open" and row.share and not row.saturated else None


def _setting(index: IndexConfig | None, effort: int | None) -> str:
    parts: dict[str, object] = msgspec.to_builtins(index) if index is not None else {}
    if index is not None and index.type != "flat":
        parts["effort"] = effort
    return ", ".join(str(value) if name == "type" else f"{name} {value}" for name, value in parts.items() if value)


def table(found: Sequence[Curve]) -> Table:
    """A line a curve: what it gives at each recall."""
    shown = Table(box=None, pad_edge=False)
    for name in ("search", "unit", "store"):
        shown.add_column(name)
    for target in TARGETS:
        shown.add_column(f"recall {target:.2f}", justify="right")
    for curve in found:
        cells = (_cell(curve, curve.at(target)) for target in TARGETS)
        shown.add_row(curve.workload, curve.unit, curve.contender, *cells)
    return shown


def told(curve: Curve) -> str:
    """The whole curve in a line, by recall; settings that another beats are in brackets."""
    kept = frontier(curve.points, higher_is_better=curve.yields)
    return f"{curve.contender}, {curve.workload}, {curve.unit}: " + "; ".join(_points(curve, kept))


def _points(curve: Curve, kept: Sequence[Point]) -> Iterator[str]:
    for point in sorted(curve.points, key=lambda point: (point.recall, point.value)):
        said = f"{point.recall:.3f} {_number(curve, point.value)} ({point.setting or 'default'})"
        yield said if point in kept else f"[{said}]"


def _cell(curve: Curve, found: AtRecall) -> str:
    if found.value is None:
        return found.kind
    sign = "" if found.kind == "interpolated" else "≥ " if curve.yields else "≤ "
    return sign + _number(curve, found.value)


def _number(curve: Curve, value: float) -> str:
    return f"{value:,.0f}" if curve.yields else f"{value:.3g}"
