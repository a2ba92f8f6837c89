"""Judging a transcript: every deviation from the model, blamed on the clause it breaks.

Two devices keep one fault from being blamed on many clauses:

* The model is set to what the store itself showed at each `observe`. So the writes between two
  observations are judged from the store's own earlier state, and reads are judged against it: a row that
  a save lost does not count against paging, filters or include.
* A read with several features is judged against the store's own answers to simpler reads of the same
  state, where the program made them: a page against the full listing, a filtered page against the
  filtered listing, an include against the same page without it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, cast

import msgspec

from . import judge_hits, judge_vectors, operators
from . import program as ops
from .capabilities import Capabilities
from .compare import equal, same
from .divergence import Divergence
from .embedders import LiteralEmbedder
from .embedding import embed
from .facts import ENGINE_WINDOW, parsed_list_threads, parsed_recall, reader
from .filters import Window
from .interpreter import START, Crashed, Interpreter, Outcome, Refused, Returned, Snapshot, Transcript, run, spoilt
from .judge_hits import Candidates, Fault, fault, ties_fault
from .reference import Event, ModelNamespace, Row
from .reference_index import MODEL_CAPABILITIES, ModelIndex
from .requests import ListThreads, Recall, embeds
from .types import (
    CloneResult,
    DateRange,
    Hit,
    MemoryConfig,
    Message,
    MessageUpdate,
    NewMessage,
    RecallResult,
    Thread,
    ThreadPage,
    VectorHit,
)

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
    "get_working_memory": "CAP-1",
    "update_working_memory": "CAP-1",
    "reopen": "DUR-1",
    "observe": "ORD-4",
    "together": "THR-3a",
}
"""The clause that a call answers to when nothing about it is special."""

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
}


def judge(
    program: ops.Program, transcript: Transcript, capabilities: Capabilities = MODEL_CAPABILITIES
) -> tuple[Divergence, ...]:
    """The deviations of a transcript, in order; empty when the store conforms. Pure."""
    expected = expect(program, capabilities)
    if len(expected) == len(transcript) and all(map(same, expected, transcript)):
        return ()
    if len(transcript) != len(expected):
        raise AssertionError("a transcript is not as long as its program")
    walk = _Judge(program, capabilities)
    found = tuple(walk.run(transcript))
    if found:
        return found
    # What differs was judged to be as right, or no rule explains it: never a silent pass.
    for index, (right, wrong) in enumerate(zip(expected, transcript, strict=False)):
        if index not in walk.accepted and not same(right, wrong):
            name = program.operations[index].name
            return (Divergence(MAIN_CLAUSE.get(name, "ISO-2"), "outcome", name, index, right, wrong),)
    return ()


def expect(program: ops.Program, capabilities: Capabilities = MODEL_CAPABILITIES) -> Transcript:
    """The model's transcript."""
    return run(program, ModelNamespace(capabilities))


class _Judge:
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
        self.accepted: set[int] = set()
        """Indices of outcomes that differ from the model's and are as right."""
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

    def run(self, transcript: Transcript) -> Iterator[Divergence]:
        for index, (operation, got) in enumerate(zip(self.program.operations, transcript, strict=False)):
            self.index = index
            if operation.role == "read":
                expected = self.interpreter.step(operation)
                if self.synced:
                    faults = tuple(self.read(index, operation, expected, got))
                    if not faults:
                        self.accepted.add(index)
                    yield from faults
                continue
            expected = self.interpreter.step(operation)
            if isinstance(operation, ops.Observe):
                yield from self.observation(index, expected, got)
                continue
            if isinstance(operation, ops.Tick):
                continue
            self.synced = False
            self.segment.append(operation)
            if not self.dirty:
                for divergence in self.write(index, operation, expected, got):
                    self.dirty = self.dirty or divergence.aspect == "error"
                    yield divergence

    # Writes

    def write(self, index: int, operation: ops.Operation, expected: Outcome, got: Outcome) -> Iterator[Divergence]:
        if same(expected, got):
            return
        name = operation.name
        if not (isinstance(expected, Returned) and isinstance(got, Returned)):
            clause = self.error_clause(operation, expected, got)
            yield _divergence(clause, "error", name, index, expected, got)
            return
        if operation.target == "index":
            yield from judge_vectors.write_values(operation, index, expected.value, got.value)
            return
        if isinstance(operation, ops.CloneThread):
            yield from self.clone(index, expected.value, got.value)
            return
        if isinstance(operation, ops.Together):
            yield from self.together(index, operation, expected.value, got.value)
            return
        if isinstance(expected.value, Thread) and isinstance(got.value, Thread):
            event = Event("thread_created" if isinstance(operation, ops.CreateThread) else "thread_updated", "")
            if isinstance(operation, ops.CreateThread) and expected.value.updated_at != got.value.updated_at:
                self.misdated.add(expected.value.id)
            yield from self.thread_values(index, name, expected.value, got.value, event)
            return
        if _messages(expected.value) and _messages(got.value):
            wanted = {message.id: message for message in cast("tuple[Message, ...]", expected.value)}
            shown = {message.id: message for message in got.value}
            if [*wanted] != [message.id for message in got.value]:
                known = [*self.state.by_id, *self.old]
                confused = [clause for lost in wanted.keys() - shown.keys() if (clause := _confusion(lost, known))]
                yield Divergence(
                    min(confused, default=MAIN_CLAUSE[name]),
                    "returned rows",
                    name,
                    index,
                    [*wanted],
                    [message.id for message in got.value],
                )
                return
            for message_id, message in wanted.items():
                yield from self.message_values(index, name, message, shown[message_id])
            return
        yield Divergence(MAIN_CLAUSE[name], "returned", name, index, expected.value, got.value)

    def clone(self, index: int, expected: CloneResult, got: Any) -> Iterator[Divergence]:
        name = "clone_thread"
        if not isinstance(got, CloneResult):
            yield Divergence("CLN-1", "type", name, index, "CloneResult", type(got).__name__)
            return
        rows, shown = [m.id for m in expected.cloned_messages], [m.id for m in got.cloned_messages]
        if rows != shown or expected.id_map != got.id_map:
            yield Divergence("CLN-1", "rows", name, index, expected.id_map, got.id_map)
        elif not equal(expected.thread, got.thread):
            field = next(
                f for f in Thread.__struct_fields__ if not equal(getattr(expected.thread, f), getattr(got.thread, f))
            )
            clause = "VAL-4" if spoilt(got.thread.metadata) else "CLN-2"
            yield Divergence(clause, f"thread.{field}", name, index, expected.thread, got.thread)
        elif not equal(expected.cloned_messages, got.cloned_messages):
            clause = "VAL-4" if any(spoilt(m) for m in got.cloned_messages) else "CLN-1"
            yield Divergence(clause, "messages", name, index, expected.cloned_messages, got.cloned_messages)

    def together(self, index: int, operation: ops.Together, expected: Any, got: Any) -> Iterator[Divergence]:
        """Only success counts: what a writer sees of the others is not determined."""
        for branch, right, wrong in zip(operation.operations, expected, got, strict=True):
            if isinstance(right, Returned) and not isinstance(wrong, Returned):
                yield _divergence(_together_clause(branch), "error", operation.name, index, right, wrong)
                return

    def error_clause(self, operation: ops.Operation, expected: Outcome, got: Outcome) -> str:
        """The clause that decides whether this call is refused."""
        if isinstance(got, Crashed) and got.clause:
            return got.clause
        if isinstance(expected, Refused):
            return expected.clause
        if operation.target == "index":
            return judge_vectors.error_clause(operation, got)
        arguments = operation.arguments()
        code = got.code if isinstance(got, Refused) else ""
        if isinstance(operation, ops.Recall):
            return "ORD-6" if code in ("thread_not_found", "ownership_mismatch") else self.feature(operation)
        if isinstance(operation, ops.CreateThread) and code == "already_exists":
            others = [name for name in self.state.threads if name not in operation.threads()]
            return next((clause for name in operation.threads() if (clause := _confusion(name, others))), "THR-1")
        contents = [getattr(message, "content", None) for message in arguments.get("messages", ())]
        if code == "invalid_request" and "" in contents:
            return "MSG-0"
        if (clause := _text_clause(arguments)) is not None:
            return clause
        if _embeds(operation, self.options):
            return "SEM-4"
        if any(event.kind in ("replaced", "moved") for event in self.events) and operation.name == "save_messages":
            return "MSG-2"
        return MAIN_CLAUSE[operation.name]

    # Observations

    def observation(self, index: int, expected: Outcome, got: Outcome) -> Iterator[Divergence]:
        if not isinstance(expected, Returned):  # opening it as the program wants it is to be refused
            if not isinstance(got, Refused) or got.code != cast(Refused, expected).code:
                yield _divergence("CAP-1", "error", "observe", index, expected, got)
            return
        if not isinstance(got, Returned):
            clause = self.unobservable(cast(Snapshot, expected.value), got)
            yield _divergence(clause, "error", "observe", index, expected, got)
            self.reset()
            self.synced = False
            self.dirty = True
            return
        snapshot = cast(Snapshot, got.value)
        if not self.dirty:
            yield from _distinct(self.snapshot(index, cast(Snapshot, expected.value), snapshot))
            yield from judge_vectors.snapshot(
                index, cast(Snapshot, expected.value), snapshot, self.segment, reopened=self.reopened()
            )
        if not equal(expected.value, snapshot):
            self.load(snapshot)
        self.reset()
        self.synced = True
        self.dirty = False

    def next_position(self) -> int:
        self.state.next_position += 1
        return self.state.next_position

    def unobservable(self, expected: Snapshot, got: Outcome) -> str:
        """The clause of an error where all there is was to be read."""
        if isinstance(got, Refused) and got.code == "thread_not_found" and None in expected.threads.values():
            return "ORD-6"
        if self.reopened():
            return "DUR-1"
        return _text_clause([*self.interpreter.threads]) or "ORD-4"

    def reset(self) -> None:
        self.misdated.clear()
        self.events.clear()
        self.segment.clear()
        self.seen.clear()
        self.queries.clear()
        self.old = {message_id: row.message for message_id, row in self.state.by_id.items()}

    def load(self, snapshot: Snapshot) -> None:
        """Make the model hold what the store showed; embeddings do not show, and stay."""
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
        state.embedded = {name: kept for name, kept in state.embedded.items() if name in state.by_id}

    def reopened(self) -> bool:
        """Whether nothing but a reopen lies between two observations."""
        return bool(self.segment) and all(isinstance(operation, ops.Reopen) for operation in self.segment)

    def snapshot(self, index: int, expected: Snapshot, got: Snapshot) -> Iterator[Divergence]:
        for thread_id, thread in expected.threads.items():
            shown = got.threads.get(thread_id)
            if (thread is None) != (shown is None):
                clause = self.thread_clause(thread_id, gone=shown is None)
                yield Divergence(clause, "threads", "observe", index, thread, shown)
            elif thread is not None and shown is not None:
                yield from self.thread_values(index, "observe", thread, shown, self.last_thread_event(thread_id))
            yield from self.rows(index, thread_id, expected.rows[thread_id], got.rows[thread_id])
        if expected.listed is None or got.listed is None:
            return
        if expected.embeddings is not None and not equal(expected.embeddings, got.embeddings):
            same_config = got.embeddings is not None and equal(
                expected.embeddings, msgspec.structs.replace(got.embeddings, count=expected.embeddings.count)
            )
            clause = "DUR-1" if self.reopened() else self.embedding_clause() if same_config else "SEM-6"
            yield Divergence(clause, "embeddings", "observe", index, expected.embeddings, got.embeddings)
        wanted = [thread.id for thread in expected.listed.threads if got.threads.get(thread.id)]
        listed = [thread.id for thread in got.listed.threads if thread.id not in self.strangers]
        if wanted != listed and not self.reopened():
            # A thread that is found under another's id was blamed above.
            seen = [thread for name, thread in got.threads.items() if thread is not None and thread.id == name]
            own = [thread.id for thread in sorted(seen, key=lambda thread: (thread.created_at, thread.id))]
            if own != listed:
                yield Divergence("THR-4", "rows", "observe", index, own, listed)

    def embedding_clause(self) -> str:
        """The clause of a wrong number of embeddings."""
        return "CLN-3" if any(event.kind == "cloned" for event in self.events) else "SEM-4"

    def related(self, thread_id: str) -> bool:
        """Whether nothing was written to the thread, but something to its source or to a clone of it."""
        written = {event.thread_id for event in self.events}
        lineage = {(thread.clone.source_thread_id, thread.id) for thread in self.state.threads.values() if thread.clone}
        kin = {source for source, clone in lineage if clone == thread_id}
        kin |= {clone for source, clone in lineage if source == thread_id}
        return thread_id not in written and not written.isdisjoint(kin)

    def thread_clause(self, thread_id: str, *, gone: bool) -> str:
        if self.reopened():
            return "DUR-1"
        if self.related(thread_id):
            return "CLN-4"
        if (clause := _confusion(thread_id, [*self.state.threads])) is not None:
            return clause
        kinds = [event.kind for event in self.events if event.thread_id == thread_id and event.message_id is None]
        if kinds:
            return EVENT_CLAUSE[kinds[-1]]
        return self.collateral("THR-5" if gone else "ISO-2")

    def last_thread_event(self, thread_id: str) -> Event | None:
        events = [event for event in self.events if event.thread_id == thread_id and event.message_id is None]
        return next((event for event in reversed(events) if event.kind in ("thread_created", "thread_updated")), None)

    def collateral(self, default: str) -> str:
        """The clause of the only kind of write there was, for damage to what no write named."""
        writes = [operation for operation in self.segment if operation.role == "write"]
        if any(isinstance(operation, ops.Together) for operation in writes):
            return next(_together_clause(op.operations[0]) for op in writes if isinstance(op, ops.Together))
        names = {operation.name for operation in writes}
        if not self.events and any(_hostile_text(_ids(operation)) for operation in writes):
            return "ISO-2"
        if not self.events and len(names) == 1:
            # Everything was refused, or had nothing to do.
            name = names.pop()
            return MAIN_CLAUSE[name] if name in ("save_messages", "update_messages", "delete_messages") else "ISO-2"
        return MAIN_CLAUSE[names.pop()] if len(names) == 1 else default

    def thread_values(
        self, index: int, name: str, expected: Thread, got: Thread, event: Event | None
    ) -> Iterator[Divergence]:
        created = event is not None and event.kind == "thread_created"
        # A call's own result is judged by the call, an observation by what happened before it.
        touched = [
            e for e in self.events if e.thread_id == expected.id and e.kind not in ("thread_created", "thread_updated")
        ]
        for field in Thread.__struct_fields__:
            right, wrong = getattr(expected, field), getattr(got, field)
            if equal(right, wrong):
                continue
            if spoilt(wrong):
                clause = "VAL-4"
            elif _other_zone(right, wrong):
                clause = "VAL-1"
            elif field == "id" and (confused := _confusion(expected.id, [got.id])):
                clause = confused
            elif self.reopened():
                clause = "DUR-1"
            elif any(isinstance(operation, ops.Together) for operation in self.segment):
                clause = self.collateral("THR-3a")
            elif field == "resource_id":
                clause = "THR-1" if created else "ISO-1"
            elif field == "updated_at":
                own = not touched and event is not None and (expected.id in self.misdated or not self.touching())
                if name != "observe" or own or expected.id in self.misdated:
                    clause = "THR-1" if created else "THR-3"
                else:
                    clause = "MSG-3" if self.touching() else "CLN-4" if self.related(expected.id) else "ISO-2"
            elif field == "created_at":
                given = created and self.given_instant(expected.id)
                clause = "VAL-1" if given else "THR-1" if created else "THR-3"
            elif created and field == "title":
                clause = _length_clause(expected.title) if expected.title and wrong else "THR-1"
            elif created and field == "metadata":
                clause = "VAL-3"
            elif event is not None and field == "metadata" and name == "update_thread":
                changes: dict[str, Any] = self.segment[-1].arguments().get("metadata") or {}
                clause = self.merged_clause(changes, expected.metadata, got.metadata, "THR-3")
            elif event is None and self.related(expected.id):
                clause = "CLN-4"
            else:
                clause = "THR-3" if event is not None else self.collateral("ISO-2")
            yield Divergence(clause, f"thread.{field}", name, index, right, wrong)
            return

    def touching(self) -> bool:
        """Whether a write since the last observation sets updated_at."""
        return any(_touches(operation) for operation in self.segment)

    def given_instant(self, thread_id: str) -> bool:
        return any(
            isinstance(operation, ops.CreateThread)
            and thread_id in operation.threads()
            and operation.created_at not in (msgspec.UNSET, None)
            for operation in self.segment
        )

    def rows(self, index: int, thread_id: str, expected: RecallResult, got: RecallResult) -> Iterator[Divergence]:
        wanted = {message.id: message for message in expected.messages}
        ghosts = self.ghosts.get(thread_id, set()) - wanted.keys()
        if ghosts:
            messages = tuple(message for message in got.messages if message.id not in ghosts)
            got = msgspec.structs.replace(got, messages=messages, total=got.total - len(got.messages) + len(messages))
        shown = [message.id for message in got.messages]
        listed = {message.id: message for message in got.messages}
        name = "observe"
        if len(listed) < len(shown):
            yield Divergence("MSG-2", "rows", name, index, [*wanted], shown)
        elif got.total > len(shown) and len(shown) < len(wanted):
            clause = "ORD-3b" if len(wanted) >= 1000 else "ORD-4"
            yield Divergence(clause, "rows", name, index, f"{len(wanted)} rows", f"{len(shown)} rows")
        elif len(wanted) >= 1000 and len(shown) != len(wanted):
            yield Divergence("ORD-3b", "rows", name, index, f"{len(wanted)} rows", f"{len(shown)} rows")
        elif wanted.keys() != listed.keys():
            missing, extra = wanted.keys() - listed.keys(), listed.keys() - wanted.keys()
            clause = self.row_clause(thread_id, min(missing or extra), gone=bool(missing))
            yield Divergence(clause, "rows", name, index, [*wanted], shown)
        else:
            if shown != [*wanted]:
                clause = self.order_clause(wanted, listed, shown)
                if clause is not None:
                    yield Divergence(clause, "order", name, index, [*wanted], shown)
            elif got.total != len(shown) or got.has_more:
                yield Divergence("ORD-5", "total", name, index, len(shown), (got.total, got.has_more))
            for message_id, message in wanted.items():
                yield from self.message_values(index, name, message, listed[message_id])

    def order_clause(self, wanted: dict[str, Message], listed: dict[str, Message], shown: list[str]) -> str | None:
        """The clause of rows in a wrong order; None when it follows from instants that are blamed themselves."""
        if self.reopened():
            return "DUR-1"
        if any(event.kind == "cloned" and event.thread_id == wanted[shown[0]].thread_id for event in self.events):
            return "CLN-1"
        if any(not equal(wanted[key].created_at, listed[key].created_at) for key in wanted):
            # With the instants it shows, the store must sort as it does.
            resorted = sorted(wanted, key=lambda key: listed[key].created_at)
            if resorted == shown or _ends_differ(resorted, shown, listed):
                return None
            return "ORD-1"
        fine = {name: message.created_at for name, message in self.saves() if message.created_at is not None}
        by_fine = sorted(wanted, key=lambda key: (wanted[key].created_at, fine.get(key, wanted[key].created_at)))
        return "VAL-1" if by_fine == shown else "ORD-1"

    def saves(self) -> Iterator[tuple[str, NewMessage]]:
        """The messages saved since the last observation, each under its id."""
        for operation in self.segment:
            if isinstance(operation, ops.SaveMessages):
                batch = operation.arguments()["messages"]
                for message in cast("list[Any]", batch if isinstance(batch, list) else []):
                    if isinstance(message, NewMessage) and isinstance(cast(object, message.id), str):
                        yield message.id, message

    def row_clause(self, thread_id: str, message_id: str, *, gone: bool) -> str:
        if self.reopened():
            return "DUR-1"
        written = [event.message_id for event in self.events if event.message_id is not None]
        entered = [event.thread_id for event in self.events]
        confused = _confusion(message_id, written) if gone else None
        if (clause := confused or _confusion(thread_id, entered)) is not None:
            return clause
        kinds = [event.kind for event in self.events if event.message_id == message_id]
        about_thread = [e.kind for e in self.events if e.thread_id == thread_id and e.message_id is None]
        if kinds and kinds[-1] != "inserted":
            return EVENT_CLAUSE[kinds[-1]]
        if "thread_deleted" in about_thread or (not gone and "thread_created" in about_thread):
            return "THR-5"
        if kinds:
            return "MSG-1"
        if "cleared" in about_thread:
            return "MSG-5a"
        return "CLN-4" if self.related(thread_id) else self.collateral("MSG-1")

    def message_values(self, index: int, name: str, expected: Message, got: Message) -> Iterator[Divergence]:
        kinds = [event.kind for event in self.events if event.message_id == expected.id]
        kind = kinds[-1] if kinds else None
        for field in Message.__struct_fields__:
            right, wrong = getattr(expected, field), getattr(got, field)
            if equal(right, wrong):
                continue
            if spoilt(wrong):
                clause = "VAL-4"
            elif _other_zone(right, wrong):
                clause = "VAL-1"
            elif field == "thread_id" and (confused := _confusion(str(right), [str(wrong)])):
                clause = confused
            elif self.reopened():
                clause = "DUR-1"
            elif any(isinstance(operation, ops.Together) for operation in self.segment):
                clause = self.collateral("MSG-4a")
            elif field == "resource_id":
                clause = "ISO-1"
            elif kind is None:
                clause = "CLN-4" if self.related(expected.thread_id) else self.collateral("ISO-2")
            elif kind == "inserted":
                clause = self.inserted_clause(expected, field, wrong)
            elif kinds == [kind]:
                clause = self.changed_clause(kind, expected, got, field)
            else:
                clause = EVENT_CLAUSE[kind]
            yield Divergence(clause, f"message.{field}", name, index, right, wrong)
            return

    def changed_clause(self, kind: str, expected: Message, got: Message, field: str) -> str:
        """Whether one replacement or update was not made as it should, or what it gave did not come back."""
        old, default = self.old.get(expected.id), EVENT_CLAUSE[kind]
        right, wrong = getattr(expected, field), getattr(got, field)
        if old is None or equal(getattr(old, field), wrong) or equal(getattr(old, field), right):
            return default
        if field == "metadata":
            changes: dict[str, Any] = dict(right) if kind != "updated" else {}
            for update in (update for operation in self.segment for update in _updates(operation)):
                if kind == "updated" and update.id == expected.id:
                    changes |= update.metadata or {}
            if kind != "updated" and equal(old.metadata | right, wrong):
                return default
            return self.merged_clause(changes, right, wrong, default, dict(old.metadata))
        if field == "created_at":
            given = any(name == expected.id and message.created_at is not None for name, message in self.saves())
            return "VAL-1" if given and wrong != self.now else default
        if field == "content":
            return _length_clause(str(right)) if isinstance(right, str) else "MSG-0"
        return default

    @property
    def now(self) -> datetime:
        """Where the program's clock stands."""
        ticks = [operation.ms for operation in self.program.operations[: self.index] if isinstance(operation, ops.Tick)]
        return START + timedelta(milliseconds=sum(ticks))

    def merged_clause(
        self, changes: Any, expected: Any, got: Any, default: str, old: dict[str, Any] | None = None
    ) -> str:
        """Whether a merge went wrong, or a value of the change did not come back as given."""
        given = cast("dict[str, Any]", changes) if isinstance(changes, dict) else {}
        for key in expected.keys() | got.keys():
            if _same_item(key, expected, got):
                continue
            value, came = given.get(key), got.get(key)
            kept = old is not None and _same_item(key, old, got)
            lost = key not in got and value not in (None, [], {}) and not any(mark in key for mark in ".$")
            merged = isinstance(came, dict) and isinstance(value, dict)
            if kept or lost or merged or (key not in given and not any(name.startswith(f"{key}.") for name in given)):
                return default
        return "VAL-3"

    def inserted_clause(self, expected: Message, field: str, got: Any) -> str:
        """The clause of a value that did not come back as saved."""
        saves = [operation for operation in self.segment if isinstance(operation, ops.SaveMessages)]
        given = [
            message
            for operation in saves
            for message in operation.arguments()["messages"]
            if getattr(message, "id", None) == expected.id
        ]
        if len(given) > 1:
            return "MSG-2"
        match field:
            case "created_at":
                return "VAL-1" if given and given[0].created_at is not None else "MSG-1"
            case "content":
                return _length_clause(expected.content) if isinstance(expected.content, str) else "MSG-0"
            case "metadata":
                return "VAL-3"
            case _:
                return "MSG-0"

    # Reads

    def read(self, index: int, operation: ops.Operation, expected: Outcome, got: Outcome) -> Iterator[Divergence]:
        name = operation.name
        if not (isinstance(expected, Returned) and isinstance(got, Returned)):
            if not same(expected, got):
                yield _divergence(self.error_clause(operation, expected, got), "error", name, index, expected, got)
            return
        match operation:
            case ops.Recall():
                asked = parsed_recall(operation.arguments(), self.options)
                assert asked is not None
                if not _well_formed(got.value):
                    yield Divergence("ORD-3", "type", name, index, "RecallResult", type(got.value).__name__)
                    return
                yield from self.recall(index, operation, asked, expected.value, got.value)
                self.seen.append((asked, got.value))
                yield from self.walk(index, asked)
            case ops.QueryVectors():
                faults = tuple(judge_vectors.query(index, operation, self.vectors, got.value, self.queries))
                yield from faults
                if not faults:
                    yield from self.count_recall(index, operation, got.value)
                    self.queries.append((operation, got.value))
            case ops.Operation() if operation.target == "index":
                if not equal(expected.value, got.value):
                    clause = "VAL-4" if spoilt(got.value) else judge_vectors.MAIN_CLAUSE[name]
                    yield Divergence(clause, "returned", name, index, expected.value, got.value)
            case ops.ListClones():
                if not equal(expected.value, got.value):
                    yield Divergence("CLN-4", "returned", name, index, expected.value, got.value)
            case ops.ListThreads():
                yield from self.list_threads(index, operation, expected.value, got.value)
            case _:
                if equal(expected.value, got.value):
                    return
                clause = "THR-2"
                if isinstance(got.value, Thread) and got.value.resource_id != operation.given().get("resource_id"):
                    clause = "THR-2" if expected.value is None else "VAL-2"
                if isinstance(got.value, Thread):
                    clause = _confusion(str(operation.arguments()["thread_id"]), [got.value.id]) or clause
                if spoilt(got.value):
                    clause = "VAL-4"
                yield Divergence(clause, "returned", name, index, expected.value, got.value)

    def count_recall(self, index: int, operation: ops.QueryVectors, got: Sequence[VectorHit]) -> Iterator[Divergence]:
        """VEC-5, once enough approximate queries of an index were answered."""
        asked, candidates, _ = judge_vectors.question(operation, self.vectors)
        if candidates.exact or asked.min_score is not None:
            return
        recall = self.recalls.setdefault(str(operation.given()["name"]), judge_hits.Recall())
        recall.count(candidates, [hit.id for hit in got])
        if recall.queries == judge_hits.RECALL_QUERIES and (found := recall.fault()) is not None:
            yield Divergence("VEC-5", "recall", operation.name, index, found.expected, found.got)

    def recall(
        self, index: int, operation: ops.Recall, asked: Recall, expected: RecallResult, got: RecallResult
    ) -> Iterator[Divergence]:
        name = "recall"
        self.given_range = getattr(operation.arguments().get("filter"), "date_range", None)
        foreign = [m.id for m in got.messages if asked.resource_id not in (None, m.resource_id)]
        if foreign:
            yield Divergence("ISO-1", "rows", name, index, [], foreign)
            return
        if asked.search is not None:
            found = tuple(self.hits(index, asked, got))
            yield from found
            if found:
                return
        if not equal(expected, got) and (clause := self.taken_for_another(asked, got)) is not None:
            yield Divergence(clause, "rows", name, index, expected, got)
            return
        matching = self.own_listing(asked)
        rows = self.own_rows(asked, matching, got.hits)
        shown = [message.id for message in got.messages]
        if rows != shown:
            clause = self.rows_clause(operation, asked, rows, shown)
            yield Divergence(clause, "rows", name, index, rows, shown)
            return
        values = {message_id: row.message for message_id, row in self.state.by_id.items()}
        for message in got.messages:
            # A row that only an earlier listing of the store's own showed was blamed there.
            if message.id in values and not equal(values[message.id], message):
                fields = [
                    f
                    for f in Message.__struct_fields__
                    if not equal(getattr(values[message.id], f), getattr(message, f))
                ]
                clause = (
                    "VAL-4"
                    if spoilt(message.metadata) or spoilt(message.content)
                    else {"created_at": "VAL-1", "metadata": "VAL-3", "thread_id": "INC-1", "resource_id": "ISO-1"}.get(
                        fields[0], "VAL-2"
                    )
                )
                yield Divergence(clause, f"message.{fields[0]}", name, index, values[message.id], message)
                return
        if got.total != len(matching) and got.total == self.plain_total(asked):
            return  # Blamed where the request was made without include.
        if got.total != len(matching):
            plain = _listing(asked) or asked.include or not _narrows(asked)
            clause = "ORD-5" if plain or self.listing_seen(asked) else self.feature(operation)
            yield Divergence(clause, "total", name, index, len(matching), got.total)
        elif got.has_more != asked.page.has_more(len(matching)):
            yield Divergence("ORD-5", "has_more", name, index, asked.page.has_more(len(matching)), got.has_more)
        elif not equal((expected.page, expected.per_page), (got.page, got.per_page)) or (
            (expected.per_page is False) != (got.per_page is False)
        ):
            clause = "ORD-5"
            if operation.per_page is msgspec.UNSET and expected.page == got.page:
                clause = "INC-3" if asked.include else "ORD-4"
            yield Divergence(clause, "page", name, index, (expected.page, expected.per_page), (got.page, got.per_page))

    def plain_total(self, asked: Recall) -> int | None:
        """The total that the request showed when it was made without include, if it was."""
        plain = msgspec.structs.replace(asked, include=())
        return next((result.total for earlier, result in self.seen if asked.include and earlier == plain), None)

    def taken_for_another(self, asked: Recall, got: RecallResult) -> str | None:
        """The clause when the thread, or an included message, was taken for one of a similar id."""
        if asked.thread_id not in self.state.threads and (got.messages or got.total):
            return _confusion(asked.thread_id, [*self.state.threads])
        shown = {message.id for message in got.messages}
        unknown = [entry.id for entry in asked.include if entry.id not in self.state.by_id]
        return next((clause for name in unknown if (clause := _confusion(name, [*shown]))), None)

    def walk(self, index: int, asked: Recall) -> Iterator[Divergence]:
        """All pages joined must be the full list (ORD-3a); judged when the last page of a walk was read."""
        size = asked.page.per_page
        if not size or asked.include:
            return
        pages = {
            earlier.page.page: [message.id for message in result.messages]
            for earlier, result in self.seen
            if msgspec.structs.replace(earlier, page=asked.page) == asked and earlier.page.per_page == size
        }
        matching = self.own_listing(asked)
        wanted = range(-(-len(matching) // size))
        if len(wanted) > 1 and all(page in pages for page in wanted) and asked.page.page in wanted:
            joined = [message_id for page in wanted for message_id in pages[page]]
            if sorted(joined) != sorted(matching):
                yield Divergence("ORD-3a", "rows", "recall", index, matching, joined)

    def hits(self, index: int, asked: Recall, got: RecallResult) -> Iterator[Divergence]:
        """The hits of a semantic recall against the embeddings there should be (SEM-2, SEM-4, SEM-5)."""
        assert asked.search is not None
        query = embed(self.embedder, [asked.search.text], "query", self.model.metric)[0]
        embedded = {name: kept.vector for name, kept in self.state.embedded.items()}
        ranked = self.model.candidates(asked)
        candidates = Candidates(
            self.model.metric,
            query,
            {row.message.id: embedded[row.message.id] for row in ranked},
            asked.search.top_k,
            asked.search.threshold,
            exact=True,
        )
        ids = [hit.id for hit in got.hits]
        found = fault(candidates, got.hits) or ties_fault(candidates, ids)
        if found is not None:
            other = found.kind == "score" and candidates.other_metric(found)
            clause = "SEM-6" if other else self.hits_clause(asked, found, embedded)
            yield Divergence(clause, f"hits {found.kind}", "recall", index, found.expected, found.got)

    def hits_clause(self, asked: Recall, found: Fault, embedded: dict[str, tuple[float, ...]]) -> str:
        assert asked.search is not None
        search = asked.search
        if found.kind == "foreign":
            strangers = [self.state.by_id.get(message_id) for message_id in found.got]
            if any(row is None or row.message.id not in embedded for row in strangers):
                return "SEM-4"
            rows = [row for row in strangers if row is not None]
            if any(asked.resource_id not in (None, row.message.resource_id) for row in rows):
                return "ISO-1"
            if any(not search.filter.matches(self.state.embedded[row.message.id].snapshot) for row in rows):
                return self.snapshot_clause(asked)
            return "SEM-2"
        if found.kind == "score":
            # Wrong for one message of many: its embedding is an old one.
            return "SEM-4"
        if found.kind in ("missing", "rank") and search.top_k >= len(embedded) and search.threshold is None:
            if search.filter != operators.EVERYTHING:
                return self.snapshot_clause(asked)
            cloned = any(thread.clone is not None for thread in self.state.threads.values())
            return "SEM-2" if _narrows(asked) else "CLN-3" if cloned else "SEM-4"
        return "SEM-2"

    def snapshot_clause(self, asked: Recall) -> str:
        """The clause of a filter that sees another snapshot: in a clone it may be the source's."""
        thread = self.state.threads.get(asked.thread_id)
        return "CLN-3" if thread is not None and thread.clone is not None else "SEM-5"

    def own_listing(self, asked: Recall) -> list[str]:
        """The ids that match, oldest first: as the store itself lists them where it did, else by the model."""
        for ascending in (True, False):
            for earlier, result in self.seen:
                if _listing(earlier) and earlier.ascending == ascending and _same_rows(earlier, asked):
                    ids = [message.id for message in result.messages]
                    return ids if ascending else ids[::-1]
        return [row.message.id for row in self.model.matching(asked)]

    def listing_seen(self, asked: Recall) -> bool:
        return any(_listing(earlier) and _same_rows(earlier, asked) for earlier, _ in self.seen)

    def own_rows(self, asked: Recall, matching: list[str], hits: Sequence[Hit] = ()) -> list[str]:
        """The rows the request should show, given what the store shows for its simpler parts."""
        plain = msgspec.structs.replace(asked, include=(), search=None)
        ordered = matching if asked.ascending else matching[::-1]
        for earlier, result in self.seen:
            if _listing(earlier) and earlier.ascending == asked.ascending and _same_rows(earlier, asked):
                ordered = [message.id for message in result.messages]
        limit = asked.page.limit
        page = ordered if limit is None else ordered[asked.page.offset : asked.page.offset + limit]
        if not asked.include and not hits:
            return page
        for earlier, result in self.seen:
            # 0 == False, but no rows are not every row.
            alike = _listing(earlier) == _listing(plain)
            if alike and msgspec.structs.replace(earlier, resource_id=asked.resource_id) == plain:
                page = [message.id for message in result.messages]
        rows = {message_id: self.state.by_id[message_id] for message_id in page if message_id in self.state.by_id}
        for entry in asked.include:
            rows |= {row.message.id: row for row in self.model.window(asked, entry)}
        for hit in hits:
            rows |= {row.message.id: row for row in self.model.hit_window(asked, hit)}
        # Rows of one thread stand as the store lists them, be it wrongly.
        several = len({row.message.thread_id for row in rows.values()}) > 1
        ordered_rows = sorted(
            rows.values(),
            key=lambda row: (
                row.message.created_at if several else START,
                row.message.thread_id,
                self.state.place(row)[1],
            ),
            reverse=not asked.ascending,
        )
        return [row.message.id for row in ordered_rows]

    def rows_clause(self, operation: ops.Recall, asked: Recall, expected: list[str], got: list[str]) -> str:
        if asked.search is not None:
            return "SEM-3"
        if self.empty_filter(operation) and set(got) < set(expected):
            return "FLT-2"
        if asked.include:
            return self.union_clause(operation, asked, expected, got)
        if asked.page.per_page is False:
            if set(expected) == set(got) and len(expected) == len(got):
                return "ORD-1" if asked.ascending else "ORD-2"
            if len(got) >= 1000 or len(expected) >= 1000:
                return "ORD-3b"
            return self.filter_clause(asked, set(expected) ^ set(got), got) if _narrows(asked) else "ORD-4"
        if asked.page.offset >= ENGINE_WINDOW and expected:
            return "ORD-3b"
        if operation.order_by is msgspec.UNSET and len(got) > 1 and got == self.page_oldest_first(asked):
            return "ORD-2"
        if self.only_ties_differ(expected, got):
            return "ORD-3" if asked.ascending else "ORD-2"
        if _narrows(asked) and (not self.listing_seen(asked) or self.unfiltered_page_was_right(asked)):
            return "FLT-3" if asked.metadata else "TIM-1"
        if set(expected) == set(got) and not asked.ascending:
            return "ORD-2"
        return "ORD-4" if operation.per_page is msgspec.UNSET or not asked.page.per_page else "ORD-3"

    def union_clause(self, operation: ops.Recall, asked: Recall, expected: list[str], got: list[str]) -> str:
        """The clause of wrong rows where there is an include."""
        if operation.order_by is msgspec.UNSET and got == expected[::-1]:
            return "ORD-2"
        wrong = set(expected) ^ set(got)
        if not wrong:
            return "INC-2"
        if set(got) > set(expected) and not asked.page.per_page:
            if operation.per_page is msgspec.UNSET:
                return "INC-3"
            listed = {row.message.id for row in self.model.matching(asked)}
            if wrong <= listed and not {entry.id for entry in asked.include} & wrong and len(wrong) > 2:
                return "ORD-4"
        windows = {row.message.id for entry in asked.include for row in self.model.window(asked, entry)}
        if wrong & windows or any(message_id not in self.state.by_id for message_id in wrong):
            return "INC-1"
        return "INC-1" if wrong & set(got) else "INC-2"

    def empty_filter(self, operation: ops.Recall) -> bool:
        """Whether the request has a metadata filter without conditions, and nothing else that narrows."""
        narrowed = operation.arguments().get("filter")
        return narrowed is not None and narrowed.metadata == {} and narrowed.date_range is None

    def page_oldest_first(self, asked: Recall) -> list[str]:
        """The page as it would be were the direction ascending."""
        matching, limit = self.own_listing(asked), asked.page.limit
        return matching if limit is None else matching[asked.page.offset : asked.page.offset + limit]

    def only_ties_differ(self, expected: list[str], got: list[str]) -> bool:
        """Whether the same instants stand in the same places."""
        if expected == got or any(message_id not in self.state.by_id for message_id in (*expected, *got)):
            return False
        at = {message_id: self.state.by_id[message_id].message.created_at for message_id in (*expected, *got)}
        return [at[message_id] for message_id in expected] == [at[message_id] for message_id in got] and set(
            expected
        ) == set(got)

    def unfiltered_page_was_right(self, asked: Recall) -> bool:
        plain = msgspec.structs.replace(asked, metadata=(), window=type(asked.window)(), resource_id=None)
        for earlier, result in self.seen:
            if msgspec.structs.replace(earlier, resource_id=None) == plain:
                return [m.id for m in result.messages] == self.own_rows(earlier, self.own_listing(earlier))
        return False

    def filter_clause(self, asked: Recall, wrong: set[str], got: list[str]) -> str:
        """Whether the date range or the metadata filter went wrong on these rows."""
        rows = [self.state.by_id[message_id].message for message_id in wrong if message_id in self.state.by_id]
        if not asked.metadata:
            return "VAL-1b" if self.bounds_not_floored(asked, got) else "TIM-1"
        long = any(len(str(condition.value)) >= 255 for condition in asked.metadata)
        if all(all(condition.matches(row.metadata) for condition in asked.metadata) for row in rows):
            bounds = (asked.window.start, asked.window.end)
            missing = [row for row in rows if row.id not in got]
            if len(missing) < len(rows) or (missing and all(row.created_at in bounds for row in missing)):
                return "TIM-1" if asked.window != type(asked.window)() else "FLT-1"
        return "FLT-3" if long else "FLT-1"

    def bounds_not_floored(self, asked: Recall, got: list[str]) -> bool:
        """Whether the rows are what the bounds of the range would select unfloored, or rounded."""
        given = self.given_range
        if given is None or not any(bound and bound.microsecond % 1000 for bound in (given.start, given.end)):
            return False
        rows = [row.message for row in self.model.matching(msgspec.structs.replace(asked, window=Window()))]
        rounded = (None if bound is None else _rounded(bound) for bound in (given.start, given.end))
        for start, end in ((given.start, given.end), rounded):
            window = Window(start, end, given.start_exclusive, given.end_exclusive)
            if {row.id for row in rows if window.holds(row.created_at)} == set(got):
                return True
        return False

    def feature(self, operation: ops.Recall) -> str:
        """The clause of the most special thing a recall asks for."""
        arguments = operation.arguments()
        filtered = arguments.get("filter")
        if operation.vector_search_string is not msgspec.UNSET:
            return "SEM-2"
        asked = parsed_recall(arguments, self.options)
        if (
            asked is not None
            and asked.page.offset + int(asked.page.per_page) > ENGINE_WINDOW
            and (asked.page.offset < len(self.state.rows.get(asked.thread_id, ())))
        ):
            return "ORD-3b"
        if _hostile_text(arguments):
            return "ISO-2"
        if asked is not None and asked.page.per_page and 0 < len(self.model.matching(asked)) <= asked.page.offset:
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
        return _text_clause(arguments) or "ORD-4"

    def list_threads(
        self, index: int, operation: ops.ListThreads, expected: ThreadPage, got: Any
    ) -> Iterator[Divergence]:
        if equal(expected, got):
            return
        name = "list_threads"
        if not isinstance(got, ThreadPage):
            yield Divergence("THR-4", "type", name, index, "ThreadPage", type(got).__name__)
            return
        asked = cast(ListThreads, parsed_list_threads(operation.arguments()))
        rows, shown = [thread.id for thread in expected.threads], [thread.id for thread in got.threads]
        if any(asked.resource_id not in (None, thread.resource_id) for thread in got.threads):
            yield Divergence("ISO-1", "rows", name, index, rows, shown)
        elif rows != shown:
            yield Divergence("THR-4", "rows", name, index, rows, shown)
        elif not equal(expected.threads, got.threads):
            clause = "VAL-4" if any(spoilt(thread.metadata) for thread in got.threads) else "THR-4"
            yield Divergence(clause, "threads", name, index, expected.threads, got.threads)
        else:
            right = (expected.total, expected.has_more, expected.page, expected.per_page)
            everyone = [t for t in self.state.threads.values() if all(c.matches(t.metadata) for c in asked.metadata)]
            leaks = asked.resource_id is not None and expected.total != got.total == len(everyone)
            shown = (got.total, got.has_more, got.page, got.per_page)
            yield Divergence("ISO-1" if leaks else "THR-4", "total", name, index, right, shown)


def _listing(asked: Recall) -> bool:
    """Whether a request lists all that matches, and nothing else."""
    return asked.page.per_page is False and not asked.include and asked.search is None


def _same_rows(left: Recall, right: Recall) -> bool:
    """Whether two requests select from the same rows."""
    return (left.thread_id, left.metadata, left.window) == (right.thread_id, right.metadata, right.window)


def _narrows(asked: Recall) -> bool:
    return bool(asked.metadata) or asked.window != type(asked.window)()


def _embeds(operation: ops.Operation, options: MemoryConfig) -> bool:
    """Whether a write embeds what it stores."""
    if not isinstance(operation, ops.SaveMessages | ops.UpdateMessages):
        return False
    return embeds(options, operation.arguments().get("thread_config"))


def _touches(operation: ops.Operation) -> bool:
    return operation.name in ("save_messages", "update_messages", "delete_messages", "clear_messages")


def _together_clause(operation: ops.Operation) -> str:
    return "THR-3a" if isinstance(operation, ops.UpdateThread) else "MSG-4a"


def _well_formed(value: Any) -> bool:
    """Whether a recall returned a RecallResult of messages and hits."""
    return (
        isinstance(value, RecallResult)
        and _messages(value.messages)
        and isinstance(cast(object, value.hits), list | tuple)
        and all(isinstance(cast(object, hit), Hit) for hit in value.hits)
    )


def _messages(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(item, Message) for item in cast("Sequence[object]", value)
    )


def _divergence(clause: str, aspect: str, name: str, index: int, expected: Outcome, got: Outcome) -> Divergence:
    return Divergence(clause, aspect, name, index, expected, got, crashed=isinstance(got, Crashed))


def _distinct(found: Iterator[Divergence]) -> Iterator[Divergence]:
    """One divergence a signature: the first row that shows a fault stands for the rest."""
    seen: set[Any] = set()
    for divergence in found:
        if divergence.signature not in seen:
            seen.add(divergence.signature)
            yield divergence


def _confusion(name: str, others: Sequence[str]) -> str | None:
    """The clause of taking this id for another: one like it but for case, space or Unicode form, or for its end."""
    rest = [other for other in others if other != name]
    if any(_fold(other) == _fold(name) for other in rest):
        return "VAL-2"
    return "VAL-2b" if len(name) > 100 and any(other[:100] == name[:100] for other in rest) else None


def _fold(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold().strip()


def _text_clause(value: Any) -> str | None:
    """The clause that is put to the test by the strings in a value, if they are special."""
    texts = list(_texts(value))
    if any(_hostile(text) for text in texts):
        return "ISO-2"
    if any(len(text) > 200 for text in texts):
        return "VAL-2b"
    return None if all(text.isascii() for text in texts) else "VAL-2"


def _hostile_text(value: Any) -> bool:
    """Whether any string has a character that means something to an engine."""
    return any(map(_hostile, _texts(value)))


def _hostile(text: str) -> bool:
    return len(text) <= 200 and any(mark in text for mark in "'\"%\\;*")


def _length_clause(text: str) -> str:
    return "VAL-2b" if len(text) > 200 else "VAL-2"


def _texts(value: Any) -> Iterator[str]:
    """Every string inside a value; keys of objects too."""
    match value:
        case str():
            yield value
        case dict():
            for pair in cast("dict[Any, Any]", value).items():
                yield from _texts(pair)
        case list() | tuple():
            for item in cast("Sequence[Any]", value):
                yield from _texts(item)
        case msgspec.Struct():
            for field in value.__struct_fields__:
                yield from _texts(getattr(value, field))
        case _:
            return


def _other_zone(expected: Any, got: Any) -> bool:
    """Whether an instant is right but for its zone."""
    if not isinstance(expected, datetime) or not isinstance(got, datetime):
        return False
    return got.tzinfo is None or got == expected


def _rounded(at: datetime) -> datetime:
    """The instant at the nearest millisecond."""
    floored = at.replace(microsecond=at.microsecond // 1000 * 1000)
    return floored + timedelta(milliseconds=at.microsecond % 1000 >= 500)


def _same_item(key: str, left: dict[str, Any], right: dict[str, Any]) -> bool:
    return key in left and key in right and equal(left[key], right[key])


def _ids(operation: ops.Operation) -> list[Any]:
    """The ids by which a call changes or deletes what exists."""
    arguments = operation.arguments()
    fields = [arguments.get(name) for name in ("thread_id", "ids")]
    return [*fields, *(update.id for update in _updates(operation))]


def _updates(operation: ops.Operation) -> list[MessageUpdate]:
    return operation.arguments()["updates"] if isinstance(operation, ops.UpdateMessages) else []


def _ends_differ(resorted: list[str], shown: list[str], listed: dict[str, Message]) -> bool:
    """Whether two orders differ within equal instants only."""
    return [listed[key].created_at for key in resorted] == [listed[key].created_at for key in shown]
