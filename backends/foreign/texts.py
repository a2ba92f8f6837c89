"""Vector indices over stores that embed texts themselves: a text is the JSON of its vector, and the embedder reads it.

Such stores know neither a catalogue of indices nor how large they are: `create_index`, `describe_index` and the like
are this driver's own, and what VEC-1 says of them is said of the driver. What is stored and found is the store's.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import numpy as np

from ...spec.capabilities import Capabilities
from ...spec.errors import AlreadyExists, IndexNotFound, InvalidFilter, InvalidRequest, InvalidVector, Unsupported
from ...spec.index_requests import NewIndex, parse_create_index
from ...spec.protocols import Memory, Runtime, VectorIndex
from ...spec.types import IndexConfig, IndexDescription, MemoryConfig, NewVector, VectorHit, VectorRow
from ...spec.values import identifier
from ..provision import Provisioners
from ..registry import UnknownBackend

IN_MEMORY = Capabilities(storage=False, durable=False, vectors=True, index_types=("flat",))
"""Of a store that keeps vectors in this process and scans them."""


class Item(Protocol):
    """What is stored under an id: the text that was embedded, and the metadata."""

    @property
    def text(self) -> str:
        """The text."""
        ...

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata."""
        ...


@dataclass(frozen=True)
class Stored:
    """An item by its id."""

    id: str
    text: str
    metadata: dict[str, Any]


class Collection(Protocol):
    """One index of somebody else's store."""

    def put(self, items: Sequence[Stored]) -> Sequence[str]:
        """Store them; the ids, as the store tells them."""
        ...

    def get(self, ids: Sequence[str]) -> Iterable[Stored]:
        """Those that are there."""
        ...

    def delete(self, ids: Sequence[str]) -> Any:
        """Delete them; whatever the store returns."""
        ...

    def query(self, text: str, top_k: int, filter: Mapping[str, Any] | None) -> Iterable[tuple[Stored, float]]:
        """The closest, with the store's own number."""
        ...

    def drop(self) -> None:
        """Remove all there is."""
        ...


@dataclass(frozen=True, kw_only=True)
class Opener:
    """How a store's collections are opened: by a name that is an identifier, for a checked index, at a URL."""

    name: str
    version: str
    open: Callable[[str, NewIndex, str], Collection]
    capabilities: Capabilities = IN_MEMORY
    provisioners: Provisioners = field(default_factory=dict[str, Any])


def vector_of(text: str) -> list[float]:
    """The vector that a text stands for; its numbers are floats, as an embedder's are."""
    return cast("list[float]", json.loads(text, parse_int=float))


@dataclass
class _Index:
    made: NewIndex
    collection: Collection
    ids: dict[str, None] = field(default_factory=dict[str, None])
    """Every id that was ever stored."""


class TextBackend:
    """A backend of vector indices; what a namespace holds is known to this object alone."""

    def __init__(self, opener: Opener, name: str) -> None:
        self.name = name
        self.provisioners = opener.provisioners
        self._opener = opener
        self._namespaces: dict[str, dict[str, _Index]] = {}
        self._made = 0

    def capabilities(self, url: str) -> Capabilities:
        """See protocols.Backend."""
        return self._opener.capabilities

    def version(self, url: str) -> str:
        """See protocols.Backend."""
        return self._opener.version

    def open_memory(self, url: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> Memory:
        """See protocols.Backend."""
        raise Unsupported("threads and messages")

    def open_index(self, url: str, namespace: str, runtime: Runtime) -> VectorIndex:
        """See protocols.Backend."""

        def make(index: NewIndex) -> Collection:
            self._made += 1
            return self._opener.open(f"{namespace}_{self._made}", index, url)

        return TextIndex(self._namespaces.setdefault(namespace, {}), make, self._opener.capabilities)

    def drop_namespace(self, url: str, namespace: str) -> None:
        """See protocols.Backend."""
        for index in self._namespaces.pop(namespace, {}).values():
            index.collection.drop()


class TextIndex:
    """Implements protocols.VectorIndex."""

    def __init__(
        self, kept: dict[str, _Index], make: Callable[[NewIndex], Collection], capabilities: Capabilities
    ) -> None:
        self._kept = kept
        self._make = make
        self._capabilities = capabilities

    def create_index(
        self, name: str, *, dimension: int, metric: str = "cosine", config: IndexConfig | None = None
    ) -> None:
        """See protocols.VectorIndex."""
        new = parse_create_index(name, dimension, metric, config, self._capabilities)
        old = self._kept.get(new.name)
        if old is None:
            self._kept[new.name] = _Index(new, self._make(new))
        elif (old.made.dimension, old.made.metric) != (new.dimension, new.metric):
            raise AlreadyExists(f"index {name!r} exists")

    def describe_index(self, name: str) -> IndexDescription:
        """See protocols.VectorIndex."""
        index = self._find(name)
        count = len(_named(lambda: list(index.collection.get([*index.ids])))) if index.ids else 0
        return IndexDescription(name, index.made.dimension, index.made.metric, index.made.config, count)

    def list_indexes(self) -> tuple[str, ...]:
        """See protocols.VectorIndex."""
        return tuple(sorted(self._kept))

    def drop_index(self, name: str) -> None:
        """See protocols.VectorIndex."""
        self._find(name).collection.drop()
        del self._kept[name]

    def upsert_vectors(self, name: str, vectors: Sequence[NewVector]) -> int:
        """See protocols.VectorIndex."""
        index = self._find(name)
        items = [Stored(row.id, _text(row.vector), dict(row.metadata or {})) for row in vectors]
        ids = _named(lambda: index.collection.put(items))
        index.ids.update(dict.fromkeys(item.id for item in items))
        return len(ids)

    def get_vectors(self, name: str, ids: Sequence[str]) -> tuple[VectorRow, ...]:
        """See protocols.VectorIndex."""
        index = self._find(name)
        # Some refuse to look for nothing; every observation would end there.
        found = {item.id: item for item in _named(lambda: list(index.collection.get(ids)))} if ids else {}
        return tuple(
            VectorRow(id, tuple(np.array(vector_of(found[id].text), np.float32).tolist()), found[id].metadata)
            for id in dict.fromkeys(ids)
            if id in found
        )

    def update_vector(
        self,
        name: str,
        id: str,
        *,
        vector: Sequence[float] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> bool:
        """See protocols.VectorIndex."""
        self._find(name)
        raise Unsupported("changing a vector or its metadata alone")

    def delete_vectors(
        self, name: str, *, ids: Sequence[str] | None = None, filter: Mapping[str, Any] | None = None
    ) -> int:
        """See protocols.VectorIndex."""
        index = self._find(name)
        if (ids is None) == (filter is None):
            raise InvalidRequest("pass ids or a filter, and not both")
        if ids is None:
            raise Unsupported("deleting by a filter")
        return _named(lambda: index.collection.delete(ids))

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
        index = self._find(name)
        if min_score is not None:
            raise Unsupported("a least score")
        found = _named(lambda: list(index.collection.query(_text(vector), top_k, filter)))
        return tuple(VectorHit(item.id, score, item.metadata) for item, score in found)

    def close(self) -> None:
        """See protocols.VectorIndex."""

    def _find(self, name: str) -> _Index:
        if identifier(name, "name") not in self._kept:
            raise IndexNotFound(f"there is no index {name!r}")
        return self._kept[name]


def from_either(
    name: str, rest: str, own: Mapping[str, Callable[[], Opener]], opener: Callable[[Any], Opener]
) -> TextBackend:
    """A backend `KIND:REST`, where REST is one of our own names, or module:factory, which `opener` opens with.

    Raises UnknownBackend.
    """
    if rest in own:
        return TextBackend(own[rest](), name)
    kind = name.partition(":")[0]
    module, colon, attribute = rest.partition(":")
    if not colon:
        raise UnknownBackend(
            f"there is no {name}", hint=f"use {kind}:module:factory, or one of {', '.join(sorted(own))}"
        )
    try:
        factory = getattr(importlib.import_module(module), attribute)
    except (ModuleNotFoundError, AttributeError) as error:
        raise UnknownBackend(f"{rest!r} cannot be found: {error}", hint="check the module's name and path") from None
    return TextBackend(opener(factory), name)


def _text(vector: object) -> str:
    return json.dumps(vector)


def _named(call: Callable[[], Any]) -> Any:
    """The stores' errors are Python's: what they say in words the specification says by a type."""
    try:
        return call()
    except NotImplementedError as error:
        raise Unsupported(str(error) or "not implemented") from error
    except ValueError as error:
        said = str(error).lower()
        if "filter" in said or "operator" in said:
            raise InvalidFilter(str(error)) from error
        if "dimension" in said or "vector" in said:
            raise InvalidVector(str(error)) from error
        raise InvalidRequest(str(error)) from error
