"""`memassay shrink`: cases that others wrote, made small on the store where they fail."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from harness_support import Cli
from memassay.harness import artefact, cases
from memassay.harness.exits import Exit
from memassay.spec.program import CreateThread, Observe, Program, Recall, SaveMessages, Tick


def history() -> Program:
    """A long program in which memory_fakes:Miscounting fails once."""
    saves = [SaveMessages(messages=[{"id": f"m{i}", "thread_id": "t1", "content": "x"}]) for i in range(6)]
    return Program(
        operations=(
            CreateThread(id="t1", resource_id="r1", title="a title"),
            *saves,
            Tick(ms=5),
            Observe(),
            Recall(thread_id="t1", per_page=3),
            Recall(thread_id="t1", per_page=1),
        )
    )


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "history.json"
    path.write_bytes(msgspec.json.encode(history()))
    return path


def test_a_bare_program_becomes_a_small_case(memassay: Cli, program: Path, tmp_path: Path) -> None:
    done = memassay("shrink", program, "--on", "memory_fakes:Miscounting", "-o", "small.json")
    assert done.returncode == Exit.CONFORMS, done.stderr
    small = cases.read(tmp_path / "small.json")
    assert [operation.name for operation in small.program.operations] == ["observe", "recall"]
    assert (str(small.signature), small.minimal, small.reproduced) == ("ORD-5 / total / recall", True, 3)


def test_the_report_says_what_it_vanishes_without(memassay: Cli, program: Path) -> None:
    done = memassay("shrink", program, "--on", "memory_fakes:Miscounting")
    assert "vanishes without the page (ORD)" in done.stdout
    assert "11 -> 2 operations" in done.stdout


def test_a_case_is_shrunk_on_its_own_backend(memassay: Cli, program: Path, tmp_path: Path) -> None:
    memassay("shrink", program, "--on", "memory_fakes:Miscounting", "-o", "small.json")
    case = msgspec.structs.replace(cases.read(tmp_path / "small.json"), program=history(), minimal=False)
    (tmp_path / "case.json").write_bytes(artefact.encode(case))
    assert memassay("shrink", "case.json").stdout.splitlines()[0] == (
        "ORD-5 / total / recall on memory_fakes:Miscounting"
    )


def test_what_does_not_fail_is_said_so(memassay: Cli, program: Path, tmp_path: Path) -> None:
    done = memassay("shrink", program, "--on", "reference")
    assert (done.returncode, "does not fail on reference" in done.stdout) == (Exit.CLAUSES_FAIL, True)


def test_a_limit_is_no_minimum(memassay: Cli, program: Path) -> None:
    done = memassay("shrink", program, "--on", "memory_fakes:Miscounting", "--seconds", "0.000001")
    assert done.returncode == Exit.INCONCLUSIVE
    assert "a limit ended the search" in done.stdout


@pytest.mark.parametrize("wrong", [[], ["--on", "memory_fakes:Correct", "--seconds", "0"]])
def test_mistakes_are_told(memassay: Cli, program: Path, wrong: list[str]) -> None:
    done = memassay("shrink", program, *wrong)
    assert (done.returncode, done.stdout) == (Exit.USAGE, "")
