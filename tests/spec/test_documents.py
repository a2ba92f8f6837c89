"""The examples of the memory documentation this project follows, by hand, with the answers it promises."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from memassay.spec.errors import ConfigurationError, InvalidFilter, OwnershipMismatch
from memassay.spec.protocols import Memory
from memassay.spec.types import (
    DateRange,
    Include,
    MemoryConfig,
    MessageFilter,
    NewMessage,
    OrderBy,
    RecallResult,
    ThreadFilter,
)

JANUARY, JUNE = datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 6, 1, tzinfo=UTC)
BILLING = {"category": "billing", "escalated": True, "priority": 2, "archivedAt": None}


def ids(result: RecallResult) -> list[str]:
    return [message.id for message in result.messages]


def numbered(first: int, last: int) -> list[str]:
    """msg-… from first to last, in either direction."""
    step = 1 if first <= last else -1
    return [f"msg-{i}" for i in range(first, last + step, step)]


@pytest.fixture
def conversation(memory: Memory) -> Memory:
    """thread-123 of user-456 with messages msg-1 … msg-60, an hour apart."""
    memory.create_thread(
        id="thread-123", resource_id="user-456", title="Support conversation", metadata={"category": "billing"}
    )
    memory.save_messages(
        [
            NewMessage(f"msg-{i}", "thread-123", f"message {i}", created_at=JANUARY + timedelta(hours=i))
            for i in range(1, 61)
        ]
    )
    return memory


# Recall


def test_a_page_of_twenty(conversation: Memory) -> None:
    assert ids(conversation.recall("thread-123", per_page=20)) == numbered(60, 41)


def test_everything_without_pagination(conversation: Memory) -> None:
    assert ids(conversation.recall("thread-123", per_page=False)) == numbered(60, 1)


def test_the_first_page_of_fifty(conversation: Memory) -> None:
    page = conversation.recall("thread-123", page=0, per_page=50)
    assert (ids(page), page.has_more) == (numbered(60, 11), True)


def test_pages_are_counted_from_zero(conversation: Memory) -> None:
    page = conversation.recall("thread-123", page=1, per_page=50)
    assert (ids(page), page.has_more) == (numbered(10, 1), False)


def test_ten_recent_messages_by_default(conversation: Memory) -> None:
    assert ids(conversation.recall("thread-123")) == numbered(60, 51)


def test_last_messages_is_the_default_page(conversation: Memory, open_memory: Callable[..., Memory]) -> None:
    assert ids(open_memory(MemoryConfig(last_messages=5)).recall("thread-123")) == numbered(60, 56)


def test_last_messages_may_be_set_by_the_call(conversation: Memory) -> None:
    assert ids(conversation.recall("thread-123", thread_config=MemoryConfig(last_messages=2))) == numbered(60, 59)


def test_last_messages_false_switches_the_page_off(conversation: Memory) -> None:
    assert ids(conversation.recall("thread-123", thread_config=MemoryConfig(last_messages=False))) == []


def test_per_page_wins_over_last_messages(conversation: Memory) -> None:
    shown = conversation.recall("thread-123", per_page=3, thread_config=MemoryConfig(last_messages=False))
    assert ids(shown) == numbered(60, 58)


def test_ascending_by_order(conversation: Memory) -> None:
    oldest = OrderBy(field="created_at", direction="ASC")
    assert ids(conversation.recall("thread-123", per_page=3, order_by=oldest)) == numbered(1, 3)


def test_a_given_resource_validates_ownership(conversation: Memory) -> None:
    with pytest.raises(OwnershipMismatch):
        conversation.recall("thread-123", resource_id="user-789")


def test_semantic_search_needs_a_vector_store_and_an_embedder(conversation: Memory) -> None:
    with pytest.raises(ConfigurationError):
        conversation.recall(
            "thread-123",
            vector_search_string="What messages are there?",
            thread_config=MemoryConfig(semantic_recall=True),
        )


def test_a_date_range_includes_both_ends(memory: Memory) -> None:
    memory.create_thread(id="thread-123", resource_id="user-456")
    instants = {
        "new year's eve": JANUARY - timedelta(milliseconds=1),
        "new year": JANUARY,
        "june": JUNE,
        "after": JUNE + timedelta(milliseconds=1),
    }
    memory.save_messages([NewMessage(name, "thread-123", "x", created_at=at) for name, at in instants.items()])
    narrowed = MessageFilter(date_range=DateRange(start=JANUARY, end=JUNE))
    assert ids(memory.recall("thread-123", filter=narrowed)) == ["june", "new year"]


# Metadata


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        (BILLING, True),
        (BILLING | {"more": [1, {"nested": None}]}, True),
        (BILLING | {"priority": 2.0}, True),
        (BILLING | {"category": "Billing"}, False),
        (BILLING | {"escalated": 1}, False),
        (BILLING | {"priority": "2"}, False),
        (BILLING | {"archivedAt": "null"}, False),
        ({"category": "billing", "escalated": True, "priority": 2}, False),
        ({}, False),
    ],
    ids=["equal", "more keys", "equal float", "case", "1 is not true", "text", "the word null", "no null", "nothing"],
)
def test_metadata_matches_by_every_key_and_type(memory: Memory, metadata: dict[str, Any], found: bool) -> None:
    memory.create_thread(id="thread-123", resource_id="user-456")
    memory.save_messages([NewMessage("msg-1", "thread-123", "x", metadata=metadata)])
    shown = memory.recall("thread-123", filter=MessageFilter(metadata=BILLING))
    assert ids(shown) == (["msg-1"] if found else [])


@pytest.mark.parametrize(
    "unsupported", [{"a": {"b": 1}}, {"a": [1]}, {"a": float("nan")}, {"a": float("inf")}], ids=str
)
def test_nested_values_and_nan_are_not_supported(memory: Memory, unsupported: Any) -> None:
    with pytest.raises(InvalidFilter):
        memory.recall("thread-123", filter=MessageFilter(metadata=unsupported))


@pytest.mark.parametrize("key", ["1st", "with-dash", "a.b", "k" * 129, "__proto__", "constructor", "prototype"])
def test_keys_are_identifiers(memory: Memory, key: str) -> None:
    with pytest.raises(InvalidFilter):
        memory.recall("thread-123", filter=MessageFilter(metadata={key: 1}))


@pytest.mark.parametrize("key", ["_", "a1", "under_score", "k" * 128])
def test_letters_digits_and_underscores_are_allowed(memory: Memory, key: str) -> None:
    memory.create_thread(id="thread-123", resource_id="user-456")
    memory.save_messages([NewMessage("msg-1", "thread-123", "x", metadata={key: "v"})])
    assert ids(memory.recall("thread-123", filter=MessageFilter(metadata={key: "v"}))) == ["msg-1"]


# Messages by id


def test_one_message_by_id(conversation: Memory) -> None:
    assert ids(conversation.recall("thread-123", include=[Include(id="msg-12")])) == ["msg-12"]


def test_several_messages_by_id_with_context(conversation: Memory) -> None:
    shown = conversation.recall(
        "thread-123",
        include=[
            Include(id="msg-12"),
            Include(id="msg-45", with_previous_messages=3, with_next_messages=1),
        ],
    )
    assert ids(shown) == [*numbered(46, 42), "msg-12"]


def test_included_messages_come_in_addition_to_a_page(conversation: Memory) -> None:
    shown = conversation.recall("thread-123", per_page=2, include=[Include(id="msg-12")])
    assert ids(shown) == ["msg-60", "msg-59", "msg-12"]


def test_an_included_message_may_name_its_thread(conversation: Memory) -> None:
    conversation.create_thread(id="thread-456", resource_id="user-456")
    shown = conversation.recall("thread-456", include=[Include(id="msg-12", thread_id="thread-123")])
    assert ids(shown) == ["msg-12"]


# Threads


@pytest.fixture
def threads(memory: Memory, tick: Callable[[int], None]) -> Memory:
    """Twelve threads of user-123, every other one active, and one of another user."""
    for i in range(12):
        status = "active" if i % 2 else "closed"
        memory.create_thread(id=f"thread-{i}", resource_id="user-123", metadata={"status": status})
        tick(1000)
    memory.create_thread(id="other", resource_id="user-456", metadata={"status": "active"})
    return memory


def test_all_threads_of_a_resource(threads: Memory) -> None:
    result = threads.list_threads(filter=ThreadFilter(resource_id="user-123"), per_page=False)
    assert [thread.id for thread in result.threads] == [f"thread-{i}" for i in range(11, -1, -1)]


def test_the_first_ten_threads(threads: Memory) -> None:
    result = threads.list_threads(filter=ThreadFilter(resource_id="user-123"), page=0, per_page=10)
    assert (len(result.threads), result.total, result.has_more) == (10, 12, True)


def test_active_threads_newest_first(threads: Memory) -> None:
    result = threads.list_threads(
        filter=ThreadFilter(resource_id="user-123", metadata={"status": "active"}),
        order_by=OrderBy(field="created_at", direction="DESC"),
    )
    assert [thread.id for thread in result.threads] == [f"thread-{i}" for i in (11, 9, 7, 5, 3, 1)]


def test_one_thread_by_id(conversation: Memory) -> None:
    thread = conversation.get_thread("thread-123")
    assert thread is not None
    assert (thread.resource_id, thread.title, thread.metadata) == (
        "user-456",
        "Support conversation",
        {"category": "billing"},
    )


def test_an_unknown_thread_is_none(conversation: Memory) -> None:
    assert conversation.get_thread("thread-456") is None


def test_each_message_belongs_to_a_thread_and_a_resource(conversation: Memory) -> None:
    message = conversation.recall("thread-123", per_page=1).messages[0]
    assert (message.thread_id, message.resource_id) == ("thread-123", "user-456")


# Deleting


def test_deleting_messages_by_id(conversation: Memory) -> None:
    assert conversation.delete_messages(["msg-60", "msg-59"]) == 2
    assert ids(conversation.recall("thread-123", per_page=1)) == ["msg-58"]


def test_deleting_all_messages_of_a_thread(conversation: Memory) -> None:
    assert conversation.clear_messages("thread-123") == 60
    assert conversation.recall("thread-123").total == 0
    assert conversation.get_thread("thread-123") is not None


def test_history_survives_a_reopen(conversation: Memory, reopen: Callable[[], Memory]) -> None:
    before = conversation.recall("thread-123", per_page=False)
    assert reopen().recall("thread-123", per_page=False) == before
