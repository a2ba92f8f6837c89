// The filter, links into what it hides, and the copy buttons. Without it a page shows everything.
"use strict";
(() => {
  const form = document.querySelector(".filter");
  const items = [...document.querySelectorAll(".item")].map((element) => ({
    element,
    words: element.dataset.words,
    verdicts: (element.dataset.verdicts ?? "").split(" "),
  }));
  const text = document.getElementById("filter-text");
  const verdict = document.getElementById("filter-verdict");

  const matches = (item, words, wanted) =>
    words.every((word) => item.words.includes(word)) &&
    (!wanted || item.verdicts.some((found) => (wanted === "!pass" ? found !== "pass" : found === wanted)));

  const filter = () => {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = verdict?.value ?? "";
    let shown = 0;
    for (const item of items) {
      const match = matches(item, words, wanted);
      item.element.hidden = !match;
      shown += match;
    }
    for (const group of [...document.querySelectorAll(".group")].reverse()) {
      group.hidden = !group.querySelector(".item:not([hidden])");
    }
    const what = form.dataset.what.toLowerCase();
    form.querySelector(".filter-count").textContent = `${shown} of ${items.length} ${what} shown`;
    stops();
  };

  // What is filtered stands in the address, as #?words=…&verdict=…, so that a link shows the same.
  const remember = () => {
    const asked = new URLSearchParams();
    if (text.value) asked.set("words", text.value);
    if (verdict?.value) asked.set("verdict", verdict.value);
    const address = [...asked].length ? `#?${asked}` : location.pathname + location.search;
    try {
      history.replaceState(null, "", address);
    } catch {
      // Some browsers refuse that for files on disk; the filter works all the same.
    }
  };
  const recall = () => {
    const asked = new URLSearchParams(location.hash.slice(2));
    text.value = asked.get("words") ?? "";
    if (verdict) verdict.value = asked.get("verdict") ?? "";
    if (verdict && verdict.selectedIndex < 0) verdict.value = "";
    filter();
  };

  const reveal = () => {
    if (form && location.hash.startsWith("#?")) return recall();
    let name = location.hash.slice(1);
    try {
      name = decodeURIComponent(name);
    } catch {
      return;
    }
    const target = document.getElementById(name);
    if (!target) return;
    if (form && target.closest("[hidden]")) form.reset();
    for (let around = target.closest("details"); around; around = around.parentElement.closest("details")) {
      around.open = true;
    }
    target.scrollIntoView();
    if (target.matches("section, article")) target.focus({ preventScroll: true });
  };

  // What scrolls can be reached and scrolled by keyboard; what does not is no stop on the way.
  const stops = () => {
    for (const box of document.querySelectorAll(".scroll")) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };

  if (form) {
    form.addEventListener("input", () => {
      filter();
      remember();
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => {
      text.value = "";
      if (verdict) verdict.value = "";
      filter();
      if (location.hash.startsWith("#?")) remember();
    });
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "/" && !event.target.matches("input, select, textarea")) {
        event.preventDefault();
        text.focus();
      } else if (event.key === "Escape" && form.contains(event.target)) {
        form.reset();
      }
    });
    form.hidden = false;
    filter();
  }
  window.addEventListener("hashchange", reveal);
  window.addEventListener("resize", stops);
  document.addEventListener("toggle", stops, true);

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

  stops();
  reveal();
})();
