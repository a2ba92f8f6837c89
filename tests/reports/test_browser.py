"""The site in a real Chromium: opened from disk, filtered, linked into, copied from, in both themes, by axe."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import browser
import msgspec
import pytest
import report_made as made
from browser import Visit
from memassay.benchmarks.profiles import QUICK
from memassay.harness.artefact import Case, Finding, Found
from memassay.reports import site
from memassay.reports.given import CaseFile, Given
from memassay.spec.clauses import CLAUSES
from memassay.spec.divergence import Signature
from memassay.spec.program import CreateThread, Observe, Program, Recall
from playwright.sync_api import Browser, expect

Open = Callable[..., Visit]

FILES = (
    *("index.html", "clauses.html", "deviations.html", "findings.html", "mutants.html"),
    *("performance.html", "changes.html"),
)
WIDE, NARROW = 1280, 390

WORKLOADS = ("newest", "vector", "vector-independent-10%")

SOME = [clause.id for clause in CLAUSES.values() if clause.family in ("VAL", "ORD", "FLT", "VEC")]
"""Clauses that were asked for: enough to scroll, few enough for axe to be quick."""

MARKUP = (
    "</script></style><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
    "<a href='javascript:window.hacked = 1'>x</a> {{7*7}} ${7*7} \u202e\u2066\x00\x1b"
)
LONG = "x" * (1 << 20)


def found(clause: str, text: str, *, file: str | None, long: str = "y") -> Finding:
    """A finding whose texts are these."""
    case = Case(
        signature=Signature(clause, "total", "recall"),
        statement=f"total counts the rows {text}",
        program=Program(
            operations=(CreateThread(resource_id=text), Observe(), Recall(thread_id=long, per_page=1)), options={}
        ),
        index=2,
        expected={"a": text, "b": long},
        got={"a": text + "!", "b": long + "!"},
        found=Found(backend=text[:200], engine=text, memassay="0", seed=0, level="smoke"),
        reproduced=3,
        minimal=True,
    )
    return Finding(verdict="fail", programs=7, case=case, file=file)


def given(name: str, text: str, long: str = "y") -> Given:
    """An artefact of each kind; a store and the texts of its findings are these."""
    failing = found("ORD-5", text, file="store/ORD-5-total-recall.json", long=long)
    manifest = made.manifest(
        (name, "two"), msgspec.structs.replace(QUICK, workloads=WORKLOADS, shares=(0.5, 0.9), freshness=8)
    )
    kills = made.kills()
    ordered = [mutant for mutant in kills.mutants if mutant.clause == "ORD-1"]
    (passing, failed) = (made.result(("fine",), (), SOME), made.result((name,), [failing], SOME))
    return Given(
        results=[msgspec.structs.replace(passing, backends=[*passing.backends, *failed.backends])],
        kills=[msgspec.structs.replace(kills, mutants=[*kills.mutants[:8], *ordered[:8]])],
        differences=[made.difference(failing)],
        cases=[CaseFile("cases/x.json", failing.case)],
        benchmarks=[msgspec.structs.replace(manifest, notes=[text])],
        comparisons=[made.comparison()],
    )


def write(folder: Path, artefacts: Given) -> Path:
    for name, content in site.pages(artefacts).items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture(scope="session")
def chromium() -> Generator[Browser]:
    """The session's browser. Skips, and says why, where there is none."""
    path = browser.executable()
    if path is None:
        pytest.skip(browser.MISSING)
    with browser.launched(path) as launched:
        yield launched


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("site"), given("store", "a text"))


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("hostile"), given(MARKUP, MARKUP, LONG))


@pytest.fixture
def opened(chromium: Browser, report: Path) -> Generator[Open]:
    """Opens a page of the site: `opened("index.html", width=…, color_scheme=…)`."""
    contexts: list[Any] = []

    def visit(address: str = "index.html", *, folder: Path = report, width: int = WIDE, **options: Any) -> Visit:
        context = chromium.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        context.set_default_timeout(15_000)
        visit = Visit(context, folder)
        visit.open(address)
        return visit

    yield visit
    for context in contexts:
        context.close()


# Opening, leading on


@pytest.mark.parametrize("file", FILES)
def test_a_page_opens_from_disk_without_an_error(opened: Open, file: str) -> None:
    visit = opened(file)
    visit.draw()
    assert visit.errors == []


@pytest.mark.parametrize("file", FILES)
def test_a_page_loads_nothing_but_itself(opened: Open, file: str) -> None:
    visit = opened(file)
    visit.draw()
    assert [url for url in visit.requests if not url.startswith(("file:", "data:"))] == []
    assert len(visit.requests) == 1


def test_the_pages_lead_to_each_other(opened: Open) -> None:
    visit = opened()
    titles: list[str] = []
    for name in visit.text("header nav a"):
        visit.page.get_by_role("navigation", name="Pages").get_by_role("link", name=name, exact=True).click()
        titles.append(visit.page.title().partition(" · ")[0])
    assert titles == visit.text("header nav a")


def test_a_failing_cell_leads_to_the_program(opened: Open) -> None:
    visit = opened()
    visit.page.get_by_role("link", name="fail: ORD-5 on store").click()
    finding = visit.page.locator("#ORD-5\\.1")
    expect(finding).to_be_in_viewport()
    expect(finding).to_be_focused()
    assert visit.text("#ORD-5\\.1 .deviates code") == ["recall(thread_id='y', per_page=1)"]


def test_a_link_from_elsewhere_shows_its_clause(opened: Open) -> None:
    visit = opened("clauses.html#VEC-4")
    expect(visit.page.locator("#VEC-4")).to_be_in_viewport()


def test_a_link_into_what_is_folded_opens_it(opened: Open) -> None:
    visit = opened("findings.html#s1.1")
    expect(visit.page.locator("#s1\\.1 .program")).to_be_visible()


def test_an_address_that_names_nothing_shows_the_page(opened: Open) -> None:
    visit = opened("clauses.html#%E0%A4%A")
    assert (visit.errors, len(visit.text(".clause"))) == ([], len(SOME))


# The filter


def rows(visit: Visit) -> list[str]:
    return visit.text(".matrix tr.item th > a")


def test_words_filter_the_matrix(opened: Open) -> None:
    visit = opened()
    visit.page.get_by_label("Clauses with the words").fill("engine's PAST")
    assert rows(visit) == ["ORD-3b"]


def test_words_of_a_statement_filter_too(opened: Open) -> None:
    visit = opened()
    visit.page.get_by_label("Clauses with the words").fill("coming back appends")
    assert rows(visit) == ["ORD-1"]


def test_a_verdict_filters_the_matrix(opened: Open) -> None:
    visit = opened()
    visit.page.get_by_label("and the verdict").select_option("fail")
    assert rows(visit) == ["ORD-5"]
    assert visit.text(".matrix .family") == ["order and paging"]


def test_what_is_shown_is_counted_and_said(opened: Open) -> None:
    visit = opened()
    visit.page.get_by_label("Clauses with the words").fill("VEC-")
    assert visit.text("[role=status].filter-count") == [f"{len(rows(visit))} of {len(SOME)} clauses shown"]


def test_a_slash_goes_to_the_filter_and_escape_clears_it(opened: Open) -> None:
    visit = opened()
    visit.page.keyboard.press("/")
    visit.page.keyboard.type("past an engine")
    assert len(rows(visit)) == 1
    visit.page.keyboard.press("Escape")
    assert rows(visit) == SOME


def test_a_filter_is_in_the_address(opened: Open) -> None:
    visit = opened()
    visit.page.get_by_label("Clauses with the words").fill("total")
    visit.page.get_by_label("and the verdict").select_option("fail")
    assert visit.page.url.partition("#")[2] == "?words=total&verdict=fail"


def test_an_address_filters(opened: Open) -> None:
    assert rows(opened("index.html#?words=total&verdict=fail")) == ["ORD-5"]


def test_an_address_with_another_verdict_shows_all(opened: Open) -> None:
    assert rows(opened("index.html#?verdict=nonsense")) == SOME


def test_a_link_to_what_is_filtered_out_shows_it(opened: Open) -> None:
    visit = opened("clauses.html#?words=total")
    visit.page.evaluate("location.hash = 'VAL-1'")
    expect(visit.page.locator("#VAL-1")).to_be_in_viewport()


@pytest.mark.parametrize(
    ("file", "words"),
    [("mutants.html", "ties_by_id"), ("deviations.html", "total"), ("findings.html", "total"), ("changes.html", "p99")],
)
def test_other_pages_are_filtered_too(opened: Open, file: str, words: str) -> None:
    visit = opened(file)
    before = len(visit.text(".item"))
    visit.page.get_by_role("searchbox").fill(words)
    shown = visit.text(".item")
    assert 0 < len(shown) <= before
    visit.page.get_by_role("searchbox").fill("no such words")
    assert visit.text(".item") == []


# Copying


def test_the_replay_command_is_copied(opened: Open) -> None:
    visit = opened("clauses.html#ORD-5.1", permissions=["clipboard-read", "clipboard-write"])
    visit.page.locator("#ORD-5\\.1 .copy").click()
    expect(visit.page.locator("#ORD-5\\.1 .copy")).to_have_text("Copied")
    assert (
        visit.page.evaluate("navigator.clipboard.readText()") == "memassay replay cases/store/ORD-5-total-recall.json"
    )


def test_that_it_was_copied_is_said(opened: Open) -> None:
    visit = opened("clauses.html#ORD-5.1", permissions=["clipboard-read", "clipboard-write"])
    visit.page.locator("#ORD-5\\.1 .copy").click()
    expect(visit.page.locator("#said")).to_have_text("Copied")


# Themes, widths, keyboard


def ground(visit: Visit) -> str:
    return visit.page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_a_page_is_dark_where_that_is_preferred(opened: Open) -> None:
    assert [ground(opened(color_scheme=scheme)) for scheme in ("light", "dark")] == [
        "rgb(255, 255, 255)",
        "rgb(13, 17, 23)",
    ]


def test_charts_take_on_the_theme_when_it_changes(opened: Open) -> None:
    visit = opened("performance.html", color_scheme="light")
    visit.draw()
    light, dark = (visit.page.locator(f"[data-chart] svg [stroke='{colour}']") for colour in ("#0062a3", "#6cb8f0"))
    assert (light.count() > 0, dark.count()) == (True, 0)
    visit.page.emulate_media(color_scheme="dark")
    expect(light).to_have_count(0)
    assert dark.count() > 0


@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("file", FILES)
def test_no_page_is_wider_than_the_screen(opened: Open, file: str, width: int) -> None:
    visit = opened(file, width=width)
    visit.draw()
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_first_stop_skips_the_navigation(opened: Open) -> None:
    visit = opened()
    visit.page.keyboard.press("Tab")
    visit.page.keyboard.press("Enter")
    expect(visit.page.locator("main")).to_be_focused()


SCROLLS = "(box) => [box.scrollWidth > box.clientWidth, box.tabIndex === 0]"
"""Whether it scrolls, and whether it can be reached by keyboard."""


def test_what_scrolls_is_a_stop(opened: Open) -> None:
    visit = opened("mutants.html", width=NARROW)
    boxes = visit.page.evaluate("[...document.querySelectorAll('.scroll')].map(" + SCROLLS + ")")
    assert [True, True] in boxes
    assert all(scrolls == stop for scrolls, stop in boxes)


def test_without_scripts_everything_is_shown(opened: Open) -> None:
    visit = opened("performance.html", java_script_enabled=False)
    assert visit.page.locator("figure table").count() == visit.page.locator("[data-chart]").count() > 5
    assert opened("index.html", java_script_enabled=False).page.locator(".filter").is_hidden()


# Charts


def test_every_chart_is_drawn(opened: Open) -> None:
    visit = opened("performance.html")
    visit.draw()
    assert visit.page.locator("[data-chart] svg").count() == visit.page.locator("[data-chart]").count() > 15


def test_another_load_can_be_chosen(opened: Open) -> None:
    visit = opened("performance.html#b1-percentiles")
    visit.draw()
    chart = visit.page.locator("[data-chart='b1-percentiles-0']")
    line = chart.locator(".mark-line path").first
    before = line.get_attribute("d") or ""
    visit.page.locator("figure", has=chart).get_by_role("combobox").select_option("50% of peak")
    expect(line).not_to_have_attribute("d", before)


POINTS = "[data-chart='b1-latency-0'] .mark-symbol.role-mark path"


def test_a_chart_tells_its_figures_under_the_pointer(opened: Open) -> None:
    visit = opened("performance.html#b1-latency")
    visit.draw()
    visit.page.locator(POINTS).first.hover(force=True)
    expect(visit.page.locator("#vg-tooltip-element")).to_contain_text("ms")


# Accessibility


@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("file", FILES)
def test_axe_finds_no_violation(opened: Open, file: str, scheme: str, width: int) -> None:
    visit = opened(file, width=width, color_scheme=scheme)
    visit.draw()
    visit.page.evaluate("for (const folded of document.querySelectorAll('details')) folded.open = true")
    found = visit.violations()
    assert [(each["id"], [node["html"][:200] for node in each["nodes"][:3]]) for each in found] == []


# Hostile text


@pytest.mark.parametrize("file", FILES)
def test_hostile_text_runs_nothing(opened: Open, hostile: Path, file: str) -> None:
    visit = opened(file, folder=hostile)
    visit.draw()
    for link in visit.page.locator("a:has-text('x')").all():
        assert not (link.get_attribute("href") or "").startswith("javascript:")
    assert visit.page.evaluate("window.hacked") is None
    assert visit.errors == []


def test_hostile_text_is_shown_as_it_is(opened: Open, hostile: Path) -> None:
    (shown, *_) = opened("clauses.html#ORD-5.1", folder=hostile).text("#ORD-5\\.1 .program code")
    assert "</script></style><script>window.hacked = 1</script><img src=x onerror=" in shown
    assert "{{7*7}} ${7*7} \\u202e\\u2066\\x00\\x1b" in shown


def test_hostile_text_in_a_chart_s_tip_runs_nothing(opened: Open, hostile: Path) -> None:
    visit = opened("performance.html#b1-latency", folder=hostile)
    visit.draw()
    tip = visit.page.locator("#vg-tooltip-element")
    shown: set[str] = set()
    for point in visit.page.locator(POINTS).all():
        point.hover(force=True)
        expect(tip).to_be_visible()
        shown.add(tip.inner_text())
    assert any("<script>" in text for text in shown)
    assert visit.page.locator("#vg-tooltip-element img, #vg-tooltip-element script").count() == 0
    assert visit.page.evaluate("window.hacked") is None


@pytest.mark.parametrize("file", FILES)
def test_long_text_breaks_no_page(opened: Open, hostile: Path, file: str) -> None:
    visit = opened(file, folder=hostile, width=NARROW)
    visit.draw()
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= NARROW


SCRIPT = "const script = document.createElement('script'); document.body.append(script);"
FOREIGN = {
    "inline": SCRIPT + "script.replaceWith(Object.assign(script.cloneNode(), { textContent: 'window.hacked = 1' }));",
    "from elsewhere": SCRIPT + "script.src = 'https://example.org/x.js';",
    "a handler": "document.body.setAttribute('onclick', 'window.hacked = 1'); document.body.click();",
    "made of text": "setTimeout(() => new Function('window.hacked = 1')());",
    "an image": "new Image().src = 'https://example.org/x.png';",
    "a request": "fetch('https://example.org/').catch(() => {});",
}
"""None of these reaches a network: the policy comes before it."""


@pytest.mark.parametrize("kind", FOREIGN)
def test_the_policy_stops_what_is_foreign(opened: Open, kind: str) -> None:
    visit = opened("performance.html")
    visit.page.evaluate(
        "document.addEventListener('securitypolicyviolation', () => { document.body.dataset.stopped = ''; })"
    )
    visit.page.evaluate(f"() => {{ {FOREIGN[kind]} }}")
    expect(visit.page.locator("body[data-stopped]")).to_be_attached()
    assert visit.page.evaluate("window.hacked") is None
