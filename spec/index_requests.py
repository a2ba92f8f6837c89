"""Calls on vector indices, checked and completed before any I/O: what an adapter's methods work from."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from . import operators
from .capabilities import Capabilities
from .errors import InvalidFilter, InvalidRequest, Unsupported
from .requests import index_config, items, parse_ids
from .types import IndexConfig, MemoryConfig, Metadata, NewVector
from .values import identifier, integer, metadata, show
from .vectors import INDEX_TYPES, MAX_TOP_K, METRICS, Metric, Vector, threshold, vector

DEFAULT_M, DEFAULT_EF_CONSTRUCTION, DEFAULT_LISTS = 16, 64, 100
SEMANTIC_INDEX = "messages"
"""The name under which a memory describes its own embeddings."""

RANGES = {"m": (2, 100), "ef_construction": (4, 1000), "lists": (1, 32_768)}
APPLIES: dict[str, tuple[str, ...]] = {"flat": (), "hnsw": ("m", "ef_construction"), "ivfflat": ("lists",)}


class NewIndex(msgspec.Struct, frozen=True):
    """A checked create_index; `config` has a type and every parameter of that type."""

    name: str
    dimension: int
    metric: Metric
    config: IndexConfig


class VectorChange(msgspec.Struct, frozen=True):
    """A checked row to upsert, or a change; None leaves a field."""

    id: str
    vector: Vector | None
    metadata: Metadata | None


class VectorQuery(msgspec.Struct, frozen=True):
    """A checked query."""

    vector: Vector
    top_k: int
    filter: operators.Node
    min_score: float | None
    exact: bool


def parse_create_index(
    name: object, dimension: object, metric: object, config: object, capabilities: Capabilities
) -> NewIndex:
    """create_index (VEC-1, SEM-6)."""
    checked = identifier(name, "name")
    components = integer(dimension, "dimension", least=1, clause="VEC-1")
    if metric not in METRICS:
        raise InvalidRequest(f"metric is {show(metric)}", hint="use " + ", ".join(METRICS), clause="VEC-1")
    complete = parse_config(config, components, capabilities)
    if isinstance(config, IndexConfig) and config.metric not in (None, metric):
        raise InvalidRequest(f"config.metric is {show(config.metric)}", hint="leave it out", clause="SEM-6")
    if metric not in capabilities.metrics:
        raise Unsupported(f"the metric {metric}", hint="use " + ", ".join(capabilities.metrics), clause="CAP-1")
    return NewIndex(checked, components, metric, complete)


def parse_config(config: object, dimension: int, capabilities: Capabilities) -> IndexConfig:
    """A configuration completed with its type's defaults (SEM-6); Unsupported for what the backend lacks."""
    given = IndexConfig() if config is None else config
    if not isinstance(given, IndexConfig):
        raise InvalidRequest(f"config is {show(config)}", hint="pass an IndexConfig", clause="SEM-6")
    kind = given.type
    if kind is not None and kind not in INDEX_TYPES:
        raise InvalidRequest(f"config.type is {show(kind)}", hint="use " + ", ".join(INDEX_TYPES), clause="SEM-6")
    if kind is None:
        kind = capabilities.index_types[0] if dimension <= capabilities.max_indexed_dimension else "flat"
    values = {"m": DEFAULT_M, "ef_construction": DEFAULT_EF_CONSTRUCTION, "lists": DEFAULT_LISTS}
    for parameter, (least, most) in RANGES.items():
        value: Any = getattr(given, parameter)
        if value is None:
            continue
        if parameter not in APPLIES[kind]:
            raise InvalidRequest(f"{parameter} means nothing to {kind}", hint="leave it out", clause="SEM-6")
        if integer(value, parameter, least=least, clause="SEM-6") > most:
            raise InvalidRequest(f"{parameter} is {value}", hint=f"use at most {most}", clause="SEM-6")
        values[parameter] = value
    if kind == "hnsw" and values["ef_construction"] < 2 * values["m"]:
        raise InvalidRequest(
            f"ef_construction is {values['ef_construction']}", hint="use at least twice m", clause="SEM-6"
        )
    if kind not in capabilities.index_types:
        raise Unsupported(f"the index type {kind}", hint="use " + ", ".join(capabilities.index_types), clause="CAP-1")
    cap = capabilities.max_dimension if kind == "flat" else capabilities.max_indexed_dimension
    if dimension > cap:
        raise Unsupported(f"{dimension} dimensions in an index of type {kind}", hint=f"at most {cap}", clause="VEC-1a")
    parameters: dict[str, Any] = {parameter: values[parameter] for parameter in APPLIES[kind]}
    return IndexConfig(type=kind, **parameters)


def parse_semantic_index(options: MemoryConfig, dimension: int, capabilities: Capabilities) -> NewIndex:
    """The index of a memory's own embeddings (SEM-6)."""
    wanted = index_config(options)
    return parse_create_index(SEMANTIC_INDEX, dimension, wanted.metric, wanted, capabilities)


def parse_upsert(vectors: object, dimension: int, metric: Metric) -> tuple[VectorChange, ...]:
    """upsert_vectors: the last of each id (VEC-2)."""
    rows = [
        VectorChange(
            id=identifier(row.id, "id"),
            vector=vector(row.vector, dimension, metric),
            metadata=metadata(row.metadata),
        )
        for row in items(vectors, NewVector, "vectors", "VEC-2")
    ]
    return tuple({row.id: row for row in rows}.values())


def parse_update_vector(id: object, components: object, meta: object, dimension: int, metric: Metric) -> VectorChange:
    """update_vector (VEC-2)."""
    return VectorChange(
        id=identifier(id, "id"),
        vector=None if components is None else vector(components, dimension, metric),
        metadata=None if meta is None else metadata(meta),
    )


def parse_delete_vectors(ids: object, filter: object) -> tuple[str, ...] | operators.Node:
    """delete_vectors: the ids, or the filter (VEC-2b)."""
    if (ids is None) == (filter is None):
        raise InvalidRequest("pass ids or a filter, and not both", clause="VEC-2b")
    if ids is not None:
        return parse_ids(ids, clause="VEC-2b")
    node = operators.parse(filter)
    if operators.constant(node) is True:
        raise InvalidFilter("the filter holds for every row", hint="drop the index instead", clause="VEC-2b")
    return node


def parse_query(
    components: object,
    dimension: int,
    metric: Metric,
    *,
    top_k: object,
    filter: object,
    min_score: object,
    exact: object,
) -> VectorQuery:
    """query_vectors (VEC-4)."""
    if integer(top_k, "top_k", least=1, clause="VEC-4") > MAX_TOP_K:
        raise InvalidRequest(f"top_k is {top_k}", hint=f"use at most {MAX_TOP_K}", clause="VEC-4")
    if type(exact) is not bool:
        raise InvalidRequest(f"exact is {show(exact)}", hint="pass a bool", clause="VEC-4")
    return VectorQuery(
        vector=vector(components, dimension, metric, "the query vector"),
        top_k=cast(int, top_k),
        filter=operators.parse(filter),
        min_score=threshold(min_score, "min_score"),
        exact=exact,
    )
