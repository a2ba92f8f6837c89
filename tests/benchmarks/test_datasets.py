"""Data sets by name: what is in them, that they are the same everywhere, and what becomes of damaged ones."""

from __future__ import annotations

import itertools
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memassay.benchmarks.datasets import FILTERS, KINDS, NO_FILTER, Filter, VectorSet, open_dataset
from memassay.benchmarks.mixture import CHUNK, NUDGES, make
from memassay.harness.exits import UsageProblem
from memassay.spec.vectors import scores

SPEC = "mixture:2k×16?queries=20"


@pytest.fixture
def data(tmp_path: Path) -> VectorSet:
    return open_dataset(SPEC, cache=tmp_path)


def kept(data: VectorSet, name: str) -> Path:
    assert data.folder is not None
    return data.folder / name


# What is in a mixture


def test_a_mixture_has_the_size_of_its_name(data: VectorSet) -> None:
    assert (data.rows.shape, data.queries.shape, data.directed.shape) == ((2_000, 16), (20, 16), (20, 16))
    assert {array.dtype for array in (data.rows, data.queries, data.directed)} == {np.dtype(np.float32)}


@pytest.mark.parametrize("dimension", [64, 1_536])
def test_vectors_have_length_one(dimension: int) -> None:
    data = make(200, dimension, 10, 0)
    for array in (data.rows, data.queries, data.directed):
        assert np.linalg.norm(array.astype(np.float64), axis=1) == pytest.approx(1, abs=1e-6)


def test_no_query_is_a_row(data: VectorSet) -> None:
    rows = {row.tobytes() for row in data.rows}
    assert not rows & {query.tobytes() for query in (*data.queries, *data.directed)}


def test_two_rows_in_a_hundred_copy_others_or_nearly(data: VectorSet) -> None:
    assert 20 <= len(data.rows) - len(np.unique(data.rows, axis=0)) <= 25  # the nearest of those that differ may not
    rows = data.rows.astype(np.float64)
    apart = 1 - np.sort(rows @ rows.T - 2 * np.eye(len(rows)), axis=1)[:, -1]
    near = np.sqrt(2 * np.maximum(apart, 0)) < 2 * 10 ** NUDGES[1]
    assert 40 <= np.count_nonzero(near) <= 80  # both of each pair


def test_a_mixture_in_memory_is_the_one_that_is_kept(data: VectorSet) -> None:
    assert make(2_000, 16, 20, 0).hash() == data.hash()


def test_more_rows_than_are_made_at_once_differ(tmp_path: Path) -> None:
    data = open_dataset(f"mixture:{2 * CHUNK}×16?queries=1", cache=tmp_path)
    assert np.count_nonzero((data.rows[:CHUNK] == data.rows[CHUNK:]).all(axis=1)) == 0


@pytest.mark.parametrize("other", ["seed=1", "queries=21", "metric=euclidean"])
def test_each_option_makes_another(data: VectorSet, other: str, tmp_path: Path) -> None:
    name, _, value = other.partition("=")
    given = {"queries": "20", name: value}
    spec = "mixture:2k×16?" + "&".join(f"{name}={value}" for name, value in given.items())
    assert open_dataset(spec, cache=tmp_path).hash() != data.hash()


def test_k_and_m_are_thousands_and_millions(data: VectorSet, tmp_path: Path) -> None:
    assert open_dataset("mixture:2000x16?queries=20", cache=tmp_path).hash() == data.hash()


# Filters


def test_filters_are_five_selectivities_in_three_relations() -> None:
    assert [filter.label for filter in FILTERS] == [
        "none",
        *("50 %", "10 %", "1 %", "0.1 %"),
        *("50 % aligned", "10 % aligned", "1 % aligned", "0.1 % aligned"),
        *("50 % against", "10 % against", "1 % against", "0.1 % against"),
    ]


@pytest.mark.parametrize("filter", FILTERS, ids=lambda filter: filter.label)
def test_a_filter_leaves_as_many_rows_as_it_says(data: VectorSet, filter: Filter) -> None:
    assert np.count_nonzero(data.mask(filter)) == 2_000 * filter.permille // 1_000


@pytest.mark.parametrize("filter", FILTERS[1:], ids=lambda filter: filter.label)
def test_metadata_match_where_the_mask_is_true(data: VectorSet, filter: Filter) -> None:
    condition = filter.condition or {}
    matches = [condition.items() <= data.metadata(row).items() for row in range(len(data.rows))]
    assert matches == data.mask(filter).tolist()


def test_a_filter_leaves_one_row_at_least() -> None:
    data = make(10, 4, 1, 0)
    assert [int(data.mask(filter).sum()) for filter in FILTERS[1:5]] == [5, 1, 1, 1]


def test_rows_lie_where_the_relation_of_a_filter_says() -> None:
    data = make(600, 64, 20, 7)
    for query in data.directed:
        near = scores("cosine", query, data.rows)
        mean = {relation: near[data.mask(Filter(relation, 10))].mean() for relation in ("aligned", "against")}
        assert mean["against"] < np.quantile(near, 0.25)
        assert mean["aligned"] > np.quantile(near, 0.97)
        independent = near[data.mask(Filter("independent", 100))]
        assert independent.min() < np.median(near) < independent.max()


def test_directed_queries_go_with_filters_that_have_a_direction(data: VectorSet) -> None:
    asked = {relation: data.asked(Filter(relation, 10)) for relation in ("independent", "aligned", "against")}
    assert [np.array_equal(each, data.directed) for each in asked.values()] == [False, True, True]
    assert np.array_equal(data.asked(NO_FILTER), data.queries)


def test_ids_are_of_equal_length_and_in_order(data: VectorSet) -> None:
    ids = data.ids()
    assert (ids[0], ids[-1], len({*ids})) == ("v000000", "v001999", 2_000)
    assert ids == sorted(ids)


# Digits


def test_digits_are_held_out_of_the_rows(tmp_path: Path) -> None:
    data = open_dataset("digits", cache=tmp_path)
    loaded: Any = import_module("sklearn.datasets").load_digits()
    all_of_them: Any = loaded.data.astype(np.float32)
    both = np.concatenate([data.rows, data.queries])
    assert (len(data.rows), len(data.queries)) == (1_618, 179)
    assert np.array_equal(both[np.lexsort(both.T)], all_of_them[np.lexsort(all_of_them.T)])


def test_directed_queries_that_are_held_out_are_the_nearest_to_the_first(tmp_path: Path) -> None:
    data = open_dataset("digits?queries=40&metric=euclidean", cache=tmp_path)
    distances = np.linalg.norm(data.queries.astype(np.float64) - data.queries[0], axis=1)
    assert len(data.directed) == 10
    chosen = np.linalg.norm(data.directed.astype(np.float64) - data.queries[0], axis=1)
    assert chosen.tolist() == np.sort(distances)[:10].tolist()


# The cache


def test_what_is_kept_is_mapped_and_cannot_be_written(data: VectorSet) -> None:
    assert all(isinstance(array, np.memmap) and not array.flags.writeable for array in data.arrays)


def test_what_is_kept_is_not_made_again(data: VectorSet, tmp_path: Path) -> None:
    made = kept(data, "rows.npy").stat().st_ino
    again = open_dataset(SPEC, cache=tmp_path)
    assert (again.hash(), kept(again, "rows.npy").stat().st_ino) == (data.hash(), made)


@pytest.mark.parametrize("name", ["rows.npy", "queries.npy", "directed.npy", "marks.npy"])
@pytest.mark.parametrize("damage", ["cut", "emptied", "changed", "removed", "replaced"])
def test_a_damaged_array_is_made_anew_and_said(data: VectorSet, tmp_path: Path, name: str, damage: str) -> None:
    path, expected, said = kept(data, name), data.hash(), list[str]()
    content = path.read_bytes()
    del data
    match damage:
        case "cut":
            path.write_bytes(content[:-1])
        case "emptied":
            path.write_bytes(b"")
        case "changed":
            path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        case "removed":
            path.unlink()
        case _:
            np.save(path, np.zeros(3))
    again = open_dataset(SPEC, cache=tmp_path, told=said.append)
    assert again.hash() == expected
    assert "is damaged" in said[0]


def test_a_directory_of_something_else_is_refused(data: VectorSet, tmp_path: Path) -> None:
    manifest = kept(data, "manifest.json")
    manifest.write_text('{"format": "something else"}')
    with pytest.raises(UsageProblem, match="is no data set of this version"):
        open_dataset(SPEC, cache=tmp_path)
    assert kept(data, "rows.npy").exists()


def test_what_a_killed_process_left_half_made_is_no_hindrance(data: VectorSet, tmp_path: Path) -> None:
    assert data.folder is not None
    half = data.folder.with_name(f".{data.folder.name}.new")
    data.folder.rename(half)
    (half / "manifest.json").unlink()
    assert open_dataset(SPEC, cache=tmp_path).hash() == data.hash()
    assert not half.exists()


def test_a_cache_that_cannot_be_made_is_a_usage_problem(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageProblem, match="nothing can be kept"):
        open_dataset(SPEC, cache=tmp_path / "file")


def test_the_users_cache_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMASSAY_CACHE_DIR", str(tmp_path))
    folder = open_dataset(SPEC).folder
    assert folder is not None
    assert folder.is_relative_to(tmp_path / "benchmarks")


# Names


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("", "no kind of data set ''"),
        ("mixtures:10k×64", "no kind of data set 'mixtures'"),
        ("mixture", "'' is no size"),
        ("mixture:0×64", "'0×64' is no size"),
        ("mixture:10k×1", "'10k×1' is no size"),
        ("mixture:10K×64", "'10K×64' is no size"),
        ("mixture:10k×64?seed", "bad options of mixture"),
        ("mixture:10k×64?seed=-1", "bad options of mixture"),
        ("mixture:10k×64?seed=one", "bad options of mixture"),
        ("mixture:10k×64?queries=0", "bad options of mixture"),
        ("mixture:10k×64?metric=hamming", "bad options of mixture"),
        ("mixture:10k×64?sead=1", "unknown field `sead`"),
        ("digits:eight", "digits:eight is no data set"),
        ("digits?queries=1000", "bad options of digits"),
        ("fbin:nowhere.fbin?metric=cosine", "there is no file 'nowhere.fbin'"),
    ],
)
def test_a_bad_name_is_refused_before_anything_is_kept(spec: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match=said.replace("?", r"\?")) as refused:
        open_dataset(spec, cache=tmp_path / "cache")
    assert refused.value.hint
    assert not (tmp_path / "cache").exists()


def test_every_kind_is_named_where_none_is_right(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem) as refused:
        open_dataset("vectors", cache=tmp_path)
    assert all(kind in refused.value.hint for kind in itertools.chain(KINDS))
