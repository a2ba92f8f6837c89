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
from typing import Any, cast

import msgspec

from . import judge_hits, judge_vectors, operators
from . import program as ops
from .capabilities import Capabilities
from .compare import equal, same
from .divergence import Divergence
from .embedders import LiteralEmbedder
from .embedding import embed
from .facts import parsed_list_threads, parsed_recall
from .interpreter import Crashed, Interpreter, Outcome, Refused, Returned, Snapshot, Transcript, run, spoilt
from .judge_hits import Candidates, Fault, fault, ties_fault
from .reference import Event, Model, ModelNamespace, Row
from .reference_index import MODEL_CAPABILITIES, ModelIndex
from .requests import ListThreads, Recall, embeds
from .types import CloneResult, Hit, MemoryConfig, Message, RecallResult, Thread, ThreadPage, VectorHit

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
    if all(map(same, expected, transcript)) and len(expected) == len(transcript):
        return ()
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
        self.model = Model(None, self.options, self.state, capabilities=capabilities)
        self.index = ModelIndex(self.namespace.indexes, capabilities)
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

    def run(self, transcript: Transcript) -> Iterator[Divergence]:
        for index, (operation, got) in enumerate(zip(self.program.operations, transcript, strict=False)):
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
            clause = self.error_clause(operation, expected)
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
            yield from self.thread_values(index, name, expected.value, got.value, event)
            return
        if _messages(expected.value) and _messages(got.value):
            wanted = {message.id: message for message in cast("tuple[Message, ...]", expected.value)}
            shown = {message.id: message for message in got.value}
            if [*wanted] != [message.id for message in got.value]:
                yield Divergence(
                    MAIN_CLAUSE[name], "returned rows", name, index, [*wanted], [message.id for message in got.value]
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
        if not equal(expected.thread, got.thread):
            field = next(
                f for f in Thread.__struct_fields__ if not equal(getattr(expected.thread, f), getattr(got.thread, f))
            )
            clause = "VAL-4" if spoilt(got.thread.metadata) else "CLN-2"
            yield Divergence(clause, f"thread.{field}", name, index, expected.thread, got.thread)
        elif rows != shown or expected.id_map != got.id_map:
            yield Divergence("CLN-1", "rows", name, index, expected.id_map, got.id_map)
        elif not equal(expected.cloned_messages, got.cloned_messages):
            clause = "VAL-4" if any(spoilt(m) for m in got.cloned_messages) else "CLN-1"
            yield Divergence(clause, "messages", name, index, expected.cloned_messages, got.cloned_messages)

    def together(self, index: int, operation: ops.Together, expected: Any, got: Any) -> Iterator[Divergence]:
        """Only success counts: what a writer sees of the others is not determined."""
        for branch, right, wrong in zip(operation.operations, expected, got, strict=True):
            if isinstance(right, Returned) and not isinstance(wrong, Returned):
                yield _divergence(_together_clause(branch), "error", operation.name, index, right, wrong)
                return

    def error_clause(self, operation: ops.Operation, expected: Outcome) -> str:
        """The clause that decides whether this call is refused."""
        if isinstance(expected, Refused):
            return expected.clause
        if operation.target == "index":
            return judge_vectors.error_clause(operation)
        arguments = operation.arguments()
        if isinstance(operation, ops.Recall):
            return self.feature(operation)
        if _embeds(operation, self.options):
            return "SEM-4"
        if _odd_text(arguments):
            return "VAL-2"
        if any(event.kind in ("replaced", "moved") for event in self.events) and operation.name == "save_messages":
            return "MSG-2"
        return MAIN_CLAUSE[operation.name]

    # Observations

    def observation(self, index: int, expected: Outcome, got: Outcome) -> Iterator[Divergence]:
        assert isinstance(expected, Returned)
        if not isinstance(got, Returned):
            yield _divergence("DUR-1" if self.reopened() else "ORD-4", "error", "observe", index, expected, got)
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

    def reset(self) -> None:
        self.events.clear()
        self.segment.clear()
        self.seen.clear()
        self.queries.clear()
        self.old = {message_id: row.message for message_id, row in self.state.by_id.items()}

    def load(self, snapshot: Snapshot) -> None:
        """Make the model hold what the store showed; embeddings do not show, and stay."""
        judge_vectors.load(self.index, snapshot)
        state = self.state
        if snapshot.listed is None:
            return
        state.threads = {thread_id: thread for thread_id, thread in snapshot.threads.items() if thread is not None}
        state.rows = {thread_id: [] for thread_id in state.threads}
        state.by_id = {}
        for thread_id in state.threads:
            for message in snapshot.rows[thread_id].messages:
                if message.id not in state.by_id:
                    state.next_position += 1
                    row = Row(msgspec.structs.replace(message, thread_id=thread_id), state.next_position)
                    state.rows[thread_id].append(row)
                    state.by_id[message.id] = row
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
        if wanted != [thread.id for thread in got.listed.threads] and not self.reopened():
            seen = [thread for thread in got.threads.values() if thread is not None]
            own = [thread.id for thread in sorted(seen, key=lambda thread: (thread.created_at, thread.id))]
            if own != [thread.id for thread in got.listed.threads]:
                yield Divergence("THR-4", "rows", "observe", index, own, [thread.id for thread in got.listed.threads])

    def embedding_clause(self) -> str:
        """The clause of a wrong number of embeddings."""
        return "CLN-3" if any(event.kind == "cloned" for event in self.events) else "SEM-4"

    def thread_clause(self, thread_id: str, *, gone: bool) -> str:
        if self.reopened():
            return "DUR-1"
        if _confused(thread_id, [*self.state.threads]):
            return "VAL-2"
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
            elif self.reopened():
                clause = "DUR-1"
            elif any(isinstance(operation, ops.Together) for operation in self.segment):
                clause = self.collateral("THR-3a")
            elif field == "resource_id":
                clause = "THR-1" if created else "ISO-1"
            elif field == "updated_at":
                if name != "observe" or (not touched and event is not None):
                    clause = "THR-1" if created else "THR-3"
                else:
                    clause = "MSG-3" if any(_touches(operation) for operation in self.segment) else "ISO-2"
            elif field == "created_at":
                given = created and self.given_instant(expected.id)
                clause = "VAL-1" if given else "THR-1" if created else "THR-3"
            elif created and field == "title":
                clause = "VAL-2" if expected.title and wrong else "THR-1"
            elif created and field == "metadata":
                clause = "VAL-3"
            else:
                clause = "THR-3" if event is not None else self.collateral("ISO-2")
            yield Divergence(clause, f"thread.{field}", name, index, right, wrong)
            return

    def given_instant(self, thread_id: str) -> bool:
        return any(
            isinstance(operation, ops.CreateThread)
            and thread_id in operation.threads()
            and operation.created_at not in (msgspec.UNSET, None)
            for operation in self.segment
        )

    def rows(self, index: int, thread_id: str, expected: RecallResult, got: RecallResult) -> Iterator[Divergence]:
        wanted = {message.id: message for message in expected.messages}
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
                # With the instants it shows, the store must sort as it does.
                values = all(equal(wanted[key].created_at, listed[key].created_at) for key in wanted)
                yield Divergence("ORD-1" if values else "VAL-1", "order", name, index, [*wanted], shown)
            elif got.total != len(shown) or got.has_more:
                yield Divergence("ORD-5", "total", name, index, len(shown), (got.total, got.has_more))
            for message_id, message in wanted.items():
                yield from self.message_values(index, name, message, listed[message_id])

    def row_clause(self, thread_id: str, message_id: str, *, gone: bool) -> str:
        if self.reopened():
            return "DUR-1"
        if _confused(message_id, [*self.state.by_id, *self.old]) or _confused(thread_id, [*self.state.threads]):
            return "VAL-2"
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
        return self.collateral("MSG-1")

    def message_values(self, index: int, name: str, expected: Message, got: Message) -> Iterator[Divergence]:
        kinds = [event.kind for event in self.events if event.message_id == expected.id]
        kind = kinds[-1] if kinds else None
        for field in Message.__struct_fields__:
            right, wrong = getattr(expected, field), getattr(got, field)
            if equal(right, wrong):
                continue
            if spoilt(wrong):
                clause = "VAL-4"
            elif self.reopened():
                clause = "DUR-1"
            elif any(isinstance(operation, ops.Together) for operation in self.segment):
                clause = self.collateral("MSG-4a")
            elif field == "resource_id":
                clause = "ISO-1"
            elif kind is None:
                clause = self.collateral("ISO-2")
            elif kind == "inserted":
                clause = self.inserted_clause(expected, field, wrong)
            else:
                clause = EVENT_CLAUSE[kind]
            yield Divergence(clause, f"message.{field}", name, index, right, wrong)
            return

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
                return "VAL-2" if isinstance(expected.content, str) else "MSG-0"
            case "metadata":
                return "VAL-3"
            case _:
                return "MSG-0"

    # Reads

    def read(self, index: int, operation: ops.Operation, expected: Outcome, got: Outcome) -> Iterator[Divergence]:
        name = operation.name
        if not (isinstance(expected, Returned) and isinstance(got, Returned)):
            if not same(expected, got):
                yield _divergence(self.error_clause(operation, expected), "error", name, index, expected, got)
            return
        match operation:
            case ops.Recall():
                asked = parsed_recall(operation.arguments(), self.options)
                assert asked is not None
                if not isinstance(got.value, RecallResult):
                    yield Divergence("ORD-3", "type", name, index, "RecallResult", type(got.value).__name__)
                    return
                yield from self.recall(index, operation, asked, expected.value, got.value)
                self.seen.append((asked, got.value))
            case ops.QueryVectors():
                faults = tuple(judge_vectors.query(index, operation, self.index, got.value, self.queries))
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
                if spoilt(got.value):
                    clause = "VAL-4"
                yield Divergence(clause, "returned", name, index, expected.value, got.value)

    def count_recall(self, index: int, operation: ops.QueryVectors, got: Sequence[VectorHit]) -> Iterator[Divergence]:
        """VEC-5, once enough approximate queries of an index were answered."""
        asked, candidates, _ = judge_vectors.question(operation, self.index)
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
        foreign = [m.id for m in got.messages if asked.resource_id not in (None, m.resource_id)]
        if foreign:
            yield Divergence("ISO-1", "rows", name, index, [], foreign)
            return
        if asked.search is not None:
            found = tuple(self.hits(index, asked, got))
            yield from found
            if found:
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
            if not equal(values[message.id], message):
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
        if got.total != len(matching):
            clause = "ORD-5" if self.listing_seen(asked) or not _narrows(asked) else self.feature(operation)
            yield Divergence(clause, "total", name, index, len(matching), got.total)
        elif got.has_more != asked.page.has_more(len(matching)):
            yield Divergence("ORD-5", "has_more", name, index, asked.page.has_more(len(matching)), got.has_more)
        elif not equal((expected.page, expected.per_page), (got.page, got.per_page)) or (
            (expected.per_page is False) != (got.per_page is False)
        ):
            yield Divergence("ORD-5", "page", name, index, (expected.page, expected.per_page), (got.page, got.per_page))

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
            clause = self.hits_clause(asked, found, embedded)
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
                return "SEM-5"
            return "SEM-2"
        if found.kind == "score":
            # Wrong for one message of many: its embedding is an old one.
            return "SEM-4"
        if found.kind in ("missing", "rank") and search.top_k >= len(embedded) and search.threshold is None:
            if search.filter != operators.EVERYTHING:
                return "SEM-5"
            cloned = any(thread.clone is not None for thread in self.state.threads.values())
            return "SEM-2" if _narrows(asked) else "CLN-3" if cloned else "SEM-4"
        return "SEM-2"

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
            if msgspec.structs.replace(earlier, resource_id=None) == msgspec.structs.replace(plain, resource_id=None):
                page = [message.id for message in result.messages]
        rows = {message_id: self.state.by_id[message_id] for message_id in page if message_id in self.state.by_id}
        for entry in asked.include:
            rows |= {row.message.id: row for row in self.model.window(asked, entry)}
        for hit in hits:
            rows |= {row.message.id: row for row in self.model.hit_window(asked, hit)}
        ordered_rows = sorted(
            rows.values(),
            key=lambda row: (row.message.created_at, row.message.thread_id, row.position),
            reverse=not asked.ascending,
        )
        return [row.message.id for row in ordered_rows]

    def rows_clause(self, operation: ops.Recall, asked: Recall, expected: list[str], got: list[str]) -> str:
        if asked.search is not None:
            return "SEM-3"
        if asked.include:
            if operation.per_page is msgspec.UNSET and set(got) > set(expected):
                return "INC-3"
            return "INC-2" if set(expected) == set(got) else "INC-1"
        if asked.page.per_page is False:
            if set(expected) == set(got) and len(expected) == len(got):
                return "ORD-1" if asked.ascending else "ORD-2"
            if len(got) >= 1000 or len(expected) >= 1000:
                return "ORD-3b"
            return self.filter_clause(asked, set(expected) ^ set(got)) if _narrows(asked) else "ORD-4"
        if _narrows(asked) and (not self.listing_seen(asked) or self.unfiltered_page_was_right(asked)):
            return "FLT-3" if asked.metadata else "TIM-1"
        if set(expected) == set(got) and not asked.ascending:
            return "ORD-2"
        return "ORD-4" if operation.per_page is msgspec.UNSET or not asked.page.per_page else "ORD-3"

    def unfiltered_page_was_right(self, asked: Recall) -> bool:
        plain = msgspec.structs.replace(asked, metadata=(), window=type(asked.window)(), resource_id=None)
        for earlier, result in self.seen:
            if msgspec.structs.replace(earlier, resource_id=None) == plain:
                return [m.id for m in result.messages] == self.own_rows(earlier, self.own_listing(earlier))
        return False

    def filter_clause(self, asked: Recall, wrong: set[str]) -> str:
        """Whether the date range or the metadata filter went wrong on these rows."""
        if not asked.metadata:
            return "TIM-1"
        rows = [self.state.by_id[message_id].message for message_id in wrong if message_id in self.state.by_id]
        if all(all(condition.matches(row.metadata) for condition in asked.metadata) for row in rows):
            return "TIM-1" if asked.window != type(asked.window)() else "FLT-1"
        return "FLT-1"

    def feature(self, operation: ops.Recall) -> str:
        """The clause of the most special thing a recall asks for."""
        arguments = operation.arguments()
        filtered = arguments.get("filter")
        if operation.vector_search_string is not msgspec.UNSET:
            return "SEM-2"
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
        if _odd_text(arguments):
            return "VAL-2"
        return "ORD-4"

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
            yield Divergence("THR-4", "total", name, index, right, (got.total, got.has_more, got.page, got.per_page))


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


def _confused(name: str, others: Sequence[str]) -> bool:
    """Whether another id is like this one but for case, space, Unicode form or its end."""
    folded = _fold(name)
    return any(
        other != name and (_fold(other) == folded or (len(name) > 32 and other[:32] == name[:32])) for other in others
    )


def _fold(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold().strip()


def _odd_text(value: Any) -> bool:
    """Whether any string is long or not plain ASCII."""
    match value:
        case str():
            return len(value) > 200 or not value.isascii() or any(mark in value for mark in "'\"%\\;")
        case dict():
            return any(_odd_text(part) for item in cast("dict[Any, Any]", value).items() for part in item)
        case list() | tuple():
            return any(_odd_text(item) for item in cast("Sequence[Any]", value))
        case msgspec.Struct():
            return any(_odd_text(getattr(value, field)) for field in value.__struct_fields__)
        case _:
            return False
