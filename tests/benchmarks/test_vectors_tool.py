"""The vector benchmark on tiny sizes: its data, its truth, what it counts and what it shows. Time is never asserted."""

from __future__ import annotations

import io
import itertools
import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import typer
from memassay.backends.baselines import open_baseline
from memassay.benchmarks import vectors
from memassay.benchmarks.commands import Ways
from memassay.benchmarks.filters import NO_FILTER
from memassay.benchmarks.mixture import make
from memassay.benchmarks.nearest import FILTERS, WARM_UP, Cell, Mode, Quality, fill, truths
from memassay.benchmarks.truth import Truth
from memassay.benchmarks.vectors import Report, heading, run, table
from memassay.benchmarks.vectorset import VectorSet
from memassay.harness.arguments import targets_of
from memassay.spec.reference_index import ModelIndex
from rich.console import Console
from typer.testing import CliRunner

ROWS, DIMENSION, QUERIES = 600, 8, 5


@pytest.fixture(scope="module")
def data() -> VectorSet:
    return make(ROWS, DIMENSION, QUERIES + WARM_UP, 7)


@pytest.fixture(scope="module")
def report() -> Report:
    return run(Ways(targets_of(["reference", "libsql", "faiss"])), rows=ROWS, dimension=DIMENSION, queries=QUERIES)


# Truth, and what is counted


def test_truth_is_what_the_model_answers(data: VectorSet) -> None:
    index = ModelIndex()
    fill(index, data, "flat")
    number = {id: row for row, id in enumerate(data.ids())}
    expected = truths(data, 10)
    for filter in FILTERS:
        quality = Quality()
        for query, truth in zip(data.asked(filter)[WARM_UP:], expected[filter.label], strict=True):
            hits = index.query_vectors("benchmark", query.tolist(), filter=filter.condition)
            quality.count(truth, [number[hit.id] for hit in hits])
        assert (quality.recall, quality.worst, quality.short, quality.wrong) == (1.0, 1.0, 0, 0)


TRUTH = Truth(2, 0.5, np.arange(3), np.array([0.9, 0.5, 0.5]), np.array([True, True, True, True, False]))


@pytest.mark.parametrize(
    ("found", "recall", "short", "wrong"),
    [
        ([0, 1], 1.0, 0, 0),
        ([0, 2], 1.0, 0, 0),  # a tie
        ([0, 3], 0.5, 0, 0),
        ([0], 0.5, 1, 0),
        ([], 0.0, 1, 0),
        ([0, 0], 0.5, 0, 1),  # one row twice is one row
        ([0, 4], 0.5, 0, 1),  # a row that the filter excludes
    ],
)
def test_answers_are_counted(found: list[int], recall: float, short: int, wrong: int) -> None:
    quality = Quality()
    quality.count(TRUTH, found)
    assert (quality.recall, quality.worst, quality.short, quality.wrong) == (recall, recall, short, wrong)


# A run


def test_every_index_type_is_asked_in_its_modes(report: Report) -> None:
    asked = [(cell.backend, cell.index, cell.mode, cell.filter) for cell in report.cells]
    kinds = [("reference", kind) for kind in ("flat", "hnsw", "ivfflat")] + [("libsql", "flat")]
    kinds += [("faiss", kind) for kind in ("flat", "hnsw", "ivfflat")]
    assert asked == [
        (backend, kind, mode, filter.label)
        for backend, kind in kinds
        for mode in (("exact",) if kind == "flat" else ("exact", "ann"))
        for filter in FILTERS
    ]


def test_answers_are_neither_short_nor_wrong(report: Report) -> None:
    assert [cell for cell in report.cells if cell.fault] == []
    assert {cell.quality.recall for cell in report.cells if cell.mode == "exact"} == {1.0}


def test_the_baseline_answers_as_well(report: Report) -> None:
    with_one = [cell for cell in report.cells if cell.backend != "reference"]
    assert {cell.baseline_quality.recall for cell in with_one if cell.baseline_quality} == {1.0}
    assert all(len(cell.nanoseconds) == len(cell.baseline_nanoseconds) == QUERIES for cell in with_one)


def test_a_backend_without_a_baseline_is_measured_alone(report: Report) -> None:
    alone = [cell for cell in report.cells if cell.backend == "reference"]
    assert {(cell.baseline_quality, cell.baseline_median, cell.within) for cell in alone} == {(None, None, None)}
    assert open_baseline("reference", "", "n", "i") is None
    assert open_baseline("libsql+faiss", "", "n", "i") is None


# What is shown


def cell(nanoseconds: int, baseline: int, *, short: int = 0, mode: Mode = "ann", right: int = 10) -> Cell:
    quality = Quality(queries=1, due=10, right=right, worst=right / 10, short=short)
    return Cell(
        backend="b",
        index="hnsw",
        mode=mode,
        filter="1 %",
        quality=quality,
        baseline_quality=Quality(1, 10, 10),
        discarded=WARM_UP,
        steady=False,
        nanoseconds=[nanoseconds] * 3,
        baseline_nanoseconds=[baseline] * 3,
    )


def shown(report: Report) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(table(report))
    return console.export_text()


def of(report: Report, *cells: Cell) -> Report:
    return msgspec.structs.replace(report, cells=[*cells])


def test_a_short_answer_has_no_latency(report: Report) -> None:
    text = shown(of(report, cell(7_770_000, 5_000_000, short=3)))
    assert "3 short" in text
    assert "7.77" not in text


def test_an_exact_answer_that_misses_a_row_has_no_latency(report: Report) -> None:
    assert "not exact" in shown(of(report, cell(7_770_000, 5_000_000, mode="exact", right=9)))
    assert "7.77" in shown(of(report, cell(7_770_000, 5_000_000, mode="ann", right=9)))


def test_the_heading_says_what_was_measured_on_what(report: Report) -> None:
    text = "\n".join(heading(report))
    assert "600 × 8" in text
    assert "closed loop" in text
    assert "load" in text
    assert all(each.engine in text for each in report.loaded)


def app() -> typer.Typer:
    application = typer.Typer()
    application.command()(vectors.main)
    return application


def test_the_command_prints_a_table_and_writes_raw_times(tmp_path: Path) -> None:
    path = tmp_path / "vectors.json"
    sizes = ["--rows", "200", "--dimension", "4", "--queries", "3"]
    ran = CliRunner().invoke(app(), ["libsql", "reference", "--index", "flat", *sizes, "--json", str(path)])
    assert ran.exit_code == 0, ran.output
    written = json.loads(path.read_text())
    assert [len(each["nanoseconds"]) for each in written["cells"]] == [3] * 2 * len(FILTERS)
    assert {each["index"] for each in written["cells"]} == {"flat"}
    for backend, filter in itertools.product(("libsql", "reference"), FILTERS):
        assert any(line.split()[:2] == [backend, "flat"] and filter.label in line for line in ran.output.splitlines())


def test_an_unknown_backend_is_a_usage_error() -> None:
    ran = CliRunner().invoke(app(), ["nothing"])
    assert ran.exit_code == 2
    assert "there is no backend" in ran.output


def test_an_index_that_loses_rows_is_not_measured(data: VectorSet) -> None:
    class Losing(ModelIndex):
        def upsert_vectors(self, name: str, vectors: Any) -> int:
            return super().upsert_vectors(name, vectors[1:])

    with pytest.raises(RuntimeError, match="599 of 600 vectors"):
        fill(Losing(), data, "flat")


def test_a_filter_that_is_none_leaves_all(data: VectorSet) -> None:
    assert NO_FILTER.condition is None
    assert data.mask(NO_FILTER).all()
