"""Second clients of another process: values, errors and the runtime cross; a process that dies or hangs is told of."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from memassay.backends.registry import find
from memassay.harness.engine import Engine, start
from memassay.harness.execution import Execution, execute
from memassay.spec.interpreter import Crashed, Refused
from memassay.spec.program import AnyOperation, CreateThread, Observe, Program, Recall, SaveMessages

FAKES = "remote_fakes"
FAKE = '''
import os, time
from memassay.backends.libsql import LibsqlBackend

class Odd(LibsqlBackend):
    """What only the second process does when it opens a client."""
    parent = int(os.environ["MEMASSAY_TEST_PARENT"])
    def open_memory(self, *arguments):
        if os.getpid() != self.parent:
            self.odd()
        return super().open_memory(*arguments)

class Dies(Odd):
    def odd(self):
        os.write(2, b"out of memory")
        os._exit(3)

class Hangs(Odd):
    def odd(self):
        time.sleep(1000)

class Raises(Odd):
    def odd(self):
        raise ZeroDivisionError("by zero")
'''


@pytest.fixture
def libsql() -> Generator[Engine]:
    with start("libsql", find("libsql"), "auto", {}) as engine:
        yield engine


def thread(*operations: AnyOperation, **options: object) -> Program:
    """A thread of client 0, then these."""
    return Program(operations=(CreateThread(id="t1", resource_id="r1"), *operations), **options)  # type: ignore[arg-type]


def on_fake(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: float = 60) -> Execution:
    """A second client reads, in a backend whose second process is odd."""
    import os

    (tmp_path / f"{FAKES}.py").write_text(FAKE)
    monkeypatch.setenv("MEMASSAY_TEST_PARENT", str(os.getpid()))
    monkeypatch.syspath_prepend(str(tmp_path))  # pyright: ignore[reportUnknownMemberType]
    sys.modules.pop(FAKES, None)
    spec = f"{FAKES}:{name}"
    with start(spec, find(spec), "auto", {}) as engine:
        return execute(engine, "n", thread(Recall(thread_id="t1", client=1)), limit)


def test_the_detail_says_where_the_second_client_is(libsql: Engine) -> None:
    assert libsql.endpoint.detail.endswith(", second client: in another process")


def test_a_store_in_memory_has_its_second_client_here() -> None:
    with start("reference", find("reference"), "auto", {}) as engine:
        assert engine.second is None


def test_each_process_sees_what_the_other_wrote(libsql: Engine) -> None:
    saved = SaveMessages(messages=[{"id": "a", "thread_id": "t1", "content": "x"}], client=1)
    assert execute(libsql, "n", thread(saved, Observe(), Observe(client=1))).divergences == ()


def test_an_error_of_the_specification_crosses(libsql: Engine) -> None:
    outcome = execute(libsql, "n", thread(CreateThread(id="t1", resource_id="r1", client=1))).transcript[-1]
    assert isinstance(outcome, Refused)
    assert (outcome.code, outcome.clause) == ("already_exists", "THR-1")


def test_clock_ids_and_embedder_are_the_programs_own(libsql: Engine) -> None:
    program = thread(
        CreateThread(resource_id="r1", label="given", client=1),
        SaveMessages(messages=[{"id": "a", "thread_id": "given", "content": "[1, 0]"}], client=1),
        Observe(),
        Recall(thread_id="given", vector_search_string="[1, 0]", client=1),
        options={"semantic_recall": True},
        embedder=2,
    )
    assert execute(libsql, "n", program).divergences == ()


def test_a_failing_embedder_crosses_both_ways(libsql: Engine) -> None:
    saved = SaveMessages(messages=[{"id": "a", "thread_id": "t1", "content": "!"}], client=1)
    outcome = execute(libsql, "n", thread(saved, options={"semantic_recall": True}, embedder=2)).transcript[-1]
    assert isinstance(outcome, Refused)
    assert outcome.code == "embedder_error"


def test_any_other_error_crosses_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert on_fake("Raises", tmp_path, monkeypatch).transcript[-1] == Crashed("ZeroDivisionError", "by zero")


def test_a_dead_process_is_an_error_with_its_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    execution = on_fake("Dies", tmp_path, monkeypatch)
    outcome = execution.transcript[-1]
    assert isinstance(outcome, Crashed)
    assert outcome.kind == "SecondProcessDied"
    assert "exit code 3; out of memory" in outcome.message


def test_the_time_limit_ends_a_process_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert on_fake("Hangs", tmp_path, monkeypatch, limit=2).timed_out


def test_after_a_hang_there_is_a_new_process(libsql: Engine) -> None:
    assert libsql.second is not None
    program = thread(Recall(thread_id="t1", client=1))
    assert execute(libsql, "n1", program).divergences == ()
    libsql.second.close()
    assert execute(libsql, "n2", program).divergences == ()
