"""`memassay fault`: storms on the engines that come as packages, what is found wrong, and what cannot be tried."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random

import jsonschema
import pytest
from memassay.backends.registry import find
from memassay.harness import artefact, faults
from memassay.harness.artefact import BackendFaults, FaultResult, FaultRow
from memassay.harness.breaking import Plan, breaking
from memassay.harness.cli import app
from memassay.harness.command_fault import code_of
from memassay.harness.faults import Kind
from memassay.harness.runner import Target
from memassay.harness.storm import Place, Storm
from memassay.mutants import MUTANTS
from memassay.reports import faults as shown
from memassay.spec.capabilities import Capabilities
from memassay.spec.protocols import Memory, Runtime, VectorIndex
from memassay.spec.reference import Model, State
from memassay.spec.reference_index import MODEL_CAPABILITIES, IndexState, ModelIndex
from memassay.spec.types import MemoryConfig
from typer.testing import CliRunner


def broken(name: str, *kinds: Kind, rounds: int = 1) -> BackendFaults:
    plan = Plan(targets=[Target(name, find(name))], kinds=kinds, rounds=rounds)

    def silent(*told: object) -> None:
        """Nothing is told."""

    (backend,) = breaking(plan, silent).backends
    return backend


@pytest.mark.parametrize("name", ["libsql", "faiss"])
def test_nothing_acknowledged_is_lost_when_the_process_is_killed(name: str) -> None:
    (row,) = broken(name, "kill", rounds=2).rows
    assert (row.rounds, row.findings) == (2, [])
    assert row.acknowledged >= 20
    assert row.doubtful > 0


def test_an_engine_in_its_clients_process_has_no_connection() -> None:
    (row,) = broken("libsql", "reset").rows
    assert not row.applies
    assert "no connection" in row.reason


def test_the_model_keeps_nothing_to_break() -> None:
    (row,) = broken("reference", "kill").rows
    assert not row.applies


class Held:
    """Clients of the model, or of a mutant of it, that share what they hold; the fault makes it lose something."""

    def __init__(self, store: type[Model] = Model, lose: int = 0) -> None:
        self._store = store
        self._lose = lose
        self._states: dict[str, tuple[State, IndexState]] = {}
        self.what = "loses rows"
        self.after = 5

    def _state(self, name: str) -> tuple[State, IndexState]:
        return self._states.setdefault(name, (State(), IndexState()))

    def open_memory(self, url: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> Memory:
        return self._store(runtime, config, self._state(namespace)[0])

    def open_index(self, url: str, namespace: str, runtime: Runtime) -> VectorIndex:
        return ModelIndex(self._state(namespace)[1])

    def strike(self, rng: Random) -> None:
        pass

    def mend(self) -> None:
        for state, _ in self._states.values():
            for name in [*state.by_id][: self._lose]:
                row = state.by_id.pop(name)
                state.rows[row.message.thread_id].remove(row)
                state.embedded.pop(name, None)


def storm(held: Held, capabilities: Capabilities = MODEL_CAPABILITIES) -> list[str]:
    """What is found after a storm over the model."""
    places = [Place(held, "", name, capabilities) for name in ("one", "two", "three", "four")]
    came = Storm(places, places, Random(5)).run(held)
    assert came.acknowledged > 10
    return sorted({found.divergence.aspect for found in came.found})


def test_a_store_that_keeps_all_passes() -> None:
    assert storm(Held()) == []


def test_a_store_that_loses_a_row_is_found_out() -> None:
    assert storm(Held(lose=1)) == ["lost"]


class _Raises(Model):
    def update_thread(self, *given: object, **named: object) -> object:  # type: ignore[override]
        raise OSError("the connection was lost")


def test_an_error_of_the_drivers_is_found_out() -> None:
    assert storm(Held(_Raises)) == ["error"]


def test_there_is_a_mutant_for_what_a_crash_loses() -> None:
    assert len([mutant for mutant in MUTANTS.values() if mutant.clause == "DUR-1a"]) >= 3


def result(*rows: FaultRow, interrupted: bool = False) -> FaultResult:
    backend = BackendFaults(name="acme", engine="1", method="", detail="", atomicity="transaction", rows=[*rows])
    return FaultResult(
        memassay="0", seed=0, interrupted=interrupted, backends=[backend], started="", seconds=0, platform=""
    )


@pytest.mark.parametrize(
    ("rows", "asked", "code"),
    [
        ([FaultRow(kind="kill", rounds=3)], True, 0),
        ([FaultRow(kind="kill", rounds=3), FaultRow(kind="reset", applies=False)], False, 0),
        ([FaultRow(kind="kill", rounds=3), FaultRow(kind="reset", applies=False)], True, 6),
        ([FaultRow(kind="reset", applies=False)], False, 6),
        ([FaultRow(kind="kill", rounds=3, broken=True, reason="gone")], False, 3),
    ],
)
def test_the_exit_code_says_what_came_of_it(rows: list[FaultRow], asked: bool, code: int) -> None:
    assert code_of(result(*rows), asked=asked) == code


def test_an_interrupted_run_says_so() -> None:
    assert code_of(result(FaultRow(kind="kill", rounds=1), interrupted=True), asked=False) == 130


def test_the_table_is_markdown_too() -> None:
    row = FaultRow(kind="kill", rounds=20, acknowledged=1234, doubtful=80)
    assert "| acme | kill | 20 | 1,234 | 80 | 0 | 0 | 0 | 0 | 0 |" in shown.markdown(result(row))


def test_a_wrong_kind_is_a_mistake_of_the_users() -> None:
    told = CliRunner().invoke(app, ["fault", "libsql", "--kind", "flood"])
    assert told.exit_code == 2
    assert "there is no fault 'flood'" in told.output


def test_a_full_disk_takes_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "root" in faults.disk_missing()
    told = CliRunner().invoke(app, ["fault", "libsql", "--kind", "disk-full"])
    assert told.exit_code == 2


def test_a_result_is_written_and_has_a_schema(tmp_path: Path) -> None:
    file = tmp_path / "fault.json"
    told = CliRunner().invoke(app, ["fault", "libsql", "--kind", "kill", "--rounds", "1", "--json", str(file)])
    assert told.exit_code == 0
    written = json.loads(file.read_text())
    assert written["backends"][0]["rows"][0]["rounds"] == 1
    jsonschema.validate(written, artefact.schema("fault", FaultResult))
