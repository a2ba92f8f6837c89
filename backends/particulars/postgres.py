"""PostgreSQL: its settings of durability and memory, EXPLAIN of a page and of a search, sizes of tables and indices."""

from __future__ import annotations

import re
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from . import Particulars

SETTINGS = ("fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "work_mem")
OPERATORS: dict[str, LiteralString] = {"cosine": "<=>", "euclidean": "<->", "dotproduct": "<#>"}
NODE = re.compile(r"(\w[\w ]*(?:Scan|Sort)(?: Backward)?(?: using \S+)?(?: on \S+)?)")

NEWEST: LiteralString = "SELECT * FROM messages WHERE thread_id = %s ORDER BY created_at DESC, position DESC LIMIT 10"
SIZES: LiteralString = """
    SELECT c.relname, CASE WHEN c.relkind = 'i' THEN pg_relation_size(c.oid) ELSE pg_table_size(c.oid) END
    FROM pg_class AS c WHERE c.relnamespace = %s::regnamespace AND c.relkind IN ('r', 'i') ORDER BY 2 DESC, 1 LIMIT 8
"""


def ask(url: str, namespace: str, index: str) -> Particulars:
    """See particulars.particulars."""
    schema = f"memassay_{namespace}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT set_config('search_path', %s, false)", (schema,))
        settings = {name: str(_only(connection, sql.SQL("SHOW {}").format(sql.Identifier(name)))) for name in SETTINGS}
        plan: dict[str, str] = {}
        thread = connection.execute("SELECT thread_id FROM messages LIMIT 1").fetchone()
        if thread is not None:
            plan["newest"] = _plan(connection, sql.SQL(NEWEST), thread)
        found = _found(connection, index)
        if found is not None:
            plan["search"] = _plan(connection, _search(*found))
        sizes = {str(name): int(size) for name, size in connection.execute(SIZES, (schema,)).fetchall()}
    return Particulars(settings, plan, sizes)


def _found(connection: psycopg.Connection[Any], index: str) -> tuple[str, str] | None:
    """The table of a vector index, and its metric."""
    if _only(connection, sql.SQL("SELECT to_regclass('indexes')")) is None:
        return None
    row = connection.execute("SELECT relation, metric FROM indexes WHERE name = %s", (index,)).fetchone()
    return None if row is None else (str(row[0]), str(row[1]))


def _search(relation: str, metric: str) -> sql.Composed:
    return sql.SQL("SELECT id FROM {table} ORDER BY embedding OPERATOR(public.{operator}) {query} LIMIT 36").format(
        table=sql.Identifier(relation),
        operator=sql.SQL(OPERATORS[metric]),
        query=sql.SQL("(SELECT embedding FROM {} LIMIT 1)").format(sql.Identifier(relation)),
    )


def _plan(connection: psycopg.Connection[Any], query: sql.SQL | sql.Composed, values: Any = ()) -> str:
    """The scans and sorts of EXPLAIN, outermost first."""
    rows = connection.execute(sql.SQL("EXPLAIN (COSTS OFF) {}").format(query), values).fetchall()
    return " < ".join(match[1] for row in rows if (match := NODE.search(str(row[0]))))


def _only(connection: psycopg.Connection[Any], query: sql.SQL | sql.Composed) -> Any:
    row = connection.execute(query).fetchone()
    return None if row is None else row[0]
