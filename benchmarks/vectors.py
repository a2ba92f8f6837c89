"""Filtered nearest neighbours: what each index finds, and its latency beside a hand-written client's of the engine.

`python -m memassay.benchmarks.vectors BACKEND…`. One client asks one query at a time (a closed loop: latencies are of
an idle engine). Adapter and baseline take turns query by query, each first every other time, over the same rows of the
same index, so that whatever else the machine does falls on both; other queries go before, to warm up. Truth is a scan
in float64. Nothing here passes or fails: what is short or wrong is shown in place of its time.
"""

from __future__ import annotations

import math
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from ..backends.baselines import Baseline, open_baseline
from ..backends.provision import EngineUnavailable
from ..backends.registry import UnknownBackend, find
from ..harness import engine as engines
from ..harness.exits import UsageProblem
from ..spec.protocols import Runtime, VectorIndex
from ..spec.types import IndexConfig, NewVector
from .filters import NO_FILTER, Filter
from .mixture import make
from .vectorset import VectorSet

Mode = Literal["exact", "ann"]

FILTERS = (
    NO_FILTER,
    *(Filter("independent", permille) for permille in (100, 10, 1)),
    *(Filter("against", permille) for permille in (100, 10, 1)),
)

INDEX = "benchmark"
BATCH = 1_000
WARM_UP = 10
TIE = 1e-9
"""Scores as near as this are equal: any of their rows will do."""

WIDTH = 120
"""Of the table, where no terminal says how wide it is."""

RATIO, DIFFERENCE = 1.25, 0.2
"""What an adapter should not exceed, whichever is more: a ratio to the baseline, milliseconds beyond it."""


class Truth(msgspec.Struct, frozen=True):
    """What a query should find: how many rows, the least score of one that belongs, and every row's score."""

    due: int
    least: float
    scores: NDArray[np.float64]


class Quality(msgspec.Struct):
    """Answers counted. recall: rows that belong, once each, of the rows due."""

    queries: int = 0
    due: int = 0
    right: int = 0
    worst: float = 1.0
    short: int = 0
    wrong: int = 0

    @property
    def recall(self) -> float:
        """1.0 where nothing was due."""
        return self.right / self.due if self.due else 1.0

    def count(self, truth: Truth, found: Sequence[int]) -> None:
        """Add an answer, by the numbers of its rows. Short: fewer rows than due. Wrong: excluded, or twice."""
        distinct = {*found}
        reached: list[float] = truth.scores[[*distinct]].tolist()
        right = sum(score >= truth.least - TIE for score in reached)
        self.queries += 1
        self.due += truth.due
        self.right += right
        self.worst = min(self.worst, right / truth.due)
        self.short += len(found) < truth.due
        self.wrong += len(distinct) < len(found) or -math.inf in reached


class Cell(msgspec.Struct):
    """One kind of query on one index: how good the answers are, and every time; of a baseline too."""

    backend: str
    index: str
    mode: Mode
    filter: str
    quality: Quality
    baseline_quality: Quality | None
    nanoseconds: list[int]
    baseline_nanoseconds: list[int]

    @property
    def fault(self) -> str | None:
        """Why this has no latency to show."""
        if self.quality.short:
            return f"{self.quality.short} short"
        if self.quality.wrong:
            return f"{self.quality.wrong} wrong"
        if self.mode == "exact" and self.quality.right < self.quality.due:
            return "not exact"
        return None

    @property
    def median(self) -> float:
        """Milliseconds."""
        return statistics.median(self.nanoseconds) / 1e6

    @property
    def baseline_median(self) -> float | None:
        """Milliseconds."""
        return statistics.median(self.baseline_nanoseconds) / 1e6 if self.baseline_nanoseconds else None

    @property
    def within(self) -> bool | None:
        """Whether the adapter costs no more than it should; None without a baseline."""
        base = self.baseline_median
        return None if base is None else self.median <= max(RATIO * base, base + DIFFERENCE)


class Loaded(msgspec.Struct):
    """An index, and how it came about: its configuration as the engine tells it, seconds to store and index all."""

    backend: str
    engine: str
    index: str
    config: IndexConfig
    rows: int
    seconds: float


class Report(msgspec.Struct):
    """All of a run, with what is needed to read it and to run it again."""

    started: str
    machine: str
    cores: int
    load_before: tuple[float, float, float]
    load_after: tuple[float, float, float]
    versions: dict[str, str]
    seed: int
    rows: int
    dimension: int
    queries: int
    warm_up: int
    top_k: int
    data: str
    loaded: list[Loaded]
    cells: list[Cell]


# Truth


def truths(data: VectorSet, top_k: int) -> dict[str, list[Truth]]:
    """What the queries that count should find, by a filter's label and in their order: a scan in float64."""
    rows = _unit(data.rows)
    exact = {asked.tobytes(): _unit(asked[WARM_UP:]) @ rows.T for asked in (data.queries, data.directed)}
    found: dict[str, list[Truth]] = {}
    for filter in FILTERS:
        mask = data.mask(filter)
        due = min(top_k, int(mask.sum()))
        matching = np.where(mask, exact[data.asked(filter).tobytes()], -np.inf)
        least: list[float] = np.partition(matching, -due, axis=1)[:, -due].tolist()
        found[filter.label] = [Truth(due, score, reached) for score, reached in zip(least, matching, strict=True)]
    return found


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    exact = vectors.astype(np.float64)
    return exact / np.linalg.norm(exact, axis=1, keepdims=True)


# Measuring


def ask_in_turn(
    queries: NDArray[np.float32],
    adapter: Callable[[NDArray[np.float32]], Sequence[str]],
    baseline: Callable[[NDArray[np.float32]], Sequence[str]] | None,
    warm_up: int = WARM_UP,
) -> tuple[list[tuple[Sequence[str], int]], list[tuple[Sequence[str], int]]]:
    """The answers and nanoseconds of either, query by query after those to warm up; who goes first changes."""
    sides: list[tuple[Callable[[NDArray[np.float32]], Sequence[str]], list[tuple[Sequence[str], int]]]]
    sides = [(side, []) for side in (adapter, baseline) if side is not None]
    for query in queries[:warm_up]:
        for side, _ in sides:
            side(query)
    for turn, query in enumerate(queries[warm_up:]):
        for side, answers in sides if turn % 2 else sides[::-1]:
            began = time.perf_counter_ns()
            found = side(query)
            answers.append((found, time.perf_counter_ns() - began))
    return sides[0][1], sides[1][1] if len(sides) > 1 else []


def measure(
    loaded: Loaded,
    data: VectorSet,
    index: VectorIndex,
    baseline: Baseline | None,
    top_k: int,
    truth: dict[str, list[Truth]],
) -> Iterator[Cell]:
    """Every filter in every mode on one index."""
    number = {id: row for row, id in enumerate(data.ids())}
    modes: tuple[Mode, ...] = ("exact",) if loaded.config.type == "flat" else ("exact", "ann")
    for mode in modes:
        for filter in FILTERS:
            where, exact = filter.condition, mode == "exact"

            def adapter(
                query: NDArray[np.float32], where: dict[str, Any] | None = where, exact: bool = exact
            ) -> list[str]:
                vector: Any = query
                hits = index.query_vectors(INDEX, vector, top_k=top_k, filter=where, exact=exact)
                return [hit.id for hit in hits]

            def by_hand(
                query: NDArray[np.float32], where: dict[str, Any] | None = where, exact: bool = exact
            ) -> list[str]:
                assert baseline is not None
                return [hit[0] for hit in baseline.query(query, top_k, where, exact=exact)]

            answers, others = ask_in_turn(data.asked(filter), adapter, by_hand if baseline is not None else None)
            yield Cell(
                backend=loaded.backend,
                index=loaded.index,
                mode=mode,
                filter=filter.label,
                quality=_judge(truth[filter.label], answers, number),
                baseline_quality=_judge(truth[filter.label], others, number) if others else None,
                nanoseconds=[took for _, took in answers],
                baseline_nanoseconds=[took for _, took in others],
            )


def _judge(truth: Sequence[Truth], answers: Sequence[tuple[Sequence[str], int]], number: dict[str, int]) -> Quality:
    quality = Quality()
    for expected, (ids, _) in zip(truth, answers, strict=True):
        quality.count(expected, [number[id] for id in ids])
    return quality


def fill(index: VectorIndex, data: VectorSet, kind: str) -> float:
    """Store and index all rows; the seconds that took. The engine has to count as many as were given."""
    ids = data.ids()
    began = time.perf_counter()
    index.create_index(INDEX, dimension=data.rows.shape[1], config=IndexConfig(type=kind))
    for start in range(0, len(ids), BATCH):
        numbers = range(start, min(start + BATCH, len(ids)))
        vectors: list[Any] = [*data.rows[start : start + BATCH]]
        given = zip(numbers, vectors, strict=True)
        index.upsert_vectors(INDEX, [NewVector(ids[row], vector, data.metadata(row)) for row, vector in given])
    counted = index.describe_index(INDEX).count
    if counted != len(ids):
        raise RuntimeError(f"{counted} of {len(ids)} vectors are there")
    return time.perf_counter() - began


def run(
    backends: Sequence[str],
    *,
    kinds: Sequence[str] = (),
    rows: int = 20_000,
    dimension: int = 384,
    queries: int = 100,
    top_k: int = 10,
    seed: int = 0,
    told: Callable[[str], None] = lambda line: None,
) -> Report:
    """Measure every index type of every backend; `kinds` leaves some.

    Raises UnknownBackend, EngineUnavailable, UsageProblem.
    """
    found = [(name, find(name)) for name in backends]
    started, before = datetime.now(UTC), os.getloadavg()
    data = make(rows, dimension, queries + WARM_UP, seed)
    truth = truths(data, top_k)
    loaded: list[Loaded] = []
    cells: list[Cell] = []
    for name, backend in found:
        with engines.start(name, backend, engines.AUTO, {}) as engine, engines.Namespaces(engine) as namespaces:
            url = engine.endpoint.url
            for kind in engine.capabilities.index_types:
                if kinds and kind not in kinds:
                    continue
                with namespaces.fresh() as namespace, closing(backend.open_index(url, namespace, Runtime())) as index:
                    told(f"{name} {kind}: storing {rows:,} × {dimension}")
                    seconds = fill(index, data, kind)
                    config = index.describe_index(INDEX).config
                    this = Loaded(name, engine.version, kind, config, rows, seconds)
                    loaded.append(this)
                    baseline = open_baseline(backend.name, url, namespace, INDEX)
                    told(f"{name} {kind}: asking")
                    try:
                        cells += measure(this, data, index, baseline, top_k, truth)
                    finally:
                        if baseline is not None:
                            baseline.close()
    return Report(
        started=started.isoformat(timespec="seconds"),
        machine=platform.platform(),
        cores=os.cpu_count() or 0,
        load_before=before,
        load_after=os.getloadavg(),
        versions={"memassay": version("memassay"), "python": sys.version.split()[0], "numpy": np.__version__},
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
        compared = ("–", "–", "–", "–", "–")
        if base is not None and hand is not None:
            compared = (
                f"{base:.2f}",
                f"{hand.recall:.3f}",
                f"{cell.median / base:.2f}",
                f"{cell.median - base:+.2f}",
                "yes" if cell.within else "no",
            )
        timed = (f"{cell.median:.2f}", *compared) if cell.fault is None else (cell.fault, *compared[:2], "–", "–", "–")
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
        f" {report.cores} cores, load {report.load_before[0]:.2f} before and {report.load_after[0]:.2f} after",
    ]
    for each in report.loaded:
        config = ", ".join(f"{key} {value}" for key, value in msgspec.to_builtins(each.config).items() if value)
        lines.append(f"{each.backend}: {each.engine}; {config}; stored and indexed in {each.seconds:.1f} s")
    return lines


def main(
    backends: Annotated[list[str], typer.Argument(metavar="BACKEND…", help="registered names, or module:Factory")],
    index: Annotated[list[str] | None, typer.Option(help="an index type, or several; all unless given")] = None,
    rows: Annotated[int, typer.Option(min=1)] = 20_000,
    dimension: Annotated[int, typer.Option(min=2)] = 384,
    queries: Annotated[int, typer.Option(min=1)] = 100,
    top_k: Annotated[int, typer.Option(min=1)] = 10,
    seed: Annotated[int, typer.Option()] = 0,
    json: Annotated[Path | None, typer.Option(help="write everything, raw times included, to this file")] = None,
) -> None:
    """Measure filtered vector search: recall, short answers, and latency beside a hand-written client."""
    out, progress = Console(), Console(stderr=True)
    if not out.is_terminal:
        out = Console(width=WIDTH)
    try:
        report = run(
            backends,
            kinds=index or (),
            rows=rows,
            dimension=dimension,
            queries=queries,
            top_k=top_k,
            seed=seed,
            told=lambda line: progress.print(line, style="dim"),
        )
    except (UnknownBackend, EngineUnavailable, UsageProblem) as error:
        progress.print(f"memassay: {error}", soft_wrap=True)
        raise typer.Exit(2) from None
    for line in heading(report):
        out.print(line, soft_wrap=True, highlight=False)
    out.print()
    out.print(table(report))
    if json is not None:
        json.write_bytes(msgspec.json.encode(report) + b"\n")


if __name__ == "__main__":
    typer.run(main)
