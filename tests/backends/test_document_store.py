"""Messages in document engines: how batches are undone, what slower writers find, how deep pages are reached."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from memassay.backends import document_search, documents
from memassay.backends.document_layout import Names
from memassay.backends.document_store import DocumentMemory
from memassay.backends.document_url import address
from memassay.backends.documents import Documents, Json, Outcome, RequestFailed, Write, bodies
from memassay.spec.embedders import LiteralEmbedder
from memassay.spec.errors import ConfigurationError, ThreadNotFound
from memassay.spec.protocols import Embedder, Memory, Runtime
from memassay.spec.types import (
    Include,
    MemoryConfig,
    Message,
    MessageUpdate,
    NewMessage,
    OrderBy,
    SemanticRecall,
)

ASCENDING = OrderBy(direction="ASC")
SEMANTIC = MemoryConfig(semantic_recall=SemanticRecall(scope="resource"))


@pytest.fixture(params=["elasticsearch", "opensearch"])
def opened(request: pytest.FixtureRequest, engines: Any) -> Generator[Any]:
    """An empty namespace on each engine in turn; a call opens a client."""
    with engines.namespace(request.param) as namespace:
        yield namespace


@pytest.fixture
def memory(opened: Any) -> DocumentMemory:
    """A client, with the thread `t` of the resource `r`."""
    memory = opened()
    memory.create_thread(id="t", resource_id="r")
    return memory


def inner(memory: Memory) -> tuple[Documents, Names]:
    """The engine's client and the names of the indices that a memory uses."""
    assert isinstance(memory, DocumentMemory)
    return memory._documents, memory._names  # pyright: ignore[reportPrivateUsage]


def new(message_id: str, content: str = "new", thread_id: str = "t") -> NewMessage:
    return NewMessage(id=message_id, thread_id=thread_id, content=content)


def listed(memory: Memory, thread_id: str = "t") -> list[tuple[str, str]]:
    """The id and content of every message of a thread, in order."""
    rows = memory.recall(thread_id, per_page=False, order_by=ASCENDING).messages
    return [(row.id, str(row.content)) for row in rows]


def left(memory: Memory) -> int:
    """How many documents of messages there are, of whatever thread."""
    client, names = inner(memory)
    client.refresh(names.messages)
    return client.count(names.messages, {"match_all": {}})


def tamper(
    memory: Memory,
    monkeypatch: pytest.MonkeyPatch,
    *,
    before: Callable[[], object] = lambda: None,
    change: Callable[[Write], Write] = lambda write: write,
    after: Callable[[], object] = lambda: None,
) -> None:
    """Do something before, to, or after the next batch of messages on its way to the engine."""
    client, names = inner(memory)
    real = client.write

    def write(alias: str, writes: Sequence[Write], *, refresh: bool = False) -> list[Outcome]:
        if alias != names.messages:
            return real(alias, writes, refresh=refresh)
        monkeypatch.setattr(client, "write", real)
        before()
        outcomes = real(alias, [change(each) for each in writes], refresh=refresh)
        after()
        return outcomes

    monkeypatch.setattr(client, "write", write)


def spoil_b(write: Write) -> Write:
    """What the engine refuses, as its mapping is strict, when it is of the message `b` or of a clone."""
    if write.source is None or write.source["id"] not in ("b", "generated-2"):
        return write
    return msgspec.structs.replace(write, source=write.source | {"unknown": 1})


def fail() -> None:
    raise ConnectionError("the answer was lost")


# All or nothing

CHANGES: dict[str, Callable[[Memory], object]] = {
    "save": lambda memory: memory.save_messages([new("a"), new("b"), new("c")]),
    "update": lambda memory: memory.update_messages(
        [MessageUpdate("a", content="new"), MessageUpdate("b", role="tool")]
    ),
    "clone": lambda memory: memory.clone_thread("t", new_thread_id="copy"),
}


@pytest.fixture
def held(opened: Any, memory: DocumentMemory) -> DocumentMemory:
    """The client, with the messages `a` and `b` in the thread, and a clock that has moved since."""
    memory.save_messages([new("a", "old"), new("b", "old")])
    opened.clock.tick(5)
    return memory


@pytest.mark.parametrize("call", CHANGES)
def test_a_refused_message_undoes_the_others(held: Memory, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    tamper(held, monkeypatch, change=spoil_b)
    with pytest.raises(RequestFailed, match="was refused: strict_dynamic_mapping_exception"):
        CHANGES[call](held)
    assert (listed(held), left(held)) == ([("a", "old"), ("b", "old")], 2)


@pytest.mark.parametrize("call", CHANGES)
def test_a_lost_answer_undoes_what_was_written(held: Memory, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    tamper(held, monkeypatch, after=fail)
    with pytest.raises(ConnectionError):
        CHANGES[call](held)
    assert (listed(held), left(held)) == ([("a", "old"), ("b", "old")], 2)


def test_a_lost_answer_undoes_a_deletion(held: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    tamper(held, monkeypatch, after=fail)
    with pytest.raises(ConnectionError):
        held.delete_messages(["a", "b"])
    assert listed(held) == [("a", "old"), ("b", "old")]


@pytest.mark.parametrize("call", CHANGES)
def test_what_was_undone_has_not_touched_the_thread(held: Memory, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    before = held.get_thread("t")
    tamper(held, monkeypatch, change=spoil_b)
    with pytest.raises(RequestFailed):
        CHANGES[call](held)
    assert held.get_thread("t") == before


def test_a_move_that_was_undone_is_back_in_its_place(held: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    held.create_thread(id="other", resource_id="r")
    tamper(held, monkeypatch, change=spoil_b)
    with pytest.raises(RequestFailed):
        held.save_messages([new("a", thread_id="other"), new("b", thread_id="other")])
    assert (listed(held), listed(held, "other")) == ([("a", "old"), ("b", "old")], [])


def test_what_others_wrote_since_is_not_undone(held: Memory, opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    other = opened()

    def interfere() -> None:
        other.save_messages([new("a", "theirs")])
        fail()

    tamper(held, monkeypatch, after=interfere)
    with pytest.raises(ConnectionError):
        held.save_messages([new("a"), new("b")])
    assert listed(held) == [("a", "theirs"), ("b", "old")]


def test_a_batch_of_many_requests_is_undone_when_one_is_refused(held: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "BATCH_ROWS", 1)
    tamper(held, monkeypatch, change=spoil_b)
    with pytest.raises(RequestFailed):
        held.save_messages([new("a"), new("b"), new("c")])
    assert (listed(held), left(held)) == ([("a", "old"), ("b", "old")], 2)


def test_a_bulk_request_is_cut_by_its_rows_and_by_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "BATCH_ROWS", 2)
    monkeypatch.setattr(documents, "BATCH_BYTES", 100)
    line: Json = {"index": {"_id": "1"}}
    lines = [(line, {"v": "x" * length}) for length in (1, 1, 1, 1, 90, 1)]
    assert [rows for rows, _ in bodies(lines)] == [2, 2, 1, 1]


# Slower writers


def test_a_saver_who_comes_second_replaces(held: Memory, opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    other = opened()
    tamper(held, monkeypatch, before=lambda: other.save_messages([new("c", "theirs"), new("d", "theirs")]))
    held.save_messages([new("e"), new("c")])
    # It enters where the first put it; `e` had taken its position before.
    assert listed(held) == [("a", "old"), ("b", "old"), ("e", "new"), ("c", "new"), ("d", "theirs")]


def test_a_merger_who_comes_second_merges_with_what_is_there(
    held: Memory, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = opened()
    tamper(held, monkeypatch, before=lambda: other.update_messages([MessageUpdate("a", metadata={"theirs": 1})]))
    (row,) = held.update_messages([MessageUpdate("a", metadata={"mine": 2})])
    assert row.metadata == {"theirs": 1, "mine": 2}


def test_of_two_who_delete_one_message_one_counts_it(
    held: Memory, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = opened()
    tamper(held, monkeypatch, before=lambda: other.delete_messages(["a"]))
    assert held.delete_messages(["a", "b"]) == 1


def test_a_thread_deleted_during_a_save_keeps_nothing(
    held: Memory, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = opened()
    tamper(held, monkeypatch, before=lambda: other.delete_thread("t"))
    with pytest.raises(ThreadNotFound):
        held.save_messages([new("a"), new("c")])
    assert left(held) == 0


def test_a_thread_deleted_and_made_anew_during_a_save_holds_what_was_saved(
    held: Memory, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = opened()

    def renew() -> None:
        other.delete_thread("t")
        other.create_thread(id="t", resource_id="r")

    tamper(held, monkeypatch, before=renew)
    held.save_messages([new("c")])
    assert (listed(held), left(held)) == ([("c", "new")], 1)


def test_a_save_during_a_clearing_comes_after_it(held: Memory, opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    other = opened()
    tamper(held, monkeypatch, before=lambda: other.clear_messages("t"))
    held.save_messages([new("b"), new("c")])
    assert (listed(held), left(held)) == ([("b", "new"), ("c", "new")], 2)


def test_both_threads_of_a_move_may_be_deleted_during_it(
    held: Memory, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = opened()
    held.create_thread(id="other", resource_id="r")

    def vanish() -> None:
        other.delete_thread("t")
        other.delete_thread("other")

    tamper(held, monkeypatch, after=vanish)
    with pytest.raises(ThreadNotFound):
        held.save_messages([new("a", thread_id="other")])
    assert left(held) == 0


def test_twenty_savers_and_mergers_lose_nothing(opened: Any, memory: Memory) -> None:
    memory.save_messages([new("shared")])
    crew = [opened() for _ in range(20)]
    barrier = threading.Barrier(len(crew))

    def work(number: int) -> None:
        barrier.wait()
        crew[number].save_messages([new(f"m{number}-{each}") for each in range(3)])
        crew[number].update_thread("t", metadata={f"k{number}": number})
        crew[number].update_messages([MessageUpdate("shared", metadata={f"k{number}": number})])

    with ThreadPoolExecutor(len(crew)) as pool:
        list(pool.map(work, range(len(crew))))
    keys = {f"k{number}" for number in range(20)}
    thread, rows = memory.get_thread("t"), memory.recall("t", per_page=False, order_by=ASCENDING).messages
    assert thread is not None
    assert (set(thread.metadata), set(rows[0].metadata), len(rows)) == (keys, keys, 61)
    # Each batch stands together, in its order: its positions were taken at once.
    batches = [[row.id for row in rows[begin : begin + 3]] for begin in range(1, 61, 3)]
    assert sorted(batches) == sorted([f"m{number}-{each}" for each in range(3)] for number in range(20))


def together(*calls: Callable[[], object]) -> list[object]:
    """What each call returned or raised, all made at once."""
    barrier = threading.Barrier(len(calls))

    def attempt(call: Callable[[], object]) -> object:
        barrier.wait()
        try:
            return call()
        except ThreadNotFound as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(attempt, calls))


def test_savers_of_the_same_messages_into_two_threads_lose_none(opened: Any, memory: Memory) -> None:
    memory.create_thread(id="u", resource_id="r")
    ids = [f"m{number}" for number in range(20)]

    def saver(number: int) -> Callable[[], object]:
        batch = [new(each, thread_id="tu"[number % 2]) for each in (ids if number % 3 else ids[::-1])]
        client = opened()
        return lambda: client.save_messages(batch)

    saved = together(*[saver(number) for number in range(12)])
    assert not [each for each in saved if isinstance(each, Exception)]
    assert sorted(each for each, _ in listed(memory, "t") + listed(memory, "u")) == sorted(ids)


def test_a_thread_deleted_during_saves_leaves_no_message(opened: Any, memory: Memory) -> None:
    def caller(number: int) -> Callable[[], object]:
        client = opened()
        batch = [new(f"m{number}-{each}") for each in range(30)]
        return (lambda: client.save_messages(batch)) if number % 5 else (lambda: client.delete_thread("t"))

    outcomes = together(*[caller(number) for number in range(12)])
    assert (True in outcomes, left(memory)) == (True, 0)


# What a writer that died has left

VECTORS = {"north": [1.0, 0.0], "east": [0.0, 1.0]}


class Compass(LiteralEmbedder):
    """Embeds two words."""

    def __init__(self) -> None:
        super().__init__(2)

    def embed(self, texts: Sequence[str], kind: object) -> list[list[float]]:
        return [VECTORS[text] for text in texts]


def test_what_a_dead_writer_left_in_a_thread_that_is_gone_is_no_hit(opened: Any) -> None:
    embedder: Embedder = Compass()
    memory = opened(SEMANTIC, embedder)
    memory.create_thread(id="t", resource_id="r")
    memory.create_thread(id="gone", resource_id="r")
    memory.save_messages([new("far", "east"), new("near", "north", "gone")])
    client, names = inner(memory)
    (document,) = client.fetch([(names.messages, documents.digest("near"))])
    assert document is not None
    memory.delete_thread("gone")
    client.write(names.messages, [Write("create", document.id, document.source)])
    found = memory.recall("t", resource_id="r", vector_search_string="north", per_page=0)
    assert [hit.id for hit in found.hits] == ["far"]


def test_the_id_of_what_a_dead_writer_left_is_free(held: Memory) -> None:
    client, names = inner(held)
    (document,) = client.fetch([(names.messages, documents.digest("a"))])
    assert document is not None
    held.create_thread(id="other", resource_id="r")
    held.delete_thread("t")
    client.write(names.messages, [Write("create", document.id, document.source)])
    held.save_messages([new("a", "mine", "other")])
    assert (listed(held, "other"), left(held)) == ([("a", "mine")], 1)


# Reads


def test_a_clone_may_be_of_more_ids_than_a_query_holds(held: Memory) -> None:
    held.save_messages([new("c"), new("d")])
    ids = ["d", *(f"unknown{number}" for number in range(70_000)), "a", "c"]
    clone = held.clone_thread("t", message_ids=ids, message_limit=2)
    assert list(clone.id_map) == ["c", "d"]


def test_a_recall_is_three_requests(held: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    client, _ = inner(held)
    asked: list[str] = []

    def note(name: str) -> None:
        real = getattr(client, name)

        def noted(*given: Any, **more: Any) -> Any:
            asked.append(name)
            return real(*given, **more)

        monkeypatch.setattr(client, name, noted)

    for name in ("fetch", "refresh", "search", "search_all", "count", "write"):
        note(name)
    held.recall("t", include=[Include("a", with_next_messages=2)], per_page=1)
    assert asked == ["fetch", "refresh", "search_all"]


@pytest.fixture
def long(memory: DocumentMemory, monkeypatch: pytest.MonkeyPatch) -> DocumentMemory:
    """The client, with 25 messages in the thread, of an engine whose searches reach 10 rows and return 4."""
    memory.save_messages([new(f"m{number:02}") for number in range(25)])
    monkeypatch.setattr(document_search, "WINDOW", 10)
    monkeypatch.setattr(document_search, "ROWS", 4)
    return memory


def numbers(messages: Sequence[Message]) -> list[int]:
    return [int(message.id[1:]) for message in messages]


@pytest.mark.parametrize("direction", ["ASC", "DESC"])
@pytest.mark.parametrize("size", [1, 3, 4, 7, 10, 11, 24, 25, 26])
def test_every_page_is_its_slice_however_deep(long: Memory, size: int, direction: str) -> None:
    whole = list(range(25)) if direction == "ASC" else list(range(24, -1, -1))
    for page in range(25 // size + 2):
        found = long.recall("t", page=page, per_page=size, order_by=OrderBy(direction=direction))
        assert (numbers(found.messages), found.total) == (whole[page * size : (page + 1) * size], 25)


def test_a_window_may_be_longer_than_a_request(long: Memory) -> None:
    around = Include("m12", with_previous_messages=11, with_next_messages=2**53 - 1)
    found = long.recall("t", include=[around], order_by=ASCENDING)
    assert numbers(found.messages) == list(range(1, 25))


def test_the_end_of_a_thread_is_reached_from_its_end(long: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    client, _ = inner(long)

    def unwanted(*_: object) -> None:
        raise AssertionError("it was read from the beginning")

    monkeypatch.setattr(client, "search", unwanted)
    found = long.recall("t", page=7, per_page=3, order_by=ASCENDING)
    assert numbers(found.messages) == [21, 22, 23]


def test_a_thread_longer_than_the_engines_window_has_every_page(memory: Memory) -> None:
    memory.save_messages([new(f"m{number}") for number in range(10_050)])
    deep = memory.recall("t", page=3_341, per_page=3, order_by=ASCENDING)
    middle = memory.recall("t", page=1, per_page=6_000)
    assert (numbers(deep.messages), deep.total) == ([10_023, 10_024, 10_025], 10_050)
    assert numbers(middle.messages) == list(range(4_049, -1, -1))


# The client


class Forwarder:
    """A port that leads to an engine until it is cut."""

    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self._ends: list[socket.socket] = [socket.create_server(("127.0.0.1", 0))]
        self.url = f"http://127.0.0.1:{self._ends[0].getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._ends[0].accept()
                far = socket.create_connection((self._target.hostname or "", self._target.port or 0))
                self._ends += [near, far]
                threading.Thread(target=self._copy, args=(near, far), daemon=True).start()
                threading.Thread(target=self._copy, args=(far, near), daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)

    def cut(self) -> None:
        """Close the port and every connection through it."""
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


LOST: dict[str, Callable[[Memory], object]] = {
    "get_thread": lambda memory: memory.get_thread("t"),
    "list_threads": lambda memory: memory.list_threads(),
    "save_messages": lambda memory: memory.save_messages([new("z")]),
    "delete_messages": lambda memory: memory.delete_messages(["a"]),
    "recall": lambda memory: memory.recall("t"),
}


def test_a_lost_engine_is_an_error_and_no_empty_answer(opened: Any, held: Memory) -> None:
    forwarder = Forwarder(opened.url)
    memory = opened.backend.open_memory(forwarder.url, opened.name, Runtime(), MemoryConfig())
    assert memory.recall("t").total == 2
    forwarder.cut()
    errors: list[str] = []
    for call in LOST.values():
        with pytest.raises(Exception, match=r"onnection") as error:
            call(memory)
        errors.append(type(error.value).__name__)
    memory.close()
    assert errors == ["Unavailable"] * len(LOST)


def test_a_dropped_namespace_is_an_error_and_not_made_up(opened: Any, memory: Memory) -> None:
    client, names = inner(memory)
    opened.backend.drop_namespace(opened.url, opened.name)
    with pytest.raises(RequestFailed, match="is not an alias"):
        memory.create_thread(id="u", resource_id="r")
    assert client.metas(names.all) == {}


def test_close_may_be_called_twice(memory: Memory) -> None:
    memory.close()
    memory.close()


@pytest.mark.parametrize("call", ["recall", "get_thread", "delete_thread", "clear_messages"])
def test_a_call_after_close_is_refused(memory: Memory, call: str) -> None:
    memory.close()
    with pytest.raises(ConfigurationError, match="this client is closed"):
        getattr(memory, call)("t")


def test_twenty_clients_may_open_one_new_namespace_at_once(opened: Any) -> None:
    with ThreadPoolExecutor(20) as pool:
        crew: list[Memory] = [each.result() for each in [pool.submit(opened) for _ in range(20)]]
    crew[0].create_thread(id="t", resource_id="r")
    assert crew[19].get_thread("t") is not None


# URLs


def test_a_url_is_taken_apart() -> None:
    found = address("https://me:p%40ss@example.org:9443/prefix/?verify_certs=false")
    assert (found.base, found.login, found.verify_certs) == (
        "https://example.org:9443/prefix",
        ("me", "p@ss"),
        False,
    )


@pytest.mark.parametrize(
    "url",
    [
        "me:secret@host",
        "ftp://me:secret@host",
        "http://me:secret@host:port",
        "http://me:secret@host?timeout=3",
        "http://",
    ],
)
def test_a_url_that_is_none_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ValueError, match=r"port|URL") as error:
        address(url)
    assert "secret" not in str(error.value)
