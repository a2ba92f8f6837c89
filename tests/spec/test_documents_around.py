"""The documentation's examples around recall, by hand: working memory, titles, messages for a UI, on every backend."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from memassay.backends.embedders import KNOWN, embedder
from memassay.spec.errors import ConfigurationError, InvalidRequest
from memassay.spec.protocols import Memory
from memassay.spec.types import (
    MemoryConfig,
    Message,
    NewMessage,
    OrderBy,
    ThreadsConfig,
    TitleGeneration,
    WorkingMemory,
)
from memassay.spec.ui_messages import to_ui_messages

OpenMemory = Callable[..., Memory]

TEMPLATE = "# User Profile\n- **Name**:\n- **Location**:"
FILLED = "# User Profile\n- **Name**: Kim\n- **Location**: Seoul"


@pytest.fixture
def support(namespace: Any) -> Callable[..., Memory]:
    """Opens the memory of an agent whose model makes titles; notes what the model was asked in `asked`."""

    def open_memory(options: MemoryConfig, asked: list[Any], answer: str = "Lost order") -> Memory:
        def titler(messages: Sequence[Message], *, model: str | None, instructions: str | None) -> str:
            asked.append((model, instructions, [message.content for message in messages], threading.get_ident()))
            return answer

        opened = namespace(options, titler=titler)
        opened.create_thread(id="thread-123", resource_id="user-456")
        return opened

    return open_memory


def talk(memory: Memory) -> None:
    """What the user says, and then the agent's answer."""
    memory.save_messages([NewMessage("msg-1", "thread-123", "Hello")])
    memory.save_messages([NewMessage("msg-2", "thread-123", "How can I help?", role="assistant")])


def title(memory: Memory) -> str:
    """The thread's title."""
    thread = memory.get_thread("thread-123")
    assert thread is not None
    return thread.title


# Working memory: { enabled, template?, schema?, scope? }


def test_a_template_is_filled_in(open_memory: OpenMemory) -> None:
    memory = open_memory(MemoryConfig(working_memory=WorkingMemory(enabled=True, template=TEMPLATE)))
    memory.create_thread(id="thread-123", resource_id="user-456")
    assert memory.get_working_memory("thread-123") is None
    memory.update_working_memory("thread-123", FILLED)
    assert memory.get_working_memory("thread-123") == FILLED


def test_a_json_schema_is_kept_to(open_memory: OpenMemory) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    memory = open_memory(MemoryConfig(working_memory=WorkingMemory(enabled=True, schema=schema)))
    memory.create_thread(id="thread-123", resource_id="user-456")
    memory.update_working_memory("thread-123", json.dumps({"name": "Kim"}))
    with pytest.raises(InvalidRequest):
        memory.update_working_memory("thread-123", json.dumps({"name": 1}))
    assert json.loads(memory.get_working_memory("thread-123") or "") == {"name": "Kim"}


def test_of_scope_resource_it_is_the_users_in_every_thread(open_memory: OpenMemory) -> None:
    memory = open_memory(MemoryConfig(working_memory=WorkingMemory(enabled=True, scope="resource")))
    for thread in ("thread-123", "thread-456"):
        memory.create_thread(id=thread, resource_id="user-456")
    memory.update_working_memory("thread-123", FILLED)
    assert memory.get_working_memory("thread-456") == FILLED


def test_of_scope_thread_it_is_the_threads(open_memory: OpenMemory) -> None:
    memory = open_memory(MemoryConfig(working_memory=WorkingMemory(enabled=True, scope="thread")))
    for thread in ("thread-123", "thread-456"):
        memory.create_thread(id=thread, resource_id="user-456")
    memory.update_working_memory("thread-123", FILLED)
    assert memory.get_working_memory("thread-456") is None


def test_it_is_disabled_by_enabled_false(open_memory: OpenMemory) -> None:
    memory = open_memory(MemoryConfig(working_memory=WorkingMemory(enabled=False)))
    memory.create_thread(id="thread-123", resource_id="user-456")
    with pytest.raises(ConfigurationError):
        memory.get_working_memory("thread-123")


# Titles: generateTitle


def test_generate_title_names_the_thread_from_the_conversation(support: Callable[..., Memory]) -> None:
    asked: list[Any] = []
    memory = support(MemoryConfig(generate_title=True), asked)
    talk(memory)
    memory.settle()
    assert title(memory) == "Lost order"
    assert [each[:3] for each in asked] == [(None, None, ["Hello", "How can I help?"])]


def test_a_smaller_model_and_instructions_are_passed_on(support: Callable[..., Memory]) -> None:
    asked: list[Any] = []
    own = TitleGeneration(model="openai/gpt-5-mini", instructions="Generate a one-word title.")
    memory = support(MemoryConfig(generate_title=own), asked, "Support")
    talk(memory)
    memory.settle()
    assert title(memory) == "Support"
    assert [each[:2] for each in asked] == [("openai/gpt-5-mini", "Generate a one-word title.")]


def test_it_may_stand_under_threads(support: Callable[..., Memory]) -> None:
    memory = support(MemoryConfig(threads=ThreadsConfig(generate_title=True)), [])
    talk(memory)
    memory.settle()
    assert title(memory) == "Lost order"


def test_a_thread_with_a_title_keeps_it(support: Callable[..., Memory]) -> None:
    asked: list[Any] = []
    memory = support(MemoryConfig(generate_title=True), asked)
    memory.update_thread("thread-123", title="Support conversation")
    talk(memory)
    memory.settle()
    assert (title(memory), asked) == ("Support conversation", [])


# UI messages: toAISdkV5Messages


def test_recalled_messages_become_ui_messages(memory: Memory) -> None:
    memory.create_thread(id="thread-123", resource_id="user-456")
    talk(memory)
    oldest_first = OrderBy(direction="ASC")
    shown = to_ui_messages(memory.recall("thread-123", per_page=False, order_by=oldest_first).messages)
    assert [(each["id"], each["role"], each["parts"]) for each in shown] == [
        ("msg-1", "user", [{"type": "text", "text": "Hello"}]),
        ("msg-2", "assistant", [{"type": "text", "text": "How can I help?"}]),
    ]


# Embedders: provider/model


@pytest.mark.parametrize(
    ("model", "dimension"),
    [
        ("openai/text-embedding-3-small", 1536),
        ("openai/text-embedding-3-large", 3072),
        ("openai/text-embedding-ada-002", 1536),
        ("google/gemini-embedding-001", 3072),
    ],
)
def test_the_documented_models_are_known(model: str, dimension: int) -> None:
    assert KNOWN[model].dimension == dimension


def test_openrouter_reaches_models_of_others() -> None:
    pytest.importorskip("openai")
    found = embedder("openrouter/openai/text-embedding-3-small", environment={"OPENROUTER_API_KEY": "key"})
    assert (found.name, found.dimension) == ("openrouter/openai/text-embedding-3-small", 1536)
