"""CON: what one client's call did, the next call of any client sees; and calls of several clients at once."""

from __future__ import annotations

from .model import Clause

REPORTS = ("deepset-ai/haystack-core-integrations#2605", "run-llama/llama_index#22286")

CLAUSES = (
    Clause(
        id="CON-1",
        title="visible at once",
        statement=(
            "When a call returns, its effect is visible to the next call of any client of the same store: in lists, "
            "by id, under filters and in counts, and to writes that act on what is there."
        ),
        source="decision",
        level="smoke",
        clients=2,
        applies=("visible.memory",),
        discriminators={
            "another client lists after a save": "visible.listing",
            "another client lists under a filter": "visible.filtered",
            "another client reads what was updated": "visible.updated",
            "another client reads after a deletion": "visible.deleted",
            "another client gets a thread that was written": "visible.thread",
            "another client lists threads after a write": "visible.threads",
            "another client changes or deletes what was just saved": "visible.memory.written",
        },
        reports=REPORTS,
    ),
    Clause(
        id="CON-1a",
        title="found at once",
        statement="The next semantic recall of any client finds what was embedded, and nothing that was deleted.",
        source="decision",
        level="smoke",
        clients=2,
        requires="semantic_recall",
        applies=("visible.search",),
        discriminators={
            "another client searches for what was just saved": "visible.search.new",
            "another client searches after a deletion": "visible.search.gone",
        },
        reports=REPORTS,
    ),
    Clause(
        id="CON-1b",
        title="indices at once",
        statement=(
            "The next call of any client on an index sees what was upserted, updated and deleted: queries, rows by "
            "id, and deletions by filter."
        ),
        source="decision",
        level="smoke",
        clients=2,
        requires="vectors",
        applies=("visible.index",),
        discriminators={
            "another client queries": "visible.query",
            "another client gets rows": "visible.vectors",
            "another client looks after an upsert or update": "visible.index.new",
            "another client looks after a deletion": "visible.index.gone",
            "another client deletes by filter what was just upserted": "visible.delete_by_filter",
        },
        reports=REPORTS,
    ),
    Clause(
        id="CON-1c",
        title="working memory at once",
        statement="The next call of any client sees working memory as it was last updated, or that it is gone.",
        source="decision",
        level="smoke",
        clients=2,
        requires="working_memory",
        applies=("visible.working",),
        discriminators={"another client reads after an update": "visible.working"},
    ),
    Clause(
        id="CON-2",
        title="clients at the same time",
        statement=(
            "Whatever calls of several clients meet: what came of each, and what is there afterwards, is what "
            "comes of them in some order, one after another, in which a call that had returned stands before one that "
            "began later. So savers lose nothing, the order read is one total order, the same at every read, merges "
            "are kept, of several creates of one id exactly one succeeds, and a thread that is deleted while others "
            "save into it leaves nothing: taking its id again shows it empty. Where batches are declared compensated, "
            "a read may see a part of a write that runs at the same time."
        ),
        source="decision",
        level="smoke",
        clients=2,
        applies=("race.memory",),
        discriminators={
            "savers into one thread": "race.memory.savers",
            "savers of one message": "race.memory.one_message",
            "merges into one thread or message": "race.memory.mergers",
            "a deletion beside saves": "race.memory.delete_save",
            "a clone beside saves": "race.memory.clone_save",
            "creates of one id": "race.memory.creates",
            "a reader beside writers": "race.memory.reads",
        },
    ),
    Clause(
        id="CON-2a",
        title="embeddings at the same time",
        statement=(
            "The same of messages with embeddings: when all calls have returned, every message that was saved "
            "with one has it, and no embedding is left of a message that is gone."
        ),
        source="decision",
        level="smoke",
        clients=2,
        requires="semantic_recall",
        applies=("race.embedded",),
        discriminators={
            "savers of one message": "race.embedded.one_message",
            "a deletion beside saves": "race.embedded.delete_save",
            "a reader beside writers": "race.embedded.reads",
        },
    ),
    Clause(
        id="CON-2b",
        title="an index at the same time",
        statement=(
            "The same of vector indices: rows that were upserted are there, changes of a row's vector and of its "
            "metadata are both kept, and of creates with different dimensions one wins."
        ),
        source="decision",
        level="smoke",
        clients=2,
        requires="vectors",
        applies=("race.index",),
        discriminators={
            "upserts of one row": "race.index.one_row",
            "changes of one row": "race.index.mergers",
            "a deletion beside upserts": "race.index.delete_save",
            "creates of one name": "race.index.creates",
        },
    ),
)
