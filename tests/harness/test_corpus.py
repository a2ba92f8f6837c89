"""A seed gives the same programs in every process, whatever else is loaded or configured there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import hypothesis.strategies as st
import pytest
from harness_support import process_environment
from memassay.harness.corpus import build, scale
from memassay.spec.program import Program, Tick
from memassay.spec.strategies import Scenario

HASH = """
from memassay.harness.corpus import build
print(build("core", 7, 60).description.hash)
"""
HOSTILE = """
import random
import {modules}
from hypothesis import Phase, Verbosity, settings
settings.register_profile("hostile", max_examples=3, derandomize=True, phases=[Phase.generate, Phase.shrink],
    verbosity=Verbosity.verbose, stateful_step_count=1, deadline=1)
settings.load_profile("hostile")
random.seed(5)
"""
LOCAL = "HARVESTED = [101, 1234, 77777, 'a string of ours', 3.25, b'bytes']\n"


def run(source: str, folder: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", source],
        cwd=folder,
        env=process_environment(**environment),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


@pytest.fixture(scope="module")
def plain_hash(tmp_path_factory: pytest.TempPathFactory) -> str:
    return run(HASH, tmp_path_factory.mktemp("plain"))


def test_another_process_builds_the_same_corpus(plain_hash: str) -> None:
    assert build("core", 7, 60).description.hash == plain_hash.strip()


@pytest.mark.parametrize(
    ("modules", "environment"),
    [
        ("harvested", {}),
        ("memory_fakes, memassay.backends.reference, memassay.harness.cli", {}),
        ("json", {"CI": "true", "HYPOTHESIS_PROFILE": "hostile"}),
        ("json", {"PYTHONHASHSEED": "3"}),
    ],
)
def test_modules_profiles_and_environment_change_nothing(
    plain_hash: str, tmp_path: Path, modules: str, environment: dict[str, str]
) -> None:
    (tmp_path / "harvested.py").write_text(LOCAL)
    environment = {"PYTHONPATH": f"{tmp_path}:{process_environment()['PYTHONPATH']}", **environment}
    assert run(HOSTILE.format(modules=modules) + HASH, tmp_path, **environment).splitlines()[-1] == plain_hash.strip()


def test_another_seed_gives_another_corpus(plain_hash: str) -> None:
    assert build("core", 8, 60).description.hash != plain_hash.strip()


def test_no_program_comes_twice() -> None:
    hashes = [entry.hash for entry in build("core", 1, 60).entries]
    assert len(hashes) == len(set(hashes))


def test_examples_is_how_many_there_are() -> None:
    assert build("core", 1, 60).description.programs == 60


def test_scenarios_are_spread_over_the_run() -> None:
    first_half = build("core", 1, 60).entries[:30]
    assert len({entry.scenario for entry in first_half}) > 5


def test_a_scenario_with_few_programs_gives_those() -> None:
    ticks = Scenario("ticks", st.sampled_from([Program(operations=(Tick(ms=n),)) for n in range(3)]), {"core": 50})
    assert build("core", 0, scenarios={"ticks": ticks}).description.programs == 3


def watched(total: int) -> list[tuple[str, int, int]]:
    calls: list[tuple[str, int, int]] = []
    build("core", 1, total, progress=lambda what, done, of: calls.append((what, done, of)))
    return calls


def test_progress_reaches_the_end() -> None:
    assert watched(20)[-1] == ("surveying", 20, 20)


def test_progress_is_told_of_every_program() -> None:
    calls = watched(200)
    assert [max(done for what, done, _ in calls if what == stage) for stage in ("generating", "surveying")] == [200] * 2
    assert len({call for call in calls if call[0] == "generating"}) > 180


@pytest.mark.parametrize("total", [1, 2, 7, 100, 1234])
def test_scaled_shares_sum_up(total: int) -> None:
    assert sum(scale({"a": 520, "b": 300, "c": 24, "d": 6}, total).values()) == total


def test_scaled_shares_keep_their_proportion() -> None:
    assert scale({"a": 30, "b": 10}, 8) == {"a": 6, "b": 2}


def test_without_a_total_shares_are_the_level_s() -> None:
    assert scale({"a": 30, "b": 10}, None) == {"a": 30, "b": 10}
