"""What a backend can do: one documented attribute per optional feature, all of it checked."""

from __future__ import annotations

from typing import Literal

import msgspec


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """Declared by a backend. What is not declared must be refused with `Unsupported` (CAP-1)."""

    durable: bool = True
    """What was acknowledged survives close and reopen (DUR-1). False for memory-only stores."""

    atomicity: Literal["transaction", "compensated"] = "transaction"
    """How a batch is atomic (MSG-1): `transaction` also for concurrent readers and after a crash;
    `compensated` may show a part while the call runs, never after an error was returned."""

    clone: bool = False
    """`clone_thread` (CLN-1)."""

    working_memory: bool = False
    """`get_working_memory` and `update_working_memory` (WM-1)."""

    semantic_recall: bool = False
    """A vector index can stand beside the messages (SEM-1)."""

    concurrent_clients: bool = True
    """A second client may be opened on the same namespace while the first is in use (CON-1)."""
