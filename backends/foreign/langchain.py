"""LangChain's VectorStore as vector indices: `langchain:module:factory`, where factory(Settings) returns the store.

`langchain:NAME` is one of langchain_stores, which `pip install memassay[foreign]` brings.
"""

# The packages are in no environment in which types are checked.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from ...spec.errors import Unsupported
from ...spec.index_requests import NewIndex
from .texts import Opener, Stored, TextBackend, from_either, vector_of


class JsonEmbeddings(Embeddings):
    """Reads the vector that a text is the JSON of."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """See Embeddings."""
        return [vector_of(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """See Embeddings."""
        return vector_of(text)


@dataclass(frozen=True)
class Settings:
    """What a factory makes a VectorStore of. `name` is an identifier that no other index has."""

    embeddings: Embeddings
    name: str
    dimension: int
    metric: str
    url: str


def as_it_is(metric: str) -> Callable[[float], float]:
    """The number is a similarity."""
    return lambda number: number


def from_distance(metric: str) -> Callable[[float], float]:
    """The number is documented as a distance: 1 − cosine, the Euclidean one, or the negated inner product."""
    if metric == "euclidean":
        return lambda number: 1 / (1 + number)
    return (lambda number: 1 - number) if metric == "cosine" else (lambda number: -number)


def nothing(metric: str) -> Mapping[str, Any]:
    """No further arguments."""
    return {}


def dropped(store: Any) -> None:
    """Remove the collection, where the class has a method for that; what lives in the object goes with it."""
    if hasattr(store, "delete_collection"):
        store.delete_collection()


@dataclass(frozen=True)
class Kind:
    """How a class of stores is made, and what the interface of VectorStore leaves to each.

    score: by metric, turns the store's number into one that is larger when closer.
    filters: it takes a filter of fields and values, not a function or a query of its engine.
    adding: by metric, further arguments of add_documents. searching: further arguments of the search.
    read: reads by id, where the class has no get_by_ids, with the store's own client.
    drop: removes all there is.
    """

    make: Callable[[Settings], VectorStore]
    score: Callable[[str], Callable[[float], float]] = as_it_is
    filters: bool = True
    adding: Callable[[str], Mapping[str, Any]] = nothing
    searching: Mapping[str, Any] = field(default_factory=dict)
    read: Callable[[Any, Sequence[str]], Iterable[Document]] = lambda store, ids: store.get_by_ids(ids)
    drop: Callable[[Any], None] = dropped


class Documents:
    """A VectorStore as texts.Collection."""

    def __init__(self, kind: Kind, settings: Settings) -> None:
        self._kind = kind
        self._store = kind.make(settings)
        self._score = kind.score(settings.metric)
        self._adding = kind.adding(settings.metric)

    def put(self, items: Sequence[Stored]) -> Sequence[str]:
        """See texts.Collection."""
        documents = [Document(id=item.id, page_content=item.text, metadata=item.metadata) for item in items]
        return self._store.add_documents(documents, ids=[item.id for item in items], **self._adding)

    def get(self, ids: Sequence[str]) -> Iterable[Stored]:
        """See texts.Collection."""
        return [_stored(document) for document in self._kind.read(self._store, ids)]

    def delete(self, ids: Sequence[str]) -> Any:
        """See texts.Collection."""
        return self._store.delete(list(ids))

    def query(self, text: str, top_k: int, filter: Mapping[str, Any] | None) -> Iterable[tuple[Stored, float]]:
        """See texts.Collection."""
        if filter is not None and not self._kind.filters:
            raise Unsupported("a filter of fields and values")
        narrowed: dict[str, Any] = {} if filter is None else {"filter": filter}
        found = self._store.similarity_search_with_score(text, k=top_k, **narrowed, **self._kind.searching)
        return [(_stored(document), self._score(float(number))) for document, number in found]

    def drop(self) -> None:
        """See texts.Collection."""
        self._kind.drop(self._store)


def _stored(document: Document) -> Stored:
    return Stored(document.id or "", document.page_content, document.metadata)


def opener(name: str, packages: Sequence[str], kind: Kind, **more: Any) -> Opener:
    """How the collections of a class of stores are opened; more: as in Opener."""

    def open_collection(collection: str, index: NewIndex, url: str) -> Documents:
        return Documents(kind, Settings(JsonEmbeddings(), collection, index.dimension, index.metric, url))

    told = ", ".join(f"{package} {version(package)}" for package in packages)
    return Opener(name=name, version=told, open=open_collection, **more)


def from_factory(name: str, rest: str) -> TextBackend:
    """The backend `langchain:NAME` or `langchain:module:factory`. Raises UnknownBackend."""
    from .langchain_stores import OWN

    return from_either(name, rest, OWN, lambda factory: opener(rest, ["langchain-core"], Kind(factory)))
