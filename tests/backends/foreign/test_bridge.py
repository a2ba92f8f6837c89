"""The bridge: values survive it, errors keep their names, and an adapter that breaks is reported as what it is."""

from __future__ import annotations

import math
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from memassay.backends.foreign import wire
from memassay.backends.foreign.bridge import Bridge, BridgeBackend
from memassay.backends.foreign.process import AdapterDied, AdapterGarbled, AdapterRaised, AdapterSilent
from memassay.backends.provision import EngineUnavailable
from memassay.backends.registry import UnknownBackend, find
from memassay.harness.engine import start
from memassay.harness.execution import execute
from memassay.spec.errors import AlreadyExists, InvalidFilter, InvalidRequest, InvalidVector
from memassay.spec.program import CreateThread, Observe, Program
from memassay.spec.protocols import Runtime
from memassay.spec.types import MemoryConfig, Message, MessageFilter, NewMessage, NewVector, OrderBy, ToolPart
from typer.testing import CliRunner

ADAPTERS = Path(__file__).with_name("adapters.py")
NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
SERVE = f"bridge:{shlex.quote(sys.executable)} -m memassay.backends.foreign.serve"


@pytest.fixture
def reference() -> Iterator[Any]:
    backend = find(f"{SERVE} reference")
    assert isinstance(backend, BridgeBackend)
    yield backend
    backend.bridge.stop()


@pytest.fixture
def memory(reference: Any) -> Any:
    return reference.open_memory("", "n", Runtime(clock=lambda: NOON, new_id=lambda: "given"), MemoryConfig())


def broken(way: str, *, seconds: float = 30.0) -> BridgeBackend:
    bridge = Bridge(way, [sys.executable, str(ADAPTERS), way], call_seconds=seconds, hello_seconds=seconds)
    return BridgeBackend(bridge)


def open_in(backend: BridgeBackend) -> Any:
    backend.version("")
    return backend.open_memory("", "n", Runtime(), MemoryConfig())


# Values


@pytest.mark.parametrize(
    "value",
    [
        *(0, 1, 2**53 - 1, -(2**53 - 1), 0.1, 1e300, 5e-324, 1e16, 123456789.123456789, 1.5e21, True, None, ""),
        *("\U0001f600", "e\u0301", "\u2028", {"$at": 1}, {"$at": {"$float": "nan"}}, {"$object": {}}, [[], {}]),
        *({"__proto__": 1, "": [None, False]}, {"$eq": 1, "$at": 2}),
    ],
)
def test_json_comes_back_equal(memory: Any, value: Any) -> None:
    memory.create_thread(resource_id="r", id="t", metadata={"k": value})
    found = memory.get_thread("t").metadata["k"]
    assert found == value
    assert isinstance(found, bool) == isinstance(value, bool)


def test_an_object_that_looks_like_an_instant_stays_an_object(memory: Any) -> None:
    memory.create_thread(resource_id="r", id="t", metadata={"$at": "2024-03-01T12:00:00Z"})
    assert memory.get_thread("t").metadata == {"$at": "2024-03-01T12:00:00Z"}


def test_strings_keep_the_null_character_on_the_wire() -> None:
    assert wire.read(wire.line(wire.arguments({"id": "a\0b"}))) == {"id": "a\0b"}


def test_integers_beyond_the_safe_ones_are_read_as_doubles() -> None:
    assert wire.read(b'{"n": 123456789012345680000}') == {"n": 123456789012345678901.0}


def test_instants_keep_their_microseconds_on_the_wire() -> None:
    at = datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    assert wire.decode(wire.arguments({"created_at": at})) == {"created_at": at}


def test_numbers_that_json_lacks_reach_the_adapter() -> None:
    sent = wire.arguments({"metadata": {"a": math.inf, "b": -math.inf, "c": math.nan}})["metadata"]
    found = wire.decode(sent)
    assert (found["a"], found["b"]) == (math.inf, -math.inf)
    assert math.isnan(found["c"])


def test_the_clock_and_new_ids_are_the_runtimes(memory: Any) -> None:
    created = memory.create_thread(resource_id="r")
    assert (created.id, created.created_at) == ("given", NOON)


def test_content_parts_come_back_as_parts(memory: Any) -> None:
    memory.create_thread(resource_id="r", id="t")
    parts = [ToolPart("c", "add", {"a": [1, None]}, None)]
    (saved,) = memory.save_messages([NewMessage("m", "t", parts)])
    assert saved == Message("m", "t", "r", "user", tuple(parts), {}, NOON)


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"metadata": {"k": "\ud83d"}}, InvalidRequest),
        ({"metadata": {"\udc00": 1}}, InvalidRequest),
        ({"metadata": {"k": 2**53}}, InvalidRequest),
        ({"metadata": {"k": (1, 2)}}, InvalidRequest),
        ({"metadata": {1: 2}}, InvalidRequest),
        ({"thread_id": "a\ud83d"}, InvalidRequest),
        ({"created_at": datetime(2024, 3, 1)}, InvalidRequest),
        ({"page": 1.0}, InvalidRequest),
        ({"messages": [{"id": "m"}]}, InvalidRequest),
        ({"filter": {"k": 2**53}}, InvalidFilter),
        ({"filter": MessageFilter(metadata={"k": (1,)})}, InvalidFilter),  # pyright: ignore
    ],
)
def test_what_the_wire_cannot_carry_is_refused(given: dict[str, Any], refusal: type[Exception]) -> None:
    with pytest.raises(refusal):
        wire.arguments(given)


@pytest.mark.parametrize("given", [{"page": 1.5}, {"page": True}, {"order_by": "ASC"}, {"messages": "text"}])
def test_what_is_wrong_and_can_be_said_reaches_the_adapter(given: dict[str, Any]) -> None:
    assert wire.decode(wire.arguments(given)) == given


def test_errors_keep_their_code_and_message(memory: Any) -> None:
    memory.create_thread(resource_id="r", id="t")
    with pytest.raises(AlreadyExists, match="'t' exists"):
        memory.create_thread(resource_id="r", id="t")


def test_wrong_arguments_are_refused_on_the_other_side(memory: Any) -> None:
    with pytest.raises(InvalidRequest, match="order_by"):
        memory.recall("t", order_by="DESC")
    with pytest.raises(InvalidRequest, match="direction"):
        memory.recall("t", order_by=OrderBy(direction="up"))


def test_vectors_cross_with_their_exact_components(reference: Any) -> None:
    index = reference.open_index("", "n", Runtime())
    index.create_index("i", dimension=2, metric="euclidean")
    index.upsert_vectors("i", [NewVector("a", [0.1, -1e-30])])
    (row,) = index.get_vectors("i", ["a"])
    assert row.vector == pytest.approx((0.1, -1e-30), rel=1e-7)
    with pytest.raises(InvalidVector):
        index.upsert_vectors("i", [NewVector("a", [math.nan, 0])])


# The command line


def test_an_adapter_is_verified_by_its_command(tmp_path: Path) -> None:
    from memassay.harness.cli import app

    arguments = ["verify", f"{SERVE} reference", "--level", "smoke", "--clause", "THR-2", "--examples", "250"]
    shown = CliRunner().invoke(app, [*arguments, "--cases", str(tmp_path)])
    assert "1 of 1 clauses pass" in shown.output


@pytest.mark.parametrize("name", ["bridge:", "bridge:  ", "bridge:'node"])
def test_a_bridge_without_a_command_is_a_usage_problem(name: str) -> None:
    with pytest.raises(UnknownBackend):
        find(name)


# Adapters that break


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(AdapterDied, match="`no-such-program --x` cannot be started: No such file"):
        BridgeBackend(Bridge("b", ["no-such-program", "--x"])).version("")


def test_one_that_dies_at_once_is_reported_with_its_stderr() -> None:
    with pytest.raises(AdapterDied, match=r"(?s)ended with code 3.*cannot find module acme"):
        broken("stillborn").version("")


def test_one_that_says_nothing_is_given_up() -> None:
    with pytest.raises(AdapterSilent, match=r"did not answer hello within 0\.2 s; it wrote nothing to stderr"):
        broken("mute", seconds=0.2).version("")


def test_another_protocol_is_no_engine() -> None:
    backend = broken("tomorrow")
    with pytest.raises(EngineUnavailable, match="speaks the bridge's protocol 2, this memassay speaks 1"):
        backend.version("")
    backend.bridge.stop()


def test_unknown_capabilities_are_refused() -> None:
    backend = broken("boaster")
    with pytest.raises(EngineUnavailable, match=r"clone|teleport"):
        backend.version("")
    backend.bridge.stop()


@pytest.mark.parametrize(
    ("way", "kind", "said"),
    [
        ("garbage", AdapterGarbled, "listening on port 3000.*log to stderr"),
        ("half", AdapterDied, r"ended with code 1 in the middle of a line that began b'\{\"id\": 2, \"resu'"),
        ("crash", AdapterDied, "ended by signal 6.*out of memory"),
        ("deaf", AdapterDied, "closed its stdout"),
        ("stranger", AdapterGarbled, "answered 99, which waits for no answer"),
        ("surrogate", AdapterGarbled, "lone surrogate"),
    ],
)
def test_one_that_breaks_during_a_call_is_reported(way: str, kind: type[Exception], said: str) -> None:
    backend = broken(way)
    with pytest.raises(kind, match=f"(?s){said}"):
        open_in(backend)
    assert backend.bridge.process("") is not None
    backend.bridge.stop()


def test_silence_during_a_call_is_reported_with_stderr() -> None:
    backend = broken("silence", seconds=5.0)
    backend.version("")
    backend.bridge.call_seconds = 0.5
    with pytest.raises(AdapterSilent, match=r"(?s)did not answer open_memory within 0\.5 s.*waiting for a lock"):
        backend.open_memory("", "n", Runtime(), MemoryConfig())
    backend.bridge.stop()


def test_an_answer_in_pieces_is_an_answer() -> None:
    backend = broken("pieces")
    open_in(backend).close()
    backend.bridge.stop()


def test_an_error_without_a_name_of_ours_keeps_its_own() -> None:
    backend = broken("whimsical")
    with pytest.raises(AdapterRaised, match="no room") as caught:
        open_in(backend)
    assert type(caught.value).__name__ == "disk_full"
    backend.bridge.stop()


def test_after_a_death_the_next_program_finds_a_new_process(reference: Any) -> None:
    memory = reference.open_memory("", "n", Runtime(), MemoryConfig())
    died = reference.bridge.process("")
    (child,) = serving()
    os.kill(child.pid, signal.SIGKILL)
    deadline = time.monotonic() + 20
    while died.alive and time.monotonic() < deadline:
        time.sleep(0.01)
    with pytest.raises(AdapterDied, match="ended by signal 9"):
        memory.get_thread("t")
    assert reference.version("")


def test_a_program_ends_where_the_process_died() -> None:
    """What came after would be asked of a new process, which knows nothing of it."""
    backend = broken("fragile")
    with start(backend.name, backend, "auto", {}) as engine:
        execution = execute(engine, "n", Program((CreateThread(resource_id="r", id="t"), Observe())))
    assert [type(outcome).__name__ for outcome in execution.transcript] == ["Crashed"]
    assert [divergence.operation for divergence in execution.divergences] == ["create_thread"]


def serving() -> list[psutil.Process]:
    """The running children that serve a backend."""
    return [each for each in psutil.Process().children() if "memassay.backends.foreign.serve" in each.cmdline()]


def test_a_program_goes_on_with_the_next_after_a_crash(tmp_path: Path) -> None:
    from memassay.harness.cli import app

    name = f"bridge:{shlex.quote(sys.executable)} {shlex.quote(str(ADAPTERS))} fragile"
    arguments = ["verify", name, "--level", "smoke", "--clause", "THR-1", "--examples", "20", "--cases", str(tmp_path)]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 1
    assert "out of memory" in shown.output


def test_the_process_ends_with_the_run(reference: Any) -> None:
    with reference.provisioners["process"].start(None):
        reference.version("")
        (child,) = serving()
    assert not child.is_running()
