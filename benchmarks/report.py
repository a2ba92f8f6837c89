"""Shows a benchmark: what was measured, a row for each figure, and why there is none where there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from . import freshness
from .artefact import Manifest, Row, remarks

MUCH = 0.01
"""What part of the operations has to be handed out late to be explained."""


def show(manifest: Manifest, out: Console) -> None:
    """Print all of it."""
    for line in heading(manifest):
        out.print(Text(line), soft_wrap=True)
    for phase, title in (
        ("closed", "closed loop: the peak; its times are no user's latency"),
        ("open", "open loop: latency from when an operation was due"),
    ):
        rows = [row for row in manifest.rows if row.phase == phase]
        if rows:
            out.print()
            out.print(Text(title, style="bold"))
            out.print(table(rows, manifest))
    if manifest.freshness:
        out.print()
        out.print(Text("freshness: from acknowledged to seen by another client, one at a time", style="bold"))
        out.print(freshness.table(manifest.freshness))
    out.print()
    for line in gaps(manifest):
        out.print(Text(line), soft_wrap=True)


def heading(manifest: Manifest) -> Iterator[str]:
    """What the figures are of."""
    data, profile = manifest.data, manifest.profile
    yield (
        f"memassay {manifest.memassay}, profile {profile.name}"
        + (" (indicative: too little is measured to compare with)" if profile.indicative else "")
        + (", partial" if manifest.partial else "")
        + f": {manifest.rounds_done} of {profile.rounds} rounds, engines started {profile.starts} times,"
        f" {manifest.seconds:.0f} s"
    )
    yield (
        f"{data.spec}: {data.rows:,} × {data.dimension}, {data.metric}, k = {manifest.k}; {data.messages:,} messages in"
        f" {data.threads:,} threads ({data.memory}); seed {manifest.seed}, {data.hash[:12]}"
    )
    yield f"{manifest.payload}; {manifest.consistency}; {profile.arrivals} arrivals"
    for engine in manifest.engines:
        index = engine.index
        parts = [engine.engine, engine.detail]
        parts += [f"index {index.type}"] if index is not None else []
        parts += [f"{key} {value}" for key, value in {**engine.settings, **engine.plan}.items()]
        parts += [f"{key} {size / 2**20:.1f} MB" for key, size in engine.sizes.items()]
        parts += [f"{part} stored in {seconds:.1f} s" for part, seconds in engine.fill_seconds.items()]
        yield f"{engine.name}: " + ("; ".join(filter(None, parts)) if not engine.error else f"ERROR {engine.error}")


def table(rows: Sequence[Row], manifest: Manifest) -> Table:
    """A line a row, by workload. `first`: the very first operation, before anything was warm."""
    percentiles = [f"{each:g}" for each in manifest.profile.percentiles]
    cold = {(row.contender, row.workload): row.first_ms for row in manifest.rows if row.phase == "cold"}
    bound = {(peak.contender, peak.workload) for peak in manifest.peaks if peak.harness_bound}
    shown = Table(box=None, pad_edge=False)
    for name in ("workload", "store"):
        shown.add_column(name, no_wrap=True)
    measured = (*(f"p{each} ms" for each in percentiles), "recall", "p5", "min", "first ms")
    for name in ("of peak", "clients", "ops/s", *measured):
        shown.add_column(name, justify="right", no_wrap=True)
    shown.add_column("", no_wrap=False)
    workloads = manifest.profile.workloads
    stores = [engine.name for engine in manifest.engines]
    for row in sorted(rows, key=lambda row: (workloads.index(row.workload), stores.index(row.contender), row.share)):
        shown.add_row(
            row.workload,
            row.contender,
            f"{row.share:.0%}" if row.share else f"{row.rate:,.0f}/s" if row.rate else "",
            str(row.concurrency),
            f"{row.throughput:,.0f}",
            *(_ms(row.response_ms.get(each)) for each in percentiles),
            *(_part(each) for each in (row.recall, row.recall_p5, row.recall_min)),
            _ms(cold.get((row.contender, row.workload))),
            ", ".join(remarks(row, bound=(row.contender, row.workload) in bound)),
        )
    return shown


def gaps(manifest: Manifest) -> Iterator[str]:
    """Where there is no figure, and why; and what else a reader has to know."""
    for gate in manifest.gates:
        yield f"no number  {gate.workload} on {gate.contender}: {gate.reason} ({gate.source})"
    for contender, lacking in manifest.unsupported.items():
        for workload, reason in lacking.items():
            yield f"unsupported  {workload} on {contender}: {reason}"
    for row in manifest.rows:
        for error, many in row.errors.items():
            yield f"failed  {row.workload} on {row.contender} ({row.phase}): {many} × {error}"
    for contender, kinds in manifest.freshness.items():
        yield from (freshness.counts(contender, each) for each in kinds)
    yield from manifest.notes
    if any(row.late >= MUCH for row in manifest.rows):
        yield (
            "handed out late: an engine in this process, or other load on the machine, held up the scheduler; latencies"
            " are from when operations were due all the same"
        )


def _ms(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _part(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
