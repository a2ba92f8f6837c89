"""Names the call at which a store hung, or at which its engine died."""

from __future__ import annotations

from .engine import Engine, EngineFailed
from .execution import Execution
from .plain import bounded

SHOWN = 300
"""Characters of a call."""


def check(engine: Engine, execution: Execution, digest: str) -> None:
    """Ask the engine whether it is there if a call crashed or hung. Raises EngineFailed, which names the call."""
    if not any(divergence.crashed for divergence in execution.divergences):
        return
    try:
        engine.check()
    except EngineFailed as error:
        raise EngineFailed(f"{error}; in flight was {call(execution, digest)}") from None


def call(execution: Execution, digest: str) -> str:
    """The first call that crashed or hung, and where it stands; digest is the hash of the program as it was meant."""
    index = min(divergence.index for divergence in execution.divergences if divergence.crashed)
    return f"{bounded(str(execution.program.operations[index]), SHOWN)} (program {digest}, operation {index + 1})"
