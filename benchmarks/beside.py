"""What an adapter costs beside a hand-written client of its engine, for messages and for vectors, as one table.

`python -m memassay.benchmarks.beside BACKEND…`. Both sides send the same statements to the same engine, in turn
(turns.py), and what either answers is judged; what is wrong is shown in place of its time. Speed is no verdict: the
exit code says only whether all could be measured and was right.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Annotated

import msgspec
import typer
from rich.table import Table

from ..backends.provision import EngineUnavailable, interruption
from ..backends.provision.settings import HEAP
from ..harness import output
from ..harness.arguments import Backends, Heap, Homes, Images, Provision, Urls, complain
from ..harness.engine import AUTO, Engine, EngineFailed, Namespaces
from ..harness.exits import Exit
from ..harness.output import own_stdout
from . import workbench
from .commands import JsonFile, Ways, progress, run_as_command, show, ways
from .filters import NO_FILTER, Filter
from .messages import THREADS, Workload
from .mixture import make
from .nearest import WARM_UP, Cell, Mode, filled, truths
from .nearest import measure as measure_index
from .truth import Truth
from .turns import DIFFERENCE, RATIO, Setting, WarmUp
from .vectorset import VectorSet
from .workbench import Measured

TOP_K = 10
FILTERS = (NO_FILTER, Filter("independent", 100), Filter("independent", 10))
FAULT_CHARACTERS = 40
"""As much of an error stands in the table; the JSON has it whole."""


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """How much is stored and asked."""

    messages: int = 20_000
    rows: int = 20_000
    dimension: int = 384
    queries: int = 100
    seed: int = 0
    warm_up: WarmUp = WarmUp()


class Side(msgspec.Struct, frozen=True):
    """A backend as it was measured: its engine, and how that was had."""

    name: str
    engine: str
    detail: str
    rows: list[Measured]


class Report(msgspec.Struct, kw_only=True):
    """All of a run, with what is needed to read it and to run it again.

    failed: by backend, why its engine could not be had, or what it died of. interrupted: what is here is partial.
    """

    setting: Setting
    sizes: Sizes
    sides: list[Side]
    failed: dict[str, str]
    interrupted: bool = False

    @property
    def exit(self) -> Exit:
        """Of several that apply, the one that says least was measured comes first."""
        if self.interrupted:
            return Exit.INTERRUPTED
        if self.failed:
            return Exit.ENGINE
        faults = [row.fault or row.baseline_fault for side in self.sides for row in side.rows]
        return Exit.CLAUSES_FAIL if any(faults) else Exit.CONFORMS


class Vectors(msgspec.Struct, frozen=True):
    """What all indices are filled with and asked, and what they have to find."""

    data: VectorSet
    truth: dict[str, list[Truth]]

    @classmethod
    def of(cls, sizes: Sizes) -> Vectors:
        """Of these sizes."""
        data = make(sizes.rows, sizes.dimension, sizes.queries + WARM_UP, sizes.seed)
        return cls(data, truths(data, TOP_K))


# Measuring


def run(ways: Ways, sizes: Sizes, told: Callable[[str], None] = lambda line: None) -> Report:
    """Measure every backend in turn; an engine that cannot be had leaves the others, an interruption what was done."""
    report = Report(setting=Setting.now(), sizes=sizes, sides=[], failed={})
    vectors = Vectors.of(sizes)
    try:
        for target in ways.targets:
            try:
                with ways.start(target) as engine, Namespaces(engine) as namespaces:
                    side = Side(target.name, engine.version, engine.endpoint.detail, [])
                    report.sides.append(side)
                    _measure(side, engine, namespaces, sizes, vectors, told)
            except (EngineUnavailable, EngineFailed) as error:
                report.failed[target.name] = str(error)
    except KeyboardInterrupt:
        report.interrupted = True
    report.setting = report.setting.ended()
    return report


def _measure(
    side: Side, engine: Engine, namespaces: Namespaces, sizes: Sizes, vectors: Vectors, told: Callable[[str], None]
) -> None:
    """Add the rows of a backend, one by one: what is there when it is interrupted can be shown. EngineFailed."""
    able = engine.capabilities
    if able.storage:
        workload = Workload(sizes.messages, sizes.seed)
        with _told_of("messages", side, engine):
            for row in workbench.measure(side.name, engine, namespaces, workload, sizes.queries, sizes.warm_up, told):
                interruption.check()
                side.rows.append(row)
    if able.vectors:
        approximate = next((kind for kind in able.index_types if kind != "flat"), None)
        for kind in ("flat",) if approximate is None else ("flat", approximate):
            with _told_of(f"top {TOP_K}, {kind}", side, engine):
                _measure_index(side, kind, engine, namespaces, sizes, vectors, told)
    engine.check()  # else what it can no longer do passes for faults of the adapter


@contextmanager
def _told_of(operation: str, side: Side, engine: Engine) -> Generator[None]:
    """Make a row of what a store raises in the block, so that it is asked for the rest."""
    try:
        yield
    except EngineFailed:
        raise
    except Exception as error:  # noqa: BLE001 - a store may raise anything
        side.rows.append(Measured.failed(operation, engine.redactor.text(f"{type(error).__name__}: {error}")))


def _measure_index(
    side: Side,
    kind: str,
    engine: Engine,
    namespaces: Namespaces,
    sizes: Sizes,
    vectors: Vectors,
    told: Callable[[str], None],
) -> None:
    mode: Mode = "exact" if kind == "flat" else "ann"
    with filled(side.name, engine, namespaces, vectors.data, kind, told) as index:
        cells = measure_index(
            index, vectors.data, TOP_K, vectors.truth, modes=[mode], filters=FILTERS, warm_up=sizes.warm_up
        )
        side.rows.extend(_of_vectors(cell) for cell in cells)


def _of_vectors(cell: Cell) -> Measured:
    filtered = "" if cell.filter == NO_FILTER.label else f", filtered {cell.filter}"
    return Measured(
        operation=f"top {TOP_K}, {cell.index}{filtered}",
        fault=cell.fault,
        baseline_fault=None if cell.baseline_quality is None else cell.baseline_quality.fault,
        discarded=cell.discarded,
        steady=cell.steady,
        nanoseconds=cell.nanoseconds,
        baseline_nanoseconds=cell.baseline_nanoseconds,
    )


# Showing


def table(report: Report) -> Table:
    """A row for each operation of each backend; a time only where the answers deserve one."""
    shown = Table(box=None, pad_edge=False)
    for heading in ("backend", "operation"):
        shown.add_column(heading, no_wrap=True)
    for heading in ("p50 ms", "by hand", "ratio", "+ ms", "within", "warm-up"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for side in report.sides:
        for row in side.rows:
            base = row.baseline_median
            mine = row.fault or (f"{row.median:.2f}" if row.nanoseconds else "–")
            theirs = row.baseline_fault or ("–" if base is None else f"{base:.2f}")
            compared = ("–", "–", "–") if row.fault or row.baseline_fault else row.compared()
            warm = f"{row.discarded}{'' if row.steady else '+'}"
            shown.add_row(side.name, row.operation, mine[:FAULT_CHARACTERS], theirs[:FAULT_CHARACTERS], *compared, warm)
    return shown


def heading(report: Report) -> list[str]:
    """What the figures are of."""
    sizes = report.sizes
    return [
        f"messages: {THREADS} threads of {sizes.messages:,}; vectors: {sizes.rows:,} × {sizes.dimension}, cosine;"
        f" seed {sizes.seed}",
        f"{sizes.queries} turns each, one client, closed loop; {report.setting.noise}",
        "warm-up: turns discarded until times were steady; with + they were not by then",
        f"within: at most {RATIO} × the client by hand, or {DIFFERENCE} ms more",
        *(f"{side.name}: {side.engine}; {side.detail}" for side in report.sides),
    ]


def main(
    backends: Backends,
    messages: Annotated[int, typer.Option(min=1_000, help="How many in each of the threads.")] = 20_000,
    rows: Annotated[int, typer.Option(min=100, help="How many vectors in an index.")] = 20_000,
    dimension: Annotated[int, typer.Option(min=2)] = 384,
    queries: Annotated[int, typer.Option(min=1, help="How often each operation is timed.")] = 100,
    warm_up: Annotated[float, typer.Option(min=0, help="Seconds that one operation may take to become steady.")] = 20.0,
    seed: Annotated[int, typer.Option()] = 0,
    provision: Provision = AUTO,
    url: Urls = None,
    image: Images = None,
    home: Homes = None,
    heap: Heap = HEAP,
    json_file: JsonFile = None,
) -> None:
    """Measure what adapters cost beside hand-written clients of their engines: messages and vectors.

    \b
    Exit codes:
      0  all was measured
      1  an answer was wrong, or an operation failed
      2  the command line is wrong, or a file cannot be written
      3  an engine could not be started, or died
      130  interrupted; what is shown is partial
    """
    with ways(backends, provision, url, image, home, heap, json_file) as chosen:
        sizes = Sizes(
            messages=messages,
            rows=rows,
            dimension=dimension,
            queries=queries,
            seed=seed,
            warm_up=WarmUp(seconds=warm_up),
        )
        with own_stdout() as stdout:
            report = run(chosen, sizes, progress)
            show(stdout, heading(report), table(report))
        for name, why in report.failed.items():
            complain(f"{name}: {why}")
        if json_file is not None:
            output.write(json_file, msgspec.json.encode(report) + b"\n")
        raise typer.Exit(report.exit)


if __name__ == "__main__":
    run_as_command(main)
