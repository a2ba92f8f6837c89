"""Forms: JSON that stands for any value, read afresh each time and shown as short expressions."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from memassay.spec.forms import Fill, FormError, at, fill, resolve, show, string
from memassay.spec.types import TextPart, ToolPart

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("plain", [None, True, 1, 1.5, "x", [1, ["a"]], {"k": {"n": None}}, {}], ids=str)
def test_plain_json_stands_for_itself(plain: Any) -> None:
    assert resolve(plain) == plain


@pytest.mark.parametrize(
    ("form", "value"),
    [
        ({"$at": "2024-03-01T21:00:00+09:00"}, NOON),
        ({"$naive": "2024-03-01T12:00:00+00:00"}, datetime(2024, 3, 1, 12)),
        ({"$repeat": ["ab", 3]}, "ababab"),
        ({"$concat": ["a", {"$repeat": ["b", 2]}]}, "abb"),
        ({"$chars": [97, 0xD83D]}, "a\ud83d"),
        ({"$float": "-inf"}, -math.inf),
        ({"$int": "9007199254740993"}, 9007199254740993),
        ({"$tuple": [1, {"$int": "2"}]}, (1, 2)),
        ({"$dict": [["$eq", 1], [1, "x"]]}, {"$eq": 1, 1: "x"}),
        ({"$nest": [2, "x"]}, {"n": {"n": "x"}}),
        ({"$part": {"type": "text", "text": {"$repeat": ["x", 2]}}}, TextPart("xx")),
        ({"$part": {"type": "tool", "tool_call_id": "c", "tool_name": "t"}}, ToolPart("c", "t")),
    ],
    ids=lambda form: str(form)[:20],
)
def test_a_symbol_stands_for_its_value(form: Any, value: Any) -> None:
    assert resolve(form) == value


def test_a_symbol_inside_a_value_is_read() -> None:
    assert resolve({"k": [{"$int": "1"}]}) == {"k": [1]}


def test_every_reading_builds_a_new_value() -> None:
    form = {"k": [1]}
    first = resolve(form)
    first["k"].append(2)
    assert resolve(form) == {"k": [1]}


@pytest.mark.parametrize(
    "form",
    [
        {"$vector": [1]},
        {"$at": "noon"},
        {"$repeat": ["a"]},
        {"$int": "x"},
        {"$part": {"type": "video"}},
        {"$chars": [-1]},
    ],
    ids=str,
)
def test_what_stands_for_nothing_is_an_error(form: Any) -> None:
    with pytest.raises(FormError):
        resolve(form)


@pytest.mark.parametrize(
    "text", ["", "plain", "a\ud83d", "x" * 65, "한" * 100, "a\0b", "😀"], ids=lambda text: ascii(text)[:9]
)
def test_any_string_has_a_form_that_survives_json(text: str) -> None:
    assert resolve(msgspec.json.decode(msgspec.json.encode(string(text)))) == text


def test_an_instant_has_a_form() -> None:
    assert resolve(at(NOON)) == NOON


def test_a_fill_counts_its_messages_through_time() -> None:
    messages = list(fill(Fill(id="m", thread_id="t", n=3, metadata=[{"k": 1}, None])))
    assert [m.id for m in messages] == ["m0", "m1", "m2"]
    assert [m.metadata for m in messages] == [{"k": 1}, None, {"k": 1}]
    assert [m.created_at.microsecond for m in messages if m.created_at] == [0, 1000, 2000]


def test_a_fill_without_steps_ties() -> None:
    assert len({m.created_at for m in fill(Fill(id="m", thread_id="t", n=5, step_ms=0))}) == 1


@pytest.mark.parametrize(
    ("form", "shown"),
    [
        ({"$repeat": ["a", 300]}, "'a' * 300"),
        ({"$concat": ["a", {"$repeat": ["b", 2]}]}, "'a' + 'b' * 2"),
        ({"$tuple": [1]}, "(1,)"),
        ({"$dict": [["$eq", 1]]}, "{'$eq': 1}"),
        ({"k": ["é"]}, "{'k': ['\\xe9']}"),
        ({"$at": "2024-03-01T12:00:00+00:00"}, "at('2024-03-01T12:00:00+00:00')"),
        ({"$part": {"type": "text", "text": "a"}}, "text_part(text='a')"),
    ],
    ids=lambda form: str(form)[:20],
)
def test_a_form_is_shown_as_a_short_expression(form: Any, shown: str) -> None:
    assert show(form) == shown
