"""What the PostgreSQL adapter's messages cost without the adapter: its statements, sent by plain client code.

It checks nothing but what the statements look up, and makes tuples of what comes back.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from . import Listed, Message

COLUMNS = "id, thread_id, resource_id, role, content, metadata, created_at"

HEAD = "SELECT owner, total, m.* FROM (SELECT (SELECT resource_id FROM threads WHERE id = %(thread)s), ({total}))"
COUNTER = "SELECT message_count FROM threads WHERE id = %(thread)s"
ROWS = (
    f"SELECT {COLUMNS}, position FROM messages WHERE {{matching}} ORDER BY created_at DESC, position DESC"
    " LIMIT %(limit)s::bigint OFFSET %(offset)s::bigint"
)
NEWEST_FIRST = "ORDER BY m.created_at DESC, m.thread_id DESC, m.position DESC"
OF_THREAD = "thread_id = %(thread)s AND true"
WITH_FACETS = f"{OF_THREAD} AND facets @> %(facets)s::jsonb"

PAGE = (
    f"{HEAD.format(total=COUNTER)} AS head (owner, total)"
    f" LEFT JOIN ({ROWS.format(matching=OF_THREAD)}) AS m ON true {NEWEST_FIRST}"
)
FILTERED = (
    f"{HEAD.format(total=f'SELECT count(*) FROM messages WHERE {WITH_FACETS}')} AS head (owner, total)"
    f" LEFT JOIN ({ROWS.format(matching=WITH_FACETS)}) AS m ON true {NEWEST_FIRST}"
)
AROUND = f"""
    SELECT DISTINCT ON (m.created_at, m.thread_id, m.position) owner, total, m.* FROM
    (SELECT (SELECT resource_id FROM threads WHERE id = %(thread)s), ({COUNTER})) AS head (owner, total)
    LEFT JOIN (({ROWS.format(matching=OF_THREAD)}) UNION ALL (
        SELECT w.* FROM unnest(%(ids)s::text[], %(threads)s::text[], %(before)s::bigint[], %(after)s::bigint[])
            AS entry (id, thread_id, before, after)
        JOIN messages AS target
            ON target.id = entry.id AND target.thread_id = entry.thread_id AND target.resource_id = %(resource)s
        CROSS JOIN LATERAL (
            (SELECT {COLUMNS}, position FROM messages
                WHERE thread_id = target.thread_id AND (created_at, position) < (target.created_at, target.position)
                ORDER BY created_at DESC, position DESC LIMIT entry.before)
            UNION ALL
            (SELECT {COLUMNS}, position FROM messages
                WHERE thread_id = target.thread_id AND (created_at, position) >= (target.created_at, target.position)
                ORDER BY created_at, position LIMIT entry.after + 1)
        ) AS w
    )) AS m ON true {NEWEST_FIRST}
"""

LOCK = (
    "SELECT id, resource_id, message_count, next_position FROM threads WHERE id IN"
    " (SELECT unnest(%b::text[]) UNION SELECT thread_id FROM messages WHERE id = ANY(%b::text[]))"
    " ORDER BY id FOR UPDATE"
)
FIND = "SELECT id, thread_id, resource_id, created_at, position FROM messages WHERE id = ANY(%b::text[])"
INSERT = (
    "INSERT INTO messages (id, thread_id, resource_id, role, content, metadata, facets, created_at, position)"
    " SELECT * FROM unnest(%b::text[], %b::text[], %b::text[], %b::text[], %b::text[], %b::text[], %b::text[]::jsonb[],"
    " %b::bigint[], %b::bigint[]) ON CONFLICT DO NOTHING"
)
TOUCH = (
    "UPDATE threads SET updated_at = greatest(updated_at, %s), message_count = held.message_count,"
    " next_position = held.next_position FROM unnest(%b::text[], %b::bigint[], %b::bigint[])"
    " AS held (id, message_count, next_position) WHERE threads.id = held.id"
)


class Messages:
    """The messages of a namespace."""

    def __init__(self, url: str, namespace: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute("SELECT set_config('search_path', %s, false)", (f"memassay_{namespace}",))

    def page(
        self, thread_id: str, resource_id: str, count: int, offset: int = 0, metadata: Mapping[str, str] | None = None
    ) -> Listed:
        """See baselines.Messages."""
        values: dict[str, Any] = {"thread": thread_id, "limit": count, "offset": offset}
        if metadata is None:
            return self._listed(PAGE, values, resource_id, offset + count)
        return self._listed(FILTERED, values | {"facets": json.dumps(metadata)}, resource_id, offset + count)

    def around(self, thread_id: str, resource_id: str, id: str, before: int, after: int) -> Listed:
        """See baselines.Messages."""
        values: dict[str, Any] = {"thread": thread_id, "resource": resource_id, "limit": 0, "offset": 0}
        entry = {"ids": [id], "threads": [thread_id], "before": [before], "after": [after]}
        return self._listed(AROUND, values | entry, resource_id)

    def _listed(self, statement: str, values: dict[str, Any], resource_id: str, end: int | None = None) -> Listed:
        rows = self._connection.execute(statement.encode(), values).fetchall()
        owner, total = rows[0][:2]
        assert owner == resource_id
        found = [(*row[2:6], json.loads(row[6]), json.loads(row[7]), row[8]) for row in rows if row[2] is not None]
        return found, total, end is not None and end < total

    def save(self, messages: Sequence[Message]) -> Sequence[Message]:
        """See baselines.Messages."""
        ids, now = [row[0] for row in messages], time.time_ns() // 1_000_000
        execute = self._connection.execute
        with self._connection.transaction():
            [(thread_id, owner, count, position)] = execute(LOCK, ([messages[0][1]], ids)).fetchall()
            assert not execute(FIND, (ids,)).fetchall()
            metadata = [json.dumps(row[5]) for row in messages]
            columns = (
                ids,
                [thread_id for _ in ids],
                [owner for _ in ids],
                [row[3] for row in messages],
                [json.dumps(row[4]) for row in messages],
                metadata,
                metadata,
                [row[6] for row in messages],
                [*range(position + 1, position + 1 + len(ids))],
            )
            assert execute(INSERT, columns).rowcount == len(ids)
            execute(TOUCH, (now, [thread_id], [count + len(ids)], [position + len(ids)]))
        return messages

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
