"""The shallow filter: what it accepts, and what each condition matches."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from memassay.spec.errors import InvalidFilter, InvalidRequest
from memassay.spec.filters import Window, parse_metadata, parse_window
from memassay.spec.types import DateRange

T0 = datetime(2024, 3, 1, 12, tzinfo=UTC)
MS = timedelta(milliseconds=1)
VALUES: tuple[Any, ...] = (1, 1.5, "1", True, False, 0, "", None, "null", "a", "A", "a ", "é", "e\u0301", [1], {"a": 1})


def matches(stored: dict[str, Any], **wanted: Any) -> bool:
    return all(condition.matches(stored) for condition in parse_metadata(wanted))


@pytest.mark.parametrize("wanted", [value for value in VALUES if not isinstance(value, list | dict)], ids=ascii)
def test_a_condition_matches_its_own_value_and_no_other(wanted: Any) -> None:
    found = [value for value in VALUES if matches({"k": value}, k=wanted)]
    assert [(type(value), value) for value in found] == [(type(wanted), wanted)]


def test_an_integer_equals_its_float() -> None:
    assert matches({"k": 1}, k=1.0)
    assert matches({"k": -0.0}, k=0)


@pytest.mark.parametrize("wanted", [1, "a", None, False])
def test_a_missing_key_matches_nothing(wanted: Any) -> None:
    assert not matches({}, k=wanted)


def test_all_conditions_must_hold() -> None:
    assert matches({"a": 1, "b": 2}, a=1, b=2)
    assert not matches({"a": 1, "b": 3}, a=1, b=2)


@pytest.mark.parametrize("given", [None, {}], ids=["none", "empty"])
def test_no_condition_matches_all(given: Any) -> None:
    assert parse_metadata(given) == ()


@pytest.mark.parametrize("key", ["k", "_", "aZ_09", "k" * 128])
def test_an_identifier_is_a_key(key: str) -> None:
    assert parse_metadata({key: 1})[0].key == key


@pytest.mark.parametrize(
    "key",
    ["", "1a", "a.b", "a-b", "a b", "$eq", "é", "a\n", "k" * 129, "__proto__", "constructor", "prototype", 1, None],
    ids=lambda key: ascii(key)[:12],
)
def test_any_other_key_is_refused(key: Any) -> None:
    with pytest.raises(InvalidFilter):
        parse_metadata({key: 1})


def test_the_error_names_the_key() -> None:
    with pytest.raises(InvalidFilter, match="'bad-key'"):
        parse_metadata({"bad-key": 1})


@pytest.mark.parametrize(
    "value",
    [[], {}, {"$eq": 1}, float("nan"), float("inf"), 2**53, "a\0", "\ud83d", "a" * ((1 << 20) + 1), T0, (1,)],
    ids=lambda value: ascii(value)[:12],
)
def test_any_other_value_is_refused(value: Any) -> None:
    with pytest.raises(InvalidFilter):
        parse_metadata({"k": value})


@pytest.mark.parametrize("given", [[], "k", 1], ids=str)
def test_what_is_no_mapping_is_refused(given: Any) -> None:
    with pytest.raises(InvalidFilter):
        parse_metadata(given)


def holding(window: Window) -> list[int]:
    """Which of T0, T0 + 1 ms, … T0 + 3 ms the window holds."""
    return [i for i in range(4) if window.holds(T0 + i * MS)]


@pytest.mark.parametrize(
    ("given", "held"),
    [
        (DateRange(), [0, 1, 2, 3]),
        (DateRange(start=T0 + MS), [1, 2, 3]),
        (DateRange(end=T0 + MS), [0, 1]),
        (DateRange(start=T0 + MS, start_exclusive=True), [2, 3]),
        (DateRange(end=T0 + MS, end_exclusive=True), [0]),
        (DateRange(start=T0 + MS, end=T0 + 2 * MS), [1, 2]),
        (DateRange(start=T0 + 2 * MS, end=T0 + MS), []),
        (DateRange(start_exclusive=True, end_exclusive=True), [0, 1, 2, 3]),
        (DateRange(start=T0 + MS + timedelta(microseconds=999)), [1, 2, 3]),
        (DateRange(end=T0 + MS + timedelta(microseconds=999), end_exclusive=True), [0]),
    ],
    ids=["none", "start", "end", "start excl", "end excl", "both", "reversed", "flags alone", "fine start", "fine end"],
)
def test_a_window_holds(given: DateRange, held: list[int]) -> None:
    assert holding(parse_window(given)) == held


def odd_flag() -> DateRange:
    flag: Any = 1
    return DateRange(start_exclusive=flag)


BAD_RANGES: tuple[Any, ...] = (odd_flag(), DateRange(start=datetime(2024, 1, 1)), "2024")


@pytest.mark.parametrize("given", BAD_RANGES, ids=str)
def test_a_bad_range_is_refused(given: Any) -> None:
    with pytest.raises(InvalidRequest):
        parse_window(given)
