"""Reports on a terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from memassay.harness.artefact import ClauseResult, Finding, Result, Step
from memassay.reports import clauses, findings, terminal, trace
from memassay.reports.values import comparison, short
from memassay.spec.clauses import by_family, find
from memassay.spec.program import CreateThread, Program

MakeResult = Callable[..., Result]
MakeFinding = Callable[..., Finding]
Printed = Callable[..., str]


def test_the_matrix_has_a_row_per_clause_asked_for(result: MakeResult, printed: Printed) -> None:
    rows = [line.split()[0] for line in printed(terminal.matrix, result()).splitlines() if line.startswith("ORD")]
    assert rows == ["ORD-4", "ORD-5"]


def test_the_matrix_shows_verdicts(result: MakeResult, printed: Printed) -> None:
    failed = result({"ORD-5": ClauseResult(verdict="flaky")})
    (row,) = [line for line in printed(terminal.matrix, failed).splitlines() if line.startswith("ORD-5")]
    assert row.rstrip().endswith("flaky")


def test_the_matrix_fits_80_columns(result: MakeResult, printed: Printed) -> None:
    assert max(map(len, printed(terminal.matrix, result()).splitlines())) <= 80


def test_the_matrix_shows_a_failure_of_a_clause_not_asked_for(result: MakeResult, printed: Printed) -> None:
    failed = result({"ISO-1": ClauseResult(verdict="fail")})
    assert "ISO-1" in printed(terminal.matrix, failed)


def test_the_summary_has_denominators(result: MakeResult) -> None:
    shown = result({"ORD-5": ClauseResult(verdict="vacuous")})
    assert (
        terminal.summary_line(shown, shown.backends[0])
        == "store: 1 of 2 clauses pass, 1 vacuous (1,234 programs, seed 5)"
    )


def test_the_summary_tells_an_engine_s_error(result: MakeResult) -> None:
    shown = result(error="port taken")
    assert terminal.summary_line(shown, shown.backends[0]).endswith("; port taken")


def test_the_summary_says_when_it_is_partial(result: MakeResult, printed: Printed) -> None:
    assert "partial" in printed(terminal.summary, result(interrupted=True))


def test_reasons_are_told_once_for_all_clauses_that_share_them(result: MakeResult, printed: Printed) -> None:
    stopped = {name: ClauseResult(verdict="not-run", reason="interrupted") for name in ("ORD-4", "ORD-5")}
    assert printed(terminal.inconclusive, result(stopped)) == "not-run  ORD-4, ORD-5 on store: interrupted\n"


def test_a_failure_names_clause_and_backend(result: MakeResult, finding: MakeFinding, printed: Printed) -> None:
    failed = result({"ORD-5": ClauseResult(verdict="fail", findings=[finding()])})
    assert printed(terminal.failures, failed, cases="x").startswith("FAIL  ORD-5 on store\n")


def test_a_finding_has_its_statement(finding: MakeFinding) -> None:
    assert next(findings.lines(finding(), "cases")) == "total counts the rows"


def test_a_finding_shows_its_program_with_a_mark(finding: MakeFinding) -> None:
    lines = list(findings.lines(finding(), "cases"))
    assert lines[2:4] == ["  observe()", "> recall(thread_id='t1', per_page=1)"]


def test_a_finding_shows_expected_and_got(finding: MakeFinding) -> None:
    lines = list(findings.lines(finding(), "cases"))
    assert lines[4:7] == ["total of recall", "  expected: 0", "  got:      1"]


def test_a_finding_shows_how_to_replay_it(finding: MakeFinding) -> None:
    assert "replay: memassay replay cases/store/ORD-5-total-recall.json" in findings.lines(finding(), "cases")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({}, "seen in 7 programs; 3 of 3 reruns"),
        ({"reproduced": 1, "minimal": False}, "seen in 7 programs; 1 of 3 reruns; not minimal"),
        ({"reproduced": None, "minimal": False}, "seen in 7 programs; not rerun, not minimal"),
    ],
)
def test_a_finding_says_how_firm_it_is(finding: MakeFinding, changed: dict[str, Any], told: str) -> None:
    assert told in findings.lines(finding(**changed), "cases")


def test_a_finding_shows_the_store_s_options(finding: MakeFinding) -> None:
    program = Program(operations=(CreateThread(resource_id="r"),), options={"last_messages": 3})
    assert "  open({'last_messages': 3})" in findings.lines(finding(program=program, index=0), "cases")


@pytest.mark.parametrize(
    ("expected", "got", "differences"),
    [
        (1, 1, []),
        (1, 2, [("", "1", "2")]),
        (1, True, [("", "1", "True")]),
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, [("b", "2", "3")]),
        ({"a": {"b": 2}}, {"a": {"b": 3}}, [("a.b", "2", "3")]),
        ({"a": 1}, {"b": 1}, [("", "{'a': 1}", "{'b': 1}")]),
        ([1, 2], [1, 3], [("[1]", "2", "3")]),
        ([{"id": "a", "n": 1}], [{"id": "a", "n": 2}], [("[0].n", "1", "2")]),
        ([{"id": "a"}, {"id": "b"}], [{"id": "b"}, {"id": "a"}], [("[ids]", "['a', 'b']", "['b', 'a']")]),
        ({"$at": "x"}, {"$at": "y"}, [("", "at('x')", "at('y')")]),
    ],
)
def test_only_what_differs_is_compared(expected: Any, got: Any, differences: list[tuple[str, str, str]]) -> None:
    assert list(comparison(expected, got)) == differences


def test_many_differences_are_counted() -> None:
    assert list(comparison([1] * 9, [2] * 9))[-1] == ("", "and 3 more differences", "")


def test_a_long_value_is_cut_in_the_middle() -> None:
    assert len(short("x" * 5000)) < 310


def test_a_trace_shows_both_where_they_disagree(printed: Printed) -> None:
    steps = [
        Step(operation="a()", expected=1, got=1, alike=True),
        Step(operation="b()", expected=1, got=2, alike=False),
    ]
    shown = printed(trace.side_by_side, steps, store="store")
    assert shown == "  a()\n> b()\n    model: 1\n    store: 2\n"


def test_every_clause_is_listed(printed: Printed) -> None:
    listed = printed(clauses.listing, by_family())
    assert all(f"  {clause.id} " in listed for family in by_family().values() for clause in family)


def test_a_clause_shows_its_discriminators(printed: Printed) -> None:
    assert "  - a page past the end\n" in printed(clauses.detail, find("ORD-3"))


def test_an_error_cannot_move_the_cursor(result: MakeResult) -> None:
    failed = result(error="log:\n\x1b[2J\rgone")
    assert terminal.summary_line(failed, failed.backends[0]).endswith("; log:\n\\x1b[2J\ngone")


def test_a_large_outcome_is_cut(printed: Printed) -> None:
    step = Step(operation="recall()", expected=None, got="x" * 1_000_000, alike=True)
    shown = printed(trace.outcomes, [step])
    assert (len(shown) < 21_000, "(1,000,002 characters)" in shown) == (True, True)


def rows(*ids: str, before: int = 0) -> list[Any]:
    return [*([f"... {before} before"] if before else []), *({"id": name, "n": 0} for name in ids), "... 9 more"]


def test_rows_of_lists_that_were_cut_are_told_by_their_ids() -> None:
    expected = ["... 480 before", "a", "b", "... 9 more"]
    got = ["... 480 before", "b", "a", "... 9 more"]
    assert list(comparison(rows("a", "b", before=480), rows("b", "a", before=480))) == [
        ("[ids]", str(expected), str(got))
    ]


def test_rows_of_lists_that_were_cut_keep_their_numbers() -> None:
    changed = rows("a", "b", before=480)
    changed[2] = {"id": "b", "n": 1}
    assert list(comparison(rows("a", "b", before=480), changed)) == [("[481].n", "0", "1")]
