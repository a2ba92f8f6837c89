"""Judging working memory that is not what it should be: which clause the value, or its absence, breaks."""

from __future__ import annotations

from typing import Any

from . import program as ops
from .compare import equal
from .facts_working import allowed, asked_for, question
from .judge_known import Known
from .judge_texts import confusion


class Working:
    """Blames what get_working_memory returned."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self._right: dict[bytes, int] = {}
        """Where a question was answered as it should be, last."""

    def clause(self, index: int, operation: ops.GetWorkingMemory, expected: Any, got: Any) -> str | None:
        """The clause that an answer breaks; None when it is right."""
        asked = question(operation)
        if equal(expected, got):
            self._right[asked] = index
            return None
        operations = self.known.program.operations
        since = operations[self._right[asked] : index] if asked in self._right else ()
        if any(isinstance(each, ops.Reopen) for each in since) and not any(each.role == "write" for each in since):
            return "WM-1f"
        return self._of_history(operations[:index], operation, expected, got)

    def _of_history(
        self, before: tuple[ops.Operation, ...], operation: ops.GetWorkingMemory, expected: Any, got: Any
    ) -> str:
        model, thread_id = self.known.model, operation.arguments()["thread_id"]
        owner = asked_for(operation, model)
        if (confused := confusion(thread_id, [*model.state.threads])) is not None:
            return confused
        updates = [each for each in before if isinstance(each, ops.UpdateWorkingMemory)]
        if updates and not allowed(updates[-1], model) and got == updates[-1].arguments()["value"]:
            return "WM-1a"
        of_resource = owner is not None and owner[0] == "resource"
        gone = [each for each in before if isinstance(each, ops.DeleteThread | ops.ClearMessages)]
        if any(of_resource or each.arguments()["thread_id"] == thread_id for each in gone):
            return "WM-1c"
        thread = model.state.threads.get(thread_id)
        lineage = [each.clone.source_thread_id for each in model.state.threads.values() if each.clone is not None]
        if thread is not None and (thread.clone is not None or thread_id in lineage):
            return "WM-1d"
        others = [value for each, value in model.state.working.items() if each != owner]
        if got in others or of_resource:
            return "WM-1b"
        return "WM-1"
