"""Every figure of two benchmarks, pair by pair of their runs: times, peaks and the quality of answers, each judged."""

from __future__ import annotations

import math
import statistics as middle
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from .artefact import Manifest
from .comparison import Change, Metric
from .samples import Phase, Samples
from .statistics import Judgement, judge, judge_shares, needed, percentile
from .summary import saturated

PERCENTILES = (50.0, 95.0)

SAME_RATE = 0.01
"""Rates that differ by no more are one rate. Near the peak, 5 % more arrivals double a p95."""

MARGINS: Mapping[Metric, float] = {"recall": 0.01, "ok": 0.001}
"""Differences of shares that matter."""

Place = tuple[str, str]
"""Contender and workload."""

Spot = tuple[Phase, float, float]
"""Phase, share of the peak and, where that is 0, the rate that was asked for."""

Figure = Callable[[Sequence[Samples]], float | None]
"""Of the samples of one run; None where they are too few."""


class Run(NamedTuple):
    """What one figure is taken from: the phases of one round, or of a whole bundle, by place and spot."""

    blocks: Mapping[tuple[Place, Spot], Sequence[Samples]]

    def of(self, place: Place, spot: Spot) -> Sequence[Samples]:
        """Its samples of one phase."""
        return self.blocks.get((place, spot), ())

    def all_of(self, place: Place) -> Sequence[Samples]:
        """Its samples of every phase."""
        return [block for key, blocks in self.blocks.items() if key[0] == place for block in blocks]


def where(block: Samples) -> tuple[Place, Spot]:
    """The place and spot of samples."""
    return (block.contender, block.workload), (block.phase, block.share, 0.0 if block.share else block.rate)


class Absence:
    """Tells why one side has nothing of a contender's workload."""

    def __init__(self, a: Sequence[Manifest], b: Sequence[Manifest]) -> None:
        self._sides = {"A": a, "B": b}

    def reason(self, side: str, place: Place) -> str:
        """In words."""
        contender, workload = place
        for manifest in self._sides[side]:
            for engine in manifest.engines:
                if engine.name == contender and engine.error:
                    return f"{side}: {engine.error}"
            for gate in manifest.gates:
                if (gate.contender, gate.workload) == place:
                    return f"{side} has no number: {gate.reason}"
            if reason := manifest.unsupported.get(contender, {}).get(workload):
                return f"{side}: {reason}"
        return f"{side} has none"


class Pairs(NamedTuple):
    """Samples of both sides, run by run; those without a partner are left out. absent: why a side has none."""

    before: Sequence[Sequence[Samples]]
    after: Sequence[Sequence[Samples]]
    absent: str

    def figures(self, figure: Figure) -> tuple[list[float | None], list[float | None]]:
        """One of each run of either side."""
        return [figure(run) for run in self.before], [figure(run) for run in self.after]

    def judged(self, figure: Figure, rule: Callable[[list[float], list[float]], Judgement], lacking: str) -> Judgement:
        """What the pairs say in which both runs have the figure. lacking: why a run would have none."""
        if self.absent:
            return Judgement(verdict="not measured", reason=self.absent)
        both = [(a, b) for a, b in zip(*self.figures(figure), strict=True) if a is not None and b is not None]
        if not both:
            return Judgement(verdict="not measured", reason=lacking)
        return rule([a for a, _ in both], [b for _, b in both])


def changes_of(place: Place, a: Sequence[Run], b: Sequence[Run], effect: float, why: Absence) -> Iterator[Change]:
    """Every figure of a contender's workload: at its peak, at each share of it, and how good the answers were.

    Times and peaks that are better while answers are worse, or the reverse, are a trade, and not decided.
    """
    quality = [*_quality(place, _pairs(place, a, b, lambda run: run.all_of(place), why))]
    trade = [change for change in quality if abs((change.after or 0) - (change.before or 0)) > MARGINS[change.metric]]
    spots = {spot for run in (*a, *b) for at, spot in run.blocks if at == place}
    for spot in sorted(spots):
        pairs = _pairs(place, a, b, lambda run, spot=spot: run.of(place, spot), why)
        for change in _at(place, spot, pairs, effect):
            yield _traded(change, trade)
    yield from quality


def distrusted(change: Change, reason: str) -> Change:
    """Nothing is decided for this reason, if there is one; what was not measured stays so."""
    if not reason or change.judgement.verdict == "not measured":
        return change
    undecided = msgspec.structs.replace(change.judgement, verdict="inconclusive", reason=reason)
    return msgspec.structs.replace(change, judgement=undecided)


def _pairs(
    place: Place, a: Sequence[Run], b: Sequence[Run], of: Callable[[Run], Sequence[Samples]], why: Absence
) -> Pairs:
    sides = [[of(run) for run in side] for side in (a, b)]
    lacking = [why.reason(name, place) for name, runs in zip("AB", sides, strict=True) if not any(runs)]
    if lacking:
        return Pairs([run for run in sides[0] if run], [run for run in sides[1] if run], "; ".join(lacking))
    both = [(before, after) for before, after in zip(*sides, strict=False) if before and after]
    return Pairs([before for before, _ in both], [after for _, after in both], "")


# Times and peaks


def _at(place: Place, spot: Spot, pairs: Pairs, effect: float) -> Iterator[Change]:
    """Of one phase: the peak, and percentiles of times."""
    phase, share, _ = spot
    rate = next((block.rate for run in (*pairs.before, *pairs.after) for block in run), 0.0)

    def change(metric: Metric, figure: Figure, judgement: Judgement, q: float | None = None) -> Change:
        before, after = pairs.figures(figure)
        return Change(
            contender=place[0],
            workload=place[1],
            metric=metric,
            phase=phase,
            share=share,
            percentile=q,
            rate=rate,
            before=_middle(before),
            after=_middle(after),
            judgement=judgement,
        )

    if phase == "closed":
        found = pairs.judged(throughput, lambda a, b: judge(a, b, effect=effect, higher_is_better=True), "")
        yield change("throughput", throughput, found)
    metric: Metric = "response" if phase == "open" else "service"
    unlike = _unlike(pairs)
    for q in PERCENTILES:
        figure = _time(q)
        lacking = f"a p{q:g} needs {needed(q):,} samples in every run"
        found = pairs.judged(figure, lambda a, b: judge(a, b, effect=effect), lacking)
        yield distrusted(change(metric, figure, found, q), unlike)


def throughput(run: Sequence[Samples]) -> float:
    """Operations a second that were answered."""
    answered = sum(int((~block.of("failed", "unsent")).sum()) for block in run)
    return answered * 1e9 / max(1, sum(int(block.ended_ns.max()) for block in run))


def _time(q: float) -> Figure:
    """Milliseconds; operations that failed, or were never sent, take for ever."""

    def figure(run: Sequence[Samples]) -> float | None:
        waited = [np.where(block.of("failed", "unsent"), np.inf, block.response_ns) for block in run]
        found = percentile(np.concatenate(waited), q)
        return None if found is None else found / 1e6

    return figure


def _unlike(pairs: Pairs) -> str:
    """Why times cannot be compared though both were measured."""
    blocks = [block for run in (*pairs.before, *pairs.after) for block in run]
    if pairs.absent or not blocks:
        return ""
    rates = [block.rate for block in blocks]
    if max(rates) > min(rates) * (1 + SAME_RATE):
        return f"not the same load: from {min(rates):,.0f} to {max(rates):,.0f} arrivals/s"
    clients = sorted({block.concurrency for block in blocks})
    if len(clients) > 1:
        return f"not the same load: from {clients[0]} to {clients[-1]} clients"
    behind = [any(saturated(block) for run in side for block in run) for side in (pairs.before, pairs.after)]
    return "saturated: the times are of a backlog" if all(behind) else ""


def _middle(figures: Sequence[float | None]) -> float | None:
    found = [figure for figure in figures if figure is not None]
    value = middle.median(found) if found else math.inf
    return value if math.isfinite(value) else None


# Answers


def _quality(place: Place, pairs: Pairs) -> Iterator[Change]:
    """Recall, where answers are rows, and how many operations ended well."""
    figures: Mapping[Metric, Figure] = {"recall": _recall, "ok": _ok}
    for metric, figure in figures.items():
        before, after = pairs.figures(figure)
        if metric == "recall" and not any(value is not None for value in (*before, *after)):
            continue
        margin = MARGINS[metric]
        found = pairs.judged(
            figure,
            lambda a, b, margin=margin: judge_shares(a, b, margin=margin),
            "no answer of these is judged by rows",
        )
        yield Change(
            contender=place[0],
            workload=place[1],
            metric=metric,
            before=_middle(before),
            after=_middle(after),
            judgement=found,
        )


def _recall(run: Sequence[Samples]) -> float | None:
    """The mean over answers that should have rows."""
    due = np.concatenate([block.due for block in run])
    right = np.concatenate([block.right for block in run])
    asked = due > 0
    return float((right[asked] / due[asked]).mean()) if asked.any() else None


def _ok(run: Sequence[Samples]) -> float | None:
    return float(np.concatenate([block.of("ok") for block in run]).mean())


def _traded(change: Change, trade: Sequence[Change]) -> Change:
    for quality in trade:
        if quality.before is None or quality.after is None:
            continue
        worse = quality.after < quality.before
        if change.judgement.verdict == ("improved" if worse else "regressed"):
            told = f"{quality.metric} was {quality.before:.3f} and is {quality.after:.3f}"
            return distrusted(change, f"a trade: {told}")
    return change
