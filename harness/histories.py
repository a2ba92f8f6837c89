"""Transcripts as JSON that can be judged again: of races, which no rerun repeats, the history itself is kept."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from ..spec.interpreter import Call, Crashed, History, Lost, Outcome, Refused, Returned, Snapshot, Transcript
from ..spec.operation import Operation
from ..spec.program import Kill, Program, Race
from ..spec.types import (
    CloneResult,
    IndexDescription,
    Message,
    RecallResult,
    Thread,
    ThreadPage,
    VectorHit,
    VectorRow,
)

Json = Any

RESULTS: dict[str, Any] = {
    "create_thread": Thread,
    "get_thread": Thread | None,
    "update_thread": Thread,
    "list_threads": ThreadPage,
    "delete_thread": bool,
    "clone_thread": CloneResult,
    "list_clones": tuple[Thread, ...],
    "save_messages": tuple[Message, ...],
    "update_messages": tuple[Message, ...],
    "delete_messages": int,
    "clear_messages": int,
    "recall": RecallResult,
    "create_index": None,
    "describe_index": IndexDescription,
    "list_indexes": tuple[str, ...],
    "drop_index": None,
    "upsert_vectors": int,
    "get_vectors": tuple[VectorRow, ...],
    "update_vector": bool,
    "delete_vectors": int,
    "query_vectors": tuple[VectorHit, ...],
    "observe": Snapshot,
    "tick": None,
    "reopen": None,
}
"""What the calls of programs with races and kills return."""


def encode(transcript: Transcript) -> list[Json] | None:
    """The transcript as JSON; None when something in it has no form in JSON."""
    try:
        return [_outcome(outcome) for outcome in transcript]
    except (TypeError, ValueError, msgspec.MsgspecError, RecursionError):
        return None


def decode(program: Program, kept: list[Json]) -> Transcript:
    """A transcript of the program. Raises msgspec.ValidationError when it is none."""
    if len(kept) > len(program.operations):
        raise msgspec.ValidationError("the transcript is longer than its program")
    return tuple(_read(operation, outcome) for operation, outcome in zip(program.operations, kept, strict=False))


def _outcome(outcome: Outcome) -> Json:
    match outcome:
        case Returned(value=History() as history):
            calls = [msgspec.structs.asdict(call) | {"outcome": _outcome(call.outcome)} for call in history.calls]
            return {"history": calls}
        case Returned(value=Lost() as lost):
            return {"lost": lost.at}
        case Returned():
            return {"returned": msgspec.json.decode(msgspec.json.encode(outcome.value))}
        case Refused():
            return {"refused": msgspec.to_builtins(outcome)}
        case Crashed():
            return {"crashed": msgspec.to_builtins(outcome)}


def _read(operation: Operation, kept: Json) -> Outcome:
    pairs = msgspec.convert(kept, dict[str, Any])
    match next(iter(pairs.items()), ("", None)):
        case "history", calls if isinstance(operation, Race):
            return Returned(History(tuple(_call(operation, call) for call in cast("list[Json]", calls))))
        case "lost", str() as at if isinstance(operation, Kill):
            return Returned(Lost(at))
        case "returned", value:
            called = operation.operation if isinstance(operation, Kill) else operation
            if called.name not in RESULTS:
                raise msgspec.ValidationError(f"{called.name} is in no history")
            return Returned(msgspec.convert(value, RESULTS[called.name]))
        case "refused", refused:
            return msgspec.convert(refused, Refused)
        case "crashed", crashed:
            return msgspec.convert(crashed, Crashed)
        case _:
            raise msgspec.ValidationError(f"{operation.name} has no outcome")


def _call(race: Race, kept: Json) -> Call:
    pairs = msgspec.convert(kept, dict[str, Any])
    outcome = pairs.pop("outcome", None)
    branch, number, began, ended = (
        msgspec.convert(pairs.get(name), int) for name in ("branch", "number", "began", "ended")
    )
    try:
        operation = race.branches[branch][number]
    except IndexError:
        raise msgspec.ValidationError(f"there is no call {number} in branch {branch}") from None
    return Call(branch, number, began, ended, _read(operation, outcome))
