"""`memassay report`: what it reads and refuses, and what it writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import report_made as made
from memassay.harness import artefact
from memassay.harness.artefact import Finding, Result
from memassay.harness.cli import app
from typer.testing import CliRunner

MakeResult = Callable[..., Result]
MakeFinding = Callable[..., Finding]


@pytest.fixture
def file(failed: MakeResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A result file in the current directory."""
    monkeypatch.chdir(tmp_path)
    path = Path("r.json")
    path.write_bytes(artefact.encode(failed()))
    return path


def report(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["report", *arguments])


def test_the_command_exits_0_whatever_the_verdicts(file: Path) -> None:
    assert report("r.json", "-o", "out").exit_code == 0


def test_the_command_writes_page_and_summary(file: Path) -> None:
    report("r.json", "-o", "deep/out")
    assert sorted(path.name for path in Path("deep/out").iterdir()) == [
        *("badge.json", "clauses.html", "deviations.html", "index.html", "junit.xml", "summary.md"),
    ]


def test_the_command_says_what_it_wrote(file: Path) -> None:
    told = report("r.json", "-o", "out").stdout.splitlines()
    assert sorted(told) == sorted(f"wrote {path}" for path in Path("out").iterdir())


def test_the_command_takes_several_results(file: Path) -> None:
    Path("again.json").write_bytes(Path("r.json").read_bytes())
    report("r.json", "again.json", "-o", "out")
    assert b"store (run 2)" in Path("out/index.html").read_bytes()


def test_the_command_overwrites_a_report(file: Path) -> None:
    codes = [report("r.json", "-o", "out").exit_code for _ in range(2)]
    assert codes == [0, 0]


MISTAKES: dict[str, tuple[bytes, str]] = {
    "another version": (b'{"version": 2}', "version 2, which a newer memassay wrote; this one (0.1.0) reads version 1"),
    "no version": (b"{}", "no version"),
    "a version that is none": (b'{"version": "1"}', "no artefact"),
    "something else": (b'{"version": 1}', "no artefact"),
    "a list": (b"[]", "no artefact"),
    "no JSON": (b"hello", "no artefact"),
    "no text": (b"\xff\xfe", "no artefact"),
    "nothing": (b"", "no artefact"),
    "nested too deeply": (b'{"version": 1, "x": ' + b"[" * 100_000, "no artefact"),
}


@pytest.fixture
def refused(file: Path, name: str) -> Any:
    """The outcome for a good file and a bad one."""
    Path("bad.json").write_bytes(MISTAKES[name][0])
    return report("r.json", "bad.json", "-o", "out")


@pytest.mark.parametrize("name", MISTAKES)
def test_a_file_that_is_no_known_result_exits_2(refused: Any) -> None:
    assert refused.exit_code == 2


@pytest.mark.parametrize("name", MISTAKES)
def test_a_file_that_is_no_known_result_is_told_in_one_line(refused: Any, name: str) -> None:
    (line,) = refused.stderr.splitlines()
    assert line.startswith("memassay: bad.json ")
    assert MISTAKES[name][1] in line


@pytest.mark.parametrize("name", MISTAKES)
def test_nothing_is_written_when_a_file_is_refused(refused: Any) -> None:
    assert not Path("out").exists()


def test_a_file_that_cannot_be_read_exits_2(file: Path) -> None:
    done = report("nothing.json", "-o", "out")
    assert (done.exit_code, "cannot be read" in done.stderr) == (2, True)


@pytest.mark.parametrize("folder", ["r.json", "r.json/out", "taken"])
def test_a_folder_that_cannot_be_written_exits_2(file: Path, folder: str) -> None:
    Path("taken/summary.md").mkdir(parents=True)
    assert report("r.json", "-o", folder).exit_code == 2


@pytest.mark.parametrize(
    "name",
    [
        *("badge.json", "clauses.html", "deviations.html", "index.html", "junit.xml", "summary.md"),
    ],
)
def test_nothing_is_written_when_one_file_cannot_be(file: Path, name: str) -> None:
    Path("taken", name).mkdir(parents=True)
    report("r.json", "-o", "taken")
    assert [path.name for path in Path("taken").iterdir()] == [name]


def test_nothing_to_report_exits_2(file: Path) -> None:
    assert report("-o", "out").exit_code == 2


# Artefacts of every kind


@pytest.fixture
def folder(finding: MakeFinding, tmp_path: Path) -> Path:
    """One artefact of each kind, but for the benchmark."""
    written = {
        "result.json": made.result(("one",), [finding()]),
        "kills.json": made.kills(),
        "difference.json": made.difference(finding()),
        "cases/store/a case.json": finding().case,
        "comparison.json": made.comparison(),
    }
    for name, value in written.items():
        path = tmp_path / "all" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.encode(value))
    return tmp_path / "all"


def test_a_folder_stands_for_the_artefacts_in_it(folder: Path, tmp_path: Path) -> None:
    report(str(folder), "-o", str(tmp_path / "out"))
    written = {path.name for path in (tmp_path / "out").glob("*.html")}
    assert written == {
        *("index.html", "clauses.html", "deviations.html", "findings.html", "mutants.html", "changes.html"),
    }


def test_other_json_in_a_folder_is_named_and_left_out(folder: Path, tmp_path: Path) -> None:
    (folder / "other.json").write_text('{"name": "x"}')
    done = report(str(folder), "-o", str(tmp_path / "out"))
    assert (done.exit_code, done.stderr) == (0, f"memassay: {folder}/other.json is no artefact, and is left out\n")


def test_a_folder_without_artefacts_exits_2(tmp_path: Path) -> None:
    done = report(str(tmp_path), "-o", str(tmp_path / "out"))
    assert (done.exit_code, "holds no artefacts" in done.stderr) == (2, True)


@pytest.mark.parametrize("name", ["result", "kills", "difference", "comparison", "cases/store/a case"])
def test_an_artefact_of_another_version_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    path = folder / f"{name}.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"version": 2}))
    done = report(str(path), "-o", str(tmp_path / "out"))
    assert done.exit_code == 2
    assert "version 2, which a newer memassay wrote" in done.stderr


@pytest.mark.parametrize("name", ["result", "kills", "difference", "comparison", "cases/store/a case"])
def test_an_artefact_that_lacks_a_field_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    path = folder / f"{name}.json"
    value = json.loads(path.read_bytes())
    del value[next(field for field in ("memassay", "statement") if field in value)]
    path.write_text(json.dumps(value))
    done = report(str(path), "-o", str(tmp_path / "out"))
    assert done.exit_code == 2
    assert "missing required field" in done.stderr


def test_an_artefact_from_before_a_field_was_added_is_read(folder: Path, tmp_path: Path) -> None:
    path = folder / "result.json"
    value = json.loads(path.read_bytes())
    for backend in value["backends"]:
        del backend["hostile"], backend["known"]
    path.write_text(json.dumps(value))
    assert report(str(path), "-o", str(tmp_path / "out")).exit_code == 0


def test_an_artefact_given_twice_is_shown_once(folder: Path, tmp_path: Path) -> None:
    report(str(folder / "result.json"), str(folder), "-o", str(tmp_path / "out"))
    assert b"(run 2)" not in (tmp_path / "out" / "index.html").read_bytes()


def test_a_case_is_replayed_from_where_it_is(folder: Path, tmp_path: Path) -> None:
    report(str(folder / "cases"), "-o", str(tmp_path / "out"))
    page = (tmp_path / "out" / "findings.html").read_text(encoding="utf-8")
    assert f"memassay replay &#39;{folder}/cases/store/a case.json&#39;" in page


def test_without_a_folder_results_are_printed(file: Path) -> None:
    done = report("r.json")
    assert (done.exit_code, "FAIL  ORD-5 on store" in done.stdout) == (0, True)


def test_without_a_folder_there_must_be_results(folder: Path) -> None:
    done = report(str(folder / "kills.json"))
    assert (done.exit_code, "no result to show" in done.stderr) == (2, True)
