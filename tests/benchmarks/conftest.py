"""Fixtures of benchmarks: a small scene, which no time is measured on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)

from memassay.benchmarks.mixture import make  # noqa: E402
from memassay.benchmarks.scene import Scene  # noqa: E402
from memassay.benchmarks.truth import exact  # noqa: E402
from small_talk import SmallTalk  # noqa: E402


@pytest.fixture(scope="session")
def scene() -> Scene:
    """1,000 × 8 and a few hundred messages; k is 5."""
    return Scene(make(1_000, 8, 20, 7), SmallTalk(), k=5, seed=3, truth=exact)
