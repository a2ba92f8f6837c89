"""From samples to figures: percentiles over all rounds, throughput by round, recall over answers."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .artefact import CURVE, Row
from .samples import Phase, Samples
from .statistics import percentile

Key = tuple[str, str, Phase, float, float]
"""Contender, workload, phase, share and rate."""

BEHIND = 0.05
"""Saturated: this part of the operations, and more than there are clients, still waited when the last was due."""


class Aside(NamedTuple):
    """What a phase left beside its samples: what failed calls raised; nanoseconds it took, and of CPU."""

    errors: Counter[str]
    elapsed: int
    cpu: int


class Warmth(NamedTuple):
    """Of a contender's workload: operations discarded before it was measured, and whether times stood still then."""

    discarded: int
    stationary: bool


def rows(
    blocks: Sequence[Samples],
    asides: Mapping[Key, Aside],
    warmths: Mapping[tuple[str, str], Warmth],
    percentiles: Sequence[float],
) -> list[Row]:
    """A row for every contender, workload, phase and share, in the order in which they were first met.

    What was discarded (warmup) has none.
    """
    grouped: dict[Key, list[Samples]] = {}
    for block in blocks:
        if block.phase != "warmup" and len(block):
            grouped.setdefault(key_of(block), []).append(block)
    return [
        _row(own, asides.get(key), warmths.get(key[:2], Warmth(0, stationary=True)), percentiles)
        for key, own in grouped.items()
    ]


def key_of(block: Samples) -> Key:
    """Samples of one row have it in common."""
    return block.contender, block.workload, block.phase, block.share, block.rate


def _row(blocks: Sequence[Samples], aside: Aside | None, warmth: Warmth, percentiles: Sequence[float]) -> Row:
    first = blocks[0]
    least = min(len(block) for block in blocks)
    response = np.concatenate([_waited(block) for block in blocks])
    served = [block.service_ns for block in blocks]
    service, least_served = np.concatenate(served), min(len(each) for each in served)
    outcomes = Counter({name: sum(int(block.of(name).sum()) for block in blocks) for name in ("ok", "short", "wrong")})
    failed, unsent = (sum(int(block.of(name).sum()) for block in blocks) for name in ("failed", "unsent"))
    recall = np.concatenate([_recall(block) for block in blocks])
    return Row(
        contender=first.contender,
        workload=first.workload,
        phase=first.phase,
        share=first.share,
        rate=first.rate,
        concurrency=first.concurrency,
        rounds=len(blocks),
        samples=len(response),
        samples_per_round=least,
        throughput=statistics.median(throughput(block) for block in blocks),
        response_ms={f"{each:g}": _milliseconds(response, each, least) for each in percentiles},
        service_ms={f"{each:g}": _milliseconds(service, each, least_served) for each in percentiles},
        ok=outcomes["ok"],
        short=outcomes["short"],
        wrong=outcomes["wrong"],
        failed=failed,
        unsent=unsent,
        late=float(np.concatenate([block.late for block in blocks]).mean()),
        saturated=any(saturated(block) for block in blocks),
        recall=float(recall.mean()) if len(recall) else None,
        recall_p5=float(np.percentile(recall, 5)) if len(recall) else None,
        recall_min=float(recall.min()) if len(recall) else None,
        first_ms=statistics.median(int(block.response_ns[0]) for block in blocks) / 1e6,
        discarded=warmth.discarded,
        stationary=warmth.stationary,
        harness_cpu=aside.cpu / aside.elapsed if aside and aside.elapsed else None,
        errors=dict(aside.errors) if aside else {},
        curve_ms=_curve(response, least),
    )


def _milliseconds(nanoseconds: NDArray[Any], q: float, least: int) -> float | None:
    """A percentile; None where a round has too few samples, or so many were not answered that there is no such time."""
    found = percentile(nanoseconds, q, least)
    return found / 1e6 if found is not None and math.isfinite(found) else None


def _curve(nanoseconds: NDArray[Any], least: int) -> dict[str, float]:
    points = ((f"{each:g}", _milliseconds(nanoseconds, each, least)) for each in CURVE)
    return {each: round(milliseconds, 4) for each, milliseconds in points if milliseconds is not None}


def throughput(block: Samples) -> float:
    """Operations a second that were answered, from the first intended to the last answer."""
    answered = int((~block.of("failed", "unsent")).sum())
    return answered * 1e9 / max(1, int(block.ended_ns.max()))


def saturated(block: Samples) -> bool:
    """Whether the store fell behind its schedule, so that what is measured is a backlog."""
    if block.phase != "open":
        return False
    behind = int((block.started_ns > block.intended_ns.max()).sum())
    return bool(block.of("unsent").any() or behind > max(BEHIND * len(block), block.concurrency))


def _waited(block: Samples) -> NDArray[np.float64]:
    """Response times; what was not answered waits for ever."""
    waited = block.response_ns.astype(np.float64)
    waited[block.of("failed", "unsent")] = np.inf
    return waited


def _recall(block: Samples) -> NDArray[np.float64]:
    """Of each answer that should have rows; a call that failed has none of them."""
    due = block.due > 0
    return block.right[due] / block.due[due]
