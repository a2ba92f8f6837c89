"""Vectors near a few centres, with exact duplicates and near ties: made from a seed, the same everywhere."""

from __future__ import annotations

from typing import Annotated, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..harness.exits import UsageProblem
from ..spec.vectors import Metric
from . import vectorset
from .filters import closeness, mark
from .names import count
from .vectorset import Array, Arrays, Recipe, VectorSet

CENTRES = 64
SPREAD = 1.0
"""The length of what is added to a centre, whose own length is 1."""

PLANTED = 10
"""Of a thousand rows, so many are exact duplicates of others, and so many differ from others by next to nothing."""

NUDGES = (-7, -4)
"""Powers of ten between which lies how far those are apart: on both sides of what float32 can tell."""

CHUNK = 8_192
"""Rows that are made at once, from a seed of their own."""

VERSION = 2
"""Of what is made from a seed: another when anything of it changes."""


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What may be chosen: `mixture:10k×64?seed=1`. All rows have length 1, so every metric ranks them alike."""

    seed: Annotated[int, msgspec.Meta(ge=0)] = 0
    queries: Annotated[int, msgspec.Meta(ge=1)] = 1_000
    metric: Metric = "cosine"


def recipe(size: str, options: Options) -> Recipe:
    """Of a mixture of a size such as 10k×64: rows and dimension. Raises UsageProblem."""
    rows, _, dimension = size.replace("x", "×").partition("×")
    many = count(rows) or 0
    if many < 1 or not dimension.isdecimal() or int(dimension) < 2:
        raise UsageProblem(
            f"{size!r} is no size of a mixture", hint="rows and, from 2, dimensions, such as 10k×64 or 1M×768"
        )
    return _recipe(many, int(dimension), options)


def make(rows: int, dimension: int, queries: int, seed: int) -> VectorSet:
    """A mixture in memory: so many rows, and so many queries of either kind."""
    return vectorset.make(_recipe(rows, dimension, Options(seed, queries)))


def _recipe(rows: int, dimension: int, options: Options) -> Recipe:
    given = "".join(f" {name}={value}" for name, value in msgspec.to_builtins(options).items())
    return Recipe(
        name=f"mixture of {rows}×{dimension}, seed {options.seed}",
        metric=options.metric,
        key=f"mixture {VERSION} {rows}×{dimension}{given}",
        rows=rows,
        dimension=dimension,
        queries=options.queries,
        directed=options.queries,
        fill=lambda arrays: _fill(arrays, options.seed),
    )


def _fill(arrays: Arrays, seed: int) -> None:
    dimension = arrays.rows.shape[1]
    centres = _unit(_random(seed, 0).standard_normal((CENTRES, dimension)))
    _near(arrays.queries, centres, _random(seed, 1))
    _near(arrays.directed, centres[:1], _random(seed, 2))
    for number, start in enumerate(range(0, len(arrays.rows), CHUNK)):
        _near(arrays.rows[start : start + CHUNK], centres, _random(seed, 3, number))
    _plant(arrays.rows, _random(seed, 4))
    mark(arrays.marks, closeness("cosine", centres[0].astype(np.float32), arrays.rows), seed)


def _near(made: Array, centres: NDArray[np.float64], random: np.random.Generator) -> None:
    """Fill with vectors of length 1, each near one of the centres."""
    count, dimension = made.shape
    chosen = cast("NDArray[np.int64]", random.integers(len(centres), size=count))
    noise = random.standard_normal((count, dimension)) * (SPREAD / np.sqrt(dimension))
    made[:] = _unit(centres[chosen] + noise)


def _plant(rows: Array, random: np.random.Generator) -> None:
    """Put duplicates and near ties of some rows in the place of others."""
    each = len(rows) * PLANTED // 1_000
    order = random.permutation(len(rows))
    copies, alike = order[:each], order[each : 2 * each]
    originals = random.choice(order[2 * each :], (2, each))
    rows[copies] = rows[originals[0]]
    noise = _unit(random.standard_normal((each, rows.shape[1])))
    rows[alike] = _unit(rows[originals[1]] + noise * 10 ** random.uniform(*NUDGES, (each, 1)))


def _random(seed: int, *part: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=part))


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
