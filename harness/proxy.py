"""A TCP proxy on loopback that can delay what passes, cut it in half, and reset connections."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
import time
from collections.abc import Callable

from ..backends.provision.fragile import Address

CHUNK = 65_536
AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER of 0 s: closing resets."""


class Proxy:
    """Forwards connections to an engine. `target` is asked anew for each, as an engine may come back elsewhere."""

    def __init__(self, target: Callable[[], Address], rng: random.Random) -> None:
        self.delay = 0.0
        """Seconds that everything is held up."""
        self._target = target
        self._rng = rng
        self._halving = 0
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._resetting: set[socket.socket] = set()
        self._closed = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        """Where it listens, on loopback."""
        return self._listener.getsockname()[1]

    def halve(self, times: int) -> None:
        """Of the next so many messages that pass, to or fro, only the first half does, and the connection ends."""
        with self._lock:
            self._halving = times

    def reset(self) -> None:
        """Reset all connections (RST)."""
        with self._lock:
            self._resetting |= self._open
        for connection in list(self._resetting):
            with contextlib.suppress(OSError):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
                connection.shutdown(socket.SHUT_RD)  # Says nothing to the other end, and ends our waiting for it.

    def close(self) -> None:
        """Listen no more, and reset what is open."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.reset()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = _connect(self._target())
        except OSError:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
            client.close()
            return
        with self._lock:
            self._open |= {client, server}
        back = threading.Thread(target=self._pump, args=(server, client), daemon=True)
        back.start()
        self._pump(client, server)
        back.join()
        with self._lock:
            self._open -= {client, server}
            self._resetting -= {client, server}
        client.close()
        server.close()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        """Forward until either end closes, which closes the other."""
        with contextlib.suppress(OSError):
            while chunk := source.recv(CHUNK):
                if self.delay:
                    time.sleep(self.delay)
                if len(chunk) > 1 and self._halves():
                    sink.sendall(chunk[: len(chunk) // 2])
                    break
                sink.sendall(chunk)
        if source in self._resetting:
            return
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _halves(self) -> bool:
        """Whether this message is one to cut: every other, so that it is a request as often as an answer."""
        with self._lock:
            if not self._halving or self._rng.random() < 0.5:
                return False
            self._halving -= 1
            return True


def _connect(address: Address) -> socket.socket:
    if isinstance(address, str):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(address)
        return connection
    connection = socket.create_connection(address)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection
