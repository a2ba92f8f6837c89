"""Commands and artefacts of entry points: imported when they are asked for, complained about when they cannot be."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pytest
import typer
from memassay.harness import extensions
from memassay.harness.cli import app
from typer.testing import CliRunner


def register(application: typer.Typer) -> None:
    """Adds a command."""

    def greet() -> None:
        typer.echo("hello")

    application.command(name="greet", help="Says hello.")(greet)


class Point(EntryPoint):
    """An entry point of this module."""

    def load(self) -> Any:
        return register


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, list[EntryPoint]] = {
        extensions.COMMANDS: [
            Point(name="greet", value="tests:register", group=extensions.COMMANDS),
            EntryPoint(name="broken", value="no_such_module:register", group=extensions.COMMANDS),
        ],
        extensions.ARTEFACTS: [],
    }

    def entry_points(*, group: str) -> list[EntryPoint]:
        return found[group]

    monkeypatch.setattr(extensions, "entry_points", entry_points)


@pytest.mark.usefixtures("points")
def test_a_command_of_an_entry_point_is_run() -> None:
    assert CliRunner().invoke(app, ["greet"]).output == "hello\n"


@pytest.mark.usefixtures("points")
def test_a_command_of_an_entry_point_is_listed() -> None:
    assert "Says hello." in CliRunner().invoke(app, ["--help"]).output


@pytest.mark.usefixtures("points")
def test_a_command_that_cannot_be_imported_is_complained_about() -> None:
    ran = CliRunner().invoke(app, ["broken"])
    assert ran.exit_code == 2
    assert "the command broken cannot be loaded: ModuleNotFoundError" in ran.output


@pytest.mark.usefixtures("points")
def test_a_command_that_cannot_be_imported_does_not_harm_the_others() -> None:
    assert CliRunner().invoke(app, ["clauses", "ORD-1"]).exit_code == 0


def test_the_benchmarks_are_there() -> None:
    shown = CliRunner().invoke(app, ["--help"]).output
    assert " bench " in shown
    assert " compare " in shown


def test_artefacts_of_entry_points_have_a_schema() -> None:
    assert {"case", "result", "bench"} <= extensions.artefacts().keys()
    ran = CliRunner().invoke(app, ["schema", "nothing"])
    assert ran.exit_code == 2
    assert "bench" in ran.output
