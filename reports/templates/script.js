// The filter of the matrix and the copy buttons. Without it the page shows everything.
"use strict";
(() => {
  const form = document.getElementById("filter");
  const text = document.getElementById("filter-text");
  const verdict = document.getElementById("filter-verdict");
  const told = document.getElementById("filter-count");
  const clauses = [...document.querySelectorAll("tr[data-clause]")].map((row) => {
    const section = document.getElementById(row.dataset.clause);
    const words = [row.querySelector("th"), section.querySelector(".statement")].map((part) => part.textContent);
    return { row, section, verdicts: row.dataset.verdicts.split(" "), words: words.join(" ").toLowerCase() };
  });

  const matches = (clause, words, wanted) =>
    words.every((word) => clause.words.includes(word)) &&
    (!wanted || clause.verdicts.some((found) => (wanted === "!pass" ? found !== "pass" : found === wanted)));

  const filter = () => {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const clause of clauses) {
      const match = matches(clause, words, verdict.value);
      clause.row.hidden = clause.section.hidden = !match;
      shown += match;
    }
    for (const family of document.querySelectorAll(".matrix tbody")) {
      family.hidden = !family.querySelector("tr[data-clause]:not([hidden])");
    }
    told.textContent = `${shown} of ${clauses.length} clauses shown`;
  };

  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (target.closest("[hidden]")) form.reset();
    target.scrollIntoView();
    if (target.matches("section, article")) target.focus({ preventScroll: true });
  };

  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => {
    text.value = verdict.value = "";
    filter();
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/" && !event.target.matches("input, select")) {
      event.preventDefault();
      text.focus();
    } else if (event.key === "Escape" && form.contains(event.target)) {
      form.reset();
    }
  });
  window.addEventListener("hashchange", reveal);

  const copy = async (code) => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      return true;
    } catch {
      getSelection().selectAllChildren(code);
      return document.execCommand("copy");
    }
  };
  for (const button of document.querySelectorAll(".copy")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const done = await copy(document.getElementById(button.dataset.copies));
      const said = document.getElementById("said");
      said.textContent = done ? "Copied" : "Selected: copy it by hand";
      button.textContent = done ? "Copied" : "Selected";
      setTimeout(() => {
        button.textContent = "Copy";
        said.textContent = "";
      }, 2000);
    });
  }

  // What scrolls can be reached and scrolled by keyboard; what does not is no stop on the way.
  const stops = () => {
    for (const box of document.querySelectorAll(".scroll")) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  window.addEventListener("resize", stops);

  form.hidden = false;
  filter();
  stops();
  reveal();
})();
