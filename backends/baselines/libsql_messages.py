"""What the libSQL adapter's messages cost without the adapter: its statements, sent by plain client code.

It checks nothing but what the statements look up, and makes tuples of what comes back. Metadata are of strings.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

import libsql  # pyright: ignore[reportMissingTypeStubs]

from . import Listed, Message

COLUMNS = "id, thread_id, position, resource_id, role, content, metadata, created_at"
LISTED = "(select value from json_each(?))"


class Messages:
    """The messages of a namespace in a database file."""

    def __init__(self, url: str, namespace: str) -> None:
        self._connection: Any = cast(Any, libsql).connect(url, isolation_level=None)
        threads, messages, values = (f"{namespace}_{name}" for name in ("threads", "messages", "message_values"))
        self._owner = (
            "select id, resource_id, title, metadata, created_at, updated_at, cloned_from, cloned_at, cloned_last"
            f" from {threads} where id = ?"
        )
        self._count = f"select count(*) from {messages} where thread_id = ? and true"
        self._page = (
            f"select {COLUMNS} from {messages} where thread_id = ? and true"
            " order by created_at desc, position desc limit ? offset ?"
        )
        held = (
            f"thread_id = ? and true and position in (select position from json_each(?) asked cross join {values} held"
            " on held.key = asked.key and held.value = asked.value where thread_id = ?"
            " group by position having count(*) = {})"
        )
        self._filtered_count = f"select count(*) from {messages} where {held}"
        self._filtered = (
            f"select {COLUMNS} from {messages} where {held} order by created_at desc, position desc limit ? offset ?"
        )
        self._target = (
            f"select {COLUMNS} from {messages} where id = ?1 and thread_id = ?2 and (?3 is null or resource_id = ?3)"
        )
        self._earlier = (
            f"select {COLUMNS} from {messages} where thread_id = ? and (created_at, position) < (?, ?)"
            " order by created_at desc, position desc limit ?"
        )
        self._later = (
            f"select {COLUMNS} from {messages} where thread_id = ? and (created_at, position) > (?, ?)"
            " order by created_at, position limit ?"
        )
        self._owners = f"select id, resource_id from {threads} where id in {LISTED}"
        self._known = f"select id, resource_id, thread_id from {messages} where id in {LISTED}"
        self._forget = [
            f"delete from {namespace}_{table} where position in (select position from {messages} where id in {LISTED})"
            for table in ("message_values", "embeddings", "embedding_values")
        ]
        self._last = f"select coalesce(max(position), 0) from {messages}"
        self._insert = f"""
            insert into {messages} ({COLUMNS}) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, coalesce(?8, ?9))
            on conflict (id) do update set
                position = case when thread_id = excluded.thread_id then position else excluded.position end,
                thread_id = excluded.thread_id,
                role = excluded.role,
                content = excluded.content,
                metadata = excluded.metadata,
                created_at = coalesce(?8, created_at)
        """
        self._values = (
            f"insert into {values} (position, thread_id, key, value)"
            f" select position, thread_id, ?, ? from {messages} where id = ?"
        )
        self._touch = f"update {threads} set updated_at = max(updated_at, ?) where id in {LISTED}"
        self._named = (
            f"select {COLUMNS} from (select key as turn, value as named from json_each(?))"
            f" join {messages} on id = named order by turn"
        )

    def page(
        self, thread_id: str, resource_id: str, count: int, offset: int = 0, metadata: Mapping[str, str] | None = None
    ) -> Listed:
        """See baselines.Messages."""
        execute = self._connection.execute
        counted, listed, values = self._count, self._page, [thread_id]
        if metadata is not None:
            asked = json.dumps({key: "s" + value for key, value in metadata.items()})
            counted, listed = (each.format(len(metadata)) for each in (self._filtered_count, self._filtered))
            values += [asked, thread_id]
        self._begin(thread_id, resource_id)
        [(total,)] = execute(counted, values).fetchall()
        rows = execute(listed, [*values, min(count, total - offset), offset]).fetchall()
        execute("rollback")
        return [_message(row) for row in rows], total, offset + count < total

    def around(self, thread_id: str, resource_id: str, id: str, before: int, after: int) -> Listed:
        """See baselines.Messages."""
        execute = self._connection.execute
        self._begin(thread_id, resource_id)
        [(total,)] = execute(self._count, [thread_id]).fetchall()
        [target] = execute(self._target, [id, thread_id, resource_id]).fetchall()
        key = [thread_id, target[7], target[2]]
        earlier = execute(self._earlier, [*key, before]).fetchall()
        later = execute(self._later, [*key, after]).fetchall()
        execute("rollback")
        return [_message(row) for row in [*later[::-1], target, *earlier]], total, False

    def _begin(self, thread_id: str, resource_id: str) -> None:
        self._connection.execute("begin")
        [(_, owner, *_)] = self._connection.execute(self._owner, [thread_id]).fetchall()
        assert owner == resource_id

    def save(self, messages: Sequence[Message]) -> Sequence[Message]:
        """See baselines.Messages."""
        execute, many = self._connection.execute, self._connection.executemany
        ids, now = json.dumps([row[0] for row in messages]), time.time_ns() // 1_000_000
        threads = json.dumps([messages[0][1]])
        execute("begin immediate")
        [(thread_id, owner)] = execute(self._owners, [threads]).fetchall()
        assert not execute(self._known, [ids]).fetchall()
        for statement in self._forget:
            execute(statement, [ids])
        [(position,)] = execute(self._last).fetchall()
        many(
            self._insert,
            [
                (row[0], thread_id, number, owner, row[3], json.dumps(row[4]), json.dumps(row[5]), row[6], now)
                for number, row in enumerate(messages, position + 1)
            ],
        )
        many(self._values, [(key, "s" + value, row[0]) for row in messages for key, value in row[5].items()])
        execute(self._touch, [now, threads])
        saved = execute(self._named, [ids]).fetchall()
        execute("commit")
        return [_message(row) for row in saved]

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _message(row: tuple[Any, ...]) -> Message:
    id, thread_id, _, resource_id, role, content, metadata, created_at = row
    return id, thread_id, resource_id, role, json.loads(content), json.loads(metadata), created_at
