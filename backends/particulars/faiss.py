"""FAISS: how its rows are written to disk (SQLite), and how much is there."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from . import Particulars
from .libsql import SYNCHRONOUS


def ask(url: str, namespace: str, index: str) -> Particulars:
    """See particulars.particulars. `synchronous` is a connection's own, and the adapter leaves it at its default."""
    folder = Path(url)
    with closing(sqlite3.connect(folder / "vectors.db")) as connection:
        [(journal,)] = connection.execute("pragma journal_mode").fetchall()
        [(synchronous,)] = connection.execute("pragma synchronous").fetchall()
    return Particulars(
        settings={"journal_mode": str(journal), "synchronous": SYNCHRONOUS[int(synchronous)]},
        sizes={path.name: path.stat().st_size for path in sorted(folder.iterdir()) if path.is_file()},
    )
