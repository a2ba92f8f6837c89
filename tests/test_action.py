"""The composite action for CI: its steps' own commands, run as they stand."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

ACTION = Path(__file__).parents[1] / ".github" / "actions" / "verify" / "action.yml"


@pytest.fixture(scope="module")
def action() -> Any:
    return yaml.safe_load(ACTION.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def left(action: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the steps ran; all but the one that installs, as memassay is."""
    folder = tmp_path_factory.mktemp("action")
    given = {"backend": "reference", "level": "smoke", "output": "out"}
    for step in action["runs"]["steps"]:
        if "run" not in step or step["name"] == "Install":
            continue
        env = {
            name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda match: given[match[1]], value)
            for name, value in step["env"].items()
        }
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        env |= {"PATH": path, "HOME": str(folder), "GITHUB_STEP_SUMMARY": str(folder / "step-summary.md")}
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", step["run"]], cwd=folder, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{step['name']}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return folder


def test_the_summary_reaches_the_job(left: Path) -> None:
    assert "reference" in (left / "step-summary.md").read_text(encoding="utf-8")


def test_junit_has_a_case_for_each_clause(left: Path) -> None:
    assert len(list(ElementTree.parse(left / "out" / "junit.xml").iter("testcase"))) > 50


def test_the_badge_has_level_and_denominator(left: Path) -> None:
    badge = json.loads((left / "out" / "badge.json").read_bytes())
    assert badge["label"] == "memassay smoke"
    counts = re.fullmatch(r"(\d+) of (\d+) clauses, (\d+) unsupported", badge["message"])
    assert counts is not None
    passed, asked, unsupported = map(int, counts.groups())
    assert passed + unsupported == asked
    assert badge["color"] == "brightgreen"


def test_what_the_run_leaves_is_kept_as_an_artefact(action: Any) -> None:
    last = action["runs"]["steps"][-1]
    assert last["uses"].startswith("actions/upload-artifact@")
    assert last["if"] == "always()"
