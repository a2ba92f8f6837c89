"""The document API that Elasticsearch and OpenSearch share: what stores built on it ask of an engine, as a protocol.

An implementation sends one request a call (a large batch takes several), retries nothing, and raises the driver's own
error when the engine does not answer or refuses a whole request. It never returns a part: an answer of fewer than all
shards is an error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

import msgspec

from ..spec.errors import Unavailable

Json = dict[str, Any]
"""A JSON object of the engine's own language: a query, a mapping, a document."""

PROJECT, LAYOUT = "memassay", 2
"""What the mapping's `_meta` of our indices says. What does not say it is not ours: neither opened nor dropped."""

BATCH_ROWS = 5_000
BATCH_BYTES = 16 << 20
"""What a single request may hold of writes, if it holds more than one; engines refuse 100 MB."""

CONFLICT = 409
UPDATE_RETRIES = 100


class Definition(msgspec.Struct, frozen=True):
    """An index to create. `settings` are those under `index`; `kind` and `info` go to the mapping's `_meta`.

    It is written to by its alias. `derived` names fields that are indexed and not kept in the documents' sources.
    """

    settings: Json
    properties: Json
    kind: str
    alias: str
    info: Json = {}
    derived: tuple[str, ...] = ()

    @property
    def aliases(self) -> Json:
        """The alias, as an index is created with."""
        return {self.alias: {}}

    @property
    def mappings(self) -> Json:
        """The mapping: strict, so that a misspelt field is an error and none is ever guessed."""
        meta = self.info | {"project": PROJECT, "layout": LAYOUT, "kind": self.kind}
        kept: Json = {"_source": {"excludes": [*self.derived]}} if self.derived else {}
        return {"dynamic": "strict", "_meta": meta, "properties": self.properties} | kept


class Version(msgspec.Struct, frozen=True):
    """Which write of a document this is; a write that names it fails when there was another since."""

    seq_no: int
    primary_term: int


class Document(msgspec.Struct, frozen=True):
    """A stored document, as realtime reads see it."""

    id: str
    source: Json
    version: Version


class Write(msgspec.Struct, frozen=True):
    """One write of a batch.

    create: fails when the id is taken. index: stores or replaces. delete: `source` is None. update: `source` is the
    body of an update, such as {"script": …}; the engine makes it again when another write came between. `seen` makes
    the others conditional.
    """

    kind: Literal["create", "index", "update", "delete"]
    id: str
    source: Json | None = None
    seen: Version | None = None


class Outcome(msgspec.Struct, frozen=True):
    """What became of a write: `status` as of HTTP, `reason` the engine's when refused.

    `source` is the document after an update that asked for it (`_source` in its body).
    """

    id: str
    status: int
    version: Version | None = None
    reason: str = ""
    source: Json | None = None

    @property
    def done(self) -> bool:
        """Whether the write happened; a delete of nothing did not."""
        return self.status < 300

    @property
    def conflict(self) -> bool:
        """Whether somebody else's write came first."""
        return self.status == CONFLICT

    @property
    def missing(self) -> bool:
        """Whether there was no such document to update or delete."""
        return self.status == 404


class Row(msgspec.Struct, frozen=True):
    """A found document; `sort` has its sort values when the search sorted, `score` its score otherwise."""

    id: str
    source: Json
    score: float | None
    sort: tuple[Any, ...] = ()


class Answer(msgspec.Struct, frozen=True):
    """What a search found; `total` is exact when the body says track_total_hits, and −1 when it says not to count."""

    rows: tuple[Row, ...]
    total: int


class RequestFailed(Unavailable):
    """The engine did not do all of a request, and said why inside an answer that is none of the driver's errors."""


class Documents(Protocol):
    """One client of an engine. Writes are durable when they return, and found by searches after a refresh."""

    def create(self, index: str, definition: Definition) -> bool:
        """Create an index, ready for use; False when there is one of this name."""
        ...

    def ready(self, *indexes: str) -> None:
        """Wait until indices can be used: another client may be creating them."""
        ...

    def drop(self, indexes: Iterable[str]) -> None:
        """Delete indices; those that do not exist are no error."""
        ...

    def metas(self, pattern: str) -> dict[str, Json]:
        """The mapping's `_meta` of the indices whose names match: names by comma, `*` is a wildcard."""
        ...

    def extend(self, index: str, properties: Json) -> None:
        """Add fields to an index's mapping; a field that is there must be the same."""
        ...

    def properties(self, index: str) -> Json:
        """The fields of an index's mapping, as the engine has them."""
        ...

    def fetch(self, wanted: Sequence[tuple[str, str]], *, exclude: Sequence[str] = ()) -> list[Document | None]:
        """Documents by (index, id), in that order, as they are now; None where there is none.

        `exclude` names fields to leave out of the source.
        """
        ...

    def write(self, alias: str, writes: Sequence[Write], *, refresh: bool = False) -> list[Outcome]:
        """Write a batch; one outcome each, in order. Writes of one document happen in order.

        By an alias, because for another name that is not there engines would make up an index.
        """
        ...

    def refresh(self, *indexes: str) -> None:
        """Let searches see all that was written so far."""
        ...

    def search(self, index: str, body: Json) -> Answer:
        """Search; the body is in the engine's query language."""
        ...

    def search_all(self, searches: Sequence[tuple[str, Json]]) -> list[Answer]:
        """Several searches in one request; raises when one of them fails."""
        ...

    def moment(self, index: str) -> AbstractContextManager[Callable[[Json], Answer]]:
        """Searches of the index as it is now, whatever is written and refreshed meanwhile."""
        ...

    def count(self, index: str, query: Json) -> int:
        """How many documents match."""
        ...

    def delete_matching(self, index: str, query: Json) -> int:
        """Delete all that matches and was written before the call; how many there were."""
        ...

    def lost(self, error: BaseException) -> bool:
        """Whether an error of the driver's says that the engine did not answer, broke off, or has no room left."""
        ...

    def close(self) -> None:
        """Release the connections."""
        ...


BUSY = 429
SERVER_ERRORS = 500
NO_ROOM = "cluster_block_exception"


def unanswered(status: object, error: str) -> bool:
    """Whether an answer says that the engine cannot do now what it was asked: it is starting, overrun, or full."""
    return isinstance(status, int) and (status == BUSY or status >= SERVER_ERRORS or NO_ROOM in error)


def digest(identifier: str) -> str:
    """The document id for an id of ours: ids have up to 1,020 bytes, those of documents 512."""
    return hashlib.sha256(identifier.encode()).hexdigest()


def bodies(lines: Iterable[tuple[Json, Json | None]]) -> Iterator[tuple[int, bytes]]:
    """Bulk requests of a bounded size, from (action, source) pairs: how many pairs, and their lines."""
    parts: list[bytes] = []
    rows = size = 0
    for action, source in lines:
        part = msgspec.json.encode(action) + b"\n"
        if source is not None:
            part += msgspec.json.encode(source) + b"\n"
        if rows and (rows == BATCH_ROWS or size + len(part) > BATCH_BYTES):
            yield rows, b"".join(parts)
            parts, rows, size = [], 0, 0
        parts.append(part)
        rows, size = rows + 1, size + len(part)
    if rows:
        yield rows, b"".join(parts)


def lines(writes: Iterable[Write]) -> Iterator[tuple[Json, Json | None]]:
    """The (action, source) pairs of a bulk request for these writes."""
    for write in writes:
        action: Json = {"_id": write.id}
        if write.seen is not None:
            action |= {"if_seq_no": write.seen.seq_no, "if_primary_term": write.seen.primary_term}
        if write.kind == "update":
            action["retry_on_conflict"] = UPDATE_RETRIES
        yield {write.kind: action}, write.source


def outcomes(items: Iterable[Json]) -> list[Outcome]:
    """The outcomes in the items of a bulk answer."""
    return [_outcome(each) for item in items for each in item.values()]


def _outcome(item: Json) -> Outcome:
    seen = Version(item["_seq_no"], item["_primary_term"]) if "_seq_no" in item else None
    error = item.get("error")
    reason = f"{error['type']}: {error['reason']}" if error else ""
    return Outcome(item["_id"], item["status"], seen, reason, item.get("get", {}).get("_source"))


def refused(writes: Iterable[Write], status: int, reason: str) -> list[Outcome]:
    """The outcomes of writes whose request was refused as a whole, after others of their batch had been answered."""
    return [Outcome(write.id, status, reason=reason) for write in writes]


def documents(docs: Iterable[Json]) -> list[Document | None]:
    """The documents in the answer of a multi-get. RequestFailed when one could not be looked up."""
    found: list[Document | None] = []
    for each in docs:
        if "error" in each:
            raise RequestFailed(f"get: {each['error']['type']}: {each['error']['reason']}")
        found.append(
            Document(each["_id"], each["_source"], Version(each["_seq_no"], each["_primary_term"]))
            if each["found"]
            else None
        )
    return found


def answer(body: Json) -> Answer:
    """What a search found. RequestFailed when it failed, or not all shards answered."""
    if "error" in body:
        raise RequestFailed(f"search: {body['error']['type']}: {body['error']['reason']}")
    if body["timed_out"] or body["_shards"]["failed"]:
        raise RequestFailed(f"search: only a part of the shards answered: {body['_shards']}")
    hits = body["hits"]
    return Answer(
        rows=tuple(
            Row(hit["_id"], hit.get("_source", {}), hit.get("_score"), tuple(hit.get("sort", ())))
            for hit in hits["hits"]
        ),
        total=hits["total"]["value"] if "total" in hits else -1,
    )


def deleted(body: Json) -> tuple[int, bool]:
    """How many documents a delete by query deleted, and whether some were written meanwhile and left.

    RequestFailed when others were left, too.
    """
    if body["failures"] or body["timed_out"]:
        raise RequestFailed(f"delete by query: {body['failures'] or 'timed out'}")
    return body["deleted"], body["version_conflicts"] > 0
