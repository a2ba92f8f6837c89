"""A result as the JSON of a badge: the level and how many of how many clauses, never a bare percentage.

    python -m memassay.reports.badge result.json > badge.json

The JSON is what shields.io calls an endpoint.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ..harness.artefact import FAILING, BackendResult, Result, decode_result


def badge(result: Result) -> bytes:
    """The badge of a result; with several backends each is named."""
    named = len(result.backends) > 1
    parts = [(f"{backend.name} " if named else "") + _counts(result, backend) for backend in result.backends]
    verdicts = {backend.clauses[clause].verdict for backend in result.backends for clause in result.selected}
    failed = verdicts & FAILING or any(backend.error for backend in result.backends)
    colour = "red" if failed else "yellow" if verdicts & {"vacuous", "not-run", "known"} else "brightgreen"
    fields = {
        "schemaVersion": 1,
        "label": f"memassay {result.corpus.level}",
        "message": ", ".join(parts),
        "color": colour,
    }
    return json.dumps(fields, ensure_ascii=False, indent=2).encode() + b"\n"


def _counts(result: Result, backend: BackendResult) -> str:
    asked = [backend.clauses[clause].verdict for clause in result.selected]
    rest = [(asked.count("known"), "known"), (asked.count("unsupported"), "unsupported")]
    told = "".join(f", {count} {word}" for count, word in rest if count)
    return f"{asked.count('pass')} of {len(asked)} clauses{told}"


def main() -> None:
    """Write the badge of the file named on the command line to standard output."""
    sys.stdout.buffer.write(badge(decode_result(Path(sys.argv[1]).read_bytes())))


if __name__ == "__main__":
    main()
