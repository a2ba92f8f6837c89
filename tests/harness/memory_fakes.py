"""Backends with one habit each, for tests of the harness: correct stores, wrong ones, and ones that break."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import msgspec
from memassay.backends.provision import Endpoint, EngineUnavailable
from memassay.spec.capabilities import Capabilities
from memassay.spec.errors import Unsupported
from memassay.spec.protocols import Memory, Runtime, VectorIndex
from memassay.spec.reference import Model, State
from memassay.spec.types import MemoryConfig, RecallResult

SECRET = "hunter2-hunter2"


Recall = Callable[..., RecallResult]


class Correct:
    """The model, with what was opened and dropped on record."""

    name = "correct"

    def __init__(self) -> None:
        self.states: dict[str, State] = {}
        self.opened: list[str] = []
        self.dropped: list[str] = []

    def capabilities(self, url: str) -> Capabilities:
        return Capabilities(other_processes=False)

    def version(self, url: str) -> str:
        return "1.2.3"

    def open_memory(self, url: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> Memory:
        if namespace not in self.states:
            self.opened.append(namespace)
        return Store(self, runtime, config, self.states.setdefault(namespace, State()))

    def open_index(self, url: str, namespace: str, runtime: Runtime) -> VectorIndex:
        raise Unsupported("vector indices")

    def drop_namespace(self, url: str, namespace: str) -> None:
        self.states.pop(namespace, None)
        self.dropped.append(namespace)

    def page_of_one(self, recall: Recall) -> RecallResult:
        """What a recall with per_page 1 does; `recall` is the right answer."""
        return recall()

    def close(self) -> None:
        """What closing a client does."""


class Cloning(Correct):
    """Clones, and embeds nothing."""

    name = "cloning"

    def capabilities(self, url: str) -> Capabilities:
        return Capabilities(other_processes=False, clone=True)


class Store(Model):
    """The model, but for what its backend does at pages of one row and at the close."""

    def __init__(self, backend: Correct, runtime: Runtime, config: MemoryConfig, state: State) -> None:
        super().__init__(runtime, config, state, capabilities=backend.capabilities(""))
        self.backend = backend

    def recall(self, *given: Any, **named: Any) -> RecallResult:
        def right() -> RecallResult:
            return Model.recall(self, *given, **named)

        return self.backend.page_of_one(right) if named.get("per_page") == 1 else right()

    def close(self) -> None:
        self.backend.close()


def off_by_one(found: RecallResult) -> RecallResult:
    return msgspec.structs.replace(found, total=found.total + 1)


def wait_forever() -> None:
    threading.Event().wait()


class Miscounting(Correct):
    """Pages of one row have a total that is one too many."""

    name = "miscounting"

    def page_of_one(self, recall: Recall) -> RecallResult:
        return off_by_one(recall())


class Crashing(Correct):
    """Pages of one row raise what the specification does not name, with a password in it."""

    name = "crashing"

    def page_of_one(self, recall: Recall) -> RecallResult:
        raise RuntimeError(f"password {SECRET} was refused")


class Hanging(Correct):
    """Pages of one row never come."""

    name = "hanging"

    def page_of_one(self, recall: Recall) -> RecallResult:
        wait_forever()
        return recall()


class HangingOnClose(Correct):
    """Clients cannot be closed."""

    name = "hanging_on_close"

    def close(self) -> None:
        wait_forever()


class FailingOnClose(Correct):
    """Closing a client raises."""

    name = "failing_on_close"

    def close(self) -> None:
        raise RuntimeError("cannot close")


class Flaky(Correct):
    """Every third page of one row has a wrong total."""

    name = "flaky"

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def page_of_one(self, recall: Recall) -> RecallResult:
        self.calls += 1
        return off_by_one(recall()) if self.calls % 3 == 1 else recall()


class Dying(Correct):
    """The first page of one row is the end of the engine."""

    name = "dying"

    def __init__(self) -> None:
        super().__init__()
        self.dead = False

    def page_of_one(self, recall: Recall) -> RecallResult:
        self.dead = True
        raise ConnectionError("gone")

    def version(self, url: str) -> str:
        if self.dead:
            raise ConnectionError("gone")
        return "1.2.3"


class Interrupting(Correct):
    """Pages of one row are where the user presses Ctrl-C."""

    name = "interrupting"

    def page_of_one(self, recall: Recall) -> RecallResult:
        raise KeyboardInterrupt


class HangingUnclosable(Hanging):
    """Pages of one row never come, and closing a client raises."""

    name = "hanging_unclosable"

    def close(self) -> None:
        raise RuntimeError("cannot close")


class InterruptingUnclosable(Interrupting):
    """Pages of one row are where the user presses Ctrl-C, and closing a client raises."""

    name = "interrupting_unclosable"

    def close(self) -> None:
        raise RuntimeError("cannot close")


class Waiting(Correct):
    """Says when it waits for the Ctrl-C, and writes down what is dropped."""

    name = "waiting"

    def page_of_one(self, recall: Recall) -> RecallResult:
        sys.stdout.write("waiting\n")
        sys.stdout.flush()
        wait_forever()
        return recall()

    def drop_namespace(self, url: str, namespace: str) -> None:
        super().drop_namespace(url, namespace)
        with open(os.environ["DROPPED"], "a", encoding="utf-8") as file:
            file.write(namespace + "\n")


class Resetting(Correct):
    """Has a quick way to empty a namespace."""

    name = "resetting"

    def __init__(self) -> None:
        super().__init__()
        self.reset: list[str] = []

    def reset_namespace(self, url: str, namespace: str) -> None:
        self.states[namespace] = State()
        self.reset.append(namespace)


class Cluttered(Correct):
    """Cannot empty a namespace."""

    name = "cluttered"

    def drop_namespace(self, url: str, namespace: str) -> None:
        raise RuntimeError("permission denied")


class Lonely(Correct):
    """One client at a time."""

    name = "lonely"

    def capabilities(self, url: str) -> Capabilities:
        return Capabilities(concurrent_clients=False, durable=False)


class Way:
    """A provisioner that starts nothing and counts."""

    def __init__(self, reason: str | None = None, error: str = "") -> None:
        self.reason = reason
        self.error = error
        self.running = 0
        self.given: list[str | None] = []

    def missing(self) -> str | None:
        return self.reason

    @contextmanager
    def start(self, url: str | None) -> Generator[Endpoint]:
        self.given.append(url)
        if self.error:
            raise EngineUnavailable(self.error)
        self.running += 1
        try:
            yield Endpoint(url or "memory://", "x", f"at {url}")
        finally:
            self.running -= 1


class Provisioned(Correct):
    """Has engines: one way that cannot be gone here, one that can, one by URL."""

    name = "provisioned"

    def __init__(self) -> None:
        super().__init__()
        self.provisioners = {"docker": Way(reason="no daemon"), "embedded": Way(), "url": Way()}


class Unstartable(Correct):
    """Its engine does not come up."""

    name = "unstartable"

    def __init__(self) -> None:
        super().__init__()
        self.provisioners = {"embedded": Way(error="port 5432 is taken")}


class Foreign(Correct):
    """Its engine does not come up, and says so in letters that ASCII lacks."""

    name = "foreign"

    def __init__(self) -> None:
        super().__init__()
        self.provisioners = {"embedded": Way(error="Fehler ü…")}


class WithoutIndices(Correct):
    """It keeps messages alone."""

    open_index: Any = None


class Unavailable(Correct):
    """Its engine cannot be had here."""

    name = "unavailable"

    def __init__(self) -> None:
        super().__init__()
        self.provisioners = {"docker": Way(reason="no daemon"), "url": Way()}


class Confiding(Crashing):
    """Has an engine, and errors that quote its password."""

    name = "confiding"

    def __init__(self) -> None:
        super().__init__()
        self.provisioners = {"url": Way()}


class Incomplete:
    """No backend at all."""


def broken() -> None:
    raise ValueError("this factory does not work")


class Unopenable(Correct):
    """Opens no client."""

    name = "unopenable"

    def open_memory(self, url: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> Memory:
        raise RuntimeError("cannot be opened")


class Exiting(Correct):
    """Ends the process, or tries to."""

    name = "exiting"

    def page_of_one(self, recall: Recall) -> RecallResult:
        raise SystemExit(0)


class Odd(Correct):
    """Returns what is no RecallResult."""

    name = "odd"

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value

    def page_of_one(self, recall: Recall) -> RecallResult:
        return self.value


class Printing(Correct):
    """Prints wherever it can, also from a process of its own."""

    name = "printing"

    def __init__(self) -> None:
        super().__init__()
        sys.stdout.write("noise of a factory\n")
        subprocess.run(["echo", "noise of a process"], check=True)

    def version(self, url: str) -> str:
        sys.stdout.write("noise of a version\n")
        return "1"

    def page_of_one(self, recall: Recall) -> RecallResult:
        sys.stdout.write("noise of a call\n")
        os.write(1, b"noise of a library\n")
        return recall()


class Wordy(Correct):
    """Raises errors of ten million characters."""

    name = "wordy"

    def page_of_one(self, recall: Recall) -> RecallResult:
        raise RuntimeError("word " * 2_000_000)


instance = Correct()


def a_class() -> type[Correct]:
    return Correct


def wants(url: str, *, user: str) -> Correct:
    return Correct()


class Nameless(Correct):
    """Has no name."""

    name = None  # type: ignore[assignment]


class Unfinished(Correct):
    """Has a value where a method should be."""

    name = "unfinished"
    version = "1.2.3"  # type: ignore[assignment]
