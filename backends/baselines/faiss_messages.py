"""What the FAISS adapter's messages cost without the adapter: those of libSQL, after a look for what is embedded."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from . import Message, libsql_messages


class Messages(libsql_messages.Messages):
    """The messages of a namespace in a directory."""

    def __init__(self, url: str, namespace: str) -> None:
        super().__init__(str(Path(url) / "messages.db"), namespace)
        self._vectors = sqlite3.connect(Path(url) / "vectors.db", isolation_level=None)
        embeddings = "e_" + hashlib.sha256(namespace.encode()).hexdigest()[:32]
        self._indexes = f"select name from {embeddings}_indexes order by name"

    def save(self, messages: Sequence[Message]) -> Sequence[Message]:
        """See baselines.Messages."""
        self._vectors.execute("begin")
        assert not self._vectors.execute(self._indexes).fetchall()
        self._vectors.execute("rollback")
        return super().save(messages)

    def close(self) -> None:
        """See baselines.Messages."""
        super().close()
        self._vectors.close()
