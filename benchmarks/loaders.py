"""Data sets in files: HDF5 as ann-benchmarks has it, fbin, u8bin and i8bin as big-ann-benchmarks does, and Parquet."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..harness.exits import UsageProblem
from ..spec.vectors import METRICS, Metric
from . import held_out
from .extras import needed
from .held_out import CHUNK, Source
from .vectorset import Recipe

DISTANCES: dict[str, Metric] = {"angular": "cosine", "euclidean": "euclidean", "ip": "dotproduct", "dot": "dotproduct"}
"""Metrics by their names in HDF5 files."""

BINARY = {"fbin": "<f4", "u8bin": "u1", "i8bin": "i1"}
"""The type of a component in files of a kind. Two uint32 come first: how many vectors, of how many dimensions."""

HEADER = 8

Count = Annotated[int, msgspec.Meta(ge=1)]


class Hdf5Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What may be chosen of a file that has queries and names its metric. rows: the first so many alone."""

    rows: Count | None = None
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0


class FileOptions(Hdf5Options, frozen=True, forbid_unknown_fields=True):
    """What may be chosen of a file of vectors. queries: a file of them, or how many are held out of the rows."""

    metric: Metric | None = None
    queries: str = "1000"


class ParquetOptions(FileOptions, frozen=True, forbid_unknown_fields=True):
    """column: which holds the vectors; the only one that holds lists of numbers unless given."""

    column: str | None = None


def hdf5(name: str, options: Hdf5Options) -> Recipe:
    """Of a file with the data sets `train` and `test` and the attribute `distance`. Raises UsageProblem."""
    h5py, path = needed("h5py", "hdf5:"), _file(name)
    try:
        with h5py.File(path, "r") as file:
            distance = file.attrs.get("distance", "")
            shapes = {part: file[part].shape for part in ("train", "test") if part in file}
    except OSError as error:
        raise UsageProblem(f"{path} is no HDF5 file: {error}", hint="get the file again") from error
    if isinstance(distance, bytes):
        distance = distance.decode()
    if distance not in DISTANCES:
        raise UsageProblem(f"{path} has the distance {distance!r}", hint=f"one of {', '.join(DISTANCES)}")
    if len(shapes) < 2 or any(len(shape) != 2 for shape in shapes.values()):
        raise UsageProblem(f"{path} does not have the tables train and test", hint="see ann-benchmarks' data sets")

    def parts(part: str) -> Iterator[NDArray[Any]]:
        with h5py.File(path, "r") as file:
            for start in range(0, shapes[part][0], CHUNK):
                yield file[part][start : start + CHUNK]

    rows, queries = (
        Source(f"{path} ({part})", many, dimension, partial(parts, part)) for part, (many, dimension) in shapes.items()
    )
    return held_out.recipe(path.name, DISTANCES[distance], _hashed(path), rows, queries, options.rows, options.seed)


def binary(kind: str, name: str, options: FileOptions) -> Recipe:
    """Of a file of a kind of BINARY. Raises UsageProblem."""
    return _of_files(name, options, kind, lambda path: _binary(kind, path))


def parquet(name: str, options: ParquetOptions) -> Recipe:
    """Of a file with a column of lists of numbers, all of one length. Raises UsageProblem."""
    return _of_files(name, options, f"column {options.column}", lambda path: _parquet(path, options.column))


def _of_files(name: str, options: FileOptions, read_as: str, source: Callable[[Path], Source]) -> Recipe:
    if options.metric is None:
        raise UsageProblem(f"{name} does not tell its metric", hint=f"?metric= one of {', '.join(METRICS)}")
    path = _file(name)
    key = f"{read_as} {_hashed(path)}"
    queries: Source | int
    if options.queries.isdecimal():
        queries = int(options.queries)
    else:
        beside = _file(options.queries)
        queries, key = source(beside), f"{key} {_hashed(beside)}"
    return held_out.recipe(path.name, options.metric, key, source(path), queries, options.rows, options.seed)


def _binary(kind: str, path: Path) -> Source:
    component = np.dtype(BINARY[kind])
    size = path.stat().st_size
    count, dimension = np.fromfile(path, "<u4", 2).tolist() if size >= HEADER else (0, 0)
    wanted = HEADER + count * dimension * component.itemsize
    if count * dimension == 0 or size != wanted:
        raise UsageProblem(
            f"{path} has {size:,} bytes, not the {wanted:,} of {count:,} vectors of {dimension:,} dimensions in {kind}",
            hint="get the file again, or name its kind",
        )

    def parts() -> Iterator[NDArray[Any]]:
        vectors = np.memmap(path, component, "r", HEADER, (count, dimension))
        for start in range(0, count, CHUNK):
            yield np.asarray(vectors[start : start + CHUNK])

    return Source(str(path), count, dimension, parts)


def _parquet(path: Path, column: str | None) -> Source:
    pyarrow, reader = needed("pyarrow", "parquet:"), needed("pyarrow.parquet", "parquet:")
    try:
        with reader.ParquetFile(path) as file:
            schema, count = file.schema_arrow, file.metadata.num_rows
            chosen = _column(pyarrow, path, schema, column)
            first = next(file.iter_batches(1, columns=[chosen]), None)
    except (pyarrow.ArrowException, OSError) as error:
        raise UsageProblem(f"{path} is no Parquet file: {error}", hint="get the file again") from error
    dimension = 0 if first is None or first.column(0).null_count else len(first.column(0)[0])
    if dimension == 0:
        raise UsageProblem(f"{path} has no vector in the first row of {chosen}", hint="every row needs one")

    def parts() -> Iterator[NDArray[Any]]:
        with reader.ParquetFile(path) as file:
            for batch in file.iter_batches(CHUNK, columns=[chosen]):
                lists = batch.column(0)
                numbers = lists.flatten()
                lengths = pyarrow.compute.list_value_length(lists)
                alike = lists.null_count == 0 and set(lengths.unique().to_pylist()) == {dimension}
                if not alike or numbers.null_count:
                    raise UsageProblem(
                        f"a row of {path} has no vector of {dimension} numbers in {chosen}", hint="every row needs one"
                    )
                yield numbers.to_numpy(zero_copy_only=False).reshape(-1, dimension)

    needed("pyarrow.compute", "parquet:")
    return Source(str(path), count, dimension, parts)


def _column(pyarrow: Any, path: Path, schema: Any, column: str | None) -> str:
    types = pyarrow.types

    def vectors(kind: Any) -> bool:
        lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        return lists and (types.is_floating(kind.value_type) or types.is_integer(kind.value_type))

    found = [field.name for field in schema if vectors(field.type)]
    if column is not None and column in found:
        return column
    if column is None and len(found) == 1:
        return found[0]
    known = ", ".join(found) or "none"
    raise UsageProblem(
        f"{path} has no column {column!r} of vectors" if column else f"{path} has not one column of vectors",
        hint=f"?column=… chooses one; columns of lists of numbers: {known}",
    )


def _file(name: str) -> Path:
    path = Path(name)
    if not path.is_file():
        raise UsageProblem(f"there is no file {name!r}", hint="a kind of data set, a colon, and the path of the file")
    return path


def _hashed(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
