"""Files are whole or not there, and standard output is memassay's own."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from memassay.harness import output
from memassay.harness.exits import UsageProblem

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written(tmp_path: Path) -> None:
    output.write(tmp_path / "r.json", b"new")
    assert (tmp_path / "r.json").read_bytes() == b"new"


def test_a_file_replaces_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_bytes(b"old and longer")
    output.write(tmp_path / "r.json", b"new")
    assert (tmp_path / "r.json").read_bytes() == b"new"


def test_the_folder_of_a_file_is_made(tmp_path: Path) -> None:
    output.write(tmp_path / "a" / "b" / "r.json", b"new")
    assert (tmp_path / "a" / "b" / "r.json").read_bytes() == b"new"


def test_nothing_else_is_left(tmp_path: Path) -> None:
    output.write(tmp_path / "r.json", b"new")
    assert names(tmp_path) == ["r.json"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "r.json").symlink_to(tmp_path / "there" / "r.json")
    output.write(tmp_path / "r.json", b"new")
    assert ((tmp_path / "r.json").is_symlink(), (tmp_path / "there" / "r.json").read_bytes()) == (True, b"new")


def test_the_mode_of_a_file_stays(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_bytes(b"old")
    (tmp_path / "r.json").chmod(0o640)
    output.write(tmp_path / "r.json", b"new")
    assert stat.S_IMODE((tmp_path / "r.json").stat().st_mode) == 0o640


@pytest.fixture
def interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which writing over r.json was interrupted at the last moment."""

    def replace(self: Path, target: Path) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", replace)
    (tmp_path / "r.json").write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        output.write(tmp_path / "r.json", b"new")
    return tmp_path


def test_an_interrupt_keeps_the_old_file(interrupted: Path) -> None:
    assert (interrupted / "r.json").read_bytes() == b"old"


def test_an_interrupt_leaves_nothing_else(interrupted: Path) -> None:
    assert names(interrupted) == ["r.json"]


@needs_full
def test_a_full_device_is_told() -> None:
    with pytest.raises(UsageProblem, match="No space left on device"):
        output.write(FULL, b"new")


# Before the run


def test_looking_whether_a_file_can_be_written_leaves_nothing(tmp_path: Path) -> None:
    output.check({"--json": tmp_path / "r.json"})
    assert names(tmp_path) == []


def test_looking_keeps_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_bytes(b"old")
    output.check({"--json": tmp_path / "r.json"})
    assert (tmp_path / "r.json").read_bytes() == b"old"


@pytest.mark.parametrize("other", ["r.json", "./r.json", "x/../r.json", "link.json"])
def test_one_file_for_two_outputs_is_refused(tmp_path: Path, other: str) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "link.json").symlink_to("r.json")
    with pytest.raises(UsageProblem, match="--json and --junit name one file"):
        output.check({"--json": tmp_path / "r.json", "--junit": tmp_path / other})


@pytest.mark.parametrize("name", ["", ".", "x", "nowhere/r.json", "file/r.json", "r" * 300])
def test_a_file_that_cannot_be_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x").mkdir()
    Path("file").touch()
    with pytest.raises(UsageProblem, match=r"^--json: .*(is a directory|cannot be written)"):
        output.check({"--json": Path(name)})


def test_a_dash_is_no_file() -> None:
    with pytest.raises(UsageProblem, match="--json - is no file"):
        output.check({"--json": Path("-")})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UsageProblem, match="Permission denied"):
        output.check({"--json": tmp_path / "r.json"})


# Standard output


NOISY = """
import os, subprocess, sys
from memassay.harness.output import own_stdout
print("before")
with own_stdout() as stdout:
    print("noise")
    os.write(1, b"noise\\n")
    subprocess.run(["echo", "noise"])
    print("mine", file=stdout)
print("after")
"""


def test_only_the_holder_writes_to_standard_output() -> None:
    done = subprocess.run([sys.executable, "-c", NOISY], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("before\nmine\nafter\n", "noise\n" * 3)
