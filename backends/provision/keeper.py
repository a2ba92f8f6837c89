"""Stands by while an engine runs: should this process be killed, a small one of its own removes what it started."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress

from . import interruption, leftovers

END_SECONDS = 30.0


@contextmanager
def keep(
    *, root: str = "", programs: Sequence[str] = (), folders: Sequence[str] = (), label: str = ""
) -> Generator[None]:
    """Have removed, however this process ends, what is described; the caller removes it on the ordinary way out.

    root: a directory, and with it all processes of `programs` that name a path in it on their command line.
    folders: further directories.
    label: of containers.
    """
    left = json.dumps({"root": root, "programs": list(programs), "folders": list(folders), "label": label})
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
