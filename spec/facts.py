"""What a program puts to the test: facts found by running it on the model. Clauses name them as discriminators.

A fact about a write counts only when an `observe` follows it, one about a read only when the state was
observed and not written since: exactly where judge.py looks.
"""

from __future__ import annotations

import contextlib
import math
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, cast

import msgspec

from . import facts_titles, facts_vectors
from . import program as ops
from .capabilities import Capabilities
from .embedders import LiteralEmbedder
from .errors import StoreError
from .facts_histories import histories
from .facts_visibility import visible
from .facts_working import WorkingHistory
from .filters import Equals, kind_of
from .forms import Form
from .interpreter import Interpreter, Outcome, Refused, Returned, Snapshot
from .judge_hits import RECALL_QUERIES
from .judge_vectors import question
from .protocols import Runtime
from .reference import Embedded, Model, ModelNamespace, Row, State, Untitled
from .reference_index import MODEL_CAPABILITIES, Entry, ModelIndex
from .requests import ListThreads, Recall, embeds, parse_list_threads, parse_recall
from .types import MemoryConfig, MessageUpdate, NewMessage, Thread
from .values import MAX_ID_CHARACTERS, MAX_SAFE_INTEGER, walk

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ENGINE_WINDOW = 10_000
"""Rows that search engines page through before they refuse or cut."""


def survey(program: ops.Program, capabilities: Capabilities = MODEL_CAPABILITIES) -> frozenset[str]:
    """The facts a program shows on a store that can do what `capabilities` say."""
    if program.undetermined:
        return frozenset(histories(program, capabilities))
    return _Survey(program, capabilities).run()


def reader(program: ops.Program, state: State, capabilities: Capabilities) -> Model:
    """A client to read a state with, of the program's options and embedder."""
    options: MemoryConfig = ops.config(program.options)
    if program.embedder:
        with contextlib.suppress(StoreError):
            runtime = Runtime(embedder=LiteralEmbedder(program.embedder))
            return Model(runtime, options, state, capabilities=capabilities)
    return Model(None, options, state, capabilities=capabilities)


class _Survey:
    def __init__(self, program: ops.Program, capabilities: Capabilities) -> None:
        self.program = program
        self.namespace = ModelNamespace(capabilities)
        self.state = self.namespace.state
        self.events = self.namespace.events
        self.facts: set[str] = set()
        self.pending: set[str] = set()
        self.synced = False
        self.observed_values = False
        self.options: MemoryConfig = ops.config(program.options)
        self.replaced: set[str] = set()
        self.updated: set[str] = set()
        self.left: set[str] = set()
        self.returned: set[str] = set()
        self.deleted_threads: set[str] = set()
        self.index = ModelIndex(self.namespace.indexes, capabilities)
        self.model = reader(program, self.state, capabilities)
        self.working = WorkingHistory(self.model)
        self.embedder = LiteralEmbedder(program.embedder)
        self.queries: list[ops.QueryVectors] = []
        self.approximate: dict[str, int] = {}
        self.changed_vectors: set[str] = set()
        self.changed_embeddings: set[str] = set()
        self.cloned: set[str] = set()
        self.pages: dict[tuple[Any, ...], set[int]] = defaultdict(set)

    def run(self) -> frozenset[str]:
        with Interpreter(self.program, self.namespace) as interpreter:
            for operation in self.program.operations:
                self.events.clear()
                before = dict(self.state.threads)
                writes = operation.role == "write"
                old_rows = dict(self.state.by_id) if writes else {}
                embedded = dict(self.state.embedded) if writes else {}
                indexes = {name: dict(rows) for name, rows in self.index.state.rows.items()} if writes else {}
                held = dict(self.state.working) if writes else {}
                begun = list(self.state.untitled) if writes else []
                outcome = interpreter.step(operation)
                self.step(operation, outcome, before, old_rows)
                if writes:
                    self.pending |= set(self.working.write(operation, outcome, held))
                    self.pending |= set(self.titles(operation, outcome, before, begun))
                if writes and isinstance(outcome, Returned):
                    if operation.target == "index":
                        self.pending |= set(self.index_write(operation, outcome.value, indexes))
                    elif self.program.embedder:
                        self.pending |= set(self.embeddings(operation, embedded))
        return frozenset(self.facts | set(visible(self.program, self.namespace.capabilities)))

    def step(self, operation: ops.Operation, outcome: Outcome, before: dict[str, Thread], old: dict[str, Row]) -> None:
        if isinstance(outcome, Refused):
            self.refusal(operation, outcome)
        match operation:
            case ops.Observe() if isinstance(outcome, Returned):
                self.facts |= self.pending
                self.pending.clear()
                if self.state.untitled:
                    self.facts.add("title.pending")
                self.facts |= set(self.order())
                self.facts |= set(self.observed(outcome.value))
                if self.program.embedder and outcome.value.embeddings is not None:
                    self.facts |= set(facts_vectors.configured(self.options))
                self.queries.clear()
                self.synced = True
                self.pages.clear()
            case ops.Reopen():
                self.pending |= set(self.reopened())
                self.synced = False
                self.working.reopen()
            case ops.Tick():
                pass
            case ops.Recall() if self.synced:
                self.facts |= set(self.recall(operation, outcome))
            case ops.ListThreads() if self.synced:
                self.facts |= set(self.threads(operation, outcome))
            case ops.GetThread() if self.synced:
                self.facts |= set(_get_thread(operation, outcome, before))
            case ops.QueryVectors() if self.synced and isinstance(outcome, Returned):
                name = operation.arguments()["name"]
                gone = {row_id for row_id in self.changed_vectors if row_id.startswith(f"{name}/")}
                self.facts |= set(facts_vectors.query(operation, self.index, gone, self.queries))
                self.queries.append(operation)
                _, candidates, _ = question(operation, self.index)
                if not candidates.exact:
                    self.approximate[name] = self.approximate.get(name, 0) + 1
                    if self.approximate[name] >= RECALL_QUERIES:
                        self.facts |= {"recall.measured", f"recall.{self.index.describe_index(name).config.type}"}
            case ops.GetWorkingMemory() if self.synced:
                self.facts |= set(self.working.read(operation, outcome))
            case ops.ListClones() if self.synced and isinstance(outcome, Returned):
                self.facts.add("clones.listed" if outcome.value else "clones.none")
            case ops.Operation() if operation.target == "index" and operation.role == "write":
                self.synced = False
            case ops.Operation() if operation.role == "write":
                self.synced = False
                self.pending |= set(self.write(operation, outcome, before, old))
                self.history()
            case _:
                pass

    def titles(
        self, operation: ops.Operation, outcome: Outcome, before: dict[str, Thread], begun: list[Untitled]
    ) -> Iterator[str]:
        match operation:
            case ops.SaveMessages() if self.program.titler:
                yield from facts_titles.saved(operation, outcome, self.options, before)
            case ops.Settle():
                yield from facts_titles.settled(begun, before, self.state)
            case ops.TitleThread():
                yield from facts_titles.given(operation, outcome, before)
            case _:
                return

    # Refusals

    def refusal(self, operation: ops.Operation, outcome: Refused) -> None:
        facts = {f"refused.{outcome.clause}", f"refused.{outcome.clause}.{outcome.code}"}
        clause = outcome.clause
        if isinstance(operation, ops.Recall) and operation.vector_search_string is not msgspec.UNSET:
            facts.add(f"refused.{clause}.search")
        for value in walk(operation.arguments()):
            match value:
                case datetime() if clause == "VAL-1a":
                    facts.add("refused.naive" if value.utcoffset() is None else "refused.out_of_range")
                case str() if clause == "VAL-2a":
                    facts |= set(_bad_text(value))
                case float() if clause == "VAL-3a" and not math.isfinite(value):
                    facts.add("refused.not_finite")
                case int() if clause == "VAL-3a" and abs(value) > MAX_SAFE_INTEGER:
                    facts.add("refused.big_integer")
                case tuple() | datetime() if clause == "VAL-3a":
                    facts.add("refused.not_json")
                case _:
                    continue
        if operation.role == "read":
            facts = facts | {f"{fact}.read" for fact in facts}
        else:
            facts = facts | {f"{fact}.write" for fact in facts}
            self.pending.add("refused.observed")
        if isinstance(operation, ops.SaveMessages) and _batch(operation.messages):
            self.pending.add("save.refused_batch")
        if isinstance(operation, ops.UpsertVectors) and _batch(operation.vectors):
            self.pending.add("upsert.refused_batch")
        if isinstance(operation, ops.UpdateMessages) and _batch(operation.updates):
            self.pending.add("update.refused_batch")
        if isinstance(operation, ops.DeleteMessages) and isinstance(operation.ids, str):
            facts.add("delete.bare_string")
        self.facts |= facts

    # Writes

    def write(
        self, operation: ops.Operation, outcome: Outcome, before: dict[str, Thread], old: dict[str, Row]
    ) -> Iterator[str]:
        if not isinstance(outcome, Returned):
            return
        arguments = operation.arguments()
        yield from _values(arguments)
        for event in self.events:
            if event.thread_id in self.cloned:
                yield "clone.changed_after"
        match operation:
            case ops.CreateThread():
                yield "create"
                yield "create.generated" if arguments.get("id") is None else "create.named"
                yield "create.instant_given" if arguments.get("created_at") else "create.instant_default"
                if outcome.value.id in self.deleted_threads:
                    yield "delete_thread.recreated"
            case ops.UpdateThread():
                yield from _update_thread(arguments, before[arguments["thread_id"]], outcome.value)
            case ops.DeleteThread():
                yield "delete_thread" if outcome.value else "delete_thread.unknown"
                if outcome.value and any(row.message.thread_id == arguments["thread_id"] for row in old.values()):
                    yield "delete_thread.with_messages"
            case ops.SaveMessages():
                yield from self.saved(arguments["messages"], old)
                yield from self.touched(before)
            case ops.UpdateMessages():
                yield from _updated(arguments["updates"], old)
                yield from self.touched(before)
            case ops.DeleteMessages():
                yield from _deleted(arguments["ids"], old)
                yield from self.touched(before)
            case ops.ClearMessages():
                yield "clear" if outcome.value else "clear.empty"
                yield from self.touched(before)
            case ops.CloneThread():
                source = before[arguments["source_thread_id"]]
                yield from facts_vectors.clone(operation, outcome.value, self.state, source)
                self.cloned |= {source.id, outcome.value.thread.id}
            case ops.Together():
                for branch in operation.operations:
                    yield f"together.{branch.name}"
            case _:
                return

    def saved(self, batch: Sequence[NewMessage], old: dict[str, Row]) -> Iterator[str]:
        yield "save"
        if len({message.id for message in batch}) < len(batch):
            yield "save.duplicate_ids"
        for message in batch:
            yield f"save.role.{message.role}"
            if not isinstance(message.content, str):
                yield "save.parts"
            if message.created_at is None:
                yield "save.instant_default"
            replaced = old.get(message.id)
            if replaced is not None and replaced.message.thread_id == message.thread_id:
                yield "resave"
                if replaced.message.metadata and message.metadata is None:
                    yield "resave.bare"
                if message.created_at is None:
                    yield "resave.keeps_instant"
            elif replaced is not None:
                yield "resave.moved"

    def touched(self, before: dict[str, Thread]) -> Iterator[str]:
        """What the call did to updated_at."""
        yield "touch"
        moved = any(event.kind == "moved" for event in self.events)
        changed = [
            thread_id
            for thread_id, thread in self.state.threads.items()
            if thread_id in before and thread.updated_at != before[thread_id].updated_at
        ]
        if not self.events or all(event.kind == "cleared" for event in self.events):
            yield "touch.nothing"
        elif changed and len(changed) < len(before):
            yield "touch.forward"
        elif not changed:
            yield "touch.no_later"
        if moved and len(changed) > 1:
            yield "touch.both"

    def history(self) -> None:
        """Which messages were replaced, updated, or came back, for `order`."""
        for event in self.events:
            match event.kind:
                case "replaced":
                    self.replaced.add(str(event.message_id))
                case "updated":
                    self.updated.add(str(event.message_id))
                case "deleted":
                    self.left.add(str(event.message_id))
                case "moved":
                    self.returned.add(str(event.message_id))
                case "inserted" if event.message_id in self.left:
                    self.returned.add(event.message_id)
                case "thread_deleted":
                    self.deleted_threads.add(event.thread_id)
                case _:
                    continue

    def index_write(self, operation: ops.Operation, value: Any, old: dict[str, dict[str, Entry]]) -> Iterator[str]:
        name = operation.arguments()["name"]
        rows = old.get(name, {})
        now = self.index.state.rows.get(name, {})
        self.changed_vectors |= {f"{name}/{row_id}" for row_id, entry in rows.items() if now.get(row_id) != entry}
        yield from facts_vectors.index_write(operation, value, rows, name in old)

    def embeddings(self, operation: ops.Operation, before: dict[str, Embedded]) -> Iterator[str]:
        if isinstance(operation, ops.SaveMessages | ops.UpdateMessages):
            on = embeds(self.options, operation.arguments().get("thread_config"))
        else:
            on = False
        self.changed_embeddings |= {name for name, kept in before.items() if self.state.embedded.get(name) != kept}
        yield from facts_vectors.embedded(before, self.state, operation, on)

    # What an observation shows

    def observed(self, snapshot: Snapshot) -> Iterator[str]:
        values = any(thread and thread.metadata for thread in snapshot.threads.values())
        if self.observed_values and values:
            yield "alias.output"
        self.observed_values = values
        ids = [*self.state.threads, *self.state.by_id]
        folded = [unicodedata.normalize("NFC", name.casefold()) for name in ids]
        if len(set(folded)) < len(ids):
            yield "id.confusable_pair"
        if len({name[:200] for name in ids if len(name) > 200}) < sum(len(name) > 200 for name in ids):
            yield "id.prefix_pair"
        if any(len(rows.messages) > ENGINE_WINDOW for rows in snapshot.rows.values()):
            yield "window.everything"

    def order(self) -> Iterator[str]:
        for rows in self.state.rows.values():
            if rows:
                yield "order"
            if [row.position for row in rows] != sorted(row.position for row in rows):
                yield "order.late_arrival"
            for left, right in pairwise(rows):
                if left.message.created_at != right.message.created_at:
                    continue
                yield "order.ties"
                first, second = left.message.id, right.message.id
                if first > second:
                    yield "order.ties_against_ids"
                if first in self.replaced:
                    yield "order.resaved_tie"
                if first in self.updated:
                    yield "order.updated_tie"
                if second in self.returned:
                    yield "order.returned_tie"

    def reopened(self) -> Iterator[str]:
        if self.state.by_id:
            yield "reopen"
            if any(
                left.message.created_at == right.message.created_at
                for rows in self.state.rows.values()
                for left, right in pairwise(rows)
            ):
                yield "reopen.ties"
            if self.updated or self.replaced:
                yield "reopen.changed"
            if self.left or self.deleted_threads:
                yield "reopen.deleted"

    # Reads

    def recall(self, operation: ops.Recall, outcome: Outcome) -> Iterator[str]:
        arguments = operation.arguments()
        if not isinstance(outcome, Returned):
            return
        asked = parsed_recall(arguments, self.options)
        assert asked is not None
        model = Model(state=self.state)
        thread = self.state.threads.get(asked.thread_id)
        matching = model.matching(asked)
        yield from _ownership(asked, thread, self.state)
        yield from _hostile(arguments)
        if asked.window.start is not None or asked.window.end is not None:
            yield from _dates(asked, self.state.rows.get(asked.thread_id, []), arguments)
        if asked.metadata:
            yield from _filter(asked, self.state.rows.get(asked.thread_id, []), matching)
        elif operation.filter is not msgspec.UNSET and arguments["filter"].metadata == {}:
            yield "filter.empty"
        if asked.search is None:
            yield from self.paging(operation, asked, matching, arguments)
        if asked.include:
            yield from self.included(operation, asked, matching, model)
        if asked.search is not None:
            gone = self.changed_embeddings
            yield from facts_vectors.search(asked, outcome.value, self.model, self.embedder, gone)
        elif arguments.get("vector_search_string") is not None:
            yield "search.blank"

    def paging(
        self, operation: ops.Recall, asked: Recall, matching: list[Row], arguments: dict[str, Any]
    ) -> Iterator[str]:
        total, page = len(matching), asked.page
        ordered = matching if asked.ascending else matching[::-1]
        cut_ties = any(
            0 < cut < total and ordered[cut - 1].message.created_at == ordered[cut].message.created_at
            for cut in (page.offset, page.offset + int(page.per_page))
        )
        per_page = arguments.get("per_page")
        direction = "asc" if asked.ascending else "desc"
        ties = any(left.message.created_at == right.message.created_at for left, right in pairwise(matching))
        yield "total"
        if asked.include:
            yield "total.with_include"
        if per_page is None and not asked.include:
            config = arguments.get("thread_config")
            last = config.last_messages if config is not None else msgspec.UNSET
            yield "default"
            if last is False or (last is msgspec.UNSET and self.options.last_messages is False):
                yield "default.off"
            elif last is not msgspec.UNSET or self.options.last_messages is not msgspec.UNSET:
                if total > int(page.per_page):
                    yield "default.configured"
            elif total > int(page.per_page):
                yield "default.ten"
        elif page.per_page is False:
            yield "everything"
            if total > 1:
                yield f"everything.{direction}"
            if ties:
                yield f"everything.{direction}.ties"
        elif page.per_page == 0:
            yield "total.no_rows"
            if per_page == 0:
                yield "nothing"
        elif not asked.include:
            yield "page"
            if ties:
                yield f"page.{direction}"
            if cut_ties:
                yield "page.cuts_ties"
            if page.offset and page.offset < total:
                yield "page.later"
            if page.offset >= total > 0:
                yield "page.past_end"
            if page.offset < total < page.offset + page.per_page:
                yield "page.partial"
            if page.offset > 2**63:
                yield "page.huge"
            if ENGINE_WINDOW <= page.offset < total:
                yield "window.deep_page"
            if asked.metadata and matching:
                plain = self.state.rows[asked.thread_id]
                plain = plain if asked.ascending else plain[::-1]
                within = plain[page.offset : page.offset + page.per_page]
                if any(row not in within for row in ordered[page.offset : page.offset + page.per_page]):
                    yield "filter.before_page"
            yield "total.has_more" if page.has_more(total) else "total.no_more"
            if page.offset + page.per_page == total:
                yield "total.exact_end"
            if page.per_page < total:
                walk = (str(operation.given() | {"page": 0}),)
                self.pages[walk].add(page.page)
                if len(self.pages[walk]) * page.per_page >= total:
                    yield "walk"
                    if ties:
                        yield "walk.ties"

    def included(self, operation: ops.Recall, asked: Recall, matching: list[Row], model: Model) -> Iterator[str]:
        yield "include"
        if operation.per_page is msgspec.UNSET and asked.search is None:
            yield "include.alone"
        windows: list[list[Row]] = []
        for entry in asked.include:
            row = self.state.by_id.get(entry.id)
            window = model.window(asked, entry)
            windows.append(window)
            if row is None:
                yield "include.unknown"
            elif row.message.thread_id != entry.thread_id:
                yield "include.elsewhere"
            elif not window:
                yield "include.foreign"
            else:
                if entry.thread_id != asked.thread_id:
                    yield "include.other_thread"
                rows, index = self.state.place(row)
                if index < entry.before or index + entry.after >= len(rows):
                    yield "include.clipped"
                if len(window) > 1 and any(other not in matching for other in window if other is not row):
                    yield "include.unfiltered"
                first, last = index - entry.before, index + entry.after
                if any(
                    0 <= outside < len(rows)
                    and 0 <= inside < len(rows)
                    and inside != outside
                    and rows[inside].message.created_at == rows[outside].message.created_at
                    for inside, outside in ((first, first - 1), (last, last + 1))
                ):
                    yield "include.cuts_ties"
        ordered = matching if asked.ascending else matching[::-1]
        limit = asked.page.limit
        page = ordered if limit is None else ordered[asked.page.offset : asked.page.offset + limit]
        names = [row.message.id for window in windows for row in window]
        if len(set(names)) < len(names):
            yield "union.windows_overlap"
        if page and set(names) & {row.message.id for row in page}:
            yield "union.page_overlaps"
        if page and set(names) - {row.message.id for row in page}:
            yield "union.page_and_more"
        if len(set(names)) > 1:
            yield "union.asc" if asked.ascending else "union.desc"

    def threads(self, operation: ops.ListThreads, outcome: Outcome) -> Iterator[str]:
        asked = parsed_list_threads(operation.arguments())
        if asked is None or not isinstance(outcome, Returned):
            return
        yield "threads"
        everything: list[Thread] = sorted(
            Model(state=self.state).list_threads(filter=operation.arguments().get("filter"), per_page=False).threads,
            key=lambda thread: (getattr(thread, asked.field), thread.id),
            reverse=not asked.ascending,
        )
        total, cut = len(everything), asked.page.offset + int(asked.page.per_page)
        if 0 < cut < total and getattr(everything[cut - 1], asked.field) == getattr(everything[cut], asked.field):
            yield "threads.cut_ties"
        if asked.resource_id is not None and 0 < total < len(self.state.threads):
            yield "threads.by_resource"
        if asked.metadata and 0 < total < len(self.state.threads):
            yield "threads.by_metadata"
        if asked.field == "updated_at" and everything != sorted(
            everything, key=lambda thread: (thread.created_at, thread.id), reverse=not asked.ascending
        ):
            yield "threads.by_update"
        if asked.page.per_page == 0:
            yield "threads.none"
        if asked.page.per_page and asked.page.offset >= total > 0:
            yield "threads.past_end"
        if asked.page.has_more(total):
            yield "threads.has_more"


def parsed_recall(arguments: dict[str, Any], options: MemoryConfig) -> Recall | None:
    """The request a recall's arguments make; None when they are refused."""
    try:
        return parse_recall(options=options, **arguments)
    except StoreError:
        return None


def parsed_list_threads(arguments: dict[str, Any]) -> ListThreads | None:
    """The request a list_threads' arguments make; None when they are refused."""
    try:
        return parse_list_threads(
            arguments.get("filter"), arguments.get("order_by"), arguments.get("page", 0), arguments.get("per_page")
        )
    except StoreError:
        return None


def _ownership(asked: Recall, thread: Thread | None, state: State) -> Iterator[str]:
    if thread is None:
        yield "owner.unknown_thread"
    if asked.resource_id is not None:
        yield "owner.right"
        if any(other.resource_id != asked.resource_id for other in state.threads.values()):
            yield "isolation.read"
            if asked.include:
                yield "isolation.include"


def _dates(asked: Recall, rows: list[Row], arguments: dict[str, Any]) -> Iterator[str]:
    yield "date"
    window = asked.window
    instants = [row.message.created_at for row in rows]
    for name, bound, exclusive in (
        ("start", window.start, window.start_exclusive),
        ("end", window.end, window.end_exclusive),
    ):
        if bound is None:
            yield "date.one_sided"
        elif bound in instants:
            yield f"date.{name}_{'exclusive' if exclusive else 'inclusive'}"
    if window.start and window.end and window.start > window.end:
        yield "date.reversed"
    given = arguments["filter"].date_range
    if any(bound is not None and bound.microsecond % 1000 for bound in (given.start, given.end)):
        yield "date.submillisecond"


def _filter(asked: Recall, rows: list[Row], matching: list[Row]) -> Iterator[str]:
    yield "filter"
    if matching:
        yield "filter.hit"
    if 0 < len(matching) < len(rows):
        yield "filter.narrows"
    for condition in asked.metadata:
        stored = [row.message.metadata[condition.key] for row in rows if condition.key in row.message.metadata]
        yield from _near_misses(condition, stored, len(rows))
    if len(asked.metadata) > 1 and any(
        0 < sum(condition.matches(row.message.metadata) for condition in asked.metadata) < len(asked.metadata)
        for row in rows
    ):
        yield "filter.some_conditions"


def _near_misses(condition: Equals, stored: list[Any], rows: int) -> Iterator[str]:
    kinds = [kind_of(value) for value in stored]
    if len(set(kinds)) > 1 and kinds[0] != condition.kind:
        yield "filter.first_of_another_type"
    if condition.kind == "null" and "null" in kinds and len(stored) < rows:
        yield "filter.null_and_missing"
    if isinstance(condition.value, str) and len(condition.value) >= 255 and condition.value in stored:
        yield "filter.long_string"
    for value, kind in zip(stored, kinds, strict=True):
        if kind == condition.kind:
            if kind == "string" and value != condition.value and _alike(str(value), str(condition.value)):
                yield "filter.string_near_miss"
            if kind == "number" and value == condition.value and type(value) is not type(condition.value):
                yield "filter.integral_float"
        elif kind is None:
            if condition.value in (value if isinstance(value, list) else value.values()):
                yield "filter.inside_container"
        elif _as_text(value) == _as_text(condition.value) or (
            {kind, condition.kind} == {"bool", "number"} and value == condition.value
        ):
            yield "filter.other_type"


def _batch(form: Form) -> bool:
    """Whether a form is a list of several items."""
    return isinstance(form, list) and len(cast("list[Form]", form)) > 1


def _compatible(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _alike(left: str, right: str) -> bool:
    """Equal but for case, surrounding space or Unicode form."""
    folds: tuple[Callable[[str], str], ...] = (str.casefold, str.strip, _compatible)
    return any(fold(left) == fold(right) for fold in folds)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _get_thread(operation: ops.GetThread, outcome: Outcome, threads: dict[str, Thread]) -> Iterator[str]:
    if not isinstance(outcome, Returned):
        return
    arguments = operation.arguments()
    yield "get"
    if outcome.value is not None:
        yield "get.found" if arguments.get("resource_id") is None else "get.own"
    else:
        yield "get.foreign" if arguments["thread_id"] in threads else "get.unknown"
    if arguments.get("resource_id") is not None and len({thread.resource_id for thread in threads.values()}) > 1:
        yield "isolation.read"


def _update_thread(arguments: dict[str, Any], old: Thread, new: Thread) -> Iterator[str]:
    yield "update_thread"
    changes: dict[str, Any] = arguments.get("metadata") or {}
    if changes and old.metadata.keys() - changes.keys():
        yield "update_thread.merges"
    if any(isinstance(old.metadata.get(key), dict) for key in changes):
        yield "update_thread.replaces_nested"
    if not changes and old.metadata:
        yield "update_thread.keeps"
    yield "update_thread.later" if new.updated_at > old.updated_at else "update_thread.no_later"


def _updated(updates: Sequence[MessageUpdate], old: dict[str, Row]) -> Iterator[str]:
    yield "update"
    if len({update.id for update in updates}) < len(updates):
        yield "update.repeated"
    for update in updates:
        row = old.get(update.id)
        if row is None:
            yield "update.unknown"
        elif update.metadata and row.message.metadata.keys() - update.metadata.keys():
            yield "update.merges"


def _deleted(ids: Sequence[str], old: dict[str, Row]) -> Iterator[str]:
    yield "delete"
    if not ids:
        yield "delete.nothing"
    if any(name not in old for name in ids):
        yield "delete.unknown"
    if len({name for name in ids if name in old}) < sum(name in old for name in ids):
        yield "delete.duplicate"
    if any(name in old for name in ids):
        yield "delete.some"


def _values(arguments: dict[str, Any]) -> Iterator[str]:
    """Facts about the values a write stores."""
    for value in walk(arguments):
        match value:
            case datetime():
                yield "instant"
                if value.microsecond % 1000:
                    yield "instant.submillisecond"
                    if value < EPOCH:
                        yield "instant.submillisecond_before_1970"
                if value < EPOCH:
                    yield "instant.before_1970"
                if value.utcoffset() != timedelta(0):
                    yield "instant.other_zone"
                if value.year in (1, 9999):
                    yield "instant.extreme"
            case str():
                yield from _text(value)
            case dict() if value:
                yield from _metadata(cast("dict[str, Any]", value))
            case msgspec.Struct():
                yield "alias.input"
            case _:
                continue
    yield from _hostile(arguments)


def _text(text: str) -> Iterator[str]:
    yield "text"
    if any(character > "\uffff" for character in text[:1000]):
        yield "text.astral"
    if text[:1000] != unicodedata.normalize("NFC", text[:1000]):
        yield "text.decomposed"
    if len(text) >= 1 << 16:
        yield "text.long"
    if text != text.strip():
        yield "text.padded"


def _metadata(value: dict[str, Any]) -> Iterator[str]:
    yield "metadata"
    for key, item in value.items():
        match item:
            case bool():
                yield "metadata.bool"
            case float():
                yield "metadata.float"
                if abs(item) >= 1e16:
                    yield "metadata.big_float"
            case None:
                yield "metadata.null"
            case dict() | list():
                yield "metadata.nested" if item else "metadata.empty_container"
            case _:
                pass
        if "." in key or "$" in key:
            yield "metadata.odd_key"


def _hostile(arguments: dict[str, Any]) -> Iterator[str]:
    if any(isinstance(value, str) and any(mark in value for mark in "'\"%\\;*") for value in walk(arguments)):
        yield "hostile"


def _bad_text(text: str) -> Iterator[str]:
    if "\0" in text:
        yield "refused.nul"
    if any("\ud800" <= character <= "\udfff" for character in text):
        yield "refused.surrogate"
    if not text:
        yield "refused.empty_id"
    if len(text) > MAX_ID_CHARACTERS:
        yield "refused.long_id"
