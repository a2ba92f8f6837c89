"""Engines compared at equal recall: what each costs at 0.90, 0.95 and 0.99, read off its curve of settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

TARGETS = (0.90, 0.95, 0.99)


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """An engine at one of its settings: mean recall (0 to 1), and a cost (such as milliseconds) or a yield (ops/s)."""

    setting: str
    recall: float
    value: float


class AtRecall(msgspec.Struct, frozen=True, kw_only=True):
    """What a recall costs, or yields.

    kind: `interpolated` between two settings; `bound` where every setting that pays finds more, so that the value may
    only be better; `not reached` where none finds as much.
    """

    target: float
    value: float | None
    kind: Literal["interpolated", "bound", "not reached"]
    between: tuple[str, ...] = ()


def frontier(points: Sequence[Point], *, higher_is_better: bool = False) -> list[Point]:
    """The settings that pay, by recall: no other finds as much for less.

    Along it the value gets worse as recall rises. Raises ValueError for values that are not finite and above 0.
    """
    for point in points:
        if not (0 < point.value < math.inf and 0 <= point.recall <= 1):
            raise ValueError(f"{point.setting} is no point of a curve: {point.recall}, {point.value}")
    sign = -1 if higher_is_better else 1
    kept: list[Point] = []
    for point in sorted(points, key=lambda point: (-point.recall, sign * point.value)):
        if not kept or sign * point.value < sign * kept[-1].value:
            kept.append(point)
    return kept[::-1]


def at_recall(points: Sequence[Point], target: float, *, higher_is_better: bool = False) -> AtRecall:
    """The value at a recall: between two settings its logarithm is taken to be linear. Raises ValueError."""
    kept = frontier(points, higher_is_better=higher_is_better)
    above = next((place for place, point in enumerate(kept) if point.recall >= target), None)
    if above is None:
        return AtRecall(target=target, value=None, kind="not reached")
    high = kept[above]
    if high.recall == target or above == 0:
        kind: Literal["interpolated", "bound"] = "interpolated" if high.recall == target else "bound"
        return AtRecall(target=target, value=high.value, kind=kind, between=(high.setting,))
    low = kept[above - 1]
    part = (target - low.recall) / (high.recall - low.recall)
    value = math.exp(math.log(low.value) + part * (math.log(high.value) - math.log(low.value)))
    return AtRecall(target=target, value=value, kind="interpolated", between=(low.setting, high.setting))
