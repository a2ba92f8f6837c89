"""A second process with clients of a backend's namespaces, so that a second client is another process's (CON-1).

The parent's clients are proxies: they send each call down a pipe and serve what the store asks of its
Runtime while it runs. Clients in the child have a thread each, so that several may be busy at once.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from tempfile import TemporaryFile
from typing import IO, Any, Literal, cast

from ..backends.registry import find
from ..spec.errors import StoreError
from ..spec.protocols import Memory, Runtime, VectorIndex
from ..spec.types import MemoryConfig

FAREWELL = 5.0
"""Seconds the child has to end by itself once its input ends."""

TAIL = 2000
"""Characters of the child's stderr that an error shows."""

_HEAD = struct.Struct("!Q")
_ERRORS = {kind.code: kind for kind in StoreError.__subclasses__()}


class SecondProcessDied(Exception):
    """The process with the second client ended, or could not be understood; the message has its stderr."""


@dataclass(frozen=True)
class _Refusal:
    """An error of the specification, taken apart for the way."""

    code: str
    message: str
    hint: str
    clause: str
    also: tuple[str, ...]

    def error(self) -> StoreError:
        """It, as it was raised."""
        kind = _ERRORS.get(self.code, StoreError)
        return kind(self.message, hint=self.hint, clause=self.clause, also=self.also)


@dataclass(frozen=True)
class _Crash:
    """Any other error."""

    kind: str
    message: str

    def error(self) -> Exception:
        """An exception of a type of that name."""
        return type(self.kind, (Exception,), {})(self.message)


@dataclass(frozen=True)
class _Value:
    value: Any


_Answer = _Refusal | _Crash | _Value


@dataclass(frozen=True)
class _Ask:
    """What a store asks of its Runtime, by the name of the attribute."""

    what: Literal["clock", "new_id", "embed", "fault"]
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class _Open:
    """Open a client. `embedder`: name and dimension. `fault`: whether fault points are to be told."""

    kind: Literal["open_memory", "open_index"]
    url: str
    namespace: str
    embedder: tuple[str, int] | None
    fault: bool
    config: MemoryConfig | None


@dataclass(frozen=True)
class _Call:
    method: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]


def _done(call: Callable[[], Any]) -> _Answer:
    """What came of a call."""
    try:
        return _Value(call())
    except StoreError as error:
        return _Refusal(error.code, error.message, error.hint, error.clause, error.also)
    except BaseException as error:  # noqa: BLE001 - whatever a driver raises is for the other side to judge
        return _Crash(type(error).__name__, str(error))


def _result(answer: _Answer) -> Any:
    """The value of an answer, or its error raised."""
    if isinstance(answer, _Value):
        return answer.value
    raise answer.error()


class _Pipe:
    """Messages to and fro, each for one client; any thread may send."""

    def __init__(self, into: IO[bytes], out: IO[bytes]) -> None:
        self._into = into
        self._out = out
        self._lock = threading.Lock()

    def send(self, client: int, message: Any) -> None:
        """Send a message; OSError when the other side is gone."""
        body = pickle.dumps((client, message), pickle.HIGHEST_PROTOCOL)
        with self._lock:
            self._out.write(_HEAD.pack(len(body)) + body)
            self._out.flush()

    def close(self) -> None:
        """Say no more; the other side sees the end."""
        self._out.close()

    def receive(self) -> tuple[int, Any] | None:
        """The next message, or None at the end."""
        head = self._into.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return None
        body = self._into.read(_HEAD.unpack(head)[0])
        return cast("tuple[int, Any]", pickle.loads(body))


# The parent's side


class SecondProcess:
    """The process for second clients of a backend: started when first needed, and anew when it was ended."""

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._child: _Child | None = None

    def open_memory(self, url: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> Memory:
        """A client of a namespace's memory. Raises SecondProcessDied, and what the backend raises."""
        return cast(Memory, self._open(_opening("open_memory", url, namespace, runtime, config), runtime))

    def open_index(self, url: str, namespace: str, runtime: Runtime) -> VectorIndex:
        """A client of a namespace's vector indices; errors as above."""
        return cast(VectorIndex, self._open(_opening("open_index", url, namespace, runtime, None), runtime))

    def close(self) -> None:
        """End the process."""
        if self._child is not None:
            self._child.end()
            self._child = None

    @property
    def pid(self) -> int | None:
        """Of the process, while there is one."""
        return None if self._child is None or self._child.ended else self._child.pid

    def kill(self) -> None:
        """SIGKILL; the calls that its clients make raise SecondProcessDied."""
        if self._child is not None:
            self._child.end(at_once=True)

    def _open(self, opening: _Open, runtime: Runtime) -> _Proxy:
        if self._child is None or self._child.ended:
            self.close()
            self._child = _Child(self._backend)
        return _Proxy(self._child, self._child.join(), opening, runtime)


class Victims:
    """Processes that are killed in a call, one for each: the next is started while the last still serves."""

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._spare: _Child | None = None

    def open(
        self, target: Literal["memory", "index"], url: str, namespace: str, runtime: Runtime, config: MemoryConfig
    ) -> RemoteVictim:
        """A client in a process of its own. Raises SecondProcessDied, and what the backend raises."""
        child = _Child(self._backend) if self._spare is None or self._spare.ended else self._spare
        self._spare = _Child(self._backend)
        kind = "open_memory" if target == "memory" else "open_index"
        opening = _opening(kind, url, namespace, runtime, config if target == "memory" else None)
        try:
            return RemoteVictim(child, _Proxy(child, child.join(), opening, runtime))
        except BaseException:
            child.end(at_once=True)
            raise

    def close(self) -> None:
        """End the process that waits for its turn."""
        if self._spare is not None:
            self._spare.end(at_once=True)
            self._spare = None


class RemoteVictim:
    """A client whose process can be killed; implements interpreter.Victim."""

    def __init__(self, child: _Child, client: _Proxy) -> None:
        self._child = child
        self.client = cast(Any, client)

    def kill(self) -> None:
        """SIGKILL; what it was asked raises SecondProcessDied."""
        self._child.end(at_once=True)


def _opening(
    kind: Literal["open_memory", "open_index"], url: str, namespace: str, runtime: Runtime, config: MemoryConfig | None
) -> _Open:
    embedder = None if runtime.embedder is None else (runtime.embedder.name, runtime.embedder.dimension)
    return _Open(kind, url, namespace, embedder, runtime.fault is not Runtime.fault, config)


class _Child:
    """The process, and who waits for what it says."""

    def __init__(self, backend: str) -> None:
        self.ended = False
        """Whether it was ended, or ended by itself."""
        self._ending = threading.RLock()
        self._said = ""
        self._stderr = TemporaryFile()  # noqa: SIM115 - closed when the process has ended
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._pipe = _Pipe(self._process.stdout, self._process.stdin)
        self._waiting: dict[int, SimpleQueue[Any]] = {}
        self._clients = 0
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        with contextlib.suppress(OSError):  # If it is dead already, the first client will tell.
            self._pipe.send(0, (list(sys.path), backend))

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def join(self) -> int:
        """The number of a new client; several may come at once."""
        with self._ending:
            self._clients += 1
            number = self._clients
        self._waiting[number] = SimpleQueue()
        if self.ended:
            self._waiting[number].put(None)
        return number

    def serves(self, client: int) -> bool:
        """Whether the client is open."""
        return not self.ended and client in self._waiting

    def leave(self, client: int) -> None:
        """A client is closed."""
        self._waiting.pop(client, None)

    def ask(self, client: int, message: Any, runtime: Runtime) -> Any:
        """Make a call and wait for its result. Whatever breaks the waiting off, a time limit say, ends the process."""
        waiting = self._waiting[client]
        if self.ended:
            raise SecondProcessDied(f"the second client's process has ended: {self._last_words()}")
        try:
            with contextlib.suppress(OSError, ValueError):  # It is gone, and its pipe closed: the queue tells.
                self._pipe.send(client, message)
            while isinstance(said := waiting.get(), _Ask):
                with contextlib.suppress(OSError, ValueError):
                    self._pipe.send(client, _served(said, runtime))
        except BaseException:
            self.end(at_once=True)
            raise
        if said is None:
            raise SecondProcessDied(f"the second client's process ended: {self._last_words()}")
        return _result(said)

    def end(self, *, at_once: bool = False) -> None:
        """End it; by itself, if it can, unless at once. A second time does nothing more."""
        self.ended = True
        if at_once:
            self._process.kill()
        with contextlib.suppress(OSError):
            self._pipe.close()
        try:
            self._process.wait(FAREWELL)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join()

    def _listen(self) -> None:
        """Hand what it says to whom it is for; at the end, tell all."""
        with contextlib.suppress(OSError, ValueError, EOFError, pickle.UnpicklingError, AttributeError, ImportError):
            while (said := self._pipe.receive()) is not None:
                client, message = said
                if (queue := self._waiting.get(client)) is not None:
                    queue.put(message)
            assert self._process.stdout is not None
            self._process.stdout.close()
        self.ended = True
        for queue in list(self._waiting.values()):
            queue.put(None)

    def _last_words(self) -> str:
        """How it ended; several clients may ask at once."""
        with self._ending:
            if not self._said:
                self.end(at_once=True)
                self._stderr.seek(0)
                text = self._stderr.read().decode(errors="replace").strip()
                self._stderr.close()
                self._said = f"exit code {self._process.returncode}; {text[-TAIL:] or 'nothing on stderr'}"
            return self._said


def _served(ask: _Ask, runtime: Runtime) -> _Answer:
    """What the program's own Runtime says."""
    match ask.what:
        case "clock":
            return _done(runtime.clock)
        case "new_id":
            return _done(runtime.new_id)
        case "embed":
            assert runtime.embedder is not None
            embedder = runtime.embedder
            return _done(lambda: embedder.embed(*ask.arguments))
        case "fault":
            return _done(lambda: runtime.fault(*ask.arguments))


class _Proxy:
    """A client in the child, as seen from here: any public method is a call."""

    def __init__(self, child: _Child, number: int, opening: _Open, runtime: Runtime) -> None:
        self._child = child
        self._number = number
        self._runtime = runtime
        child.ask(number, opening, runtime)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*arguments: Any, **options: Any) -> Any:
            return self._child.ask(self._number, _Call(name, arguments, options), self._runtime)

        return call

    def close(self) -> None:
        """Close the client; nothing to do when its process has ended, or a second time."""
        if self._child.serves(self._number):
            try:
                self._child.ask(self._number, _Call("close", (), {}), self._runtime)
            finally:
                self._child.leave(self._number)


# The child's side


class _Served:
    """A client here in the child: a thread that does one call after another, and a Runtime that asks the parent."""

    def __init__(self, number: int, pipe: _Pipe, backend: Any) -> None:
        self.inbox: SimpleQueue[Any] = SimpleQueue()
        self._number = number
        self._pipe = pipe
        self._backend = backend
        self._client: Any = None
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        message: Any = None
        while not _closes(message):
            message = self.inbox.get()
            answer = _done(lambda message=message: self._do(message))
            try:
                self._pipe.send(self._number, answer)
            except (pickle.PicklingError, TypeError, AttributeError) as error:
                self._pipe.send(self._number, _Crash(type(error).__name__, f"its result cannot be sent: {error}"))

    def _do(self, message: _Open | _Call) -> Any:
        if isinstance(message, _Open):
            arguments = [] if message.config is None else [message.config]
            opener = getattr(self._backend, message.kind)
            self._client = opener(message.url, message.namespace, self._runtime(message), *arguments)
            return None
        return getattr(self._client, message.method)(*message.arguments, **message.options)

    def _runtime(self, opening: _Open) -> Runtime:
        here = Runtime(
            clock=lambda: self._ask(_Ask("clock")),
            new_id=lambda: self._ask(_Ask("new_id")),
            embedder=None if opening.embedder is None else _Embedder(*opening.embedder, self._ask),
        )
        if not opening.fault:
            return here
        return Runtime(here.clock, here.new_id, here.embedder, lambda point: self._ask(_Ask("fault", (point,))))

    def _ask(self, ask: _Ask) -> Any:
        """Ask the parent, which waits for this client's answer and nothing else."""
        self._pipe.send(self._number, ask)
        return _result(self.inbox.get())


def _closes(message: object) -> bool:
    """Whether it is a client's last call."""
    return isinstance(message, _Call) and message.method == "close"


class _Embedder:
    """The program's embedder, in the parent; implements protocols.Embedder."""

    def __init__(self, name: str, dimension: int, ask: Callable[[_Ask], Any]) -> None:
        self.name = name
        self.dimension = dimension
        self._ask = ask

    def embed(self, texts: Sequence[str], kind: Literal["document", "query"]) -> Sequence[Sequence[float]]:
        """See protocols.Embedder."""
        return self._ask(_Ask("embed", (list(texts), kind)))


def main() -> None:
    """Serve the parent at the other end of stdin and stdout until it goes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends this process.
    pipe = _Pipe(sys.stdin.buffer, os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)  # What a driver prints must not come between messages.
    first = pipe.receive()
    if first is None:
        return
    sys.path[:], name = first[1]
    importlib.invalidate_caches()
    backend = find(name)
    clients: dict[int, _Served] = {}
    while (said := pipe.receive()) is not None:
        number, message = said
        if number not in clients:
            clients[number] = _Served(number, pipe, backend)
        clients[number].inbox.put(message)
        if _closes(message):
            del clients[number]
    os._exit(0)  # Whatever its threads still do.
