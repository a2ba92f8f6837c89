"""Verdicts and intervals on runs whose truth is known, percentiles that need samples, curves at equal recall."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from memassay.benchmarks import statistics
from memassay.benchmarks.equal_recall import Point, at_recall, frontier
from memassay.benchmarks.statistics import PAIRS, Verdict, interval, judge, judge_shares, needed, percentile
from numpy.typing import NDArray

RESAMPLINGS = 200


def runs(random: np.random.Generator, sd: float, *, slower: float = 1.0, many: int = PAIRS) -> NDArray[np.float64]:
    """Medians of runs that differ by this standard deviation, of their logarithm."""
    return 3.0 * slower * np.exp(random.normal(0, sd, many))


def verdicts(sd: float, *, slower: float = 1.0) -> Counter[Verdict]:
    random = np.random.default_rng(11)
    return Counter(judge(runs(random, sd), runs(random, sd, slower=slower)).verdict for _ in range(RESAMPLINGS))


# Verdicts


def test_two_percent_of_noise_and_no_difference_is_no_change() -> None:
    found = verdicts(0.02)
    assert found["no change"] >= 0.95 * RESAMPLINGS
    assert found["regressed"] == found["improved"] == 0


def test_two_percent_of_noise_do_not_hide_ten_percent() -> None:
    assert verdicts(0.02, slower=1.1)["regressed"] >= 0.95 * RESAMPLINGS
    assert verdicts(0.02, slower=1 / 1.1)["improved"] >= 0.95 * RESAMPLINGS


@pytest.mark.parametrize("sd", [0.06, 0.1, 0.2])
def test_noise_makes_verdicts_inconclusive_and_not_wrong(sd: float) -> None:
    same, slower = verdicts(sd), verdicts(sd, slower=1.1)
    assert same["inconclusive"] >= 0.95 * RESAMPLINGS
    assert slower["inconclusive"] > slower["regressed"]
    assert same["regressed"] == same["improved"] == slower["improved"] == 0
    assert slower["no change"] <= 0.01 * RESAMPLINGS


def test_an_effect_of_just_what_matters_is_seldom_called_a_regression() -> None:
    found = verdicts(0.02, slower=1 + statistics.EFFECT)
    assert found["regressed"] <= 0.05 * RESAMPLINGS
    assert found["no change"] <= 0.05 * RESAMPLINGS


def test_what_is_common_to_a_pair_does_not_count() -> None:
    """The machine was 30 % slower now and then, for both: that is what taking turns is for."""
    random = np.random.default_rng(3)
    common = np.exp(random.normal(0, 0.3, PAIRS))
    assert judge(common * runs(random, 0.01), common * runs(random, 0.01)).verdict == "no change"
    assert judge(common * runs(random, 0.01), common * runs(random, 0.01, slower=1.1)).verdict == "regressed"


def test_the_ratio_is_of_the_second_to_the_first() -> None:
    found = judge([10.0] * PAIRS, [12.0] * PAIRS)
    assert (found.verdict, found.pairs, found.spread) == ("regressed", PAIRS, 0)
    assert [found.ratio, found.low, found.high] == pytest.approx([1.2] * 3)


def test_more_is_better_for_throughput() -> None:
    assert judge([10.0] * PAIRS, [12.0] * PAIRS, higher_is_better=True).verdict == "improved"
    assert judge([12.0] * PAIRS, [10.0] * PAIRS, higher_is_better=True).verdict == "regressed"


def test_the_effect_is_what_is_asked_for() -> None:
    assert judge([10.0] * PAIRS, [12.0] * PAIRS, effect=0.25).verdict == "no change"


def test_fewer_than_eight_pairs_decide_nothing() -> None:
    found = judge([10.0] * (PAIRS - 1), [20.0] * (PAIRS - 1))
    assert (found.verdict, found.reason) == ("inconclusive", "7 pairs of runs: 8 are needed")
    assert found.ratio == pytest.approx(2)
    assert (found.low, found.high) == (None, None)


def test_no_pairs_are_not_measured() -> None:
    assert judge([], []).verdict == "not measured"
    assert judge_shares([], [], margin=0.01).verdict == "not measured"


@pytest.mark.parametrize("bad", [math.inf, math.nan, 0.0])
def test_a_run_without_a_figure_decides_nothing(bad: float) -> None:
    assert judge([1.0] * PAIRS, [1.0] * (PAIRS - 1) + [bad]).verdict == "inconclusive"


def test_sides_of_different_lengths_are_no_pairs() -> None:
    with pytest.raises(ValueError, match="8 runs cannot be paired with 9"):
        judge([1.0] * 8, [1.0] * 9)
    with pytest.raises(ValueError, match="paired"):
        judge_shares([1.0] * 8, [1.0] * 9, margin=0.01)


def test_the_same_runs_get_the_same_interval() -> None:
    random = np.random.default_rng(5)
    a, b = runs(random, 0.05), runs(random, 0.05)
    statistics._weights.cache_clear()  # pyright: ignore[reportPrivateUsage]
    first = judge(a, b)
    statistics._weights.cache_clear()  # pyright: ignore[reportPrivateUsage]
    assert judge(a, b) == first
    assert judge(a, b, seed=1) != first


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [(0.99, 0.90, "regressed"), (0.90, 0.99, "improved"), (0.995, 0.99, "no change")],
)
def test_a_share_is_judged_by_its_difference(before: float, after: float, verdict: Verdict) -> None:
    found = judge_shares([before] * PAIRS, [after] * PAIRS, margin=0.01)
    assert (found.verdict, found.ratio) == (verdict, pytest.approx(after - before))


# Intervals


@pytest.mark.parametrize("many", [8, 12, 30])
def test_an_interval_holds_as_often_as_it_says(many: int) -> None:
    """Of 1,000 intervals of 95 %, 930 to 970 hold but for one case in 100."""
    random = np.random.default_rng(many)
    bounds = [interval(random.normal(0, 1, many), 0.95) for _ in range(1_000)]
    assert 930 <= sum(low <= 0 <= high for low, high in bounds) <= 970


def test_more_confidence_is_a_wider_interval() -> None:
    values = np.random.default_rng(1).normal(0, 1, 10)
    wide, narrow = interval(values, 0.99), interval(values, 0.8)
    assert wide[0] < narrow[0] < values.mean() < narrow[1] < wide[1]


# Percentiles


@pytest.mark.parametrize(("q", "many"), [(50, 20), (95, 200), (99, 1_000), (99.9, 10_000)])
def test_a_percentile_needs_ten_samples_beyond_it(q: float, many: int) -> None:
    assert needed(q) == many
    assert percentile(range(many - 1), q) is None
    assert percentile(range(many), q) is not None


def test_a_percentile_is_a_sample() -> None:
    samples: list[Any] = [1.0] * 190 + [5.0] * 10
    assert percentile(samples, 50) == 1.0
    assert percentile([*range(1, 1_001)], 95) == 951


def test_what_never_ended_takes_for_ever() -> None:
    samples = [1.0] * 180 + [math.inf] * 20
    assert percentile(samples, 50) == 1.0
    assert percentile(samples, 95) == math.inf


def test_pooled_runs_have_as_many_samples_as_the_least_of_them() -> None:
    assert percentile(range(2_000), 99, least=999) is None


# Equal recall


def points(*pairs: tuple[float, float]) -> list[Point]:
    return [Point(setting=f"ef {place}", recall=recall, value=value) for place, (recall, value) in enumerate(pairs)]


def test_a_value_between_two_settings_is_interpolated() -> None:
    found = at_recall(points((0.8, 1.0), (1.0, 4.0)), 0.9)
    assert (found.value, found.kind, found.between) == (pytest.approx(2.0), "interpolated", ("ef 0", "ef 1"))


def test_a_setting_that_is_beaten_does_not_count() -> None:
    curve = points((0.8, 1.0), (0.9, 9.0), (1.0, 4.0))
    assert at_recall(curve, 0.9).value == pytest.approx(2.0)
    assert [point.setting for point in frontier(curve)] == ["ef 0", "ef 2"]


def test_of_throughput_more_is_better() -> None:
    curve = points((0.8, 4_000.0), (0.9, 100.0), (1.0, 1_000.0))
    assert at_recall(curve, 0.9, higher_is_better=True).value == pytest.approx(2_000.0)


def test_below_the_curve_its_first_setting_is_a_bound() -> None:
    found = at_recall(points((0.97, 3.0), (0.99, 5.0)), 0.9)
    assert (found.value, found.kind, found.between) == (3.0, "bound", ("ef 0",))


def test_a_setting_of_just_that_recall_is_no_bound() -> None:
    assert at_recall(points((0.9, 3.0)), 0.9).kind == "interpolated"


def test_a_recall_beyond_the_curve_is_not_reached() -> None:
    assert at_recall(points((0.9, 3.0)), 0.95).value is None
    assert at_recall([], 0.9).kind == "not reached"


@pytest.mark.parametrize("bad", [(0.9, 0.0), (0.9, math.inf), (1.1, 1.0), (math.nan, 1.0)])
def test_what_is_no_point_of_a_curve_is_refused(bad: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="ef 0 is no point"):
        frontier(points(bad))
