"""Verdicts on recorded samples of a real engine: steady ones are decided, noisy ones are not, none is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from memassay.benchmarks import bundle
from memassay.benchmarks.bundle import Bundle
from memassay.benchmarks.compare import compare, read
from memassay.benchmarks.comparison import Comparison
from memassay.benchmarks.samples import TIMES
from memassay.benchmarks.statistics import PAIRS, Judgement, Verdict, judge, percentile
from memassay.harness.cli import app
from memassay.harness.exits import Exit
from numpy.typing import NDArray
from typer.testing import CliRunner

RECORDED = Path(__file__).parent / "recorded" / "libsql.json"
"""16 rounds of one workload on a busy machine, its closed loop steady, its open loop not."""


@pytest.fixture(scope="module")
def recorded() -> Bundle:
    return bundle.read(RECORDED)


def medians(recorded: Bundle, phase: str, q: float) -> NDArray[np.float64]:
    found = [percentile(block.response_ns, q) for block in recorded.blocks if block.phase == phase]
    assert None not in found
    return np.array(found, np.float64)


def resampled(figures: NDArray[np.float64], slower: float = 1.0) -> Counter[Verdict]:
    """Verdicts on 100 pairs of sides, each of rounds drawn from all that were recorded."""
    random = np.random.default_rng(0)
    return Counter(
        judge(random.choice(figures, PAIRS), slower * random.choice(figures, PAIRS)).verdict for _ in range(100)
    )


@pytest.mark.parametrize("phase", ["closed", "open"])
@pytest.mark.parametrize("q", [50, 95])
def test_recorded_rounds_never_regress_against_themselves(recorded: Bundle, phase: str, q: float) -> None:
    assert resampled(medians(recorded, phase, q))["regressed"] == 0


def test_recorded_rounds_of_two_percent_are_decided(recorded: Bundle) -> None:
    figures = medians(recorded, "closed", 50)
    assert 0.01 < np.log(figures).std(ddof=1) <= 0.02
    assert resampled(figures)["no change"] >= 95
    assert resampled(figures, slower=1.1)["regressed"] >= 95


@pytest.mark.parametrize(("phase", "q"), [("closed", 95), ("open", 50), ("open", 95)])
def test_recorded_rounds_that_are_noisier_are_inconclusive(recorded: Bundle, phase: str, q: float) -> None:
    figures = medians(recorded, phase, q)
    assert np.log(figures).std(ddof=1) > 0.3
    assert resampled(figures)["inconclusive"] >= 95
    assert resampled(figures, slower=1.1)["inconclusive"] >= 95


def half(recorded: Bundle, rounds: Sequence[int], slower: float = 1.0) -> Bundle:
    """These rounds of what was recorded, as a run of their own."""
    blocks = [
        msgspec.structs.replace(
            block,
            round=place,
            **{name: (getattr(block, name) * slower).astype(np.int64) for name in TIMES},
        )
        for place, number in enumerate(rounds, 1)
        for block in recorded.blocks
        if block.round == number
    ]
    many = len(rounds)
    return Bundle(
        msgspec.structs.replace(recorded.manifest, finished={"libsql": many}, rounds_done=many), tuple(blocks)
    )


@pytest.fixture
def halves(recorded: Bundle, tmp_path: Path) -> Callable[..., tuple[Path, Path]]:
    """The odd and the even rounds as two files, the second with all times multiplied."""

    def write(slower: float = 1.0) -> tuple[Path, Path]:
        paths = tmp_path / "a.json", tmp_path / "b.json"
        for path, first, factor in zip(paths, (1, 2), (1.0, slower), strict=True):
            own = half(recorded, range(first, 17, 2), factor)
            bundle.write(path, own.manifest, own.blocks)
        return paths

    return write


# The command


def judged(found: Comparison, metric: str) -> Judgement:
    """Of its median."""
    (change,) = [change for change in found.changes if (change.metric, change.percentile) == (metric, 50)]
    return change.judgement


def test_the_command_tells_a_regression(halves: Callable[..., tuple[Path, Path]], tmp_path: Path) -> None:
    a, b = halves(1.15)
    json_file, markdown_file = tmp_path / "out.json", tmp_path / "out.md"
    done = CliRunner().invoke(
        app, ["compare", str(a), str(b), "--json", str(json_file), "--markdown", str(markdown_file)]
    )
    assert done.exit_code == Exit.REGRESSION
    assert "p50 service" in done.output
    found = msgspec.json.decode(json_file.read_bytes(), type=Comparison)
    assert (judged(found, "service").verdict, judged(found, "service").pairs) == ("regressed", 8)
    assert markdown_file.read_text().startswith("## ")
    assert "| libsql | newest | p50 service |" in markdown_file.read_text()


def test_the_command_tells_that_nothing_changed(halves: Callable[..., tuple[Path, Path]], tmp_path: Path) -> None:
    a, b = halves()
    found = compare(read(a), read(b))
    assert judged(found, "service").verdict == "no change"
    assert judged(found, "response").verdict == "inconclusive"
    done = CliRunner().invoke(app, ["compare", str(a), str(b)])
    assert done.exit_code == Exit.INCONCLUSIVE
    assert "p50 service" not in done.output
    assert "p50 service" in CliRunner().invoke(app, ["compare", str(a), str(b), "--all"]).output
