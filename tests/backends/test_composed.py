"""Facts of composition: which half goes first, what is put back, what is never shown, names and URLs."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
from memassay.backends import composed
from memassay.backends.composed import ComposedBackend, ComposedMemory, FileTurn, Half, PinnedClock, compose, split
from memassay.backends.faiss import FaissBackend
from memassay.backends.provision import EngineUnavailable
from memassay.backends.reference import ReferenceBackend
from memassay.backends.registry import UnknownBackend, find
from memassay.spec.capabilities import Capabilities
from memassay.spec.embedders import LiteralEmbedder
from memassay.spec.errors import ConfigurationError, EmbedderError, OwnershipMismatch, ThreadNotFound, Unavailable
from memassay.spec.protocols import Memory, Runtime
from memassay.spec.reference import Model
from memassay.spec.reference_index import ModelIndex
from memassay.spec.types import (
    DateRange,
    Include,
    IndexConfig,
    MemoryConfig,
    MessageFilter,
    MessageUpdate,
    NewMessage,
    NewVector,
    RecallResult,
    SemanticRecall,
    VectorHit,
)

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
ON = MemoryConfig(semantic_recall=True)
OFF = MemoryConfig(semantic_recall=False)
EAST, NORTH = "[1, 0, 0]", "[0, 1, 0]"


class Faulty(ModelIndex):
    """An index that can be told to fail, and that counts its queries."""

    def __init__(self) -> None:
        super().__init__()
        self.failing: set[str] = set()
        self.queries: list[Mapping[str, Any] | None] = []

    def upsert_vectors(self, name: str, vectors: Sequence[NewVector]) -> int:
        self._call("upsert")
        return super().upsert_vectors(name, vectors)

    def delete_vectors(
        self, name: str, *, ids: Sequence[str] | None = None, filter: Mapping[str, Any] | None = None
    ) -> int:
        self._call("delete")
        return super().delete_vectors(name, ids=ids, filter=filter)

    def query_vectors(
        self,
        name: str,
        vector: Sequence[float],
        *,
        top_k: int = 10,
        filter: Mapping[str, Any] | None = None,
        min_score: float | None = None,
        exact: bool = False,
    ) -> tuple[VectorHit, ...]:
        self.queries.append(filter)
        return super().query_vectors(name, vector, top_k=top_k, filter=filter, min_score=min_score, exact=exact)

    def _call(self, kind: str) -> None:
        if kind in self.failing:
            raise OSError(kind)

    def embedded(self) -> dict[str, str]:
        """The thread in each embedding's snapshot."""
        return {id: entry.metadata["thread_id"] for id, entry in self.state.rows["messages"].items()}


class Both:
    """A composed memory, and its halves."""

    def __init__(self, clock: Callable[[], datetime] | None = None) -> None:
        self.clock = PinnedClock(clock or (lambda: NOON))
        self.storage = Model(Runtime(clock=self.clock))
        self.index = Faulty()
        self.memory = ComposedMemory(
            self.storage, self.index, Runtime(clock=self.clock, embedder=LiteralEmbedder()), ON
        )
        self.memory.create_thread(resource_id="r", id="t")
        self.memory.create_thread(resource_id="r", id="u")

    def save(self, *ids: str, content: str = EAST, thread: str = "t", on: bool = True) -> None:
        self.memory.save_messages([NewMessage(id, thread, content) for id in ids], thread_config=ON if on else OFF)

    def recall(self, content: str = EAST, **given: Any) -> RecallResult:
        return self.memory.recall("t", vector_search_string=content, **given)


@pytest.fixture
def both() -> Both:
    return Both()


def hits(result: RecallResult) -> list[str]:
    return [hit.id for hit in result.hits]


def top(k: int, **more: Any) -> MemoryConfig:
    return MemoryConfig(semantic_recall=SemanticRecall(top_k=k, message_range=0, **more))


# Deletes: the storage first


def test_what_the_index_could_not_delete_is_deleted_when_it_answers_again(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    both.save("a", "b")

    def full(*_: Any, **__: Any) -> int:
        raise Unavailable("the disk is full")

    with monkeypatch.context() as while_full:
        while_full.setattr(both.index, "delete_vectors", full)
        assert both.memory.clear_messages("t") == 2
    both.save("b")
    described = both.memory.semantic_index()
    assert described is not None
    assert described.count == 1
    assert both.index.embedded() == {"b": "t"}


# Writes: the index first


def test_an_index_that_refuses_leaves_the_storage_alone(both: Both) -> None:
    both.index.failing = {"upsert"}
    with pytest.raises(OSError, match="upsert"):
        both.save("a")
    assert both.storage.recall("t").total == 0


def test_a_storage_that_refuses_leaves_the_index_as_it_was(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    both.save("a", content=NORTH)
    before = both.index.get_vectors("messages", ["a", "b"])

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError("full")

    monkeypatch.setattr(both.storage, "save_messages", refuse)
    with pytest.raises(OSError, match="full"):
        both.save("a", "b")
    assert both.index.get_vectors("messages", ["a", "b"]) == before


def test_an_update_the_storage_refuses_puts_the_embedding_back(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    both.save("a", content=NORTH)

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError("full")

    monkeypatch.setattr(both.storage, "update_messages", refuse)
    with pytest.raises(OSError, match="full"):
        both.memory.update_messages([MessageUpdate("a", content=EAST)])
    assert both.index.get_vectors("messages", ["a"])[0].vector == (0.0, 1.0, 0.0)


def test_a_clone_without_its_embeddings_is_taken_back(both: Both) -> None:
    both.save("a")
    both.index.failing = {"upsert"}
    with pytest.raises(OSError, match="upsert"):
        both.memory.clone_thread("t", new_thread_id="c")
    assert both.memory.get_thread("c") is None


def test_a_clone_asks_no_embedder(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    both.save("a")

    def fail(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(LiteralEmbedder, "embed", fail)
    [clone] = both.memory.clone_thread("t", new_thread_id="c").cloned_messages
    assert both.index.embedded() == {"a": "t", clone.id: "c"}


def test_saving_without_recall_removes_the_embedding(both: Both) -> None:
    both.save("a")
    both.save("a", on=False)
    assert both.index.embedded() == {}


def test_a_client_without_embedder_removes_it_too(both: Both) -> None:
    both.save("a")
    plain = ComposedMemory(both.storage, both.index, Runtime(clock=both.clock), MemoryConfig())
    plain.save_messages([NewMessage("a", "t", EAST)])
    assert both.index.embedded() == {}


def test_a_move_takes_the_embedding_along(both: Both) -> None:
    both.save("a")
    both.save("a", thread="u")
    assert both.index.embedded() == {"a": "u"}


def test_the_snapshot_has_the_time_that_was_kept(both: Both) -> None:
    earlier = NOON - timedelta(days=1)
    both.memory.save_messages([NewMessage("a", "t", EAST, created_at=earlier)], thread_config=OFF)
    both.save("a")
    [row] = both.index.get_vectors("messages", ["a"])
    assert row.metadata["created_at"] == "2023-12-31T12:00:00.000Z"


def test_storage_and_snapshot_have_one_now() -> None:
    ticks = iter(NOON + timedelta(seconds=i) for i in range(1000))
    both = Both(lambda: next(ticks))
    both.save("a")
    [message] = both.memory.recall("t").messages
    [row] = both.index.get_vectors("messages", ["a"])
    assert row.metadata["created_at"] == message.created_at.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def test_an_update_finds_a_message_that_has_no_embedding(both: Both) -> None:
    both.save("a", thread="u", on=False)
    both.memory.update_messages([MessageUpdate("a", role="tool")], thread_config=ON)
    assert both.index.embedded() == {"a": "u"}


def test_an_unknown_message_is_not_embedded(both: Both) -> None:
    assert both.memory.update_messages([MessageUpdate("a", content="!fails")]) == ()


def test_what_is_wrong_with_a_batch_comes_before_the_embedder(both: Both) -> None:
    both.save("a", on=False)
    both.memory.create_thread(resource_id="other", id="o")
    with pytest.raises(OwnershipMismatch):
        both.save("a", content="!fails", thread="o")
    with pytest.raises(ThreadNotFound):
        both.save("a", content="!fails", thread="absent")
    with pytest.raises(EmbedderError):
        both.save("a", content="!fails", thread="u")


def test_a_change_while_the_embedder_works_is_seen(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    both.save("a", content=EAST)
    real = LiteralEmbedder.embed

    def meanwhile(self: LiteralEmbedder, texts: Sequence[str], kind: Literal["document", "query"]) -> list[list[float]]:
        monkeypatch.setattr(LiteralEmbedder, "embed", real)
        both.save("a", content=NORTH)
        return real(self, texts, kind)

    monkeypatch.setattr(LiteralEmbedder, "embed", meanwhile)
    both.memory.update_messages([MessageUpdate("a", role="tool")])
    assert both.index.get_vectors("messages", ["a"])[0].vector == (0.0, 1.0, 0.0)


# Deletes: the storage first


def _delete(memory: Memory) -> None:
    memory.delete_messages(["a"])


def _clear(memory: Memory) -> None:
    memory.clear_messages("t")


def _delete_thread(memory: Memory) -> None:
    memory.delete_thread("t")


@pytest.mark.parametrize("delete", [_delete, _clear, _delete_thread])
def test_deletes_reach_the_index(both: Both, delete: Callable[[Memory], None]) -> None:
    both.save("a")
    both.save("b", thread="u")
    delete(both.memory)
    assert both.index.embedded() == {"b": "u"}


def test_what_stays_behind_is_never_shown(both: Both) -> None:
    both.save("a", "b")
    both.index.failing = {"delete"}
    assert both.memory.delete_messages(["a"]) == 1
    assert hits(both.recall(thread_config=top(1))) == ["b"]


def test_hits_that_are_gone_are_made_up_for(both: Both) -> None:
    both.save(*(f"gone{i}" for i in range(100)))
    both.save("left", content=NORTH)
    both.index.failing = {"delete"}
    both.memory.delete_messages([f"gone{i}" for i in range(100)])
    assert hits(both.recall(thread_config=top(1))) == ["left"]


def test_a_message_deleted_between_the_questions_is_not_a_hit(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    both.save("a", "b")
    real = both.memory._scored  # pyright: ignore[reportPrivateUsage]

    def meanwhile(*given: Any) -> Any:
        found = real(*given)
        both.storage.delete_messages(["a"])
        return found

    monkeypatch.setattr(both.memory, "_scored", meanwhile)
    result = both.recall(thread_config=top(1))
    assert hits(result) == ["b"]


# Recall


def test_ties_at_the_cut_are_by_thread_order(both: Both) -> None:
    names = [f"m{i:03}" for i in reversed(range(100))]
    both.save(*names)
    assert hits(both.recall(thread_config=top(3))) == names[:3]


def test_more_ties_than_an_index_may_return_are_scanned(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composed, "MAX_TOP_K", 20)
    names = [f"m{i:03}" for i in reversed(range(100))]
    both.save(*names)
    assert hits(both.recall(thread_config=top(3))) == names[:3]


def test_date_range_narrows_the_query_itself(both: Both) -> None:
    both.save("a")
    both.recall(filter=MessageFilter(date_range=DateRange(start=NOON, end=NOON, end_exclusive=True)))
    noon = "2024-01-01T12:00:00.000Z"
    assert both.index.queries == [{"thread_id": "t", "created_at": {"$gte": noon, "$lt": noon}}]


def test_a_filter_on_what_is_narrowed_too_is_kept(both: Both) -> None:
    both.save("a")
    both.recall(thread_config=top(1, filter={"thread_id": {"$ne": "u"}}))
    assert both.index.queries == [{"thread_id": "t", "$and": [{"thread_id": {"$ne": "u"}}]}]


def test_a_metadata_filter_narrows_to_the_ids_that_match(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composed, "BATCH", 2)
    both.memory.save_messages([NewMessage(f"m{i}", "t", EAST, metadata={"odd": i % 2}) for i in range(6)])
    result = both.recall(filter=MessageFilter(metadata={"odd": 1}), thread_config=top(2))
    assert hits(result) == ["m1", "m3"]
    asked = [given["message_id"]["$in"] for given in both.index.queries if given]
    assert asked == [["m1", "m3"], ["m5"]]


def test_a_filter_without_room_for_the_scope_is_scanned(both: Both) -> None:
    both.save("a", "b")
    both.save("c", thread="u")
    conditions = [{"message_id": {"$ne": f"x{i}"}} for i in range(99)]
    result = both.recall(thread_config=top(5, filter={"message_id": {"$ne": "a"}, "$and": conditions}))
    assert hits(result) == ["b"]
    assert both.index.queries == []


def test_include_has_the_defaults_of_a_search(both: Both) -> None:
    both.save("a", "b", "c", content="   ")
    result = both.recall(include=[Include("b")], per_page=0)
    assert [message.id for message in result.messages] == ["c", "b", "a"]


def test_native_and_composed_are_one(tmp_path: Path) -> None:
    clock = lambda: NOON  # noqa: E731
    runtime = Runtime(clock=clock, embedder=LiteralEmbedder())
    native = Model(runtime, ON)
    faiss = FaissBackend().open_memory(str(tmp_path), "one", runtime, ON)
    answers: list[Any] = []
    for memory in (native, faiss):
        memory.create_thread(resource_id="r", id="t", metadata={"k": "v"})
        memory.save_messages([NewMessage(f"m{i}", "t", f"[{i % 3}, 1, 0] words") for i in range(9)])
        memory.update_messages([MessageUpdate("m4", content=NORTH)])
        found = memory.recall("t", vector_search_string=EAST, thread_config=top(4, filter={"k": "v"})).hits
        answers.append((found, memory.semantic_index(), memory.recall("t", per_page=False)))
    faiss.close()
    assert [hit.id for hit in answers[0][0]] == [hit.id for hit in answers[1][0]]
    assert [hit.score for hit in answers[0][0]] == pytest.approx([hit.score for hit in answers[1][0]])
    assert answers[0][1:] == answers[1][1:]


# Opening


def test_an_embedder_that_does_not_fit_is_refused(both: Both) -> None:
    with pytest.raises(ConfigurationError):
        ComposedMemory(both.storage, both.index, Runtime(embedder=LiteralEmbedder(4)), ON)
    assert both.index.describe_index("messages").dimension == 3


def test_another_metric_is_refused(both: Both) -> None:
    options = MemoryConfig(semantic_recall=SemanticRecall(index_config=IndexConfig(metric="euclidean")))
    with pytest.raises(ConfigurationError):
        ComposedMemory(both.storage, both.index, Runtime(embedder=LiteralEmbedder()), options)


def test_the_storage_is_closed_when_the_index_does_not_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Storage(Model):
        closed = False

        def close(self) -> None:
            Storage.closed = True

    class Backend(FaissBackend):
        def open_memory(self, url: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> Memory:
            return Storage(runtime, config)

    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError):
        compose(Half(Backend(), ""), Half(FaissBackend(), str(tmp_path / "file")), "one", Runtime(), MemoryConfig())
    assert Storage.closed


def test_a_pinned_clock_stands_still_for_its_thread_alone() -> None:
    ticks = iter(NOON + timedelta(seconds=i) for i in range(10))
    clock = PinnedClock(lambda: next(ticks))
    other: list[datetime] = []
    with clock.still():
        assert clock() == clock() == NOON
        thread = threading.Thread(target=lambda: other.append(clock()))
        thread.start()
        thread.join()
    assert other == [NOON + timedelta(seconds=1)]


# Names and URLs


def test_a_name_joins_two_backends() -> None:
    backend = find("libsql+faiss")
    assert isinstance(backend, ComposedBackend)
    assert backend.name == "libsql+faiss"


@pytest.mark.parametrize("name", ["libsql+", "+faiss", "libsql+faiss+faiss", "libsql+absent"])
def test_a_name_that_joins_no_two(name: str) -> None:
    with pytest.raises(UnknownBackend):
        find(name)


def test_a_url_names_two_engines() -> None:
    assert split("postgres://host/db + /tmp/folder") == ("postgres://host/db", "/tmp/folder")
    with pytest.raises(ConfigurationError):
        split("/tmp/folder")


def test_both_are_provisioned_and_dropped() -> None:
    backend = find("libsql+faiss")
    assert isinstance(backend, ComposedBackend)
    with backend.provisioners["embedded"].start(None) as endpoint:
        runtime = Runtime(embedder=LiteralEmbedder())
        memory = backend.open_memory(endpoint.url, "one", runtime, ON)
        memory.create_thread(resource_id="r", id="t")
        memory.save_messages([NewMessage("a", "t", EAST)])
        memory.close()
        backend.drop_namespace(endpoint.url, "one")
        memory = backend.open_memory(endpoint.url, "one", runtime, ON)
        assert memory.get_thread("t") is None
        described = memory.semantic_index()
        assert described is not None
        assert described.count == 0
        memory.close()
    assert not any(Path(folder).exists() for folder in split(endpoint.url))


def test_one_engine_serves_a_backend_joined_with_itself() -> None:
    backend = find("libsql+libsql")
    assert isinstance(backend, ComposedBackend)
    with backend.provisioners["embedded"].start(None) as endpoint:
        first, second = split(endpoint.url)
    assert first == second


def test_a_backend_without_engine_needs_none() -> None:
    backend = find("reference+faiss")
    assert isinstance(backend, ComposedBackend)
    with backend.provisioners["memory"].start(None) as endpoint:
        assert endpoint.url == " + :memory:"


def test_one_url_for_two_is_no_endpoint(tmp_path: Path) -> None:
    backend = find("libsql+faiss")
    assert isinstance(backend, ComposedBackend)
    with pytest.raises(EngineUnavailable), backend.provisioners["url"].start(str(tmp_path)):
        pass


def test_a_store_without_messages_cannot_be_the_first() -> None:
    class Vectors(ReferenceBackend):
        def capabilities(self, url: str) -> Capabilities:
            return Capabilities(storage=False, vectors=True)

    with pytest.raises(EngineUnavailable, match="keeps no messages"):
        ComposedBackend(Vectors(), find("faiss")).capabilities(" + :memory:")


def test_the_version_names_the_two_engines_that_are_used() -> None:
    version = find("reference+faiss").version(" + :memory:")
    assert "faiss" in version
    assert "libsql" not in version


def test_capabilities_are_those_of_both() -> None:
    backend = find("libsql+faiss")
    together = backend.capabilities(":memory: + /tmp/folder")
    assert together.atomicity == "compensated"
    assert together.semantic_recall
    assert not together.durable
    assert together.index_types == ("flat", "hnsw", "ivfflat")


def locked(path: Path) -> bool:
    """Whether somebody who opens the file for himself, as another process does, has to wait."""
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_a_turn_by_file_holds_up_other_processes(tmp_path: Path) -> None:
    turn = FileTurn(tmp_path / "lock")
    with turn:
        assert locked(tmp_path / "lock")


def test_a_turn_by_file_may_be_taken_again_by_who_has_it(tmp_path: Path) -> None:
    turn = FileTurn(tmp_path / "lock")
    with turn, turn:
        pass
    assert not locked(tmp_path / "lock")


def test_a_turn_within_a_turn_does_not_end_it(tmp_path: Path) -> None:
    turn = FileTurn(tmp_path / "lock")
    with turn:
        with turn:
            pass
        assert locked(tmp_path / "lock")


def test_a_turn_by_file_that_cannot_be_taken_is_not_held(tmp_path: Path) -> None:
    turn = FileTurn(tmp_path / "absent" / "lock")
    with pytest.raises(FileNotFoundError), turn:
        pass
    (tmp_path / "absent").mkdir()
    with turn:
        assert locked(tmp_path / "absent" / "lock")
