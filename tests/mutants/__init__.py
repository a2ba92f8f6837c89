"""Stores with one realistic fault each: they measure what the suite catches."""

from __future__ import annotations

from . import (
    clones,
    crashes,
    filters,
    include,
    isolation,
    messages,
    operators,
    order,
    races,
    search,
    semantic,
    threads,
    titles,
    values,
    vectors,
    visibility,
    working_memory,
)
from .mutant import MUTANTS, Mutant

__all__ = [
    "MUTANTS",
    "Mutant",
    "clones",
    "crashes",
    "filters",
    "include",
    "isolation",
    "messages",
    "operators",
    "order",
    "races",
    "search",
    "semantic",
    "threads",
    "titles",
    "values",
    "vectors",
    "visibility",
    "working_memory",
]
