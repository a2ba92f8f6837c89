"""Titles of threads, made in the background after an answer was saved (TTL-1): one component for every store.

A store asks `wanted` before it writes, calls `begin` with what it saved, and passes `settle` and `close` on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Protocol, Unpack

import msgspec

from ..spec.errors import ConfigurationError, NotSettled, Unsupported
from ..spec.protocols import Runtime
from ..spec.reference import TITLE_MESSAGES
from ..spec.requests import RecallOptions, titling
from ..spec.types import MemoryConfig, Message, OrderBy, RecallResult, Thread, TitleGeneration

WORKERS = 4
"""Titles of one client that are made at the same time."""

OLDEST_FIRST = OrderBy(direction="ASC")

_log = logging.getLogger("memassay.titles")
_log.addHandler(logging.NullHandler())


class Untitled(Protocol):
    """What is used of protocols.Memory, by other threads than the caller's."""

    def get_thread(self, thread_id: str, *, resource_id: str | None = None) -> Thread | None:
        """See protocols.Memory."""
        ...

    def recall(self, thread_id: str, **options: Unpack[RecallOptions]) -> RecallResult:
        """See protocols.Memory."""
        ...

    def title_thread(self, thread_id: str, title: str) -> bool:
        """See protocols.Memory."""
        ...


class _Begun(msgspec.Struct, frozen=True):
    thread_id: str
    wanted: TitleGeneration


class Titles:
    """The titles that one client makes. Its workers are daemons: a titler that never returns holds up no exit."""

    def __init__(self, store: Untitled, runtime: Runtime, options: MemoryConfig, *, supported: bool = True) -> None:
        self._store = store
        self._titler = runtime.titler
        self._options = options
        self._supported = supported
        self._changed = threading.Condition()
        self._queue: deque[_Begun] = deque()
        self._open: dict[str, None] = {}
        """Ids of the threads whose titles are begun and not settled."""
        self._workers = 0
        self._closed = False

    def wanted(self, thread_config: MemoryConfig | None) -> TitleGeneration | None:
        """What a save is to have titles made with, if any. ConfigurationError without a titler, Unsupported."""
        wanted = titling(self._options, thread_config)
        if wanted is not None and not self._supported:
            raise Unsupported("generate_title", clause="CAP-1")
        if wanted is not None and self._titler is None:
            raise ConfigurationError("there is no titler", hint="give the runtime one", clause="TTL-1c")
        return wanted

    def begin(self, wanted: TitleGeneration | None, saved: Sequence[Message]) -> None:
        """Begin the titles of the threads that got an answer. Nothing is raised: the save has happened."""
        if wanted is None:
            return
        answered = dict.fromkeys(message.thread_id for message in saved if message.role == "assistant")
        with self._changed:
            for thread_id in [each for each in answered if each not in self._open]:
                self._open[thread_id] = None
                self._queue.append(_Begun(thread_id, wanted))
            for _ in range(min(len(self._queue), WORKERS - self._workers)):
                try:
                    threading.Thread(target=self._work, name="memassay-titles", daemon=True).start()
                except RuntimeError as error:  # There can be no more threads now.
                    _log.warning("no thread to make a title in: %s", error)
                    break
                self._workers += 1
            if not self._workers:
                self._forget()

    def settle(self, timeout: float) -> None:
        """Wait until what was begun is settled; NotSettled after so many seconds."""
        if not self._supported:
            raise Unsupported("settle", clause="CAP-1")
        deadline = time.monotonic() + timeout
        with self._changed:
            waited_for = {*self._open}
            while not waited_for.isdisjoint(self._open):
                left = deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    names = sorted(waited_for & self._open.keys())
                    raise NotSettled(f"{len(names)} titles are not made yet, of thread {names[0]!a} for one")

    def close(self) -> None:
        """Forget what was begun; what a titler still makes is not written."""
        with self._changed:
            self._closed = True
            self._forget()

    def _forget(self) -> None:
        self._queue.clear()
        self._open.clear()
        self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._queue:
                    self._workers -= 1
                    return
                begun = self._queue.popleft()
            try:
                self._make(begun)
            except Exception as error:  # noqa: BLE001 - whatever a titler or a store raises, the thread keeps no title
                # Not the message: it may say what the titler was given.
                _log.warning("no title for thread %a: %s", begun.thread_id, type(error).__name__)
            finally:
                with self._changed:
                    self._open.pop(begun.thread_id, None)
                    self._changed.notify_all()

    def _make(self, begun: _Begun) -> None:
        thread = self._store.get_thread(begun.thread_id)
        if thread is None or thread.title or self._titler is None:
            return
        config = MemoryConfig(semantic_recall=False)
        first = self._store.recall(
            begun.thread_id, per_page=TITLE_MESSAGES, order_by=OLDEST_FIRST, thread_config=config
        )
        wanted = begun.wanted
        title = self._titler(first.messages, model=wanted.model, instructions=wanted.instructions)
        with self._changed:
            closed = self._closed
        if not closed:
            self._store.title_thread(begun.thread_id, title)
