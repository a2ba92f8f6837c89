"""Judging errors: which clause decides whether a call is refused, or how it failed."""

from __future__ import annotations

from typing import Any, cast

import msgspec
from msgspec import UNSET

from . import judge_vectors
from . import program as ops
from .facts import ENGINE_WINDOW, parsed_recall
from .facts_vectors import LARGE
from .interpreter import Crashed, Outcome, Refused, Snapshot
from .judge_known import MAIN_CLAUSE, Known, embedding_write
from .judge_texts import confusion, hostile_text, text_clause
from .types import MemoryConfig

OBSERVING = {
    "": "ORD-4",
    "get_thread": "THR-2",
    "recall": "ORD-4",
    "list_threads": "THR-4",
    "semantic_index": "SEM-6",
    "list_indexes": "VEC-1",
    "describe_index": "VEC-1",
    "get_vectors": "VEC-2",
}
"""The clause of an observation whose call raised."""


class Errors:
    """Blames calls that did not return, or should not have."""

    def __init__(self, known: Known) -> None:
        self.known = known

    def error_clause(self, operation: ops.Operation, expected: Outcome, got: Outcome) -> str:
        """The clause that decides whether this call is refused."""
        if isinstance(got, Crashed) and got.clause:
            return got.clause
        if isinstance(expected, Refused):
            return expected.clause
        if isinstance(got, Refused) and got.code == "unsupported" and not _large(operation):
            return "CAP-1"  # The model can do it, so it was declared.
        if operation.target == "index":
            return judge_vectors.error_clause(operation, got)
        arguments = operation.arguments()
        code = got.code if isinstance(got, Refused) else ""
        if isinstance(operation, ops.Recall):
            return "ORD-6" if code in ("thread_not_found", "ownership_mismatch") else self.feature(operation)
        if isinstance(operation, ops.GetWorkingMemory | ops.UpdateWorkingMemory):
            ids = [arguments.get(name) for name in ("thread_id", "resource_id")]
            return text_clause(ids) or MAIN_CLAUSE[operation.name]
        if isinstance(operation, ops.CreateThread) and code == "already_exists":
            others = [name for name in self.known.state.threads if name not in operation.threads()]
            return next((clause for name in operation.threads() if (clause := confusion(name, others))), "THR-1")
        if code == "configuration_error" and isinstance(operation, ops.SaveMessages) and self._titled(operation):
            return "TTL-1c"
        contents = [getattr(message, "content", None) for message in arguments.get("messages", ())]
        if code == "invalid_request" and "" in contents:
            return "MSG-0"
        if (clause := text_clause(arguments)) is not None:
            return clause
        if embedding_write(operation, self.known.options):
            return "SEM-4"
        if (
            any(event.kind in ("replaced", "moved") for event in self.known.events)
            and operation.name == "save_messages"
        ):
            return "MSG-2"
        return MAIN_CLAUSE[operation.name]

    def _titled(self, operation: ops.SaveMessages) -> bool:
        """Whether titles are spoken of in the configuration of a save."""
        given: MemoryConfig | None = operation.arguments().get("thread_config")
        configs = (self.known.options, MemoryConfig() if given is None else given)
        return any(each.generate_title is not UNSET or each.threads is not UNSET for each in configs)

    def feature(self, operation: ops.Recall) -> str:
        """The clause of the most special thing a recall asks for."""
        arguments = operation.arguments()
        filtered = arguments.get("filter")
        if operation.vector_search_string is not msgspec.UNSET:
            return "SEM-2"
        asked = parsed_recall(arguments, self.known.options)
        if (
            asked is not None
            and asked.page.offset + int(asked.page.per_page) > ENGINE_WINDOW
            and (asked.page.offset < len(self.known.state.rows.get(asked.thread_id, ())))
        ):
            return "ORD-3b"
        if hostile_text(arguments):
            return "ISO-2"
        if asked is not None and asked.page.per_page and 0 < len(self.known.model.matching(asked)) <= asked.page.offset:
            return "ORD-3"
        if operation.include is not msgspec.UNSET:
            return "INC-1"
        if filtered is not None and getattr(filtered, "metadata", None):
            return "FLT-1"
        if filtered is not None and getattr(filtered, "date_range", None) is not None:
            return "TIM-1"
        if operation.resource_id is not msgspec.UNSET:
            return "ORD-6"
        if operation.page is not msgspec.UNSET:
            return "ORD-3"
        return text_clause(arguments) or "ORD-4"

    def unobservable(self, expected: Snapshot, got: Outcome) -> str:
        """The clause of an error where all there is was to be read."""
        if isinstance(got, Refused) and got.code == "thread_not_found" and None in expected.threads.values():
            return "ORD-6"
        if self.known.reopened():
            return "DUR-1"
        during = got.during if isinstance(got, Refused | Crashed) else ""
        special = text_clause([*self.known.interpreter.threads])
        return special or OBSERVING.get(during, "ORD-4")


def _large(operation: ops.Operation) -> bool:
    """Whether a call is about so many dimensions that engines begin to refuse (VEC-1a): a new index, or its vectors."""
    if isinstance(operation, ops.UpsertVectors):
        rows: object = operation.arguments()["vectors"]
        vectors = [getattr(row, "vector", ()) for row in cast("list[Any]", rows)] if isinstance(rows, list) else []
        return any(isinstance(vector, list | tuple) and len(cast("list[Any]", vector)) >= LARGE for vector in vectors)
    dimension = operation.given().get("dimension")
    return isinstance(dimension, int) and dimension >= LARGE
