"""The HTML page: the same bytes for the same results, loads nothing, and nothing that stores say can script it."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest
from memassay.harness import artefact
from memassay.harness.artefact import ClauseResult, Corpus, Finding, Result, Verdict
from memassay.harness.cli import app
from memassay.reports import html
from memassay.spec.clauses import find
from memassay.spec.program import CreateThread, Observe, Program
from typer.testing import CliRunner

MakeResult = Callable[..., Result]
MakeFinding = Callable[..., Finding]

MARKUP = '</script></style></title><script>alert(1)</script><img src=x onerror="alert(1)">"\' onclick="alert(1)'
INVISIBLE = "\x00\x1b[31m\u202eevil\u2066\u200b\u2028\r\n\x85"
HOSTILE = MARKUP + INVISIBLE
STYLES = Path(html.__file__).parent / "templates" / "style.css"


class Element:
    """A tag with its attributes, and the text directly and deeper in it."""

    def __init__(self, tag: str, attributes: dict[str, str], parents: tuple[Element, ...]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.parents = parents
        self.texts: list[str] = []

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())

    def within(self, id: str) -> bool:
        return any(parent.attributes.get("id") == id for parent in self.parents)


class Page(HTMLParser):
    """A page as a list of elements."""

    VOID = frozenset({"meta", "input", "wbr", "br", "img", "link"})

    def __init__(self, document: bytes) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self.open: list[Element] = []
        self.feed(document.decode())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, tuple(self.open))
        self.elements.append(element)
        if tag not in self.VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.texts.append(data)

    def find(self, tag: str, **attributes: str) -> Iterator[Element]:
        for element in self.elements:
            if element.tag == tag and all(element.attributes.get(name) == value for name, value in attributes.items()):
                yield element

    def within(self, id: str, tag: str) -> list[Element]:
        return [element for element in self.find(tag) if element.within(id)]


def page(*results: Result, cases: str = "cases") -> Page:
    return Page(html.page(results, cases))


@pytest.fixture
def failed(result: MakeResult, finding: MakeFinding) -> Callable[..., Result]:
    """A result whose ORD-5 fails: `failed(expected=…)` changes the case."""

    def make(**changed: Any) -> Result:
        found = ClauseResult(
            verdict="fail",
            applicable=40,
            discriminators={"a request with include": 9},
            findings=[finding(**changed)],
        )
        return result({"ORD-5": found})

    return make


# The page as a file


def test_the_same_results_give_the_same_bytes(failed: MakeResult) -> None:
    assert html.page([failed()], "cases") == html.page([failed()], "cases")


def test_a_result_read_back_gives_the_same_bytes(failed: MakeResult) -> None:
    read = artefact.decode_result(artefact.encode(failed()))
    assert html.page([read], "cases") == html.page([failed()], "cases")


def test_every_tag_that_opens_closes(failed: MakeResult) -> None:
    assert page(failed()).open == []


def test_nothing_is_loaded(failed: MakeResult) -> None:
    loading = {"src", "srcset", "data", "poster", "action", "formaction", "background", "ping", "style"}
    assert [element.tag for element in page(failed()).elements if loading & element.attributes.keys()] == []


def test_only_links_lead_elsewhere(failed: MakeResult) -> None:
    elsewhere = [element for element in page(failed()).elements if "//" in element.attributes.get("href", "")]
    assert {element.tag for element in elsewhere} == {"a"}


def test_links_elsewhere_are_public_reports(failed: MakeResult) -> None:
    links = [element.attributes["href"] for element in page(failed()).find("a")]
    assert all(link.startswith(("#", "https://github.com/")) for link in links)


def test_the_style_loads_nothing() -> None:
    assert re.findall(r"url\(|@import", STYLES.read_text(encoding="utf-8")) == []


def policy(found: Page) -> dict[str, list[str]]:
    (meta,) = (m for m in found.find("meta") if m.attributes.get("http-equiv") == "Content-Security-Policy")
    parts = (part.split() for part in meta.attributes["content"].split(";"))
    return {name: values for name, *values in parts}


def test_the_policy_allows_nothing_by_default(failed: MakeResult) -> None:
    assert policy(page(failed()))["default-src"] == ["'none'"]


@pytest.mark.parametrize("tag", ["script", "style"])
def test_the_policy_allows_the_page_s_own_by_its_hash(failed: MakeResult, tag: str) -> None:
    found = page(failed())
    (own,) = found.find(tag)
    digest = base64.b64encode(hashlib.sha256("".join(own.texts).encode()).digest()).decode()
    assert policy(found)[f"{tag}-src"] == [f"'sha256-{digest}'"]


def test_ids_are_unique(failed: MakeResult) -> None:
    ids = [element.attributes["id"] for element in page(failed(), failed()).elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("attribute", ["href", "aria-labelledby", "for", "data-clause", "data-copies"])
def test_what_is_referred_to_exists(failed: MakeResult, attribute: str) -> None:
    found = page(failed(), failed())
    ids = {element.attributes.get("id") for element in found.elements}
    values = [element.attributes[attribute] for element in found.elements if attribute in element.attributes]
    targets = [value.removeprefix("#") for value in values if not value.startswith("https://github.com/")]
    assert targets
    assert set(targets) <= ids


# What it shows


def test_every_cell_of_the_matrix_leads_to_its_clause(failed: MakeResult) -> None:
    rows = [
        element for element in page(failed()).find("a") if element.attributes.get("class", "").startswith("verdict")
    ]
    assert [(row.attributes["href"], row.attributes["aria-label"]) for row in rows] == [
        ("#ORD-4", "pass: ORD-4 on store"),
        ("#ORD-5", "fail: ORD-5 on store"),
    ]


def test_a_verdict_is_told_by_a_symbol_and_a_word(failed: MakeResult) -> None:
    cells = [element.text for element in page(failed()).find("a") if "verdict" in element.attributes.get("class", "")]
    assert cells == ["✓ pass", "✗ fail"]


def test_every_verdict_has_a_symbol_of_its_own() -> None:
    assert len(set(html.SYMBOLS.values())) == len(html.SYMBOLS) == len(html.MEANINGS)


def test_counts_have_denominators(failed: MakeResult) -> None:
    counts = [
        element.text for element in page(failed()).find("li") if element.parents[-1].attributes.get("class") == "counts"
    ]
    assert counts == ["✓ pass 1 of 2", "✗ fail 1 of 2"]


def test_no_percentage_is_shown(failed: MakeResult) -> None:
    (body,) = page(failed()).find("main")
    assert "%" not in body.text


def test_a_backend_has_its_engine_s_version(result: MakeResult) -> None:
    assert "1.0" in [element.text for element in page(result()).find("dd")]


def test_a_backend_says_how_its_engine_was_had(result: MakeResult) -> None:
    shown = page(result(method="embedded", detail="a file"))
    assert "embedded: a file" in [element.text for element in shown.find("dd")]


def test_an_engine_s_error_is_told(result: MakeResult) -> None:
    assert any("port taken" in element.text for element in page(result(error="port taken")).find("p"))


def test_a_partial_result_says_so(result: MakeResult) -> None:
    assert any("partial" in element.text for element in page(result(interrupted=True)).find("p"))


def test_a_backend_of_two_runs_says_of_which(result: MakeResult) -> None:
    heads = [
        element.text for element in page(result(), result()).find("h3") if element.attributes["id"].startswith("c")
    ]
    assert heads == ["store (run 1)", "store (run 2)"]


def test_a_run_has_its_seed_and_corpus(result: MakeResult) -> None:
    told = [element.text for element in page(result()).within("run-1", "dd")]
    assert "seed 5, level smoke: 1,234 programs, hash abc" in told


def test_a_clause_has_its_statement(failed: MakeResult) -> None:
    assert find("ORD-5").statement in [element.text for element in page(failed()).within("ORD-5", "p")]


def test_a_clause_has_its_public_reports(failed: MakeResult) -> None:
    links = [element.attributes["href"] for element in page(failed()).within("ORD-5", "a")]
    assert [f"https://github.com/{report.replace('#', '/issues/')}" for report in find("ORD-5").reports] == links[1:]


def test_a_clause_says_how_often_it_was_put_to_the_test(failed: MakeResult) -> None:
    cells = [element.text for element in page(failed()).within("ORD-5", "td")]
    assert cells == ["", "✗ fail", "40 of 1,234", "9 of 40"]


def test_a_reason_is_told(result: MakeResult) -> None:
    shown = page(result({"ORD-5": ClauseResult(verdict="vacuous", reason="too rare")}))
    assert "too rare" in [element.text for element in shown.within("ORD-5", "span")]


def test_a_clause_this_memassay_does_not_know_is_shown(result: MakeResult) -> None:
    shown = page(result({"NEW-1": ClauseResult(verdict="fail")}))
    assert "NEW-1 unknown to this memassay" in [element.text for element in shown.find("h3")]


def test_a_program_has_an_operation_a_line(failed: MakeResult) -> None:
    lines = [element.text for element in page(failed()).within("ORD-5.1", "li")]
    assert lines == ["observe()", "recall(thread_id='t1', per_page=1) the store deviates here"]


def test_a_program_shows_what_the_store_is_opened_with(failed: MakeResult) -> None:
    program = Program(operations=(Observe(),), options={"last_messages": 3}, embedder=4)
    lines = [element.text for element in page(failed(program=program, index=5)).within("ORD-5.1", "li")]
    assert lines == ["embedder(dimension=4)", "open({'last_messages': 3})", "observe()"]


def test_expected_and_got_stand_side_by_side(failed: MakeResult) -> None:
    values = [element.text for element in page(failed()).within("ORD-5.1", "dd")]
    assert values == ["0", "1"]


def test_the_replay_command_can_be_copied(failed: MakeResult) -> None:
    shown = page(failed(), cases="my cases")
    (button,) = shown.within("ORD-5.1", "button")
    (command,) = shown.find("code", id=button.attributes["data-copies"])
    assert command.text == "memassay replay 'my cases/store/ORD-5-total-recall.json'"


def test_a_very_long_program_is_shown_around_its_deviation(failed: MakeResult) -> None:
    program = Program(operations=tuple(CreateThread(resource_id=str(i)) for i in range(1000)))
    lines = [element.text for element in page(failed(program=program, index=500)).within("ORD-5.1", "li")]
    assert (lines[0], lines[-1], len(lines)) == ("... 400 operations before", "... 400 more operations", 202)


# Hostile text


PLACES = ("name", "engine", "method", "detail", "error")


def hostile(failed: Callable[..., Result], text: str) -> Result:
    """A result with the text wherever a result holds any."""
    program = Program(operations=(CreateThread(resource_id=text, id={"$int": text}),), options={text: text})
    given = failed(expected={"a": text}, got={"a": text + "!"}, statement=text, program=program, index=0)
    (backend,) = given.backends
    found = msgspec.structs.replace(backend.clauses["ORD-5"], reason=text, discriminators={text: 1})
    clauses = {**backend.clauses, "ORD-5": found, text: found}
    changed: dict[str, Any] = dict.fromkeys(PLACES, text)
    backend = msgspec.structs.replace(backend, clauses=clauses, **changed)
    corpus = Corpus(seed=0, level="smoke", examples=None, programs=1, hash=text)
    return msgspec.structs.replace(
        given, backends=[backend], selected=[*given.selected, text], corpus=corpus, memassay=text, time_zone=text
    )


def test_hostile_text_makes_no_elements(failed: MakeResult) -> None:
    tags = {element.tag for element in page(hostile(failed, HOSTILE)).elements}
    assert tags - {element.tag for element in page(failed(), failed()).elements} == set()


def test_hostile_text_makes_no_scripts(failed: MakeResult) -> None:
    assert len(list(page(hostile(failed, HOSTILE)).find("script"))) == 1


def test_hostile_text_makes_no_handlers(failed: MakeResult) -> None:
    names = {name for element in page(hostile(failed, HOSTILE)).elements for name in element.attributes}
    assert [name for name in names if name.startswith("on")] == []


def test_hostile_text_makes_no_links(failed: MakeResult) -> None:
    links = [element.attributes["href"] for element in page(hostile(failed, "javascript:alert(1)")).find("a")]
    assert all(link.startswith(("#", "https://github.com/")) for link in links)


def test_template_language_in_values_is_text(failed: MakeResult) -> None:
    assert b"{{7*7}}" in html.page([hostile(failed, "{{7*7}}")], "cases")


def test_controls_and_bidi_are_escaped(failed: MakeResult) -> None:
    shown = html.page([hostile(failed, HOSTILE)], "cases").decode()
    assert not {"\x00", "\x1b", "\u202e", "\u2066", "\u200b", "\u2028", "\r", "\x85"} & set(shown)


def test_an_escape_can_be_read(result: MakeResult) -> None:
    assert "a\\u202eb" in [element.text for element in page(result(name="a\u202eb")).find("h3")]


def test_long_text_is_cut_with_its_length(failed: MakeResult) -> None:
    shown = html.page([hostile(failed, "x" * (1 << 20))], "cases")
    assert len(shown) < 200_000
    assert b"(1,048,576 characters)" in shown


def test_long_values_show_where_they_differ(failed: MakeResult) -> None:
    ends = ("x" * 5000, "z" * 5000)
    shown = page(failed(expected="a".join(ends), got="b".join(ends)))
    expected, got = (element.text for element in shown.within("ORD-5.1", "dd"))
    assert ("xaz" in expected, "xbz" in got) == (True, True)


def test_a_hostile_file_name_is_quoted_for_the_shell(result: MakeResult, finding: MakeFinding) -> None:
    named = msgspec.structs.replace(finding(), file="$(rm -rf ~);'")
    shown = page(result({"ORD-5": ClauseResult(verdict="fail", findings=[named])}))
    (command,) = shown.find("code", id="ORD-5.1.replay")
    assert command.text == """memassay replay 'cases/$(rm -rf ~);'"'"''"""


@pytest.mark.parametrize("form", [{"$repeat": 5}, {"$at": None}, {"$nest": []}, {"$dict": 3}, {"$chars": ["x"]}])
def test_a_form_that_cannot_be_read_is_shown_all_the_same(failed: MakeResult, form: Any) -> None:
    program = Program(operations=(CreateThread(resource_id=form),))
    assert page(failed(expected=form, got=1, program=program, index=0)).within("ORD-5.1", "dd")


def test_deep_values_are_shown_all_the_same(failed: MakeResult) -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    values = [element.text for element in page(failed(expected=deep, got=1)).within("ORD-5.1", "dd")]
    assert values == ["a value nested too deeply to be shown", "1"]


# Colours


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def palettes() -> list[dict[str, str]]:
    """The colours of the light and of the dark page."""
    blocks = re.findall(r":root \{(.*?)\}", STYLES.read_text(encoding="utf-8"), re.DOTALL)
    return [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) for block in blocks]


PAIRS = [
    *((name, f"{name}-ground") for name in ("pass", "fail", "open", "none")),
    *((name, ground) for name in ("text", "quiet", "link") for ground in ("ground", "panel")),
]


@pytest.mark.parametrize("pair", PAIRS, ids="/".join)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_has_the_contrast_of_wcag_aa(pair: tuple[str, str], dark: bool) -> None:
    palette = palettes()[dark]
    assert contrast(palette[pair[0]], palette[pair[1]]) >= 4.5


# The command


@pytest.fixture
def file(failed: MakeResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A result file in the current directory."""
    monkeypatch.chdir(tmp_path)
    path = Path("r.json")
    path.write_bytes(artefact.encode(failed()))
    return path


def report(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["report", *arguments])


def test_the_command_exits_0_whatever_the_verdicts(file: Path) -> None:
    assert report("r.json", "-o", "out").exit_code == 0


def test_the_command_writes_page_and_summary(file: Path) -> None:
    report("r.json", "-o", "deep/out")
    assert sorted(path.name for path in Path("deep/out").iterdir()) == ["index.html", "summary.md"]


def test_the_command_says_what_it_wrote(file: Path) -> None:
    assert report("r.json", "-o", "out").stdout == "wrote out/index.html\nwrote out/summary.md\n"


def test_the_command_takes_several_results(file: Path) -> None:
    report("r.json", "r.json", "-o", "out")
    assert b"store (run 2)" in Path("out/index.html").read_bytes()


def test_the_command_overwrites_a_report(file: Path) -> None:
    codes = [report("r.json", "-o", "out").exit_code for _ in range(2)]
    assert codes == [0, 0]


MISTAKES: dict[str, tuple[bytes, str]] = {
    "another version": (b'{"version": 2}', "version 2, which a newer memassay wrote; this one (0.1.0) reads version 1"),
    "no version": (b"{}", "no version"),
    "a version that is none": (b'{"version": "1"}', "no result"),
    "something else": (b'{"version": 1}', "no result"),
    "a list": (b"[]", "no result"),
    "no JSON": (b"hello", "no result"),
    "no text": (b"\xff\xfe", "no result"),
    "nothing": (b"", "no result"),
    "nested too deeply": (b'{"version": 1, "x": ' + b"[" * 100_000, "no result"),
}


@pytest.fixture
def refused(file: Path, name: str) -> Any:
    """The outcome for a good file and a bad one."""
    Path("bad.json").write_bytes(MISTAKES[name][0])
    return report("r.json", "bad.json", "-o", "out")


@pytest.mark.parametrize("name", MISTAKES)
def test_a_file_that_is_no_known_result_exits_2(refused: Any) -> None:
    assert refused.exit_code == 2


@pytest.mark.parametrize("name", MISTAKES)
def test_a_file_that_is_no_known_result_is_told_in_one_line(refused: Any, name: str) -> None:
    (line,) = refused.stderr.splitlines()
    assert line.startswith("memassay: bad.json ")
    assert MISTAKES[name][1] in line


@pytest.mark.parametrize("name", MISTAKES)
def test_nothing_is_written_when_a_file_is_refused(refused: Any) -> None:
    assert not Path("out").exists()


def test_a_case_file_is_no_result(file: Path, finding: MakeFinding) -> None:
    Path("case.json").write_bytes(artefact.encode(finding().case))
    assert report("case.json", "-o", "out").exit_code == 2


@pytest.mark.parametrize("path", ["nothing.json", "."])
def test_a_file_that_cannot_be_read_exits_2(file: Path, path: str) -> None:
    done = report(path, "-o", "out")
    assert (done.exit_code, "cannot be read" in done.stderr) == (2, True)


@pytest.mark.parametrize("folder", ["r.json", "r.json/out", "taken"])
def test_a_folder_that_cannot_be_written_exits_2(file: Path, folder: str) -> None:
    Path("taken/summary.md").mkdir(parents=True)
    assert report("r.json", "-o", folder).exit_code == 2


@pytest.mark.parametrize("name", ["index.html", "summary.md"])
def test_nothing_is_written_when_one_file_cannot_be(file: Path, name: str) -> None:
    Path("taken", name).mkdir(parents=True)
    report("r.json", "-o", "taken")
    assert [path.name for path in Path("taken").iterdir()] == [name]


def test_no_results_exit_2(file: Path) -> None:
    assert report("-o", "out").exit_code == 2


def verdict_of(shown: Page) -> list[str]:
    return [
        element.attributes["data-verdicts"] for element in shown.find("tr") if "data-verdicts" in element.attributes
    ]


@pytest.mark.parametrize("verdict", list(html.SYMBOLS))
def test_the_filter_knows_every_verdict(result: MakeResult, verdict: Verdict) -> None:
    assert verdict_of(page(result({"ORD-5": ClauseResult(verdict=verdict)}))) == ["pass", verdict]
