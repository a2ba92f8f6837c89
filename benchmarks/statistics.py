"""Statistics of benchmarks: percentiles with enough samples, and verdicts on paired runs by a bootstrap over runs."""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Literal, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

Verdict = Literal["regressed", "improved", "no change", "inconclusive", "not measured"]
"""`regressed`, `improved`: the whole interval lies beyond the effect that matters. `no change`: all of it lies within.
`inconclusive`: neither, or there are too few runs. `not measured`: a side has no figure."""

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

EFFECT = 0.05
CONFIDENCE = 0.95

PAIRS = 8
"""Runs a side without which nothing is decided (R16)."""

BEYOND = 10
"""Samples that have to lie beyond a percentile: 1,000 for a p99, 10,000 for a p99.9 (R15)."""

LUCK = 0.001
"""How probable a difference may be without any change, for it to be called one (two-sided, paired t): a comparison has
hundreds of figures, and eight runs look steadier than they are now and then."""

RESAMPLES = 10_000

Figures = Sequence[float] | NDArray[np.float64]
"""One of each run."""


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What pairs of runs say. ratio: of the second side to the first, the geometric mean of the pairs' ratios.

    low, high: the bounds of its interval; None where there are too few pairs. For shares (`judge_shares`) the three
    are differences instead. spread: the standard deviation of the pairs' log ratios (or differences) over √2, which
    is that from run to run where both sides have the same. reason: why nothing was decided.
    """

    verdict: Verdict
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    pairs: int = 0
    spread: float | None = None
    reason: str = ""


def needed(q: float) -> int:
    """How many samples a percentile needs."""
    return math.ceil(round(BEYOND / (1 - min(q, 99.999) / 100), 6))


def percentile(nanoseconds: Sequence[float] | NDArray[Any], q: float, least: int | None = None) -> float | None:
    """The percentile `q` (0 to 100) of samples, a value that was measured; None where there are too few for it.

    least: the samples of the run that has fewest, where those of several runs are pooled. Samples may be infinite, of
    operations that never ended.
    """
    if (len(nanoseconds) if least is None else least) < needed(q):
        return None
    return float(np.percentile(np.asarray(nanoseconds, np.float64), q, method="higher"))


def judge(
    a: Figures,
    b: Figures,
    *,
    effect: float = EFFECT,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    higher_is_better: bool = False,
) -> Judgement:
    """Whether the runs of `b` are worse than those of `a`, which were made in turn with them: a figure for each run.

    The interval is that of the mean log ratio, by a bootstrap over pairs of runs: samples within a run are not
    independent of each other, and resampling them would make it far too narrow. A verdict needs the whole interval on
    one side of the effect, and a change more than LUCK, so that noise makes verdicts rarer, not wrong. effect: the
    ratio that matters, less one.
    Raises ValueError for sides of different lengths.
    """
    if len(a) != len(b):
        raise ValueError(f"{len(a)} runs cannot be paired with {len(b)}")
    pairs = np.asarray([a, b], np.float64).reshape(2, -1)
    if not len(a):
        return Judgement(verdict="not measured", reason="there are no runs of both")
    if not (np.isfinite(pairs) & (pairs > 0)).all():
        return Judgement(verdict="inconclusive", pairs=len(a), reason="some runs have no figure")
    found = _judged(np.log(pairs[1] / pairs[0]), math.log1p(effect), confidence, seed, higher_is_better)
    return msgspec.structs.replace(
        found,
        **{name: math.exp(value) for name in ("ratio", "low", "high") if (value := getattr(found, name)) is not None},
    )


def judge_shares(a: Figures, b: Figures, *, margin: float, confidence: float = CONFIDENCE, seed: int = 0) -> Judgement:
    """The same for shares (0 to 1) of which more is better, such as recall, by their differences.

    margin: the difference that matters. Raises ValueError for sides of different lengths.
    """
    if len(a) != len(b):
        raise ValueError(f"{len(a)} runs cannot be paired with {len(b)}")
    if not len(a):
        return Judgement(verdict="not measured", reason="there are no runs of both")
    return _judged(np.subtract(b, a, dtype=np.float64), margin, confidence, seed, higher_is_better=True)


def _judged(
    differences: NDArray[np.float64], margin: float, confidence: float, seed: int, higher_is_better: bool
) -> Judgement:
    pairs = len(differences)
    mean = float(differences.mean())
    if pairs < PAIRS:
        return Judgement(
            verdict="inconclusive",
            ratio=mean,
            pairs=pairs,
            reason=f"{pairs} {'pair' if pairs == 1 else 'pairs'} of runs: {PAIRS} are needed",
        )
    low, high = interval(differences, confidence, seed)
    spread = float(differences.std(ddof=1)) / math.sqrt(2)
    error = spread * math.sqrt(2 / pairs)
    lucky = abs(mean) < error * _student(1 - LUCK / 2, pairs - 1)
    verdict: Verdict
    reason = ""
    if low > margin and not lucky:
        verdict = "improved" if higher_is_better else "regressed"
    elif high < -margin and not lucky:
        verdict = "regressed" if higher_is_better else "improved"
    elif -margin < low and high < margin:
        verdict = "no change"
    else:
        verdict = "inconclusive"
        # From about 3 % run to run on, the interval of eight pairs without any change does not fit into ±5 %.
        noisy = lucky or low <= 0 <= high
        reason = "too noisy for so few runs" if noisy else "a change, but not sure to be one that matters"
    return Judgement(verdict=verdict, ratio=mean, low=low, high=high, pairs=pairs, spread=spread, reason=reason)


def interval(values: Figures, confidence: float, seed: int = 0) -> tuple[float, float]:
    """Bounds of the mean of at least two values: the bootstrap's percentiles, expanded for small numbers of them.

    Plain percentiles are as narrow as if the spread were known: with 8 values a "95 %" interval holds in about 89 % of
    cases. Expanded, they are as wide as Student's t for normal values (Hesterberg, What Teachers Should Know about the
    Bootstrap, arXiv 1411.5279).
    """
    own = np.asarray(values, np.float64)
    count = len(own)
    wide = math.sqrt(count / (count - 1)) * _student((1 + confidence) / 2, count - 1)
    tail = NormalDist().cdf(-wide)
    low, high = np.quantile(_weights(count, seed) @ own, [tail, 1 - tail])
    return float(low), float(high)


def _student(probability: float, freedom: int) -> float:
    """The quantile of Student's t."""
    special: Any = importlib.import_module("scipy.special")  # comes without types
    return float(special.stdtrit(freedom, probability))


@lru_cache(maxsize=8)
def _weights(count: int, seed: int) -> NDArray[np.float64]:
    """How much each value counts in each resample, shape (RESAMPLES, count): one matrix product is all means."""
    drawn = np.random.default_rng([seed, count]).multinomial(count, np.full(count, 1 / count), size=RESAMPLES)
    return drawn / count
