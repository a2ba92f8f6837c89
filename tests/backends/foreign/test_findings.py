"""The published findings: each declared with its case, and still so on the store that needs no server."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest
from memassay.backends.foreign import mastra
from memassay.backends.foreign.mastra import packages
from memassay.harness import cases, known
from memassay.harness.cli import app
from typer.testing import CliRunner

FINDINGS = Path(mastra.__file__).parents[1] / "findings"
STORES = sorted(FINDINGS.glob("*.toml"))
STORE = "mastra-inmemory"
FEW = ("--level", "core", "--examples", "1", "--clause", "THR-5", "--clause", "MSG-5a")
"""One program beside those of the cases; the clauses have cases of this store."""
installed = pytest.mark.skipif(packages.missing() is not None, reason=f"Mastra: {packages.missing()}")


@pytest.mark.parametrize("path", STORES, ids=lambda path: path.stem)
def test_every_entry_has_its_case_and_every_case_its_entry(path: Path) -> None:
    declared = known.read(path)
    assert declared.cases is not None
    found = [cases.read(file).signature for file in sorted(declared.cases.glob("*.json"))]
    assert sorted(map(str, found)) == sorted(str(entry.full) for entry in declared.known)


@pytest.mark.parametrize("path", STORES, ids=lambda path: path.stem)
def test_they_are_of_a_whole_run_at_core(path: Path) -> None:
    assert {entry["level"] for entry in tomllib.loads(path.read_text(encoding="utf-8"))["known"]} == {"core"}


def test_a_store_of_each_page_is_on_it() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in FINDINGS.glob("*.md"))
    names = {entry.backend for path in STORES for entry in known.read(path).known}
    assert [name for name in names if f"| {name} | " not in pages] == []


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the store's file as memassay.toml, and its cases."""
    shutil.copy(FINDINGS / f"{STORE}.toml", tmp_path / "memassay.toml")
    shutil.copytree(FINDINGS / "cases" / STORE, tmp_path / "cases" / STORE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@installed
def test_a_published_file_makes_its_clauses_green(copied: Path) -> None:
    shown = CliRunner().invoke(app, ["verify", STORE, *FEW])
    assert shown.exit_code == 0, shown.output


@installed
def test_without_one_entry_they_are_red(copied: Path) -> None:
    file = copied / "memassay.toml"
    head, *entries = file.read_text(encoding="utf-8").split("[[known]]")
    kept = [entry for entry in entries if 'clause = "THR-5"' not in entry]
    assert len(kept) < len(entries)
    file.write_text("[[known]]".join([head, *kept]), encoding="utf-8")
    assert CliRunner().invoke(app, ["verify", STORE, *FEW]).exit_code == 1


@installed
def test_a_published_case_still_fails(copied: Path) -> None:
    shown = CliRunner().invoke(app, ["replay", f"cases/{STORE}/MSG-5a-error-clear_messages.json"])
    assert (shown.exit_code, "STILL FAILS" in shown.output) == (1, True)
