"""Artefacts of the size that real ones have, made by hand: five engines, all clauses, a full benchmark."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from memassay.benchmarks.artefact import (
    CURVE,
    WAYS,
    DataSet,
    Engine,
    Freshness,
    Gate,
    Lag,
    Manifest,
    Peak,
    Profile,
    Row,
    SampleFile,
    Way,
    search_of,
)
from memassay.benchmarks.comparison import Change, Comparison, Side
from memassay.benchmarks.profiles import FULL
from memassay.benchmarks.statistics import Judgement
from memassay.harness.artefact import (
    BackendDifference,
    BackendResult,
    CaseChange,
    ClauseResult,
    Corpus,
    Difference,
    Finding,
    Kill,
    KillMatrix,
    KillSummary,
    MutantResult,
    Result,
    Run,
    VerdictChange,
)
from memassay.mutants import MUTANTS
from memassay.spec.clauses import CLAUSES
from memassay.spec.types import IndexConfig

ENGINES = ("one", "two", "three", "four", "five")
SPEEDS = {"noop": 400_000.0, "reference": 90_000.0, "one": 12_000.0, "two": 5_200.0, "three": 2_400.0, "four": 900.0}
"""Operations a second at the peak; what is not here is slow."""


def result(
    names: Sequence[str] = ENGINES, findings: Sequence[Finding] = (), selected: Sequence[str] = tuple(CLAUSES)
) -> Result:
    """All clauses pass on all engines, but where a finding says otherwise."""
    clauses = {
        clause.id: ClauseResult(
            verdict="pass", applicable=900, discriminators=dict.fromkeys(clause.discriminators, 111)
        )
        for clause in CLAUSES.values()
        if clause.id in selected
    }
    for finding in findings:
        clauses[finding.case.signature.clause] = ClauseResult(
            verdict=finding.verdict, applicable=900, findings=[finding]
        )
    backends = [
        BackendResult(
            name=name, engine=f"{name} 1.2.3", method="embedded", detail="a file", programs=4050, clauses=clauses
        )
        for name in names
    ]
    return Result(
        memassay="0.1.0",
        python="3.12.0",
        hypothesis="6.150.0",
        corpus=Corpus(seed=0, level="core", examples=None, programs=4050, hash="5f1c"),
        selected=list(selected),
        time_zone="Asia/Kathmandu",
        interrupted=False,
        backends=backends,
        run=Run(started="2026-11-30T12:00:00+00:00", seconds=300.0, seconds_by_backend={}, platform="Linux"),
    )


def manifest(
    names: Sequence[str] = ENGINES, profile: Profile = FULL, *, m: int = 16, recall: float = 0.97, seed: int = 0
) -> Manifest:
    """A benchmark of these stores and both floors; the last store has no number for a search, and is slow."""
    random = np.random.default_rng(seed)
    stores = ("noop", "reference", *names)
    gate = Gate(contender=names[-1], workload="vector-against-1%", clauses={"VEC-4": "fail"}, source="verify.json")
    there = [
        (store, workload)
        for workload in profile.workloads
        for store in stores
        if (store, workload) != (gate.contender, gate.workload)
    ]
    return Manifest(
        memassay="0.1.0",
        versions={"numpy": "2.4.6"},
        started=f"2026-11-30T12:{m:02}:00+00:00",
        seconds=3600.0,
        seed=3,
        k=10,
        payload="searches return ids, scores and metadata",
        consistency="a write is acknowledged when every later call sees it (CON-1)",
        profile=profile,
        data=DataSet(
            spec=profile.data,
            hash="ab12",
            rows=1_000_000,
            dimension=768,
            metric="cosine",
            queries=1000,
            memory=profile.memory,
            memory_hash="cd34",
            threads=500,
            messages=100_000,
            embedder="literal",
        ),
        machine={"id": "0", "cpu": "a processor", "cpus": 2, "memory_gib": 24},
        backends=list(names),
        engines=[
            Engine(
                name=name,
                kind="store" if name in names else "floor",
                engine=f"{name} 1.2.3",
                method="docker",
                detail="an image",
                index=IndexConfig(type="hnsw", m=m) if name in names else None,
                settings={"fsync": "on"},
                plan={"search": "Index Scan using vectors_hnsw"},
                sizes={"disk": 12_345_678},
                fill_seconds={"messages": 4.2},
                acknowledged=100_000,
                visible=100_000,
            )
            for name in stores
        ],
        gates=[gate] if gate.workload in profile.workloads else [],
        unsupported={},
        peaks=[
            Peak(contender=store, workload=workload, rate=_peak(store), concurrency=8, tried={"1": 1.0, "8": 2.0})
            for store, workload in there
        ],
        rows=[row for store, workload in there for row in _rows(store, workload, profile, recall, 16 / m, random)],
        freshness={name: [*_freshness(random)] for name in stores if profile.freshness},
        rounds_done=profile.rounds,
        finished=dict.fromkeys(stores, profile.rounds),
        partial=False,
        notes=["made by hand"],
        samples=SampleFile(name="x.parquet", sha256=f"{m}", samples=1),
        about=dict.fromkeys(profile.workloads, "what it asks"),
    )


def _peak(store: str) -> float:
    return SPEEDS.get(store, 310.0)


def _rows(store: str, workload: str, profile: Profile, recall: float, pace: float, random: Any) -> Iterator[Row]:
    search = search_of(workload)
    peak = _peak(store) * pace * random.uniform(0.8, 1.2)
    percent = search.percent or 100.0 if search else 100.0
    found = min(1.0, recall + (math.log10(percent) - 2) * (0.0 if store == "one" else 0.12)) if search else 1.0
    loads: list[tuple[Literal["closed", "open"], float]] = [
        ("closed", 0.0),
        *(("open", each) for each in profile.shares),
    ]
    for phase, share in loads:
        saturated = share > 0.8 and store in ("four", "five")
        median = 1000 / peak * (1 + 2 * share**4) * (30 if saturated else 1)
        curve = {f"{q:g}": round(median * (1 + (-math.log10(1 - q / 100)) ** 2 / 2), 4) for q in CURVE}
        times = {f"{q:g}": curve.get(f"{q:g}") for q in profile.percentiles}
        yield Row(
            contender=store,
            workload=workload,
            phase=phase,
            share=share,
            rate=peak * share,
            concurrency=8,
            rounds=profile.rounds,
            samples=10_000,
            samples_per_round=1_200,
            throughput=peak if phase == "closed" else peak * share,
            response_ms=times,
            service_ms=times,
            ok=9_900,
            short=100 if percent < 5 and store != "one" else 0,
            wrong=0,
            failed=0,
            unsent=0,
            late=0.0,
            saturated=saturated,
            recall=found,
            recall_p5=found - 0.05,
            recall_min=found - 0.1,
            curve_ms=curve,
        )


def _freshness(random: Any) -> Iterator[Freshness]:
    for kind in ("messages", "vectors"):
        lags: dict[Way, Lag] = {
            way: Lag(
                blind_ns=[0] * 200,
                seen_ns=[int(each) for each in random.lognormal(13, 1, 200)],
                never=2 if way == "search" else 0,
            )
            for way in WAYS
        }
        yield Freshness(
            kind=kind,
            given=800,
            acknowledged=800,
            visible=800,
            deleted=800,
            left=0,
            rejected={},
            failed={},
            unsupported=[],
            acknowledged_ns=[10_000] * 800,
            shown=lags,
            honoured=lags,
        )


def kills() -> KillMatrix:
    """Every mutant is killed, but for the first."""
    mutants = [
        MutantResult(
            id=mutant.id,
            clause=mutant.clause,
            report=mutant.report,
            description=mutant.description,
            also=list(mutant.also),
            obstacle="",
            kills=[
                Kill(
                    seed=0,
                    blamed=mutant.clause if number else None,
                    programs=7,
                    seconds=0.02,
                    operations=3,
                    minimal=True,
                    failing={mutant.clause: 3, "ORD-1": 2} if number else {},
                    matrix=50,
                )
            ],
        )
        for number, mutant in enumerate(MUTANTS.values())
    ]
    return KillMatrix(
        memassay="0.1.0",
        python="3.12.0",
        hypothesis="6.150.0",
        level="core",
        seeds=[0],
        over="",
        engine="",
        interrupted=False,
        seconds=100.0,
        summary=KillSummary(
            mutants=len(mutants),
            run=len(mutants),
            killed=len(mutants) - 1,
            survivors=[mutants[0].id],
            blamed_well=len(mutants) - 1,
            median_clauses=1.0,
            median_operations=3.0,
            most_operations=5,
            median_seconds=0.02,
            heavy=[],
        ),
        mutants=mutants,
    )


def difference(finding: Finding) -> Difference:
    """A clause was lost, and a case came."""
    case = CaseChange(
        signature=finding.case.signature, change="came", verdict="fail", program=finding.case.program, loss=True
    )
    lost = VerdictChange(clause="ORD-5", before="pass", after="fail", loss=True)
    backend = BackendDifference(
        before="store", after="store", engine_before="1", engine_after="2", gone=False, verdicts=[lost], cases=[case]
    )
    return Difference(memassay="0.1.0", notes=["the seed differs"], compared=["ORD-5"], losses=2, backends=[backend])


def comparison() -> Comparison:
    """One figure regressed, one did not change."""
    worse = Judgement(verdict="regressed", ratio=1.2, low=1.1, high=1.3, pairs=8, spread=0.02)
    same = Judgement(verdict="no change", ratio=1.0, low=0.99, high=1.01, pairs=8, spread=0.01)
    changes = [
        Change(contender="one", workload="newest", metric="throughput", before=100.0, after=100.0, judgement=same),
        Change(
            contender="one",
            workload="newest",
            metric="response",
            phase="open",
            share=0.5,
            percentile=99.0,
            rate=50.0,
            before=1.0,
            after=1.2,
            judgement=worse,
        ),
    ]
    side = Side(files=("a.json",), started=("now",), memassay="0.1.0", rounds=8, partial=False)
    return Comparison(
        memassay="0.1.0",
        effect=0.05,
        confidence=0.95,
        unit="round",
        a=side,
        b=msgspec.structs.replace(side, files=("b.json",)),
        differences=["numpy: 1 and 2"],
        notes=["A and B were not measured in turn"],
        changes=changes,
        controls=changes[:1],
    )
