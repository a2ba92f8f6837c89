"""Guards of the project itself: the arrows between components, packaging lists, documents and commands that agree."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
import typer.main
from memassay.harness.artefact import Verdict
from memassay.harness.cli import app
from memassay.harness.exits import Exit
from memassay.mutants import MUTANTS
from memassay.spec.clauses import CLAUSES, LEVELS, by_family, select
from typer.testing import CliRunner

ROOT = Path(__file__).parents[1]
COMPONENTS = ("spec", "backends", "harness", "benchmarks", "reports")
MUTANTS_FOLDER = ROOT / "tests" / "mutants"
ROOT_PACKAGE = ROOT / "harness" / "toplevel"

ARROWS = {
    "spec": {"spec"},
    "backends": {"backends", "spec"},
    "harness": {"harness", "backends", "spec"},
    "benchmarks": {"benchmarks", "harness", "backends", "spec"},
    "reports": {
        *("reports", "spec", "harness.artefact"),
        *(f"benchmarks.{name}" for name in ("artefact", "comparison", "comparison_shown", "equal_recall")),
    },
    "mutants": {"mutants", "spec"},
}
"""What each component may import: whole components, or single modules."""

COMPOSITION = {
    f"harness.{name}": {"reports"}
    for name in (
        *("cli", "command_mutants", "command_diff", "command_report", "command_shrink"),
        *("command_fault", "command_soak", "conformance", "publish"),
    )
}
"""Modules that put components together, and what else they may import."""

IO_MODULES = {
    *("asyncio", "ctypes", "ftplib", "glob", "http", "io", "logging", "multiprocessing", "os", "pathlib", "pickle"),
    *("requests", "select", "shelve", "shutil", "signal", "smtplib", "socket", "sqlite3", "ssl", "subprocess", "sys"),
    *("tempfile", "urllib", "warnings"),
}
THIRD_PARTY_OF_SPEC = {"jsonschema", "jsonschema_specifications", "msgspec", "hypothesis", "numpy", "referencing"}
ENGINES = re.compile("elasticsearch|opensearch|psycopg|faiss|libsql|postgres", re.IGNORECASE)
CITATION = re.compile(r"[\w.-]+/[\w.-]+#\d+")


class Import(NamedTuple):
    """One imported module, by its name within memassay if it is ours."""

    module: str
    line: int
    relative: bool


class Source(NamedTuple):
    """A Python file of a component: `name` is its module name within memassay (`harness.cli`)."""

    path: Path
    name: str
    tree: ast.Module

    @property
    def component(self) -> str:
        return self.name.partition(".")[0]

    def imports(self) -> Iterator[Import]:
        package = self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield Import(alias.name, node.lineno, relative=False)
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                yield Import(node.module or "", node.lineno, relative=False)
            elif isinstance(node, ast.ImportFrom):
                parts = package.split(".") if package else []
                base = parts[: len(parts) - (node.level - 1)]
                module = [*base, *(node.module.split(".") if node.module else [])]
                for alias in node.names:
                    # `from . import artefact` may name a module or a value: the longer name tells more.
                    yield Import(".".join([*module, alias.name]), node.lineno, relative=True)

    def at(self, line: int) -> str:
        return f"{self.path.relative_to(ROOT)}:{line}"


def parse(path: Path, name: str) -> Source:
    return Source(path, name, ast.parse(path.read_text(encoding="utf-8")))


def sources_under(folder: Path, component: str) -> Iterator[Source]:
    for path in sorted(folder.rglob("*.py")):
        if ROOT_PACKAGE not in path.parents:
            parts = [component, *path.relative_to(folder).with_suffix("").parts]
            yield parse(path, ".".join(part for part in parts if part != "__init__"))


SOURCES = [source for component in COMPONENTS for source in sources_under(ROOT / component, component)]
SHIPPED = [*SOURCES, *sources_under(MUTANTS_FOLDER, "mutants")]


def allowed(source: Source, module: str) -> bool:
    reachable = ARROWS[source.component] | COMPOSITION.get(source.name, set())
    return any(module == target or module.startswith(f"{target}.") for target in reachable)


def every_python_file() -> list[Path]:
    hidden = {".venv", ".nox", "build", "dist"}
    return sorted(path for path in ROOT.rglob("*.py") if hidden.isdisjoint(path.relative_to(ROOT).parts))


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


# The arrows


def test_there_are_sources_to_guard() -> None:
    assert {source.component for source in SHIPPED} == {*COMPONENTS, "mutants"}


def test_components_import_along_the_arrows_alone() -> None:
    wrong = [
        f"{source.at(found.line)}: {source.component} imports {found.module}"
        for source in SHIPPED
        for found in source.imports()
        for module in [found.module.removeprefix("memassay.")]
        if (found.relative or found.module.startswith("memassay.")) and not allowed(source, module)
    ]
    assert wrong == []


def test_components_import_each_other_relatively() -> None:
    """The mutants apart: their folder is elsewhere in the tree than in the package."""
    wrong = [
        f"{source.at(found.line)}: import {found.module}"
        for source in SOURCES
        for found in source.imports()
        if found.module.startswith("memassay.")
    ]
    assert wrong == []


def test_no_file_imports_a_folder_by_its_bare_name() -> None:
    wrong = [
        f"{source.at(found.line)}: import {found.module}"
        for source in (parse(path, "") for path in every_python_file())
        for found in source.imports()
        if not found.relative and found.module.partition(".")[0] in {*COMPONENTS, "tests"}
    ]
    assert wrong == []


def test_nothing_that_ships_imports_tests() -> None:
    wrong = [
        source.at(found.line)
        for source in SOURCES
        for found in source.imports()
        if {"tests", "mutants", "conftest"} & {*found.module.split(".")}
    ]
    assert wrong == []


def test_the_specification_does_no_io() -> None:
    spec = [source for source in SOURCES if source.component == "spec"]
    modules = [
        f"{source.at(found.line)}: {found.module}"
        for source in spec
        for found in source.imports()
        if not found.relative and found.module.partition(".")[0] in IO_MODULES
    ]
    calls = [
        f"{source.at(node.lineno)}: {node.func.id}()"
        for source in spec
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"open", "print", "input"}
    ]
    assert modules + calls == []


def test_the_specification_needs_little() -> None:
    import sys

    needed = {
        found.module.partition(".")[0]
        for source in SOURCES
        if source.component == "spec"
        for found in source.imports()
        if not found.relative
    }
    assert needed - sys.stdlib_module_names == THIRD_PARTY_OF_SPEC


def test_only_backends_know_engines() -> None:
    """By identifiers and by words that code could branch on; help texts and citations of reports are prose."""
    wrong: list[str] = []
    for source in SOURCES:
        if source.component not in ("spec", "harness", "reports"):
            continue
        for node in ast.walk(source.tree):
            for word in words(node):
                if ENGINES.search(word) and not CITATION.fullmatch(word):
                    wrong.append(f"{source.at(getattr(node, 'lineno', 0))}: {word}")
    assert wrong == []


def words(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.alias(name=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.ImportFrom(module=str(name)) | ast.keyword(arg=str(name)):
            yield name
        case ast.Constant(value=str(text)) if not re.search(r"\s", text):
            yield text
        case _:
            return


# Files and packages


def test_every_file_says_what_it_is_for_in_its_first_line() -> None:
    wrong = [
        str(path.relative_to(ROOT))
        for path in every_python_file()
        if not re.match(r'r?"""[A-Z`a-z]', path.read_text(encoding="utf-8"))
    ]
    assert wrong == []


def test_every_package_is_listed() -> None:
    """`packages` is by hand: a folder that is forgotten is missing only from the wheel."""
    settings = project()["tool"]["setuptools"]
    folders: dict[str, str] = settings["package-dir"]
    listed: set[str] = set()
    for package in settings["packages"]:
        parent = max((name for name in folders if f"{package}.".startswith(f"{name}.")), key=len)
        listed.add("/".join([folders[parent], *package[len(parent) :].strip(".").split(".")]).strip("/"))
    found = {
        path.parent.relative_to(ROOT).as_posix()
        for path in every_python_file()
        if path.name == "__init__.py" and (path.parent == MUTANTS_FOLDER or "tests" not in path.parts)
    }
    assert listed == found


def test_the_changelog_is_about_this_version() -> None:
    newest = re.search(r"^## (\S+)", read("CHANGELOG.md"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == project()["project"]["version"]


# Clauses


def test_every_clause_is_written_down_once() -> None:
    ids = Counter(
        match
        for path in (ROOT / "spec" / "clauses").glob("*.py")
        for match in re.findall(r'\bid="([^"]+)"', path.read_text(encoding="utf-8"))
    )
    assert ids == Counter(CLAUSES.keys())


def test_every_clause_has_a_mutant_that_breaks_it() -> None:
    broken = {mutant.clause for mutant in MUTANTS.values()}
    assert broken <= CLAUSES.keys()
    assert [clause for clause in CLAUSES if clause not in broken] == []


# Commands and documents


def commands() -> list[str]:
    return sorted(typer.main.get_group(app).commands)


@pytest.mark.parametrize("command", commands())
def test_the_help_of_every_command_has_an_example(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"])
    assert shown.exit_code == 0
    assert re.search(rf"^ *memassay {command}\b", shown.output, re.MULTILINE)


def fenced(marker: str) -> str:
    """The one command in the code block that follows the marker in the README."""
    found = re.findall(rf"<!-- {marker} -->\n+```sh\n(.+)\n```", read("README.md"))
    assert len(found) == 1, f"the README has {len(found)} blocks marked {marker!r}"
    return found[0]


@pytest.mark.parametrize("marker", ["command: verify", "command: test", "command: weights"])
def test_a_readme_command_stands_alone(marker: str) -> None:
    command = fenced(marker)
    assert command.startswith("python3 -m venv .venv && .venv/bin/pip install ")


def test_the_check_runs_the_commands_of_the_readme() -> None:
    check = read(".ci/run")
    for marker in ("command: verify", "command: test", "command: weights"):
        assert f"'{marker}'" in check
    assert "pip install" not in check


def test_the_workflow_runs_the_commands_of_the_readme() -> None:
    workflow = read(".github/workflows/ci.yml")
    assert f"run: {fenced('command: test')}\n" in workflow
    assert f"run: {fenced('command: verify')}\n" in workflow
    assert f"run: {fenced('command: weights')}\n" in workflow


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_a_document_names_files_that_exist(document: str) -> None:
    linked = re.findall(r"\]\((?!https?:|#)([^)#]+)", read(document))
    assert [name for name in linked if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_a_document_names_clauses_that_exist(document: str) -> None:
    families = "|".join(sorted({clause.family for clause in CLAUSES.values()}))
    named = re.findall(rf"\b((?:{families})-\d+[a-z]?)\b", read(document))
    assert [clause for clause in named if clause not in CLAUSES] == []


def test_the_matrix_in_the_readme_is_of_these_clauses() -> None:
    line = r"^([A-Z]{2,3}-\d+[a-z]?)  +(\S.*?)  +(\S+)  +(\S+)  +(\S+)  +(\S+)$"
    rows = re.findall(line, read("README.md"), re.MULTILINE)
    assert [(row[0], row[1]) for row in rows] == [(clause.id, clause.title) for clause in CLAUSES.values()]
    assert {verdict for row in rows for verdict in row[2:]} == {"pass", "unsupported"}


def test_the_families_and_levels_in_the_readme_are_these() -> None:
    readme = read("README.md")
    assert re.findall(r"^\| ([A-Z]{2,3}) \|", readme, re.MULTILINE) == list(by_family())
    levels = re.findall(r"^\| (smoke|core|extended)\b[^|]*\| (\d+) \|", readme, re.MULTILINE)
    assert levels == [(level, str(len(select(level)))) for level in LEVELS]


def test_the_exit_codes_in_the_readme_are_these() -> None:
    codes = re.findall(r"^\| (\d+) \|", read("README.md"), re.MULTILINE)
    silent = {Exit.BROKEN_PIPE}
    assert [int(code) for code in codes] == sorted({*Exit} - silent)


def test_the_verdicts_in_the_readme_are_these() -> None:
    explained = re.findall(r"^\| ([a-z-]+) \| (?!.*\d+ \|)", read("README.md"), re.MULTILINE)
    assert {*explained} >= {*get_args(Verdict)}
