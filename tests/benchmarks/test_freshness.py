"""Freshness: what is looked for and counted, on stores that are late, lose rows, refuse them, or keep deleted ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from memassay.backends.registry import find
from memassay.benchmarks import freshness
from memassay.benchmarks.artefact import WAYS, Lag, Way
from memassay.benchmarks.freshness import ENOUGH, Subject, observe
from memassay.harness.engine import AUTO, start
from memassay.spec.errors import Unsupported

MS = 1_000_000


class Store:
    """Rows by number. `late`: looks that do not show a change; the changes in `lost` are acknowledged and not made."""

    def __init__(self, late: int = 0, lost: Sequence[int] = (), refused: Sequence[int] = ()) -> None:
        self.rows: set[int] = set()
        self.late = late
        self.lost = lost
        self.refused = refused
        self.looks: list[tuple[Way, int]] = []
        self._hidden = 0

    def subject(self, *ways: Way) -> Subject:
        looks: dict[Way, Callable[[int, int], bool]] = {
            way: lambda number, many, way=way: self.look(way, number) for way in ways or WAYS
        }
        return Subject("messages", self.write, self.delete, lambda: len(self.rows), looks)

    def write(self, number: int) -> None:
        if number in self.refused:
            raise ValueError("no, secret")
        if number not in self.lost:
            self.rows.add(number)
        self._hidden = self.late

    def delete(self, number: int) -> None:
        self.rows.discard(number)
        self._hidden = self.late

    def look(self, way: Way, number: int) -> bool:
        self.looks.append((way, number))
        self._hidden -= 1
        return (number in self.rows) != (self._hidden >= 0)


def test_ways_take_turns() -> None:
    store = Store()
    observe(store.subject(), 6, 1)
    written = [(way, number) for number, way in enumerate((*WAYS, "id", "listing"))]
    assert store.looks == [*written, *reversed(written)]


def test_a_row_that_the_first_look_shows_is_not_stale() -> None:
    found = observe(Store().subject(), 8, 1)
    for lag in (*found.shown.values(), *found.honoured.values()):
        assert (lag.blind_ns, lag.stale, lag.never) == ([0, 0], 0, 0)
        assert all(seen > 0 for seen in lag.seen_ns)


def test_a_row_shown_late_lies_between_two_looks() -> None:
    found = observe(Store(late=2).subject("search"), 3, 10)
    lag = found.shown["search"]
    assert (len(lag.seen_ns), lag.stale, lag.never) == (3, 3, 0)
    assert all(0 < blind < seen for blind, seen in zip(lag.blind_ns, lag.seen_ns, strict=True))


def test_a_deletion_honoured_late_is_stale() -> None:
    found = observe(Store(late=1).subject("id"), 3, 10)
    assert (found.honoured["id"].stale, found.honoured["id"].never) == (3, 0)
    assert (found.deleted, found.left) == (3, 0)


def test_a_row_that_was_lost_is_given_up() -> None:
    found = observe(Store(lost=(1,)).subject("id"), 3, 0)
    assert (found.acknowledged, found.visible) == (3, 2)
    assert (found.shown["id"].never, len(found.shown["id"].seen_ns)) == (1, 2)


def test_a_row_that_could_not_be_deleted_is_not_counted_as_one_that_stays() -> None:
    store = Store()
    subject = store.subject()

    def delete(number: int) -> None:
        if number == 2:
            raise ValueError("no")
        store.delete(number)

    looks: dict[Way, Callable[[int, int], bool]] = {"listing": lambda number, many: len(store.rows) >= many}
    found = observe(subject._replace(delete=delete, looks=looks), 3, 0)
    assert (found.deleted, found.left, found.rejected) == (2, 1, {"ValueError: no": 1})
    assert found.honoured["listing"].never == 0


def test_a_store_that_loses_all_is_not_waited_for_again_and_again() -> None:
    found = observe(Store(lost=range(100)).subject("id"), 100, 0)
    assert (found.acknowledged, found.visible, found.shown["id"].never) == (100, 0, ENOUGH)


def test_rows_refused_are_counted_with_what_was_said() -> None:
    found = observe(Store(refused=(0, 3)).subject("id"), 4, 1, lambda text: text.replace("secret", "…"))
    assert (found.given, found.acknowledged, found.visible) == (4, 2, 2)
    assert found.rejected == {"ValueError: no, …": 2}
    assert len(found.acknowledged_ns) == 2


def test_a_look_that_fails_is_counted_and_repeated() -> None:
    store = Store()
    failing = iter([True, True, False])

    def look(number: int, many: int) -> bool:
        if next(failing, False):
            raise OSError("gone")
        return store.look("id", number)

    found = observe(store.subject()._replace(looks={"id": look}), 1, 10)
    assert found.failed == {"OSError: gone": 2}
    assert (found.shown["id"].stale, found.shown["id"].never) == (1, 0)


def test_a_way_that_a_store_has_not_is_named() -> None:
    def look(number: int, many: int) -> bool:
        raise Unsupported("search")

    store = Store()
    subject = store.subject("id", "listing")
    found = observe(subject._replace(looks={**subject.looks, "search": look}), 9, 10)
    assert found.unsupported == ["search", "filtered search"]
    assert [*found.shown] == [*found.honoured] == ["id", "listing"]
    assert found.failed == {}


def test_a_row_never_seen_took_for_ever() -> None:
    lag = Lag(blind_ns=[0] * 199, seen_ns=[MS] * 199, never=20)
    assert (lag.at(50), lag.at(95)) == (1.0, float("inf"))
    assert lag.at(99) is None


@pytest.mark.parametrize("engine", ["reference", "libsql", "faiss"])
def test_an_engine_shows_every_row_in_every_way(engine: str) -> None:
    with start(engine, find(engine), AUTO, {}) as started:
        found = freshness.measure(started, rows=8)
    assert [each.kind for each in found] == ["messages", "vectors"]
    for each in found:
        assert (each.given, each.acknowledged, each.visible, each.deleted, each.left) == (8, 8, 8, 8, 0)
        assert (each.rejected, each.failed, each.unsupported) == ({}, {}, [])
        assert [*each.shown] == [*each.honoured] == [*WAYS]
        assert all(len(lag.seen_ns) == 2 and not lag.stale for lag in (*each.shown.values(), *each.honoured.values()))


def test_a_line_tells_what_became_of_the_rows() -> None:
    line = freshness.counts("acme", observe(Store(refused=(0,), lost=(1,)).subject("id"), 4, 0))
    assert line == (
        "acme, messages: 4 given, 3 acknowledged, 2 visible, 1 rejected; 3 deleted, 0 left; 1 × ValueError: no, secret"
    )


def test_a_table_has_a_line_for_each_way() -> None:
    found: dict[str, Any] = {"acme": [observe(Store().subject(), 8, 1)]}
    assert freshness.table(found).row_count == 1 + 2 * len(WAYS)
