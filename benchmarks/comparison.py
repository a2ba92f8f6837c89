"""Two benchmarks compared: the artefact, and its verdict as an exit code."""

from __future__ import annotations

from typing import Literal

import msgspec

from ..harness.exits import Exit
from .samples import Phase
from .statistics import Judgement

FORMAT = "memassay-compare"

Metric = Literal["throughput", "response", "service", "recall", "ok"]
"""`throughput`: operations a second in closed loop. `response`: milliseconds from when an operation was due, in open
loop. `service`: milliseconds that the call took, in closed loop; nobody waits by it. `recall`: of the rows that were
due, those that came. `ok`: operations that ended with an answer of the right rows' number, none of them excluded."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One figure on both sides, each the median of its runs, and what the pairs of runs say.

    phase and share say where it was measured; neither is told of `recall` and `ok`, which are of all of a run.
    percentile: of times. rate: operations a second that were scheduled, in open loop; a share of 0 is a rate that was
    asked for as such.
    """

    contender: str
    workload: str
    metric: Metric
    phase: Phase | None = None
    share: float = 0.0
    percentile: float | None = None
    rate: float = 0.0
    before: float | None = None
    after: float | None = None
    judgement: Judgement

    @property
    def name(self) -> str:
        """The figure, in a few words."""
        if self.percentile is None:
            return self.metric if self.metric != "throughput" else "peak"
        load = f" at {self.share:.0%}" if self.share else f" at {self.rate:,.0f}/s" if self.rate else ""
        return f"p{self.percentile:g} {self.metric}{load}"


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """What was compared: files of runs in the order in which they were made. rounds: whole ones of all contenders."""

    files: tuple[str, ...]
    started: tuple[str, ...]
    memassay: str
    rounds: int
    partial: bool


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What became of every figure from A to B.

    unit: what a figure is of, a round of one run or a whole run. differences: what is not the same on both sides, and
    may be what is compared. notes: what a reader has to know before they believe it. controls: figures of what has no
    store behind it; when they changed, harness or machine did.
    """

    format: Literal["memassay-compare"] = FORMAT
    version: Literal[1] = 1
    memassay: str
    effect: float
    confidence: float
    unit: Literal["round", "run"]
    a: Side
    b: Side
    differences: list[str]
    notes: list[str]
    changes: list[Change]
    controls: list[Change]

    @property
    def exit(self) -> Exit:
        """A regression outweighs what is not known, and that outweighs what is well."""
        verdicts = {change.judgement.verdict for change in self.changes}
        if "regressed" in verdicts:
            return Exit.REGRESSION
        if not verdicts or verdicts & {"inconclusive", "not measured"}:
            return Exit.INCONCLUSIVE
        return Exit.CONFORMS
