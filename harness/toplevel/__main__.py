"""`memassay`, and `python -m memassay`: the command line is imported only once an interrupt is understood."""

import os
import sys


def main() -> None:
    """Run the command line."""
    try:
        os.getcwd()
    except OSError:
        sys.stderr.write("memassay: the current directory is gone (change to another one)\n")
        sys.exit(2)
    try:
        from memassay.harness.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("memassay: interrupted\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
