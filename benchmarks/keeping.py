"""Where benchmarks keep what takes long to make, and locks, so that two processes do not make the same at a time."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from ..backends.provision.homes import CACHE_VARIABLE
from ..backends.provision.homes import cache as user_cache
from ..harness.exits import UsageProblem

Told = Callable[[str], None]
"""Takes a line for people: what is going on."""


def silent(line: str) -> None:
    """Tells nobody."""


def folder(cache: Path | None, kind: str) -> Path:
    """The directory for one kind of things, made unless it is there; in the user's cache unless another is given.

    Raises UsageProblem where it cannot be made.
    """
    found = (user_cache() / "benchmarks" if cache is None else cache) / kind
    try:
        found.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageProblem(
            f"nothing can be kept in {found}: {error.strerror}", hint=f"{CACHE_VARIABLE} names another place"
        ) from error
    return found


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Alone with what is, or will be, at a path; another process waits."""
    with path.with_name(f".{path.name}.lock").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def seal(path: Path, kind: str, body: bytes) -> None:
    """Put a file there, all at once: a line that tells what it is, the sha256 of the rest, and the rest."""
    new = path.with_name(f".{path.name}.new")
    new.write_bytes(_magic(kind) + hashlib.sha256(body).digest() + body)
    os.replace(new, path)


def unseal(path: Path, kind: str) -> bytes | None:
    """What was sealed; None when nothing was, or when it is damaged. Raises UsageProblem for a stranger's file."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    magic = _magic(kind)
    if not content.startswith(magic[: len(content)]):
        raise UsageProblem(f"{path} is no {kind} of memassay", hint="remove it, or choose another cache")
    digest, body = content[len(magic) :][:32], content[len(magic) + 32 :]
    return body if hashlib.sha256(body).digest() == digest else None


def _magic(kind: str) -> bytes:
    return f"memassay {kind}\n".encode()
