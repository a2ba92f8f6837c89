"""The bridge's other side in Python: `python -m memassay.backends.foreign.serve NAME` serves a registered backend.

It is the reference of the protocol (BRIDGE.md) for those who write another.
"""

from __future__ import annotations

import itertools
import os
import queue
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, cast

from ...spec.errors import EmbedderError, InvalidRequest, StoreError
from ...spec.protocols import Backend, Runtime
from ...spec.types import MemoryConfig
from ..registry import find
from . import wire
from .bridge import PROTOCOL

WORKERS = 64
"""Calls that may run at the same time."""


class Server:
    """Answers the requests of one bridge, each in a thread of its own."""

    def __init__(self, backend: Backend, write: Callable[[bytes], object]) -> None:
        self._backend = backend
        self._write = write
        self._lock = threading.Lock()
        self._clients: dict[int, _Client] = {}
        self._asked = itertools.count(1)
        self._answers: dict[int, queue.SimpleQueue[Mapping[str, Any]]] = {}

    def run(self, lines: Any) -> None:
        """Serve until there are no more lines."""
        with ThreadPoolExecutor(WORKERS) as pool:
            for line in lines:
                message = wire.read(line)
                if "answer" in message:
                    self._answers.pop(message["answer"]).put(message)
                else:
                    pool.submit(self._serve, message)

    def _serve(self, request: Mapping[str, Any]) -> None:
        number = request["id"]
        try:
            answer: dict[str, Any] = {"result": wire.result(self._do(request))}
        except StoreError as error:
            answer = {"error": {"code": error.code, "message": error.message, "hint": error.hint}}
        except wire.Unreadable as error:
            answer = {"error": {"code": InvalidRequest.code, "message": str(error)}}
        except BaseException as error:  # noqa: BLE001 - whatever a driver raises is the answer
            answer = {"error": {"code": type(error).__name__, "message": str(error)}}
        self._send({"id": number, **answer})

    def _do(self, request: Mapping[str, Any]) -> Any:
        call = str(request["call"])
        given = wire.parameters(call, request.get("args") or {})
        match call:
            case "hello":
                return {
                    "protocol": PROTOCOL,
                    "version": self._backend.version(given["url"]),
                    "capabilities": self._backend.capabilities(given["url"]),
                }
            case "drop_namespace":
                return self._backend.drop_namespace(given["url"], given["namespace"])
            case "open_memory" | "open_index":
                return self._open(call, request, given)
            case "close":
                return self._clients.pop(request["client"]).opened.close()
            case _:
                client = self._clients[request["client"]]
                client.begin(request)
                return getattr(client.opened, call)(**given)

    def _open(self, call: str, request: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        client = _Client()
        client.begin(request)
        described = cast("dict[str, Any] | None", given.get("embedder"))

        def embed(args: Mapping[str, Any]) -> Any:
            return self._ask(client.call, "embed", args)

        runtime = Runtime(
            clock=lambda: client.now,
            new_id=lambda: str(self._ask(client.call, "new_id", {})),
            embedder=None if described is None else _Embedder(described["name"], described["dimension"], embed),
        )
        if call == "open_memory":
            config = cast(MemoryConfig, given.get("config", MemoryConfig()))
            client.opened = self._backend.open_memory(given["url"], given["namespace"], runtime, config)
        else:
            client.opened = self._backend.open_index(given["url"], given["namespace"], runtime)
        self._clients[request["client"]] = client

    def _ask(self, call: int, question: str, args: Mapping[str, Any]) -> Any:
        """Ask memassay during a call, and wait for the answer."""
        number = next(self._asked)
        answers = self._answers[number] = queue.SimpleQueue()
        self._send({"ask": number, "of": call, "call": question, "args": args})
        answer = answers.get()
        if "error" in answer:
            raise EmbedderError(str(answer["error"].get("message")))
        return wire.decode(answer["result"])

    def _send(self, message: Mapping[str, Any]) -> None:
        data = wire.line(message)
        with self._lock:
            self._write(data)


@dataclass
class _Client:
    """An open client, and the call it is in: one at a time."""

    opened: Any = None
    call: int = 0
    now: datetime = field(default_factory=lambda: datetime.now().astimezone())

    def begin(self, request: Mapping[str, Any]) -> None:
        """Note which call it is in, and what time it is."""
        self.call = request["id"]
        self.now = datetime.fromisoformat(request["now"])


@dataclass
class _Embedder:
    """memassay's embedder, asked for each text."""

    name: str
    dimension: int
    ask: Callable[[Mapping[str, Any]], Any]

    def embed(self, texts: Sequence[str], kind: Literal["document", "query"]) -> Any:
        """See protocols.Embedder."""
        return self.ask({"texts": list(texts), "kind": kind})


def main() -> None:
    """Serve on stdin and stdout. What anything else prints goes to stderr."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def write(data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[output.write(view) or 0 :]

    Server(find(sys.argv[1]), write).run(sys.stdin.buffer)


if __name__ == "__main__":
    main()
