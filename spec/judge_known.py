"""What the judge knows: the model, set to what the store itself showed, and what was called since."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, cast

import msgspec

from . import judge_hits, judge_vectors
from . import program as ops
from .capabilities import Capabilities
from .divergence import Divergence
from .embedders import LiteralEmbedder
from .facts import reader
from .interpreter import START, Crashed, Interpreter, Outcome, Snapshot
from .judge_texts import hostile_text
from .reference import ModelNamespace, Row
from .reference_index import ModelIndex
from .requests import Recall, embeds
from .types import DateRange, MemoryConfig, Message, MessageUpdate, NewMessage, RecallResult, VectorHit

MAIN_CLAUSE = {
    "create_thread": "THR-1",
    "get_thread": "THR-2",
    "update_thread": "THR-3",
    "list_threads": "THR-4",
    "delete_thread": "THR-5",
    "clone_thread": "CLN-1",
    "list_clones": "CLN-4",
    "save_messages": "MSG-1",
    "update_messages": "MSG-4",
    "delete_messages": "MSG-5",
    "clear_messages": "MSG-5a",
    "recall": "ORD-3",
    "get_working_memory": "WM-1",
    "update_working_memory": "WM-1",
    "title_thread": "TTL-1a",
    "settle": "TTL-1b",
    "reopen": "DUR-1",
    "observe": "ORD-4",
    "together": "THR-3a",
}
"""The clause that a call answers to when nothing about it is special."""

UNRECORDED = (
    *("save_messages", "update_messages", "delete_messages", "update_working_memory", "title_thread", "settle"),
)
"""Calls that may have nothing to do to threads and messages, and are still the ones to blame."""

EVENT_CLAUSE = {
    "thread_created": "THR-1",
    "thread_updated": "THR-3",
    "thread_deleted": "THR-5",
    "inserted": "MSG-1",
    "replaced": "MSG-2",
    "moved": "MSG-2",
    "updated": "MSG-4",
    "deleted": "MSG-5",
    "cleared": "MSG-5a",
    "cloned": "CLN-1",
    "titled": "TTL-1",
}


class Known:
    """The state between two observations, and what happened in it."""

    def __init__(self, program: ops.Program, capabilities: Capabilities) -> None:
        self.program = program
        self.namespace = ModelNamespace(capabilities)
        self.state = self.namespace.state
        self.events = self.namespace.events
        self.options: MemoryConfig = ops.config(program.options)
        self.model = reader(program, self.state, capabilities)
        self.vectors = ModelIndex(self.namespace.indexes, capabilities)
        self.embedder = LiteralEmbedder(program.embedder)
        self.interpreter = Interpreter(program, self.namespace)
        self.synced = False
        """The model holds what the store showed, and nothing was written since."""
        self.dirty = False
        """A write went wrong: until the next observation nothing more can be said."""
        self.segment: list[ops.Operation] = []
        self.old: dict[str, Message] = {}
        self.seen: list[tuple[Recall, RecallResult]] = []
        self.queries: list[tuple[ops.QueryVectors, tuple[VectorHit, ...]]] = []
        self.recalls: dict[str, judge_hits.Recall] = {}
        self.index = 0
        """The operation at hand."""
        self.ghosts: dict[str, set[str]] = {}
        """By thread, rows already shown where the model can hold none: of a missing thread, or a second copy."""
        self.strangers: set[str] = set()
        """Threads already listed that no operation should have made."""
        self.given_range: DateRange | None = None
        """The date range of the recall at hand, as it was given."""
        self.misdated: set[str] = set()
        """Threads whose creation returned a wrong updated_at."""

    def next_position(self) -> int:
        """A position after all others."""
        self.state.next_position += 1
        return self.state.next_position

    def observed(self) -> None:
        """The model holds what the store showed."""
        self.reset()
        self.synced = True
        self.dirty = False

    def reset(self) -> None:
        """Begin anew after an observation."""
        self.misdated.clear()
        self.events.clear()
        self.segment.clear()
        self.seen.clear()
        self.queries.clear()
        self.old = {message_id: row.message for message_id, row in self.state.by_id.items()}

    def load(self, snapshot: Snapshot) -> None:
        """Make the model hold what the store showed; embeddings and working memory do not show, and stay."""
        judge_vectors.load(self.vectors, snapshot)
        state = self.state
        if snapshot.listed is None:
            return
        state.threads = {thread_id: thread for thread_id, thread in snapshot.threads.items() if thread is not None}
        state.rows = {thread_id: [] for thread_id in state.threads}
        known, state.by_id = state.by_id, {}
        self.ghosts = {}
        for thread_id, listing in snapshot.rows.items():
            rows: list[Row] = []
            for message in listing.messages:
                if message.id in state.by_id or thread_id not in state.threads:
                    self.ghosts.setdefault(thread_id, set()).add(message.id)
                    continue
                old = known.get(message.id)
                same_thread = old is not None and old.message.thread_id == thread_id
                position = old.position if old is not None and same_thread else self.next_position()
                rows.append(Row(msgspec.structs.replace(message, thread_id=thread_id), position))
                state.by_id[message.id] = rows[-1]
            if rows != sorted(rows, key=lambda row: row.rank):
                # Another order than the model's: from here on the store's.
                rows = [Row(row.message, self.next_position()) for row in rows]
                state.by_id |= {row.message.id: row for row in rows}
            state.rows.setdefault(thread_id, []).extend(rows)
        state.rows = {thread_id: rows for thread_id, rows in state.rows.items() if thread_id in state.threads}
        self.strangers = {thread.id for thread in snapshot.listed.threads} - snapshot.threads.keys()
        for owner in state.working:
            if owner[0] == "thread" and owner[1] not in state.threads:
                state.note(owner, None)
        state.embedded = {name: kept for name, kept in state.embedded.items() if name in state.by_id}

    def reopened(self) -> bool:
        """Whether nothing but a reopen lies between two observations."""
        return bool(self.segment) and all(isinstance(operation, ops.Reopen) for operation in self.segment)

    def saves(self) -> Iterator[tuple[str, NewMessage]]:
        """The messages saved since the last observation, each under its id."""
        for operation in self.segment:
            if isinstance(operation, ops.SaveMessages):
                batch = operation.arguments()["messages"]
                for message in cast("list[Any]", batch if isinstance(batch, list) else []):
                    if isinstance(message, NewMessage) and isinstance(cast(object, message.id), str):
                        yield message.id, message

    def touching(self) -> bool:
        """Whether a write since the last observation sets updated_at."""
        return any(_touches(operation) for operation in self.segment)

    def given_instant(self, thread_id: str) -> bool:
        """Whether the thread was created with an instant since the last observation."""
        return any(
            isinstance(operation, ops.CreateThread)
            and thread_id in operation.threads()
            and operation.created_at not in (msgspec.UNSET, None)
            for operation in self.segment
        )

    @property
    def now(self) -> datetime:
        """Where the program's clock stands."""
        ticks = [operation.ms for operation in self.program.operations[: self.index] if isinstance(operation, ops.Tick)]
        return START + timedelta(milliseconds=sum(ticks))

    def related(self, thread_id: str) -> bool:
        """Whether nothing was written to the thread, but something to its source or to a clone of it."""
        written = {event.thread_id for event in self.events}
        lineage = {(thread.clone.source_thread_id, thread.id) for thread in self.state.threads.values() if thread.clone}
        kin = {source for source, clone in lineage if clone == thread_id}
        kin |= {clone for source, clone in lineage if source == thread_id}
        return thread_id not in written and not written.isdisjoint(kin)

    def collateral(self, default: str) -> str:
        """The clause of the only kind of write there was, for damage to what no write named."""
        writes = [operation for operation in self.segment if operation.role == "write"]
        if any(isinstance(operation, ops.Together) for operation in writes):
            return next(together_clause(op.operations[0]) for op in writes if isinstance(op, ops.Together))
        names = {operation.name for operation in writes}
        if not self.events and any(hostile_text(ids_of(operation)) for operation in writes):
            return "ISO-2"
        if not self.events and len(names) == 1:
            # Everything was refused, or had nothing to do.
            name = names.pop()
            return MAIN_CLAUSE[name] if name in UNRECORDED else "ISO-2"
        return MAIN_CLAUSE[names.pop()] if len(names) == 1 else default


def deviation(clause: str, aspect: str, name: str, index: int, expected: Outcome, got: Outcome) -> Divergence:
    """A deviation of whole outcomes."""
    return Divergence(clause, aspect, name, index, expected, got, crashed=isinstance(got, Crashed))


def embedding_write(operation: ops.Operation, options: MemoryConfig) -> bool:
    """Whether a write embeds what it stores."""
    if not isinstance(operation, ops.SaveMessages | ops.UpdateMessages):
        return False
    return embeds(options, operation.arguments().get("thread_config"))


def _touches(operation: ops.Operation) -> bool:
    return operation.name in ("save_messages", "update_messages", "delete_messages", "clear_messages")


def together_clause(operation: ops.Operation) -> str:
    """The clause of a write at the same time as others like it."""
    return "THR-3a" if isinstance(operation, ops.UpdateThread) else "MSG-4a"


def ids_of(operation: ops.Operation) -> list[Any]:
    """The ids by which a call changes or deletes what exists."""
    arguments = operation.arguments()
    fields = [arguments.get(name) for name in ("thread_id", "ids")]
    return [*fields, *(update.id for update in updates_of(operation))]


def updates_of(operation: ops.Operation) -> list[MessageUpdate]:
    """The changes of an update_messages; none for any other call."""
    return operation.arguments()["updates"] if isinstance(operation, ops.UpdateMessages) else []
