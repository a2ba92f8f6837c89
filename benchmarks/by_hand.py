"""Baselines as contenders: calls turned, ahead of time, into the requests of a raw client on what an adapter stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..backends.baselines import Baseline, Messages, open_baseline, open_messages
from ..spec.types import Include, NewMessage
from .contenders import Contender
from .scene import INDEX, RESOURCE, Scene
from .workloads import Call, Workload

PREFIX = "baseline:"
"""`baseline:NAME` is what was written by hand for the backend NAME."""

WRITTEN = ("newest", "deep-page", "filtered", "include", "save-1", "save-100")
"""Workloads of messages that baselines have requests for."""


class HandClient:
    """A connection of a raw client for messages, and one for vectors, opened when a call first needs it."""

    def __init__(
        self, scene: Scene, open_messages: Callable[[], Messages | None], open_vectors: Callable[[], Baseline | None]
    ) -> None:
        self._scene = scene
        self._open: dict[str, Callable[[], Any]] = {"memory": open_messages, "index": open_vectors}
        self._opened: dict[str, Any] = {}

    def bind(self, calls: Sequence[Call]) -> Callable[[int], Any]:
        """Makes the call of a number."""
        requests = [self._request(call) for call in calls]
        return lambda number: requests[number]()

    def _request(self, call: Call) -> Callable[[], Any]:
        client, given = self._get(call.target), call.arguments
        if call.name == "query_vectors":
            return partial(client.query, np.array(given["vector"], np.float32), given["top_k"], given.get("filter"))
        if call.name == "save_messages":
            now = _milliseconds(datetime.now(UTC))
            return partial(client.save, [_row(message, now) for message in given["messages"]])
        thread, owner = given["thread_id"], self._scene.owner(given["thread_id"])
        if include := given.get("include"):
            asked: Include = include[0]
            before, after = asked.with_previous_messages or 0, asked.with_next_messages or 0
            return partial(client.around, thread, owner, asked.id, before, after)
        filter, size = given.get("filter"), given["per_page"]
        metadata = None if filter is None else filter.metadata
        return partial(client.page, thread, owner, size, given.get("page", 0) * size, metadata)

    def _get(self, target: str) -> Any:
        if target not in self._opened:
            self._opened[target] = self._open[target]()
        return self._opened[target]

    def close(self) -> None:
        """Let go of the engine."""
        while self._opened:
            self._opened.popitem()[1].close()


class ByHand(Contender):
    """What a backend's adapter has stored, asked for and added to by hand."""

    @property
    def _backend(self) -> str:
        return self.name.removeprefix(PREFIX)

    def lacks(self, workload: Workload) -> str:
        """See Contender."""
        if missing := super().lacks(workload):
            return missing
        searches = workload.needs == ("vectors",) and workload.reads
        if not searches and workload.name not in WRITTEN:
            return "nobody has written it by hand"
        return ""

    def client(self) -> HandClient:
        """See Contender."""
        url = self.engine.endpoint.url
        return HandClient(
            self.scene,
            lambda: open_messages(self._backend, url, self.namespace),
            lambda: open_baseline(self._backend, url, self.namespace, INDEX),
        )

    def keep(self, call: Call, answer: Any) -> Any:
        """See Contender. Rows begin with their id; messages are the first part of a listing."""
        rows = answer[0] if call.name == "recall" else answer
        return tuple([row[0] for row in rows])


def written(backend: str) -> bool:
    """Whether somebody has."""
    return backend.isidentifier() and find_spec(f"{Baseline.__module__}.{backend}") is not None


def _row(message: NewMessage, now: int) -> tuple[Any, ...]:
    metadata = dict(message.metadata or {})
    return message.id, message.thread_id, RESOURCE, message.role, message.content, metadata, now


def _milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1_000)
