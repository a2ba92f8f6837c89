"""What the pytest plugin asks: are a store's calls wired, and how does it fare by each clause."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from ..backends.provision import EngineUnavailable
from ..reports.findings import lines
from ..spec.clauses import CLAUSES, LEVELS, Level, select
from ..spec.interpreter import Crashed, Refused
from ..spec.program import (
    CreateIndex,
    CreateThread,
    Observe,
    Program,
    QueryVectors,
    Recall,
    SaveMessages,
    UpsertVectors,
)
from ..spec.protocols import Backend
from . import cases, corpus, known, runner
from .adapter import as_backend
from .artefact import BackendResult, ClauseResult
from .engine import AUTO, EngineFailed, Namespaces, start
from .execution import TIME_OUT, execute
from .exits import UsageProblem

WIRED, KNOWN = "wired", "known"
"""Names of the tests that are about no clause: the first, and the last."""

WIRING_SECONDS = 30.0
"""Seconds in which the simplest calls have to be done."""

MESSAGES = Program(
    (
        CreateThread(resource_id="r", id="t"),
        SaveMessages(messages=[{"id": "m", "thread_id": "t", "content": "hello", "metadata": {"k": 1}}]),
        Recall(thread_id="t", per_page=False),
        Observe(),
    )
)
VECTORS = Program(
    (
        CreateIndex(index="i", dimension=2),
        UpsertVectors(index="i", vectors=[{"id": "v", "vector": [1.0, 0.0], "metadata": {"k": 1}}]),
        QueryVectors(index="i", vector=[1.0, 0.0]),
        Observe(),
    )
)


class Conformance:
    """The verdicts of a pytest session, by store. Each store's programs run once, for all the clauses selected."""

    def __init__(self, *, level: str, seed: int, known: Path, known_given: bool, cases: Path) -> None:
        self._level: Level = _level(level)
        self._seed = seed
        self._known = known
        self._known_given = known_given
        self._cases = cases
        self._corpus: corpus.Corpus | None = None
        self._selected: dict[str, list[str]] = {}
        self._unwired: dict[str, str] = {}
        self._results: dict[str, BackendResult] = {}

    def names(self) -> list[str]:
        """The tests of a store: whether it is wired, the level's clauses, and whether known failures still fail."""
        if self._known_given and not self._known.exists():
            raise pytest.UsageError(f"--memassay-known: {self._known} does not exist")
        last = [KNOWN] if self._known.exists() else []
        return [WIRED, *(clause.id for clause in select(self._level)), *last]

    def select(self, key: str, name: str) -> None:
        """Note that a test of a store is going to run."""
        self._selected.setdefault(key, []).append(name)

    def check(self, key: str, name: str, store: object) -> None:
        """The outcome of one test, as pytest has it: returns, fails, skips or xfails."""
        try:
            backend = as_backend(store)
            unwired = self._wiring(key, backend)
            if unwired and name == WIRED:
                pytest.fail(unwired, pytrace=False)
            if unwired:
                pytest.skip("not run: the adapter is wired wrongly")
            if name == WIRED:
                return
            result = self._result(key, backend)
        except UsageProblem as error:
            pytest.fail(str(error), pytrace=False)
        if name == KNOWN:
            _judge_known(result)
        else:
            self._judge(result, name)

    def _wiring(self, key: str, backend: Backend) -> str:
        """What is wrong with the simplest calls; empty when they work."""
        if key not in self._unwired:
            try:
                self._unwired[key] = _wiring(backend)
            except (EngineUnavailable, EngineFailed) as error:
                self._unwired[key] = f"the adapter is wired wrongly: {error}"
        return self._unwired[key]

    def _result(self, key: str, backend: Backend) -> BackendResult:
        if key not in self._results:
            if self._corpus is None:
                corpus.keep_hypothesis_tidy(str(self._cases.parent / "hypothesis"))
                self._corpus = corpus.build(self._level, self._seed)
            level = [clause.id for clause in select(self._level)]
            wanted = [name for name in self._selected.get(key, level) if name in CLAUSES] or level
            plan = runner.Plan(
                targets=(runner.Target(backend.name, backend),),
                level=self._level,
                clauses=() if len(wanted) == len(level) else tuple(wanted),
                known=known.read(self._known).known,
            )
            kept = cases.keep(runner.verify(plan, self._corpus), self._cases)
            self._results[key] = kept.backends[0]
        return self._results[key]

    def _judge(self, result: BackendResult, clause: str) -> None:
        found = result.clauses[clause]
        match found.verdict:
            case "pass":
                return
            case "unsupported":
                pytest.skip(f"unsupported: {found.reason}")
            case "known":
                declared = "; ".join(entry.reason for entry in result.known if entry.clause == clause)
                pytest.xfail(found.reason or declared)
            case "fail" | "flaky" | "error":
                self._fail(result, found)
            case _:
                pytest.fail(f"{found.verdict}: {found.reason}; {result.error}".removesuffix("; "), pytrace=False)

    def _fail(self, result: BackendResult, found: ClauseResult) -> NoReturn:
        text: list[str] = []
        for finding in found.findings:
            if finding.verdict != "known":
                text.append(f"{finding.verdict.upper()}  {finding.case.signature.clause} on {result.name}")
                text += [f"    {line}" if line else "" for line in lines(finding, self._cases.as_posix())]
        pytest.fail("\n".join(text), pytrace=False)


def _judge_known(result: BackendResult) -> None:
    old = [entry for entry in result.known if entry.status in ("stale", "expired")]
    if old:
        told = "\n".join(f"{entry.status}: {entry.clause} / {entry.signature} ({entry.reason})" for entry in old)
        pytest.fail(f"known failures to be removed or renewed:\n{told}", pytrace=False)


def _wiring(backend: Backend) -> str:
    with start(backend.name, backend, AUTO, {}) as engine, Namespaces(engine) as namespaces:
        able = engine.capabilities
        for program in [*([MESSAGES] if able.storage else []), *([VECTORS] if able.vectors else [])]:
            with namespaces.fresh() as namespace:
                execution = execute(engine, namespace, program, WIRING_SECONDS)
            for operation, outcome in zip(execution.program.operations, execution.transcript, strict=True):
                if isinstance(outcome, Crashed | Refused):
                    kind = outcome.kind if isinstance(outcome, Crashed) else outcome.code
                    call = outcome.during or operation.name
                    said = engine.redactor.text(outcome.message)
                    return f"the adapter is wired wrongly: {call} raised {kind}: {said}"
            for divergence in execution.divergences:
                if divergence.aspect in ("rows", TIME_OUT):
                    return f"the adapter is wired wrongly: {divergence.operation} shows {divergence.got!r}"
    return ""


def _level(name: str) -> Level:
    for level in LEVELS:
        if name == level:
            return level
    raise pytest.UsageError(f"--memassay-level: there is no level {name!r}; use {', '.join(LEVELS)}")
