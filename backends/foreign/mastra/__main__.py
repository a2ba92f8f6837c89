"""`python -m memassay.backends.foreign.mastra`: installs the pinned packages of Mastra into the user's cache."""

from __future__ import annotations

import sys

from .packages import InstallFailed, folder, install


def main() -> int:
    """Install; the exit code."""
    sys.stderr.write(f"installing Mastra's packages (about 290 MB) into {folder()}\n")
    try:
        sys.stderr.write(f"installed: {install()}\n")
    except InstallFailed as error:
        sys.stderr.write(f"memassay: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
