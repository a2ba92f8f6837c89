"""Exit codes, and the errors that are the user's to mend: one line and a hint, never a traceback."""

from __future__ import annotations

from enum import IntEnum

from .artefact import FAILING, Result


class Exit(IntEnum):
    """What the process says to the shell."""

    CONFORMS = 0
    CLAUSES_FAIL = 1
    USAGE = 2
    ENGINE = 3
    STALE_KNOWN_FAILURES = 4
    REGRESSION = 5
    INCONCLUSIVE = 6
    INTERRUPTED = 130
    BROKEN_PIPE = 141


class UsageProblem(Exception):
    """The command line, or a file it names, is wrong; `hint` says what to do instead."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


def of(result: Result) -> Exit:
    """The exit code of a run; of several that apply, the one that says least was learned comes first."""
    verdicts = {
        result_of_clause.verdict
        for backend in result.backends
        for clause, result_of_clause in backend.clauses.items()
        if clause in result.selected or result_of_clause.verdict in FAILING
    }
    if result.interrupted:
        return Exit.INTERRUPTED
    if any(backend.error for backend in result.backends):
        return Exit.ENGINE
    if verdicts & FAILING:
        return Exit.CLAUSES_FAIL
    if any(known.status in ("stale", "expired") for backend in result.backends for known in backend.known):
        return Exit.STALE_KNOWN_FAILURES
    if verdicts & {"vacuous", "not-run"}:
        return Exit.INCONCLUSIVE
    return Exit.CONFORMS
