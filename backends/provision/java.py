"""Finds a Java on this machine that a server can run on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

ASK_SECONDS = 30.0
FOLDERS = ("/usr/lib/jvm/*", "/usr/java/*", "/opt/java/*", "/Library/Java/JavaVirtualMachines/*/Contents/Home")


class Java(msgspec.Struct, frozen=True):
    """A Java installation; `modules` are those it has."""

    home: Path
    version: int
    modules: frozenset[str]

    @property
    def program(self) -> Path:
        """Its `java`."""
        return self.home / "bin" / "java"


class Need(msgspec.Struct, frozen=True):
    """What a server asks of Java: the variable of its own that names one, the oldest version, modules."""

    variable: str
    version: int
    modules: Sequence[str] = ()

    def unmet(self, java: Java) -> str:
        """What the installation lacks; empty when it will do."""
        if java.version < self.version:
            return f"version {java.version}"
        lacking = sorted(set(self.modules) - java.modules)
        return f"without {', '.join(lacking)}" if lacking else ""

    def __str__(self) -> str:
        with_modules = f" with the modules {', '.join(self.modules)}" if self.modules else ""
        return f"Java {self.version} or newer{with_modules}"


def find(need: Need) -> Java | str:
    """The first installation that will do: MEMASSAY_JAVA_HOME, the server's variable, JAVA_HOME, PATH, the system's.

    Otherwise why there is none. One that a variable of ours names has to do.
    """
    seen: list[str] = []
    for home in _candidates(need.variable):
        java = look(home)
        if java is None:
            continue
        lacks = need.unmet(java)
        if not lacks:
            return java
        seen.append(f"{home}: {lacks}")
    found = f"; found {'; '.join(seen)}" if seen else ""
    return f"there is no {need}{found}: install one, or name it by MEMASSAY_JAVA_HOME"


def _candidates(variable: str) -> Iterator[Path]:
    own = os.environ.get("MEMASSAY_JAVA_HOME")
    if own:
        yield Path(own)
        return
    homes = [Path(os.environ[name]) for name in (variable, "JAVA_HOME") if os.environ.get(name)]
    if program := shutil.which("java"):
        homes.append(Path(program).resolve().parents[1])
    for pattern in FOLDERS:
        root = Path(pattern.partition("*")[0])
        homes += sorted(root.glob(pattern[len(str(root)) + 1 :]), reverse=True)
    yield from dict.fromkeys(home.resolve() for home in homes)


def look(home: Path) -> Java | None:
    """The installation in a directory; None when there is none, or it does not answer."""
    program = home / "bin" / "java"
    if not os.access(program, os.X_OK):
        return None
    release = _release(home)
    version = release.get("JAVA_VERSION") or _version(_ask(program, "-version"))
    modules = release.get("MODULES") or _ask(program, "--list-modules")
    number = re.match(r"(?:1\.)?(\d+)", version)
    if number is None:
        return None
    return Java(home, int(number[1]), frozenset(name.partition("@")[0] for name in modules.split()))


def _release(home: Path) -> dict[str, str]:
    """The file in which an installation describes itself, without starting it."""
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return dict(re.findall(r'^(\w+)="(.*)"$', text, re.MULTILINE))


def _version(said: str) -> str:
    found = re.search(r'version "([^"]+)"', said)
    return found[1] if found else ""


def _ask(program: Path, option: str) -> str:
    try:
        done = subprocess.run(
            [program, option],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ASK_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr if done.returncode == 0 else ""
