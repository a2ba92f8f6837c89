"""One client of a namespace in a libSQL file: its connection, its transactions, and the wait for locks."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar, cast

import libsql  # pyright: ignore[reportMissingTypeStubs]
import msgspec

from ..spec.errors import ConfigurationError, InvalidRequest, answered
from ..spec.protocols import Runtime
from .provision.libsql import database_path

NAMESPACE = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)

LISTED = "(select value from json_each(?))"
"""Any number of ids, or of other strings and ints, bound as one JSON array."""

BUSY_TIMEOUT = 0.01
"""Seconds the engine itself waits for a lock. Short, because the binding holds the GIL meanwhile."""

PATIENCE = 60.0
"""Seconds a call waits for the locks of other processes."""

T = TypeVar("T")
Row = tuple[Any, ...]


class Cursor(Protocol):
    """What is used of libsql.Cursor."""

    rowcount: int

    def fetchall(self) -> list[Row]:
        """All rows that are left."""
        ...


class Connection(Protocol):
    """What is used of libsql.Connection. Every error of the engine is a ValueError."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        ...

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> Cursor:
        """Run one statement."""
        ...

    def executemany(self, sql: str, parameters: list[Row]) -> Cursor:
        """Run one statement for each tuple of parameters."""
        ...

    def close(self) -> None:
        """Let go of the file; any later use panics."""
        ...


def connect(path: str) -> Connection:
    """A connection without implicit transactions, usable from any thread."""
    engine = cast(Any, libsql)
    return engine.connect(path, timeout=BUSY_TIMEOUT, isolation_level=None, _check_same_thread=False)


class Client:
    """A connection to one namespace. Threads may share it, one transaction at a time.

    In all SQL `$` stands for the namespace and an underscore.
    """

    def __init__(self, path: str, namespace: str, runtime: Runtime) -> None:
        if not NAMESPACE.fullmatch(namespace):
            raise InvalidRequest(f"namespace is {namespace!r}", hint="use [a-z][a-z0-9_]{0,39}")
        self._runtime = runtime
        self._prefix = namespace + "_"
        self._turn = threading.Lock()
        self._connection: Connection | None = connect(path)

    def create(self, schema: Iterable[str], then: Callable[[], None] = lambda: None) -> None:
        """Run the statements of a schema, and `then`, in one transaction; on any error close the connection."""
        try:
            # A write-ahead log lets readers go on while another client writes. `synchronous` stays at libSQL's
            # default, FULL: what a call has committed is on disk when it returns (DUR-1).
            with answered(lost):
                _patiently(lambda: self.execute("pragma journal_mode = wal").fetchall())
            with self.writing():
                for statement in schema:
                    self.execute(statement)
                then()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        with self._turn:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @contextmanager
    def reading(self) -> Generator[None]:
        """One snapshot for all that a call reads."""
        with self._turn, answered(lost):
            self.execute("begin")
            try:
                # The first read takes the snapshot, and is the one that can find the file locked.
                _patiently(lambda: self.rows("select 1 from sqlite_schema limit 1"))
                yield
            finally:
                self.execute("rollback")

    @contextmanager
    def writing(self) -> Generator[None]:
        """One transaction for all that a call writes: committed at the end, rolled back on any error."""
        with self._turn, answered(lost), _WRITER:
            _patiently(lambda: self.execute("begin immediate"))
            try:
                yield
                self._runtime.fault("before commit")
                self.execute("commit")
            except BaseException:
                if self._open().in_transaction:  # a full disk, for one, has already rolled it back
                    self.execute("rollback")
                raise
        self._runtime.fault("after commit")

    def execute(self, sql: str, values: Sequence[object] = ()) -> Cursor:
        """Run one statement."""
        return self._open().execute(sql.replace("$", self._prefix), values)

    def execute_many(self, sql: str, rows: Iterable[Row]) -> None:
        """Run one statement for each row of parameters."""
        self._open().executemany(sql.replace("$", self._prefix), list(rows))

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        """All rows of one statement."""
        return self.execute(sql, values).fetchall()

    def _open(self) -> Connection:
        if self._connection is None:
            raise ConfigurationError("this client is closed", hint="open the namespace again")
        return self._connection


# The engine waits for a lock with the GIL held, so that a holder in this process could not go on:
# writers of one process queue here, and those of other processes are waited for in short naps.
_WRITER = threading.Lock()


def _patiently(call: Callable[[], T]) -> T:
    """The call's answer, once no other process holds the lock that it needs."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return call()
        except ValueError as error:
            if "database is locked" not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.002)


LOST = re.compile("disk|locked|unable to open|readonly|out of memory", re.IGNORECASE)


def lost(error: BaseException) -> bool:
    """Whether the engine says that it cannot read or write the file now: all its errors are ValueErrors."""
    return isinstance(error, ValueError) and LOST.search(str(error)) is not None


def path_of(url: str) -> str:
    """The path that a URL names; ConfigurationError for one that names none."""
    try:
        return database_path(url)
    except ValueError as error:
        raise ConfigurationError(str(error), hint="give a path, file:/path or :memory:") from None


def to_json(value: object) -> str:
    """The value as JSON text."""
    return msgspec.json.encode(value).decode()
