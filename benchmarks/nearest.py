"""Filtered nearest neighbours: an index filled, what its queries should find, and every query put to both sides."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from itertools import cycle
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..backends.baselines import Baseline, open_baseline
from ..harness.engine import Engine, Namespaces
from ..spec.protocols import Runtime, VectorIndex
from ..spec.types import IndexConfig, NewVector
from .filters import NO_FILTER, Filter
from .truth import Truth, compute
from .turns import Pair, WarmUp, ask_in_turn
from .vectorset import VectorSet

Mode = Literal["exact", "ann"]

INDEX = "benchmark"
BATCH = 1_000
WARM_UP = 10
"""Queries that go before, and are not asked again."""

WARM = WarmUp(turns=WARM_UP)

FILTERS = (
    NO_FILTER,
    *(Filter("independent", permille) for permille in (100, 10, 1)),
    *(Filter("against", permille) for permille in (100, 10, 1)),
)


class Quality(msgspec.Struct):
    """Answers counted. recall: rows that belong, once each, of the rows due."""

    queries: int = 0
    due: int = 0
    right: int = 0
    worst: float = 1.0
    short: int = 0
    wrong: int = 0

    @property
    def recall(self) -> float:
        """1.0 where nothing was due."""
        return self.right / self.due if self.due else 1.0

    @property
    def fault(self) -> str | None:
        """Why these answers deserve no time."""
        if self.short:
            return f"{self.short} short"
        return f"{self.wrong} wrong" if self.wrong else None

    def count(self, truth: Truth, found: Sequence[int]) -> None:
        """Add an answer, by the numbers of its rows. Short: fewer rows than due. Wrong: excluded, or twice."""
        counted = truth.count(found)
        self.queries += 1
        self.due += truth.due
        self.right += counted.right
        self.worst = min(self.worst, counted.right / truth.due)
        self.short += len(found) < truth.due
        self.wrong += counted.wrong > 0


class Cell(Pair, kw_only=True):
    """One kind of query on one index: how good the answers are, and every time; of a baseline too."""

    backend: str
    index: str
    mode: Mode
    filter: str
    quality: Quality
    baseline_quality: Quality | None
    discarded: int
    steady: bool

    @property
    def fault(self) -> str | None:
        """Why this has no latency to show."""
        if self.mode == "exact" and not self.quality.fault and self.quality.right < self.quality.due:
            return "not exact"
        return self.quality.fault


class Loaded(msgspec.Struct):
    """An index, and how it came about: its configuration as the engine tells it, seconds to store and index all."""

    backend: str
    engine: str
    index: str
    config: IndexConfig
    rows: int
    seconds: float

    @property
    def built(self) -> str:
        """All but the engine, in words."""
        config = ", ".join(f"{key} {value}" for key, value in msgspec.to_builtins(self.config).items() if value)
        return f"{config}; stored and indexed in {self.seconds:.1f} s"


class Filled(msgspec.Struct, frozen=True):
    """An index with all rows in it: the adapter's client, and the one by hand, if somebody has written it."""

    loaded: Loaded
    index: VectorIndex
    baseline: Baseline | None


# Truth


def truths(data: VectorSet, top_k: int) -> dict[str, list[Truth]]:
    """What the queries that count should find, by a filter's label and in their order."""
    return {filter.label: compute(data, filter, top_k)[WARM_UP:] for filter in FILTERS}


# Measuring


def measure(
    filled: Filled,
    data: VectorSet,
    top_k: int,
    truth: Mapping[str, Sequence[Truth]],
    *,
    modes: Sequence[Mode],
    filters: Sequence[Filter] = FILTERS,
    warm_up: WarmUp = WARM,
) -> Iterator[Cell]:
    """Every filter in every mode on one index."""
    number = {id: row for row, id in enumerate(data.ids())}
    loaded, index, baseline = filled.loaded, filled.index, filled.baseline
    for mode in modes:
        for filter in filters:
            where, exact = filter.condition, mode == "exact"

            def adapter(
                query: NDArray[np.float32], where: dict[str, Any] | None = where, exact: bool = exact
            ) -> list[str]:
                vector: Any = query
                hits = index.query_vectors(INDEX, vector, top_k=top_k, filter=where, exact=exact)
                return [hit.id for hit in hits]

            def by_hand(
                query: NDArray[np.float32], where: dict[str, Any] | None = where, exact: bool = exact
            ) -> list[str]:
                assert baseline is not None
                return [hit[0] for hit in baseline.query(query, top_k, where, exact=exact)]

            queries = data.asked(filter)
            asked = ask_in_turn(
                queries[WARM_UP:],
                adapter,
                by_hand if baseline is not None else None,
                cycle(queries[:WARM_UP]),
                warm_up,
            )
            yield Cell(
                backend=loaded.backend,
                index=loaded.index,
                mode=mode,
                filter=filter.label,
                quality=_judge(truth[filter.label], asked.adapter, number),
                baseline_quality=_judge(truth[filter.label], asked.baseline, number) if asked.baseline else None,
                discarded=asked.discarded,
                steady=asked.steady,
                nanoseconds=[took for _, took in asked.adapter],
                baseline_nanoseconds=[took for _, took in asked.baseline],
            )


def _judge(truth: Sequence[Truth], answers: Sequence[tuple[Sequence[str], int]], number: dict[str, int]) -> Quality:
    quality = Quality()
    for expected, (ids, _) in zip(truth, answers, strict=True):
        quality.count(expected, [number[id] for id in ids])
    return quality


@contextmanager
def filled(
    name: str, engine: Engine, namespaces: Namespaces, data: VectorSet, kind: str, told: Callable[[str], None]
) -> Generator[Filled]:
    """An index of this type in a namespace of its own, which is dropped at the end."""
    backend, url = engine.backend, engine.endpoint.url
    with namespaces.fresh() as namespace, closing(backend.open_index(url, namespace, Runtime())) as index:
        rows, dimension = data.rows.shape
        told(f"{name} {kind}: storing {rows:,} × {dimension}")
        seconds = fill(index, data, kind)
        loaded = Loaded(name, engine.version, kind, index.describe_index(INDEX).config, rows, seconds)
        baseline = open_baseline(backend.name, url, namespace, INDEX)
        with nullcontext() if baseline is None else closing(baseline):
            told(f"{name} {kind}: asking")
            yield Filled(loaded, index, baseline)


def fill(index: VectorIndex, data: VectorSet, kind: str) -> float:
    """Store and index all rows; the seconds that took. The engine has to count as many as were given."""
    ids = data.ids()
    began = time.perf_counter()
    index.create_index(INDEX, dimension=data.rows.shape[1], config=IndexConfig(type=kind))
    for start in range(0, len(ids), BATCH):
        numbers = range(start, min(start + BATCH, len(ids)))
        vectors: list[Any] = [*data.rows[start : start + BATCH]]
        given = zip(numbers, vectors, strict=True)
        index.upsert_vectors(INDEX, [NewVector(ids[row], vector, data.metadata(row)) for row, vector in given])
    counted = index.describe_index(INDEX).count
    if counted != len(ids):
        raise RuntimeError(f"{counted} of {len(ids)} vectors are there")
    return time.perf_counter() - began
