"""Charts of benchmarks as Vega-Lite, by altair; the libraries that draw them come with vl-convert, for a page to hold.

Colours are of the page, which has a light and a dark theme (templates/charts.js): a chart names no colour.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

from .values import cut, visible

Spec = Mapping[str, Any]
Rows = Sequence[Mapping[str, Any]]

LONGEST = 80
"""Characters of a text before it is cut."""

HEIGHT = 260
ROW = 36
"""Pixels of a line of a heat map."""

INKS = {"dark": "#000000", "light": "#ffffff"}
"""Of text on the tiles of a heat map, whose colours are the same on a light and on a dark page."""

LIGHT = 0.5
"""Recall from which on a tile is light."""


def ink(recall: float) -> str:
    """Which of INKS can be read on the tile of a recall."""
    return "dark" if recall >= LIGHT else "light"


TICKS = [factor * 10.0**power for power in range(-5, 9) for factor in (1, 3)]
"""Where a logarithmic axis has labels."""

NINES = "format(100 - 100 * pow(10, -datum.value), '~g') + ' %'"
"""The label of a place on the axis of percentiles: 2 is 99 %, 3 is 99.9 %."""

PERCENTILES = [0, 0.30103, 1, 2, 3, 4]
"""Where that axis has labels: 0, 50, 90, 99, 99.9 and 99.99 %."""


class MissingLibrary(Exception):
    """A library that charts need is not installed."""

    def __init__(self, module: str) -> None:
        super().__init__(f"charts need the module {module!r}, which is not installed")


def libraries() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, which defines `vegaEmbed`. Raises MissingLibrary."""
    version = ".".join(_library("altair").SCHEMA_VERSION.lstrip("v").split(".")[:2])
    return _bundle(version)


@lru_cache(maxsize=2)
def _bundle(version: str) -> str:
    script: str = _library("vl_convert").javascript_bundle(vl_version=version)
    # Its names stay its own, and nothing ends the script, or begins a comment in it, within a page.
    return "(() => {" + script.replace("</script", r"<\/script").replace("<!--", r"<\!--") + "})();"


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise MissingLibrary(error.name or name) from None


class Charts:
    """The charts of a page: few specifications, and the rows that each chart draws by one of them."""

    def __init__(self) -> None:
        self._specs: dict[str, Spec] = {}
        self._drawn: dict[str, dict[str, Any]] = {}

    def add(self, key: str, spec: str, make: Callable[[], Spec], **data: Rows) -> None:
        """A chart, by the key of its place in the page. spec: the specification's name; it is made when it is new."""
        if spec not in self._specs:
            self._specs[spec] = make()
        self._drawn[key] = {"spec": spec, "data": {name: packed(rows) for name, rows in data.items()}}

    def __bool__(self) -> bool:
        return bool(self._drawn)

    def json(self) -> str:
        """All of them, as JSON that nothing in it can end within a page."""
        text = json.dumps(
            {"specs": self._specs, "charts": self._drawn}, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        )
        for character in "<>&\u2028\u2029":
            text = text.replace(character, f"\\u{ord(character):04x}")
        return text


def label(text: str) -> str:
    """A text as charts show it: short, and nothing in it that hides or reorders."""
    # Escaped before it is cut, so that a label of a label is the same: scales know stores by it.
    return cut("\n".join(visible(line) for line in text.split("\n")), LONGEST)


def packed(rows: Rows) -> dict[str, Any]:
    """Rows by column; one with few different values as these (`of`) and which of them each row has (`at`)."""
    columns: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [label(value) if isinstance(value := row.get(name), str) else value for row in rows]
        different = list(dict.fromkeys(values))
        few = len(different) <= len(values) / 3
        places = {value: place for place, value in enumerate(different)}
        columns[name] = {"of": different, "at": [places[value] for value in values]} if few else values
    return columns


def latency(stores: Sequence[str], percentiles: Sequence[str]) -> Spec:
    """Response times by load. rows: store, at, load, ms, percentile, state; zones: store, zone, from which load to
    which it is saturated."""
    alt = _library("altair")
    focus = _focus(alt)
    colour, shape = _colour(alt, stores), _shape(alt, stores)
    dash = alt.StrokeDash("percentile:N", sort=list(percentiles), title=None, legend=alt.Legend(orient="top"))
    x = alt.X(
        "load:Q",
        title="operations a second asked for",
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=_decades(alt),
    )
    y = alt.Y("ms:Q", title="response time, ms", scale=alt.Scale(type="log"), axis=_decades(alt))
    shown = _among(alt, focus)
    whole = alt.Chart(alt.NamedData("rows")).encode(x=x, y=y, color=colour, opacity=shown)
    lines = whole.mark_line(strokeWidth=2).encode(strokeDash=dash)
    points = whole.encode(shape=shape, tooltip=_tips(alt, "store", "percentile", "at", "load", "ms", "state"))
    calm = points.mark_point(size=60, filled=True).transform_filter("datum.state !== 'saturated'")
    late = points.mark_point(size=80, strokeWidth=2).transform_filter("datum.state === 'saturated'")
    zones = alt.Chart(alt.NamedData("zones")).mark_rect(opacity=0.15)
    zones = zones.encode(x=x, x2="to:Q", color=colour, tooltip=_tips(alt, "store", "zone"))
    return _spec(alt.layer(zones, lines, calm, late.add_params(focus)), "Response times by load")


def percentiles(stores: Sequence[str], loads: Sequence[str]) -> Spec:
    """Response times by percentile. rows: store, load, nines (-log10 of what is beyond), percentile, ms. One load is
    shown, and can be chosen where there are several."""
    alt = _library("altair")
    focus = _focus(alt)
    x = alt.X(
        "nines:Q",
        title="percentile",
        scale=alt.Scale(domainMin=0, nice=False),
        axis=alt.Axis(values=PERCENTILES, labelExpr=NINES),
    )
    y = alt.Y("ms:Q", title="response time, ms", scale=alt.Scale(type="log"), axis=_decades(alt))
    chart = (
        alt.Chart(alt.NamedData("rows"))
        .mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=45, filled=True))
        .encode(
            x=x,
            y=y,
            color=_colour(alt, stores),
            shape=_shape(alt, stores),
            opacity=_among(alt, focus),
            tooltip=_tips(alt, "store", "load", "percentile", "ms"),
        )
        .add_params(focus)
    )
    if len(loads) > 1:
        choice = alt.selection_point(
            name="load", fields=["load"], bind=alt.binding_select(options=list(loads), name="Load "), value=loads[-1]
        )
        chart = chart.add_params(choice).transform_filter(choice)
    return _spec(chart, "Response times by percentile")


def recall(stores: Sequence[str]) -> Spec:
    """Throughput by recall. rows: store, recall, value, setting, pays (no other setting finds as much for less)."""
    alt = _library("altair")
    x = alt.X("recall:Q", title="recall", scale=alt.Scale(zero=False, domainMax=1, padding=8))
    y = alt.Y("value:Q", title="operations a second", scale=alt.Scale(type="log"), axis=_decades(alt))
    whole = alt.Chart(alt.NamedData("rows")).encode(x=x, y=y, color=_colour(alt, stores))
    lines = whole.mark_line(strokeWidth=1.5).transform_filter("datum.pays").encode(order="recall:Q")
    points = whole.mark_point(size=90, strokeWidth=2, filled=True, opacity=1).encode(
        shape=_shape(alt, stores), tooltip=_tips(alt, "store", "setting", "recall", "value")
    )
    return _spec(alt.layer(lines, points), "Throughput by recall")


def selectivity(stores: Sequence[str], selectivities: Sequence[str]) -> Spec:
    """Recall by how few rows a filter leaves, as a heat map. rows: store, left, recall
    (None without a number), short, ms, text, ink (of the text)."""
    alt = _library("altair")
    whole = alt.Chart(alt.NamedData("rows")).encode(
        x=alt.X("left:O", sort=list(selectivities), title="rows that the filter leaves", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("store:N", sort=list(stores), title=None),
    )
    tiles = whole.mark_rect(stroke="transparent", strokeWidth=2).encode(
        color=alt.Color(
            "recall:Q",
            title="recall",
            scale=alt.Scale(domain=[0, 1], scheme="cividis"),
            legend=alt.Legend(gradientLength=120, orient="top", direction="horizontal"),
        ),
        tooltip=_tips(alt, "store", "left", "recall", "short", "ms"),
    )
    ink = alt.Color("ink:N", scale=alt.Scale(domain=list(INKS), range=list(INKS.values())), legend=None)
    words = (
        whole.mark_text(fontSize=11, lineBreak="\n")
        .transform_filter("isValid(datum.recall)")
        .encode(text="text:N", color=ink)
    )
    gaps = whole.mark_text(fontSize=11).transform_filter("!isValid(datum.recall)").encode(text="text:N")
    spec = _spec(alt.layer(tiles, words, gaps).resolve_scale(color="independent"), "Recall by selectivity")
    return {**spec, "height": ROW * len(stores)}


def freshness(stores: Sequence[str], ends: Sequence[str]) -> Spec:
    """What part of the rows was seen, by time. rows: store, end (there, gone), ms, part."""
    alt = _library("altair")
    focus = _focus(alt)
    chart = (
        alt.Chart(alt.NamedData("rows"))
        .mark_line(strokeWidth=2, interpolate="step-after")
        .encode(
            x=alt.X("ms:Q", title="ms since acknowledged", scale=alt.Scale(type="log"), axis=_decades(alt)),
            y=alt.Y(
                "part:Q",
                title="part of the rows",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format="%", tickCount=5),
            ),
            color=_colour(alt, stores),
            strokeDash=alt.StrokeDash("end:N", sort=list(ends), title="row is", legend=alt.Legend(orient="top")),
            opacity=_among(alt, focus),
            tooltip=_tips(alt, "store", "end", "part", "ms"),
        )
        .add_params(focus)
    )
    return _spec(chart, "Rows seen by time since the acknowledgement")


def _spec(chart: Any, description: str) -> dict[str, Any]:
    spec: dict[str, Any] = chart.properties(width="container", height=HEIGHT, description=description).to_dict()
    spec.pop("config", None)  # the page's
    return spec


def _focus(alt: Any) -> Any:
    """A click on the legend shows one store among the others."""
    return alt.selection_point(name="focus", fields=["store"], bind="legend")


def _among(alt: Any, focus: Any) -> Any:
    return alt.condition(focus, alt.value(1), alt.value(0.12))


def _decades(alt: Any) -> Any:
    """An axis of powers of ten, and three times these."""
    return alt.Axis(values=TICKS)


def _domain(alt: Any, stores: Sequence[str]) -> Any:
    """The same store has the same colour and shape in every chart of a benchmark."""
    return alt.Scale(domain=list(stores))


def _colour(alt: Any, stores: Sequence[str]) -> Any:
    return alt.Color("store:N", scale=_domain(alt, stores), title=None, legend=alt.Legend(symbolOpacity=1))


def _shape(alt: Any, stores: Sequence[str]) -> Any:
    return alt.Shape("store:N", scale=_domain(alt, stores), title=None)


def _tips(alt: Any, *fields: str) -> list[Any]:
    kinds = {"load": "Q", "ms": "Q", "recall": "Q", "value": "Q", "part": "Q"}
    formats = {"load": ",.0f", "ms": ".3~g", "recall": ".3f", "value": ",.0f", "part": ".0%"}
    titles = {"value": "ops/s", "ms": "ms"}
    return [
        alt.Tooltip(
            f"{field}:{kinds.get(field, 'N')}",
            title=titles.get(field, field),
            **({"format": formats[field]} if field in formats else {}),
        )
        for field in fields
    ]
