"""Vector indices on a document engine: each is an index of the engine's own, whose rows are documents.

An index has a name that tells which it is, so that of two clients that create it one is first, and an alias that no
other index ever has, by which its rows are read and written: what is known of an index that was dropped, and made
anew by another client, leads nowhere.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from ..spec.errors import AlreadyExists, ConfigurationError, IndexNotFound, answered
from ..spec.index_requests import (
    NewIndex,
    VectorChange,
    parse_create_index,
    parse_delete_vectors,
    parse_query,
    parse_update_vector,
    parse_upsert,
)
from ..spec.protocols import Runtime
from ..spec.requests import parse_ids
from ..spec.types import IndexConfig, IndexDescription, NewVector, VectorHit, VectorRow
from ..spec.values import identifier
from .document_filters import EVERYTHING, TOKENS, holds, tokens
from .document_layout import KEYWORD, OPAQUE, Names, json_text, ours
from .document_vectors import (
    NORM,
    RAW,
    Nearest,
    Search,
    Target,
    VectorLanguage,
    components,
    mapping,
    stored,
    vector_of,
)
from .document_writes import LOOKUPS, attempts
from .documents import Definition, Document, Documents, Json, RequestFailed, Write, digest

T = TypeVar("T")

NEAR = "near"
# `write` has what one call wrote, so that it can be told from what others did.
ROWS: Json = {"id": KEYWORD, "metadata": OPAQUE, "tokens": TOKENS, "write": OPAQUE}
DERIVED = ("tokens", NORM, NEAR)
"""Fields that are worked out from the others, and not kept in a row's source."""


class Known(msgspec.Struct, frozen=True):
    """An index as it was created. What is in here never changes while its alias exists."""

    index: NewIndex
    place: str
    alias: str


class DocumentIndex:
    """One client. Implements protocols.VectorIndex."""

    def __init__(
        self, documents: Documents, names: Names, settings: Json, language: VectorLanguage, runtime: Runtime
    ) -> None:
        self._documents = documents
        self._names = names
        self._settings = settings
        self._language = language
        self._runtime = runtime
        self._known: dict[str, Known] = {}
        self._closed = False
        self._lock = threading.RLock()

    def create_index(
        self, name: str, *, dimension: int, metric: str = "cosine", config: IndexConfig | None = None
    ) -> None:
        """See protocols.VectorIndex."""
        new = parse_create_index(name, dimension, metric, config, self._language.capabilities)
        with self._session():
            while (old := self._find(name)) is None:
                made = Known(new, self._names.vectors(name), f"{self._names.vectors(name)}-{uuid.uuid4().hex}")
                self._runtime.fault("before commit")
                if self._documents.create(made.place, self._definition(made)):
                    self._known[name] = made
                    self._runtime.fault("after commit")
                    return
        if (old.index.dimension, old.index.metric) != (new.dimension, new.metric):
            raise AlreadyExists(
                f"index {name!r} has {old.index.dimension} dimensions and the metric {old.index.metric}", clause="VEC-1"
            )

    def _definition(self, made: Known) -> Definition:
        return Definition(
            settings=self._settings,
            properties=ROWS | mapping(self._language, made.index, NEAR),
            kind="vectors",
            info={"index": msgspec.to_builtins(made.index), "alias": made.alias},
            alias=made.alias,
            derived=DERIVED,
        )

    def describe_index(self, name: str) -> IndexDescription:
        """See protocols.VectorIndex."""

        def work(found: Known) -> IndexDescription:
            count = self._documents.count(found.alias, EVERYTHING)
            known = self._documents.properties(found.place)[NEAR]
            return IndexDescription(name, *self._language.described(known), count)

        return self._on(name, work)

    def list_indexes(self) -> tuple[str, ...]:
        """See protocols.VectorIndex."""
        with self._session():
            found = ours(self._documents, self._names.all_vectors)
        return tuple(sorted(meta["index"]["name"] for meta in found.values()))

    def drop_index(self, name: str) -> None:
        """See protocols.VectorIndex."""
        identifier(name, "name")
        with self._session():
            found = self._find(name)
            if found is None:
                raise _not_found(name)
            self._runtime.fault("before commit")
            self._documents.drop([found.place])
            self._known.pop(name, None)
            self._runtime.fault("after commit")

    def upsert_vectors(self, name: str, vectors: Sequence[NewVector]) -> int:
        """See protocols.VectorIndex."""

        def work(found: Known) -> int:
            batch = parse_upsert(vectors, found.index.dimension, found.index.metric)
            self._write(found, {row.id: _source(row, found.index) for row in batch})
            return len(batch)

        return self._on(name, work)

    def get_vectors(self, name: str, ids: Sequence[str]) -> tuple[VectorRow, ...]:
        """See protocols.VectorIndex."""

        def work(found: Known) -> tuple[VectorRow, ...]:
            named = parse_ids(ids, clause="VEC-2")
            rows = [row.source for row in self._fetch(found, named) if row is not None]
            return tuple(
                VectorRow(row["id"], components(row[RAW]), msgspec.json.decode(row["metadata"])) for row in rows
            )

        return self._on(name, work)

    def update_vector(
        self,
        name: str,
        id: str,
        *,
        vector: Sequence[float] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> bool:
        """See protocols.VectorIndex."""

        def work(found: Known) -> bool:
            change = parse_update_vector(id, vector, metadata, found.index.dimension, found.index.metric)
            for _ in attempts():
                (old,) = self._fetch(found, [change.id])
                if old is None:
                    return False
                new = _source(_changed(old, change), found.index)
                self._runtime.fault("before commit")
                write = Write("index", old.id, new, old.version)
                (outcome,) = self._documents.write(found.alias, [write], refresh=True)
                if outcome.done:
                    self._runtime.fault("after commit")
                    return True
                if not outcome.conflict:
                    raise RequestFailed(f"vector {change.id!r} was refused: {outcome.reason}")
            raise AssertionError

        return self._on(name, work)

    def delete_vectors(
        self, name: str, *, ids: Sequence[str] | None = None, filter: Mapping[str, Any] | None = None
    ) -> int:
        """See protocols.VectorIndex."""

        def work(found: Known) -> int:
            asked = parse_delete_vectors(ids, filter)
            if isinstance(asked, tuple):
                return self._write(found, dict.fromkeys(asked))
            self._runtime.fault("before commit")
            count = self._documents.delete_matching(found.alias, holds(asked, "tokens"))
            self._documents.refresh(found.alias)
            self._runtime.fault("after commit")
            return count

        return self._on(name, work)

    def query_vectors(
        self,
        name: str,
        vector: Sequence[float],
        *,
        top_k: int = 10,
        filter: Mapping[str, Any] | None = None,
        min_score: float | None = None,
        exact: bool = False,
    ) -> tuple[VectorHit, ...]:
        """See protocols.VectorIndex."""

        def work(found: Known) -> tuple[VectorHit, ...]:
            index = found.index
            asked = parse_query(
                vector, index.dimension, index.metric, top_k=top_k, filter=filter, min_score=min_score, exact=exact
            )
            nearest = Nearest(
                self._documents,
                self._language,
                _target(found),
                raw=lambda source: source[RAW],
                ties=lambda source: source["id"],
            )
            search = Search(asked.vector, asked.top_k, holds(asked.filter, "tokens"))
            return tuple(
                VectorHit(row.source["id"], score, msgspec.json.decode(row.source["metadata"]))
                for score, row in nearest.find(search, exact=asked.exact)
                if asked.min_score is None or score >= asked.min_score
            )

        return self._on(name, work)

    def close(self) -> None:
        """See protocols.VectorIndex."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._documents.close()

    # The client, and the index of a name

    @contextmanager
    def _session(self) -> Generator[None]:
        with self._lock:
            if self._closed:
                raise ConfigurationError("this client is closed", hint="open the namespace again")
            with answered(self._documents.lost):
                yield

    def _find(self, name: str) -> Known | None:
        """The index of this name, as it is now."""
        place = self._names.vectors(name)
        found = ours(self._documents, place).get(place)
        if found is None:
            self._known.pop(name, None)
            return None
        known = Known(msgspec.convert(found["index"], NewIndex), place, found["alias"])
        if known != self._known.get(name):
            self._documents.ready(known.alias)
            self._known[name] = known
        return known

    def _on(self, name: str, work: Callable[[Known], T]) -> T:
        """Do something with the index of this name.

        What is known of it is tried first. Whatever fails then may be due to another client that has dropped it, and
        perhaps made one of the same name, and is tried again with that.
        """
        identifier(name, "name")
        with self._session():
            known = self._known.get(name) or self._find(name)
            while known is not None:
                try:
                    return work(known)
                except Exception:
                    now = self._find(name)
                    if now == known:
                        raise
                    known = now
        raise _not_found(name)

    # Rows

    def _fetch(self, found: Known, ids: Collection[str]) -> list[Document | None]:
        """The rows of these ids, in their order."""
        if not ids:
            self._documents.count(found.alias, EVERYTHING)  # which fails when it is gone
        wanted = [(found.alias, digest(each)) for each in ids]
        rows: list[Document | None] = []
        for begin in range(0, len(wanted), LOOKUPS):
            rows += self._documents.fetch(wanted[begin : begin + LOOKUPS])
        return rows

    def _write(self, found: Known, changes: Mapping[str, Json | None]) -> int:
        """Store or delete (None) rows by id, all or none; of how many that was so."""
        before = self._fetch(found, changes)
        if not changes:
            return 0
        mark = uuid.uuid4().hex
        writes = [
            Write("delete", digest(each)) if source is None else Write("index", digest(each), source | {"write": mark})
            for each, source in changes.items()
        ]
        self._runtime.fault("before commit")
        try:
            outcomes = self._documents.write(found.alias, writes, refresh=True)
            refused = [each.reason for each in outcomes if not each.done and each.reason]
            if refused:
                raise RequestFailed(f"{len(refused)} vectors were refused, the first because of {refused[0]}")
        except BaseException:
            self._put_back(found, changes, before, mark)
            raise
        self._runtime.fault("after commit")
        return sum(each.done for each in outcomes)

    def _put_back(
        self, found: Known, changes: Mapping[str, Json | None], before: Sequence[Document | None], mark: str
    ) -> None:
        """Undo what was written of changes, except where others have written since."""
        writes: list[Write] = []
        for source, old, now in zip(changes.values(), before, self._fetch(found, changes), strict=True):
            whole = None if old is None else _source(_row(old), found.index)
            if source is None:
                if old is not None and now is None:
                    writes.append(Write("create", old.id, whole))
            elif now is not None and now.source["write"] == mark:
                kind = "delete" if whole is None else "index"
                writes.append(Write(kind, now.id, whole, now.version))
        outcomes = self._documents.write(found.alias, writes, refresh=True) if writes else []
        left = [each for each in outcomes if not (each.done or each.conflict)]
        if left:
            raise RequestFailed(f"{len(left)} vectors could not be put back: {left[0].reason}")


def _target(found: Known) -> Target:
    index = found.index
    return Target(
        index=found.alias,
        dimension=index.dimension,
        metric=index.metric,
        type=index.config.type or "flat",
        near=NEAR,
        norm=NORM,
        source=["id", "metadata", RAW],
    )


def _row(document: Document) -> VectorChange:
    source = document.source
    return VectorChange(source["id"], vector_of(source[RAW]), msgspec.json.decode(source["metadata"]))


def _changed(document: Document, change: VectorChange) -> VectorChange:
    """The row with what the change gives."""
    old = _row(document)
    return VectorChange(
        id=old.id,
        vector=old.vector if change.vector is None else change.vector,
        metadata=old.metadata if change.metadata is None else change.metadata,
    )


def _source(row: VectorChange, index: NewIndex) -> Json:
    """The document of a row that has a vector."""
    assert row.vector is not None
    metadata = row.metadata or {}
    return {
        "id": row.id,
        "metadata": json_text(metadata),
        "tokens": tokens(metadata),
        "write": "",
    } | stored(row.vector, index.metric, NEAR)


def _not_found(name: str) -> IndexNotFound:
    return IndexNotFound(f"there is no index {name!r}", clause="VEC-1")
