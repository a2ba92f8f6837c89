"""Reads of messages from a document engine: a page, the windows around included messages and hits, and the hits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ..spec.errors import OwnershipMismatch, ThreadNotFound
from ..spec.requests import Recall
from ..spec.types import Hit, RecallResult
from ..spec.vectors import Vector
from .document_embeddings import Embeddings
from .document_filters import Clause, equal, within
from .document_layout import EMBEDDING, WORKING, Names, live, message_of
from .document_search import Slice, read
from .document_vectors import Scored
from .document_writes import incarnation
from .documents import Document, Documents, Json, digest

IN_ORDER = ("created_at", "position")
"""The order of the messages of one thread (ORD-1)."""


class Around(msgspec.Struct, frozen=True):
    """A message's document, and how many neighbours to bring with it on each side (INC-1)."""

    message: Json
    before: int
    after: int


class MessageReads:
    """The reads of one client from the messages of a namespace."""

    def __init__(self, documents: Documents, names: Names) -> None:
        self._documents = documents
        self._names = names

    def named(self, asked: Recall) -> tuple[Document | None, list[Around]]:
        """The thread, and the included messages that there are. ThreadNotFound, OwnershipMismatch (ORD-6)."""
        threads = list(dict.fromkeys([asked.thread_id, *(entry.thread_id for entry in asked.include)]))
        found = self._documents.fetch(
            [(self._names.threads, digest(each)) for each in threads]
            + [(self._names.messages, digest(entry.id)) for entry in asked.include],
            exclude=(EMBEDDING, WORKING),
        )
        by_id = dict(zip(threads, found, strict=False))
        _own(asked, by_id[asked.thread_id])
        included: list[Around] = []
        for entry, message in zip(asked.include, found[len(threads) :], strict=True):
            if message is None or message.source["thread_id"] != entry.thread_id:
                continue
            own = asked.resource_id in (None, message.source["resource_id"])
            if own and live(message, by_id[entry.thread_id]):
                included.append(Around(message.source, entry.before, entry.after))
        return by_id[asked.thread_id], included

    def hits(self, asked: Recall, thread: Document | None, semantic: Embeddings, query: Vector) -> list[Scored]:
        """The best candidates, with their scores (SEM-2). One thread is always searched exactly."""
        wanted = asked.search
        assert wanted is not None
        clauses = within(asked.window, "created_at") + equal(asked.metadata, "tokens")
        if wanted.scope == "thread":
            if thread is None:
                return []
            clauses.append({"term": {"incarnation": incarnation(thread)}})
            found = semantic.find(query, wanted.top_k, clauses, wanted.filter, exact=True)
        else:
            clauses.append({"term": {"resource_id": asked.resource_id}})
            found = self._alive(
                lambda more: semantic.find(query, wanted.top_k, clauses + more, wanted.filter, exact=False)
            )
        return [hit for hit in found if wanted.threshold is None or hit[0] >= wanted.threshold]

    def _alive(self, find: Callable[[list[Clause]], list[Scored]]) -> list[Scored]:
        """What is found among messages whose threads are there; those of others are left out, and it is tried again.

        There are others only while a thread is being deleted, or after a writer died.
        """
        gone: set[str] = set()
        while True:
            found = find([{"bool": {"must_not": [{"terms": {"incarnation": sorted(gone)}}]}}] if gone else [])
            homes = {row.source["thread_id"] for _, row in found}
            threads = self._documents.fetch([(self._names.threads, digest(each)) for each in homes])
            there = {incarnation(thread) for thread in threads if thread is not None}
            dead = {row.source["incarnation"] for _, row in found} - there
            if not dead:
                return found
            gone |= dead

    def result(
        self, asked: Recall, thread: Document | None, included: Sequence[Around], hits: Sequence[Scored]
    ) -> RecallResult:
        """The page, what is included, and the windows of the hits: each message once, in the order asked for."""
        wanted = list(included)
        if asked.search is not None:
            wanted += [Around(row.source, asked.search.before, asked.search.after) for _, row in hits]
        slices = [] if thread is None else [page_of(asked, thread, self._names)]
        answers = read(self._documents, slices + [each for one in wanted for each in windows_of(one, self._names)])
        rows = {row.source["id"]: row.source for answer in answers for row in answer.rows}
        rows |= {each.message["id"]: each.message for each in wanted}
        total = 0 if thread is None else answers[0].total
        return RecallResult(
            messages=tuple(
                message_of(source) for source in sorted(rows.values(), key=_rank, reverse=not asked.ascending)
            ),
            total=total,
            page=asked.page.page,
            per_page=asked.page.per_page,
            has_more=asked.page.has_more(total),
            hits=tuple(Hit(row.source["id"], score) for score, row in hits),
        )


def _own(asked: Recall, thread: Document | None) -> None:
    """Refuse a request that names a resource which does not own the thread (ORD-6)."""
    if asked.resource_id is None:
        return
    if thread is None:
        raise ThreadNotFound(f"thread {asked.thread_id!r} does not exist", clause="ORD-6")
    if thread.source["resource_id"] != asked.resource_id:
        raise OwnershipMismatch(f"thread {asked.thread_id!r} is another resource's", clause="ORD-6")


def page_of(asked: Recall, thread: Document, names: Names) -> Slice:
    """The page of a recall (ORD-3)."""
    return Slice(
        index=names.messages,
        clauses=[
            {"term": {"incarnation": incarnation(thread)}},
            *within(asked.window, "created_at"),
            *equal(asked.metadata, "tokens"),
        ],
        sort=IN_ORDER,
        ascending=asked.ascending,
        offset=asked.page.offset,
        limit=asked.page.limit,
        exclude=(EMBEDDING,),
    )


def windows_of(around: Around, names: Names) -> list[Slice]:
    """What stands beside a message, whatever the filters: its neighbours on each side that is wanted."""
    return [
        Slice(
            index=names.messages,
            clauses=[{"term": {"incarnation": around.message["incarnation"]}}],
            sort=IN_ORDER,
            ascending=ascending,
            limit=count,
            after=(around.message["created_at"], around.message["position"]),
            exclude=(EMBEDDING,),
        )
        for ascending, count in ((False, around.before), (True, around.after))
        if count
    ]


def _rank(message: Json) -> tuple[int, str, int]:
    """The sort key of messages of several threads (ORD-1)."""
    return message["created_at"], message["thread_id"], message["position"]
