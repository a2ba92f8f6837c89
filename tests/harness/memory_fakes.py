"""Backends with one habit each, for tests of the harness: correct stores, wrong ones, and ones that break."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import contextmanager

import msgspec
from memassay.backends.provision import Endpoint, EngineUnavailable
from memassay.spec.capabilities import Capabilities
from memassay.spec.reference import Model, State

SECRET = "hunter2-hunter2"


class Correct:
    """The model, with what was dropped on record."""

    name = "correct"
    memory = Model

    def __init__(self):
        self.states = {}
        self.opened = []
        self.dropped = []

    def capabilities(self, url):
        return Capabilities()

    def version(self, url):
        return "1.2.3"

    def open_memory(self, url, namespace, runtime, config):
        if namespace not in self.states:
            self.opened.append(namespace)
        return self.memory(runtime, config, self.states.setdefault(namespace, State()))

    def drop_namespace(self, url, namespace):
        self.states.pop(namespace, None)
        self.dropped.append(namespace)


class _Miscounting(Model):
    def recall(self, thread_id, **given):
        found = super().recall(thread_id, **given)
        return msgspec.structs.replace(found, total=found.total + 1) if given.get("per_page") == 1 else found


class Miscounting(Correct):
    """Pages of one row have a total that is one too many."""

    name = "miscounting"
    memory = _Miscounting


class _Crashing(Model):
    def recall(self, thread_id, **given):
        if given.get("per_page") == 1:
            raise RuntimeError(f"cannot reach postgresql://me:{SECRET}@host/db")
        return super().recall(thread_id, **given)


class Crashing(Correct):
    """Pages of one row raise what the specification does not name."""

    name = "crashing"
    memory = _Crashing


class _Hanging(Model):
    def recall(self, thread_id, **given):
        if given.get("per_page") == 1:
            threading.Event().wait()
        return super().recall(thread_id, **given)


class Hanging(Correct):
    """Pages of one row never come."""

    name = "hanging"
    memory = _Hanging


class HangingOnClose(Correct):
    """Clients cannot be closed."""

    name = "hanging_on_close"

    class memory(Model):
        def close(self):
            threading.Event().wait()


class FailingOnClose(Correct):
    """Closing a client raises."""

    name = "failing_on_close"

    class memory(Model):
        def close(self):
            raise RuntimeError("cannot close")


class Flaky(Correct):
    """Every third page of one row has a wrong total."""

    name = "flaky"

    def __init__(self):
        super().__init__()
        self.calls = 0

    def open_memory(self, url, namespace, runtime, config):
        backend = self

        class memory(Model):
            def recall(self, thread_id, **given):
                found = super().recall(thread_id, **given)
                if given.get("per_page") != 1:
                    return found
                backend.calls += 1
                return msgspec.structs.replace(found, total=found.total + (backend.calls % 3 == 1))

        return memory(runtime, config, self.states.setdefault(namespace, State()))


class Dying(Crashing):
    """The first crash is also the end of the engine."""

    name = "dying"

    def __init__(self):
        super().__init__()
        self.dead = False
        backend = self

        class memory(Model):
            def recall(self, thread_id, **given):
                backend.dead = backend.dead or given.get("per_page") == 1
                if backend.dead:
                    raise ConnectionError("gone")
                return super().recall(thread_id, **given)

        self.memory = memory

    def version(self, url):
        if self.dead:
            raise ConnectionError("gone")
        return "1.2.3"


class Interrupting(Correct):
    """Pages of one row are where the user presses Ctrl-C."""

    name = "interrupting"

    class memory(Model):
        def recall(self, thread_id, **given):
            if given.get("per_page") == 1:
                raise KeyboardInterrupt
            return super().recall(thread_id, **given)


class Waiting(Hanging):
    """Says when it waits for the Ctrl-C, and writes down what is dropped."""

    name = "waiting"

    class memory(Model):
        def recall(self, thread_id, **given):
            if given.get("per_page") == 1:
                sys.stdout.write("waiting\n")
                sys.stdout.flush()
                threading.Event().wait()
            return super().recall(thread_id, **given)

    def drop_namespace(self, url, namespace):
        super().drop_namespace(url, namespace)
        with open(os.environ["DROPPED"], "a", encoding="utf-8") as file:
            file.write(namespace + "\n")


class Resetting(Correct):
    """Has a quick way to empty a namespace."""

    name = "resetting"

    def __init__(self):
        super().__init__()
        self.reset = []

    def reset_namespace(self, url, namespace):
        self.states[namespace] = State()
        self.reset.append(namespace)


class Cluttered(Correct):
    """Cannot empty a namespace."""

    name = "cluttered"

    def drop_namespace(self, url, namespace):
        raise RuntimeError("permission denied")


class Lonely(Correct):
    """One client at a time."""

    name = "lonely"

    def capabilities(self, url):
        return Capabilities(concurrent_clients=False, durable=False)


class _Way:
    def __init__(self, reason=None, error=None):
        self.reason = reason
        self.error = error
        self.running = 0
        self.given = []

    def missing(self):
        return self.reason

    @contextmanager
    def start(self, url):
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

    def __init__(self):
        super().__init__()
        self.provisioners = {
            "docker": _Way(reason="no daemon"),
            "embedded": _Way(),
            "url": _Way(),
        }


class Unstartable(Correct):
    """Its engine does not come up."""

    name = "unstartable"

    def __init__(self):
        super().__init__()
        self.provisioners = {"embedded": _Way(error="port 5432 is taken")}


class Unavailable(Correct):
    """Its engine cannot be had here."""

    name = "unavailable"

    def __init__(self):
        super().__init__()
        self.provisioners = {"docker": _Way(reason="no daemon"), "url": _Way()}


class Confiding(Provisioned):
    """Its errors quote the URL."""

    name = "confiding"
    memory = _Crashing


class Incomplete:
    """No backend at all."""


def broken():
    raise ValueError("this factory does not work")
