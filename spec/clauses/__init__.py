"""The clause registry: every sentence a store is held to, with the facts that show it was put to the test."""

from __future__ import annotations

from .model import LEVELS, Clause, Level
from .registry import CLAUSES, by_family, find, select

__all__ = ["CLAUSES", "LEVELS", "Clause", "Level", "by_family", "find", "select"]
