"""Titles by hand, on every backend: after an answer, off the caller's path, and only where there is none (TTL-1)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import pytest
from memassay.spec.errors import ConfigurationError, InvalidRequest, NotSettled, StoreError
from memassay.spec.protocols import Memory, Titler
from memassay.spec.types import MemoryConfig, Message, NewMessage, ThreadsConfig, TitleGeneration

ON = MemoryConfig(generate_title=True)
Open = Callable[..., Memory]


class Slow:
    """A titler that waits until it is let go; notes what it was given, and in which thread."""

    def __init__(self, title: str = "Lost order") -> None:
        self.title = title
        self.released = threading.Event()
        self.entered = threading.Event()
        self.given: list[tuple[list[str], str | None, str | None]] = []
        self.threads: list[int] = []

    def __call__(self, messages: Sequence[Message], *, model: str | None, instructions: str | None) -> str:
        self.given.append(([message.id for message in messages], model, instructions))
        self.threads.append(threading.get_ident())
        self.entered.set()
        assert self.released.wait(30)
        return self.title


@pytest.fixture
def slow() -> Generator[Slow]:
    """A slow titler, which is let go at the end."""
    titler = Slow()
    yield titler
    titler.released.set()


class Opened(Protocol):
    """Opens a client with a titler, and titles on."""

    def __call__(self, titler: Titler | None, config: MemoryConfig = ON) -> Memory: ...


@pytest.fixture
def opened(namespace: Any) -> Opened:
    """See Opened."""

    def open_memory(titler: Titler | None, config: MemoryConfig = ON) -> Memory:
        return namespace(config, titler=titler)

    return open_memory


def converse(memory: Memory, thread: str = "t1", config: MemoryConfig | None = None) -> None:
    """A question and its answer, in a thread that may be new."""
    if memory.get_thread(thread) is None:
        memory.create_thread(id=thread, resource_id="r1")
    question = NewMessage(f"{thread}-q", thread, "Where is my order?")
    memory.save_messages(
        [question, NewMessage(f"{thread}-a", thread, "On its way.", role="assistant")], thread_config=config
    )


def title(memory: Memory, thread: str = "t1") -> str | None:
    """The thread's title."""
    found = memory.get_thread(thread)
    return None if found is None else found.title


def test_a_save_returns_before_its_title_is_made(namespace: Any, opened: Opened, slow: Slow) -> None:
    if namespace.backend.name == "reference":
        pytest.skip("the model makes its titles in settle")
    memory = opened(slow)
    converse(memory)
    assert title(memory) == ""
    assert slow.entered.wait(30)
    assert slow.threads != [threading.get_ident()]
    slow.released.set()
    memory.settle()
    assert title(memory) == "Lost order"


def test_settling_takes_no_longer_than_it_is_given(namespace: Any, opened: Opened, slow: Slow) -> None:
    if namespace.backend.name == "reference":
        pytest.skip("the model makes its titles in settle")
    memory = opened(slow)
    converse(memory)
    with pytest.raises(NotSettled):
        memory.settle(timeout=0.05)
    slow.released.set()
    memory.settle()
    assert title(memory) == "Lost order"


def test_the_titler_gets_the_first_messages_and_what_is_configured(opened: Opened, slow: Slow) -> None:
    slow.released.set()
    memory = opened(slow, MemoryConfig(generate_title=TitleGeneration("small", "One word.")))
    converse(memory)
    memory.settle()
    assert slow.given == [(["t1-q", "t1-a"], "small", "One word.")]


def test_a_title_set_meanwhile_stays(opened: Opened, slow: Slow) -> None:
    memory = opened(slow)
    converse(memory)
    memory.update_thread("t1", title="mine")
    slow.released.set()
    memory.settle()
    assert title(memory) == "mine"


def test_a_thread_deleted_meanwhile_stays_away(opened: Opened, slow: Slow) -> None:
    memory = opened(slow)
    converse(memory)
    memory.delete_thread("t1")
    slow.released.set()
    memory.settle()
    assert memory.get_thread("t1") is None


def fails(messages: Sequence[Message], *, model: str | None, instructions: str | None) -> str:
    raise RuntimeError("no model answers")


def makes(made: Any) -> Titler:
    def titler(messages: Sequence[Message], *, model: str | None, instructions: str | None) -> Any:
        return made

    return titler


@pytest.mark.parametrize("titler", [fails, makes(""), makes(None), makes(5), makes("a\0b"), makes("\ud83d")])
def test_a_failure_leaves_the_thread_as_it_is(opened: Opened, titler: Titler) -> None:
    memory = opened(titler)
    converse(memory)
    before = memory.get_thread("t1")
    memory.settle()
    assert memory.get_thread("t1") == before


def test_an_error_of_a_titler_is_logged_without_what_it_says(
    namespace: Any, opened: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    if namespace.backend.name == "reference":
        pytest.skip("the model logs nothing")
    memory = opened(fails)
    converse(memory)
    memory.settle()
    assert [record.getMessage() for record in caplog.records] == ["no title for thread 't1': RuntimeError"]


def test_a_thread_that_failed_is_titled_after_its_next_answer(opened: Opened) -> None:
    answers = iter(["", "second"])

    def titler(messages: Sequence[Message], *, model: str | None, instructions: str | None) -> str:
        return next(answers)

    memory = opened(titler)
    converse(memory)
    memory.settle()
    memory.save_messages([NewMessage("more", "t1", "Anything else?", role="assistant")])
    memory.settle()
    assert title(memory) == "second"


def test_many_answers_in_one_thread_make_one_title(opened: Opened, slow: Slow) -> None:
    memory = opened(slow)
    converse(memory)
    for number in range(3):
        memory.save_messages([NewMessage(f"m{number}", "t1", "more", role="assistant")])
    slow.released.set()
    memory.settle()
    assert len(slow.given) == 1


def test_many_threads_are_all_titled(opened: Opened) -> None:
    def titler(messages: Sequence[Message], *, model: str | None, instructions: str | None) -> str:
        return f"About {messages[0].id}"

    memory = opened(titler)
    for number in range(12):
        converse(memory, f"t{number}")
    memory.settle()
    assert [title(memory, f"t{number}") for number in range(12)] == [f"About t{number}-q" for number in range(12)]


def test_a_slow_title_does_not_hold_up_others(namespace: Any, opened: Opened) -> None:
    if namespace.backend.name == "reference":
        pytest.skip("the model makes its titles in settle")
    released, other = threading.Event(), threading.Event()

    def titler(messages: Sequence[Message], *, model: str | None, instructions: str | None) -> str:
        if messages[0].thread_id == "t1":
            assert released.wait(30)
        else:
            other.set()
        return "done"

    memory = opened(titler)
    converse(memory, "t1")
    converse(memory, "t2")
    assert other.wait(30)
    released.set()
    memory.settle()
    assert (title(memory, "t1"), title(memory, "t2")) == ("done", "done")


def test_closing_does_not_wait_and_nothing_is_written_afterwards(
    namespace: Any, opened: Opened, open_memory: Open, slow: Slow
) -> None:
    memory = opened(slow)
    converse(memory)
    memory.close()
    slow.released.set()
    assert title(open_memory()) == ""


def test_nothing_to_settle_is_settled(opened: Opened) -> None:
    opened(None, MemoryConfig()).settle(timeout=0)


# Where it is asked for


@pytest.mark.parametrize(
    ("options", "config"),
    [
        (MemoryConfig(threads=ThreadsConfig(generate_title=True)), None),
        (MemoryConfig(), ON),
        (MemoryConfig(generate_title=False), MemoryConfig(threads=ThreadsConfig(generate_title=True))),
        (MemoryConfig(generate_title=True, threads=ThreadsConfig(generate_title=True)), None),
    ],
)
def test_it_is_on_where_it_is_asked_for(opened: Opened, options: MemoryConfig, config: MemoryConfig | None) -> None:
    memory = opened(makes("made"), options)
    converse(memory, config=config)
    memory.settle()
    assert title(memory) == "made"


@pytest.mark.parametrize(
    ("options", "config"),
    [
        (MemoryConfig(), None),
        (MemoryConfig(generate_title=False), None),
        (ON, MemoryConfig(generate_title=False)),
        (ON, MemoryConfig(threads=ThreadsConfig(generate_title=False))),
    ],
)
def test_it_is_off_where_it_is_not(opened: Opened, options: MemoryConfig, config: MemoryConfig | None) -> None:
    memory = opened(makes("made"), options)
    converse(memory, config=config)
    memory.settle()
    assert title(memory) == ""


def test_without_a_titler_nothing_is_saved(opened: Opened) -> None:
    memory = opened(None)
    memory.create_thread(id="t1", resource_id="r1")
    with pytest.raises(ConfigurationError):
        memory.save_messages([NewMessage("a", "t1", "hello", role="assistant")])
    assert memory.recall("t1").total == 0


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ({"generate_title": True, "threads": ThreadsConfig(generate_title=False)}, ConfigurationError),
        ({"generate_title": 1}, InvalidRequest),
        ({"generate_title": "yes"}, InvalidRequest),
        ({"generate_title": TitleGeneration(model=5)}, InvalidRequest),  # pyright: ignore[reportArgumentType]
        ({"threads": True}, InvalidRequest),
        ({"threads": ThreadsConfig(generate_title="yes")}, InvalidRequest),  # pyright: ignore[reportArgumentType]
    ],
)
def test_a_wrong_configuration_is_refused(opened: Opened, config: dict[str, Any], error: type[StoreError]) -> None:
    memory = opened(makes("made"), MemoryConfig())
    memory.create_thread(id="t1", resource_id="r1")
    with pytest.raises(error):
        memory.save_messages([NewMessage("a", "t1", "hello")], thread_config=MemoryConfig(**config))
    assert memory.recall("t1").total == 0


# title_thread


def test_a_title_is_given_once(memory: Memory) -> None:
    memory.create_thread(id="t1", resource_id="r1")
    assert (memory.title_thread("t1", "first"), memory.title_thread("t1", "second")) == (True, False)
    assert title(memory) == "first"


def test_an_unknown_thread_is_given_none(memory: Memory) -> None:
    assert memory.title_thread("nowhere", "x") is False


@pytest.mark.parametrize("wrong", ["", None, 5, "a\0b"])
def test_what_is_no_title_is_refused(memory: Memory, wrong: Any) -> None:
    memory.create_thread(id="t1", resource_id="r1")
    with pytest.raises(InvalidRequest):
        memory.title_thread("t1", wrong)


def test_of_many_titles_at_the_same_time_one_is_given(memory: Memory, open_memory: Open) -> None:
    memory.create_thread(id="t1", resource_id="r1")
    clients = [open_memory() for _ in range(8)]

    def give(number: int) -> bool:
        return clients[number].title_thread("t1", f"title {number}")

    with ThreadPoolExecutor(len(clients)) as pool:
        given = list(pool.map(give, range(len(clients))))
    assert sum(given) == 1
    assert title(memory) == f"title {given.index(True)}"
