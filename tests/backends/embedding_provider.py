"""A provider of embeddings on loopback: speaks OpenAI's and Google's formats, and fails as it is told to."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-very-secret-key-0123456789"


@dataclass(frozen=True)
class Request:
    """What came in: headers by lower-case name."""

    path: str
    headers: Mapping[str, str]
    body: Any

    @property
    def texts(self) -> list[str]:
        """The texts of a request in either format."""
        if "requests" in self.body:
            return ["".join(part["text"] for part in each["content"]["parts"]) for each in self.body["requests"]]
        return list(self.body["input"])

    @property
    def dimension(self) -> int | None:
        """The dimension asked for, if any."""
        if "requests" in self.body:
            return next(
                (each["outputDimensionality"] for each in self.body["requests"] if "outputDimensionality" in each), None
            )
        return self.body.get("dimensions")


@dataclass(frozen=True)
class Reply:
    """An answer: a status with a body, or the connection cut in the middle of one."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    cut: bool = False


Fault = Callable[[Request, "Provider"], Reply]


class Provider:
    """The server. `faults` are taken one a request; without one the answer is right."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.requests: list[Request] = []
        self.faults: list[Fault] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                reply = provider.answer(Request(self.path, headers, json.loads(body)))
                if reply.cut:
                    self.wfile.write(
                        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n{"
                    )
                    self.wfile.flush()
                    self.close_connection = True
                    return
                self.send_response(reply.status)
                for name, value in {"content-type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing is printed."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Stop it."""
        self._server.shutdown()
        self._server.server_close()

    def answer(self, request: Request) -> Reply:
        """The answer to a request, which is noted."""
        self.requests.append(request)
        fault = self.faults.pop(0) if self.faults else right
        return fault(request, self)


def vector(text: str, dimension: int) -> list[float]:
    """A direction of the words of a text: each adds to a component of its own, or nearly so."""
    components = [0.0] * dimension
    components[0] = 0.01
    for word in re.findall(r"\w+", text.lower()):
        components[int.from_bytes(hashlib.sha256(word.encode()).digest()[:4]) % dimension] += 1.0
    return components


def vectors(request: Request, provider: Provider) -> list[list[float]]:
    """The right vectors of a request."""
    return [vector(text, request.dimension or provider.dimension) for text in request.texts]


def encoded(request: Request, found: list[Any]) -> bytes:
    """Vectors in the format of the request, numbered in order."""
    if "requests" in request.body:
        return json.dumps({"embeddings": [{"values": each} for each in found]}).encode()
    rows = [{"object": "embedding", "index": number, "embedding": each} for number, each in enumerate(found)]
    return listed(rows)


def listed(rows: list[Any]) -> bytes:
    """Rows as OpenAI lists them."""
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return json.dumps({"object": "list", "model": "m", "data": rows, "usage": usage}).encode()


def right(request: Request, provider: Provider) -> Reply:
    """The right answer."""
    return Reply(body=encoded(request, vectors(request, provider)))


def status(number: int, **headers: str) -> Fault:
    """An error of this status, whose body repeats the key."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    error = {"message": f"wrong key {KEY}", "code": "some_code", "status": "SOME_STATUS", "type": "t"}
    return lambda request, provider: Reply(number, json.dumps({"error": error}).encode(), named)


def cut(request: Request, provider: Provider) -> Reply:
    """A connection that ends in the middle of the answer."""
    return Reply(cut=True)


def body(text: str) -> Fault:
    """Status 200 and this body."""
    return lambda request, provider: Reply(body=text.encode())


def changed(change: Callable[[list[list[float]]], list[Any]]) -> Fault:
    """The right vectors, changed."""
    return lambda request, provider: Reply(body=encoded(request, change(vectors(request, provider))))


def numbered(numbers: Callable[[int], list[Any]]) -> Fault:
    """The vectors of an OpenAI request, in the order of its texts, with these numbers."""

    def reply(request: Request, provider: Provider) -> Reply:
        found = vectors(request, provider)
        rows: list[dict[str, Any]] = [
            {"object": "embedding", "index": number, "embedding": found[place]}
            for place, number in enumerate(numbers(len(found)))
        ]
        return Reply(body=listed(rows))

    return reply
