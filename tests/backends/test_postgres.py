"""PostgreSQL: facts of this adapter that the clauses do not see."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import psycopg
import pytest
from memassay.backends.postgres import PostgresBackend, PostgresMemory, recall_statement
from memassay.backends.provision import EngineUnavailable
from memassay.backends.provision.postgres import GIVEN, EmbeddedPostgres
from memassay.spec.errors import AlreadyExists, ConfigurationError, InvalidRequest, StoreError, Unavailable
from memassay.spec.protocols import Memory, Runtime
from memassay.spec.requests import parse_recall
from memassay.spec.types import (
    DateRange,
    Include,
    MemoryConfig,
    MessageFilter,
    MessageUpdate,
    NewMessage,
    OrderBy,
)

AT = datetime(2024, 2, 29, 12, 0, tzinfo=UTC)
BACKEND = PostgresBackend()
OLDEST_FIRST = OrderBy(direction="ASC")


def connect(url: str, namespace: str) -> Memory:
    return BACKEND.open_memory(url, namespace, Runtime(clock=lambda: AT), MemoryConfig())


@pytest.fixture
def memory(postgres_url: str) -> Generator[Memory]:
    """An empty namespace with the thread t of resource r."""
    BACKEND.drop_namespace(postgres_url, "test")
    client = connect(postgres_url, "test")
    client.create_thread(resource_id="r", id="t")
    yield client
    client.close()
    BACKEND.drop_namespace(postgres_url, "test")


def schemas(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        return {row[0] for row in connection.execute("SELECT nspname FROM pg_namespace").fetchall()}


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Run the calls at the same time, each in a thread; results, or the errors of the specification."""
    outcomes: list[Any] = [None] * len(calls)
    ready = threading.Barrier(len(calls))

    def run(index: int) -> None:
        ready.wait()
        try:
            outcomes[index] = calls[index]()
        except (StoreError, psycopg.Error) as error:
            outcomes[index] = error

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    return outcomes


# Namespaces


def test_version_is_the_servers_own(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        number = connection.info.server_version
    assert BACKEND.version(postgres_url) == f"PostgreSQL {number // 10000}.{number % 10000}"


def test_a_namespace_is_a_schema(memory: Memory, postgres_url: str) -> None:
    assert "memassay_test" in schemas(postgres_url)


def test_drop_removes_the_schema(memory: Memory, postgres_url: str) -> None:
    BACKEND.drop_namespace(postgres_url, "test")
    assert "memassay_test" not in schemas(postgres_url)


def test_drop_of_an_absent_namespace_does_nothing(postgres_url: str) -> None:
    before = schemas(postgres_url)
    BACKEND.drop_namespace(postgres_url, "absent")
    assert schemas(postgres_url) == before


def test_namespaces_do_not_see_each_other(memory: Memory, postgres_url: str) -> None:
    other = connect(postgres_url, "test_other")
    assert other.get_thread("t") is None
    other.close()
    BACKEND.drop_namespace(postgres_url, "test_other")


def test_reset_empties_one_namespace_and_no_other(memory: Memory, postgres_url: str) -> None:
    memory.save_messages([NewMessage("a", "t", "text")])
    other = connect(postgres_url, "test_other")
    other.create_thread(resource_id="r", id="t")
    BACKEND.reset_namespace(postgres_url, "test")
    assert memory.list_threads().total == 0
    assert memory.recall("t", include=[Include("a")]).messages == ()
    assert other.list_threads().total == 1
    other.close()
    BACKEND.drop_namespace(postgres_url, "test_other")


def test_a_client_survives_drop_and_new_creation_of_its_namespace(memory: Memory, postgres_url: str) -> None:
    for _ in range(8):  # so often that its statements are prepared
        memory.recall("t")
    BACKEND.drop_namespace(postgres_url, "test")
    connect(postgres_url, "test").close()
    assert memory.recall("t").total == 0


def test_twenty_clients_may_open_one_new_namespace_at_once(postgres_url: str) -> None:
    BACKEND.drop_namespace(postgres_url, "test_crowd")
    clients = together(*[lambda: connect(postgres_url, "test_crowd")] * 20)
    assert {type(client) for client in clients} == {PostgresMemory}
    for client in clients:
        client.close()
    BACKEND.drop_namespace(postgres_url, "test_crowd")


@pytest.mark.parametrize("act", ["open", "drop", "reset"])
def test_a_schema_of_somebody_else_is_refused(postgres_url: str, act: str) -> None:
    calls: dict[str, Callable[[], object]] = {
        "open": lambda: connect(postgres_url, "foreign"),
        "drop": lambda: BACKEND.drop_namespace(postgres_url, "foreign"),
        "reset": lambda: BACKEND.reset_namespace(postgres_url, "foreign"),
    }
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA memassay_foreign CREATE TABLE mine ()")
        with pytest.raises(ConfigurationError):
            calls[act]()
        connection.execute("DROP TABLE memassay_foreign.mine; DROP SCHEMA memassay_foreign")


@pytest.mark.parametrize("namespace", ["", "A", "1a", "a-b", "a" * 41, 'a"; DROP SCHEMA public; --', "a\n"])
def test_no_other_namespace_is_opened(postgres_url: str, namespace: str) -> None:
    with pytest.raises(InvalidRequest):
        connect(postgres_url, namespace)


# Values


def test_time_zones_of_process_database_and_role_change_nothing(
    memory: Memory, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, last = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)
    memory.save_messages([NewMessage("first", "t", "", created_at=first), NewMessage("last", "t", "", created_at=last)])
    monkeypatch.setenv("PGTZ", "Asia/Kathmandu")
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("ALTER DATABASE postgres SET timezone = 'Asia/Kathmandu'")
        admin.execute("ALTER ROLE postgres SET timezone = 'Asia/Kathmandu'")
        try:
            elsewhere = connect(postgres_url, "test")
            elsewhere.save_messages([NewMessage("middle", "t", "", created_at=AT)])
            found = elsewhere.recall("t", order_by=OLDEST_FIRST).messages
            only = elsewhere.recall("t", filter=MessageFilter(date_range=DateRange(start=AT, end=AT))).messages
            elsewhere.close()
        finally:
            admin.execute("ALTER ROLE postgres RESET timezone")
            admin.execute("ALTER DATABASE postgres RESET timezone")
    assert [message.created_at for message in found] == [first, AT, last]
    assert [message.id for message in only] == ["middle"]


def test_a_client_encoding_of_the_environment_changes_nothing(
    memory: Memory, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    other = connect(postgres_url, "test")
    other.save_messages([NewMessage("\U0001f600", "t", "e\u0301 \U0001f600")])
    other.close()
    assert memory.recall("t").messages[0].content == "e\u0301 \U0001f600"


def test_a_stricter_default_isolation_of_the_role_fails_no_writer(memory: Memory, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("ALTER ROLE postgres SET default_transaction_isolation = 'serializable'")
        try:
            clients = [connect(postgres_url, "test") for _ in range(10)]
        finally:
            admin.execute("ALTER ROLE postgres RESET default_transaction_isolation")
    outcomes = together(*[lambda i=i, c=c: c.update_thread("t", metadata={f"k{i}": i}) for i, c in enumerate(clients)])
    assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    for client in clients:
        client.close()


@pytest.mark.parametrize(
    "number", [1e16, 1e300, 5e-324, 1.7976931348623157e308, 0.1, 2.0**53, 2**53 - 1, 1.0, 1], ids=repr
)
def test_numbers_come_back_of_their_own_type_though_jsonb_would_change_them(memory: Memory, number: float) -> None:
    memory.save_messages([NewMessage("a", "t", "", metadata={"k": number})])
    result = memory.recall("t", filter=MessageFilter(metadata={"k": number}))
    assert repr(result.messages[0].metadata) == repr({"k": number})


def test_a_string_of_one_mebibyte_is_stored_and_found_by_itself(memory: Memory) -> None:
    long = "한" * 349_000
    memory.save_messages([NewMessage("a", "t", long, metadata={"k": long}), NewMessage("b", "t", "", metadata={})])
    result = memory.recall("t", filter=MessageFilter(metadata={"k": long}))
    assert [message.content for message in result.messages] == [long]
    assert memory.recall("t", filter=MessageFilter(metadata={"k": long[:-1]})).total == 0


def test_metadata_returned_by_save_is_not_what_was_passed(memory: Memory) -> None:
    given: dict[str, Any] = {"k": [1]}
    saved = memory.save_messages([NewMessage("a", "t", "", metadata=given)])[0]
    saved.metadata["k"].append(2)
    assert given == {"k": [1]}
    assert memory.recall("t").messages[0].metadata == {"k": [1]}


# Plans


@pytest.fixture(scope="module")
def crowded(postgres_url: str) -> Generator[psycopg.Connection[Any]]:
    """A raw connection to a namespace whose thread t holds 20,000 messages, with statistics."""
    client = connect(postgres_url, "crowded")
    client.create_thread(resource_id="r", id="t")
    client.save_messages(
        [NewMessage(f"m{i}", "t", "text", created_at=AT + timedelta(seconds=i)) for i in range(20_000)]
    )
    client.close()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("SET search_path = memassay_crowded")
        connection.execute("ANALYZE messages")
        yield connection
    BACKEND.drop_namespace(postgres_url, "crowded")


def rows_read(connection: psycopg.Connection[Any], **request: Any) -> tuple[int, set[str]]:
    """How many rows of messages a recall of thread t reads, and by which kinds of plan node."""
    asked = parse_recall("t", MemoryConfig(), **request)
    statement, parameters = recall_statement(asked)
    row = connection.execute(f"EXPLAIN (ANALYZE, FORMAT json) {statement}", parameters).fetchone()
    assert row is not None
    scans: list[dict[str, Any]] = []

    def visit(node: dict[str, Any]) -> None:
        if node.get("Relation Name") == "messages":
            scans.append(node)
        for child in node.get("Plans", ()):
            visit(child)

    visit(row[0][0]["Plan"])
    read = sum((scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0)) * scan["Actual Loops"] for scan in scans)
    return int(read), {scan["Node Type"] for scan in scans}


def test_the_newest_page_reads_its_own_rows_by_the_index(crowded: psycopg.Connection[Any]) -> None:
    assert rows_read(crowded) == (10, {"Index Scan"})


def test_a_window_reads_its_own_rows_by_the_index(crowded: psycopg.Connection[Any]) -> None:
    window = Include("m9000", with_previous_messages=3, with_next_messages=2)
    # The message itself is read twice: once to find it, once as the first of those from it on.
    assert rows_read(crowded, include=[window]) == (7, {"Index Scan"})


def test_a_date_range_reads_its_own_rows_by_the_index(crowded: psycopg.Connection[Any]) -> None:
    narrow = DateRange(start=AT + timedelta(seconds=100), end=AT + timedelta(seconds=104))
    read, nodes = rows_read(crowded, filter=MessageFilter(date_range=narrow))
    assert read == 10  # five to count them, five to return them
    assert "Seq Scan" not in nodes


def test_the_window_holds_the_neighbours(crowded: psycopg.Connection[Any], postgres_url: str) -> None:
    client = connect(postgres_url, "crowded")
    window = Include("m9000", with_previous_messages=2, with_next_messages=1)
    found = client.recall("t", include=[window], order_by=OLDEST_FIRST)
    client.close()
    assert [message.id for message in found.messages] == ["m8998", "m8999", "m9000", "m9001"]
    assert found.total == 20_000


# Concurrency


@pytest.fixture
def crew(memory: Memory, postgres_url: str) -> Generator[list[Memory]]:
    """Twenty clients of the namespace of `memory`."""
    clients = [connect(postgres_url, "test") for _ in range(20)]
    yield clients
    for client in clients:
        client.close()


def test_of_twenty_creators_of_one_id_one_succeeds(crew: list[Memory]) -> None:
    outcomes = together(*[lambda c=c: c.create_thread(resource_id="r", id="new") for c in crew])
    assert sum(isinstance(outcome, AlreadyExists) for outcome in outcomes) == 19


def test_twenty_mergers_of_thread_metadata_lose_no_key(crew: list[Memory]) -> None:
    together(*[lambda i=i, c=c: c.update_thread("t", metadata={f"k{i}": i}) for i, c in enumerate(crew)])
    thread = crew[0].get_thread("t")
    assert thread is not None
    assert thread.metadata == {f"k{i}": i for i in range(20)}


def test_twenty_mergers_of_message_metadata_lose_no_key(crew: list[Memory]) -> None:
    crew[0].save_messages([NewMessage("a", "t", "")])
    together(
        *[lambda i=i, c=c: c.update_messages([MessageUpdate("a", metadata={f"k{i}": i})]) for i, c in enumerate(crew)]
    )
    assert crew[0].recall("t").messages[0].metadata == {f"k{i}": i for i in range(20)}


def test_savers_of_the_same_messages_into_two_threads_neither_fail_nor_miscount(crew: list[Memory]) -> None:
    crew[0].create_thread(resource_id="r", id="u")
    ids = [f"m{i}" for i in range(40)]
    outcomes = together(
        *[
            lambda i=i, c=c: c.save_messages(
                [NewMessage(each, "tu"[i % 2], "") for each in (ids if i % 3 else ids[::-1])]
            )
            for i, c in enumerate(crew)
        ]
    )
    assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    recalled = [crew[0].recall(thread, per_page=False) for thread in "tu"]
    assert sorted(message.id for result in recalled for message in result.messages) == sorted(ids)
    assert [result.total for result in recalled] == [len(result.messages) for result in recalled]


def test_a_thread_deleted_during_saves_keeps_no_message(crew: list[Memory]) -> None:
    together(
        *[
            (lambda i=i, c=c: c.save_messages([NewMessage(f"m{i}-{j}", "t", "") for j in range(50)]))
            if i % 5
            else (lambda c=c: c.delete_thread("t"))
            for i, c in enumerate(crew)
        ]
    )
    crew[0].create_thread(resource_id="r", id="t")
    assert crew[0].recall("t", per_page=False).messages == ()


def test_a_client_may_be_used_by_several_threads(memory: Memory) -> None:
    outcomes = together(*[lambda i=i: memory.save_messages([NewMessage(f"m{i}", "t", "")]) for i in range(10)])
    assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert memory.recall("t").total == 10


# Closing and failing


def test_close_may_be_called_twice(memory: Memory) -> None:
    memory.close()
    memory.close()


CALLS: dict[str, Callable[[Memory], object]] = {
    "get_thread": lambda memory: memory.get_thread("t"),
    "list_threads": lambda memory: memory.list_threads(),
    "update_thread": lambda memory: memory.update_thread("t", title="x"),
    "save_messages": lambda memory: memory.save_messages([NewMessage("a", "t", "")]),
    "delete_messages": lambda memory: memory.delete_messages([]),
    "recall": lambda memory: memory.recall("t"),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_after_close_is_refused(memory: Memory, call: str) -> None:
    memory.close()
    with pytest.raises(ConfigurationError):
        CALLS[call](memory)


@pytest.mark.parametrize("call", CALLS)
def test_a_lost_connection_is_an_error_and_no_empty_answer(memory: Memory, postgres_url: str, call: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'memassay'"
        )
    with pytest.raises(Unavailable):
        CALLS[call](memory)


def test_a_client_connects_anew(memory: Memory, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'memassay'"
        )
    with pytest.raises(Unavailable):
        memory.get_thread("t")
    assert memory.get_thread("t") is not None


class Crash(BaseException):
    """The process ends here."""


def crash_at(point: str, url: str, call: Callable[[Memory], object]) -> None:
    def fault(reached: str) -> None:
        if reached == point:
            raise Crash

    client = BACKEND.open_memory(url, "test", Runtime(fault=fault), MemoryConfig())
    with pytest.raises(Crash):
        call(client)
    client.close()


WRITES: dict[str, Callable[[Memory], object]] = {
    "create_thread": lambda memory: memory.create_thread(resource_id="r", id="new"),
    "update_thread": lambda memory: memory.update_thread("t", title="new"),
    "delete_thread": lambda memory: memory.delete_thread("t"),
    "save_messages": lambda memory: memory.save_messages([NewMessage("new", "t", "")]),
    "update_messages": lambda memory: memory.update_messages([MessageUpdate("old", content="new")]),
    "delete_messages": lambda memory: memory.delete_messages(["old"]),
    "clear_messages": lambda memory: memory.clear_messages("t"),
}


def everything(memory: Memory) -> tuple[object, object]:
    return memory.list_threads(per_page=False), memory.recall("t", per_page=False)


@pytest.mark.parametrize("call", WRITES)
def test_a_crash_before_the_commit_leaves_nothing(memory: Memory, postgres_url: str, call: str) -> None:
    memory.save_messages([NewMessage("old", "t", "")])
    before = everything(memory)
    crash_at("before commit", postgres_url, WRITES[call])
    assert everything(memory) == before


@pytest.mark.parametrize("call", WRITES)
def test_a_crash_after_the_commit_loses_nothing(memory: Memory, postgres_url: str, call: str) -> None:
    memory.save_messages([NewMessage("old", "t", "")])
    before = everything(memory)
    crash_at("after commit", postgres_url, WRITES[call])
    assert everything(memory) != before


# Provisioning


def running(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that still run; one that has ended and waits to be reaped by init does not."""
    return [one for one in processes if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory that is the temporary directory."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_url_is_preferred_to_docker_and_docker_to_embedded() -> None:
    assert list(BACKEND.provisioners) == ["url", "docker", "embedded"]


@pytest.mark.parametrize("interruption", [RuntimeError, KeyboardInterrupt])
def test_embedded_leaves_no_process_and_no_directory(fresh: Path, interruption: type[BaseException]) -> None:
    ours: list[psutil.Process] = []

    def use() -> None:
        with EmbeddedPostgres().start(None) as endpoint:
            assert BACKEND.version(endpoint.url) in endpoint.detail
            (pid_file,) = fresh.glob("*/data/postmaster.pid")
            postmaster = psutil.Process(int(pid_file.read_text().split()[0]))
            ours.extend([postmaster, *postmaster.children(recursive=True)])
            raise interruption

    with pytest.raises(interruption):
        use()
    assert len(ours) > 1
    assert running(ours) == []
    assert [path for path in fresh.iterdir() if path.is_dir()] == []


def test_embedded_keeps_fsync_on(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        settings = connection.execute(
            "SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit')"
        ).fetchall()
    assert dict(settings) == {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}


def test_embedded_shows_what_the_server_said_when_it_does_not_start(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPORT", "70000")
    with pytest.raises(EngineUnavailable, match="70000 is outside the valid range"), EmbeddedPostgres().start(None):
        pass
    assert [path for path in fresh.iterdir() if path.is_dir()] == []


def test_url_reaches_a_server_and_says_which(postgres_url: str) -> None:
    with GIVEN.start(postgres_url) as endpoint:
        assert endpoint.url == postgres_url
        assert endpoint.detail.startswith(BACKEND.version(postgres_url))


def test_url_does_not_show_the_password(postgres_url: str) -> None:
    secret = "s3cr3t"
    host = quote(postgres_url.partition("host=")[2], safe="")
    with GIVEN.start(f"postgresql://postgres:{secret}@/postgres?host={host}") as endpoint:
        assert secret not in endpoint.detail


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:s3cr3t@127.0.0.1:1/d",
        "postgresql://u:p@s3cr3t/x@127.0.0.1:1/d",
        "postgresql://u:p/s3cr3t@127.0.0.1:1/d",
        "postgresql://u:s3cr3t/x@127.0.0.1:1/d",
        "postgresql://u@127.0.0.1:1/d?password=s3cr3t",
        "postgresql://u:s3cr3t%zz@127.0.0.1:1/d",
        "postgres:/u:s3cr3t@h/d",
    ],
)
def test_a_url_that_does_not_work_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(EngineUnavailable) as caught, GIVEN.start(url):
        pass
    assert "s3cr3t" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.hint


def test_no_url_is_refused() -> None:
    with pytest.raises(EngineUnavailable), GIVEN.start(None):
        pass


def test_a_database_of_another_encoding_is_refused(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
        try:
            with (
                pytest.raises(EngineUnavailable, match="LATIN1"),
                GIVEN.start(postgres_url.replace("/postgres?", "/latin?")),
            ):
                pass
        finally:
            admin.execute("DROP DATABASE latin")
