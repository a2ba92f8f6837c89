"""What changed between two results: verdicts of clauses, and counterexamples that came or went."""

from __future__ import annotations

from collections.abc import Iterator

from ..spec.clauses import CLAUSES
from ..spec.divergence import Signature
from . import artefact
from .artefact import (
    FAILING,
    BackendDifference,
    BackendResult,
    CaseChange,
    Difference,
    Finding,
    Result,
    Verdict,
    VerdictChange,
)
from .exits import UsageProblem


def between(before: Result, after: Result) -> Difference:
    """The changes, of clauses that both asked for or that fail. Raises UsageProblem for results of other backends."""
    asked = {*before.selected} & {*after.selected}
    differences = [_backend(old, new, asked) for old, new in _pairs(before, after)]
    return Difference(
        memassay=artefact.own_version(),
        notes=[*_notes(before, after)],
        compared=_in_order(asked),
        losses=sum(difference.losses for difference in differences),
        backends=differences,
    )


def _pairs(before: Result, after: Result) -> list[tuple[BackendResult, BackendResult | None]]:
    """Backends of one name; where each result has a single one, these two whatever their names."""
    if len(before.backends) == len(after.backends) == 1:
        return [(before.backends[0], after.backends[0])]
    new = {backend.name: backend for backend in after.backends}
    if new.keys().isdisjoint(backend.name for backend in before.backends):
        raise UsageProblem("the results have no backend in common", hint="give two results of the same backends")
    return [(backend, new.get(backend.name)) for backend in before.backends]


def _notes(before: Result, after: Result) -> Iterator[str]:
    for what, old, new in (
        ("memassay", before.memassay, after.memassay),
        ("the level", before.corpus.level, after.corpus.level),
        ("the seed", before.corpus.seed, after.corpus.seed),
        ("the corpus", before.corpus.hash, after.corpus.hash),
    ):
        if old != new:
            yield f"{what} differs: {old} before, {new} after"
    if {*before.selected} != {*after.selected}:
        yield f"{len({*before.selected} ^ {*after.selected})} clauses were asked for in one of the results alone"
    for name, result in (("first", before), ("second", after)):
        if result.interrupted:
            yield f"the {name} result is of a run that was interrupted"


def _backend(old: BackendResult, new: BackendResult | None, asked: set[str]) -> BackendDifference:
    if new is None:
        return BackendDifference(
            before=old.name,
            after="",
            engine_before=old.engine,
            engine_after="",
            gone=True,
            verdicts=[],
            cases=[],
        )
    failing = {
        clause for backend in (old, new) for clause, found in backend.clauses.items() if found.verdict in FAILING
    }
    clauses = _in_order(asked | failing)
    return BackendDifference(
        before=old.name,
        after=new.name,
        engine_before=old.engine,
        engine_after=new.engine,
        gone=False,
        verdicts=[change for clause in clauses if (change := _verdict(clause, old, new)) is not None],
        cases=[*_cases(old, new, clauses)],
    )


def _verdict(clause: str, old: BackendResult, new: BackendResult) -> VerdictChange | None:
    before, after = _of(old, clause), _of(new, clause)
    if before == after:
        return None
    loss = before == "pass" or (after in FAILING and before not in FAILING)
    return VerdictChange(clause=clause, before=before, after=after, loss=loss)


def _of(backend: BackendResult, clause: str) -> Verdict:
    return backend.clauses[clause].verdict if clause in backend.clauses else "not-run"


def _cases(old: BackendResult, new: BackendResult, clauses: list[str]) -> Iterator[CaseChange]:
    before, after = _findings(old, clauses), _findings(new, clauses)
    for signature in sorted(after.keys() - before.keys()):
        found = after[signature]
        yield _case("came", found, loss=found.verdict in FAILING)
    for signature in sorted(before.keys() - after.keys()):
        yield _case("went", before[signature], loss=False)
    for signature in sorted(before.keys() & after.keys()):
        if before[signature].verdict == "known" and after[signature].verdict in FAILING:
            yield _case("came", after[signature], loss=True)


def _case(change: str, finding: Finding, *, loss: bool) -> CaseChange:
    return CaseChange(
        signature=finding.case.signature,
        change="came" if change == "came" else "went",
        verdict=finding.verdict,
        program=finding.case.program,
        loss=loss,
    )


def _findings(backend: BackendResult, clauses: list[str]) -> dict[Signature, Finding]:
    return {
        finding.case.signature: finding
        for clause in clauses
        if clause in backend.clauses
        for finding in backend.clauses[clause].findings
    }


def _in_order(clauses: set[str]) -> list[str]:
    """As reports have them; clauses that this memassay does not know come last."""
    return [*(clause for clause in CLAUSES if clause in clauses), *sorted(clauses - CLAUSES.keys())]
