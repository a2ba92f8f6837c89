"""Known failures: what memassay.toml may say, what it does to a run, and cases that are run first."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from harness_support import Cli, Hold, corpus_of, page
from memassay.harness import artefact, cases, exits, known, verdicts
from memassay.harness.artefact import KnownResult
from memassay.harness.corpus import CASE, Corpus, build, with_cases
from memassay.harness.exits import Exit, UsageProblem
from memassay.harness.known import Known
from memassay.harness.runner import IN_THE_WAY, Plan, Target, verify
from memassay.spec.clauses import CLAUSES
from memassay.spec.strategies import SCENARIOS
from memory_fakes import Correct, Crashing, Miscounting

LATER, BEFORE, TODAY = date(2030, 1, 1), date(2020, 1, 1), date(2025, 1, 1)
DECLARED = """
[[known]]
clause = "ORD-5"
signature = "total / recall"
backend = "acme"
reason = "off by one"
expires = 2030-01-01
"""


def entry(**given: Any) -> Known:
    fields: dict[str, Any] = {
        "clause": "ORD-5",
        "signature": "total / recall",
        "backend": "fake",
        "reason": "off by one",
        "expires": LATER,
        "level": "smoke",
    }
    return Known(**fields | given)


def held(hold: Hold, backend: Any, *entries: Known, **plan: Any) -> artefact.Result:
    return hold(backend, [page(1, i) for i in range(6)], known=entries, today=TODAY, clauses=["ORD-5"], **plan)


def status(result: artefact.Result) -> list[tuple[str, int]]:
    return [(found.status, found.programs) for found in result.backends[0].known]


# The file


def test_without_a_file_nothing_is_declared(tmp_path: Path) -> None:
    assert known.read(tmp_path / "memassay.toml") == known.Declared()


def test_an_entry_is_read(tmp_path: Path) -> None:
    (tmp_path / "memassay.toml").write_text(DECLARED)
    assert known.read(tmp_path / "memassay.toml").known == (entry(backend="acme", level="core"),)


def test_the_tables_of_others_are_left_to_them(tmp_path: Path) -> None:
    (tmp_path / "memassay.toml").write_text('[images]\nx = "y"\n')
    assert known.read(tmp_path / "memassay.toml") == known.Declared()


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('clause = "ORD-5"', "there is no clause 'ORD-99'"),
        ('signature = "total / recall"', "is no signature"),
        ('reason = "off by one"', "the reason is empty"),
        ("expires = 2030-01-01", "expires"),
        ('backend = "acme"', "is no condition on a version"),
        ("[[known]]", "known is no list"),
    ],
)
def test_a_wrong_entry_is_told_with_its_number(tmp_path: Path, line: str, complaint: str) -> None:
    wrong = {
        'clause = "ORD-5"': 'clause = "ORD-99"',
        'signature = "total / recall"': 'signature = "total"',
        'reason = "off by one"': 'reason = " "',
        "expires = 2030-01-01": 'expires = "soon"',
        'backend = "acme"': 'backend = "acme"\nversions = "about 3"',
        "[[known]]": "[known]",
    }
    path = tmp_path / "memassay.toml"
    path.write_text(DECLARED.replace(line, wrong[line]))
    with pytest.raises(UsageProblem, match=complaint):
        known.read(path)


@pytest.mark.parametrize(
    ("version", "wanted", "inside"),
    [
        ("Engine 3.45.1 (driver 0.1)", "", True),
        ("Engine 3.45.1 (driver 0.1)", ">=3.45, <4", True),
        ("Engine 3.45.1 (driver 0.1)", "<3.45", False),
        ("3.9", "<3.45", True),
        ("2", "==2.0", True),
        ("2.0.1", "!=2.0.1", False),
        ("unknown", "", True),
        ("unknown", ">=1", False),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, wanted: str, inside: bool) -> None:
    assert known.within(version, wanted) is inside


# A run


def test_a_declared_failure_is_known_and_counted(hold: Hold) -> None:
    result = held(hold, Miscounting(), entry())
    assert result.backends[0].clauses["ORD-5"].verdict == "known"
    assert status(result) == [("met", 6)]


def test_a_known_failure_does_not_fail_the_run(hold: Hold) -> None:
    assert exits.of(held(hold, Miscounting())) == Exit.CLAUSES_FAIL
    assert exits.of(held(hold, Miscounting(), entry())) == Exit.CONFORMS


def test_another_signature_of_the_clause_still_fails(hold: Hold) -> None:
    result = held(hold, Miscounting(), entry(signature="has_more / recall"))
    assert result.backends[0].clauses["ORD-5"].verdict == "fail"


def test_the_search_goes_on_past_a_known_failure(hold: Hold) -> None:
    result = held(hold, Miscounting(), entry(), fail_fast=True)
    assert result.backends[0].programs == 6


@pytest.mark.parametrize("other", [{"backend": "another"}, {"versions": ">=99"}])
def test_an_entry_about_something_else_changes_nothing(hold: Hold, other: dict[str, str]) -> None:
    result = held(hold, Miscounting(), entry(**other))
    assert (result.backends[0].clauses["ORD-5"].verdict, result.backends[0].known) == ("fail", [])


@pytest.fixture(scope="module")
def dates() -> Corpus:
    """Programs that put TIM-1 to the test."""
    return build("smoke", 0, scenarios={"dates": SCENARIOS["dates"]})


def on(corpus: Corpus, backend: Any, *entries: Known) -> artefact.Result:
    targets = [Target("fake", backend)]
    return verify(Plan(targets=targets, level="smoke", clauses=["TIM-1"], known=entries, today=TODAY), corpus)


def test_an_entry_that_no_longer_fails_is_stale(dates: Corpus) -> None:
    result = on(dates, Correct(), entry(clause="TIM-1"))
    assert status(result) == [("stale", 0)]
    assert exits.of(result) == Exit.STALE_KNOWN_FAILURES


def test_an_entry_of_a_higher_level_is_not_judged(dates: Corpus) -> None:
    result = on(dates, Correct(), entry(clause="TIM-1", level="extended"))
    assert status(result) == [("not judged", 0)]
    assert exits.of(result) == Exit.CONFORMS


def test_an_entry_whose_clause_was_not_put_to_the_test_is_not_judged(hold: Hold) -> None:
    result = held(hold, Correct(), entry())
    assert result.backends[0].clauses["ORD-5"].verdict == "vacuous"
    assert status(result) == [("not judged", 0)]


def test_an_expired_entry_ends_the_run_though_it_is_met(hold: Hold) -> None:
    result = held(hold, Miscounting(), entry(expires=BEFORE))
    assert status(result) == [("expired", 6)]
    assert exits.of(result) == Exit.STALE_KNOWN_FAILURES


# Accepting


def test_what_was_accepted_can_be_read_and_is_known(hold: Hold, tmp_path: Path) -> None:
    path = tmp_path / "memassay.toml"
    path.write_text("# mine")
    assert known.accept(held(hold, Miscounting()), path, TODAY) == 1
    (written,) = known.read(path).known
    assert path.read_text().startswith("# mine\n")
    assert (written.versions, written.expires) == ("==1.2.3", date(2025, 4, 1))
    assert held(hold, Miscounting(), written).backends[0].clauses["ORD-5"].verdict == "known"


def test_what_is_known_is_not_accepted_again(hold: Hold, tmp_path: Path) -> None:
    path = tmp_path / "memassay.toml"
    assert known.accept(held(hold, Miscounting(), entry()), path, TODAY) == 0
    assert not path.exists()


# The commands


def test_check_tells_expired_and_doubled_entries(memassay: Cli, tmp_path: Path) -> None:
    (tmp_path / "memassay.toml").write_text(DECLARED.replace("2030", "2020") + DECLARED + DECLARED)
    done = memassay("known", "check")
    assert done.returncode == Exit.STALE_KNOWN_FAILURES
    assert "3 known failures, 3 of them expired or doubled" in done.stdout


def test_list_shows_every_entry(memassay: Cli, tmp_path: Path) -> None:
    (tmp_path / "memassay.toml").write_text(DECLARED)
    done = memassay("known", "list")
    assert "ORD-5 / total / recall on acme" in done.stdout


def test_a_wrong_file_is_a_mistake_of_the_user(memassay: Cli, tmp_path: Path) -> None:
    (tmp_path / "memassay.toml").write_text("[[known]]\n")
    done = memassay("verify", "reference", "--level", "smoke", "--examples", "5")
    assert (done.returncode, done.stdout) == (Exit.USAGE, "")


# Cases that are run first


def test_programs_of_cases_come_first_and_once() -> None:
    one, two = page(1), page(2)
    mixed = with_cases(corpus_of(one, two), [two, two])
    assert [(entry.hash, entry.scenario) for entry in mixed.entries] == [(two.hash, CASE), (one.hash, "by hand")]
    assert mixed.description.cases == 1


def test_cases_put_no_clause_to_the_test() -> None:
    mixed = with_cases(corpus_of(), [page(1)])
    assert mixed.entries[0].facts & {*CLAUSES["ORD-5"].applies}
    assert verdicts.tally(CLAUSES["ORD-5"], mixed.entries).applicable == 0


def test_the_cases_of_a_folder_are_read(hold: Hold, tmp_path: Path) -> None:
    result = held(hold, Miscounting())
    cases.keep(result, tmp_path)
    (finding,) = result.backends[0].clauses["ORD-5"].findings
    assert cases.programs([None, tmp_path / "missing", tmp_path]) == [finding.case.program]


def test_a_known_result_says_what_was_declared(hold: Hold) -> None:
    (found,) = held(hold, Miscounting(), entry(versions=">=1", url="https://example.org/7")).backends[0].known
    assert found == KnownResult(
        clause="ORD-5",
        signature="total / recall",
        versions=">=1",
        reason="off by one",
        url="https://example.org/7",
        expires="2030-01-01",
        status="met",
        programs=6,
    )


def test_a_clause_tested_only_after_declared_failures_is_known(hold: Hold, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of one crash: what else these programs ask comes to nothing. Any program that asks is enough here."""
    monkeypatch.setattr(verdicts, "LEAST_MET", 0)
    monkeypatch.setattr(verdicts, "LEAST_SHARE", 0)
    programs = [page(1, i) for i in range(6)]
    undeclared = hold(Crashing(), programs)
    (found,) = [each for clause in undeclared.backends[0].clauses.values() for each in clause.findings]
    signature = found.case.signature
    declared = entry(clause=signature.clause, signature=f"{signature.aspect} / {signature.operation}", level="core")
    result = hold(Crashing(), programs, known=[declared], today=TODAY)
    kept = {name: clause for name, clause in result.backends[0].clauses.items() if clause.reason == IN_THE_WAY}
    assert {undeclared.backends[0].clauses[name].verdict for name in kept} == {"vacuous"}
    assert {clause.verdict for clause in kept.values()} == {"known"}
