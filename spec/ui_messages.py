"""Messages as the AI SDK's UI shows them: UIMessage of its version 5, as JSON (UI-1). A pure function.

Checked against the package `ai` itself (tests/spec/test_ui_messages.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from .errors import InvalidRequest
from .types import FilePart, Message, Part, ReasoningPart, TextPart, ToolPart
from .values import copy_json, iso, show

UIMessage = dict[str, Any]
"""`{id, role, parts, metadata}`: role is system, user or assistant, parts are text, reasoning, file and `tool-NAME`."""

SHOWN: dict[str, tuple[type[Part], ...]] = {
    "system": (TextPart,),
    "user": (TextPart, FilePart),
    "assistant": (TextPart, ReasoningPart, FilePart, ToolPart),
    "tool": (ToolPart,),
}
"""The parts that a UI message of each role can have."""


def to_ui_messages(messages: Sequence[Message]) -> list[UIMessage]:
    """The UI messages of these messages, in their order. InvalidRequest for a message that cannot be one.

    - Metadata is the message's, under createdAt (`YYYY-MM-DDTHH:MM:SS.mmmZ`), threadId and resourceId, which win.
    - A tool part is `output-error` with an error, `output-available` with an output, and `input-available` else.
    - The UI has no role tool: a tool's result goes into the part of its call, wherever in `messages` that stands, and
      its message is left out; one whose calls are not there is a message of the assistant's.
    """
    checked = [_checked(message) for message in _listed(messages)]
    results = {part.tool_call_id: part for message in checked if message.role == "tool" for part in _tools(message)}
    called = {part.tool_call_id for message in checked if message.role == "assistant" for part in _tools(message)}
    shown: list[UIMessage] = []
    for message in checked:
        parts = _parts(message)
        if message.role == "tool":
            parts = [part for part in _tools(message) if part.tool_call_id not in called]
        elif message.role == "assistant":
            parts = [_answered(part, results) for part in parts]
        if parts:
            shown.append(_ui_message(message, parts))
    return shown


def _listed(messages: object) -> Sequence[Message]:
    if not isinstance(messages, list | tuple):
        raise _wrong(f"messages is {show(messages)}", hint="pass a list of messages")
    for message in cast("Sequence[object]", messages):
        if not isinstance(message, Message):
            raise _wrong(f"messages holds {show(message)}", hint="pass what recall returns")
    return cast("Sequence[Message]", messages)


def _checked(message: Message) -> Message:
    if message.role not in SHOWN:
        raise _wrong(f"the role of {message.id!a} is {show(message.role)}", hint="use " + ", ".join(SHOWN))
    for part in _parts(message):
        if not isinstance(part, SHOWN[message.role]):
            raise _wrong(
                f"message {message.id!a} of the role {message.role} has a {type(part).__name__}",
                hint="it can have " + ", ".join(kind.__name__ for kind in SHOWN[message.role]),
            )
        match part:
            case FilePart():
                needed = {"media_type": part.media_type, "url": part.url}
            case ToolPart():
                needed = {"tool_call_id": part.tool_call_id, "tool_name": part.tool_name}
            case _:
                needed = dict[str, str]()
        for field, value in needed.items():
            if not value:
                raise _wrong(f"a {type(part).__name__} of {message.id!a} has no {field}", hint="give it one")
    return message


def _parts(message: Message) -> list[Part]:
    content = message.content
    return [TextPart(content)] if isinstance(content, str) else list(content)


def _tools(message: Message) -> list[ToolPart]:
    return [part for part in _parts(message) if isinstance(part, ToolPart)]


def _answered(part: Part, results: dict[str, ToolPart]) -> Part:
    """A call with its result, if that stands elsewhere."""
    if not isinstance(part, ToolPart) or part.tool_call_id not in results:
        return part
    result = results[part.tool_call_id]
    if result.output is None and result.error is None:
        return part
    return ToolPart(part.tool_call_id, part.tool_name, part.input, result.output, result.error)


def _ui_message(message: Message, parts: Sequence[Part]) -> UIMessage:
    known = {"createdAt": iso(message.created_at), "threadId": message.thread_id, "resourceId": message.resource_id}
    return {
        "id": message.id,
        "role": "assistant" if message.role == "tool" else message.role,
        "parts": [_ui_part(part) for part in parts],
        "metadata": copy_json(message.metadata) | known,
    }


def _ui_part(part: Part) -> dict[str, Any]:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text}
        case ReasoningPart():
            return {"type": "reasoning", "text": part.text}
        case FilePart():
            named = {} if part.filename is None else {"filename": part.filename}
            return {"type": "file", "mediaType": part.media_type, "url": part.url, **named}
        case ToolPart():
            call = {"type": f"tool-{part.tool_name}", "toolCallId": part.tool_call_id, "input": copy_json(part.input)}
            if part.error is not None:
                return call | {"state": "output-error", "errorText": part.error}
            if part.output is not None:
                return call | {"state": "output-available", "output": copy_json(part.output)}
            return call | {"state": "input-available"}


def _wrong(reason: str, *, hint: str) -> InvalidRequest:
    return InvalidRequest(reason, hint=hint, clause="UI-1")
