"""Load from the workers of a cluster: the operations, answers and writes of one process, once each, in step."""

from __future__ import annotations

import time
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
from memassay.backends.provision.homes import CACHE_VARIABLE
from memassay.benchmarks import load
from memassay.benchmarks.cluster import Cluster, local
from memassay.benchmarks.contenders import Contender
from memassay.benchmarks.drive import HERE, Drive, Elsewhere, Operations, Recipe, Spread
from memassay.benchmarks.entrants import entrants
from memassay.benchmarks.load import Ran, Work
from memassay.benchmarks.scene import RESOURCE, Scene
from memassay.benchmarks.workloads import WORKLOADS
from memassay.harness.exits import UsageProblem

RECIPE = Recipe(data="mixture:1k×8", memory="agent:100", meaning=False, k=10, seed=0)
DUE = np.arange(1, 61) * 1_000_000
"""Sixty operations, a millisecond apart."""


class Workers(NamedTuple):
    """Two of them, what they are asked about, and what they had to tell."""

    cluster: Cluster
    scene: Scene
    drive: Spread
    notes: list[str]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Generator[Workers]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(tmp_path_factory.mktemp("cache")))
        notes: list[str] = []
        with local(2) as cluster:
            yield Workers(cluster, RECIPE.make(), Spread(cluster, 2, RECIPE, notes.append), notes)


@pytest.fixture
def stored(two: Workers, tmp_path: Path) -> Generator[Contender]:
    """A contender in a file, filled."""
    yield from contender("libsql", two, {"libsql": str(tmp_path / "store.db")})


def contender(name: str, two: Workers, urls: dict[str, str]) -> Generator[Contender]:
    (entrant,) = (one for one in entrants([name]) if one.name == name)
    with entrant.start("auto", urls) as engine, entrant.enter(engine, two.scene) as entered:
        entered.fill([WORKLOADS[each] for each in ("newest", "vector", "save-1")], None)
        yield entered
        two.drive.leave()


def operations(on: Contender, workload: str, many: int = 60) -> Operations:
    first = on.series.at
    stream = WORKLOADS[workload].stream(on.scene, on.series, many, 7)
    return Operations(on, WORKLOADS[workload], stream, many, 7, first)


def answers(drive: Drive, asked: Operations) -> list[tuple[int, object]]:
    ran = drive.open_loop(asked, 2, DUE)
    return sorted(((note.number, note.answer) for note in ran.notes), key=lambda each: each[0])


@pytest.mark.parametrize("workload", ["newest", "vector"])
def test_answers_to_workers_are_those_to_one_process(two: Workers, stored: Contender, workload: str) -> None:
    asked = operations(stored, workload)
    assert answers(two.drive, asked) == answers(HERE, asked)


def test_operations_are_made_once_each_and_when_they_are_due(two: Workers, stored: Contender) -> None:
    ran = two.drive.open_loop(operations(stored, "newest"), 2, DUE)
    assert sorted(note.intended for note in ran.notes) == DUE.tolist()


def test_the_load_is_not_made_here(two: Workers, stored: Contender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "open_loop", None)
    monkeypatch.setattr(load, "closed", None)
    assert len(two.drive.open_loop(operations(stored, "newest"), 2, DUE).notes) == 60
    assert two.drive.closed(operations(stored, "newest"), 2, seconds=0.1, most=1_000).notes


def test_a_closed_loop_makes_no_more_operations_than_it_may(two: Workers, stored: Contender) -> None:
    assert len(two.drive.closed(operations(stored, "newest"), 2, seconds=30, most=31).notes) == 31


def test_what_workers_write_is_written_once(two: Workers, stored: Contender) -> None:
    ran = two.drive.open_loop(operations(stored, "save-1"), 2, DUE)
    assert not any(note.failed for note in ran.notes)
    memory = cast(Any, stored.clients(1)[0]).get("memory")
    found = [memory.recall(f"saved-{n}", resource_id=RESOURCE, per_page=False).total for n in range(two.scene.spread)]
    assert sum(found) == 60


def test_a_call_that_fails_on_a_worker_is_told_as_text(two: Workers, stored: Contender) -> None:
    asked = operations(stored, "save-1")
    two.drive.open_loop(asked, 2, DUE)
    cast(Any, stored.clients(1)[0]).get("memory").delete_thread("saved-0")
    ran = two.drive.open_loop(operations(stored, "save-1"), 2, DUE)
    failed = [note.answer for note in ran.notes if note.failed]
    assert {type(error) for error in failed} == {Elsewhere}
    assert {str(error).partition(":")[0] for error in failed} == {"ThreadNotFound"}


def test_one_client_is_one_workers(two: Workers, stored: Contender) -> None:
    assert len(two.drive.open_loop(operations(stored, "newest"), 1, DUE).notes) == 60


def test_what_lives_in_this_process_is_asked_from_here(two: Workers) -> None:
    for model in contender("reference", two, {}):
        assert len(answers(two.drive, operations(model, "newest"))) == 60
    assert "reference lives in one process: its load was made by that process alone" in two.notes


def test_the_no_op_store_does_nothing_anywhere(two: Workers) -> None:
    for noop in contender("noop", two, {}):
        assert {answer for _, answer in answers(two.drive, operations(noop, "newest"))} == {None}


def test_how_well_clocks_are_known_is_told(two: Workers) -> None:
    assert two.notes[0].startswith("load from 2 workers, whose clocks are known to")


def test_more_workers_than_there_are_is_refused(two: Workers) -> None:
    with pytest.raises(UsageProblem, match="3 parts need as many workers; the cluster has 2"):
        Spread(two.cluster, 3, RECIPE, two.notes.append)


def begun(loop: str) -> tuple[int, list[int], Ran]:
    at = time.time_ns() + 30_000_000
    called: list[int] = []

    def send(number: int) -> None:
        called.append(time.time_ns())

    def keep(number: int, answer: Any) -> None:
        """Nothing."""

    work = Work([send], keep, 1, cyclic=True)
    if loop == "closed":
        return at, called, load.closed(work, 1, seconds=1, most=3, at=at)
    return at, called, load.open_loop(work, 1, [0, 1_000, 2_000], at=at)


@pytest.mark.parametrize("loop", ["closed", "open"])
def test_a_phase_begins_at_the_time_it_is_given(loop: str) -> None:
    at, called, ran = begun(loop)
    assert len(called) == 3
    assert min(called) >= at - 1_000_000  # the two clocks differ by how finely they are read
    assert min(note.started for note in ran.notes) >= 0
