"""Pages of results: the same bytes for the same results, load nothing, and nothing that stores say can script them."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from memassay.harness import artefact
from memassay.harness.artefact import ClauseResult, Corpus, Finding, Result, Verdict
from memassay.reports import html
from memassay.spec.clauses import find
from memassay.spec.program import CreateThread, Observe, Program
from report_pages import Page, broken, documents, policy

MakeResult = Callable[..., Result]
MakeFinding = Callable[..., Finding]

MARKUP = '</script></style></title><script>alert(1)</script><img src=x onerror="alert(1)">"\' onclick="alert(1)'
INVISIBLE = "\x00\x1b[31m\u202eevil\u2066\u200b\u2028\r\n\x85"
HOSTILE = MARKUP + INVISIBLE
STYLES = Path(html.__file__).parent / "templates" / "style.css"


def pages(*results: Result, cases: str = "cases") -> dict[str, Page]:
    return {name: Page(document) for name, document in documents(*results, cases=cases).items()}


def page(*results: Result, cases: str = "cases") -> Page:
    """The overview."""
    return pages(*results, cases=cases)["index.html"]


def clauses(*results: Result, cases: str = "cases") -> Page:
    """The page of clauses."""
    return pages(*results, cases=cases)["clauses.html"]


FILES = ("index.html", "clauses.html", "deviations.html")

# The pages as files


def test_the_same_results_give_the_same_bytes(failed: MakeResult) -> None:
    assert documents(failed()) == documents(failed())


def test_a_result_read_back_gives_the_same_bytes(failed: MakeResult) -> None:
    read = artefact.decode_result(artefact.encode(failed()))
    assert documents(read) == documents(failed())


def test_results_have_these_pages(failed: MakeResult) -> None:
    assert tuple(pages(failed())) == FILES


@pytest.mark.parametrize("file", FILES)
def test_every_tag_that_opens_closes(failed: MakeResult, file: str) -> None:
    assert pages(failed())[file].open == []


@pytest.mark.parametrize("file", FILES)
def test_nothing_is_loaded(failed: MakeResult, file: str) -> None:
    loading = {"src", "srcset", "data", "poster", "action", "formaction", "background", "ping", "style"}
    assert [element.tag for element in pages(failed())[file].elements if loading & element.attributes.keys()] == []


@pytest.mark.parametrize("file", FILES)
def test_links_lead_within_the_site_and_to_public_reports(failed: MakeResult, file: str) -> None:
    links = [element for element in pages(failed())[file].elements if "href" in element.attributes]
    assert {element.tag for element in links} == {"a"}
    outside = [element.attributes["href"] for element in links if "//" in element.attributes["href"]]
    assert all(link.startswith("https://github.com/") for link in outside)


def test_the_style_loads_nothing() -> None:
    assert re.findall(r"url\(|@import", STYLES.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("file", FILES)
def test_the_policy_allows_nothing_by_default(failed: MakeResult, file: str) -> None:
    assert policy(pages(failed())[file])["default-src"] == ["'none'"]


@pytest.mark.parametrize("tag", ["script", "style"])
def test_the_policy_allows_the_page_s_own_by_its_hash(failed: MakeResult, tag: str) -> None:
    found = page(failed())
    (own,) = found.find(tag)
    digest = base64.b64encode(hashlib.sha256("".join(own.texts).encode()).digest()).decode()
    assert policy(found)[f"{tag}-src"] == [f"'sha256-{digest}'"]


@pytest.mark.parametrize("file", FILES)
def test_ids_are_unique(failed: MakeResult, file: str) -> None:
    found = pages(failed(), failed())[file]
    ids = [element.attributes["id"] for element in found.elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))


def test_what_is_referred_to_exists(failed: MakeResult) -> None:
    assert broken(pages(failed(), failed())) == []


# What it shows


def test_a_cell_of_the_matrix_leads_to_its_clause_or_to_what_failed(failed: MakeResult) -> None:
    rows = [
        element for element in page(failed()).find("a") if element.attributes.get("class", "").startswith("verdict")
    ]
    assert [(row.attributes["href"], row.attributes["aria-label"]) for row in rows] == [
        ("clauses.html#ORD-4", "pass: ORD-4 on store"),
        ("clauses.html#ORD-5.1", "fail: ORD-5 on store"),
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
    assert find("ORD-5").statement in [element.text for element in clauses(failed()).within("ORD-5", "p")]


def test_a_clause_has_its_public_reports(failed: MakeResult) -> None:
    links = [element.attributes["href"] for element in clauses(failed()).within("ORD-5", "a")]
    expected = [f"https://github.com/{report.replace('#', '/issues/')}" for report in find("ORD-5").reports]
    assert [link for link in links if link.startswith("https:")] == expected


def test_a_clause_says_how_often_it_was_put_to_the_test(failed: MakeResult) -> None:
    cells = [element.text for element in clauses(failed()).within("ORD-5", "td")]
    assert cells == ["", "✗ fail", "40 of 1,234", "9 of 40"]


def test_a_reason_is_told(result: MakeResult) -> None:
    shown = clauses(result({"ORD-5": ClauseResult(verdict="vacuous", reason="too rare")}))
    assert "too rare" in [element.text for element in shown.within("ORD-5", "span")]


def test_a_clause_this_memassay_does_not_know_is_shown(result: MakeResult) -> None:
    shown = clauses(result({"NEW-1": ClauseResult(verdict="fail")}))
    assert "NEW-1 unknown to this memassay" in [element.text for element in shown.find("h3")]


def test_a_program_has_an_operation_a_line(failed: MakeResult) -> None:
    lines = [element.text for element in clauses(failed()).within("ORD-5.1", "li")]
    assert lines == ["observe()", "recall(thread_id='t1', per_page=1) the store deviates here"]


def test_a_program_shows_what_the_store_is_opened_with(failed: MakeResult) -> None:
    program = Program(operations=(Observe(),), options={"last_messages": 3}, embedder=4)
    lines = [element.text for element in clauses(failed(program=program, index=5)).within("ORD-5.1", "li")]
    assert lines == ["embedder(dimension=4)", "open({'last_messages': 3})", "observe()"]


def test_expected_and_got_stand_side_by_side(failed: MakeResult) -> None:
    values = [element.text for element in clauses(failed()).within("ORD-5.1", "dd")]
    assert values == ["0", "1"]


def test_the_replay_command_can_be_copied(failed: MakeResult) -> None:
    shown = clauses(failed(), cases="my cases")
    (button,) = shown.within("ORD-5.1", "button")
    (command,) = shown.find("code", id=button.attributes["data-copies"])
    assert command.text == "memassay replay 'my cases/store/ORD-5-total-recall.json'"


def test_a_very_long_program_is_shown_around_its_deviation(failed: MakeResult) -> None:
    program = Program(operations=tuple(CreateThread(resource_id=str(i)) for i in range(1000)))
    lines = [element.text for element in clauses(failed(program=program, index=500)).within("ORD-5.1", "li")]
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
    tags = {element.tag for found in pages(hostile(failed, HOSTILE)).values() for element in found.elements}
    ours = {element.tag for found in pages(failed(), failed()).values() for element in found.elements}
    assert tags - ours == set()


def test_hostile_text_makes_no_scripts(failed: MakeResult) -> None:
    scripts = [len(list(found.find("script"))) for found in pages(hostile(failed, HOSTILE)).values()]
    assert scripts == [1] * len(FILES)


def test_hostile_text_makes_no_handlers(failed: MakeResult) -> None:
    found = pages(hostile(failed, HOSTILE)).values()
    names = {name for each in found for element in each.elements for name in element.attributes}
    assert [name for name in names if name.startswith("on")] == []


def test_hostile_text_makes_no_links(failed: MakeResult) -> None:
    found = pages(hostile(failed, "javascript:alert(1)")).values()
    links = {element.attributes["href"] for each in found for element in each.find("a")}
    assert {link for link in links if not re.match(r"#|https://github\.com/|[a-z]+\.html(#|$)", link)} == set()


def test_template_language_in_values_is_text(failed: MakeResult) -> None:
    assert b"{{7*7}}" in documents(hostile(failed, "{{7*7}}"))["clauses.html"]


def test_controls_and_bidi_are_escaped(failed: MakeResult) -> None:
    shown = b"".join(documents(hostile(failed, HOSTILE)).values()).decode()
    assert not {"\x00", "\x1b", "\u202e", "\u2066", "\u200b", "\u2028", "\r", "\x85"} & set(shown)


def test_an_escape_can_be_read(result: MakeResult) -> None:
    assert "a\\u202eb" in [element.text for element in page(result(name="a\u202eb")).find("h3")]


def test_long_text_is_cut_with_its_length(failed: MakeResult) -> None:
    shown = b"".join(documents(hostile(failed, "x" * (1 << 20))).values())
    assert len(shown) < 500_000
    assert b"(1,048,576 characters)" in shown


def test_long_values_show_where_they_differ(failed: MakeResult) -> None:
    ends = ("x" * 5000, "z" * 5000)
    shown = clauses(failed(expected="a".join(ends), got="b".join(ends)))
    expected, got = (element.text for element in shown.within("ORD-5.1", "dd"))
    assert ("xaz" in expected, "xbz" in got) == (True, True)


def test_a_hostile_file_name_is_quoted_for_the_shell(result: MakeResult, finding: MakeFinding) -> None:
    named = msgspec.structs.replace(finding(), file="$(rm -rf ~);'")
    shown = clauses(result({"ORD-5": ClauseResult(verdict="fail", findings=[named])}))
    (command,) = shown.find("code", id="ORD-5.1.replay")
    assert command.text == """memassay replay 'cases/$(rm -rf ~);'"'"''"""


@pytest.mark.parametrize("form", [{"$repeat": 5}, {"$at": None}, {"$nest": []}, {"$dict": 3}, {"$chars": ["x"]}])
def test_a_form_that_cannot_be_read_is_shown_all_the_same(failed: MakeResult, form: Any) -> None:
    program = Program(operations=(CreateThread(resource_id=form),))
    assert clauses(failed(expected=form, got=1, program=program, index=0)).within("ORD-5.1", "dd")


def test_deep_values_are_shown_all_the_same(failed: MakeResult) -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    values = [element.text for element in clauses(failed(expected=deep, got=1)).within("ORD-5.1", "dd")]
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


def verdict_of(shown: Page) -> list[str]:
    return [
        element.attributes["data-verdicts"] for element in shown.find("tr") if "data-verdicts" in element.attributes
    ]


@pytest.mark.parametrize("verdict", list(html.SYMBOLS))
def test_the_filter_knows_every_verdict(result: MakeResult, verdict: Verdict) -> None:
    assert verdict_of(page(result({"ORD-5": ClauseResult(verdict=verdict)}))) == ["pass", verdict]
