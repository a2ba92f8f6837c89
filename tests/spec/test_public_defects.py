"""Defects reported in public against memory stores, each with its smallest input and the value that is right.

Every test runs on every backend. The number in a test's name is the row of the project's list of defects; the
public reports are named by the first test of each row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from memassay.spec.errors import AlreadyExists, InvalidFilter, InvalidRequest, OwnershipMismatch, ThreadNotFound
from memassay.spec.protocols import Memory
from memassay.spec.types import (
    DateRange,
    Include,
    MemoryConfig,
    Message,
    MessageFilter,
    MessageUpdate,
    NewMessage,
    OrderBy,
    RecallResult,
    ThreadFilter,
)

T0 = datetime(2024, 3, 1, 12, tzinfo=UTC)
OLDEST_FIRST = OrderBy(direction="ASC")
NEWEST_FIRST = OrderBy(direction="DESC")


def after(microseconds: int) -> datetime:
    """T0 and so many microseconds."""
    return T0 + timedelta(microseconds=microseconds)


def new(id: str, ms: float | None = 0, thread: str = "t", **given: Any) -> NewMessage:
    """A message at T0 + ms; None leaves the instant to the clock."""
    at = None if ms is None else T0 + timedelta(milliseconds=ms)
    return NewMessage(id, thread, given.pop("content", id), created_at=at, **given)


def with_metadata(memory: Memory, *objects: Mapping[str, Any]) -> None:
    """A thread t with messages m1, m2, … of this metadata."""
    memory.create_thread(id="t", resource_id="r")
    memory.save_messages([new(f"m{i}", i, metadata=metadata) for i, metadata in enumerate(objects, 1)])


def ids(result: RecallResult | Sequence[Message]) -> list[str]:
    """The ids in the order returned."""
    return [message.id for message in (result.messages if isinstance(result, RecallResult) else result)]


def listed(memory: Memory, thread: str = "t") -> list[str]:
    """All ids of a thread, oldest first."""
    return ids(memory.recall(thread, per_page=False, order_by=OLDEST_FIRST))


def matching(memory: Memory, **metadata: Any) -> list[str]:
    """The ids that a metadata filter lets through, oldest first."""
    narrowed = MessageFilter(metadata=metadata)
    return ids(memory.recall("t", per_page=False, order_by=OLDEST_FIRST, filter=narrowed))


@pytest.fixture
def ten(memory: Memory) -> Memory:
    """A thread t with messages m1 … m10, a millisecond apart."""
    memory.create_thread(id="t", resource_id="r")
    memory.save_messages([new(f"m{i}", i) for i in range(1, 11)])
    return memory


@pytest.fixture
def tied(memory: Memory) -> Memory:
    """A thread t with messages m1 … m5 of one instant."""
    memory.create_thread(id="t", resource_id="r")
    memory.save_messages([new(f"m{i}") for i in range(1, 6)])
    return memory


# Order


def test_b02_a_batch_of_one_instant_keeps_its_order(memory: Memory) -> None:
    """mastra-ai/mastra#3654, mastra-ai/mastra#3603, mastra-ai/mastra#3448"""
    memory.create_thread(id="t", resource_id="r")
    memory.save_messages([new(name) for name in ("z", "a", "m", "b")])
    assert listed(memory) == ["z", "a", "m", "b"]


def test_b02_descending_is_the_reverse_of_ascending(memory: Memory) -> None:
    memory.create_thread(id="t", resource_id="r")
    memory.save_messages([new(name) for name in ("z", "a", "m", "b")])
    assert ids(memory.recall("t", per_page=False, order_by=NEWEST_FIRST)) == ["b", "m", "a", "z"]


def test_b03_the_last_messages_are_the_newest(ten: Memory) -> None:
    """mastra-ai/mastra#9991, mastra-ai/mastra#10543"""
    assert ids(ten.recall("t", thread_config=MemoryConfig(last_messages=3))) == ["m10", "m9", "m8"]


def test_b03_an_ascending_page_begins_with_the_oldest(ten: Memory) -> None:
    assert ids(ten.recall("t", per_page=3, order_by=OLDEST_FIRST)) == ["m1", "m2", "m3"]


def test_b03_the_second_page_continues_the_first(ten: Memory) -> None:
    assert ids(ten.recall("t", per_page=3, page=1, order_by=NEWEST_FIRST)) == ["m7", "m6", "m5"]


@pytest.mark.parametrize(
    ("order", "expected"),
    [(NEWEST_FIRST, ["m5", "m4", "m3"]), (OLDEST_FIRST, ["m1", "m2", "m3", "m4", "m5"])],
    ids=["newest first", "oldest first"],
)
def test_b04_has_more_depends_on_the_page_alone(tied: Memory, order: OrderBy, expected: list[str]) -> None:
    """mastra-ai/mastra#19576"""
    shown = tied.recall("t", per_page=3, order_by=order, include=[Include("m5", with_previous_messages=1)])
    assert (ids(shown), shown.total, shown.has_more) == (expected, 5, True)


def test_b04_has_more_is_the_same_without_include(tied: Memory) -> None:
    assert tied.recall("t", per_page=3).has_more is True


@pytest.fixture
def long(memory: Memory) -> Memory:
    """A thread t with 10,020 messages m0 … m10019: more than search engines page through."""
    memory.create_thread(id="t", resource_id="r")
    memory.save_messages([new(f"m{i}", i, content="x") for i in range(10_020)])
    return memory


def test_b05_b08_a_thread_longer_than_the_engines_window_is_whole(long: Memory) -> None:
    """mastra-ai/mastra#19562, mastra-ai/mastra#19550, docarray/docarray#430, iDigBio/idigbio-search-api#18"""
    everything = long.recall("t", per_page=False, order_by=OLDEST_FIRST)
    assert (len(everything.messages), everything.total) == (10_020, 10_020)
    neighbours = long.recall("t", include=[Include("m10019", with_previous_messages=2)])
    assert ids(neighbours) == ["m10019", "m10018", "m10017"]
    deep = long.recall("t", page=100, per_page=100, order_by=OLDEST_FIRST)
    assert ids(deep) == [f"m{i}" for i in range(10_000, 10_020)]


# Time


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (DateRange(start=after(2000)), ["m2", "m3"]),
        (DateRange(start=after(2000), start_exclusive=True), ["m3"]),
        (DateRange(end=after(2000), end_exclusive=True), ["m1"]),
        (DateRange(start=after(2000), end=after(2000)), ["m2"]),
        (DateRange(start=after(2000), end=after(2000), start_exclusive=True), []),
        (DateRange(start=after(2000), end=after(2000), end_exclusive=True), []),
        (DateRange(start=after(3000), end=after(1000)), []),
    ],
    ids=["start", "start exclusive", "end exclusive", "both", "both, start excl.", "both, end excl.", "reversed"],
)
def test_b10_bounds_are_inclusive_unless_marked_exclusive(
    memory: Memory, given: DateRange, expected: list[str]
) -> None:
    """mastra-ai/mastra#11479, mastra-ai/mastra#14014"""
    memory.create_thread(id="t", resource_id="r")
    memory.save_messages([new(f"m{i}", i) for i in (1, 2, 3)])
    narrowed = MessageFilter(date_range=given)
    assert ids(memory.recall("t", per_page=False, order_by=OLDEST_FIRST, filter=narrowed)) == expected


@pytest.fixture
def fine(memory: Memory) -> Memory:
    """A thread t with three messages of one millisecond, given with microseconds."""
    memory.create_thread(id="t", resource_id="r")
    memory.save_messages(
        [
            NewMessage("a", "t", "x", created_at=after(123_456)),
            NewMessage("b", "t", "x", created_at=after(123_457)),
            NewMessage("c", "t", "x", created_at=after(123_999)),
        ]
    )
    return memory


def test_b11_instants_come_back_floored_to_the_millisecond(fine: Memory) -> None:
    """TanStack/db#913, twentyhq/twenty#21083"""
    shown = fine.recall("t", per_page=False).messages
    assert {message.created_at for message in shown} == {after(123_000)}


def test_b11_the_instant_read_finds_its_rows(fine: Memory) -> None:
    at = fine.recall("t", per_page=False).messages[0].created_at
    exactly = MessageFilter(date_range=DateRange(start=at, end=at))
    assert fine.recall("t", per_page=0, filter=exactly).total == 3


def test_b11_a_walk_in_pages_of_one_visits_each_row_once(fine: Memory) -> None:
    walk = [fine.recall("t", page=page, per_page=1, order_by=OLDEST_FIRST) for page in range(3)]
    assert [ids(page) for page in walk] == [["a"], ["b"], ["c"]]


def test_b12_what_is_returned_is_what_is_sorted(memory: Memory) -> None:
    """elastic/elasticsearch#10005, elastic/elasticsearch#78921"""
    memory.create_thread(id="t", resource_id="r")
    memory.save_messages([NewMessage("a", "t", "x", created_at=after(123_400))])
    memory.save_messages([NewMessage("b", "t", "x", created_at=after(123_100))])
    assert listed(memory) == ["a", "b"]


# Include


def test_b13_neighbours_are_those_of_the_listing_among_ties(tied: Memory) -> None:
    """mastra-ai/mastra#14022"""
    window = Include("m3", with_previous_messages=1, with_next_messages=1)
    assert ids(tied.recall("t", include=[window], order_by=OLDEST_FIRST)) == ["m2", "m3", "m4"]


def test_b13_a_window_past_the_end_is_clipped(tied: Memory) -> None:
    assert ids(tied.recall("t", include=[Include("m5", with_next_messages=2)])) == ["m5"]


def test_b13_overlapping_windows_bring_each_message_once(tied: Memory) -> None:
    windows = [Include(name, with_previous_messages=1, with_next_messages=1) for name in ("m2", "m3")]
    assert ids(tied.recall("t", include=windows, order_by=OLDEST_FIRST)) == ["m1", "m2", "m3", "m4"]


@pytest.fixture
def two_resources(memory: Memory) -> Memory:
    """Thread t1 of r1 with a secret, thread t2 of r2 with another message."""
    memory.create_thread(id="t1", resource_id="r1")
    memory.create_thread(id="t2", resource_id="r2")
    memory.save_messages([new("secret", thread="t1"), new("other", thread="t2")])
    return memory


def test_b15_another_resources_thread_is_refused(two_resources: Memory) -> None:
    """mastra-ai/mastra#21863"""
    with pytest.raises(OwnershipMismatch):
        two_resources.recall("t1", resource_id="r2")


def test_b15_include_never_enters_a_thread_of_another_resource(two_resources: Memory) -> None:
    shown = two_resources.recall("t2", resource_id="r2", per_page=False, include=[Include("secret", "t1")])
    assert ids(shown) == ["other"]


def test_b15_include_without_a_thread_stays_in_the_requests(two_resources: Memory) -> None:
    assert ids(two_resources.recall("t2", include=[Include("secret")])) == []


@pytest.fixture
def two_threads(memory: Memory) -> Memory:
    """Threads t1 (a1, a2, a3) and t2 (b1, b2) of one resource, interleaved in time."""
    memory.create_thread(id="t1", resource_id="r")
    memory.create_thread(id="t2", resource_id="r")
    memory.save_messages([new("a1", 1, "t1"), new("a2", 3, "t1"), new("a3", 5, "t1")])
    memory.save_messages([new("b1", 2, "t2"), new("b2", 4, "t2")])
    return memory


def test_b16_an_entry_without_a_thread_means_the_requests(two_threads: Memory) -> None:
    """mastra-ai/mastra#20303"""
    assert ids(two_threads.recall("t1", include=[Include("b1", with_next_messages=1)])) == []


def test_b16_neighbours_are_those_of_the_messages_own_thread(two_threads: Memory) -> None:
    shown = two_threads.recall("t1", include=[Include("b1", "t2", with_next_messages=1)], order_by=OLDEST_FIRST)
    assert ids(shown) == ["b1", "b2"]


# Filters


def test_b19_null_matches_explicit_null_only(memory: Memory) -> None:
    """mastra-ai/mastra#19991, mastra-ai/mastra#16376"""
    with_metadata(memory, {"k": None}, {}, {"k": "null"}, {"k": 0}, {"k": False}, {"k": ""})
    assert matching(memory, k=None) == ["m1"]


def test_b19_a_page_counts_the_filtered_rows(memory: Memory) -> None:
    with_metadata(memory, {"k": None}, {}, {"k": "null"}, {"k": None})
    page = memory.recall("t", per_page=1, filter=MessageFilter(metadata={"k": None}))
    assert (ids(page), page.total, page.has_more) == (["m4"], 2, True)


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ({"p": 5}, True),
        ({"p": 5.0}, True),
        ({"p": "5"}, False),
        ({"b": True}, True),
        ({"b": 1}, False),
        ({"b": "true"}, False),
        ({"s": "5"}, True),
        ({"s": 5}, False),
    ],
    ids=str,
)
def test_b31_filters_compare_with_type(memory: Memory, condition: dict[str, Any], found: bool) -> None:
    """headroomlabs-ai/headroom#3240"""
    with_metadata(memory, {"p": 5, "b": True, "s": "5"})
    assert matching(memory, **condition) == (["m1"] if found else [])


@pytest.mark.parametrize("length", [255, 256, 257, 8191, 8192, 32_766, 32_767])
def test_b34_strings_of_any_length_are_found(memory: Memory, length: int) -> None:
    """elastic/elasticsearch#24256, huridocs/uwazi#7524"""
    with_metadata(memory, {"k": "a" * length}, {"k": "a" * (length - 1) + "b"})
    assert matching(memory, k="a" * length) == ["m1"]


def test_b34_strings_of_many_bytes_are_found(memory: Memory) -> None:
    with_metadata(memory, {"k": "한" * 11_000})
    assert matching(memory, k="한" * 11_000) == ["m1"]


# Writes


def test_b36_an_update_merges_metadata(memory: Memory) -> None:
    """mastra-ai/mastra#16216"""
    memory.create_thread(id="t", resource_id="r", metadata={"a": 1})
    assert memory.update_thread("t", metadata={"b": 2}).metadata == {"a": 1, "b": 2}


def test_b36_an_update_of_the_title_keeps_metadata(memory: Memory) -> None:
    memory.create_thread(id="t", resource_id="r", metadata={"a": 1})
    memory.update_thread("t", title="new")
    found = memory.get_thread("t")
    assert found is not None
    assert (found.title, found.metadata) == ("new", {"a": 1})


def test_b36_creating_an_existing_thread_changes_nothing(memory: Memory) -> None:
    before = memory.create_thread(id="t", resource_id="r", metadata={"a": 1})
    with pytest.raises(AlreadyExists):
        memory.create_thread(id="t", resource_id="r")
    assert memory.get_thread("t") == before


def test_b37_saving_an_id_again_replaces_it_and_keeps_its_instant(memory: Memory) -> None:
    """mastra-ai/mastra#5286, mastra-ai/mastra#5214"""
    memory.create_thread(id="t", resource_id="r")
    memory.save_messages([new("x", 7, content="A")])
    memory.save_messages([NewMessage("x", "t", "B")])
    shown = memory.recall("t", per_page=False)
    assert [(m.content, m.created_at) for m in shown.messages] == [("B", after(7000))]


def test_b37_saving_an_id_into_another_thread_moves_it(memory: Memory) -> None:
    for thread in ("t1", "t2"):
        memory.create_thread(id=thread, resource_id="r")
    memory.save_messages([new("x", thread="t1", content="B")])
    memory.save_messages([new("x", thread="t2", content="C")])
    totals = memory.recall("t1").total, memory.recall("t2").total
    assert (totals, memory.recall("t2").messages[0].content) == ((0, 1), "C")


def test_b39_an_update_keeps_what_it_does_not_name(memory: Memory) -> None:
    """mem0ai/mem0#5160"""
    with_metadata(memory, {"a": 1, "b": {"c": 2}, "d": None})
    memory.update_messages([MessageUpdate("m1", content="changed")])
    assert memory.recall("t").messages[0].metadata == {"a": 1, "b": {"c": 2}, "d": None}


def test_b39_an_update_of_metadata_merges(memory: Memory) -> None:
    with_metadata(memory, {"a": 1, "b": {"c": 2}, "d": None})
    memory.update_messages([MessageUpdate("m1", metadata={"a": 9})])
    assert memory.recall("t").messages[0].metadata == {"a": 9, "b": {"c": 2}, "d": None}


def test_b40_a_deleted_message_is_shown_nowhere(tied: Memory) -> None:
    """mastra-ai/mastra#6604, mastra-ai/mastra#12225, mastra-ai/mastra#20509"""
    tied.delete_messages(["m3"])
    window = Include("m2", with_next_messages=1)
    assert listed(tied) == ["m1", "m2", "m4", "m5"]
    assert ids(tied.recall("t", include=[window, Include("m3")], order_by=OLDEST_FIRST)) == ["m2", "m4"]


def test_b40_a_thread_made_anew_is_empty(tied: Memory) -> None:
    tied.delete_thread("t")
    tied.create_thread(id="t", resource_id="r")
    assert tied.recall("t").total == 0


def test_b40_a_deleted_threads_messages_may_come_back_as_another_resources(tied: Memory) -> None:
    tied.delete_thread("t")
    tied.create_thread(id="u", resource_id="other")
    tied.save_messages([new("m1", thread="u")])
    assert listed(tied, "u") == ["m1"]


@pytest.mark.parametrize(
    ("named", "deleted", "left"),
    [(["b", "ghost"], 1, ["a"]), (["ghost"], 0, ["a", "b"]), ([], 0, ["a", "b"]), (["b", "b"], 1, ["a"])],
    ids=["one unknown", "only unknown", "none", "one twice"],
)
def test_b45_delete_counts_and_removes_what_exists(
    memory: Memory, named: list[str], deleted: int, left: list[str]
) -> None:
    """chroma-core/chroma#7772, chroma-core/chroma#2841"""
    memory.create_thread(id="t", resource_id="r")
    memory.save_messages([new("a", 1), new("b", 2)])
    assert memory.delete_messages(named) == deleted
    assert listed(memory) == left


def test_b45_a_bare_string_is_refused(memory: Memory) -> None:
    with pytest.raises(InvalidRequest):
        memory.delete_messages("ab")


# Limits

HOSTILE_IDS = ("t' OR '1'='1", 'a"b', "a.b", "a-b", "%", "_", "\\", "*", "?", "x; drop table y", "'; --")


@pytest.mark.parametrize("name", HOSTILE_IDS)
def test_b65_an_id_never_changes_a_query(two_resources: Memory, name: str) -> None:
    """mastra-ai/mastra#9531, mastra-ai/mastra#4244, langchain-ai/langgraph#5666, run-llama/llama_index#21822"""
    assert two_resources.get_thread(name) is None
    assert two_resources.recall(name, per_page=False).total == 0
    assert two_resources.delete_messages([name]) == 0
    assert two_resources.delete_thread(name) is False
    assert two_resources.list_threads(filter=ThreadFilter(resource_id=name)).total == 0
    assert listed(two_resources, "t1") == ["secret"]


@pytest.mark.parametrize("name", HOSTILE_IDS)
def test_b65_any_id_is_an_id(memory: Memory, name: str) -> None:
    memory.create_thread(id=name, resource_id=name)
    memory.save_messages([NewMessage(name, name, name, metadata={"k": name})])
    found = memory.recall(name, resource_id=name, filter=MessageFilter(metadata={"k": name}))
    assert ids(found) == [name]


@pytest.mark.parametrize(
    "key",
    ["a' OR 1=1 --", 'a"b', "a.b", "a-b", "1a", "__proto__", "constructor", "k" * 129, ""],
    ids=lambda key: key[:16] or "empty",
)
def test_b65_a_bad_filter_key_is_refused(memory: Memory, key: str) -> None:
    with_metadata(memory, {"k": 1})
    with pytest.raises(InvalidFilter):
        memory.recall("t", filter=MessageFilter(metadata={key: 1}))


def test_b65_a_key_of_128_characters_is_found(memory: Memory) -> None:
    with_metadata(memory, {"k" * 128: 1}, {})
    assert matching(memory, **{"k" * 128: 1}) == ["m1"]


@pytest.mark.parametrize("wild", ["%", "_", "\\", "*", "?"])
def test_b65_a_value_is_no_pattern(memory: Memory, wild: str) -> None:
    with_metadata(memory, {"k": "x"}, {"k": wild})
    assert matching(memory, k=wild) == ["m2"]


@pytest.mark.parametrize("text", ["a\0b", "\ud83d", "a\ude00b"], ids=ascii)
@pytest.mark.parametrize("place", ["content", "value", "key"])
def test_b66_what_no_engine_can_hold_is_refused_and_nothing_is_saved(memory: Memory, text: str, place: str) -> None:
    """mastra-ai/mastra#21726, mastra-ai/mastra#11563"""
    memory.create_thread(id="t", resource_id="r")
    given: dict[str, Any] = {"content": text} if place == "content" else {"metadata": {"k": [text]}}
    if place == "key":
        given = {"metadata": {text: 1}}
    with pytest.raises(InvalidRequest):
        memory.save_messages([new("good"), new("bad", **given)])
    assert listed(memory) == []


@pytest.mark.parametrize(
    "text",
    ["😀👨‍👩‍👧", "\u1112\u1161\u11ab", "\ud55c", "שלום \u202e\u200f", "x" * (1 << 20), "", " padded\r\n"],
    ids=["emoji", "hangul NFD", "hangul NFC", "right to left", "1 MiB", "empty", "white space"],
)
def test_b66_any_other_string_comes_back(memory: Memory, text: str) -> None:
    memory.create_thread(id="t", resource_id="r", title=text)
    value = text[: 1 << 19]
    memory.save_messages([new("m", content=text, metadata={"k": value, value[:9]: 1})])
    saved, found = memory.recall("t").messages[0], memory.get_thread("t")
    assert found is not None
    assert (saved.content, saved.metadata, found.title) == (text, {"k": value, value[:9]: 1}, text)


def test_b68_a_dot_in_a_key_means_nothing(memory: Memory) -> None:
    """elastic/elasticsearch#63530"""
    objects = {"a": 1}, {"a": {"b": 2}}, {"a.b": 3}
    with_metadata(memory, *objects)
    shown = memory.recall("t", per_page=False, order_by=OLDEST_FIRST).messages
    assert [message.metadata for message in shown] == [*objects]


def test_b68_a_nested_value_is_not_found_by_a_path(memory: Memory) -> None:
    with_metadata(memory, {"a": {"b": 2}}, {"a": 2})
    assert matching(memory, a=2) == ["m2"]


# Consistency


def test_b70_every_call_sees_what_returned_before(memory: Memory) -> None:
    """deepset-ai/haystack-core-integrations#2605, run-llama/llama_index#22286"""
    memory.create_thread(id="t", resource_id="r")
    for i in range(50):
        memory.save_messages([new("m", i)])
        assert memory.recall("t").total == 1
        memory.update_messages([MessageUpdate("m", content=f"changed {i}")])
        assert memory.recall("t").messages[0].content == f"changed {i}"
        memory.delete_messages(["m"])
        assert memory.recall("t").total == 0


def test_b70_another_client_sees_it_too(memory: Memory, open_memory: Callable[..., Memory]) -> None:
    memory.create_thread(id="t", resource_id="r")
    other = open_memory()
    memory.save_messages([new("m")])
    assert listed(other) == ["m"]


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ({"thread": "nowhere"}, ThreadNotFound),
        ({"resource_id": "other"}, OwnershipMismatch),
        ({"role": "admin"}, InvalidRequest),
        ({"content": []}, InvalidRequest),
        ({"metadata": {"k": float("nan")}}, InvalidRequest),
    ],
    ids=["thread", "resource", "role", "content", "metadata"],
)
def test_b71_a_batch_with_one_bad_message_saves_none(
    memory: Memory, bad: dict[str, Any], error: type[Exception]
) -> None:
    """stac-utils/stac-fastapi-elasticsearch-opensearch#346, langchain-ai/langchainjs#1810"""
    memory.create_thread(id="t", resource_id="r")
    with pytest.raises(error):
        memory.save_messages([new("first", 1), new("bad", 2, **bad), new("last", 3)])
    assert listed(memory) == []


def test_b71_success_means_that_all_are_there(memory: Memory) -> None:
    memory.create_thread(id="t", resource_id="r")
    saved = memory.save_messages([new("a", 1), new("b", 2), new("c", 3)])
    assert ids(saved) == listed(memory) == ["a", "b", "c"]


def test_b71_values_of_every_type_share_a_key(memory: Memory) -> None:
    """Where a mapping is made from the first value, the others are what a bulk rejects item by item."""
    values = [{"k": value} for value in (1, "one", True, None, [1], {"a": 1}, 1.5)]
    with_metadata(memory, *values)
    shown = memory.recall("t", per_page=False, order_by=OLDEST_FIRST).messages
    assert [message.metadata for message in shown] == values


def test_b73_a_filter_sees_updated_metadata(memory: Memory) -> None:
    """headroomlabs-ai/headroom#2296"""
    with_metadata(memory, {"p": 1})
    memory.update_messages([MessageUpdate("m1", metadata={"p": 2})])
    assert (matching(memory, p=2), matching(memory, p=1)) == (["m1"], [])
