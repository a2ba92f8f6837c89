"""What users install: sdist and wheel hold every module and nothing else, and their entry points resolve."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from importlib.metadata import EntryPoint, distribution
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import memassay
import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "MANIFEST.in", "pyproject.toml"}
GENERATED = {"PKG-INFO", "setup.cfg"}
JUNK = shutil.ignore_patterns(
    *(".git", ".venv", ".nox", "build", "dist", "*.egg-info", "__pycache__", ".hypothesis", ".memassay", ".*_cache")
)
SETTINGS: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


class Built(NamedTuple):
    """What the build left, by path within the archive: of the sdist below its only folder."""

    sdist: dict[str, bytes]
    wheel: dict[str, bytes]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Built from a copy, so that neither leftovers of the tree come in nor are any left in it."""
    folder = tmp_path_factory.mktemp("packaging")
    shutil.copytree(ROOT, folder / "tree", ignore=JUNK)
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", folder / "tree"],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=120,
    )
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    (wheel,) = (folder / "dist").glob("*.whl")
    files: dict[str, bytes] = {}
    with tarfile.open(sdist) as archive:
        for member in archive.getmembers():
            content = archive.extractfile(member)
            if content is not None:
                files[PurePosixPath(*PurePosixPath(member.name).parts[1:]).as_posix()] = content.read()
    with zipfile.ZipFile(wheel) as archive:
        return Built(files, {name: archive.read(name) for name in archive.namelist()})


def shipped() -> dict[str, str]:
    """Path in the wheel → path in the tree, of all that the package consists of."""
    folders: dict[str, str] = SETTINGS["tool"]["setuptools"]["package-dir"]
    paths: dict[str, str] = {}
    for package, folder in folders.items():
        for path in (ROOT / folder).rglob("*.py"):
            inside = path.relative_to(ROOT / folder).as_posix()
            if not (package == "memassay.harness" and inside.startswith("toplevel/")):
                paths[f"{package.replace('.', '/')}/{inside}"] = path.relative_to(ROOT).as_posix()
    data: dict[str, list[str]] = SETTINGS["tool"]["setuptools"]["package-data"]
    for package, patterns in data.items():
        known = max((name for name in folders if f"{package}.".startswith(f"{name}.")), key=len)
        folder = ROOT / folders[known] / package.removeprefix(known).replace(".", "/").strip("/")
        for path in (path for pattern in patterns for path in folder.glob(pattern)):
            inside = path.relative_to(folder).as_posix()
            paths[f"{package.replace('.', '/')}/{inside}"] = path.relative_to(ROOT).as_posix()
    return paths


def of_package(files: dict[str, bytes]) -> dict[str, bytes]:
    return {
        name: content for name, content in files.items() if not name.split("/")[0].endswith((".dist-info", ".egg-info"))
    }


def test_the_wheel_is_the_package_and_nothing_else(built: Built) -> None:
    assert of_package(built.wheel).keys() == shipped().keys()


def test_the_wheel_holds_what_the_tree_holds(built: Built) -> None:
    assert of_package(built.wheel) == {name: (ROOT / path).read_bytes() for name, path in shipped().items()}


def test_the_sdist_is_the_sources_and_the_documents(built: Built) -> None:
    assert of_package(built.sdist).keys() == {*shipped().values(), *DOCUMENTS, *GENERATED}


def test_the_metadata_say_what_is_needed(built: Built) -> None:
    (text,) = (content for name, content in built.wheel.items() if name.endswith(".dist-info/METADATA"))
    metadata = Parser().parsestr(text.decode())
    assert metadata["Version"] == SETTINGS["project"]["version"] == memassay.__version__
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "MIT"
    engines = {"libsql", "postgres", "faiss", "elasticsearch", "opensearch", "docker", "embedded", "foreign"}
    providers = {"openai", "google"}
    assert {*metadata.get_all("Provides-Extra", [])} == {
        *(*engines, *providers, "minilm", "bench", "report", "cluster", "all", "dev", "types"),
    }
    needed = [need for need in metadata.get_all("Requires-Dist", []) if "extra ==" not in need]
    assert len(needed) == len(SETTINGS["project"]["dependencies"])
    assert not any("libsql" in need or "psycopg" in need for need in needed)


def test_every_dependency_has_both_ends() -> None:
    """A lower bound that was tried, and the next version that may break."""
    extras: dict[str, list[str]] = SETTINGS["project"]["optional-dependencies"]
    needs = [*SETTINGS["project"]["dependencies"], *(need for extra in extras.values() for need in extra)]
    own = "memassay["
    build_tool = "setuptools"  # as [build-system] has it
    given = [need for need in needs if not need.startswith((own, build_tool))]
    assert [need for need in given if not (">=" in need and ",<" in need)] == []


def entry_points() -> list[EntryPoint]:
    return list(distribution("memassay").entry_points)


@pytest.mark.parametrize("point", entry_points(), ids=lambda point: f"{point.group}:{point.name}")
def test_an_entry_point_resolves(point: EntryPoint) -> None:
    assert point.load() is not None


def test_entry_points_are_those_of_the_tree() -> None:
    """An editable install made before an entry point was added does not know it."""
    declared = {("console_scripts", name): value for name, value in SETTINGS["project"]["scripts"].items()} | {
        (group, name): value
        for group, points in SETTINGS["project"]["entry-points"].items()
        for name, value in points.items()
    }
    assert {(point.group, point.name): point.value for point in entry_points()} == declared


def test_the_module_runs() -> None:
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "memassay", "--version"], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout == f"memassay {memassay.__version__}\n"
