"""Soaking: when growth is growth, what a short run says, and that a run leaves its samples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from memassay.harness.artefact import BackendSoak, Growth, SoakResult
from memassay.harness.cli import app
from memassay.harness.command_soak import code_of
from memassay.harness.soak import ENGINE, HANDLES, MEGABYTE, grown
from typer.testing import CliRunner

SECONDS = [float(second) for second in range(0, 60, 3)]


def memory(*megabytes: float, who: str = "client") -> Growth:
    """By samples three seconds apart."""
    return grown(who, "memory", SECONDS[: len(megabytes)], [round(each * MEGABYTE) for each in megabytes])


def test_what_stays_as_it_is_does_not_grow() -> None:
    assert not memory(*[100.0] * 20).grows


def test_a_leak_grows() -> None:
    leak = memory(*(100 + 2 * i for i in range(20)))
    assert leak.grows
    assert round(leak.growth / MEGABYTE) == 38


def test_what_goes_up_and_down_does_not_grow() -> None:
    assert not memory(*(100 + 30 * (i % 2) for i in range(20))).grows


def test_one_high_sample_is_no_growth() -> None:
    assert not memory(*[100.0] * 19, 900.0).grows


def test_less_than_is_allowed_is_no_growth() -> None:
    assert not memory(*(100 + 0.1 * i for i in range(20))).grows


def test_an_engine_may_fill_its_heap() -> None:
    fills = [500 + 4 * i for i in range(20)]
    assert memory(*fills).grows
    assert memory(*fills, who="engine").allowed == ENGINE
    assert not memory(*fills, who="engine").grows


def test_one_handle_a_turn_grows() -> None:
    leak = grown("client", "handles", SECONDS, [20 + i for i in range(20)])
    assert leak.grows
    assert leak.allowed == HANDLES


def result(backend: BackendSoak, *, interrupted: bool = False) -> SoakResult:
    return SoakResult(
        memassay="0", seed=0, minutes=1, interrupted=interrupted, backends=[backend], started="", platform=""
    )


def backend(*rows: Growth, error: str = "", reason: str = "") -> BackendSoak:
    return BackendSoak(
        name="acme",
        engine="1",
        method="",
        detail="",
        seconds=60,
        programs=1,
        calls=1,
        growth=[*rows],
        error=error,
        reason=reason,
    )


@pytest.mark.parametrize(
    ("soaked", "code"),
    [
        (backend(memory(*[100.0] * 20)), 0),
        (backend(memory(*(100 + 2 * i for i in range(20)))), 1),
        (backend(error="it died"), 3),
        (backend(reason="too short"), 6),
    ],
    ids=["steady", "grows", "died", "short"],
)
def test_the_exit_code_says_what_came_of_it(soaked: BackendSoak, code: int) -> None:
    assert code_of(result(soaked)) == code


def test_an_interrupted_run_says_so() -> None:
    assert code_of(result(backend(), interrupted=True)) == 130


def test_a_short_run_says_nothing_about_growth_and_leaves_its_samples(tmp_path: Path) -> None:
    file = tmp_path / "soak.json"
    told = CliRunner().invoke(app, ["soak", "libsql", "--minutes", "0.03", "--json", str(file)])
    assert told.exit_code == 6
    assert "soak longer" in told.output
    soaked = json.loads(file.read_text())["backends"][0]
    assert soaked["programs"] > 0
    assert soaked["samples"][0]["memory"]["client"] > MEGABYTE


def test_no_time_is_a_mistake_of_the_users() -> None:
    assert CliRunner().invoke(app, ["soak", "libsql", "--minutes", "0"]).exit_code == 2
