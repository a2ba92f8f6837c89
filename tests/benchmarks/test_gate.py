"""The gate: only `pass` lets a workload through; verdicts from results, or from a short run that is not vacuous."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from memassay.backends.reference import ReferenceBackend
from memassay.benchmarks import gate
from memassay.benchmarks.gate import Verdicts
from memassay.benchmarks.workloads import WORKLOADS
from memassay.harness import artefact, corpus, runner, verdicts
from memassay.harness.corpus import Corpus
from memassay.harness.engine import start
from memassay.harness.exits import UsageProblem
from memassay.spec.clauses import CLAUSES
from memassay.spec.protocols import Runtime
from memassay.spec.types import MemoryConfig, RecallResult

NEWEST = WORKLOADS["newest"]
CHECKED = ("ORD-2", "ORD-5")


class Backwards(ReferenceBackend):
    """Answers with the oldest messages first when it is asked for the newest."""

    name = "backwards"

    def open_memory(self, url: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> Any:
        """See protocols.Backend."""
        memory: Any = super().open_memory(url, namespace, runtime, config)
        recall = memory.recall

        def backwards(*given: Any, **options: Any) -> RecallResult:
            found: RecallResult = recall(*given, **options)
            if options.get("order_by") is not None:
                return found
            return msgspec.structs.replace(found, messages=found.messages[::-1])

        memory.recall = backwards
        return memory


def all_pass(**others: artefact.Verdict) -> Verdicts:
    verdicts: dict[str, artefact.Verdict] = dict.fromkeys(CLAUSES, "pass")
    for name, verdict in others.items():
        verdicts[name.replace("_", "-")] = verdict
    return Verdicts(verdicts, "r.json")


def test_what_passes_goes_through() -> None:
    assert gate.judge("a", NEWEST, all_pass()) is None


@pytest.mark.parametrize("verdict", ["fail", "flaky", "error", "known", "vacuous", "not-run", "unsupported"])
def test_only_pass_goes_through(verdict: artefact.Verdict) -> None:
    closed = gate.judge("a", NEWEST, all_pass(ORD_2=verdict))
    assert closed is not None
    assert (closed.contender, closed.workload, closed.source) == ("a", "newest", "r.json")
    assert closed.reason == f"ORD-2 {verdict}"


def test_a_clause_that_was_not_judged_keeps_the_gate_closed() -> None:
    closed = gate.judge("a", NEWEST, Verdicts({}, "r.json"))
    assert closed is not None
    assert closed.clauses == dict.fromkeys(NEWEST.clauses, "not-run")


def test_what_the_workload_does_not_rest_on_does_not_matter() -> None:
    assert gate.judge("a", NEWEST, all_pass(VEC_4="fail")) is None


def test_what_a_store_does_not_claim_is_no_fault_where_it_is_not_needed() -> None:
    search = WORKLOADS["mixed"]
    assert CLAUSES["DUR-1"].needs == ("durable",)
    assert gate.judge("a", search, all_pass(DUR_1="unsupported")) is None
    closed = gate.judge("a", search, all_pass(VEC_4="unsupported"))  # it needs vectors, so it needs this
    assert closed is not None


# Verdicts of a run before


@pytest.fixture(scope="module")
def result() -> artefact.Result:
    plan = runner.Plan(targets=(runner.Target("reference", ReferenceBackend()),), level="smoke")
    return runner.verify(plan, corpus.build("smoke", 0, 5))


def written(tmp_path: Path, result: artefact.Result) -> Path:
    path = tmp_path / "result.json"
    path.write_bytes(artefact.encode(result))
    return path


def test_results_tell_the_verdicts_of_their_backends(tmp_path: Path, result: artefact.Result) -> None:
    (backend,) = result.backends
    known = gate.known(gate.read([written(tmp_path, result)]), "reference", backend.engine)
    assert known is not None
    assert known.by_clause == {clause: each.verdict for clause, each in backend.clauses.items()}
    assert known.source == "result.json"


def test_results_of_another_version_or_store_tell_nothing(tmp_path: Path, result: artefact.Result) -> None:
    given = gate.read([written(tmp_path, result)])
    assert gate.known(given, "reference", "another version") is None
    assert gate.known(given, "other", result.backends[0].engine) is None


def test_results_of_an_interrupted_run_are_refused(tmp_path: Path, result: artefact.Result) -> None:
    path = written(tmp_path, msgspec.structs.replace(result, interrupted=True))
    with pytest.raises(UsageProblem, match="interrupted"):
        gate.read([path])


# The short run


@pytest.fixture(scope="module")
def programs() -> Corpus:
    return gate.programs(CHECKED, 0, lambda what, done, of: None)


@pytest.mark.parametrize("clause", CHECKED)
def test_the_programs_chosen_put_the_clauses_to_the_test(programs: Corpus, clause: str) -> None:
    assert verdicts.vacuous(verdicts.tally(CLAUSES[clause], programs.entries)) == ""


def test_few_programs_are_chosen(programs: Corpus) -> None:
    assert len(programs.entries) == programs.description.programs < 60


def short(backend: Any, programs: Corpus) -> Verdicts:
    with start(backend.name, backend, "auto", {}) as engine:
        return gate.short_run(backend.name, engine, CHECKED, programs)


def test_a_store_that_is_right_passes_the_short_run(programs: Corpus) -> None:
    assert short(ReferenceBackend(), programs).by_clause == dict.fromkeys(CHECKED, "pass")


def test_a_store_that_is_wrong_does_not_pass_the_short_run(programs: Corpus) -> None:
    found = short(Backwards(), programs)
    assert found.by_clause["ORD-2"] in ("fail", "error")
    closed = gate.judge("backwards", msgspec.structs.replace(NEWEST, clauses=CHECKED), found)
    assert closed is not None
    assert closed.source == gate.SHORT
    assert "ORD-2" in closed.clauses
