"""Fixtures: a run of a few programs on a fake backend, and the command line in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)

from harness_support import Cli, Hold, corpus_of, process_environment  # noqa: E402
from memassay.harness import events  # noqa: E402
from memassay.harness.artefact import Result  # noqa: E402
from memassay.harness.runner import Plan, Target, verify  # noqa: E402
from memassay.spec.program import Program  # noqa: E402


@pytest.fixture
def hold() -> Hold:
    """Hold a backend to programs: `hold(backend, programs, **plan)` is its result."""

    def run(
        backend: Any, programs: Iterable[Program], emit: Callable[[events.Event], None] = events.ignore, **plan: Any
    ) -> Result:
        plan.setdefault("targets", [Target("fake", backend)])
        return verify(Plan(**plan), corpus_of(*programs), emit)

    return run


@pytest.fixture
def memassay(tmp_path: Path) -> Cli:
    """Run the command line in an empty directory; `memory_fakes` can be imported there."""

    def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
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
