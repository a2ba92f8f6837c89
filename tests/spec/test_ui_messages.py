"""UI messages by hand, and what the package `ai` itself makes of them (UI-1)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any

import msgspec
import pytest
from memassay.backends.foreign import ai_sdk, npm
from memassay.backends.foreign.ai_sdk import Reading
from memassay.spec.errors import InvalidRequest
from memassay.spec.forms import resolve
from memassay.spec.protocols import Memory
from memassay.spec.strategies import pools
from memassay.spec.types import FilePart, Message, NewMessage, OrderBy, Part, ReasoningPart, TextPart, ToolPart
from memassay.spec.ui_messages import SHOWN, UIMessage, to_ui_messages

NOON = datetime(2024, 3, 1, 12, 0, 0, 5_000, tzinfo=UTC)
KNOWN = {"createdAt": "2024-03-01T12:00:00.005Z", "threadId": "t", "resourceId": "r"}

CALL = ToolPart("call-1", "weather", {"city": "Seoul"})
RESULT = ToolPart("call-1", "weather", None, {"sky": "clear"})
FAILED = ToolPart("call-1", "weather", None, None, "no such city")


def message(content: Any, role: str = "assistant", id: str = "m", metadata: Any = None) -> Message:
    return Message(id, "t", "r", role, content, metadata or {}, NOON)


def parts(content: Any, role: str = "assistant") -> list[Any]:
    """The parts of the one UI message of one message."""
    (shown,) = to_ui_messages([message(content, role)])
    return shown["parts"]


# What is made of a message


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_a_string_is_a_text_part(role: str) -> None:
    assert to_ui_messages([message("hello", role)]) == [
        {"id": "m", "role": role, "parts": [{"type": "text", "text": "hello"}], "metadata": KNOWN}
    ]


def test_parts_keep_their_order() -> None:
    content = (ReasoningPart("because"), TextPart("so"), FilePart("image/png", "data:image/png;base64,AA=="))
    assert parts(content) == [
        {"type": "reasoning", "text": "because"},
        {"type": "text", "text": "so"},
        {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AA=="},
    ]


def test_a_files_name_is_kept() -> None:
    (part,) = parts([FilePart("text/plain", "https://example.org/a", "a.txt")], "user")
    assert part == {"type": "file", "mediaType": "text/plain", "url": "https://example.org/a", "filename": "a.txt"}


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        (CALL, {"state": "input-available"}),
        (ToolPart("call-1", "weather", {"city": "Seoul"}, 0), {"state": "output-available", "output": 0}),
        (ToolPart("call-1", "weather", {"city": "Seoul"}, ""), {"state": "output-available", "output": ""}),
        (
            ToolPart("call-1", "weather", {"city": "Seoul"}, None, "no such city"),
            {"state": "output-error", "errorText": "no such city"},
        ),
    ],
)
def test_a_tool_part_is_in_a_state(tool: ToolPart, expected: dict[str, Any]) -> None:
    call = {"type": "tool-weather", "toolCallId": "call-1", "input": {"city": "Seoul"}}
    assert parts([tool]) == [call | expected]


def test_metadata_is_kept_under_what_is_known() -> None:
    (shown,) = to_ui_messages([message("x", metadata={"k": [1], "threadId": "mine"})])
    assert shown["metadata"] == {"k": [1]} | KNOWN


def test_nothing_of_a_message_is_shared() -> None:
    given, original = {"k": {"a": 1}}, {"city": ["Seoul"]}
    (shown,) = to_ui_messages([message([ToolPart("c", "t", original)], metadata=given)])
    shown["metadata"]["k"]["a"] = 2
    shown["parts"][0]["input"]["city"].append("Busan")
    assert (given, original) == ({"k": {"a": 1}}, {"city": ["Seoul"]})


# Results of tools


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (RESULT, {"state": "output-available", "output": {"sky": "clear"}}),
        (FAILED, {"state": "output-error", "errorText": "no such city"}),
    ],
)
@pytest.mark.parametrize("newest_first", [False, True])
def test_a_result_goes_into_its_call(result: ToolPart, expected: dict[str, Any], newest_first: bool) -> None:
    talk = [message([CALL], id="a"), message([result], "tool", "b"), message("Clear.", id="c")]
    shown = to_ui_messages(talk[::-1] if newest_first else talk)
    assert [each["id"] for each in shown] == (["c", "a"] if newest_first else ["a", "c"])
    (part,) = next(each["parts"] for each in shown if each["id"] == "a")
    assert part == {"type": "tool-weather", "toolCallId": "call-1", "input": {"city": "Seoul"}} | expected


def test_a_result_whose_call_is_not_there_is_the_assistants() -> None:
    assert [(each["role"], each["parts"][0]["state"]) for each in to_ui_messages([message([RESULT], "tool")])] == [
        ("assistant", "output-available")
    ]


def test_of_several_results_those_without_a_call_stay() -> None:
    other = ToolPart("call-2", "clock", None, "noon")
    shown = to_ui_messages([message([CALL], id="a"), message([RESULT, other], "tool", "b")])
    assert [(each["id"], [part["toolCallId"] for part in each["parts"]]) for each in shown] == [
        ("a", ["call-1"]),
        ("b", ["call-2"]),
    ]


# What cannot be shown


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        "hello",
        message("x"),
        [None],
        ["hello"],
        [NewMessage("m", "t", "x")],
        [message("x", "admin")],
        [message("x", "tool")],
        [message([TextPart("x")], "tool")],
        [message([CALL], "user")],
        [message([ReasoningPart("x")], "user")],
        [message([FilePart("image/png", "data:,")], "system")],
        [message([FilePart("", "data:,")])],
        [message([FilePart("image/png", "")])],
        [message([ToolPart("", "weather")])],
        [message([ToolPart("call-1", "")])],
        [message("x"), message("x", "tool", "n")],
    ],
)
def test_what_cannot_be_shown_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        to_ui_messages(wrong)
    assert (refused.value.clause, bool(refused.value.hint)) == ("UI-1", True)


# A memory's own


def test_what_a_memory_recalls_is_shown(memory: Memory) -> None:
    memory.create_thread(id="thread-123", resource_id="user-456")
    memory.save_messages(
        [
            NewMessage("q", "thread-123", "Is it clear?", created_at=NOON),
            NewMessage("c", "thread-123", [TextPart("Let me see."), CALL], role="assistant", created_at=NOON),
            NewMessage("f", "thread-123", [FAILED], role="tool", created_at=NOON),
        ]
    )
    found = memory.recall("thread-123", per_page=False, order_by=OrderBy(direction="ASC")).messages
    known = {"createdAt": "2024-03-01T12:00:00.005Z", "threadId": "thread-123", "resourceId": "user-456"}
    call = {"type": "tool-weather", "toolCallId": "call-1", "input": {"city": "Seoul"}}
    assert to_ui_messages(found) == [
        {"id": "q", "role": "user", "parts": [{"type": "text", "text": "Is it clear?"}], "metadata": known},
        {
            "id": "c",
            "role": "assistant",
            "parts": [
                {"type": "text", "text": "Let me see."},
                call | {"state": "output-error", "errorText": "no such city"},
            ],
            "metadata": known,
        },
    ]


# By the package itself


@pytest.fixture(scope="session")
def read() -> Callable[[Sequence[Any]], list[Reading]]:
    """Has `ai` read UI messages. In CI the package is installed; elsewhere, where it is not, the test is skipped."""
    if os.environ.get("CI") and npm.node() is not None:
        ai_sdk.install()
    if reason := ai_sdk.missing():
        if os.environ.get("CI"):
            pytest.fail(f"UI-1 is not checked with the AI SDK: {reason}")
        pytest.skip(f"UI-1 is not checked with the AI SDK: {reason}")
    return ai_sdk.read


def test_the_packages_are_pinned_exactly() -> None:
    wanted = json.loads((ai_sdk.HERE / "package.json").read_text())["dependencies"]
    locked = json.loads((ai_sdk.HERE / "package-lock.json").read_text())
    assert {name: locked["packages"][f"node_modules/{name}"]["version"] for name in wanted} == wanted
    assert "resolved" not in str(locked)


def test_what_is_made_is_valid_and_says_the_same_to_a_model(read: Callable[[Any], list[Reading]]) -> None:
    talk = [
        message("Be brief.", "system", "a"),
        message([TextPart("What is this?"), FilePart("image/png", "data:image/png;base64,AA==", "a.png")], "user", "b"),
        message([ReasoningPart("I look."), TextPart("Wait."), CALL], id="c"),
        message([RESULT], "tool", "d"),
        message("Clear.", id="e"),
    ]
    (reading,) = read([to_ui_messages(talk)])
    assert reading.error is None
    assert [(each["role"], _told(each["content"])) for each in reading.model] == [
        ("system", "Be brief."),
        ("user", ["What is this?", ("image/png", "a.png", "data:image/png;base64,AA==")]),
        ("assistant", ["I look.", "Wait.", ("call-1", "weather", {"city": "Seoul"})]),
        ("tool", [("call-1", "weather", {"type": "json", "value": {"sky": "clear"}})]),
        ("assistant", ["Clear."]),
    ]


def _told(content: Any) -> Any:
    """The words, files, calls and results of a model message."""
    if isinstance(content, str):
        return content
    told: list[Any] = []
    for part in content:
        match part["type"]:
            case "file":
                told.append((part["mediaType"], part.get("filename"), part["data"]))
            case "tool-call":
                told.append((part["toolCallId"], part["toolName"], part["input"]))
            case "tool-result":
                told.append((part["toolCallId"], part["toolName"], part["output"]))
            case _:
                told.append(part["text"])
    return told


def test_a_tools_error_reaches_the_model(read: Callable[[Any], list[Reading]]) -> None:
    (reading,) = read([to_ui_messages([message([CALL], id="a"), message([FAILED], "tool", "b")])])
    (result,) = reading.model[-1]["content"]
    assert (result["toolCallId"], result["output"]) == ("call-1", {"type": "error-text", "value": "no such city"})


def _random(rng: Random, number: int) -> Message:
    """A message of any role, of the values that programs store."""
    role = rng.choice([*SHOWN])
    pool: list[Part] = [part for part in map(resolve, pools.PARTS) if isinstance(part, SHOWN[role])]
    if role != "tool" and rng.random() < 0.3:
        content: Any = resolve(rng.choice(pools.TEXTS))
    else:
        content = tuple(
            msgspec.structs.replace(part, tool_call_id=f"call-{number}-{i}") if isinstance(part, ToolPart) else part
            for i, part in enumerate(rng.choices(pool, k=rng.randint(1, 3)))
        )
    return message(content, role, f"m{number}", {"k": resolve(rng.choice(pools.SCALARS))})


def test_whatever_a_store_may_hold_is_valid(read: Callable[[Any], list[Reading]]) -> None:
    rng = Random(0)
    talks = [[_random(rng, number) for number in range(rng.randint(1, 6))] for _ in range(300)]
    assert {reading.error for reading in read([to_ui_messages(talk) for talk in talks])} == {None}


def _shown(**changes: Any) -> UIMessage:
    """A UI message of a tool's call, with other fields in its part; None removes one."""
    (shown,) = to_ui_messages([message([CALL])])
    part = {**shown["parts"][0], **changes}
    return shown | {"parts": [{name: value for name, value in part.items() if value is not None}]}


@pytest.mark.parametrize(
    "wrong",
    [
        _shown(state="output-available", errorText="both", output=1),
        _shown(state="output-error"),
        _shown(state="done"),
        _shown(toolCallId=None),
        _shown(type="tool"),
        _shown() | {"role": "tool"},
        _shown() | {"parts": [{"type": "text"}]},
        _shown() | {"parts": [{"type": "file", "url": "data:,"}]},
        _shown() | {"parts": "hello"},
        _shown() | {"id": 5},
    ],
)
def test_the_package_refuses_what_is_wrong(wrong: UIMessage, read: Callable[[Any], list[Reading]]) -> None:
    (reading,) = read([[wrong]])
    assert reading.error is not None
