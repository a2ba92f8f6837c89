"""Facts of the libSQL adapter that no clause states: plans, files, namespaces, what the binding does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

import pytest
from memassay.backends.libsql import LibsqlBackend
from memassay.backends.libsql_client import Connection, Cursor, Row, connect
from memassay.backends.provision import EngineUnavailable
from memassay.backends.registry import find
from memassay.spec.errors import ConfigurationError, InvalidRequest
from memassay.spec.protocols import Memory, Runtime
from memassay.spec.types import Include, MemoryConfig, MessageFilter, NewMessage, OrderBy, ThreadFilter

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
BACKEND = LibsqlBackend()


class Recorder:
    """A connection that keeps the selects it ran and can tell their plans."""

    def __init__(self, inner: Connection) -> None:
        self.inner = inner
        self.selects: list[tuple[str, Sequence[object]]] = []

    @property
    def in_transaction(self) -> bool:
        return self.inner.in_transaction

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> Cursor:
        if sql.strip().startswith("select"):
            self.selects.append((sql, parameters))
        return self.inner.execute(sql, parameters)

    def executemany(self, sql: str, parameters: list[Row]) -> Cursor:
        return self.inner.executemany(sql, parameters)

    def close(self) -> None:
        self.inner.close()

    def plans(self, part: str) -> list[str]:
        """The plans of the recorded selects whose text has this part."""
        found = [
            "; ".join(row[3] for row in self.inner.execute("explain query plan " + sql, values).fetchall())
            for sql, values in self.selects
            if part in sql
        ]
        assert found
        return found


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "memory.db")


@pytest.fixture
def recorder(path: str, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder(connect(path))

    def connected(path: str) -> Connection:
        return recorder

    monkeypatch.setattr("memassay.backends.libsql_client.connect", connected)
    return recorder


def opened(path: str, namespace: str = "one") -> Memory:
    return BACKEND.open_memory(path, namespace, Runtime(), MemoryConfig())


@pytest.fixture
def memory(path: str) -> Iterator[Memory]:
    memory = opened(path)
    memory.create_thread(resource_id="r", id="t")
    yield memory
    memory.close()


@pytest.fixture
def recorded(recorder: Recorder, path: str) -> Iterator[Memory]:
    memory = opened(path)
    memory.create_thread(resource_id="r", id="t")
    memory.save_messages([NewMessage(f"m{i}", "t", "x", created_at=NOON, metadata={"k": i % 2}) for i in range(30)])
    recorder.selects.clear()
    yield memory
    memory.close()


def tables(path: str) -> set[str]:
    connection = connect(path)
    names = {row[0] for row in connection.execute("select name from sqlite_schema where type = 'table'").fetchall()}
    connection.close()
    return names


# Plans


def test_the_newest_page_walks_the_order_index_without_sorting(recorder: Recorder, recorded: Memory) -> None:
    recorded.recall("t", per_page=5)
    assert recorder.plans("order by") == ["SEARCH one_messages USING INDEX one_messages_order (thread_id=?)"]


def test_a_deep_page_walks_the_order_index_without_sorting(recorder: Recorder, recorded: Memory) -> None:
    recorded.recall("t", page=5, per_page=5, order_by=OrderBy(direction="ASC"))
    assert recorder.plans("order by") == ["SEARCH one_messages USING INDEX one_messages_order (thread_id=?)"]


def test_the_total_is_counted_in_the_order_index_alone(recorder: Recorder, recorded: Memory) -> None:
    recorded.recall("t", per_page=0)
    assert recorder.plans("count(*)") == ["SEARCH one_messages USING COVERING INDEX one_messages_order (thread_id=?)"]


def test_a_window_is_found_by_instant_and_position_even_among_ties(recorder: Recorder, recorded: Memory) -> None:
    recorded.recall("t", include=[Include("m15", with_previous_messages=2, with_next_messages=2)])
    assert recorder.plans("(created_at, position)") == [
        f"SEARCH one_messages USING INDEX one_messages_order (thread_id=? AND (created_at,position){sign}(?,?))"
        for sign in "<>"
    ]


def test_a_metadata_condition_is_found_by_its_value(recorder: Recorder, recorded: Memory) -> None:
    recorded.recall("t", filter=MessageFilter(metadata={"k": 1}))
    search = "one_message_values_search (thread_id=? AND key=? AND value=?)"
    assert all(search in plan for plan in recorder.plans("one_message_values"))


@pytest.mark.parametrize("field", ["created_at", "updated_at"])
@pytest.mark.parametrize("resource_id", [None, "r"])
def test_threads_are_listed_without_sorting(
    recorder: Recorder, recorded: Memory, field: str, resource_id: str | None
) -> None:
    recorded.list_threads(filter=ThreadFilter(resource_id=resource_id), order_by=OrderBy(field=field))
    assert all("B-TREE" not in plan for plan in recorder.plans("order by"))


def test_a_page_past_the_end_asks_nothing(recorder: Recorder, recorded: Memory) -> None:
    recorded.recall("t", page=2**53 - 1, per_page=2**53 - 1)
    assert [sql for sql, _ in recorder.selects if "order by" in sql] == []


# What is stored


def test_instants_beyond_32_bits_are_stored_as_integers(path: str, memory: Memory) -> None:
    instants = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)]
    memory.save_messages([NewMessage(f"m{i}", "t", "x", created_at=at) for i, at in enumerate(instants)])
    connection = connect(path)
    rows = connection.execute("select created_at, typeof(created_at) from one_messages order by created_at").fetchall()
    connection.close()
    assert rows == [(-62135596800000, "integer"), (253402300799999, "integer")]


def test_no_value_outlives_its_message(path: str, memory: Memory) -> None:
    memory.create_thread(resource_id="r", id="u")
    memory.save_messages([NewMessage(f"m{i}", "t", "x", metadata={"k": i}) for i in range(4)])
    memory.save_messages([NewMessage("m0", "u", "x"), NewMessage("m1", "u", "x", metadata={"k": 1})])
    memory.delete_messages(["m2"])
    memory.clear_messages("t")
    memory.delete_thread("u")
    connection = connect(path)
    rows = connection.execute("select * from one_message_values").fetchall()
    connection.close()
    assert rows == []


def test_a_filter_may_have_ten_thousand_keys(memory: Memory) -> None:
    many = {f"k{i}": i for i in range(10_000)}
    memory.save_messages([NewMessage("m", "t", "x", metadata=many)])
    assert memory.recall("t", filter=MessageFilter(metadata=many)).total == 1


# Namespaces and files


def test_namespaces_do_not_see_each_other(path: str, memory: Memory) -> None:
    other = opened(path, "one_messages")
    assert other.get_thread("t") is None
    other.close()


def test_dropping_a_namespace_drops_its_own_tables_only(path: str, memory: Memory) -> None:
    before = tables(path)
    connection = connect(path)
    connection.execute("create table two_others (x)")
    connection.close()
    opened(path, "two").close()
    BACKEND.drop_namespace(path, "two")
    assert tables(path) == before | {"two_others"}


def test_dropping_an_absent_namespace_does_nothing(path: str, memory: Memory) -> None:
    before = tables(path)
    BACKEND.drop_namespace(path, "absent")
    assert tables(path) == before


def test_dropping_creates_no_file(path: str) -> None:
    BACKEND.drop_namespace(path, "one")
    assert not Path(path).exists()


def test_a_namespace_that_could_change_the_sql_is_refused(path: str) -> None:
    with pytest.raises(InvalidRequest):
        opened(path, "x; drop table y")


def test_a_file_url_opens_the_same_file_as_its_path(path: str, memory: Memory) -> None:
    other = opened(f"file:{path}")
    assert other.get_thread("t") == memory.get_thread("t")
    other.close()


def test_a_remote_url_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        opened("libsql://host")


def test_what_is_committed_is_synchronised_to_disk(recorder: Recorder, recorded: Memory) -> None:
    settings = [recorder.execute(f"pragma {name}").fetchall() for name in ("journal_mode", "synchronous")]
    assert settings == [[("wal",)], [(2,)]]


# Clients


def test_a_call_on_a_closed_client_is_a_configuration_error(memory: Memory) -> None:
    memory.close()
    with pytest.raises(ConfigurationError, match="closed"):
        memory.get_thread("t")


def test_closing_twice_does_nothing(memory: Memory) -> None:
    memory.close()
    memory.close()


def test_an_error_of_the_engine_is_not_swallowed(path: str, memory: Memory) -> None:
    BACKEND.drop_namespace(path, "one")
    with pytest.raises(ValueError, match="no such table"):
        memory.get_thread("t")


def test_an_error_before_the_commit_undoes_the_call(path: str, memory: Memory) -> None:
    def fault(point: str) -> None:
        if armed:
            raise RuntimeError(point)

    armed = False
    client = BACKEND.open_memory(path, "one", Runtime(fault=fault), MemoryConfig())
    armed = True
    with pytest.raises(RuntimeError, match="before commit"):
        client.save_messages([NewMessage("m", "t", "x")])
    client.close()
    assert memory.recall("t").total == 0


def test_threads_of_a_process_lose_no_merge(path: str, memory: Memory) -> None:
    def merge(writer: int) -> None:
        client = opened(path)
        for turn in range(20):
            client.update_thread("t", metadata={f"{writer}-{turn}": turn})
        client.close()

    writers = [Thread(target=merge, args=(writer,)) for writer in range(20)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    thread = memory.get_thread("t")
    assert thread is not None
    assert len(thread.metadata) == 400


# The backend and its provisioners


def test_the_registry_finds_it() -> None:
    assert isinstance(find("libsql"), LibsqlBackend)


def test_the_version_names_the_package_and_the_engine(path: str) -> None:
    assert BACKEND.version(path).startswith("libsql 0.1.")
    assert "(SQLite 3." in BACKEND.version(path)


def test_memory_is_neither_durable_nor_shared() -> None:
    can = BACKEND.capabilities(":memory:")
    assert (can.durable, can.concurrent_clients) == (False, False)


def test_a_file_is_durable_and_shared(path: str) -> None:
    can = BACKEND.capabilities(path)
    assert (can.durable, can.concurrent_clients) == (True, True)


def test_each_client_in_memory_has_its_own() -> None:
    first, second = opened(":memory:"), opened(":memory:")
    first.create_thread(resource_id="r", id="t")
    assert second.get_thread("t") is None
    first.close()
    second.close()


@pytest.mark.parametrize("method", ["embedded", "memory", "url"])
def test_every_provisioner_is_ready(method: str) -> None:
    assert BACKEND.provisioners[method].missing() is None


def test_the_embedded_provisioner_removes_its_files() -> None:
    with BACKEND.provisioners["embedded"].start(None) as endpoint:
        memory = opened(endpoint.url)
        folder = Path(endpoint.url).parent
        assert folder.is_dir()
        memory.close()
    assert not folder.exists()


def test_the_memory_provisioner_gives_the_memory_url() -> None:
    with BACKEND.provisioners["memory"].start(None) as endpoint:
        assert endpoint.url == ":memory:"


def test_the_url_provisioner_leaves_the_file(path: str, memory: Memory) -> None:
    with BACKEND.provisioners["url"].start(f"file:{path}") as endpoint:
        assert endpoint.url == path
    assert Path(path).exists()


def test_the_url_provisioner_refuses_a_file_that_is_no_database(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a database")
    with pytest.raises(EngineUnavailable, match="is no database"), BACKEND.provisioners["url"].start(str(file)):
        pass
    assert file.read_text() == "not a database"


@pytest.mark.parametrize("url", [None, "", "libsql://host", "/no/such/folder/memory.db"])
def test_the_url_provisioner_refuses_what_it_cannot_reach(url: str | None) -> None:
    with pytest.raises(EngineUnavailable), BACKEND.provisioners["url"].start(url):
        pass
