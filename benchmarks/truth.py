"""Exact truth: which rows belong to the answer of each query, under any filter; kept by the hash of the data set.

Rows are searched in blocks, one after the other or each on a worker of a cluster: what is found is the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np

from ..harness.exits import UsageProblem
from .cluster import Cluster
from .datasets import Reference, reopen
from .exact import Exact, Near, Numbers, merge, nearest
from .filters import Filter
from .keeping import Told, folder, locked, seal, silent, unseal
from .vectorset import Marks, VectorSet

BLOCK = 256 << 20
"""Bytes of the rows of a block."""

KIND = "truth"
VERSION = 1
"""Of what is kept: another when anything of how truth is found changes."""


class Counted(msgspec.Struct, frozen=True):
    """An answer counted.

    right: rows that belong, once each, at most as many as are due. returned_unique: rows returned, once each.
    wrong: rows returned that the filter leaves out or that nothing has, or that were returned before.
    """

    right: int
    returned_unique: int
    wrong: int


class Truth(msgspec.Struct, frozen=True, dict=True, eq=False):
    """What a query should find: `due` of the rows that belong, which are more where the last of them tie.

    least: the score (spec.vectors.scores) of the last that is due, infinite where none is. rows: the numbers of those
    that belong, closest first. scores: theirs. mask: which rows the filter leaves, shape (n,).
    """

    due: int
    least: float
    rows: Numbers
    scores: Exact
    mask: Marks

    @cached_property
    def _belonging(self) -> frozenset[int]:
        return frozenset(self.rows.tolist())

    def count(self, found: Sequence[int]) -> Counted:
        """Count an answer, given by the numbers of its rows."""
        distinct = {*found}
        strange = sum(not (0 <= row < len(self.mask) and self.mask[row]) for row in distinct)
        right = min(self.due, len(distinct & self._belonging))
        return Counted(right, len(distinct), len(found) - len(distinct) + strange)


def exact(
    dataset: VectorSet,
    filter: Filter,
    k: int,
    *,
    cluster: Cluster | None = None,
    cache: Path | None = None,
    told: Told = silent,
) -> list[Truth]:
    """Of the queries `dataset.asked(filter)`, in their order: their k closest rows. From the cache if it is there.

    cache: a directory instead of the user's cache. What is damaged there is found anew; a file that is no truth is
    refused. Raises UsageProblem, and exact.DisagreementError.
    """
    head = _Head(VERSION, dataset.hash(), filter.key, k)
    path = folder(cache, "truth") / f"{head.dataset[:32]}-{head.filter}-{k}"
    with locked(path):
        found = _kept(path, head)
        if found is None:
            if path.exists():
                told(f"{path} is damaged: the truth is found anew")
            found = _find(dataset, filter, k, cluster)
            _keep(path, head, found)
    return _truths(dataset, filter, k, found)


def compute(dataset: VectorSet, filter: Filter, k: int, *, cluster: Cluster | None = None) -> list[Truth]:
    """As `exact`, without a cache."""
    return _truths(dataset, filter, k, _find(dataset, filter, k, cluster))


def _truths(dataset: VectorSet, filter: Filter, k: int, found: Sequence[Near]) -> list[Truth]:
    mask = dataset.mask(filter)
    due = min(k, int(np.count_nonzero(mask)))
    return [Truth(due, float(near.scores[due - 1]) if due else math.inf, *near, mask) for near in found]


# Blocks


class _Block(msgspec.Struct, frozen=True):
    """Rows `start` to `stop` of a data set that a worker opens."""

    reference: Reference
    filter: Filter
    k: int
    start: int
    stop: int


def _find(dataset: VectorSet, filter: Filter, k: int, cluster: Cluster | None) -> list[Near]:
    if k < 1:
        raise UsageProblem(f"k is {k}", hint="from 1")
    step = max(1, BLOCK // (4 * dataset.rows.shape[1]))
    bounds = [(start, min(start + step, len(dataset.rows))) for start in range(0, len(dataset.rows), step)]
    if cluster is None:
        blocks = [_search(dataset, filter, k, start, stop) for start, stop in bounds]
    else:
        reference = Reference.of(dataset)
        blocks = cluster.map(_on_worker, [_Block(reference, filter, k, start, stop) for start, stop in bounds])
    return [merge(dataset.metric, [*parts], k) for parts in zip(*blocks, strict=True)]


def _search(dataset: VectorSet, filter: Filter, k: int, start: int, stop: int) -> list[Near]:
    """By the numbers of rows of the whole data set."""
    rows, asked = dataset.rows[start:stop], dataset.asked(filter)
    if filter.condition is None:
        numbers = np.arange(start, stop)
    else:
        numbers = start + np.flatnonzero(dataset.mask(filter)[start:stop])
        rows = rows[numbers - start]
    if len(numbers) == 0:
        return [Near(numbers, np.empty(0))] * len(asked)
    return [Near(numbers[near.rows], near.scores) for near in nearest(dataset.metric, asked, rows, k)]


def _on_worker(block: _Block) -> list[Near]:
    return _search(reopen(block.reference), block.filter, block.k, block.start, block.stop)


# The cache


class _Head(msgspec.Struct, frozen=True):
    version: int
    dataset: str
    filter: str
    k: int


class _Kept(msgspec.Struct, frozen=True):
    """Of all queries in their order: how many rows each has, and then the rows and scores of all."""

    head: _Head
    counts: bytes
    rows: bytes
    scores: bytes


def _keep(path: Path, head: _Head, found: Sequence[Near]) -> None:
    counts = np.array([len(near.rows) for near in found], "<i8")
    rows, scores = (np.concatenate(each) for each in zip(*found, strict=True))
    kept = _Kept(head, counts.tobytes(), rows.astype("<i8").tobytes(), scores.astype("<f8").tobytes())
    seal(path, KIND, msgspec.msgpack.encode(kept))


def _kept(path: Path, head: _Head) -> list[Near] | None:
    """What was found before; None when it was not, or is damaged, or is something else's."""
    body = unseal(path, KIND)
    if body is None:
        return None
    kept = msgspec.msgpack.decode(body, type=_Kept)
    if kept.head != head:
        return None
    ends = np.cumsum(np.frombuffer(kept.counts, "<i8"))[:-1]
    rows = np.split(np.frombuffer(kept.rows, "<i8"), ends)
    scores = np.split(np.frombuffer(kept.scores, "<f8"), ends)
    return [Near(*near) for near in zip(rows, scores, strict=True)]
