"""Which clauses of other families a fault may show in: at most three a mutant, said before the suite is run.

Written down from what the clauses share, and from the programs of seed 0; the other seeds put it to the test.
"""

from __future__ import annotations

ALSO: dict[str, tuple[str, ...]] = {
    # An instant that is stored wrongly is read back by a re-save too; an id that is mistaken for another is ISO-2's.
    "VAL": ("MSG-2", "SEM-5", "ISO-2"),
    # A clone is made of rows, of their embeddings, and of their owner.
    "CLN": ("SEM-2", "SEM-4", "ISO-1"),
    # What is saved is embedded; the semantic filter sees the snapshot of that moment.
    "MSG": ("SEM-2", "SEM-4", "SEM-5"),
    # Windows of hits and includes are cut out of the thread's order; pages are what hits are added to.
    "ORD": ("SEM-2", "SEM-3", "INC-2"),
    # A range narrows the candidates of a search; its bounds are floored like instants.
    "TIM": ("VAL-1b", "SEM-2", "SEM-3"),
    "FLT": ("SEM-2", "SEM-3", "TIM-1"),
    # A hit's window is an include's.
    "INC": ("SEM-3", "ORD-2", "ORD-4"),
    # Filters select what queries return and deletes remove.
    "OPR": ("VEC-2b", "VEC-4"),
    # A row that a query loses is missing behind a filter too.
    "VEC": ("OPR-2", "OPR-3", "OPR-4"),
    # Clones copy embeddings; a batch whose embedder failed was not refused as a whole.
    "SEM": ("CLN-3", "MSG-1", "MSG-3"),
    # A hostile id reaches other rows through the call that it was given to.
    "ISO-2": ("THR-5", "MSG-5", "ORD-6"),
}
"""By a mutant's id, by a clause for all of its mutants, or by a family."""
