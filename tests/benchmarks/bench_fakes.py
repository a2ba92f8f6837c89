"""Stores for tests of `memassay bench`: the reference backend, each with one trait."""

from __future__ import annotations

import itertools
import signal
import threading
from typing import Any, ClassVar

import msgspec
from memassay.backends.reference import ReferenceBackend
from memassay.spec.capabilities import Capabilities
from memassay.spec.protocols import Runtime
from memassay.spec.types import MemoryConfig


class Plain(ReferenceBackend):
    """Does everything rightly; `spoil` may be given what is to be done before a call."""

    name = "plain"
    calls: ClassVar[Any] = itertools.count()

    def open_memory(self, url: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> Any:
        """See protocols.Backend."""
        memory: Any = super().open_memory(url, namespace, runtime, config)
        recall = memory.recall

        def spoilt(thread_id: str, **options: Any) -> Any:
            if options.get("per_page") != 1:  # not while it is filled
                self.spoil(next(self.calls))
            return recall(thread_id, **options)

        memory.recall = spoilt
        return memory

    def spoil(self, number: int) -> None:
        """Nothing, before the call of this number."""


class Interrupted(Plain):
    """Once, in its second round, Ctrl-C is pressed."""

    name = "interrupted"
    at: ClassVar[int] = 0

    def spoil(self, number: int) -> None:
        """See Plain."""
        if number == self.at:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


class Failing(Plain):
    """Every third recall fails."""

    name = "failing"

    def spoil(self, number: int) -> None:
        """See Plain."""
        if number % 3 == 0:
            raise OSError("no route to the store")


class Messages(ReferenceBackend):
    """Has no vectors."""

    name = "messages"

    def capabilities(self, url: str) -> Capabilities:
        """See protocols.Backend."""
        return msgspec.structs.replace(super().capabilities(url), vectors=False, semantic_recall=False)


class Losing(ReferenceBackend):
    """Acknowledges vectors that it does not keep."""

    name = "losing"

    def open_index(self, url: str, namespace: str, runtime: Runtime) -> Any:
        """See protocols.Backend."""
        index: Any = super().open_index(url, namespace, runtime)
        upsert = index.upsert_vectors

        def losing(name: str, vectors: Any) -> int:
            return upsert(name, vectors[1:]) + 1

        index.upsert_vectors = losing
        return index
