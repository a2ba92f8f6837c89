"""`memassay clean`, and the refusal of servers on which something of others bears our names: on a real database."""

from __future__ import annotations

from collections.abc import Generator

import psycopg
import pytest
from harness_support import Cli
from memassay.backends.postgres import PostgresBackend
from memassay.spec.protocols import Runtime
from memassay.spec.types import MemoryConfig
from psycopg import sql

BACKEND = PostgresBackend()


@pytest.fixture
def url(postgres_url: str) -> Generator[str]:
    """A database of its own."""
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("CREATE DATABASE cleaning TEMPLATE template0 ENCODING 'UTF8'")
        yield postgres_url.replace("/postgres?", "/cleaning?")
        admin.execute("DROP DATABASE cleaning WITH (FORCE)")


def left(url: str, namespace: str) -> None:
    """What a run leaves that cannot finish."""
    BACKEND.open_memory(url, namespace, Runtime(), MemoryConfig()).close()


def schemas(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname ~ '^(memassay|theirs)' ORDER BY 1")
        return [name for (name,) in found.fetchall()]


def make(url: str, schema: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))


def test_what_runs_left_is_removed_and_nothing_else(memassay: Cli, url: str) -> None:
    left(url, "a")
    left(url, "b_2")
    make(url, "theirs")
    done = memassay("clean", "--url", f"postgres={url}")
    assert (done.returncode, schemas(url)) == (0, ["theirs"])
    assert "postgres: 2 namespaces removed" in done.stdout


def test_a_server_with_something_of_others_is_left_as_it_is(memassay: Cli, url: str) -> None:
    left(url, "a")
    make(url, "memassay_theirs")
    done = memassay("clean", "--url", f"postgres={url}")
    assert (done.returncode, schemas(url)) == (3, ["memassay_a", "memassay_theirs"])
    assert "schema memassay_theirs is not of this version of memassay" in done.stderr


def test_such_a_server_is_not_verified_either(memassay: Cli, url: str) -> None:
    make(url, "memassay_theirs")
    done = memassay("verify", "postgres", "--url", f"postgres={url}", "--level", "smoke", "--examples", "5")
    assert done.returncode == 3
    assert "schema memassay_theirs is not of this version of memassay" in done.stdout


def test_a_backend_without_a_server_has_nothing_to_clean(memassay: Cli) -> None:
    done = memassay("clean", "--url", "libsql=mine.db")
    assert (done.returncode, done.stderr) == (
        2,
        "memassay: libsql keeps nothing on a server (remove the file or directory yourself)\n",
    )
