"""The pytest plugin as an adapter's author meets it: their repository, their fixture, pytest's own output."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from memassay.spec.clauses import LEVELS, select

TOY = """
import pytest
from memassay.harness.adapter import Adapter
from memassay.harness.adapter_template import ExampleBackend, ExampleMemory

class Store(ExampleMemory):
    FAULT

@pytest.fixture
def memassay_store():
    kept = ExampleBackend()
    def memory(namespace, runtime, config):
        client = kept.open_memory("", namespace, runtime, config)
        client.__class__ = Store
        return client
    return Adapter(name="toy", memory=memory, capabilities=kept.capabilities(""))
"""

RIGHT = TOY.replace("FAULT", "pass")
FAULTY = TOY.replace(
    "FAULT",
    """def get_thread(self, thread_id, *, resource_id=None):
        return super().get_thread(thread_id)""",
)
ASYNC = TOY.replace(
    "FAULT",
    """async def get_thread(self, thread_id, *, resource_id=None):
        return super().get_thread(thread_id, resource_id=resource_id)""",
)


def run(folder: Path, *arguments: str) -> str:
    """What pytest says in a folder of its own, with two clauses at most so that it takes seconds."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "--memassay-level", "smoke"]
    done = subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    return tmp_path


@pytest.mark.parametrize("level", LEVELS)
def test_every_clause_of_the_level_is_a_test(repository: Path, level: str) -> None:
    (repository / "test_store.py").write_text(RIGHT)
    said = run(repository, "--memassay-level", level, "--collect-only", "-q")
    names = re.findall(r"test_store\.py::test_memassay\[(.+)\]", said)
    assert names == ["wired", *(clause.id for clause in select(level))]  # type: ignore[arg-type]


def test_a_clause_passes_or_is_not_for_this_store(repository: Path) -> None:
    (repository / "test_store.py").write_text(ASYNC)
    said = run(repository, "-k", "wired or THR-2 or VEC-1", "-m", "memassay")
    assert "PASSED test_store.py::test_memassay[wired]" in said
    assert "PASSED test_store.py::test_memassay[THR-2]" in said
    assert "unsupported: needs the capability vectors" in said


def test_a_failure_reads_as_in_verify(repository: Path) -> None:
    (repository / "test_store.py").write_text(FAULTY)
    said = run(repository, "-k", "THR-2", "-n", "2")
    assert "FAILED test_store.py::test_memassay[THR-2]" in said
    assert "FAIL  THR-2 on toy" in said
    assert "    > get_thread(thread_id=" in said
    assert (repository / ".memassay" / "cases" / "toy").is_dir()


def test_a_known_failure_is_expected_and_one_that_no_longer_fails_is_not(repository: Path) -> None:
    entry = '[[known]]\nclause = "THR-2"\nsignature = "{}"\nbackend = "toy"\nreason = "to do"\nexpires = 9999-01-01\n'
    (repository / "test_store.py").write_text(FAULTY)
    (repository / "known.toml").write_text(entry.format("returned / get_thread") + entry.format("rows / recall"))
    said = run(repository, "-k", "THR-2 or known", "--memassay-known", "known.toml", "--memassay-level", "core")
    assert "XFAIL test_store.py::test_memassay[THR-2] - to do" in said
    assert "stale: THR-2 / rows / recall (to do)" in said


def test_an_adapter_that_is_wired_wrongly_is_told_so_first_and_once(repository: Path) -> None:
    (repository / "test_store.py").write_text(
        "import pytest\n"
        "from memassay.harness.adapter import Adapter\n"
        "@pytest.fixture\n"
        "def memassay_store():\n"
        "    return Adapter(name='toy', memory=lambda namespace: None)\n"
    )
    said = run(repository)
    assert "the adapter is wired wrongly: create_thread raised TypeError" in said
    assert re.search(r"1 failed, \d+ skipped", said)


def test_a_fixture_that_returns_no_store_is_told_what_to_return(repository: Path) -> None:
    (repository / "test_store.py").write_text(
        "import pytest\n@pytest.fixture\ndef memassay_store():\n    return object()\n"
    )
    assert "memassay_store returned a object, which lacks name" in run(repository, "-k", "wired")


@pytest.mark.parametrize("option", ["--memassay-level=all", "--memassay-known=nowhere.toml"])
def test_a_wrong_option_is_a_usage_error(repository: Path, option: str) -> None:
    (repository / "test_store.py").write_text(RIGHT)
    said = run(repository, option, "--collect-only")
    assert re.search(rf"{option.partition('=')[0]}: .*(no level|does not exist)", said)


def test_nothing_is_imported_without_the_fixture(repository: Path) -> None:
    (repository / "test_other.py").write_text(
        "import sys\n"
        "def test_light():\n"
        "    ours = {name for name in sys.modules if name.startswith('memassay')}\n"
        "    assert ours == {'memassay', 'memassay.harness', 'memassay.harness.pytest_plugin'}\n"
        "    assert 'numpy' not in sys.modules and 'typer' not in sys.modules\n"
    )
    assert "1 passed" in run(repository, "-p", "no:hypothesispytest")
