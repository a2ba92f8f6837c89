"""`python -m memassay.backends.foreign.mastra` does what `memassay fetch mastra` does."""

from __future__ import annotations

import sys

from ...provision import EngineUnavailable
from .packages import Packages, install


def main() -> int:
    """Install the pinned packages of Mastra into the user's cache; the exit code."""
    sys.stderr.write(f"mastra: {Packages().offer}\n")
    try:
        sys.stderr.write(f"mastra: in {install()}\n")
    except EngineUnavailable as error:
        sys.stderr.write(f"memassay: {error}\n")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
