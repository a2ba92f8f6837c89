"""Judging ranked answers: which rows a query or a semantic recall may return, in which order, with which scores.

Where scores tie within the tolerance the right answer is a set of answers (VEC-3, VEC-4, SEM-2).
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

import msgspec
import numpy as np

from .operators import EVERYTHING, Among, And, Node, Or, Range, conditions
from .types import Hit, VectorHit
from .vectors import TOLERANCE, Metric, Vector, scores, tolerance


class Candidates(msgspec.Struct, frozen=True):
    """The rows that may be returned: id → float32 components, in the order in which equal vectors come."""

    metric: Metric
    query: Vector
    rows: dict[str, tuple[float, ...]]
    top_k: int
    threshold: float | None
    exact: bool

    def scores(self) -> dict[str, float]:
        """The true score of each row."""
        if not self.rows:
            return {}
        stored = np.array([*self.rows.values()], dtype=np.float32)
        return dict(zip(self.rows, map(float, scores(self.metric, self.query, stored)), strict=True))

    def slack(self, row_id: str) -> float:
        """How far the row's returned score may lie from the true one."""
        if self.metric != "dotproduct":
            return TOLERANCE
        return tolerance(self.metric, self.query, np.array(self.rows[row_id], dtype=np.float32))

    def other_metric(self, found: Fault) -> bool:
        """Whether a score that is wrong would be right were the metric the default."""
        if self.metric == "cosine":
            return False
        with np.errstate(divide="ignore", invalid="ignore"):
            true = msgspec.structs.replace(self, metric="cosine").scores()
        return any(_number(score) and abs(score - true[row_id]) <= TOLERANCE for row_id, score in found.got.items())


class Fault(msgspec.Struct, frozen=True):
    """What is wrong with a ranked answer: kind is foreign, duplicate, score, order, missing, surplus, rank or ties."""

    kind: str
    expected: Any
    got: Any


def fault(candidates: Candidates, got: Sequence[Hit | VectorHit]) -> Fault | None:
    """The first fault of an answer; None when it is as right as the model's."""
    true = candidates.scores()
    ids = [hit.id for hit in got]
    strangers = [row_id for row_id in ids if row_id not in true]
    if strangers:
        return Fault("foreign", [*true][:20], strangers)
    if len(set(ids)) < len(ids):
        return Fault("duplicate", sorted(set(ids)), ids)
    for hit in got:
        if not _number(hit.score) or abs(hit.score - true[hit.id]) > candidates.slack(hit.id):
            return Fault("score", {hit.id: true[hit.id]}, {hit.id: hit.score})
    for left, right in pairwise(got):
        if left.score < right.score:
            return Fault("order", "scores that do not rise", [hit.score for hit in got])
    least, most = candidates.threshold, candidates.threshold
    above = [row_id for row_id, score in true.items() if least is None or score >= least + candidates.slack(row_id)]
    near = [row_id for row_id, score in true.items() if most is None or score >= most - candidates.slack(row_id)]
    if len(got) < min(candidates.top_k, len(above)):
        return Fault("missing", f"{min(candidates.top_k, len(above))} rows", ids)
    if len(got) > min(candidates.top_k, len(near)):
        return Fault("surplus", f"at most {min(candidates.top_k, len(near))} rows", ids)
    return _rank(candidates, true, above, ids) if candidates.exact else None


def _rank(candidates: Candidates, true: Mapping[str, float], above: Sequence[str], ids: Sequence[str]) -> Fault | None:
    """Whether the best rows are there, and equal vectors in their order."""
    if ids and len(ids) == candidates.top_k:
        last = min(true[row_id] for row_id in ids)
        better = [
            row_id for row_id in above if row_id not in ids and true[row_id] > last + 2 * candidates.slack(row_id)
        ]
        if better:
            return Fault("rank", better, ids)
    else:
        lost = [row_id for row_id in above if row_id not in ids]
        if lost:
            return Fault("rank", lost, ids)
    return None


def ties_fault(candidates: Candidates, ids: Sequence[str]) -> Fault | None:
    """Rows with equal stored vectors come in the order of the candidates, and the first of them come at all (SEM-2)."""
    groups: dict[tuple[float, ...], list[str]] = {}
    for row_id, components in candidates.rows.items():
        groups.setdefault(components, []).append(row_id)
    for group in groups.values():
        shown = [row_id for row_id in ids if row_id in group]
        if shown != group[: len(shown)]:
            return Fault("ties", group[: len(shown)], shown)
    return None


RECALL_QUERIES = 200
RECALL_FLOOR = 0.9
RECALL_CONFIDENCE = 0.95


class Recall(msgspec.Struct):
    """Approximate answers of one index, counted: rows that belong among the true best, of the rows there should be."""

    queries: int = 0
    right: int = 0
    due: int = 0

    def count(self, candidates: Candidates, ids: Sequence[str]) -> None:
        """Add an answer; a row belongs when it scores no less than the k-th best, ties included."""
        true = candidates.scores()
        ranked = sorted(true.items(), key=lambda item: -item[1])[: candidates.top_k]
        floor = ranked[-1][1] - candidates.slack(ranked[-1][0]) if ranked else math.inf
        self.queries += 1
        self.due += len(ranked)
        self.right += sum(true.get(row_id, -math.inf) >= floor for row_id in set(ids))

    def bound(self) -> float:
        """The recall that is exceeded with 95 % confidence (Clopper and Pearson, one-sided)."""
        special: Any = importlib.import_module("scipy.special")
        return float(special.betaincinv(self.right, self.due - self.right + 1, 1 - RECALL_CONFIDENCE))

    def fault(self) -> Fault | None:
        """Whether there are enough queries, and recall is too low."""
        if self.queries < RECALL_QUERIES or not self.due or (bound := self.bound()) >= RECALL_FLOOR:
            return None
        found = f"{self.right} of {self.due} rows over {self.queries} queries, so more than {bound:.3f}"
        return Fault("recall", f"recall above {RECALL_FLOOR} with 95 % confidence", found)


def filter_clause(node: Node) -> str:
    """The clause that a filter's fault most likely breaks: constants, then negation, then ranges, then equality."""
    if node != EVERYTHING and _has_constant(node):
        return "OPR-4"
    kinds = [*conditions(node)]
    if any(isinstance(condition, Range) for condition in kinds):
        return "OPR-2"
    if any(isinstance(condition, Among) and condition.negated for condition in kinds):
        return "OPR-3"
    return "OPR-2" if kinds else "VEC-4"


def _has_constant(node: Node) -> bool:
    match node:
        case Among():
            return not node.any_of
        case Range():
            return False
        case And() | Or():
            return not node.nodes or any(_has_constant(part) for part in node.nodes)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(cast(float, value))
