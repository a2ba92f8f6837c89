"""LibSQL: how it writes to disk, and how much is there. Vectors are scanned, so there is no plan to choose."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import libsql  # pyright: ignore[reportMissingTypeStubs]

from ..provision.libsql import database_path
from . import Particulars

SYNCHRONOUS = ("OFF", "NORMAL", "FULL", "EXTRA")
"""By their numbers."""


def ask(url: str, namespace: str, index: str) -> Particulars:
    """See particulars.particulars. `synchronous` is a connection's own, and the adapter leaves it at its default."""
    path = database_path(url)
    connection: Any = cast(Any, libsql).connect(path)
    try:
        [(journal,)] = connection.execute("pragma journal_mode").fetchall()
        [(synchronous,)] = connection.execute("pragma synchronous").fetchall()
    finally:
        connection.close()
    files = {"database": Path(path), "write-ahead log": Path(f"{path}-wal")}
    return Particulars(
        settings={"journal_mode": str(journal), "synchronous": SYNCHRONOUS[int(synchronous)]},
        sizes={what: path.stat().st_size for what, path in files.items() if path.exists()},
    )
