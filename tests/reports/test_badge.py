"""The badge: level and counts, and a colour that does not flatter."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from memassay.harness.artefact import ClauseResult, Result, Verdict
from memassay.reports.badge import badge


def told(result: Result) -> Any:
    return json.loads(badge([result]))


@pytest.mark.parametrize(
    ("verdict", "message", "colour"),
    [
        ("pass", "2 of 2 clauses", "brightgreen"),
        ("fail", "1 of 2 clauses", "red"),
        ("flaky", "1 of 2 clauses", "red"),
        ("known", "1 of 2 clauses, 1 known", "yellow"),
        ("unsupported", "1 of 2 clauses, 1 unsupported", "brightgreen"),
        ("vacuous", "1 of 2 clauses", "yellow"),
    ],
)
def test_counts_and_colour(result: Callable[..., Result], verdict: Verdict, message: str, colour: str) -> None:
    found = told(result({"ORD-5": ClauseResult(verdict=verdict)}))
    assert (found["message"], found["color"]) == (message, colour)


def test_an_engine_that_did_not_start_is_red(result: Callable[..., Result]) -> None:
    assert told(result(error="no engine"))["color"] == "red"
