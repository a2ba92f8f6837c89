"""A hostile process time zone for the length of a run, so that local time cannot pass for UTC (VAL-1)."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import contextmanager

HOSTILE = "Pacific/Chatham"
"""UTC+12:45, summer time +13:45: no whole hour, and summer in the northern winter."""


@contextmanager
def hostile_zone() -> Generator[str]:
    """Set it before engines start; yields what the process really has, restores what it had."""
    if not hasattr(time, "tzset"):
        yield f"unchanged ({time.strftime('%z')})"
        return
    before = os.environ.get("TZ")
    _set(HOSTILE)
    try:
        yield f"{HOSTILE} ({_offset()})"
    finally:
        _set(before)


def _offset() -> str:
    """The standard offset, the same all year; +00:00 shows that the zone is not installed."""
    minutes = -time.timezone // 60
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def _set(zone: str | None) -> None:
    if zone is None:
        os.environ.pop("TZ", None)
    else:
        os.environ["TZ"] = zone
    time.tzset()
