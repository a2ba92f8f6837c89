"""LangGraph's stores as vector indices: `langgraph:inmemory`, `langgraph:postgres`, `langgraph:module:factory`.

A vector's metadata are the fields of the value, beside the text that is embedded, as LangGraph filters by fields.
A factory takes the store's index configuration ({dims, embed, fields}) and a URL, and returns a BaseStore.
"""

# The packages are in no environment in which types are checked.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from importlib.metadata import version
from typing import Any

import msgspec
from langgraph.store.base import BaseStore

from ...spec.index_requests import NewIndex
from .texts import IN_MEMORY, Opener, Stored, TextBackend, from_either, vector_of

TEXT = "memassay_text"
"""The field that is embedded."""

Factory = Callable[[dict[str, Any], str], BaseStore]


class Values:
    """A namespace of a BaseStore as texts.Collection."""

    def __init__(self, store: BaseStore, namespace: tuple[str, ...]) -> None:
        self._store = store
        self._namespace = namespace

    def put(self, items: Sequence[Stored]) -> Sequence[str]:
        """See texts.Collection; the interface puts one at a time, and returns nothing."""
        for item in items:
            self._store.put(self._namespace, item.id, {**item.metadata, TEXT: item.text})
        return [item.id for item in items]

    def get(self, ids: Sequence[str]) -> Iterable[Stored]:
        """See texts.Collection."""
        found = ((id, self._store.get(self._namespace, id)) for id in ids)
        return [_stored(id, item.value) for id, item in found if item is not None]

    def delete(self, ids: Sequence[str]) -> Any:
        """See texts.Collection; the interface deletes one at a time, and returns nothing."""
        for id in ids:
            self._store.delete(self._namespace, id)

    def query(self, text: str, top_k: int, filter: Mapping[str, Any] | None) -> Iterable[tuple[Stored, float]]:
        """See texts.Collection."""
        narrowed = None if filter is None else dict(filter)
        found = self._store.search(self._namespace, query=text, filter=narrowed, limit=top_k)
        return [(_stored(item.key, item.value), 0.0 if item.score is None else item.score) for item in found]

    def drop(self) -> None:
        """See texts.Collection."""
        while found := self._store.search(self._namespace, limit=1000):
            for item in found:
                self._store.delete(self._namespace, item.key)


def _stored(id: str, value: Mapping[str, Any]) -> Stored:
    return Stored(id, value[TEXT], {key: item for key, item in value.items() if key != TEXT})


def _embed(texts: Sequence[str]) -> list[list[float]]:
    return [vector_of(text) for text in texts]


def _opener(name: str, packages: Sequence[str], factory: Factory, **more: Any) -> Opener:
    def open_collection(collection: str, index: NewIndex, url: str) -> Values:
        config = {"dims": index.dimension, "embed": _embed, "fields": [TEXT]}
        return Values(factory(config, url), (collection,))

    told = ", ".join(f"{package} {version(package)}" for package in packages)
    capabilities = msgspec.structs.replace(IN_MEMORY, metrics=("cosine",))
    return Opener(name=name, version=told, open=open_collection, capabilities=capabilities, **more)


def inmemory() -> Opener:
    """InMemoryStore: cosine similarity over all."""
    from langgraph.store.memory import InMemoryStore

    def make(config: dict[str, Any], url: str) -> BaseStore:
        return InMemoryStore(index=config)  # pyright: ignore

    return _opener("inmemory", ["langgraph"], make)


def postgres() -> Opener:
    """PostgresStore. It has one table of vectors, of one dimension: each dimension gets a schema of its own."""
    import psycopg
    from langgraph.store.postgres import PostgresStore
    from langgraph.store.postgres.base import ANNIndexConfig

    from ..provision.postgres import WITHOUT_CONTAINERS

    stack = ExitStack()
    opened: dict[tuple[str, int], BaseStore] = {}

    def make(config: dict[str, Any], url: str) -> BaseStore:
        key = url, config["dims"]
        if key not in opened:
            flat: ANNIndexConfig = {"kind": "flat"}
            schema = f"memassay_langgraph_{config['dims']}"
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")  # pyright: ignore
            found: Any = PostgresStore.from_conn_string(
                f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{schema},public",
                index={**config, "ann_index_config": flat},  # pyright: ignore
            )
            store = stack.enter_context(found)
            store.setup()
            opened[key] = store
        return opened[key]

    return _opener(
        "postgres",
        ["langgraph", "langgraph-checkpoint-postgres"],
        make,
        provisioners=WITHOUT_CONTAINERS,
    )


OWN = {"inmemory": inmemory, "postgres": postgres}


def from_factory(name: str, rest: str) -> TextBackend:
    """The backend `langgraph:NAME` or `langgraph:module:factory`. Raises UnknownBackend."""
    return from_either(name, rest, OWN, lambda factory: _opener(rest, ["langgraph"], factory))
