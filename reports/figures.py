"""Figures of benchmarks, by what they are about: charts, each with its table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from ..benchmarks.artefact import Freshness, Lag, Manifest, Row, Search, remarks, search_of
from ..benchmarks.equal_recall import TARGETS, Curve, curves, frontier
from . import charts
from .charts import Charts

FLOOR = "floor"
QUANTILES = (*range(0, 100, 5), 99, 100)
"""Percentages of rows at which a distribution of freshness is drawn."""

KINDS = {"shown": "there", "honoured": "gone"}
"""What was waited for: a row that was written, and one that was deleted."""

LAST = 1.3
"""Where a zone of saturation ends, as a multiple of the highest load that a store was asked."""


class Store(NamedTuple):
    """A contender of one run, by the name that charts have for it."""

    label: str
    number: int
    manifest: Manifest
    name: str
    floor: bool


class Table(NamedTuple):
    """Rows of words; the first `heads` columns say what the row is about."""

    heads: int
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""


class Figure(NamedTuple):
    """A chart, by the key of its data, and the table under it."""

    key: str
    title: str
    table: Table


class Part(NamedTuple):
    """Figures about one question."""

    key: str
    title: str
    lead: str
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...] = ()


class Cell(NamedTuple):
    """A store in a workload, at a glance. kind: figure, gated, unsupported, error or none."""

    kind: str
    first: str = ""
    second: str = ""
    clauses: tuple[tuple[str, str], ...] = ()


def contenders(runs: Sequence[Manifest]) -> Iterator[Store]:
    """Contenders of all runs, and at the end the floors, behind which is no store, of the first."""
    for number, run in enumerate(runs, 1):
        for engine in run.engines:
            if engine.kind != FLOOR:
                label = engine.name if len(runs) == 1 else f"{engine.name} (run {number})"
                yield Store(charts.label(label), number, run, engine.name, floor=False)
    for engine in runs[0].engines:
        if engine.kind == FLOOR:
            yield Store(charts.label(f"{engine.name} (floor)"), 1, runs[0], engine.name, floor=True)


def rows_of(store: Store, workload: str) -> list[Row]:
    """All phases and loads of a workload on a store."""
    return [row for row in store.manifest.rows if (row.contender, row.workload) == (store.name, workload)]


def cell(workload: str, store: Store) -> Cell:
    """A store in a workload, at a glance: its figures, or why there are none."""
    run = store.manifest
    for gate in run.gates:
        if (gate.contender, gate.workload) == (store.name, workload):
            return Cell("gated", gate.source, clauses=tuple(gate.clauses.items()))
    if reason := run.unsupported.get(store.name, {}).get(workload):
        return Cell("unsupported", reason)
    rows = rows_of(store, workload)
    closed = next((row for row in rows if row.phase == "closed"), None)
    if closed is None:
        error = next((engine.error for engine in run.engines if engine.name == store.name), "")
        return Cell("error", error) if error else Cell("none")
    opened = [row for row in rows if row.phase == "open"]
    calm = [row for row in opened if not row.saturated]
    parts: list[str] = []
    if opened and not calm:
        parts.append(f"saturated at {load_of(min(opened, key=lambda row: row.rate))}")
    if calm:
        row = max(calm, key=lambda row: row.rate)
        q = next((q for q in ("99", "95", "50") if row.response_ms.get(q) is not None), None)
        if q:
            parts.append(f"p{q} {milliseconds(row.response_ms[q])} ms at {load_of(row)}")
    if closed.recall is not None and search_of(workload):
        parts.append(f"recall {closed.recall:.3f}")
    parts += [f"{part:.1%} short" for part in [closed.short / closed.samples] if part]
    return Cell("figure", f"{closed.throughput:,.0f}", "; ".join(parts))


# Recall against throughput, at equal recall


def recall(key: str, runs: Sequence[Manifest], stores: Sequence[Store], drawn: Charts) -> Part:
    """Searches by throughput and recall, and what each setting gives at equal recall; the charts go into `drawn`."""
    found = curves(runs)
    floors = {store.name for store in stores if store.floor}
    names = list(dict.fromkeys(charts.label(store.name) for store in stores if store.name not in floors))
    figures: list[Figure] = []
    peaks = [curve for curve in found if curve.yields and curve.contender not in floors]
    for workload, own in groupby(peaks, key=lambda curve: curve.workload):
        curves_here = list(own)
        rows = [row for curve in curves_here for row in _points(curve)]
        chart = f"{key}-recall-{len(figures)}"
        drawn.add(chart, f"{key}-recall", lambda: charts.recall(names), rows=rows)
        cells = tuple(
            (row["store"], row["setting"], f"{row['recall']:.3f}", f"{row['value']:,.0f}", "" if row["pays"] else "yes")
            for row in rows
        )
        columns = ("store", "setting", "recall", "ops/s at the peak", "beaten by another setting")
        figures.append(Figure(chart, workload, Table(2, columns, cells)))
    tables = (
        Table(
            3,
            ("search", "unit", "store", *(f"recall {target:.2f}" for target in TARGETS)),
            tuple(
                (curve.workload, curve.unit, curve.contender, *(curve.told(curve.at(target)) for target in TARGETS))
                for curve in found
                if curve.contender not in floors and curve.yields == yields
            ),
            title,
        )
        for yields, title in ((True, "At equal recall: throughput at the peak"), (False, "At equal recall: latency"))
    )
    return Part(
        f"{key}-recall",
        "Recall against throughput",
        "Closed loop, at the peak. A point is a setting of an index; a line joins those that no other setting beats."
        " At equal recall a value is read off the line: ≥ and ≤ where every setting finds more, so that it may only be"
        " better.",
        tuple(figures),
        tuple(table for table in tables if table.rows),
    )


def _points(curve: Curve) -> Iterator[dict[str, Any]]:
    kept = frontier(curve.points, higher_is_better=curve.yields)
    for point in sorted(curve.points, key=lambda point: (point.recall, point.value)):
        yield {
            "store": curve.contender,
            "setting": point.setting or "default",
            "recall": round(point.recall, 5),
            "value": round(point.value, 1),
            "pays": point in kept,
        }


# Latency


def latency(key: str, workloads: Sequence[str], stores: Sequence[Store], drawn: Charts) -> Part:
    """Response times by load."""
    figures: list[Figure] = []
    names = [store.label for store in stores]
    for workload in workloads:
        opened = [(store, row) for store in stores for row in _opened(store, workload)]
        if not opened:
            continue
        wanted = _shown([row for _, row in opened])
        rows = [
            {
                "store": store.label,
                "at": load_of(row),
                "load": round(row.rate, 2),
                "percentile": f"p{q}",
                "ms": round(ms, 4),
                "state": "saturated" if row.saturated else "keeps up",
            }
            for store, row in opened
            for q in wanted
            if (ms := row.response_ms.get(q)) is not None
        ]
        chart = f"{key}-latency-{len(figures)}"
        drawn.add(
            chart,
            f"{key}-latency-{'-'.join(wanted)}",
            lambda wanted=wanted: charts.latency(names, [f"p{q}" for q in wanted]),
            rows=rows,
            zones=[*_zones(opened)],
        )
        figures.append(Figure(chart, workload, _latencies(opened)))
    return Part(
        f"{key}-latency",
        "Latency against load",
        "Open loop: from when an operation was due to its end. Hollow points are saturated, and their zone is shaded:"
        " the store fell behind, and the times are of a backlog. A click on the legend brings a store out.",
        tuple(figures),
    )


def _opened(store: Store, workload: str) -> list[Row]:
    return sorted((row for row in rows_of(store, workload) if row.phase == "open"), key=lambda row: row.rate)


def _shown(rows: Sequence[Row]) -> list[str]:
    """The median, and the highest percentile that any row has."""
    there = {q for row in rows for q, ms in row.response_ms.items() if ms is not None}
    return sorted({*(q for q in ("50",) if q in there), *sorted(there, key=float)[-1:]}, key=float)


def _zones(opened: Sequence[tuple[Store, Row]]) -> Iterator[dict[str, Any]]:
    """From the least load at which a store is saturated."""
    for store, own in groupby(opened, key=lambda each: each[0]):
        rates = [row.rate for _, row in own if row.saturated]
        if rates:
            yield {
                "store": store.label,
                "load": round(min(rates), 2),
                "to": round(max(rates) * LAST, 2),
                "zone": f"saturated from {min(rates):,.0f} operations a second on",
            }


def _latencies(opened: Sequence[tuple[Store, Row]]) -> Table:
    wanted = list(dict.fromkeys(q for _, row in opened for q in row.response_ms))
    columns = ("store", "load", "asked/s", "answered/s", *(f"p{q} ms" for q in wanted), "samples", "remarks")
    rows = (
        (
            store.label,
            load_of(row),
            f"{row.rate:,.0f}",
            f"{row.throughput:,.0f}",
            *(milliseconds(row.response_ms.get(q)) for q in wanted),
            f"{row.samples:,}",
            ", ".join(remarks(row, bound=False)),
        )
        for store, row in opened
    )
    return Table(2, columns, tuple(rows))


def percentiles(key: str, workloads: Sequence[str], stores: Sequence[Store], drawn: Charts) -> Part:
    """Response times by percentile."""
    figures: list[Figure] = []
    names = [store.label for store in stores]
    for workload in workloads:
        opened = [(store, row) for store in stores for row in _opened(store, workload)]
        rows = [
            {
                "store": store.label,
                "load": load_of(row),
                "nines": round(-math.log10(1 - float(q) / 100), 5),
                "percentile": f"p{q}",
                "ms": ms,
            }
            for store, row in opened
            for q, ms in _curve(row).items()
        ]
        if not rows:
            continue
        loads = list(dict.fromkeys(load_of(row) for _, row in opened))
        chart = f"{key}-percentiles-{len(figures)}"
        drawn.add(
            chart,
            f"{key}-percentiles-{'-'.join(loads)}",
            lambda loads=loads: charts.percentiles(names, loads),
            rows=rows,
        )
        figures.append(Figure(chart, workload, _by_percentile(opened)))
    return Part(
        f"{key}-percentiles",
        "Percentiles",
        "Response times in open loop, as far into the tail as there are samples: each percentile needs ten beyond it.",
        tuple(figures),
    )


def _curve(row: Row) -> dict[str, float]:
    """All percentiles known of a row; runs by an older memassay have those of their profile alone."""
    known = row.curve_ms or {q: ms for q, ms in row.response_ms.items() if ms is not None}
    return {q: ms for q, ms in known.items() if float(q) < 100}  # the axis of nines has no end


def _by_percentile(opened: Sequence[tuple[Store, Row]]) -> Table:
    wanted = sorted({q for _, row in opened for q in _curve(row)}, key=float)
    rows = ((store.label, load_of(row), *(milliseconds(_curve(row).get(q)) for q in wanted)) for store, row in opened)
    return Table(2, ("store", "load", *(f"p{q} ms" for q in wanted)), tuple(rows))


# Selectivity


def selectivity(key: str, stores: Sequence[Store], drawn: Charts) -> Part:
    """Recall by how few rows a filter leaves, a heat map for each place where these lie."""
    searches: dict[str, Search] = {}
    for store in stores:
        for name in store.manifest.profile.workloads:
            found = search_of(name)
            if found is not None and found.percent is not None:
                searches[name] = found
    relations = [each for each in dict.fromkeys(search.relation for search in searches.values()) if each != "none"]
    figures: list[Figure] = []
    real = [store for store in stores if not store.floor]
    for relation in relations:
        own = {name: search for name, search in searches.items() if search.relation in (relation, "none")}
        names = sorted(own, key=lambda name: -(own[name].percent or 0))
        rows = [_tile(store, name, own[name]) for store in real for name in names]
        chart = f"{key}-selectivity-{relation}"
        labels = [_left(own[name]) for name in names]
        drawn.add(
            chart,
            f"{key}-selectivity-{'-'.join(labels)}",
            lambda labels=labels: charts.selectivity([store.label for store in real], labels),
            rows=rows,
        )
        cells = tuple(
            (
                row["store"],
                row["left"],
                row["text"] if row["recall"] is None else f"{row['recall']:.3f}",
                row["short"],
                row["p50"],
            )
            for row in rows
        )
        columns = ("store", "rows left", "recall", "short answers", "p50 ms, closed loop")
        title = {"independent": "any rows", "aligned": "rows near the query", "against": "rows far from the query"}
        figures.append(Figure(chart, title.get(relation or "", relation or ""), Table(2, columns, cells)))
    return Part(
        f"{key}-selectivity",
        "Selectivity",
        "Recall of filtered searches by how few rows the filter leaves, and where these lie; and in how many answers"
        " rows were missing although there were enough.",
        tuple(figures),
    )


def _tile(store: Store, workload: str, search: Search) -> dict[str, Any]:
    row = next((row for row in rows_of(store, workload) if row.phase == "closed"), None)
    told: dict[str, Any] = {
        "store": store.label,
        "left": _left(search),
        "recall": None,
        "short": "",
        "ms": None,
        "p50": "",
    }
    if row is None or row.recall is None:
        kind = cell(workload, store).kind
        text = kind if kind in ("gated", "unsupported") else "no number"
        return {**told, "text": text, "exact": text, "ms": None, "p50": ""}
    short = row.short / row.samples
    service = row.service_ms.get("50")
    return {
        **told,
        "recall": round(row.recall, 4),
        "ink": charts.ink(row.recall),
        "exact": f"{row.recall:.3f}",
        "short": f"{short:.1%}",
        "ms": service,
        "p50": milliseconds(service),
        "text": f"{row.recall:.2f}" + (f"\n{short:.0%} short" if short else ""),
    }


def _left(search: Search) -> str:
    return f"{search.percent:g} %"


# Freshness


def freshness(key: str, stores: Sequence[Store], drawn: Charts) -> Part:
    """When writes and deletions showed, as distributions, by kind of rows and way of looking."""
    found: dict[tuple[str, str], list[tuple[Store, str, Lag]]] = {}
    for store in stores:
        for each in store.manifest.freshness.get(store.name, []):
            for attribute, end in KINDS.items():
                lags: Mapping[str, Lag] = getattr(each, attribute)
                for way, lag in lags.items():
                    found.setdefault((each.kind, way), []).append((store, end, lag))
    figures: list[Figure] = []
    names = [store.label for store in stores]
    for (kind, way), among in found.items():
        chart = f"{key}-freshness-{len(figures)}"
        rows = [row for store, end, lag in among for row in _distribution(store, end, lag)]
        drawn.add(chart, f"{key}-freshness", lambda: charts.freshness(names, list(KINDS.values())), rows=rows)
        cells = tuple(
            (
                store.label,
                end,
                *("never" if ms == math.inf else milliseconds(ms) for ms in (lag.at(50), lag.at(95))),
                str(lag.stale),
                str(lag.never),
                str(len(lag.seen_ns) + lag.never),
            )
            for store, end, lag in among
        )
        columns = ("store", "row is", "p50 ms", "p95 ms", "stale looks", "never", "of")
        figures.append(Figure(chart, f"{kind}, by {way}", Table(2, columns, cells)))
    counts = tuple(_counts(store, each) for store in stores for each in store.manifest.freshness.get(store.name, []))
    columns = ("store", "rows", "given", "acknowledged", "visible", "rejected", "deleted", "left")
    return Part(
        f"{key}-freshness",
        "Freshness",
        "From the acknowledgement of a write until another client sees it, row by row, and of a deletion until the row"
        " is gone. Stale: the first look did not show it yet.",
        tuple(figures),
        (Table(2, columns, counts, "Rows that were written and deleted"),) if counts else (),
    )


def _distribution(store: Store, end: str, lag: Lag) -> Iterator[dict[str, Any]]:
    many = len(lag.seen_ns) + lag.never
    seen = sorted(lag.seen_ns)
    for place in dict.fromkeys(min(many - 1, many * each // 100) for each in QUANTILES) if many else ():
        if place < len(seen):
            part = round((place + 1) / many, 4)
            yield {"store": store.label, "end": end, "ms": round(max(seen[place], 1) / 1e6, 5), "part": part}


def _counts(store: Store, each: Freshness) -> tuple[str, ...]:
    counted = (each.given, each.acknowledged, each.visible, sum(each.rejected.values()), each.deleted, each.left)
    return (store.label, each.kind, *(f"{number:,}" for number in counted))


# In words


def load_of(row: Row) -> str:
    """At which load a row was measured."""
    return f"{row.share:.0%} of peak" if row.share else f"{row.rate:,.0f}/s"


def milliseconds(value: float | None) -> str:
    """A time as figures have it; n/a where there are too few samples."""
    return "n/a" if value is None else f"{value:.2f}" if value < 100 else f"{value:,.0f}"
