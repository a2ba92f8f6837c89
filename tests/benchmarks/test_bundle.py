"""Bundles of benchmarks: written and read back whole, refused when they are cut, foreign or of another version."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import numpy as np
import pytest
from memassay.benchmarks import bundle
from memassay.benchmarks.artefact import DataSet, Manifest, SampleFile
from memassay.benchmarks.profiles import PROFILES
from memassay.benchmarks.samples import OUTCOMES, Record, Samples, gather
from memassay.harness.cli import app
from memassay.harness.exits import UsageProblem
from typer.testing import CliRunner

MS = 1_000_000


def manifest() -> Manifest:
    profile = PROFILES["quick"]
    data = DataSet(
        spec="mixture:1k×8",
        hash="00",
        rows=1_000,
        dimension=8,
        metric="cosine",
        queries=10,
        memory="talk",
        memory_hash="00",
        threads=1,
        messages=10,
        embedder="none",
    )
    return Manifest(
        memassay="0",
        versions={},
        started="2026-01-01T00:00:00+00:00",
        seconds=1.0,
        seed=0,
        k=10,
        payload="ids",
        consistency="read your writes",
        profile=profile,
        data=data,
        machine={},
        backends=["a"],
        engines=[],
        gates=[],
        unsupported={},
        peaks=[],
        rows=[],
        rounds_done=1,
        finished={"a": 1},
        partial=False,
        notes=[],
        samples=SampleFile(name="", sha256="", samples=0),
    )


def block(workload: str = "newest", many: int = 3) -> Samples:
    records = [
        Record(n, n * MS, n * MS + 5, n * MS + 10, n * MS + 500, OUTCOMES[n % 4], due=10, right=9, returned=10)
        for n in range(many)
    ]
    return gather(
        records[::-1],
        contender="a",
        workload=workload,
        phase="open",
        concurrency=2,
        round=1,
        rate=1_000.0,
        share=0.5,
    )


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "run.json"
    bundle.write(path, manifest(), [block(), block("save", 5)])
    return path


def columns(samples: Samples) -> dict[str, object]:
    fields = {name: getattr(samples, name) for name in samples.__struct_fields__}
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in fields.items()}


def test_samples_come_back_as_they_were(written: Path) -> None:
    read = bundle.read(written)
    assert [columns(each) for each in read.blocks] == [columns(block()), columns(block("save", 5))]


def test_a_manifest_comes_back_as_it_was(written: Path) -> None:
    read = bundle.read(written).manifest
    assert msgspec.structs.replace(read, samples=manifest().samples) == manifest()
    assert (read.samples.name, read.samples.samples) == ("run.parquet", 8)


def test_samples_are_in_the_order_in_which_they_were_due() -> None:
    assert block().intended_ns.tolist() == [0, MS, 2 * MS]


def test_a_reader_of_parquet_sees_words_and_units(written: Path) -> None:
    parquet: Any = import_module("pyarrow.parquet")
    table = parquet.read_table(written.with_suffix(".parquet"))
    assert table.column_names[:3] == ["contender", "workload", "phase"]
    assert table["outcome"].to_pylist() == ["ok", "short", "wrong", "ok", "short", "wrong", "failed", "ok"]
    assert table["ended_ns"].to_pylist()[:2] == [500, MS + 500]


def test_samples_that_were_changed_are_refused(written: Path) -> None:
    beside = written.with_suffix(".parquet")
    data = bytearray(beside.read_bytes())
    data[len(data) // 2] ^= 1
    beside.write_bytes(data)
    with pytest.raises(UsageProblem, match="sha256"):
        bundle.read(written)


def test_samples_that_were_cut_are_refused(written: Path) -> None:
    beside = written.with_suffix(".parquet")
    beside.write_bytes(beside.read_bytes()[:-10])
    with pytest.raises(UsageProblem, match="sha256"):
        bundle.read(written)


def test_samples_that_are_missing_are_named(written: Path) -> None:
    written.with_suffix(".parquet").unlink()
    with pytest.raises(UsageProblem, match=r"run\.parquet cannot be read"):
        bundle.read(written)


def changed(path: Path, **fields: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def test_another_version_is_refused(written: Path) -> None:
    changed(written, version=2)
    with pytest.raises(UsageProblem, match="version 2"):
        bundle.read(written)


def test_another_format_is_refused(written: Path) -> None:
    changed(written, format="other")
    with pytest.raises(UsageProblem, match="no bundle"):
        bundle.read(written)


def test_a_manifest_that_was_cut_is_refused(written: Path) -> None:
    written.write_bytes(written.read_bytes()[:-20])
    with pytest.raises(UsageProblem, match="no bundle"):
        bundle.read(written)


def test_the_same_run_has_the_same_bytes(written: Path, tmp_path: Path) -> None:
    again = tmp_path / "again" / "run.json"
    bundle.write(again, manifest(), [block(), block("save", 5)])
    assert again.read_bytes() == written.read_bytes()
    assert again.with_suffix(".parquet").read_bytes() == written.with_suffix(".parquet").read_bytes()


def test_a_bundle_obeys_the_schema_that_the_command_prints(written: Path) -> None:
    printed = CliRunner().invoke(app, ["schema", "bench"])
    assert printed.exit_code == 0
    jsonschema.validate(json.loads(written.read_text()), json.loads(printed.output))


def test_latency_is_counted_from_when_an_operation_was_due() -> None:
    samples = block(many=1)
    assert samples.response_ns.tolist() == [500]
    assert samples.service_ns.tolist() == [490]


def test_an_operation_handed_out_over_a_millisecond_late_is_late() -> None:
    records = [Record(n, 0, late, late, late + 1, "ok") for n, late in enumerate((0, MS, MS + 1))]
    samples = gather(records, contender="a", workload="w", phase="open", concurrency=1, round=0)
    assert samples.late.tolist() == [False, False, True]


def test_what_was_never_sent_waited_and_was_not_served() -> None:
    records = [Record(0, 0, 1, 2, 3, "ok"), Record(1, 1, 1, 9 * MS, 9 * MS, "unsent")]
    samples = gather(records, contender="a", workload="w", phase="open", concurrency=1, round=0)
    assert samples.response_ns.tolist() == [3, 9 * MS - 1]
    assert samples.service_ns.tolist() == [1]
