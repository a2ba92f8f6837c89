"""Performance: charts and tables say what the manifest says, gated rows have no number, and charts can be drawn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

import altair
import jsonschema
import msgspec
import pytest
import report_made as made
from memassay.benchmarks.artefact import Lag, Manifest, search_of
from memassay.benchmarks.profiles import FULL, QUICK, STANDARD
from memassay.benchmarks.workloads import WORKLOADS
from memassay.reports import charts, figures, site
from memassay.reports.charts import Charts, packed
from memassay.reports.given import Given
from report_pages import Page

NAMES = ("one", "five")


def page(*manifests: Manifest) -> Page:
    return Page(site.pages(Given(benchmarks=manifests))["performance.html"])


def drawn(found: Page) -> Any:
    """The charts of a page, their rows as rows."""
    (script,) = found.find("script", id="chart-data")
    data = json.loads("".join(script.texts))
    for chart in data["charts"].values():
        chart["data"] = {name: unpacked(columns) for name, columns in chart["data"].items()}
    return data


def unpacked(columns: Any) -> list[dict[str, Any]]:
    """As templates/charts.js does it."""
    read: dict[str, list[Any]] = {
        name: column if isinstance(column, list) else [column["of"][place] for place in column["at"]]
        for name, column in columns.items()
    }
    many = max((len(column) for column in read.values()), default=0)
    return [{name: column[row] for name, column in read.items()} for row in range(many)]


@pytest.fixture(scope="module")
def full() -> Page:
    """A full benchmark of two stores, one of which has no number for a search, and is slow."""
    return page(made.manifest(NAMES, FULL))


# At a glance


def cells(found: Page, workload: str) -> list[str]:
    """The stores' cells of a workload, the first table's."""
    row = next(row for row in found.find("tr") if row.text.startswith(workload + " "))
    return [cell.text for cell in found.find("td") if row in cell.parents]


def test_a_workload_has_its_peak_latency_and_recall(full: Page) -> None:
    (one, *_) = cells(full, "vector")
    assert one.split()[1:] == ["p99", *one.split()[2:3], "ms", "at", "90%", "of", "peak;", "recall", "0.970"]


def test_a_store_that_is_saturated_at_some_loads_tells_the_highest_that_it_keeps_up_with(full: Page) -> None:
    assert "at 75% of peak" in cells(full, "newest")[1]


def test_a_store_that_is_always_saturated_says_so() -> None:
    slow = made.manifest(("five",), msgspec.structs.replace(QUICK, shares=(0.9,)))
    assert "saturated at 90% of peak" in cells(page(slow), "newest")[0]


def test_a_gated_row_names_its_clauses_and_has_no_number(full: Page) -> None:
    assert cells(full, "vector-against-1%")[1] == "✗ no number VEC-4 fail (verify.json)"


def test_what_is_unsupported_says_why() -> None:
    manifest = made.manifest(NAMES, QUICK)
    rows = [row for row in manifest.rows if (row.contender, row.workload) != ("one", "newest")]
    lacking = {"one": {"newest": "needs storage"}}
    shown = page(msgspec.structs.replace(manifest, rows=rows, unsupported=lacking))
    assert cells(shown, "newest")[0] == "– unsupported needs storage"


def test_an_engine_that_died_says_so() -> None:
    manifest = made.manifest(NAMES, QUICK)
    died = {engine.name: msgspec.structs.replace(engine, error="it died") for engine in manifest.engines}
    engines = [died["one"], *(engine for engine in manifest.engines if engine.name != "one")]
    rows = [row for row in manifest.rows if row.contender != "one"]
    assert cells(page(msgspec.structs.replace(manifest, engines=engines, rows=rows)), "newest")[0] == "! error it died"


def test_floors_come_last_and_are_marked(full: Page) -> None:
    heads = [head.text for head in full.find("th", scope="col")]
    assert heads[:5] == ["Workload", "one", "five", "noop (floor)", "reference (floor)"]


def test_a_workload_says_what_it_asks(full: Page) -> None:
    assert any(row.text.startswith("newest what it asks") for row in full.find("tr"))


# Charts and their tables


def test_every_chart_has_data_and_a_table_under_it(full: Page) -> None:
    keys = [box.attributes["data-chart"] for box in full.find("div") if "data-chart" in box.attributes]
    assert keys == [*drawn(full)["charts"]]
    tables = [table for table in full.find("table") if any(parent.tag == "figure" for parent in table.parents)]
    assert len(tables) == len(keys) > 60


def test_a_full_benchmark_has_every_part(full: Page) -> None:
    parts = [heading.text for heading in full.find("h3") if heading.parents[-1].attributes.get("class") == "part"]
    assert parts == ["Recall against throughput", "Latency against load", "Percentiles", "Selectivity", "Freshness"]


def test_few_specifications_draw_all_charts(full: Page) -> None:
    assert len(drawn(full)["specs"]) == 5


def test_specifications_are_vega_lite(full: Page) -> None:
    schema = cast(Any, altair).load_schema()
    jsonschema.Draft7Validator.check_schema(schema)
    for spec in drawn(full)["specs"].values():
        cast(Any, jsonschema.Draft7Validator(schema)).validate({**spec, "datasets": {"rows": [], "zones": []}})


def test_charts_name_no_colours_but_those_of_text_on_tiles(full: Page) -> None:
    text = json.dumps(drawn(full)["specs"])
    assert {word for word in text.split('"') if word.startswith("#")} == set(charts.INKS.values())


def rows_of(found: Page, part: str, title: str, data: str = "rows") -> list[dict[str, Any]]:
    """A chart's rows, by the words of its caption."""
    label = f"Chart: {part}, {title}. The table under it has the figures."
    (box,) = found.find("div", **{"aria-label": label})
    return drawn(found)["charts"][box.attributes["data-chart"]]["data"][data]


def test_latency_is_of_every_load(full: Page) -> None:
    rows = rows_of(full, "Latency against load", "newest")
    shown = [(row["at"], row["percentile"]) for row in rows if row["store"] == "one"]
    assert shown == [(f"{share}% of peak", q) for share in (25, 50, 75, 90) for q in ("p50", "p99.9")]


def test_the_zone_of_saturation_begins_at_the_first_saturated_load(full: Page) -> None:
    rows = rows_of(full, "Latency against load", "newest")
    (zone,) = rows_of(full, "Latency against load", "newest", "zones")
    saturated = {row["load"] for row in rows if row["state"] == "saturated"}
    assert (zone["store"], {zone["load"]}) == ("five", saturated)


def test_percentiles_are_on_an_axis_of_nines(full: Page) -> None:
    rows = rows_of(full, "Percentiles", "newest")
    places = {row["percentile"]: row["nines"] for row in rows}
    assert (places["p90"], places["p99"], places["p99.9"]) == (1.0, 2.0, 3.0)


def test_a_manifest_without_curves_has_its_profile_s_percentiles() -> None:
    manifest = made.manifest(NAMES, STANDARD)
    old = msgspec.structs.replace(manifest, rows=[msgspec.structs.replace(row, curve_ms={}) for row in manifest.rows])
    shown = {row["percentile"] for row in rows_of(page(old), "Percentiles", "newest")}
    assert shown == {"p50", "p95", "p99"}


def test_the_heat_map_tells_recall_and_short_answers(full: Page) -> None:
    rows = rows_of(full, "Selectivity", "any rows")
    told = {(row["store"], row["left"]): row["text"] for row in rows}
    assert told["one", "1 %"] == "0.97"
    assert told["five", "1 %"] == "0.73\n1% short"


def test_the_heat_map_tells_a_gated_search_without_recall(full: Page) -> None:
    rows = rows_of(full, "Selectivity", "rows far from the query")
    (gated,) = [row for row in rows if (row["store"], row["left"]) == ("five", "1 %")]
    assert (gated["recall"], gated["text"]) == (None, "gated")


def test_a_heat_map_goes_from_all_rows_to_few(full: Page) -> None:
    rows = rows_of(full, "Selectivity", "any rows")
    assert list(dict.fromkeys(row["left"] for row in rows)) == ["100 %", "50 %", "10 %", "1 %", "0.1 %"]


def test_freshness_is_a_distribution(full: Page) -> None:
    rows = rows_of(full, "Freshness", "messages, by id")
    rows = [row for row in rows if (row["store"], row["end"]) == ("one", "there")]
    assert [row["part"] for row in rows] == sorted(row["part"] for row in rows)
    assert rows[-1]["part"] == 1.0


def test_rows_never_seen_keep_a_distribution_below_one() -> None:
    lag = Lag(blind_ns=[0] * 3, seen_ns=[1_000_000, 2_000_000, 3_000_000], never=1)
    manifest = made.manifest(NAMES, msgspec.structs.replace(QUICK, freshness=8))
    (messages, *_) = manifest.freshness["one"]
    fresh = {"one": [msgspec.structs.replace(messages, shown={"id": lag}, honoured={})]}
    rows = rows_of(page(msgspec.structs.replace(manifest, freshness=fresh)), "Freshness", "messages, by id")
    assert [(row["ms"], row["part"]) for row in rows] == [(1.0, 0.25), (2.0, 0.5), (3.0, 0.75)]


# Several runs


def settings() -> Sequence[Manifest]:
    return [made.manifest(NAMES, QUICK, m=m, recall=recall) for m, recall in ((4, 0.85), (16, 0.95), (32, 0.995))]


def test_settings_of_an_index_are_points_of_one_curve() -> None:
    rows = rows_of(page(*settings()), "Recall against throughput", "vector")
    assert [(row["setting"], row["recall"]) for row in rows if row["store"] == "one"] == [
        ("hnsw, m 4", 0.85),
        ("hnsw, m 16", 0.95),
        ("hnsw, m 32", 0.995),
    ]


def test_stores_are_compared_at_equal_recall() -> None:
    (row,) = [
        row.text.split() for row in page(*settings()).find("tr") if row.text.startswith("vector ops/s at the peak one")
    ]
    assert len(row) == 9
    assert all(float(value.replace(",", "")) > 1000 for value in row[-3:])


def benchmarks(found: Page) -> int:
    return len([*found.find("section", **{"class": "benchmark"})])


def test_runs_of_other_data_do_not_go_together() -> None:
    one = made.manifest(NAMES, QUICK)
    other = msgspec.structs.replace(one, data=msgspec.structs.replace(one.data, rows=7))
    assert benchmarks(page(one, other)) == 2


def test_runs_of_other_machines_do_not_go_together() -> None:
    one = made.manifest(NAMES, QUICK)
    assert benchmarks(page(one, msgspec.structs.replace(one, machine={"id": "1"}))) == 2


def test_stores_of_several_runs_say_of_which() -> None:
    heads = [head.text for head in page(*settings()).find("th", scope="col")]
    assert heads[1:5] == ["one (run 1)", "five (run 1)", "one (run 2)", "five (run 2)"]


# Names of workloads


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_s_name_says_whether_it_searches(name: str) -> None:
    workload = WORKLOADS[name]
    searches = workload.reads and not {"vectors", "semantic_recall"}.isdisjoint(workload.needs)
    assert (search_of(name) is not None) == searches


def test_a_workload_s_name_says_how_few_rows_its_filter_leaves() -> None:
    assert search_of("vector-against-0.1%") == ("against", 0.1)


# Data


@pytest.mark.parametrize(
    "rows", [[], [{"a": 1, "b": "x"}], [{"a": i, "b": "xy"[i % 2], "c": None} for i in range(20)]], ids=len
)
def test_packed_rows_unpack(rows: list[dict[str, Any]]) -> None:
    assert unpacked(packed(rows)) == rows


@pytest.mark.parametrize("text", ["one", "\u202e" * 30, "<" * 200, "0.73\n1% short"])
def test_a_label_of_a_label_is_the_same(text: str) -> None:
    assert charts.label(charts.label(text)) == charts.label(text)


def test_nothing_ends_the_data_within_a_page() -> None:
    found = Charts()
    found.add("key", "spec", dict, rows=[{"store": "</script><!--"}])
    assert not {"<", ">"} & set(found.json())


def test_without_altair_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(charts, "import_module", missing)
    with pytest.raises(charts.MissingLibrary, match="'altair', which is not installed"):
        page(made.manifest(NAMES, QUICK))


def test_a_figure_of_few_samples_is_not_available() -> None:
    assert figures.milliseconds(None) == "n/a"
