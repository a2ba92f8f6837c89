"""Two benchmarks compared: what is refused, how runs are paired, verdicts on recorded samples, what is shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import jsonschema
import msgspec
import numpy as np
import pytest
from memassay.benchmarks import artefact, bundle, comparison_shown
from memassay.benchmarks.bundle import Bundle
from memassay.benchmarks.command_compare import percent
from memassay.benchmarks.compare import Given, compare, read
from memassay.benchmarks.comparison import Change, Comparison, Metric
from memassay.benchmarks.samples import OUTCOMES, Samples
from memassay.benchmarks.statistics import PAIRS, Judgement, Verdict
from memassay.harness.cli import app
from memassay.harness.exits import Exit, UsageProblem
from typer.testing import CliRunner

RECORDED = Path(__file__).parent / "recorded" / "libsql.json"
"""16 rounds of one workload on a busy machine, its closed loop steady, its open loop not."""

Blocks = Callable[[int], Sequence[Samples]]
"""The samples of a round, of its number."""

PLACE = {"contender": "acme", "workload": "newest"}


@pytest.fixture(scope="module")
def recorded() -> Bundle:
    return bundle.read(RECORDED)


# Runs made up


def block(
    number: int,
    *,
    phase: str = "closed",
    factor: float = 1.0,
    rate: float = 0.0,
    share: float = 0.0,
    many: int = 200,
    concurrency: int = 1,
    right: int = 10,
    outcomes: Sequence[int] = (0,),
    **place: str,
) -> Samples:
    """Operations one after the other, of 1 ms on average, times the factor."""
    took = (np.linspace(0.5, 1.5, many) * 1e6 * factor).astype(np.int64)
    ended = took.cumsum()
    began = ended - took
    filled: Any = {name: np.full(many, value, np.int32) for name, value in (("due", 10), ("right", right))}
    return Samples(
        **{**PLACE, **place},
        phase=phase,  # pyright: ignore[reportArgumentType]
        rate=rate,
        share=share,
        concurrency=concurrency,
        round=number,
        intended_ns=began,
        dispatched_ns=began,
        started_ns=began,
        ended_ns=ended,
        outcome=np.resize(np.array(outcomes, np.int8), many),
        returned=np.full(many, 10, np.int32),
        **filled,
    )


class Run(Protocol):
    """Makes a run: see the fixture."""

    def __call__(
        self, blocks: Blocks | None = None, rounds: int = PAIRS, slower: float = 1.0, **fields: Any
    ) -> Given: ...


@pytest.fixture
def run(recorded: Bundle) -> Run:
    """A run of so many rounds: `run(slower=1.2)`; `blocks` makes those of a round, of its number."""
    counted = iter(range(1_000))

    def make(
        blocks: Callable[[int], Sequence[Samples]] | None = None,
        rounds: int = PAIRS,
        slower: float = 1.0,
        **fields: Any,
    ) -> Given:
        number = next(counted)
        made: Blocks = blocks or (lambda round: [block(round, factor=slower * (1 + round / 1_000))])
        manifest = msgspec.structs.replace(
            recorded.manifest,
            **{
                "started": f"2026-01-01T{number:02}:00:00+00:00",
                "finished": {"acme": rounds},
                "rounds_done": rounds,
                "engines": [artefact.Engine(name="acme", kind="store", engine="1")],
                "peaks": [],
                "rows": [],
                "samples": artefact.SampleFile(name="x", sha256=str(number), samples=0),
                **fields,
            },
        )
        return Given(
            Path(f"{number}.json"), Bundle(manifest, tuple(b for round in range(1, rounds + 1) for b in made(round)))
        )

    return make


def of(found: Comparison, metric: Metric, q: float | None = None) -> Change:
    (change,) = [change for change in found.changes if (change.metric, change.percentile) == (metric, q)]
    return change


def verdict(found: Comparison, metric: Metric, q: float | None = None) -> Verdict:
    return of(found, metric, q).judgement.verdict


# What is refused


def test_a_run_is_not_compared_with_itself(run: Run) -> None:
    one = run()
    with pytest.raises(UsageProblem, match="the same run is given twice"):
        compare([one], [one])


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"k": 11}, "k is 5 in one and 11 in another"),
        ({"seed": 4}, "the seed is 3 in one and 4 in another"),
        ({"payload": "ids"}, "the payload is "),
        ({"consistency": "none"}, "the consistency is "),
    ],
)
def test_other_questions_are_refused(run: Run, fields: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageProblem, match=told):
        compare([run()], [run(**fields)])


def test_other_data_is_refused(run: Run, recorded: Bundle) -> None:
    other = msgspec.structs.replace(recorded.manifest.data, hash="another")
    with pytest.raises(UsageProblem, match=r"the data set \(hash\) is"):
        compare([run()], [run(data=other)])


def test_the_same_data_from_another_place_is_no_other_data(run: Run, recorded: Bundle) -> None:
    moved = msgspec.structs.replace(recorded.manifest.data, spec="hdf5:elsewhere")
    assert compare([run()], [run(data=moved)]).changes


def test_another_load_is_refused(run: Run, recorded: Bundle) -> None:
    other = msgspec.structs.replace(recorded.manifest.profile, open_seconds=9.0)
    with pytest.raises(UsageProblem, match=r"the profile \(open_seconds\) is"):
        compare([run()], [run(profile=other)])


def test_another_machine_is_refused_unless_told(run: Run, recorded: Bundle) -> None:
    other = run(machine={**recorded.manifest.machine, "cpu": "another"})
    with pytest.raises(UsageProblem, match="different machines: cpu") as raised:
        compare([run()], [other])
    assert "--across-machines" in raised.value.hint
    found = compare([run()], [other], across_machines=True)
    assert "the machines were not compared: what changed may be theirs" in found.notes


def test_two_machines_of_a_kind_are_two(run: Run, recorded: Bundle) -> None:
    other = run(machine={**recorded.manifest.machine, "id": "1"})
    with pytest.raises(UsageProblem, match="another machine of the same kind"):
        compare([run()], [other])


def test_a_run_that_does_not_know_its_machine_is_refused(run: Run) -> None:
    with pytest.raises(UsageProblem, match="does not say on which machine"):
        compare([run()], [run(machine={})])


def test_a_machine_that_was_slower_decides_nothing(run: Run, recorded: Bundle) -> None:
    kept = recorded.manifest.machine
    slow = run(machine={**kept, "hash_ns": int(kept["hash_ns"] * 1.2)}, slower=1.3)
    found = compare([run()], [slow])
    assert {change.judgement.verdict for change in found.changes} == {"inconclusive"}
    assert "took 20% longer" in of(found, "service", 50).judgement.reason
    assert found.exit == Exit.INCONCLUSIVE


# Verdicts


def test_a_slower_engine_regressed(run: Run) -> None:
    found = compare([run()], [run(slower=1.2)])
    assert [verdict(found, "service", q) for q in (50, 95)] == ["regressed", "regressed"]
    assert verdict(found, "throughput") == "regressed"
    assert of(found, "service", 50).judgement.ratio == pytest.approx(1.2, rel=1e-3)
    assert of(found, "throughput").judgement.ratio == pytest.approx(1 / 1.2, rel=1e-3)
    assert found.exit == Exit.REGRESSION


def test_a_faster_engine_improved(run: Run) -> None:
    found = compare([run(slower=1.2)], [run()])
    assert {verdict(found, "service", 50), verdict(found, "throughput")} == {"improved"}
    assert found.exit == Exit.CONFORMS


def test_an_engine_as_fast_as_before_did_not_change(run: Run) -> None:
    found = compare([run()], [run(slower=1.01)])
    assert {change.judgement.verdict for change in found.changes} == {"no change"}
    assert found.exit == Exit.CONFORMS


def test_the_effect_that_matters_is_chosen(run: Run) -> None:
    assert verdict(compare([run()], [run(slower=1.2)], effect=0.5), "service", 50) == "no change"


def test_three_rounds_decide_nothing(run: Run) -> None:
    found = compare([run(rounds=3)], [run(rounds=3, slower=2)])
    assert of(found, "service", 50).judgement.reason == "3 pairs of runs: 8 are needed"
    assert found.exit == Exit.INCONCLUSIVE


def test_only_whole_rounds_count(run: Run) -> None:
    found = compare([run(rounds=9)], [run(rounds=9, finished={"acme": 8}, partial=True)])
    assert of(found, "service", 50).judgement.pairs == 8
    assert "B: partial, as it was interrupted: only whole rounds count" in found.notes


def test_rounds_are_paired_by_their_number(run: Run) -> None:
    """What slowed down both in a round is no change, and the same rounds in another order would be noise."""
    slow = [1, 2, 1, 3, 1, 2, 1, 3]
    a = run(lambda round: [block(round, factor=slow[round - 1])])
    b = run(lambda round: [block(round, factor=slow[round - 1] * 1.01)])
    other = run(lambda round: [block(round, factor=slow[-round] * 1.01)])
    assert verdict(compare([a], [b]), "service", 50) == "no change"
    assert verdict(compare([a], [other]), "service", 50) == "inconclusive"


def test_too_few_samples_have_no_p95(run: Run) -> None:
    few = [run(lambda round: [block(round, many=199)]) for _ in "ab"]
    found = compare([few[0]], [few[1]])
    assert of(found, "service", 95).judgement == Judgement(
        verdict="not measured", reason="a p95 needs 200 samples in every run"
    )
    assert verdict(found, "service", 50) == "no change"
    assert found.exit == Exit.INCONCLUSIVE


def test_operations_that_fail_take_for_ever(run: Run) -> None:
    failing = OUTCOMES.index("failed")
    found = compare([run()], [run(lambda round: [block(round, outcomes=(0, failing, failing))])])
    assert of(found, "service", 50).after is None
    assert verdict(found, "service", 50) == "inconclusive"
    assert verdict(found, "ok") == "regressed"


@pytest.mark.parametrize(("right", "faster"), [(9, "inconclusive"), (10, "improved")])
def test_faster_with_worse_answers_is_a_trade(run: Run, right: int, faster: Verdict) -> None:
    found = compare([run()], [run(lambda round: [block(round, factor=0.5, right=right)])])
    assert verdict(found, "service", 50) == verdict(found, "throughput") == faster
    assert verdict(found, "recall") == ("regressed" if right == 9 else "no change")


def test_slower_with_worse_answers_is_a_regression(run: Run) -> None:
    found = compare([run()], [run(lambda round: [block(round, factor=2, right=9)])])
    assert verdict(found, "service", 50) == "regressed"


def open_loop(rate: float, factor: float = 1.0, share: float = 0.5) -> Callable[[int], list[Samples]]:
    return lambda round: [block(round, phase="open", rate=rate, share=share, factor=factor)]


def test_latency_is_compared_at_one_rate(run: Run) -> None:
    same = compare([run(open_loop(1_000))], [run(open_loop(1_005, 1.2))])
    assert verdict(same, "response", 50) == "regressed"
    other = compare([run(open_loop(1_000))], [run(open_loop(1_100, 1.2))])
    assert of(other, "response", 50).judgement.reason == "not the same load: from 1,000 to 1,100 arrivals/s"


def test_rates_that_were_asked_for_are_apart(run: Run) -> None:
    def both(round: int) -> list[Samples]:
        return [*open_loop(100, share=0)(round), *open_loop(200, share=0)(round)]

    found = compare([run(both)], [run(both)])
    names = [change.name for change in found.changes]
    assert names == ["p50 response at 100/s", "p95 response at 100/s", "p50 response at 200/s", "p95 response at 200/s",
                     "recall", "ok"]  # fmt: skip
    assert {change.judgement.verdict for change in found.changes} == {"no change"}


def test_times_of_other_concurrency_are_not_compared_and_peaks_are(run: Run) -> None:
    found = compare([run()], [run(lambda round: [block(round, concurrency=4)])])
    assert of(found, "service", 50).judgement.reason == "not the same load: from 1 to 4 clients"
    assert verdict(found, "throughput") == "no change"


def test_a_backlog_on_both_sides_is_not_compared(run: Run) -> None:
    unsent = (0, OUTCOMES.index("unsent"))

    def behind(round: int) -> list[Samples]:
        return [block(round, phase="open", rate=1_000, share=0.9, outcomes=unsent)]

    found = compare([run(behind)], [run(behind)])
    assert of(found, "response", 50).judgement.reason == "saturated: the times are of a backlog"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "B has none"),
        ({"unsupported": {"acme": {"newest": "needs storage"}}}, "B: needs storage"),
        ({"engines": [artefact.Engine(name="acme", kind="store", error="it died")]}, "B: it died"),
        (
            {
                "gates": [
                    artefact.Gate(contender="acme", workload="newest", clauses={"ORD-1": "fail"}, source="a short run")
                ]
            },
            "B has no number: ORD-1 fail",
        ),
    ],
)
def test_what_one_side_lacks_is_not_measured_and_told_why(run: Run, fields: dict[str, Any], reason: str) -> None:
    found = compare([run()], [run(lambda round: [], **fields)])
    assert {(change.judgement.verdict, change.judgement.reason) for change in found.changes} == {
        ("not measured", reason)
    }
    assert of(found, "service", 50).before is not None
    assert of(found, "service", 50).after is None
    assert found.exit == Exit.INCONCLUSIVE


def test_contenders_and_workloads_can_be_chosen(run: Run) -> None:
    def both(round: int) -> list[Samples]:
        return [block(round), block(round, contender="other"), block(round, workload="save")]

    a, b = (run(both, finished={"acme": 8, "other": 8}) for _ in "ab")
    found = compare([a], [b], contenders=["acme"], workloads=["save"])
    assert {(change.contender, change.workload) for change in found.changes} == {("acme", "save")}
    with pytest.raises(UsageProblem, match="neither run has the workload 'sav'"):
        compare([a], [b], workloads=["sav"])


def test_floors_are_controls(run: Run) -> None:
    floor = [artefact.Engine(name="acme", kind="floor")]
    a, b = run(engines=floor), run(engines=floor, slower=1.2)
    found = compare([a], [b])
    assert found.changes == []
    assert {change.contender for change in found.controls} == {"acme"}
    assert "acme, a floor, regressed (newest, p50 service)" in found.notes
    assert found.exit == Exit.INCONCLUSIVE
    assert compare([a], [b], contenders=["acme"]).exit == Exit.REGRESSION


# Several runs a side


def test_runs_are_what_is_compared_where_there_are_several(run: Run) -> None:
    sides: tuple[list[Given], list[Given]] = ([], [])
    for _ in range(PAIRS):
        for side, slower in zip(sides, (1.0, 1.2), strict=True):
            side.append(run(rounds=2, slower=slower))
    found = compare(*sides)
    assert (found.unit, of(found, "service", 50).judgement.pairs) == ("run", PAIRS)
    assert verdict(found, "service", 50) == "regressed"
    assert not any("in turn" in note for note in found.notes)


def test_runs_that_did_not_take_turns_are_told(run: Run) -> None:
    a, b = [[run() for _ in range(PAIRS)] for _ in "ab"]
    assert any("not measured in turn" in note for note in compare(a, b).notes)


def test_what_differs_is_told(run: Run) -> None:
    engine = artefact.Engine(name="acme", kind="store", engine="2", settings={"fsync": "off"})
    found = compare([run()], [run(engines=[engine], memassay="9")])
    assert found.differences[0].startswith("memassay: ")
    assert found.differences[1:] == ["acme, engine: 1 and 2", 'acme, settings: {} and {"fsync":"off"}']


# The command


def test_a_comparison_obeys_the_schema_that_the_command_prints(run: Run) -> None:
    printed = CliRunner().invoke(app, ["schema", "compare"])
    found = compare([run()], [run(slower=1.2)])
    jsonschema.validate(json.loads(msgspec.json.encode(found)), json.loads(printed.output))


@pytest.mark.parametrize("text", ["0", "0%", "-5%", "101%", "five", "nan", ""])
def test_an_effect_that_is_no_percentage_is_refused(text: str) -> None:
    with pytest.raises(UsageProblem, match="--effect"):
        percent(text)


def test_an_effect_is_a_percentage_or_a_part() -> None:
    assert percent("5%") == percent("0.05") == 0.05


def test_a_usage_problem_is_a_line(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["compare", str(tmp_path / "none.json"), str(tmp_path)])
    assert done.exit_code == Exit.USAGE
    assert "cannot be read" in done.output


def test_a_folder_without_a_bundle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(UsageProblem, match="no bundle"):
        read(tmp_path)


def test_a_folder_is_its_bundles_by_when_they_began(recorded: Bundle, tmp_path: Path) -> None:
    for name, started in (("x", "2026-01-02"), ("y", "2026-01-01")):
        manifest = msgspec.structs.replace(recorded.manifest, started=started)
        bundle.write(tmp_path / f"{name}.json", manifest, recorded.blocks[:1])
    (tmp_path / "other.json").write_text("[1]")
    assert [given.path.name for given in read(tmp_path)] == ["y.json", "x.json"]


def test_what_is_shown_begins_with_the_worst(run: Run) -> None:
    def two(factor: float) -> Callable[[int], list[Samples]]:
        return lambda round: [block(round), block(round, workload="save", factor=factor)]

    document = comparison_shown.markdown(compare([run(two(1))], [run(two(2))])).decode()
    rows = [line for line in document.splitlines() if line.startswith("| acme")]
    assert rows[0].startswith("| acme | save | peak ")
    assert rows[0].endswith("| regressed |  |")
    assert "+100.0%" in document
