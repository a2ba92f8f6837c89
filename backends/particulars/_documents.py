"""What both search engines tell of indices: durability, refreshes, shards, segments and sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import Particulars

SETTINGS = ("translog.durability", "refresh_interval", "number_of_shards", "number_of_replicas")


def pattern(namespace: str) -> str:
    """Of the names of a namespace's indices."""
    return f"memassay-{namespace}-*"


def told(settings: Mapping[str, Any], stats: Mapping[str, Any]) -> Particulars:
    """From the answers of `_settings` (flat, with defaults) and of `_stats`."""
    values: dict[str, set[str]] = {name: set() for name in SETTINGS}
    for each in settings.values():
        own = {**each.get("defaults", {}), **each["settings"]}
        for name in SETTINGS:
            values[name].add(str(own.get(f"index.{name}", "the engine's default")))
    total = stats["_all"]["primaries"]
    return Particulars(
        settings={
            **{name: " or ".join(sorted(found)) for name, found in values.items() if found},
            "segments": str(total["segments"]["count"]),
        },
        sizes={
            "store": int(total["store"]["size_in_bytes"]),
            "translog": int(total["translog"]["size_in_bytes"]),
            "segments memory": int(total["segments"]["memory_in_bytes"]),
            **_vectors(total),
        },
    )


def _vectors(total: Mapping[str, Any]) -> dict[str, int]:
    off_heap = total.get("dense_vector", {}).get("off_heap", {}).get("total_size_bytes")
    return {} if off_heap is None else {"vectors off-heap memory": int(off_heap)}
