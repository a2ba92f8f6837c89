"""What other components and packages add by entry points: commands, and artefacts whose schema can be printed."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperGroup

from .arguments import complain
from .artefact import KINDS

COMMANDS = "memassay.commands"
"""The group of functions that are given a typer.Typer, to which they add one command of the entry point's name."""

ARTEFACTS = "memassay.artefacts"
"""The group of structs that are written as JSON."""


class Commands(TyperGroup):
    """The commands of the application, and those of entry points, which are imported when they are asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """See typer.core.TyperGroup."""
        return [*super().list_commands(ctx), *(name for name in _points(COMMANDS) if name not in self.commands)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """See typer.core.TyperGroup. One that cannot be imported is complained about, and is not there."""
        found = super().get_command(ctx, cmd_name)
        point = _points(COMMANDS).get(cmd_name)
        if found is not None or point is None:
            return found
        try:
            return _loaded(point)
        except Exception as error:  # noqa: BLE001 - it may be a stranger's code
            complain(f"the command {cmd_name} cannot be loaded: {type(error).__name__}: {error}")
            return None


def artefacts() -> dict[str, type]:
    """All artefacts, by the name under which `memassay schema` knows them; those of entry points are imported."""
    return {**KINDS, **{name: point.load() for name, point in _points(ARTEFACTS).items()}}


def _points(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in sorted(entry_points(group=group), key=lambda point: point.name)}


def _loaded(point: EntryPoint) -> Any:
    # Two commands, so that typer makes a group of them.
    app = typer.Typer(rich_markup_mode=None)
    app.command(name="", hidden=True)(_nothing)
    point.load()(app)
    return typer.main.get_group(app).commands.get(point.name)


def _nothing() -> None:
    """Stands beside a command."""
