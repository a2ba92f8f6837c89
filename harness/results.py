"""Result files, read back: of a version that is known, or refused."""

from __future__ import annotations

from pathlib import Path

from . import documents
from .artefact import Result

HINT = "give a file that `memassay verify --json` wrote"


def read(path: Path) -> Result:
    """A result from a file. Raises UsageProblem."""
    data = documents.load(path, hint=HINT)
    return documents.decode(path, data, Result, what="result", hint=HINT)
