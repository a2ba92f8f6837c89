"""Filtered nearest neighbours: what each index finds, and its latency beside a hand-written client's of the engine.

`python -m memassay.benchmarks.vectors BACKEND…`. Adapter and baseline take turns (turns.py) over the same rows of the
same index. Truth is exact (truth.py). Nothing here passes or fails: what is short or wrong is shown in place of its
time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec
import typer
from rich.table import Table

from ..backends.provision.settings import HEAP
from ..harness import output
from ..harness.arguments import Backends, Heap, Homes, Images, Provision, Urls
from ..harness.engine import AUTO, Namespaces
from ..harness.output import own_stdout
from .commands import JsonFile, Ways, progress, run_as_command, show, ways
from .mixture import make
from .nearest import WARM_UP, Cell, Loaded, Mode, filled, measure, truths
from .turns import Setting


class Report(msgspec.Struct):
    """All of a run, with what is needed to read it and to run it again."""

    setting: Setting
    seed: int
    rows: int
    dimension: int
    queries: int
    warm_up: int
    top_k: int
    data: str
    loaded: list[Loaded]
    cells: list[Cell]


def run(
    ways: Ways,
    *,
    kinds: Sequence[str] = (),
    rows: int = 20_000,
    dimension: int = 384,
    queries: int = 100,
    top_k: int = 10,
    seed: int = 0,
    told: Callable[[str], None] = lambda line: None,
) -> Report:
    """Measure every index type of every backend; `kinds` leaves some. Raises EngineUnavailable, UsageProblem."""
    setting = Setting.now()
    data = make(rows, dimension, queries + WARM_UP, seed)
    truth = truths(data, top_k)
    loaded: list[Loaded] = []
    cells: list[Cell] = []
    for target in ways.targets:
        with ways.start(target) as engine, Namespaces(engine) as namespaces:
            for kind in engine.capabilities.index_types:
                if kinds and kind not in kinds:
                    continue
                modes: tuple[Mode, ...] = ("exact",) if kind == "flat" else ("exact", "ann")
                with filled(target.name, engine, namespaces, data, kind, told) as index:
                    loaded.append(index.loaded)
                    cells += measure(index, data, top_k, truth, modes=modes)
    return Report(
        setting=setting.ended(),
        seed=seed,
        rows=rows,
        dimension=dimension,
        queries=queries,
        warm_up=WARM_UP,
        top_k=top_k,
        data=data.hash(),
        loaded=loaded,
        cells=cells,
    )


# Showing


def table(report: Report) -> Table:
    """A row for each kind of query; a time only where the answers deserve one."""
    shown = Table(box=None, pad_edge=False)
    for heading in ("backend", "index", "mode", "filter"):
        shown.add_column(heading, no_wrap=True)
    for heading in ("recall", "worst", "p50 ms", "by hand", "recall", "ratio", "+ ms", "within"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for cell in report.cells:
        base, hand = cell.baseline_median, cell.baseline_quality
        by_hand = ("–", "–") if base is None or hand is None else (f"{base:.2f}", f"{hand.recall:.3f}")
        timed = (cell.fault, *by_hand, "–", "–", "–")
        if cell.fault is None:
            timed = (f"{cell.median:.2f}", *by_hand, *cell.compared())
        quality = cell.quality
        shown.add_row(
            cell.backend, cell.index, cell.mode, cell.filter, f"{quality.recall:.3f}", f"{quality.worst:.1f}", *timed
        )
    return shown


def heading(report: Report) -> list[str]:
    """What the figures are of."""
    lines = [
        f"{report.rows:,} × {report.dimension}, cosine, k = {report.top_k}; seed {report.seed}, {report.data[:12]}",
        f"{report.queries} queries each, one client, closed loop, after {report.warm_up} others to warm up;"
        f" {report.setting.noise}",
    ]
    return lines + [f"{each.backend}: {each.engine}; {each.built}" for each in report.loaded]


def main(
    backends: Backends,
    index: Annotated[list[str] | None, typer.Option(help="An index type, or several; all unless given.")] = None,
    rows: Annotated[int, typer.Option(min=1)] = 20_000,
    dimension: Annotated[int, typer.Option(min=2)] = 384,
    queries: Annotated[int, typer.Option(min=1)] = 100,
    top_k: Annotated[int, typer.Option(min=1)] = 10,
    seed: Annotated[int, typer.Option()] = 0,
    provision: Provision = AUTO,
    url: Urls = None,
    image: Images = None,
    home: Homes = None,
    heap: Heap = HEAP,
    json_file: JsonFile = None,
) -> None:
    """Measure filtered vector search: recall, short answers, and latency beside a hand-written client."""
    with ways(backends, provision, url, image, home, heap, json_file) as chosen:
        with own_stdout() as stdout:
            report = run(
                chosen,
                kinds=index or (),
                rows=rows,
                dimension=dimension,
                queries=queries,
                top_k=top_k,
                seed=seed,
                told=progress,
            )
            show(stdout, heading(report), table(report))
        if json_file is not None:
            output.write(json_file, msgspec.json.encode(report) + b"\n")


if __name__ == "__main__":
    run_as_command(main)
