"""Results to report on, built by hand."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)

from memassay.harness.artefact import BackendResult, Case, ClauseResult, Corpus, Finding, Found, Result, Run, Verdict  # noqa: E402
from memassay.spec.clauses import CLAUSES  # noqa: E402
from memassay.spec.divergence import Signature  # noqa: E402
from memassay.spec.program import Observe, Program, Recall  # noqa: E402
from rich.console import Console  # noqa: E402


@pytest.fixture
def finding() -> Callable[..., Finding]:
    """A finding: `finding(got=…, …)` changes its case."""

    def make(verdict: Verdict = "fail", **changed: Any) -> Finding:
        given: dict[str, Any] = {
            "signature": Signature("ORD-5", "total", "recall"),
            "statement": "total counts the rows",
            "program": Program(operations=(Observe(), Recall(thread_id="t1", per_page=1))),
            "index": 1,
            "expected": 0,
            "got": 1,
            "found": Found(backend="store", engine="1", memassay="0", seed=0, level="smoke"),
            "reproduced": 3,
            "minimal": True,
        }
        case = Case(**(given | changed))
        return Finding(verdict=verdict, programs=7, case=case, file="store/ORD-5-total-recall.json")

    return make


@pytest.fixture
def result() -> Callable[..., Result]:
    """A result of one backend: `result({"ORD-5": ClauseResult(…)}, name=…)`; other clauses pass."""

    def make(
        clauses: dict[str, ClauseResult] | None = None,
        *,
        selected: tuple[str, ...] = ("ORD-4", "ORD-5"),
        interrupted: bool = False,
        **backend: Any,
    ) -> Result:
        verdicts = {name: ClauseResult(verdict="pass" if name in selected else "not-run") for name in CLAUSES}
        given: dict[str, Any] = {
            "name": "store",
            "engine": "1.0",
            "programs": 1234,
            "clauses": verdicts | (clauses or {}),
        }
        return Result(
            memassay="0",
            python="3",
            hypothesis="6",
            corpus=Corpus(seed=5, level="smoke", examples=None, programs=1234, hash="abc"),
            selected=list(selected),
            time_zone="UTC",
            interrupted=interrupted,
            backends=[BackendResult(**(given | backend))],
            run=Run(started="now", seconds=1.5, seconds_by_backend={"store": 1.5}, platform="x"),
        )

    return make


@pytest.fixture
def failed(result: Callable[..., Result], finding: Callable[..., Finding]) -> Callable[..., Result]:
    """A result whose ORD-5 fails: `failed(expected=…)` changes the case."""

    def make(**changed: Any) -> Result:
        found = ClauseResult(
            verdict="fail",
            applicable=40,
            discriminators={"a request with include": 9},
            findings=[finding(**changed)],
        )
        return result({"ORD-5": found})

    return make


@pytest.fixture
def printed() -> Callable[..., str]:
    """What a report prints on 80 columns."""

    def run(report: Callable[..., None], *arguments: Any, width: int = 80, **given: Any) -> str:
        out = io.StringIO()
        report(*arguments, Console(file=out, width=width), **given)
        return out.getvalue()

    return run
