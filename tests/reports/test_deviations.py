"""The page of deviations: each once, with its stores; what is lacking apart."""

from __future__ import annotations

from collections.abc import Callable

from memassay.harness.artefact import ClauseResult, Finding, Result
from memassay.reports.deviations import page


def test_a_deviation_of_two_stores_is_listed_once(
    result: Callable[..., Result], finding: Callable[..., Finding]
) -> None:
    failing = {"ORD-5": ClauseResult(verdict="fail", findings=[finding()])}
    text = page([result(failing, name="one"), result(failing, name="two")])
    assert text.count("### total: recall") == 1
    assert "On one, two. A program, on one:" in text
    assert "1 deviations, by clause and aspect." in text
    assert "| one | 1.0 | " in text


def test_what_is_unsupported_is_listed_apart(result: Callable[..., Result], finding: Callable[..., Finding]) -> None:
    lacking = finding(got={"refused": "unsupported", "message": "no"})
    text = page([result({"ORD-5": ClauseResult(verdict="fail", findings=[lacking])}, name="one")])
    assert "0 deviations, by clause and aspect." in text
    assert "| one | recall | ORD-5 |" in text
