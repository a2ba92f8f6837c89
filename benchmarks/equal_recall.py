"""Engines compared at equal recall: what each costs at 0.90, 0.95 and 0.99, read off its curve of settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from ..spec.types import IndexConfig
from .artefact import Manifest, Row, search_of

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


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """A contender's settings in one search: operations a second at the peak, or milliseconds (p50) at a share of it."""

    workload: str
    contender: str
    share: float
    points: tuple[Point, ...]

    @property
    def yields(self) -> bool:
        """Whether more is better."""
        return not self.share

    @property
    def unit(self) -> str:
        """Of its values."""
        return "ops/s at the peak" if self.yields else f"p50 ms at {self.share:.0%}"

    def at(self, target: float) -> AtRecall:
        """See equal_recall.at_recall."""
        return at_recall(self.points, target, higher_is_better=self.yields)

    def told(self, found: AtRecall) -> str:
        """What was read off, in words: a bound says which way it may only be better."""
        if found.value is None:
            return found.kind
        sign = "" if found.kind == "interpolated" else "≥ " if self.yields else "≤ "
        return sign + self.number(found.value)

    def number(self, value: float) -> str:
        """A value, without its unit."""
        return f"{value:,.0f}" if self.yields else f"{value:.3g}"


def curves(manifests: Sequence[Manifest]) -> list[Curve]:
    """One for each search, contender and load, by search; every run is a point."""
    points: dict[tuple[str, float, str], list[Point]] = {}
    for manifest in manifests:
        settings = {engine.name: setting(engine.index, manifest.profile.effort) for engine in manifest.engines}
        for row in manifest.rows:
            value = _value(row)
            if row.recall is not None and value and search_of(row.workload):
                point = Point(setting=settings.get(row.contender, ""), recall=row.recall, value=value)
                points.setdefault((row.workload, row.share, row.contender), []).append(point)
    return [
        Curve(workload=workload, share=share, contender=contender, points=tuple(own))
        for (workload, share, contender), own in sorted(points.items(), key=lambda pair: pair[0])
    ]


def _value(row: Row) -> float | None:
    """None for what is no point: a backlog, the first operations, a rate that was asked for."""
    if row.phase == "closed":
        return row.throughput
    return row.response_ms.get("50") if row.phase == "open" and row.share and not row.saturated else None


def setting(index: IndexConfig | None, effort: int | None) -> str:
    """How an index is built, and how broadly an approximate one is searched, in a few words."""
    parts: dict[str, object] = msgspec.to_builtins(index) if index is not None else {}
    if index is not None and index.type != "flat":
        parts["effort"] = effort
    return ", ".join(str(value) if name == "type" else f"{name} {value}" for name, value in parts.items() if value)
