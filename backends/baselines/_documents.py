"""What messages on a document engine cost without the adapter: its requests, for the plain client of either engine.

It checks nothing but what the requests look up, and makes tuples of what comes back. Metadata are of strings.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from . import Listed, Message

Json = dict[str, Any]

SORTS: dict[str, list[Json]] = {
    order: [{"created_at": {"order": order}}, {"position": {"order": order}}] for order in ("asc", "desc")
}
RESERVE = """
if (ctx._source.incarnation == params.incarnation) {
  ctx._source.next_position += params.count
} else {
  ctx.op = 'none'
}
"""
TOUCH = """
if (ctx._source.incarnation == params.incarnation && ctx._source.updated_at < params.now) {
  ctx._source.updated_at = params.now
} else {
  ctx.op = 'none'
}
"""


class DocumentMessages(ABC):
    """The messages of a namespace; a subclass has the four calls of its client."""

    def __init__(self, namespace: str) -> None:
        self._threads = f"memassay-{namespace}-threads"
        self._messages = f"memassay-{namespace}-messages"

    @abstractmethod
    def _get(self, docs: list[Json], *, exclude: str | None = None) -> list[Json]:
        """A multi-get of documents, without a field."""

    @abstractmethod
    def _refresh(self, index: str) -> None:
        """Make what was written visible to searches."""

    @abstractmethod
    def _search(self, searches: list[Json]) -> list[Json]:
        """Several searches: header, body, header, body, …"""

    @abstractmethod
    def _bulk(self, alias: str, body: bytes) -> list[Json]:
        """Many writes as lines of JSON; what became of each."""

    def page(
        self, thread_id: str, resource_id: str, count: int, offset: int = 0, metadata: Mapping[str, str] | None = None
    ) -> Listed:
        """See baselines.Messages."""
        [thread] = self._get([self._in(self._threads, thread_id)], exclude="embedding")
        rows, total = self._answers([self._page(thread, resource_id, count, offset, metadata)])
        return [_message(row) for row in rows], total, offset + count < total

    def around(self, thread_id: str, resource_id: str, id: str, before: int, after: int) -> Listed:
        """See baselines.Messages."""
        thread, target = self._get(
            [self._in(self._threads, thread_id), self._in(self._messages, id)], exclude="embedding"
        )
        found = target["_source"]
        assert found["incarnation"] == thread["_source"]["incarnation"]
        windows = [
            {
                "query": {"bool": {"filter": [{"term": {"incarnation": found["incarnation"]}}]}},
                "sort": SORTS[order],
                "size": size,
                "track_total_hits": True,
                "search_after": [found["created_at"], found["position"]],
                "_source": {"excludes": ["embedding"]},
            }
            for order, size in (("desc", before), ("asc", after))
        ]
        rows, total = self._answers([self._page(thread, resource_id, 0), *windows])
        rows = sorted([found, *rows], key=lambda row: (row["created_at"], row["position"]), reverse=True)
        return [_message(row) for row in rows], total, False

    def _page(
        self, thread: Json, resource_id: str, count: int, offset: int = 0, metadata: Mapping[str, str] | None = None
    ) -> Json:
        assert thread["_source"]["resource_id"] == resource_id
        terms: list[Json] = [{"term": {"incarnation": thread["_source"]["incarnation"]}}]
        terms += [{"term": {"tokens": f"{key}:s{value}"}} for key, value in (metadata or {}).items()]
        return {
            "query": {"bool": {"filter": terms}},
            "sort": SORTS["desc"],
            "size": count,
            "track_total_hits": True,
            "_source": {"excludes": ["embedding"]},
        } | ({"from": offset} if offset else {})

    def _answers(self, bodies: Sequence[Json]) -> tuple[list[Json], int]:
        """The documents that searches of messages find, and the total of the first."""
        self._refresh(self._messages)
        asked: list[Json] = []
        for body in bodies:
            asked += [{"index": self._messages, "allow_partial_search_results": False}, body]
        answers = self._search(asked)
        rows = [hit["_source"] for answer in answers for hit in answer["hits"]["hits"]]
        return rows, answers[0]["hits"]["total"]["value"]

    def save(self, messages: Sequence[Message]) -> Sequence[Message]:
        """See baselines.Messages."""
        thread_id, now = messages[0][1], time.time_ns() // 1_000_000
        thread, *others = self._get(
            [self._in(self._threads, thread_id), *(self._in(self._messages, row[0]) for row in messages)]
        )
        assert not any(other["found"] for other in others)
        incarnation, owner = thread["_source"]["incarnation"], thread["_source"]["resource_id"]
        reserved = self._update(thread_id, RESERVE, {"incarnation": incarnation, "count": len(messages)})
        first, mark = reserved["next_position"] - len(messages), uuid.uuid4().hex
        lines: list[Json] = []
        for position, (id, _, _, role, content, metadata, created_at) in enumerate(messages, first):
            source: Json = {
                "id": id,
                "thread_id": thread_id,
                "resource_id": owner,
                "incarnation": incarnation,
                "role": role,
                "content": json.dumps(content),
                "metadata": json.dumps(metadata),
                "tokens": [f"{key}:s{value}" for key, value in metadata.items()],
                "created_at": created_at,
                "position": position,
                "write": mark,
            }
            lines += [{"create": {"_id": _digest(id)}}, source]
        items = self._bulk(self._messages, _lines(lines))
        assert all(item["create"]["status"] == 201 for item in items)
        assert self._update(thread_id, TOUCH, {"incarnation": incarnation, "now": now})["incarnation"] == incarnation
        return messages

    def _update(self, thread_id: str, script: str, parameters: Json) -> Json:
        """Run a script on a thread; what the thread says then."""
        [item] = self._bulk(
            self._threads,
            _lines(
                [
                    {"update": {"_id": _digest(thread_id), "retry_on_conflict": 100}},
                    {
                        "script": {"lang": "painless", "source": script, "params": parameters},
                        "_source": ["incarnation", "next_position"],
                    },
                ]
            ),
        )
        return item["update"]["get"]["_source"]

    def _in(self, index: str, id: str) -> Json:
        return {"_index": index, "_id": _digest(id)}


def _lines(parts: Sequence[Json]) -> bytes:
    return b"".join(json.dumps(part).encode() + b"\n" for part in parts)


def _digest(id: str) -> str:
    return hashlib.sha256(id.encode()).hexdigest()


def _message(row: Json) -> Message:
    return (
        row["id"],
        row["thread_id"],
        row["resource_id"],
        row["role"],
        json.loads(row["content"]),
        json.loads(row["metadata"]),
        row["created_at"],
    )
