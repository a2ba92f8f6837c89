"""The operations on vector indices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, cast

import msgspec
from msgspec import UNSET, UnsetType

from .forms import FillVectors, Form, FormError, fill_vectors, resolve
from .operation import Operation, Role, Target, struct
from .types import IndexConfig, NewVector


class _IndexOperation(Operation, frozen=True, kw_only=True):
    """A call on the vector index `index` of the namespace."""

    target: ClassVar[Target] = "index"
    index: Form

    def given(self) -> dict[str, Form]:
        """See Operation; the protocol calls the index `name`."""
        fields = super().given()
        return {"name": fields.pop("index"), **fields}

    def vector_ids(self) -> Iterator[Any]:
        """Ids of the vectors this operation may store, valid or not."""
        yield from ()


class CreateIndex(_IndexOperation, frozen=True, kw_only=True, tag="create_index"):
    """Make an index."""

    role: ClassVar[Role] = "write"
    dimension: Form
    metric: Form | UnsetType = UNSET
    config: Form | UnsetType = UNSET

    def argument(self, name: str, form: Form) -> Any:
        """See Operation."""
        return struct(IndexConfig, form) if name == "config" else resolve(form)


class DescribeIndex(_IndexOperation, frozen=True, kw_only=True, tag="describe_index"):
    """An index as its engine knows it."""


class ListIndexes(Operation, frozen=True, kw_only=True, tag="list_indexes"):
    """The names of the indices."""

    target: ClassVar[Target] = "index"


class DropIndex(_IndexOperation, frozen=True, kw_only=True, tag="drop_index"):
    """Remove an index."""

    role: ClassVar[Role] = "write"


class UpsertVectors(_IndexOperation, frozen=True, kw_only=True, tag="upsert_vectors"):
    """A batch of vectors; `{"$fill": …}` stands for many."""

    role: ClassVar[Role] = "write"
    vectors: Form

    def argument(self, name: str, form: Form) -> Any:
        """See Operation."""
        if name != "vectors" or not isinstance(form, list):
            return resolve(form)
        batch: list[Any] = []
        for item in cast("list[Form]", form):
            if isinstance(item, dict) and "$fill" in item:
                try:
                    batch.extend(fill_vectors(msgspec.convert(item["$fill"], FillVectors)))
                except msgspec.ValidationError as error:
                    raise FormError(f"cannot read $fill: {error}") from error
            else:
                batch.append(struct(NewVector, item))
        return batch

    def vector_ids(self) -> Iterator[Any]:
        """See _IndexOperation."""
        vectors: Form = self.vectors
        if isinstance(vectors, list):
            for item in self.argument("vectors", vectors):
                yield getattr(item, "id", None)


class GetVectors(_IndexOperation, frozen=True, kw_only=True, tag="get_vectors"):
    """Rows by id."""

    ids: Form


class UpdateVector(_IndexOperation, frozen=True, kw_only=True, tag="update_vector"):
    """A change of one row."""

    role: ClassVar[Role] = "write"
    id: Form
    vector: Form | UnsetType = UNSET
    metadata: Form | UnsetType = UNSET

    def threads(self) -> Iterator[Any]:
        """See Operation."""
        yield from ()


class DeleteVectors(_IndexOperation, frozen=True, kw_only=True, tag="delete_vectors"):
    """Rows by ids or by filter."""

    role: ClassVar[Role] = "write"
    ids: Form | UnsetType = UNSET
    filter: Form | UnsetType = UNSET


class QueryVectors(_IndexOperation, frozen=True, kw_only=True, tag="query_vectors"):
    """The closest rows."""

    vector: Form
    top_k: Form | UnsetType = UNSET
    filter: Form | UnsetType = UNSET
    min_score: Form | UnsetType = UNSET
    exact: Form | UnsetType = UNSET


IndexOperation = (
    CreateIndex | DescribeIndex | DropIndex | UpsertVectors | GetVectors | UpdateVector | DeleteVectors | QueryVectors
)
"""The operations that name an index."""
