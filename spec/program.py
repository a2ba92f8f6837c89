"""Programs: tuples of typed operations on symbolic values. Every subsequence of a program is a program."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec

from .forms import Form, show
from .message_operations import (
    ClearMessages,
    CloneThread,
    CreateThread,
    DeleteMessages,
    DeleteThread,
    GetThread,
    GetWorkingMemory,
    ListClones,
    ListThreads,
    Recall,
    SaveMessages,
    Settle,
    TitleThread,
    UpdateMessages,
    UpdateThread,
    UpdateWorkingMemory,
    config,
)
from .operation import Operation, Role
from .vector_operations import (
    CreateIndex,
    DeleteVectors,
    DescribeIndex,
    DropIndex,
    GetVectors,
    IndexOperation,
    ListIndexes,
    QueryVectors,
    UpdateVector,
    UpsertVectors,
)

__all__ = [
    "AnyOperation",
    "ClearMessages",
    "CloneThread",
    "Concurrent",
    "CreateIndex",
    "CreateThread",
    "DeleteMessages",
    "DeleteThread",
    "DeleteVectors",
    "DescribeIndex",
    "DropIndex",
    "GetThread",
    "GetVectors",
    "GetWorkingMemory",
    "IndexOperation",
    "Kill",
    "ListClones",
    "ListIndexes",
    "ListThreads",
    "Observe",
    "Operation",
    "Program",
    "QueryVectors",
    "Race",
    "Raced",
    "Recall",
    "Reopen",
    "SaveMessages",
    "Settle",
    "Tick",
    "TitleThread",
    "Together",
    "UpdateMessages",
    "UpdateThread",
    "UpdateVector",
    "UpdateWorkingMemory",
    "UpsertVectors",
    "config",
]


class Tick(Operation, frozen=True, kw_only=True, tag="tick"):
    """Move the clock; negative is backwards."""

    role: ClassVar[Role] = "control"
    ms: int


class Reopen(Operation, frozen=True, kw_only=True, tag="reopen"):
    """Close every client and open anew; nothing happens on a store that is not durable."""

    role: ClassVar[Role] = "control"


class Observe(Operation, frozen=True, kw_only=True, tag="observe"):
    """Read all there is: every thread named so far, its messages oldest first, and the list of threads."""

    role: ClassVar[Role] = "observe"


Concurrent = UpdateThread | UpdateMessages | SaveMessages


class Together(Operation, frozen=True, kw_only=True, tag="together"):
    """Operations at the same time, each by a client of its own. Their effects must commute."""

    role: ClassVar[Role] = "write"
    operations: list[Concurrent]

    def given(self) -> dict[str, Form]:
        """See Operation."""
        return {}

    def threads(self) -> Iterator[Any]:
        """See Operation."""
        for operation in self.operations:
            yield from operation.threads()

    def __str__(self) -> str:
        return f"{self.name}(" + ", ".join(str(operation) for operation in self.operations) + ")"


Raced = (
    CreateThread
    | GetThread
    | UpdateThread
    | ListThreads
    | DeleteThread
    | CloneThread
    | SaveMessages
    | UpdateMessages
    | DeleteMessages
    | ClearMessages
    | Recall
    | CreateIndex
    | DescribeIndex
    | ListIndexes
    | DropIndex
    | UpsertVectors
    | GetVectors
    | UpdateVector
    | DeleteVectors
    | QueryVectors
)


class Race(Operation, frozen=True, kw_only=True, tag="race"):
    """Sequences of calls at the same time, each by a client of its own, numbered from 0.

    Whatever the calls come to has to be what they come to in some order, one after another (CON-2). Unlike those of
    `together` their effects need not commute.
    """

    role: ClassVar[Role] = "write"
    branches: list[list[Raced]]

    def given(self) -> dict[str, Form]:
        """See Operation."""
        return {}

    def calls(self) -> Iterator[Operation]:
        """All calls, branch by branch."""
        for branch in self.branches:
            yield from branch

    def threads(self) -> Iterator[Any]:
        """See Operation."""
        for operation in self.calls():
            yield from operation.threads()

    def __str__(self) -> str:
        branches = ["; ".join(str(operation) for operation in branch) for branch in self.branches]
        return f"{self.name}({' | '.join(branches)})"


class Kill(Operation, frozen=True, kw_only=True, tag="kill"):
    """A call by a process of its own, which is killed (SIGKILL) when it reaches a fault point, the nth time.

    Nothing is known of such a call: it happened or not, within the store's declared atomicity (DUR-1a). Where it
    returns before it reaches the point its outcome counts, and the process is killed then.
    """

    role: ClassVar[Role] = "write"
    operation: Raced
    point: str = "before commit"
    nth: int = 1

    def given(self) -> dict[str, Form]:
        """See Operation."""
        return {}

    def threads(self) -> Iterator[Any]:
        """See Operation."""
        yield from self.operation.threads()

    def __str__(self) -> str:
        return f"{self.name}({self.operation}, {self.point}, {self.nth})"


AnyOperation = (
    CreateThread
    | GetThread
    | UpdateThread
    | ListThreads
    | DeleteThread
    | CloneThread
    | ListClones
    | SaveMessages
    | UpdateMessages
    | DeleteMessages
    | ClearMessages
    | Recall
    | GetWorkingMemory
    | UpdateWorkingMemory
    | TitleThread
    | Settle
    | Tick
    | Reopen
    | Observe
    | Together
    | Race
    | Kill
    | CreateIndex
    | DescribeIndex
    | ListIndexes
    | DropIndex
    | UpsertVectors
    | GetVectors
    | UpdateVector
    | DeleteVectors
    | QueryVectors
)


class Program(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What to do to an empty namespace.

    `options` are the store's, a form of MemoryConfig's fields; `embedder` is the dimension of the
    LiteralEmbedder that the runtime has, 0 for none; `titler` says whether it has a LiteralTitler.
    """

    operations: tuple[AnyOperation, ...]
    options: dict[str, Form] = {}
    embedder: int = 0
    titler: bool = False

    @property
    def undetermined(self) -> bool:
        """Whether more than one transcript may be right: it is judged as a history (judge_histories.py)."""
        return any(isinstance(operation, Race | Kill) for operation in self.operations)

    @property
    def hash(self) -> str:
        """Hex digest of the program's JSON."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:16]

    def __str__(self) -> str:
        embedder = [f"embedder(dimension={self.embedder})"] if self.embedder else []
        titler = ["titler()"] if self.titler else []
        lines = [*embedder, *titler, *([f"open({show(self.options)})"] if self.options else [])]
        return "\n".join([*lines, *(str(operation) for operation in self.operations)])
