"""Results and case files: versioned, with a schema, the same bytes for the same content."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import memory_fakes as fakes
import msgspec
import pytest
from harness_support import Hold, page
from memassay.harness import artefact, extensions
from memassay.harness.artefact import Case, Result
from memassay.harness.cli import app
from memassay.harness.evidence import side_by_side
from memassay.harness.plain import plain
from memassay.spec.forms import resolve
from memassay.spec.interpreter import Crashed, Refused, Returned
from memassay.spec.types import Message
from typer.testing import CliRunner

KINDS = extensions.artefacts()
SCHEMAS = Path(__file__).parents[2] / "reports" / "schemas"


@pytest.fixture
def result(hold: Hold) -> Result:
    return hold(fakes.Miscounting(), [page(1), page(2)])


@pytest.fixture
def case(result: Result) -> Case:
    return result.backends[0].clauses["ORD-5"].findings[0].case


def test_a_case_round_trips(case: Case) -> None:
    assert artefact.encode(artefact.decode_case(artefact.encode(case))) == artefact.encode(case)


def test_a_result_round_trips(result: Result) -> None:
    assert artefact.encode(artefact.decode_result(artefact.encode(result))) == artefact.encode(result)


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_is_valid(kind: str) -> None:
    jsonschema.Draft202012Validator.check_schema(artefact.schema(kind, KINDS[kind]))


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_is_published(kind: str) -> None:
    """One that changes what it allows is another version; one that only allows more is written anew:
    memassay schema -o reports/schemas"""
    path = SCHEMAS / f"{kind}-{artefact.version_in(KINDS[kind])}.json"
    schema = json.loads(json.dumps(artefact.schema(kind, KINDS[kind])))  # as JSON: a default may be a tuple
    assert json.loads(path.read_bytes()) == schema


def test_a_schema_is_named_by_kind_and_version() -> None:
    assert artefact.schema("case", Case)["$id"] == "urn:memassay:case:1"


def test_schemas_are_written_by_kind_and_version(tmp_path: Path) -> None:
    CliRunner().invoke(app, ["schema", "-o", str(tmp_path)])
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in SCHEMAS.iterdir()}


def test_a_case_conforms_to_its_schema(case: Case) -> None:
    jsonschema.validate(json.loads(artefact.encode(case)), artefact.schema("case", Case))


def test_a_result_conforms_to_its_schema(result: Result) -> None:
    jsonschema.validate(json.loads(artefact.encode(result)), artefact.schema("result", Result))


def test_the_schema_refuses_an_unknown_operation(case: Case) -> None:
    document = json.loads(artefact.encode(case))
    document["program"]["operations"][0]["op"] = "explode"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, artefact.schema("case", Case))


def test_another_version_is_not_read(case: Case) -> None:
    document = json.loads(artefact.encode(case)) | {"version": 2}
    with pytest.raises(msgspec.ValidationError):
        artefact.decode_case(json.dumps(document).encode())


def test_a_case_has_nothing_that_differs_between_runs(hold: Hold) -> None:
    first, second = (hold(fakes.Miscounting(), [page(1)]) for _ in range(2))
    encoded = [artefact.encode(r.backends[0].clauses["ORD-5"].findings[0].case) for r in (first, second)]
    assert encoded[0] == encoded[1]


def test_all_that_differs_between_runs_is_in_run(hold: Hold) -> None:
    first, second = (hold(fakes.Miscounting(), [page(1)]) for _ in range(2))
    assert artefact.encode(msgspec.structs.replace(first, run=second.run)) == artefact.encode(second)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        1,
        2**70,
        1.5,
        math.inf,
        "text",
        "lone \ud800",
        "x" * 500,
        [1, ["a"]],
        {"a": {"b": None}},
        {"$at": "not a tag"},
        {1: 2},
        datetime(2024, 3, 1, tzinfo=UTC),
        datetime(2024, 3, 1),
    ],
)
def test_a_plain_value_stands_for_the_value(value: Any) -> None:
    encoded = msgspec.json.encode(plain(value))
    assert resolve(msgspec.json.decode(encoded)) == value


@pytest.mark.parametrize(
    ("outcome", "form"),
    [
        (Returned(3), 3),
        (Refused("invalid_filter", "why"), {"refused": "invalid_filter", "message": "why"}),
        (Crashed("ValueError", "why"), {"crashed": "ValueError", "message": "why"}),
    ],
)
def test_outcomes_have_plain_forms(outcome: Any, form: Any) -> None:
    assert plain(outcome) == form


def test_a_value_is_plain_by_its_fields() -> None:
    message = Message("m", "t", "r", "user", "x", {}, datetime(2024, 3, 1, tzinfo=UTC))
    assert plain(message)["id"] == "m"


def test_anything_else_is_its_repr() -> None:
    assert plain(object).startswith("<class")


def test_long_lists_are_cut_around_the_first_difference() -> None:
    expected, got = side_by_side(list(range(1000)), [*range(500), -1, *range(501, 1000)])
    assert (500 in expected, -1 in got, len(expected) < 50) == (True, True, True)


def test_a_cut_says_how_much_was_left_out() -> None:
    expected, _ = side_by_side(list(range(1000)), [])
    assert expected[-1] == "... 980 more"


# What is long is cut, and still tells the two apart


def size(value: Any) -> int:
    return len(msgspec.json.encode(value))


LONG = "x" * 500_000 + "y" + "x" * 500_000
"""What no artefact should hold."""


LARGE: dict[str, Any] = {
    "a text": LONG,
    "a text within": {"a": [LONG]},
    "a key": {LONG: 1},
    "many texts": [["xy" * 1_000] * 40] * 40,
    "many keys": {str(i): i for i in range(100_000)},
    "many elements": list(range(100_000)),
    "a crash": Crashed("E" * 1_000_000, LONG),
    "a refusal": Refused(LONG, LONG),
    "what UTF-8 cannot hold": "\ud800" * 500_000 + "x",
    "a number": 2**3_000_000,
}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_value_is_kept_small(name: str) -> None:
    assert size(side_by_side(None, LARGE[name])[1]) < 210_000


def alone(text: str) -> Any:
    return text


def in_an_object(text: str) -> Any:
    return {"a": [text]}


def in_a_list(text: str) -> Any:
    return [[0, text]]


@pytest.mark.parametrize("wrap", [alone, in_an_object, in_a_list])
def test_long_texts_differ_after_the_cut(wrap: Callable[[str], Any]) -> None:
    expected, got = side_by_side(wrap(LONG), wrap(LONG.replace("y", "z")))
    assert (expected != got, "y" in str(expected), "z" in str(got)) == (True, True, True)


def test_a_cut_text_says_how_long_it_was() -> None:
    assert side_by_side(None, LONG)[1] == "x" * 2_000 + "… (1,000,001 characters)"


def test_objects_with_many_keys_keep_the_key_that_differs() -> None:
    many = {f"k{i:04}": 0 for i in range(1000)}
    expected, got = side_by_side(many, many | {"k0900": 1})
    assert (expected["k0900"], got["k0900"], got["..."]) == (0, 1, "960 more")


def test_a_value_without_repr_is_told_by_its_type() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise RuntimeError

    assert plain(Silent()) == "<Silent, whose repr raises RuntimeError>"


class Text(str):
    """A text that says other things of itself."""

    def __str__(self) -> str:
        return "a lie"

    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize("value", [Text("true"), {"k": Text("true")}, {Text("true"): 1}, [Text("true")]], ids=type)
def test_what_a_text_of_a_subclass_holds_is_kept(value: Any) -> None:
    assert b'"true"' in msgspec.json.encode(plain(value))


def test_an_error_whose_code_is_no_text_is_told() -> None:
    refused = Refused(None, ["why"])  # type: ignore[arg-type]
    assert plain(refused) == {"refused": "None", "message": "['why']"}


def test_what_is_nested_too_deeply_is_not_kept() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert side_by_side(1, deep)[1] == "nested too deeply to be kept"
