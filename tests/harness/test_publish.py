"""Published findings: known failures that make a run green, their cases, and a page that names both."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness_support import Hold, page
from memassay.harness import artefact, cases, exits, known
from memassay.harness.artefact import Result
from memassay.harness.exits import Exit
from memassay.harness.publish import publish
from memory_fakes import Miscounting

PROGRAMS = [page(1, i) for i in range(6)]


@pytest.fixture
def found(hold: Hold) -> Result:
    return hold(Miscounting(), PROGRAMS, clauses=["ORD-5"])


@pytest.fixture
def published(found: Result, tmp_path: Path) -> Path:
    publish([found], tmp_path, "page.md")
    return tmp_path


def test_what_is_published_makes_the_run_green(hold: Hold, published: Path) -> None:
    declared = known.read(published / "fake.toml").known
    assert exits.of(hold(Miscounting(), PROGRAMS, clauses=["ORD-5"], known=declared)) == Exit.CONFORMS


def test_without_one_of_its_entries_the_run_is_red(hold: Hold, published: Path) -> None:
    declared = known.read(published / "fake.toml").known
    result = hold(Miscounting(), PROGRAMS, clauses=["ORD-5"], known=declared[1:])
    assert exits.of(result) == Exit.CLAUSES_FAIL


def test_the_cases_lie_where_the_file_says(published: Path) -> None:
    folder = known.read(published / "fake.toml").cases
    assert folder is not None
    assert [cases.read(path).signature.clause for path in folder.iterdir()] == ["ORD-5"]


def test_the_page_names_the_case(published: Path) -> None:
    assert "replay: memassay replay cases/fake/ORD-5-total-recall.json" in (published / "page.md").read_text()


def test_cases_of_an_earlier_run_go(found: Result, published: Path) -> None:
    old = published / "cases" / "fake" / "ORD-1-order-observe.json"
    old.write_bytes(artefact.encode(cases.read(next(old.parent.iterdir()))))
    publish([found], published, "page.md")
    assert not old.exists()


def test_the_same_results_give_the_same_bytes(found: Result, published: Path) -> None:
    before = {path: path.read_bytes() for path in published.rglob("*.*")}
    publish([found], published, "page.md")
    assert {path: path.read_bytes() for path in published.rglob("*.*")} == before
