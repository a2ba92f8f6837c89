"""`memassay bench` from end to end on small stores: what is measured, gated, kept, resumed and refused."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bench_fakes
import msgspec
import pytest
from memassay.backends import minilm
from memassay.backends.provision.homes import CACHE_VARIABLE
from memassay.benchmarks import bundle, by_hand, command_bench, freshness, measure, profiles
from memassay.benchmarks.bench import _in_turn  # pyright: ignore[reportPrivateUsage]
from memassay.benchmarks.bundle import Bundle
from memassay.benchmarks.cluster import local
from memassay.benchmarks.entrants import Entrant
from memassay.benchmarks.samples import Samples
from memassay.benchmarks.scene import Scene, Series
from memassay.benchmarks.workloads import WORKLOADS
from memassay.harness import artefact
from memassay.harness.artefact import BackendResult, ClauseResult, Result, Run, Verdict
from memassay.harness.cli import app
from memassay.harness.engine import start
from memassay.spec.clauses import CLAUSES
from typer.testing import CliRunner

TINY = msgspec.structs.replace(
    profiles.QUICK,
    name="tiny",
    data="mixture:1k×8",
    memory="agent:100",
    workloads=("newest", "vector"),
    concurrency=(1, 2),
    rounds=2,
    warmup_seconds=0.0,
    peak_seconds=0.02,
    closed_seconds=0.02,
    open_seconds=0.05,
    open_most_seconds=0.1,
    open_samples=10,
)
Bench = Callable[..., Any]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> Bench:
    """Run the command with a profile that takes no time, writing to run.json."""
    monkeypatch.setattr(minilm, "missing", lambda: "the weights are not here")
    monkeypatch.setattr(measure, "WINDOW", 0.02)
    monkeypatch.setattr(measure, "MOST", 1_000)
    monkeypatch.setenv(CACHE_VARIABLE, str(cache))
    monkeypatch.setattr(command_bench, "PROFILES", {"tiny": TINY})
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object, json: bool = True) -> Any:
        given = ["bench", *map(str, arguments), "--profile", "tiny", *(["--json", "run.json"] if json else [])]
        return CliRunner().invoke(app, given)

    return run


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def written() -> Bundle:
    return bundle.read(Path("run.json"))


def passing(name: str, **others: Verdict) -> Path:
    """A result of `memassay verify` in which every clause passes, but for these."""
    verdicts: dict[str, Verdict] = dict.fromkeys(CLAUSES, "pass")
    verdicts |= {clause.replace("_", "-"): verdict for clause, verdict in others.items()}
    result = Result(
        memassay="0",
        python="3",
        hypothesis="6",
        corpus=artefact.Corpus(seed=0, level="core", examples=None, programs=1, hash=""),
        selected=[*CLAUSES],
        time_zone="UTC",
        interrupted=False,
        backends=[
            BackendResult(
                name=name,
                engine=bench_fakes.Plain().version(""),
                clauses={clause: ClauseResult(verdict=verdict) for clause, verdict in verdicts.items()},
            )
        ],
        run=Run(started="", seconds=0.0, seconds_by_backend={}, platform=""),
    )
    Path("verdicts.json").write_bytes(artefact.encode(result))
    return Path("verdicts.json")


def phases(name: str, found: Bundle) -> set[tuple[str, str]]:
    return {(row.workload, row.phase) for row in found.manifest.rows if row.contender == name}


EVERY_PHASE = {(workload, phase) for workload in ("newest", "vector") for phase in ("cold", "closed", "open")}


# A run


def test_the_floors_run_beside_every_store(bench: Bench) -> None:
    ran = bench("bench_fakes:Plain", "--results", passing("bench_fakes:Plain"))
    assert ran.exit_code == 0, ran.output
    found = written()
    for name in ("noop", "reference", "bench_fakes:Plain"):
        assert phases(name, found) == EVERY_PHASE
    assert found.manifest.rounds_done == 2
    assert not found.manifest.partial


def test_quality_is_judged_in_the_same_run(bench: Bench) -> None:
    assert bench("noop").exit_code == 0
    rows = written().manifest.rows
    assert {row.recall for row in rows if row.contender == "reference"} == {1.0}
    assert {row.recall for row in rows if row.contender == "noop"} == {None}


def test_every_operation_is_in_the_samples(bench: Bench) -> None:
    assert bench("noop").exit_code == 0
    found = written()
    for row in found.manifest.rows:
        own = [
            block
            for block in found.blocks
            if (block.contender, block.workload, block.phase) == (row.contender, row.workload, row.phase)
        ]
        assert sum(len(block) for block in own) == row.samples
        assert [block.round for block in own] == ([0] if row.phase == "cold" else [1, 2])


def test_what_was_stored_is_counted(bench: Bench) -> None:
    assert bench("reference").exit_code == 0
    (model,) = [engine for engine in written().manifest.engines if engine.name == "reference"]
    manifest = written().manifest
    assert model.acknowledged == model.visible == manifest.data.rows + manifest.data.messages
    assert model.rejected == 0


def test_the_open_loop_is_asked_at_shares_of_the_peak(bench: Bench) -> None:
    assert bench("noop").exit_code == 0
    manifest = written().manifest
    peak = next(peak for peak in manifest.peaks if (peak.contender, peak.workload) == ("reference", "vector"))
    (row,) = [
        row for row in manifest.rows if (row.contender, row.workload, row.phase) == ("reference", "vector", "open")
    ]
    assert row.share == 0.5
    assert row.rate == pytest.approx(peak.rate / 2)


def test_rates_of_an_earlier_run_can_be_asked_again(bench: Bench) -> None:
    assert bench("noop").exit_code == 0
    earlier = Path("run.json").rename("earlier.json")
    Path("run.parquet").unlink()
    assert bench("noop", "--peaks-of", earlier).exit_code == 0
    asked = [{row.rate for row in bundle.read_manifest(path).rows} for path in (earlier, Path("run.json"))]
    assert asked[0] == asked[1]


def test_a_rate_can_be_asked_for(bench: Bench) -> None:
    assert bench("noop", "--rate", 150, "--workload", "newest").exit_code == 0
    rates = {(row.share, row.rate) for row in written().manifest.rows if row.phase == "open"}
    assert (0.0, 150.0) in rates


def test_the_report_tells_the_figures(bench: Bench) -> None:
    shown = bench("noop", json=False)
    assert shown.exit_code == 0
    assert "closed loop: the peak" in shown.output
    assert "indicative" in shown.output
    assert not Path("run.json").exists()


def test_contenders_take_turns_at_being_first() -> None:
    class Named:
        def __init__(self, contender: str) -> None:
            self.contender: Any = contender
            self.workload = WORKLOADS["newest"]

    courses: Any = [Named(name) for name in "abc"]
    orders: list[Any] = [[course.contender for course in _in_turn(courses, number)] for number in range(3)]
    assert orders == [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]]


def test_truth_may_be_found_on_a_cluster(bench: Bench) -> None:
    with local(2) as cluster:
        ran = bench("noop", "--workload", "vector", "--data", "mixture:2k×8", "--cluster", cluster.address)
    assert ran.exit_code == 0, ran.output
    assert {row.recall for row in written().manifest.rows if row.contender == "reference"} == {1.0}


def test_load_may_come_from_workers(bench: Bench, tmp_path: Path) -> None:
    with local(2) as cluster:
        arguments = ("--cluster", cluster.address, "--load-workers", 2, "--url", f"libsql={tmp_path / 'store.db'}")
        ran = bench("baseline:libsql", *arguments)
    assert ran.exit_code == 0, ran.output
    manifest = written().manifest
    assert manifest.profile.load_workers == 2
    assert manifest.notes[0].startswith("load from 2 workers")
    assert {row.recall for row in manifest.rows if (row.contender, row.workload) == ("baseline:libsql", "vector")} == {
        1.0
    }


# The gate


def test_a_store_whose_clauses_fail_has_no_number_and_the_row_names_the_clause(bench: Bench) -> None:
    ran = bench("bench_fakes:Plain", "--results", passing("bench_fakes:Plain", ORD_2="fail"))
    assert ran.exit_code == 0
    found = written()
    assert phases("bench_fakes:Plain", found) == {each for each in EVERY_PHASE if each[0] == "vector"}
    (closed,) = found.manifest.gates
    assert (closed.contender, closed.workload, closed.clauses) == ("bench_fakes:Plain", "newest", {"ORD-2": "fail"})
    assert "newest on bench_fakes:Plain: ORD-2 fail (verdicts.json)" in ran.output


def test_without_results_a_short_run_decides(bench: Bench) -> None:
    assert bench("bench_fakes:Plain", "--workload", "newest").exit_code == 0
    found = written()
    assert found.manifest.gates == []
    assert phases("bench_fakes:Plain", found) == {each for each in EVERY_PHASE if each[0] == "newest"}


def test_what_a_store_lacks_is_unsupported(bench: Bench) -> None:
    ran = bench("bench_fakes:Messages", "--results", passing("bench_fakes:Messages"))
    assert ran.exit_code == 0
    found = written()
    assert found.manifest.unsupported == {"bench_fakes:Messages": {"vector": "needs the capability vectors"}}
    assert phases("bench_fakes:Messages", found) == {each for each in EVERY_PHASE if each[0] == "newest"}
    assert "unsupported  vector on bench_fakes:Messages" in ran.output


# Baselines


@pytest.mark.parametrize("store", ["libsql", "faiss", "postgres"])
def test_what_was_written_by_hand_answers_as_the_adapter_does(
    store: str, scene: Scene, series: Series, engines: Any
) -> None:
    """All that a baseline is asked in a benchmark, on what the adapter has stored."""
    backend, url = engines.get(store)
    with start(store, backend, "auto", {store: url} if url else {}) as engine:
        entrant = Entrant(f"baseline:{store}", backend)
        with entrant.enter(engine, scene) as contender:
            own = [workload for workload in WORKLOADS.values() if not contender.lacks(workload)]
            contender.fill(own, None)
            (client,) = contender.clients(1)
            assert {"newest", "filtered", "include", "vector", "vector-aligned-1%", "save-100"} <= {w.name for w in own}
            for workload in own:
                calls = workload.stream(scene, series, 20, seed=0).calls[:20]
                send = client.bind(calls)
                judged = [call.expected.judge(contender.keep(call, send(n))) for n, call in enumerate(calls)]
                assert {each.outcome for each in judged} == {"ok"}, workload.name


@pytest.fixture
def series() -> Series:
    return Series()


def test_a_baseline_that_nobody_wrote_is_refused(bench: Bench) -> None:
    ran = bench("baseline:reference", json=False)
    assert ran.exit_code == 2
    assert "there is no baseline of 'reference'" in ran.output


def test_a_baseline_whose_answers_are_wrong_has_no_number(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:

    def keep(self: Any, call: Any, answer: Any) -> tuple[str, ...]:
        return ("never stored",)

    monkeypatch.setattr(by_hand.ByHand, "keep", keep)
    ran = bench("baseline:libsql", "--workload", "vector")
    assert ran.exit_code == 0
    (closed,) = written().manifest.gates
    assert (closed.contender, closed.workload) == ("baseline:libsql", "vector")
    assert closed.clauses == {"answers": "5 of the first 5 wrong"}
    assert phases("baseline:libsql", written()) == {("vector", "cold")}


# Stores that do not hold


def test_calls_that_fail_are_counted_and_told(bench: Bench) -> None:
    ran = bench("bench_fakes:Failing", "--workload", "newest", "--results", passing("bench_fakes:Failing"))
    rows = [row for row in written().manifest.rows if row.contender == "bench_fakes:Failing" and row.phase == "closed"]
    assert ran.exit_code == 0
    assert [row.failed for row in rows] == [sum(row.errors.values()) for row in rows]
    assert {error for row in rows for error in row.errors} == {"OSError: no route to the store"}
    assert all(0 < row.failed < row.samples for row in rows)
    assert "no route to the store" in ran.output


def test_a_store_that_loses_what_it_was_given_is_not_measured(bench: Bench) -> None:
    ran = bench("bench_fakes:Losing", "--workload", "vector", "--results", passing("bench_fakes:Losing"))
    assert ran.exit_code == 3
    found = written()
    assert phases("bench_fakes:Losing", found) == set()
    (lost,) = [engine for engine in found.manifest.engines if engine.name == "bench_fakes:Losing"]
    assert "1,000 were acknowledged" in lost.error
    assert "999 are there" in lost.error


def test_how_fresh_stores_are_is_measured_where_the_profile_says_so(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_bench, "PROFILES", {"tiny": msgspec.structs.replace(TINY, freshness=8)})
    ran = bench("bench_fakes:Plain", "--results", passing("bench_fakes:Plain"))
    assert ran.exit_code == 0, ran.output
    found = written().manifest.freshness
    assert {name: [(each.kind, each.visible) for each in kinds] for name, kinds in found.items()} == {
        "bench_fakes:Plain": [("messages", 8), ("vectors", 8)]
    }
    assert "there, by filtered search" in ran.output
    assert "bench_fakes:Plain, messages: 8 given, 8 acknowledged, 8 visible, 0 rejected" in ran.output


# Interrupted and resumed


@pytest.fixture
def interrupted(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bundle:
    """A run in whose second round Ctrl-C was pressed."""
    monkeypatch.setattr(bench_fakes.Plain, "calls", itertools.count())
    made = measure.Course.round

    def noted(course: Any, number: int) -> Any:
        if number == 2 and bench_fakes.Interrupted.at < 0 and course.contender.name == "bench_fakes:Interrupted":
            bench_fakes.Interrupted.at = next(bench_fakes.Plain.calls) + 3
        return made(course, number)

    monkeypatch.setattr(measure.Course, "round", noted)
    monkeypatch.setattr(bench_fakes.Interrupted, "at", -1)
    ran = bench("bench_fakes:Interrupted", "--results", passing("bench_fakes:Interrupted"))
    assert ran.exit_code == 130, ran.output
    return written()


def test_an_interrupted_run_keeps_what_it_has(interrupted: Bundle) -> None:
    manifest = interrupted.manifest
    assert manifest.partial
    assert manifest.rounds_done == 1
    assert phases("bench_fakes:Interrupted", interrupted) >= {("newest", "closed"), ("vector", "open")}


def test_an_interrupted_run_goes_on_where_it_stopped(bench: Bench, interrupted: Bundle) -> None:
    ran = bench("bench_fakes:Interrupted", "--results", "verdicts.json", "--resume")
    assert ran.exit_code == 0, ran.output
    found = written()
    assert not found.manifest.partial
    assert found.manifest.rounds_done == 2
    assert found.manifest.peaks == interrupted.manifest.peaks

    def of_first_round(blocks: tuple[Samples, ...]) -> list[list[int]]:
        return [block.ended_ns.tolist() for block in blocks if block.round == 1]

    assert of_first_round(found.blocks) == of_first_round(interrupted.blocks)
    assert {block.round for block in found.blocks if block.phase == "open"} == {1, 2}


def test_a_run_interrupted_after_its_rounds_is_resumed_for_what_is_left(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_bench, "PROFILES", {"tiny": msgspec.structs.replace(TINY, freshness=8)})
    with monkeypatch.context() as pressed:
        pressed.setattr(freshness, "measure", _press)
        assert bench("bench_fakes:Plain", "--results", passing("bench_fakes:Plain")).exit_code == 130
    before = written()
    assert (before.manifest.rounds_done, before.manifest.freshness) == (2, {})
    ran = bench("bench_fakes:Plain", "--results", "verdicts.json", "--resume")
    assert ran.exit_code == 0, ran.output
    assert [*written().manifest.freshness] == ["bench_fakes:Plain"]
    ended = [[block.ended_ns.tolist() for block in run.blocks if block.round] for run in (before, written())]
    assert ended[0] == ended[1]


def _press(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_a_run_that_is_whole_is_not_resumed(bench: Bench) -> None:
    assert bench("noop").exit_code == 0
    ran = bench("noop", "--resume")
    assert ran.exit_code == 2
    assert "came to its end" in ran.output


def test_a_run_of_other_options_is_not_resumed(bench: Bench, interrupted: Bundle) -> None:
    ran = bench("bench_fakes:Interrupted", "--seed", 5, "--resume")
    assert ran.exit_code == 2
    assert "another seed" in ran.output


# Mistakes


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nobody"], "there is no backend 'nobody'"),
        (["noop", "--workload", "nothing"], "there is no workload 'nothing'"),
        (["noop", "--data", "cloud:1"], "cloud"),
        (["noop", "--memory", "agent:none"], "agent"),
        (["noop", "--index", "tree"], "--index 'tree'"),
        (["noop", "--index", "hnsw,m=many"], "--index"),
        (["noop", "--results", "absent.json"], "absent.json cannot be read"),
        (["noop", "--peaks-of", "absent.json"], "absent.json cannot be read"),
        (["noop", "--url", "postgres=x"], "does not use"),
        (["noop", "--json", "."], "is a directory"),
        (["noop", "--seed", "-1"], "--seed"),
        (["noop", "--cluster", "nowhere"], "nowhere"),
        (["noop", "--load-workers", "2"], "--load-workers needs --cluster"),
    ],
)
def test_a_mistake_is_one_line_and_a_hint(bench: Bench, arguments: list[str], told: str) -> None:
    ran = bench(*arguments, json=False)
    assert ran.exit_code == 2
    assert told in ran.output
    assert "Traceback" not in ran.output


def test_to_resume_takes_a_file(bench: Bench) -> None:
    ran = bench("noop", "--resume", json=False)
    assert ran.exit_code == 2
    assert "--resume needs --json" in ran.output


def test_an_unknown_profile_is_refused() -> None:
    ran = CliRunner().invoke(app, ["bench", "noop", "--profile", "huge"])
    assert ran.exit_code == 2
    assert "there is no profile 'huge'" in ran.output
