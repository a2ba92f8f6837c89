"""Benchmarks as a page: figures as charts with a table under each, and why there is none where there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from markupsafe import Markup

from ..benchmarks.artefact import Manifest
from ..benchmarks.equal_recall import setting
from . import charts, figures, html
from .charts import Charts
from .figures import Cell, Part, Store, cell, contenders
from .html import Link


class Glance(NamedTuple):
    """A workload on every store."""

    workload: str
    about: str
    cells: tuple[Cell, ...]


class Benchmark(NamedTuple):
    """Runs that asked the same, together."""

    key: str
    title: str
    runs: tuple[Manifest, ...]
    stores: tuple[Store, ...]
    glances: tuple[Glance, ...]
    parts: tuple[Part, ...]


def page(manifests: Sequence[Manifest], links: Sequence[Link], here: Link) -> bytes:
    """The page. Raises charts.MissingLibrary."""
    drawn = Charts()
    benchmarks = [_benchmark(f"b{number}", runs, drawn) for number, runs in enumerate(_alike(manifests), 1)]
    return html.render(
        "performance.html",
        scripts=(charts.libraries(), html.source("charts.js")) if drawn else (),
        links=links,
        here=here,
        benchmarks=benchmarks,
        data=Markup(drawn.json()),
        linked={link.file for link in links},
        setting=setting,
        sizes=_sizes,
        pairs=_pairs,
    )


def told(manifest: Manifest) -> str:
    """A run in a line."""
    profile, data = manifest.profile, manifest.data
    stores = ", ".join(manifest.backends)
    remark = " (indicative)" if profile.indicative else ""
    partial = ", partial" if manifest.partial else ""
    asked = f"{data.rows:,} × {data.dimension}, {data.messages:,} messages"
    return f"{stores}: profile {profile.name}{remark}{partial}, {asked}"


def _alike(manifests: Sequence[Manifest]) -> list[tuple[Manifest, ...]]:
    """Runs by what they asked and on which machine, in the order given: figures of others do not go together."""
    found: dict[bytes, list[Manifest]] = {}
    for manifest in manifests:
        data = {
            name: value
            for name, value in msgspec.structs.asdict(manifest.data).items()
            if name not in ("spec", "memory")  # a file may have been moved: what is in it is what counts
        }
        machine = {name: manifest.machine.get(name) for name in ("id", "cpu", "cpus", "memory_gib")}
        key = [manifest.k, manifest.seed, manifest.payload, manifest.consistency, data, machine]
        found.setdefault(msgspec.json.encode(key), []).append(manifest)
    return [tuple(runs) for runs in found.values()]


def _benchmark(key: str, runs: Sequence[Manifest], drawn: Charts) -> Benchmark:
    stores = tuple(contenders(runs))
    workloads = list(dict.fromkeys(name for run in runs for name in run.profile.workloads))
    data = runs[0].data
    parts = (
        figures.recall(key, runs, stores, drawn),
        figures.latency(key, workloads, stores, drawn),
        figures.percentiles(key, workloads, stores, drawn),
        figures.selectivity(key, stores, drawn),
        figures.freshness(key, stores, drawn),
    )
    return Benchmark(
        key=key,
        title=f"{data.rows:,} vectors of {data.dimension}, {data.messages:,} messages",
        runs=tuple(runs),
        stores=stores,
        glances=tuple(_glance(workload, stores) for workload in workloads),
        parts=tuple(part for part in parts if part.figures or part.tables),
    )


# At a glance


def _glance(workload: str, stores: Sequence[Store]) -> Glance:
    about = next((run.about[workload] for run in (each.manifest for each in stores) if workload in run.about), "")
    return Glance(workload, about, tuple(cell(workload, store) for store in stores))


def _sizes(engine: Any) -> str:
    return ", ".join(f"{what} {size / 2**20:,.1f} MB" for what, size in engine.sizes.items())


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())
