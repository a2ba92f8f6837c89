"""From samples to figures: what is pooled, what is missing, and what is said to be saturated."""

from __future__ import annotations

from collections import Counter

import pytest
from memassay.benchmarks.artefact import Row
from memassay.benchmarks.samples import Phase, Record, Samples, gather
from memassay.benchmarks.summary import Aside, Warmth, rows

MS = 1_000_000


def block(
    *milliseconds: int, outcome: str = "ok", round: int = 1, phase: Phase = "closed", due: int = 0, right: int = 0
) -> Samples:
    records = [Record(n, 0, 0, 0, took * MS, outcome, due, right, right) for n, took in enumerate(milliseconds)]  # type: ignore[arg-type]
    return gather(records, contender="a", workload="w", phase=phase, concurrency=1, round=round)


def row(*blocks: Samples, percentiles: tuple[float, ...] = (50.0, 99.0)) -> Row:
    (only,) = rows(blocks, {}, {}, percentiles)
    return only


def test_percentiles_are_of_the_samples_of_all_rounds_and_no_mean_of_percentiles() -> None:
    pooled = row(block(*[1] * 30), block(*[9] * 90, round=2))
    assert pooled.response_ms["50"] == 9.0
    assert pooled.rounds == 2
    assert pooled.samples == 120


def test_a_percentile_needs_enough_samples_in_every_round() -> None:
    assert row(block(*[1] * 1_000), block(*[1] * 999, round=2)).response_ms["99"] is None
    assert row(block(*[1] * 1_000), block(*[1] * 1_000, round=2)).response_ms["99"] == 1.0


def test_what_failed_is_slower_than_everything() -> None:
    records = [Record(n, 0, 0, 0, MS, "ok" if n < 60 else "failed") for n in range(100)]
    samples = gather(records, contender="a", workload="w", phase="closed", concurrency=1, round=1)
    assert row(samples).response_ms["50"] == 1.0
    assert row(samples, percentiles=(75.0,)).response_ms["75"] is None
    assert row(samples).failed == 40


def test_throughput_counts_what_was_answered_and_is_the_median_of_rounds() -> None:
    fast, slow, slower = block(500, 1_000), block(1_000, 2_000, round=2), block(2_000, 4_000, round=3)
    assert row(fast, slow, slower).throughput == 1.0
    assert row(block(1_000, outcome="failed")).throughput == 0.0


def test_recall_is_over_answers_that_have_rows_due() -> None:
    found = row(block(*[1] * 9, due=10, right=10), block(1, due=10, right=0, round=2), block(1, round=3))
    assert (found.recall, found.recall_min) == (0.9, 0.0)
    assert row(block(1)).recall is None


def test_outcomes_are_counted_one_by_one() -> None:
    found = row(block(1, 1), block(1, outcome="short", round=2), block(1, outcome="wrong", round=3))
    assert (found.ok, found.short, found.wrong, found.failed) == (2, 1, 1, 0)


def test_what_was_discarded_has_no_row_and_is_told() -> None:
    assert rows([block(1, phase="warmup")], {}, {}, (50.0,)) == []
    (told,) = rows([block(1)], {}, {("a", "w"): Warmth(7, stationary=False)}, (50.0,))
    assert (told.discarded, told.stationary) == (7, False)


def test_errors_and_the_cpu_of_the_harness_are_told() -> None:
    asides = {("a", "w", "closed", 0.0, 0.0): Aside(Counter({"OSError: gone": 2}), elapsed=4 * MS, cpu=MS)}
    (told,) = rows([block(1)], asides, {}, (50.0,))  # type: ignore[arg-type]
    assert (told.errors, told.harness_cpu) == ({"OSError: gone": 2}, 0.25)


def opened(started: list[int], outcome: str = "ok") -> Samples:
    """One operation due every millisecond."""
    records = [Record(n, n * MS, n * MS, at * MS, at * MS + 1, outcome) for n, at in enumerate(started)]  # type: ignore[arg-type]
    return gather(records, contender="a", workload="w", phase="open", concurrency=1, round=1, rate=1_000.0)


@pytest.mark.parametrize(
    ("samples", "saturated"),
    [
        (opened([*range(100)]), False),
        (opened([n * 2 for n in range(100)]), True),
        (opened([0, 1, 2, 9]), False),  # one that waited is no backlog
        (opened([*range(99), 200], outcome="unsent"), True),
        (block(1, 2, 3), False),  # closed loop cannot be
    ],
)
def test_a_store_that_falls_behind_its_schedule_is_saturated(samples: Samples, saturated: bool) -> None:
    assert row(samples).saturated is saturated
