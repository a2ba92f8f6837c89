"""What reports are made of: artefacts of every kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ..benchmarks.artefact import Manifest
from ..benchmarks.comparison import Comparison
from ..harness.artefact import Case, Difference, KillMatrix, Result


class CaseFile(NamedTuple):
    """A case, and where its file is."""

    path: str
    case: Case


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """The artefacts of each kind, in the order given.

    folder: where the results' case files are, for the replay commands.
    """

    results: Sequence[Result] = ()
    kills: Sequence[KillMatrix] = ()
    differences: Sequence[Difference] = ()
    cases: Sequence[CaseFile] = ()
    benchmarks: Sequence[Manifest] = ()
    comparisons: Sequence[Comparison] = ()
    folder: str = "cases"
