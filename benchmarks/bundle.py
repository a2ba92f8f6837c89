"""What a benchmark leaves: a manifest with its summary (JSON) and, beside it, every sample (Parquet)."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from ..harness import documents, output
from ..harness.exits import UsageProblem
from ..spec.types import IndexConfig
from .freshness import Freshness
from .samples import COUNTS, OUTCOMES, TIMES, Phase, Samples

FORMAT = "memassay-bench"
HINT = "give a file that `memassay bench --json` wrote"
SUFFIX = ".parquet"
LABELS = ("contender", "workload", "phase")
SETTINGS = ("rate", "share", "concurrency", "round")


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


class Bundle(msgspec.Struct, frozen=True):
    """A manifest and all samples, one `Samples` for each phase of each round."""

    manifest: Manifest
    blocks: tuple[Samples, ...]


def write(path: Path, manifest: Manifest, blocks: Sequence[Samples]) -> Manifest:
    """Write both files whole; the manifest as written. `manifest.samples` is filled in here. Raises UsageProblem."""
    table = _parquet(blocks)
    beside = samples_path(path)
    file = SampleFile(
        name=beside.name, sha256=hashlib.sha256(table).hexdigest(), samples=sum(len(block) for block in blocks)
    )
    manifest = msgspec.structs.replace(manifest, samples=file)
    # The samples first: a manifest never names a file that is not there.
    output.write(beside, table)
    output.write(path, msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
    return manifest


def samples_path(path: Path) -> Path:
    """Where the samples of the manifest at `path` are."""
    return path.with_suffix(SUFFIX)


def read(path: Path) -> Bundle:
    """Both files. Raises UsageProblem for another format or version, and for samples missing, cut or foreign."""
    manifest = read_manifest(path)
    beside = path.parent / manifest.samples.name
    data = documents.load(beside, hint=f"{path} names it as the file of its samples; keep the two side by side")
    if hashlib.sha256(data).hexdigest() != manifest.samples.sha256:
        raise UsageProblem(
            f"{beside} is not the file of samples that {path} was written with: its sha256 differs",
            hint="it was cut, changed, or is another run's",
        )
    blocks = tuple(_blocks(beside, data))
    if sum(len(block) for block in blocks) != manifest.samples.samples:
        raise UsageProblem(f"{beside} does not hold the {manifest.samples.samples} samples of {path}", hint=HINT)
    return Bundle(manifest, blocks)


def read_manifest(path: Path) -> Manifest:
    """The manifest alone. Raises UsageProblem."""
    data = documents.load(path, hint=HINT)
    return documents.decode(path, data, Manifest, what="bundle of a benchmark", hint=HINT)


# Parquet


def check_installed() -> None:
    """Raises UsageProblem where Parquet cannot be written."""
    _pyarrow()


def _pyarrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ModuleNotFoundError as error:
        raise UsageProblem(
            f"a benchmark's samples need the module {error.name!r}, which is not installed",
            hint="pip install 'memassay[bench]'",
        ) from None


def _parquet(blocks: Sequence[Samples]) -> bytes:
    """All samples, a row group for each phase of each round, so that one can be read without the others."""
    arrow, parquet = _pyarrow()
    text = arrow.dictionary(arrow.int32(), arrow.string())
    fields = [(name, text) for name in LABELS]
    fields += [("rate", arrow.float64()), ("share", arrow.float64())]
    fields += [("concurrency", arrow.int32()), ("round", arrow.int32())]
    fields += [(name, arrow.int64()) for name in TIMES] + [("outcome", text)]
    fields += [(name, arrow.int32()) for name in COUNTS]
    schema = arrow.schema(fields)
    buffer = io.BytesIO()
    with parquet.ParquetWriter(
        buffer,
        schema,
        compression="zstd",
        use_dictionary=[*LABELS, "outcome"],
        column_encoding=dict.fromkeys((*TIMES, *COUNTS), "DELTA_BINARY_PACKED"),
    ) as writer:
        for block in blocks:
            many = np.zeros(len(block), np.int32)
            columns: list[Any] = [arrow.DictionaryArray.from_arrays(many, [getattr(block, name)]) for name in LABELS]
            for name in SETTINGS:
                columns.append(arrow.array(np.full(len(block), getattr(block, name)), schema.field(name).type))
            columns += [arrow.array(getattr(block, name)) for name in TIMES]
            columns.append(arrow.DictionaryArray.from_arrays(block.outcome.astype(np.int32), list(OUTCOMES)))
            columns += [arrow.array(getattr(block, name)) for name in COUNTS]
            writer.write_table(arrow.Table.from_arrays(columns, schema=schema), row_group_size=max(1, len(block)))
    return buffer.getvalue()


def _blocks(path: Path, data: bytes) -> Iterator[Samples]:
    """The samples of each row group. Raises UsageProblem."""
    arrow, parquet = _pyarrow()
    try:
        file = parquet.ParquetFile(io.BytesIO(data))
        for group in range(file.num_row_groups):
            table = file.read_row_group(group)
            if len(table):
                yield _block(table)
    except (arrow.ArrowException, KeyError, ValueError) as error:
        raise UsageProblem(f"{path} holds no samples of a benchmark: {error}", hint=HINT) from None


def _block(table: Any) -> Samples:
    first = {name: table[name][0].as_py() for name in (*LABELS, *SETTINGS)}
    arrays: dict[str, Any] = {name: table[name].to_numpy() for name in (*TIMES, *COUNTS)}
    words: list[Any] = table["outcome"].to_pylist()
    number = {word: place for place, word in enumerate(OUTCOMES)}
    return Samples(**first, **arrays, outcome=np.array([number[word] for word in words], np.int8))
