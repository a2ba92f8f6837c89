"""What a program puts to the test of working memory (WM-1): facts about reads, from what was written before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET

from . import program as ops
from .errors import StoreError
from .interpreter import Outcome, Returned
from .reference import Model, Owner
from .working_memory import WorkingRequest, parse_get_working, parse_update_working, working


def asked_for(operation: ops.Operation, model: Model) -> Owner | None:
    """Whose working memory a call is about; None when it is refused or its thread is unknown."""
    arguments = operation.arguments()
    try:
        if isinstance(operation, ops.UpdateWorkingMemory):
            return model.working_owner(parse_update_working(options=model.options, **arguments)[0])
        return model.working_owner(parse_get_working(options=model.options, **arguments))
    except StoreError:
        return None


def allowed(operation: ops.UpdateWorkingMemory, model: Model) -> bool:
    """Whether nothing is wrong with what an update says."""
    try:
        parse_update_working(options=model.options, **operation.arguments())
    except StoreError:
        return False
    return True


def question(operation: ops.Operation) -> bytes:
    """What a call asks, whichever client makes it."""
    return msgspec.json.encode([operation.name, operation.given()])


class WorkingHistory:
    """What happened to working memory in a program so far, on the model."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.values: dict[Owner, list[str]] = {}
        self.writer: dict[Owner, str] = {}
        self.refused = False
        """Whether the last update was refused for its value."""
        self.cleared: set[str] = set()
        self.lost: set[str] = set()
        """Threads that were deleted with a value."""
        self.clones: dict[str, str] = {}
        """Clones of threads that had a value, with their sources."""
        self.updated_since: set[str] = set()
        """Of those, and of their sources, the threads that were updated afterwards."""
        self.before: set[bytes] = set()
        self.before_reopen: set[bytes] = set()
        """Questions answered since the last write, and before a reopen."""

    def write(self, operation: ops.Operation, outcome: Outcome, held: dict[Owner, str]) -> Iterator[str]:
        """A write that was made; `held` is what the model held before it."""
        self.before.clear()
        self.before_reopen.clear()
        done = isinstance(outcome, Returned)
        match operation:
            case ops.UpdateWorkingMemory():
                self.refused = not done and not allowed(operation, self.model)
                owner = asked_for(operation, self.model)
                if done and owner is not None:
                    yield "working.update"
                    arguments = operation.arguments()
                    self.values.setdefault(owner, []).append(arguments["value"])
                    self.writer[owner] = arguments["thread_id"]
                    self.cleared.discard(arguments["thread_id"])
                    if owner[0] == "thread" and owner[1] in {*self.clones, *self.clones.values()}:
                        self.updated_since.add(owner[1])
            case ops.ClearMessages() if done:
                self.cleared.add(operation.arguments()["thread_id"])
            case ops.DeleteThread() if done:
                thread_id = operation.arguments()["thread_id"]
                if held.get(("thread", thread_id)) is not None:
                    self.lost.add(thread_id)
                self.values.pop(("thread", thread_id), None)
                self.clones.pop(thread_id, None)
            case ops.CloneThread() if isinstance(outcome, Returned):
                source = operation.arguments()["source_thread_id"]
                if ("thread", source) in held:
                    self.clones[outcome.value.thread.id] = source
            case _:
                return

    def reopen(self) -> None:
        """The clients were closed and opened anew."""
        self.before_reopen |= self.before

    def read(self, operation: ops.GetWorkingMemory, outcome: Outcome) -> Iterator[str]:
        """A read of an observed state."""
        if not isinstance(outcome, Returned):
            return
        yield "working.get"
        arguments = operation.arguments()
        asked = parse_get_working(options=self.model.options, **arguments)
        owner = self.model.working_owner(asked)
        if owner is None:
            yield "working.unknown"
            return
        if outcome.value is None:
            yield from self._none(asked, owner)
        else:
            yield from self._value(asked, owner, outcome.value, arguments)
            if question(operation) in self.before_reopen:
                yield "working.reopened"
        self.before.add(question(operation))

    def _none(self, asked: WorkingRequest, owner: Owner) -> Iterator[str]:
        yield "working.none"
        if asked.thread_id in self.lost and asked.scope == "thread":
            yield "working.recreated"
        if asked.scope == "thread" and any(kind == "thread" for kind, _ in self.model.state.working):
            yield "working.apart"

    def _value(self, asked: WorkingRequest, owner: Owner, value: str, arguments: dict[str, Any]) -> Iterator[str]:
        state = self.model.state
        yield "working.value" if value else "working.empty"
        values = self.values.get(owner, [])
        if len(values) > 1 and len(values[-1]) < len(values[-2]):
            yield "working.shorter"
        if working(self.model.options, arguments.get("thread_config")).schema is not None:
            yield "working.schema"
        if self.refused:
            yield "working.kept"
        if asked.scope == "resource" and self.writer.get(owner) != asked.thread_id:
            yield "working.shared"
            if self.writer.get(owner) not in state.threads:
                yield "working.outlives"
        resource = state.threads[asked.thread_id].resource_id
        own, shared = state.notes["thread"].get(asked.thread_id), state.notes["resource"].get(resource)
        if own is not None and shared is not None and own != shared:
            yield "working.both"
        if asked.thread_id in self.cleared:
            yield "working.cleared"
        if asked.scope == "thread" and asked.thread_id in self.clones:
            yield "working.cloned"
        related = {asked.thread_id, self.clones.get(asked.thread_id)}
        related |= {clone for clone, source in self.clones.items() if source == asked.thread_id}
        if asked.scope == "thread" and len(related - {None}) > 1 and related & self.updated_since:
            yield "working.cloned_apart"
        options = self.model.options.working_memory
        if arguments.get("thread_config") is not None and (options is UNSET or not options.enabled):
            yield "working.by_call"
