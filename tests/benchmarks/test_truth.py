"""Exact truth: against the plainest scan there is, where rows tie, where float32 misleads, and what the cache keeps."""

from __future__ import annotations

import math
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from memassay.benchmarks import exact as exactly
from memassay.benchmarks import truth, truth_speed
from memassay.benchmarks.datasets import FILTERS, NO_FILTER, Filter, VectorSet, open_dataset
from memassay.benchmarks.exact import DisagreementError, merge, nearest, scan
from memassay.benchmarks.mixture import make
from memassay.benchmarks.truth import Truth, compute, exact
from memassay.benchmarks.vectorset import Arrays
from memassay.harness.exits import UsageProblem
from memassay.spec.vectors import METRICS, Metric, scores
from typer.testing import CliRunner

RANDOM = np.random.default_rng(5)


@pytest.fixture(scope="module")
def data() -> VectorSet:
    return make(3_000, 24, 40, 3)


def plainly(metric: Metric, query: Any, rows: Any, numbers: Any, k: int) -> list[int]:
    """The numbers of the k closest rows and of those that tie with the last: every row scored, all sorted."""
    scored = sorted(zip(-scores(metric, query, rows[numbers]), numbers.tolist(), strict=True))
    last = scored[min(k, len(scored)) - 1][0]
    slack = 1e-9 * (1 if metric == "cosine" else abs(last))
    return [number for score, number in scored if score <= last + slack]


def under(data: VectorSet, metric: Metric, scale: float = 1.0) -> VectorSet:
    """The same rows under another metric, no longer of length 1: from a hundredth of `scale` to all of it."""
    lengths = (scale * 10.0 ** RANDOM.uniform(-2, 0, (len(data.rows), 1))).astype(np.float32)
    arrays = Arrays(data.rows * lengths, data.queries * np.float32(scale / 3), *data.arrays[2:])
    return msgspec.structs.replace(data, metric=metric, arrays=arrays)


# What it finds


@pytest.mark.parametrize("filter", FILTERS, ids=lambda filter: filter.label)
@pytest.mark.parametrize("k", [1, 10, 200])
def test_it_is_what_a_plain_scan_finds_under_every_filter(data: VectorSet, filter: Filter, k: int) -> None:
    numbers = np.flatnonzero(data.mask(filter))
    for query, found in zip(data.asked(filter), compute(data, filter, k), strict=True):
        assert found.rows.tolist() == plainly("cosine", query, data.rows, numbers, k)
        assert found.due == min(k, len(numbers))
        assert found.least == found.scores[found.due - 1]


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("metric", METRICS)
def test_it_is_what_a_plain_scan_finds_under_every_metric(data: VectorSet, metric: Metric, scale: float) -> None:
    changed = under(data, metric, scale)
    numbers = np.arange(len(changed.rows))
    for query, found in zip(changed.queries, compute(changed, NO_FILTER, 10), strict=True):
        assert found.rows.tolist() == plainly(metric, query, changed.rows, numbers, 10)
        assert found.scores.tolist() == scores(metric, query, changed.rows[found.rows]).tolist()


@pytest.mark.parametrize("metric", METRICS)
def test_blocks_find_what_one_finds(data: VectorSet, metric: Metric, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = under(data, metric)
    whole = compute(changed, NO_FILTER, 10)
    monkeypatch.setattr(truth, "BLOCK", 4 * 24 * 171)
    parts = compute(changed, NO_FILTER, 10)
    assert [each.rows.tolist() for each in parts] == [each.rows.tolist() for each in whole]
    assert [each.scores.tolist() for each in parts] == [each.scores.tolist() for each in whole]


def test_a_filter_may_leave_nothing_of_a_block(data: VectorSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(truth, "BLOCK", 4 * 24 * 10)
    filter = Filter("aligned", 1)
    assert compute(data, filter, 10)[0].rows.tolist() == plainly(
        "cosine", data.directed[0], data.rows, np.flatnonzero(data.mask(filter)), 10
    )


def test_a_tie_over_blocks_is_a_tie() -> None:
    parts = [
        exactly.Near(np.array([3, 4]), np.array([0.9, 0.5])),
        exactly.Near(np.array([8, 7, 9]), np.array([0.5 + 1e-10, 0.5, 0.4])),
    ]
    assert merge("cosine", parts, 2).rows.tolist() == [3, 8, 4, 7]


def test_a_score_beyond_the_tie_does_not_belong() -> None:
    parts = [exactly.Near(np.array([3, 4]), np.array([0.9, 0.5])), exactly.Near(np.array([8]), np.array([0.5 - 2e-9]))]
    assert merge("cosine", parts, 2).rows.tolist() == [3, 4]


# Where float32 misleads


def crowd(metric: Metric, count: int = 2_000) -> tuple[Any, Any]:
    """Rows so close together that float32 cannot order them as seen from the query."""
    query = RANDOM.standard_normal((1, 64)).astype(np.float32)
    rows = (query + RANDOM.standard_normal((count, 64)) * 1e-7).astype(np.float32)
    return query, rows if metric != "cosine" else rows / np.linalg.norm(rows, axis=1, keepdims=True)


def counting(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many queries each scan in float64 is for."""
    scanned: list[int] = []

    def counted(metric: Metric, queries: Any, rows: Any, k: int) -> list[exactly.Near]:
        scanned.append(len(queries))
        return scan(metric, queries, rows, k)

    monkeypatch.setattr(exactly, "scan", counted)
    return scanned


@pytest.mark.parametrize("metric", METRICS)
def test_near_ties_are_decided_in_float64(metric: Metric, monkeypatch: pytest.MonkeyPatch) -> None:
    query, rows = crowd(metric)
    scanned = counting(monkeypatch)
    monkeypatch.setattr(exactly, "SAMPLE", 1)
    (found,) = nearest(metric, query, rows, 10)
    assert found.rows.tolist() == plainly(metric, query[0], rows, np.arange(len(rows)), 10)
    assert scanned == [1]  # nothing else could prove it


def test_a_selection_that_is_proven_is_not_scanned(data: VectorSet, monkeypatch: pytest.MonkeyPatch) -> None:
    scanned = counting(monkeypatch)
    nearest("cosine", data.queries, data.rows, 10)
    assert scanned == [0]


@pytest.mark.parametrize("copies", [5, 100])
def test_all_copies_of_the_last_row_belong(data: VectorSet, copies: int) -> None:
    """Of five a selection has all; of a hundred it has not, and cannot know how many there are."""
    rows = data.rows.copy()
    tenth = nearest("cosine", data.queries[:1], rows, 10)[0].rows[9]
    places = np.setdiff1d(np.arange(len(rows)), nearest("cosine", data.queries[:1], rows, 200)[0].rows)[:copies]
    rows[places] = rows[tenth]
    (found,) = nearest("cosine", data.queries[:1], rows, 10)
    assert found.rows[9:].tolist() == sorted([tenth, *places])


def test_rows_that_are_all_the_same_all_belong() -> None:
    rows = np.ones((500, 8), np.float32)
    (found,) = nearest("euclidean", rows[:1] * 2, rows, 3)
    assert found.rows.tolist() == [*range(500)]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dimension", [2, 64, 1_536])
def test_float32_is_off_by_no_more_than_the_bound(metric: Metric, dimension: int) -> None:
    """The bound is of the worst there can be; what it is compared with was computed by the library itself."""
    from memassay.backends import brute_force

    queries = RANDOM.standard_normal((64, dimension)).astype(np.float32)
    rows = RANDOM.standard_normal((500, dimension)).astype(np.float32)
    if metric == "cosine":
        queries, rows = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (queries, rows))
    long = [np.linalg.norm(each.astype(np.float64), axis=1) for each in (queries, rows)]
    values, numbers = brute_force.nearest(queries, rows, 500, "distance" if metric == "euclidean" else "product")
    bound = exactly.rounding(metric, long[0], long[1].max(), 3e-7 if metric == "cosine" else 0.0, dimension)
    for query, value, number, off in zip(queries, values, numbers, bound, strict=True):
        true = scores(metric, query, rows[number])
        if metric == "euclidean":
            true = (1 / true - 1) ** 2
        assert np.abs(value - true).max() <= off


@pytest.mark.parametrize("fault", ["misses", "invents"])
def test_a_library_that_is_wrong_is_found_out(data: VectorSet, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    from memassay.backends import brute_force

    honest = brute_force.nearest

    def wrong(queries: Any, rows: Any, count: int, by: Any) -> Any:
        values, numbers = honest(queries, rows, count + 1, by)
        if fault == "misses":
            return values[:, 1:], numbers[:, 1:]
        return values[:, :-1], np.roll(numbers, 1, axis=0)[:, :-1]

    monkeypatch.setattr(brute_force, "nearest", wrong)
    with pytest.raises(DisagreementError, match="query 0: selected"):
        nearest("cosine", data.queries, data.rows, 10)


# Counting


TRUTH = Truth(2, 0.5, np.array([0, 1, 2]), np.array([0.9, 0.5, 0.5]), np.array([True, True, True, True, False]))


@pytest.mark.parametrize(
    ("found", "right", "unique", "wrong"),
    [
        ([0, 1], 2, 2, 0),
        ([0, 2], 2, 2, 0),  # a tie
        ([0, 1, 2], 2, 3, 0),  # more than are due
        ([0, 3], 1, 2, 0),
        ([0], 1, 1, 0),
        ([], 0, 0, 0),
        ([0, 0], 1, 1, 1),  # one row twice is one row
        ([0, 4], 1, 2, 1),  # a row that the filter leaves out
        ([0, 5], 1, 2, 1),  # a row that there is not
        ([0, -1], 1, 2, 1),
    ],
)
def test_answers_are_counted(found: list[int], right: int, unique: int, wrong: int) -> None:
    counted = TRUTH.count(found)
    assert (counted.right, counted.returned_unique, counted.wrong) == (right, unique, wrong)


def test_where_nothing_is_due_whatever_comes_is_wrong() -> None:
    nothing = Truth(0, math.inf, np.array([], np.int64), np.array([]), np.zeros(5, np.bool_))
    assert nothing.count([]) == truth.Counted(0, 0, 0)
    assert nothing.count([3]) == truth.Counted(0, 1, 1)


def test_a_filter_that_leaves_nothing_leaves_nothing_due(data: VectorSet) -> None:
    empty = msgspec.structs.replace(data, arrays=data.arrays._replace(marks=np.zeros_like(data.arrays.marks)))
    found = compute(empty, Filter("independent", 10), 5)
    assert {(each.due, each.least, len(each.rows)) for each in found} == {(0, math.inf, 0)}


def test_no_rows_asked_for_is_a_usage_problem(data: VectorSet) -> None:
    with pytest.raises(UsageProblem, match="k is 0"):
        compute(data, NO_FILTER, 0)


# The cache


@pytest.fixture
def found_before(data: VectorSet, tmp_path: Path) -> Path:
    exact(data, NO_FILTER, 10, cache=tmp_path)
    (path,) = (path for path in (tmp_path / "truth").iterdir() if not path.name.startswith("."))
    return path


def rows_of(found: list[Truth]) -> list[list[int]]:
    return [each.rows.tolist() for each in found]


def test_what_is_kept_is_what_was_found(data: VectorSet, found_before: Path, tmp_path: Path) -> None:
    again, anew = exact(data, NO_FILTER, 10, cache=tmp_path), compute(data, NO_FILTER, 10)
    assert rows_of(again) == rows_of(anew)
    for kept, found in zip(again, anew, strict=True):
        assert (kept.due, kept.least, kept.scores.tolist()) == (found.due, found.least, found.scores.tolist())


def test_what_is_kept_is_not_searched_again(
    data: VectorSet, found_before: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(truth, "nearest", None)
    assert len(exact(data, NO_FILTER, 10, cache=tmp_path)) == len(data.queries)


def test_another_data_set_filter_or_k_is_another_truth(data: VectorSet, found_before: Path, tmp_path: Path) -> None:
    other = make(3_000, 24, 40, 4)
    exact(data, NO_FILTER, 11, cache=tmp_path)
    exact(data, Filter("aligned", 10), 10, cache=tmp_path)
    exact(other, NO_FILTER, 10, cache=tmp_path)
    assert len([path for path in found_before.parent.iterdir() if not path.name.startswith(".")]) == 4


@pytest.mark.parametrize("damage", ["emptied", "cut", "beheaded", "changed", "other"])
def test_a_damaged_truth_is_found_anew_and_said(
    data: VectorSet, found_before: Path, tmp_path: Path, damage: str
) -> None:
    content, said = found_before.read_bytes(), list[str]()
    match damage:
        case "emptied":
            found_before.write_bytes(b"")
        case "cut":
            found_before.write_bytes(content[:-100])
        case "beheaded":
            found_before.write_bytes(content[:20])
        case "changed":
            found_before.write_bytes(content[:-9] + bytes([content[-9] ^ 64]) + content[-8:])
        case _:
            other = make(3_000, 24, 40, 4)
            exact(other, NO_FILTER, 10, cache=tmp_path / "other")
            (path,) = (tmp_path / "other" / "truth").glob("[!.]*")
            found_before.write_bytes(path.read_bytes())
    again = exact(data, NO_FILTER, 10, cache=tmp_path, told=said.append)
    assert rows_of(again) == rows_of(compute(data, NO_FILTER, 10))
    assert "is damaged" in said[0]
    assert found_before.read_bytes() == content


def test_a_file_of_something_else_is_refused(data: VectorSet, found_before: Path, tmp_path: Path) -> None:
    found_before.write_bytes(b"my notes")
    with pytest.raises(UsageProblem, match="is no truth of memassay"):
        exact(data, NO_FILTER, 10, cache=tmp_path)
    assert found_before.read_bytes() == b"my notes"


# Memory, and the command


def test_mapped_rows_are_not_copied_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor are those that a filter leaves: no more of them at a time than are in a block."""
    data = open_dataset("mixture:100k×64?queries=20", cache=tmp_path)
    monkeypatch.setattr(truth, "BLOCK", 1 << 20)
    tracemalloc.start()
    try:
        for filter in (NO_FILTER, Filter("independent", 500)):
            compute(data, filter, 10)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < data.rows.nbytes / 4


def test_the_command_tells_the_ratio_and_that_a_full_scan_agrees() -> None:
    import typer

    app = typer.Typer()
    app.command()(truth_speed.main)
    ran = CliRunner().invoke(app, ["--rows", "3000", "--dimension", "16", "--queries", "30", "--rounds", "2"])
    assert ran.exit_code == 0
    assert "ratio: median of rounds" in ran.output
    assert ran.output.count("30 of 30 queries have the ids of a full float64 scan") == len(FILTERS)
