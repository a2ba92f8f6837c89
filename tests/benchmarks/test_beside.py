"""The command that sets adapters beside hand-written clients, on small sizes. Time is never asserted."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer
from memassay.backends.baselines import open_messages
from memassay.benchmarks import beside, workbench
from memassay.benchmarks.beside import Report, Sizes, heading, run, table
from memassay.benchmarks.commands import Ways
from memassay.benchmarks.turns import WarmUp
from memassay.benchmarks.workbench import READS, SAVES, Measured
from memassay.harness.arguments import targets_of
from memassay.harness.exits import Exit
from rich.console import Console
from typer.testing import CliRunner

QUERIES = 3
SIZES = Sizes(messages=1_000, rows=400, dimension=8, queries=QUERIES, warm_up=WarmUp(turns=3))
MESSAGES = [*READS, *SAVES]
FLAT = ["top 10, flat", "top 10, flat, filtered 10 %", "top 10, flat, filtered 1 %"]
HNSW = [each.replace("flat", "hnsw") for each in FLAT]


@pytest.fixture(scope="module")
def report() -> Report:
    return run(Ways(targets_of(["reference", "libsql", "faiss"])), SIZES)


def of(report: Report, backend: str) -> list[Measured]:
    (rows,) = (side.rows for side in report.sides if side.name == backend)
    return rows


def shown(report: Report) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(table(report))
    return console.export_text()


# A run


def test_every_operation_is_measured(report: Report) -> None:
    assert [row.operation for row in of(report, "libsql")] == [*MESSAGES, *FLAT]
    assert [row.operation for row in of(report, "faiss")] == [*MESSAGES, *FLAT, *HNSW]


def test_all_answers_are_right(report: Report) -> None:
    assert [(side.name, row) for side in report.sides for row in side.rows if row.fault or row.baseline_fault] == []
    assert report.exit == Exit.CONFORMS


def test_both_sides_are_timed(report: Report) -> None:
    rows = [row for backend in ("libsql", "faiss") for row in of(report, backend)]
    assert {(len(row.nanoseconds), len(row.baseline_nanoseconds)) for row in rows} == {(QUERIES, QUERIES)}


def test_what_has_no_client_by_hand_is_measured_alone(report: Report) -> None:
    assert {(len(row.nanoseconds), row.within) for row in of(report, "reference")} == {(QUERIES, None)}
    assert open_messages("reference", "", "n") is None
    assert open_messages("libsql+faiss", "", "n") is None


@pytest.mark.parametrize("backend", ["postgres", "elasticsearch", "opensearch"])
def test_a_server_and_its_client_by_hand_answer_rightly(backend: str, engines: Any) -> None:
    _, url = engines.get(backend)
    found = run(Ways(targets_of([backend]), "url", {backend: url}), SIZES)
    assert found.failed == {}
    assert [row for row in of(found, backend) if row.fault or row.baseline_fault] == []
    assert {len(row.baseline_nanoseconds) for row in of(found, backend)} == {QUERIES}


# What goes wrong


def test_an_engine_that_cannot_be_had_leaves_the_others() -> None:
    ways = Ways(targets_of(["postgres", "reference"]), urls={"postgres": "postgresql://me:secret@127.0.0.1:1/none"})
    found = run(ways, SIZES)
    assert [*found.failed] == ["postgres"]
    assert "secret" not in found.failed["postgres"]
    assert [side.name for side in found.sides] == ["reference"]
    assert found.exit == Exit.ENGINE


def test_an_interruption_leaves_what_was_measured(monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    first = of(report, "libsql")[0]

    def interrupted(*_: object) -> Iterator[Measured]:
        yield first
        raise KeyboardInterrupt

    monkeypatch.setattr(workbench, "measure", interrupted)
    found = run(Ways(targets_of(["libsql", "faiss"])), SIZES)
    assert [(side.name, side.rows) for side in found.sides] == [("libsql", [first])]
    assert found.exit == Exit.INTERRUPTED


def test_an_index_that_fails_leaves_the_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    def filled(*_: object) -> None:
        raise ValueError("no room")

    monkeypatch.setattr(beside, "filled", filled)
    rows = of(run(Ways(targets_of(["libsql"])), SIZES), "libsql")
    assert [row.operation for row in rows] == [*MESSAGES, "top 10, flat"]
    assert rows[-1].fault == "ValueError: no room"


def test_a_store_that_cannot_be_filled_is_asked_for_its_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(*_: object) -> None:
        raise ValueError("no room")

    monkeypatch.setattr(workbench, "fill", fill)
    rows = of(run(Ways(targets_of(["libsql"])), SIZES), "libsql")
    assert [row.operation for row in rows] == ["messages", *FLAT]
    assert rows[0].fault == "ValueError: no room"


def test_an_engine_that_dies_is_no_fault_of_the_adapter(monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    def version(*_: object) -> str:
        raise ConnectionError("gone")

    def die(*_: object) -> Iterator[Measured]:
        monkeypatch.setattr("memassay.backends.reference.ReferenceBackend.version", version)
        yield of(report, "reference")[0]

    monkeypatch.setattr(workbench, "measure", die)
    found = run(Ways(targets_of(["reference"])), SIZES)
    assert [*found.failed] == ["reference"]
    assert found.exit == Exit.ENGINE


# What is shown


def with_row(report: Report, row: Measured) -> Report:
    side = msgspec.structs.replace(report.sides[0], rows=[row])
    return msgspec.structs.replace(report, sides=[side])


ROW = Measured(
    operation="read", nanoseconds=[7_770_000] * 3, baseline_nanoseconds=[5_550_000] * 3, discarded=60, steady=True
)


def test_a_row_compares_the_medians(report: Report) -> None:
    line = shown(with_row(report, ROW)).splitlines()[-1].split()
    assert line[-6:] == ["7.77", "5.55", "1.40", "+2.22", "no", "60"]


def test_times_that_were_not_steady_are_marked(report: Report) -> None:
    assert shown(with_row(report, msgspec.structs.replace(ROW, steady=False))).split()[-1] == "60+"


def test_a_wrong_answer_shows_in_place_of_its_time(report: Report) -> None:
    found = with_row(report, msgspec.structs.replace(ROW, fault="3 wrong"))
    assert "3 wrong" in shown(found)
    assert "7.77" not in shown(found)
    assert "1.40" not in shown(found)
    assert found.exit == Exit.CLAUSES_FAIL


def test_a_wrong_answer_by_hand_shows_in_place_of_its_time(report: Report) -> None:
    found = with_row(report, msgspec.structs.replace(ROW, baseline_fault="3 wrong"))
    assert "5.55" not in shown(found)
    assert "1.40" not in shown(found)
    assert found.exit == Exit.CLAUSES_FAIL


def test_the_heading_says_what_was_measured_on_what(report: Report) -> None:
    text = "\n".join(heading(report))
    for said in ("5 threads of 1,000", "400 × 8", "closed loop", "load", *(side.engine for side in report.sides)):
        assert said in text


# The command


def app() -> typer.Typer:
    application = typer.Typer()
    application.command()(beside.main)
    return application


def test_the_command_prints_a_table_and_writes_raw_times(tmp_path: Path) -> None:
    path = tmp_path / "beside.json"
    sizes = ["--messages", "1000", "--rows", "400", "--dimension", "4", "--queries", "2", "--warm-up", "0"]
    ran = CliRunner().invoke(app(), ["reference", *sizes, "--json", str(path)])
    assert ran.exit_code == 0, ran.output
    rows = json.loads(path.read_text())["sides"][0]["rows"]
    assert [row["operation"] for row in rows] == [*MESSAGES, *FLAT, *HNSW]
    assert {len(row["nanoseconds"]) for row in rows} == {2}
    for operation in MESSAGES:
        assert any(line.startswith("reference") and operation in line for line in ran.output.splitlines())


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nothing"], "there is no backend"),
        (["libsql", "--provision", "docker"], "cannot be had by 'docker'"),
        (["libsql", "--json", "."], "is a directory"),
        (["libsql", "--url", "postgres=postgresql://x"], "does not use"),
    ],
)
def test_a_mistake_is_found_before_anything_is_measured(
    arguments: list[str], complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(*_: object) -> None:
        pytest.fail("it began")

    monkeypatch.setattr(beside, "run", begin)
    ran = CliRunner().invoke(app(), arguments)
    assert ran.exit_code == Exit.USAGE
    assert complaint in ran.output


def test_an_engine_that_cannot_be_had_is_an_exit_code() -> None:
    sizes = ["--messages", "1000", "--rows", "100", "--dimension", "4", "--queries", "1", "--warm-up", "0"]
    ran = CliRunner().invoke(app(), ["postgres", "--url", "postgres=postgresql://me@127.0.0.1:1/none", *sizes])
    assert ran.exit_code == Exit.ENGINE
    assert "memassay: postgres: " in ran.output
