"""Judging recalls: rows, order, counts, values and hits, each by the clause it is about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import msgspec

from . import operators
from . import program as ops
from .compare import equal
from .divergence import Divergence
from .embedding import embed
from .facts import ENGINE_WINDOW
from .filters import Window
from .interpreter import START, spoilt
from .judge_errors import Errors
from .judge_hits import Candidates, Fault, fault, ties_fault
from .judge_known import Known
from .judge_texts import confusion
from .requests import Recall
from .types import Hit, Message, RecallResult


class Recalls:
    """Blames a recall's answer."""

    def __init__(self, known: Known, errors: Errors) -> None:
        self.known = known
        self.errors = errors

    def recall(
        self, index: int, operation: ops.Recall, asked: Recall, expected: RecallResult, got: RecallResult
    ) -> Iterator[Divergence]:
        """What is wrong with the answer to a recall."""
        name = "recall"
        self.known.given_range = getattr(operation.arguments().get("filter"), "date_range", None)
        foreign = [m.id for m in got.messages if asked.resource_id not in (None, m.resource_id)]
        if foreign:
            yield Divergence("ISO-1", "rows", name, index, [], foreign)
            return
        if asked.search is not None:
            found = tuple(self._hits(index, asked, got))
            yield from found
            if found:
                return
        elif got.hits:
            yield Divergence("SEM-1", "hits unasked", name, index, (), tuple(got.hits))
            return
        if not equal(expected, got) and (clause := self._taken_for_another(asked, got)) is not None:
            yield Divergence(clause, "rows", name, index, expected, got)
            return
        matching = self._own_listing(asked)
        rows = self._own_rows(asked, matching, got.hits)
        shown = [message.id for message in got.messages]
        if rows != shown:
            clause = self._rows_clause(operation, asked, rows, shown)
            yield Divergence(clause, "rows", name, index, rows, shown)
            return
        values = {message_id: row.message for message_id, row in self.known.state.by_id.items()}
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
        if got.total != len(matching) and got.total == self._plain_total(asked):
            return  # Blamed where the request was made without include.
        if got.total != len(matching):
            plain = _listing(asked) or asked.include or not _narrows(asked)
            counted = plain or self._listing_seen(asked) or got.total in self._miscounts(asked, shown)
            clause = "ORD-5" if counted else self.errors.feature(operation)
            if len(matching) >= ENGINE_WINDOW > got.total - 1:
                clause = "ORD-3b"
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

    def _miscounts(self, asked: Recall, shown: Sequence[str]) -> tuple[int, int]:
        """What is counted where the filter is right and the count is not: the whole thread, or the page."""
        return len(self.known.state.rows.get(asked.thread_id, ())), len(shown)

    def _filtered_after_paging(self, asked: Recall, got: Sequence[str]) -> bool:
        """Whether the rows are those of the unfiltered page that match."""
        whole = self._own_listing(msgspec.structs.replace(asked, metadata=(), window=Window()))
        matching = set(self._own_listing(asked))
        ordered, limit = whole if asked.ascending else whole[::-1], asked.page.limit
        page = ordered if limit is None else ordered[asked.page.offset : asked.page.offset + limit]
        return [name for name in page if name in matching] == list(got)

    def _plain_total(self, asked: Recall) -> int | None:
        """The total that the request showed when it was made without include, if it was."""
        plain = msgspec.structs.replace(asked, include=())
        return next((result.total for earlier, result in self.known.seen if asked.include and earlier == plain), None)

    def _taken_for_another(self, asked: Recall, got: RecallResult) -> str | None:
        """The clause when the thread, or an included message, was taken for one of a similar id."""
        if asked.thread_id not in self.known.state.threads and (got.messages or got.total):
            return confusion(asked.thread_id, [*self.known.state.threads])
        shown = {message.id for message in got.messages}
        unknown = [entry.id for entry in asked.include if entry.id not in self.known.state.by_id]
        return next((clause for name in unknown if (clause := confusion(name, [*shown]))), None)

    def walk(self, index: int, asked: Recall) -> Iterator[Divergence]:
        """All pages joined must be the full list (ORD-3a); judged when the last page of a walk was read."""
        size = asked.page.per_page
        if not size or asked.include:
            return
        pages = {
            earlier.page.page: [message.id for message in result.messages]
            for earlier, result in self.known.seen
            if msgspec.structs.replace(earlier, page=asked.page) == asked and earlier.page.per_page == size
        }
        matching = self._own_listing(asked)
        wanted = range(-(-len(matching) // size))
        if len(wanted) > 1 and all(page in pages for page in wanted) and asked.page.page in wanted:
            joined = [message_id for page in wanted for message_id in pages[page]]
            if sorted(joined) != sorted(matching):
                yield Divergence("ORD-3a", "rows", "recall", index, matching, joined)

    def _hits(self, index: int, asked: Recall, got: RecallResult) -> Iterator[Divergence]:
        """The hits of a semantic recall against the embeddings there should be (SEM-2, SEM-4, SEM-5)."""
        assert asked.search is not None
        query = embed(self.known.embedder, [asked.search.text], "query", self.known.model.metric)[0]
        embedded = {name: kept.vector for name, kept in self.known.state.embedded.items()}
        ranked = self.known.model.candidates(asked)
        candidates = Candidates(
            self.known.model.metric,
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
            clause = "SEM-6" if other else self._hits_clause(asked, found, embedded)
            yield Divergence(clause, f"hits {found.kind}", "recall", index, found.expected, found.got)

    def _hits_clause(self, asked: Recall, found: Fault, embedded: dict[str, tuple[float, ...]]) -> str:
        assert asked.search is not None
        search = asked.search
        if found.kind == "foreign":
            strangers = [self.known.state.by_id.get(message_id) for message_id in found.got]
            if any(row is None or row.message.id not in embedded for row in strangers):
                return "SEM-4"
            rows = [row for row in strangers if row is not None]
            if any(asked.resource_id not in (None, row.message.resource_id) for row in rows):
                return "ISO-1"
            if any(not search.filter.matches(self.known.state.embedded[row.message.id].snapshot) for row in rows):
                return self._snapshot_clause(asked)
            return "SEM-2"
        if found.kind == "score":
            # Wrong for one message of many: its embedding is an old one.
            return "SEM-4"
        if found.kind in ("missing", "rank") and search.top_k >= len(embedded) and search.threshold is None:
            if search.filter != operators.EVERYTHING:
                return self._snapshot_clause(asked)
            cloned = any(thread.clone is not None for thread in self.known.state.threads.values())
            return "SEM-2" if _narrows(asked) else "CLN-3" if cloned else "SEM-4"
        return "SEM-2"

    def _snapshot_clause(self, asked: Recall) -> str:
        """The clause of a filter that sees another snapshot: in a clone it may be the source's."""
        thread = self.known.state.threads.get(asked.thread_id)
        return "CLN-3" if thread is not None and thread.clone is not None else "SEM-5"

    def _own_listing(self, asked: Recall) -> list[str]:
        """The ids that match, oldest first: as the store itself lists them where it did, else by the model."""
        for ascending in (True, False):
            for earlier, result in self.known.seen:
                if _listing(earlier) and earlier.ascending == ascending and _same_rows(earlier, asked):
                    ids = [message.id for message in result.messages]
                    return ids if ascending else ids[::-1]
        return [row.message.id for row in self.known.model.matching(asked)]

    def _listing_seen(self, asked: Recall) -> bool:
        return any(_listing(earlier) and _same_rows(earlier, asked) for earlier, _ in self.known.seen)

    def _own_rows(self, asked: Recall, matching: list[str], hits: Sequence[Hit] = ()) -> list[str]:
        """The rows the request should show, given what the store shows for its simpler parts."""
        plain = msgspec.structs.replace(asked, include=(), search=None)
        ordered = matching if asked.ascending else matching[::-1]
        for earlier, result in self.known.seen:
            if _listing(earlier) and earlier.ascending == asked.ascending and _same_rows(earlier, asked):
                ordered = [message.id for message in result.messages]
        limit = asked.page.limit
        page = ordered if limit is None else ordered[asked.page.offset : asked.page.offset + limit]
        if not asked.include and not hits:
            return page
        for earlier, result in self.known.seen:
            # 0 == False, but no rows are not every row.
            alike = _listing(earlier) == _listing(plain)
            if alike and msgspec.structs.replace(earlier, resource_id=asked.resource_id) == plain:
                page = [message.id for message in result.messages]
        rows = {
            message_id: self.known.state.by_id[message_id]
            for message_id in page
            if message_id in self.known.state.by_id
        }
        for entry in asked.include:
            rows |= {row.message.id: row for row in self.known.model.window(asked, entry)}
        for hit in hits:
            rows |= {row.message.id: row for row in self.known.model.hit_window(asked, hit)}
        # Rows of one thread stand as the store lists them, be it wrongly.
        several = len({row.message.thread_id for row in rows.values()}) > 1
        ordered_rows = sorted(
            rows.values(),
            key=lambda row: (
                row.message.created_at if several else START,
                row.message.thread_id,
                self.known.state.place(row)[1],
            ),
            reverse=not asked.ascending,
        )
        return [row.message.id for row in ordered_rows]

    def _rows_clause(self, operation: ops.Recall, asked: Recall, expected: list[str], got: list[str]) -> str:
        if asked.search is not None:
            return "SEM-3"
        if self._empty_filter(operation) and set(got) < set(expected):
            return "FLT-2"
        if asked.include:
            return self._union_clause(operation, asked, expected, got)
        if asked.page.per_page is False:
            if set(expected) == set(got) and len(expected) == len(got):
                return "ORD-1" if asked.ascending else "ORD-2"
            if len(got) >= 1000 or len(expected) >= 1000:
                return "ORD-3b"
            return self._filter_clause(asked, set(expected) ^ set(got), got) if _narrows(asked) else "ORD-4"
        if asked.page.offset >= ENGINE_WINDOW and expected:
            return "ORD-3b"
        if operation.order_by is msgspec.UNSET and len(got) > 1 and got == self._page_oldest_first(asked):
            return "ORD-2"
        if self._only_ties_differ(expected, got):
            return "ORD-3" if asked.ascending else "ORD-2"
        if _narrows(asked) and (not self._listing_seen(asked) or self._unfiltered_page_was_right(asked)):
            late = asked.metadata or self._filtered_after_paging(asked, got)
            return "FLT-3" if late else "TIM-1"
        if set(expected) == set(got) and not asked.ascending:
            return "ORD-2"
        return "ORD-4" if operation.per_page is msgspec.UNSET or not asked.page.per_page else "ORD-3"

    def _union_clause(self, operation: ops.Recall, asked: Recall, expected: list[str], got: list[str]) -> str:
        """The clause of wrong rows where there is an include."""
        if operation.order_by is msgspec.UNSET and got == expected[::-1]:
            return "ORD-2"
        wrong = set(expected) ^ set(got)
        if not wrong:
            return "INC-2"
        if set(got) > set(expected) and not asked.page.per_page:
            if operation.per_page is msgspec.UNSET:
                return "INC-3"
            listed = {row.message.id for row in self.known.model.matching(asked)}
            if wrong <= listed and not {entry.id for entry in asked.include} & wrong and len(wrong) > 2:
                return "ORD-4"
        windows = {row.message.id for entry in asked.include for row in self.known.model.window(asked, entry)}
        if wrong & windows or any(message_id not in self.known.state.by_id for message_id in wrong):
            return "INC-1"
        return "INC-1" if wrong & set(got) else "INC-2"

    def _empty_filter(self, operation: ops.Recall) -> bool:
        """Whether the request has a metadata filter without conditions, and nothing else that narrows."""
        narrowed = operation.arguments().get("filter")
        return narrowed is not None and narrowed.metadata == {} and narrowed.date_range is None

    def _page_oldest_first(self, asked: Recall) -> list[str]:
        """The page as it would be were the direction ascending."""
        matching, limit = self._own_listing(asked), asked.page.limit
        return matching if limit is None else matching[asked.page.offset : asked.page.offset + limit]

    def _only_ties_differ(self, expected: list[str], got: list[str]) -> bool:
        """Whether the same instants stand in the same places."""
        if expected == got or any(message_id not in self.known.state.by_id for message_id in (*expected, *got)):
            return False
        at = {message_id: self.known.state.by_id[message_id].message.created_at for message_id in (*expected, *got)}
        return [at[message_id] for message_id in expected] == [at[message_id] for message_id in got] and set(
            expected
        ) == set(got)

    def _unfiltered_page_was_right(self, asked: Recall) -> bool:
        plain = msgspec.structs.replace(asked, metadata=(), window=type(asked.window)(), resource_id=None)
        for earlier, result in self.known.seen:
            if msgspec.structs.replace(earlier, resource_id=None) == plain:
                return [m.id for m in result.messages] == self._own_rows(earlier, self._own_listing(earlier))
        return False

    def _filter_clause(self, asked: Recall, wrong: set[str], got: list[str]) -> str:
        """Whether the date range or the metadata filter went wrong on these rows."""
        rows = [
            self.known.state.by_id[message_id].message for message_id in wrong if message_id in self.known.state.by_id
        ]
        if not asked.metadata:
            return "VAL-1b" if self._bounds_not_floored(asked, got) else "TIM-1"
        long = any(len(str(condition.value)) >= 255 for condition in asked.metadata)
        if all(all(condition.matches(row.metadata) for condition in asked.metadata) for row in rows):
            bounds = (asked.window.start, asked.window.end)
            missing = [row for row in rows if row.id not in got]
            if len(missing) < len(rows) or (missing and all(row.created_at in bounds for row in missing)):
                return "TIM-1" if asked.window != type(asked.window)() else "FLT-1"
        return "FLT-3" if long else "FLT-1"

    def _bounds_not_floored(self, asked: Recall, got: list[str]) -> bool:
        """Whether the rows are what the bounds of the range would select unfloored, or rounded."""
        given = self.known.given_range
        if given is None or not any(bound and bound.microsecond % 1000 for bound in (given.start, given.end)):
            return False
        rows = [row.message for row in self.known.model.matching(msgspec.structs.replace(asked, window=Window()))]
        rounded = (None if bound is None else _rounded(bound) for bound in (given.start, given.end))
        for start, end in ((given.start, given.end), rounded):
            window = Window(start, end, given.start_exclusive, given.end_exclusive)
            if {row.id for row in rows if window.holds(row.created_at)} == set(got):
                return True
        return False


def _listing(asked: Recall) -> bool:
    """Whether a request lists all that matches, and nothing else."""
    return asked.page.per_page is False and not asked.include and asked.search is None


def _same_rows(left: Recall, right: Recall) -> bool:
    """Whether two requests select from the same rows."""
    return (left.thread_id, left.metadata, left.window) == (right.thread_id, right.metadata, right.window)


def _narrows(asked: Recall) -> bool:
    return bool(asked.metadata) or asked.window != type(asked.window)()


def _rounded(at: datetime) -> datetime:
    """The instant at the nearest millisecond."""
    floored = at.replace(microsecond=at.microsecond // 1000 * 1000)
    return floored + timedelta(milliseconds=at.microsecond % 1000 >= 500)
