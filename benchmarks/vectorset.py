"""A data set of vectors: rows marked for filters, queries held out; made in memory, or kept on disk and mapped.

What is kept is a directory for each data set: an array a file and a manifest with the hash of all of them. It is
checked whenever it is opened; a damaged one is made anew, a stranger's is refused.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..harness.exits import UsageProblem
from ..spec.vectors import Metric
from .filters import FILTERS, MARKED, YES, Filter
from .keeping import Told, folder, locked, silent

Array = NDArray[np.float32]
Marks = NDArray[np.bool_]

MANIFEST = "manifest.json"


class Arrays(NamedTuple):
    """What a data set is made of. n rows of dimension d, the queries of either kind, and marks[f, row] of MARKED."""

    rows: Array
    queries: Array
    directed: Array
    marks: Marks


class Recipe(msgspec.Struct, frozen=True):
    """How a data set is made. `key`: all that decides what is in it; `fill` writes every array."""

    name: str
    metric: Metric
    key: str
    rows: int
    dimension: int
    queries: int
    directed: int
    fill: Callable[[Arrays], None]

    def shapes(self) -> tuple[tuple[int, int], ...]:
        """The shape of each array, in the order of Arrays."""
        d = self.dimension
        return (self.rows, d), (self.queries, d), (self.directed, d), (len(MARKED), self.rows)


class VectorSet(msgspec.Struct, frozen=True, dict=True, eq=False):
    """Rows, shape (n, d), which filters leave which of them, and queries held out of the rows, shape (q, d).

    `queries` are like the rows; `directed` are close together, `aligned` rows are the nearest to them and `against`
    rows the farthest. `folder` is where it is kept and `spec` what it was opened by; a data set in memory has neither.
    """

    name: str
    metric: Metric
    arrays: Arrays
    folder: Path | None = None
    spec: str = ""

    filters: ClassVar[tuple[Filter, ...]] = FILTERS

    def __repr__(self) -> str:
        return f"<VectorSet {self.name}>"

    @property
    def rows(self) -> Array:
        """Shape (n, d), read-only."""
        return self.arrays.rows

    @property
    def queries(self) -> Array:
        """Shape (q, d), read-only."""
        return self.arrays.queries

    @property
    def directed(self) -> Array:
        """Shape (q', d), read-only."""
        return self.arrays.directed

    def ids(self) -> list[str]:
        """A row's id, of equal length for all."""
        width = max(6, len(str(len(self.rows) - 1)))
        return [f"v{number:0{width}}" for number in range(len(self.rows))]

    def metadata(self, row: int) -> dict[str, Any]:
        """What a row is marked with, one key for each filter that leaves it."""
        marked: list[bool] = self.arrays.marks[:, row].tolist()
        return {filter.key: YES for filter, leaves in zip(MARKED, marked, strict=True) if leaves}

    def mask(self, filter: Filter) -> Marks:
        """Which rows a filter leaves, shape (n,)."""
        if filter.condition is None:
            return np.ones(len(self.rows), np.bool_)
        return np.asarray(self.arrays.marks[MARKED.index(filter)])

    def asked(self, filter: Filter) -> Array:
        """The queries that go with a filter."""
        return self.queries if filter.relation == "independent" else self.directed

    def hash(self) -> str:
        """Of all that is asked and stored, in hexadecimal; of the name it knows nothing."""
        return self._hash

    @cached_property
    def _hash(self) -> str:
        digest = hashlib.sha256(self.metric.encode())
        for array in self.arrays:
            digest.update(f" {array.dtype.str}{array.shape} ".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def make(recipe: Recipe) -> VectorSet:
    """The data set in memory."""
    made: list[Any] = [np.empty(shape, dtype) for shape, dtype in zip(recipe.shapes(), _DTYPES, strict=True)]
    arrays = Arrays(*made)
    recipe.fill(arrays)
    for array in arrays:
        array.flags.writeable = False
    return VectorSet(recipe.name, recipe.metric, arrays)


def keep(recipe: Recipe, cache: Path | None, told: Told = silent, *, spec: str = "") -> VectorSet:
    """The data set mapped from the cache, made first unless it is there.

    Two processes at a time do not disturb each other. Raises UsageProblem when something else is in its place.
    """
    slug = re.sub(r"[^a-z0-9]+", "-", recipe.name.lower()).strip("-")[:60]
    home = folder(cache, "datasets") / f"{slug}-{hashlib.sha256(recipe.key.encode()).hexdigest()[:16]}"
    with locked(home):
        if home.exists():
            try:
                return _open(home, recipe, spec)
            except _Damaged as damage:
                told(f"{home} is damaged ({damage}): it is made anew")
                shutil.rmtree(home)
        told(f"making {recipe.name}")
        building = home.with_name(f".{home.name}.new")
        shutil.rmtree(building, ignore_errors=True)  # Of a process that was killed: we hold the lock.
        building.mkdir()
        try:
            _build(building, recipe)
            building.rename(home)
        finally:
            shutil.rmtree(building, ignore_errors=True)
        return _open(home, recipe, spec)


_DTYPES = (np.dtype(np.float32), np.dtype(np.float32), np.dtype(np.float32), np.dtype(np.bool_))


class _Damaged(Exception):
    """A data set of ours is not what its manifest says."""


class _Manifest(msgspec.Struct, frozen=True):
    format: Literal["memassay-dataset"]
    version: Literal[1]
    name: str
    metric: Metric
    key: str
    hash: str


def _build(building: Path, recipe: Recipe) -> None:
    arrays: list[Any] = [
        np.lib.format.open_memmap(building / f"{name}.npy", mode="w+", dtype=dtype, shape=shape)
        for name, shape, dtype in zip(Arrays._fields, recipe.shapes(), _DTYPES, strict=True)
    ]
    made = VectorSet(recipe.name, recipe.metric, Arrays(*arrays))
    recipe.fill(made.arrays)
    for array in arrays:
        array.flush()
    manifest = _Manifest("memassay-dataset", 1, recipe.name, recipe.metric, recipe.key, made.hash())
    (building / MANIFEST).write_bytes(msgspec.json.encode(manifest))


def _open(home: Path, recipe: Recipe, spec: str) -> VectorSet:
    try:
        manifest = msgspec.json.decode((home / MANIFEST).read_bytes(), type=_Manifest)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageProblem(
            f"{home} is no data set of this version of memassay: {error}", hint="remove it, or choose another cache"
        ) from error
    if (manifest.key, manifest.metric) != (recipe.key, recipe.metric):
        raise _Damaged("it is of another recipe")
    try:
        loaded: list[Any] = [np.load(home / f"{name}.npy", mmap_mode="r") for name in Arrays._fields]
    except (OSError, ValueError, EOFError) as error:
        raise _Damaged(str(error)) from error
    found = VectorSet(manifest.name, manifest.metric, Arrays(*loaded), home, spec)
    if [array.shape for array in loaded] != [*recipe.shapes()]:
        raise _Damaged("an array has another shape")
    if found.hash() != manifest.hash:
        raise _Damaged("its hash is another")
    return found
