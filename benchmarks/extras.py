"""Modules of the extras `bench` and `cluster`, imported when something needs them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..harness.exits import UsageProblem


def needed(module: str, what: str, extra: str = "bench") -> Any:
    """The module. Raises UsageProblem, naming what needs it and the extra that brings it, when it is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise UsageProblem(
            f"{what} needs the module {error.name}, which is not installed", hint=f"pip install 'memassay[{extra}]'"
        ) from error
