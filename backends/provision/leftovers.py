"""Removes what a run started: processes, directories, containers. As a program it does so once its parent has ended.

It imports nothing of ours, so that it starts fast and by its path alone.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import psutil

POLL_SECONDS = 0.05
KILL_SECONDS = 30.0
QUIET_SCANS = 3
"""So many times in a row nothing is found before it is believed: what is just starting may start one more."""

ROOT = "MEMASSAY_ROOT"
"""In the environment of what we start ourselves: the directory that it runs in."""

STAND_DOWN = b"done"
"""What the parent says when it removed everything itself."""


def processes(root: str, programs: Sequence[str] = ()) -> list[psutil.Process]:
    """Those that carry the directory `root` in the variable ROOT, and of these programs those that name it as well.

    By that and not by a pid file: a start that was interrupted may not have written it yet.
    """
    found: list[psutil.Process] = []
    for process in psutil.process_iter(["name", "cmdline", "environ", "status"]):
        told: dict[str, Any] = process.info
        named = told["name"] in programs and any(root in argument for argument in told["cmdline"] or ())
        environment: Mapping[str, str] = told["environ"] or {}
        ours = named or environment.get(ROOT) == root
        if ours and told["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def end(found: Sequence[psutil.Process], number: int, seconds: float) -> bool:
    """Send them the signal; whether all ended in time. One that nobody has reaped yet has ended."""
    for process in found:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
    deadline = time.monotonic() + seconds
    while any(map(_runs, found)):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def kill_all(root: str, programs: Sequence[str] = ()) -> None:
    """Kill the processes of a directory, and their children, until none shows up any more."""
    deadline, quiet = time.monotonic() + KILL_SECONDS, 0
    while quiet < QUIET_SCANS and time.monotonic() < deadline:
        found = processes(root, programs)
        quiet = 0 if found else quiet + 1
        for process in found:
            with suppress(psutil.NoSuchProcess):
                found = [*found, *process.children(recursive=True)]
        end(found, 9, KILL_SECONDS)
        time.sleep(POLL_SECONDS)


def remove_containers(label: str) -> int:
    """Remove the containers with the label, and their volumes; how many there were."""
    import docker
    from docker.errors import APIError

    client: Any = docker.from_env()
    try:
        found = client.containers.list(all=True, filters={"label": label}, ignore_removed=True)
        for container in found:
            with suppress(APIError):  # Somebody else removes it too.
                container.remove(force=True, v=True)
        return len(found)
    finally:
        client.close()


def remove(left: Mapping[str, Any]) -> None:
    """Remove what the run of this description left: its root, its programs, the label of its containers."""
    if root := left["root"]:
        kill_all(root, left["programs"])
        shutil.rmtree(root, ignore_errors=True)
    if label := left["label"]:
        remove_containers(label)


def main() -> None:
    """Wait for the parent's last word, or for its end without one; the description is the first argument."""
    left = json.loads(sys.argv[1])
    with os.fdopen(0, "rb") as parent:
        if parent.read() == STAND_DOWN:
            return
    remove(left)


if __name__ == "__main__":
    main()
