"""The runner on fake backends: what it finds, what it counts, and what it leaves behind."""

from __future__ import annotations

import os
import time

import memory_fakes as fakes
import pytest
from harness_support import Hold, page
from memassay.harness import events, exits
from memassay.harness.artefact import BackendResult, Finding, Result, encode
from memassay.harness.counterexample import Limits
from memassay.harness.exits import Exit
from memassay.harness.runner import Target
from memassay.spec.program import (
    CloneThread,
    CreateThread,
    Observe,
    Program,
    Recall,
    SaveMessages,
    Together,
    UpdateThread,
)

PROGRAMS = [page(1), page(2), page(3)]


def only(result: Result) -> BackendResult:
    (backend,) = result.backends
    return backend


def findings(result: Result) -> list[Finding]:
    return [finding for clause in only(result).clauses.values() for finding in clause.findings]


def test_a_correct_store_has_no_findings(hold: Hold) -> None:
    assert findings(hold(fakes.Correct(), PROGRAMS)) == []


def test_every_program_runs(hold: Hold) -> None:
    assert only(hold(fakes.Correct(), PROGRAMS)).programs == 3


def test_a_wrong_answer_fails_its_clause(hold: Hold) -> None:
    assert only(hold(fakes.Miscounting(), PROGRAMS)).clauses["ORD-5"].verdict == "fail"


def test_a_failure_does_not_end_the_search(hold: Hold) -> None:
    assert only(hold(fakes.Miscounting(), PROGRAMS)).programs == 3


def test_a_counterexample_is_made_small(hold: Hold) -> None:
    (finding,) = findings(hold(fakes.Miscounting(), PROGRAMS))
    assert finding.case.program == Program(operations=(Observe(), Recall(thread_id="", per_page=1))) or [
        operation.name for operation in finding.case.program.operations
    ] == ["observe", "recall"]


def test_a_small_counterexample_is_minimal(hold: Hold) -> None:
    (finding,) = findings(hold(fakes.Miscounting(), PROGRAMS))
    assert finding.case.minimal


def test_a_finding_counts_the_programs_that_show_it(hold: Hold) -> None:
    (finding,) = findings(hold(fakes.Miscounting(), [page(1, i) for i in range(4)] + [page(2)]))
    assert finding.programs == 4


def test_expected_and_got_are_those_of_the_small_program(hold: Hold) -> None:
    (finding,) = findings(hold(fakes.Miscounting(), PROGRAMS))
    assert (finding.case.expected, finding.case.got) == (0, 1)


def test_what_reproduces_sometimes_is_flaky(hold: Hold) -> None:
    (finding,) = findings(hold(fakes.Flaky(), PROGRAMS))
    assert finding.verdict == "flaky"


def test_a_flaky_finding_has_its_rate(hold: Hold) -> None:
    (finding,) = findings(hold(fakes.Flaky(), PROGRAMS))
    assert finding.case.reproduced == 1


def test_an_undeclared_exception_is_an_error(hold: Hold) -> None:
    (finding,) = findings(hold(fakes.Crashing(), PROGRAMS))
    assert finding.verdict == "error"


def test_the_limit_on_signatures_leaves_the_rest_as_found(hold: Hold) -> None:
    found = findings(hold(fakes.Miscounting(), PROGRAMS, limits=Limits(signatures=0)))
    assert [(finding.case.reproduced, finding.case.minimal) for finding in found] == [(None, False)]


def test_the_limit_on_signatures_is_told(hold: Hold) -> None:
    told: list[events.Event] = []
    hold(fakes.Miscounting(), PROGRAMS, told.append, limits=Limits(signatures=0))
    assert any(isinstance(event, events.Notice) and "1 more deviations" in event.text for event in told)


def test_without_runs_a_counterexample_is_not_minimal(hold: Hold) -> None:
    (finding,) = findings(hold(fakes.Miscounting(), PROGRAMS, limits=Limits(runs=0)))
    assert not finding.case.minimal


# Time


def test_a_program_that_hangs_is_an_error(hold: Hold) -> None:
    (finding,) = findings(hold(fakes.Hanging(), PROGRAMS, time_limit=0.2))
    assert (finding.verdict, finding.case.signature.aspect) == ("error", "time-out")


def test_a_program_that_hangs_names_the_operation(hold: Hold) -> None:
    (finding,) = findings(hold(fakes.Hanging(), PROGRAMS, time_limit=0.2))
    assert finding.case.program.operations[finding.case.index] == Recall(thread_id="t1", per_page=1)


def test_the_programs_after_one_that_hangs_run(hold: Hold) -> None:
    assert only(hold(fakes.Hanging(), PROGRAMS, time_limit=0.2)).programs == 3


@pytest.fixture
def given_up(hold: Hold) -> Result:
    """A backend on which every program hangs."""
    return hold(fakes.Hanging(), [page(1, i) for i in range(9)], time_limit=0.1)


def test_a_backend_on_which_programs_keep_hanging_is_given_up(given_up: Result) -> None:
    assert only(given_up).programs == 3


def test_hanging_breaks_clauses_and_is_no_failure_of_the_engine(given_up: Result) -> None:
    assert (exits.of(given_up), only(given_up).error) == (Exit.CLAUSES_FAIL, "")


def test_a_backend_that_is_given_up_keeps_the_case(given_up: Result) -> None:
    assert [finding.verdict for finding in findings(given_up)] == ["error"]


def test_a_backend_that_is_given_up_names_the_call_that_hung(given_up: Result) -> None:
    reason = only(given_up).clauses["THR-1"].reason
    program = page(1, 2).hash
    call = f"recall(thread_id='t1', per_page=1) (program {program}, operation 4) did not return within 0.1 s"
    assert reason == f"given up after 3 programs that hung: {call}"


def test_a_client_that_cannot_be_closed_is_blamed_on_reopen(hold: Hold) -> None:
    (finding,) = findings(hold(fakes.FailingOnClose(), [page(2)]))
    assert finding.case.program.operations[finding.case.index].name == "reopen"


def test_a_client_that_hangs_on_close_is_a_time_out(hold: Hold) -> None:
    (finding,) = findings(hold(fakes.HangingOnClose(), [page(2)], time_limit=0.2))
    assert finding.case.signature.aspect == "time-out"


def test_a_client_that_cannot_be_closed_hides_no_time_out(hold: Hold) -> None:
    found = findings(hold(fakes.HangingUnclosable(), [page(1)], time_limit=0.2))
    assert "time-out" in [finding.case.signature.aspect for finding in found]


# Engines


def test_an_engine_that_dies_ends_the_search(hold: Hold) -> None:
    assert only(hold(fakes.Dying(), PROGRAMS)).programs == 1


def test_an_engine_that_dies_leaves_what_was_found(hold: Hold) -> None:
    (finding,) = findings(hold(fakes.Dying(), PROGRAMS))
    assert finding.case.reproduced is None


def test_an_engine_that_dies_leaves_clauses_not_run(hold: Hold) -> None:
    found = only(hold(fakes.Dying(), PROGRAMS)).clauses["THR-1"]
    assert (found.verdict, found.reason) == ("not-run", "the engine failed")


def test_an_engine_that_dies_names_the_call_in_flight(hold: Hold) -> None:
    call = f"recall(thread_id='t1', per_page=1) (program {page(1).hash}, operation 4)"
    assert only(hold(fakes.Dying(), PROGRAMS)).error.endswith(f"in flight was {call}")


def test_an_engine_that_dies_between_programs_names_the_next(hold: Hold) -> None:
    programs = [page(2, i) for i in range(5)]
    error = only(hold(fakes.Cluttered(), programs)).error
    assert "a namespace cannot be emptied: RuntimeError: permission denied" in error
    assert error.endswith(f"program {programs[3].hash} was to be next")


def test_an_engine_that_does_not_start_leaves_the_other_backends_verdicts(hold: Hold) -> None:
    targets = [Target("first", fakes.Unstartable()), Target("second", fakes.Miscounting())]
    result = hold(None, PROGRAMS, targets=targets)
    verdicts = [backend.clauses["ORD-5"].verdict for backend in result.backends]
    assert (verdicts, exits.of(result)) == (["not-run", "fail"], Exit.ENGINE)


def test_an_engine_that_dies_has_its_exit_code(hold: Hold) -> None:
    assert exits.of(hold(fakes.Dying(), PROGRAMS)) == Exit.ENGINE


def test_an_engine_that_dies_says_which_call_was_in_flight(hold: Hold) -> None:
    error = only(hold(fakes.Dying(), PROGRAMS)).error
    assert "in flight was recall(" in error
    assert f"(program {PROGRAMS[0].hash}, operation 4)" in error


def test_an_engine_that_dies_between_programs_says_which_was_next(hold: Hold) -> None:
    programs = [page(2, i) for i in range(5)]
    assert f"program {programs[3].hash} was to be next" in only(hold(fakes.Cluttered(), programs)).error


def test_an_engine_that_does_not_start_has_its_exit_code(hold: Hold) -> None:
    assert exits.of(hold(fakes.Unstartable(), PROGRAMS)) == Exit.ENGINE


def test_an_engine_that_does_not_start_says_why(hold: Hold) -> None:
    assert "port 5432 is taken" in only(hold(fakes.Unstartable(), PROGRAMS)).error


def test_the_next_backend_runs_after_one_that_did_not_start(hold: Hold) -> None:
    targets = [Target("a", fakes.Unstartable()), Target("b", fakes.Correct())]
    assert hold(None, PROGRAMS, targets=targets).backends[1].programs == 3


def test_a_started_engine_is_stopped(hold: Hold) -> None:
    backend = fakes.Provisioned()
    hold(backend, PROGRAMS)
    assert backend.provisioners["embedded"].running == 0


def test_a_namespace_that_cannot_be_emptied_stops_the_run(hold: Hold) -> None:
    result = hold(fakes.Cluttered(), [page(2, i) for i in range(5)])
    assert "permission denied" in only(result).error


# Interrupts


def test_an_interrupted_run_is_marked(hold: Hold) -> None:
    assert hold(fakes.Interrupting(), PROGRAMS).interrupted


def test_a_client_that_cannot_be_closed_hides_no_interrupt(hold: Hold) -> None:
    assert hold(fakes.InterruptingUnclosable(), PROGRAMS).interrupted


def test_an_interrupted_run_has_its_exit_code(hold: Hold) -> None:
    assert exits.of(hold(fakes.Interrupting(), PROGRAMS)) == Exit.INTERRUPTED


def test_after_an_interrupt_every_namespace_is_dropped(hold: Hold) -> None:
    backend = fakes.Interrupting()
    hold(backend, PROGRAMS)
    assert backend.states == {}


def test_after_an_interrupt_no_further_backend_runs(hold: Hold) -> None:
    targets = [Target("a", fakes.Interrupting()), Target("b", fakes.Correct())]
    assert hold(None, PROGRAMS, targets=targets).backends[1].programs == 0


def test_after_an_interrupt_clauses_say_so(hold: Hold) -> None:
    assert only(hold(fakes.Interrupting(), PROGRAMS)).clauses["THR-1"].reason == "interrupted"


# Namespaces


def test_every_namespace_is_dropped(hold: Hold) -> None:
    backend = fakes.Miscounting()
    hold(backend, PROGRAMS)
    assert backend.states == {}


def test_two_runs_use_other_namespaces(hold: Hold) -> None:
    backend = fakes.Correct()
    hold(backend, PROGRAMS)
    first = {*backend.opened}
    backend.opened.clear()
    hold(backend, PROGRAMS)
    assert first.isdisjoint(backend.opened)


def test_a_quick_way_to_empty_a_namespace_is_used(hold: Hold) -> None:
    backend = fakes.Resetting()
    hold(backend, [page(2, i) for i in range(10)])
    assert len(backend.reset) == 7


def test_a_namespace_is_given_up_after_fifty_programs(hold: Hold) -> None:
    backend = fakes.Resetting()
    hold(backend, [page(2, i) for i in range(160)])
    assert len(backend.opened) == 6


# Selection


def test_clauses_narrow_the_programs(hold: Hold) -> None:
    lonely = Program(operations=(CreateThread(id="t", resource_id="r"), Observe()))
    assert only(hold(fakes.Correct(), [*PROGRAMS, lonely], clauses=["ORD-5"])).programs == 3


def test_failures_of_clauses_not_asked_for_do_not_count(hold: Hold) -> None:
    assert findings(hold(fakes.Miscounting(), PROGRAMS, clauses=["ORD-3"])) == []


def test_a_clause_not_asked_for_says_so(hold: Hold) -> None:
    assert only(hold(fakes.Correct(), PROGRAMS, clauses=["ORD-3"])).clauses["ORD-5"].reason == "not selected"


def test_a_clause_beyond_the_level_says_so(hold: Hold) -> None:
    assert only(hold(fakes.Correct(), PROGRAMS, level="smoke")).clauses["ORD-3a"].reason == "level core"


def test_fail_fast_stops_the_search(hold: Hold) -> None:
    assert only(hold(fakes.Miscounting(), PROGRAMS, fail_fast=True)).programs == 1


def test_fail_fast_stops_before_the_next_backend(hold: Hold) -> None:
    targets = [Target("a", fakes.Miscounting()), Target("b", fakes.Correct())]
    assert hold(None, PROGRAMS, targets=targets, fail_fast=True).backends[1].programs == 0


def test_fail_fast_still_makes_the_counterexample_small(hold: Hold) -> None:
    (finding,) = findings(hold(fakes.Miscounting(), PROGRAMS, fail_fast=True))
    assert finding.case.minimal


def test_programs_that_a_backend_cannot_run_are_skipped(hold: Hold) -> None:
    together = Program(operations=(Together(operations=[UpdateThread(thread_id="t")]),))
    result = only(hold(fakes.Lonely(), [*PROGRAMS, together]))
    assert (result.programs, result.skipped) == (3, 1)


# The world around


def test_the_process_is_in_a_hostile_time_zone_while_programs_run(hold: Hold) -> None:
    zones: list[int] = []

    class Watching(fakes.Correct):
        def version(self, url: str) -> str:
            zones.append(time.timezone)
            return super().version(url)

    hold(Watching(), PROGRAMS)
    assert {*zones} == {-(12 * 3600 + 45 * 60)}


def test_the_time_zone_is_recorded(hold: Hold) -> None:
    assert hold(fakes.Correct(), PROGRAMS).time_zone == "Pacific/Chatham (+12:45)"


def test_the_time_zone_is_restored(hold: Hold, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Seoul")
    hold(fakes.Correct(), PROGRAMS)
    assert os.environ["TZ"] == "Asia/Seoul"


def test_no_secret_reaches_the_result(hold: Hold) -> None:
    url = f"postgresql://me:{fakes.SECRET}@host/db"
    result = hold(fakes.Confiding(), PROGRAMS, urls={"confiding": url})
    assert fakes.SECRET not in encode(result).decode()


def test_the_same_run_gives_the_same_cases(hold: Hold) -> None:
    first, second = (findings(hold(fakes.Miscounting(), PROGRAMS)) for _ in range(2))
    assert [encode(finding.case) for finding in first] == [encode(finding.case) for finding in second]


def test_a_program_that_derails_puts_no_other_clause_to_the_test(hold: Hold) -> None:
    result = only(hold(fakes.Unopenable(), [page(2, i) for i in range(9)], clauses=["ORD-3"]))
    assert (result.clauses["ORD-3"].verdict, result.clauses["ORD-3"].applicable) == ("not-run", 0)


def test_a_store_that_exits_is_an_error(hold: Hold) -> None:
    assert [finding.verdict for finding in findings(hold(fakes.Exiting(), PROGRAMS))] == ["error"]


@pytest.mark.parametrize("value", [None, {"messages": []}, iter(())], ids=["None", "dict", "iterator"])
def test_what_is_no_result_fails(hold: Hold, value: object) -> None:
    assert [finding.verdict for finding in findings(hold(fakes.Odd(value), PROGRAMS))] == ["fail"]


def test_a_clause_beyond_what_a_store_declares_is_unsupported(hold: Hold) -> None:
    """Copies of embeddings, on a store that clones and embeds nothing."""
    program = Program(
        (
            CreateThread(id="t1", resource_id="r1"),
            SaveMessages(messages=[{"id": "m", "thread_id": "t1", "content": "x"}]),
            CloneThread(source_thread_id="t1", new_thread_id="t2"),
            Observe(),
        ),
        embedder=2,
        options={"semantic_recall": True},
    )
    found = only(hold(fakes.Cloning(), [program])).clauses["CLN-3"]
    assert (found.verdict, found.reason) == ("unsupported", "no program exercises it with the capabilities declared")
