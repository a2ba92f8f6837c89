"""Slices of sorted searches on a document engine, wherever they begin and however long they are (ORD-3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from .document_filters import Clause, all_of
from .documents import Answer, Documents, Json, Row

WINDOW = 10_000
"""How many rows, counted from the first, a search can reach by its number; beyond, by what stands before it."""

ROWS = 2_000
"""How many rows with their sources one request asks for."""

SEARCHES = 200
"""How many searches one request holds."""


class Slice(msgspec.Struct, frozen=True):
    """Rows [offset, offset + limit) of those that match all clauses, sorted by fields that order them totally.

    limit None is all of them; `after` has the sort values behind which to begin counting; `exclude` names fields that
    the rows come without.
    """

    index: str
    clauses: Sequence[Clause]
    sort: tuple[str, ...]
    ascending: bool
    offset: int = 0
    limit: int | None = None
    after: tuple[Any, ...] | None = None
    exclude: tuple[str, ...] = ()

    @property
    def deep(self) -> bool:
        """Whether it begins where no offset reaches."""
        return self.offset >= WINDOW

    def body(self, size: int, *, offset: int = 0, total: bool = False) -> Json:
        """A search for `size` of its rows."""
        order = "asc" if self.ascending else "desc"
        body: Json = {
            "query": all_of(self.clauses),
            "sort": [{field: {"order": order}} for field in self.sort],
            "size": size,
            "track_total_hits": total,
        }
        if offset:
            body["from"] = offset
        if self.after is not None:
            body["search_after"] = list(self.after)
        if self.exclude:
            body["_source"] = {"excludes": list(self.exclude)}
        return body

    def first(self) -> Json:
        """The search it begins with, which counts all that match; without rows when it is deep."""
        if self.deep:
            return self.body(0, total=True)
        return self.body(min(self.size, WINDOW - self.offset), offset=self.offset, total=True)

    @property
    def size(self) -> int:
        """How many of its rows one request asks for."""
        return ROWS if self.limit is None else min(self.limit, ROWS)


def read(documents: Documents, slices: Sequence[Slice]) -> list[Answer]:
    """The rows of the slices, each with the total of what matches its clauses, wherever it begins."""
    found: list[Answer] = []
    for begin in range(0, len(slices), SEARCHES):
        some = slices[begin : begin + SEARCHES]
        answers = documents.search_all([(each.index, each.first()) for each in some])
        found += [_complete(documents, each, answer) for each, answer in zip(some, answers, strict=True)]
    return found


def _complete(documents: Documents, wanted: Slice, answer: Answer) -> Answer:
    """The slice whose first search has this answer."""
    if not wanted.deep:
        ended = len(answer.rows) < min(wanted.size, WINDOW - wanted.offset)
        return Answer(answer.rows if ended else _follow(documents, wanted, answer.rows), answer.total)
    length = max(0, answer.total - wanted.offset)
    if wanted.limit is not None:
        length = min(length, wanted.limit)
    if not length:
        return Answer((), answer.total)
    behind = answer.total - wanted.offset - length
    if behind < wanted.offset:  # It is nearer to the other end.
        mirrored = replace(wanted, ascending=not wanted.ascending, offset=behind, limit=length)
        return Answer(read(documents, [mirrored])[0].rows[::-1], answer.total)
    start = _skip(documents, wanted)
    return Answer(_follow(documents, replace(wanted, after=start, limit=length), ()), answer.total)


def _follow(documents: Documents, wanted: Slice, rows: Sequence[Row]) -> tuple[Row, ...]:
    """These rows and those behind them, as many as are wanted or there are."""
    found = list(rows)
    while wanted.limit is None or len(found) < wanted.limit:
        size = ROWS if wanted.limit is None else min(ROWS, wanted.limit - len(found))
        after = found[-1].sort if found else wanted.after
        page = documents.search(wanted.index, replace(wanted, after=after).body(size)).rows
        found += page
        if len(page) < size:
            break
    return tuple(found)


def _skip(documents: Documents, wanted: Slice) -> tuple[Any, ...] | None:
    """The sort values of the row before a deep slice."""
    after, skipped = wanted.after, 0
    while skipped < wanted.offset:
        size = min(WINDOW, wanted.offset - skipped)
        body = replace(wanted, after=after).body(size) | {"_source": False}
        rows = documents.search(wanted.index, body).rows
        if not rows:
            break
        after, skipped = rows[-1].sort, skipped + len(rows)
    return after
