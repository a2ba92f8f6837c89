"""Data sets in files: what is read, what is held out, and which files are refused, and why."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memassay.benchmarks import extras, held_out
from memassay.benchmarks.datasets import VectorSet, open_dataset
from memassay.benchmarks.vectorset import make
from memassay.harness.exits import UsageProblem

h5py: Any = import_module("h5py")
pa: Any = import_module("pyarrow")
pq: Any = import_module("pyarrow.parquet")

ROWS = np.random.default_rng(0).standard_normal((200, 8)).astype(np.float32)
QUERIES = np.random.default_rng(1).standard_normal((12, 8)).astype(np.float32)

Put = Callable[..., Path]


def put_binary(path: Path, vectors: np.ndarray[Any, Any], cut: int | None = None) -> Path:
    content = np.array(vectors.shape, "<u4").tobytes() + vectors.tobytes()
    path.write_bytes(content[:cut])
    return path


def put_hdf5(path: Path, distance: Any = "angular", **tables: Any) -> Path:
    with h5py.File(path, "w") as file:
        if distance is not None:
            file.attrs["distance"] = distance
        for name, table in (tables or {"train": ROWS, "test": QUERIES}).items():
            file.create_dataset(name, data=table, compression="gzip")
    return path


def put_parquet(path: Path, column: Any, **more: Any) -> Path:
    pq.write_table(pa.table({"emb": column, **more}), path, row_group_size=64)
    return path


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], VectorSet]:
    return lambda spec: open_dataset(spec, cache=tmp_path / "cache")


def refusal(load: Callable[[str], VectorSet], spec: str) -> UsageProblem:
    with pytest.raises(UsageProblem) as refused:
        load(spec)
    assert refused.value.hint
    return refused.value


# HDF5


@pytest.mark.parametrize(
    ("distance", "metric"),
    [("angular", "cosine"), ("euclidean", "euclidean"), ("ip", "dotproduct"), (np.bytes_(b"angular"), "cosine")],
)
def test_hdf5_has_rows_queries_and_metric(
    load: Callable[[str], VectorSet], tmp_path: Path, distance: Any, metric: str
) -> None:
    data = load(f"hdf5:{put_hdf5(tmp_path / 'a.hdf5', distance)}")
    assert data.metric == metric
    assert np.array_equal(data.rows, ROWS)
    assert np.array_equal(data.queries, QUERIES)


def test_hdf5_of_double_precision_is_read_as_single(load: Callable[[str], VectorSet], tmp_path: Path) -> None:
    path = put_hdf5(tmp_path / "a.hdf5", train=ROWS.astype(np.float64), test=QUERIES)
    assert np.array_equal(load(f"hdf5:{path}").rows, ROWS)


def test_the_first_rows_alone(load: Callable[[str], VectorSet], tmp_path: Path) -> None:
    data = load(f"hdf5:{put_hdf5(tmp_path / 'a.hdf5')}?rows=50")
    assert np.array_equal(data.rows, ROWS[:50])
    assert np.array_equal(data.queries, QUERIES)


@pytest.mark.parametrize(
    ("distance", "tables", "said"),
    [
        ("hamming", {}, "the distance 'hamming'"),
        (None, {}, "the distance ''"),
        ("angular", {"train": ROWS}, "does not have the tables"),
        ("angular", {"train": ROWS[0], "test": QUERIES}, "does not have the tables"),
        ("angular", {"train": ROWS, "test": QUERIES[:, :7]}, "7 dimensions"),
    ],
)
def test_an_hdf5_file_of_another_shape_is_refused(
    load: Callable[[str], VectorSet], tmp_path: Path, distance: Any, tables: dict[str, Any], said: str
) -> None:
    assert said in str(refusal(load, f"hdf5:{put_hdf5(tmp_path / 'a.hdf5', distance, **tables)}"))


def test_what_is_no_hdf5_is_refused(load: Callable[[str], VectorSet], tmp_path: Path) -> None:
    assert "is no HDF5 file" in str(refusal(load, f"hdf5:{put_binary(tmp_path / 'a', ROWS)}"))


# fbin, u8bin, i8bin


@pytest.mark.parametrize(("kind", "component"), [("fbin", "<f4"), ("u8bin", "u1"), ("i8bin", "i1")])
def test_binary_files_are_read_as_single_precision(
    load: Callable[[str], VectorSet], tmp_path: Path, kind: str, component: str
) -> None:
    vectors = (np.arange(400).reshape(100, 4) % 120 + 1).astype(component)
    asked = vectors[::-1][:7]
    path, queries = put_binary(tmp_path / "rows", vectors), put_binary(tmp_path / "queries", asked)
    data = load(f"{kind}:{path}?metric=euclidean&queries={queries}")
    assert np.array_equal(data.rows, vectors.astype(np.float32))
    assert np.array_equal(data.queries, asked.astype(np.float32))


def test_the_same_bytes_read_as_another_kind_are_another_data_set(
    load: Callable[[str], VectorSet], tmp_path: Path
) -> None:
    path = put_binary(tmp_path / "rows", np.full((20, 4), 200, "u1"))
    unsigned, signed = (load(f"{kind}:{path}?metric=euclidean").rows for kind in ("u8bin", "i8bin"))
    assert (unsigned[0, 0], signed[0, 0]) == (200, -56)


def test_queries_are_held_out_of_a_file_that_has_none(load: Callable[[str], VectorSet], tmp_path: Path) -> None:
    data = load(f"fbin:{put_binary(tmp_path / 'rows', ROWS)}?metric=cosine&queries=15")
    assert (len(data.queries), len(data.rows)) == (15, 185)
    both = np.concatenate([data.rows, data.queries])
    assert np.array_equal(both[np.lexsort(both.T)], ROWS[np.lexsort(ROWS.T)])


def test_a_tenth_is_held_out_at_most(load: Callable[[str], VectorSet], tmp_path: Path) -> None:
    assert len(load(f"fbin:{put_binary(tmp_path / 'rows', ROWS)}?metric=cosine").queries) == 20


def test_a_seed_holds_out_others(load: Callable[[str], VectorSet], tmp_path: Path) -> None:
    spec = f"fbin:{put_binary(tmp_path / 'rows', ROWS)}?metric=cosine"
    assert load(f"{spec}&seed=1").hash() != load(spec).hash()


def test_rows_keep_their_order_over_parts(
    load: Callable[[str], VectorSet], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memassay.benchmarks.loaders.CHUNK", 7)
    data = load(f"fbin:{put_binary(tmp_path / 'rows', ROWS)}?metric=cosine&rows=100")
    places = [np.flatnonzero((row == ROWS).all(axis=1))[0] for row in data.rows]
    assert places == sorted(places)
    assert places[-1] < 100


@pytest.mark.parametrize("cut", [0, 3, 8, -1])
def test_a_binary_file_that_is_cut_is_refused(load: Callable[[str], VectorSet], tmp_path: Path, cut: int) -> None:
    path = put_binary(tmp_path / "rows", ROWS, cut)
    assert f"has {path.stat().st_size:,} bytes" in str(refusal(load, f"fbin:{path}?metric=cosine"))


def test_a_binary_file_of_another_kind_is_refused(load: Callable[[str], VectorSet], tmp_path: Path) -> None:
    path = put_binary(tmp_path / "rows", ROWS)
    assert "not the 1,608" in str(refusal(load, f"u8bin:{path}?metric=cosine"))


def test_a_file_that_does_not_tell_its_metric_needs_one(load: Callable[[str], VectorSet], tmp_path: Path) -> None:
    assert "does not tell its metric" in str(refusal(load, f"fbin:{put_binary(tmp_path / 'rows', ROWS)}"))


def test_too_few_vectors_are_refused(load: Callable[[str], VectorSet], tmp_path: Path) -> None:
    assert "too few" in str(refusal(load, f"fbin:{put_binary(tmp_path / 'rows', ROWS[:9])}?metric=cosine"))


@pytest.mark.parametrize(
    ("metric", "bad"), [("cosine", np.nan), ("euclidean", np.inf), ("euclidean", 1e20), ("cosine", 0.0)]
)
def test_a_vector_that_no_index_may_hold_is_refused_by_its_number(
    load: Callable[[str], VectorSet], tmp_path: Path, metric: str, bad: float
) -> None:
    vectors = ROWS.copy()
    vectors[137] = bad
    said = str(refusal(load, f"fbin:{put_binary(tmp_path / 'rows', vectors)}?metric={metric}"))
    assert "vector 137 of" in said


def test_a_null_vector_is_valid_under_other_metrics(load: Callable[[str], VectorSet], tmp_path: Path) -> None:
    vectors = ROWS.copy()
    vectors[137] = 0
    data = load(f"fbin:{put_binary(tmp_path / 'rows', vectors)}?metric=dotproduct")
    assert len(data.rows) + len(data.queries) == 200


def test_a_file_that_changed_is_another_data_set(load: Callable[[str], VectorSet], tmp_path: Path) -> None:
    spec = f"fbin:{put_binary(tmp_path / 'rows', ROWS)}?metric=cosine"
    first = load(spec).hash()
    put_binary(tmp_path / "rows", ROWS[::-1])
    assert load(spec).hash() != first


# Parquet


LISTS: dict[str, Any] = {
    "list": pa.array(ROWS.tolist(), pa.list_(pa.float32())),
    "large_list": pa.array(ROWS.tolist(), pa.large_list(pa.float64())),
    "fixed_size_list": pa.FixedSizeListArray.from_arrays(pa.array(ROWS.ravel()), 8),
}


@pytest.mark.parametrize("kind", LISTS)
def test_parquet_has_vectors_in_a_column_of_lists(load: Callable[[str], VectorSet], tmp_path: Path, kind: str) -> None:
    path = put_parquet(tmp_path / "a.parquet", LISTS[kind], id=pa.array([str(row) for row in range(200)]))
    queries = put_parquet(tmp_path / "q.parquet", pa.array(QUERIES.tolist()))
    data = load(f"parquet:{path}?metric=cosine&queries={queries}")
    assert np.array_equal(data.rows, ROWS)
    assert np.array_equal(data.queries, QUERIES)


def test_one_of_two_columns_is_chosen(load: Callable[[str], VectorSet], tmp_path: Path) -> None:
    path = put_parquet(tmp_path / "a.parquet", LISTS["list"], other=pa.array((-ROWS).tolist()))
    assert "has not one column of vectors" in str(refusal(load, f"parquet:{path}?metric=cosine"))
    other, first = (load(f"parquet:{path}?metric=cosine&column={name}") for name in ("other", "emb"))
    assert np.array_equal(other.rows, -first.rows)


@pytest.mark.parametrize("bad", [None, [1.0] * 7, [1.0] * 7 + [None]])
def test_a_row_of_parquet_without_its_vector_is_refused(
    load: Callable[[str], VectorSet], tmp_path: Path, bad: Any
) -> None:
    path = put_parquet(tmp_path / "a.parquet", pa.array([*ROWS[:60].tolist(), bad], pa.list_(pa.float32())))
    assert "no vector of 8 numbers in emb" in str(refusal(load, f"parquet:{path}?metric=cosine"))


def test_an_empty_parquet_file_is_refused(load: Callable[[str], VectorSet], tmp_path: Path) -> None:
    path = put_parquet(tmp_path / "a.parquet", pa.array([], pa.list_(pa.float32())))
    assert "no vector in the first row" in str(refusal(load, f"parquet:{path}?metric=cosine"))


def test_what_is_no_parquet_is_refused(load: Callable[[str], VectorSet], tmp_path: Path) -> None:
    path = put_binary(tmp_path / "a", ROWS)
    assert "is no Parquet file" in str(refusal(load, f"parquet:{path}?metric=cosine"))


def test_a_column_that_is_not_there_is_refused(load: Callable[[str], VectorSet], tmp_path: Path) -> None:
    path = put_parquet(tmp_path / "a.parquet", LISTS["list"])
    problem = refusal(load, f"parquet:{path}?metric=cosine&column=vec")
    assert "no column 'vec'" in str(problem)
    assert "emb" in problem.hint


# All of them


def test_half_read_files_leave_nothing_in_the_cache(load: Callable[[str], VectorSet], tmp_path: Path) -> None:
    vectors = ROWS.copy()
    vectors[-1] = np.nan
    refusal(load, f"fbin:{put_binary(tmp_path / 'rows', vectors)}?metric=cosine")
    assert not [path for path in (tmp_path / "cache" / "datasets").iterdir() if path.is_dir()]


def test_a_source_that_ends_too_soon_is_refused() -> None:
    source = held_out.Source("broken", 200, 8, lambda: iter([ROWS[:150]]))
    recipe = held_out.recipe("broken", "cosine", "", source, 10, None, 0)
    with pytest.raises(UsageProblem, match="has 150 vectors, not 200"):
        make(recipe)


def test_a_module_that_is_missing_is_named_with_its_extra() -> None:
    with pytest.raises(UsageProblem, match=r"parquet: needs the module no_such_module.*memassay\[bench\]"):
        extras.needed("no_such_module", "parquet:")
