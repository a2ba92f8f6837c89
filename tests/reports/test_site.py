"""The site: a page for whatever was given, linked, self-contained, and the same bytes for the same artefacts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import jsonschema
import msgspec
import pytest
import report_made as made
from memassay.benchmarks.profiles import QUICK
from memassay.harness.artefact import Finding, KnownResult, Result
from memassay.reports import site
from memassay.reports.given import CaseFile, Given
from memassay.spec.program import CreateThread, Program
from report_pages import Page, broken, policy

MakeFinding = Callable[..., Finding]
MakeResult = Callable[..., Result]

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)> {{7*7}} \u202e\x00"
SCHEMAS = Path(site.__file__).parent / "schemas"
LIMIT = 3 << 20
"""Bytes of a site of five engines, all clauses and a full benchmark."""


@pytest.fixture
def given(finding: MakeFinding) -> Given:
    """An artefact of each kind."""
    return Given(
        results=[made.result(("one", "two"), [finding()])],
        kills=[made.kills()],
        differences=[made.difference(finding())],
        cases=[CaseFile("cases/x.json", finding().case)],
        benchmarks=[made.manifest(("one", "two"), QUICK)],
        comparisons=[made.comparison()],
    )


def pages(given: Given) -> dict[str, Page]:
    return {name: Page(document) for name, document in site.pages(given).items()}


FILES = [
    *("index.html", "clauses.html", "deviations.html", "findings.html", "mutants.html"),
    *("performance.html", "changes.html"),
]


def test_there_is_a_page_for_each_kind(given: Given) -> None:
    assert [*site.pages(given)] == FILES


def test_what_was_not_given_has_no_page() -> None:
    assert [*site.pages(Given(kills=[made.kills()]))] == ["index.html", "mutants.html"]


def test_the_same_artefacts_give_the_same_bytes(given: Given) -> None:
    assert site.pages(given) == site.pages(msgspec.structs.replace(given))


def test_every_page_leads_to_the_others(given: Given) -> None:
    for found in pages(given).values():
        links = [link for link in found.find("a") if any(parent.tag == "header" for parent in link.parents)]
        assert [link.attributes["href"] for link in links] == FILES


def test_every_page_says_which_it_is(given: Given) -> None:
    here = [[*found.find("a", **{"aria-current": "page"})] for found in pages(given).values()]
    assert [[link.attributes["href"] for link in links] for links in here] == [[file] for file in FILES]


def test_what_is_referred_to_exists(given: Given) -> None:
    assert broken(pages(given)) == []


@pytest.mark.parametrize("file", FILES)
def test_every_tag_that_opens_closes(given: Given, file: str) -> None:
    assert pages(given)[file].open == []


@pytest.mark.parametrize("file", FILES)
def test_ids_are_unique(given: Given, file: str) -> None:
    ids = [element.attributes["id"] for element in pages(given)[file].elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("file", FILES)
def test_a_page_allows_nothing_but_what_is_in_it(given: Given, file: str) -> None:
    allowed = policy(pages(given)[file])
    assert allowed["default-src"] == ["'none'"]
    assert all(source.startswith("'sha256-") for source in allowed["script-src"] + allowed["style-src"])


def test_a_large_site_is_small(finding: MakeFinding) -> None:
    whole = Given(results=[made.result()], kills=[made.kills()], benchmarks=[made.manifest()])
    assert sum(map(len, site.pages(whole).values())) < LIMIT


# The kill matrix


def test_a_mutant_is_told_with_its_killer(given: Given) -> None:
    rows = [row.text for row in pages(given)["mutants.html"].find("tr", **{"class": "item"})]
    told = next(row for row in rows if "ties_by_id" in row)
    assert "Messages of one instant are sorted by id." in told
    assert "✓ ORD-1" in told


def test_a_survivor_is_told_apart(given: Given) -> None:
    (first, *_) = made.kills().mutants
    items = [item.text for item in pages(given)["mutants.html"].find("li")]
    assert any(item.startswith(first.id) and first.description in item for item in items)


def test_families_that_fail_beside_their_own_are_counted(given: Given) -> None:
    rows = {row.text.split()[0]: row.text for row in pages(given)["mutants.html"].find("tr") if row.attributes == {}}
    mutants = [mutant for mutant in made.kills().mutants if mutant.clause.startswith("TIM")]
    assert rows["TIM"].split()[1] == f"({len(mutants)})"
    assert rows["TIM"].split().count(str(len(mutants))) == 2


def test_a_clause_says_how_many_mutants_break_it(given: Given) -> None:
    many = len([mutant for mutant in made.kills().mutants if mutant.clause == "ORD-1"])
    told = [paragraph.text for paragraph in pages(given)["clauses.html"].within("ORD-1", "p")]
    assert any(f"{many} of {many} mutants that break it are killed." in text for text in told)


# Schemas


@pytest.mark.parametrize("kind", ["results", "kills", "differences", "benchmarks", "comparisons"])
def test_an_artefact_conforms_to_its_published_schema(given: Given, kind: str) -> None:
    name = {"results": "result", "kills": "mutants", "differences": "difference", "benchmarks": "bench"}
    schema = json.loads((SCHEMAS / f"{name.get(kind, 'compare')}-1.json").read_bytes())
    (value, *_) = getattr(given, kind)
    cast(Any, jsonschema.Draft202012Validator(schema)).validate(json.loads(msgspec.json.encode(value)))


# Cases


def test_a_case_is_a_program_with_the_command_that_replays_it(given: Given) -> None:
    found = pages(given)["findings.html"]
    lines = [line.text for line in found.within("s1.1", "li")]
    assert lines == ["observe()", "recall(thread_id='t1', per_page=1) the store deviates here"]
    assert [code.text for code in found.find("code", id="s1.1.replay")] == ["memassay replay cases/x.json"]


def test_cases_are_by_store_and_clause(finding: MakeFinding) -> None:
    case = finding().case
    other = msgspec.structs.replace(case, found=msgspec.structs.replace(case.found, backend="other"))
    found = pages(Given(cases=[CaseFile("a.json", case), CaseFile("b.json", other), CaseFile("c.json", case)]))
    assert [row.text.split() for row in found["findings.html"].find("tr")][1:] == [
        ["store", "1", "level", "smoke,", "seed", "0", "1", "2"],
        ["other", "1", "level", "smoke,", "seed", "0", "1", "1"],
    ]


# Deviations


def test_a_deviation_that_two_stores_share_is_one_row(given: Given) -> None:
    found = pages(given)["deviations.html"]
    (row,) = found.find("tr", **{"class": "item"})
    links = [link.attributes["href"] for link in found.elements if link.tag == "a" and row in link.parents]
    assert links == ["clauses.html#ORD-5", "clauses.html#ORD-5.1", "clauses.html#ORD-5.2"]


def test_what_is_lacking_is_apart(result: MakeResult, failed: MakeResult) -> None:
    found = pages(Given(results=[failed(got={"refused": "unsupported", "message": "no"})]))["deviations.html"]
    assert [heading.text for heading in found.find("h2")] == [
        "0 deviations, by clause and aspect",
        "Not supported, where a clause asks for it",
    ]


def test_known_failures_have_their_reason(result: MakeResult) -> None:
    known = KnownResult(
        clause="ORD-1",
        signature="order / observe",
        versions="",
        reason="until positions are stored",
        url="",
        expires="2027-01-01",
        status="met",
        programs=3,
    )
    found = pages(Given(results=[result(known=[known])]))["deviations.html"]
    assert "until positions are stored" in [cell.text for cell in found.find("td")]


# Changes


def test_a_loss_is_told_with_what_was_before(given: Given) -> None:
    rows = [row.text for row in pages(given)["changes.html"].find("tr")]
    assert "ORD-5 total and has_more ✓ pass ✗ fail loss" in rows


def test_a_case_that_came_has_its_program(given: Given) -> None:
    lines = [line.text for line in pages(given)["changes.html"].find("li")]
    assert "recall(thread_id='t1', per_page=1)" in lines


def test_figures_are_told_the_worst_first(given: Given) -> None:
    rows = [row.text for row in pages(given)["changes.html"].find("tr", **{"class": "item"})]
    assert [("regressed" in row, "no change" in row) for row in rows[:2]] == [(True, False), (False, True)]


# Hostile text


@pytest.fixture
def hostile(finding: MakeFinding) -> Given:
    """An artefact of each kind, with hostile text where it holds any."""
    program = Program(operations=(CreateThread(resource_id=HOSTILE),), options={HOSTILE: HOSTILE})
    bad = finding(expected={"a": HOSTILE}, got={"a": "x"}, statement=HOSTILE, program=program, index=0)
    case = msgspec.structs.replace(bad.case, found=msgspec.structs.replace(bad.case.found, backend=HOSTILE))
    kills = made.kills()
    mutant = msgspec.structs.replace(
        kills.mutants[0], id=HOSTILE, clause=HOSTILE, report=HOSTILE, description=HOSTILE, obstacle=HOSTILE
    )
    comparison = made.comparison()
    change = msgspec.structs.replace(comparison.changes[0], contender=HOSTILE, workload=HOSTILE)
    manifest = made.manifest((HOSTILE, "two"), QUICK)
    return Given(
        results=[made.result((HOSTILE,), [bad])],
        kills=[msgspec.structs.replace(kills, mutants=[mutant], over=HOSTILE, engine=HOSTILE)],
        differences=[msgspec.structs.replace(made.difference(bad), notes=[HOSTILE])],
        cases=[CaseFile(HOSTILE, case)],
        benchmarks=[msgspec.structs.replace(manifest, notes=[HOSTILE], payload=HOSTILE, machine={HOSTILE: HOSTILE})],
        comparisons=[msgspec.structs.replace(comparison, changes=[change], notes=[HOSTILE], differences=[HOSTILE])],
    )


@pytest.mark.parametrize("file", FILES)
def test_hostile_text_makes_no_elements(given: Given, hostile: Given, file: str) -> None:
    ours = {element.tag for element in pages(given)[file].elements}
    assert {element.tag for element in pages(hostile)[file].elements} - ours == set()


@pytest.mark.parametrize("file", FILES)
def test_hostile_text_makes_no_scripts(given: Given, hostile: Given, file: str) -> None:
    scripts = [len([*found[file].find("script")]) for found in (pages(given), pages(hostile))]
    assert scripts[0] == scripts[1]


@pytest.mark.parametrize("file", FILES)
def test_hostile_text_makes_no_handlers(hostile: Given, file: str) -> None:
    names = {name for element in pages(hostile)[file].elements for name in element.attributes}
    assert {name for name in names if name.startswith("on")} == set()


def test_controls_and_bidi_are_escaped(hostile: Given) -> None:
    shown = b"".join(site.pages(hostile).values()).decode()
    assert not {"\x00", "\u202e"} & set(shown)
