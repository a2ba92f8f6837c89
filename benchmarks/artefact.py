"""What a benchmark leaves as JSON: the manifest, versioned, whose schema `memassay schema bench` prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import msgspec

from ..spec.types import IndexConfig
from .samples import Phase
from .statistics import percentile

FORMAT = "memassay-bench"

Way = Literal["id", "listing", "search", "filtered search"]
"""How a row is looked for. A vector's listing is the engine's own count of its index."""

WAYS: tuple[Way, ...] = ("id", "listing", "search", "filtered search")


CURVE = (10, 25, 50, 75, 90, 95, 97.5, 99, 99.5, 99.9, 99.99)
"""Percentiles of `Row.curve_ms`."""

UNFILTERED = "vector"
SEARCH = re.compile(rf"semantic-\w+|{UNFILTERED}(?:-(\w+)-([\d.]+)%)?")


class Search(NamedTuple):
    """What the name of a workload that searches says: where the rows that its filter leaves lie, and their percentage.

    Both are None for a search of which it does not say so, such as one by meaning.
    """

    relation: str | None
    percent: float | None


def search_of(workload: str) -> Search | None:
    """None for a workload that does not search. What searches without a filter may find 100 percent."""
    found = SEARCH.fullmatch(workload)
    if found is None:
        return None
    if workload == UNFILTERED:
        return Search("none", 100.0)
    return Search(found[1], float(found[2]) if found[2] else None)


class Lag(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the rows that were looked for in one way, in nanoseconds since the acknowledgement, row by row.

    blind: when the last look began that did not show the write; 0 where the first one did. seen: when the first look
    ended that did. So the write showed at some time between the two. never: rows given up. Of a deletion, the same for
    its row to be gone.
    """

    blind_ns: list[int]
    seen_ns: list[int]
    never: int

    @property
    def stale(self) -> int:
        """Rows that a look after the acknowledgement did not show."""
        return sum(blind > 0 for blind in self.blind_ns) + self.never

    def at(self, q: float) -> float | None:
        """A percentile of `seen`, milliseconds; infinite among rows never seen, None where there are too few rows."""
        found = percentile([*self.seen_ns, *[float("inf")] * self.never], q)
        return None if found is None else found / 1e6


class Freshness(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of rows on one engine.

    given: rows. acknowledged, visible, deleted, left: those acknowledged, counted by the engine after all writes,
    whose deletion was acknowledged, and counted after all deletions. rejected: errors of writes and deletions, and how
    many. failed: those of looks, which were repeated. unsupported: ways that the store has not. acknowledged_ns: from
    the call of a write to its return. shown, honoured: by way, how long after the acknowledgement a row was there, and
    a deleted one gone.
    """

    kind: Literal["messages", "vectors"]
    given: int
    acknowledged: int
    visible: int
    deleted: int
    left: int
    rejected: dict[str, int]
    failed: dict[str, int]
    unsupported: list[Way]
    acknowledged_ns: list[int]
    shown: dict[Way, Lag]
    honoured: dict[Way, Lag]


class DataSet(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored and asked: vectors, by `spec` and `hash`, and messages, by `memory` and `memory_hash`."""

    spec: str
    hash: str
    rows: int
    dimension: int
    metric: str
    queries: int
    """Different ones; workloads repeat them, each time in another order."""
    memory: str
    memory_hash: str
    threads: int
    messages: int
    embedder: str


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """How much is measured. Two runs are comparable when these are equal.

    data, memory: the data sets of vectors and of messages. shares: parts of the peak at which the open loop is run;
    rates: operations a second at which it is, too.
    concurrency: the clients tried, in turn, to find the peak; as many as gave it are at work later. starts: how often
    engines are started and filled anew; rounds: in all. cold: operations before anything is warm. warmup_seconds: at
    most, until times stand still. peak_seconds: at each concurrency. closed_seconds: of a round in closed loop.
    open_seconds: of a round at each share; longer, up to open_most_seconds, until open_samples operations were due.
    percentiles: what is shown, where there are enough samples.
    """

    name: str
    data: str
    memory: str
    workloads: tuple[str, ...]
    shares: tuple[float, ...]
    rates: tuple[float, ...] = ()
    concurrency: tuple[int, ...]
    starts: int
    rounds: int
    cold: int
    warmup_seconds: float
    peak_seconds: float
    closed_seconds: float
    open_seconds: float
    open_most_seconds: float
    open_samples: int
    percentiles: tuple[float, ...]
    arrivals: Literal["poisson", "uniform"] = "poisson"
    freshness: int = 0
    """Rows of either kind for which it is measured when writes show; 0 where it is not."""
    indicative: bool = False
    """Too little is measured for more than a first idea."""
    effort: int | None = None
    """How broadly approximate indices were searched, in each engine's own unit; None leaves it to the store."""
    load_workers: int = 0
    """Processes of a cluster that make the load; 0 where it is made by the process that measures."""


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """A contender, and the engine behind it as it was measured.

    kind: `floor` is what harness and model cost by themselves. engine: its own version. index: as the engine tells it.
    settings: durability and the like, as the engine tells them. plan: how it answers a query, in its own words.
    sizes: bytes on disk and in memory, by what takes them. acknowledged, visible, rejected: rows stored before timing.
    error: why there is nothing of it.
    """

    name: str
    kind: Literal["store", "baseline", "floor"]
    engine: str = ""
    method: str = ""
    detail: str = ""
    index: IndexConfig | None = None
    settings: dict[str, str] = {}
    plan: dict[str, str] = {}
    sizes: dict[str, int] = {}
    fill_seconds: dict[str, float] = {}
    acknowledged: int = 0
    visible: int = 0
    rejected: int = 0
    group: int = 0
    """Engines of one group were up at the same time, and took turns round by round."""
    error: str = ""


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """Why a contender has no number for a workload: clauses that do not pass, with their verdicts."""

    contender: str
    workload: str
    clauses: dict[str, str]
    source: str
    """Where the verdicts come from: a result file, or a short run before."""

    @property
    def reason(self) -> str:
        """In a few words."""
        return ", ".join(f"{clause} {verdict}" for clause, verdict in self.clauses.items())


class Peak(msgspec.Struct, frozen=True, kw_only=True):
    """The most that closed loop gave, and at which concurrency. tried: operations a second, by clients."""

    contender: str
    workload: str
    rate: float
    concurrency: int
    tried: dict[str, float]
    harness_bound: bool = False
    """The no-op store's peak is less than three times this: the harness may be what is measured."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """All rounds of a contender's workload in one phase, in figures; milliseconds by percentile ("50", "99.9").

    throughput: operations a second that ended well enough to count (ok, short and wrong), median of rounds.
    response_ms: from the intended start; in closed loop it is the service time, and no user's latency. A percentile
    is None where there are too few samples. samples_per_round: the least of any round. saturated: it could not hold
    the rate, so that the times are of a backlog. late: of what the scheduler handed out. harness_cpu: CPU seconds of
    this process a second. recall: over answers by rows; None where there are none.
    """

    contender: str
    workload: str
    phase: Phase
    share: float
    rate: float
    concurrency: int
    rounds: int
    samples: int
    samples_per_round: int
    throughput: float
    response_ms: dict[str, float | None]
    service_ms: dict[str, float | None]
    ok: int
    short: int
    wrong: int
    failed: int
    unsent: int
    late: float
    saturated: bool
    recall: float | None
    recall_p5: float | None
    recall_min: float | None
    first_ms: float | None = None
    """Of the cold phase: the very first operation, median of starts."""
    discarded: int = 0
    """Operations before the phase that were not counted, until times stood still."""
    stationary: bool = True
    harness_cpu: float | None = None
    errors: dict[str, int] = {}
    """What failed calls raised, and how many did."""
    curve_ms: dict[str, float] = {}
    """Response times at more percentiles than are shown in figures (CURVE), as far as there are samples for them."""


LATE = 0.000_05
"""What part of the operations has to be handed out late to be told."""

FAULTS = ("short", "wrong", "failed", "unsent")


def remarks(row: Row, *, bound: bool) -> Iterator[str]:
    """What a reader of its figures has to know. bound: the harness may be what its peak measures."""
    for fault in FAULTS:
        if many := getattr(row, fault):
            yield f"{many / row.samples:.2%} {fault}"
    if row.saturated:
        yield "saturated"
    if bound and row.phase == "closed":
        yield "harness-bound"
    if not row.stationary and row.phase != "cold":
        yield f"not stationary after {row.discarded:,}"
    if row.late >= LATE:
        yield f"{row.late:.1%} handed out late"


class SampleFile(msgspec.Struct, frozen=True, kw_only=True):
    """The file of samples: its name beside the manifest, its sha256 and how many samples it holds."""

    name: str
    sha256: str
    samples: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A benchmark run: what was measured with what, and the summary. `samples` names the file with the raw figures.

    k: rows asked of a search. payload: what an answer carries. consistency: what an acknowledged write is. machine: see
    `memassay compare`, which refuses two that differ. rounds_done: of profile.rounds, those that are whole; finished:
    the same by contender. partial: it was interrupted. unsupported: by contender, workloads it lacks, and why.
    notes: what a reader has to know.
    """

    format: Literal["memassay-bench"] = FORMAT
    version: Literal[1] = 1
    memassay: str
    versions: dict[str, str]
    started: str
    seconds: float
    seed: int
    k: int
    payload: str
    consistency: str
    profile: Profile
    data: DataSet
    machine: dict[str, Any]
    backends: list[str]
    engines: list[Engine]
    gates: list[Gate]
    unsupported: dict[str, dict[str, str]]
    peaks: list[Peak]
    rows: list[Row]
    freshness: dict[str, list[Freshness]] = {}
    """By contender: when a write showed, and a deletion was honoured."""
    rounds_done: int
    finished: dict[str, int]
    partial: bool
    notes: list[str]
    samples: SampleFile
    about: dict[str, str] = {}
    """What each workload asks, in a few words."""
