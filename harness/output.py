"""Where things go: files written whole or not at all, and a standard output that no store writes into."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TextIO

from .exits import UsageProblem


def check(files: Mapping[str, Path | None]) -> None:
    """Find out before the run that the files, by option, can be written and are different ones. Raises UsageProblem."""
    seen: dict[Path, str] = {}
    for option, path in files.items():
        if path is None:
            continue
        _check(option, path)
        target = path.resolve()
        if target in seen:
            raise UsageProblem(f"{seen[target]} and {option} name one file: {path}", hint="give each its own")
        seen[target] = option


def _check(option: str, path: Path) -> None:
    target = path.resolve()
    try:
        if str(path) == "-":
            raise UsageProblem(f"{option} - is no file", hint="the report is what goes to standard output; name a file")
        if target.is_dir():
            raise UsageProblem(f"{option}: {path} is a directory", hint="name a file in it")
        if target.exists() and not os.access(target, os.W_OK):
            raise UsageProblem(f"{option}: {path} cannot be written: permission denied", hint="choose another file")
        if target.exists() and not target.is_file():
            return
        temporary = _beside(target)
        temporary.touch(exist_ok=False)
        temporary.unlink()
    except OSError as error:
        raise UsageProblem(
            f"{option}: {path} cannot be written: {error.strerror}", hint="choose another file"
        ) from None


def check_folder(option: str, folder: Path) -> None:
    """The same for a folder, which need not exist yet. Raises UsageProblem."""
    hint = f"choose another folder with {option}"
    try:
        existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    except OSError as error:
        raise UsageProblem(f"{folder} cannot be written to: {error.strerror}", hint=hint) from None
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise UsageProblem(f"{folder} cannot be written to", hint=hint)


def write(path: Path, data: bytes) -> None:
    """Write a file whole, and its folder where there is none: what was there stays until all is. Raises UsageProblem.

    Devices and pipes are written to as they are.
    """
    target = path.resolve()  # a link stays a link
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(data)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        _replace(target, data)
    except OSError as error:
        raise UsageProblem(f"{path} cannot be written: {error.strerror}", hint="choose another place") from None


def _replace(target: Path, data: bytes) -> None:
    temporary = _beside(target)
    try:
        with temporary.open("xb") as file:
            file.write(data)
        if target.exists():
            shutil.copymode(target, temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _beside(target: Path) -> Path:
    """A name that is free, in the file's own folder: only there can it be renamed in one step."""
    return target.parent / f".memassay-{secrets.token_hex(8)}.tmp"


@contextmanager
def own_stdout() -> Generator[TextIO]:
    """Standard output, for the holder alone: in the block stores, and what they start, print to standard error."""
    own = sys.stdout
    if own is not sys.__stdout__:
        with redirect_stdout(sys.stderr):
            yield own
        return
    own.flush()
    kept = os.dup(own.fileno())
    with open(kept, "w", encoding=own.encoding, errors=own.errors) as stream, redirect_stdout(sys.stderr):
        os.dup2(sys.stderr.fileno(), own.fileno())
        try:
            yield stream
        finally:
            # What a library of C has buffered is its own affair.
            os.dup2(stream.fileno(), own.fileno())
