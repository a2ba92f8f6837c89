"""Fixtures: a run of a few programs on a fake backend, and the command line in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)

from harness_support import corpus_of, process_environment  # noqa: E402
from memassay.harness.runner import Plan, Target, verify  # noqa: E402


@pytest.fixture
def hold():
    """Hold a backend to programs: `hold(backend, programs, **plan)` is its result."""

    def run(backend, programs, emit=lambda event: None, **plan):
        plan.setdefault("targets", [Target("fake", backend)])
        return verify(Plan(**plan), corpus_of(*programs), emit)

    return run


@pytest.fixture
def memassay(tmp_path):
    """Run the command line in an empty directory; `memory_fakes` can be imported there."""

    def run(*arguments, **environment):
        return subprocess.run(
            [sys.executable, "-m", "memassay", *map(str, arguments)],
            cwd=tmp_path,
            env=process_environment(**environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=100,
            check=False,
        )

    return run
