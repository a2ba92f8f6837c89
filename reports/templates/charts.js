// Draws charts when they come near, in the colours of the page, and again when these change.
"use strict";
(() => {
  const { specs, charts } = JSON.parse(document.getElementById("chart-data").textContent);
  // One fewer than there are colours, so that no pair of both comes twice for long.
  const shapes = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right"];
  const drawn = new Map();

  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(`--${name}`).trim();
    const text = { labelColor: of("quiet"), titleColor: of("text") };
    return {
      background: null,
      font: getComputedStyle(document.body).fontFamily,
      axis: { ...text, gridColor: of("line"), domainColor: of("quiet"), tickColor: of("quiet"), gridOpacity: 0.6,
        labelFontSize: 11, titleFontSize: 12, titleFontWeight: "normal", labelOverlap: true },
      legend: { labelColor: of("text"), titleColor: of("quiet"), orient: "bottom", columns: 2, labelLimit: 220,
        labelFontSize: 12, titleFontSize: 11, titleFontWeight: "normal", symbolStrokeWidth: 2 },
      text: { color: of("text") },
      view: { stroke: of("line") },
      range: { category: [1, 2, 3, 4, 5, 6, 7, 8].map((number) => of(`series-${number}`)), symbol: shapes },
    };
  };

  // Rows by column, as charts.packed makes them, back into rows.
  const rows = (columns) => {
    const read = Object.entries(columns).map(([name, column]) =>
      Array.isArray(column) ? [name, column] : [name, column.at.map((place) => column.of[place])],
    );
    const many = read.length ? read[0][1].length : 0;
    return Array.from({ length: many }, (_, row) => Object.fromEntries(read.map(([name, column]) => [name, column[row]])));
  };

  const draw = async (box) => {
    drawn.get(box)?.finalize();
    const controls = box.nextElementSibling;
    controls.replaceChildren();
    const { spec, data } = charts[box.dataset.chart];
    const datasets = Object.fromEntries(Object.entries(data).map(([name, columns]) => [name, rows(columns)]));
    const found = await vegaEmbed(box, { ...specs[spec], datasets }, {
      mode: "vega-lite",
      ast: true, // expressions are interpreted: the page's policy forbids to make code
      renderer: "svg",
      actions: false,
      logLevel: 1, // errors: that nothing is saturated is no warning
      defaultStyle: false,
      bind: controls,
      config: colours(),
      tooltip: { disableDefaultStyle: true },
    });
    box.querySelector("svg").setAttribute("aria-hidden", "true"); // the box says what it is, the table what is in it
    drawn.set(box, found);
    box.dataset.drawn = "";
  };

  const near = new IntersectionObserver(
    (entries) => {
      for (const entry of entries.filter((each) => each.isIntersecting)) {
        near.unobserve(entry.target);
        draw(entry.target);
      }
    },
    { rootMargin: "600px" },
  );
  for (const box of document.querySelectorAll("[data-chart]")) near.observe(box);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => [...drawn.keys()].forEach(draw));
  window.addEventListener("beforeprint", () => document.querySelectorAll("[data-chart]:not([data-drawn])").forEach(draw));
})();
