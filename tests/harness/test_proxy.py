"""The proxy: what passes, what is cut in half, and what a reset looks like."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Generator
from contextlib import suppress

import pytest
from memassay.harness.proxy import Proxy

LIMIT = 10.0


class Echo:
    """Sends back what it is sent."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    def address(self) -> tuple[str, int]:
        host, port = self.listener.getsockname()
        return host, port

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while said := connection.recv(1024):
                connection.sendall(said)


class Always(random.Random):
    """Chance that always says the same."""

    def random(self) -> float:
        return 0.9


@pytest.fixture
def echo() -> Generator[Echo]:
    echo = Echo()
    yield echo
    echo.listener.close()


@pytest.fixture
def proxy(echo: Echo) -> Generator[Proxy]:
    proxy = Proxy(echo.address, Always())
    yield proxy
    proxy.close()


def connect(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), LIMIT)


def all_of(connection: socket.socket) -> bytes:
    said = b""
    while part := connection.recv(1024):
        said += part
    return said


def test_what_is_sent_passes_both_ways(proxy: Proxy) -> None:
    with connect(proxy) as connection:
        connection.sendall(b"hello")
        assert connection.recv(1024) == b"hello"


def test_of_a_halved_request_half_arrives_and_the_connection_ends(proxy: Proxy) -> None:
    with connect(proxy) as connection:
        proxy.halve(1)
        connection.sendall(b"12345678")
        assert all_of(connection) in (b"", b"1234")


def test_the_next_connection_is_whole_again(proxy: Proxy) -> None:
    with connect(proxy) as connection:
        proxy.halve(1)
        connection.sendall(b"12345678")
        all_of(connection)
    with connect(proxy) as connection:
        connection.sendall(b"hello")
        assert connection.recv(1024) == b"hello"


def test_a_reset_is_told_as_one(proxy: Proxy) -> None:
    with connect(proxy) as connection:
        connection.sendall(b"hello")
        connection.recv(1024)
        proxy.reset()
        with pytest.raises(ConnectionResetError):
            all_of(connection)


def test_a_target_that_moved_is_found(echo: Echo) -> None:
    places = iter([("127.0.0.1", 1), echo.address()])
    proxy = Proxy(lambda: next(places), random.Random(0))
    try:
        with suppress(OSError), connect(proxy) as connection:
            all_of(connection)
        with connect(proxy) as connection:
            connection.sendall(b"hello")
            assert connection.recv(1024) == b"hello"
    finally:
        proxy.close()
