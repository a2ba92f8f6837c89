"""JUnit XML: valid whatever stores say, and never greener than the verdicts."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree

import pytest
from memassay.harness.artefact import ClauseResult, Finding, Result, Verdict
from memassay.reports import junit
from memassay.spec.clauses import CLAUSES

MakeResult = Callable[..., Result]
MakeFinding = Callable[..., Finding]

HOSTILE = "]]> <&\"' \x00\x01\x1b\ufffe\ud800 \U0001f600 </testcase>"


def suite(result: Result) -> ElementTree.Element:
    found = ElementTree.fromstring(junit.document([result], "cases")).find("testsuite")
    assert found is not None
    return found


def case(result: Result, clause: str = "ORD-5") -> ElementTree.Element:
    return next(found for found in suite(result) if found.get("name") == clause)


def test_there_is_a_test_case_per_clause(result: MakeResult) -> None:
    assert [found.get("name") for found in suite(result())] == list(CLAUSES)


def test_a_passing_clause_has_nothing_to_tell(result: MakeResult) -> None:
    assert list(case(result())) == []


@pytest.mark.parametrize(
    ("verdict", "element"),
    [
        ("fail", "failure"),
        ("flaky", "failure"),
        ("error", "error"),
        ("vacuous", "error"),
        ("not-run", "error"),
        ("unsupported", "skipped"),
    ],
)
def test_only_pass_is_green(result: MakeResult, verdict: Verdict, element: str) -> None:
    assert [child.tag for child in case(result({"ORD-5": ClauseResult(verdict=verdict)}))] == [element]


def test_a_clause_not_asked_for_is_skipped(result: MakeResult) -> None:
    assert [child.tag for child in case(result(), "VAL-1")] == ["skipped"]


def test_a_failure_carries_its_program(result: MakeResult, finding: MakeFinding) -> None:
    failed = result({"ORD-5": ClauseResult(verdict="fail", findings=[finding()])})
    assert "> recall(thread_id='t1', per_page=1)" in (case(failed)[0].text or "")


def test_a_reason_is_the_message(result: MakeResult) -> None:
    assert case(result({"ORD-5": ClauseResult(verdict="vacuous", reason="why")}))[0].get("message") == "why"


def test_counts_are_those_of_the_elements(result: MakeResult) -> None:
    counted = suite(result({"ORD-5": ClauseResult(verdict="fail")}))
    assert (counted.get("tests"), counted.get("failures")) == (str(len(CLAUSES)), "1")


@pytest.mark.parametrize("place", ["got", "statement"])
def test_hostile_text_in_a_finding_stays_text(result: MakeResult, finding: MakeFinding, place: str) -> None:
    failed = result({"ORD-5": ClauseResult(verdict="fail", findings=[finding(**{place: HOSTILE})])})
    assert len(suite(failed)) == len(CLAUSES)


def test_hostile_text_in_a_reason_stays_text(result: MakeResult) -> None:
    vacuous = result({"ORD-5": ClauseResult(verdict="vacuous", reason=HOSTILE)})
    assert "</testcase>" in case(vacuous)[0].get("message", "")


def test_a_hostile_name_stays_text(result: MakeResult) -> None:
    assert suite(result(name=HOSTILE)).get("name", "").startswith("]]>")
