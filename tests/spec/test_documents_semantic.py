"""The examples of the documentation of semantic recall, by hand, with the answers it promises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest
from memassay.spec.errors import ConfigurationError, InvalidFilter, Unsupported
from memassay.spec.protocols import Memory
from memassay.spec.types import (
    IndexConfig,
    MemoryConfig,
    MessageRange,
    NewMessage,
    OrderBy,
    RecallResult,
    SemanticRecall,
    TextPart,
    ToolPart,
)

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)
DEADLINE = "What did we discuss about the project deadline?"
ON = MemoryConfig(semantic_recall=True)

TALK = (
    "Hello!",
    "Hello, how can I help?",
    "When is the project due?",
    "The deadline of the project is in May.",
    "Good.",
    "Now the weather.",
    "It will rain.",
    "A coat, then.",
    "Yes, a coat.",
    "Bye.",
    "Bye!",
    "One more thing.",
    "Which?",
    "Nothing.",
    "Fine.",
)


class Words:
    """Texts are near when they share words: a table of words, each a direction of its own."""

    name = "words"
    table = (("deadline", "due", "may"), ("project",), ("weather", "rain", "coat"), ("hello", "bye"))
    dimension = len(table) + 1

    def embed(self, texts: Sequence[str], kind: Literal["document", "query"]) -> list[list[float]]:
        """See protocols.Embedder; a last component keeps texts of other words from having no direction."""
        split = ["".join(c if c.isalpha() else " " for c in text.lower()).split() for text in texts]
        return [[*(float(sum(word in words for word in text)) for words in self.table), 0.1] for text in split]


def ids(result: RecallResult) -> list[str]:
    return [message.id for message in result.messages]


def hits(result: RecallResult) -> list[str]:
    return [hit.id for hit in result.hits]


def asking(**recall: Any) -> MemoryConfig:
    """A configuration with these settings of semantic recall."""
    return MemoryConfig(semantic_recall=SemanticRecall(**recall))


Open = Callable[..., Memory]


def told(memory: Memory) -> Memory:
    """thread-123 of user-456 with a talk of fifteen messages msg-1 …, a minute apart."""
    memory.create_thread(id="thread-123", resource_id="user-456")
    memory.save_messages(
        [
            NewMessage(
                f"msg-{i}",
                "thread-123",
                text,
                role="user" if i % 2 else "assistant",
                created_at=NOON + timedelta(minutes=i),
            )
            for i, text in enumerate(TALK, 1)
        ]
    )
    return memory


@pytest.fixture
def memory(open_memory: Open) -> Memory:
    """A client with semantic recall on."""
    return open_memory(ON, Words())


@pytest.fixture
def talk(memory: Memory) -> Memory:
    """The talk, embedded."""
    return told(memory)


# Quick start: off by default


def test_it_is_off_by_default(open_memory: Open) -> None:
    with pytest.raises(ConfigurationError):
        told(open_memory(None, Words())).recall("thread-123", vector_search_string=DEADLINE)


def test_while_off_nothing_is_embedded(open_memory: Open) -> None:
    described = told(open_memory(None, Words())).semantic_index()
    assert described is not None
    assert described.count == 0


def test_it_needs_an_embedder(open_memory: Open) -> None:
    with pytest.raises(ConfigurationError):
        open_memory(ON).recall("thread-123", vector_search_string=DEADLINE)


@pytest.mark.parametrize("role", ["user", "assistant", "tool"])
def test_all_new_messages_are_embedded(memory: Memory, role: str) -> None:
    memory.create_thread(id="thread-123", resource_id="user-456")
    parts = [TextPart("the deadline"), ToolPart("call-1", "calendar", {"month": 5}, {"day": 1})]
    memory.save_messages([NewMessage("m", "thread-123", parts, role=role)])
    assert hits(memory.recall("thread-123", vector_search_string=DEADLINE)) == ["m"]


# recall()


def test_basic_recall_is_similar_to_listing(talk: Memory) -> None:
    result = talk.recall("thread-123", per_page=50)
    assert (ids(result), hits(result)) == ([f"msg-{i}" for i in range(15, 0, -1)], [])


def test_semantic_recall_finds_messages_by_meaning(talk: Memory) -> None:
    result = talk.recall("thread-123", vector_search_string=DEADLINE, thread_config=asking(top_k=2))
    assert sorted(hits(result)) == ["msg-3", "msg-4"]


def test_semantic_recall_may_be_turned_on_by_the_call(open_memory: Open) -> None:
    memory = open_memory(None, Words())
    memory.create_thread(id="thread-123", resource_id="user-456")
    memory.save_messages([NewMessage("m", "thread-123", "the deadline")], thread_config=ON)
    assert hits(memory.recall("thread-123", vector_search_string=DEADLINE, thread_config=ON)) == ["m"]


def test_true_finds_four(talk: Memory) -> None:
    assert len(hits(talk.recall("thread-123", vector_search_string=DEADLINE, thread_config=ON))) == 4


def test_what_is_found_comes_beside_the_recent_history(talk: Memory) -> None:
    result = talk.recall("thread-123", vector_search_string=DEADLINE, per_page=2, thread_config=asking(top_k=2))
    assert ids(result) == ["msg-15", "msg-14", "msg-6", "msg-5", "msg-4", "msg-3", "msg-2", "msg-1"]


# Configuring recall: topK, messageRange, scope, filter


@pytest.mark.parametrize("top_k", [1, 3, 10])
def test_top_k_is_the_number_of_similar_messages(talk: Memory, top_k: int) -> None:
    result = talk.recall("thread-123", vector_search_string=DEADLINE, thread_config=asking(top_k=top_k))
    assert len(result.hits) == top_k


@pytest.mark.parametrize(
    ("around", "expected"),
    [
        (2, ["msg-2", "msg-3", "msg-4", "msg-5", "msg-6"]),
        (0, ["msg-4"]),
        (MessageRange(before=1, after=0), ["msg-3", "msg-4"]),
    ],
)
def test_message_range_is_the_messages_around_each(talk: Memory, around: Any, expected: list[str]) -> None:
    result = talk.recall(
        "thread-123",
        vector_search_string="The deadline of the project is in May.",
        per_page=0,
        order_by=OrderBy(direction="ASC"),
        thread_config=asking(top_k=1, message_range=around),
    )
    assert ids(result) == expected


@pytest.fixture
def projects(memory: Memory) -> Memory:
    """Threads of one user on three projects, each with a message about a deadline; and one of another user."""
    about: dict[str, dict[str, Any]] = {
        "a-work": {"projectId": "project-a", "category": "work", "priority": 3},
        "a-personal": {"projectId": "project-a", "category": "personal", "priority": 1},
        "a-research": {"projectId": "project-a", "category": "research", "priority": 5},
        "b-work": {"projectId": "project-b", "category": "work", "priority": 4},
        "none": {},
    }
    for name, metadata in about.items():
        memory.create_thread(id=name, resource_id="user-456", metadata=metadata)
        memory.save_messages([NewMessage(f"{name}-1", name, "the deadline")])
    memory.create_thread(id="other", resource_id="user-789", metadata=about["a-work"])
    memory.save_messages([NewMessage("other-1", "other", "the deadline")])
    return memory


def across(memory: Memory, filter: dict[str, Any] | None = None, **recall: Any) -> list[str]:
    """The threads in which a search over the user's threads finds something, sorted."""
    config = asking(**{"top_k": 10, "scope": "resource", "message_range": 0, "filter": filter, **recall})
    result = memory.recall(
        "none", resource_id="user-456", vector_search_string=DEADLINE, per_page=0, thread_config=config
    )
    return sorted(message.thread_id for message in result.messages)


def test_scope_resource_searches_all_threads_of_the_resource(projects: Memory) -> None:
    assert across(projects) == ["a-personal", "a-research", "a-work", "b-work", "none"]


def test_scope_thread_searches_the_current_thread(projects: Memory) -> None:
    assert across(projects, scope="thread") == ["none"]


def test_the_example_of_all_four_settings(projects: Memory) -> None:
    found = across(projects, {"projectId": {"$eq": "project-a"}}, top_k=3, message_range=2)
    assert found == ["a-personal", "a-research", "a-work"]


def test_the_settings_may_be_the_stores(projects: Memory, open_memory: Open) -> None:
    recall = SemanticRecall(top_k=3, message_range=2, scope="resource", filter={"projectId": {"$eq": "project-a"}})
    memory = open_memory(MemoryConfig(semantic_recall=recall), Words())
    result = memory.recall("none", resource_id="user-456", vector_search_string=DEADLINE)
    assert sorted(hits(result)) == ["a-personal-1", "a-research-1", "a-work-1"]


# Metadata filtering


def test_a_project_and_categories(projects: Memory) -> None:
    filter = {"projectId": {"$eq": "project-a"}, "category": {"$in": ["work", "personal"]}}
    assert across(projects, filter) == ["a-personal", "a-work"]


def test_by_project(projects: Memory) -> None:
    assert across(projects, {"projectId": {"$eq": "project-b"}}) == ["b-work"]


def test_by_categories(projects: Memory) -> None:
    assert across(projects, {"category": {"$in": ["work", "research"]}}) == ["a-research", "a-work", "b-work"]


def test_by_project_and_priority(projects: Memory) -> None:
    filter = {"$and": [{"projectId": {"$eq": "project-a"}}, {"priority": {"$gte": 3}}]}
    assert across(projects, filter) == ["a-research", "a-work"]


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({"$and": [{"category": "work"}, {"priority": 4}]}, ["b-work"]),
        ({"priority": {"$eq": 5}}, ["a-research"]),
        ({"priority": {"$gt": 4}}, ["a-research"]),
        ({"priority": {"$gte": 4}}, ["a-research", "b-work"]),
        ({"category": {"$in": ["personal"]}}, ["a-personal"]),
        ({"priority": {"$lt": 3}}, ["a-personal"]),
        ({"priority": {"$lte": 3}}, ["a-personal", "a-work"]),
        ({"projectId": {"$ne": "project-a"}}, ["b-work", "none"]),
        ({"category": {"$nin": ["work", "personal"]}}, ["a-research", "none"]),
        ({"$or": [{"priority": 1}, {"projectId": "project-b"}]}, ["a-personal", "b-work"]),
    ],
    ids=["$and", "$eq", "$gt", "$gte", "$in", "$lt", "$lte", "$ne", "$nin", "$or"],
)
def test_each_operator(projects: Memory, filter: dict[str, Any], expected: list[str]) -> None:
    assert across(projects, filter) == expected


def test_there_is_no_other_operator(projects: Memory) -> None:
    with pytest.raises(InvalidFilter):
        across(projects, {"projectId": {"$regex": "^project"}})


def test_a_thread_updated_later_keeps_its_old_metadata_in_the_index(projects: Memory) -> None:
    projects.update_thread("none", metadata={"projectId": "project-b"})
    assert across(projects, {"projectId": "project-b"}) == ["b-work"]


def test_messages_saved_again_take_the_new_metadata(projects: Memory) -> None:
    projects.update_thread("none", metadata={"projectId": "project-b"})
    projects.save_messages([NewMessage("none-1", "none", "the deadline")])
    assert across(projects, {"projectId": "project-b"}) == ["b-work", "none"]


# Index configuration


def test_an_hnsw_index_of_inner_products_reaches_the_engine(open_memory: Open) -> None:
    wanted = IndexConfig(type="hnsw", metric="dotproduct", m=16, ef_construction=64)
    try:
        memory = open_memory(asking(top_k=5, message_range=2, index_config=wanted), Words())
    except Unsupported:
        pytest.skip("the engine has no index of type hnsw")
    described = memory.semantic_index()
    assert described is not None
    assert (described.metric, described.config) == (
        "dotproduct",
        IndexConfig(type="hnsw", m=16, ef_construction=64),
    )


def test_an_index_of_inner_products_scores_by_them(open_memory: Open) -> None:
    memory = open_memory(asking(top_k=1, index_config=IndexConfig(type="flat", metric="dotproduct")), Words())
    memory.create_thread(id="thread-123", resource_id="user-456")
    memory.save_messages([NewMessage("m", "thread-123", "deadline, deadline")])
    result = memory.recall("thread-123", vector_search_string="deadline")
    assert result.hits[0].score == pytest.approx(2.01, abs=1e-4)


# Disabling semantic recall


def test_it_may_be_turned_off_by_the_call(talk: Memory) -> None:
    off = MemoryConfig(semantic_recall=False)
    with pytest.raises(ConfigurationError):
        talk.recall("thread-123", vector_search_string=DEADLINE, thread_config=off)


def test_a_message_saved_while_off_is_not_found(talk: Memory) -> None:
    talk.save_messages([NewMessage("late", "thread-123", DEADLINE)], thread_config=MemoryConfig(semantic_recall=False))
    found = hits(talk.recall("thread-123", vector_search_string=DEADLINE, thread_config=asking(top_k=100)))
    assert "late" not in found
