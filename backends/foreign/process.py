"""An adapter in a process of its own: requests and answers as JSON lines over its stdin and stdout, many at a time."""

from __future__ import annotations

import os
import queue
import select
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from ...spec.errors import StoreError
from ...spec.values import show
from . import wire

STDERR_LINES = 20
"""Lines of the adapter's stderr that are shown when it dies."""

MAX_LINE = 1 << 28
"""Bytes of a line beyond which it is taken for garbage."""

STOP_SECONDS = 5.0
"""Seconds between the end of an adapter's stdin and its being killed."""

ERRORS: dict[str, type[StoreError]] = {kind.code: kind for kind in StoreError.__subclasses__()}

Answer = Callable[[str, Mapping[str, Any]], Any]
"""Answers what an adapter asks during a call: the question's name and arguments to a value for the wire."""


class AdapterFailed(Exception):
    """The adapter cannot be talked to any more; the message says why, and what it wrote to stderr."""


class AdapterDied(AdapterFailed):
    """Its process ended."""


class AdapterSilent(AdapterFailed):
    """It did not answer in time."""


class AdapterGarbled(AdapterFailed):
    """It wrote what is no message of the protocol."""


class AdapterRaised(Exception):
    """The adapter raised an error that the specification does not name."""


class Process:
    """One running adapter. Thread-safe. It is killed by whatever leaves its state unknown."""

    def __init__(self, shown: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        """`shown` is what messages call it."""
        self._shown = shown
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
                env=None if environment is None else {**os.environ, **environment},
            )
        except OSError as error:
            raise AdapterDied(f"`{' '.join(command)}` cannot be started: {error.strerror}") from None
        self._input, self._output = cast(Any, self._process.stdin), cast(Any, self._process.stdout)
        os.set_blocking(self._input.fileno(), False)
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._number = 0
        self._waiting: dict[int, queue.SimpleQueue[dict[str, Any] | AdapterFailed]] = {}
        self._failure: AdapterFailed | None = None
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._threads = [
            threading.Thread(target=target, name=f"bridge {name}", daemon=True)
            for name, target in (("stdout", self._read), ("stderr", self._listen))
        ]
        for thread in self._threads:
            thread.start()

    @property
    def alive(self) -> bool:
        """Whether it can still be talked to."""
        return self._failure is None

    def call(self, name: str, message: Mapping[str, Any], seconds: float, answer: Answer | None = None) -> Any:
        """Make a call and return its result, still encoded. Raises AdapterFailed, AdapterRaised, StoreError."""
        deadline = time.monotonic() + seconds
        inbox: queue.SimpleQueue[dict[str, Any] | AdapterFailed] = queue.SimpleQueue()
        with self._lock:
            if self._failure is not None:
                raise self._failure
            self._number += 1
            number = self._number
            self._waiting[number] = inbox
        try:
            self._write({"id": number, "call": name, **message}, deadline)
            while True:
                try:
                    received = inbox.get(timeout=max(0.0, deadline - time.monotonic()))
                except queue.Empty:
                    raise self._silent(name, seconds) from None
                if isinstance(received, AdapterFailed):
                    raise received
                if "ask" not in received:
                    break
                self._write(_answered(received, answer), deadline)
        except StoreError:
            raise
        except BaseException:
            # Also Ctrl-C and the time limit of a program: what the adapter is doing now is not known.
            self.kill()
            raise
        finally:
            with self._lock:
                self._waiting.pop(number, None)
        if "error" in received:
            raise _error(received["error"])
        return received.get("result")

    def stop(self) -> None:
        """End it: by closing its stdin, and by force if it goes on for some seconds."""
        self._fail(AdapterDied(f"`{self._shown}` was stopped"))
        with suppress(OSError):
            self._input.close()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._reap()

    def kill(self) -> None:
        """End it by force."""
        self._fail(AdapterDied(f"`{self._shown}` was stopped"))
        self._process.kill()
        self._reap()

    def _reap(self) -> None:
        self._process.wait()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(STOP_SECONDS)
        with suppress(OSError):
            self._input.close()

    def _write(self, message: Mapping[str, Any], deadline: float) -> None:
        data = memoryview(wire.line(message))
        with self._writing:
            while data:
                left = deadline - time.monotonic()
                try:
                    if left <= 0 or not select.select([], [self._input], [], left)[1]:
                        raise AdapterSilent(f"`{self._shown}` does not read its stdin{self._said()}")
                    data = data[os.write(self._input.fileno(), data[: 1 << 16]) :]
                except BlockingIOError:
                    continue
                except (BrokenPipeError, ValueError):
                    # The reader knows more: why it ended, and what it said.
                    self._threads[0].join(STOP_SECONDS)
                    raise self._failure or AdapterDied(f"`{self._shown}` closed its stdin{self._said()}") from None

    def _read(self) -> None:
        """Hand each line to the call that waits for it."""
        pieces: list[bytes] = []
        size = 0
        with suppress(OSError, ValueError):
            while chunk := os.read(self._output.fileno(), 1 << 16):
                pieces.append(chunk)
                size += len(chunk)
                if b"\n" in chunk:
                    *lines, rest = b"".join(pieces).split(b"\n")
                    pieces, size = [rest], len(rest)
                    for line in lines:
                        if not self._dispatch(line):
                            return
                if size > MAX_LINE:
                    self._fail(AdapterGarbled(f"`{self._shown}` wrote a line of more than {MAX_LINE} bytes"))
                    return
        rest = b"".join(pieces)[:60]
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_SECONDS)
        self._threads[1].join(STOP_SECONDS)
        code = self._process.poll()
        how = (
            "closed its stdout"
            if code is None
            else f"ended by signal {-code}"
            if code < 0
            else f"ended with code {code}"
        )
        half = f" in the middle of a line that began {rest!r}" if rest else ""
        self._fail(AdapterDied(f"`{self._shown}` {how}{half}{self._said()}"))

    def _dispatch(self, line: bytes) -> bool:
        """Whether the line was a message."""
        if not line.strip():
            return True
        try:
            message = wire.read(line)
            number = message["of"] if "ask" in message else message["id"]
        except (wire.Unreadable, KeyError) as error:
            why = "it has no id" if isinstance(error, KeyError) else str(error)
            self._fail(
                AdapterGarbled(
                    f"`{self._shown}` wrote to stdout what is no message of the bridge: {line[:80]!r} ({why}; "
                    f"log to stderr){self._said()}"
                )
            )
            return False
        with self._lock:
            inbox = self._waiting.get(number) if isinstance(number, int) else None
        if inbox is None:
            self._fail(AdapterGarbled(f"`{self._shown}` answered {show(number)}, which waits for no answer"))
            return False
        inbox.put(message)
        return True

    def _listen(self) -> None:
        """Keep the end of stderr."""
        with suppress(OSError, ValueError):
            for line in cast(Any, self._process.stderr):
                self._stderr.append(line.decode(errors="replace").rstrip())

    def _said(self) -> str:
        lines = [line for line in self._stderr if line]
        return "; its stderr ends with:\n" + "\n".join(lines) if lines else "; it wrote nothing to stderr"

    def _silent(self, name: str, seconds: float) -> AdapterSilent:
        return AdapterSilent(f"`{self._shown}` did not answer {name} within {seconds:g} s{self._said()}")

    def _fail(self, failure: AdapterFailed) -> None:
        """Tell everybody who waits, now and later. The first failure counts."""
        with self._lock:
            if self._failure is not None:
                return
            self._failure = failure
            inboxes = list(self._waiting.values())
        for inbox in inboxes:
            inbox.put(failure)


def _answered(asked: Mapping[str, Any], answer: Answer | None) -> dict[str, Any]:
    """The message that answers a question; what goes wrong in answering is answered too."""
    try:
        if answer is None:
            raise LookupError("nothing may be asked during this call")
        return {"answer": asked["ask"], "result": answer(str(asked.get("call")), asked.get("args") or {})}
    except Exception as error:  # noqa: BLE001 - an embedder may raise anything
        return {"answer": asked["ask"], "error": {"code": type(error).__name__, "message": str(error)}}


def _error(given: Any) -> Exception:
    """The error of an answer: the specification's if its code is one of those, else one of its own name."""
    fields = cast("dict[str, Any]", given) if isinstance(given, dict) else {"message": show(given)}
    code, message = str(fields.get("code", "error")), str(fields.get("message", ""))
    if code in ERRORS:
        return ERRORS[code](message, hint=str(fields.get("hint", "")))
    name = "".join(character if character.isalnum() else "_" for character in code) or "error"
    return type(name, (AdapterRaised,), {"__module__": __name__})(message)
