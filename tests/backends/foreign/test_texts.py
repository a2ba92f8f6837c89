"""Stores that embed texts themselves: what the driver passes on, and what it calls what they raise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from memassay.backends.foreign.texts import Opener, Stored, TextBackend, vector_of
from memassay.spec.errors import AlreadyExists, IndexNotFound, InvalidFilter, InvalidVector, Unsupported
from memassay.spec.protocols import Runtime, VectorIndex
from memassay.spec.types import NewVector, VectorHit, VectorRow


class Shelf:
    """A collection in a dict that finds everything, with the same number; `raising` is what every call raises."""

    def __init__(self, raising: Exception | None = None) -> None:
        self.items: dict[str, Stored] = {}
        self.raising = raising
        self.asked: list[tuple[int, Mapping[str, Any] | None]] = []

    def _raise(self) -> None:
        if self.raising is not None:
            raise self.raising

    def put(self, items: Sequence[Stored]) -> Sequence[str]:
        self._raise()
        self.items |= {item.id: item for item in items}
        return [item.id for item in items]

    def get(self, ids: Sequence[str]) -> Iterable[Stored]:
        self._raise()
        return [self.items[id] for id in ids if id in self.items]

    def delete(self, ids: Sequence[str]) -> Any:
        return None

    def query(self, text: str, top_k: int, filter: Mapping[str, Any] | None) -> Iterable[tuple[Stored, float]]:
        self._raise()
        self.asked.append((top_k, filter))
        return [(item, 0.25) for item in self.items.values()]

    def drop(self) -> None:
        self.items.clear()


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def index(shelf: Shelf) -> VectorIndex:
    backend = TextBackend(Opener(name="shelf", version="1", open=lambda name, index, url: shelf), "text:shelf")
    opened = backend.open_index("", "n", Runtime())
    opened.create_index("i", dimension=2)
    return opened


def test_the_text_is_the_json_of_the_vector(index: VectorIndex, shelf: Shelf) -> None:
    index.upsert_vectors("i", [NewVector("a", [1, 0.1], {"k": 1})])
    assert vector_of(shelf.items["a"].text) == [1.0, 0.1]


def test_components_are_read_back_as_float32(index: VectorIndex) -> None:
    index.upsert_vectors("i", [NewVector("a", [1, 0.1], {"k": 1})])
    assert index.get_vectors("i", ["a", "b"]) == (VectorRow("a", (1.0, 0.10000000149011612), {"k": 1}),)


def test_the_stores_number_is_the_score(index: VectorIndex) -> None:
    index.upsert_vectors("i", [NewVector("a", [1, 0], {})])
    assert index.query_vectors("i", [0, 1]) == (VectorHit("a", 0.25, {}),)


def test_limit_and_filter_are_passed_on_as_they_are(index: VectorIndex, shelf: Shelf) -> None:
    index.query_vectors("i", [0, 1], top_k=3, filter={"k": {"$gt": 1}})
    assert shelf.asked == [(3, {"k": {"$gt": 1}})]


def test_what_the_store_returns_on_deletion_is_returned(index: VectorIndex) -> None:
    assert index.delete_vectors("i", ids=["a"]) is None


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (NotImplementedError(), Unsupported),
        (ValueError("Invalid filter condition"), InvalidFilter),
        (ValueError("expected 2 dimensions"), InvalidVector),
        (RuntimeError("disk full"), RuntimeError),
    ],
)
def test_errors_in_words_get_their_type(
    index: VectorIndex, shelf: Shelf, raised: Exception, kind: type[Exception]
) -> None:
    shelf.raising = raised
    with pytest.raises(kind):
        index.query_vectors("i", [0, 1])


def test_a_store_that_reads_nothing_by_id_says_so(index: VectorIndex, shelf: Shelf) -> None:
    shelf.raising = NotImplementedError("get_by_ids")
    with pytest.raises(Unsupported, match="get_by_ids"):
        index.get_vectors("i", ["a"])


def test_the_catalogue_is_the_drivers(index: VectorIndex) -> None:
    assert index.list_indexes() == ("i",)
    with pytest.raises(AlreadyExists):
        index.create_index("i", dimension=3)
    index.drop_index("i")
    with pytest.raises(IndexNotFound):
        index.describe_index("i")
