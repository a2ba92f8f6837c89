"""Stores with one realistic fault each: they measure what the suite catches."""

from __future__ import annotations

from . import filters, include, isolation, messages, order, threads, values
from .mutant import MUTANTS, Mutant

__all__ = [
    "MUTANTS",
    "Mutant",
    "filters",
    "include",
    "isolation",
    "messages",
    "order",
    "threads",
    "values",
]
