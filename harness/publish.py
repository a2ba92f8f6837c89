"""Findings of runs as files for a repository: known failures with their cases, a file a store, and one page.

    python -m memassay.harness.publish -o FOLDER --page PAGE.md RESULT...

FOLDER/STORE.toml can be copied as `memassay.toml`, with FOLDER/cases/STORE beside it. The same results give the same
bytes. What a store refuses as unsupported fails as well where a clause asks for it, so that it is declared, too.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Annotated

import typer

from ..reports import deviations
from ..spec.clauses import CLAUSES
from . import cases, known, output, results
from .arguments import user_errors
from .artefact import BackendResult, Result


def publish(read: Sequence[Result], folder: Path, page: str) -> list[Path]:
    """Write the files, in place of those that earlier runs of these stores left; which. Raises UsageProblem."""
    output.check_folder("-o", folder)
    written, kept = [folder / page], list[Result]()
    for result in read:
        for backend in result.backends:
            shutil.rmtree(folder / "cases" / cases.slug(backend.name), ignore_errors=True)
        kept.append(cases.keep(result, folder / "cases"))
        for backend in result.backends:
            written.append(folder / f"{cases.slug(backend.name)}.toml")
            output.write(written[-1], _declared(result, backend).encode())
    output.write(written[0], deviations.page(kept, "cases").encode())
    return written


def _declared(result: Result, backend: BackendResult) -> str:
    """Known failures of a store, each as its clause says."""
    corpus = result.corpus
    made = datetime.fromisoformat(result.run.started).date()
    findings = [finding for found in backend.clauses.values() for finding in found.findings]
    entries = [
        known.entry(
            backend,
            finding,
            corpus.level,
            f"{CLAUSES[finding.case.signature.clause].title}: not so, see the case",
            date(made.year + 1, made.month, 1),
        )
        for finding in findings
    ]
    head = (
        f"# What {backend.name} ({backend.engine}) does otherwise than the specification says.\n"
        f"# Found by `memassay verify {backend.name} --level {corpus.level} --seed {corpus.seed}`"
        f" (corpus {corpus.hash}, {backend.programs:,} programs).\n\n"
        f'[cases]\nfolder = "cases/{cases.slug(backend.name)}"\n\n'
    )
    return head + "\n".join(entries)


def command(
    files: Annotated[list[Path], typer.Argument(metavar="RESULT", help="Files that `verify --json` wrote.")],
    folder: Annotated[Path, typer.Option("-o", metavar="FOLDER", help="Where to write.")],
    page: Annotated[str, typer.Option(metavar="NAME", help="The page's file name.")] = "deviations.md",
) -> None:
    """Write known failures, their cases and a page of deviations."""
    with user_errors():
        for path in publish([results.read(path) for path in files], folder, page):
            typer.echo(f"wrote {path}")


if __name__ == "__main__":
    typer.run(command)
