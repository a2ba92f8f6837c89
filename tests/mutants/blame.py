"""Which clauses of other families a fault may show in: at most three, said before the suite is run."""

from __future__ import annotations

ALSO: dict[str, tuple[str, ...]] = {}
"""By id of a mutant, or of a clause for all of its mutants."""
