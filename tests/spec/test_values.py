"""Single values: what is refused, and what is made of the rest."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from memassay.spec import values
from memassay.spec.errors import InvalidRequest
from memassay.spec.types import FilePart, TextPart, ToolPart


def at(microsecond: int, year: int = 2024) -> datetime:
    return datetime(year, 3, 1, 12, 0, 0, microsecond, tzinfo=UTC)


@pytest.mark.parametrize(("given", "kept"), [(0, 0), (999, 0), (1000, 1000), (123_999, 123_000), (999_999, 999_000)])
@pytest.mark.parametrize("year", [1969, 2024])
def test_an_instant_is_floored_to_the_millisecond(given: int, kept: int, year: int) -> None:
    assert values.instant(at(given, year), "x") == at(kept, year)


def test_an_instant_is_turned_into_utc() -> None:
    there = datetime(2024, 3, 1, 21, tzinfo=timezone(timedelta(hours=9)))
    assert values.instant(there, "x").isoformat() == "2024-03-01T12:00:00+00:00"


@pytest.mark.parametrize(
    "given",
    [
        datetime(2024, 3, 1),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=9))),
        datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-9))),
        "2024-03-01",
        1709294400,
        None,
    ],
    ids=["naive", "year 0", "year 10000", "text", "number", "none"],
)
def test_what_is_no_instant_is_refused(given: object) -> None:
    with pytest.raises(InvalidRequest):
        values.instant(given, "x")


@pytest.mark.parametrize("given", ["a", "A" * 255, " ", "한" * 255, "😀", "a' OR 1=1", "\uffff"])
def test_an_id_is_kept_as_it_is(given: str) -> None:
    assert values.identifier(given, "id") == given


@pytest.mark.parametrize("given", ["", "a" * 256, "a\0", "\ud83d", 7, None, b"a"], ids=lambda given: ascii(given)[:9])
def test_a_bad_id_is_refused(given: object) -> None:
    with pytest.raises(InvalidRequest):
        values.identifier(given, "id")


def nested(depth: int) -> dict[str, Any]:
    """An object `depth` levels deep, itself the first."""
    value: dict[str, Any] = {}
    for _ in range(depth - 1):
        value = {"n": value}
    return value


STORABLE: dict[str, dict[str, Any]] = {
    "all types": {"k": [1, 1.5, True, None, "x", {"a": []}]},
    "any key": {"": 0, "a.b": 1, "$eq": 2, "__proto__": 3},
    "safe integers": {"k": 2**53 - 1, "n": -(2**53) + 1},
    "64 levels": nested(64),
    "1 MiB": {"k": "a" * ((1 << 20) - 8)},
}


@pytest.mark.parametrize("given", STORABLE.values(), ids=STORABLE.keys())
def test_json_is_metadata(given: dict[str, Any]) -> None:
    assert values.metadata(given) == given


@pytest.mark.parametrize(
    "given",
    [
        {"k": float("nan")},
        {"k": float("-inf")},
        {"k": 2**53},
        {"k": -(2**53)},
        {"k": (1,)},
        {"k": at(0)},
        {"k": b"x"},
        {1: "x"},
        {"k": "a\0"},
        {"\ud83d": 1},
        nested(65),
        {"k": "a" * ((1 << 20) - 7)},
        [],
        "text",
    ],
    ids=lambda given: ascii(given)[:24],
)
def test_what_is_not_json_is_refused(given: object) -> None:
    with pytest.raises(InvalidRequest):
        values.metadata(given)


def test_absent_metadata_is_empty() -> None:
    assert values.metadata(None) == {}


def test_metadata_is_copied() -> None:
    given = {"k": [{"a": 1}]}
    kept = values.metadata(given)
    given["k"][0]["a"] = 2
    assert kept == {"k": [{"a": 1}]}


@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
def test_four_roles(role: str) -> None:
    assert values.role(role) == role


@pytest.mark.parametrize("role", ["User", "", "admin", None, 1])
def test_any_other_role_is_refused(role: object) -> None:
    with pytest.raises(InvalidRequest):
        values.role(role)


@pytest.mark.parametrize("given", ["", "text", [TextPart("a"), FilePart("image/png", "data:,")]], ids=str)
def test_content_is_text_or_parts(given: Any) -> None:
    assert values.content(given) == (given if isinstance(given, str) else tuple(given))


@pytest.mark.parametrize(
    "given", [[], (), ["text"], 5, None, [TextPart("a\0")], [{"type": "text", "text": "a"}]], ids=str
)
def test_any_other_content_is_refused(given: object) -> None:
    with pytest.raises(InvalidRequest):
        values.content(given)


def test_parts_are_copied() -> None:
    arguments = {"q": [1]}
    kept = values.content([ToolPart("c", "search", arguments)])
    arguments["q"].append(2)
    assert kept == (ToolPart("c", "search", {"q": [1]}),)


@pytest.mark.parametrize("given", [0, 1, 2**53 - 1])
def test_integers_count(given: int) -> None:
    assert values.integer(given, "page") == given


@pytest.mark.parametrize("given", [-1, 2**53, True, False, 1.0, "1", None])
def test_what_does_not_count_is_refused(given: object) -> None:
    with pytest.raises(InvalidRequest):
        values.integer(given, "page")
