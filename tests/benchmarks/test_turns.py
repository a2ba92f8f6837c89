"""How two sides take turns and warm up, and what their times come to. Time is never asserted."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from memassay.benchmarks.turns import ROUND, ROUNDS, Pair, WarmUp, ask_in_turn

NOTHING = WarmUp(turns=0)
NOBODY: Callable[[int], str] | None = None


def side(name: str, asked: list[tuple[str, int]]) -> Callable[[int], str]:
    def ask(request: int) -> str:
        asked.append((name, request))
        return f"{name}{request}"

    return ask


def test_each_side_is_first_every_other_time() -> None:
    asked: list[tuple[str, int]] = []
    ask_in_turn(range(4), side("a", asked), side("b", asked), iter(()), NOTHING)
    assert asked == [("b", 0), ("a", 0), ("a", 1), ("b", 1), ("b", 2), ("a", 2), ("a", 3), ("b", 3)]


def test_the_answers_are_those_of_each_side_in_order() -> None:
    found = ask_in_turn(range(3), side("a", []), side("b", []), iter(()), NOTHING)
    assert [answer for answer, _ in found.adapter] == ["a0", "a1", "a2"]
    assert [answer for answer, _ in found.baseline] == ["b0", "b1", "b2"]


def test_an_adapter_alone_is_asked_alone() -> None:
    found = ask_in_turn(range(3), side("a", []), NOBODY, iter(()), NOTHING)
    assert len(found.adapter) == 3
    assert found.baseline == []


def test_warming_up_asks_both_sides_about_others() -> None:
    asked: list[tuple[str, int]] = []
    found = ask_in_turn([7], side("a", asked), side("b", asked), itertools.count(100), WarmUp(turns=5))
    assert sorted(asked[:-2]) == sorted((name, 100 + turn) for name in "ab" for turn in range(5))
    assert {request for _, request in asked[-2:]} == {7}
    assert (found.discarded, found.steady, len(found.adapter)) == (5, False, 1)


def test_warming_up_ends_when_times_are_steady(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(step=1_000)
    monkeypatch.setattr("memassay.benchmarks.turns.time.perf_counter_ns", lambda: next(clock))
    found = ask_in_turn([7], side("a", []), side("b", []), itertools.count(), WarmUp(seconds=1e9))
    assert (found.discarded, found.steady) == (ROUND * ROUNDS, True)


def test_times_that_fall_are_not_steady(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.accumulate(10**12 // (1 + turn) for turn in itertools.count())
    monkeypatch.setattr("memassay.benchmarks.turns.time.perf_counter_ns", lambda: next(clock))
    rounds = 5
    found = ask_in_turn([7], side("a", []), NOBODY, itertools.count(), WarmUp(turns=rounds * ROUND, seconds=1e9))
    assert (found.discarded, found.steady) == (rounds * ROUND, False)


def pair(nanoseconds: int, baseline: int | None) -> Pair:
    return Pair(nanoseconds=[nanoseconds] * 3, baseline_nanoseconds=[] if baseline is None else [baseline] * 3)


@pytest.mark.parametrize(
    ("nanoseconds", "baseline", "within"),
    [
        (12_500_000, 10_000_000, True),
        (12_600_000, 10_000_000, False),
        (1_000_000, 800_000, True),
        (1_000_000, 790_000, False),
        (300_000, 100_000, True),  # three times as much, but little
        (10_000_000, None, None),
    ],
)
def test_within_is_a_ratio_or_a_difference(nanoseconds: int, baseline: int | None, within: bool | None) -> None:
    assert pair(nanoseconds, baseline).within is within


def test_a_comparison_is_a_ratio_and_milliseconds() -> None:
    assert pair(12_000_000, 10_000_000).compared() == ("1.20", "+2.00", "yes")
    assert pair(13_000_000, 10_000_000).compared() == ("1.30", "+3.00", "no")
    assert pair(13_000_000, None).compared() == ("–", "–", "–")
