"""Stores with one realistic fault each: they measure what the suite catches."""

from __future__ import annotations

from . import (
    clones,
    filters,
    include,
    isolation,
    messages,
    operators,
    order,
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
    "filters",
    "include",
    "isolation",
    "messages",
    "operators",
    "order",
    "search",
    "semantic",
    "threads",
    "titles",
    "values",
    "vectors",
    "visibility",
    "working_memory",
]
