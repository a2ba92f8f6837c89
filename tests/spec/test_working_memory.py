"""Working memory by hand, on every backend: values, scopes, lives, schemas, refusals, many writers (WM-1)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from memassay.spec.errors import (
    AlreadyExists,
    ConfigurationError,
    InvalidRequest,
    OwnershipMismatch,
    StoreError,
    ThreadNotFound,
)
from memassay.spec.protocols import Memory
from memassay.spec.types import MemoryConfig, NewMessage, WorkingMemory

ON = MemoryConfig(working_memory=WorkingMemory(enabled=True))
OF_RESOURCE = MemoryConfig(working_memory=WorkingMemory(enabled=True, scope="resource"))
PROFILE: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
}
BY_SCHEMA = MemoryConfig(working_memory=WorkingMemory(enabled=True, schema=PROFILE))
OpenMemory = Callable[..., Memory]


@pytest.fixture
def notes(open_memory: OpenMemory) -> Memory:
    """Threads t1 and t2 of r1, t3 of r2; working memory of threads."""
    memory = open_memory(ON)
    for thread, resource in (("t1", "r1"), ("t2", "r1"), ("t3", "r2")):
        memory.create_thread(id=thread, resource_id=resource)
    return memory


def test_it_is_none_before_the_first_update(notes: Memory) -> None:
    assert notes.get_working_memory("t1") is None


@pytest.mark.parametrize(
    "value", ["", " padded ", "# User\n- \uae40 \u00e9 e\u0301 \U0001f600", "'; \"%_\\", "x" * (1 << 20)]
)
def test_a_value_comes_back_exactly(notes: Memory, value: str) -> None:
    notes.update_working_memory("t1", value)
    assert notes.get_working_memory("t1") == value


def test_an_update_replaces_the_value_whole(notes: Memory) -> None:
    notes.update_working_memory("t1", "a long value")
    notes.update_working_memory("t1", "short")
    assert notes.get_working_memory("t1") == "short"


def test_an_update_changes_nothing_else(notes: Memory, tick: Callable[[int], None]) -> None:
    before = notes.get_thread("t1")
    tick(1000)
    notes.update_working_memory("t1", "x")
    assert notes.get_thread("t1") == before


def test_updating_the_thread_leaves_the_value(notes: Memory) -> None:
    notes.update_working_memory("t1", "x")
    notes.update_thread("t1", title="new", metadata={"k": 1})
    assert notes.get_working_memory("t1") == "x"


def test_saving_and_clearing_messages_leaves_the_value(notes: Memory) -> None:
    notes.update_working_memory("t1", "x")
    notes.save_messages([NewMessage("a", "t1", "hello")])
    notes.clear_messages("t1")
    assert notes.get_working_memory("t1") == "x"


def test_a_second_client_sees_it_at_once(notes: Memory, open_memory: OpenMemory) -> None:
    other = open_memory(ON)
    notes.update_working_memory("t1", "x")
    assert other.get_working_memory("t1") == "x"


def test_it_survives_a_reopen(
    notes: Memory, open_memory: OpenMemory, namespace: Any, request: pytest.FixtureRequest
) -> None:
    if not namespace.backend.capabilities(namespace.url).durable:
        pytest.skip("it is not durable")
    notes.update_working_memory("t1", "the thread's")
    notes.update_working_memory("t1", "the resource's", thread_config=OF_RESOURCE)
    namespace.close()
    again = open_memory(ON)
    assert again.get_working_memory("t1") == "the thread's"
    assert again.get_working_memory("t2", thread_config=OF_RESOURCE) == "the resource's"


# Scopes


def test_threads_are_apart(notes: Memory) -> None:
    notes.update_working_memory("t1", "x")
    assert notes.get_working_memory("t2") is None


def test_a_resource_shares_one_value_among_its_threads(notes: Memory) -> None:
    notes.update_working_memory("t1", "x", thread_config=OF_RESOURCE)
    shown = [notes.get_working_memory(name, thread_config=OF_RESOURCE) for name in ("t1", "t2", "t3")]
    assert shown == ["x", "x", None]


def test_a_thread_and_its_resource_have_a_value_each(notes: Memory) -> None:
    notes.update_working_memory("t1", "the resource's", thread_config=OF_RESOURCE)
    notes.update_working_memory("t1", "the thread's")
    assert notes.get_working_memory("t1") == "the thread's"
    assert notes.get_working_memory("t1", thread_config=OF_RESOURCE) == "the resource's"


def test_a_resource_and_a_thread_of_one_name_are_apart(notes: Memory) -> None:
    notes.create_thread(id="r1", resource_id="t1")
    notes.update_working_memory("r1", "the thread r1")
    notes.update_working_memory("t1", "the resource r1", thread_config=OF_RESOURCE)
    assert notes.get_working_memory("r1") == "the thread r1"
    assert notes.get_working_memory("r1", thread_config=OF_RESOURCE) is None


# Lives


def test_a_threads_value_dies_with_it(notes: Memory) -> None:
    notes.update_working_memory("t1", "x")
    notes.delete_thread("t1")
    notes.create_thread(id="t1", resource_id="r1")
    assert notes.get_working_memory("t1") is None


def test_a_resources_value_outlives_all_its_threads(notes: Memory) -> None:
    notes.update_working_memory("t3", "x", thread_config=OF_RESOURCE)
    notes.delete_thread("t3")
    notes.create_thread(id="t4", resource_id="r2")
    assert notes.get_working_memory("t4", thread_config=OF_RESOURCE) == "x"


def test_a_threads_value_is_cloned_with_it(notes: Memory) -> None:
    notes.update_working_memory("t1", "x")
    notes.clone_thread("t1", new_thread_id="c1", resource_id="r2")
    notes.update_working_memory("t1", "changed")
    assert (notes.get_working_memory("c1"), notes.get_working_memory("t1")) == ("x", "changed")


def test_a_refused_clone_copies_nothing(notes: Memory) -> None:
    notes.update_working_memory("t1", "x")
    with pytest.raises(AlreadyExists):
        notes.clone_thread("t1", new_thread_id="t2")
    assert notes.get_working_memory("t2") is None


# Schemas


def test_what_satisfies_the_schema_comes_back_as_it_was_given(notes: Memory) -> None:
    given = '{ "age": 30,\n  "name": "Kim" }'
    notes.update_working_memory("t1", given, thread_config=BY_SCHEMA)
    assert notes.get_working_memory("t1") == given


@pytest.mark.parametrize(
    "value", ["{}", '{"name": 1}', '{"name": "a", "age": 1.5}', "[]", "name: Kim", "", '{"name": NaN}']
)
def test_a_violation_is_refused_and_the_old_value_stays(notes: Memory, value: str) -> None:
    notes.update_working_memory("t1", '{"name": "Kim"}', thread_config=BY_SCHEMA)
    with pytest.raises(InvalidRequest):
        notes.update_working_memory("t1", value, thread_config=BY_SCHEMA)
    assert notes.get_working_memory("t1") == '{"name": "Kim"}'


def test_a_schema_may_be_of_another_draft(notes: Memory) -> None:
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "prefixItems": [{"type": "string"}]}
    config = MemoryConfig(working_memory=WorkingMemory(enabled=True, schema=schema))
    with pytest.raises(InvalidRequest):
        notes.update_working_memory("t1", "[1]", thread_config=config)


# Refusals


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"enabled": False}, ConfigurationError),
        ({"enabled": True, "template": "# User", "schema": PROFILE}, ConfigurationError),
        ({"enabled": True, "schema": {"type": "text"}}, ConfigurationError),
        ({"enabled": True, "schema": {"$schema": "https://example.org/none"}}, ConfigurationError),
        ({"enabled": True, "schema": {"pattern": "("}}, ConfigurationError),
        ({"enabled": True, "schema": {"const": float("nan")}}, ConfigurationError),
        ({"enabled": 1}, InvalidRequest),
        ({"enabled": True, "scope": "all"}, InvalidRequest),
        ({"enabled": True, "template": 5}, InvalidRequest),
        ({"enabled": True, "schema": "{}"}, InvalidRequest),
    ],
)
def test_a_wrong_configuration_is_refused_when_it_is_given(
    open_memory: OpenMemory, notes: Memory, given: dict[str, Any], error: type[StoreError]
) -> None:
    config = MemoryConfig(working_memory=WorkingMemory(**given))
    for call in (
        lambda: notes.get_working_memory("t1", thread_config=config),
        lambda: notes.update_working_memory("t1", '{"name": "a"}', thread_config=config),
    ):
        with pytest.raises(error):
            call()
    assert notes.get_working_memory("t1") is None


@pytest.mark.parametrize("schema", [{"$ref": "https://example.org/schema"}, {"$ref": "#/$defs/none"}, {"$ref": "#"}])
def test_a_schema_that_refers_to_what_is_not_in_it_is_refused(notes: Memory, schema: dict[str, Any]) -> None:
    config = MemoryConfig(working_memory=WorkingMemory(enabled=True, schema=schema))
    with pytest.raises(ConfigurationError):
        notes.update_working_memory("t1", "{}", thread_config=config)


def test_a_store_is_not_opened_with_a_template_and_a_schema(open_memory: OpenMemory) -> None:
    with pytest.raises(ConfigurationError):
        open_memory(MemoryConfig(working_memory=WorkingMemory(enabled=True, template="x", schema={})))


def test_it_is_off_by_default(memory: Memory) -> None:
    memory.create_thread(id="t1", resource_id="r1")
    with pytest.raises(ConfigurationError):
        memory.get_working_memory("t1")
    with pytest.raises(ConfigurationError):
        memory.update_working_memory("t1", "x")


@pytest.mark.parametrize("value", [None, 5, {"name": "Kim"}, "a\0b", "\ud83d"])
def test_what_is_no_text_is_refused(notes: Memory, value: Any) -> None:
    notes.update_working_memory("t1", "old")
    with pytest.raises(InvalidRequest):
        notes.update_working_memory("t1", value)
    assert notes.get_working_memory("t1") == "old"


def test_an_unknown_thread_has_none_and_cannot_be_updated(notes: Memory) -> None:
    assert notes.get_working_memory("nowhere") is None
    for config in (ON, OF_RESOURCE):
        with pytest.raises(ThreadNotFound):
            notes.update_working_memory("nowhere", "x", thread_config=config)
    with pytest.raises(ThreadNotFound):
        notes.get_working_memory("nowhere", resource_id="r1")


@pytest.mark.parametrize("config", [ON, OF_RESOURCE])
def test_another_resource_is_refused(notes: Memory, config: MemoryConfig) -> None:
    notes.update_working_memory("t1", "mine", resource_id="r1", thread_config=config)
    with pytest.raises(OwnershipMismatch):
        notes.get_working_memory("t1", resource_id="r2", thread_config=config)
    with pytest.raises(OwnershipMismatch):
        notes.update_working_memory("t1", "theirs", resource_id="r2", thread_config=config)
    assert notes.get_working_memory("t1", resource_id="r1", thread_config=config) == "mine"


# At the same time


@pytest.mark.parametrize("config", [ON, OF_RESOURCE])
def test_writers_at_the_same_time_replace_whole_values(
    notes: Memory, open_memory: OpenMemory, config: MemoryConfig
) -> None:
    values = [letter * 2_000 for letter in "abcdefgh"]
    clients = [open_memory(config) for _ in values]
    notes.update_working_memory("t1", values[0], thread_config=config)

    def write(number: int) -> set[str | None]:
        seen: set[str | None] = set()
        for _ in range(5):
            clients[number].update_working_memory("t1", values[number])
            seen.add(clients[number].get_working_memory("t1"))
        return seen

    with ThreadPoolExecutor(len(values)) as pool:
        seen = set[str | None]().union(*pool.map(write, range(len(values))))
    assert seen <= {*values}
    assert notes.get_working_memory("t1", thread_config=config) in values


def test_writers_of_values_and_of_metadata_lose_nothing(notes: Memory, open_memory: OpenMemory) -> None:
    writers = [open_memory(ON) for _ in range(8)]

    def write(number: int) -> None:
        if number % 2:
            writers[number].update_thread("t1", metadata={f"k{number}": number})
        else:
            writers[number].update_working_memory("t1", "x")

    with ThreadPoolExecutor(len(writers)) as pool:
        list(pool.map(write, range(len(writers))))
    thread = notes.get_thread("t1")
    assert thread is not None
    assert (thread.metadata, notes.get_working_memory("t1")) == ({f"k{n}": n for n in (1, 3, 5, 7)}, "x")
