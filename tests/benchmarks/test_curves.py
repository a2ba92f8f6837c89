"""Curves of runs at several settings, and what is read off them at equal recall."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from memassay.benchmarks import bundle, summary
from memassay.benchmarks.artefact import Engine, Manifest, Row
from memassay.benchmarks.command_curves import told
from memassay.benchmarks.equal_recall import curves
from memassay.harness.cli import app
from memassay.harness.exits import Exit
from memassay.spec.types import IndexConfig
from typer.testing import CliRunner

RECORDED = Path(__file__).parent / "recorded" / "libsql.json"


def run(m: int, recall: float, throughput: float, p50: float, *, workload: str = "vector", seed: int = 3) -> Manifest:
    """A run of `acme` at one setting: its peak, and half of it."""
    recorded = bundle.read(RECORDED)
    (example, *_) = summary.rows(recorded.blocks[:1], {}, {}, (50.0,))

    def row(**fields: object) -> Row:
        given = {"contender": "acme", "workload": workload, "recall": recall, "throughput": throughput, **fields}
        return msgspec.structs.replace(example, **given)

    rows = [
        row(phase="closed"),
        row(phase="open", share=0.5, response_ms={"50": p50}, saturated=False),
        row(phase="open", share=0.9, response_ms={"50": 1e6}, saturated=True),
    ]
    engine = Engine(name="acme", kind="store", index=IndexConfig(type="hnsw", m=m))
    return msgspec.structs.replace(recorded.manifest, rows=rows, engines=[engine], seed=seed)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Three runs in a folder."""
    recorded = bundle.read(RECORDED)
    for m, recall, throughput in ((4, 0.8, 4_000.0), (8, 0.85, 100.0), (16, 1.0, 1_000.0)):
        manifest = run(m, recall, throughput, 1e3 / throughput)
        bundle.write(tmp_path / f"{m}.json", manifest, recorded.blocks[m : m + 1])
    return tmp_path


def test_every_run_is_a_point() -> None:
    found = curves([run(4, 0.8, 4_000, 0.25), run(16, 1.0, 1_000, 1.0)])
    assert [(curve.workload, curve.contender, curve.unit) for curve in found] == [
        ("vector", "acme", "ops/s at the peak"),
        ("vector", "acme", "p50 ms at 50%"),
    ]
    assert [point.setting for point in found[0].points] == ["hnsw, m 4", "hnsw, m 16"]
    assert found[0].at(0.9).value == pytest.approx(2_000)
    assert found[1].at(0.9).value == pytest.approx(0.5)


def test_a_listing_is_no_search() -> None:
    assert curves([run(4, 1.0, 4_000, 0.25, workload="newest")]) == []


def test_the_whole_curve_is_told_and_what_is_beaten_is_in_brackets() -> None:
    found = curves([run(4, 0.8, 4_000, 0.25), run(8, 0.85, 100, 10), run(16, 1.0, 1_000, 1.0)])
    assert told(found[0]) == (
        "acme, vector, ops/s at the peak: 0.800 4,000 (hnsw, m 4); [0.850 100 (hnsw, m 8)]; 1.000 1,000 (hnsw, m 16)"
    )


def test_the_command_shows_figures_at_equal_recall(files: Path) -> None:
    ran = CliRunner().invoke(app, ["curves", str(files)])
    assert ran.exit_code == Exit.CONFORMS, ran.output
    (peak,) = [line for line in ran.output.splitlines() if line.startswith("vector") and "ops/s" in line]
    assert peak.split()[-3:] == ["2,000", "1,414", "1,072"]


def test_a_curve_that_begins_above_a_recall_bounds_it(files: Path) -> None:
    ran = CliRunner().invoke(app, ["curves", str(files / "16.json")])
    assert "≥ 1,000" in ran.output
    assert "≤ 1" in ran.output
    low = CliRunner().invoke(app, ["curves", str(files / "8.json")])
    assert low.output.count("not reached") == 6


def test_runs_of_other_questions_have_no_common_curve(files: Path) -> None:
    other = run(32, 1.0, 1, 1, seed=4)
    bundle.write(files / "other.json", other, bundle.read(RECORDED).blocks[:1])
    ran = CliRunner().invoke(app, ["curves", str(files)])
    assert ran.exit_code == Exit.USAGE
    assert "the seed is" in ran.output


def test_runs_without_a_search_are_refused() -> None:
    ran = CliRunner().invoke(app, ["curves", str(RECORDED)])
    assert ran.exit_code == Exit.USAGE
    assert "no search that was measured" in ran.output
