"""Which clauses of other families a fault may show in: at most three a mutant, said before the suite is run.

Written down from what the clauses share, and from the programs of seed 0; the other seeds put it to the test.
"""

from __future__ import annotations

ALSO: dict[str, tuple[str, ...]] = {
    # An instant that is stored wrongly is read back by a re-save too.
    "VAL": ("MSG-2", "SEM-5", "ISO-2"),
    # An id that is mistaken for another reaches the other's row by whatever call it is given to.
    "VAL-2": ("ISO-2", "MSG-1", "MSG-4"),
    "VAL-2b": ("ISO-2", "THR-3", "MSG-4"),
    # Metadata is stored by merges as well.
    "VAL-3": ("MSG-2", "MSG-4", "THR-3"),
    # What raises for an unknown thread does so for its messages.
    "THR-2": ("ORD-6",),
    # A clone is made of rows, of their embeddings, and of their owner.
    "CLN": ("SEM-2", "SEM-4", "ISO-1"),
    # Embeddings that went elsewhere leave the count as it was: for a second client, old.
    "CLN-3": ("SEM-2", "SEM-4", "CON-1"),
    # What is saved is embedded; the semantic filter sees the snapshot of that moment.
    "MSG": ("SEM-2", "SEM-4", "SEM-5"),
    # A write without its effect looks, to a second client, like one it does not see yet.
    "MSG-2": ("SEM-2", "SEM-5", "CON-1"),
    "MSG-3": ("CON-1",),
    # Windows of hits and includes are cut out of the thread's order; pages are what hits are added to.
    "ORD": ("SEM-2", "SEM-3", "INC-2"),
    # Rows in an order that they had once are, for a second client, old.
    "ORD-1": ("SEM-2", "SEM-3", "CON-1"),
    "order_of_arrival": ("CLN-1", "INC-2", "SEM-3"),
    "ORD-2": ("SEM-3", "INC-2", "FLT-3"),
    "ORD-3": ("SEM-2", "SEM-3", "FLT-3"),
    # A range narrows the candidates of a search, and the total; its bounds are floored like instants.
    "TIM": ("VAL-1b", "ORD-5", "SEM-2"),
    "end_needs_a_start": ("ORD-5", "SEM-2", "SEM-3"),
    "FLT": ("SEM-2", "SEM-3", "TIM-1"),
    "FLT-3": ("SEM-2", "SEM-3", "CON-1"),
    # A hit's window is an include's.
    "INC": ("SEM-3", "ORD-2", "ORD-4"),
    # Filters select what queries return and deletes remove.
    "OPR": ("VEC-2b", "VEC-4"),
    # A row that a query loses is missing behind a filter too.
    "VEC": ("OPR-2", "OPR-3", "OPR-4"),
    # What a write left as it was looks old to a second client.
    "VEC-1": ("CON-1b",),
    "VEC-2": ("CON-1b", "VAL-4"),
    # Clones copy embeddings; a batch whose embedder failed was not refused as a whole.
    "SEM": ("CLN-3", "MSG-1", "MSG-3"),
    # What an update or a refusal did elsewhere, or did not do, looks old to a second client, or lost by reopening.
    "WM": ("CON-1c", "ISO-2"),
    "CON-1c": ("WM-1", "WM-1b", "WM-1c"),
    # A title sets updated_at, as the save before it does; what a settle leaves looks old to a second client.
    "TTL": ("MSG-3", "THR-5", "CON-1"),
    "ISO-1": ("THR-4",),
    # A hostile id reaches other rows through the call that it was given to.
    "ISO-2": ("THR-5", "MSG-5", "ORD-6"),
    # What is lost by reopening is what was saved last, or its order; a second client finds it as it was.
    "DUR": ("CON-1", "MSG-1", "ORD-1"),
    # Clients that are opened for a race reload, too.
    "reloads_by_id": ("CON-2", "CON-2a", "ORD-1"),
    # What depends on which call came first shows in a race as it does one after another in another order.
    "counts_positions_anew": ("CON-2", "SEM-2", "SEM-3"),
    "updating_forgets_the_title": ("CON-2",),
    "merges_threads_from_a_copy": ("CON-2",),
    "merges_messages_from_a_copy": ("CON-2",),
    "returns_its_own_messages": ("MSG-2", "CON-2", "CON-2a"),
    "saving_does_not_touch": ("CON-1", "CON-2", "CON-2a"),
    "quantises_to_bytes": ("OPR-2", "OPR-3", "CON-2b"),
    "ties_depend_on_k": ("OPR-2", "OPR-3", "CON-2b"),
    "empty_title_gets_a_default": ("CLN-2",),
    "deleting_leaves_messages": ("ORD-4", "ORD-5"),
    # To whom a process leaves its work that dies, old states are losses.
    "others_see_it_three_calls_later": ("DUR-1a", "MSG-3", "THR-4"),
    "one_snapshot_for_ever": ("DUR-1a", "MSG-3", "THR-4"),
    "thread_lists_are_late": ("DUR-1a", "MSG-3", "THR-4"),
    # A read that is late is judged by what it reads, where nothing older would explain it.
    "CON": ("MSG-3", "ISO-2", "THR-4"),
    "CON-1a": ("SEM-3", "SEM-4"),
    "CON-1b": ("VEC-1", "VEC-2b"),
}
"""By a mutant's id, by a clause for all of its mutants, or by a family."""
