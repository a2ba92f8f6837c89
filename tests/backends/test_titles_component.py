"""The component that makes titles, on a store of one thread (TTL-1): what stores cannot show by themselves."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NoReturn

import pytest
from memassay.backends.titles import WORKERS, Titles
from memassay.spec.errors import NotSettled, Unsupported
from memassay.spec.protocols import Runtime
from memassay.spec.reference import Model
from memassay.spec.types import MemoryConfig, Message, NewMessage, TitleGeneration

ON = TitleGeneration()


def made(messages: Sequence[Message], *, model: str | None, instructions: str | None) -> str:
    return "made"


@pytest.fixture
def store() -> Model:
    """Threads t0 … with a question and an answer each."""
    model = Model()
    for number in range(2 * WORKERS):
        model.create_thread(id=f"t{number}", resource_id="r")
        model.save_messages([NewMessage(f"m{number}", f"t{number}", "hello", role="assistant")])
    return model


def messages(store: Model) -> list[Message]:
    """All that is in the store."""
    return [message for thread in store.state.threads for message in store.recall(thread).messages]


def titles(store: Model) -> set[str]:
    """The titles that there are."""
    return {thread.title for thread in store.list_threads(per_page=False).threads}


def test_a_store_that_cannot_title_refuses_to() -> None:
    titling = Titles(Model(), Runtime(titler=made), MemoryConfig(generate_title=True), supported=False)
    with pytest.raises(Unsupported):
        titling.wanted(None)
    with pytest.raises(Unsupported):
        titling.settle(1)


def test_more_threads_than_workers_are_titled(store: Model) -> None:
    titling = Titles(store, Runtime(titler=made), MemoryConfig())
    titling.begin(ON, messages(store))
    titling.settle(30)
    assert titles(store) == {"made"}


def test_no_more_are_made_at_the_same_time_than_there_are_workers(store: Model) -> None:
    entered, released = threading.Semaphore(0), threading.Event()
    running: list[int] = []

    def slow(messages: Sequence[Message], *, model: str | None, instructions: str | None) -> str:
        running.append(sum(thread.name == "memassay-titles" for thread in threading.enumerate()))
        entered.release()
        assert released.wait(30)
        return "made"

    titling = Titles(store, Runtime(titler=slow), MemoryConfig())
    titling.begin(ON, messages(store))
    for _ in range(WORKERS):
        assert entered.acquire(timeout=30)
    assert not entered.acquire(blocking=False)
    released.set()
    titling.settle(30)
    assert (titles(store), len(running)) == ({"made"}, 2 * WORKERS)


def test_where_no_thread_can_be_started_there_is_no_title(store: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(self: Any) -> NoReturn:
        raise RuntimeError("can't start new thread")

    titling = Titles(store, Runtime(titler=made), MemoryConfig())
    monkeypatch.setattr(threading.Thread, "start", cannot)
    titling.begin(ON, messages(store))
    titling.settle(0)
    assert titles(store) == {""}


def test_settling_waits_for_what_was_begun_before_it_alone(store: Model) -> None:
    released = threading.Event()

    def slow(messages: Sequence[Message], *, model: str | None, instructions: str | None) -> str:
        assert messages[0].thread_id == "t0" or released.wait(30)
        return "made"

    titling = Titles(store, Runtime(titler=slow), MemoryConfig())
    titling.begin(ON, store.recall("t0").messages)
    titling.settle(30)
    titling.begin(ON, store.recall("t1").messages)
    with pytest.raises(NotSettled, match="'t1'"):
        titling.settle(0)
    released.set()
    titling.settle(30)
