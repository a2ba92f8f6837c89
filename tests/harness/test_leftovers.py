"""What a run leaves behind on this machine when it, or its engine, is ended at a bad moment: nothing."""

from __future__ import annotations

import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from pathlib import Path

import psutil
import pytest
from harness_support import process_environment
from memassay.backends.provision import containers, interruption
from memassay.backends.registry import find, names
from memassay.harness.engine import methods

PATIENCE = 90.0
START = 240.0
MOMENTS = 10
FEW = ("--level", "smoke", "--examples", "150")
SEARCH_ENGINES = ("elasticsearch", "opensearch")


class Run:
    """`memassay verify` in a process of its own, with a temporary directory of its own."""

    def __init__(self, place: Path, *arguments: str) -> None:
        self.place = place
        self._output = (place.parent / f"{place.name}.out").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-m", "memassay", "verify", *arguments, *FEW],
            cwd=place.parent,
            env=process_environment(TMPDIR=str(place)),
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def output(self) -> str:
        self._output.seek(0)
        return self._output.read()

    def servers(self) -> list[psutil.Process]:
        """The processes that name the temporary directory, the run itself apart."""
        found: list[psutil.Process] = []
        for process in psutil.process_iter(["cmdline", "status"]):
            named = any(str(self.place) in argument for argument in process.info["cmdline"] or ())
            if named and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(process)
        return found

    def await_engine(self, text: str) -> None:
        """Until the run says that its engine is ready."""
        until(lambda: text in self.output or self.process.poll() is not None, START)
        assert self.process.poll() is None, self.output

    def ended(self) -> int:
        return self.process.wait(PATIENCE)

    def left(self) -> list[str]:
        """Processes, and files but locks, that are there once the keeper has had its time."""
        until(lambda: not self.servers(), PATIENCE)
        until(lambda: not self._files(), PATIENCE)
        return [str(process.cmdline()) for process in self.servers()] + self._files()

    def _files(self) -> list[str]:
        return [path.name for path in self.place.iterdir() if path.suffix != ".lock"]


def until(condition: Callable[[], bool], seconds: float) -> None:
    """Poll until the condition holds, or time is up: the assertions that follow tell."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)


@pytest.fixture
def start(tmp_path: Path) -> Generator[Callable[..., Run]]:
    """Starts runs; each temporary directory can be entered by the unprivileged user that servers run as."""
    root = Path(tempfile.mkdtemp(prefix="leftovers-"))
    root.chmod(0o755)
    runs: list[Run] = []

    def run(*arguments: str) -> Run:
        place = root / str(len(runs))
        place.mkdir()
        runs.append(Run(place, *arguments))
        return runs[-1]

    yield run
    for one in runs:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()
    shutil.rmtree(root, ignore_errors=True)


def backend_with(name: str, method: str) -> str:
    """The backend, if it can be had this way here; otherwise the test is skipped."""
    if name not in names():
        pytest.skip(f"{name} is no backend of this version")
    if reason := methods(find(name))[method].missing():
        pytest.skip(reason)
    return name


EMBEDDED = ["libsql", "faiss", "postgres", *(pytest.param(name, marks=pytest.mark.slow) for name in SEARCH_ENGINES)]


@pytest.mark.parametrize("name", EMBEDDED)
def test_a_run_that_is_killed_leaves_nothing(start: Callable[..., Run], name: str) -> None:
    run = start(backend_with(name, "embedded"), "--provision", "embedded")
    run.await_engine("(embedded: ")
    assert run.servers()
    run.process.kill()
    run.ended()
    assert run.left() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_three_interruptions_in_a_burst_are_one(start: Callable[..., Run], number: int) -> None:
    run = start(backend_with("postgres", "embedded"), "--provision", "embedded")
    run.await_engine("(embedded: ")
    for _ in range(3):
        run.process.send_signal(number)
    assert run.ended() == 130, run.output
    assert "these results are partial" in run.output
    assert run.left() == []


@pytest.mark.parametrize(
    ("name", "programs"),
    [("postgres", ["postgres"]), *(pytest.param(name, ["java"], marks=pytest.mark.slow) for name in SEARCH_ENGINES)],
)
def test_an_engine_that_is_killed_ends_the_run_and_leaves_nothing(
    start: Callable[..., Run], name: str, programs: list[str]
) -> None:
    run = start(backend_with(name, "embedded"), "--provision", "embedded")
    run.await_engine("(embedded: ")
    for process in run.servers():
        if process.name() in programs:
            process.kill()
    assert run.ended() == 3
    told = r"in flight was \w+\(.*\(program [0-9a-f]+, operation \d+\)|program [0-9a-f]+ was to be next"
    assert re.search(told, run.output), run.output
    assert run.left() == []


def interrupt_at_random_moments(start: Callable[..., Run], seconds: float, *arguments: str) -> list[Run]:
    """As many runs, each interrupted after a random time; some before the engine starts, some after."""
    chance = random.Random(7)
    runs: list[Run] = []
    for _ in range(MOMENTS):
        run = start(*arguments)
        try:
            run.process.wait(chance.uniform(0.2, seconds))
        except subprocess.TimeoutExpired:
            run.process.send_signal(signal.SIGINT)
        run.ended()
        runs.append(run)
    return runs


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seconds"), [("postgres", 10.0), *((name, 60.0) for name in SEARCH_ENGINES)])
def test_ctrl_c_at_ten_moments_leaves_nothing(start: Callable[..., Run], name: str, seconds: float) -> None:
    runs = interrupt_at_random_moments(start, seconds, backend_with(name, "embedded"), "--provision", "embedded")
    assert [run.left() for run in runs] == [[]] * MOMENTS
    assert {run.process.returncode for run in runs} & {130, -signal.SIGINT}


# Containers


def containers_of(runs: list[Run]) -> list[str]:
    """The containers on the daemon that these runs started."""
    client = containers.client()
    try:
        labels = [f"{containers.PID}={run.process.pid}" for run in runs]
        found = [client.containers.list(all=True, filters={"label": label}, ignore_removed=True) for label in labels]
        return [one.id for each in found for one in each]
    finally:
        client.close()


def left_by(runs: list[Run]) -> list[str]:
    """The containers that are there once the keepers have had their time."""
    until(lambda: not containers_of(runs), PATIENCE)
    return containers_of(runs)


@pytest.mark.container
@pytest.mark.parametrize("name", ["postgres", *(pytest.param(n, marks=pytest.mark.slow) for n in SEARCH_ENGINES)])
def test_a_run_that_is_killed_leaves_no_container(start: Callable[..., Run], name: str) -> None:
    run = start(backend_with(name, "docker"), "--provision", "docker")
    run.await_engine("(docker: ")
    assert containers_of([run])
    run.process.kill()
    run.ended()
    assert left_by([run]) == []


@pytest.mark.container
@pytest.mark.slow
def test_ctrl_c_at_ten_moments_leaves_no_container(start: Callable[..., Run]) -> None:
    runs = interrupt_at_random_moments(start, 12.0, backend_with("postgres", "docker"), "--provision", "docker")
    assert left_by(runs) == []


# Interruptions


def run_script(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_what_is_shielded_is_not_interrupted_but_what_follows_is() -> None:
    done = run_script(SHIELDED)
    assert done.stdout == "cleaned up\ninterrupted\n", done.stderr


def test_an_interruption_that_a_finaliser_swallowed_is_not_lost() -> None:
    done = run_script(SWALLOWED)
    assert done.stdout == "swallowed\ninterrupted\n", done.stderr


def test_without_an_interruption_long_work_goes_on() -> None:
    interruption.check()


SHIELDED = f"""
import os, signal
from {interruption.__name__} import listen, shield
listen()
try:
    with shield():
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGINT)
        print("cleaned up")
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted")
"""

SWALLOWED = f"""
import os, signal
from {interruption.__name__} import check, listen
class Finalised:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
listen()
try:
    Finalised()
    print("swallowed")
    check()
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted")
"""
