"""The embeddings of a memory's messages on a document engine: an object in the message's document (SEM)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ..spec.embedding import embed, text_of
from ..spec.errors import ConfigurationError
from ..spec.index_requests import SEMANTIC_INDEX, NewIndex
from ..spec.operators import Node
from ..spec.protocols import Embedder
from ..spec.types import Content, IndexDescription, Metadata
from ..spec.vectors import Vector
from .document_filters import TOKENS, Clause, all_of, holds, tokens
from .document_layout import EMBEDDING
from .document_vectors import NORM, RAW, Nearest, Scored, Search, Target, VectorLanguage, mapping, stored
from .documents import Documents, Json

SNAPSHOT = "tokens"
"""What a semantic filter finds of the snapshot (SEM-5)."""

NEAR = "near_"
"""How the names of the fields with the engine's copies begin. Each dimension, metric and configuration has its own, as
a field of a mapping never changes."""


class Embeddings:
    """The embeddings in an index of messages, each in the field `embedding` of its message."""

    def __init__(self, documents: Documents, messages: str, index: NewIndex, language: VectorLanguage) -> None:
        """Adds what the mapping of the index of messages lacks.

        ConfigurationError when there are embeddings of another dimension or metric. When there are some of this, the
        index stays configured as it is.
        """
        self._documents = documents
        self._messages = messages
        self._language = language
        self.index = self._configured(index)
        self._near = _field(self.index)
        documents.extend(messages, {EMBEDDING: {"properties": self._properties()}})
        target = Target(
            index=messages,
            dimension=self.index.dimension,
            metric=self.index.metric,
            type=self.index.config.type or "flat",
            near=f"{EMBEDDING}.{self._near}",
            norm=f"{EMBEDDING}.{NORM}",
            source={"excludes": [f"{EMBEDDING}.{name}" for name in (f"{NEAR}*", NORM, SNAPSHOT)]},
        )
        self._target = target
        self._nearest = Nearest(
            documents,
            language,
            target,
            raw=lambda source: source[EMBEDDING][RAW],
            ties=lambda source: (source["created_at"], source["thread_id"], source["position"]),
        )

    def _properties(self) -> Json:
        return mapping(self._language, self.index, self._near) | {SNAPSHOT: TOKENS}

    def _configured(self, asked: NewIndex) -> NewIndex:
        """The index as it is asked for, or as it is when there are embeddings."""
        known = self._documents.properties(self._messages)[EMBEDDING].get("properties", {})
        others = [name for name in known if name.startswith(NEAR) and name != _field(asked)]
        if others:
            self._documents.refresh(self._messages)
        for name in others:
            if self._count(name):
                dimension, metric, config = self._language.described(known[name])
                if (dimension, metric) != (asked.dimension, asked.metric):
                    raise ConfigurationError(
                        f"the embeddings here have {dimension} dimensions and the metric {metric}",
                        hint="open it with the embedder and the metric that it was made with",
                        clause="SEM-6",
                    )
                return msgspec.structs.replace(asked, config=config)
        return asked

    def _count(self, near: str) -> int:
        return self._documents.count(self._messages, {"exists": {"field": f"{EMBEDDING}.{near}"}})

    def describe(self) -> IndexDescription:
        """As the engine has it; named SEMANTIC_INDEX."""
        known = self._documents.properties(self._messages)[EMBEDDING]["properties"]
        dimension, metric, config = self._language.described(known[self._near])
        self._documents.refresh(self._messages)
        return IndexDescription(SEMANTIC_INDEX, dimension, metric, config, self._count(self._near))

    def embed(self, embedder: Embedder, contents: Mapping[str, Content]) -> dict[str, Vector]:
        """The vectors of the messages that have a text, by id."""
        texts = {each: words for each, content in contents.items() if (words := text_of(content)) is not None}
        return dict(zip(texts, embed(embedder, [*texts.values()], "document", self.index.metric), strict=True))

    def source(self, vector: Vector, snapshot: Metadata) -> Json:
        """The object in the field `embedding` of a message's document."""
        return stored(vector, self.index.metric, self._near) | {SNAPSHOT: tokens(snapshot)}

    def find(self, query: Vector, top_k: int, clauses: Sequence[Clause], filter: Node, *, exact: bool) -> list[Scored]:
        """The top_k nearest of the messages for which all clauses hold, and the filter on the snapshot.

        With their scores, best first, equal vectors in the order of ORD-1; rows with their sources, but the embedding.
        """
        embedded: Clause = {"exists": {"field": self._target.near}}
        where = all_of([*clauses, embedded, holds(filter, f"{EMBEDDING}.{SNAPSHOT}")])
        found = self._nearest.find(Search(query, top_k, where), exact=exact)
        for _, row in found:
            del row.source[EMBEDDING]
        return found


def copied(embedding: Json, snapshot: Metadata) -> Json:
    """A copy of a message's embedding for its clone, whose snapshot is this (CLN-3)."""
    return embedding | {SNAPSHOT: tokens(snapshot)}


def _field(index: NewIndex) -> str:
    """The name of the field for an index of this dimension, metric and configuration."""
    config = index.config
    parameters = [index.dimension, index.metric, config.type, config.m, config.ef_construction]
    return NEAR + "_".join(str(each) for each in parameters if each is not None)
