"""Judging titles that were made, or were not: which clause a thread's title breaks after saves and settles."""

from __future__ import annotations

from msgspec import UNSET

from . import program as ops
from .judge_known import Known
from .titlers import IN_THE_WAY
from .types import Thread


def title_clause(known: Known, expected: Thread, got: Thread) -> str | None:
    """The clause of a wrong title or updated_at where titles were made or given since the last observation, if any."""
    segment = [operation for operation in known.segment if operation.role == "write"]
    settled = any(isinstance(operation, ops.Settle) for operation in segment)
    given = any(isinstance(operation, ops.TitleThread) for operation in segment)
    if expected.title == got.title:
        # Of updated_at alone: where something else was written too, that is blamed first.
        return "TTL-1a" if given and len(segment) == 1 else "TTL-1" if settled and len(segment) == 1 else None
    if got.title == IN_THE_WAY:
        return "TTL-1b"
    if given:
        return "TTL-1a"
    updated = any(isinstance(operation, ops.UpdateThread) for operation in segment)
    if not settled:
        saved = known.program.titler and any(isinstance(operation, ops.SaveMessages) for operation in segment)
        return "TTL-1b" if saved and not updated else None
    before = known.program.operations[: known.index]
    if any(isinstance(operation, ops.UpdateThread) and operation.title is not UNSET for operation in before):
        return "TTL-1a"
    return "TTL-1" if expected.title else "TTL-1b"
