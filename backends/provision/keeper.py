"""Stands by while an engine runs: should this process be killed, a small one of its own removes what it started."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from . import interruption, leftovers
from .settings import current

END_SECONDS = 30.0


@contextmanager
def keep(*, root: str = "", programs: Sequence[str] = (), label: str = "") -> Generator[None]:
    """Have removed, however this process ends, what is described; the caller removes it on the ordinary way out.

    root: a directory, and with it what runs in it (leftovers.processes).
    label: of containers.
    """
    left = json.dumps({"root": root, "programs": list(programs), "label": label})
    # A session of its own, as Ctrl-C in a terminal goes to the whole group.
    child = subprocess.Popen(
        [sys.executable, "-I", leftovers.__file__, left],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )
    try:
        yield
    finally:
        with interruption.shield():
            assert child.stdin is not None
            with suppress(BrokenPipeError):
                child.stdin.write(leftovers.STAND_DOWN)
            with suppress(BrokenPipeError):
                child.stdin.close()
            try:
                child.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


@contextmanager
def directory(
    prefix: str, programs: Sequence[str] = (), stop: Callable[[Path], None] = lambda root: None
) -> Generator[Path]:
    """A fresh temporary directory. At the end, however it comes, it is gone with what runs in it (leftovers.processes).

    stop: ends these on the ordinary way out.
    """
    root = Path(tempfile.mkdtemp(prefix=prefix, dir=current().folder)).resolve()
    try:
        with keep(root=str(root), programs=programs):
            try:
                yield root
            finally:
                with interruption.shield():
                    stop(root)
                    shutil.rmtree(root, ignore_errors=True)
    finally:
        with interruption.shield():
            shutil.rmtree(root, ignore_errors=True)  # Should the keeper not have come up.
