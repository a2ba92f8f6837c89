"""The kill matrix: which mutants there are, what counts as killed, what may be laid over an engine."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import jsonschema
import msgspec
import pytest
from harness_support import Cli, process_environment
from memassay.backends.registry import find
from memassay.harness import artefact, mutation
from memassay.harness.artefact import Kill, KillMatrix, MutantResult
from memassay.harness.corpus import Entry, build
from memassay.harness.engine import Engine, start
from memassay.harness.exits import UsageProblem
from memassay.harness.mutation import Examiner, Plan
from memassay.mutants import MUTANTS, laid
from memassay.mutants.adapter import Adapter
from memassay.mutants.engine import Engine as FaultyEngine
from memassay.spec.clauses import CLAUSES
from memassay.spec.interpreter import run
from memassay.spec.judge import judge
from memassay.spec.protocols import Memory, Runtime, VectorIndex
from memassay.spec.reference import ModelNamespace
from memassay.spec.reference_index import MODEL_CAPABILITIES
from memassay.spec.types import MemoryConfig

FEW = ("--level", "smoke", "--examples", "400", "--jobs", "1")
T = TypeVar("T")
LAID = 110
"""Mutants that can be laid over an engine, at least."""


@pytest.fixture(scope="module")
def entries() -> tuple[Entry, ...]:
    return build("core", 0, 400).entries


def plan(entries: Sequence[Entry], *names: str, **given: Any) -> Plan:
    return Plan(mutants=mutation.load(names), level="core", corpora={0: tuple(entries)}, matrix=20, **given)


def examined(entries: Sequence[Entry], name: str, **given: Any) -> MutantResult:
    whole = plan(entries, name, **given)
    return Examiner(whole).examine(whole.mutants[0])


# Which there are


def test_every_mutant_is_found_by_its_entry_point() -> None:
    assert {mutant.id for mutant in mutation.load()} == MUTANTS.keys()


@pytest.mark.parametrize(("name", "clauses"), [("ORD-2", {"ORD-2"}), ("ties_by_id", {"ORD-1"}), ("TIM", {"TIM-1"})])
def test_mutants_are_chosen_by_family_clause_or_id(name: str, clauses: set[str]) -> None:
    assert {mutant.clause for mutant in mutation.load([name])} == clauses


def test_a_name_of_nothing_is_a_mistake() -> None:
    with pytest.raises(UsageProblem, match="no mutant of 'XYZ'"):
        mutation.load(["ORD", "XYZ"])


def test_what_a_fault_may_also_show_in_is_little_and_elsewhere() -> None:
    for mutant in MUTANTS.values():
        assert len(mutant.also) <= 3
        assert all(clause in CLAUSES and CLAUSES[clause].family != mutant.family for clause in mutant.also)


# Killed or not


def test_a_killed_mutant_tells_by_which_clause_and_how_soon(entries: tuple[Entry, ...]) -> None:
    (kill,) = examined(entries, "limits_the_oldest").kills
    assert kill.blamed is not None
    assert CLAUSES[kill.blamed].family == "ORD"
    assert kill.failing[kill.blamed] >= 1
    assert 1 <= kill.operations <= 12
    assert kill.minimal


def test_without_programs_a_mutant_survives() -> None:
    result = examined([], "limits_the_oldest")
    assert result.survives
    assert result.kills[0].programs == 0


def test_a_mutant_that_fails_other_families_alone_survives() -> None:
    kill = Kill(
        seed=0, blamed=None, programs=9, seconds=1.0, operations=0, minimal=False, failing={"SEM-3": 2}, matrix=9
    )
    result = MutantResult(id="x", clause="ORD-1", report="", description="", also=["SEM-3"], obstacle="", kills=[kill])
    assert (result.survives, result.stray) == (True, [])
    assert msgspec.structs.replace(result, also=[]).stray == ["SEM-3"]


def test_one_seed_that_kills_is_enough() -> None:
    lost = Kill(seed=0, blamed=None, programs=9, seconds=1.0, operations=0, minimal=False, failing={}, matrix=9)
    won = msgspec.structs.replace(lost, seed=1, blamed="ORD-1", operations=3)
    result = MutantResult(id="x", clause="ORD-1", report="", description="", also=[], obstacle="", kills=[lost, won])
    figures = mutation.summary([result])
    assert (figures.killed, figures.survivors, figures.median_operations) == (1, [], 3)


def test_processes_give_what_one_gives(entries: tuple[Entry, ...]) -> None:
    found = mutation.matrix(plan(entries, "TIM", jobs=2))
    again = mutation.matrix(plan(entries, "TIM", jobs=1))
    assert [timeless(mutant) for mutant in found.mutants] == [timeless(mutant) for mutant in again.mutants]
    assert found.summary.run == len(found.mutants) == len(mutation.load(["TIM"]))


def timeless(mutant: MutantResult) -> MutantResult:
    kills = [msgspec.structs.replace(kill, seconds=0.0) for kill in mutant.kills]
    return msgspec.structs.replace(mutant, kills=kills)


# Over an engine


def test_many_mutants_can_be_laid_over_an_engine() -> None:
    assert sum(not mutant.obstacle for mutant in MUTANTS.values()) >= LAID


def test_a_mutant_of_the_rows_themselves_cannot_and_says_why() -> None:
    assert MUTANTS["ties_by_id"].obstacle == "its fault is in _insert, in how the model keeps its rows"


class LaidNamespace(ModelNamespace):
    """The model under hooks that change nothing."""

    def open_memory(self, runtime: Runtime, config: MemoryConfig, client: int) -> Memory:
        real = super().open_memory(runtime, config, client)
        kind: Any = type("Laid", (Adapter, laid.LaidMemory), {})
        return kind(real, runtime, config, MODEL_CAPABILITIES, reads=True)

    def open_index(self, runtime: Runtime, client: int) -> VectorIndex:
        kind: Any = type("Laid", (FaultyEngine, laid.LaidIndex), {})
        return kind(super().open_index(runtime, client), MODEL_CAPABILITIES, reads=True)


def test_laying_hooks_over_a_store_adds_no_fault(entries: tuple[Entry, ...]) -> None:
    light = [entry for entry in entries if entry.scenario not in mutation.HEAVY]
    assert [str(e.program) for e in light if judge(e.program, run(e.program, LaidNamespace()))] == []


@pytest.fixture(scope="module")
def engine() -> Any:
    with start("reference", find("reference"), "auto", {}) as started:
        yield started


@pytest.mark.parametrize(
    "name",
    [
        "oldest_first_by_default",  # changes what a call was given
        "filters_the_page",  # reads wrongly
        "or_is_and",  # filters vectors wrongly
    ],
)
def test_a_laid_mutant_is_killed_by_its_own_family(entries: tuple[Entry, ...], engine: Engine, name: str) -> None:
    result = examined(entries, name, engine=engine, over="reference")
    assert (result.obstacle, result.survives) == ("", False)


def test_a_mutant_with_an_obstacle_is_not_run(entries: tuple[Entry, ...], engine: Engine) -> None:
    result = examined(entries, "ties_by_id", engine=engine, over="reference")
    assert (result.kills, result.survives) == ([], False)
    assert mutation.summary([result]).run == 0


# The command


def test_the_command_writes_an_artefact_that_fits_its_schema(memassay: Cli, tmp_path: Any) -> None:
    done = memassay("mutants", "--family", "start_is_exclusive", *FEW, "--json", "k.json", "--full")
    assert done.returncode == 0, done.stderr
    written = msgspec.json.decode((tmp_path / "k.json").read_bytes())
    jsonschema.validate(written, artefact.schema("mutants", KillMatrix))
    assert "1 of 1 mutants are killed by their own family (level smoke, seed 0" in done.stdout
    table = [line for line in done.stdout.splitlines() if line.startswith(("clause", "TIM-1"))]
    assert len(table) == 2
    assert max(map(len, table)) <= 80


def test_a_survivor_fails_the_command(memassay: Cli) -> None:
    # The level smoke has no programs beyond an engine's window.
    done = memassay("mutants", "--family", "cuts_at_the_window", *FEW)
    assert done.returncode == 1
    assert "SURVIVES  cuts_at_the_window (ORD-3b)" in done.stdout


def test_an_unknown_mutant_is_a_mistake(memassay: Cli) -> None:
    done = memassay("mutants", "--family", "nothing")
    assert (done.returncode, done.stdout) == (2, "")


def children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are told by /proc")
def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "memassay", "mutants", "--level", "smoke", "--examples", "60", "--jobs", "2"]
    parent = subprocess.Popen(command, cwd=tmp_path, env=process_environment(), stdout=subprocess.DEVNULL)
    try:
        workers = until(lambda: found if len(found := children(parent.pid)) == 2 else None)
    finally:
        parent.kill()
        parent.wait()
    assert until(lambda: not any(map(alive, workers)))


def until(condition: Callable[[], T | None], seconds: float = 60.0) -> T:
    """What the condition gives once it holds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError("it did not come to that")


def test_the_summary_tells_strays() -> None:
    kill = Kill(
        seed=0,
        blamed="ORD-1",
        programs=3,
        seconds=0.5,
        operations=4,
        minimal=True,
        failing={"ORD-1": 1, "VAL-1": 1},
        matrix=9,
    )
    result = MutantResult(id="x", clause="ORD-1", report="", description="", also=[], obstacle="", kills=[kill])
    figures = mutation.summary([result])
    assert (figures.blamed_well, figures.median_clauses) == (0, 2)
