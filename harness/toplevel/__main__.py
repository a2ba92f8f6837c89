"""`python -m memassay`."""

from memassay.harness.cli import main

main()
