"""Names that a new adapter cannot have."""

from __future__ import annotations

from pathlib import Path

import pytest
from memassay.harness import scaffold
from memassay.harness.exits import UsageProblem


@pytest.mark.parametrize("name", ["acme", "my_store2", "a"])
def test_a_module_name_is_taken(tmp_path: Path, name: str) -> None:
    assert scaffold.write(name, tmp_path)[0] == tmp_path / f"{name}.py"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "A",
        "a-b",
        "a.b",
        "a/b",
        "../a",
        "2a",
        "_a",
        "a_",
        "a__b",
        "__init__",
        "class",
        "match",
        "é",
        "a\n",
        "a" * 41,
    ],
)
def test_what_is_no_module_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageProblem, match="cannot be a module's name"):
        scaffold.write(name, tmp_path)


@pytest.mark.parametrize("name", ["json", "sys", "numpy", "memassay", "pytest", "antigravity"])
def test_a_module_that_is_there_already_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageProblem, match=f"there is a module '{name}' already.*such as {name}_memory"):
        scaffold.write(name, tmp_path)


def test_a_package_in_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "__init__.py").touch()
    with pytest.raises(UsageProblem, match="already"):
        scaffold.write("acme", tmp_path)


def test_a_mere_folder_of_the_name_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "acme").mkdir()
    assert scaffold.write("acme", tmp_path)[0].is_file()


def test_nothing_is_written_for_a_name_that_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem):
        scaffold.write("json", tmp_path)
    assert list(tmp_path.iterdir()) == []
