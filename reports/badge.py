"""Results as the JSON of a badge: the level and how many of how many clauses, never a bare percentage.

    python -m memassay.reports.badge result.json > badge.json

The JSON is what shields.io calls an endpoint.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from ..harness.artefact import FAILING, Result, decode_result
from .matrix import Column, columns


def badge(results: Sequence[Result]) -> bytes:
    """The badge of results; with several backends each is named."""
    shown = columns(results)
    parts = [(f"{column.label} " if len(shown) > 1 else "") + _counts(column) for column in shown]
    verdicts = {verdict for column in shown for verdict in _verdicts(column)}
    failed = verdicts & FAILING or any(column.backend.error for column in shown)
    colour = "red" if failed else "yellow" if verdicts & {"vacuous", "not-run", "known"} else "brightgreen"
    levels = dict.fromkeys(result.corpus.level for result in results)
    fields = {
        "schemaVersion": 1,
        "label": f"memassay {', '.join(levels)}",
        "message": ", ".join(parts),
        "color": colour,
    }
    return json.dumps(fields, ensure_ascii=False, indent=2).encode() + b"\n"


def _verdicts(column: Column) -> list[str]:
    return [column.found(clause).verdict for clause in column.result.selected]


def _counts(column: Column) -> str:
    asked = _verdicts(column)
    rest = [(asked.count("known"), "known"), (asked.count("unsupported"), "unsupported")]
    told = "".join(f", {count} {word}" for count, word in rest if count)
    return f"{asked.count('pass')} of {len(asked)} clauses{told}"


def main() -> None:
    """Write the badge of the files named on the command line to standard output."""
    sys.stdout.buffer.write(badge([decode_result(Path(name).read_bytes()) for name in sys.argv[1:]]))


if __name__ == "__main__":
    main()
