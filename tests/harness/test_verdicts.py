"""Verdicts: only what was put to the test can pass."""

from __future__ import annotations

import msgspec
import pytest
from memassay.harness import verdicts
from memassay.harness.artefact import Case, Finding, Found, Verdict
from memassay.harness.corpus import Entry
from memassay.harness.verdicts import Tally
from memassay.spec.capabilities import Capabilities
from memassay.spec.clauses import CLAUSES, Clause
from memassay.spec.divergence import Signature
from memassay.spec.program import Program
from memassay.spec.reference_index import MODEL_CAPABILITIES

CLAUSE = Clause(
    id="X-1",
    title="x",
    statement="x",
    source="x",
    applies=("reads", "writes"),
    discriminators={"a tie": "tie"},
    requires="working_memory",
)
ABLE = Capabilities(working_memory=True)


def counts(applicable: int, met: int) -> Tally:
    tally = Tally(applicable=applicable)
    tally.met["a tie"] = met
    return tally


def finding(verdict: Verdict) -> Finding:
    case = Case(
        signature=Signature("X-1", "rows", "recall"),
        statement="x",
        program=Program(operations=()),
        index=0,
        expected=1,
        got=2,
        found=Found(backend="b", engine="1", memassay="0", seed=0, level="core"),
        reproduced=3,
        minimal=True,
    )
    return Finding(verdict=verdict, programs=1, case=case)


def test_a_clause_put_to_the_test_passes() -> None:
    assert verdicts.of_clause(CLAUSE, counts(100, 5), [], ABLE).verdict == "pass"


@pytest.mark.parametrize(
    ("applicable", "met", "empty"),
    [(100, 5, True), (100, 4, False), (101, 5, False), (20, 5, True), (4, 4, False), (200, 10, True), (0, 0, False)],
)
def test_a_discriminator_is_met_5_times_and_in_5_percent(applicable: int, met: int, empty: bool) -> None:
    assert (verdicts.vacuous(counts(applicable, met)) == "") is empty


def test_a_vacuous_clause_does_not_pass() -> None:
    assert verdicts.of_clause(CLAUSE, counts(100, 4), [], ABLE).verdict == "vacuous"


def test_a_vacuous_clause_says_which_discriminator_was_missing() -> None:
    assert "a tie: in 4 of 100" in verdicts.of_clause(CLAUSE, counts(100, 4), [], ABLE).reason


def test_a_failure_counts_however_little_was_tested() -> None:
    assert verdicts.of_clause(CLAUSE, counts(1, 0), [finding("fail")], ABLE).verdict == "fail"


@pytest.mark.parametrize(
    ("found", "verdict"),
    [(["flaky", "error", "fail"], "fail"), (["flaky", "error"], "error"), (["flaky"], "flaky")],
)
def test_the_gravest_finding_is_the_verdict(found: list[Verdict], verdict: Verdict) -> None:
    findings = [finding(kind) for kind in found]
    assert verdicts.of_clause(CLAUSE, counts(100, 50), findings, ABLE).verdict == verdict


def test_without_the_capability_a_clause_is_unsupported() -> None:
    assert verdicts.of_clause(CLAUSE, counts(100, 50), [], Capabilities()).verdict == "unsupported"


def test_what_no_program_asks_of_an_index_alone_is_unsupported() -> None:
    of_messages = msgspec.structs.replace(CLAUSE, requires=None)
    index = Capabilities(storage=False, vectors=True, index_types=("flat",))
    judged = verdicts.of_clause(of_messages, counts(0, 0), [], index)
    assert (judged.verdict, judged.reason) == ("unsupported", "needs the capability storage")
    assert verdicts.of_clause(of_messages, counts(3, 0), [], index).verdict == "vacuous"


def test_what_no_program_asks_of_such_a_store_is_unsupported() -> None:
    judged = verdicts.of_clause(CLAUSE, counts(0, 0), [], ABLE, beyond=True)
    assert (judged.verdict, judged.reason) == ("unsupported", "no program exercises it with the capabilities declared")
    assert verdicts.of_clause(CLAUSE, counts(1, 0), [finding("fail")], ABLE, beyond=True).verdict == "fail"


def test_not_run_says_why() -> None:
    judged = verdicts.of_clause(CLAUSE, counts(100, 50), [], ABLE, not_run="interrupted")
    assert (judged.verdict, judged.reason) == ("not-run", "interrupted")


def test_a_failure_shows_even_in_a_run_that_ended_early() -> None:
    assert verdicts.of_clause(CLAUSE, counts(1, 0), [finding("fail")], ABLE, not_run="interrupted").verdict == "fail"


@pytest.mark.parametrize(
    ("crashed", "reproduced", "verdict"),
    [
        (False, 3, "fail"),
        (False, 2, "flaky"),
        (False, 0, "flaky"),
        (True, 3, "error"),
        (True, 1, "flaky"),
        (True, None, "error"),
    ],
)
def test_a_finding_that_does_not_reproduce_is_flaky(crashed: bool, reproduced: int | None, verdict: Verdict) -> None:
    assert verdicts.of_finding(crashed, reproduced) == verdict


def test_the_tally_counts_programs_that_apply() -> None:
    ran = [Entry(Program(operations=()), str(i), "x", frozenset(facts)) for i, facts in enumerate([{"reads"}, {"tie"}])]
    assert verdicts.tally(CLAUSE, ran).applicable == 1


def test_the_tally_counts_discriminators_among_those() -> None:
    facts = [{"reads", "tie"}, {"writes"}, {"tie"}]
    ran = [Entry(Program(operations=()), str(i), "x", frozenset(found)) for i, found in enumerate(facts)]
    assert verdicts.tally(CLAUSE, ran).met == {"a tie": 1}


def test_a_backend_that_lacks_nothing_has_nothing_to_refuse() -> None:
    result = verdicts.of_clause(CLAUSES["CAP-1"], Tally(), [], MODEL_CAPABILITIES)
    assert (result.verdict, result.reason) == ("unsupported", "lacks nothing that it would have to refuse")


@pytest.mark.parametrize("name", ["storage", "clone", "working_memory", "titles", "vectors", "semantic_recall"])
def test_a_backend_that_lacks_something_has(name: str) -> None:
    lacking = msgspec.structs.replace(MODEL_CAPABILITIES, **{name: False})
    assert verdicts.of_clause(CLAUSES["CAP-1"], Tally(), [], lacking).verdict == "vacuous"


@pytest.mark.parametrize(("lacks", "supported"), [((), True), (("clone",), False), (("working_memory",), False)])
def test_a_clause_may_need_several_capabilities(lacks: tuple[str, ...], supported: bool) -> None:
    able = msgspec.structs.replace(MODEL_CAPABILITIES, **dict.fromkeys(lacks, False))
    assert verdicts.unsupported(CLAUSES["WM-1d"], able) is not supported
