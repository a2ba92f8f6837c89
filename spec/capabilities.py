"""What a backend can do: one documented attribute per optional feature, all of it checked."""

from __future__ import annotations

from typing import Literal

import msgspec

from .vectors import INDEX_TYPES, METRICS, IndexType, Metric


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """Declared by a backend. What is not declared must be refused with `Unsupported` (CAP-1)."""

    storage: bool = True
    """Threads and messages. Without it the backend is an index alone."""

    durable: bool = True
    """What was acknowledged survives close and reopen (DUR-1). False for memory-only stores."""

    atomicity: Literal["transaction", "compensated"] = "transaction"
    """How a batch is atomic (MSG-1): `transaction` also for concurrent readers and after a crash;
    `compensated` may show a part while the call runs, never after an error was returned."""

    clone: bool = False
    """`clone_thread` and `list_clones` (CLN-1)."""

    working_memory: bool = False
    """`get_working_memory` and `update_working_memory` (WM-1)."""

    titles: bool = False
    """`generate_title`, `title_thread` and `settle` (TTL-1)."""

    vectors: bool = False
    """Vector indices of the user's own (VEC)."""

    semantic_recall: bool = False
    """Messages can be embedded and found by meaning (SEM)."""

    resource_scope: bool = False
    """Semantic recall over all threads of a resource (SEM-1)."""

    index_types: tuple[IndexType, ...] = ()
    """The index types there are; the first is the default."""

    metrics: tuple[Metric, ...] = METRICS
    """The metrics there are."""

    max_dimension: int = 16_000
    """The largest dimension of any index."""

    max_indexed_dimension: int = 16_000
    """The largest dimension of an index that is not flat; the default type is flat beyond it."""

    concurrent_clients: bool = True
    """A second client may be opened on the same namespace while the first is in use (CON-1)."""

    other_processes: bool = True
    """Other processes may open the namespace too. Where it is durable and has concurrent clients, a program's
    second client is of another process (CON-1). False for what lives in one process."""

    @property
    def approximate(self) -> bool:
        """Whether there is an index type that may miss rows (VEC-5)."""
        return any(kind != "flat" for kind in self.index_types)

    @property
    def lacking(self) -> bool:
        """Whether there is something optional that it lacks, and so a call to refuse with `Unsupported` (CAP-1)."""
        of_memory = self.storage and self.clone and self.working_memory and self.titles
        of_meaning = self.vectors and self.semantic_recall and self.resource_scope
        return not (of_memory and of_meaning) or {*self.index_types} < {*INDEX_TYPES} or {*self.metrics} < {*METRICS}
