"""The machine that a benchmark runs on: what makes it another one, and how fast it is at a fixed piece of work."""

from __future__ import annotations

import hashlib
import os
import platform
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import psutil

IDENTITIES = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
CPU_INFO = Path("/proc/cpuinfo")
GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
THREADS_PER_CORE = Path("/sys/devices/system/cpu/smt/active")
QUOTA = Path("/sys/fs/cgroup/cpu.max")

GIB = 2**30

REPEATS = 40
"""Of the work that is timed. The fastest counts: others shared the core, or were interrupted."""

HASHED = 500_000
"""Bytes that are hashed, some tenths of a millisecond. Not arithmetic: an interpreter's version is no machine."""

COPIED = 4_000_000
"""Bytes that are copied: more than the caches near a core hold."""

DRIFT = 0.10
"""By how much the fastest repeat of one machine may differ between two runs."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A machine, as far as that can be told.

    id: a hash of the name that the system gave itself, and nothing else of it. cpus: logical ones that this process
    may use. cores: physical ones. memory_gib: rounded. quota: CPUs that a container may use; None where there is no
    limit. governor, smt: as the kernel tells, empty where it does not. kernel: may change without it being another
    machine. hash_ns, copy_ns: the fastest of many repeats of a fixed piece of work.
    """

    id: str
    system: str
    architecture: str
    cpu: str
    cpus: int
    cores: int
    memory_gib: int
    quota: float | None
    governor: str
    smt: str
    kernel: str
    hash_ns: int
    copy_ns: int

    def other_than(self, another: Machine) -> list[str]:
        """What is not the same, in words, this machine's first; nothing when both are one machine."""
        same = ("system", "architecture", "cpu", "cpus", "cores", "memory_gib", "quota", "governor", "smt")
        told = [
            f"{name} {getattr(self, name)!r} and {getattr(another, name)!r}"
            for name in same
            if getattr(self, name) != getattr(another, name)
        ]
        return told or ([] if self.id == another.id else ["another machine of the same kind"])

    def pace(self, another: Machine) -> float:
        """How long the other takes for what this one does in 1, where the difference is largest."""
        ratios = [another.hash_ns / self.hash_ns, another.copy_ns / self.copy_ns]
        return max(ratios, key=lambda ratio: abs(np.log(ratio)))


def fingerprint() -> Machine:
    """The machine that this process runs on; takes about a tenth of a second."""
    hashing, copying = calibrate()
    return Machine(
        id=hashlib.sha256(f"memassay {_identity()}".encode()).hexdigest()[:16],
        system=platform.system(),
        architecture=platform.machine(),
        cpu=_cpu(),
        cpus=_usable(),
        cores=psutil.cpu_count(logical=False) or 0,
        memory_gib=round(psutil.virtual_memory().total / GIB),
        quota=_quota(),
        governor=_first_line(GOVERNOR),
        smt=_first_line(THREADS_PER_CORE),
        kernel=platform.release(),
        hash_ns=hashing,
        copy_ns=copying,
    )


def calibrate(repeats: int = REPEATS) -> tuple[int, int]:
    """Nanoseconds of the fastest repeat of hashing, and of copying in memory."""
    hashed = bytes(HASHED)
    source = np.ones(COPIED, np.uint8)
    target = np.empty_like(source)
    hashes: list[int] = []
    copies: list[int] = []
    for _ in range(repeats):
        began = time.perf_counter_ns()
        hashlib.sha256(hashed).digest()
        between = time.perf_counter_ns()
        np.copyto(target, source)
        copies.append(time.perf_counter_ns() - between)
        hashes.append(between - began)
    return min(hashes), min(copies)


def _identity() -> str:
    return next((found for path in IDENTITIES if (found := _first_line(path))), socket.gethostname())


def _cpu() -> str:
    names = (line.partition(":")[2].strip() for line in _lines(CPU_INFO) if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _usable() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux has it
        return os.cpu_count() or 0


def _quota() -> float | None:
    match _first_line(QUOTA).split():
        case [limit, period] if limit.isdecimal() and period.isdecimal():
            return int(limit) / int(period)
        case _:
            return None


def _first_line(path: Path) -> str:
    return next(_lines(path), "").strip()


def _lines(path: Path) -> Iterator[str]:
    """Of a file that says something about the system; none where it does not."""
    try:
        yield from path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
